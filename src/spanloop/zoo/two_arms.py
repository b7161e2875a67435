"""Two arms whose forearms are moved through parallelograms, and the four-bar that they hold: loops inside loops."""

from __future__ import annotations

from dataclasses import replace
from math import pi

import numpy as np

from spanloop.joints import Fixed, Revolute
from spanloop.model.builder import Builder
from spanloop.model.model import Model
from spanloop.model.parts import WORLD, Loop, Placement
from spanloop.model.poses import pose
from spanloop.model.solid_inertia import box, cylinder
from spanloop.zoo.grasping import on_base, turned_about_z
from spanloop.zoo.plane_geometry import crossing, direction

_PASSIVE: dict[str, bool] = {"actuated": False}
_LEVER, _UPPER = 0.1, 0.4  # m, the sides of an arm's parallelogram
_POSTURE = (0.2, 0.5, -0.9, 0.3, 0.7, -0.2)  # turn, shoulder, elbow, roll, pitch, spin of an arm
_GROUND, _CRANK, _COUPLER, _ROCKER = 0.4, 0.2, 0.44, 0.36  # m, of the four-bar
_HEIGHT = 1.0  # m, of its base bar
_GRASPED = ("base_bar", "coupler_bar")  # by arm 1, by arm 2, at half their length


def arms_with_linkage() -> Model:
    """Two six-joint arms with a parallelogram each, which hold a free four-bar: loops inside loops. Mobility 7.

    One arm holds it by its base, the other by its coupler. An arm's elbow is passive: a lever at the shoulder
    turns the forearm through a rod, the parallelogram. The four-bar's hinges are passive, too; 12 joints are actuated.
    """
    arm, linkage = _arm(), _four_bar()
    parts = [on_base(arm, f"arm{i}_", _base(i)) for i in (1, 2)]
    tool = arm.frame("tool")
    holding = tuple(
        Loop(f"holding{i}", Fixed(), f"arm{i}_{tool.body}", _GRASPED[i - 1], tool.placement, _grasp(i)) for i in (1, 2)
    )
    return replace(
        linkage,
        name="arms_with_linkage",
        bodies=(*linkage.bodies, *(x for p in parts for x in p.bodies)),
        joints=(*linkage.joints, *(x for p in parts for x in p.joints)),
        frames=(*linkage.frames, *(x for p in parts for x in p.frames)),
        loops=(*linkage.loops, *(x for p in parts for x in p.loops), *holding),
    )


def arms_with_linkage_start() -> np.ndarray:
    """Return q (26,): base bar, hinges of the four-bar, then the joints of each arm."""
    return np.concatenate((_four_bar_start(), _arm_start(), _arm_start()))


def _arm() -> Model:
    """Upright; upper arm along z and forearm along x at neutral, where the lever points back along −x."""
    b = Builder("arm")
    b.body("column", 4.0, (0.0, 0.0, 0.15), box(4.0, 0.1, 0.1, 0.3))
    b.body("upper", 5.0, (0.0, 0.0, 0.5 * _UPPER), box(5.0, 0.08, 0.08, _UPPER))
    b.body("forearm", 4.0, (0.02, 0.0, 0.0), box(4.0, 0.2, 0.06, 0.06))
    b.body("roller", 2.0, (0.17, 0.0, 0.0), box(2.0, 0.35, 0.05, 0.05))
    b.body("wrist", 1.5, (0.04, 0.0, 0.0), box(1.5, 0.08, 0.05, 0.05))
    b.body("hand", 0.5, (0.05, 0.0, 0.0), box(0.5, 0.1, 0.05, 0.05))
    b.body("lever", 0.5, (-0.5 * _LEVER, 0.0, 0.0), box(0.5, _LEVER, 0.02, 0.03))
    b.body("rod", 0.4, (0.0, 0.0, 0.5 * _UPPER), cylinder(0.4, 0.01, _UPPER))
    b.revolute("turn", WORLD, "column", "z")
    b.revolute("shoulder", "column", "upper", "y", (0.0, 0.0, 0.3))
    b.revolute("elbow", "upper", "forearm", "y", (0.0, 0.0, _UPPER), **_PASSIVE)
    b.revolute("roll", "forearm", "roller", "x", (0.1, 0.0, 0.0))
    b.revolute("pitch", "roller", "wrist", "y", (0.35, 0.0, 0.0))
    b.revolute("spin", "wrist", "hand", "x", (0.08, 0.0, 0.0))
    b.revolute("lever_motor", "column", "lever", "y", (0.0, 0.0, 0.3))
    b.revolute("rod_hinge", "lever", "rod", "y", (-_LEVER, 0.0, 0.0), **_PASSIVE)
    b.frame("rod_tip", "rod", (0.0, 0.0, _UPPER)).frame("heel", "forearm", (-_LEVER, 0.0, 0.0))
    b.frame("tool", "hand", (0.1, 0.0, 0.0))
    return b.loop("rod_tip", "heel", Revolute((0.0, 1.0, 0.0)), name="rod_pin").build()


