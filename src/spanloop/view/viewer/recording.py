"""Record a run to one HTML file with viser; it plays in any browser, without a network."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from spanloop.errors import InputError
from spanloop.model.files.file_io import write_file
from spanloop.trajectory import Trajectory
from spanloop.trajectory.topologies import model_of, with_carried
from spanloop.view.beams.segments import surface_coordinates
from spanloop.view.contact_forces import ContactForces, contact_forces
from spanloop.view.scene import poses, scene
from spanloop.view.surface_patches import patches
from spanloop.view.viewer.camera import camera, outline, upward
from spanloop.view.viewer.plain_text import one_line
from spanloop.view.viewer.scene_nodes import SceneNodes
from spanloop.view.viewer.server import set_camera, start_server, stop_server

FRAMES = 30.0  # a second


def record(run: Trajectory, path: str | Path, *, frames: float = FRAMES, folder: str | Path | None = None) -> None:
    """Write one run to an HTML file that shows bodies, joints and closures in motion.

    frames: frames a second. folder: where the model's mesh files are. The file contains viser's client (0.8 MB) and the
    motion; nothing is fetched. For a page with plots and text see spanloop.view.page.
    """
    if run.batch:
        raise InputError(f"record: this is a batch of {len(run.outcomes)} runs; record one of them, for example run[0]")
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"record: {path.name!r} does not end in .html")
    times = _times(run, frames)
    moved = run.at(times) if len(times) > 1 else run[:1]
    server = start_server(label=one_line(run.model.name))
    try:
        found = contact_forces(run)
        touching = None if found is None else found.at(run.times, moved.times)
        write_file(path, _recorded(server, moved, touching, folder).encode())
    finally:
        stop_server(server)


def _recorded(server, run: Trajectory, touching: ContactForces | None, folder) -> str:
    placed, bending = poses(run.robot, run.q), surface_coordinates(run.model, run.q)
    seen = scene(run.model, run.q[0], folder)
    seen = replace(seen, patches=patches(seen.surfaces, placed, seen.size))
    up = upward(run.model.gravity)
    corners = np.concatenate([outline(seen, at) for at in placed[:: max(1, len(placed) // 20)]])
    nodes = SceneNodes(server.scene, seen, up, float((corners @ up).min()))
    set_camera(server, camera(corners, up), up)
    loops = [np.abs(run[x.name].error).max(axis=-1, initial=0.0) for x in run.model.loops]
    errors = np.stack(loops, axis=-1) if loops else np.zeros((len(run), 0))
    names, number = [x.name for x in run.model.loops], run.model.body_number
    segments = np.repeat(np.arange(len(run.segments)), [len(s) for s in run.segments])
    held = [{x.name: x for x in model_of(run, s).loops} for s in run.segments]
    absent = [{number[b] for b in with_carried(run.model, s.absent)} for s in run.segments]

    def place(k: int) -> None:
        s = int(segments[k])
        bent = {b: eta[k] for b, eta in bending.items()}
        nodes.place(placed[k], errors[k], [held[s].get(name) for name in names], absent[s], bent)
        nodes.contact_arrows(None if touching is None else touching.sample(k))

    place(0)
    recording = server.get_scene_serializer()
    for k in range(len(run)):
        place(k)
        recording.insert_sleep(float(run.times[k + 1] - run.times[k]) if k + 1 < len(run) else 0.0)
    return recording.as_html()


def _times(run: Trajectory, frames: float) -> np.ndarray:
    count = max(1, round(run.duration * frames))
    return np.linspace(run.times[0], run.times[-1], count + 1) if run.duration > 0.0 else run.times[:1]
