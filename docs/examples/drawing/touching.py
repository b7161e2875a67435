"""Mechanisms that touch: a woodpecker toy, billiards, a box that is pushed, a four-bar on a stop."""

from __future__ import annotations

import numpy as np

from drawing.chains import slower
from drawing.style import FAINT, GREY, PALETTE, legend_above, panels, style_axes
from spanloop.view.animation import animation


def _state_bars(ax, run, names) -> None:
    """Bars over the times at which contacts stick (full) or slip (light), one row a contact."""
    for k, name in enumerate(names):
        state = run.contacts[name].state
        for word, alpha in (("sticks", 1.0), ("slips", 0.4)):
            edges = np.flatnonzero(np.diff(np.concatenate([[False], state == word, [False]]).astype(int)))
            spans = [(run.times[a], max(run.times[b - 1] - run.times[a], 2e-4)) for a, b in edges.reshape(-1, 2)]
            ax.broken_barh(spans, (k - 0.3, 0.6), color=PALETTE[k], alpha=alpha)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()


def woodpecker(x) -> dict:
    run, linear, small = x["run"], x["linear"], x["SMALL"]
    figure, (down, turns, states) = panels(3, 1, 2.3, 9.0, sharex=True)
    for r, scale, style, label in ((linear, small, "--", "linear"), (run, 1.0, "-", "true angles")):
        few = slice(0, int(0.45 / 2e-5), 40)  # three cycles
        t, q = r.times[few], r.q[few] / scale
        down[0].plot(t, 1e3 * q[:, 0], style, color=PALETTE[0], label=label)
        turns[0].plot(t, q[:, 1], style, color=PALETTE[1], label=f"sleeve, {label}")
        turns[0].plot(t, q[:, 1] + q[:, 2], style, color=PALETTE[2], label=f"bird, {label}")
    style_axes(down[0], "", "height [mm]")
    style_axes(turns[0], "", "angle [rad]")
    down[0].legend(loc="upper right", frameon=False)
    turns[0].legend(loc="lower right", frameon=False, ncols=2)
    style_axes(states[0], "time [s]", "")
    _state_bars(states[0], run, ("beak", "upper", "lower"))
    states[0].set_xlim(0.0, 0.45)
    return {"27_woodpecker": figure}


def billiards(x) -> dict:
    shots, names = x["shots"], list(x["SHOTS"])
    figure, axes = panels(1, 3, 3.6, 11.0, sharey=True, sharex=True)
    for k, name in enumerate(names):
        ax = axes[0, k]
        for ball, color in (("cue", PALETTE[0]), ("object", PALETTE[1])):
            place = shots[k][ball].position
            ax.plot(place[:, 0], place[:, 1], color=color, label=f"{ball} ball")
            angle = np.linspace(0, 2 * np.pi, 60)
            ax.plot(place[0, 0] + x["RADIUS"] * np.cos(angle), place[0, 1] + x["RADIUS"] * np.sin(angle), color=GREY)
        ax.set_aspect("equal", "box")
        ax.set_title(name, loc="left")
        style_axes(ax, "x [m]", "y [m]" if k == 0 else "")
    legend_above(figure, axes[0, 0], 2)
    broken, ((ax,),) = panels(1, 1, 4.6, 9.0)
    run = x["run"]
    for k, name in enumerate(x["names"]):
        place = run[name].position
        ax.plot(place[:, 0], place[:, 1], color=PALETTE[k], label=name)
        ax.plot(*place[-1, :2], "o", color=PALETTE[k], markersize=10)
    half = x["LENGTH"] / 2, x["WIDTH"] / 2
    ax.plot(*np.array([(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)]).T * np.array(half)[:, None], color=GREY)
    ax.set_aspect("equal", "box")
    style_axes(ax, "x [m]", "y [m]")
    legend_above(broken, ax)
    return {"28_shots": figure, "28_break": broken}


def pushed_box(x) -> dict:
    run, size = x["run"], x["SIZE"]
    figure, axes = panels(1, 3, 3.2, 11.0, sharex=True, sharey=True)
    corners = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)]) / 2 * size[:2]
    for k, ax in enumerate(axes[0]):
        one = run[k]
        for sample in np.linspace(0, len(one) - 1, 9).astype(int):
            angle = 2.0 * np.arctan2(one.q[sample, 4], one.q[sample, 1])
            turn = np.array([(np.cos(angle), np.sin(angle)), (-np.sin(angle), np.cos(angle))])
            ax.plot(*(one["box"].position[sample, :2] + corners @ turn).T, color=PALETTE[0], linewidth=1.0)
        ax.plot(*one["finger"].position[:, :2].T, color=PALETTE[1], label="finger")
        ax.plot(*one["box"].position[:, :2].T, color=PALETTE[2], label="box")
        ax.set_aspect("equal", "box")
        ax.set_title(f"{1e3 * x['BESIDE'][k]:.0f} mm beside its middle", loc="left")
        style_axes(ax, "x [m]", "y [m]" if k == 0 else "")
    legend_above(figure, axes[0, 0], 2)
    return {"29_box": figure}


def four_bar(x) -> dict:
    located, steps = x["located"], x["steps"]
    figure, (angle, energy) = panels(2, 1, 2.6, 9.0, sharex=True)
    for run, style, label in ((located, "-", "impacts located"), (steps, "--", "in steps")):
        angle[0].plot(run.times, run["crank_hinge"].q, style, color=PALETTE[0], label=label)
        energy[0].plot(run.times, run.energy.sum(axis=-1), style, color=PALETTE[1], label=label)
    angle[0].axhline(x["STOP"], color=FAINT)
    style_axes(angle[0], "", "crank [rad]")
    style_axes(energy[0], "time [s]", "energy [J]")
    for ax in (angle[0], energy[0]):
        ax.legend(loc="upper right", frameon=False)
    title = "A four-bar bounces on a stop, twice slower than it is"
    return {"30_four_bar": figure, "30_motion": slower(animation(located, title=title, forces=False), 2.0)}
