"""Motions for tests: small Runge-Kutta runs of the zoo's mechanisms, as trajectories."""

from __future__ import annotations

import functools

import numpy as np
from plain_steps import rk4

import spanloop as sl
from spanloop.trajectory import Outcome, Segment, Trajectory

SETTINGS = {"method": "rk4", "step": 1e-3, "closures": "none"}


def integrated(model, q, v, duration, h, torque=lambda t, q, v: np.zeros_like(v), every=1, held=False):
    """The run from (q, v) under torque(t, q, v), sampled at every so-manieth step; held: constant during a step."""
    robot = sl.Dynamics(model)
    count = round(duration / h)
    states, taus = [(q, v)], [torque(0.0, q, v)]
    for k in range(count):
        tau = torque(k * h, q, v)
        q, v = rk4(_right_side(robot, torque, tau if held else None), robot.integrate, q, v, h, k * h)
        states.append((q, v))
        taus.append(torque((k + 1) * h, q, v))
    qs, vs = (np.array(x)[::every] for x in zip(*states, strict=True))
    times = h * np.arange(count + 1)[::every]
    segment = Segment(times, qs, vs, np.array(taus)[::every], held=held)
    outcome = Outcome("finished", f"The run finished at {duration:g} s.", duration)
    return Trajectory(model, (segment,), (outcome,), SETTINGS | {"step": h})


def _right_side(robot, torque, held):
    def accelerate(t, q, v):
        return robot.forward_dynamics(q, v, torque(t, q, v) if held is None else held)

    return accelerate


@functools.cache
def four_bar_run(duration=0.3, h=1e-3):
    """The four-bar linkage from a turning crank, without torques."""
    model = sl.zoo.four_bar()
    q = sl.zoo.four_bar_start()
    v = sl.Dynamics(model).complete_velocity(q, {"crank_hinge": 1.0})
    return integrated(model, q, v, duration, h)


@functools.cache
def flying_run(duration=0.2, h=1e-3):
    """A quadruped in free flight: a free joint and twelve hinges."""
    model = sl.zoo.quadruped().without_losses()
    q, v = model.random_state(3)
    return integrated(model, q, v, duration, h)


def batch_of(run, lengths, ends=True):
    """Copies of a run that end after so many samples, and half a step later where `ends` are located."""
    n = len(run)
    shape = (len(lengths), n)
    filled = np.arange(n) < np.array(lengths)[:, None]

    def spread(x):
        return np.where(filled[..., None], np.broadcast_to(x, (*shape, x.shape[-1])), np.nan)

    segment = Segment(run.times, spread(run.q), spread(run.v), spread(run.tau))
    times = np.array([run.times[k - 1] + 0.4 * run.step if k < n else np.nan for k in lengths])
    middle = np.array([[run.q[k - 1] if k < n else np.full(run.model.nq, np.nan)] for k in lengths])
    speed = np.array([[run.v[k - 1] if k < n else np.full(run.model.nv, np.nan)] for k in lengths])
    end = Segment(times, middle, speed, np.zeros_like(speed)) if ends else None
    outcomes = [
        Outcome("event", f"Stopped at {t:g} s.", t)
        if k < n
        else Outcome("finished", "The run finished.", run.times[-1])
        for k, t in zip(lengths, times, strict=True)
    ]
    return Trajectory(run.model, (segment,), tuple(outcomes), run.settings, ends=end)
