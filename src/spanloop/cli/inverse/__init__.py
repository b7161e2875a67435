"""`spanloop inverse`: torques along a path, as Saha's program RIDIM computes them for arms.

The path is cycloidal, or comes from a CSV file (motion_table.py).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from spanloop.algorithms.catalog import FUNCTIONS
from spanloop.cli.inverse.motion_table import Motion, read_motions
from spanloop.cli.plot import FORMATS, draw
from spanloop.cli.shared_arguments import add_model, initial_state, loading, model_of, numbers
from spanloop.cli.simulate import DATA, PAGES
from spanloop.cli.terminal import add_json, print_json
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, nearest
from spanloop.kernels import compile
from spanloop.model import Model
from spanloop.trajectory import EndReason, Outcome, Segment, Trajectory
from spanloop.trajectory.files import labels
from spanloop.zoo import cycloidal_path

EXAMPLES = (
    "spanloop inverse zoo:puma --cycloidal 0:180deg:10 --output torques.csv",
    "spanloop inverse zoo:puma --path torques.csv --method decoupled_complement",
    "spanloop simulate zoo:four_bar --tau crank_hinge=2 --duration 1 --sample 0.01 --output run.csv",
    "spanloop inverse zoo:four_bar --path run.csv --output torques.png",
)

SAMPLES = 501


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    path = parser.add_mutually_exclusive_group(required=True)
    path.add_argument(
        "--path", metavar="FILE.csv", help="time and one column a joint: elbow, elbow.v, elbow.a [rad/s²]"
    )
    path.add_argument(
        "--cycloidal", metavar="START:END:SECONDS", help="move every joint from rest to rest: 0:180deg:10"
    )
    add = parser.add_argument
    add("--samples", metavar="N", type=int, default=SAMPLES, help=f"samples of a cycloidal path ({SAMPLES})")
    add("--method", help="algorithm for open chains: newton_euler or decoupled_complement")
    add("--by-subsystems", action="store_true", help="solve loops one subsystem after the other")
    formats = ", ".join((*DATA, *FORMATS, PAGES[0]))
    add("--output", metavar="FILE", action="append", default=[], help=f"write {formats}; may be repeated")
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    files = [_checked(Path(name)) for name in chosen.output]
    model = model_of(chosen.file, **loading(chosen))
    method = _method(model, chosen.method, chosen.by_subsystems)
    if chosen.path is None:
        times, motions = _cycloidal(model, chosen.cycloidal, chosen.samples)
    else:
        times, motions = read_motions(chosen.path, model)
    robot = Dynamics(model)
    q, v, a = _all_joints(robot, chosen.file, motions, chosen.path or "--cycloidal")
    if _is_closed(model):
        tau = robot.inverse_dynamics(q, v, a, by_subsystems=chosen.by_subsystems)
    else:
        tau = compile(model, "inverse_dynamics", method=method)(q, v, a)
    outcome = Outcome(EndReason.FINISHED, "The path was followed to its end.", times[-1])
    settings = {"inverse dynamics": method}
    motion = Trajectory(model, (Segment(times, q, v, tau),), (outcome,), settings)
    for path in files:
        _write(motion, path)
    _report(motion, files, chosen.json)
    return 0


def _is_closed(model: Model) -> bool:
    return bool(model.loops or model.couplings)


def _method(model: Model, asked: str | None, by_subsystems: bool) -> str:
    """The algorithm, as the run's settings name it."""
    if _is_closed(model):
        if asked is not None:
            raise InputError(f"--method {asked}: model {model.name!r} has loops; --method is for open chains")
        return "by subsystems" if by_subsystems else "whole"
    if by_subsystems:
        raise InputError(f"--by-subsystems: model {model.name!r} has no loops")
    known = tuple(FUNCTIONS["inverse_dynamics"].methods)
    if asked is not None and asked not in known:
        raise InputError(f"--method {asked}: model {model.name!r} takes {' or '.join(known)}; {nearest(asked, known)}")
    return asked or known[0]


