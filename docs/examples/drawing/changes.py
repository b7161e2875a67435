"""Mechanisms that change while they move: paths, forces and speeds with their events, animations."""

from __future__ import annotations

import numpy as np

from drawing.chains import slower
from drawing.style import GREY, PALETTE, legend_above, panels, style_axes
from spanloop.view.animation import animation


def _marked(ax, run) -> None:
    """Events as thin lines across the axes."""
    for time in np.unique(run.events.time):
        ax.axvline(time, color=GREY, linestyle=":", linewidth=1.0)


def _closed(ax, run, names) -> None:
    """Bars over the times at which loops are closed, one row a loop."""
    for k, name in enumerate(names):
        active = run[name].active
        edges = np.flatnonzero(np.diff(np.concatenate([[False], active, [False]]).astype(int)))
        spans = [(run.times[a], run.times[b - 1] - run.times[a]) for a, b in edges.reshape(-1, 2)]
        ax.broken_barh(spans, (k - 0.3, 0.6), color=PALETTE[k])
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()


def hand_over(x) -> dict:
    run = x["run"]
    figure, (moved, closed) = panels(2, 1, 2.6, 9.0, sharex=True)
    place = run["object"].position
    for k, name in enumerate("xyz"):
        moved[0].plot(run.times, place[:, k] - place[0, k], color=PALETTE[k], label=name)
    style_axes(moved[0], "", "the disc's way [m]")
    moved[0].legend(loc="upper left", frameon=False, ncols=3)
    style_axes(closed[0], "time [s]", "")
    _closed(closed[0], run, ("on_first", *x["HOLDING"], "on_second"))
    for ax in (moved[0], closed[0]):
        _marked(ax, run)
    title = "Three PUMAs hand a disc over, at their own speed"
    return {"19_closed": figure, "19_motion": animation(run, title=title, forces=False)}


def string(x) -> dict:
    run = x["run"]
    figure, ((path, force),) = panels(1, 2, 4.0, 9.0)
    taut = run["string"].active
    for mask, style, label in ((taut, "-", "taut"), (~taut, "--", "slack")):
        places = np.where(mask[:, None], run.q, np.nan)
        path.plot(*places.T, style, color=PALETTE[0 if label == "taut" else 1], label=label)
    path.plot(*run.events.q.T, "o", color=GREY, markersize=4, label="events")
    path.set_aspect("equal", "datalim")
    style_axes(path, "x [m]", "z [m]")
    path.legend(loc="center", frameon=False)
    force.plot(run.times, np.linalg.norm(run["string"].force[:, 3:], axis=-1), color=PALETTE[0])
    _marked(force, run)
    style_axes(force, "time [s]", "tension [N]")
    return {"20_path": figure}


def clutch(x) -> dict:
    run = x["run"]
    figure, (speeds, torque) = panels(2, 1, 2.4, 8.0, sharex=True)
    speeds[0].plot(run.times, run["shaft"].v, color=PALETTE[0], label="engine")
    speeds[0].plot(run.times, run["drum"].v, color=PALETTE[1], label="load")
    torque[0].plot(run.times, x["LOAD"] * run["drum"].a, color=PALETTE[2], label="through the clutch")
    torque[0].plot(run.times, run["shaft"].tau, "--", color=PALETTE[0], label="of the engine")
    torque[0].axhline(x["LIMIT"], color=GREY, linewidth=1.0)
    for ax, word in ((speeds[0], "speed [rad/s]"), (torque[0], "torque [N m]")):
        _marked(ax, run)
        style_axes(ax, "", word)
        ax.legend(loc="upper left", frameon=False)
    torque[0].set_xlabel("time [s]")
    return {"21_clutch": figure}


def ratchet(x) -> dict:
    run = x["run"]
    figure, ((angles,),) = panels(1, 1, 3.4, 8.0)
    angles.plot(
        run.times, np.degrees(run["rocker_hinge"].q - run["rocker_hinge"].q[0]), color=PALETTE[0], label="rocker"
    )
    angles.plot(run.times, np.degrees(run["drum"].q), color=PALETTE[1], label="winch")
    _marked(angles, run)
    style_axes(angles, "time [s]", "angle [°]")
    legend_above(figure, angles)
    return {"22_angles": figure, "22_motion": animation(run, title="A crank-rocker winds a winch, at its own speed")}


def capture(x) -> dict:
    run = x["run"]
    figure, (rates, energy) = panels(2, 1, 2.6, 9.0, sharex=True)
    for k in range(1, 7):
        rates[0].plot(run.times, run[f"arm_joint{k}"].v, color=PALETTE[k - 1], label=f"joint {k}")
    energy[0].plot(run.times, run.energy.sum(axis=-1), color=PALETTE[0], label="energy")
    for ax, word in ((rates[0], "rate [rad/s]"), (energy[0], "kinetic energy [J]")):
        _marked(ax, run)
        style_axes(ax, "", word)
    rates[0].legend(loc="upper right", frameon=False, ncols=2)
    energy[0].set_ylim(bottom=0.0)
    energy[0].set_xlabel("time [s]")
    title = "A free-flying arm captures a tumbling body, twice as fast as it is"
    return {"24_energy": figure, "24_motion": slower(animation(run, title=title), 0.5)}
