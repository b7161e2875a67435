"""Arms and chains: torques over time, falls, and what virtual work costs."""

from __future__ import annotations

import numpy as np

from drawing.style import GREY, PALETTE, legend_above, panels, style_axes


def _six(times, values, names, words, columns: int = 3):
    """One panel a joint, as the paper has it; times (n,), values (n, 6), words with units."""
    figure, axes = panels(2, columns, 2.5, 9.5, sharex=True)
    for k, (ax, name, word) in enumerate(zip(axes.flat, names, words, strict=True)):
        low, high = values[:, k].min(), values[:, k].max()
        ax.plot(times, values[:, k], color=PALETTE[0])
        style_axes(ax, "time [s]" if k >= columns else "", word)
        if high - low < 1e-6:  # rounding is no curve
            ax.set_ylim(low - 1.0, high + 1.0)
        ax.set_title(name, loc="left")
    return figure


def puma_torques(x) -> dict:
    names = [f"({'abcdef'[k]}) joint {k + 1}" for k in range(6)]
    return {"07_puma_torques": _six(x["t"], x["tau"], names, ["torque [N m]"] * 6)}


def free_fall(x) -> dict:
    names = [f"({'abcdef'[k]}) joint {k + 1}" for k in range(6)]
    puma, stanford = (x["falls"][name] for name in ("PUMA", "Stanford"))
    loads = ["force [N]" if k == 2 else "torque [N m]" for k in range(6)]
    moved = ["displacement [m]" if k == 2 else "angle [rad]" for k in range(6)]
    return {
        "11_stanford_torques": _six(x["t"], x["tau"], names, loads),
        "11_puma_fall": _six(puma.times, puma.q, names, ["angle [rad]"] * 6),
        "11_stanford_fall": _six(stanford.times, stanford.q, names, moved),
    }


def _links(run, k: int) -> np.ndarray:
    """Ends (links, 2, 2) of the links in the plane of x and z at sample k: joint to joint, and twice as far as the mass
    centre where there is no next joint."""
    model, q = run.model, run.q[k]
    at = {b.name: run.robot.pose(q, b.name) for b in model.bodies}
    between = [(at[j.parent][:3, 3], at[j.child][:3, 3]) for j in model.joints if j.parent in at]
    parents = {j.parent for j in model.joints}
    last = [b for b in model.bodies if b.name not in parents]
    ends = [(at[b.name][:3, 3], (at[b.name] @ (*(2.0 * np.array(b.inertia.center)), 1.0))[:3]) for b in last]
    return np.array([*between, *ends])[:, :, [0, 2]]


def _snapshots(runs) -> object:
    figure, axes = panels(1, 3, 3.6, 9.5)
    for ax, (title, run) in zip(axes[0], runs.items(), strict=True):
        for share, color, width in ((0.0, "#c9d3da", 2.0), (0.5, PALETTE[5], 2.2), (1.0, PALETTE[0], 2.6)):
            k = round(share * (len(run) - 1))
            for n, line in enumerate(_links(run, k)):
                label = None if n else f"after {run.times[k]:.1f} s" if k else "at the start"
                ax.plot(*line.T, color=color, linewidth=width, solid_capstyle="round", label=label)
        ax.plot(0.0, 0.0, "s", color="black", markersize=5, label="ground")
        style_axes(ax, "x [m]", "z [m]")
        ax.set_title(title, loc="left")
        ax.set_aspect("equal", "datalim")
    legend_above(figure, axes[0, 0])
    return figure


def virtual_work(x) -> dict:
    figure, axes = panels(1, 2, 3.8, 9.0)
    line_styles = (("-", PALETTE[0]), (":", PALETTE[1]), ("--", GREY))
    for ax, title, found in zip(
        axes[0], ("figure 6: serial chains", "figure 7: stars"), (x["serial"], x["stars"]), strict=True
    ):
        for name, values, (line, color) in zip(x["METHODS"], found[1:], line_styles, strict=True):
            ax.plot(found[0], values / 1e3, line, color=color, marker="o", markersize=4, label=name)
        style_axes(ax, "degrees of freedom", "operations [thousands]")
        ax.set_ylim(0.0, None)
        ax.set_title(title, loc="left")
    legend_above(figure, axes[0, 0])
    return {"12_snapshots": _snapshots(x["runs"]), "12_operations": figure}


def embedded_controller(x) -> dict:
    figure, axes = panels(1, 2, 3.6, 10.0)
    few, names = slice(None, None, 8), [j.name for j in x["model"].joints]
    for k, name in enumerate(names[:3]):
        axes[0, 0].plot(x["times"][few], x["torques"][few, k], color=PALETTE[k], label=name)
    axes[0, 0].legend(loc="upper right", frameon=False)
    style_axes(axes[0, 0], "time [s]", "torque of the board [N m]")
    error = np.abs(x["run"].q - x["reference"].q).max(axis=1)
    axes[0, 1].plot(x["run"].times[few], 1e6 * error[few], color=PALETTE[0])
    style_axes(axes[0, 1], "time [s]", "from the reference [µrad]")
    return {"37_embedded_controller": figure}
