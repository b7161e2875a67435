"""Loops and couplings of model files, assembled and simulated: `python benchmarks/real_loops.py FILE_OR_FOLDER ...`.

One row for each URDF, MJCF or SDF file with a loop, a coupling or a mimic joint; files with the same mechanism count
once. "to" is the largest closure error after assembly from neutral coordinates, "own" that of redundant rows, which no
joint closes: the file's own error. "after" is the largest error of the other rows in a run of 2 s under gravity, with
joint limits ignored. Errors are in rad, or shares of the loop's length. "begins" is the processor time until the first
step [s], kernels compiled anew. What does not finish has its reason below the row.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

SIGNS = (b"<equality", b"<mimic", b"<gearbox", b"<connect", b"gearbox", b"loop")
DURATION = 2.0  # s


def main(places: list[str]) -> None:
    """Print the table of all files in these places."""
    os.environ["SPANLOOP_CACHE"] = "off"
    import spanloop as sl
    from spanloop.kernels import content

    print(f"{'file':44} {'DoF':>4} {'loops':>5} {'coupl':>5} {'to':>8} {'own':>8} {'after':>8} {'begins':>6}  end")
    seen, good, total = set(), 0, 0
    for path in model_files(places):
        try:
            model = quietly(sl.load, path)
        except sl.errors.SpanloopError:
            continue  # reading files is not the matter here
        if not (model.loops or model.couplings) or content(model) in seen:
            continue
        seen.add(content(model))
        row, reason, ok = examined(model)
        total, good = total + 1, good + ok
        head = f"{short(path):44} {model.nv:4} {len(model.loops):5} {len(model.couplings):5}"
        print(f"{head} {row}" + (f"\n      {reason}" if reason else ""), flush=True)
    print(f"{good} of {total} simulate {DURATION:g} s closed to 1e-9")


def model_files(places: list[str]) -> Iterator[Path]:
    """Files that may have loops."""
    for place in map(Path, places):
        files = [place] if place.is_file() else sorted(place.rglob("*"))
        for path in files:
            if path.suffix in (".urdf", ".xml", ".sdf", ".mjcf") and path.is_file():
                text = path.read_bytes()
                if path.suffix == ".sdf" or any(sign in text for sign in SIGNS):
                    yield path


def short(path: Path) -> str:
    """The end of a path."""
    return str(Path(*path.parts[-3:]))[-44:]


def quietly(function, *arguments, **options):
    """Call a function without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **options)


def examined(model) -> tuple[str, str, bool]:
    """The row of a model, why it does not finish, and whether it stays closed."""
    import spanloop as sl
    from spanloop.loops.closure_errors import positional, relative_errors
    from spanloop.loops.constraint_rank import structure

    began = time.process_time()
    robot = sl.Dynamics(model)
    try:
        q = quietly(robot.assemble, model.neutral())
        reason = ""
    except sl.errors.SpanloopError as error:
        reason = str(error)
        try:
            q = quietly(robot.assemble, model.neutral(), limits="ignore")
        except sl.errors.SpanloopError:
            return "", reason, False
    rows = structure(robot, q)
    kept = np.zeros(len(rows.lengths), dtype=bool)
    kept[rows.kept] = True
    kept &= positional(model)

    def largest(states, chosen) -> float:
        return float(np.abs(relative_errors(robot, states)[:, chosen]).max(initial=0.0))

    to, own = largest(q[None], kept), largest(q[None], ~kept & positional(model))
    try:
        quietly(sl.simulate, robot, q, duration=0.001, limits="ignore")
        begins = time.process_time() - began
        run = quietly(sl.simulate, robot, q, duration=DURATION, sample=0.05, limits="ignore")
    except sl.errors.SpanloopError as error:
        return f"{to:8.1e} {own:8.1e}", str(error), False
    states = run.q[np.isfinite(run.q).all(axis=-1)]
    after = max(largest(x[None], kept) for x in states)
    ended = run.outcome.reason == "finished"
    if not ended:
        reason = str(run.outcome)
    text = f"{to:8.1e} {own:8.1e} {after:8.1e} {begins:6.1f}  {run.outcome.reason} ({run.settings['integrator']})"
    return text, reason, ended and after <= 1e-9


if __name__ == "__main__":
    main(sys.argv[1:] or ["."])
