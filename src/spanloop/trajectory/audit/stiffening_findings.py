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
from spanloop.model.flexible_bodies.pieces import FlexibleParts, flexible_bodies
from spanloop.trajectory.audit.findings import NOT_WELL, Finding, verdict_on

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

_SAMPLES = 50  # at which loads are computed


def stiffening_findings(run: Trajectory) -> Iterator[Finding]:
    """The findings on a run of one model; none where every body stiffens under load."""
    found = flexible_bodies(run.model.bodies, run.model.joints).values()
    soft = [body for body in found if body.elements is not None and not body.elements.has_spin]
    if soft:
        yield _spin(run, soft)
    loaded = [body for body in found if body.elements is not None and body.elements.level < 2 and body.elements.names]
    if loaded:
        yield from _loads(run, loaded)


def _spin(run: Trajectory, bodies: list[FlexibleParts]) -> Finding:
    shares = {}
    for body in bodies:
        omega = run.robot.frame_velocity(run.q, run.v, body.root)[..., :3]
        shares[body.name] = float(np.nanmax(np.linalg.norm(omega, axis=-1)) / body.pieces[0].frequencies.min())
    name, value = max(shares.items(), key=lambda pair: pair[1])
    sentence = (
        f"Body {name!r} spins with up to {value:.2g} of its first frequency, without stiffening (bound {SPIN:g})."
    )
    verdict = verdict_on(value, SPIN, 0.0)
    if verdict == NOT_WELL:
        sentence += f" Its stiffness is wrong by about {119.0 * value**2:.2g} %: give from_matrices stiffening=."
    return Finding("spin", value, SPIN, "1", verdict, sentence)


def _loads(run: Trajectory, bodies: list[FlexibleParts]) -> Iterator[Finding]:
    if run.batch:
        return
    some = run[:: max(1, len(run) // _SAMPLES)]
    try:
        reactions = some.reactions()
    except SpanloopError:  # of states that have none
        return
    worst = (0.0, "", "")
    for body in bodies:
        elements = body.elements
        piece = body.pieces[0]
        turned = some.robot.pose(some.q, piece.body.name)[..., :3, :3]
        for joint in piece.nodes:
            name = next((n for n, x in elements.nodes if x == joint.placement.position), None)  # type: ignore[union-attr]
            if name is None or joint.name not in reactions:
                continue
            along = np.array(joint.placement.position) / np.linalg.norm(joint.placement.position)
            force = np.einsum("...ji,...j->...i", turned, reactions[joint.name][..., 3:]) @ along
            share = float(np.nanmax(np.abs(force)) / elements.buckling_load(name))  # type: ignore[union-attr]
            if share > worst[0]:
                worst = (share, body.name, name)
    value, name, node = worst
    if not name:
        return
    sentence = f"Body {name!r} carries {value:.2g} of the load along it at {node!r} that buckles it (bound {LOAD:g})."
    verdict = verdict_on(value, LOAD, 0.0)
    if verdict == NOT_WELL:
        sentence += " Its stiffness is wrong by about that share without stiffening= of from_matrices."
    yield Finding("loads along", value, LOAD, "1", verdict, sentence)
