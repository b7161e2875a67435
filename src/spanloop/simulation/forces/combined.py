"""Several forces as one."""

from __future__ import annotations

from typing import Any

from spanloop.errors import InputError
from spanloop.simulation.forces.at_frames import Acting, Force


def together(*forces: Force) -> Force:
    """All of these at once."""
    for f in forces:
        if not callable(f):
            raise InputError(f"together: {f!r} is not a force; expected functions (t, q, v) -> {{'body': six numbers}}")

    def acting(t, q, v) -> Acting:
        out: dict[Any, list] = {}
        for f in forces:
            for place, values in f(t, q, v).items():
                old = out.get(place)
                out[place] = list(values) if old is None else [x + y for x, y in zip(old, values, strict=True)]
        return dict(out)

    return acting
