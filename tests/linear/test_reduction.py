"""Reduced models keep what they must, and their error stays below its bound."""

from __future__ import annotations

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
        assert error(model, small) <= small.error_bound + 1e-9
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
    with pytest.raises(InputError, match=r"would split a pair of poles.*use 4|use 2"):
        model.reduced(3, "modal")


def test_unstable_and_undamped_modes_are_kept_or_refused():
    model = sl.Dynamics(cart_pole(0.1)).linearize([0.0, 0.0], outputs=["hinge", "rail"])
    small = model.reduced(3)
    assert len(small.poles) == 3
    assert np.abs(small.poles - model.poles.real.max()).min() < 1e-9
    assert error(model, small) <= small.error_bound + 1e-9
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
