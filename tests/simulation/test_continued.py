"""A run that another one continues: times, states by name, impacts, and what cannot be continued."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import InputError


@pytest.mark.parametrize("integrator", ["rk4", "DOP853"])
def test_controllers_and_events_see_the_time_that_starts_where_the_user_says(integrator):
    model = sl.zoo.puma()
    run = sl.simulate(
        model,
        duration=0.01,
        start=2.0,
        integrator=integrator,
        controller=lambda t, q, v: [t] * 6,
        events={"late": lambda t, q, v: 2.0055 - t},
    )
    assert run.times[0] == 2.0
    np.testing.assert_allclose(run.times[-1], 2.0055, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(run.tau[:, 0], run.times, rtol=1e-15)
    assert run.outcome.reason == "event"


def test_a_start_that_is_no_time_is_refused():
    with pytest.raises(InputError, match="start is nan; expected a time in seconds"):
        sl.simulate(sl.zoo.puma(), duration=0.01, start=np.nan)
