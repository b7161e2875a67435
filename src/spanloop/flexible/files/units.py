"""Units of finite-element files, which have none: three words such as "mm t s", and the conversion to m, kg, s."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.errors import InputError, nearest

_POUND, _INCH = 0.45359237, 0.0254  # kg, m
_POUND_FORCE = _POUND * 9.80665  # N
LENGTHS = {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "um": 1e-6, "in": _INCH, "ft": 12 * _INCH}
MASSES = {
    "kg": 1.0,
    "g": 1e-3,
    "t": 1e3,
    "lb": _POUND,
    "slug": _POUND_FORCE / (12 * _INCH),  # lbf s²/ft
    "slinch": _POUND_FORCE / _INCH,  # lbf s²/in
}
TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


@dataclass(frozen=True)
class Units:
    """The units of a file: length [m], mass [kg], time [s]."""

    length: float
    mass: float
    time: float

    @staticmethod
    def of(text: str) -> Units:
        """Units from three words, as "mm t s"."""
        words = text.split() if isinstance(text, str) else []
        if len(words) != 3:
            raise InputError(f'units is {text!r:.60}; expected length, mass and time, such as "mm t s" or "m kg s"')
        found = []
        for word, known, what in zip(words, (LENGTHS, MASSES, TIMES), ("length", "mass", "time"), strict=True):
            if word not in known:
                raise InputError(f"units is {text!r:.60}: {word!r} is no unit of {what}; {nearest(word, known)}")
            found.append(known[word])
        return Units(*found)

    @property
    def is_si(self) -> bool:
        """Whether nothing is converted."""
        return self == Units(1.0, 1.0, 1.0)

    def mass_matrix(self, matrix: Any, components: np.ndarray) -> Any:
        """A mass matrix [kg, kg m, kg m²]. components (N,): 0 ... 5 of its rows; from 3 on rotations."""
        return self._scaled(matrix, components, self.mass)

    def stiffness_matrix(self, matrix: Any, components: np.ndarray) -> Any:
        """A stiffness matrix [N/m, N, N m]."""
        return self._scaled(matrix, components, self.mass / self.time**2)

    def _scaled(self, matrix: Any, components: np.ndarray, factor: float) -> Any:
        """factor · s_i s_j A_ij: a rotation counts as a displacement over a length, s = length; else s = 1."""
        if self.is_si:
            return matrix
        scale = np.where(components >= 3, self.length, 1.0)
        found = matrix.tocoo(copy=True)
        found.data = found.data * (factor * scale[found.row] * scale[found.col])
        return found.tocsr()
