"""Kernels as objects: pickled by the call that made them; empty mechanisms and batches."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import spanloop as sl
from spanloop.simulation.traced_kernels import kernel as traced_kernel

X = np.array([0.3, -0.2])


@pytest.mark.parametrize("target", ["cpu", "python"])
def test_a_kernel_is_pickled_by_the_call_that_made_it(target):
    kernel = sl.compile(sl.zoo.pendulum(2), "jacobian", frame="tip", target=target)
    again = pickle.loads(pickle.dumps(kernel))
    assert (again(X) == kernel(X)).all()
    assert len(pickle.dumps(kernel)) < 10_000  # no machine code


def test_the_kernel_of_a_traced_function_refuses_to_be_pickled():
    kernel = traced_kernel("twice", {"x": 1}, 1, lambda x: ([2.0 * x["x"][0]], []), "twice")
    with pytest.raises(TypeError, match="the kernel 'twice' cannot be pickled"):
        pickle.dumps(kernel)


@pytest.mark.parametrize("leading", [(3,), (2, 3), (2, 3, 4), (2, 0, 4)])
@pytest.mark.parametrize("target", ["cpu", "python"])
def test_a_model_without_degrees_of_freedom_takes_batches_of_any_shape(leading, target):
    builder = sl.Builder("post")
    builder.body("post", mass=1.0, inertia=(0.1, 0.1, 0.1))
    builder.fixed("bolt", "world", "post")
    kernel = sl.compile(builder.build(), "forward_dynamics", target=target)
    empty = np.zeros((*leading, 0))
    assert kernel(empty, empty, empty).shape == (*leading, 0)
    assert kernel(empty, np.zeros(0), np.zeros((*leading[-1:], 0))).shape == (*leading, 0)
    assert kernel(empty.transpose(*reversed(range(len(leading))), -1), np.zeros(0), np.zeros(0)).shape[-1] == 0
