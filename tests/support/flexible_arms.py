"""Small mechanisms with a flexible body, for tests of models."""

from __future__ import annotations

from typing import Any

import spanloop as sl

ALUMINIUM = {"E": 7e10, "density": 2700.0}


def boom(**options: Any) -> sl.flexible.Beam:
    """A beam of 1 m that bends in both planes and twists, with a node at 0.4 m."""
    given = {"modes": {"y": 0, "z": 0, "torsion": 0}, "nodes": {"mid": 0.4}, "damping": 0.01, **ALUMINIUM} | options
    return sl.flexible.beam(1.0, section=sl.flexible.rectangle(0.02, 0.01), **given)


def arm(beam: sl.flexible.Beam | None = None) -> sl.Builder:
    """A hub on a hinge, a boom clamped to it, a tool on a hinge at the tip."""
    b = sl.Builder("arm").body("hub", 1.0, inertia=(0.02, 0.02, 0.03)).revolute("hinge", "world", "hub", "z")
    b = b.body("boom", flexible=boom() if beam is None else beam).fixed("clamp", "hub", "boom", (0.1, 0, 0))
    return b.body("tool", 0.5, (0.1, 0, 0), (0.001, 0.002, 0.003)).revolute("wrist", "boom.tip", "tool", "y")


def rigid_arm() -> sl.Model:
    """The same with a rigid boom, by hand."""
    made = boom().bodies[0]
    b = sl.Builder("arm").body("hub", 1.0, inertia=(0.02, 0.02, 0.03)).revolute("hinge", "world", "hub", "z")
    b = b.body("boom", made.mass, made.center, made.moments).fixed("clamp", "hub", "boom", (0.1, 0, 0))
    b = b.body("tool", 0.5, (0.1, 0, 0), (0.001, 0.002, 0.003)).revolute("wrist", "boom", "tool", "y", (1, 0, 0))
    return b.build()
