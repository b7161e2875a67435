"""Variables of units: parameters, starts, frames, forces, controllers and quaternions."""

from __future__ import annotations

import numpy as np
import pytest
from fmu_instances import fmpy, instances, moved, needs_compiler, problems

import spanloop as sl
from spanloop.errors import UnsupportedError
from spanloop.exports.export import export

pytestmark = needs_compiler
STEP = 1e-3


def free_bodies() -> sl.Model:
    """A body in the air and an arm on a ball joint: quaternions."""
    b = sl.Builder("air & <land>")
    b.body("kite", mass=1.5, inertia=(0.02, 0.03, 0.04), center=(0.01, 0.0, 0.02))
    b.body("arm", mass=0.7, inertia=(0.01, 0.02, 0.03), center=(0.0, 0.1, -0.2))
    b.free("root", "world", "kite")
    b.spherical("ball", "kite", "arm", position=(0.1, 0.0, 0.0))
    return b.build()


@pytest.fixture(scope="module")
def linkage(tmp_path_factory):
    """A four-bar, its start, and its unit."""
    model, q = sl.zoo.four_bar(), sl.zoo.four_bar_start()
    path = tmp_path_factory.mktemp("units") / "linkage.fmu"
    return model, q, export(model, path, q=q, frames=[model.bodies[-1].name])


# ---- what variables mean


@pytest.mark.slow
def test_frames_energies_and_rates_are_those_of_the_robot(linkage):
    model, q, path = linkage
    body = model.bodies[-1].name
    assert problems(path) == []
    robot = sl.Dynamics(model)
    with instances(path) as (a,):
        a.initialize()
        a.set_named({"tau.crank_hinge": 0.4})
        a.step(0.0, 0.2)
        q, v = a.all_of("q."), a.all_of("v.")
        pose = robot.pose(q, body)
        assert np.abs(a.all_of(f"position.{body}") - pose[:3, 3]).max() < 1e-14
        assert np.abs(a.all_of(f"rotation.{body}").reshape(3, 3) - pose[:3, :3]).max() < 1e-14
        assert np.abs(a.get("energy.kinetic", "energy.potential") - robot.energy(q, v)).max() < 1e-13
        tau = np.zeros(model.nv)
        tau[model.v_slice("crank_hinge").start] = 0.4
        expected = robot.forward_dynamics(q, v, tau)
        assert np.abs(a.all_of("der(v.") - expected).max() < 1e-10  # feedback of errors of 1e-16, times 2500
        assert np.abs(a.all_of("der(q.") - v).max() < 1e-15


@pytest.mark.slow
def test_quaternions_move_in_both_interfaces(tmp_path):
    model = free_bodies()
    path = export(model, tmp_path / "air.fmu", v={"root": [1.0, 2.0, -3.0, 0.1, 0.2, 4.0], "ball": [0.3, -2.0, 1.0]})
    assert problems(path) == []
    run = sl.simulate(
        model, v={"root": [1.0, 2.0, -3.0, 0.1, 0.2, 4.0], "ball": [0.3, -2.0, 1.0]}, duration=0.2, step=STEP
    )
    q, v, said = moved(path, 200)
    assert np.abs(q - run.q[-1]).max() < 1e-13
    assert np.abs(v - run.v[-1]).max() < 1e-13
    assert said == ""
    found = fmpy.simulate_fmu(str(path), stop_time=0.2, output_interval=0.01, fmi_type="ModelExchange",
                              output=["q.root.w", "q.root.pz", "q.ball.x"], relative_tolerance=1e-12)  # fmt: skip
    places = [0, 6, 8]
    assert np.abs(np.array(found[-1].tolist()[1:]) - run.q[-1][places]).max() < 1e-8


@pytest.mark.slow
def test_model_exchange_brings_a_state_that_drifted_back_to_the_closed_loops(linkage):
    _, q, path = linkage
    found = fmpy.simulate_fmu(str(path), stop_time=2.0, output_interval=0.01, fmi_type="ModelExchange", solver="Euler",
                              step_size=0.01, output=["closure_error"], record_events=False)  # fmt: skip
    assert found["closure_error"].max() < 1e-9  # Euler's method alone opens the loop by 1e-3 a step
    with instances(path, "ModelExchange") as (a,):
        a.initialize()
        a.fmu.updateDiscreteStates()
        a.fmu.enterContinuousTimeMode()
        assert a.fmu.completedIntegratorStep() == (False, False)
        from fmpy.fmi3 import fmi3Float64

        far = (fmi3Float64 * 6)(*(np.r_[q, np.zeros(3)] + 1e-4))
        a.fmu.setContinuousStates(far, 6)
        assert a.fmu.completedIntegratorStep() == (True, False)
        a.fmu.enterEventMode()
        _, _, _, values_changed, _, _ = a.fmu.updateDiscreteStates()
        assert values_changed
        assert a.get("closure_error")[0] < 1e-14


