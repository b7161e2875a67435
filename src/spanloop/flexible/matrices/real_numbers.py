"""Numbers of users that must be real: NumPy and SciPy drop imaginary parts with no more than a warning of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from spanloop.errors import InputError


def real_numbers(given: Any, where: str, advice: str = "") -> Any:
    """What was given, without a zero imaginary part; raises InputError for one that is not zero.

    where: what it is, "from_matrices: K"; advice: what else to give, a sentence.
    """
    try:
        found = given if hasattr(given, "dtype") else np.asarray(given)
    except ValueError:  # rows of several lengths, which the reader of the numbers names
        return given
    if np.ma.is_masked(found):
        raise InputError(
            f"{where} has masked entries; expected numbers. Give .filled(0.0), or the array without its mask"
        )
    if getattr(found.dtype, "kind", "") in "SU":
        raise InputError(f"{where} is text; expected numbers")
    if getattr(found.dtype, "kind", "") != "c":
        return given
    most = float(abs(found.imag).max()) if min(found.shape, default=1) else 0.0
    if most == 0.0:
        return found.real
    raise InputError(f"{where} has imaginary parts, up to {most:.3g}; expected real numbers{advice}")
