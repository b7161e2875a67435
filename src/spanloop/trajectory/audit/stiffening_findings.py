"""Findings on bodies from finite elements without geometric stiffening: how fast they spin, and loads along them.

| name | value | bound fails because |
|---|---|---|
| spin | angular velocity of the root, of the first frequency with the root held | stiffness is wrong by 1.2 % there |
| loads along | compression or tension along the body, of what buckles it | stiffness is wrong by about this share |
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from spanloop.errors import SpanloopError
from spanloop.flexible.matrices.spin import LOAD, SPIN
from spanloop.model.flexible_bodies.pieces import FlexibleParts
from spanloop.model.flexible_bodies.stiffening_limits import largest_load, loaded_bodies, soft_bodies, spin_share
from spanloop.trajectory.audit.findings import NOT_WELL, Finding, verdict_on

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

_SAMPLES = 50  # at which loads are computed


def stiffening_findings(run: Trajectory) -> Iterator[Finding]:
    """The findings on a run of one model; none where every body stiffens under load."""
    soft = soft_bodies(run.model)
    if soft:
        yield _spin(run, soft)
    if loaded_bodies(run.model):
        yield from _loads(run)


def _spin(run: Trajectory, bodies: list[FlexibleParts]) -> Finding:
    shares = {body.name: float(np.nanmax(spin_share(run.robot, body, run.q, run.v))) for body in bodies}
    name, value = max(shares.items(), key=lambda pair: pair[1])
    sentence = (
        f"Body {name!r} spins with up to {value:.2g} of its first frequency, without stiffening (bound {SPIN:g})."
    )
    verdict = verdict_on(value, SPIN, 0.0)
    if verdict == NOT_WELL:
        sentence += f" Its stiffness is wrong by up to about {119.0 * value**2:.2g} %: give from_matrices stiffening=."
    return Finding("spin", value, SPIN, "1", verdict, sentence)


def loads_along(run: Trajectory, samples: int) -> tuple[float, str, str]:
    """The largest load along a loaded body at some samples of a run, as largest_load has it; none of a batch."""
    if run.batch or not len(run):
        return 0.0, "", ""
    some = run[:: max(1, len(run) // samples)]
    try:
        return largest_load(some.robot, some.q, some.reactions())
    except SpanloopError:  # of states that have none
        return 0.0, "", ""


def _loads(run: Trajectory) -> Iterator[Finding]:
    value, name, node = loads_along(run, _SAMPLES)
    if not name:
        return
    sentence = f"Body {name!r} carries {value:.2g} of the load along it at {node!r} that buckles it (bound {LOAD:g})."
    verdict = verdict_on(value, LOAD, 0.0)
    if verdict == NOT_WELL:
        sentence += " Its stiffness is wrong by about that share without stiffening= of from_matrices."
    yield Finding("loads along", value, LOAD, "1", verdict, sentence)
