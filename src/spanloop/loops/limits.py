"""The limits of joints with one freedom, as arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spanloop.model import Model
from spanloop.model.parts import Joint

_NEAR = 1e-12  # rad or m: this near to a limit is at it


class Limits:
    """Where limited joints stand in q and v, and how far they may go; joints in `fixed` do not move at all."""

    def __init__(self, model: Model, fixed: Sequence[str] = ()):
        self.nv = model.nv
        self.held = np.zeros(model.nv, dtype=bool)
        for name in fixed:
            self.held[model.v_slice(name)] = True
        joints = [j for j in model.joints if _limited(j) and j.name not in fixed]
        self.names = [j.name for j in joints]
        self.in_q = np.array([model.q_slice(j.name).start for j in joints], dtype=int)
        self.in_v = np.array([model.v_slice(j.name).start for j in joints], dtype=int)
        self.lower = np.array([-np.inf if j.lower is None else j.lower[0] for j in joints])
        self.upper = np.array([np.inf if j.upper is None else j.upper[0] for j in joints])

    def within(self, q: np.ndarray) -> np.ndarray:
        """q (n, nq) with joints beyond a limit moved to it."""
        q = np.array(q)
        q[:, self.in_q] = np.clip(q[:, self.in_q], self.lower, self.upper)
        return q

    def room(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest step (n, nv) that every freedom may take from q."""
        down, up = np.full((len(q), self.nv), -np.inf), np.full((len(q), self.nv), np.inf)
        down[:, self.in_v] = self.lower - q[:, self.in_q]
        up[:, self.in_v] = self.upper - q[:, self.in_q]
        down[:, self.held] = up[:, self.held] = 0.0
        return np.where(down > -_NEAR, 0.0, down), np.where(up < _NEAR, 0.0, up)

    def reached(self, q: np.ndarray) -> list[str]:
        """Names of the joints that stand at a limit in one state q (nq,)."""
        x = q[self.in_q]
        at = (x <= self.lower + _NEAR) | (x >= self.upper - _NEAR)
        return [name for name, here in zip(self.names, at, strict=True) if here]


def _limited(joint: Joint) -> bool:
    return joint.kind.nv == joint.kind.nq == 1 and (joint.lower is not None or joint.upper is not None)
