"""Model: a mechanism as its user described it. Frozen; an edit gives a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.joints import JointKind
from spanloop.model.parts import WORLD, Actuator, Body, Coupling, Frame, Joint, Loop, Sensor
from spanloop.types import Floats3

if TYPE_CHECKING:
    from spanloop.model.files.loss_report import Written
    from spanloop.model.parameters import Parameters


@dataclass(frozen=True)
class Model:
    """Bodies, the joints of the spanning tree (depth first), frames, loops and couplings.

    Body 0 is the world; body i is the child of joints[i − 1]. Make one with sl.Builder, sl.load, sl.from_dh or sl.zoo;
    the constructor itself sorts the joints depth first and checks that they form a tree.
    """

    name: str
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    frames: tuple[Frame, ...] = ()
    loops: tuple[Loop, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    actuators: tuple[Actuator, ...] = ()
    sensors: tuple[Sensor, ...] = ()
    gravity: Floats3 = (0.0, 0.0, -9.81)
    notes: tuple[str, ...] = ()

    def __post_init__(self):
        from spanloop.model.checks import checked_tree

        bodies, joints = checked_tree(self)
        object.__setattr__(self, "bodies", bodies)
        object.__setattr__(self, "joints", joints)

    # ---- names and numbers

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return sum(j.kind.nq for j in self.joints)

    @property
    def nv(self) -> int:
        """Number of freedoms of the spanning tree."""
        return sum(j.kind.nv for j in self.joints)

    @property
    def n_bodies(self) -> int:
        """Number of bodies without the world."""
        return len(self.bodies)

    @property
    def mass(self) -> float:
        """Total mass [kg]."""
        return sum(b.inertia.mass for b in self.bodies)

    @cached_property
    def body_number(self) -> dict[str, int]:
        """Name to number; the world is 0."""
        return {WORLD: 0, **{j.child: i + 1 for i, j in enumerate(self.joints)}}

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """Parent's number of body 1, 2, ...; parents[i − 1] < i."""
        return tuple(self.body_number[j.parent] for j in self.joints)

    @cached_property
    def _slices(self) -> dict[str, tuple[slice, slice]]:
        out, iq, iv = {}, 0, 0
        for j in self.joints:
            out[j.name] = (slice(iq, iq + j.kind.nq), slice(iv, iv + j.kind.nv))
            iq, iv = iq + j.kind.nq, iv + j.kind.nv
        return out

    def q_slice(self, joint: str) -> slice:
        """Where the joint's coordinates stand in q."""
        self.joint(joint)
        return self._slices[joint][0]

    def v_slice(self, joint: str) -> slice:
        """Where the joint's freedoms stand in v, a and tau."""
        self.joint(joint)
        return self._slices[joint][1]

    @cached_property
    def _joints(self) -> dict[str, Joint]:
        return {j.name: j for j in self.joints}

    @cached_property
    def _bodies(self) -> dict[str, Body]:
        return {b.name: b for b in self.bodies}

    def joint(self, name: str) -> Joint:
        return _named(self._joints, name, "joint", self.name)

    def body(self, name: str) -> Body:
        return _named(self._bodies, name, "body", self.name)

    def frame(self, name: str) -> Frame:
        """A frame by name; every body (and the world) is also a frame."""
        for f in self.frames:
            if f.name == name:
                return f
        if name in self.body_number:
            return Frame(name, name)
        known = [f.name for f in self.frames] + list(self.body_number)
        raise InputError(f"model {self.name!r} has no frame or body {name!r}; {nearest(name, known)}")

    @property
    def actuated(self) -> tuple[str, ...]:
        """Names of the joints that can carry a torque of their own."""
        return tuple(j.name for j in self.joints if j.kind.nv and j.actuated)

    @property
    def driven(self) -> tuple[str, ...]:
        """Names of the joints whose acceleration is given."""
        return tuple(j.name for j in self.joints if j.driven)

    # ---- states

    def neutral(self) -> np.ndarray:
        """Coordinates (nq,) at which every joint's frames coincide."""
        return np.array([x for j in self.joints for x in j.kind.neutral()], dtype=float)

    def random_state(self, seed: int | np.random.Generator = 0) -> tuple[np.ndarray, np.ndarray]:
        """Random q (nq,), v (nv,): angles and displacements of order 1, quaternions uniform."""
        rng = np.random.default_rng(seed)
        q = []
        for j in self.joints:
            x = rng.uniform(-1.0, 1.0, j.kind.nq) * (np.pi if j.kind.nq == 1 and j.kind.units == ("rad",) else 1.0)
            if j.kind.unit_parts(tuple(x)):
                e = rng.normal(size=4)
                x[:4] = e / np.linalg.norm(e)
            q.append(x)
        return np.concatenate(q) if q else np.zeros(0), rng.normal(size=self.nv)

    def parameters(self) -> Parameters:
        """The numbers that kernels with parameters="live" take as input: names and values in their order."""
        from spanloop.model.parameters import Parameters

        return Parameters.of(self)

    # ---- edits (each a function that model/edits.py names)

    def lock(self, *joints: str, at: Mapping[str, float | Sequence[float]] | None = None) -> Model:
        """The model with these joints fixed, at their neutral position or at the coordinates given by name."""
        from spanloop.model import edits

        return edits.lock(self, joints, dict(at or {}))

    def without_losses(self) -> Model:
        """The model without damping, friction, armature and springs, as libraries see it that ignore them."""
        from spanloop.model import edits

        return edits.without_losses(self)

    def close(
        self,
        a: str,
        b: str,
        joint: str | JointKind = "fixed",
        *,
        name: str | None = None,
        switchable: bool = False,
        driven: bool = False,
    ) -> Model:
        """The model with a joint that closes a loop between two frames or bodies.

        switchable: closed only while it is named in active_loops=; driven: accelerations along its freedoms are given.
        """
        from spanloop.model import edits

        return edits.close(self, a, b, joint, name, switchable, driven)

    def open(self, *loops: str) -> Model:
        """The model without these loops: the opposite of `close`; for kinematics with some loops released, say."""
        from spanloop.model import edits

        return edits.opened(self, loops)

    def drive(self, *names: str) -> Model:
        """The model with these joints or loops driven: their acceleration is given."""
        from spanloop.model import edits

        return edits.drive(self, names)

    def actuate(self, *joints: str, only: bool = False) -> Model:
        """The model with these joints actuated: they can carry a torque of their own; only: and no others."""
        from spanloop.model import edits

        return edits.actuate(self, joints, only)

    def passive(self, *joints: str) -> Model:
        """The model with these joints passive: no torque of their own; their actuators go, with a note."""
        from spanloop.model import edits

        return edits.passive(self, joints)

    def fuse(self) -> Model:
        """The model with bodies on fixed joints merged into their parents; their frames stay, by name."""
        from spanloop.model import edits

        return edits.fuse(self)

    def with_frame(self, name: str, body: str, position=(0.0, 0.0, 0.0), rotation=None) -> Model:
        """The model with one more frame."""
        from spanloop.model import edits

        return edits.with_frame(self, name, body, position, rotation)

    def with_gravity(self, gravity: Sequence[float]) -> Model:
        """The model in another field of gravity [m/s²], world axes."""
        from spanloop.model import edits

        return edits.with_gravity(self, gravity)

    def with_inertia(self, body: str, mass=None, center=None, inertia=None) -> Model:
        """The model with another mass [kg], centre of mass [m] or inertia about it [kg m²] of a body."""
        from spanloop.model import edits

        return edits.with_inertia(self, body, mass, center, inertia)

    def with_actuator(self, name: str, joint: str, **settings) -> Model:
        """The model with one more actuator on a joint; settings are numbers, texts, truth values or lists of these."""
        from spanloop.model import edits

        return edits.with_actuator(self, name, joint, settings)

    def with_sensor(self, name: str, kind: str, at: str, **settings) -> Model:
        """The model with one more sensor at a joint, body or frame."""
        from spanloop.model import edits

        return edits.with_sensor(self, name, kind, at, settings)

    def without_actuators(self, *names: str) -> Model:
        """The model without these actuators."""
        from spanloop.model import edits

        return edits.without_actuators(self, names)

    def without_sensors(self, *names: str) -> Model:
        """The model without these sensors."""
        from spanloop.model import edits

        return edits.without_sensors(self, names)

    def weld(self, a: str, b: str, *, name: str | None = None) -> Model:
        """The model with two frames or bodies held together. To fix one joint use `lock`."""
        from spanloop.model import edits

        return edits.weld(self, a, b, name)

    def attach(
        self,
        other: Model,
        at: str = WORLD,
        joint: str | JointKind = "fixed",
        *,
        prefix: str = "",
        name: str | None = None,
        frame: str | None = None,
    ) -> Model:
        """The model with another one attached to a frame or body by a joint of any kind."""
        from spanloop.model import edits

        return edits.attach(self, other, at, joint, prefix=prefix, name=name, frame=frame)

    def remove(self, *names: str, sort: str | None = None) -> Model:
        """The model without these bodies (with all that they carry), joints (what they carried floats), loops, frames
        or couplings."""
        from spanloop.model import edits

        return edits.remove(self, names, sort)

    def rename(self, names: Mapping[str, str], *, name: str | None = None) -> Model:
        """The model with parts called otherwise, {old: new}; name: of the model itself."""
        from spanloop.model import edits

        return edits.rename(self, names, name)

    def mirror(self, normal: str | Sequence[float] = "y", *, swap: Sequence[str] = ()) -> Model:
        """The model mirrored in a plane through the world's origin; swap: two words that change places in names."""
        from spanloop.model import edits

        return edits.mirror(self, normal, swap)

    def scale(self, *, length: float = 1.0, mass: float = 1.0, time: float | None = None) -> Model:
        """The model with lengths, masses and times multiplied; time is √length unless given, so that gravity stays."""
        from spanloop.model import edits

        return edits.scale(self, length, mass, time)

    def zeroed(self, q) -> Model:
        """The model whose neutral state is the state q (nq,) of this one."""
        from spanloop.model import edits

        return edits.zeroed(self, q)

    def save(self, path, *, force: bool = False) -> Written:
        """Write the model to a .toml, .urdf, .xml (MJCF), .sdf or .csv file, completely and atomically.

        Only .toml holds everything. What another format cannot hold is said, and nothing written unless `force`.
        """
        from spanloop.model.files import save

        return save(self, path, force)

    # ---- text

    def __str__(self) -> str:
        from spanloop.model.report import report

        return report(self)


def _named(parts: dict, name: str, what: str, owner: str):
    if name not in parts:
        raise InputError(f"model {owner!r} has no {what} {name!r}; {nearest(name, parts)}")
    return parts[name]
