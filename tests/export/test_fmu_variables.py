"""Variables of units: parameters, starts, frames, forces, controllers; their descriptions; refusals."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from units import fmpy, instances, needs_compiler

import spanloop as sl
from spanloop.errors import InputError, SpanloopWarning, UnsupportedError
from spanloop.export.export import export
from spanloop.export.fmu import binary

pytestmark = needs_compiler
STEP = 1e-3


def problems(path: Path) -> list[str]:
    from fmpy.validation import validate_fmu

    return list(validate_fmu(str(path)))


def moved(path: Path, steps: int = 50, **values: float) -> tuple[np.ndarray, np.ndarray, str]:
    """q and v after some steps, and what was logged; values are set before the initialization."""
    with instances(path) as (a,):
        a.set_named({n.replace("__", "."): x for n, x in values.items()})
        a.initialize()
        a.step(0.0, steps * STEP)
        return a.all_of("q."), a.all_of("v."), a.said


def free_bodies() -> sl.Model:
    """A body in the air and an arm on a ball joint: quaternions."""
    b = sl.Builder("air & <land>")
    b.body("kite", mass=1.5, inertia=(0.02, 0.03, 0.04), center=(0.01, 0.0, 0.02))
    b.body("arm", mass=0.7, inertia=(0.01, 0.02, 0.03), center=(0.0, 0.1, -0.2))
    b.free("root", "world", "kite")
    b.spherical("ball", "kite", "arm", position=(0.1, 0.0, 0.0))
    return b.build()


# ---- what variables mean


def test_frames_energies_and_rates_are_those_of_the_robot(tmp_path):
    model, q = sl.zoo.four_bar(), sl.zoo.four_bar_start()
    body = model.bodies[-1].name
    path = export(model, tmp_path / "linkage.fmu", q=q, frames=[body])
    assert problems(path) == []
    robot = sl.Dynamics(model)
    with instances(path, "CoSimulation", "ModelExchange") as (a, b):
        for x in (a, b):
            x.initialize()
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


def test_model_exchange_brings_a_state_that_drifted_back_to_the_closed_loops(tmp_path):
    model, q = sl.zoo.four_bar(), sl.zoo.four_bar_start()
    path = export(model, tmp_path / "linkage.fmu", q=q)
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


def test_starts_near_the_closed_loops_are_projected_and_others_refused(tmp_path):
    model, q = sl.zoo.four_bar(), sl.zoo.four_bar_start()
    path = export(model, tmp_path / "linkage.fmu", q=q)
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
        expected = sl.Dynamics(model).project(q, np.array([1.0, 0.0, 0.0]))[1]
        assert np.abs(v - expected).max() < 1e-13


def test_a_quaternion_that_is_not_of_unit_length_is_refused(tmp_path):
    path = export(free_bodies(), tmp_path / "air.fmu")
    with instances(path) as (a,):
        a.set_named({"q.ball.x": 0.5})
        with pytest.raises(Exception, match="fmi3ExitInitializationMode"):
            a.initialize()
        assert "the quaternion from q.ball.w on has the length 1.118" in a.said.replace("1.11803", "1.118")


# ---- steps that fail, calls that do not fit


def test_a_step_that_fails_is_discarded_and_leaves_the_state(tmp_path):
    path = export(sl.zoo.puma(), tmp_path / "arm.fmu")
    with instances(path) as (a,):
        a.initialize()
        a.step(0.0, 0.01)
        before = a.all_of("q.")
        a.set_named({"tau.joint6": 1e14})
        with pytest.raises(Exception, match="status 2|Discard|fmi3DoStep"):
            a.step(0.01, 0.01)
        assert a.messages[-1][0] == 2
        assert "the step of 0.001 s at t = 0.0" in a.said
        assert (a.all_of("q.") == before).all()
        assert a.get("time")[0] == pytest.approx(0.01, abs=1e-15)
        a.set_named({"tau.joint6": 0.0})
        a.step(0.01, 0.01)


def test_a_singular_position_is_reported(tmp_path):
    """A four-bar with equal bars folds into a line, where it could go on in two ways."""
    model = sl.zoo.four_bar(crank=1.0, coupler=1.0, rocker=1.0, ground=1.0)
    robot = sl.Dynamics(model)
    q = robot.assemble([1.2, -1.2, 1.2])
    path = export(model, tmp_path / "rhombus.fmu", q=q)
    with instances(path) as (a,):
        a.set_named({"q.crank_hinge": 0.0, "q.coupler_hinge": 0.0, "q.rocker_hinge": 0.0})
        with pytest.raises(Exception, match="fmi3"):
            a.initialize()
            a.step(0.0, 0.01)
        assert a.messages[-1][0] in (2, 3)


def test_calls_that_do_not_fit_are_refused(tmp_path):
    path = export(sl.zoo.pendulum(), tmp_path / "pendulum.fmu")
    with instances(path) as (a,):
        with pytest.raises(Exception, match="fmi3DoStep"):
            a.step(0.0, 0.01)
        a.initialize()
        for t, h in ((0.5, 0.01), (0.0, -0.01), (0.0, np.nan)):
            with pytest.raises(Exception, match="fmi3DoStep"):
                a.step(t, h)
        with pytest.raises(Exception, match="fmi3SetFloat64"):
            a.set_named({"energy.kinetic": 1.0})
        with pytest.raises(Exception, match="fmi3GetFloat64"):
            a.fmu.getFloat64([10_000])
        with pytest.raises(Exception, match="fmi3GetInt32"):
            a.fmu.getInt32([0])
    for words in ("not allowed in this mode", "the state is that of t = 0", "must be positive", "it cannot be set"):
        assert words in a.said, words


def test_a_limit_ends_the_simulation(tmp_path):
    b = sl.Builder("gate")
    b.body("leaf", mass=1.0, center=(0.5, 0.0, 0.0), inertia=(0.01, 0.01, 0.01))
    b.revolute("hinge", "world", "leaf", axis="y", lower=-0.2, upper=0.2)
    model = b.build()
    path = export(model, tmp_path / "gate.fmu", limits="end")
    assert problems(path) == []
    with instances(path) as (a,):
        a.initialize()
        _, ends, _, reached = a.step(0.0, 2.0)
        assert ends
        run = sl.simulate(model, duration=2.0, step=STEP)
        assert reached <= run.outcome.time < reached + STEP
        assert "ends the simulation" in a.said
    with pytest.raises(UnsupportedError, match="parameters cannot be changed"):
        export(model, tmp_path / "gate.fmu", limits="end", parameters=["leaf.mass"])


# ---- names, files


def test_hostile_names_are_legal_and_distinct(tmp_path):
    b = sl.Builder('ro"bot <&> */ \\ ??/')
    for k, (joint, body) in enumerate([('a"<b>&\'', "x\\n"), ("q.é–ü", "日本"), ("%s%n", "*/"), ("mass", "q")]):
        b.body(body, mass=1.0, center=(0.1, 0.0, 0.0), inertia=(0.01, 0.01, 0.01))
        b.revolute(joint, "world" if not k else last, body, axis="y")
        last = body
    model = b.build()
    path = export(model, tmp_path / "my robot-2.fmu", frames=["日本"], parameters=["q.mass"])
    assert problems(path) == []
    found = fmpy.read_model_description(str(path))
    assert found.modelName == model.name
    assert found.coSimulation.modelIdentifier == "my_robot_2"
    names = [v.name for v in found.modelVariables]
    assert "q.a\"<b>&'" in names
    assert "q.mass#2" in names  # the joint's position, beside the mass of the body q
    assert np.isfinite(moved(path)[0]).all()


def test_the_same_content_gives_the_same_bytes(tmp_path):
    first = export(sl.zoo.four_bar(), tmp_path / "a.fmu", q=sl.zoo.four_bar_start(), name="linkage").read_bytes()
    program = (
        "import spanloop as sl; from spanloop.export.export import export; "
        f"export(sl.zoo.four_bar(), {str(tmp_path / 'b.fmu')!r}, q=sl.zoo.four_bar_start(), name='linkage')"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    assert (tmp_path / "b.fmu").read_bytes() == first
    third = export(sl.zoo.four_bar(), tmp_path / "c.fmu", q=sl.zoo.four_bar_start(), name="linkage", step=2e-3)
    tokens = [fmpy.read_model_description(str(tmp_path / f"{x}.fmu")).guid for x in "ac"]
    assert tokens[0] != tokens[1]
    assert third.read_bytes() != first


def test_without_a_compiler_there_are_sources_that_compile_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(binary, "COMPILERS", ("no-such-compiler",))
    with pytest.warns(SpanloopWarning, match="the unit has sources only"):
        path = export(sl.zoo.pendulum(), tmp_path / "pendulum.fmu", q=[0.5])
    assert not [n for n in zipfile.ZipFile(path).namelist() if n.startswith("binaries")]
    library = f"binaries/{binary.platform_tuple()}/{binary.library_name('pendulum')}"
    with zipfile.ZipFile(path, "a") as unit:
        unit.extractall(tmp_path)
        sources = ElementTree.parse(tmp_path / "sources" / "buildDescription.xml").find(".//SourceFileSet")
        files = [str(tmp_path / "sources" / x.get("name")) for x in sources]
        words = ["cc", *sources.get("compilerOptions").split(), "-fPIC", "-shared", *files, "-o", str(tmp_path / "x.so")]
        subprocess.run([*words, "-lm"], check=True)
        unit.write(tmp_path / "x.so", library)
    run = sl.simulate(sl.zoo.pendulum(), [0.5], duration=0.05, step=STEP)
    assert np.abs(moved(path)[0] - run.q[-1]).max() < 1e-14


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_source_is_clean_under_strict_warnings(tmp_path, compiler):
    import shutil

    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    path = export(sl.zoo.four_bar(), tmp_path / "linkage.fmu", binary=False, parameters=["gravity"])
    zipfile.ZipFile(path).extractall(tmp_path)
    words = "-std=c99 -Wall -Wextra -Wpedantic -Wconversion -Werror -fsyntax-only".split()
    done = subprocess.run([compiler, *words, str(tmp_path / "sources/linkage.c")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "my arm"}, "not a C identifier; try name='my_arm'"),
        ({"frames": ["hnad"]}, "there is no frame or body 'hnad'"),
        ({"parameters": ["gravity.w"]}, "there is no parameter 'gravity.w'"),
        ({"forces": ["nobody"]}, "which is not a body"),
        ({"torques": ["joint9"]}, "joint9"),
        ({"kinds": ["CoSimulate"]}, "kinds has 'CoSimulate'"),
        ({"integrator": "DOP853"}, "chooses its own steps"),
        ({"framse": []}, "takes no option 'framse'"),
        ({"inputs": ["a"]}, "no controller is given"),
        ({"controller": sl.control.callback(lambda t, q, v: v)}, "a callback is Python code"),
        ({"step": -1.0}, "step"),
    ],
)
def test_bad_options_are_refused_and_nothing_is_written(tmp_path, options, words):
    with pytest.raises(InputError, match=words.replace("(", r"\(")):
        export(sl.zoo.puma(), tmp_path / "arm.fmu", **options)
    assert list(tmp_path.iterdir()) == []


def test_functions_are_not_part_of_a_unit(tmp_path):
    with pytest.raises(InputError, match="an FMU has no functions"):
        export(sl.zoo.puma(), ["forward_dynamics"], tmp_path / "arm.fmu")
