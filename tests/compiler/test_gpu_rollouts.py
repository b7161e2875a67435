"""Rollouts for GPUs: the text of one thread a run, compiled for this processor, against the batch rollout."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import llvmlite.binding as llvm
import numpy as np
import pytest
from driver_double import doubled_driver

import spanloop as sl
from spanloop.compiler.lower import Schedule
from spanloop.compiler.lower.adjoint import adjoint
from spanloop.compiler.lower.schedule import Call, array_of
from spanloop.compiler.lower.tangent import tangent
from spanloop.compiler.render import rollout as rendered
from spanloop.compiler.render.gpu.rollout import NAME, OPTIMISED, WAYS, host_rollout, way_of
from spanloop.compiler.render.rollout import distant
from spanloop.compiler.runtime import arrays, machine
from spanloop.compiler.runtime.gpu.rollout import GpuRollout
from spanloop.compiler.runtime.kernel import REAL
from spanloop.compiler.runtime.rollout import KINDS, Rollout, Steps, _Parts
from spanloop.simulation.integrators.integrator import Integrator, schedule
from spanloop.simulation.integrators.step_schedule import StateLayout
from spanloop.simulation.problem import Problem
from spanloop.simulation.simulate import robot_of, with_stiffness

RUNS, STEPS, H = 5, 20, 1e-3
CASES = {
    "tree": lambda: (sl.zoo.puma(), None, "rk4", {}),
    "long tree": lambda: (sl.zoo.chain(101), None, "rk4", {}),  # loops over links, whose records are far
    "free base": lambda: (sl.zoo.quadruped(), None, "rk4", {"contacts": "ignore"}),
    "loop": lambda: (sl.zoo.four_bar(), sl.zoo.four_bar_start(), "rk4", {}),
    "midpoint": lambda: (sl.zoo.four_bar(), sl.zoo.four_bar_start(), "midpoint", {}),
    "implicit": lambda: (sl.zoo.puma(), None, "implicit", {}),
    "platform": lambda: (sl.zoo.stewart(), sl.zoo.stewart_start(), "rk4", {}),
    "stops": lambda: (_door(), np.array([0.049]), "rk4", {"limits": "stop"}),
    "switches": lambda: (_discs(), None, "rk4", {"events": [sl.events.Attach("clutch", at=0.0113, capture=True)]}),
    "contacts": lambda: (_ball(), np.array([1.0, 0, 0, 0, 0, 0, 0.1]), "rk4", {}),
    "impacts": lambda: (_ball(), np.array([1.0, 0, 0, 0, 0, 0, 0.1]), "rk4", {"contacts": "events"}),
    "flexible": lambda: (_beam(), None, "implicit", {}),
    "end": lambda: (sl.zoo.pendulum(), np.array([0.02]), "rk4", {"events": lambda t, q, v: q[0] - 0.019}),
}


def _door() -> sl.Model:
    b = sl.Builder("door").body("door", 1.0, (0.3, 0, 0), (0.01, 0.05, 0.05))
    return b.revolute("hinge", "world", "door", "y", limits=(-0.05, 0.05)).build()


def _discs() -> sl.Model:
    b = sl.Builder("discs").body("one", 1.0, inertia=(0.2, 0.2, 0.3)).body("two", 1.0, inertia=(0.5, 0.5, 0.7))
    b.revolute("first", "world", "one", "z").revolute("second", "world", "two", "z", (0, 0, 0.1))
    return b.loop("one", "two", "fixed", name="clutch", switchable=True).build()


def _ball() -> sl.Model:
    b = sl.Builder("ball").body("ball", 1.0, inertia=(0.004,) * 3, geometry=[sl.contacts.Sphere(0.1)])
    return b.free("flight", "world", "ball").build().with_ground(friction=0.3, restitution=0.5)


def _beam() -> sl.Model:
    beam = sl.flexible.beam(2.0, E=7e10, density=2700.0, section=sl.flexible.tube(0.02, 0.018), modes=1, damping=0.01)
    b = sl.Builder("crane").body("hub", 2.0, inertia=(0.01,) * 3).body("boom", flexible=beam)
    return b.revolute("shoulder", "world", "hub", "y").fixed("clamp", "hub", "boom").build()


def _case(name: str, dtype: str) -> tuple[Problem, Schedule]:
    model, q, integrator, given = CASES[name]()
    problem = Problem.of(robot_of(model), q, None, step=H, **given)
    problem, _ = with_stiffness(problem, Integrator(integrator), H)
    return problem, schedule(problem.system, problem.events, integrator, dtype)


def _has_loops(s: Schedule) -> bool:
    return not all(isinstance(x, Call) for x in s.advance)


def _states(problem: Problem, s: Schedule, dtype: str) -> np.ndarray:
    layout = StateLayout.of(problem.system, problem.events, dtype)
    state = np.repeat(problem.state(layout), RUNS, axis=0).astype(dtype)
    if not problem.system.has_loops:
        state[:, layout.places["v"]] = np.random.default_rng(7).normal(size=(RUNS, layout.sizes["v"])) / 10
    return np.ascontiguousarray(state)


def _by_threads(s: Schedule, dtype: str, parts: _Parts, compiled=machine.object_code, way: str | None = None) -> None:
    code = machine.Code(compiled(host_rollout(s, REAL[dtype], way)), NAME)
    memory = arrays.aligned(distant(s, REAL[dtype], 1)[1])
    function = ctypes.CFUNCTYPE(None, *KINDS[:-1])(code.address(NAME))
    function(*parts.arguments(0, STEPS), arrays.address(memory), RUNS)


def _inlined(text: str) -> bytes:
    """Object code after the passes that a GPU's code goes through."""
    module = llvm.parse_assembly(text)
    target = llvm.Target.from_default_triple().create_target_machine(opt=2, jit=True, codemodel="jitdefault")
    module.data_layout = str(target.target_data)
    builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    return target.emit_object(module)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_one_thread_a_run_takes_the_steps_of_the_batch(name, dtype):
    problem, s = _case(name, dtype)
    state = _states(problem, s, dtype)
    constants = np.ascontiguousarray(np.broadcast_to(problem.constants, problem.constants.shape), dtype)
    controls = np.zeros((1, 1, s.width(s.controls)), dtype)
    found = []
    for by_threads in (False, True):
        own = Rollout(f"test {name}", lambda s=s: s, dtype)
        x, why, counts = state.copy(), np.zeros(RUNS, np.uint8), np.zeros(RUNS, np.int64)
        record = np.zeros((RUNS, STEPS + 1, s.width(s.record)), dtype)
        steps = Steps(0.0, H, 0, STEPS)
        if by_threads:
            _by_threads(s, dtype, _Parts(own, x, constants, controls, why, counts, steps, record, None, None))
        else:
            counts = own._function(machine.lanes(REAL[dtype])) and own.run(x, constants, controls, why, steps, record)
        found.append((x, why, counts, record))
    batch, threads = found
    np.testing.assert_array_equal(threads[1], batch[1])
    np.testing.assert_array_equal(threads[2], batch[2])
    # vectors and single numbers contract multiply-add in different places: rounding, which 20 steps amplify little
    bound = 1e-11 if dtype == "float64" else 2e-3
    np.testing.assert_allclose(threads[0], batch[0], rtol=bound, atol=bound)
    for k, count in enumerate(batch[2]):  # samples after a run's end mean nothing
        np.testing.assert_allclose(threads[3][k, : count + 1], batch[3][k, : count + 1], rtol=bound, atol=bound)


