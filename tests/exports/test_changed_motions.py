"""Other lengths and other states in exported motions: loops follow and are closed, or everything stays as it was."""

from __future__ import annotations

import numpy as np
import pytest
from c_code import Exported, Motion, needs_compiler
from es_runtime import evaluated, needs_node

import spanloop as sl
from spanloop import zoo

LENGTH = "coupler_hinge.position.x"  # 1 m, of the crank
OPTIONS = {"step": 1e-3, "q": zoo.four_bar_start(), "integrator": "rk4", "limits": "ignore"}


def changed(factor: float) -> sl.Model:
    return zoo.four_bar().with_parameters({LENGTH: factor})


def is_followed(q, v, factor: float) -> None:
    """The loops of the changed model are closed at q, v, in the assembly of the start."""
    robot, near = sl.Dynamics(changed(factor)), zoo.four_bar_start()
    assert np.abs(robot.closure_error(q)).max() < 1e-14
    assert np.abs(robot.closure_jacobian(q) @ v).max() < 1e-12
    assert np.sign(np.sin(near[2])) == np.sign(np.sin(q[2]))  # between coupler and rocker: the same side


@pytest.mark.slow
@needs_compiler
def test_c_motions_follow_other_lengths_in_stages(tmp_path):
    model, own = zoo.four_bar(), zoo.four_bar().parameters()
    code = Exported(model, [], tmp_path, parameters="live", **OPTIONS)
    for factor in (1.001, 1.3, 0.6):
        motion = Motion(code, model)
        assert [motion.step(np.zeros(3)) for _ in range(20)] == [0] * 20
        before = motion.state()[1]
        assert motion.call("set_parameters", own.changed({LENGTH: factor}).values) == 0
        q, v = motion.state()
        is_followed(q, v, factor)
        assert np.abs(v - before).max() < 0.5 * np.abs(before).max()
        run = sl.simulate(changed(factor), q, v, duration=0.02, step=1e-3, integrator="rk4", limits="ignore")
        assert [motion.step(np.zeros(3)) for _ in range(20)] == [0] * 20
        assert np.abs(motion.state()[0] - run.q[-1]).max() < 1e-12


@needs_compiler
@pytest.mark.parametrize("real", ["double", "float"])
def test_lengths_without_an_assembly_are_refused_and_nothing_changes(real, tmp_path):
    model, own = zoo.four_bar(), zoo.four_bar().parameters()
    code = Exported(model, [], tmp_path, parameters=[LENGTH], real=real, **OPTIONS)
    motion, other = Motion(code, model), Motion(code, model)
    assert own.values[own.index(LENGTH)] == 1.0
    status = motion.call("set_parameters", [20.0])
    assert status == 128
    assert "loops cannot be closed" in code.text(status)
    for _ in range(50):
        assert (motion.step(np.zeros(3)), other.step(np.zeros(3))) == (0, 0)
        assert all(np.array_equal(a, b) for a, b in zip(motion.state(), other.state(), strict=True))


@needs_compiler
def test_parameters_with_which_nothing_moves_are_refused(tmp_path):
    model = zoo.pendulum(2)
    motion = Motion(Exported(model, [], tmp_path, parameters="live", step=1e-3), model)
    assert motion.call("set_parameters", np.zeros(len(model.parameters()))) == 16
    assert motion.step(np.zeros(2)) == 0


@needs_node
def test_modules_follow_other_lengths_or_refuse_them(tmp_path):
    path = sl.export(zoo.four_bar(), tmp_path / "bar.mjs", parameters=[LENGTH], **OPTIONS)
    script = """{
        const { motion } = m;
        motion.step(20);
        motion.parameters = [1.3];
        const state = [motion.q, motion.v];
        motion.step(20);
        const moved = motion.q;
        const refused = caught(() => { motion.parameters = [20]; });
        return [state, moved, refused, motion.parameters, motion.q];
    }"""
    (q, v), moved, refused, parameters, kept = evaluated(path, script)
    is_followed(np.array(q), np.array(v), 1.3)
    run = sl.simulate(changed(1.3), q, v, duration=0.02, step=1e-3, integrator="rk4", limits="ignore")
    assert np.abs(np.array(moved) - run.q[-1]).max() < 1e-12
    assert refused[0] == "StateError"
    assert "loops cannot be closed" in refused[1]
    assert parameters == [1.3]
    assert kept == moved


@pytest.mark.slow
@needs_compiler
def test_c_states_are_refused_with_their_own_status(tmp_path):
    model, q = zoo.four_bar(), np.array(zoo.four_bar_start())
    motion = Motion(Exported(model, [], tmp_path, **OPTIONS), model)
    for k in range(3):
        assert motion.call("set_state", q + 1e-3 * np.eye(3)[k], np.zeros(3)) == 0
        assert np.abs(sl.Dynamics(model).closure_error(motion.state()[0])).max() < 1e-14
    assert motion.call("set_state", q + [0.3, 0.0, 0.0], np.zeros(3)) == 128
    assert motion.call("set_state", q + [2e6, 0.0, 0.0], np.zeros(3)) == 4
    assert motion.step(np.full(3, 1e200)) & 16
    assert motion.call("set_state", q, np.zeros(3)) == 0  # whatever the inputs of a step that failed were
    free = zoo.quadruped()
    motion = Motion(Exported(free, [], tmp_path, name="dog", step=1e-3, integrator="euler"), free)
    neutral = free.neutral()
    assert motion.call("set_state", neutral, np.zeros(free.nv)) == 0
    assert motion.call("set_state", np.concatenate([1.01 * neutral[:4], neutral[4:]]), np.zeros(free.nv)) == 2


@needs_node
def test_states_of_modules_are_refused_with_their_reason(tmp_path):
    path = sl.export(zoo.four_bar(), tmp_path / "bar.mjs", **OPTIONS)
    script = "[() => m.motion.setState([q[0] + 0.3, q[1], q[2]]), () => m.motion.setState([2e6, 0, 0])].map(caught)"
    far, turned = evaluated(path, script, q=list(zoo.four_bar_start()))
    assert "the loops cannot be closed here" in far[1]
    assert "beyond the range of the sine" in turned[1]
    path = sl.export(zoo.quadruped(), tmp_path / "dog.mjs", step=1e-3, integrator="euler")
    long = [1.01, *zoo.quadruped().neutral()[1:].tolist()]
    assert "off unit length" in evaluated(path, "caught(() => m.motion.setState(q))", q=long)[1]
