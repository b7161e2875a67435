"""The sine and cosine of portable code: no fused operations, so that every target rounds alike.

An angle is reduced by n·π/2, with π/2 in four parts. The first three are so short that n times each is exact for
angles up to LIMIT; what the subtractions of the second and third round off is added to the fourth, so that the reduced
angle is rounded once. The result is good to two units in the last place. Beyond LIMIT both functions are NaN, which
every caller refuses. Polynomials: those of the machine code (render/instructions.py).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from spanloop.compiler.render.instructions import (
    COSINE_POLYNOMIAL,
    FUSED_HALF_PI,
    ROUNDING,
    SINE_POLYNOMIAL,
    TWO_OVER_PI,
)

LIMIT = {"double": 1e6, "float": 1e4}  # rad; n has 20 bits, or 13
_BITS = {"double": 33, "float": 11}  # of a short part
_HALF_PI = Fraction("1.57079632679489661923132169163975144209858469968755291048747229615390820314310449931")


def _parts(real: str) -> tuple[float, ...]:
    """π/2 in three short parts and what is left of it."""
    out, left = [], _HALF_PI
    for _ in range(3):
        unit = Fraction(2) ** (_exponent(left) - _BITS[real] + 1)
        part = (left // unit) * unit
        out.append(float(part))
        left -= part
    return (*out, float(left) if real == "double" else float(np.float32(float(left))))


def _exponent(x: Fraction) -> int:
    """k with 2ᵏ ≤ x < 2ᵏ⁺¹."""
    k = x.numerator.bit_length() - x.denominator.bit_length()
    return k if Fraction(2) ** k <= x else k - 1


HALF_PI = {real: _parts(real) for real in ("double", "float")}

__all__ = ["COSINE_POLYNOMIAL", "FUSED_HALF_PI", "HALF_PI", "LIMIT", "ROUNDING", "SINE_POLYNOMIAL", "TWO_OVER_PI"]
