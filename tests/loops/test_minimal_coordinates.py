"""robot.minimal_coordinates: the assembly stays what it was, whatever is asked in which order; sentences and prints."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from sentences import says
from singular_cases import five_bar_in_line

import spanloop as sl
from spanloop import zoo
from spanloop.errors import InputError, StateError

REACH = 1.2  # rad, around the start


def turned(q) -> np.ndarray:
    """Angles without whole turns."""
    return np.angle(np.exp(1j * np.asarray(q)))


def expected(angles, assembly="below"):
    """The five-bar's closed form, or None where its legs do not meet."""
    try:
        return zoo.five_bar_start(angles=tuple(angles), assembly=assembly)
    except InputError:
        return None


@pytest.mark.slow
@pytest.mark.parametrize("assembly", ["below", "above"])
def test_the_five_bar_stays_in_its_assembly(assembly):
    """Far and wide in random order: every answer is the closed form's; what has none is refused."""
    start = zoo.five_bar_start(assembly=assembly)
    few, rng = sl.Dynamics(zoo.five_bar()).minimal_coordinates(start), np.random.default_rng(0)
    answered = refused = 0
    for _ in range(60):
        angles = start[[0, 2]] + rng.uniform(-REACH, REACH, 2)
        meant = expected(angles, assembly)
        try:
            q, _ = few.state(angles, np.zeros(2))
        except StateError:
            refused += 1
            continue
        answered += 1
        assert meant is not None
        np.testing.assert_allclose(turned(q - meant), 0.0, atol=1e-9)
    assert answered > 50
    assert refused < 10


def test_the_same_question_has_the_same_answer_whatever_was_asked_before():
    start = zoo.five_bar_start()
    few, rng = sl.Dynamics(zoo.five_bar()).minimal_coordinates(start), np.random.default_rng(1)
    question = (start[[0, 2]] + 0.2, np.array([0.3, -0.2]), np.ones(2))
    first = few.forward_dynamics(*question)
    for _ in range(20):
        with contextlib.suppress(StateError):
            few.state(start[[0, 2]] + rng.uniform(-1.5, 1.5, 2), np.zeros(2))
        np.testing.assert_allclose(few.forward_dynamics(*question), first, atol=1e-9)


def test_a_four_bar_is_followed_through_turns_of_its_crank():
    """From the closed form, also if asked in steps of 2.5 rad."""
    few = sl.Dynamics(zoo.four_bar()).minimal_coordinates(zoo.four_bar_start())
    for angle in np.arange(zoo.four_bar_start()[0], 14.0, 2.5):
        q, _ = few.state([angle], [1.0])
        np.testing.assert_allclose(turned(q - zoo.four_bar_start(angle=angle)), 0.0, atol=1e-9)


def test_a_platform_on_six_legs_returns_to_where_it_was():
    model, start = zoo.stewart(), zoo.stewart_start()
    few, rng = sl.Dynamics(model).minimal_coordinates(start), np.random.default_rng(2)
    places = [model.q_slice(name).start for name in few.names]
    home, _ = few.state(start[places], np.zeros(6))
    for _ in range(10):
        q, _ = few.state(start[places] + rng.uniform(-0.15, 0.15, 6), np.zeros(6))
        assert np.abs(sl.Dynamics(model).closure_error(q)).max() < 1e-11
    again, _ = few.state(start[places], np.zeros(6))
    np.testing.assert_allclose(again, home, atol=1e-10)


def test_where_the_branch_ends_the_call_is_refused_and_nothing_forgotten():
    few = sl.Dynamics(zoo.five_bar()).minimal_coordinates(zoo.five_bar_start())
    before = few.last
    with says(
        StateError, "minimal_coordinates: on the way from drive1 = 1.396, drive2 = 1.222 to drive1 = 3.1, drive2 = 0"
    ):
        few.state([3.1, 0.0], [0.0, 0.0])  # the elbows are too far apart
    np.testing.assert_array_equal(few.last, before)
    assert expected([3.1, 0.0]) is None


def test_from_a_singular_position_nothing_is_followed():
    q = five_bar_in_line(0.0).q
    few = sl.Dynamics(zoo.five_bar()).minimal_coordinates(q)
    with says(StateError, "the mechanism comes to a singular configuration"):
        few.state(q[[0, 2]] + (0.1, -0.1), [0.0, 0.0])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((np.ones((3, 2)), [0, 0], [0, 0]), "positions has shape (3, 2); expected one state (2,), in the order drive1"),
        (([1, 2, 3], [0, 0], [0, 0]), "positions has shape (3,); expected one state (2,)"),
        (([1, 2], [0, 0, 0], [0, 0]), "rates has shape (3,); expected one state (2,)"),
        (([1, 2], [0, 0], 1.0), "torques has shape (); expected one state (2,)"),
        (([1, 2], ["a", "b"], [0, 0]), "rates holds text; expected real numbers"),
        (({"drive1": 1.0}, [0, 0], [0, 0]), "positions is a dict; expected one state (2,)"),
    ],
)
def test_wrong_inputs_are_told(arguments, sentence):
    few = sl.Dynamics(zoo.five_bar()).minimal_coordinates(zoo.five_bar_start())
    with says(InputError, f"minimal_coordinates.forward_dynamics: {sentence}"):
        few.forward_dynamics(*arguments)


def test_numbers_that_are_not_finite_are_told():
    few = sl.Dynamics(zoo.five_bar()).minimal_coordinates(zoo.five_bar_start())
    with says(
        StateError,
        "minimal_coordinates.inverse_dynamics: accelerations[1] ('drive2') is nan; every number must be finite",
    ):
        few.inverse_dynamics(few.last[[0, 2]], [0, 0], [0, np.nan])


@pytest.mark.slow
def test_too_many_joints_are_told():
    robot, start = sl.Dynamics(zoo.three_pumas()), zoo.three_pumas_start()
    with says(InputError, "minimal_coordinates: 18 independent DoF are named (arm1_joint1, "):
        robot.minimal_coordinates(start)
    with says(InputError, "and 12 more); the loops leave 6. Name 6 that determine the others, joints=[...]; robot"):
        robot.minimal_coordinates(start)
    with says(InputError, "complete_velocity: 1 independent DoF are named (arm1_joint1); the loops leave 6"):
        robot.complete_velocity(start, {"arm1_joint1": 1.0})


def test_prints():
    robot, start = sl.Dynamics(zoo.five_bar()), zoo.five_bar_start()
    few = robot.minimal_coordinates(start)
    assert repr(few) == "MinimalCoordinates('five_bar', 'drive1', 'drive2')"
    assert str(few).splitlines() == [
        "five_bar: 2 of 4 DoF determine the others: drive1, drive2.",
        "Last state: drive1 = 1.396, drive2 = 1.222.",
    ]
    lines = str(robot.solve(start, np.zeros(4), np.zeros(4))).splitlines()
    assert [line.split()[0] for line in lines] == ["a", "tau", "meeting:", "not", "status:"]
    assert "force [-4.79398 -3.60244  0.     ] N (not unique: the shortest)" in lines[2]
    assert str(robot.solve(np.tile(start, (3, 1)), np.zeros(4), np.zeros(4))).startswith("3 states (3,), 4 DoF: 3")
