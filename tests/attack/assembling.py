"""Closing loops without the library: Newton's method on many states, and velocities that keep the loops closed."""

from __future__ import annotations

import numpy as np
from loop_reference import rows
from plain_data import Data, real
from reference import Tree, cross, mv, quaternion_rotation, unit

CLOSED = 1e-14  # of the size: what Newton's method must reach


def moved(numbers: Data, q, step):
    """Coordinates (nq, n) after a step (nv, n) along v."""
    q, step = real(q).copy(), real(step)
    for link in numbers.links:
        x, d = q[link.q], step[link.v]
        if link.kind in ("spherical", "free", "general"):
            w, u = (d, None) if link.kind == "spherical" else (d[:3], d[3:])
            if link.kind == "general":
                twist = link.motion.T @ d
                w, u = twist[:3], twist[3:]
            if u is not None:
                x[4:7] += mv(quaternion_rotation(x[:4]), u)
            e = x[:4].copy()
            half = w / 2
            x[0] = e[0] - (e[1:] * half).sum(0)
            x[1:4] = e[1:] + e[0] * half + cross(e[1:], half)
            x[:4] = unit(x[:4])
        elif link.kind == "planar":
            c, s = np.cos(x[0]), np.sin(x[0])
            x[0] += d[0]
            x[1], x[2] = x[1] + c * d[1] - s * d[2], x[2] + s * d[1] + c * d[2]
        else:
            x += d
        q[link.q] = x
    return q


def units(numbers: Data, size: float) -> np.ndarray:
    """What counts as a step of one for each DoF (nv,): a radian, or the size of the mechanism."""
    out = np.ones(numbers.nv)
    for link in numbers.links:
        if link.kind == "prismatic":
            out[link.v] = size
        if link.kind == "cylindrical":
            out[link.v.start + 1] = size
        if link.kind == "planar":
            out[link.v.start + 1 : link.v.stop] = size
        if link.kind == "free":
            out[link.v.start + 3 : link.v.stop] = size
    return out


def assembled(numbers: Data, q, size: float, active=None, steps: int = 40):
    """States (nq, n) near q at which all loops are closed, and which of them (n,) were reached."""
    q = real(q)
    per = units(numbers, size)
    still = real(np.zeros((numbers.nv, q.shape[-1])))
    for _ in range(steps):
        error, J, weight = _position_rows(numbers, q, still, size, active)
        if not len(error):
            return q, np.ones(q.shape[-1], bool)
        if (np.abs(error * weight[:, None]).max(0) < CLOSED / 10).all():
            break
        scaled = (J * weight[:, None, None] * per[None, :, None]).astype(float)
        inverse = np.linalg.pinv(np.moveaxis(scaled, -1, 0), rcond=1e-7)
        step = -np.einsum("nij,jn->in", inverse, (error * weight[:, None]).astype(float))
        step *= np.minimum(1.0, 0.5 / np.maximum(np.abs(step).max(0), 1e-300))
        q = moved(numbers, q, step * per[:, None])
    error, _, weight = _position_rows(numbers, q, still, size, active)
    return q, np.abs(error * weight[:, None]).max(0) < CLOSED


def _position_rows(numbers: Data, q, still, size: float, active):
    found = rows(Tree(numbers, q, still), active)
    held = [k for k, x in enumerate(found.held) if x]
    length = np.array([np.abs(found.l[k]).max() > 0 for k in held])
    return found.error[held], found.J[held], np.where(length, 1.0 / size, 1.0)


def closing_velocity(numbers: Data, q, v, size: float, active=None):
    """The velocity (nv, n) nearest to v that keeps the loops closed; DoF of driven loops are free."""
    q, v, per = real(q), real(v), units(numbers, size)
    for _ in range(3):
        found = rows(Tree(numbers, q, v), active)
        free = [k for k, x in enumerate(found.given) if x is None]
        if not free:
            return v
        weight = np.where(np.abs(found.l[free]).max((1, 2)) > 0, 1.0 / size, 1.0)
        scaled = (found.J[free] * weight[:, None, None] * per[None, :, None]).astype(float)
        inverse = np.linalg.pinv(np.moveaxis(scaled, -1, 0), rcond=1e-10)
        rate = ((found.J[free] * v[None]).sum(1) * weight[:, None]).astype(float)
        v = v - per[:, None] * np.einsum("nij,jn->in", inverse, rate)
    return v


def beside(numbers: Data, q, size: float, rng, active=None):
    """A closed state a little further along a random motion of the loops, and whether one was found (n,)."""
    random = rng.normal(size=(numbers.nv, q.shape[-1])) * units(numbers, size)[:, None]
    v = closing_velocity(numbers, q, random, size, active)
    return assembled(numbers, moved(numbers, q, 0.02 * v), size, active, 15)
