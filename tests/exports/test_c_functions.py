"""Functions of exported C files against the kernels of sl.compile, which other renderers write."""

from __future__ import annotations

import numpy as np
import pytest
from c_code import Exported, needs_compiler
from flexible_arms import arm

import spanloop as sl
from spanloop import zoo
from spanloop.exports.closed_states import closed_states

pytestmark = needs_compiler
CLOSE = 1e-13  # of the largest number: both round alike, in another order
DYNAMICS = ("forward_dynamics", "bias", "mass_matrix", "energy")


def floating() -> sl.Model:
    """A free body with an arm."""
    b = sl.Builder("floating").body("base", 3.0, inertia=(0.2, 0.3, 0.4)).body("arm", 1.0, (0.2, 0.0, 0.1), (0.02,) * 3)
    return b.free("root", "world", "base").revolute("hinge", "base", "arm", "y", (0.1, 0.0, 0.2)).build()


MODELS = {
    "puma": (zoo.puma, None, {}),
    "tree": (lambda: zoo.tree(6, 2, seed=2), None, {}),
    "floating": (floating, None, {}),
    "four_bar": (zoo.four_bar, zoo.four_bar_start, {}),
    "five_bar": (zoo.five_bar, None, {}),
    "live": (lambda: zoo.chain(3, seed=4), None, {"parameters": "live"}),
    "live loop": (zoo.four_bar, zoo.four_bar_start, {"parameters": "live"}),
    "flexible": (lambda: arm().build(), None, {}),
}
SLOW = ("puma", "tree", "floating", "five_bar", "live loop", "flexible")


def cases(model, kernel, start, seed=11):
    """Inputs at several states that the kernel answers."""
    rng = np.random.default_rng(seed)
    for q, v in closed_states(model, None if start is None else start(), 4):
        known = {"q": q, "v": v, "parameters": model.parameters().values}
        yield [known.get(n, rng.standard_normal(k)) for n, k in kernel.inputs]


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in MODELS])
def test_functions_are_those_of_kernels(name, tmp_path):
    make, start, options = MODELS[name]
    model = make()
    functions = DYNAMICS[:1] if name == "flexible" else DYNAMICS  # its code is long
    code = Exported(model, functions, tmp_path, **options)
    compared = 0
    for function in functions:
        kernel = sl.compile(model, function, **options)
        for inputs in cases(model, kernel, start):
            expected = kernel(*inputs).ravel()
            status, found = code.call(function, *inputs, size=expected.size)
            assert status == 0, (function, code.text(status))
            assert np.abs(found - expected).max() <= CLOSE * np.abs(expected).max(), function
            compared += 1
    assert compared >= 3 * len(functions), compared


def test_parameters_are_read_in_the_order_of_the_enum(tmp_path):
    model = zoo.chain(2, seed=4)
    code = Exported(model, ["forward_dynamics"], tmp_path, parameters="live")
    header = code.path.with_suffix(".h").read_text()
    changed = model.parameters().changed({"link1.mass": 3.0, "gravity.z": -1.6})
    assert f"ARM_PARAMETER_LINK1_MASS = {changed.index('link1.mass')}," in header
    q, v, tau = np.full(2, 0.3), np.full(2, -0.4), np.full(2, 0.1)
    status, found = code.call("forward_dynamics", q, v, tau, changed.values, size=2)
    expected = sl.Dynamics(model.with_parameters({"link1.mass": 3.0, "gravity.z": -1.6})).forward_dynamics(q, v, tau)
    assert status == 0
    assert found == pytest.approx(expected, rel=1e-12)
    values = changed.values.copy()
    values[changed.index("link1.mass")] = -1.0
    status, found = code.call("forward_dynamics", q, v, tau, values, size=2)
    assert (status, np.isnan(found).all()) == (2, True)
    assert "a condition on the inputs does not hold" in code.text(status)


