"""Fingers that lose a box: forces at the contacts and their margins, and the motion."""

from __future__ import annotations

import numpy as np

from drawing.style import GREY, PALETTE, panels, style_axes
from spanloop.view.animation import animation


def finger_grasp(x) -> dict:
    run, held, friction = x["run"], x["held"], x["FRICTION"]
    figure, axes = panels(2, 1, 2.9, 9.0, sharex=True)
    (forces,), (margins,) = axes
    spare, prevented = (r.grasp_margin(friction, np.inf) for r in (run, held))
    for k, (name, mu) in enumerate(friction.items()):
        wrench = spare.wrenches[name]
        forces.plot(run.times, wrench[:, 5], color=PALETTE[k], label=f"{name}, pressing")
        needed = np.hypot(wrench[:, 3], wrench[:, 4]) / mu
        forces.plot(run.times, needed, "--", color=PALETTE[k], label=f"{name}, needed by friction {mu:g}")
        margins.plot(run.times, spare[name], color=PALETTE[k], label=name)
        margins.plot(held.times, prevented[name], ":", color=PALETTE[k], label=f"{name}, squeezed")
    for ax, word in ((forces, "force [N]"), (margins, "margin [N]")):
        for time in run.events.time:
            ax.axvline(time, color=GREY, linestyle=":", linewidth=1.0)
        style_axes(ax, "", word)
        ax.legend(loc="lower left", frameon=False, ncols=2)
    forces.set_ylim(0.0, 13.0)
    margins.set_ylim(-3.0, 6.0)
    margins.axhline(0.0, color=GREY, linewidth=1.0)
    margins.set_xlabel("time [s]")
    title = "The box slips out of the rising hand, at its own speed"
    return {"23_forces": figure, "23_motion": animation(run, title=title)}
