"""The papers' general joint: any motion space φ, constant in the child's axes, with its constraint space φᶜ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spanloop.errors import ModelError, UnsupportedError
from spanloop.joints.kind import JointKind
from spanloop.math import pose, quaternion
from spanloop.math.spatial import Force, Motion, Transform, combined
from spanloop.math.vector3 import subtract, times

Columns = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class General(JointKind):
    """q: relative pose (w, x, y, z, px, py, pz); v: nv rates, the relative twist being φ v.

    motion (nv, 6): the columns of φ, one a row; constraint (6 − nv, 6): those of φᶜ, found if not given.
    The rates need not come from coordinates, so two poses have no `difference`. [Lilly & Orin, section 2]
    """

    motion: Columns = ()
    constraint: Columns = ()

    name = "general"
    symmetric_space = False
    nq = 7
    takes_springs = False  # its rates need not come from coordinates

    def __post_init__(self):
        try:
            phi = np.array(self.motion, dtype=float).reshape(-1, 6)
            given = np.array(self.constraint, dtype=float).reshape(-1, 6)
        except ValueError:
            raise ModelError("general joint: motion and constraint space need six numbers a column") from None
        n = len(phi)
        if not 1 <= n <= 6 or not np.isfinite(phi).all() or np.linalg.matrix_rank(phi, tol=1e-9) < n:
            raise ModelError(
                f"general joint: the motion space has {n} columns of rank "
                f"{np.linalg.matrix_rank(phi, tol=1e-9) if phi.size and np.isfinite(phi).all() else '?'}; "
                "expected 1 to 6 independent finite columns of six numbers, angular first"
            )
        if not len(given):
            given = np.linalg.svd(phi)[2][n:]
            given[np.abs(given) < 1e-15] = 0.0
        if len(given) != 6 - n or not np.isfinite(given).all() or np.linalg.matrix_rank(given, tol=1e-9) < 6 - n:
            raise ModelError(
                f"general joint: the constraint space has {len(given)} columns; expected {6 - n} independent ones"
            )
        worst = np.abs(given @ phi.T).max() if len(given) else 0.0
        if worst > 1e-12 * np.abs(phi).max():
            raise ModelError(
                "general joint: motion and constraint space are not complementary "
                f"(φᶜᵀφ reaches {worst:.1e}); must be 0"
            )
        object.__setattr__(self, "motion", tuple(tuple(map(float, c)) for c in phi))
        object.__setattr__(self, "constraint", tuple(tuple(map(float, c)) for c in given))

    @property
    def nv(self) -> int:
        return len(self.motion)

    @property
    def units(self):  # type: ignore[override]
        return ("",) * self.nv

    def neutral(self):
        return (*quaternion.IDENTITY, 0.0, 0.0, 0.0)

    def transform(self, q) -> Transform:
        return pose.transform(q)

    def motion_space(self, q):
        return tuple(Motion.of(c) for c in self.motion)

    def constraint_space(self, q):
        return tuple(Force.of(c) for c in self.constraint)

    def closure_error(self, x):
        """None: its rows constrain velocities, and no position need follow."""
        return (None,) * len(self.constraint)

    def bracket(self, v, delta):
        """Refused in motion: the bracket of two columns of φ need not be one."""
        if any(np.any(x) for x in v):
            raise UnsupportedError(
                "a general joint moves: its rates need not come from coordinates, so that displacements from its "
                "motion are no states. Linearise about rest, or use another kind of joint"
            )
        return (0.0,) * self.nv

    def rates(self, q, v):
        return pose.rates(q, combined(self.motion_space(q), v))

    def plus(self, q, delta):
        return pose.moved(q, combined(self.motion_space(q), delta))

    def minus(self, q, start):
        raise UnsupportedError(
            "general joint: two poses have no difference in its rates "
            "(the way between them need not follow its motion space)"
        )

    def unit_parts(self, q):
        return (tuple(q[:4]),)

    def mirrored(self, s):
        return General(*(tuple(_mirrored(s, c) for c in space) for space in (self.motion, self.constraint)))

    def mirrored_q(self, s, q):
        return (*quaternion.mirrored(s, tuple(q[:4])), *times(s, tuple(q[4:])))

    def scaled(self, length):
        """Rates stay as they are; displacements grow, and moments with them."""
        motion = tuple((*c[:3], *(length * x for x in c[3:])) for c in self.motion)
        return General(motion, tuple((*(length * x for x in c[:3]), *c[3:]) for c in self.constraint))

    def lengths(self):
        return (0, 0, 0, 0, 1, 1, 1)

    def describe(self):
        return {"motion": [list(c) for c in self.motion], "constraint": [list(c) for c in self.constraint]}


def _mirrored(s, column):
    """The mirror image of a motion or force: what turns changes its sign."""
    return (*subtract((0.0, 0.0, 0.0), times(s, column[:3])), *times(s, column[3:]))