@pytest.mark.parametrize("name", ["tree", "loop", "switches", "implicit"])
def test_no_way_of_rendering_changes_a_number_by_more_than_rounding(name):
    problem, s = _case(name, "float64")
    state, found = _states(problem, s, "float64"), []
    for way in WAYS:
        x, why, counts = state.copy(), np.zeros(RUNS, np.uint8), np.zeros(RUNS, np.int64)
        controls, steps = np.zeros((1, 1, s.width(s.controls))), Steps(0.0, H, 0, STEPS)
        own = Rollout(f"test {name}", lambda: s, "float64")
        parts = _Parts(own, x, np.ascontiguousarray(problem.constants), controls, why, counts, steps, None, None, None)
        _by_threads(s, "float64", parts, _inlined if way in OPTIMISED else machine.object_code, way)
        assert not why.any()
        found.append(x)
    assert (found[0] != state).any()
    for x in found[1:]:
        np.testing.assert_allclose(x, found[0], rtol=1e-12, atol=1e-12)


def test_counts_add_up_from_launch_to_launch():
    problem, s = _case("tree", "float64")
    x, why, counts = _states(problem, s, "float64"), np.zeros(RUNS, np.uint8), np.full(RUNS, 7)
    controls, steps = np.zeros((1, 1, s.width(s.controls))), Steps(0.0, H, 0, STEPS)
    own = Rollout("test", lambda: s, "float64")
    parts = _Parts(own, x, np.ascontiguousarray(problem.constants), controls, why, counts, steps, None, None, None)
    _by_threads(s, "float64", parts)
    np.testing.assert_array_equal(counts, 7 + STEPS)


