"""Closed mechanisms of spanloop as models of Pinocchio and MuJoCo, ready to be called at one state.

Both know balls and rigid joints as closures; a plane loop that a hinge closes is closed by a ball there, which moves
it in the same way.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pinocchio as pin

import spanloop as sl

_AXES = {(1.0, 0.0, 0.0): "X", (0.0, 1.0, 0.0): "Y", (0.0, 0.0, 1.0): "Z"}
_THIN = 1e-9  # kg m², for MuJoCo, in place of no inertia about a thin rod's own axis


def _pose(placement) -> pin.SE3:
    return pin.SE3(np.array(placement.rotation), np.array(placement.position))


def rigid(loop) -> bool:
    if loop.kind.name not in ("fixed", "spherical", "revolute"):
        raise ValueError(f"the peers have no closure like {loop.kind.name}")
    return loop.kind.name == "fixed"


SOLVERS = ("proximal", "lcaba")
# word for word what is timed; the names are plain, so that no look-up of attributes adds to it
PINOCCHIO = "solve(model, data, q, v, tau, contacts, contact_data, settings)"
MUJOCO = "forward(model, data)"


class Pinocchio:
    """Both of its solvers: `proximal` (constraintDynamics with settings) and `lcaba`.

    Each has data of its own: they must not share any. Bodies are added depth first, as its mass matrix needs.
    """

    def __init__(self, model: sl.Model):
        self.model, place = pin.Model(), {"world": 0}
        self.model.gravity = pin.Motion(np.array(model.gravity), np.zeros(3))
        for body, joint in zip(model.bodies, model.joints, strict=True):
            number = self.model.addJoint(
                place[joint.parent], self._joint(joint.kind), _pose(joint.placement), joint.name
            )
            i = body.inertia
            inertia = pin.Inertia(i.mass, np.array(i.center), np.array(i.matrix()))
            self.model.appendBodyToJoint(number, inertia, pin.SE3.Identity())
            place[joint.child] = number
        self.order = sl.PinocchioOrder(model, list(self.model.names), list(self.model.nqs))
        self.contacts = pin.StdVec_RigidConstraintModel()
        for x in model.loops:
            kind = pin.ContactType.CONTACT_6D if rigid(x) else pin.ContactType.CONTACT_3D
            ends = place[x.a], _pose(x.placement_a), place[x.b], _pose(x.placement_b)
            self.contacts.append(pin.RigidConstraintModel(kind, self.model, *ends, pin.ReferenceFrame.LOCAL))
        self.data = self.model.createData(), self.model.createData()
        self.contact_data = self._contact_data(), self._contact_data()
        # without settings, constraintDynamics gives no number on plane loops; lcaba gets no nearer than about 1e-9
        self.settings = pin.ProximalSettings(1e-12, 1e-10, 20), pin.ProximalSettings(1e-12, 1e-6, 20)
        pin.initConstraintDynamics(self.model, self.data[0], self.contacts, self.contact_data[0])
        pin.computeJointMinimalOrdering(self.model, self.data[1], self.contacts)

    def names(self, solver: str, q, v, tau) -> dict:
        """What the call of a solver speaks of."""
        which = SOLVERS.index(solver)
        return {
            "solve": (pin.constraintDynamics, pin.lcaba)[which],
            "model": self.model,
            "data": self.data[which],
            "contacts": self.contacts,
            "contact_data": self.contact_data[which],
            "settings": self.settings[which],
            "q": self.order.q_to(q),
            "v": self.order.v_to(v),
            "tau": self.order.v_to(tau),
        }

    def _contact_data(self):
        out = pin.StdVec_RigidConstraintData()
        for contact in self.contacts:
            out.append(contact.createData())
        return out

    @staticmethod
    def _joint(kind):
        if kind.name == "free":
            return pin.JointModelFreeFlyer()
        axis = np.array(kind.axis)
        if kind.name == "universal":
            return pin.JointModelUniversal(axis, np.array(kind.second_axis))
        letter = _AXES.get(tuple(kind.axis))
        if kind.name == "revolute":
            return getattr(pin, f"JointModelR{letter}")() if letter else pin.JointModelRevoluteUnaligned(axis)
        if kind.name == "prismatic":
            return getattr(pin, f"JointModelP{letter}")() if letter else pin.JointModelPrismaticUnaligned(axis)
        raise ValueError(f"no joint of Pinocchio for {kind.name}")


def specification(model: sl.Model) -> mujoco.MjSpec:
    """The model for MuJoCo, contacts off, inertias as they are; closures are its own soft constraints."""
    spec = mujoco.MjSpec()
    spec.option.gravity = model.gravity
    spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    spec.compiler.balanceinertia, spec.compiler.boundmass, spec.compiler.boundinertia = False, 0.0, 0.0
    bodies = {"world": spec.worldbody}
    for body, joint in zip(model.bodies, model.joints, strict=True):
        xx, xy, xz, yy, yz, zz = body.inertia.moments
        moments = [max(xx, _THIN), max(yy, _THIN), max(zz, _THIN), xy, xz, yz]
        here = bodies[joint.parent].add_body(
            name=body.name,
            pos=joint.placement.position,
            quat=_quaternion(joint.placement),
            mass=body.inertia.mass,
            ipos=body.inertia.center,
            fullinertia=moments,
            explicitinertial=True,
        )
        _add_joint(here, joint)
        bodies[body.name] = here
    for x in model.loops:
        sites = []
        for end, name, placement in (("a", x.a, x.placement_a), ("b", x.b, x.placement_b)):
            label = f"{x.name}_{end}"
            bodies[name].add_site(name=label, pos=placement.position, quat=_quaternion(placement))
            sites.append(label)
        kind = mujoco.mjtEq.mjEQ_WELD if rigid(x) else mujoco.mjtEq.mjEQ_CONNECT
        spec.add_equality(type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, name1=sites[0], name2=sites[1])
    return spec


def to_mujoco(model: sl.Model, q, v) -> tuple[np.ndarray, np.ndarray]:
    """Of a free joint, position comes before rotation there, and its velocity is in world axes, before the rates."""
    q, v = np.array(q, float), np.array(v, float)
    for joint in model.joints:
        if joint.kind.name == "free":
            iq, iv = model.q_slice(joint.name), model.v_slice(joint.name)
            R = sl.Dynamics(model).pose(q, joint.child)[..., :3, :3]
            w, linear = v[..., iv][..., :3].copy(), np.einsum("...ij,...j->...i", R, v[..., iv][..., 3:])
            q[..., iq] = np.roll(q[..., iq], 3, axis=-1)
            v[..., iv] = np.concatenate((linear, w), axis=-1)
    return q, v


def from_mujoco(model: sl.Model, q, v) -> tuple[np.ndarray, np.ndarray]:
    """The same way back."""
    q, v = np.array(q, float), np.array(v, float)
    for joint in model.joints:
        if joint.kind.name == "free":
            iq, iv = model.q_slice(joint.name), model.v_slice(joint.name)
            q[..., iq] = np.roll(q[..., iq], -3, axis=-1)
            R = sl.Dynamics(model).pose(q, joint.child)[..., :3, :3]
            linear, w = v[..., iv][..., :3].copy(), v[..., iv][..., 3:].copy()
            v[..., iv] = np.concatenate((w, np.einsum("...ji,...j->...i", R, linear)), axis=-1)
    return q, v


def _add_joint(body, joint) -> None:
    kind = joint.kind
    if kind.name == "free":
        body.add_freejoint()
        return
    sort = mujoco.mjtJoint.mjJNT_SLIDE if kind.name == "prismatic" else mujoco.mjtJoint.mjJNT_HINGE
    for k, axis in enumerate((kind.axis, kind.second_axis) if kind.name == "universal" else (kind.axis,)):
        made = body.add_joint(type=sort, axis=axis, name=f"{joint.name}.{k}")
        if joint.stiffness[k]:
            made.stiffness, made.springref = [joint.stiffness[k], 0.0, 0.0], joint.rest[k]


class Mujoco:
    """Closures as MuJoCo's own soft constraints, with its default settings."""

    def __init__(self, model: sl.Model):
        self.ours = model
        self.model = specification(model).compile()
        self.data = mujoco.MjData(self.model)

    def names(self, q, v, tau) -> dict:
        """The state is set once."""
        self.data.qpos[:], self.data.qvel[:] = to_mujoco(self.ours, q, v)
        self.data.qfrc_applied[:] = tau
        return {"forward": mujoco.mj_forward, "model": self.model, "data": self.data}

    def error(self, a, tree) -> float:
        """Of its accelerations beside ours, at joints that are not free; those without closures must be `tree`."""
        mujoco.mj_forward(self.model, self.data)
        same = [i for j in self.ours.joints if j.kind.name != "free" for i in _numbers(self.ours, j)]
        assert np.abs(self.data.qacc_smooth - tree)[same].max() < 1e-6 * np.abs(tree).max(), "not the same mechanism"
        assert np.abs(self.data.efc_vel).max() < 1e-9, "not the same state"
        return float(np.abs(self.data.qacc - a)[same].max() / np.abs(a[same]).max())


def _numbers(model, joint):
    return range(model.nv)[model.v_slice(joint.name)]


def _quaternion(placement) -> np.ndarray:
    """w, x, y, z."""
    out = np.zeros(4)
    mujoco.mju_mat2Quat(out, np.array(placement.rotation).ravel())
    return out
