"""Responses of linear models are SciPy's and python-control's, and those of small motions."""

from __future__ import annotations

import numpy as np
import pytest
from linear_mechanisms import cart_pole, chain, slider

import spanloop as sl
from spanloop.errors import InputError, UnsupportedError

signal = pytest.importorskip("scipy.signal")


def hanging():
    return sl.Dynamics(chain(2)).linearize([0.0] * 2, outputs=["rod1.x", "h1.a"])


@pytest.mark.filterwarnings("ignore::scipy.signal.BadCoefficients")
def test_frequency_responses_and_steps_are_those_of_scipy():
    model, omega = hanging(), np.geomspace(0.1, 100.0, 50)
    for k in range(2):
        column = signal.StateSpace(model.A, model.B[:, k : k + 1], model.C[:1], model.D[:1, k : k + 1])
        np.testing.assert_allclose(model.frequency_response(omega)[:, 0, k], column.freqresp(omega)[1], rtol=1e-8)
    t, y = model.step_response()
    for k in range(2):
        column = signal.StateSpace(model.A, model.B[:, k : k + 1], model.C[:1], model.D[:1, k : k + 1])
        np.testing.assert_allclose(y[:, 0, k], column.step(T=t)[1], atol=1e-9)
    assert model.frequency_response(1.0).shape == (2, 2)


def test_conversions_keep_matrices_and_names():
    model = hanging()
    np.testing.assert_array_equal(model.to_scipy().A, model.A)
    assert model.discrete(0.1).to_scipy().dt == 0.1
    control = pytest.importorskip("control")
    theirs = model.to_control()
    np.testing.assert_array_equal(theirs.D, model.D)
    assert theirs.input_labels == ["h0", "h1"]
    np.testing.assert_allclose(
        control.frequency_response(theirs, [1.0, 2.0]).frdata[..., 0], model.frequency_response(1.0)
    )


def test_poles_have_the_frequencies_and_damping_of_modes():
    robot = sl.Dynamics(chain(2))
    poles = robot.linearize([0.0, 0.0]).poles[::2]
    modes = robot.modes([0.0, 0.0])
    np.testing.assert_allclose(modes.frequencies, np.abs(poles) / (2 * np.pi), rtol=1e-9)
    np.testing.assert_allclose(modes.damping_ratios, -poles.real / np.abs(poles), rtol=1e-9)


def test_a_missing_package_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "control", None)
    with pytest.raises(UnsupportedError, match="pip install control"):
        hanging().to_control()
    monkeypatch.setitem(sys.modules, "scipy.linalg", None)
    with pytest.raises(UnsupportedError, match="lqr needs scipy"):
        hanging().lqr()


def test_discrete_time_is_that_of_scipy_and_its_poles_are_exponentials():
    model = hanging()
    A, B, *_ = signal.cont2discrete((model.A, model.B, model.C, model.D), 0.05)
    there = model.discrete(0.05)
    np.testing.assert_allclose(there.A, A, atol=1e-13)
    np.testing.assert_allclose(there.B, B, atol=1e-13)
    np.testing.assert_allclose(np.sort_complex(there.poles), np.sort_complex(np.exp(0.05 * model.poles)), atol=1e-10)
    assert there.is_stable
    np.testing.assert_allclose(there.frequency_response(1e-3)[0], model.frequency_response(1e-3)[0], rtol=1e-3)


def test_the_response_is_infinite_at_a_pole():
    model = sl.Dynamics(slider()).linearize([0.0])
    assert np.isinf(model.frequency_response([0.0, 1.0])[0]).all()
    swinging = sl.Dynamics(sl.zoo.pendulum(3)).linearize([0.0] * 3, inputs="hinge1", outputs=["hinge1", "tip.x"])
    frequencies = np.abs(swinging.poles.imag)
    assert np.isinf(swinging.frequency_response(frequencies)).all()
    assert np.isfinite(swinging.frequency_response(frequencies * (1.0 + 1e-9))).all()
    np.testing.assert_allclose(model.frequency_response(1.0)[0, 0], -0.5, rtol=1e-12)
    assert not model.is_stable


