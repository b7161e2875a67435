"""The mechanism as numbers: links that move, each on one joint about or along z of its own frame.

Between a user's body frame and the frame a kernel works in stand three rewritings, none of which can show in a result:

* bodies on fixed joints become part of the link that carries them;
* a link's frame is turned so that its joint's axis is z, and the constant rotation in front of the joint becomes
  Rz Rx Rz, the last Rz taken into the joint's own angle: all rotations are planar;
* on demand, the part of a link's inertia that its joint cannot feel is moved to the parent (regrouping: ten inertial
  numbers become seven behind a hinge, four behind a slider; [Gautier & Khalil 1990]).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from spanloop.flexible.modes import Modal
from spanloop.joints import JointKind
from spanloop.math.flexible import DeformableInertia
from spanloop.math.inertia import RigidInertia
from spanloop.math.rotation import Rotation, from_matrix, split
from spanloop.math.spatial import Motion, Transform
from spanloop.math.vector3 import IDENTITY3, add, negate, product, symmetric, times, transpose
from spanloop.model import Model
from spanloop.model.motors import reflected
from spanloop.model.parameters import Parameters, unpacked
from spanloop.model.parts import WORLD, Joint
from spanloop.topology.closures import Closure, Gear, closures, gears, loop_lengths
from spanloop.topology.tree_paths import path
from spanloop.types import Floats33, Scalar, Vector3

_BENDING = 0.03  # of a length or a radian: how far bodies bend where joints would move by it


@dataclass(frozen=True)
class Anchor:
    """A frame of the user fixed to a link (−1: the world), with this rotation and position in it."""

    link: int
    rotation: Floats33 = IDENTITY3
    position: Vector3 = (0.0, 0.0, 0.0)
    is_captured: bool = False  # rotation and position are inputs: they may be traced

    def at(self, rotation: Floats33, position: Vector3) -> Anchor:
        """A frame placed in this one."""
        return Anchor(self.link, product(self.rotation, rotation), add(self.position, times(self.rotation, position)))

    def transform(self) -> Transform:
        """The frame's pose in the link."""
        if self.is_captured:
            return Transform(Rotation.full(self.rotation), self.position)
        return Transform(from_matrix(self.rotation), self.position)


@dataclass(frozen=True)
class AnonymousLink:
    """A link without name and numbers: all that the steps of a sweep may use, so that links alike in it share code."""

    kind: JointKind
    placement: Transform  # of the joint in the parent link's frame
    inertia: RigidInertia | DeformableInertia
    armature: tuple[Scalar, ...]
    damping: tuple[Scalar, ...]
    stiffness: tuple[Scalar, ...]
    rest: tuple[float, ...]
    driven: bool

    def transform(self, q: Sequence[Scalar], modes: Sequence[Scalar] = ()) -> Transform:
        """Pose of the link's frame in its parent's; modes: modal coordinates of a parent that bends."""
        return self.placement @ self.kind.seat(q, modes)

    def free(self, columns: tuple[Motion, ...]) -> tuple[Motion, ...]:
        """The columns of the motion space along which the link accelerates by itself."""
        return () if self.driven else columns

    def given(self, columns: tuple[Motion, ...]) -> tuple[Motion, ...]:
        """The columns along which its acceleration is prescribed."""
        return columns if self.driven else ()

    def passive_torque(self, q: Sequence[Scalar], v: Sequence[Scalar]) -> tuple[Scalar, ...]:
        """Torque of the joint's own damper and spring."""
        damper = tuple(-(d * x) for d, x in zip(self.damping, v, strict=True))
        if self._unsprung:
            return damper
        spring, _ = self.kind.spring(q, self.rest, self.stiffness)
        return tuple(d + s for d, s in zip(damper, spring, strict=True))

    def spring_energy(self, q: Sequence[Scalar]) -> Scalar:
        """Potential energy of the joint's own spring [J]."""
        return 0.0 if self._unsprung else self.kind.spring(q, self.rest, self.stiffness)[1]

    @property
    def _unsprung(self) -> bool:
        return all(isinstance(k, float) and k == 0.0 for k in self.stiffness)


