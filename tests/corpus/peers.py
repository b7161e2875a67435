"""Peers that read the same file: Pinocchio for URDF, MuJoCo for MJCF, Drake (where it is installed) for SDF.

A peer gives its mass matrix and its torques at zero acceleration in our order of coordinates, for a state of ours. Its
`switches` turn off features, one at a time, that our loader says it leaves out; they return whether that one acted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import spanloop as sl
from spanloop.model import Model


class PinocchioPeer:
    """Pinocchio's tree of a URDF; mimic joints are free to move there, as in the tree that is compared."""

    def __init__(self, path: Path, root: Path) -> None:
        import pinocchio

        self.pin, self.path = pinocchio, str(path)
        self.theirs = pinocchio.buildModelFromUrdf(self.path)
        self.switches: dict[str, Callable[[], bool]] = {}

    def changes(self, model: Model) -> str:
        """Pinocchio takes a file as it is."""
        return ""

    def comparable(self, model: Model) -> Model:
        """The model without what Pinocchio's algorithms do not have: losses, couplings, loops."""
        if self.theirs.nv == 0 and model.nv:  # ours was read again with a free base, as nothing moved
            self.theirs = self.pin.buildModelFromUrdf(self.path, self.pin.JointModelFreeFlyer())
        self.data = self.theirs.createData()
        self.order = sl.PinocchioOrder(model, list(self.theirs.names), list(self.theirs.nqs))
        return replace(model.without_losses(), loops=(), couplings=())

    def answers(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """M (nv, nv) and h (nv,) in our order; M by inverse dynamics, as crba needs joints numbered depth first."""
        at, rates, still = self.order.q_to(q), self.order.v_to(v), np.zeros(self.theirs.nv)
        rest = self._torques(at, still, still)
        columns = [self._torques(at, still, self.order.v_to(e)) - rest for e in np.eye(self.theirs.nv)]
        return np.stack(columns, axis=-1), self._torques(at, rates, still)

    def _torques(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self.order.v_from(self.pin.rnea(self.theirs, self.data, q, v, a))


class MujocoPeer:
    """MuJoCo's model of an MJCF, without contact, constraints and actuators."""

    def __init__(self, path: Path, root: Path) -> None:
        import mujoco

        self.mujoco = mujoco
        spec = mujoco.MjSpec.from_file(str(path))
        spec.compiler.fusestatic = False  # keeps the names of bodies and joints
        self.theirs = spec.compile()
        self.data = mujoco.MjData(self.theirs)
        off = mujoco.mjtDisableBit
        self.theirs.opt.disableflags |= int(off.mjDSBL_CONSTRAINT) | int(off.mjDSBL_ACTUATION)
        mujoco.mj_setConst(self.theirs, self.data)  # bodies that it calls simple keep an armature of before
        self.switches = {
            "gravcomp that differs": self._zero("body_gravcomp"),
            "negative damping": self._no_negative_damping,
            "medium": self._still_medium,
            "tendon": self._no_tendons,
            "armature of a free joint": self._no_free_armature,
            "flag": self._no_flags,
        }

    def comparable(self, model: Model) -> Model:
        self.order = sl.MujocoOrder(model, self.theirs)
        return replace(model, loops=(), couplings=())

    def answers(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.data.qpos[:], self.data.qvel[:] = self.order.q_to(q), self.order.v_to(q, v)
        self.mujoco.mj_forward(self.theirs, self.data)
        full = np.zeros((self.theirs.nv, self.theirs.nv))
        self.mujoco.mj_fullM(self.theirs, self.data, full)
        turning = self.order.a_to(q, v, np.zeros(self.theirs.nv))  # their acceleration where ours is zero
        torques = full @ turning + self.data.qfrc_bias - self.data.qfrc_passive
        basis = np.stack([self.order.tau_from(q, e) for e in np.eye(self.theirs.nv)], axis=-1)
        return basis @ full @ basis.T, self.order.tau_from(q, torques)

    def changes(self, model: Model) -> str:
        """What MuJoCo makes of centres of mass nearly at the body's origin: bodies that it calls simple have none."""
        away = np.abs(self.theirs.body_ipos).max(axis=1)
        near = np.flatnonzero((self.theirs.body_simple > 0) & (away > 0.0) & (away < 1e-7))
        return (
            f"takes the centres of mass of {len(near)} bodies, at most {away[near].max():.0e} m off, for zero"
            if len(near)
            else ""
        )

    def _zero(self, name: str) -> Callable[[], bool]:
        def switched() -> bool:
            values = getattr(self.theirs, name)
            acted = bool(np.any(values))
            values[...] = 0.0
            return acted

        return switched

    def _no_negative_damping(self) -> bool:
        acted = bool((self.theirs.dof_damping < 0.0).any())
        self.theirs.dof_damping[:] = np.maximum(self.theirs.dof_damping, 0.0)
        return acted

    def _still_medium(self) -> bool:
        acted = bool(self.theirs.opt.density or self.theirs.opt.viscosity)
        self.theirs.opt.density = self.theirs.opt.viscosity = 0.0
        return acted

    def _no_tendons(self) -> bool:
        names = ("tendon_stiffness", "tendon_damping", "tendon_armature")
        acted = [self._zero(name)() for name in names]
        return any(acted)

    def _no_free_armature(self) -> bool:
        acted = False
        for k in range(self.theirs.njnt):
            if self.theirs.jnt_type[k] == 0:
                at = slice(self.theirs.jnt_dofadr[k], self.theirs.jnt_dofadr[k] + 6)
                acted = acted or bool(np.any(self.theirs.dof_armature[at]))
                self.theirs.dof_armature[at] = 0.0
        self.mujoco.mj_setConst(self.theirs, self.data)
        return acted

    def _no_flags(self) -> bool:
        off = self.mujoco.mjtDisableBit
        passive = int(off.mjDSBL_SPRING) | int(off.mjDSBL_DAMPER)
        acted = bool(self.theirs.opt.disableflags & passive)
        self.theirs.opt.disableflags &= ~passive
        return acted


class DrakePeer:
    """Drake's plant of an SDF, bodies that float where the file fixes none."""

    def __init__(self, path: Path, root: Path) -> None:
        self.path, self.root = str(path), str(root)
        self._build((0.0, 0.0, -9.81))
        self.switches: dict[str, Callable[[], bool]] = {}

    def _build(self, gravity: tuple[float, ...]) -> None:
        """Read the file; Drake does not read the gravity of a world."""
        import logging

        from pydrake.multibody.parsing import Parser
        from pydrake.multibody.plant import MultibodyPlant

        logging.getLogger("drake").setLevel(logging.CRITICAL)
        self.plant = MultibodyPlant(0.0)
        parser = Parser(self.plant)
        parser.package_map().PopulateFromFolder(self.root)
        parser.AddModels(self.path)
        self.plant.mutable_gravity_field().set_gravity_vector(gravity)
        self.plant.Finalize()
        self.context = self.plant.CreateDefaultContext()

    def comparable(self, model: Model) -> Model:
        self._build(model.gravity)
        ours = {j.name.split("::")[-1]: j for j in model.joints if j.kind.nv}
        bodies = {j.child.split("::")[-1]: j for j in model.joints if j.kind.nv}
        names, self.places = [], []
        indices = sorted(self.plant.GetJointIndices(), key=lambda k: self.plant.get_joint(k).velocity_start())
        for joint in (self.plant.get_joint(k) for k in indices):
            if joint.num_velocities():
                known = bodies if joint.num_velocities() == 6 else ours
                name = joint.child_body().name() if joint.num_velocities() == 6 else joint.name()
                names.append(known[name].name)
                self.places.append((joint.position_start(), joint.velocity_start(), joint.num_positions()))
        self.order = sl.MujocoOrder(model, names)
        return replace(model.without_losses(), loops=(), couplings=())

    def answers(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        nv = self.plant.num_velocities()
        turn = self._turning(q)
        self.plant.SetPositions(self.context, self._positions(q))
        self.plant.SetVelocities(self.context, turn @ self.order.v_to(q, v))
        full = self.plant.CalcMassMatrix(self.context)
        rest = turn @ self.order.a_to(q, v, np.zeros(nv))
        gravity = self.plant.CalcGravityGeneralizedForces(self.context)
        torques = full @ rest + self.plant.CalcBiasTerm(self.context) - gravity
        basis = np.stack([self.order.tau_from(q, turn.T @ e) for e in np.eye(nv)], axis=-1)
        return basis @ full @ basis.T, self.order.tau_from(q, turn.T @ torques)

    def changes(self, model: Model) -> str:
        """Bodies that Drake gives another inertia, because it finds impossible what the file has."""
        found = []
        for body in model.bodies:
            mass, moments = body.inertia.mass, np.linalg.eigvalsh(np.array(body.inertia.matrix()))
            is_possible = mass > 0.0 and moments[0] > 0.0 and moments[2] <= moments[0] + moments[1]
            if not is_possible and self.plant.HasBodyNamed(body.name.split("::")[-1]):
                theirs = self.plant.GetBodyByName(body.name.split("::")[-1]).default_spatial_inertia()
                unit = theirs.get_unit_inertia().ShiftToCenterOfMass(theirs.get_com()).CopyToFullMatrix3()
                at_center = np.linalg.eigvalsh(theirs.get_mass() * unit)
                if abs(theirs.get_mass() - mass) > 1e-9 * mass or np.abs(at_center - moments).max() > 1e-6 * moments[2]:
                    found.append(body.name)
        return f"replaces the inertias of {', '.join(found)}, which no body can have" if found else ""

    def _positions(self, q: np.ndarray) -> np.ndarray:
        """Drake's coordinates: a free body's quaternion comes first there."""
        theirs, at = self.order.q_to(q).copy(), 0
        for _, _, size in self.places:
            if size == 7:
                theirs[at : at + 7] = np.concatenate((theirs[at + 3 : at + 7], theirs[at : at + 3]))
            at += size
        return theirs

    def _turning(self, q: np.ndarray) -> Any:
        """The matrix from MuJoCo's rates to Drake's: of a free body (u, ω in its axes) to (ω in world axes, u)."""
        matrix, positions, at = np.eye(self.plant.num_velocities()), self._positions(q), 0
        place = 0
        for _, _, size in self.places:
            if size == 7:
                w, x, y, z = positions[place : place + 4]
                R = np.array(
                    (
                        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
                        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
                        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
                    )
                )
                block = np.zeros((6, 6))
                block[:3, 3:], block[3:, :3] = R, np.eye(3)
                matrix[at : at + 6, at : at + 6] = block
            at, place = at + (6 if size == 7 else size), place + size
        return matrix


PEERS: dict[str, Callable[[Path, Path], Any]] = {"URDF": PinocchioPeer, "MJCF": MujocoPeer, "SDF": DrakePeer}
