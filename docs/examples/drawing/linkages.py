"""Saha's five-bar and carpet scraper: positions and torques."""

from __future__ import annotations

import numpy as np

from drawing.style import GREY, PALETTE, bars, legend_above, panels, style_axes


def _place(robot, q, frame: str) -> np.ndarray:
    """Where a frame is in the plane of x and y [m]."""
    return robot.pose(q, frame)[:2, 3]


def _five_bars(robot, q) -> np.ndarray:
    pairs = (("near1", "far1"), ("far1", "tip1"), ("near2", "far2"), ("far2", "tip2"))
    return np.array([(_place(robot, q, a), _place(robot, q, b)) for a, b in pairs])


def five_bar(x) -> dict:
    robot, run = x["robot"], x["run"]
    poses, axes = panels(1, 2, 4.2, 8.5)
    shown = {
        "path (fig. 12)": ((x["q"][0], "start", PALETTE[5]), (x["q"][-1], "after 20 s", PALETTE[0])),
        "fall (fig. 14)": ((run.q[0], "start", PALETTE[4]), (run.q[-1], "distal links in line", PALETTE[1])),
    }
    for ax, (title, positions) in zip(axes[0], shown.items(), strict=True):
        ax.plot((0.0, 1.2), (0.0, 0.0), color=GREY, linestyle=":", marker="s", markersize=6, label="base")
        for q, label, color in positions:
            bars(ax, _five_bars(robot, q), color=color)
            ax.plot([], [], color=color, label=label)
        style_axes(ax, "x [m]", "y [m]")
        ax.set_aspect("equal", "datalim")
        ax.set_title(title, loc="left")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), frameon=False, ncols=2)

    angles, axes = panels(1, 2, 3.2, 8.5, sharex=True)
    for leg, ax in enumerate(axes[0]):
        for k, name in enumerate((r"driven, $\theta_1$", r"elbow, $\theta_2$")):
            ax.plot(x["t"], np.degrees(x["q"][:, 2 * leg + k]), color=PALETTE[k], label=name)
        style_axes(ax, "time [s]", "angle [°]")
        ax.set_title(f"({'ab'[leg]}) leg {leg + 1}", loc="left")
    legend_above(angles, axes[0, 0])

    torques, axes = panels(1, 1, 3.2, 7.5)
    for leg in (0, 1):
        axes[0, 0].plot(x["t"], x["tau"][:, 2 * leg], color=PALETTE[leg], label=f"leg {leg + 1}")
    style_axes(axes[0, 0], "time [s]", "driving torque [N m]")
    legend_above(torques, axes[0, 0])

    fall, axes = panels(1, 1, 3.2, 7.5)
    for leg in (0, 1):
        axes[0, 0].plot(run.times, run.q[:, 2 * leg], color=PALETTE[leg], label=f"drive of leg {leg + 1}")
    axes[0, 0].axvline(run.outcome.time, color=GREY, linestyle=":", label="distal links in line")
    style_axes(axes[0, 0], "time [s]", "angle [rad]")
    legend_above(fall, axes[0, 0])
    return {"09_positions": poses, "09_angles": angles, "09_torques": torques, "09_fall": fall}


def _scraper_bars(robot, q) -> dict[str, np.ndarray]:
    pairs = {
        "crank": ("crank", "crank_tip"),
        "rocker": ("rocker", "coupler"),
        "coupler": ("coupler_foot", "coupler_tip"),
        "arm": ("arm", "beam"),
        "beam": ("beam", "scraper"),
        "link": ("link", "link_tip"),
        "rod": ("rod", "rod_tip"),
    }
    return {n: np.array((_place(robot, q, a), _place(robot, q, b))) for n, (a, b) in pairs.items()}


def scraper(x) -> dict:
    robot, turn = x["robot"], np.degrees(x["speed"] * x["t"])
    torque, axes = panels(1, 1, 3.4, 7.5)
    for k, (assembly, values) in enumerate(x["torques"].items()):
        axes[0, 0].plot(turn, values, color=PALETTE[k], label=f"pantograph {assembly}")
    style_axes(axes[0, 0], "crank angle [°]", "crank torque [N m]")
    axes[0, 0].set_xticks(range(0, 361, 60))
    legend_above(torque, axes[0, 0])

    machine, axes = panels(1, 2, 4.6, 9.0, sharey=True)
    for ax, assembly in zip(axes[0], x["torques"], strict=True):
        q, _, _ = robot.follow(_start(assembly), x["crank"])
        path = np.array([_place(robot, one, "scraper") for one in q])
        ax.plot(*path.T, color=GREY, linestyle="--", linewidth=1.3, label="way of the tool")
        for color, (name, bar) in zip((*PALETTE,), _scraper_bars(robot, q[15]).items(), strict=False):
            ax.plot(*bar.T, color=color, marker="o", markersize=4, linewidth=2.6, label=name)
        style_axes(ax, "x [m]", "y [m]")
        ax.set_aspect("equal", "datalim")
        ax.set_title(f"pantograph {assembly}, crank at 30°", loc="left")
    legend_above(machine, axes[0, 0])
    return {"10_machine": machine, "10_torque": torque}


def _start(assembly: str) -> np.ndarray:
    from spanloop import zoo

    return zoo.carpet_scraper_start(assembly=assembly)