@dataclass(frozen=True, kw_only=True)
class Link(AnonymousLink):
    """A body that moves and the joint that carries it."""

    name: str  # of the joint
    number: int
    parent: int  # number of the parent link; −1 is the world
    q: slice
    v: slice
    actuated: bool = True
    reach: float = math.inf  # how far its limits let the joint slide [m]

    @property
    def floats(self) -> bool:
        """Is the link on the world, by a joint that constrains nothing?"""
        return self.parent < 0 and not self.driven and not self.kind.constraint_space(self.kind.neutral())

    def anonymous(self) -> AnonymousLink:
        """The link without name and numbers."""
        return AnonymousLink(*(getattr(self, f.name) for f in fields(AnonymousLink)))


@dataclass(frozen=True)
class Mechanism:
    """Links, parents first, and where every frame of the user sits."""

    links: tuple[Link, ...]
    gravity: Vector3
    anchors: dict[str, Anchor]
    closures: tuple[Closure, ...] = ()
    gears: tuple[Gear, ...] = ()
    bodies: tuple[str, ...] = ()  # names of the user's bodies; `anchors` has where they are
    length: float = 1.0  # m, the characteristic length of its loops
    single: bool = False  # is it computed in single precision? Then smaller pivots are rounding
    coarse: bool = False  # is it for runs, whose steps have larger errors? Then smaller pivots of joints will do
    refines: bool = False  # are states refined at which pivots of closure rows have lost digits? Then these are refused

    @property
    def parents(self) -> list[int]:
        """Number of each link's parent; −1 is the world."""
        return [link.parent for link in self.links]

    @property
    def n_rows(self) -> int:
        """Rows of all closures and gears."""
        return sum(len(c.rows) for c in self.closures) + len(self.gears)

    @property
    def switched_rows(self) -> tuple[int, ...]:
        """Rows of the closures and gears that can be switched, in the order of the input `active`."""
        return tuple(r for rows in self.switches.values() for r in rows)

    @property
    def switches(self) -> dict[str, tuple[int, ...]]:
        """Rows by the name of what can be switched: closures, then gears, in the model's order (Model.switches)."""
        closures = {c.name: c.rows for c in self.closures if c.switchable}
        return closures | {g.name: (g.row,) for g in self.gears if g.switchable}

    @property
    def position_rows(self) -> tuple[int, ...]:
        """Rows that constrain positions; the others constrain velocities only, or are given."""
        rows = [
            r
            for c in self.closures
            for r, x in zip(c.rows, c.kind.closure_error(c.kind.closing_pose()), strict=True)
            if x is not None
        ]
        return tuple(rows) + tuple(g.row for g in self.gears)

    @property
    def velocity_rows(self) -> tuple[int, ...]:
        """Rows whose rate is zero in every motion: all but those that are given."""
        return tuple(r for r in range(self.n_rows) if r not in self.given_rows)

    @property
    def given_rows(self) -> tuple[int, ...]:
        """Rows of driven closures whose acceleration is given, in the order of the input `given`."""
        return tuple(r for c in self.closures for r in c.given)

    @functools.cached_property
    def row_lengths(self) -> list[float]:
        """By which the error of each row is divided before it is compared: a length for metres, 1 for radians."""
        rows = [c.length if c.row_kind(k) == "force" else 1.0 for c in self.closures for k in range(len(c.rows))]
        return rows + [self.dof_lengths[self.links[g.link].v.start] for g in self.gears]

    @functools.cached_property
    def dof_lengths(self) -> list[float]:
        """By which each entry of v is divided before it is compared: the length of its shortest loop, or 1."""
        parents = self.parents
        loops = [(c.length, set(path(parents, c.a.link)) ^ set(path(parents, c.b.link))) for c in self.closures]
        out = []
        for i, link in enumerate(self.links):
            if "m" in link.kind.units:
                own = min((length for length, links in loops if i in links), default=self.length)
                out += [own if unit == "m" else 1.0 for unit in link.kind.units]
            else:
                out += [1.0] * link.kind.nv
        return out

    @functools.cached_property
    def step_lengths(self) -> list[float]:
        """By which steps of v are compared where a search closes loops: joints move before bodies bend."""
        bends = [link.kind.bends for link in self.links for _ in range(link.kind.nv)]
        return [_BENDING * x if bent else x for x, bent in zip(self.dof_lengths, bends, strict=True)]

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return sum(link.kind.nq for link in self.links)

    @property
    def nv(self) -> int:
        """Number of degrees of freedom."""
        return sum(link.kind.nv for link in self.links)

    def with_armature(self, added: Sequence[Scalar]) -> Mechanism:
        """The mechanism with more inertia (nv) at its joints."""
        links = tuple(replace(k, armature=_plus(k.armature, tuple(added[k.v]))) for k in self.links)
        return replace(self, links=links)

    def with_captured(self, values: Sequence[Scalar], names: Sequence[str]) -> Mechanism:
        """The mechanism with captured frames b of loops and offsets of couplings (captured_frames.py)."""
        left, frames, offsets = list(values), {}, {}
        loops = {c.name for c in self.closures}
        for name in names:
            if name in loops:
                own, left = tuple(left[:12]), left[12:]
                frames[name] = (own[:3], own[3:6], own[6:9]), own[9:]
            else:
                offsets[name] = left.pop(0)
        closures = tuple(
            replace(c, b=Anchor(c.b.link, *frames[c.name], is_captured=True)) if c.name in frames else c
            for c in self.closures
        )
        gears = tuple(replace(g, offset=offsets[g.name]) if g.name in offsets else g for g in self.gears)
        return replace(self, closures=closures, gears=gears)

    def regrouped(self) -> Mechanism:
        """The mechanism with inertia moved to parents where no acceleration, torque or mass matrix depends on it."""
        inertias: list[Any] = [link.inertia for link in self.links]
        for i in reversed(range(len(self.links))):
            link = self.links[i]
            if link.kind.bends:
                continue
            hidden = link.kind.hidden(inertias[i])
            inertias[i] = _without(inertias[i], hidden)
            if link.parent >= 0 and not self.links[link.parent].kind.bends:
                at = link.transform(link.kind.neutral())
                inertias[link.parent] = _tidy(inertias[link.parent] + hidden.carried(at))
        links = tuple(replace(k, inertia=i) for k, i in zip(self.links, inertias, strict=True))
        return replace(self, links=links)


