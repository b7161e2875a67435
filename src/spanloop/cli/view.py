"""`spanloop view`: show a mechanism or a run in the browser, live; or write a run as a page."""

from __future__ import annotations

import argparse
from pathlib import Path

from spanloop.cli.shared_arguments import ACCEPTED, ZOO, add_loading, initial_state, is_run, loading, model_of, run_of
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, UnsupportedError

EXAMPLES = (
    "spanloop view zoo:three_pumas",
    "spanloop simulate zoo:four_bar --duration 1 --output run.npz",
    "spanloop view run.npz",
    "spanloop view run.npz --html run.html",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", metavar="MODEL|RUN", help=f"{ACCEPTED}; or a run (.nc, .h5, .npz)")
    add_loading(parser)
    add("--run", metavar="N", type=int, dest="number", help="number of a run in a batch")
    add("--port", type=int, default=0, help="port of the live viewer (a free one)")
    add("--open", action="store_true", help="open the browser")
    add("--html", metavar="FILE", help="write a run as a page instead")


def run(chosen: argparse.Namespace) -> int:
    if chosen.number is not None and not is_run(chosen.file):
        raise InputError(f"{chosen.file}: --run {chosen.number} is for a batch of runs; this is a model. Leave it out")
    if chosen.html:
        if not is_run(chosen.file):
            raise InputError(
                "--html needs a run; make a page of a mechanism with: spanloop simulate MODEL --output run.html"
            )
        print(f"written: {run_of(chosen.file, chosen.number).page(chosen.html)}")
        return 0
    show = _viewer()
    if is_run(chosen.file):
        show(run_of(chosen.file, chosen.number), port=chosen.port, open_browser=chosen.open)
        return 0
    robot = Dynamics(model_of(chosen.file, **loading(chosen)))
    folder = None if chosen.file.startswith(ZOO) else Path(chosen.file).parent
    q, _ = initial_state(robot, chosen.file, {}, {})
    show(robot, q, port=chosen.port, open_browser=chosen.open, folder=folder)
    return 0


def _viewer():
    try:
        from spanloop.view.viewer import show
    except ImportError as error:
        raise UnsupportedError(
            f"the live viewer is not installed ({error}); pip install viser, or write a page, which needs nothing: "
            "spanloop simulate MODEL --output run.html"
        ) from None
    return show