def test_a_pole_that_an_entry_does_not_have_leaves_it_finite():
    built = sl.Builder("two").body("a", 1.0, inertia=[0.1] * 3).prismatic("x", "world", "a", axis="x")
    built = built.body("b", 1.0, inertia=[0.1] * 3).prismatic("y", "world", "b", axis="y").build()
    model = built.with_joint("x", damping=0.5).with_joint("y", stiffness=4.0, damping=0.1)
    linear = sl.Dynamics(model).linearize([0.0, 0.0], outputs=["x", "x.v", "y"])
    for there in (linear, linear.discrete(0.1)):
        found = there.frequency_response(0.0)
        assert np.isinf(found[0, 0])
        np.testing.assert_allclose(found[1:], [[2.0, 0.0], [0.0, 0.25]], atol=1e-12)


@pytest.mark.slow
def test_steps_of_lightly_damped_models_show_every_period():
    model = sl.Dynamics(chain(2, 0.05)).linearize([0.0] * 2)
    t, _ = model.step_response()
    assert (t[1] - t[0]) * np.abs(model.poles.imag).max() < 0.4
    assert t[-1] * np.abs(model.poles.real).min() > 4.9
    barely = sl.Dynamics(chain(2, 1e-6)).linearize([0.0] * 2)
    with pytest.warns(sl.errors.SpanloopWarning, match="20000 samples show the first"):
        t, _ = barely.step_response()
    assert len(t) == 20000


def test_small_motions_are_those_of_the_simulation():
    robot = sl.Dynamics(chain(2))
    start = 1e-4 * np.array([1.0, -2.0])
    run = sl.simulate(robot.model, q=start, duration=1.0, step=1e-3, integrator="rk4")
    y = robot.linearize([0.0, 0.0]).simulate(run.times, x=[*start, 0.0, 0.0])
    np.testing.assert_allclose(y[:, :2], run.q, atol=1e-10)


def test_times_and_shapes_that_do_not_fit_are_refused():
    model = hanging()
    with pytest.raises(InputError, match="equally spaced"):
        model.simulate([0.0, 0.1, 0.3])
    with pytest.raises(InputError, match="u has shape"):
        model.simulate([0.0, 0.1], u=np.zeros(3))
    with pytest.raises(InputError, match=r"x has shape \(1,\)"):
        model.simulate([0.0, 0.1], x=[1.0])
    for u in ([1.0], 1.0):
        with pytest.raises(InputError, match="u has shape"):
            model.simulate([0.0, 0.1], u=u)
    with pytest.raises(InputError, match="u is 'a'"):
        model.simulate([0.0, 0.1], u="a")
    with pytest.raises(InputError, match=r"^step_response: times"):
        model.step_response([0.0, 1.0, 5.0])
    single = sl.Dynamics(slider()).linearize([0.0])
    np.testing.assert_array_equal(single.simulate([0.0, 0.1], u=1.0), single.simulate([0.0, 0.1], u=[[1.0], [1.0]]))
    with pytest.raises(InputError, match="discrete time already"):
        model.discrete(0.1).discrete(0.1)
    with pytest.raises(InputError, match="step is -1"):
        model.discrete(-1.0)


def test_the_printout_says_what_it_is_about():
    text = str(sl.Dynamics(cart_pole()).linearize([0.0, 0.0]))
    assert "about an equilibrium at rest" in text
    assert "unstable" in text
    assert "states     4: rail [m], hinge [rad], rail.v [m/s], hinge.v [rad/s]" in text
    moving = str(sl.Dynamics(chain(2)).linearize([0.0, 0.0], [1.0, 0.0]))
    assert "about motion, no equilibrium" in moving


def test_figures_have_a_line_for_each_pair_and_a_mark_for_each_pole():
    pytest.importorskip("matplotlib")
    model = hanging()
    gain, phase = model.bode()
    assert len(gain.lines) == len(phase.lines) == 4
    assert model.pole_plot().lines[0].get_xdata().shape == (4,)
    np.testing.assert_array_equal(model.bode(frequencies=[3, 1, 2])[0].lines[0].get_xdata(), [1.0, 2.0, 3.0])
    for wrong in ([-1.0, 1.0], [0.0, 1.0], "a"):
        with pytest.raises(InputError, match=r"bode: frequencies are .* expected .*numbers > 0"):
            model.bode(frequencies=wrong)
    batch = sl.Dynamics(chain(2)).linearize(np.zeros((3, 2)))
    assert len(batch.pole_plot().lines) >= 3
    with pytest.raises(InputError, match=r"linear\[0\].bode"):
        batch.bode()
