"""The data of a run's page: the scene as plain data, arrays as float32 in base64."""

from __future__ import annotations

import base64
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop import __version__
from spanloop.errors import InputError, SpanloopError, SpanloopWarning
from spanloop.math import quaternion
from spanloop.trajectory import report
from spanloop.trajectory.files import labels
from spanloop.view import palette
from spanloop.view.body_shapes import Shape
from spanloop.view.noise import least_force, noise_levels
from spanloop.view.page.meshes import key, packed_meshes
from spanloop.view.scene import Scene, extent_points, matrix, poses, scene
from spanloop.view.window import window

if TYPE_CHECKING:
    from spanloop.trajectory import Trajectory

RATE = 60.0  # frames a second of simulated time, at most
BYTES = 2_600_000  # for all numbers of the motion, before base64 makes a third more of them
INVERSE = "inverse dynamics"  # a setting of runs that have torques as their result
SHOWN = 6  # curves of a plot at first
MOST = 120  # curves that a plot offers
LABELS = {  # of settings whose names alone do not explain them
    "margin": "margin to singular positions (1 far, 0 singular)",
    "step_error": "error of all steps, of the largest speed",
    "closures": "loops",
}


def page_data(run: Trajectory, title: str, folder: str | Path | None = None) -> dict[str, Any]:
    """Everything the page shows, ready for JSON.

    title: the page's title. folder: where the model's mesh files are.
    """
    if run.batch:
        raise InputError(f"this is a batch of {len(run.outcomes)} runs; a page shows one of them: run[0].page(...)")
    seen = scene(run.model, run.q[0], folder)
    notes = [*seen.notes]
    few = thinned(run, _frames(run, seen))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SpanloopWarning)
        at = poses(few.robot, few.q)
        groups = _groups(few, notes)
        arrows = _arrows(few, notes)
        audit = _audit(run, notes)
    notes += dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, SpanloopWarning))
    shown = window(seen, extent_points(seen, at))
    return {
        "title": title,
        "version": __version__,
        "size": seen.size,
        "ground": shown.ground,
        "low": shown.low.tolist(),
        "high": shown.high.tolist(),
        "follow": None if shown.follow is None else packed(shown.follow),
        "colors": {"closed": palette.CLOSED, "open": palette.OPEN, "force": palette.FORCE, "trail": palette.TRAIL},
        **_seen(seen),
        "times": packed(few.times),
        "poses": packed(np.concatenate([quaternion.of_rotations(at[..., :3, :3]), at[..., :3, 3]], axis=-1)),
        "groups": groups,
        "noise": noise_levels(run.model, seen.size),
        "arrows": arrows,
        "least_force": least_force(run.model),
        "headline": report.headline(run).splitlines()[0],
        "outcome": run.outcome.sentence,
        "audit": audit,
        "settings": [
            [LABELS.get(name, name), f"{x:g}" if isinstance(x, float) else str(x)] for name, x in run.settings.items()
        ],
        "notes": list(dict.fromkeys(notes)),
        "lost": list(seen.lost),
    }


def packed(values: np.ndarray) -> str:
    """Numbers as little-endian float32 in base64."""
    return base64.b64encode(np.ascontiguousarray(values, "<f4").tobytes()).decode()


