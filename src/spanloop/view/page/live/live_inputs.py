"""The inputs u of a live step: the motion's own, sliders of a law and of torques, damping, and forces on bodies.

One after the other:

| part | numbers | meaning |
|---|---|---|
| own | | inputs of the user's controller and forces, or the torques of the run (nv) |
| gains | 0 or 2 | factors of the gains kp and kd of a law of sl.control |
| targets | | offsets of its targets, one for each DoF with one [rad or m] |
| torques | | more torque at each actuated DoF [N m or N] |
| damping | 0 or 1 | c [1/s]: all motion decays at this rate, as by torques −c M v; none if a joint or loop is driven |
| forces | 6 a load | [torque; force] on a body at its origin in world axes [N m; N] |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spanloop.joints import JointKind
from spanloop.kernels import KernelSpec
from spanloop.model import Model
from spanloop.model.parts import Joint
from spanloop.simulation.control.joint_space import SAME, Change, JointLaw
from spanloop.simulation.controllers import Controller, controller_of, takes_inputs, together
from spanloop.simulation.forces import together as together_forces
from spanloop.topology import mechanism

FASTEST = 20.0  # 1/s: the most damping that a slider offers
STRONGEST = 4.0  # times the gains of a law, at most


@dataclass(frozen=True)
class LiveInputs:
    """The parts of u: how many numbers of each, where they begin, and what they do.

    controller, forces: the user's own; own: how many inputs they read; own_are_torques: whether these are the torques
    of the run. changes_gains: whether gains have sliders.
    """

    model: Model
    q: np.ndarray
    own: int
    controller: Controller | None
    forces: Callable[..., Any] | None
    own_are_torques: bool = False
    changes_gains: bool = True

    @cached_property
    def law(self) -> JointLaw | None:
        """The controller, if it is a law of joints of sl.control with targets."""
        law = self.controller
        return law if isinstance(law, JointLaw) and law.aim.paths else None

    @cached_property
    def gains(self) -> int:
        """How many gains have a factor."""
        return 2 if self.law is not None and self.law.has_gains and self.changes_gains else 0

    @cached_property
    def targets(self) -> list[tuple[Joint, int]]:
        """Joints whose targets move, and the DoF of each; joints that turn about several axes have none."""
        if self.law is None:
            return []
        able = [j for j, _, _ in self.law.aim.paths if type(j.kind).minus is JointKind.minus]
        return [(j, k) for j in able for k in range(self.model.nv)[self.model.v_slice(j.name)]]

    @cached_property
    def torques(self) -> list[tuple[Joint, int]]:
        """Actuated joints, and the DoF of each."""
        able = [j for j in self.model.joints if j.actuated and not j.driven]
        return [(j, k) for j in able for k in range(self.model.nv)[self.model.v_slice(j.name)]]

    @cached_property
    def loads(self) -> list[str]:
        """Bodies that forces act on: the first of those that are welded together, none that are fixed in the world."""
        anchors = mechanism(self.model).anchors
        first: dict[int, str] = {}
        for b in self.model.bodies:
            first.setdefault(anchors[b.name].link, b.name)
        return [name for link, name in first.items() if link >= 0]

    @cached_property
    def first(self) -> dict[str, int]:
        """Where each part begins in u, and "end"."""
        sizes = {
            "own": self.own,
            "gains": self.gains,
            "targets": len(self.targets),
            "torques": len(self.torques),
            "damping": int(self.decays),
            "forces": 6 * len(self.loads),
        }
        out, at = {}, 0
        for name, size in sizes.items():
            out[name] = at
            at += size
        return {**out, "end": at}

    def start(self, own: Sequence[float]) -> np.ndarray:
        """u at the start: the own inputs, gains as they are, and nothing else."""
        u = np.zeros(self.first["end"])
        u[: self.own] = own
        u[self.first["gains"] : self.first["targets"]] = 1.0
        return u

    def load_of(self, body: str) -> str | None:
        """The body that a force on this one acts on; None where it is fixed in the world."""
        anchors = mechanism(self.model).anchors
        return next((x for x in self.loads if anchors[x].link == anchors[body].link), None)

    @cached_property
    def inertias(self) -> np.ndarray:
        """The diagonal (nv) of the mass matrix at the start, not negative."""
        n = self.model.nv
        found = KernelSpec.of(self.model, "mass_matrix").compute({"q": self.q.tolist()})[0]
        return np.maximum(np.diag(np.array(found, float).reshape(n, n)), 0.0)

    @property
    def decays(self) -> bool:
        """Whether motion can be slowed down: not where accelerations are given."""
        return not (any(j.driven for j in self.model.joints) or any(x.driven for x in self.model.loops))

    # ---- what acts

    def acting_controller(self) -> Controller:
        """The controller of the live motion."""
        return together(self.model, _Own(self), _Torques(self))

    def acting_forces(self) -> Callable[..., Any]:
        """Forces on bodies, and the user's own."""
        at, own = self.first["forces"], self.forces

        def live(t: Any, q: Any, v: Any, u: Any) -> dict[Any, Any]:
            return {b: list(u[at + 6 * k : at + 6 * k + 6]) for k, b in enumerate(self.loads)}

        if own is None:
            return live
        reads = takes_inputs(own)

        def users(t: Any, q: Any, v: Any, u: Any) -> Any:
            return own(t, q, v, u[: self.own]) if reads else own(t, q, v)

        return together_forces(users, live)


