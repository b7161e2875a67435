"""Mechanisms with several assemblies: rows that are redundant in one of them are not dropped in another."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import InputError, Reason, StateError
from spanloop.kernels import KernelSpec
from spanloop.kernels.state_refusals import OTHER_ASSEMBLY

CORNERS = [(np.cos(x), np.sin(x), 0.0) for x in 2.0 * np.pi / 3.0 * np.arange(3)]
TWISTED = np.array([2.0 * np.arcsin(0.25), 0.0, 0.0])  # the plate turned: three rods, three independent rows
TAU = np.array([1.0, 2.0, 3.0])


def rods():
    """A plate in its plane on three parallel rods of 0.5 m; one of them is redundant unless the plate has turned."""
    b = sl.Builder("three rods", gravity=(0.0, -9.81, 0.0))
    b.body("plate", mass=1.0, center=(0.1, 0.2, 0.0), inertia=(0.1, 0.1, 0.2)).planar("plane", "world", "plate", "z")
    for i, p in enumerate(CORNERS):
        b.frame(f"w{i}", "world", p).frame(f"p{i}", "plate", p)
        b.loop(f"w{i}", f"p{i}", sl.joints.Distance(0.5), name=f"rod{i}")
    return b.build()


def cranks():
    """The same with hinged cranks of mass, on three hinges each."""
    b = sl.Builder("three cranks", gravity=(0.0, -9.81, 0.0))
    b.body("plate", mass=1.0, center=(0.1, 0.2, 0.0), inertia=(0.1, 0.1, 0.2))
    for i, p in enumerate(np.array(CORNERS) - CORNERS[0]):
        b.body(f"crank{i}", mass=0.2, center=(0.25, 0.0, 0.0), inertia=(0.001, 0.005, 0.005))
        b.revolute(f"drive{i}", "world", f"crank{i}", "z", position=p)
        b.frame(f"p{i}", "plate", p).frame(f"c{i}", f"crank{i}", (0.5, 0.0, 0.0))
    b.revolute("pin0", "crank0", "plate", "z", position=(0.5, 0.0, 0.0))
    for i in (1, 2):
        b.loop(f"c{i}", f"p{i}", sl.joints.Revolute("z"), name=f"pin{i}")
    return b.build()


@pytest.mark.parametrize("method", ["elimination", "dense", "closed_topology"])
@pytest.mark.parametrize("target", ["cpu", "python"])
def test_a_structure_stays_at_rest_and_a_parallelogram_moves(method, target):
    robot = sl.Dynamics(rods(), method=method, target=target)
    translated = np.array([0.0, 0.3, 0.4])
    moving = robot.forward_dynamics(translated, np.zeros(3), TAU)
    along = np.array([0.0, -0.8, 0.6])  # the only motion, as a unit vector; the plate does not turn
    assert np.allclose(moving, along * (along @ (TAU + [0.0, 0.0, -9.81])), atol=1e-12)
    assert np.abs(robot.forward_dynamics(TWISTED, np.zeros(3), TAU)).max() < 1e-13
    both = robot.forward_dynamics(np.array([TWISTED, translated] * 2), np.zeros(3), TAU)
    assert np.abs(both[::2]).max() < 1e-13
    assert np.allclose(both[1::2], moving, atol=1e-12)


def test_diagnosis_and_solution_of_each_assembly():
    robot = sl.Dynamics(rods())
    twisted, translated = robot.diagnose(TWISTED), robot.diagnose([0.0, 0.3, 0.4])
    assert (twisted.rank, twisted.mobility, twisted.redundant) == (3, 0, ())
    assert (translated.rank, translated.mobility, len(translated.redundant_here)) == (2, 1, 1)
    assert robot.mobility(np.array([TWISTED, [0.0, 0.3, 0.4]])).tolist() == [0, 1]
    found = robot.solve(TWISTED, np.zeros(3), TAU)
    assert found.status == "ok"
    assert found.residual < 1e-12
    assert all(found.unique.values())
    assert not all(robot.solve([0.0, 0.3, 0.4], np.zeros(3), TAU).unique.values())


@pytest.mark.slow
def test_hinged_cranks_that_are_parallel_or_not():
    robot = sl.Dynamics(cranks())
    parallel = robot.assemble([0.4, -0.4, 0.4, 0.4])
    a = robot.forward_dynamics(parallel, np.zeros(4), np.zeros(4))
    assert np.allclose(a, a[0] * np.array([1.0, -1.0, 1.0, 1.0]), atol=1e-9)
    assert abs(a[0]) > 1.0
    c, s = np.cos(TWISTED[0]), np.sin(TWISTED[0])
    steps = [((c - 1.0) * x - s * y, s * x + (c - 1.0) * y) for x, y, _ in CORNERS]  # of the corners as the plate turns
    angles = [np.arctan2(y, x) for x, y in steps]
    turned = np.array([angles[0], TWISTED[0] - angles[0], *angles[1:]])
    assert np.abs(robot.closure_error(turned)).max() < 1e-15
    assert robot.diagnose(turned).mobility == 0
    assert np.abs(robot.forward_dynamics(turned, np.zeros(4), np.ones(4))).max() < 1e-9


def test_a_kernel_refuses_what_the_rows_it_drops_do_not_allow():
    spec = KernelSpec.of(rods(), "forward_dynamics")
    state = (TWISTED, np.zeros(3), TAU)
    assert spec.redundancy.dropped
    assert spec.explain(*state) == OTHER_ASSEMBLY
    other = next(spec.others(*state))
    assert not other.redundancy.dropped
    assert KernelSpec.of(rods(), "forward_dynamics", near=TWISTED).key == other.key


@pytest.mark.slow
def test_nothing_is_dropped_where_no_closed_state_is_known():
    """A loop that nothing can close from neutral: singular positions and contradictions are refused all the same."""
    b = sl.Builder("far", gravity=(0.0, 0.0, 0.0))
    for name in ("one", "two"):
        b.body(name, mass=1.0, center=(0.5, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
    b.revolute("shoulder", "world", "one", "z").revolute("elbow", "one", "two", "z", position=(1.0, 0.0, 0.0))
    b.frame("tip", "two", (1.0, 0.0, 0.0)).frame("pin", "world", (2.0, 0.0, 0.0))
    robot = sl.Dynamics(b.loop("pin", "tip", sl.joints.Spherical(), name="closing").build())
    with pytest.raises(StateError) as caught:  # stretched: it can only just be closed
        robot.forward_dynamics(np.zeros(2), np.zeros(2), np.ones(2))
    assert caught.value.reason is Reason.SINGULAR_CLOSURE


def test_a_loop_turned_by_half_a_turn_is_open():
    b = sl.Builder("turned")
    b.body("arm", mass=1.0, center=(0.5, 0.0, 0.0), inertia=(0.1, 0.1, 0.1)).revolute("joint", "world", "arm", "x")
    robot = sl.Dynamics(b.loop("world", "arm", sl.joints.Revolute("z"), name="closing").build())
    with pytest.raises(StateError, match="turned the wrong way round") as caught:
        robot.forward_dynamics([np.pi], [0.0], [0.0])
    assert caught.value.reason is Reason.OPEN_LOOP


def test_runs_begin_in_the_assembly_of_their_start():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = sl.simulate(rods(), TWISTED, duration=0.05)
    assert np.abs(run.q - TWISTED).max() < 1e-9


def test_independent_dofs_are_those_of_the_states_own_assembly():
    """Functions that choose independent DoF themselves choose them for the assembly at hand."""
    robot = sl.Dynamics(rods())
    translated = np.array([0.0, 0.3, 0.4])
    assert robot.velocity_map(translated).shape == (3, 1)
    assert robot.velocity_map(TWISTED).shape == (3, 0)
    assert robot.mass_matrix(TWISTED, coordinates="independent").shape == (0, 0)


@pytest.mark.parametrize("name", ["velocity_map", "mass_matrix", "operational_inertia"])
def test_open_loops_have_no_independent_motion(name):
    robot, q = sl.Dynamics(sl.zoo.four_bar()), sl.zoo.four_bar_start() + 0.3
    options = {"mass_matrix": {"coordinates": "independent"}, "operational_inertia": {"frames": "coupler"}}
    with pytest.raises(StateError) as caught:
        getattr(robot, name)(q, **options.get(name, {}))
    assert caught.value.reason is Reason.OPEN_LOOP


def test_more_driven_joints_than_the_loops_leave_free():
    """A four-bar with two driven joints is not singular; its prescribed motions contradict each other."""
    model = sl.zoo.four_bar()
    twice = model.drive(*[j.name for j in model.joints[:2]])
    with pytest.raises(StateError, match="prescribe more than the loops leave free: the loops leave 1 DoF"):
        sl.Dynamics(twice).forward_dynamics(sl.zoo.four_bar_start(), np.zeros(3), np.zeros(3))


@pytest.mark.parametrize(
    ("make", "near", "sentence"),
    [
        (
            sl.zoo.five_bar,
            np.zeros(4),
            r"compile: near is not closed: loop .* is open by .* Close it first: robot\.assemble",
        ),
        (sl.zoo.stewart, np.zeros(25), r"near\[0:4\] \(joint 'floating'\) is a quaternion of length 0; expected 1"),
    ],
)
def test_a_kernel_near_an_open_state_is_refused(make, near, sentence):
    with pytest.raises(InputError, match=sentence):
        sl.compile(make(), "forward_dynamics", near=near, target="python")
