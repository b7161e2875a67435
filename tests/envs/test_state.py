"""The state of environments, as functions of users read it."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl
from spanloop.zoo import four_bar, four_bar_start

pytest.importorskip("gymnasium")


def made(**options):
    settings = {"q": four_bar_start(), "actions": {"crank_hinge": 5.0}, "reward": lambda s: s["crank_hinge"].v}
    return sl.envs.MechanismEnv(four_bar(), 3, **settings | options)


READ = {
    "time": lambda s: s.time,
    "q": lambda s: s.q,
    "v": lambda s: s.v,
    "action": lambda s: s.action,
    "failed": lambda s: s.failed,
    "parameters": lambda s: s.parameters,
    "q of a joint": lambda s: s["crank_hinge"].q,
    "v of a joint": lambda s: s["crank_hinge"].v,
    "cos": lambda s: s["crank_hinge"].cos,
    "sin": lambda s: s["crank_hinge"].sin,
    "pose": lambda s: s["coupler"].pose,
    "position": lambda s: s["coupler"].position,
    "rotation": lambda s: s["coupler"].rotation,
    "velocity": lambda s: s["coupler"].velocity,
}


@pytest.mark.parametrize("read", READ.values(), ids=READ)
@pytest.mark.parametrize("function", ["reward", "terminate", "observation"])
def test_functions_of_users_cannot_change_a_state(function, read):
    writes = [False]

    def written(state):
        if writes[0]:
            read(state)[...] = 0
        return {"reward": state.time, "terminate": state.failed, "observation": state.q}[function]

    env = made(**{function: written}, parameters=four_bar().parameters().values)
    env.reset(seed=0)
    env.step(np.zeros((3, 1)))
    writes[0] = True
    with pytest.raises(ValueError, match="assignment destination is read-only"):
        env.step(np.zeros((3, 1)))


def test_what_environments_return_can_be_written_to_and_is_their_own():
    for mode in ("NextStep", "SameStep", "Disabled"):
        env = made(duration=0.02, autoreset_mode=mode, observation=lambda s: s.q, terminate=lambda s: s.failed)
        found = [env.reset(seed=0)[0], *env.step(np.zeros((3, 1)))[:4], env.q, env.v, env.time, env.closure_residual]
        before = env.q
        for x in found:
            x[...] = 1
        assert np.array_equal(env.q, before)
        env.step(np.zeros((3, 1)))
        assert np.isfinite(env.q).all()
