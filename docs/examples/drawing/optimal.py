"""Optimal control: swing-up by shooting and by iLQR, a Stewart platform that moves with the least effort."""

from __future__ import annotations

import numpy as np

from drawing.linkages import _five_bars
from drawing.style import FAINT, GREY, PALETTE, bars, legend_above, panels, style_axes


def _strobe(ax, robot, run, count: int, base: float) -> None:
    """A five-bar at samples of a run, the first grey, the last dark."""
    ax.plot((0.0, base), (0.0, 0.0), color=GREY, linestyle=":", marker="s", markersize=6)
    samples = np.linspace(0, len(run) - 1, count).astype(int)
    for share, k in zip(np.linspace(0.15, 1.0, count), samples, strict=True):
        last = k == samples[-1]
        bars(ax, _five_bars(robot, run.q[k]), color=PALETTE[1] if last else PALETTE[0], alpha=share, linewidth=1.4)
    path = np.array([robot.pose(q, "tip1")[:2, 3] for q in run.q[:: max(1, len(run) // 200)]])
    ax.plot(*path.T, color=GREY, linewidth=1.0)
    ax.set_aspect("equal", "box")
    style_axes(ax, "x [m]", "y [m]")


def _held(ax, times, u, labels) -> None:
    for k, label in enumerate(labels):
        ax.step(times, np.append(u[:, k], u[-1, k]), where="post", color=PALETTE[k + 2], label=label)
    if len(labels) > 1:
        ax.legend(loc="upper center", frameon=False)


def _cart(figure_axes, run, u, bound: float) -> None:
    angle, force = figure_axes
    angle.plot(run.times, run["hinge"].q, color=PALETTE[0], label="pole [rad]")
    angle.plot(run.times, run["rail"].q, color=PALETTE[1], label="cart [m]")
    for level in (-np.pi, np.pi):
        if abs(run["hinge"].q[-1] - level) < 1.0:
            angle.axhline(level, color=FAINT)
    angle.legend(loc="center left", frameon=False)
    style_axes(angle, "", "")
    for level in (-bound, bound):
        force.axhline(level, color=FAINT)
    _held(force, np.linspace(0.0, run.duration, len(u) + 1), u, ("force",))
    style_axes(force, "time [s]", "force [N]")


def swing_up(x) -> dict:
    cart, axes = panels(2, 1, 2.2, 8.0, sharex=True)
    _cart(axes[:, 0], x["cart_run"], x["force"], 12.0)
    five, axes = panels(1, 2, 4.2, 10.0, width_ratios=(1, 1.3))
    _strobe(axes[0, 0], x["five_bar"], x["run"], 13, x["BASE"])
    _held(axes[0, 1], np.linspace(0.0, x["run"].duration, 51), x["torque"], ("drive 1", "drive 2"))
    style_axes(axes[0, 1], "time [s]", "torque [N m]")
    return {"31_cart_pole": cart, "31_five_bar": five}


def least_effort(x) -> dict:
    figure, axes = panels(2, 3, 2.3, 10.0, sharex=True, sharey=True)
    times = np.linspace(0.0, x["DURATION"], x["N"] + 1)
    for k, ax in enumerate(axes.ravel()):
        ax.plot(x["t"], x["path_tau"][:, k], color=PALETTE[0], linestyle="--", label="cycloidal path")
        own = np.append(x["forces"][:, k], x["forces"][-1, k])
        ax.step(times, own, where="post", color=PALETTE[1], label="least effort")
        ax.set_title(f"leg {k + 1}", loc="left")
        style_axes(ax, "time [s]" if k > 2 else "", "force [N]" if k % 3 == 0 else "")
    legend_above(figure, axes[0, 0], 2)
    return {"32_forces": figure}


def ilqr(x) -> dict:
    figure, axes = panels(1, 2, 4.0, 10.0, width_ratios=(1.2, 1))
    for name, color in (("cart_costs", PALETTE[0]), ("costs", PALETTE[1])):
        label = "cart-pole" if name == "cart_costs" else "five-bar"
        axes[0, 0].semilogy(x[name], color=color, marker="o", markersize=3, label=label)
    axes[0, 0].legend(frameon=False)
    style_axes(axes[0, 0], "round", "cost")
    _strobe(axes[0, 1], x["five_bar"], x["run"], 13, 0.4)
    return {"33_ilqr": figure}
