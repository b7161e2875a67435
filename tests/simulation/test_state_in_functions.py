"""Functions of users that keep state between calls, or read what changes by itself, are refused."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop import control
from spanloop.errors import InputError, SpanloopWarning
from spanloop.simulation.traced_kernels import has_code_of_users

PUMA = sl.zoo.puma()
KEPT = "It keeps state between calls"


def short(**arguments):
    return sl.simulate(PUMA, [0.3] * 6, [1.0] * 6, duration=0.002, **arguments)


class Difference:
    """A numerical derivative."""

    def __init__(self):
        self.last = 0.0

    def __call__(self, t, q, v):
        d, self.last = (q - self.last) / 1e-3, q
        return -5.0 * d


def integral():
    total = [np.zeros(6)]

    def law(t, q, v):
        total[0] = total[0] + (0.5 - q) * 1e-3
        return 10.0 * total[0]

    return law


def counter():
    count = [0]

    def law(t, q, v):
        count[0] += 1
        return q * count[0]

    return law


@pytest.mark.parametrize("make", [Difference, integral, counter])
def test_a_controller_with_state_is_refused_and_told_of_memories(make):
    law = make()
    for _ in range(2):  # the second time it holds values of the first trace
        with says(InputError, "an sl.control.Controller (docs/control.md); or wrap it in sl.control.callback"):
            short(controller=law)


@pytest.mark.parametrize(
    ("law", "source"),
    [
        (lambda t, q, v: q + np.random.normal(), "numpy.random.normal"),
        (lambda t, q, v: q * time.perf_counter(), "time.perf_counter"),
    ],
)
def test_clocks_and_random_numbers_are_named(law, source):
    with says(InputError, f"reads a clock or random numbers ({source})"):
        short(controller=law)


def test_a_value_of_another_trace_is_refused_also_as_the_answer():
    kept = []

    def recording(t, q, v):
        kept.append(q)
        return -q

    assert short(controller=recording).tau[0, 0] == -0.3  # what it records does not matter
    with says(InputError, "it returns a value that an earlier call has kept"):
        short(controller=lambda t, q, v: kept[0])


def test_paths_forces_events_and_parts_of_sums_are_asked_twice():
    def noisy(t, q, v):
        return np.random.normal() * q

    aim = control.path(lambda t: ([np.random.normal()] * 6, [0.0] * 6, [0.0] * 6))
    for law in (control.pd(PUMA, 1.0, 1.0, aim), control.together(PUMA, control.gravity(PUMA), noisy)):
        with says(InputError, KEPT):
            short(controller=law)
    with says(InputError, "the function of forces cannot be traced: called twice with the same arguments"):
        short(forces=lambda t, q, v: {"link6": [0.0, 0.0, 0.0, np.random.normal(), 0.0, 0.0]})
    with says(InputError, "an event cannot be traced: called twice with the same arguments"):
        short(events=lambda t, q, v: 2.0 + np.random.rand())


def test_a_memory_that_keeps_state_elsewhere_is_refused():
    class Law(control.Controller):
        inputs, memory, count = 0, 6, 0

        def torques(self, t, q, v, u, z):
            return z

        def update(self, t, h, q, v, u, z):
            self.count += 1
            return z + self.count * h

    with says(InputError, KEPT):
        short(controller=Law())


def test_laws_of_the_library_are_traced_once():
    still = control.computed_torque(PUMA, np.zeros(6), 4.0, 4.0)
    assert not has_code_of_users(control.together(PUMA, still, control.gravity(PUMA)))
    assert has_code_of_users(control.together(PUMA, still, lambda t, q, v: -v))


def test_wrong_arguments_are_said_by_events_and_forces_too():
    with says(InputError, "the event 'low' takes 1 arguments; expected (t, q, v)"):
        short(events={"low": lambda t: 1.0})
    with says(InputError, "the function of forces takes 1 arguments; expected (t, q, v)"):
        short(forces=lambda t: {})
    assert short(controller=lambda *x: -x[1]).tau[0, 0] == -0.3


def test_callbacks_know_joints_in_batches_too():
    law = control.callback(lambda t, q, v: {"joint1": -q["joint1"] - 2.0 * v["joint2"]})
    q = np.array([[0.3] * 6, [0.5] * 6])
    run = sl.simulate(PUMA, q, np.ones((2, 6)), duration=0.002, controller=law)
    np.testing.assert_allclose(run.tau[:, 0, 0], [-2.3, -2.5])
    with says(InputError, "for joint 'joint1'; expected shape (1,)"):
        short(controller=control.callback(lambda t, q, v: {"joint1": [1.0, 2.0]}))
    with says(InputError, "model 'puma' has no joint 'joint9'"):
        short(controller=control.callback(lambda t, q, v: {"joint9": 1.0}))
    assert short(controller=control.callback(lambda t, q, v: -q["joint1"] * np.ones(6))).tau[0, 5] == -0.3


def test_a_controller_without_a_value_warns_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sl.simulate(PUMA, duration=0.01, controller=lambda t, q, v: np.sqrt(-1.0 - q * q))
    assert len([w for w in caught if issubclass(w.category, SpanloopWarning)]) == 1
