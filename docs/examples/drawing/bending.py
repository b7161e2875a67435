"""Bodies that bend: a beam that is spun up, an arm of soft booms, a stage on leaf springs."""

from __future__ import annotations

import numpy as np

from drawing.style import FAINT, GREY, PALETTE, panels, style_axes


def _axis(run, body: str, root: str, k: int, count: int = 12) -> np.ndarray:
    """Points (count + 1, 3) along the bent axis of a flexible body at a sample of a run."""
    joint = next(j for j in run.model.joints if j.child == body)
    places, _ = joint.kind.source.stations(count).placed(run[joint.name].q[k])
    pose = run[root].pose[k]
    return places @ pose[:3, :3].T + pose[:3, 3]


def spin_up(x) -> dict:
    figure, ((ax,),) = panels(1, 1, 3.6, 9.0)
    ax.axhline(0.0, color=FAINT)
    shown = {"1 mode": ":", "3 modes": "-", "4 pieces": "--"}
    for k, (name, style) in enumerate(shown.items()):
        run = x["runs"][name]
        few = slice(None, None, max(1, len(run.times) // 250))
        ax.plot(run.times[few], x["tip"](run)[few, 1], style, color=PALETTE[k], label=name)
    wrong, y = x["wrong"], x["tip"](x["wrong"])[:, 1]
    ax.plot(wrong.times[::20], y[::20], color=GREY, label="without stiffening")
    ax.set_ylim(-0.8, 0.1)
    ax.legend(loc="lower right", frameon=False)
    style_axes(ax, "time [s]", "deflection of the tip [m]")
    return {"34_spin_up": figure}


def space_arm(x) -> dict:
    figure, axes = panels(1, 2, 4.0, 11.0, width_ratios=(1, 1.4))
    ax, run = axes[0, 0], x["runs"]["plain"]
    for share, t in zip(np.linspace(0.2, 1.0, 6), np.linspace(0.0, 3.0, 6), strict=True):
        k = int(np.argmin(np.abs(run.times - t)))
        parts = [run["hub"].position[k : k + 1]] + [_axis(run, b, f"{b}.root", k) for b in ("upper", "lower")]
        line = np.concatenate(parts)
        ax.plot(line[:, 0], line[:, 1], color=PALETTE[0], alpha=share)
        ax.plot(*line[0, :2], "s", color=GREY, markersize=9, alpha=share)
        ax.plot(*run["payload"].position[k, :2], "o", color=PALETTE[1], alpha=share)
    ax.set_aspect("equal", "box")
    style_axes(ax, "x [m]", "y [m]")
    ax = axes[0, 1]
    for k, (name, run) in enumerate(x["runs"].items()):
        place = x["payload"](run)
        ax.plot(
            run.times[3000::50], 1e3 * (place - place[-4000:].mean(axis=0))[3000::50, 0], color=PALETTE[k], label=name
        )
    ax.set_xlim(3.0, x["DURATION"])
    ax.set_ylim(-400, 600)
    ax.legend(loc="upper right", frameon=False)
    style_axes(ax, "time [s]", "payload beside its place, along x of the hub [mm]")
    return {"35_space_arm": figure}


def leaf_guidance(x) -> dict:
    figure, axes = panels(1, 2, 3.6, 10.0)
    ax, unit = axes[0, 0], x["BENDING"] / x["LENGTH"] ** 2
    loads = np.linspace(-9.8, 8.0, 40)
    theory = np.array([x["leaf_stiffness"](p * unit) for p in loads]) * x["LENGTH"] ** 3 / x["BENDING"]
    ax.plot(loads, theory, color=GREY, label="closed form")
    ratio = (np.array(x["found"]) / np.array(x["expected"])) ** 2
    stiffness = np.array([x["leaf_stiffness"](p * unit) for p in x["loads"]]) * x["LENGTH"] ** 3 / x["BENDING"]
    ax.plot(x["loads"], ratio * stiffness, "o", color=PALETTE[0], label="from modes")
    ax.legend(loc="upper left", frameon=False)
    style_axes(ax, "pull on a leaf [EI/L²]", "sway stiffness of a leaf [EI/L³]")
    ax, run = axes[0, 1], x["run"]
    stage = 1e3 * run["stage"].position[:300:5]  # the first swing
    ax.plot(stage[:, 1], 1e3 * (stage[:, 0] - stage[0, 0]), color=PALETTE[1])
    style_axes(ax, "sway [mm]", "the stage comes down [µm]")
    return {"36_leaf_guidance": figure}


def finite_element_linkage(x) -> dict:
    figure, axes = panels(2, 1, 2.4, 8.0)
    ax, rocker = axes[0, 0], x["rocker"]
    corners = rocker.vertices[rocker.triangles]
    upper = np.isclose(corners[:, :, 2], rocker.vertices[:, 2].max()).all(axis=1)
    places = 1e3 * rocker.vertices[:, :2].T
    seen = ax.tripcolor(*places, rocker.triangles[upper], 1e9 * x["behind"][upper], cmap="viridis", rasterized=True)
    figure.colorbar(seen, ax=ax, label="strain energy [nJ]")
    ax.set_aspect("equal", "box")
    style_axes(ax, "x from the root [mm]", "y [mm]")
    axes[1, 0].plot(x["run"].times, 1e6 * x["run"].strain_energy["rocker"], color=PALETTE[0])
    style_axes(axes[1, 0], "time [s]", "strain energy of the bar [µJ]")
    return {"39_finite_element_linkage": figure}
