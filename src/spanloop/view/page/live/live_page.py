"""The page of a mechanism that runs in it: `write_live` for a model alone, `live_part_of_run` beside a recorded run."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, SpanloopWarning, nearest
from spanloop.model import Model
from spanloop.model.files.file_io import write_file
from spanloop.simulation.controllers import takes_inputs
from spanloop.trajectory import EndReason, Outcome, Segment, Trajectory
from spanloop.trajectory.topologies import has_same_joints
from spanloop.view.body_shapes import corners
from spanloop.view.contact_shapes import floor_height
from spanloop.view.moving_scene import moving_scene
from spanloop.view.noise import least_force, noise_levels
from spanloop.view.page.bending import bending
from spanloop.view.page.data import picture
from spanloop.view.page.html import OF_LIVE_PART, page_of
from spanloop.view.page.live.live_motion import LiveMotion
from spanloop.view.scene import Scene, extent_points, poses, scene
from spanloop.view.target_file import target_file
from spanloop.view.video.video import checked_view

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

FIRST = ("live", "recorded")  # what a page of both shows first
OF_MODEL = (  # of a page of a model
    "title", "folder", "view", "controller", "forces", "tau", "inputs", "parameters", "gravity", "step", "integrator",
    "limits", "contacts", "events", "closures", "method", "start",
)  # fmt: skip
MARGIN = 0.06  # around the first position, in sizes of the mechanism


def write_live(
    robot: Dynamics | Model,
    path: str | Path,
    q: ArrayLike | None = None,
    v: ArrayLike | None = None,
    *,
    title: str = "",
    folder: str | Path | None = None,
    view: tuple[float, float] | None = None,
    **options: Any,
) -> Path:
    """Write a page in which a mechanism runs and can be grabbed; return its path, which must end in .html.

    q (nq,), v (nv,): where it begins. folder: where mesh files are. view: azimuth and elevation of the camera at first
    [rad], as of videos. options: those of LiveMotion.of.
    """
    where = target_file(path, "a page", (".html", ".htm"), "sl.export(...) writes .wasm, .c and .fmu")
    write_file(where, live_text(robot, q, v, title=title, folder=folder, view=view, **options).encode())
    return where


def live_text(
    robot: Dynamics | Model,
    q: ArrayLike | None = None,
    v: ArrayLike | None = None,
    *,
    title: str = "",
    folder: str | Path | None = None,
    view: tuple[float, float] | None = None,
    **options: Any,
) -> str:
    """The page of a live mechanism as HTML text."""
    for name in options:
        if name not in OF_MODEL:
            raise InputError(f"page: there is no option {name!r}; {nearest(name, OF_MODEL)}")
    _refuse_forces_without_inputs(options)
    robot = robot if isinstance(robot, Dynamics) else Dynamics(robot)
    motion = LiveMotion.of(robot, q, v, **options)
    data = _model_data(motion, title or robot.model.name, folder)
    return page_of(data if view is None else {**data, "view": list(checked_view(view, "page"))})


def _refuse_forces_without_inputs(options: Mapping[str, Any]) -> None:
    """Refuse forces (t, q, v, u) without anything that u could be."""
    forces = options.get("forces")
    given = any(options.get(name) is not None for name in ("inputs", "tau", "controller"))
    if callable(forces) and takes_inputs(forces) and not given:
        raise InputError("page: forces read inputs u, but none are given; pass inputs=array (steps or 1, n)")


def live_part_of_run(run: Trajectory, folder: str | Path | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """What the page of a run needs to run its mechanism from its first state."""
    if not has_same_joints(run):
        raise InputError(
            f"{run.model.name}: joints differ between the segments of this run, and a live page runs one model; "
            "try run.page(...) without live, or model.page(...)"
        )
    first = options.get("first", FIRST[0])
    if first not in FIRST:
        raise InputError(f"live: first is {first!r}; expected {FIRST[0]!r} or {FIRST[1]!r}")
    for name in options:
        if name not in OF_LIVE_PART:
            raise InputError(f"live: there is no option {name!r} for the page of a run; {nearest(name, OF_LIVE_PART)}")
    motion = LiveMotion.of_run(run, **{k: x for k, x in options.items() if k != "first"})
    return {**_live_part(motion, scene(run.model, run.q[0], folder), run.q[0]), "first": first}


def _model_data(motion: LiveMotion, title: str, folder: str | Path | None) -> dict[str, Any]:
    """Everything that the page of a model alone shows: a run of one sample, and the live part."""
    model = motion.motion.problem.model
    run = _one_sample(motion)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SpanloopWarning)
        moved = moving_scene(run, folder)
    seen = moved.scene
    bent = bending(moved)
    shown = picture(moved, run.times, bent)
    shown["low"] = [x - MARGIN * seen.size for x in shown["low"]]
    shown["high"] = [x + MARGIN * seen.size for x in shown["high"]]
    return {
        "title": title,
        **shown,
        "recorded": False,
        "touches": {"names": [], "values": ""},
        "groups": [],
        "noise": noise_levels(model, seen.size),
        "arrows": [],
        "least_force": least_force(model),
        "headline": _headline(model),
        "outcome": run.outcome.sentence,
        "audit": None,
        "settings": [],
        "notes": list(dict.fromkeys([*seen.notes, *bent.notes, *(str(w.message) for w in caught)])),
        "live": _live_part(motion, seen, run.q[0]),
    }


def _one_sample(motion: LiveMotion) -> Trajectory:
    """The start of a live motion as a run."""
    model, start = motion.motion.problem.model, motion.motion.start
    segment = Segment(np.zeros(1), start["q"][None], start["v"][None], np.zeros((1, model.nv)))
    end = Outcome(EndReason.FINISHED, "The mechanism runs in this page.", 0.0)
    return Trajectory(model, (segment,), (end,), {"motion": "live"})


def _headline(model: Model) -> str:
    parts = [f"{model.n_bodies} bodies", f"{len(model.joints)} joints"]
    if model.loops:
        parts.append("1 loop" if len(model.loops) == 1 else f"{len(model.loops)} loops")
    return ", ".join(parts) + "; it runs live in this page"


def _live_part(motion: LiveMotion, seen: Scene, q: np.ndarray) -> dict[str, Any]:
    """The motion's own data, and what the picture needs: boxes of bodies, limbs, and how camera and floor behave."""
    model = motion.motion.problem.model
    at = poses(Dynamics(model, target="python"), np.asarray(q, float))
    lowest = float(np.nanmin(extent_points(seen, at[None])[..., 2]))
    floats = bool(seen.floats)
    return {
        "boxes": [_box(b.shapes) for b in seen.bodies],
        "limbs": [[k for k, s in enumerate(b.shapes) if s.derived and s.kind == "capsule"] for b in seen.bodies],
        "travels": floats,
        "hangs": not floats and floor_height(seen.surfaces) is None and lowest <= -0.1 * seen.size,
        **motion.data(),
    }


def _box(shapes: tuple) -> list[float] | None:
    """The lowest and the highest corner of a body's shapes in its frame [m]; None without shapes."""
    if not shapes:
        return None
    points = np.concatenate([corners(s) for s in shapes])
    return [round(float(x), 6) for x in (*points.min(axis=0), *points.max(axis=0))]