def mechanism(model: Model, parameters: Sequence[Scalar] | None = None, whole: bool = False) -> Mechanism:
    """The model as numbers.

    parameters: packed as model.parameters(), they take the place of the model's own; whole: fixed joints stay links.
    """
    live = parameters is not None
    if parameters is None:
        parameters = Parameters.of(model).values.tolist()
    gravity, parts = unpacked(model, parameters)
    rotors = reflected(model, "rotor_inertia") if model.actuators else {}
    motor_damping = reflected(model, "damping") if model.actuators else {}
    anchors = {WORLD: Anchor(-1)}
    links: list[Link] = []
    inertias: dict[int, RigidInertia] = {-1: RigidInertia()}
    iq = iv = 0
    for joint, part in zip(model.joints, parts, strict=True):
        here = anchors[joint.parent].at(joint.placement.rotation, part["position"])
        if joint.kind.nv or whole or joint.kind.rides:
            sides = joint.kind.sides()
            placement, kind = _placed(here.at(sides.before.matrix(), (0.0, 0.0, 0.0)), sides.kind)
            q, v = slice(iq, iq + kind.nq), slice(iv, iv + kind.nv)
            links.append(
                Link(
                    kind,
                    placement,
                    RigidInertia(),
                    _plus(part["armature"], rotors.get(joint.name)),
                    _plus(part["damping"], motor_damping.get(joint.name)),
                    part["stiffness"],
                    joint.rest,
                    joint.driven,
                    name=joint.name,
                    number=len(links),
                    parent=here.link,
                    q=q,
                    v=v,
                    actuated=joint.actuated,
                    reach=_reach(joint),
                )
            )
            iq, iv = q.stop, v.stop
            here = Anchor(len(links) - 1, transpose(sides.after.matrix()))
            inertias[here.link] = RigidInertia()
        anchors[joint.child] = here
        own = RigidInertia.at_center(part["mass"], part["center"], symmetric(*part["moments"]))
        inertias[here.link] = inertias[here.link] + own.carried(here.transform())
    for frame in model.frames:
        anchors[frame.name] = anchors[frame.body].at(frame.placement.rotation, frame.placement.position)
    done = tuple(replace(link, inertia=_own_inertia(link.kind, inertias[i])) for i, link in enumerate(links))
    parents = [link.parent for link in links]
    loops = closures(model, anchors, parents) if model.loops else ()
    n_rows = sum(len(c.rows) for c in loops)
    numbers = {link.name: i for i, link in enumerate(links)}
    couplings = gears(model, numbers, parents, n_rows) if model.couplings else ()
    found = Mechanism(done, gravity, anchors, loops, couplings, tuple(j.child for j in model.joints))
    if not (loops or couplings):
        return found
    lengths, length = _model_lengths(model) if live else loop_lengths(done, loops)
    measured = tuple(replace(c, length=x) for c, x in zip(loops, lengths, strict=True))
    return replace(found, closures=measured, length=length)


