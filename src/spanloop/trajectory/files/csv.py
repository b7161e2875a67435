"""Runs as .csv for other programs: a line a sample, columns named by joint and DoF, with units."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import numpy as np

import spanloop
from spanloop.errors import InputError
from spanloop.trajectory import report
from spanloop.trajectory.files import labels
from spanloop.trajectory.topologies import has_same_joints

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory


def dumped(run: Trajectory, file: str) -> bytes:
    """The file's content: comments, a line of names, and numbers that read back exactly."""
    if run.batch:
        raise InputError(
            f"{file}: a .csv file holds one run, and this is a batch of shape {run.batch}. "
            f"Save one of them, run[{', '.join('0' * len(run.batch))}].save(...), or all as .nc or .npz"
        )
    out = io.StringIO(newline="")
    if not has_same_joints(run):
        raise InputError(
            f"{file}: the segments of this run have models with different joints, and a .csv file has one set of "
            "columns. Save run.pieces[0], run.pieces[1], ... each as a file, or all as .nc or .npz"
        )
    for line in (f"spanloop {spanloop.__version__}", *report.headline(run).splitlines(), run.outcome.sentence):
        out.write(f"# {' '.join(line.split())}\n")
    for line in str(run.events).splitlines() if len(run.events) else ():
        out.write(f"# {line}\n")
    table = csv.writer(out, lineterminator="\n")
    touching = _contacts(run)
    table.writerow([*columns(run), *touching])
    rows = np.column_stack([run.times, run.q, run.v, run.tau, *touching.values()]).astype(float)
    table.writerows([repr(x) for x in row] for row in rows.tolist())
    return out.getvalue().encode()


def _contacts(run: Trajectory) -> dict[str, np.ndarray]:
    """Columns of contacts, where they act: foot.gap [m], foot.force.x [N], foot.slip.x [m/s], ..."""
    out: dict[str, np.ndarray] = {}
    if all(s.contact_forces is None for s in run.segments):
        return out
    for name, contact in run.contacts.items():
        out[f"{name}.gap [m]"] = contact.gap
        for what, unit, values in (("force", "N", contact.force), ("slip", "m/s", contact.slip)):
            out |= {f"{name}.{what}.{axis} [{unit}]": values[:, k] for k, axis in enumerate("xyz")}
    return out


def columns(run: Trajectory) -> list[str]:
    """time [s], elbow.q [rad], elbow.v [rad/s], ..."""
    model = run.model
    groups = (
        ("q", labels.coordinates(model), labels.coordinate_units(model)),
        ("v", labels.dofs(model), labels.dof_units(model)),
        ("tau", labels.dofs(model), labels.torque_units(model)),
    )
    out = ["time [s]"]
    for letter, names, units in groups:
        for (joint, part), unit in zip(names, units, strict=True):
            out.append(f"{labels.joined(joint, letter, part)} [{unit or '1'}]")
    return out
