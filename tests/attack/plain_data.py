"""The plain numbers of a model in extended precision, for a reference that shares no code with spanloop.

Rotations and axes are made orthonormal here, as the numbers of a model are so only to their last digit. `rounded` moves
every number by one rounding (2^-53 of itself) up or down: what that does to an answer is how well its inputs know it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

REAL = np.longdouble
ROUNDING = REAL(2.0) ** -53


def real(x) -> np.ndarray:
    """Numbers in extended precision."""
    return np.asarray(x, dtype=REAL)


@dataclass(frozen=True)
class Link:
    """A body and the joint that carries it. parent: number of the parent body, -1 for the world."""

    kind: str
    parent: int
    turn: np.ndarray  # (3, 3) placement of the joint in the parent body
    place: np.ndarray  # (3,)
    axis: np.ndarray  # (3,), zeros for kinds without
    second_axis: np.ndarray
    pitch: np.ndarray  # scalar
    motion: np.ndarray  # (nv, 6), of a general joint
    q: slice
    v: slice
    armature: np.ndarray
    damping: np.ndarray
    stiffness: np.ndarray
    rest: np.ndarray
    mass: np.ndarray
    center: np.ndarray
    moments: np.ndarray  # (6,) xx xy xz yy yz zz
    driven: bool = False


@dataclass(frozen=True)
class Tie:
    """A joint that closes a loop: its parent frame in body a, its child frame in body b."""

    name: str
    kind: str
    a: int
    b: int
    turn_a: np.ndarray
    place_a: np.ndarray
    turn_b: np.ndarray
    place_b: np.ndarray
    axis: np.ndarray
    second_axis: np.ndarray
    pitch: np.ndarray
    length: np.ndarray
    motion: np.ndarray  # (n, 6) and
    constraint: np.ndarray  # (6 - n, 6), of a general joint
    driven: bool = False


@dataclass(frozen=True)
class Gear:
    """rate(follows) = ratio · rate(source), by numbers of DoF; ratio 0 for a joint that is held."""

    name: str
    follows: int
    source: int
    q_follows: int
    q_source: int
    ratio: np.ndarray
    offset: np.ndarray


@dataclass(frozen=True)
class Data:
    """A mechanism as numbers."""

    links: tuple[Link, ...]
    gravity: np.ndarray
    ties: tuple[Tie, ...] = ()
    gears: tuple[Gear, ...] = ()
    bodies: dict[str, int] = field(default_factory=dict)
    nq: int = 0
    nv: int = 0

    def rounded(self, rng: np.random.Generator) -> Data:
        """The same mechanism with every number moved by one rounding."""
        return replace(
            self,
            links=tuple(_rounded(x, rng) for x in self.links),
            gravity=shaken(self.gravity, rng),
            ties=tuple(_rounded(x, rng) for x in self.ties),
            gears=tuple(_rounded(x, rng) for x in self.gears),
        )


def shaken(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Numbers moved by one rounding up or down; zeros stay."""
    signs = rng.integers(0, 2, np.shape(x)) * 2 - 1
    return real(x) * (1 + ROUNDING * real(signs))


def _rounded(part, rng):
    numbers = {k: shaken(x, rng) for k, x in vars(part).items() if isinstance(x, np.ndarray)}
    return replace(part, **numbers)


def data(model) -> Data:
    """The numbers of a spanloop Model, motors included."""
    bodies = {"world": -1}
    links, iq, iv = [], 0, 0
    rotor, drag = _motors(model)
    for number, (joint, body) in enumerate(zip(model.joints, model.bodies, strict=True)):
        nq, nv = joint.kind.nq, joint.kind.nv
        links.append(
            Link(
                joint.kind.name,
                bodies[joint.parent],
                real(joint.placement.rotation),
                real(joint.placement.position),
                **_geometry(joint.kind),
                q=slice(iq, iq + nq),
                v=slice(iv, iv + nv),
                armature=real(joint.armature) + real(rotor.get(joint.name, [0.0] * nv)),
                damping=real(joint.damping) + real(drag.get(joint.name, [0.0] * nv)),
                stiffness=real(joint.stiffness),
                rest=real(joint.rest),
                mass=real(body.inertia.mass),
                center=real(body.inertia.center),
                moments=real(body.inertia.moments),
                driven=joint.driven,
            )
        )
        bodies[joint.child] = number
        iq, iv = iq + nq, iv + nv
    named = {joint.name: link for joint, link in zip(model.joints, links, strict=True)}
    ties = tuple(_tie(loop, bodies) for loop in model.loops)
    gears = tuple(_gear(named[c.joint], named[c.source or c.joint], c) for c in model.couplings)
    return Data(tuple(links), real(model.gravity), ties, gears, bodies, iq, iv)


def _geometry(kind) -> dict[str, np.ndarray]:
    return {
        "axis": real(getattr(kind, "axis", (0.0, 0.0, 0.0))),
        "second_axis": real(getattr(kind, "second_axis", (0.0, 0.0, 0.0))),
        "pitch": real(getattr(kind, "pitch", 0.0)),
        "motion": real(getattr(kind, "motion", np.zeros((0, 6)))),
    }


def _tie(loop, bodies: dict[str, int]) -> Tie:
    kind = loop.kind
    return Tie(
        loop.name,
        kind.name,
        bodies[loop.a],
        bodies[loop.b],
        real(loop.placement_a.rotation),
        real(loop.placement_a.position),
        real(loop.placement_b.rotation),
        real(loop.placement_b.position),
        **_geometry(kind),
        length=real(getattr(kind, "length", 0.0)),
        constraint=real(getattr(kind, "constraint", np.zeros((0, 6)))),
        driven=loop.driven,
    )


def _gear(follows: Link, source: Link, c) -> Gear:
    numbers = (follows.v.start, source.v.start, follows.q.start, source.q.start)
    return Gear(c.name, *numbers, real(c.ratio if c.source else 0.0), real(c.offset))


def _motors(model) -> tuple[dict, dict]:
    """Rotor inertia and damping on the joint's side of each gear, by joint."""
    rotor: dict[str, np.ndarray] = {}
    drag: dict[str, np.ndarray] = {}
    for actuator in model.actuators:
        settings = dict(actuator.settings)
        gear, dof = real(settings.get("gear", 1.0)), settings.get("dof", 0)
        for setting, into in (("rotor_inertia", rotor), ("damping", drag)):
            into.setdefault(actuator.joint, real(np.zeros(model.joint(actuator.joint).kind.nv)))
            into[actuator.joint][dof] += gear**2 * real(settings.get(setting, 0.0))
    return rotor, drag
