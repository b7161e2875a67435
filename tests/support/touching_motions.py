"""Motions with contacts for tests: closed forms of boxes and balls, with the forces that a run would record."""

from __future__ import annotations

import functools

import numpy as np

import spanloop as sl
from spanloop.trajectory import Outcome, Segment, Trajectory

G = 9.81
MASS, EDGES, FRICTION = 2.0, (0.4, 0.3, 0.2), 0.3
H = 1e-3


def body_on_ground(shape, inertia, **contact):
    """A free body whose shape can touch the ground."""
    b = sl.Builder("touching", gravity=(0.0, 0.0, -G)).body("body", mass=MASS, inertia=inertia)
    return b.free("root", "world", "body").build().with_contact("touch", ("body", shape), "ground", **contact)


def box(**contact):
    x, y, z = EDGES
    inertia = MASS / 12.0 * np.array([y * y + z * z, x * x + z * z, x * x + y * y])
    return body_on_ground(sl.contacts.Box(*EDGES), tuple(inertia), friction=FRICTION, **contact)


def ball(radius=0.1, **contact):
    return body_on_ground(sl.contacts.Sphere(radius), (0.4 * MASS * radius**2,) * 3, **contact)


def run_of(model, times, position, velocity, forces, checks=None, **settings):
    """A run of a body that does not turn: position, velocity (n, 3), forces (n, points, 3) along (z, x, y)."""
    n = len(times)
    q, v = np.zeros((n, 7)), np.zeros((n, 6))
    q[:, 0], q[:, 4:], v[:, 3:] = 1.0, position, velocity
    left = np.zeros((n, 3)) if checks is None else checks
    segment = Segment(times, q, v, np.zeros((n, 6)), contact_forces=forces.reshape(n, -1), contact_checks=left)
    outcome = Outcome("finished", "finished", times[-1])
    return Trajectory(model, segment, outcome, {"step": H, "contacts": "steps"} | settings)


@functools.cache
def sliding_box(speed=2.0, duration=0.5):
    """A box that slides along x and slows down by µ g; the front presses more than the rear."""
    t = H * np.arange(round(duration / H) + 1)
    x, _, z = EDGES
    position = np.column_stack([speed * t - 0.5 * FRICTION * G * t**2, 0 * t, 0 * t + 0.5 * z])
    velocity = np.column_stack([speed - FRICTION * G * t, 0 * t, 0 * t])
    model = box()
    corners = sl.Dynamics(model).contact_geometry(np.array([1.0, 0, 0, 0, 0, 0, 0.5 * z]))
    mean, more = MASS * G / 4.0, FRICTION * MASS * G * 0.5 * z / (2.0 * x)
    normal = np.where(corners.gap > 0.1, 0.0, mean + np.sign(corners.point[:, 0]) * more)
    one = np.column_stack([normal, -FRICTION * normal, 0.0 * normal])
    forces = np.broadcast_to(one, (len(t), *one.shape)).copy()
    forces[0] = np.nan
    return run_of(model, t, position, velocity, forces)


@functools.cache
def bouncing_ball(restitution=0.5, drop=1.0, duration=1.0, radius=0.1):
    """A ball that falls and bounces, step by step: a free step, then an impulse and the displacement that it makes."""
    position, speed = drop + radius, 0.0
    rows, force = [(position, speed, 0.0)], 0.0
    for _ in range(round(duration / H)):
        free, fast = position + H * speed - 0.5 * G * H * H, speed - G * H
        gap = free - radius
        force = 0.0
        if gap <= 0.0:
            after = -restitution * fast if speed < -1e-3 else 0.0
            share = min(1.0, gap / (H * fast)) if fast < 0.0 else 0.0
            force = max(after - fast, 0.0)
            free += share * H * force
            fast += force
        position, speed = free, fast
        rows.append((position, speed, MASS * force / H))
    z, v, f = np.array(rows).T
    none = np.zeros_like(z)
    t = H * np.arange(len(z))
    forces = np.stack([f, none, none], axis=-1)[:, None, :]
    forces[0] = np.nan
    model = ball(radius, restitution=min(restitution, 1.0))
    return run_of(model, t, np.column_stack([none, none, z]), np.column_stack([none, none, v]), forces)
