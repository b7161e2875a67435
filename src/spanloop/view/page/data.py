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
from spanloop.model import Model
from spanloop.trajectory import report
from spanloop.trajectory.files import labels
from spanloop.view import palette
from spanloop.view.beams.deflection import curves, nodes
from spanloop.view.beams.segments import segment_count, surface_modes
from spanloop.view.body_shapes import Shape
from spanloop.view.columns import Column, columns, largest_error, models_of
from spanloop.view.contact_forces import ContactForces, contact_forces, peaks, slip_speed
from spanloop.view.moving_scene import MovingScene, moving_scene
from spanloop.view.noise import least_force, noise_levels
from spanloop.view.page.bending import Bending, bending
from spanloop.view.page.meshes import key, packed_meshes
from spanloop.view.scene import Scene, matrix
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
    few = thinned(run, _frames(run))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SpanloopWarning)
        moved = moving_scene(few, folder)
        shown = bending(moved)
        seen = moved.scene
        notes = [*seen.notes, *shown.notes]
        groups = _groups(few, run, seen, notes)
        arrows = _arrows(few, moved, notes)
        touching = contact_forces(run)
        audit = _audit(run, notes)
    notes += dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, SpanloopWarning))
    return {
        "title": title,
        **picture(moved, few.times, shown),
        "touches": _touches(None if touching is None else touching.at(run.times, few.times), seen.size),
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
    }


