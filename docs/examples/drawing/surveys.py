"""Studies: a coupler curve that is found, and a map of stiffness."""

from __future__ import annotations

import numpy as np

from drawing.style import FAINT, GREY, PALETTE, panels, style_axes


def synthesis(x) -> dict:
    figure, axes = panels(1, 2, 4.0, 10.0)
    t = np.linspace(0.0, 1.0, 200)
    axes[0, 0].plot(*x["curve"](t), color=FAINT, linewidth=7.0, label="wanted")
    found = x["found"].results()
    axes[0, 0].plot(found["x"].values[0], found["z"].values[0], color=PALETTE[0], label="found")
    axes[0, 0].set_aspect("equal")
    axes[0, 0].legend(frameon=False)
    style_axes(axes[0, 0], "x [m]", "z [m]")
    history = x["best"].history
    axes[0, 1].semilogy(np.arange(1, len(history) + 1), history, color=PALETTE[0])
    style_axes(axes[0, 1], "generation", "mean squared miss [cm²]")
    return {"40_four_bar_synthesis": figure}


def stiffness(x) -> dict:
    figure, axes = panels(1, 1, 4.6, 7.0)
    ax, inside = axes[0, 0], x["inside"]
    ax.scatter(x["x"][~inside], x["z"][~inside], s=10, color=FAINT, label="out of reach")
    drawn = ax.scatter(x["x"][inside], x["z"][inside], c=x["stiffness"][inside] / 1e3, s=55, marker="s", cmap="viridis")
    figure.colorbar(drawn, ax=ax, label="stiffness along x [kN/m]")
    ax.set_aspect("equal")
    ax.plot([0.0], [1.2], marker="+", color=GREY)
    style_axes(ax, "x [m]", "z [m]")
    return {"41_stewart_stiffness": figure}
