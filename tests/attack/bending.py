"""Attack mechanisms with flexible bodies: random trees and loops of beams and rigid bodies against mass points.

A case is a random mechanism at some states whose beams have slopes of up to some 0.2 rad. Mass matrix, bias, inverse
and forward dynamics, energy and the poses of nodes are compared with tests/support/flexible_reference.py, which knows
finite elements and energies, and no recursion. A state is wrong if a number is off its bound, or if a state is refused
although every pivot of the mass matrix is above 3e-4 of its diagonal entry.
"""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
from flexible_reference import Reference
from tally import Tally, until

import spanloop as sl

STATES = 2
AGREE = 1e-10  # of the terms of an equation of motion, scaled by the root of the diagonal of M
CLOSED = 1e-7  # of the largest acceleration, of mechanisms with loops: their rows have a condition of their own
REGULAR = 3e-4


def attack(seed: int, deadline: float) -> Tally:
    """Cases 0, 1, 2, ... of a seed until the deadline."""
    return until(case, seed, deadline)


def case(seed: int, k: int) -> Tally:
    """One mechanism at a few states."""
    rng = np.random.default_rng([seed, k, 19])
    tally = Tally(notes=Counter(mechanisms=1))
    name = f"bending.case({seed}, {k})"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sl.SpanloopWarning)
            model = random_model(rng)
            tally.notes["closed" if model.loops else "trees"] += 1
            for _ in range(STATES):
                (_closed_state if model.loops else _tree_state)(model, rng, name, tally)
    except Exception as error:
        tally.fail(f"{name}: {type(error).__name__}: {error}")
    return tally


# ---- random mechanisms


def random_beam(rng: np.random.Generator):
    """A beam that is soft for its mass, of any basis, theory, taper and directions."""
    length = float(rng.uniform(0.2, 2.0))
    sections = [random_section(rng, 0.05 * length)]
    if rng.random() < 0.3:
        sections = [sl.flexible.circle(0.03 * length), sl.flexible.circle(0.015 * length)]
    basis = str(rng.choice(["craig-bampton", "cantilever"]))
    least = 0 if basis == "craig-bampton" else 1
    names = [d for d in ("y", "z", "torsion", "extension") if rng.random() < 0.6] or ["y"]
    return sl.flexible.beam(
        length,
        E=float(10.0 ** rng.uniform(6.0, 8.0)),
        density=float(10.0 ** rng.uniform(2.0, 4.0)),
        section=sections,
        modes={d: int(rng.integers(least, 3)) or least for d in names},
        basis=basis,
        nodes={"mid": float(rng.uniform(0.3, 0.7) * length)} if rng.random() < 0.3 else None,
        theory=str(rng.choice(["euler-bernoulli", "timoshenko"])),
        elements=int(rng.integers(3, 7)),
        pieces=int(rng.choice([1, 1, 1, 2])) if basis == "craig-bampton" else 1,
        damping=float(rng.choice([0.0, 0.02])),
    )


def random_section(rng: np.random.Generator, size: float):
    """A rectangle or a tube."""
    if rng.random() < 0.5:
        return sl.flexible.rectangle(*(float(x) for x in size * rng.uniform(0.5, 1.0, 2)))
    return sl.flexible.tube(float(0.5 * size), float(0.4 * size))


def random_model(rng: np.random.Generator) -> sl.Model:
    """Two to four bodies on hinges, sliders and welds, at least one of them a beam; half of them with a loop."""
    b, ends = sl.Builder("bending", gravity=tuple(rng.normal(size=3) * 5.0)), ["world"]
    for k in range(int(rng.integers(2, 5))):
        parent, name = str(rng.choice(ends)), f"b{k}"
        if k == 0 or rng.random() < 0.6:
            beam = random_beam(rng)
            b = b.body(name, flexible=beam)
            ends += [f"{name}.{node}" for node, _ in beam.nodes]
        else:
            mass, center = float(rng.uniform(0.1, 3.0)), tuple(0.1 * rng.normal(size=3))
            b = b.body(name, mass, center, tuple(mass * 0.01 * rng.uniform(0.8, 1.2, 3)))
            ends.append(name)
        at = (tuple(0.2 * rng.normal(size=3)), tuple(rng.uniform(-1.0, 1.0, 3)))
        axis = tuple(rng.normal(size=3))
        still = parent == "world" and name in ends  # energy leaves out what is fixed to the world
        kind = str(rng.choice(["revolute", "revolute", "prismatic", "revolute" if still else "fixed"]))
        ends_of_joint = (f"j{k}", parent, name)
        b = b.fixed(*ends_of_joint, *at) if kind == "fixed" else getattr(b, kind)(*ends_of_joint, axis, *at)
    if rng.random() < 0.5:
        one, other = rng.choice(ends[1:], 2, replace=len(ends) < 3)
        b = b.frame("left", str(one), tuple(0.1 * rng.normal(size=3)))
        b = b.frame("right", str(other) if one != other else "world", tuple(0.1 * rng.normal(size=3)))
        b = b.loop("left", "right", str(rng.choice(["spherical", "fixed"])), name="loop")
    return b.build()


