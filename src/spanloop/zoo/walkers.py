"""Machines with a floating base and legs."""

from __future__ import annotations

from spanloop.model.build import Builder
from spanloop.model.model import Model
from spanloop.model.shapes import box, cylinder


def quadruped() -> Model:
    """A trunk of 12 kg on four legs with three hinges each: hip sideways (x), hip forward (y), knee (y).

    x forward, y left, z up; at neutral the legs are straight. Frame "<leg>_foot" is the foot's centre. The
    numbers are our own, of the size of a small walking robot.
    """
    b = Builder("quadruped")
    b.body("trunk", 12.0, (0.01, 0.0, 0.005), box(12.0, 0.45, 0.2, 0.12))
    b.free("root", "world", "trunk")
    for leg, x, y in (("fl", 0.2, 0.1), ("fr", 0.2, -0.1), ("hl", -0.2, 0.1), ("hr", -0.2, -0.1)):
        _add_leg(b, leg, x, y)
    return b.build()


def _add_leg(b: Builder, leg: str, x: float, y: float) -> None:
    out = 0.08 if y > 0.0 else -0.08
    b.body(f"{leg}_hip", 0.7, (0.0, 0.25 * out, 0.0), cylinder(0.7, 0.045, 0.08, "y"))
    b.body(f"{leg}_thigh", 1.1, (0.0, 0.0, -0.09), box(1.1, 0.05, 0.04, 0.24))
    b.body(f"{leg}_shank", 0.25, (0.0, 0.0, -0.1), cylinder(0.25, 0.012, 0.22))
    losses = {"damping": 0.02, "armature": 0.004}
    b.revolute(f"{leg}_roll", "trunk", f"{leg}_hip", "x", (x, y, 0.0), lower=-0.8, upper=0.8, **losses)
    b.revolute(f"{leg}_pitch", f"{leg}_hip", f"{leg}_thigh", "y", (0.0, out, 0.0), lower=-2.0, upper=2.0, **losses)
    b.revolute(f"{leg}_knee", f"{leg}_thigh", f"{leg}_shank", "y", (0.0, 0.0, -0.22), lower=-2.6, upper=0.1, **losses)
    b.frame(f"{leg}_foot", f"{leg}_shank", (0.0, 0.0, -0.22))
