"""The law that squeezes what grasps hold."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import InputError, UnsupportedError
from support.two_fingers import lifting, two_fingers

HAND = two_fingers()


def test_the_law_gives_the_torques_of_squeeze_torques():
    q, expected = HAND.neutral(), sl.Dynamics(HAND, target="python")
    law = sl.control.squeeze(HAND, {"hold_left": lambda t: 10.0 + t, "hold_right": lambda t: 10.0 + t})
    found = law.torques(2.0, q.tolist(), None, (), ())
    np.testing.assert_allclose(found, expected.squeeze_torques(q, {"hold_left": 12.0}), atol=1e-12)


@pytest.mark.slow
def test_a_squeeze_changes_forces_and_no_motion():
    lift = lifting(HAND, 30.0, 0.0, 9.81)
    tilted = [*lift[:3] * [1.02, 1.0, 1.0], *np.zeros(6)]
    pull, law = (lambda t, q, v: tilted), sl.control.squeeze(HAND, {"hold_left": sl.control.sine(8.0, 5.0, 9.0)})
    plain, squeezed = (
        sl.simulate(HAND, duration=0.05, controller=c) for c in (pull, sl.control.together(HAND, pull, law))
    )
    assert np.abs(plain.q - squeezed.q).max() < 1e-12
    change = squeezed["hold_left"].force - plain["hold_left"].force
    np.testing.assert_allclose(change[:, 3], squeezed.tau[:, 1] - 30.0, atol=1e-9)
    assert np.ptp(change[:, 3]) > 1.0


@pytest.mark.slow
def test_what_is_not_held_is_not_squeezed():
    model = two_fingers(switchable=True)
    law = sl.control.squeeze(model, {"hold_left": 5.0})
    run = sl.simulate(model, duration=0.01, controller=law, closures=sl.Closures(active_loops=["hold_left"]))
    assert not run.tau.any()
    with pytest.raises(InputError, match="'hold_left', which is no loop; did you mean 'hold_right'"):
        sl.control.squeeze(model, {"hold_left": 5.0}, active_loops=["hold_right"])


@pytest.mark.parametrize(
    ("pressing", "error", "words"),
    [
        (
            {"hold_left": 20.0, "hold_right": 30.0},
            InputError,
            "the balance gives 'hold_left' with 20 N, 'hold_right' with 20",
        ),
        ({"hold_lft": 20.0}, InputError, "did you mean 'hold_left'"),
        ({}, InputError, "expected {'loop'"),
        ({"hold_left": sl.control.hold([1.0, 2.0])}, InputError, "has 2 numbers; expected 1"),
        ({"hold_left": sl.control.given(1), "hold_right": 1.0}, UnsupportedError, "depend on each other"),
    ],
)
def test_forces_that_do_not_fit_are_refused(pressing, error, words):
    with pytest.raises(error, match=words):
        sl.control.squeeze(HAND, pressing)


@pytest.mark.slow
def test_laws_of_switchable_loops_act_beside_stops():
    model = two_fingers(switchable=True).with_joint("close_left", limits=(-1.0, 0.01))
    law = sl.control.together(model, sl.control.gravity(model), sl.control.squeeze(model, {"hold_left": 5.0}))
    plain, stopped = (sl.simulate(model, duration=0.01, controller=law, limits=x) for x in ("end", "stop"))
    np.testing.assert_allclose(stopped.tau[:, :3], np.tile([2.0 * 9.81, 5.0, 5.0], (len(stopped), 1)), atol=1e-9)
    np.testing.assert_allclose(stopped.q, plain.q, atol=1e-12)
