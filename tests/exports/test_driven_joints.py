"""Driven joints in exported files: their entries of tau and u are accelerations, and are documented as such."""

from __future__ import annotations

import numpy as np
from c_code import Exported, Motion, needs_compiler
from es_runtime import evaluated, needs_node

import spanloop as sl


@needs_compiler
def test_a_c_header_says_that_driven_joints_take_accelerations(tmp_path):
    model = sl.zoo.pendulum(2).drive("hinge1")
    code = Exported(model, ["forward_dynamics"], tmp_path, step=1e-3)
    header = code.path.with_suffix(".h").read_text()
    words = "accelerations [rad/s2 or m/s2] at driven joints: 'hinge1'"
    assert header.count(words) == 2  # of the function and of the step
    assert "'hinge1' [rad/s], driven: tau and u have its acceleration" in header
    assert code.call("forward_dynamics", [0.1, 0.2], [0.0, 0.0], [3.0, 0.0], size=2)[1][0] == 3.0
    motion = Motion(code, model)
    assert [motion.step([3.0, 0.0]) for _ in range(10)] == [0] * 10
    assert abs(motion.state()[1][0] - 0.03) < 1e-12


@needs_node
def test_a_module_has_the_units_of_accelerations(tmp_path):
    model = sl.zoo.pendulum(2).drive("hinge1")
    path = sl.export(model, ["forward_dynamics"], tmp_path / "two.mjs", step=1e-3)
    efforts, inputs, a = evaluated(
        path, "[api.model.dofs.map((d) => d.effort), m.motion.inputs, m.forwardDynamics([0, 0], [0, 0], [3, 0])]"
    )
    assert efforts == ["rad/s2", "N m"]
    assert [x["unit"] for x in inputs] == ["rad/s2", "N m"]
    assert np.isclose(a[0], 3.0, atol=1e-14)
    assert "accelerations [rad/s2 or m/s2] at driven joints" in path.read_text()
