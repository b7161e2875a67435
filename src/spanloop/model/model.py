"""Model: a mechanism as its user describes it. Frozen; an edit returns a new one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.model import edits
from spanloop.model.contacts.contact import Contact
from spanloop.model.parts import WORLD, Actuator, Body, Coupling, Frame, Joint, Loop, Sensor
from spanloop.types import Floats3

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike

    from spanloop.model.files.loss_report import Written
    from spanloop.model.parameters import Parameters

_Part = TypeVar("_Part")


@dataclass(frozen=True, repr=False)
class Model:
    """Bodies, the joints of the spanning tree (depth first), frames, loops and couplings.

    Body 0 is the world; body i is the child of joints[i − 1]. Make a model with sl.Builder, sl.load, sl.from_dh or
    sl.zoo; the constructor itself sorts the joints depth first and raises ModelError unless they form a tree.

    name: of the model
    bodies, joints, frames, loops, couplings, actuators, sensors: its parts (spanloop.model.parts)
    contacts: pairs of shapes that can touch (spanloop.model.contacts)
    gravity: (3,) [m/s²] in the world
    notes: sentences about what a reader or an edit changed

    >>> model = sl.zoo.puma()
    >>> model.nq, model.nv, model.joint("joint2").parent, model.v_slice("joint3")
    (6, 6, 'link1', slice(2, 3, None))
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
    contacts: tuple[Contact, ...] = ()

    def __post_init__(self) -> None:
        from spanloop.model.structure_check import checked_tree

        bodies, joints = checked_tree(self)
        object.__setattr__(self, "bodies", bodies)
        object.__setattr__(self, "joints", joints)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Computed once: calls look up what they keep of a model by it."""
        return hash(tuple(getattr(self, part.name) for part in fields(self)))

    def __getstate__(self) -> dict[str, object]:
        """Without the hash, which another process computes anew."""
        return {name: x for name, x in self.__dict__.items() if name != "_hash"}

    # ---- names and numbers

    @property
    def nq(self) -> int:
        """Number of coordinates, the length of q."""
        return sum(j.kind.nq for j in self.joints)

    @property
    def nv(self) -> int:
        """Number of degrees of freedom of the spanning tree, the length of v, a and tau."""
        return sum(j.kind.nv for j in self.joints)

    @property
    def n_bodies(self) -> int:
        """Number of bodies, without the world."""
        return len(self.bodies)

    @property
    def mass(self) -> float:
        """Total mass [kg]."""
        return sum(b.inertia.mass for b in self.bodies)

    @cached_property
    def body_number(self) -> dict[str, int]:
        """Number of each body by name; the world is 0."""
        return {WORLD: 0, **{j.child: i + 1 for i, j in enumerate(self.joints)}}

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """Number of the parent of body 1, 2, ...; parents[i − 1] < i."""
        return tuple(self.body_number[j.parent] for j in self.joints)

    @cached_property
    def switches(self) -> tuple[str, ...]:
        """Names of the switchable loops, then of the switchable couplings: what active_loops= can name."""
        loops = tuple(x.name for x in self.loops if x.switchable)
        return loops + tuple(c.name for c in self.couplings if c.switchable)

    def q_slice(self, joint: str) -> slice:
        """Return the slice of q that holds the joint's coordinates."""
        self.joint(joint)
        return self._slices[joint][0]

    def v_slice(self, joint: str) -> slice:
        """Return the slice of v, a and tau that holds the joint's DoF."""
        self.joint(joint)
        return self._slices[joint][1]

    def joint(self, name: str) -> Joint:
        """Return a joint by name. Raises InputError, with the nearest name, if there is none."""
        return _named(self._joints, name, "joint", self.name)

    def body(self, name: str) -> Body:
        """Return a body by name. Raises InputError, with the nearest name, if there is none."""
        return _named(self._bodies, name, "body", self.name)

    def frame(self, name: str) -> Frame:
        """Return a frame by name; every body, and the world, is also a frame. Raises InputError if there is none."""
        if isinstance(name, str):
            for f in self.frames:
                if f.name == name:
                    return f
            if name in self.body_number:
                return Frame(name, name)
        known = [f.name for f in self.frames] + list(self.body_number)
        raise InputError(f"model {self.name!r} has no frame or body {name!r}; {nearest(name, known)}")

    @property
    def actuated(self) -> tuple[str, ...]:
        """Names of the joints to which a motor can apply a torque."""
        return tuple(j.name for j in self.joints if j.kind.nv and j.actuated)

    @property
    def driven(self) -> tuple[str, ...]:
        """Names of the joints whose acceleration the caller prescribes."""
        return tuple(j.name for j in self.joints if j.driven)

    @cached_property
    def _joints(self) -> dict[str, Joint]:
        return {j.name: j for j in self.joints}

    @cached_property
    def _bodies(self) -> dict[str, Body]:
        return {b.name: b for b in self.bodies}

    @cached_property
    def _slices(self) -> dict[str, tuple[slice, slice]]:
        out, iq, iv = {}, 0, 0
        for j in self.joints:
            out[j.name] = (slice(iq, iq + j.kind.nq), slice(iv, iv + j.kind.nv))
            iq, iv = iq + j.kind.nq, iv + j.kind.nv
        return out

    # ---- states

    def neutral(self) -> np.ndarray:
        """Return the coordinates q (nq,) at which the two frames of every joint coincide."""
        return np.array([x for j in self.joints for x in j.kind.neutral()], dtype=float)

    def random_state(self, seed: int | np.random.Generator = 0) -> tuple[np.ndarray, np.ndarray]:
        """Return a random state q (nq,), v (nv,): angles and displacements of order 1, quaternions uniform.

        Modes of flexible bodies deform them by about 1 % of their length, or 0.01 rad.

        Loops are ignored; robot.assemble and robot.project close them.

        >>> q, v = sl.zoo.puma().random_state(seed=1)
        >>> q.shape, v.shape
        ((6,), (6,))
        """
        try:
            rng = np.random.default_rng(seed)
        except (TypeError, ValueError):
            raise InputError(f"random_state: seed is {seed!r}; expected a number, 0 or more, or a Generator") from None
        q = []
        for j in self.joints:
            x = rng.uniform(-1.0, 1.0, j.kind.nq) * np.array(j.kind.sizes())
            if j.kind.unit_parts(tuple(x)):
                e = rng.normal(size=4)
                x[:4] = e / np.linalg.norm(e)
            q.append(x)
        return np.concatenate(q) if q else np.zeros(0), rng.normal(size=self.nv)

    def parameters(self) -> Parameters:
        """Return names and values of the numbers that kernels with parameters="live" take as input, in their order."""
        from spanloop.model.parameters import Parameters

        return Parameters.of(self)

    def with_parameters(self, parameters: Parameters | Mapping[str, float] | ArrayLike) -> Model:
        """Return the model with other masses, lengths, losses and gravity; for example those that were identified.

        parameters: some by name, as {"link6.mass": 1.5}, or all of them, (n,), packed as model.parameters()

        Raises ModelError for numbers that no mechanism has: negative masses, impossible inertias, ...

        >>> heavy = sl.zoo.pendulum(1).with_parameters({"rod1.mass": 5.0})
        >>> heavy.bodies[0].inertia.mass
        5.0
        """
        from spanloop.model.parameters import Parameters, applied

        if isinstance(parameters, Mapping):
            parameters = self.parameters().changed(parameters)
        return applied(self, parameters.values if isinstance(parameters, Parameters) else parameters)

    inertial_parameters = edits.inertial_parameters

    # ---- edits: each returns a new model; spanloop/model/edits defines them

    lock = edits.lock
    rigid = edits.rigid
    fuse = edits.fuse
    weld = edits.weld
    attach = edits.attach
    remove = edits.remove
    rename = edits.rename
    mirror = edits.mirror
    scale = edits.scale
    rezero = edits.rezero
    drive = edits.drive
    actuate = edits.actuate
    unactuate = edits.unactuate
    with_contact = edits.with_contact
    with_ground = edits.with_ground
    with_loop = edits.with_loop
    with_coupling = edits.with_coupling
    with_flexible = edits.with_flexible
    with_frame = edits.with_frame
    with_gravity = edits.with_gravity
    with_inertia = edits.with_inertia
    with_inertial_parameters = edits.with_inertial_parameters
    with_joint = edits.with_joint
    with_material = edits.with_material
    with_actuator = edits.with_actuator
    with_sensor = edits.with_sensor
    without_losses = edits.without_losses

    # ---- files and text

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Written:
        """Write the model to a .toml, .urdf, .xml or .mjcf (MJCF), .sdf or .csv file, completely or not at all.

        Only .toml holds everything. If the format cannot hold a part, UnsupportedError lists what would be lost, and
        nothing is written; force: write the rest.

        Returns the text (`text`), what it lacks (`lost`) and what it represents in another way (`remarks`).

        >>> sl.zoo.four_bar().save("four_bar.toml").lost
        ()
        >>> sl.load("four_bar.toml") == sl.zoo.four_bar()
        True
        """
        from spanloop.model.files import save

        return save(self, path, force=force)

    def page(self, path: str | Path, q: ArrayLike | None = None, v: ArrayLike | None = None, **options: Any) -> Path:
        """Write a page in which the mechanism runs from q (nq,), v (nv,) and can be grabbed and pulled.

        One HTML file for any browser, without a network. options: title, folder of mesh files, controller, forces,
        parameters (names of those with a slider), step; see docs/live.md. Returns the path.
        """
        from spanloop.view.page.live.live_page import write_live

        return write_live(self, path, q, v, **options)

    def __repr__(self) -> str:
        from spanloop.model.printout import line

        return line(self)

    def __str__(self) -> str:
        from spanloop.model.printout import printout

        return printout(self)

    def _repr_html_(self) -> str:
        from spanloop.model.printout import html

        return html(self)


def _named(parts: Mapping[str, _Part], name: str, what: str, owner: str) -> _Part:
    if not isinstance(name, str) or name not in parts:
        raise InputError(f"model {owner!r} has no {what} {name!r}; {nearest(name, parts)}")
    return parts[name]
