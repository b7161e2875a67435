"""Simulated runs with events, as their tables, segments and audits have them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from event_motions import ball_model, carts_model, free_bodies_model

import spanloop as sl


def start_of_bodies(x=1.0):
    model = replace(free_bodies_model(), gravity=(0.0, 0.0, -9.81))
    q, v = model.neutral(), np.zeros(12)
    q[4], q[11] = -x, x
    v[[1, 3, 9]] = 0.3, 2.0, -2.0
    return model, q, v


def test_carts_that_couple_and_part_are_cut_and_well():
    gap = sl.events.Attach("hook", when=lambda t, q, v: q["right_rail"] - q["left_rail"])
    events = [gap, sl.events.Release("hook", at=0.8)]
    run = sl.simulate(carts_model(), [0.0, 1.0], [2.0, 0.0], duration=1.0, step=1e-2, events=events)
    assert [s.closed for s in run.segments] == [(), ("hook",), ()]
    np.testing.assert_allclose(run["hook"].impulse, [[0, 0, 0, 1.5, 0, 0]], atol=1e-12)
    assert run.audit().well
    assert run.audit()["impacts"].sentence.startswith("1 impact takes 1.5 J.")


def test_a_stop_is_a_coupling_of_its_segment_and_carries_the_weight():
    run = sl.simulate(ball_model(), [1.0], duration=0.8, step=1e-2, limits="stop")
    assert [s.closed for s in run.segments] == [(), ("slide::stop",)]
    assert run["slide::stop"].active[-1]
    assert run["slide"].force[-1, 5] == pytest.approx(2.0 * 9.81)
    assert run.audit().well


@pytest.mark.slow
def test_a_body_that_vanishes_takes_energy_and_momentum_along():
    model, q, v = start_of_bodies()
    events, open_loops = [sl.events.Vanish("right", at=0.503)], sl.Closures(active_loops=[])
    run = sl.simulate(model, q, v, duration=0.6, step=1e-2, events=events, closures=open_loops)
    assert run.segments[0].v[-1, 9] == pytest.approx(-2.0)  # before it goes, it moves
    assert run.momentum[-1, 3] == pytest.approx(2.0)
    assert run.audit().well


@pytest.mark.slow
def test_a_body_that_is_not_there_neither_moves_nor_attaches():
    model, q, v = start_of_bodies()
    pose = np.eye(4)
    pose[0, 3] = 0.5
    meets = sl.events.Attach("catch", when=lambda t, q, v: q["right_root"][4] - q["left_root"][4], capture=True)
    appear = sl.events.Appear("right", at=0.5, pose=pose, velocity=[0, 0, 0, -1.0, 0, 0])
    run = sl.simulate(model, q, v, duration=0.8, step=1e-2, events=[appear, meets])
    assert [(e.kind, e.name) for e in run.events] == [("appear", "right"), ("attach", "catch")]
    assert run.events.time[1] == pytest.approx(0.5 + 0.5 / 3.0, abs=1e-9)
    assert not run.segments[0].v[:, 9].any()
    assert run.audit().well


@pytest.mark.slow
def test_forces_and_memory_at_events_are_those_that_acted():
    def drag(t, q, v):
        return {"left": [0.0, 0.0, 0.0, -0.5 * v["left_rail"], 0.0, 0.0]}

    gap = sl.events.Attach("hook", when=lambda t, q, v: q["right_rail"] - q["left_rail"])
    run = sl.simulate(carts_model(), [0.0, 1.0], [2.0, 0.0], duration=1.0, step=1e-2, events=[gap], forces=drag)
    np.testing.assert_allclose(run.forces["left"][:, 3], -0.5 * run["left_rail"].v, atol=1e-12)
    assert run.audit().well


def test_torques_that_are_held_begin_with_the_sample_at_an_event():
    """The hook opens at the start of a step, from which on another torque is held."""
    tau = np.zeros((100, 2))
    tau[:, 0] = np.sin(np.arange(100))
    gap = sl.events.Attach("hook", when=lambda t, q, v: q["right_rail"] - q["left_rail"])
    events = [gap, sl.events.Release("hook", at=0.8)]
    run = sl.simulate(carts_model(), [0.0, 1.0], [2.0, 0.0], duration=1.0, step=1e-2, tau=tau, events=events)
    assert run.segments[2].tau[0, 0] == tau[80, 0]
    assert run.audit()["energy"].value < 1e-10


@pytest.mark.slow
def test_a_stop_has_a_force_and_a_gap():
    run = sl.simulate(ball_model(), [1.0], duration=0.8, step=1e-2, limits="stop")
    stop = run["slide::stop"]
    assert stop.force[-1] == pytest.approx(2.0 * 9.81)
    assert not stop.force[~stop.active].any()
    np.testing.assert_allclose(stop.error[:, 0], run["slide"].q, atol=1e-12)


@pytest.mark.slow
def test_a_body_that_is_not_there_has_no_acceleration():
    model, q, v = start_of_bodies()
    appear = sl.events.Appear("right", at=0.1)
    open_loops = sl.Closures(active_loops=[])
    run = sl.simulate(model, q, v, duration=0.2, step=1e-2, events=[appear], closures=open_loops)
    assert not run.segments[0].v[:, 6:].any()
    assert not run.a[:11, 6:].any()
    assert run.a[-1, 11] == pytest.approx(-9.81)
    assert not run.at([0.055]).v[0, 6:].any()
    assert run.audit().well


@pytest.mark.slow
def test_segments_with_captured_frames_accelerate_as_models_of_their_own():
    """The kernels that they share take the frames as inputs."""
    model, q, v = start_of_bodies()
    q[5] = 0.2
    meets = sl.events.Attach("catch", when=lambda t, q, v: q["right_root"][4] - q["left_root"][4], capture=True)
    push = {"left": [0.0, 0.1, 0.0, 0.0, 0.3, 0.0]}
    run = sl.simulate(model, q, v, duration=0.8, step=1e-2, events=[meets], forces=push)
    closed = run.pieces[1]
    robot = sl.Dynamics(closed.model)
    expected = robot.forward_dynamics(closed.q, closed.v, closed.tau, forces={"left": closed.forces["left"]})
    np.testing.assert_allclose(run.a[-len(closed) :], expected, atol=1e-11)
    np.testing.assert_allclose(run.closure_error[-len(closed) :], robot.closure_error(closed.q), atol=1e-14)
    assert run.audit().well


def bob_on_a_string():
    builder = sl.Builder("string", gravity=(0, 0, -9.81)).body("bob", mass=1.0, inertia=(1e-3,) * 3)
    builder.free("root", "world", "bob").loop("world", "bob", sl.joints.Distance(1.0), name="string", switchable=True)
    model = builder.build()
    q, v = model.neutral(), np.zeros(6)
    q[6], v[3] = -1.0, np.sqrt(3.5 * 9.81)
    return model, q, v, sl.Closures(active_loops=["string"])


@pytest.mark.slow
def test_a_string_neither_pushes_nor_stretches():
    model, q, v, closures = bob_on_a_string()
    events = [sl.events.OneSided("string", sign=-1)]
    run = sl.simulate(model, q, v, duration=1.5, step=2e-3, events=events, closures=closures)
    assert [e.kind for e in run.events] == ["release", "attach"]
    audit = run.audit()
    assert audit.well
    assert audit["pulls"].value < 1e-9
    assert audit["gaps"].value < 1e-9
    assert "impact momentum" not in [f.name for f in audit.findings]  # the string hangs on the world


@pytest.mark.slow
@pytest.mark.parametrize(("cut", "fault"), [(0.7, "pulls"), (0.2, "gaps")])
def test_a_one_sided_closure_that_pulls_or_overlaps_is_a_fault(cut, fault):
    """A rod that is called a string: it pushes where that would be slack; cut while it is taut, it lets the bob go."""
    model, q, v, closures = bob_on_a_string()
    events = [sl.events.Release("string", at=cut)]
    run = sl.simulate(model, q, v, duration=1.0, step=2e-3, events=events, closures=closures)
    called = replace(run, events=replace(run.events, one_sided=(("string", 0, -1),)))
    assert called.audit().faults == (fault,)


@pytest.mark.slow
def test_a_batch_with_events_that_goes_on_with_another_model():
    builder = sl.Builder("three", gravity=(0, 0, -9.81))
    for name in ("left", "right", "third"):
        builder.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1)).prismatic(f"{name}_rail", "world", name, axis="x")
    gap = sl.events.Attach("hook", when=lambda t, q, v: q["right_rail"] - q["left_rail"])
    starts = np.array([[0.0, 1.0], [0.0, 0.8]])
    run = sl.simulate(carts_model(), starts, [2.0, 0.0], duration=0.6, step=1e-2, events=[gap])
    run = run.continued(builder.build(), duration=0.1, step=1e-2)
    assert run["hook"].active.sum(axis=1).tolist() == [11, 21]  # not after 0.6 s
    assert run["third_rail"].q.shape == (2, len(run))
    np.testing.assert_allclose(run.energy[:, 60:62, 0], [[0.5, 0.25]] * 2)  # the right cart weighs less from then on
    assert [len(s) for s in run[1].segments] == [41, 21, 11]
    assert run.audit().well
    with pytest.raises(sl.errors.UnsupportedError, match=r"run\[0\]\.at\(times\)"):
        run.at([0.1])


@pytest.mark.slow
def test_a_frame_captured_in_its_place_is_judged_by_the_length_of_its_loop():
    """The hook captures within 1e-11 m of where it is, which is no length to compare with."""
    gap = sl.events.Attach("hook", when=lambda t, q, v: q["right_rail"] - q["left_rail"], capture=True)
    starts = np.array([[0.0, 1.0], [0.0, 0.7]])
    run = sl.simulate(carts_model(), starts, [2.0, 0.0], duration=0.7, step=1e-2, events=[gap])
    assert run.audit().well
    assert run.audit()["closure"].bound == 1e-9


def test_each_segment_of_a_cut_run_has_its_model(tmp_path):
    events = [sl.events.Release("hook", at=0.01)]
    run = sl.simulate(carts_model(), [0.0, 0.0], duration=0.02, step=1e-2, events=events)
    run.save(tmp_path / "run.npz")
    for found in (run, sl.Trajectory.load(tmp_path / "run.npz")):
        assert [len(sl.Dynamics(s.model).model.loops) for s in found.segments] == [1, 0]
        assert found.segments[0].model == run.model


def table_on_feet(count):
    places = ((0.3, 0.2), (0.3, -0.2), (-0.3, 0.2), (-0.3, -0.2))[:count]
    b = sl.Builder("table").body("top", 8.0, inertia=(0.3, 0.3, 0.5)).free("base", "world", "top")
    for i, (x, y) in enumerate(places):
        b = b.frame(f"f{i}", "top", (x, y, -0.4))
        b = b.loop("world", f"f{i}", sl.joints.PointOnPlane("z"), name=f"c{i}", switchable=True)
    model = b.build()
    q = model.neutral()
    q[6] = 0.4
    return model, q, [sl.events.OneSided(f"c{i}") for i in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize(("count", "v"), [(4, [0.0] * 6), (3, [0.32036119, -1.0725628, 0, 0, 0, -0.26433393])])
def test_feet_that_share_a_load_are_audited(count, v):
    model, q, events = table_on_feet(count)
    run = sl.simulate(model, q, v, duration=0.02, events=events)
    forces = np.array([run[f"c{i}"].force for i in range(count)])
    assert np.isfinite(forces).all()
    assert run.audit().well
    if count == 4:
        np.testing.assert_allclose(forces[:, -1, 5].sum(), 8.0 * 9.81, rtol=1e-9)
