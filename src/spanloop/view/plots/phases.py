"""A joint's rate over its coordinate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from spanloop.errors import InputError
from spanloop.view.plots.canvas import blank, dressed, legend, pens

if TYPE_CHECKING:
    from spanloop.results.trajectory import Trajectory

_FAINT = 0.35  # of the lines of a batch


def phase(run: Trajectory, names: str | Sequence[str] | None = None, *, ax=None):
    """Rate over coordinate of joints of one freedom; a dot where a run begins. All runs of a batch are drawn.

    names: of joints with one unit; if not told, those of the first such joint's unit.
    """
    joints = _chosen(run, names)
    unit = joints[0].kind.units[0]
    (ax,) = blank(ax, size=(6.5, 5.0))
    for joint, pen in zip(joints, pens(len(joints)), strict=True):
        part = run[joint.name]
        q, v = (np.reshape(x, (-1, len(run))) for x in (part.q, part.v))
        for k in range(len(q)):
            alpha = _FAINT if run.batch else 1.0
            ax.plot(q[k], v[k], linewidth=1.4, alpha=alpha, label=None if k else joint.name, **pen)
        ax.plot(q[:, 0], v[:, 0], "o", markersize=5, color=pen["color"])
    quantity = "angle" if unit == "rad" else "displacement"
    dressed(ax, f"{quantity} [{unit}]", f"rate [{unit}/s]")
    legend(ax, f"{len(run.outcomes)} runs" if run.batch else None)
    return ax


def _chosen(run: Trajectory, names):
    single = [j for j in run.model.joints if j.kind.nq == j.kind.nv == 1]
    if names is None:
        joints = [j for j in single if j.kind.units == single[0].kind.units]
    else:
        joints = [run.model.joint(name) for name in ([names] if isinstance(names, str) else names)]
    for joint in joints:
        if joint not in single:
            raise InputError(f"plot: joint {joint.name!r} has {joint.kind.nv} freedoms; a phase is of joints with one")
    if not joints:
        raise InputError(f"plot: model {run.model.name!r} has no joint with one freedom, which a phase is of")
    units = {j.kind.units[0]: j.name for j in joints}
    if len(units) > 1:
        told = " and ".join(f"{name!r} in {unit}" for unit, name in units.items())
        raise InputError(f"plot: a phase has one unit; {told} differ. Draw them one by one")
    return joints
