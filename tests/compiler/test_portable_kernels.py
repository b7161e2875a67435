"""kernel.wasm: the answers of the kernel, and its refusals as a status."""

from __future__ import annotations

import math

import numpy as np
import pytest
from portable_code import Wasm

import spanloop as sl
from spanloop.algorithms import catalog
from spanloop.compiler.portable.wasm_kernel import wasm_kernel
from spanloop.compiler.render.single import FAR_ANGLE, NOT_FINITE, OFF_GUARD
from spanloop.derivatives.tree_dynamics import FORWARD, TreeDerivatives
from spanloop.errors import StateError, UnsupportedError


class Called:
    """A module of a kernel, called as the kernel is."""

    def __init__(self, kernel):
        self.kernel, self.wasm = kernel, Wasm(kernel.wasm)
        self.status = -1

    def __call__(self, *inputs):
        flat = np.concatenate([np.ravel(x) for x in inputs])
        self.wasm.memory[: len(flat)] = flat
        self.status = self.wasm.call("kernel")
        end = len(flat) + math.prod(self.kernel.shape)
        return self.wasm.memory[len(flat) : end].reshape(self.kernel.shape).copy()


FUNCTIONS = (
    "forward_dynamics", "inverse_dynamics", "mass_matrix", "bias", "gravity_torques", "energy", "poses",
    "mass_matrix_inverse", "closure_error", "closure_jacobian",
)  # fmt: skip
MODELS = {
    "puma": lambda: (sl.zoo.puma(), None),
    "quadruped": lambda: (sl.zoo.quadruped(), None),
    "four_bar": lambda: (sl.zoo.four_bar(), sl.zoo.four_bar_start()),
    "stewart": lambda: (sl.zoo.stewart(), sl.zoo.stewart_start()),
}


def kernels(model):
    """Of those of FUNCTIONS that a model has."""
    for function in FUNCTIONS:
        entry = catalog.FUNCTIONS[function]
        if not (entry.needs_tree if model.loops else entry.needs_closures):
            yield sl.compile(model, function, target="python")


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_module_answers_as_the_kernel_does(name):
    (model, start), rng, count = MODELS[name](), np.random.default_rng(2), 0
    q = model.neutral() if start is None else np.array(start)
    for kernel in kernels(model):
        moving = {"q": q, "v": np.zeros(model.nv)} if model.loops else {"q": q}  # velocities must fit the loops
        inputs = [moving[n] if n in moving else rng.normal(size=size) for n, size in kernel.inputs]
        module = Called(kernel)
        found, expected = module(*inputs), kernel(*inputs)
        assert module.status == 0
        assert np.abs(found - expected).max(initial=0.0) <= 1e-11 * np.abs(expected).max(initial=1.0)
        count += 1
    assert count >= 5


def test_the_python_kernel_has_the_same_module():
    model = sl.zoo.pendulum(2)
    assert sl.compile(model, "energy", target="python").wasm == sl.compile(model, "energy").wasm


def refused(kernel, *inputs) -> int:
    module = Called(kernel)
    answer = module(*inputs)
    assert np.isnan(answer).all()
    return module.status


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", range(3))
def test_an_input_that_is_not_finite_is_refused(bad, place):
    inputs = [np.zeros(2) for _ in range(3)]
    inputs[place][1] = bad
    assert refused(sl.compile(sl.zoo.pendulum(2), "forward_dynamics"), *inputs) & NOT_FINITE


def test_an_unused_input_that_is_not_finite_is_refused_too():
    kernel = sl.compile(sl.zoo.pendulum(), "mass_matrix")
    assert refused(kernel, [math.nan]) & NOT_FINITE


def test_an_open_loop_is_refused():
    kernel = sl.compile(sl.zoo.four_bar(), "forward_dynamics")
    q = np.array(sl.zoo.four_bar_start()) + [0.0, 0.1, 0.0]
    assert refused(kernel, q, np.zeros(3), np.zeros(3)) == NOT_FINITE
    with pytest.raises(StateError):
        kernel(q, np.zeros(3), np.zeros(3))


def test_a_quaternion_off_unit_length_is_refused():
    kernel = sl.compile(sl.zoo.quadruped(), "energy")
    q = sl.zoo.quadruped().neutral()
    assert Called(kernel)(q, np.zeros(18)) == pytest.approx(kernel(q, np.zeros(18)))
    assert refused(kernel, 1.01 * q, np.zeros(18)) == OFF_GUARD


def test_a_negative_live_parameter_is_refused():
    model = sl.zoo.pendulum()
    kernel = sl.compile(model, "forward_dynamics", parameters="live")
    numbers = model.parameters().values.copy()
    inputs = [np.array([0.3]), np.zeros(1), np.zeros(1)]
    assert Called(kernel)(*inputs, numbers) == pytest.approx(kernel(*inputs, numbers))
    numbers[model.parameters().names.index("rod1.mass")] = -1.0
    assert refused(kernel, *inputs, numbers) & OFF_GUARD


@pytest.mark.parametrize("angle", [1.0001e6, -1e9, 1e300])
def test_an_angle_beyond_the_range_of_the_sine_is_refused(angle):
    assert refused(sl.compile(sl.zoo.pendulum(), "forward_dynamics"), [angle], [0.0], [0.0]) & FAR_ANGLE


def test_an_angle_at_the_limit_is_answered():
    kernel = sl.compile(sl.zoo.pendulum(), "forward_dynamics")
    module = Called(kernel)
    found = module([1e6], [0.0], [0.0])
    assert module.status == 0
    assert found == pytest.approx(kernel([1e6], [0.0], [0.0]), rel=1e-13)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dtype": "float32"}, "compute in float64"),
        ({"lowering": "looped"}, r"lowering='unrolled' \(\d+ operations a state"),
    ],
)
def test_kernels_without_a_module_say_what_to_do(options, words):
    with pytest.raises(UnsupportedError, match=words):
        _ = sl.compile(sl.zoo.puma(), "forward_dynamics", **options).wasm


def test_a_derivative_that_loops_over_pairs_says_what_to_do():
    plan = TreeDerivatives.of(sl.zoo.chain(20), FORWARD).plan
    with pytest.raises(UnsupportedError, match="derivative='jvp'"):
        wasm_kernel("derivatives", plan)


def test_a_kernel_with_threads_has_the_module_of_one_thread():
    model = sl.zoo.pendulum(2)
    assert sl.compile(model, "energy", threads=2).wasm == sl.compile(model, "energy").wasm


@pytest.mark.parametrize(("target", "file"), [("c", "arm.c"), ("wasm", "arm.mjs")])
def test_targets_that_leave_python_name_the_file_to_write(target, file):
    with pytest.raises(UnsupportedError, match=f"sl.export.model, functions, '{file}'. writes it"):
        sl.compile(sl.zoo.pendulum(), "energy", target=target)