@functools.lru_cache(maxsize=64)
def _model_lengths(model: Model) -> tuple[list[float], float]:
    """The lengths of the model as it is given: with live parameters they are no inputs."""
    m = mechanism(model)
    return [c.length for c in m.closures], m.length


def _own_inertia(kind: JointKind, found: RigidInertia) -> RigidInertia | DeformableInertia:
    """The inertia of a link; on modes with their moments, in proportion to the mass of the body."""
    rigid = _tidy(found)
    if not isinstance(kind, Modal):
        return rigid
    exact = isinstance(rigid.mass, float) and rigid.mass == kind.mass
    return DeformableInertia(rigid, kind.particles, 1.0 if exact else rigid.mass * (1.0 / kind.mass))


def _placed(anchor: Anchor, kind: JointKind) -> tuple[Transform, JointKind]:
    """The constant transform in front of a joint, its last rotation about z taken into the joint where that pays."""
    first, second, third = split(anchor.rotation)
    right_angle = third.cosine in (0.0, 1.0, -1.0)
    led = None if right_angle else kind.led_by(math.atan2(third.sine, third.cosine))
    factors = (first, second, third) if led is None else (first, second)
    return Transform(Rotation(factors), anchor.position), led or kind


def _reach(joint: Joint) -> float:
    """How far a joint can slide within its limits [m]; infinite without them."""
    ways = [math.hypot(*s.linear) for s in joint.kind.motion_space(joint.kind.neutral())]
    none = (math.inf,) * len(ways)
    limits = zip(joint.lower or none, joint.upper or none, strict=True)
    return sum(way * max(abs(low), abs(high)) for way, (low, high) in zip(ways, limits, strict=True) if way)


def _plus(own: tuple[Scalar, ...], more: tuple[Scalar, ...] | None) -> tuple[Scalar, ...]:
    """A joint's own numbers, with those of its motors."""
    return own if more is None else tuple(x + y for x, y in zip(own, more, strict=True))


def _without(inertia: RigidInertia, hidden: RigidInertia) -> RigidInertia:
    """inertia − hidden, with exact zeros where they agree."""
    return inertia + RigidInertia(
        -hidden.mass,
        negate(hidden.first),
        tuple(negate(r) for r in hidden.second),  # type: ignore[arg-type]
    )


def _tidy(inertia: RigidInertia) -> RigidInertia:
    """The same inertia without the residues of rounding: entries below 1e-16 of the largest of their kind are zero."""

    def tidy(values, scale):
        return tuple(0.0 if isinstance(x, float) and abs(x) <= 1e-16 * scale else x for x in values)

    def largest(values):
        return max((abs(x) for x in values if isinstance(x, float)), default=0.0)

    second = largest([x for r in inertia.second for x in r])
    return RigidInertia(
        inertia.mass,
        tidy(inertia.first, largest(inertia.first)),
        tuple(tidy(r, second) for r in inertia.second),
    )
