"""Couplings that are switched, and couplings without a source, which hold a joint."""

from __future__ import annotations

import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop.errors import InputError, ModelError
from spanloop.model.files.toml import reader, writer
from spanloop.topology.captured_frames import captured_placement, with_captured_placements
from spanloop.topology.mechanism import mechanism

ROUNDING = 1e-12


def discs(*, inertias=(2.0, 3.0), **coupling) -> sl.Model:
    """Two discs on one axis, with a coupling `clutch` between them."""
    b = sl.Builder("discs")
    for k, inertia in enumerate(inertias, 1):
        b.body(f"disc{k}", mass=1.0, inertia=(inertia, inertia, inertia)).revolute(f"axle{k}", "world", f"disc{k}", "z")
    return b.coupling("clutch", "axle2", "axle1", **coupling).build()


def free_arm() -> sl.Model:
    """A free body with an arm of three hinges."""
    b = sl.Builder("free_arm").body("base", mass=2.0, inertia=(0.1, 0.2, 0.3), center=(0.1, 0.0, 0.2))
    b.free("floating", "world", "base")
    for k, axis in enumerate("xyz", 1):
        b.body(f"link{k}", mass=1.0, center=(0.2, 0.1, 0.0), inertia=(0.02, 0.03, 0.04))
        b.revolute(f"joint{k}", f"link{k - 1}" if k > 1 else "base", f"link{k}", axis, (0.3, 0.0, 0.1))
    return b.build()


