"""The quantities of one part of a trajectory: a joint, a frame or body, a loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.loops.closure_errors import rows_of
from spanloop.model import Model
from spanloop.trajectory import quantities
from spanloop.trajectory.contact_state import contact_rates, contact_state

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory


def roles(model: Model, name: str) -> tuple[str, ...]:
    """The roles of a name: "joint", "frame", "loop", several of these, or an error with the nearest name."""
    kinds = {
        "joint": [j.name for j in model.joints],
        "frame": [*(f.name for f in model.frames), *model.body_number],
        "loop": [*(x.name for x in model.loops), *(c.name for c in model.couplings)],
    }
    found = tuple(kind for kind, names in kinds.items() if name in names)
    if not found:
        known = [n for names in kinds.values() for n in names]
        what = "joint, frame, body, loop or coupling"
        raise InputError(f"model {model.name!r} has no {what} {name!r}; {nearest(name, known)}")
    return found


@dataclass(frozen=True)
class Part:
    """One part of a trajectory, by name. A joint has q, v, tau, a, force; a frame or body has pose, position, velocity;
    a loop or coupling has error, and a loop force; a grasp has contact and contact_rate. A name that stands for several
    has all of theirs."""

    run: Trajectory
    name: str

    def __repr__(self) -> str:
        return f"<{' and '.join(roles(self.run.model, self.name))} {self.name!r} of {self.run!r}>"

    # ---- a joint

    @property
    def q(self) -> np.ndarray:
        """Coordinates (..., n), or (..., n, nq) where there are several."""
        return _single(self.run.q[..., self._joint("q", "q_slice")])

    @property
    def v(self) -> np.ndarray:
        """Rates (..., n) or (..., n, nv)."""
        return _single(self.run.v[..., self._joint("v", "v_slice")])

    @property
    def tau(self) -> np.ndarray:
        """Torques or forces (..., n) or (..., n, nv); a driven joint's acceleration."""
        return _single(self.run.tau[..., self._joint("tau", "v_slice")])

    @property
    def a(self) -> np.ndarray:
        """Accelerations (..., n) or (..., n, nv)."""
        return _single(self.run.a[..., self._joint("a", "v_slice")])

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
        """Closure errors (..., n, rows) of a loop, or (..., n, 1) of a coupling [m or rad]."""
        self._is("loop", "error")
        model = self.run.model
        number = [*(x.name for x in model.loops), *(c.name for c in model.couplings)].index(self.name)
        rows = [k for k, row in enumerate(rows_of(model)) if row.owner == number]
        return self.run.closure_error[..., rows]

    @property
    def force(self) -> np.ndarray:
        """[torque; force] (..., n, 6): of a joint on its child at that body's origin, or of a loop on its body b at the
        loop's child frame; world axes."""
        found = self.run.reactions()
        if self.name not in found:
            raise InputError(
                f"{self.name!r} is {_described(roles(self.run.model, self.name))}; force is of joints and loops"
            )
        return found[self.name]

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

    def _joint(self, quantity: str, slices: str) -> slice:
        self._is("joint", quantity)
        return getattr(self.run.model, slices)(self.name)

    def _is(self, role: str, quantity: str) -> None:
        found = roles(self.run.model, self.name)
        if role not in found:
            raise InputError(f"{self.name!r} is {_described(found)}; {quantity} is of {_OWNERS[role]}")


_OWNERS = {"joint": "joints", "frame": "frames and bodies", "loop": "loops and couplings"}
_KINDS = {"joint": "a joint", "frame": "a frame or body", "loop": "a loop or coupling"}


def _described(found: tuple[str, ...]) -> str:
    return " and ".join(_KINDS[role] for role in found)


def _single(values: np.ndarray) -> np.ndarray:
    return values[..., 0] if values.shape[-1] == 1 else values
