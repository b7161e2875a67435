"""MuJoCo beside a model: the same file in both, and MuJoCo's numbers in our order."""

from __future__ import annotations

import mujoco
import numpy as np

import spanloop as sl
from spanloop.model.files.mjcf.reader import loads


class Peer:
    """A model loaded from MJCF text, its dynamics, and MuJoCo's own model and data of the same text."""

    def __init__(self, text: str):
        self.model = loads(text)
        self.robot = sl.Dynamics(self.model)
        self.theirs = mujoco.MjModel.from_xml_string(text)
        self.theirs.opt.tolerance, self.theirs.opt.iterations = 0.0, 200
        self.data = mujoco.MjData(self.theirs)
        self.order = sl.MujocoOrder(self.model, self.theirs)

    def set(self, q, v, tau=None) -> None:
        """MuJoCo at our state, with our torques applied."""
        self.data.qpos[:] = self.order.q_to(q)
        self.data.qvel[:] = self.order.v_to(q, v)
        self.data.qfrc_applied[:] = 0.0 if tau is None else self.order.tau_to(q, tau)
        mujoco.mj_forward(self.theirs, self.data)

    def mass_matrix(self) -> np.ndarray:
        M = np.zeros((self.theirs.nv, self.theirs.nv))
        try:
            mujoco.mj_fullM(self.theirs, self.data, M)
        except TypeError:  # before MuJoCo 4
            mujoco.mj_fullM(self.theirs, M, self.data.qM)
        return M

    def frame(self, body: str) -> str:
        """Our name of MuJoCo's frame of a body."""
        moved = f"{body}::origin"
        return moved if any(f.name == moved for f in self.model.frames) else body
