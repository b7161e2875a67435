"""Motions with events in closed form: a ball that bounces, two carts that couple and part."""

from __future__ import annotations

import functools
import math

import numpy as np

import spanloop as sl
from spanloop.trajectory import Outcome, Segment, Trajectory
from spanloop.trajectory.events import EventTable, ImpulseRow, impulse_rows

G = 9.81
SETTINGS = {"step": 1e-2, "integrator": "closed form"}


@functools.cache
def ball_model(mass=2.0):
    """A ball on a vertical slide that ends at the ground."""
    builder = sl.Builder("ball", gravity=(0, 0, -G))
    builder.body("ball", mass=mass, inertia=(0.1, 0.1, 0.1))
    builder.prismatic("slide", "world", "ball", axis="z", lower=0.0, upper=10.0)
    return builder.build()


def bouncing(heights=(1.0,), restitution=0.8, duration=1.2, h=1e-2, mass=2.0, batch=True):
    """Balls that fall from heights and bounce: a batch of runs on a grid, or the first of them, cut at its events."""
    times = h * np.arange(round(duration / h) + 1)
    q, v, rows = np.zeros((len(heights), len(times), 1)), np.zeros((len(heights), len(times), 1)), []
    for k, z in enumerate(heights):
        start, speed, at = 0.0, 0.0, z
        while start < duration:
            t = times - start
            later = t >= -1e-12
            q[k, later, 0] = at + speed * t[later] - 0.5 * G * t[later] ** 2
            v[k, later, 0] = speed - G * t[later]
            fall = (speed + math.sqrt(speed**2 + 2.0 * G * at)) / G
            start, down = start + fall, speed - G * fall
            speed, at = -restitution * down, 0.0
            if start < duration:
                rows.append((k, start, down, speed))
    run, time, before, after = map(np.array, zip(*rows, strict=True))
    n = len(run)
    events = EventTable(
        run=run,
        time=time,
        kind=np.full(n, "impact"),
        name=np.full(n, "slide::stop"),
        q=np.zeros((n, 1)),
        v_before=before[:, None],
        v_after=after[:, None],
        tau_before=np.zeros((n, 1)),
        tau_after=np.zeros((n, 1)),
        impulse=mass * (after - before)[:, None],
        energy_lost=0.5 * mass * (before**2 - after**2),
        on=np.zeros((n, 1)),
        begin_on=np.zeros((len(heights), 1)),
        switches=("slide::stop",),
        rows=(ImpulseRow("slide::stop", "slide::stop", "N s"),),
    )
    outcomes = [Outcome("finished", f"The run finished at {duration:g} s.", duration)] * len(heights)
    segment = Segment(times, q, v, np.zeros_like(v))
    many = Trajectory(ball_model(mass), (segment,), tuple(outcomes), SETTINGS | {"step": h}, events=events)
    return many if batch else many[0]


@functools.cache
def carts_model():
    """Two carts of 1 kg and 3 kg on one rail, with a hook that is switchable."""
    builder = sl.Builder("carts", gravity=(0, 0, -G))
    for name, mass in (("left", 1.0), ("right", 3.0)):
        builder.body(name, mass=mass, inertia=(0.1, 0.1, 0.1))
        builder.prismatic(f"{name}_rail", "world", name, axis="x")
    builder.loop("left", "right", "fixed", name="hook", switchable=True)
    return builder.build()


def coupled_carts(h=1e-2, at_grid=True):
    """The left cart catches the right one at 0.5 s, 1 m away, with 2 m/s; the hook opens at 0.8 s. Until 1 s."""
    model = carts_model()
    rows = impulse_rows(model)
    x = next(k for k, row in enumerate(rows) if "force along x" in row.name)
    catch, part = (0.5, 0.8) if at_grid else (0.5 + 0.3 * h, 0.8 + 0.4 * h)
    times = h * np.arange(round(1.0 / h) + 1)
    late = (times >= catch - 1e-12)[:, None]
    v = np.where(late, [0.5, 0.5], [2.0, 0.0])
    q = np.where(late, 2.0 * catch + 0.5 * (times[:, None] - catch), times[:, None] * [2.0, 0.0] + [0.0, 2.0 * catch])
    impulse = np.zeros((2, len(rows)))
    impulse[0, x] = 1.5
    events = EventTable(
        run=[0, 0],
        time=[catch, part],
        kind=["attach", "release"],
        name=["hook", "hook"],
        q=[[2.0 * catch] * 2, [2.0 * catch + 0.5 * (part - catch)] * 2],
        v_before=[[2.0, 0.0], [0.5, 0.5]],
        v_after=[[0.5, 0.5], [0.5, 0.5]],
        tau_before=np.zeros((2, 2)),
        tau_after=np.zeros((2, 2)),
        impulse=impulse,
        energy_lost=[1.5, 0.0],
        on=[[True], [False]],
        begin_on=[[False]],
        switches=("hook",),
        rows=rows,
    )
    outcome = Outcome("finished", "The run finished at 1 s.", 1.0)
    return Trajectory(
        model, (Segment(times, q, v, np.zeros_like(v)),), (outcome,), SETTINGS | {"step": h}, events=events
    )


@functools.cache
def free_bodies_model():
    """Two bodies of 1 kg and 3 kg in free flight without gravity, with a switchable ball joint between them."""
    builder = sl.Builder("bodies", gravity=(0, 0, 0))
    for name, mass in (("left", 1.0), ("right", 3.0)):
        builder.body(name, mass=mass, inertia=(0.1, 0.1, 0.1))
        builder.free(f"{name}_root", "world", name)
    builder.loop("left", "right", "spherical", name="catch", switchable=True)
    return builder.build()


def meeting_bodies(vanish=False, h=1e-2):
    """Bodies that meet at 0.5 s with 2 m/s and −2 m/s and hold each other, or of which the right one vanishes then."""
    model = free_bodies_model()
    rows = impulse_rows(model)
    times = h * np.arange(round(1.0 / h) + 1)
    before, after = np.zeros(12), np.zeros(12)
    before[[3, 9]] = 2.0, -2.0
    after[[3, 9]] = (2.0, 0.0) if vanish else (-1.0, -1.0)
    late = (times > 0.5 + 1e-9)[:, None]
    v = np.where(late, after, before)
    q = np.tile(model.neutral(), (len(times), 1))
    for joint, place in (("left_root", 3), ("right_root", 9)):
        x = model.q_slice(joint).start + 4
        q[:, x] = np.where(late[:, 0], after[place], before[place]) * (times - 0.5)
    impulse = np.zeros((1, len(rows)))
    if not vanish:
        impulse[0, [k for k, row in enumerate(rows) if "along x" in row.name]] = 3.0
    events = EventTable(
        run=[0],
        time=[0.5],
        kind=["vanish" if vanish else "attach"],
        name=["right" if vanish else "catch"],
        q=[model.neutral()],
        v_before=[before],
        v_after=[after],
        tau_before=np.zeros((1, 12)),
        tau_after=np.zeros((1, 12)),
        impulse=impulse,
        energy_lost=[0.0 if vanish else 6.0],
        on=[[not vanish]],
        begin_on=[[False]],
        switches=("catch",),
        rows=rows,
    )
    outcome = Outcome("finished", "The run finished at 1 s.", 1.0)
    segment = Segment(times, q, v, np.zeros_like(v))
    return Trajectory(model, (segment,), (outcome,), SETTINGS | {"step": h}, events=events)
