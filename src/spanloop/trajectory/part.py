"""The quantities of one part of a trajectory: a joint, a frame or body, a loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.model import Model
from spanloop.trajectory import quantities
from spanloop.trajectory.contact_state import contact_rates, contact_state
from spanloop.trajectory.events import STOP, EventTable
from spanloop.trajectory.topologies import has_same_joints

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory


def roles(run: Trajectory, name: str) -> tuple[str, ...]:
    """The roles of a name: "joint", "frame", "loop", several of these, or an error with the nearest name."""
    kinds: dict[str, list[str]] = {"joint": [], "frame": [], "loop": list(run.events.switches)}
    for model in _models(run):
        kinds["joint"] += [j.name for j in model.joints]
        kinds["frame"] += [*(f.name for f in model.frames), *model.body_number]
        kinds["loop"] += [*(x.name for x in model.loops), *(c.name for c in model.couplings)]
    found = tuple(kind for kind, names in kinds.items() if name in names)
    if not found:
        known = [n for names in kinds.values() for n in names]
        what = "joint, frame, body, loop or coupling"
        hint = f"contacts are in run.contacts[{name!r}]" if name in run.contacts else nearest(name, known)
        raise InputError(f"model {run.model.name!r} has no {what} {name!r}; {hint}")
    return found


def _models(run: Trajectory) -> tuple[Model, ...]:
    """The models of a run, its own first."""
    return tuple(dict.fromkeys([run.model, *(s.model for s in run.segments if s.model is not None)]))


@dataclass(frozen=True)
class Part:
    """One part of a trajectory, by name. A joint has q, v, tau, a, force; a frame or body has pose, position, velocity;
    a loop or coupling has error, active, impulse, events, and a loop force; a grasp has contact and contact_rate. A
    name that stands for several has all of theirs."""

    run: Trajectory
    name: str

    def __repr__(self) -> str:
        return f"<{' and '.join(roles(self.run, self.name))} {self.name!r} of {self.run!r}>"

    # ---- a joint

    @property
    def q(self) -> np.ndarray:
        """Coordinates (..., n), or (..., n, nq) where there are several."""
        return self._of_joint("q", "q_slice")

    @property
    def v(self) -> np.ndarray:
        """Rates (..., n) or (..., n, nv)."""
        return self._of_joint("v", "v_slice")

    @property
    def tau(self) -> np.ndarray:
        """Torques or forces (..., n) or (..., n, nv); a driven joint's acceleration."""
        return self._of_joint("tau", "v_slice")

    @property
    def a(self) -> np.ndarray:
        """Accelerations (..., n) or (..., n, nv)."""
        return self._of_joint("a", "v_slice")

    def _of_joint(self, letter: str, slices: str) -> np.ndarray:
        self._is("joint", letter)
        run = self.run
        if has_same_joints(run):
            return _single(getattr(run, letter)[..., getattr(run.model, slices)(self.name)])
        owner = next(m for m in _models(run) if self._has_joint(m))
        width = len(range(getattr(owner, "n" + slices[0]))[getattr(owner, slices)(self.name)])
        parts = []
        for piece in run.pieces:
            here = self._has_joint(piece.model)
            none = np.full((*run.batch, len(piece), width), np.nan)
            parts.append(getattr(piece, letter)[..., getattr(piece.model, slices)(self.name)] if here else none)
        return _single(np.concatenate(parts, axis=-2))

    def _has_joint(self, model: Model) -> bool:
        return any(j.name == self.name for j in model.joints)

    # ---- a frame or body

    @property
    def pose(self) -> np.ndarray:
        """Pose (..., n, 4, 4) in the world."""
        self._is("frame", "pose")
        return quantities.pose(self.run, self.name)

    @property
    def position(self) -> np.ndarray:
        """Position (..., n, 3) of the origin in the world [m]."""
        self._is("frame", "position")
        return self.pose[..., :3, 3]

    @property
    def velocity(self) -> np.ndarray:
        """[angular; linear] velocity (..., n, 6) of the origin in world axes [rad/s, m/s]."""
        self._is("frame", "velocity")
        return quantities.twist(self.run, self.name)

    # ---- a loop

    @property
    def error(self) -> np.ndarray:
        """How far (..., n, rows) a loop, or (..., n, 1) a coupling, is from closed [m or rad], open or not."""
        self._is("loop", "error")
        return quantities.error_of(self.run, self.name)

    @property
    def active(self) -> np.ndarray:
        """Whether a loop, coupling or stop is closed (..., n)."""
        self._is("loop", "active")
        return quantities.is_closed(self.run, self.name)

    @property
    def events(self) -> EventTable:
        """The events of this part."""
        table = self.run.events
        return table.kept(table.name == self.name, np.zeros(len(table), bool))

    @property
    def impulse(self) -> np.ndarray:
        """Impulses at the moments impulse_times: (k, 6) [torque; force] of a loop on its body b at the loop's child
        frame, in world axes [N m s, N s]; (k,) of a coupling or stop."""
        self._is("loop", "impulse")
        return quantities.impulses(self.run, self.name)[1]

    @property
    def impulse_times(self) -> np.ndarray:
        """The moments (k,) at which it gave an impulse [s]."""
        self._is("loop", "impulse_times")
        return quantities.impulses(self.run, self.name)[0]

    @property
    def force(self) -> np.ndarray:
        """[torque; force] (..., n, 6): of a joint on its child at that body's origin, or of a loop on its body b at the
        loop's child frame; world axes. Of a coupling or stop the torque or force (..., n) on its joint. Zero while a
        loop, coupling or stop is open."""
        found = self.run.reactions()
        if self.name in found:
            return found[self.name]
        if "loop" not in roles(self.run, self.name):
            raise InputError(f"{self.name!r} is {_described(roles(self.run, self.name))}; force is of joints and loops")
        return quantities.row_forces(self.run, self.name)[..., 0]

    @property
    def contact(self) -> np.ndarray:
        """How the child frame of a grasp is turned in its parent frame: quaternions (..., n, 4) of a spherical or
        soft_finger loop, angles (..., n) of a revolute one [rad]; without jumps from sample to sample."""
        self._is("loop", "contact")
        return contact_state(self.run, self.name)

    @property
    def contact_rate(self) -> np.ndarray:
        """Rates (..., n, k) along the DoF of a grasp, of body b on body a, in the axes of the child frame [rad/s]."""
        self._is("loop", "contact_rate")
        return contact_rates(self.run, self.name)

    def _is(self, role: str, quantity: str) -> None:
        found = roles(self.run, self.name)
        if role not in found:
            stop = f"{self.name}{STOP}"
            more = f". The stop of this joint is run[{stop!r}]" if stop in self.run.events.switches else ""
            raise InputError(f"{self.name!r} is {_described(found)}; {quantity} is of {_OWNERS[role]}{more}")


_OWNERS = {"joint": "joints", "frame": "frames and bodies", "loop": "loops and couplings"}
_KINDS = {"joint": "a joint", "frame": "a frame or body", "loop": "a loop or coupling"}


def _described(found: tuple[str, ...]) -> str:
    return " and ".join(_KINDS[role] for role in found)


def _single(values: np.ndarray) -> np.ndarray:
    return values[..., 0] if values.shape[-1] == 1 else values
