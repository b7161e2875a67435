"""Machines that walk: where they go, what their feet carry, animations."""

from __future__ import annotations

import numpy as np

from drawing.chains import slower
from drawing.style import GREY, PALETTE, panels, style_axes
from spanloop.view.animation import animation


def _standing(ax, run, names, labels) -> None:
    """Bars over the times at which feet push, one row a foot."""
    for k, name in enumerate(names):
        on = run.contacts[name].normal_force > 0.0
        edges = np.flatnonzero(np.diff(np.concatenate([[False], on, [False]]).astype(int)))
        spans = [(run.times[a], run.times[b - 1] - run.times[a]) for a, b in edges.reshape(-1, 2)]
        ax.broken_barh(spans, (k - 0.3, 0.6), color=PALETTE[k % len(PALETTE)])
    ax.set_yticks(range(len(names)), labels)
    ax.invert_yaxis()


def quadruped(x) -> dict:
    run, legs = x["run"], x["LEGS"]
    figure, (moved, standing) = panels(2, 1, 2.6, 9.0, sharex=True)
    for k, name in enumerate("xy"):
        moved[0].plot(run.times, run["trunk"].position[:, k], color=PALETTE[k], label=name)
    moved[0].axvspan(3.0, 3.2, color=GREY, alpha=0.3, label="push")
    style_axes(moved[0], "", "the trunk's way [m]")
    moved[0].legend(loc="upper left", frameon=False, ncols=3)
    _standing(standing[0], run, legs, ("front left", "front right", "rear left", "rear right"))
    style_axes(standing[0], "time [s]", "feet that stand")
    title = "A quadruped that trots is pushed, at half its speed"
    return {
        "25_feet": figure,
        "25_motion": slower(animation(run.between(2.6, 4.0).every(0.035), title=title, forces=False), 2.0),
    }


def linkage_walker(x) -> dict:
    whole, feet = x["run"], x["feet"]
    run = whole.between(2.0, 6.0)
    figure, (torque, standing) = panels(2, 1, 2.8, 9.0, sharex=True)
    torque[0].plot(run.times, run["crank1"].tau, color=PALETTE[0])
    style_axes(torque[0], "", "torque of the motor [N m]")
    torque[0].set_ylim(-5.0, 12.0)
    _standing(standing[0], run, feet, [f"leg {k}" for k in range(1, 9)])
    style_axes(standing[0], "time [s]", "feet that stand")
    few = run.between(3.0, 4.26).every(0.06)
    title = "Eight of Jansen's legs walk, at half their speed"
    return {"26_feet": figure, "26_motion": slower(animation(few, title=title, forces=False), 2.0)}
