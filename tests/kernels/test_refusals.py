"""A refusal is data: one reason for code, one sentence for people; both targets give the same."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

import spanloop as sl
from spanloop import zoo
from spanloop.errors import Reason, StateError, StateWarning


def flat_four_bar():
    """Model, and a closed state of rank lower than in general: a parallelogram whose bars lie on one line."""
    model = zoo.four_bar(ground=2.0, crank=1.0, coupler=2.0, rocker=1.0)
    return model, sl.Dynamics(model).assemble(np.zeros(model.nq))  # all bars on the x axis


def refused_states():
    """Reason, model, function and a state that is refused for that reason."""
    puma, star, four_bar = zoo.puma(), zoo.star(3), zoo.four_bar()
    rest = np.zeros(puma.nv)
    wrong = np.full(puma.nq, np.nan)
    yield Reason.NOT_FINITE, puma, "forward_dynamics", (wrong, rest, rest)
    q = np.array(star.neutral())
    q[:4] *= 1.1
    yield Reason.QUATERNION, star, "forward_dynamics", (q, np.zeros(star.nv), np.zeros(star.nv))
    still = np.zeros(four_bar.nv)
    yield Reason.OPEN_LOOP, four_bar, "forward_dynamics", (np.full(four_bar.nq, 0.7), still, still)
    yield Reason.SINGULAR_MASS, puma, "forward_dynamics", (rest + 0.1, rest + 1e200, rest)
    flat, q = flat_four_bar()
    yield Reason.SINGULAR_CLOSURE, flat, "forward_dynamics", (q, np.zeros(flat.nv), np.zeros(flat.nv))


CASES = {reason.name: case for reason, *case in refused_states()}


@pytest.mark.parametrize("target", ["cpu", "python"])
@pytest.mark.parametrize("reason", CASES)
def test_a_state_is_refused_for_its_reason(reason, target):
    model, function, state = CASES[reason]
    kernel = sl.compile(model, function, target=target)
    with pytest.raises(StateError) as caught:
        kernel(*state)
    error = caught.value
    assert error.reason is Reason[reason]
    assert str(error) == f"{function}: {error.refusal.sentence}"
    assert error.where == function


@pytest.mark.parametrize("target", ["cpu", "python"])
@pytest.mark.parametrize("reason", CASES)
def test_a_batch_warns_with_the_first_refusal(reason, target):
    model, function, state = CASES[reason]
    kernel = sl.compile(model, function, target=target)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer = kernel(*(np.stack([x, x]) for x in state))
    assert np.isnan(answer).all()
    (warning,) = [w.message for w in caught if isinstance(w.message, StateWarning)]
    assert warning.refusal.reason is Reason[reason]
    assert str(warning).endswith(f"The first is state 0: {warning.refusal.sentence}")


def test_errors_and_warnings_keep_their_refusal_through_pickle():
    model, function, state = CASES["NOT_FINITE"]
    with pytest.raises(StateError) as caught:
        sl.compile(model, function)(*state)
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.refusal, error.where, str(error)) == (caught.value.refusal, function, str(caught.value))
    warning = pickle.loads(pickle.dumps(StateWarning("text", error.refusal)))
    assert (warning.refusal, str(warning)) == (error.refusal, "text")
