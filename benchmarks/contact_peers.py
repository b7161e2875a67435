"""Mechanisms of spanloop on the ground as models of MuJoCo: the same bodies, joints and loops, balls for feet."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np

import spanloop as sl
from spanloop.joints import Spherical
from spanloop.model.files.mjcf.writer import dumps

FLAGS = {"contact": mujoco.mjtDisableBit.mjDSBL_CONTACT, "limit": mujoco.mjtDisableBit.mjDSBL_LIMIT}
STIFF = {"solref": (0.002, 1.0), "solimp": (0.9999, 0.9999, 0.001, 0.5, 2.0)}  # as stiff as steps of 1 ms allow


def on_ground(
    model: sl.Model,
    feet: dict[str, float],
    friction: float,
    h: float,
    *,
    integrator: str = "Euler",
    elliptic: bool = False,
    impratio: float = 1.0,
    noslip: int = 0,
    tolerance: float = 1e-8,
    off: tuple[str, ...] = ("limit",),
    loops: dict[str, tuple[float, ...]] | None = None,
) -> mujoco.MjModel:
    """The model with a ball at each frame of `feet`, of its radius [m], which touches the plane z = 0 alone.

    Pins of plane loops are balls there, of which MuJoCo's constraints (`connect`) hold three rows.

    loops: solref and solimp of the equality constraints that close loops, MuJoCo's own if left out.
    """
    pins = tuple(replace(x, kind=Spherical()) if x.kind.name == "point_on_line" else x for x in model.loops)
    spec = mujoco.MjSpec.from_string(dumps(replace(model, loops=pins)).text)
    spec.option.timestep, spec.option.integrator = h, getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}")
    spec.option.tolerance, spec.option.impratio, spec.option.noslip_iterations = tolerance, impratio, noslip
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC if elliptic else mujoco.mjtCone.mjCONE_PYRAMIDAL
    for name in off:
        spec.option.disableflags |= int(FLAGS[name])
    surface = {"friction": [friction, 0.0, 0.0], "condim": 3}
    plane = mujoco.mjtGeom.mjGEOM_PLANE
    spec.worldbody.add_geom(name="ground", type=plane, size=[0, 0, 1], contype=1, conaffinity=0, **surface)
    for frame, radius in feet.items():
        at = next(f for f in model.frames if f.name == frame)
        ball = {"type": mujoco.mjtGeom.mjGEOM_SPHERE, "size": [radius, 0, 0], "mass": 0.0}
        body = spec.body(at.body)
        body.add_geom(name=frame, pos=at.placement.position, contype=0, conaffinity=1, **ball, **surface)
    for equality in spec.equalities:
        for name, value in (loops or {}).items():
            setattr(equality, name, value)
    return spec.compile()


class Run:
    """A state of MuJoCo that is set and read in spanloop's order."""

    def __init__(self, model: sl.Model, peer: mujoco.MjModel):
        self.order, self.model, self.data = sl.MujocoOrder(model, peer), peer, mujoco.MjData(peer)

    def set(self, q, v) -> None:
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:], self.data.qvel[:] = self.order.q_to(q), self.order.v_to(q, v)

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        q = self.order.q_from(self.data.qpos)
        return q, self.order.v_from(q, self.data.qvel)
