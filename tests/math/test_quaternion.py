"""A quaternion whose length misses 1 by less than kernels tolerate gives the rotation of the unit one along it."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl
from spanloop.algorithms.catalog import TREE_METHODS
from spanloop.math import quaternion

BODY = {"mass": 1.0, "center": (0.1, 0.2, 0.3), "inertia": (0.1, 0.12, 0.13)}


def floating_arm() -> sl.Model:
    b = sl.Builder("floating arm").body("a", **BODY).body("b", **BODY).body("c", **BODY)
    b.free("float", "world", "a").spherical("ball", "a", "b", (0.1, 0.2, 0.4), stiffness=3.0)
    return b.revolute("hinge", "b", "c", "x", (0.1, 0.0, 0.0)).build()


@pytest.mark.parametrize("function", ["forward_dynamics", "energy", "momentum", "mass_matrix", "poses", "difference"])
def test_the_length_of_a_quaternion_changes_nothing(function):
    model = floating_arm()
    rng = np.random.default_rng(3)
    (q, v), (start, _) = model.random_state(rng), model.random_state(rng)
    state = {"q": q, "v": v, "tau": rng.normal(size=model.nv), "start": start}
    off = q.copy()
    off[:4] *= 1.0 + 9e-7
    off[7:11] *= 1.0 - 9e-7
    for method in TREE_METHODS if function == "forward_dynamics" else (None,):
        kernel = sl.compile(model, function, method=method, target="python")
        exact, found = (kernel(*({**state, "q": x}[n] for n, _ in kernel.inputs)) for x in (q, off))
        assert np.abs(found - exact).max() < 1e-13 * np.abs(exact).max()


def test_matrix_and_logarithm_divide_by_the_length():
    rng = np.random.default_rng(4)
    for size in (0.5, 1.0, 3.0):
        e = quaternion.normalized(tuple(rng.normal(size=4)))
        longer = tuple(size * x for x in e)
        assert np.allclose(quaternion.matrix(longer), quaternion.matrix(e), rtol=0, atol=1e-15)
        assert np.allclose(quaternion.logarithm(longer), quaternion.logarithm(e), rtol=0, atol=1e-14)
