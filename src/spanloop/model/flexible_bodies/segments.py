"""A beam as rigid segments with springs between them: the cheap way, which needs no modes.

n places along the beam, each in the middle of a length l = L/n, hold the bending, torsion and extension of that length:
springs EI/l, GJ/l, EA/l (for a tapered beam 1/∫ dx/EI over the length). Between them are rigid segments of length l, at
both ends halves of one, so that mass and stiffness are symmetric; sections have their rotary inertia. Frequencies
converge with 1/n².
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from spanloop.errors import InputError
from spanloop.flexible.beam import Beam, properties
from spanloop.flexible.particles import rigid_moments
from spanloop.flexible.rod import Rod
from spanloop.joints import Fixed, JointKind, Prismatic, Revolute, Universal
from spanloop.model.flexible_bodies.flexible_parts import ROOT
from spanloop.model.parts import Body, Inertia, Joint, Placement
from spanloop.types import Floats3

MOST = 1000
_STIFFNESS = {"y": "EIz", "z": "EIy", "torsion": "GJ", "extension": "EA"}
# bending in y turns about z, in z about −y
_KINDS: dict[str, JointKind] = {
    "y": Revolute((0.0, 0.0, 1.0)),
    "z": Revolute((0.0, -1.0, 0.0)),
    "torsion": Revolute((1.0, 0.0, 0.0)),
    "extension": Prismatic((1.0, 0.0, 0.0)),
}


def segment_parts(name: str, beam: Beam, count: int) -> tuple[list[Body], list[Joint]]:
    """Bodies and joints of a beam in `count` segments; nothing carries its root yet."""
    owner = f"segments of {name!r}"
    if isinstance(count, bool) or not isinstance(count, Integral) or not 1 <= count <= MOST:
        raise InputError(f"{owner}: there are {count!r}; expected a whole number from 1 to {MOST}")
    if beam.theory != "euler-bernoulli":
        raise InputError(f"{owner}: the beam is a {beam.theory} one; hinges do not shear. Use theory='euler-bernoulli'")
    if len(beam.damping) > 1:
        raise InputError(f"{owner}: damping has {len(beam.damping)} ratios; expected one, segments have no modes")
    length = beam.length / count
    edges = [0.0, *(length * (k + 0.5) for k in range(count)), beam.length]
    segments = [f"{name}.{ROOT}", *(f"{name}.{k + 1}" for k in range(count))]
    bodies, joints = [Body(segments[0], _inertia(beam, edges[0], edges[1]))], []
    for k in range(count):
        at = Placement(position=(edges[k + 1] - edges[k], 0.0, 0.0))
        made = _hinges(beam, segments[k], segments[k + 1], at, (k * length, (k + 1) * length))
        bodies += [
            *(Body(j.child) for j in made[:-1]),
            Body(segments[k + 1], _inertia(beam, edges[k + 1], edges[k + 2])),
        ]
        joints += made
    nodes = [_node(name, node, x, edges, segments) for node, x in beam.nodes]
    return bodies + [b for b, _ in nodes], joints + [j for _, j in nodes]


def _hinges(beam: Beam, below: str, segment: str, at: Placement, part: tuple[float, float]) -> list[Joint]:
    """The joints in series between two segments, with the springs of a part of the beam, from a position to another."""
    joints: list[Joint] = []
    steps = _steps(beam)
    for kind, directions in steps:
        child = segment if len(joints) == len(steps) - 1 else f"{segment}.{directions[0]}"
        stiffness = tuple(_spring(beam, d, *part) for d in directions)
        damping = tuple(_delay(beam, d) * s for d, s in zip(directions, stiffness, strict=True))
        springs: dict[str, Any] = {"stiffness": stiffness, "damping": damping, "actuated": False}
        joints.append(Joint(f"{segment}.{'_'.join(directions)}", kind, below, child, at, **springs))
        below, at = child, Placement()
    return joints


def _steps(beam: Beam) -> list[tuple[JointKind, tuple[str, ...]]]:
    """The joints at one place, in series: only directions in which the beam deforms."""
    names = [d for d, _ in beam.modes]
    steps: list[tuple[JointKind, tuple[str, ...]]] = []
    if "y" in names and "z" in names:
        steps.append((Universal((0.0, 0.0, 1.0), (0.0, -1.0, 0.0)), ("y", "z")))
        names = names[2:]
    return steps + [(_KINDS[d], (d,)) for d in names]


def _node(name: str, node: str, x: float, edges: Sequence[float], bodies: list[str]) -> tuple[Body, Joint]:
    """A node as a body without mass, fixed to the segment on which it lies."""
    k = min(len(bodies) - 1, int(np.searchsorted(edges, x, side="left")) - 1)
    at = Placement(position=(x - edges[k], 0.0, 0.0))
    return Body(f"{name}.{node}"), Joint(f"{name}.{node}", Fixed(), bodies[k], f"{name}.{node}", at, actuated=False)


def _inertia(beam: Beam, start: float, end: float) -> Inertia:
    """Mass, centre and moments about it of the beam between two positions, seen from the first."""
    rod = Rod(np.linspace(start, end, 9), {})
    whole = replace(beam, theory="timoshenko")  # with rotary inertia of sections about y and z
    mass, first, second = rigid_moments(Rod(rod.edges, properties(whole, rod.points)))
    center = first / mass
    about = np.trace(second) * np.eye(3) - second - mass * (center @ center * np.eye(3) - np.outer(center, center))
    seen: Floats3 = (float(center[0]) - start, 0.0, 0.0)
    return Inertia(mass, seen, (float(about[0, 0]), 0.0, 0.0, float(about[1, 1]), 0.0, float(about[2, 2])))


def _spring(beam: Beam, direction: str, start: float, end: float) -> float:
    """The stiffness between two positions: 1/∫ dx/EI."""
    rod = Rod(np.linspace(start, end, 9), {})
    return float(1.0 / (rod.weights @ (1.0 / properties(beam, rod.points)[_STIFFNESS[direction]])))


def _delay(beam: Beam, direction: str) -> float:
    """Damping over stiffness [s] that gives the first mode of a clamped beam the beam's ratio: 2ζ/ω."""
    if not any(beam.damping):
        return 0.0
    clamped = replace(beam, basis="cantilever", modes=((direction, 1),), pieces=1)
    return 2.0 * beam.damping[0] / clamped.bodies[0].frequencies[0]