CASES = {
    "tree": (sl.zoo.puma, None, "joint2"),
    "first": (sl.zoo.puma, None, "joint1"),
    "last": (sl.zoo.puma, None, "joint6"),
    "free": (free_arm, None, "joint2"),
    "loop": (sl.zoo.five_bar, sl.zoo.five_bar_start, "drive1"),
    "platform": (sl.zoo.stewart, sl.zoo.stewart_start, "slide1"),
    "legs": (sl.zoo.hexapod, sl.zoo.hexapod_start, "hip2"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_held_joint_moves_like_a_locked_one(case):
    make, start, joint = CASES[case]
    model = make()
    q = model.random_state(1)[0] if start is None else start()
    s, v_s = model.q_slice(joint), model.v_slice(joint)
    at = float(q[s][0])
    held = sl.Dynamics(model.with_coupling(joint, offset=at, name="brake"))
    rng = np.random.default_rng(2)
    q, v = held.project(q, rng.normal(size=model.nv))
    tau = rng.normal(size=model.nv)
    left_q, left = np.delete(np.arange(model.nq), s), np.delete(np.arange(model.nv), v_s)
    locked = sl.Dynamics(model.lock(at={joint: at}))
    expected = locked.forward_dynamics(q[left_q], v[left], tau[left])
    a = held.forward_dynamics(q, v, tau)
    size = np.abs(expected).max()
    np.testing.assert_allclose(a[left], expected, rtol=0, atol=ROUNDING * size)
    assert np.abs(a[v_s]) < ROUNDING * size
    dense = sl.Dynamics(held.model, method="dense").forward_dynamics(q, v, tau)
    np.testing.assert_allclose(dense, a, rtol=0, atol=10 * ROUNDING * size)
    switched = sl.Dynamics(model.with_coupling(joint, offset=at, name="brake", switchable=True))
    on, off = (switched.forward_dynamics(q, v, tau, active_loops=x) for x in (["brake"], []))
    np.testing.assert_allclose(on, a, rtol=0, atol=ROUNDING * size)
    np.testing.assert_allclose(off, sl.Dynamics(model).forward_dynamics(q, v, tau), rtol=1e-11)
    answers = [switched.solve(q, v, tau, active_loops=x) for x in (["brake"], [])]
    np.testing.assert_allclose(answers[0].rows[-1], held.solve(q, v, tau).rows[-1], rtol=1e-9)
    assert answers[1].rows[-1] == 0.0


@pytest.mark.slow
def test_a_clutch_is_closed_while_it_is_named():
    robot = sl.Dynamics(discs(switchable=True))
    q, v, tau = np.zeros(2), np.array([1.0, 1.0]), np.array([5.0, 0.0])
    np.testing.assert_allclose(robot.forward_dynamics(q, v, tau), [1.0, 1.0], rtol=1e-14)
    np.testing.assert_allclose(robot.forward_dynamics(q, v, tau, active_loops=["clutch"]), [1.0, 1.0], rtol=1e-14)
    np.testing.assert_allclose(robot.forward_dynamics(q, v, tau, active_loops=[]), [2.5, 0.0], rtol=1e-14)
    closed, opened = (
        sl.simulate(robot.model, q, v, duration=0.5, tau=tau, closures=sl.Closures(active_loops=names))
        for names in (["clutch"], [])
    )
    np.testing.assert_allclose(closed.v[-1], [1.5, 1.5], rtol=1e-12)
    np.testing.assert_allclose(opened.v[-1], [2.25, 1.0], rtol=1e-12)
    assert not opened.model.couplings
    assert robot.inverse_dynamics(q, v, [1.0, 1.0], active_loops=["clutch"]).sum() == pytest.approx(5.0)
    with says(InputError, "names 'cluch', which is not a switchable loop or coupling"):
        robot.forward_dynamics(q, v, tau, active_loops=["cluch"])


@pytest.mark.slow
def test_stops_that_exclude_each_other_leave_the_loops_alone():
    q, tau = sl.zoo.five_bar_start(), np.array([1.0, 0.0, 0.0, 0.0])
    model = sl.zoo.five_bar()
    for name, offset in (("stop1", 0.0), ("stop2", 0.5)):
        model = model.with_coupling("drive1", offset=q[0] + offset, switchable=True, name=name)
    robot, still = sl.Dynamics(model), np.zeros(4)
    plain = sl.Dynamics(sl.zoo.five_bar()).forward_dynamics(q, still, tau)
    np.testing.assert_allclose(robot.forward_dynamics(q, still, tau, active_loops=[]), plain, rtol=1e-12)
    assert abs(robot.forward_dynamics(q, still, tau, active_loops=["stop1"])[0]) < 1e-12


def test_rows_of_switches_are_those_of_loops_then_of_couplings():
    model = sl.zoo.hexapod(switchable=True)
    model = model.with_coupling("hip1", "hip2", switchable=True, name="shaft").with_coupling("hip3", "hip4")
    model = model.with_coupling("hip5", offset=0.1, switchable=True, name="brake")
    m = mechanism(model)
    assert tuple(m.switches) == model.switches == (*(x.name for x in model.loops), "shaft", "brake")
    assert m.switched_rows == (*range(18), 18, 20)
    assert (m.switches["standing2"], m.switches["brake"]) == ((3, 4, 5), (20,))


def test_switches_and_held_joints_survive_files_and_edits():
    model = sl.zoo.chain(3).with_coupling("joint2", "joint1", 2.0, 0.5, switchable=True, name="clutch")
    model = model.with_coupling("joint3", offset=0.25, name="brake")
    assert reader.loads(writer.dumps(model)).couplings == model.couplings
    twin = sl.zoo.pendulum(1).attach(model, "tip", prefix="left_")
    assert [c.joints for c in twin.couplings] == [("left_joint2", "left_joint1"), ("left_joint3",)]
    assert [c.offset for c in model.rezero([0.1, 0.2, 0.3]).couplings] == pytest.approx([0.5 + 0.2 - 0.2, -0.05])
    assert model.mirror("y").couplings == model.scale(length=2.0).couplings == model.couplings
    assert [c.name for c in model.lock("joint2").couplings] == ["brake"]  # its clutch may be open: joint1 moves
    assert model.lock("joint2").nv == 2
    assert [c.name for c in model.lock(at={"joint3": 0.25}).couplings] == ["clutch"]
    assert not model.remove("brake", "clutch").couplings
    assert "clutch: joint2 = 2 joint1 + 0.5 (switchable)" in str(model)
    assert "brake: joint3 = 0.25 (held)" in str(model)
    assert sl.zoo.chain(3).with_coupling("joint3", name="brake") != model
    with says(ModelError, "'joint3' is locked at 0.3; expected 0.25, where the coupling holds it"):
        model.lock(at={"joint3": 0.3})


def test_a_captured_coupling_holds_what_it_finds():
    model = sl.zoo.chain(3).with_coupling("joint2", "joint1", 2.0, switchable=True, name="clutch")
    model = model.with_coupling("joint1", offset=0.25, switchable=True, name="brake")
    names, q = ("clutch", "brake"), [0.3, 0.4, 0.5]
    found = [captured_placement(mechanism(model), q, name) for name in names]
    np.testing.assert_allclose(found, [[0.4 - 0.6], [0.3]])
    held = with_captured_placements(model, names, np.ravel(found))
    np.testing.assert_allclose(sl.Dynamics(held).closure_error(q), 0.0, atol=1e-16)


def test_couplings_that_cannot_be_are_refused():
    chain = sl.zoo.chain(3)
    with says(ModelError, "the ratio is 2 and there is no source"):
        chain.with_coupling("joint1", ratio=2.0)
    with says(ModelError, "joint 'joint1' is driven: its motion is given, and nothing can hold"):
        chain.drive("joint1").with_coupling("joint1", offset=0.1)
    with says(InputError, "joint 'joint1' is held already (coupling 'one')"):
        chain.with_coupling("joint1", name="one").with_coupling("joint1", name="two")
    grip = chain.with_loop("world", chain.bodies[-1].name, "spherical", name="grip", switchable=True)
    with says(ModelError, "2 switchable loops or couplings are called 'grip'"):
        grip.with_coupling("joint1", switchable=True, name="grip")
    several = chain.with_coupling("joint1", offset=-1.0, switchable=True, name="lower")
    assert len(several.with_coupling("joint1", offset=1.0, switchable=True, name="upper").couplings) == 2


@pytest.mark.parametrize("suffix", ["urdf", "sdf"])
def test_a_held_joint_is_lost_where_a_format_has_no_word_for_it(suffix, tmp_path):
    model = sl.zoo.chain(2).with_coupling("joint1", name="brake")
    with says(sl.errors.SpanloopError, "couplings that hold a joint: 'brake'"):
        model.save(tmp_path / f"chain.{suffix}")


def test_mjcf_holds_a_joint(tmp_path):
    pytest.importorskip("mujoco")
    model = sl.zoo.chain(2).with_coupling("joint1", offset=0.3, name="brake")
    model.save(tmp_path / "chain.xml")
    (found,) = sl.load(tmp_path / "chain.xml").couplings
    assert (found.joints, found.offset) == (("joint1",), 0.3)