def _cycloidal(model: Model, word: str, samples: int) -> tuple[np.ndarray, dict[str, Motion]]:
    parts = word.split(":")
    if len(parts) != 3:
        raise InputError(f"--cycloidal {word}: expected START:END:SECONDS, for example 0:180deg:10")
    first, last, seconds = (numbers(part, f"--cycloidal {word}")[0] for part in parts)
    several = [j.name for j in model.joints if j.kind.nq > 1]
    if _is_closed(model) or several:
        found = f"joint {several[0]!r} has several coordinates" if several else "it has loops or couplings"
        raise InputError(
            f"--cycloidal: model {model.name!r}: {found}; it supports open chains with one coordinate a joint"
        )
    if samples < 2:
        raise InputError(f"--samples is {samples}; must be at least 2")
    if not seconds > 0.0:
        raise InputError(f"--cycloidal {word}: the duration is {seconds:g} s; must be > 0")
    times = np.linspace(0.0, seconds, samples)
    moving = [j.name for j in model.joints if j.kind.nq]
    q, v, a = cycloidal_path([first], [last], seconds, times)
    return times, dict.fromkeys(moving, (q, v, a))


def _all_joints(robot: Dynamics, file: str, motions: dict[str, Motion], source: str) -> Motion:
    """q, v, a of the whole mechanism; with loops, the motion of dependent joints is computed."""
    model = robot.model
    moving = [j.name for j in model.joints if j.kind.nq]
    missing = [name for name in moving if name not in motions]
    if not _is_closed(model):
        if missing:
            raise InputError(f"{source}: there is no column of joint {missing[0]!r}; add {missing[0]}.q")
        together = [np.concatenate([motions[name][k] for name in moving], axis=1) for k in range(3)]
        return together[0], together[1], together[2]
    guess = initial_state(robot, file, {}, {})[0]
    for name, (q, _, _) in motions.items():
        guess[model.q_slice(name)] = q[0]
    if not missing:  # keep the independent joints of those given
        free = robot.independent_coordinates(guess).dofs
        motions = {name: m for name, m in motions.items() if set(range(model.nv)[model.v_slice(name)]) <= set(free)}
    return robot.follow(guess, motions)


def _report(motion: Trajectory, files: list[Path], as_json: bool) -> None:
    rows = zip(labels.dofs(motion.model), labels.torque_units(motion.model), motion.tau.T, strict=True)
    ranges = [(labels.joined(*name), unit, float(x.min()), float(x.max())) for name, unit, x in rows]
    if as_json:
        found = {name: {"unit": unit, "least": low, "most": high} for name, unit, low, high in ranges}
        how = {"model": motion.model.name, "samples": len(motion), "duration": motion.duration, **motion.settings}
        print_json({**how, "torques": found, "files": [str(path) for path in files]})
        return
    print(f"{motion.model.name}: {len(motion)} samples from {motion.times[0]:g} to {motion.times[-1]:g} s")
    width = max((len(name) for name, *_ in ranges), default=0)
    for name, unit, low, high in ranges:
        print(f"  {name:<{width}}  from {low:10.4g} to {high:10.4g} {unit}")
    for path in files:
        print(f"written: {path}")


def _checked(path: Path) -> Path:
    known = (*DATA, *FORMATS, *PAGES)
    if path.suffix.lower() not in known:
        raise InputError(f"--output {path}: the extension is {path.suffix!r}; expected {', '.join(known)}")
    if not path.parent.is_dir():
        raise InputError(f"--output {path}: there is no folder {str(path.parent)!r}; make it first")
    return path


def _write(motion: Trajectory, path: Path) -> None:
    if path.suffix.lower() in FORMATS:
        draw(motion, "tau", None, path)
    elif path.suffix.lower() in PAGES:
        motion.page(path)
    else:
        motion.save(path)
