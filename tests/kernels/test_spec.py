"""A KernelSpec is frozen and checked; the catalog declares what algorithms take."""

from __future__ import annotations

import dataclasses
import inspect
import itertools

import pytest
from sentences import says

import spanloop as sl
from spanloop import zoo
from spanloop.algorithms.catalog import FUNCTIONS
from spanloop.errors import InputError
from spanloop.kernels import KernelSpec

ALGORITHMS = {
    f"{name}, {method}": algorithm
    for name, function in FUNCTIONS.items()
    for method, algorithm in itertools.chain(function.methods.items(), (function.closed or {}).items())
}
OPTIONS = {
    "loaded",
    "frame",
    "expressed_in",
    "frames",
    "points",
    "redundancy",
    "feedback",
    "with_forces",
    "open_chain",
    "contacts",
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_catalog_declares_what_an_algorithm_takes(name):
    """gravity_torques alone takes more than it declares: the forces on bodies that bias, of which it is part, has."""
    algorithm = ALGORITHMS[name]
    accepted = set(inspect.signature(algorithm.make).parameters) & OPTIONS
    assert set(algorithm.takes) == accepted - ({"loaded"} if name.startswith("gravity_torques") else set())


def test_methods_of_one_function_take_the_same_options_of_users():
    """What sl.compile accepts does not depend on the method, but for loops."""
    for function in FUNCTIONS.values():
        takes = [set(a.takes) - {"redundancy", "feedback", "open_chain"} for a in function.methods.values()]
        assert all(x == takes[0] for x in takes)


def test_a_spec_cannot_be_changed():
    spec = KernelSpec.of(zoo.puma(), "bias")
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.lowering = "looped"


def test_the_key_of_a_spec_is_made_without_its_program():
    spec = KernelSpec.of(zoo.four_bar(), "forward_dynamics")
    assert spec.key == KernelSpec.of(zoo.four_bar(), "forward_dynamics").key
    assert "program" not in vars(spec)
    assert "plan" not in vars(spec)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"lowering": "folded"}, "lowering is 'folded'; expected 'auto', 'unrolled' or 'looped'"),
        ({"on_singular": "ignore"}, "on_singular is 'ignore'; expected 'raise' or 'minimum_norm'"),
        ({"parameters": "alive"}, "parameters is 'alive'; expected 'baked' or 'live'"),
        ({"frame": "tool"}, "bias takes no frame"),
        ({"frames": "tool"}, "bias takes no frames"),
        ({"points": "tool"}, "bias takes no points"),
        ({"open_chain": "unit_vector"}, "bias: method 'newton_euler' takes no open_chain; 'arms_on_object' does"),
        ({"feedback": True}, "bias: method 'newton_euler' has no feedback of closure errors; use closures='project'"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_an_option_that_does_not_fit_is_refused(options, sentence):
    with says(InputError, sentence):
        KernelSpec.of(zoo.puma(), "bias", **options)


def test_an_expression_takes_no_options_of_functions():
    operators = sl.operators(zoo.pendulum(2))
    with says(InputError, "an expression of operators takes no method"):
        sl.compile(zoo.pendulum(2), operators.phi, method="dense")


@pytest.mark.parametrize("given", [True, 3, ["joint1", 1]])
@pytest.mark.parametrize("option", ["forces", "frames", "points"])
def test_names_of_bodies_and_frames_are_text(option, given):
    with says(InputError, f"{option} is {given!r}; expected names of"):
        sl.compile(zoo.puma(), "forward_dynamics", **{option: given})