@pytest.mark.slow
def test_forces_on_bodies_are_inputs(tmp_path):
    model = sl.zoo.puma()
    body = model.bodies[-1].name
    path = export(model, tmp_path / "arm.fmu", forces=[body], torques=["joint1"])
    assert problems(path) == []
    six = [0.1, -0.2, 0.3, 1.0, 2.0, -3.0]
    run = sl.simulate(model, duration=0.05, step=STEP, forces={body: six}, tau={"joint1": 0.5}, limits="ignore")
    names = [f"{what}.{body}.{a}" for what in ("torque", "force") for a in "xyz"]
    q, v, _ = moved(path, **dict(zip(names, six, strict=True)), **{"tau.joint1": 0.5})
    assert np.abs(q - run.q[-1]).max() < 1e-13
    assert np.abs(v - run.v[-1]).max() < 1e-12


class Servo(sl.control.Controller):
    """A proportional and integral law with a target for one joint."""

    inputs, memory = 1, 1

    def torques(self, t, q, v, u, z):
        return {"joint1": 20.0 * (u[0] - q["joint1"]) - 3.0 * v["joint1"] + z[0]}

    def update(self, t, h, q, v, u, z):
        return z + h * (u[0] - q["joint1"])


@pytest.mark.slow
def test_a_controller_with_memory_is_for_co_simulation_alone(tmp_path):
    model = sl.zoo.puma()
    path = export(model, tmp_path / "servo.fmu", controller=Servo(), inputs={"target": "rad"})
    assert problems(path) == []
    assert fmpy.read_model_description(str(path)).modelExchange is None
    run = sl.simulate(model, duration=0.05, step=STEP, controller=Servo(), inputs=[0.3], limits="ignore")
    q, _, _ = moved(path, target=0.3)
    assert np.abs(q - run.q[-1]).max() < 1e-13
    with pytest.raises(UnsupportedError, match="keeps numbers from step to step"):
        export(model, tmp_path / "x.fmu", controller=Servo(), inputs=["target"], kinds=["ModelExchange"])


def test_a_unit_without_inputs_and_one_without_motion(tmp_path):
    path = export(sl.zoo.pendulum(), tmp_path / "pendulum.fmu", q=[0.7], torques=[])
    assert problems(path) == []
    run = sl.simulate(sl.zoo.pendulum(), [0.7], duration=0.05, step=STEP)
    assert np.abs(moved(path)[0] - run.q[-1]).max() < 1e-15


# ---- parameters and starts


@pytest.mark.slow
def test_parameters_are_set_before_the_initialization(tmp_path):
    model = sl.zoo.puma()
    body = model.bodies[2].name
    path = export(model, tmp_path / "arm.fmu", parameters=["gravity", f"{body}.mass", "joint2.damping"])
    assert problems(path) == []
    values = {"gravity.z": -1.62, f"{body}.mass": 25.0, "joint2.damping": 1.5}
    changed = model.parameters().changed(values)
    run = sl.simulate(model, duration=0.05, step=STEP, parameters=changed, limits="ignore")
    q, v, _ = moved(path, **values)
    assert np.abs(q - run.q[-1]).max() < 1e-13
    assert np.abs(v - run.v[-1]).max() < 1e-13
    with instances(path) as (a,):
        with pytest.raises(Exception, match="fmi3SetFloat64"):
            a.set_named({f"{body}.mass": -1.0})
        assert "mass is set to -1; must be >= 0" in a.said
        with pytest.raises(Exception, match="fmi3SetFloat64"):
            a.set_named({"gravity.z": np.nan})
        a.initialize()
        with pytest.raises(Exception, match="fmi3SetFloat64"):
            a.set_named({"gravity.z": -1.0})
        assert "can be set before the end of the initialization only" in a.said


