"""A call on a batch warns once, in its own name and with the reason of the first state that has no answer."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import Reason, StateWarning

MODEL = sl.zoo.four_bar()
ROBOT = sl.Dynamics(MODEL)
LOADED = {"loop_forces": {MODEL.loops[0].name: [1.0]}}


def states(first):
    q, v = np.tile(sl.zoo.four_bar_start(), (6, 1)), np.zeros((6, MODEL.nv))
    if first == "nan":
        q[2, 0] = np.nan
    q[4] += 0.3
    return q, v, np.zeros(MODEL.nv)


@pytest.mark.parametrize("options", [{}, LOADED], ids=["plain", "loop forces"])
@pytest.mark.parametrize("name", ["forward_dynamics", "solve", "reactions", "inverse_dynamics", "solve_inverse"])
def test_a_batch_gives_one_warning_with_the_reason(name, options):
    for first, reason, start in (
        (
            "nan",
            Reason.NOT_FINITE,
            f"{name}: 2 of 6 states have no answer; their rows are NaN. The first is state 2: q[0] "
            "(joint 'crank_hinge') is nan; every number must be finite",
        ),
        (
            "open",
            Reason.OPEN_LOOP,
            f"{name}: 1 of 6 states has no answer; its row is NaN. It is state 4: "
            "loop 'closing', between 'coupler' and 'rocker', is open",
        ),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            getattr(ROBOT, name)(*states(first), **options)
        (warning,) = caught
        assert isinstance(warning.message, StateWarning)
        assert warning.message.refusal.reason is reason
        assert str(warning.message).startswith(start)
        assert warning.filename == __file__


def test_batches_of_unlike_axes_are_counted_as_one():
    q, v, tau = states("nan")
    with pytest.warns(StateWarning, match=r"^solve: 4 of 12 states .* The first is state \(2, 0\): q\[0\]") as caught:
        ROBOT.solve(q[:, None], v[:2], tau)
    assert len(caught) == 1
