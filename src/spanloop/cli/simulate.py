"""`spanloop simulate`: simulate a mechanism and write a report, data files or a page."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spanloop.cli.shared_arguments import (
    ZOO,
    add_model,
    add_settings,
    by_name,
    initial_state,
    loading,
    model_of,
    settings_of,
    torques,
    with_settings,
)
from spanloop.cli.terminal import add_json, colored, number, print_json
from spanloop.contacts.settings import IMPACTS
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, SpanloopError
from spanloop.model import Model
from spanloop.simulation.events.kinds import Attach, Event, OneSided
from spanloop.simulation.integrators.integrator import AUTO, Integrator
from spanloop.simulation.problem import LIMITS
from spanloop.simulation.run_files import RunFile, events_in, read_run
from spanloop.simulation.run_files.reader import NUMBERS, TEXT_KEYS, TEXTS, name_key
from spanloop.simulation.simulate import simulate
from spanloop.trajectory import Trajectory
from spanloop.trajectory.contacts.contact_results import ContactResult
from spanloop.view import animation

EXAMPLES = (
    "spanloop simulate zoo:four_bar --v crank_hinge=2 --output run.html",
    "spanloop simulate zoo:puma --q joint2=-60deg --tau joint1=3 --duration 1 --audit",
    "spanloop simulate zoo:pendulum:2 --q hinge1=1.2 --set rod2.mass=0.5 --output run.npz --output run.csv",
    "spanloop simulate zoo:pendulum:2 --q hinge1=1.2 --event 'end low when=q.hinge1 - 0.1' --output run.html",
)
PAGES, PICTURES, DATA = (".html", ".htm"), (".svg",), (".nc", ".h5", ".npz", ".csv")
VIDEOS = (".mp4", ".gif")
DURATION = 5.0  # s


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser, unless="the file of --run")
    add = parser.add_argument
    about = "settings, initial state, torques and events from a .toml file; options override"
    add("--run", metavar="FILE", dest="run_file", help=about)
    add("--duration", metavar="SECONDS", type=float, help="length of the motion (5)")
    add("--step", metavar="SECONDS", type=float, help="step of the integrator (0.001)")
    add("--sample", metavar="SECONDS", type=float, help="interval of the stored samples (every step)")
    add(
        "--integrator",
        help="rk4, euler, midpoint, implicit, or SciPy's DOP853, Radau, ... (rk4; implicit if stiff)",
    )
    for name, about in (
        ("--q", "initial coordinate of a joint: elbow=0.3, elbow=30deg, ball=1,0,0,0"),
        ("--v", "initial velocity of a joint"),
        ("--tau", "constant torque or force at a joint"),
    ):
        add(name, metavar="NAME=VALUE", action="append", default=[], help=about)
    add_settings(parser, "; or initial coordinate of a joint")
    add(
        "--output",
        metavar="FILE",
        action="append",
        default=[],
        help="write .html, .svg, .mp4, .gif, .nc, .h5, .npz or .csv; may be repeated",
    )
    add(
        "--checkpoint",
        metavar="FILE",
        help="keep the progress of a long run in a file; the same command continues from it after a crash or Ctrl-C",
    )
    add(
        "--event",
        metavar="'KIND NAME ...'",
        action="append",
        default=[],
        help="'attach grip at=1.0 capture=true', 'release grip when=q.lift - 0.3': keys as in the file of --run",
    )
    add("--limits", choices=LIMITS, help="what joint limits do: end the run, stop the joint, or nothing")
    add("--contacts", choices=IMPACTS, help="contacts: solved once a step, impacts located, or left out (steps)")
    add("--audit", action="store_true", help="check energy, closure and momentum; exit code 1 if a check fails")
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    files = [_checked(Path(name)) for name in chosen.output]
    plan = read_run(chosen.run_file) if chosen.run_file else RunFile(Path("--event"))
    chosen.file = chosen.file or plan.model or _no_model(chosen.run_file)
    model, values = model_of(chosen.file, **loading(chosen)), settings_of(chosen.set)
    coordinates = {name: values.pop(name) for name in [j.name for j in model.joints] if name in values}
    model = with_settings(model, values)
    given = {"duration": DURATION, **plan.arguments(model), **_settings(chosen)}
    events = [*given.pop("events", ()), *events_in(map(event_table, chosen.event), model, "--event")]
    robot = Dynamics(model)
    closed = robot._with_active_loops(_active_at_first(model, plan.active_loops, events))
    q, v = {**plan.q, **coordinates, **by_name(chosen.q, "--q")}, {**plan.v, **by_name(chosen.v, "--v")}
    given["q"], given["v"] = initial_state(closed, chosen.file, q, v)
    given["tau"] = torques(model, {**plan.tau, **by_name(chosen.tau, "--tau")})
    given["events"] = events or None
    given["integrator"] = Integrator(given.get("integrator", AUTO), checkpoint=chosen.checkpoint)
    began = time.perf_counter()
    motion = simulate(robot, **given)
    took = time.perf_counter() - began
    failed: dict[Path, SpanloopError] = {}
    for path in files:
        try:
            _write(motion, path, None if chosen.file.startswith(ZOO) else Path(chosen.file).parent)
        except SpanloopError as error:  # the others are written all the same
            failed[path] = error
    code = _report(motion, chosen, [path for path in files if path not in failed], took)
    if failed:
        raise next(iter(failed.values()))
    return code


def _settings(chosen: argparse.Namespace) -> dict[str, Any]:
    """The options of the command line that are settings of a run."""
    options = {key: getattr(chosen, key) for key in (*NUMBERS, *TEXTS, "contacts")}
    return {key: value for key, value in options.items() if value is not None}


def _active_at_first(model: Model, active_loops: Sequence[str] | None, events: Sequence[Event]) -> list[str] | None:
    """Names of the switchable loops and couplings that are closed at the start; None if there are none."""
    if active_loops is not None:
        return list(active_loops)
    open_ = {e.loop for e in events if isinstance(e, Attach | OneSided)}
    return [name for name in model.switches if name not in open_] if model.switches else None


def _no_model(run: str | None) -> str:
    if run:
        raise InputError(f'{run}: has no model; name it there, model = "arm.toml", or give it: spanloop simulate MODEL')
    raise InputError("simulate: no model is given; try spanloop simulate zoo:four_bar, or spanloop zoo for all of them")


def event_table(words: str) -> dict[str, Any]:
    """The table of an event from `KIND NAME key=value ...`, as the file of a run would have it."""
    kind, _, rest = words.strip().partition(" ")
    name, *pairs = re.split(r"\s+(?=\w+=(?!=))", rest.strip())
    if "=" in name or not name:
        raise InputError(f"--event {words!r}: expected kind, name and keys, such as 'attach grip at=1.0 capture=true'")
    table: dict[str, Any] = {"kind": kind, name_key(kind): name}
    for pair in pairs:
        key, _, value = pair.partition("=")
        table[key] = value if key in TEXT_KEYS else _plain(value)
    return table


def _plain(text: str) -> Any:
    """A truth value, a number or a list of numbers; text if it is none of these."""
    if text in ("true", "false"):
        return text == "true"
    try:
        found = [float(x) for x in text.split(",")]
    except ValueError:
        return text
    return found[0] if len(found) == 1 else found


def _report(motion: Trajectory, chosen: argparse.Namespace, files: list[Path], took: float) -> int:
    audit = motion.audit() if chosen.audit else None
    good = motion.outcome.reason in ("finished", "event", "limit", "grasp") and (audit is None or audit.well)
    if chosen.json:
        print_json(
            {
                "model": motion.model.name,
                "duration": motion.duration,
                "samples": len(motion),
                "outcome": {"reason": motion.outcome.reason, "sentence": motion.outcome.sentence},
                "seconds": took,
                "events": [_event_data(motion, k) for k in range(len(motion.events))],
                "contacts": {name: _contact_data(contact) for name, contact in motion.contacts.items()},
                "settings": dict(motion.settings),
                "end": {j.name: motion.q[-1, motion.model.q_slice(j.name)].tolist() for j in motion.model.joints},
                "audit": [
                    {"name": f.name, "verdict": f.verdict, "value": number(f.value), "sentence": f.sentence}
                    for f in audit.findings
                ]
                if audit
                else None,
                "files": [str(path) for path in files],
            }
        )
    else:
        print(motion)
        print(f"{motion.duration:g} s took {took:.3g} s, including compilation.")
        if chosen.checkpoint and motion.settings.get("resumed"):
            print(f"continued from {chosen.checkpoint} {motion.settings['resumed']}")
        if chosen.checkpoint and motion.outcome.reason == "interrupted":
            print(f"{chosen.checkpoint} holds the progress: the same command continues from there")
        if audit:
            print("\n" + colored(str(audit), "well" if audit.well else "not well"))
        for path in files:
            print(f"written: {path}")
    return 0 if good else 1


def _event_data(motion: Trajectory, k: int) -> dict[str, Any]:
    """An event as plain data; impulses by closure row of its own loop, coupling or stop [N m s, N s]."""
    event, rows = motion.events[k], motion.events.own_rows(k)
    return {
        "time": event.time,
        "kind": event.kind,
        "name": event.name,
        "impulse": {motion.events.rows[r].name: number(x) for r, x in zip(rows, event.impulse, strict=True)},
        "energy_lost": number(event.energy_lost),
        "closed": list(event.closed),
    }


def _contact_data(contact: ContactResult) -> dict[str, Any]:
    """A contact as plain data: what it does at the end, and the extremes of the run."""
    return {
        "state": str(contact.state[-1]),
        "force": [number(x) for x in contact.force[-1]],
        "gap": number(contact.gap[-1]),
        "least_gap": number(float(np.nanmin(contact.gap))),
        "largest_force": number(float(np.nanmax(contact.normal_force, initial=0.0))),
    }


def _checked(path: Path) -> Path:
    """The path, checked before the simulation starts."""
    if path.suffix.lower() not in PAGES + PICTURES + VIDEOS + DATA:
        expected = ", ".join((*DATA, ".svg", *VIDEOS, ".html"))
        raise InputError(f"--output {path}: the extension is {path.suffix!r}; expected {expected}")
    if not path.parent.is_dir():
        raise InputError(f"--output {path}: there is no folder {str(path.parent)!r}; make it first")
    return path


def _write(motion: Trajectory, path: Path, folder: Path | None) -> None:
    if path.suffix.lower() in PAGES:
        motion.page(path, folder=folder)
    elif path.suffix.lower() in VIDEOS:
        motion.video(path, folder=folder)
    elif path.suffix.lower() in PICTURES:
        animation.write(motion, path, folder=folder)
    else:
        motion.save(path)
