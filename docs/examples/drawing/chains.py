"""Arms on one object and a hexapod: forces at contacts and feet, torques, animations."""

from __future__ import annotations

import re

import numpy as np

from drawing.style import PALETTE, legend_above, panels, style_axes
from spanloop.view.animation import animation


def slower(picture: str, times: float) -> str:
    """A moving SVG so many times slower."""
    return re.sub(r'dur="([0-9.e+-]+)s"', lambda m: f'dur="{float(m.group(1)) * times:g}s"', picture)


def grasps(x) -> dict:
    figure, axes = panels(2, 2, 2.9, 9.0, sharex=True, sharey=True)
    for ax, (name, (pressing, sliding)) in zip(axes.flat, x["forces"].items(), strict=True):
        for k in range(3):
            ax.plot(x["runs"][name].times, pressing[k], color=PALETTE[k], label=f"contact {k + 1}, along the normal")
        for k in range(3):
            ax.plot(x["runs"][name].times, sliding[k], "--", color=PALETTE[k], label=f"contact {k + 1}, across")
        style_axes(ax, "", "")
        ax.set_title(name, loc="left")
    axes[0, 0].set_ylim(0.0, 1.08 * max(pressing.max() for pressing, _ in x["forces"].values()))
    for ax in axes[1]:
        ax.set_xlabel("time [s]")
    for ax in axes[:, 0]:
        ax.set_ylabel("contact force [N]")
    legend_above(figure, axes[0, 0], 2)
    title = "Three arms on soft fingers, eight times slower than it is"
    return {"14_forces": figure, "14_motion": slower(animation(x["runs"]["soft finger"], title=title), 8.0)}


def hexapod(x) -> dict:
    feet, axes = panels(2, 2, 2.7, 9.0, sharex=True, sharey="row")
    for column, (name, found) in enumerate(x["feet"].items()):
        for k, force in enumerate(found.values()):
            style = {"color": PALETTE[k], "label": f"foot {k + 1}"}
            axes[0, column].plot(x["t"], force[:, 5], **style)
            axes[1, column].plot(x["t"], np.hypot(force[:, 3], force[:, 4]), **style)
        axes[0, column].set_title(name, loc="left")
    _named(axes, ("vertical force [N]", "horizontal force [N]"))
    legend_above(feet, axes[0, 0], 6)

    torques, axes = panels(3, 2, 2.3, 9.0, sharex=True, sharey="row")
    for column, (name, tau) in enumerate(x["torques"].items()):
        for row in range(3):
            for leg in range(6):
                style = {"color": PALETTE[leg], "label": f"leg {leg + 1}"}
                axes[row, column].plot(x["t"], tau[:, 6 + 3 * leg + row], **style)
        axes[0, column].set_title(name, loc="left")
    _named(axes, ("yaw [N m]", "hip [N m]", "knee [N m]"))
    legend_above(torques, axes[0, 0], 6)
    moving = animation(x["run"], title="A hexapod sways and squats, at its own speed")
    return {"15_feet": feet, "15_torques": torques, "15_motion": moving}


def _named(axes, words) -> None:
    """Labels of shared axes: words of the rows, time below."""
    for ax in axes.flat:
        style_axes(ax, "", "")
    for ax, word in zip(axes[:, 0], words, strict=True):
        ax.set_ylabel(word)
    for ax in axes[-1]:
        ax.set_xlabel("time [s]")
