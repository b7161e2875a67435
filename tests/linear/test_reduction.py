"""Reduced models keep what they must, and their error stays below its bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from linear_mechanisms import cart_pole, chain

import spanloop as sl
from spanloop.errors import InputError

linalg = pytest.importorskip("scipy.linalg")
OMEGA = np.geomspace(1e-3, 1e3, 600)


def hanging(**options):
    return sl.Dynamics(chain(3)).linearize([0.0] * 3, inputs=["h0"], outputs=["h0", "rod2.x"], **options)


def error(model, small):
    """The largest gain of the difference over frequencies, the poles' among them."""
    peaks = np.abs(model.poles.imag) if model.step is None else np.abs(np.angle(model.poles)) / model.step
    omega = np.union1d(OMEGA, peaks[peaks > 0.0])
    return np.linalg.norm(model.frequency_response(omega) - small.frequency_response(omega), 2, axis=(1, 2)).max()


@pytest.mark.parametrize("method", ["balanced", "modal"])
@pytest.mark.parametrize("step", [None, 0.05])
def test_the_error_stays_below_its_bound(method, step):
    model = hanging() if step is None else hanging().discrete(step)
    bounds = []
    for order in (6, 4, 2):
        small = model.reduced(order, method)
        assert small.A.shape == (order, order)
        assert error(model, small) <= small.error_bound
        bounds.append(small.error_bound)
    assert bounds == sorted(bounds)
    assert bounds[0] < 1e-9
    assert bounds[1] > 1e-3


def test_hankel_singular_values_are_those_of_the_gramians():
    model = hanging()
    P = linalg.solve_continuous_lyapunov(model.A, -model.B @ model.B.T)
    Q = linalg.solve_continuous_lyapunov(model.A.T, -model.C.T @ model.C)
    expected = np.sqrt(np.sort(np.linalg.eigvals(P @ Q).real)[::-1])
    np.testing.assert_allclose(model.hankel_singular_values, expected, rtol=1e-8)
    np.testing.assert_allclose(model.reduced(4).error_bound, 2 * expected[4:].sum(), rtol=1e-7)


@pytest.mark.slow
def test_balanced_models_are_those_of_python_control():
    control = pytest.importorskip("control")
    model = hanging()
    try:
        theirs = control.balred(model.to_control(), 4, method="truncate")
    except ImportError as missing:
        pytest.skip(f"python-control needs {missing.name or 'slycot'} here")
    ours = model.reduced(4).frequency_response(OMEGA)
    np.testing.assert_allclose(ours, np.moveaxis(theirs(1j * OMEGA), -1, 0), atol=1e-9)


def test_modal_truncation_keeps_poles():
    model = hanging()
    small = model.reduced(2, "modal")
    np.testing.assert_allclose(small.poles, model.poles[:2], rtol=1e-10)


def test_unstable_and_undamped_modes_are_kept_or_refused():
    model = sl.Dynamics(cart_pole(0.1)).linearize([0.0, 0.0], outputs=["hinge", "rail"])
    small = model.reduced(3)
    assert len(small.poles) == 3
    assert np.abs(small.poles - model.poles.real.max()).min() < 1e-9
    assert error(model, small) <= small.error_bound
    with pytest.raises(InputError, match="3 modes are unstable or undamped"):
        model.reduced(2)
    undamped = sl.Dynamics(chain(3, 0.0)).linearize([0.0] * 3)
    with pytest.raises(InputError, match="give the joints damping"):
        undamped.reduced(4)
    assert undamped.reduced(4, "modal").error_bound == np.inf


def test_orders_and_methods_that_do_not_exist_are_refused():
    with pytest.raises(InputError, match="expected 'balanced' or 'modal'"):
        hanging().reduced(2, "guyan")
    with pytest.raises(InputError, match="from 0 to 6"):
        hanging().reduced(7)


def two_masses(stiffness):
    """Masses of 1 kg, held by 1 N/m and a stiffer spring in series: from the force to the far mass's acceleration."""
    built = sl.Builder("masses").body("a", 1.0, inertia=[0.1] * 3).prismatic("x", "world", "a", axis="x")
    built = built.body("b", 1.0, inertia=[0.1] * 3).prismatic("x2", "a", "b", axis="x").build()
    damping = 0.02 * stiffness**0.5
    model = built.with_joint("x", stiffness=1.0, damping=0.02).with_joint("x2", stiffness=stiffness, damping=damping)
    return sl.Dynamics(model).linearize([0.0, 0.0], inputs="x", outputs="b.acceleration.x")


def hankel_of_modes(model):
    """Hankel singular values in modal coordinates, where Gramians have closed forms."""
    values, right = np.linalg.eig(model.A)
    B, C = np.linalg.solve(right, model.B.astype(complex)), model.C @ right
    pairs = -(values[:, None] + values.conj())
    P, Q = (B @ B.conj().T) / pairs, (C.conj().T @ C) / pairs.conj()
    return np.sqrt(np.sort(np.linalg.eigvals(P @ Q).real)[::-1])


@pytest.mark.parametrize("method", ["balanced", "modal"])
@pytest.mark.parametrize("stiffness", [1e2, 1e6, 1e10])
def test_stiff_models_keep_their_singular_values_and_bounds(stiffness, method):
    model = two_masses(stiffness)
    np.testing.assert_allclose(model.hankel_singular_values, hankel_of_modes(model), rtol=1e-6)
    for order in (0, 2, 4):
        small = model.reduced(order, method)
        assert len(small.states) == order
        assert error(model, small) <= small.error_bound
    assert 30.0 < model.reduced(2, method).error_bound < 40.0


@pytest.mark.slow
def test_a_long_chain_has_the_order_that_was_asked_for():
    joints = [f"hinge{k}" for k in range(1, 13)]
    robot = sl.Dynamics(sl.zoo.pendulum(12).with_joint(*joints, damping=0.05))
    model = robot.linearize(np.zeros(12), inputs="hinge1", outputs="tip.x")
    for order in (24, 23, 16):
        small = model.reduced(order)
        assert len(small.states) == order
        assert error(model, small) <= small.error_bound
    assert 9e-6 < model.reduced(23).error_bound < 2e-5


def test_overdamped_models_have_a_bound_with_rounding():
    built = sl.Builder("slow").body("a", 1.0, inertia=[0.1] * 3).prismatic("x", "world", "a", axis="x").build()
    model = sl.Dynamics(built.with_joint("x", stiffness=1.0, damping=1e5)).linearize([0.0], outputs="x")
    for order in (1, 2):
        small = model.reduced(order)
        assert error(model, small) <= small.error_bound < 1e-5


def test_states_without_a_part_in_the_response_are_left_out_with_a_warning():
    model = sl.Dynamics(chain(2)).linearize([0.0, 0.0], inputs="h0", outputs="h0")
    model = replace(model, B=0.0 * model.B)
    with pytest.warns(sl.errors.SpanloopWarning, match="order 3 was asked for; rounding determines 0 states"):
        small = model.reduced(3)
    assert len(small.states) == 0
    assert "order 3 was asked for" in str(small)


def test_an_order_that_splits_a_pair_is_refused_with_orders_that_do_not():
    with pytest.raises(InputError, match=r"use 2$"):
        hanging().reduced(1, "modal")
    with pytest.raises(InputError, match=r"use 2 or 4$"):
        hanging().reduced(3, "modal")
