"""Painlevé's rod: the force of a sliding tip, and the jam where there is none."""

from __future__ import annotations

import contact_stories as known
import numpy as np
import pytest

import spanloop as sl

STEEP = float(np.arctan(2.0))  # rad: angle of the rod with the ground
HALF = 0.5  # m


def sliding(friction: float):
    """The contact solution of a rod of 1 kg that slides, tip first, without turning."""
    robot = sl.Dynamics(known.painleve_rod(friction, HALF))
    return robot.contact_solution([0.0, HALF * np.sin(STEEP), STEEP], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0])


@pytest.mark.parametrize("friction", [0.0, 0.6, 1.2, 1.3])
def test_the_tip_is_pressed_by_mg_over_1_6_less_1_2_mu(friction):
    """61.3125 N at µ = 1.2: friction turns the rod into the ground."""
    found = sliding(friction)
    expected = 9.81 / (1.6 - 1.2 * friction)
    np.testing.assert_allclose(found.force[0], [-friction * expected, 0.0, expected], rtol=1e-9, atol=1e-9)
    assert found.state.tolist() == ["slips"]
    assert not found.jams.any()


@pytest.mark.parametrize("friction", [4 / 3 + 1e-9, 1.5])
def test_from_four_thirds_on_the_rod_jams(friction):
    """One state is refused by name; in a batch it is marked, and others have their answers."""
    with pytest.raises(sl.errors.StateError, match="'tip' jams") as error:
        sliding(friction)
    assert error.value.reason is sl.errors.Reason.JAM
    robot = sl.Dynamics(known.painleve_rod(friction, HALF))
    q, v = [0.0, HALF * np.sin(STEEP), STEEP], [[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]
    with pytest.warns(sl.errors.StateWarning, match="1 of 2 states has no answer"):
        found = robot.contact_solution(q, v)
    assert found.jams.tolist() == [[True], [False]]
    assert np.isnan(found.force[0]).all()
    assert found.force[1, 0, 2] == pytest.approx(9.81 / (1.6 + 1.2 * friction), rel=1e-9)


@pytest.mark.slow
def test_a_run_goes_on_with_an_impulse_or_ends_at_a_jam():
    """Whatever the step, the impulse stops the slip: W = [[1.6, 1.2], [1.2, 3.4]] /kg, so that it is 0.3 N s."""
    model, q, v = known.painleve_rod(1.5, HALF), [0.0, HALF * np.sin(STEEP), STEEP], [1.0, 0.0, 0.0]
    for step in (1e-3, 1e-5):
        run = sl.simulate(model, q, v, duration=step, step=step)
        assert run.contacts["tip"].force[1, 2] * step == pytest.approx(0.3, abs=9.81 * step)
        assert "jams" in str(run.audit())
    ended = sl.simulate(model, q, v, duration=1e-3, contacts=sl.contacts.Settings(on_jam="end"))
    assert ended.outcome.reason == "jam"
    assert "contact 'tip' jams at t = 0 s" in str(ended.outcome)


@pytest.mark.slow
def test_what_a_jam_gives_is_not_expected_again():
    """The impulse of a jam is none of the next step: the rod keeps its angular momentum, and the tip stays down."""
    turn, half = 0.5, 0.5
    inertia = (1 / 12, 1 / 12, 1e-3)
    b = sl.Builder("rod").body("rod", mass=1.0, inertia=inertia).free("flight", "world", "rod")
    model = b.frame("tip", "rod", (0, 0, -half)).build().with_contact("tip", "tip", "ground", friction=2.0)
    q = [np.cos(turn / 2), 0, np.sin(turn / 2), 0, 0, 0, half * np.cos(turn)]
    v = [0, 0, 0, -2.0 * np.cos(turn), 0, -2.0 * np.sin(turn)]
    run = sl.simulate(model, q, v, duration=0.02)
    assert run.audit().faults == ("jams",)
    assert (run.contacts["tip"].normal_force[1:] > 0.0).all()
