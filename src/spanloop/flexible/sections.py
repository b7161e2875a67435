"""Cross-sections of beams: area, second moments, torsion constant, shear factors, and an outline to draw."""

from __future__ import annotations

import math
from dataclasses import dataclass

from spanloop.errors import InputError

SMALLEST, LARGEST = 1e-9, 1e9  # m


@dataclass(frozen=True)
class Section:
    """A cross-section in the plane of y and z, its centroid on the axis of the beam.

    area [m²]; Iy = ∫z² and Iz = ∫y² [m⁴]: Iz resists bending in y; J: torsion constant [m⁴]; shear_y, shear_z: shares
    of the area that carry shear; outline: width along y and height along z of what is drawn [m], round or not.
    """

    area: float
    Iy: float
    Iz: float
    J: float
    shear_y: float = 5.0 / 6.0
    shear_z: float = 5.0 / 6.0
    outline: tuple[float, float] = (0.0, 0.0)
    is_round: bool = True


def circle(radius: float) -> Section:
    """Return a solid circular section of this radius [m]."""
    r = _positive(radius, "circle: radius")
    second = math.pi * r**4 / 4.0
    return Section(math.pi * r**2, second, second, 2.0 * second, 0.9, 0.9, (2.0 * r, 2.0 * r))


def tube(outer_radius: float, inner_radius: float) -> Section:
    """Return a circular tube with these radii [m]."""
    r, s = _positive(outer_radius, "tube: outer_radius"), _positive(inner_radius, "tube: inner_radius")
    if s >= r:
        raise InputError(f"tube: inner_radius is {s:g} m, outer_radius {r:g} m; the inner one must be smaller")
    second = math.pi * (r**4 - s**4) / 4.0
    share = 0.5 + 0.4 * (1.0 - s / r) ** 2  # 0.5 of a thin wall, 0.9 of a solid section
    return Section(math.pi * (r**2 - s**2), second, second, 2.0 * second, share, share, (2.0 * r, 2.0 * r))


def rectangle(width: float, height: float) -> Section:
    """Return a solid rectangle: width along y, height along z [m]."""
    b, h = _positive(width, "rectangle: width"), _positive(height, "rectangle: height")
    return Section(b * h, b * h**3 / 12.0, h * b**3 / 12.0, _rectangle_torsion(b, h), outline=(b, h), is_round=False)


def box(width: float, height: float, thickness: float) -> Section:
    """Return a thin-walled rectangular tube: width along y, height along z, wall thickness [m]."""
    b, h = _positive(width, "box: width"), _positive(height, "box: height")
    t = _positive(thickness, "box: thickness")
    if 2.0 * t >= min(b, h):
        raise InputError(f"box: thickness is {t:g} m; must be less than half of width {b:g} m and height {h:g} m")
    inner_b, inner_h = b - 2.0 * t, h - 2.0 * t
    middle_b, middle_h = b - t, h - t
    return Section(
        b * h - inner_b * inner_h,
        (b * h**3 - inner_b * inner_h**3) / 12.0,
        (h * b**3 - inner_h * inner_b**3) / 12.0,
        2.0 * t * (middle_b * middle_h) ** 2 / (middle_b + middle_h),  # Bredt
        2.0 * t * middle_b / (b * h - inner_b * inner_h),
        2.0 * t * middle_h / (b * h - inner_b * inner_h),
        (b, h),
        is_round=False,
    )


def _rectangle_torsion(b: float, h: float) -> float:
    """Saint-Venant's torsion constant: long³ ... as a series in the ratio of the sides."""
    long, short = max(b, h), min(b, h)
    series = sum(math.tanh(k * math.pi * long / (2.0 * short)) / k**5 for k in range(1, 60, 2))
    return long * short**3 * (1.0 / 3.0 - 64.0 / math.pi**5 * (short / long) * series)


def _positive(x: float, what: str) -> float:
    try:
        value = float("nan" if isinstance(x, (bool, str, bytes)) else x)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if math.isnan(value):
        raise InputError(f"{what} is {x!r:.40}; expected a number [m]")
    if value <= 0.0:
        raise InputError(f"{what} is {value:g} m; must be > 0")
    if not SMALLEST <= value <= LARGEST:
        raise InputError(f"{what} is {value:g} m; expected {SMALLEST:g} to {LARGEST:g} m")
    return value
