"""Motions by MuJoCo and Pinocchio of spanloop's models, from the same numbers.

Samples come back in spanloop's order, so that energy and closures of all are measured by the same functions.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import mujoco
import numpy as np
import pinocchio as pin
from loop_peers import Pinocchio, from_mujoco, specification, to_mujoco
from mujoco import rollout

import spanloop as sl

_OFF = ("CONSTRAINT", "LIMIT", "FRICTIONLOSS", "EQUALITY")
# as stiff as its solver allows at a step of 1 ms
STIFF = {"solref": [0.002, 1.0], "solimp": [0.9999, 0.9999, 0.001, 0.5, 2.0]}


class OpenLoop:
    """A tree for `mujoco.rollout` on the calling thread: RK4, no constraints, a motor for every hinge."""

    def __init__(self, model: sl.Model, h: float):
        self.ours = model
        spec = specification(model.fuse())
        spec.option.integrator, spec.option.timestep = mujoco.mjtIntegrator.mjINT_RK4, h
        for name in _OFF:
            spec.option.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}"))
        for joint in model.joints:
            if joint.kind.name in ("revolute", "prismatic"):
                motor = spec.add_actuator(trntype=mujoco.mjtTrn.mjTRN_JOINT, target=f"{joint.name}.0")
                motor.set_to_motor()
        self.model = spec.compile()
        self.data, self.pool = mujoco.MjData(self.model), rollout.Rollout(nthread=0)

    def state(self, q, v) -> np.ndarray:
        """(n, 1 + nq + nv): time, then the state."""
        q, v = to_mujoco(self.ours, q, v)
        return np.concatenate((np.zeros((len(q), 1)), q, v), axis=1)

    def arrays(self, q, v, controls) -> tuple:
        """Model, data, start, controls and outputs of a call without checks and allocations."""
        n, steps = controls.shape[:2]
        start = self.state(q, v)
        out = np.zeros((n, steps, start.shape[1]))
        return [self.model] * n, [self.data], start, np.ascontiguousarray(controls), out, np.zeros((n, steps, 0))

    def run(self, models, data, start, controls, out, sensors) -> np.ndarray:
        self.pool.rollout(
            models, data, start, controls, skip_checks=True, nstep=controls.shape[1], state=out, sensordata=sensors
        )
        return out

    def samples(self, out) -> tuple[np.ndarray, np.ndarray]:
        nq = self.model.nq
        return from_mujoco(self.ours, out[..., 1 : 1 + nq], out[..., 1 + nq :])


@dataclass(frozen=True)
class Motion:
    """Samples q (n, nq), v (n, nv) in spanloop's order, and the processor time of a step [s]."""

    q: np.ndarray
    v: np.ndarray
    step_time: float


def soft(model: sl.Model, q, v, duration: float, h: float, **closures) -> Motion:
    """MuJoCo's RK4 with its own closures; solref, solimp: how soft they are."""
    spec = specification(model)
    spec.option.integrator, spec.option.timestep = mujoco.mjtIntegrator.mjINT_RK4, h
    for equality in spec.equalities:
        for name, value in closures.items():
            setattr(equality, name, value)
    m = spec.compile()
    d = mujoco.MjData(m)
    d.qpos[:], d.qvel[:] = to_mujoco(model, q, v)
    steps, every = round(duration / h), 20
    seen, spent = [(d.qpos.copy(), d.qvel.copy())], 0.0
    for _ in range(steps // every):
        began = time.thread_time()
        mujoco.mj_step(m, d, every)
        spent += time.thread_time() - began
        seen.append((d.qpos.copy(), d.qvel.copy()))
    qs, vs = (np.array(x) for x in zip(*seen, strict=True))
    return Motion(*from_mujoco(model, qs, vs), spent / steps)


def fed_back(model: sl.Model, q, v, duration: float, h: float, frequency: float) -> Motion:
    """RK4 in Python on Pinocchio's constraintDynamics, errors pulled back with ω = frequency [rad/s]."""
    peer = Pinocchio(model)
    for contact in peer.contacts:
        contact.m_baumgarte_parameters.Kp, contact.m_baumgarte_parameters.Kd = frequency**2, 2.0 * frequency
    stiffness = peer.order.v_to(np.array([x for j in model.joints for x in j.stiffness]))
    rest = np.zeros(model.nv)
    for joint in model.joints:
        if any(joint.stiffness):
            rest[model.v_slice(joint.name)] = joint.rest
    rest = peer.order.v_to(rest)
    names = peer.names("proximal", q, v, np.zeros(model.nv))
    fixed = (names["contacts"], names["contact_data"], names["settings"])
    m, d, springs = names["model"], names["data"], np.flatnonzero(stiffness)
    places = np.array([m.joints[int(np.searchsorted(m.idx_vs, i, "right")) - 1].idx_q for i in springs], int)
    tau = np.zeros(m.nv)

    def accelerate(q, v):
        tau[springs] = stiffness[springs] * (rest[springs] - q[places])
        return pin.constraintDynamics(m, d, q, v, tau, *fixed).copy()

    x, w = names["q"], names["v"]
    steps, every, half = round(duration / h), 20, 0.5 * h
    seen, spent = [(x, w)], 0.0
    for _ in range(steps // every):
        began = time.thread_time()
        for _ in range(every):
            a1 = accelerate(x, w)
            w2 = w + half * a1
            a2 = accelerate(pin.integrate(m, x, half * w), w2)
            w3 = w + half * a2
            a3 = accelerate(pin.integrate(m, x, half * w2), w3)
            w4 = w + h * a3
            a4 = accelerate(pin.integrate(m, x, h * w3), w4)
            x = pin.integrate(m, x, h / 6.0 * (w + 2.0 * (w2 + w3) + w4))
            w = w + h / 6.0 * (a1 + 2.0 * (a2 + a3) + a4)
        spent += time.thread_time() - began
        seen.append((x, w))
    qs, vs = (np.array(s) for s in zip(*seen, strict=True))
    back = [peer.order.q_from(s) for s in qs], [peer.order.v_from(s) for s in vs]
    return Motion(np.array(back[0]), np.array(back[1]), spent / steps)
