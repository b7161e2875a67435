"""Mechanisms with flexible bodies that are simulated: a boom, an arm, a four-bar, a beam that is spun up."""

from __future__ import annotations

import numpy as np

import spanloop as sl

SPIN_UP = 15.0  # s
SPIN = 6.0  # rad/s


def boom(height=0.0, tip_mass=0.0, density=2700.0, **recipe) -> sl.Model:
    """A boom of aluminium along x on a hinge about y."""
    recipe = {"length": 2.0, "E": 7e10, "density": density, "section": sl.flexible.rectangle(0.02, 0.02), **recipe}
    b = sl.Builder("boom").body("boom", flexible=sl.flexible.beam(**recipe))
    b.revolute("hinge", "world", "boom", "y", position=(0.0, 0.0, height))
    if tip_mass:
        b.body("load", tip_mass, inertia=[1e-3] * 3).fixed("grip", "boom.tip", "load")
    return b.build()


def arm() -> sl.Model:
    """Two soft links, the first on a spherical joint, and a body at the tip."""
    soft = {"E": 2e8, "density": 1200.0, "modes": {"y": 0, "z": 0, "torsion": 0}}
    b = sl.Builder("arm")
    b.body("upper", flexible=sl.flexible.beam(1.0, section=sl.flexible.circle(0.06), **soft))
    b.body("fore", flexible=sl.flexible.beam(0.8, section=sl.flexible.circle(0.05), **soft))
    b.body("load", 0.4, inertia=[1e-3, 2e-3, 2e-3])
    b.spherical("shoulder", "world", "upper").revolute("elbow", "upper.tip", "fore", "y")
    return b.fixed("grip", "fore.tip", "load").build()


def four_bar(E=7e8, damping=0.0, **recipe) -> sl.Model:
    """A four-bar in the vertical plane x, y, whose coupler bends."""
    recipe = {"section": sl.flexible.rectangle(0.01, 0.02), "modes": {"y": 0}, **recipe}
    b = sl.Builder("four_bar", gravity=(0.0, -9.81, 0.0))
    b.body("crank", 0.3, center=(0.1, 0, 0), inertia=[1e-4, 1e-3, 1e-3])
    b.body("coupler", flexible=sl.flexible.beam(0.5, E=E, density=2700.0, damping=damping, **recipe))
    b.body("rocker", 0.5, center=(0.2, 0, 0), inertia=[1e-4, 6e-3, 6e-3]).frame("end", "rocker", position=(0.4, 0, 0))
    b.revolute("crank_hinge", "world", "crank", "z")
    b.revolute("coupler_hinge", "crank", "coupler", "z", position=(0.2, 0, 0), actuated=False)
    b.revolute("rocker_hinge", "world", "rocker", "z", position=(0.5, 0, 0), actuated=False)
    return b.loop("coupler.tip", "end", "revolute", name="closing").build()


FOUR_BAR_START = {"crank_hinge": 1.0, "coupler_hinge": -0.6, "rocker_hinge": 1.6}


def spun(**recipe) -> sl.Model:
    """The beam of Kane, Ryan & Banerjee on a driven hub, without gravity: L 10 m, EI 1.4e4, EA 2.8e7, 1.2 kg/m."""
    beam = sl.flexible.beam(10.0, E=7e10, density=3000.0, area=4e-4, I=2e-7, **recipe)
    b = sl.Builder("spin-up", gravity=(0.0, 0.0, 0.0)).body("boom", flexible=beam)
    return b.revolute("hub", "world", "boom", "z", driven=True).build()


def spin_up(model: sl.Model, duration=20.0, **options) -> sl.Trajectory:
    """Its motion: ω(t) = (6/15) (t − (15/2π) sin(2πt/15)) up to 15 s, then 6 rad/s."""

    def drive(t, q, v):
        a = np.where(t < SPIN_UP, SPIN / SPIN_UP * (1.0 - np.cos(2.0 * np.pi / SPIN_UP * t)), 0.0)
        return {"hub": a}

    return sl.simulate(model, np.zeros(model.nq), controller=drive, duration=duration, sample=0.01, **options)


def tip_in_hub(run: sl.Trajectory) -> np.ndarray:
    """Position (n, 2) of the tip along the hub's axis x and across it [m]."""
    angle = run["hub"].q
    along = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    across = np.stack([-np.sin(angle), np.cos(angle)], axis=-1)
    tip = run["boom.tip"].position[:, :2]
    return np.stack([(tip * along).sum(axis=-1), (tip * across).sum(axis=-1)], axis=-1)
