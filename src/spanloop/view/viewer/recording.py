"""A run as one HTML file that plays in any browser, without a network: viser's own recording."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from spanloop.errors import InputError
from spanloop.model.files import atomic
from spanloop.trajectory import Trajectory
from spanloop.view.scene import poses
from spanloop.view.viewer.camera import camera, outline, upward
from spanloop.view.viewer.scene_nodes import Stage
from spanloop.view.viewer.server import look, started, stopped
from spanloop.view.viewer.viser_shapes import scene_with_meshes

FRAMES = 30.0  # a second


def record(run: Trajectory, path, *, frames: float = FRAMES, folder: str | Path | None = None) -> None:
    """Write one run to an HTML file: bodies, joints and closures as they moved, to be turned and played.

    frames: pictures a second. The file holds viser's client (0.8 MB) and the motion; nothing is fetched. For a page
    with plots and text see spanloop.view.page.
    """
    if run.batch:
        raise InputError(f"record: this is a batch of {len(run.outcomes)} runs; record one, run[0] say")
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"record: {path.name!r} is no name of a page; expected one that ends in .html")
    times = _times(run, frames)
    moved = run.at(times) if len(times) > 1 else run[:1]
    server = started(label=run.model.name)
    try:
        atomic.write(path, _recorded(server, moved, folder).encode())
    finally:
        stopped(server)


def _recorded(server, run: Trajectory, folder) -> str:
    seen = scene_with_meshes(run.model, run.q[0], folder)
    up = upward(run.model.gravity)
    placed = poses(run.robot, run.q)
    corners = np.concatenate([outline(seen, at) for at in placed[:: max(1, len(placed) // 20)]])
    stage = Stage(server.scene, seen, up, float((corners @ up).min()))
    look(server, camera(corners, up), up)
    loops = [np.abs(run[x.name].error).max(axis=-1, initial=0.0) for x in run.model.loops]
    errors = np.stack(loops, axis=-1) if loops else np.zeros((len(run), 0))
    stage.place(placed[0], errors[0])
    recording = server.get_scene_serializer()
    for k in range(len(run)):
        stage.place(placed[k], errors[k])
        recording.insert_sleep(float(run.times[k + 1] - run.times[k]) if k + 1 < len(run) else 0.0)
    return recording.as_html()


def _times(run: Trajectory, frames: float) -> np.ndarray:
    count = max(1, round(run.duration * frames))
    return np.linspace(run.times[0], run.times[-1], count + 1) if run.duration > 0.0 else run.times[:1]
