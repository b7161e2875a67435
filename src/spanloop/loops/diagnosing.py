"""What a colleague would say of a closed mechanism at a state: closed or not, rank, mobility, what is redundant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spanloop.loops.independent import Independent, freedom_names, independent_freedoms
from spanloop.loops.measuring import Miss, errors, idle, misses, rows_of
from spanloop.loops.parts import Part, parts
from spanloop.loops.robot import Robot, resolution, values
from spanloop.loops.states import one_state
from spanloop.loops.structure import Structure, distance, rank, singular_values, structure
from spanloop.loops.telling import told

CLOSED = 1e-6  # m or rad: a loop with a larger error is not closed (in double precision)
NEAR = 1e-2  # of the distance to singularity in general: what is less is near
_SHARE = 0.1  # of the largest entry: joints with less have no part in a motion


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """A closed mechanism at one state; print it."""

    model: str
    n_loops: int
    n_couplings: int
    n_freedoms: int
    misses: tuple[Miss, ...]  # closure error of every loop, then of every coupling
    tolerance: float  # m or rad: a loop with a larger error is not closed
    n_rows: int
    rank: int  # here
    general_rank: int | None  # None: no closed states were found to tell
    singular_values: np.ndarray  # of the rows at unit length, here
    gap: float  # the smallest singular value that counts, over the next
    redundant: tuple[str, ...]  # names of rows that depend on the others wherever the loops are closed
    distance: float  # to singularity: smallest singular value of the rows that matter, beside the largest
    general_distance: float
    direction: tuple[str, ...]  # freedoms that move in the motion that is gained, or nearly so
    idle: tuple[str, ...]  # loops between bodies that no joint moves against each other
    parts: tuple[Part, ...]
    independent: Independent

    @property
    def open_loops(self) -> tuple[Miss, ...]:
        """Loops and couplings that are not closed."""
        return tuple(miss for miss in self.misses if not miss.size <= self.tolerance)

    @property
    def closed(self) -> bool:
        return not self.open_loops

    @property
    def mobility(self) -> int:
        """Freedoms that the loops leave here."""
        return self.n_freedoms - self.rank

    @property
    def general_mobility(self) -> int | None:
        return None if self.general_rank is None else self.n_freedoms - self.general_rank

    @property
    def singular(self) -> bool:
        """Is the rank here below the general one?"""
        return self.general_rank is not None and self.rank < self.general_rank

    @property
    def near_singular(self) -> bool:
        return not self.singular and self.distance < NEAR * self.general_distance

    def __str__(self) -> str:
        return told(self)


def diagnose(robot: Robot, q) -> Diagnosis:
    """The loops at one state q (nq,)."""
    model = robot.model
    q = one_state("diagnose", robot, q)
    rows, J = structure(robot, q), values(robot, "closure_jacobian", q)
    kept = rows.scaled(J)
    s = singular_values(kept)
    r, all_values = rank(s), singular_values(J / rows.lengths[:, None])
    names = rows_of(model)
    return Diagnosis(
        model=model.name,
        n_loops=len(model.loops),
        n_couplings=len(model.couplings),
        n_freedoms=model.nv,
        misses=misses(model, errors(robot, q[None])[0]),
        tolerance=max(CLOSED, 100.0 * resolution(robot)),
        n_rows=len(names),
        rank=r,
        general_rank=rows.rank if rows.general else None,
        singular_values=all_values,
        gap=_gap(all_values, r),
        redundant=tuple(names[k].name for k in rows.redundant),
        distance=distance(s, rows.rank),
        general_distance=rows.distance,
        direction=_direction(robot, kept, rows),
        idle=idle(model),
        parts=parts(model, kept),
        independent=independent_freedoms(robot, q),
    )


def _gap(s: np.ndarray, r: int) -> float:
    """How much larger the r-th singular value is than the next; infinite where there is none."""
    following = s[r] if r < len(s) else 0.0
    return float(s[r - 1] / following) if r and following > 0.0 else np.inf


def _direction(robot: Robot, kept: np.ndarray, rows: Structure) -> tuple[str, ...]:
    """Freedoms in the motion that the rows resist least, beyond the mobility in general."""
    if not rows.rank:
        return ()
    motion = np.abs(np.linalg.svd(kept)[2][rows.rank - 1])
    order = [int(k) for k in np.argsort(-motion) if motion[k] > _SHARE * motion.max()]
    names = freedom_names(robot.model)
    return tuple(names[k] for k in order)