class _Own(Controller):
    """The user's controller, with the sliders of a law; or torques."""

    def __init__(self, parts: LiveInputs):
        self.parts, self.base = parts, parts.controller
        self.inputs = parts.first["torques"]
        self.memory = 0 if self.base is None else self.base.memory

    def start(self, model: Model) -> Sequence[float]:
        return () if self.base is None else self.base.start(model)

    def torques(self, t: Any, q: Any, v: Any, u: Any, z: Any) -> Sequence[Any] | Mapping[str, Any]:
        parts, own = self.parts, u[: self.parts.own]
        if self.base is None:
            return list(own) if parts.own_are_torques else [0.0] * parts.model.nv
        own = own if self.base.inputs != 0 else own[:0]
        if parts.law is None:
            return self.base.torques(t, q, v, own, z)
        gains = {"kp": u[parts.first["gains"]], "kd": u[parts.first["gains"] + 1]} if parts.gains else {}
        offsets = {k: u[parts.first["targets"] + i] for i, (_, k) in enumerate(parts.targets)}
        return parts.law.law(t, q, v, own, Change(**gains, offsets=offsets) if gains or offsets else SAME)

    def update(self, t: Any, h: Any, q: Any, v: Any, u: Any, z: Any) -> Sequence[Any]:
        own = u[: self.parts.own]
        return () if self.base is None else self.base.update(t, h, q, v, own if self.base.inputs != 0 else own[:0], z)

    def joint_gains(self) -> Any:
        known = getattr(self.base, "joint_gains", None)
        return known() if callable(known) else None

    def joint_targets(self, t: Any) -> Any:
        known = getattr(self.base, "joint_targets", None)
        return known(t) if callable(known) else None


class _Torques(Controller):
    """Torques at actuated joints; the inputs after them are those of forces."""

    def __init__(self, parts: LiveInputs):
        self.parts, self.inputs = parts, parts.first["end"] - parts.first["torques"]

    def torques(self, t: Any, q: Any, v: Any, u: Any, z: Any) -> Sequence[Any]:
        tau: list[Any] = [0.0] * self.parts.model.nv
        for i, (_, k) in enumerate(self.parts.torques):
            tau[k] = u[i]
        return tau


def own_controller(controller: Any) -> Controller | None:
    """A function or object as a controller; None for none."""
    return None if controller is None else controller_of(controller)
