"""Warnings about units: numbers that no body of metres and kilograms has."""

from __future__ import annotations

import warnings

import numpy as np

from spanloop.errors import SpanloopWarning
from spanloop.flexible.finite_elements import FiniteElements

LARGE = 500.0  # m
DENSE, LIGHT = 2.3e4, 1e-5  # kg/m³ over the box around the body: osmium; a hundredth of a gram in a cubic metre
FLAT = 1e-3  # of the largest side of the box: plates, beams


def warn_of_units(body: FiniteElements, units: str) -> None:
    """Warn if size or density are those of another unit."""
    sides = np.ptp(body.positions, axis=0)
    along = [((body.dofs[:, 1] == k) & (body.dofs[:, 0] >= 0)).astype(float) for k in range(3)]
    mass = max(float(x @ (body.mass @ x)) for x in along)
    said = f"{body.source.partition(' (')[0]}: read with units={units!r}, the body"
    advice = f'Are its units others, such as units="{"mm t s" if units == "m kg s" else "m kg s"}"?'
    if sides.max() > LARGE:
        _say(f"{said} is {sides.max():.3g} m long. {advice}")
        return
    volume = float(np.prod(np.maximum(sides, FLAT * sides.max())))
    is_solid = sides.min() > FLAT * sides.max()  # the thickness of others is not in the positions
    if mass > LIGHT * volume > 0.0 and not (is_solid and mass > DENSE * volume):
        return
    if mass > 0.0 and volume > 0.0:
        _say(f"{said} has {mass:.3g} kg in a box of {sides[0]:.3g} x {sides[1]:.3g} x {sides[2]:.3g} m. {advice}")


def _say(sentence: str) -> None:
    warnings.warn(sentence, SpanloopWarning, stacklevel=4)
