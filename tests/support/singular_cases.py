"""Mechanisms at and near singular configurations: for test_loops.py and for the table of docs/singular.md.

Each case is a function of the distance δ [rad] from the singular configuration; at δ = 0 it is exactly there.
Coordinates are computed so that the loops are closed to rounding at any δ.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import pi

import mpmath
import numpy as np
from dense_closures import ClosedReference
from dense_driven import exact
from random_loops import Case

import spanloop as sl
from spanloop import zoo
from spanloop.errors import StateError

DISTANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 0.0)
_NEAR, _FAR = (mpmath.mpf(0.6), mpmath.mpf(0.7)), (mpmath.mpf(1.1), mpmath.mpf(1.2))  # of the five-bar, as doubles
_BASE = mpmath.mpf(1.2)
_WRIST = (0.1, 0.6, -0.8, 0.2, 0.0, 0.4)  # of an arm whose roll and spin turn about one line


@dataclass(frozen=True)
class Singular:
    """A family of states; `keeps_rank`: are the accelerations unique at the singular configuration too?"""

    name: str
    at: object  # δ → Case
    keeps_rank: bool
    what: str


def folded_four_bar(distance: float) -> Case:
    """A parallelogram whose crank is turned by δ from the line of the ground; it moves as a parallelogram."""
    model = zoo.four_bar(ground=2.0, crank=1.0, coupler=2.0, rocker=1.0)
    q = np.array((distance, -distance, distance))
    return Case(model, q, np.array((0.7, -0.7, 0.7)), np.array((0.3, -0.5, 0.2)))


def _five_bar(drive1, far1, drive2, far2, speed) -> Case:
    """The five-bar with directions of its four links given; speeds of the drives, the other two follow."""
    model = zoo.five_bar()
    q = np.array(tuple(map(float, (drive1, far1 - drive1, drive2, far2 - drive2))))
    v = ClosedReference(model, q).consistent(np.array(speed))
    return Case(model, q, v, np.array((0.3, -0.5, 0.2, 0.4)))


def five_bar_in_line(distance: float) -> Case:
    """All links of the five-bar near the x axis, where 0.6 + 1.1 = 1.2 − 0.7 + 1.2; drives at δ and π + δ. It rests."""
    if distance == 0.0:
        return _five_bar(0.0, 0.0, pi, 0.0, np.zeros(4))
    d = mpmath.mpf(distance)
    return _five_bar(*_directions(d, mpmath.pi + d), np.zeros(4))


def stretched_five_bar(distance: float) -> Case:
    """The two far links nearly in line (the angle between them is δ): with locked drives the tip would be loose."""
    d, drive1 = mpmath.mpf(distance), mpmath.mpf("2.6")
    between = mpmath.sqrt(_FAR[0] ** 2 + _FAR[1] ** 2 + 2 * _FAR[0] * _FAR[1] * mpmath.cos(d))  # the elbows
    elbow = _NEAR[0] * mpmath.expjpi(drive1 / mpmath.pi)
    to_foot = _BASE - elbow
    cosine = (_NEAR[1] ** 2 + abs(to_foot) ** 2 - between**2) / (2 * _NEAR[1] * abs(to_foot))
    drive2 = mpmath.arg(-to_foot) - mpmath.acos(cosine)
    if distance == 0.0:
        other = _BASE + _NEAR[1] * mpmath.expjpi(drive2 / mpmath.pi)
        direction = mpmath.arg(other - elbow)
        return _five_bar(drive1, direction, drive2, direction + mpmath.pi, (0.5, 0.1, -0.4, 0.2))
    return _five_bar(*_directions(drive1, drive2), (0.5, 0.1, -0.4, 0.2))


def _directions(drive1, drive2) -> tuple:
    """Directions of the four links, leg by leg, at given directions of the near ones; in 50 digits."""
    first = _NEAR[0] * mpmath.expjpi(drive1 / mpmath.pi)
    second = _BASE + _NEAR[1] * mpmath.expjpi(drive2 / mpmath.pi)
    between = abs(second - first)
    along = (_FAR[0] ** 2 - _FAR[1] ** 2 + between**2) / (2 * between)
    across = mpmath.sqrt(_FAR[0] ** 2 - along**2)
    tip = first + (along + across * mpmath.j) * (second - first) / between
    return drive1, mpmath.arg(tip - first), drive2, mpmath.arg(tip - second)


def both_wrists(distance: float) -> Case:
    """Two arms with an object, the wrists of both bent by δ from straight."""
    posture = _bent(distance)
    model, q = zoo.arms_with_object(2, posture=posture), zoo.arms_with_object_start(2, posture=posture)
    return _moved(model, q)


def one_wrist(distance: float) -> Case:
    """Two arms with an object, the wrist of the first bent by δ from straight, the second in a good posture."""
    posture, good = _bent(distance), (0.2, 0.5, -0.9, 0.3, 0.7, -0.2)
    model, other = zoo.arms_with_object(2, posture=posture), zoo.arms_with_object(2, posture=good)
    joints = tuple(j if j.name in _FIRST else k for j, k in zip(model.joints, other.joints, strict=True))
    model = replace(model, joints=joints, loops=(model.loops[0], other.loops[1]))
    q = zoo.arms_with_object_start(2, posture=posture)
    q[model.q_slice("arm2_turn").start :] = good
    return _moved(model, q)


def taut_arms(distance: float) -> Case:
    """Four arms that hold an object at points, elbows stretched and wrists in line but for δ; they move."""
    posture = (0.2, 0.5, -pi / 2 + distance, 0.3, distance, -0.2)
    model = zoo.arms_with_object(4, grasp="spherical", posture=posture)
    q = zoo.arms_with_object_start(4, grasp="spherical", posture=posture)
    v = ClosedReference(model, q).consistent(0.3 * np.ones(model.nv))
    return Case(model, q, v, np.zeros(model.nv))


_FIRST = ("floating", *(f"arm1_{name}" for name in ("turn", "shoulder", "elbow", "roll", "pitch", "spin")))


def _bent(distance: float) -> tuple[float, ...]:
    return (*_WRIST[:4], distance, _WRIST[5])


def _moved(model, q) -> Case:
    rng = np.random.default_rng(5)
    v = ClosedReference(model, q).consistent(0.3 * rng.normal(size=model.nv))
    return Case(model, q, v, rng.normal(size=model.nv))


CASES = (
    Singular("folded four-bar", folded_four_bar, False, "all links in line; the closure loses one of two rows"),
    Singular("five-bar in line", five_bar_in_line, False, "all links in line; the closure loses one of two rows"),
    Singular("stretched five-bar", stretched_five_bar, True, "far links in line; no row is lost"),
    Singular("one wrist", one_wrist, True, "one arm's own Jacobian loses a rank; no row is lost"),
    Singular("taut arms", taut_arms, False, "arms on an object, each singular by itself; together they lose a row"),
    Singular("both wrists", both_wrists, True, "both arms' own Jacobians lose a rank; no row is lost"),
)


def outcome(case: Case, method: str = "elimination") -> tuple[str, float]:
    """What a call gives: "answer" with its error against 50 digits, or "refused"."""
    try:
        a = sl.compile(case.model, "forward_dynamics", method=method)(case.q, case.v, case.tau)
    except StateError:
        return "refused", np.nan
    expected = exact(case.model, case.q, case.v, case.tau)
    return "answer", float(np.abs(a - expected).max() / np.abs(expected).max())


def worst_allowed(case: Singular, distance: float) -> float:
    """The largest error of an answer.

    Where rank is lost the rows' admittance has a pivot of about δ², of which rounding leaves eps/δ² at least; ten times
    that, because the scale is not exactly 1. Where no rank is lost, a pivot that is held at 1e-8 is refined once:
    some 1e-16 is left of what was of order 1.
    """
    if case.keeps_rank:
        return 1e-12
    return 10.0 * np.finfo(float).eps / distance**2 if distance else 0.0