def random_state(model: sl.Model, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Angles and slides of order 1, beams bent by some hundredths of their length."""
    q, v = rng.uniform(-1.0, 1.0, model.nq), rng.normal(size=model.nv)
    for joint in model.joints:
        if joint.kind.bends:
            own = model.q_slice(joint.name)
            q[own] *= 0.03 * joint.kind.source.beam.length / joint.kind.source.beam.pieces
            v[own] *= 0.3
    return q, v


# ---- comparisons


def _tree_state(model: sl.Model, rng: np.random.Generator, name: str, tally: Tally) -> None:
    robot, reference = sl.Dynamics(model), Reference(model)
    q, v = random_state(model, rng)
    M, h = reference.mass_matrix(q), reference.bias(q, v)
    size = np.sqrt(M.diagonal())
    a, tau = rng.normal(size=model.nv) / size, rng.normal(size=model.nv)
    worst = {
        "mass matrix": np.abs((robot.mass_matrix(q) - M) / np.outer(size, size)).max(initial=0.0),
        "bias": _apart(robot.bias(q, v), h, size),
        "inverse dynamics": _apart(robot.inverse_dynamics(q, v, a), M @ a + h, size),
        "energy": np.abs(np.array(robot.energy(q, v)) / np.array(reference.energies(q, v)) - 1.0).max(),
    }
    for body in (j.child for j in model.joints if j.kind.rides):
        R, p = reference.poses(q, v)[body]
        worst[f"pose of {body}"] = np.abs(robot.pose(q, body)[:3] - np.column_stack([R.value, p.value])).max()
    try:
        found = robot.forward_dynamics(q, v, tau)
        terms = max(np.abs(h / size).max(initial=0.0), np.abs(size * found).max(initial=0.0))
        worst["forward dynamics"] = np.abs((M @ found + h - tau) / size).max(initial=0.0) / terms
    except sl.errors.StateError as error:
        pivots = 1.0 / (np.linalg.inv(M).diagonal() * M.diagonal())
        if pivots.min() > REGULAR:
            tally.fail(f"{name}: refused with pivots of {pivots.min():.1e}: {error}")
        else:
            tally.count(refused=1)
    wrong = {what: x for what, x in worst.items() if not x < AGREE}
    if wrong:
        tally.fail(f"{name}: " + ", ".join(f"{what} off by {x:.1e}" for what, x in wrong.items()))
    else:
        tally.count(right=1)


def _closed_state(model: sl.Model, rng: np.random.Generator, name: str, tally: Tally) -> None:
    robot, reference = sl.Dynamics(model), Reference(model)
    q, v = random_state(model, rng)
    try:
        q = robot.assemble(q)
    except sl.errors.StateError:
        tally.notes["not closed"] += 1
        return
    J = np.array([reference.closures(q, e).rate for e in np.eye(model.nv)]).T
    if np.linalg.matrix_rank(J, tol=1e-9) == model.nv:  # a structure: all accelerations are zero
        tally.notes["structures"] += 1
        return
    v = v - np.linalg.pinv(J, rcond=1e-10) @ (J @ v)
    tau = rng.normal(size=model.nv)
    try:
        found = sl.compile(model, "forward_dynamics", near=q)(q, v, tau)
    except (sl.errors.StateError, sl.errors.UnsupportedError, sl.errors.ModelError):
        tally.count(refused=1)
        return
    want = reference.forward_dynamics(q, v, tau)
    other = sl.compile(model, "forward_dynamics", method="dense", near=q)(q, v, tau)
    size = np.sqrt(reference.mass_matrix(q).diagonal())
    off = [np.abs(size * (x - want)).max() / np.abs(size * want).max() for x in (found, other)]
    if max(off) < CLOSED:
        tally.count(right=1)
    else:
        tally.fail(f"{name}: accelerations off by {off[0]:.1e} (elimination), {off[1]:.1e} (dense)")


def _apart(found: np.ndarray, want: np.ndarray, size: np.ndarray) -> float:
    """The largest difference of two rows of torques beside the largest torque, each scaled by the root of M."""
    return float(np.abs((found - want) / size).max(initial=0.0) / max(np.abs(want / size).max(initial=0.0), 1e-300))