def thinned(run: Trajectory, frames: int) -> Trajectory:
    """The run with about `frames` samples at most, evenly chosen; each segment keeps its first and last sample."""
    every = max(1, -(-len(run) // max(frames, 2)))
    if every == 1:
        return run
    kept, start, segments = [], 0, []
    for s in run.segments:
        which = np.unique(np.append(np.arange(0, len(s), every), len(s) - 1))
        segments.append(replace(s.mapped(lambda x, k=which: x[k]), times=s.times[which], held=False))
        kept.append(start + which)
        start += len(s)
    rows = np.concatenate(kept)
    forces = {name: six[rows] for name, six in run.forces.items()} if run.forces else None
    return run.changed(segments=tuple(segments), forces=forces)


def _frames(run: Trajectory, seen: Scene) -> int:
    """How many frames to keep: RATE frames a second, limited by the size of the file."""
    numbers = 7 * len(seen.bodies) + run.model.nq + 2 * run.model.nv + 8 * len(seen.closures) + 4
    return int(min(RATE * run.duration + 1, BYTES / (4 * numbers)))


def _seen(seen: Scene) -> dict[str, Any]:
    meshes, numbers = packed_meshes(seen)
    return {
        "meshes": meshes,
        "bodies": [
            {
                "name": b.name,
                "color": b.color,
                "mass": b.mass,
                "shapes": [_shape(s, numbers) for s in b.shapes],
                "inertia": _shape(b.inertia, numbers) if b.inertia else None,
            }
            for b in seen.bodies
        ],
        "joints": [
            {
                "name": j.name,
                "kind": j.kind,
                "body": j.body,
                "parent": j.parent,
                "axis": j.axis,
                "at": _flat(j.placement),
                "mark": j.mark,
            }
            for j in seen.joints
        ],
        "closures": [
            {
                "name": c.name,
                "kind": c.kind,
                "a": c.a,
                "b": c.b,
                "at_a": _flat(c.placement_a),
                "at_b": _flat(c.placement_b),
                "mark": c.mark,
            }
            for c in seen.closures
        ],
        "frames": [{"name": f.name, "body": f.body, "at": _flat(f.placement)} for f in seen.frames],
    }


def _shape(shape: Shape, meshes: dict[tuple[str, tuple[float, ...]], int]) -> dict[str, Any]:
    out: dict[str, Any] = {"kind": shape.kind, "size": list(shape.size), "at": _flat(shape.placement)}
    if shape.color:
        out["color"] = shape.color
    return {**out, "mesh": meshes[key(shape)]} if shape.mesh is not None else out


def _flat(placement) -> list[float]:
    """A placement as 16 numbers, column by column, as WebGL expects them."""
    return [round(float(x), 9) for x in matrix(placement).T.ravel()]


def _groups(run: Trajectory, notes: list[str]) -> list[dict[str, Any]]:
    """The plots: names and values (n, curves) of each."""
    model = run.model
    names = [labels.joined(*x) for x in labels.coordinates(model)]
    dof_names = [labels.joined(*x) for x in labels.dofs(model)]
    energy = run.energy.copy()
    energy[:, 1] -= energy[0, 1]
    energy = np.column_stack([energy, energy.sum(axis=1)])
    out = [_group("energy", "Energy, potential relative to the start", "J", ["kinetic", "potential", "sum"], energy)]
    if model.loops:
        errors = np.column_stack([np.abs(run[x.name].error).max(axis=-1, initial=0.0) for x in model.loops])
        out.append(_group("closures", "Closure errors", "m or rad", [x.name for x in model.loops], errors, True))
        try:
            found = run.reactions()
            sizes = np.column_stack([np.linalg.norm(found[x.name][:, 3:], axis=-1) for x in model.loops])
            out.append(_group("forces", "Forces at the loops", "N", [x.name for x in model.loops], sizes))
        except SpanloopError as error:
            notes.append(str(error))
    out.append(_group("q", "Coordinates", "rad, m", names, run.q))
    out.append(_group("v", "Velocities", "rad/s, m/s", dof_names, run.v))
    acting = np.flatnonzero(np.nan_to_num(run.tau).any(axis=0))
    if len(acting):
        out.append(
            _group(
                "tau", "Torques and forces at the joints", "N m, N", [dof_names[k] for k in acting], run.tau[:, acting]
            )
        )
    if INVERSE in run.settings:  # what was asked for comes first
        out.sort(key=lambda g: g["key"] != "tau")
    return [g for g in out if g["names"]]


def _group(key: str, title: str, unit: str, names: list[str], values: np.ndarray, log: bool = False) -> dict[str, Any]:
    order = _most_varying(values)[:SHOWN] if len(names) > SHOWN else list(range(len(names)))
    shown = sorted(k for k in order if k < MOST)
    kept = values[:, :MOST]
    return {
        "key": key,
        "title": title,
        "unit": unit,
        "names": names[:MOST],
        "shown": shown,
        "log": log,
        "values": packed(kept),
    }


def _most_varying(values: np.ndarray) -> list[int]:
    """Columns ordered by their range, the largest first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column without a number
        spread = np.nanmax(values, axis=0) - np.nanmin(values, axis=0)
    return np.argsort(-np.nan_to_num(spread), kind="stable").tolist()


def _arrows(run: Trajectory, notes: list[str]) -> list[dict[str, Any]]:
    """Forces to draw: of each loop on its body b, and what pushes on bodies; (n, 6) [torque; force] in world axes."""
    number, out = run.model.body_number, []
    try:
        found = run.reactions() if run.model.loops else {}
        out += [
            {"name": x.name, "body": number[x.b], "at": _flat(x.placement_b), "values": packed(found[x.name])}
            for x in run.model.loops
        ]
    except SpanloopError as error:
        notes.append(str(error))
    here = [1.0, 0, 0, 0, 0, 1.0, 0, 0, 0, 0, 1.0, 0, 0, 0, 0, 1.0]
    for name, six in (run.forces or {}).items():
        out.append({"name": f"force on {name}", "body": number[name], "at": here, "values": packed(six)})
    return out


def _audit(run: Trajectory, notes: list[str]) -> dict[str, Any] | None:
    try:
        found = run.audit()
    except SpanloopError as error:
        notes.append(f"No audit: {error}")
        return None
    rows = [{"name": f.name, "verdict": f.verdict, "sentence": f.sentence} for f in found.findings]
    return {"findings": rows, "verdict": str(found).splitlines()[-1]}
