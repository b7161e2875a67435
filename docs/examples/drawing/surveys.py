"""Studies: a coupler curve that is found, and a map of stiffness."""

from __future__ import annotations

import numpy as np

from drawing.style import FAINT, GREY, PALETTE, panels, style_axes


def synthesis(x) -> dict:
    figure, axes = panels(1, 2, 4.0, 10.0)
    t = np.linspace(0.0, 1.0, 60)
    axes[0, 0].plot(*x["curve"](t), color=FAINT, linewidth=7.0, label="wanted")
    found = x["found"].results()
    axes[0, 0].plot(found["x"].values[0, ::2], found["z"].values[0, ::2], color=PALETTE[0], label="found")
    axes[0, 0].set_aspect("equal")
    axes[0, 0].legend(frameon=False)
    style_axes(axes[0, 0], "x [m]", "z [m]")
    history = x["best"].history
    few = np.arange(0, len(history), 3)
    axes[0, 1].semilogy(few + 1, history[few], color=PALETTE[0])
    style_axes(axes[0, 1], "generation", "mean squared miss [cm²]")
    return {"40_four_bar_synthesis": figure}


def stiffness(x) -> dict:
    figure, axes = panels(1, 1, 4.6, 7.0)
    ax, side = axes[0, 0], 25
    image = x["stiffness"].reshape(side, side).T / 1e3  # rows of z
    edges = (*x["x"][[0, -1]], *x["z"][[0, -1]])
    ax.set_facecolor(FAINT)
    drawn = ax.imshow(image, origin="lower", extent=edges, cmap="viridis", interpolation="nearest")
    figure.colorbar(drawn, ax=ax, label="stiffness along x [kN/m]", ticks=[60, 80, 100])
    ax.plot([0.0], [1.2], marker="+", color=GREY)
    style_axes(ax, "x [m]", "z [m]")
    return {"41_stewart_stiffness": figure}
