"""The printout of a trajectory: one line, or a few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from spanloop.errors import in_one_line, listed, printable
from spanloop.model.parts import Joint
from spanloop.trajectory.contacts.contact_samples import Points
from spanloop.trajectory.events import counted

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

_MOST = 12  # joints that are shown


def line(run: Trajectory) -> str:
    """Model, size, time and outcome in one line."""
    runs = f"{_shape(run)} runs, " if run.batch else ""
    span = f"{_samples(run)} from {run.times[0]:g} to {run.times[-1]:g} s"
    return f"Trajectory({run.model.name!r}, {runs}{span}, {reasons(run)})"


def report(run: Trajectory) -> str:
    """The model, the settings, the outcome, the events, and the range of each joint."""
    return printable("\n".join([headline(run), ending(run), *_events(run), *_contacts(run), *_ranges(run)]))


def html(run: Trajectory) -> str:
    """The same in HTML, for notebooks."""
    from spanloop.model.printout import heading, items

    first, *how = headline(run).splitlines()
    lists = items("events", list(_events(run))) + items("joints", list(_ranges(run)))
    return heading(first, ending(run)) + "".join(heading("", x) for x in how) + lists


def headline(run: Trajectory) -> str:
    """The model and the settings."""
    runs = f"{_shape(run)} runs of " if run.batch else ""
    first = f"{in_one_line(run.model.name)}: {runs}{run.duration:g} s in {_samples(run)}, from {run.times[0]:g} s."
    how = ", ".join(f"{name} {_value(value)}" for name, value in run.settings.items())
    return f"{first}\nMade with {how}." if how else first


def ending(run: Trajectory) -> str:
    """The sentence of one run; for a batch the count of each reason, and the first run that did not finish."""
    if not run.batch:
        return run.outcome.sentence
    early = [k for k, outcome in enumerate(run.outcomes) if not outcome.finished]
    if not early:
        return f"All {len(run.outcomes)} runs finished."
    index = tuple(int(i) for i in np.unravel_index(early[0], run.batch))
    first = f"The first that did not finish is run {index if len(index) > 1 else index[0]}"
    return f"{len(run.outcomes)} runs: {reasons(run)}. {first}: {run.outcomes[early[0]].sentence}"


def reasons(run: Trajectory) -> str:
    """The reason of one run; for a batch the count of each."""
    if not run.batch:
        return run.outcome.reason
    return ", ".join(f"{n} {reason}" for reason, n in Counter(o.reason for o in run.outcomes).most_common())


def _events(run: Trajectory) -> Iterator[str]:
    """The table of one run's events; of a batch how many of each kind."""
    if run.batch and len(run.events):
        yield f"{counted(run.events)}."
    elif len(run.events):
        yield from (f"  {row}" for row in str(run.events).splitlines())


def _contacts(run: Trajectory) -> Iterator[str]:
    """One line: how many contacts there are, and how many of their points push at the end."""
    forces = run.segments[-1].contact_forces
    points = Points.of(run.segments[-1].model or run.model) if forces is not None else None
    if forces is None or points is None or run.batch:
        return
    pushing = points.owner[forces.reshape(len(forces), len(points), -1)[-1, :, 0] > 0.0]
    names = [in_one_line(name) for k, name in enumerate(points.contacts) if k in pushing]
    what = f"{len(points.contacts)} contact{'' if len(points.contacts) == 1 else 's'}"
    checks = run.segments[-1].contact_checks
    jams = f" {int(checks[-1, 2])} steps with a jam." if checks is not None and checks[-1, 2] > 0.0 else ""
    yield f"{what}; at the end {listed(names[:_MOST]) if names else 'none'} push{'es' if len(names) < 2 else ''}.{jams}"


def _ranges(run: Trajectory) -> Iterator[str]:
    joints = [j for j in run.model.joints if j.kind.nq == j.kind.nv == 1]
    names = [in_one_line(j.name) for j in joints[:_MOST]]
    width = max(map(len, names), default=0)
    for name, j in zip(names, joints, strict=False):
        yield f"  {name:<{width}}  {_range(run, j)}"
    if len(joints) > _MOST:
        yield f"  and {len(joints) - _MOST} more joints"


def _range(run: Trajectory, joint: Joint) -> str:
    unit = joint.kind.units[0]
    q, v = run[joint.name].q, run[joint.name].v
    low, high, fastest = (_most(x) for x in (-q, q, np.abs(v)))
    return f"q from {-low:.4g} to {high:.4g} {unit}, speed up to {fastest:.4g} {unit}/s"


def _most(values: np.ndarray) -> float:
    """The largest of the numbers; NaN where there is none."""
    return float(np.max(values, where=np.isfinite(values), initial=-np.inf)) if np.isfinite(values).any() else np.nan


def _value(value) -> str:
    return f"{value:g}" if isinstance(value, float) else in_one_line(str(value))


def _shape(run: Trajectory) -> str:
    return " x ".join(map(str, run.batch))


def _samples(run: Trajectory) -> str:
    return "1 sample" if len(run) == 1 else f"{len(run)} samples"