@pytest.mark.slow
def test_other_lengths_reassemble_the_loops(tmp_path):
    model, q = sl.zoo.four_bar(), sl.zoo.four_bar_start()
    name = "coupler_hinge.position.x"
    own = model.parameters()
    longer = 1.2 * own.values[own.index(name)]
    path = export(model, tmp_path / "linkage.fmu", q=q, parameters=[name])
    with instances(path) as (a,):
        a.set_named({name: longer})
        a.initialize()
        assert "the start was brought to the closed loops" in a.said
        assert a.get("closure_error")[0] < 1e-14
        start = a.all_of("q.")
        a.step(0.0, 0.05)
        run = sl.simulate(model.with_parameters(own.changed({name: longer})), start, duration=0.05, step=STEP)
        assert np.abs(a.all_of("q.") - run.q[-1]).max() < 1e-12
    with instances(path) as (a,):
        a.set_named({name: 50.0})
        with pytest.raises(Exception, match="fmi3ExitInitializationMode"):
            a.initialize()
        assert "cannot be closed" in a.said


def test_starts_near_the_closed_loops_are_projected_and_others_refused(linkage):
    model, q, path = linkage
    other = sl.Dynamics(model).assemble(q + [0.2, 0.0, 0.0])
    names = [f"q.{j.name}" for j in model.joints]
    run = sl.simulate(model, other, duration=0.05, step=STEP)
    got, _, said = moved(path, **dict(zip(names, other, strict=True)))
    assert np.abs(got - run.q[-1]).max() < 1e-12
    assert said == ""
    with instances(path) as (a,):
        a.set_named({"q.crank_hinge": q[0] + 1e-3})
        a.initialize()
        assert "the start was brought to the closed loops" in a.said
        assert a.get("closure_error")[0] < 1e-14
    with instances(path) as (a,):
        a.set_named({"q.crank_hinge": q[0] + 1.0})
        with pytest.raises(Exception, match="fmi3ExitInitializationMode"):
            a.initialize()
        assert "a loop is open by" in a.said
    with instances(path) as (a,):
        a.set_named({"v.crank_hinge": 1.0})
        a.initialize()
        v = a.all_of("v.")
        expected = sl.Dynamics(model).complete_velocity(q, {"crank_hinge": 1.0})
        assert np.abs(v - expected).max() < 1e-13


@pytest.mark.slow
def test_a_quaternion_that_is_not_of_unit_length_is_refused(tmp_path):
    path = export(free_bodies(), tmp_path / "air.fmu")
    with instances(path) as (a,):
        a.set_named({"q.ball.x": 0.5})
        with pytest.raises(Exception, match="fmi3ExitInitializationMode"):
            a.initialize()
        assert "the quaternion from q.ball.w on has the length 1.118" in a.said.replace("1.11803", "1.118")


# ---- what the description says


@pytest.mark.slow
@pytest.mark.parametrize("name", ["star", "four_bar"])
def test_nothing_depends_on_what_the_description_does_not_list(tmp_path, name, linkage):
    """Each input and state of Model Exchange is moved a little; what changes must list it."""
    if name == "four_bar":
        path = linkage[2]
    else:
        model = sl.zoo.star(2)
        path = export(model, tmp_path / "star.fmu", frames=[model.bodies[-1].name])
    random = np.random.default_rng(5)
    with instances(path, "ModelExchange") as (a,):
        a.initialize()
        a.fmu.updateDiscreteStates()
        a.fmu.enterContinuousTimeMode()
        unknowns = [*a.description.outputs, *a.description.derivatives]
        references = [u.variable.valueReference for u in unknowns]
        listed = [{v.valueReference for v in u.dependencies} for u in unknowns]
        states = [u.variable.derivative.valueReference for u in a.description.derivatives]
        inputs = [v.valueReference for v in a.description.modelVariables if v.causality == "input"]
        x, u = np.array(a.fmu.getFloat64(states)), random.normal(size=len(inputs))
        x[len(x) // 2 :] += 0.1 * random.normal(size=len(x) - len(x) // 2) if name == "star" else 0.0

        def values(x, u) -> np.ndarray:
            from fmpy.fmi3 import fmi3Float64

            a.fmu.setFloat64(inputs, list(u))
            a.fmu.setContinuousStates((fmi3Float64 * len(x))(*x), len(x))
            return np.array(a.fmu.getFloat64(references))

        there, moves = values(x, u), 0
        for k, reference in enumerate([*states, *inputs]):
            step = np.zeros(len(x) + len(u))
            step[k] = 1e-6
            changed = values(x + step[: len(x)], u + step[len(x) :]) != there
            moves += changed.sum()
            assert all(reference in own for own, moved in zip(listed, changed, strict=True) if moved), reference
        assert moves > len(states)
        outputs = [own for u, own in zip(unknowns, listed, strict=True) if u.variable.causality == "output"]
        assert not any(set(inputs) & own for own in outputs)  # no output follows an input at once
