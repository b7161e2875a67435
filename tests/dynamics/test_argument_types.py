"""Wrong types and options are refused at once, with a sentence that leads on."""

from __future__ import annotations

import re

import pytest

import spanloop as sl
from spanloop.errors import InputError, UnsupportedError

MODEL = sl.zoo.pendulum()
ROBOT = sl.Dynamics(MODEL)
FUNCTION = "expected a name, as 'forward_dynamics', or an expression of operators"
MADE = "sl.load(file), sl.zoo and sl.Builder make one"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: sl.Dynamics("puma"), f"Dynamics: model is a str; expected a Model: {MADE}"),
        (
            lambda: sl.Dynamics(ROBOT),
            "Dynamics: model is a Dynamics; expected a Model: give the model of the Dynamics, its .model",
        ),
        (
            lambda: sl.compile(ROBOT, "mass_matrix"),
            "compile: model is a Dynamics; expected a Model: give the model of the Dynamics, its .model",
        ),
        (lambda: sl.on_scalars(None, "pose"), f"pose: model is a NoneType; expected a Model: {MADE}"),
        (
            lambda: sl.papers.inertia_factors(MODEL, [0.0]),
            "inertia_factors: robot is a Model; expected a Dynamics: sl.Dynamics(model)",
        ),
        (
            lambda: sl.papers.parallel_complement("delta", [0.0]),
            "parallel_complement: robot is a str; expected a Dynamics: sl.Dynamics(model) makes one",
        ),
        (
            lambda: sl.papers.grasp_velocities(MODEL, [0.0], [0.0]),
            "grasp_velocities: robot is a Model; expected a Dynamics: sl.Dynamics(model)",
        ),
        (lambda: sl.control.pd("puma", 1.0, 1.0, [0.0]), f"pd: model is a str; expected a Model: {MADE}"),
        (lambda: sl.forces.stops(3, 1.0), f"stops: model is a int; expected a Model: {MADE}"),
        (lambda: sl.simulate([MODEL], duration=1.0), "simulate: model is a list; expected a Model or a Dynamics"),
        (lambda: sl.Integrator("RK4"), "integrator is 'RK4'; did you mean 'rk4'?"),
        (lambda: sl.Integrator(threads=-1), "threads is -1; expected a whole number, 0 for all cores"),
        (lambda: sl.Integrator(accuracy="high"), "accuracy is 'high'; must be positive (rad or m)"),
        (lambda: sl.Dynamics(MODEL, dtype="f32"), "dtype is 'f32'; expected 'float64' or 'float32'"),
        (
            lambda: sl.Dynamics(MODEL, on_singular="ignore"),
            "on_singular is 'ignore'; expected 'raise' or 'minimum_norm'",
        ),
        (lambda: sl.Dynamics(MODEL, threads=-1), "threads is -1; expected a whole number, 0 for all cores"),
        (lambda: sl.Dynamics(MODEL, target="cpi"), "target is 'cpi'; did you mean 'cpu'?"),
        (lambda: sl.Dynamics(MODEL, target=["cpu"]), "target is ['cpu']; expected 'cpu', 'cuda' or 'python'"),
        (
            lambda: sl.simulate(MODEL, duration=1.0, target="gpu"),
            "target is 'gpu'; expected 'cpu' or 'cuda'. Try target='cuda'",
        ),
        (
            lambda: sl.Integrator("rk4", target="gpu"),
            "target is 'gpu'; expected 'cpu' or 'cuda'. Try target='cuda'",
        ),
        (
            lambda: sl.Integrator("rk4", target="python"),
            "target is 'python', of sl.compile and sl.Dynamics; expected 'cpu' or 'cuda'. Try target='cpu'",
        ),
        (lambda: sl.compile(MODEL, None), f"function is None; {FUNCTION}"),
        (lambda: sl.compile(MODEL, 3), f"function is 3; {FUNCTION}"),
        (lambda: sl.Dynamics(MODEL).kernel(["bias"]), f"function is ['bias']; {FUNCTION}"),
        (lambda: sl.Dynamics(MODEL).jvp(None, {"q": [0.0]}, {"q": [0.0]}), f"function is None; {FUNCTION}"),
        (lambda: sl.Dynamics(MODEL).vjp(["bias"], {"q": [0.0]}, [1.0]), f"function is ['bias']; {FUNCTION}"),
        (lambda: sl.Dynamics(MODEL).derivative(None, {"q": [0.0]}), f"function is None; {FUNCTION}"),
        (
            lambda: sl.simulate(MODEL, duration=1.0, method="RK4"),
            "simulate: method is 'RK4', the name of an integrator; method is the algorithm of forward dynamics. "
            "Use integrator='rk4'",
        ),
    ],
)
def test_a_wrong_argument_is_refused_at_once(call, sentence):
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        call()


def test_another_name_of_a_target_is_refused_when_the_dynamics_is_made():
    with pytest.raises(InputError, match="target is 'gpu'; expected 'cpu', 'cuda' or 'python'"):
        sl.Dynamics(MODEL, target="gpu")


def test_laws_and_forces_take_a_dynamics_for_its_model():
    ends = [
        sl.simulate(
            MODEL,
            [0.3],
            duration=0.01,
            controller=sl.control.pd(of, 5.0, 1.0, [0.0], gravity=True),
            forces=sl.forces.friction(of, {MODEL.joints[0].name: 0.1}),
        ).q[-1, 0]
        for of in (MODEL, ROBOT)
    ]
    assert ends[0] == ends[1]


def test_constraint_forces_of_loops_lead_to_calls_that_have_them():
    advice = r"Use robot\.reactions\(q, v, tau\) or robot\.solve\(q, v, tau\), or lock"
    with pytest.raises(UnsupportedError, match=advice):
        sl.papers.constraint_forces(sl.Dynamics(sl.zoo.four_bar()), sl.zoo.four_bar_start(), [0.0] * 3, [0.0] * 3)
