"""show: a model, its dynamics or a run in the browser."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, SpanloopError
from spanloop.model import Model
from spanloop.trajectory import Trajectory
from spanloop.view.viewer.viewer import Viewer


def show(
    what: Model | Dynamics | Trajectory,
    q=None,
    *,
    port: int = 0,
    block: bool = True,
    open_browser: bool = False,
    folder: str | Path | None = None,
) -> Viewer:
    """A mechanism in the browser, at an address of this machine that nobody else can reach.

    what: a model or its dynamics, to be posed and simulated; or a run, to be played as well. q (nq,): where it starts;
    if not told, with the loops closed from the neutral position. port: 0 takes a free one. block: wait until Ctrl-C,
    then close; without it the Viewer returns, to be closed with .close(). folder: where meshes are looked for.
    """
    robot, run = _understood(what)
    viewer = Viewer(robot, _start(robot, run, q), run, port=port, folder=folder)
    if open_browser:
        import webbrowser

        webbrowser.open(viewer.url)
    if block:
        print(f"{robot.model.name}: look at {viewer.url} (Ctrl-C ends)", flush=True)
        with viewer, contextlib.suppress(KeyboardInterrupt):
            while True:
                time.sleep(3600.0)
    return viewer


def _understood(what) -> tuple[Dynamics, Trajectory | None]:
    if isinstance(what, Trajectory):
        return what.robot, what
    if isinstance(what, Dynamics):
        return what, None
    if isinstance(what, Model):
        return Dynamics(what), None
    raise InputError(f"show: a {type(what).__name__} cannot be shown; expected a Model, a Dynamics or a Trajectory")


def _start(robot: Dynamics, run: Trajectory | None, q) -> np.ndarray:
    """Where to begin: as told, at the run's first sample, or closed from neutral; open, and seen to be so, if not."""
    if q is not None:
        array = np.asarray(q, float)
        if array.shape != (robot.model.nq,):
            raise InputError(f"show: q has shape {array.shape}; expected ({robot.model.nq},)")
        return array
    if run is not None:
        return run.q.reshape(-1, robot.model.nq)[0]
    neutral = robot.model.neutral()
    try:
        return robot.assemble(neutral) if robot.model.loops or robot.model.couplings else neutral
    except SpanloopError:
        return neutral