def test_external_forces_and_frames_go_to_the_functions_that_take_them(tmp_path):
    model, rng = zoo.puma(), np.random.default_rng(1)
    functions = ["forward_dynamics", "inverse_dynamics", "pose", "gravity_torques"]
    code = Exported(model, functions, tmp_path, forces=["link4", "link6"], frame="link6")
    q, v, tau, forces = (rng.standard_normal(k) for k in (6, 6, 6, 12))
    robot, acting = sl.Dynamics(model), {"link4": forces[:6], "link6": forces[6:]}
    found = code.call("forward_dynamics", q, v, tau, forces, size=6)[1]
    assert found == pytest.approx(robot.forward_dynamics(q, v, tau, forces=acting), rel=1e-12)
    found = code.call("inverse_dynamics", q, v, tau, forces, size=6)[1]
    assert found == pytest.approx(robot.inverse_dynamics(q, v, tau, forces=acting), rel=1e-12)
    assert code.call("pose", q, size=16)[1] == pytest.approx(robot.pose(q, "link6").ravel(), abs=1e-14)
    assert code.call("gravity_torques", q, size=6)[1] == pytest.approx(robot.gravity_torques(q), rel=1e-12)


def test_a_function_may_have_its_own_name_and_options(tmp_path):
    model, q = zoo.puma(), np.linspace(-1.0, 1.0, 6)
    functions = {"hand": {"function": "pose", "frame": "link6"}, "elbow": {"function": "pose", "frame": "link3"}}
    code = Exported(model, functions, tmp_path)
    robot = sl.Dynamics(model)
    for name, frame in (("hand", "link6"), ("elbow", "link3")):
        assert code.call(name, q, size=16)[1] == pytest.approx(robot.pose(q, frame).ravel(), abs=1e-14)


def test_derivatives_are_functions_too(tmp_path):
    model, rng = zoo.pendulum(2), np.random.default_rng(2)
    options = {"derivative": "jacobian", "wrt": "q"}
    code = Exported(model, {"stiffness": {"function": "bias", **options}}, tmp_path)
    kernel = sl.compile(model, "bias", **options)
    inputs = [rng.standard_normal(k) for _, k in kernel.inputs]
    expected = kernel(*inputs).ravel()
    assert code.call("stiffness", *inputs, size=expected.size)[1] == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("name", ["puma", "four_bar"])
def test_float_is_good_to_its_precision(name, tmp_path):
    make, start, _ = MODELS[name]
    model = make()
    code = Exported(model, ["forward_dynamics"], tmp_path, real="float")
    exact, single = sl.compile(model, "forward_dynamics"), sl.compile(model, "forward_dynamics", dtype="float32")
    for inputs in cases(model, exact, start):
        narrow = [np.asarray(x, np.float32) for x in inputs]
        expected = exact(*(np.asarray(x, float) for x in narrow))
        status, found = code.call("forward_dynamics", *narrow, size=model.nv)
        own = np.abs(single(*narrow) - expected).max()
        assert status == 0
        assert np.abs(found - expected).max() <= max(4.0 * own, 1e-6 * np.abs(expected).max())


def test_states_without_an_answer_are_refused_with_a_text(tmp_path):
    model = zoo.four_bar()
    code = Exported(model, ["forward_dynamics"], tmp_path)
    q, zero = np.array(zoo.four_bar_start(), float), np.zeros(3)
    for k in range(3):
        for value in (np.nan, np.inf, -np.inf):
            bad = [q.copy(), zero.copy(), zero.copy()]
            bad[k][2] = value
            status, found = code.call("forward_dynamics", *bad, size=3)
            assert (status, np.isnan(found).all()) == (1, True)
    status, found = code.call("forward_dynamics", q + [0.1, 0.0, 0.0], zero, zero, size=3)
    assert (status, np.isnan(found).all()) == (8, True)
    assert "a loop is open" in code.text(status)
    status, found = code.call("forward_dynamics", q + [2e6, 0.0, 0.0], zero, zero, size=3)
    assert (status & 4, np.isnan(found).all()) == (4, True)
    assert "beyond the range of the sine" in code.text(4)
    assert code.text(0) == "all is well"
    assert code.text(1024) == "no status of this file"


def test_a_quaternion_off_unit_length_is_refused(tmp_path):
    model = zoo.chain(1, "spherical", seed=1)
    code = Exported(model, ["forward_dynamics"], tmp_path)
    q, zero = np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(3)
    assert code.call("forward_dynamics", q, zero, zero, size=3)[0] == 0
    status, found = code.call("forward_dynamics", 1.01 * q, zero, zero, size=3)
    assert (status, np.isnan(found).all()) == (2, True)
