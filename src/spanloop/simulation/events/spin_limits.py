"""Spins that a body from finite elements cannot follow without geometric stiffening: a warning, and a refusal.

Judged at the start of a run and at its samples: the angular velocity of the body's root over its first frequency.
"""

from __future__ import annotations

import warnings

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.errors import SpanloopWarning, UnsupportedError
from spanloop.flexible.matrices.spin import SPIN, TOO_FAST
from spanloop.model import Model
from spanloop.model.flexible_bodies.pieces import FlexibleParts, flexible_bodies
from spanloop.trajectory import Trajectory


def soft_bodies(model: Model) -> list[FlexibleParts]:
    """The bodies from finite elements that do not stiffen with their spin."""
    found = flexible_bodies(model.bodies, model.joints).values()
    return [body for body in found if body.elements is not None and not body.elements.has_spin]


def spin_share(robot: Dynamics, body: FlexibleParts, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Angular velocity (...) of a body's root, over its first frequency."""
    omega = robot.frame_velocity(q, v, body.root)[..., :3]
    return np.asarray(np.linalg.norm(omega, axis=-1) / body.pieces[0].frequencies.min())


def refuse_fast_start(robot: Dynamics, q: np.ndarray, v: np.ndarray) -> None:
    """Raise UnsupportedError for a start that spins too fast."""
    for body in soft_bodies(robot.model):
        share = float(np.nanmax(spin_share(robot, body, q, v), initial=0.0))
        if share > TOO_FAST and not body.elements.any_spin:  # type: ignore[union-attr]
            raise UnsupportedError(f"simulate: {_words(body, share, 'at the start')}")


def checked_spin(run: Trajectory) -> Trajectory:
    """The run; raises UnsupportedError where a body spins too fast for its data, and warns where it is near that."""
    for piece in run.pieces:
        soft = soft_bodies(piece.model)
        if not soft:
            continue
        robot = piece.robot if run.parameters is None else Dynamics(piece.model)  # with the model's own lengths
        for body in soft:
            shares = np.nan_to_num(spin_share(robot, body, piece.q, piece.v))
            if not shares.size:
                continue
            at = np.unravel_index(int(np.argmax(shares)), shares.shape)
            share, when = float(shares[at]), f"at {piece.times[at[-1]]:.4g} s"
            if share > TOO_FAST and not body.elements.any_spin:  # type: ignore[union-attr]
                first = int(np.argmax((shares > TOO_FAST).reshape(-1, shares.shape[-1]).any(axis=0)))
                late = f"; the run is sound before {piece.times[first]:.4g} s"
                raise UnsupportedError(f"simulate: {_words(body, share, when)}{late}")
            if share > SPIN:
                warnings.warn(f"simulate: {_words(body, share, when)}", SpanloopWarning, stacklevel=4)
    return run


def _words(body: FlexibleParts, share: float, when: str) -> str:
    level = body.elements.level  # type: ignore[union-attr]
    wrong = min(119.0 * share**2, 1e3)
    return (
        f"body {body.name!r} spins with {share:.2g} of its first frequency {when}; its finite elements have no "
        f"geometric stiffening for that (level of data {level}), and its stiffness is wrong by about {wrong:.2g} %. "
        "Give sl.flexible.from_matrices stiffening=, or any_spin=True to go on as it is"
    )
