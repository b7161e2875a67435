"""`spanloop page`: write a mechanism as a page in which it runs, or a run as a page that shows it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from spanloop import zoo
from spanloop.cli.shared_arguments import (
    ACCEPTED,
    ZOO,
    add_loading,
    add_settings,
    by_name,
    initial_state,
    is_run,
    loading,
    model_of,
    run_of,
    settings_of,
    with_settings,
)
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError
from spanloop.view.gallery import write_page
from spanloop.view.target_file import target_file

EXAMPLES = (
    "spanloop page zoo:puma",
    "spanloop page zoo:four_bar --v crank_hinge=2",
    "spanloop page zoo:pendulum:2 --q hinge1=1.2 --parameter rod2.mass --output pendulum.html",
    "spanloop simulate zoo:slider_crank --v crank_hinge=9 --duration 1 --output run.npz",
    "spanloop page run.npz --live",
)
OF_MODELS = ("q", "v", "set", "parameter", "step")  # options


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", metavar="MODEL|RUN", help=f"{ACCEPTED}; or a run (.nc, .h5, .npz)")
    add_loading(parser)
    add("--output", metavar="FILE", help="the page, .html (named after the mechanism or the run, in this folder)")
    kind = parser.add_mutually_exclusive_group()
    about = "the mechanism runs in the page and can be grabbed (always so for a model)"
    kind.add_argument("--live", action="store_true", default=None, help=about)
    about = "the page shows what was simulated, no more (default for a run)"
    kind.add_argument("--recorded", action="store_false", dest="live", help=about)
    for name, about in (
        ("--q", "initial coordinate of a joint: elbow=0.3, elbow=30deg, ball=1,0,0,0"),
        ("--v", "initial velocity of a joint"),
    ):
        add(name, metavar="NAME=VALUE", action="append", default=[], help=about)
    add_settings(parser)
    about = "a parameter with a slider in the page: rod2.mass, crank.center.x; may be repeated"
    add("--parameter", metavar="NAME", action="append", default=[], help=about)
    add("--step", metavar="SECONDS", type=float, help="step of the integrator (0.001)")
    add("--run", metavar="N", type=int, dest="number", help="number of a run in a batch")
    add("--open", action="store_true", help="open the page in the browser")


def run(chosen: argparse.Namespace) -> int:
    path = target_file(chosen.output or _name(chosen.file), "a page", (".html", ".htm"), "")
    is_live = _of_run(chosen, path) if is_run(chosen.file) else _of_model(chosen, path)
    what = "grab a body and pull" if is_live else "a recorded run"
    print(f"written: {path} ({path.stat().st_size / 1e3:.0f} kB): {what}; it needs no network")
    if chosen.open:
        import webbrowser

        webbrowser.open(path.resolve().as_uri())
    return 0


def _of_run(chosen: argparse.Namespace, path: Path) -> bool:
    """Write the page of a run; whether it is live."""
    for name in OF_MODELS:
        if getattr(chosen, name):
            raise InputError(f"{chosen.file}: --{name} is for models; this is a run, whose page begins where it began")
    live = bool(chosen.live)
    options: dict[str, Any] = {"live": True} if live else {}
    run_of(chosen.file, chosen.number).page(path, **options)
    return live


def _of_model(chosen: argparse.Namespace, path: Path) -> bool:
    """Write the live page of a model; a mechanism of the zoo as in the gallery, unless a start is given."""
    if chosen.live is False:
        advice = f"spanloop simulate {chosen.file} --output {path}"
        raise InputError(f"{chosen.file}: --recorded needs a run, and this is a model; try: {advice}")
    if chosen.number is not None:
        raise InputError(f"{chosen.file}: --run {chosen.number} is for a batch of runs; this is a model. Leave it out")
    options: dict[str, Any] = {"parameters": chosen.parameter} if chosen.parameter else {}
    if chosen.step is not None:
        options["step"] = chosen.step
    name = chosen.file.removeprefix(ZOO)
    if name != chosen.file and name in zoo.names() and not (chosen.q or chosen.v or chosen.set):
        write_page(name, path, **options)
        return True
    model = with_settings(model_of(chosen.file, **loading(chosen)), settings_of(chosen.set))
    robot = Dynamics(model)
    q, v = initial_state(robot, chosen.file, by_name(chosen.q, "--q"), by_name(chosen.v, "--v"))
    folder = None if chosen.file.startswith(ZOO) else Path(chosen.file).parent
    robot.page(path, q, v, folder=folder, **options)
    return True


def _name(word: str) -> str:
    """The page of a mechanism or a run, in the folder of the command: stewart.html of zoo:stewart."""
    stem = word.removeprefix(ZOO).replace(":", "") if word.startswith(ZOO) else Path(word).stem
    return f"{stem}.html"