def _arm_start() -> np.ndarray:
    """The lever is parallel to the forearm, the rod to the upper arm."""
    shoulder, elbow = _POSTURE[1:3]
    return np.array((*_POSTURE, shoulder + elbow, -elbow))


def _four_bar() -> Model:
    """Free, in the plane of x and z of its base bar, which points along x."""
    b = Builder("held")
    for name, length in zip(("base", "crank", "coupler", "rocker"), (_GROUND, _CRANK, _COUPLER, _ROCKER), strict=True):
        b.body(f"{name}_bar", 0.5, (0.5 * length, 0.0, 0.0), cylinder(0.5, 0.02, length, "x"))
    b.free("floating", WORLD, "base_bar")
    b.revolute("crank_hinge", "base_bar", "crank_bar", "-y", **_PASSIVE)
    b.revolute("coupler_hinge", "crank_bar", "coupler_bar", "-y", (_CRANK, 0.0, 0.0), **_PASSIVE)
    b.revolute("rocker_hinge", "base_bar", "rocker_bar", "-y", (_GROUND, 0.0, 0.0), **_PASSIVE)
    b.frame("coupler_tip", "coupler_bar", (_COUPLER, 0.0, 0.0)).frame("rocker_tip", "rocker_bar", (_ROCKER, 0.0, 0.0))
    return b.loop("coupler_tip", "rocker_tip", Revolute((0.0, -1.0, 0.0)), name="closing").build()


def _four_bar_start() -> np.ndarray:
    """The four-bar with its crank upright, its base level."""
    elbow = (0.0, _CRANK)
    tip = crossing(elbow, _COUPLER, (_GROUND, 0.0), _ROCKER, 1, "arms_with_linkage")
    angles = (0.5 * pi, direction(elbow, tip) - 0.5 * pi, direction((_GROUND, 0.0), tip))
    return np.array((1.0, 0.0, 0.0, 0.0, -0.5 * _GROUND, 0.0, _HEIGHT, *angles))


def _base(i: int) -> Placement:
    """Of arm i, upright: its tool is then at half the length of what it holds; arm 1 stands at −x, arm 2 at +x."""
    linkage, body = _four_bar(), _GRASPED[i - 1]
    middle = pose(linkage, _four_bar_start(), body) @ Placement(position=linkage.body(body).inertia.center)
    turn = Placement(turned_about_z(0.0 if i == 1 else pi))
    reach = (turn @ pose(_arm(), _arm_start(), "tool")).position
    x, y, z = (m - r for m, r in zip(middle.position, reach, strict=True))
    return Placement(turn.rotation, (x, y, z))


def _grasp(i: int) -> Placement:
    """The tool of arm i, seen from the body that it holds."""
    tool = _base(i) @ pose(_arm(), _arm_start(), "tool")
    return pose(_four_bar(), _four_bar_start(), _GRASPED[i - 1]).inverse() @ tool