def test_arrays_that_are_too_large_for_a_thread_are_in_its_part_of_the_memory(monkeypatch):
    problem, s = _case("loop", "float64")
    expected = _states(problem, s, "float64")
    why, controls, steps = np.zeros(RUNS, np.uint8), np.zeros((1, 1, s.width(s.controls))), Steps(0.0, H, 0, STEPS)
    constants = np.ascontiguousarray(problem.constants)
    found = expected.copy()
    Rollout("test loop", lambda: s).run(expected, constants, controls, why, steps)
    monkeypatch.setattr(rendered, "NEAR", 2)
    far, size = distant(s, "double", 1)
    assert far
    local = rendered._plan_functions(s, far)
    for c in s.calls():  # what is far for one call of a plan is not said to be local
        places = zip(local[id(c.plan)].arguments, (*c.reads, *c.writes), strict=True)
        assert not any(array_of(place) in far and x in local[id(c.plan)].local for x, place in places)
    assert any(f.local for f in local.values())
    with doubled_driver(monkeypatch) as double:
        own = GpuRollout("test of far arrays", lambda: s, way="local")
        own.run(found, constants, controls, why, steps)
        assert own.facts["memory"] == size
        assert own.memory(10**6) == own.memory(10**7) == size * 4 * 2048  # threads at once on four multiprocessors
        assert own.blocks(100) * 64 >= 100
        assert double.failed == 0
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_the_rollout_is_ptx_that_assembles(name, dtype, tmp_path):
    _, s = _case(name, dtype)
    text = GpuRollout("test", lambda: s, dtype).ptx
    assert f".entry {NAME}(" in text
    assert way_of(s) != "inlined" or ".local" not in text or s.log is not None or _has_loops(s)
    _assembled(text, tmp_path)


def _assembled(text: str, tmp_path) -> None:
    if shutil.which("ptxas") is None:
        pytest.skip("the assembler of NVIDIA's toolkit is not installed")
    (tmp_path / "x.ptx").write_text(text)
    done = subprocess.run(
        ["ptxas", "-arch=sm_90", tmp_path / "x.ptx", "-o", "/dev/null"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tree", "loop"])
@pytest.mark.parametrize("derived", ["adjoint", "tangent"])
def test_derivatives_of_a_rollout_are_ptx_that_assembles(name, derived, tmp_path):
    _, s = _case(name, "float64")
    of = ("q", "v.closed" if name == "loop" else "v")
    made = adjoint(s, ("q", "v"), of, (), "float64") if derived == "adjoint" else tangent(s, ("q", "v"), of, 3)
    _assembled(GpuRollout("test", lambda: made).ptx, tmp_path)
