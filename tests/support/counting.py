"""Plans of closed mechanisms without machine code: operations and critical path of large ones in seconds."""

from __future__ import annotations

from dataclasses import replace
from math import pi

import numpy as np

from spanloop import zoo
from spanloop.algorithms.catalog import algorithm
from spanloop.compiler.lower import Plan, unrolled
from spanloop.model.files.dh.table import DHRow, from_dh
from spanloop.model.parts import Placement
from spanloop.sweeps import walked
from spanloop.topology import mechanism


def plan_of(model, method: str, result=None, **options) -> Plan:
    """The plan of forward dynamics with no row dropped; result(m, here, world): other outputs than accelerations."""
    m = mechanism(model)
    program = algorithm("forward_dynamics", method, True)[1].make(m, **options)
    if program.regroup:
        m = m.regrouped()
    if result is not None:
        program = replace(program, result=result)
    sizes = {"q": m.nq, "v": m.nv, "tau": m.nv, **program.sizes}
    inputs = [(n, sizes[n]) for n in program.inputs]
    return unrolled("forward_dynamics", inputs, (), lambda x: (walked(program, m, x)[0], [], []))


def generic_arms(m: int, n: int):
    """m generic arms of n joints with point contacts on an object, at places none of whose coordinates is zero.

    For counting: nobody asks whether the arms reach.
    """
    model = zoo.arms_with_object(m, arm=generic_arm(n), grasp="spherical")
    rng = np.random.default_rng(m)
    places = [Placement(position=tuple(rng.uniform(0.1, 0.4, 3).tolist())) for _ in model.loops]
    loops = tuple(replace(x, placement_b=p) for x, p in zip(model.loops, places, strict=True))
    return replace(model, loops=loops)


def operations(plan: Plan) -> int:
    n = plan.operations
    return n.multiplications + n.additions + n.divisions


def slope(sizes, counts) -> float:
    """Of log(count) over log(size), from the line of best fit."""
    return float(np.polyfit(np.log(sizes), np.log(counts), 1)[0])


def generic_arm(n: int, seed: int = 0):
    """A chain of n hinges with Denavit-Hartenberg numbers and inertias none of which is zero."""
    rng = np.random.default_rng(seed)
    rows = [
        DHRow(
            *rng.uniform(0.1, 0.4, 2), float(rng.uniform(0.3, 1.2)) * pi / 2, 0.0, "r", float(rng.uniform(1, 5)),
            tuple(rng.uniform(0.02, 0.2, 3)), _moments(rng),
        )
        for _ in range(n)
    ]  # fmt: skip
    return from_dh(rows, "generic")


def _moments(rng):
    A = rng.uniform(-0.2, 0.2, size=(3, 3))
    J = A @ A.T + 0.05 * np.eye(3)  # second moments
    M = np.trace(J) * np.eye(3) - J
    return tuple(float(x) for x in (M[0, 0], M[0, 1], M[0, 2], M[1, 1], M[1, 2], M[2, 2]))