def picture(moved: MovingScene, times: np.ndarray, bent: Bending) -> dict[str, Any]:
    """What moves in the picture, and the window that shows it, ready for JSON."""
    seen, at = moved.scene, moved.poses
    shown = window(seen, moved.corners())
    return {
        "version": __version__,
        "size": seen.size,
        "ground": shown.ground,
        "low": shown.low.tolist(),
        "high": shown.high.tolist(),
        "follow": None if shown.follow is None else packed(shown.follow),
        "colors": {
            "closed": palette.CLOSED,
            "open": palette.OPEN,
            "force": palette.FORCE,
            "trail": palette.TRAIL,
            "stop": palette.EVENTS["impact"],
            "sticks": palette.STICKS,
            "slips": palette.SLIPS,
        },
        **_seen(moved, bent),
        **_changing(moved),
        "times": packed(times),
        "poses": packed(np.concatenate([quaternion.of_rotations(at[..., :3, :3]), at[..., :3, 3]], axis=-1)),
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


def _frames(run: Trajectory) -> int:
    """How many frames to keep: RATE frames a second, limited by the size of the file."""
    models = (run.model, *models_of(run))
    largest = max(
        7 * (m.n_bodies + segment_count(m) + 1)
        + surface_modes(m)
        + m.nq
        + 2 * m.nv
        + 8 * len(m.loops)
        + 4
        + _of_contacts(m)
        for m in models
    )
    return int(min(RATE * run.duration + 1, BYTES / (4 * largest)))


def _of_contacts(model: Model) -> int:
    """Numbers of a frame that contacts take: arrows and three plots."""
    return 11 * sum(c.n_points for c in model.contacts)


def _changing(moved: MovingScene) -> dict[str, Any]:
    """What differs from segment to segment, as numbers of segments for each part (None: all), and the events."""
    starts = np.searchsorted(moved.segments, np.arange(len(moved.present)))
    return {
        "segments": starts.tolist(),
        "present": _segments(moved.present),
        "closed": _segments(moved.closed),
        "broken": _segments(moved.broken),
        "holds": [{"name": x.name, "joint": x.joint, "is_stop": x.is_stop} for x in moved.holds],
        "held": _segments(moved.held),
        "events": [
            {
                "time": e.time,
                "kind": e.kind,
                "name": e.name,
                "impulse": e.impulse,
                "lost": e.energy_lost if np.isfinite(e.energy_lost) else None,
                "color": e.color,
                "body": e.body,
                "at": _flat(e.placement),
            }
            for e in moved.events
        ],
    }


def _segments(flags: np.ndarray) -> list[list[int] | None]:
    """For each column of flags (s, k) the rows in which it is set; None for all."""
    return [None if column.all() else np.flatnonzero(column).tolist() for column in flags.T]


def _seen(moved: MovingScene, bent: Bending) -> dict[str, Any]:
    seen, eta = bent.scene, moved.bending
    patches = [(p, p.shapes(str(k))) for k, p in enumerate(seen.patches)]
    others = [s for _, shapes in patches for s in shapes] + [s for b in seen.bodies for s in b.contacts]
    meshes, numbers = packed_meshes(seen, others, bent.mixes)
    return {
        "meshes": meshes,
        "checkered": any(p.is_floor for p in seen.patches),
        "patches": [
            {"body": p.body, "at": _flat(p.placement), "shapes": [_shape(s, numbers) for s in shapes]}
            for p, shapes in patches
        ],
        "bodies": [
            {
                "name": b.name,
                "color": b.color,
                "mass": b.mass,
                "shapes": [_shape(s, numbers) for s in b.shapes],
                "inertia": _shape(b.inertia, numbers) if b.inertia else None,
                "contacts": [_shape(s, numbers) for s in b.contacts],
                "segment_of": b.segment_of,
                **({"modes": eta[k].shape[1], "eta": packed(eta[k])} if k in eta else {}),
            }
            for k, b in enumerate(seen.bodies)
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


def _groups(run: Trajectory, whole: Trajectory, seen: Scene, notes: list[str]) -> list[dict[str, Any]]:
    """The plots: names and values (n, curves) of each. whole: the run with all its samples."""
    energy = run.energy.copy()
    energy[:, 1] -= energy[0, 1]
    energy = np.column_stack([energy, energy.sum(axis=1)])
    out = [_group("energy", "Energy, potential relative to the start", "J", ["kinetic", "potential", "sum"], energy)]
    loops = list(dict.fromkeys(c.name for c in seen.closures))
    if loops:
        out.append(closure_group(run, loops))
        try:
            found = run.reactions()
            sizes = np.column_stack([np.linalg.norm(found[name][:, 3:], axis=-1) for name in loops])
            out.append(_group("forces", "Forces at the loops", "N", loops, sizes))
        except SpanloopError as error:
            notes.append(str(error))
    out += _contact_groups(run, whole)
    bent = curves(run, list(dict.fromkeys(name for m in models_of(run) for name in nodes(m))))
    if bent:
        names, values = zip(*bent, strict=True)
        out.append(_group("deflection", "Deflection of nodes", "m", list(names), np.column_stack(values)))
    q = columns(run, "q", labels.coordinates, labels.coordinate_units)
    v = columns(run, "v", labels.dofs, labels.dof_units)
    tau = [c for c in columns(run, "tau", labels.dofs, labels.torque_units) if np.nan_to_num(c.values).any()]
    out.append(_column_group("q", "Coordinates", "rad, m", q))
    out.append(_column_group("v", "Velocities", "rad/s, m/s", v))
    out.append(_column_group("tau", "Torques and forces at the joints", "N m, N", tau))
    if INVERSE in run.settings:  # what was asked for comes first
        out.sort(key=lambda g: g["key"] != "tau")
    return [g for g in out if g["names"]]


def closure_group(run: Trajectory, loops: list[str]) -> dict[str, Any]:
    """The plot of the closure errors of loops, which also colours them in the picture."""
    errors = np.column_stack([largest_error(run, name) for name in loops])
    return _group("closures", "Closure errors", "m or rad", loops, errors, True)


def _contact_groups(run: Trajectory, whole: Trajectory) -> list[dict[str, Any]]:
    """Normal forces, gaps and slip of contacts; of the forces of the whole run between two samples the largest."""
    if all(s.contact_forces is None for s in run.segments):
        return []
    found = list(run.contacts.values())
    forces = [peaks(x.normal_force, whole.times, run.times) for x in whole.contacts.values()]
    quantities = (
        ("normal_forces", "Normal forces of contacts", "N", forces),
        ("gaps", "Gaps", "m", [x.gap for x in found]),
        ("slip", "Speed of slip while touching", "m/s", [slip_speed(x) for x in found]),
    )
    names = [x.name for x in found]
    return [_group(key, title, unit, names, np.column_stack(x)) for key, title, unit, x in quantities]


def _column_group(key: str, title: str, unit: str, found: list[Column]) -> dict[str, Any]:
    values = np.column_stack([c.values for c in found]) if found else np.zeros((0, 0))
    return _group(key, title, unit, [c.name for c in found], values)


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


def _arrows(run: Trajectory, moved: MovingScene, notes: list[str]) -> list[dict[str, Any]]:
    """Forces to draw: of each loop on its body b, and what pushes on bodies; (n, 6) [torque; force] in world axes."""
    out = []
    try:
        found = run.reactions() if moved.scene.closures else {}
        for k, c in enumerate(moved.scene.closures):
            six = np.where(moved.closed[moved.segments, k, None], found[c.name], 0.0)
            out.append({"name": c.name, "body": c.b, "at": _flat(c.placement_b), "values": packed(six)})
    except SpanloopError as error:
        notes.append(str(error))
    number = {b.name: k for k, b in enumerate(moved.scene.bodies) if b.segment_of is None}
    here = [1.0, 0, 0, 0, 0, 1.0, 0, 0, 0, 0, 1.0, 0, 0, 0, 0, 1.0]
    for name, six in (run.forces or {}).items():
        out.append({"name": f"force on {name}", "body": number[name], "at": here, "values": packed(six)})
    return out


def _touches(found: ContactForces | None, size: float) -> dict[str, Any]:
    """Contact points: names, and (n, points, 8): place and arrow [m], force [N], state."""
    if found is None:
        return {"names": [], "values": ""}
    sizes = np.linalg.norm(found.forces, axis=-1, keepdims=True)
    values = np.concatenate([found.points, found.arrows(size), sizes, found.states[..., None]], axis=-1)
    return {"names": list(found.names), "values": packed(values)}


def _audit(run: Trajectory, notes: list[str]) -> dict[str, Any] | None:
    try:
        found = run.audit()
    except SpanloopError as error:
        notes.append(f"No audit: {error}")
        return None
    rows = [{"name": f.name, "verdict": f.verdict, "sentence": f.sentence} for f in found.findings]
    return {"findings": rows, "verdict": str(found).splitlines()[-1]}
