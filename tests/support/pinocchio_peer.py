"""A model of ours as a model of Pinocchio, joints in our order (its mass matrix needs depth first)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin

from spanloop.joints import Planar, Universal
from spanloop.model.orders.pinocchio import PinocchioOrder

_ALIGNED = {
    ("revolute", (1.0, 0.0, 0.0)): pin.JointModelRX,
    ("revolute", (0.0, 1.0, 0.0)): pin.JointModelRY,
    ("revolute", (0.0, 0.0, 1.0)): pin.JointModelRZ,
    ("prismatic", (1.0, 0.0, 0.0)): pin.JointModelPX,
    ("prismatic", (0.0, 1.0, 0.0)): pin.JointModelPY,
    ("prismatic", (0.0, 0.0, 1.0)): pin.JointModelPZ,
}


def _cylindrical(kind):
    both = pin.JointModelComposite()
    both.addJoint(pin.JointModelRevoluteUnaligned(np.array(kind.axis)), pin.SE3.Identity())
    both.addJoint(pin.JointModelPrismaticUnaligned(np.array(kind.axis)), pin.SE3.Identity())
    return both


_KINDS = {
    "revolute": lambda k: pin.JointModelRevoluteUnaligned(np.array(k.axis)),
    "prismatic": lambda k: pin.JointModelPrismaticUnaligned(np.array(k.axis)),
    "helical": lambda k: pin.JointModelHelicalUnaligned(np.array(k.axis), k.pitch),
    "cylindrical": _cylindrical,
    "universal": lambda k: pin.JointModelUniversal(np.array(k.axis), np.array(k.second_axis)),
    "spherical": lambda k: pin.JointModelSpherical(),
    "planar": lambda k: pin.JointModelPlanar(),
    "free": lambda k: pin.JointModelFreeFlyer(),
}
KINDS = (*_KINDS, "fixed")


def with_known_kinds(model):
    """The model with kinds as Pinocchio has them: planar joints on z, universal joints square."""
    return replace(model, joints=tuple(replace(j, kind=_known(j.kind)) for j in model.joints))


def _known(kind):
    if kind.name == "planar":
        return Planar()
    if kind.name == "universal":
        a, b = np.array(kind.axis), np.array(kind.second_axis)
        b = b - (a @ b) * a
        b = b / np.linalg.norm(b)
        return Universal(kind.axis, tuple((b - (a @ b) * a).tolist()))
    return kind


class Peer:
    """Pinocchio's model of ours, with conversions of states and answers."""

    def __init__(self, model):
        self.ours = model
        self.model = self._built(model)
        self.model.gravity = pin.Motion(np.array(model.gravity), np.zeros(3))
        self.order = PinocchioOrder(model, list(self.model.names), list(self.model.nqs))
        armature = np.array([x for j in model.joints for x in j.armature], dtype=float)
        self.model.armature = self.order.v_to(armature)
        self.data = self.model.createData()
        self._permutation = self.order.v_to(np.arange(model.nv)).astype(int)

    def _built(self, model):
        peer = pin.Model()
        self.place = {"world": (0, pin.SE3.Identity())}
        for j in model.joints:
            number, inside = self.place[j.parent]
            here = inside * pin.SE3(np.array(j.placement.rotation), np.array(j.placement.position))
            if j.kind.nv:
                number = peer.addJoint(number, _joint(j.kind), here, j.name)
                here = pin.SE3.Identity()
            i = model.body(j.child).inertia
            inertia = pin.Inertia(i.mass, np.array(i.center), np.array(i.matrix()))
            peer.appendBodyToJoint(number, inertia, here)
            self.place[j.child] = (number, here)
        return peer

    # ---- answers in our order

    def forward_dynamics(self, q, v, tau, forces=None):
        args = (self.order.q_to(q), self.order.v_to(v), self.order.v_to(tau))
        loads = (self._loads(q, forces),) if forces else ()
        return self.order.v_from(pin.aba(self.model, self.data, *args, *loads))

    def inverse_dynamics(self, q, v, a, forces=None):
        args = (self.order.q_to(q), self.order.v_to(v), self.order.v_to(a))
        loads = (self._loads(q, forces),) if forces else ()
        return self.order.v_from(pin.rnea(self.model, self.data, *args, *loads))

    def bias(self, q, v):
        return self.order.v_from(pin.nle(self.model, self.data, self.order.q_to(q), self.order.v_to(v)))

    def gravity(self, q):
        return self.order.v_from(pin.computeGeneralizedGravity(self.model, self.data, self.order.q_to(q)))

    def mass_matrix(self, q):
        M = np.array(pin.crba(self.model, self.data, self.order.q_to(q)))
        return self._square(np.triu(M) + np.triu(M, 1).T)

    def mass_matrix_inverse(self, q):
        M = np.array(pin.computeMinverse(self.model, self.data, self.order.q_to(q)))
        return self._square(np.triu(M) + np.triu(M, 1).T)

    def energy(self, q, v):
        q, v = self.order.q_to(q), self.order.v_to(v)
        bare = self.model.copy()  # its kinetic energy has the armature of some kinds of joint only
        bare.armature = np.zeros(bare.nv)
        kinetic = pin.computeKineticEnergy(bare, bare.createData(), q, v) + 0.5 * self.model.armature @ (v * v)
        return np.array((kinetic, pin.computePotentialEnergy(self.model, self.data, q)))

    def center_of_mass(self, q):
        return np.array(pin.centerOfMass(self.model, self.data, self.order.q_to(q)))

    def momentum(self, q, v):
        h = pin.computeCentroidalMomentum(self.model, self.data, self.order.q_to(q), self.order.v_to(v))
        return np.concatenate((h.angular, h.linear))

    def center_of_mass_jacobian(self, q):
        return self._columns(np.array(pin.jacobianCenterOfMass(self.model, self.data, self.order.q_to(q))))

    def centroidal_momentum_matrix(self, q, v):
        A = np.reshape(pin.ccrba(self.model, self.data, self.order.q_to(q), self.order.v_to(v)), (6, -1))
        return self._columns(np.vstack((A[3:], A[:3])))

    def centroidal_momentum_bias(self, q, v):
        """Ȧ v as the rate of momentum at a = 0; dccrba leaves out the rates of the axes of universal joints."""
        still = np.zeros(self.model.nv)
        h = pin.computeCentroidalMomentumTimeVariation(
            self.model, self.data, self.order.q_to(q), self.order.v_to(v), still
        )
        return np.concatenate((h.angular, h.linear))

    def frame_motion(self, q, v, a, frame):
        """Velocity, classical and spatial acceleration in world axes, and the rotation of the frame."""
        number, here = self._frame(frame)
        if number == 0:
            return np.zeros(6), np.zeros(6), np.zeros(6), here.rotation
        q, v, a = self.order.q_to(q), self.order.v_to(v), self.order.v_to(a)
        pin.forwardKinematics(self.model, self.data, q, v, a)
        R = (self.data.oMi[number] * here).rotation
        moved, rate = here.actInv(self.data.v[number]), here.actInv(self.data.a[number])
        classical = rate.linear + np.cross(moved.angular, moved.linear)
        pairs = (moved.angular, moved.linear), (rate.angular, classical), (rate.angular, rate.linear)
        return *(np.concatenate((R @ x, R @ y)) for x, y in pairs), R

    def integrate(self, q, delta):
        return self.order.q_from(pin.integrate(self.model, self.order.q_to(q), self.order.v_to(delta)))

    def difference(self, start, q):
        return self.order.v_from(pin.difference(self.model, self.order.q_to(start), self.order.q_to(q)))

    def pose(self, q, frame):
        pin.forwardKinematics(self.model, self.data, self.order.q_to(q))
        number, here = self._frame(frame)
        return (self.data.oMi[number] * here).homogeneous

    def jacobian(self, q, frame):
        number, here = self._frame(frame)
        pin.computeJointJacobians(self.model, self.data, self.order.q_to(q))
        X = self.data.oMi[number] * here
        J = pin.getJointJacobian(self.model, self.data, number, pin.ReferenceFrame.WORLD)
        to_origin = pin.SE3(np.eye(3), X.translation).toActionMatrixInverse()
        J = to_origin @ np.reshape(J, (6, -1))  # of one freedom it comes flat
        return self._columns(np.vstack((J[3:], J[:3])))

    def jacobian_bias(self, q, v, frame):
        """Classical acceleration at a = 0."""
        number, here = self._frame(frame)
        if number == 0:
            return np.zeros(6)
        q, v = self.order.q_to(q), self.order.v_to(v)
        pin.forwardKinematics(self.model, self.data, q, v, np.zeros(self.model.nv))
        X = self.data.oMi[number]
        moved, rate = here.actInv(self.data.v[number]), here.actInv(self.data.a[number])
        linear = rate.linear + np.cross(moved.angular, moved.linear)
        R = (X * here).rotation
        return np.concatenate((R @ rate.angular, R @ linear))

    # ---- inside

    def _frame(self, name):
        frame = self.ours.frame(name)
        number, here = self.place[frame.body]
        return number, here * pin.SE3(np.array(frame.placement.rotation), np.array(frame.placement.position))

    def _loads(self, q, forces):
        """Our forces at body origins in world axes as Pinocchio's at joint frames in joint axes."""
        pin.forwardKinematics(self.model, self.data, self.order.q_to(q))
        loads = pin.StdVec_Force()
        sums = [pin.Force.Zero() for _ in range(self.model.njoints)]
        for name, f in forces.items():
            number, here = self.place[name]
            X = self.data.oMi[number]
            f = np.asarray(f)
            local = pin.Force(X.rotation.T @ f[3:], X.rotation.T @ f[:3])
            sums[number] += pin.SE3(np.eye(3), here.translation).act(local)
        loads.extend(sums)
        return loads

    def _square(self, M):
        out = np.empty_like(M)
        out[np.ix_(self._permutation, self._permutation)] = M
        return out

    def _columns(self, J):
        J = np.reshape(J, (len(J), -1))  # of one freedom it comes flat
        out = np.empty_like(J)
        out[:, self._permutation] = J
        return out


def _joint(kind):
    aligned = _ALIGNED.get((kind.name, tuple(getattr(kind, "axis", ()))))
    return aligned() if aligned else _KINDS[kind.name](kind)
