"""A planar four-bar of hinges, cut where one likes."""

from __future__ import annotations

import spanloop as sl


def linkage(cut: str, driven: bool = False) -> sl.Model:
    """A planar four-bar of hinges a, b, c, d, cut at one of them."""
    b = sl.Builder("linkage")
    for name, length in (("crank", 0.4), ("coupler", 1.0), ("rocker", 0.8)):
        b.body(name, 1.0, (length / 2, 0.0, 0.0), (0.01, 0.1, 0.1))
    b.revolute("a", "world", "crank", "y").revolute("b", "crank", "coupler", "y", (0.4, 0.0, 0.0))
    b.revolute("c", "world", "rocker", "y", (0.9, 0.0, 0.0))
    b.revolute("d", "rocker", "coupler", "y", (0.8, 0.0, 0.0), child_position=(1.0, 0.0, 0.0))
    model = b.build(cut=[cut])
    return model.drive("d") if driven else model
