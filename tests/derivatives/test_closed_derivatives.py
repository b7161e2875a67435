"""Derivatives of closed mechanisms along closed motions: against differences in extended precision, closed forms,
dense matrices, other choices of coordinates and other methods."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from closed_paths import ClosedPaths, moving
from closed_zoo import mechanism
from extended import central, evaluate
from linkage import linkage
from random_loops import random_loops, random_plane_loop
from singular_cases import folded_four_bar

import spanloop as sl
from spanloop import zoo
from spanloop.errors import InputError, Reason, StateError, UnsupportedError
from spanloop.topology import mechanism as mechanism_of

BOUND = 1e-9  # of the issue: against central differences in extended precision


def geared_arm() -> sl.Model:
    """An arm whose fifth joint follows two thirds of its second, and whose last is held."""
    model = zoo.puma().with_coupling("joint5", "joint2", ratio=2.0 / 3.0, name="gear")
    return model.with_coupling("joint6", offset=0.3, name="brake")


def switchable_five_bar() -> sl.Model:
    """A five-bar whose first drive can be braked."""
    model = zoo.five_bar()
    return model.with_coupling("drive1", offset=float(zoo.five_bar_start()[0]), name="brake", switchable=True)


def differences(robot: sl.Dynamics, paths: ClosedPaths, *last, step: float = 1e-4, options=None):
    """da_dq, da_dv (nv, n) by central differences in extended precision; last: inputs of the kernel after v."""
    plan = robot.kernel("forward_dynamics", **(options or {})).plan
    units = np.eye(len(paths.chosen), dtype=np.longdouble)
    by_q = [central(lambda s, x=x: evaluate(plan, *paths.at(s * x), *last), step) for x in units]
    by_v = [central(lambda s, x=x: evaluate(plan, *paths.at(0.0 * x, s * x), *last), step) for x in units]
    return np.array(by_q).T.astype(float), np.array(by_v).T.astype(float)


def agree(found, expected, bound: float = BOUND) -> None:
    """Equal, relative to the largest entry."""
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=bound * max(1.0, np.abs(expected).max()))


CASES = (
    "four_bar",
    "stewart",
    "five_bar",
    "governor sprung",
    "bricard",
    "delta",
    "arms 2",
    "arms 2 ball",
    "arms 2 cardan",
    "linkage_leg",
    "hexapod",
    "n_four_bar 8",
    "andrews",
)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_derivatives_are_those_of_closed_states_in_extended_precision(case):
    robot, q, v, tau = moving(*mechanism(case))
    found = robot.derivatives(q, v, tau, dofs=robot.independent_coordinates(q))
    by_q, by_v = differences(robot, ClosedPaths(robot, q, v, found.dofs), tau)
    agree(found.da_dq, by_q)
    agree(found.da_dv, by_v)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 5, 6])
def test_random_mechanisms(seed):
    """With a plane loop, with a loop that is there twice, and with joints of any kind; along one random direction."""
    case = random_plane_loop(seed) if seed == 3 else random_loops(seed, n_loops=1, doubled=seed == 5)
    robot, rng = sl.Dynamics(case.model), np.random.default_rng(seed)
    q, v = robot.project(case.q, case.v)
    found = robot.derivatives(q, v, case.tau, dofs=robot.independent_coordinates(q))
    x, y = rng.normal(size=(2, len(found.dofs)))
    paths, plan = ClosedPaths(robot, q, v, found.dofs), robot.kernel("forward_dynamics").plan
    expected = central(lambda s: evaluate(plan, *paths.at(s * x, s * y), case.tau), 1e-5).astype(float)
    agree(found.da_dq @ x + found.da_dv @ y, expected)


@pytest.mark.slow
def test_gears_and_held_joints():
    model = geared_arm()
    robot, q, v, tau = moving(model, sl.Dynamics(model).assemble(np.full(6, 0.3)))
    found = robot.derivatives(q, v, tau)
    assert len(found.dofs) == 4
    by_q, by_v = differences(robot, ClosedPaths(robot, q, v, found.dofs), tau)
    agree(found.da_dq, by_q)
    agree(found.da_dv, by_v)


@pytest.mark.slow
def test_switched_loops():
    robot, q = sl.Dynamics(switchable_five_bar()), zoo.five_bar_start()
    tau = np.array((0.3, -0.5, 0.2, 0.4))
    v = robot.complete_velocity(q, {"drive2": 0.7})
    closed, opened = robot.derivatives(q, v, tau), robot.derivatives(q, v, tau, active_loops=[])
    assert len(closed.dofs) == 1
    mask = robot._loop_inputs(None, None)
    by_q, by_v = differences(robot, ClosedPaths(robot, q, v, closed.dofs), tau, *mask)
    agree(closed.da_dq, by_q)
    agree(closed.da_dv, by_v)
    plain = sl.Dynamics(zoo.five_bar()).derivatives(q, v, tau)
    np.testing.assert_allclose(opened.da, plain.da, rtol=1e-12, atol=1e-12)


def test_driven_loops_hold_what_drives_them():
    model = zoo.five_bar().drive("meeting")
    robot, q, tau = sl.Dynamics(model), zoo.five_bar_start(), np.array((0.3, -0.5, 0.2, 0.4))
    J, given = robot.closure_jacobian(q), list(mechanism_of(model).given_rows)
    v = np.linalg.lstsq(J, 0.6 * np.isin(np.arange(len(J)), given), rcond=1e-9)[0] + 0.7 * robot.velocity_map(q)[:, 0]
    found = robot.derivatives(q, v, tau, loop_accelerations={"meeting": [0.4]})
    assert len(found.dofs) == 1
    paths = ClosedPaths(robot, q, v, found.dofs)
    np.testing.assert_allclose(paths.rates[given].astype(float), 0.6, rtol=1e-12)
    by_q, by_v = differences(robot, paths, tau, [0.4])
    agree(found.da_dq, by_q)
    agree(found.da_dv, by_v)


@pytest.mark.slow
def test_a_mechanism_without_mobility_has_no_columns():
    robot = sl.Dynamics(linkage("d", driven=True))
    q = robot.assemble(np.array([-0.9, 0.8, -1.6]))
    still = robot.project(q, np.array([1.0, 0.3, -0.5]))[1]  # some 1e-15
    found = robot.derivatives(q, still, np.zeros(3), loop_accelerations={"d": [0.7]})
    assert found.da_dq.shape == (3, 0)
    np.testing.assert_allclose(found.da_dtau, 0.0, atol=1e-12)


def test_driven_joints_take_accelerations_for_torques():
    model = zoo.five_bar().drive("drive1")
    robot, q, v, tau = moving(model, zoo.five_bar_start())
    found = robot.derivatives(q, v, tau)
    first = model.v_slice("drive1").start
    np.testing.assert_array_equal(found.da_dq[first], 0.0)
    np.testing.assert_array_equal(found.da_dtau[first], np.eye(4)[first])
    by_q, by_v = differences(robot, ClosedPaths(robot, q, v, found.dofs), tau)
    agree(found.da_dq, by_q)
    agree(found.da_dv, by_v)


def test_external_forces_are_held_in_world_axes():
    robot, q, v, tau = moving(zoo.four_bar(), zoo.four_bar_start())
    six = np.array((0.3, -4.0, 0.2, 5.0, 0.1, -3.0))
    found = robot.derivatives(q, v, tau, forces={"rocker": six})
    paths = ClosedPaths(robot, q, v, found.dofs)
    by_q, _ = differences(robot, paths, tau, six, options={"forces": ("rocker",)})
    agree(found.da_dq, by_q)
    assert np.abs(found.da_dq - robot.derivatives(q, v, tau).da_dq).max() > 0.1


def four_bar_by_hand(angle: float, rate: float, torque: float) -> tuple[float, float, float]:
    """θ'' of the crank of the zoo's four-bar and its derivatives by θ and θ', from its kinetic and potential energy.

    With T(θ, θ') = ½ m(θ) θ'² and V(θ): θ'' = (τ − V' − ½ m' θ'²) / m.
    """
    ground, crank, coupler, rocker = mpmath.mpf(2), mpmath.mpf(1), mpmath.mpf(2.2), mpmath.mpf(1.8)
    radius, gravity = mpmath.mpf(zoo.linkages._RADIUS), mpmath.mpf(9.81)
    spin = {r: 1 * (3 * radius**2 + r**2) / mpmath.mpf(12) for r in (crank, coupler, rocker)}

    def angles(x):
        """Of coupler and rocker to the ground: the elbow is above the line from the crank's end to the rocker's."""
        px, py = ground - crank * mpmath.cos(x), -crank * mpmath.sin(x)
        d = mpmath.hypot(px, py)
        inner = mpmath.acos((coupler**2 + d**2 - rocker**2) / (2 * coupler * d))
        b = mpmath.atan2(py, px) + inner
        tip = (crank * mpmath.cos(x) + coupler * mpmath.cos(b), crank * mpmath.sin(x) + coupler * mpmath.sin(b))
        return b, mpmath.atan2(tip[1], tip[0] - ground)

    def inertia(x):
        db, dr = (mpmath.diff(lambda y, k=k: angles(y)[k], x) for k in (0, 1))
        b, _ = angles(x)
        middle = crank**2 + (coupler / 2 * db) ** 2 + crank * coupler * db * mpmath.cos(b - x)
        return spin[crank] + crank**2 / 4 + middle + spin[coupler] * db**2 + (spin[rocker] + rocker**2 / 4) * dr**2

    def height(x):
        b, r = angles(x)
        return gravity * (
            crank / 2 * mpmath.sin(x) + crank * mpmath.sin(x) + coupler / 2 * mpmath.sin(b) + rocker / 2 * mpmath.sin(r)
        )

    def acceleration(x, w):
        return (torque - mpmath.diff(height, x) - mpmath.diff(inertia, x) * w**2 / 2) / inertia(x)

    with mpmath.workdps(60):
        here = (mpmath.mpf(angle), mpmath.mpf(rate))
        found = (
            acceleration(*here),
            mpmath.diff(acceleration, here, (1, 0)),
            mpmath.diff(acceleration, here, (0, 1)),
        )
        return tuple(map(float, found))


@pytest.mark.slow
def test_a_four_bar_by_hand():
    robot, angle = sl.Dynamics(zoo.four_bar()), np.pi / 3
    q = zoo.four_bar_start(angle=angle)
    v, tau = robot.complete_velocity(q, {"crank_hinge": 1.3}), np.array((4.0, 0.0, 0.0))
    a, by_q, by_v = four_bar_by_hand(q[0], 1.3, 4.0)
    found = robot.derivatives(q, v, tau, dofs="crank_hinge").independent
    assert robot.forward_dynamics(q, v, tau)[0] == pytest.approx(a, rel=1e-12)
    assert found.da_dq[0, 0] == pytest.approx(by_q, rel=1e-11)
    assert found.da_dv[0, 0] == pytest.approx(by_v, rel=1e-11)


@pytest.mark.parametrize("case", ["four_bar", "five_bar ball", pytest.param("delta", marks=pytest.mark.slow)])
def test_dense_matrices_differentiated_line_by_line(case):
    """M a + h = τ + Jᵀλ and J a + γ = 0, each differentiated along the directions, solved as one dense system."""
    robot, q, v, tau = moving(*mechanism(case))
    found = robot.derivatives(q, v, tau)
    M, h, J, g = robot.mass_matrix(q), robot.bias(q, v), robot.closure_jacobian(q), robot.closure_bias(q, v)
    K = np.block([[M, -J.T], [J, np.zeros((len(J), len(J)))]])
    solve = np.linalg.pinv(K, rcond=1e-11)
    nv = len(v)
    a, force = np.split(solve @ np.concatenate([tau - h, -g]), [nv])
    zero = np.zeros(nv)
    cases = [(dq, dv) for dq, dv in zip(found.dq.T, found.dv.T, strict=True)] + [(zero, dv) for dv in found.dq.T]
    for k, (dq, dv) in enumerate(cases):
        needed = robot.jvp("tree_inverse_dynamics", {"q": q, "v": v, "a": a}, {"q": dq, "v": dv})
        dJ = robot.jvp("closure_jacobian", {"q": q}, {"q": dq})
        dg = robot.jvp("closure_bias", {"q": q, "v": v}, {"q": dq, "v": dv})
        da = (solve @ np.concatenate([dJ.T @ force - needed, -dJ @ a - dg]))[:nv]
        agree(found.da[:, k], da, 1e-10)
    agree(found.da_dtau, solve[:nv, :nv], 1e-10)


CHOICES = {
    "five_bar": ((0, 2), (1, 2)),
    "arms 2": (None, ("floating",)),  # hinges of the arms, and the object's position with its quaternion
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CHOICES)
def test_the_choice_of_coordinates_does_not_matter(case):
    """The directions of one choice, positions and rates, are combinations of those of another."""
    robot, q, v, tau = moving(*mechanism(case))
    one, two = (robot.derivatives(q, v, tau, dofs=x) for x in CHOICES[case])
    places = list(two.dofs.dofs)
    S, dS = one.dq[places], one.dv[places]  # how the second positions and rates change with the first positions
    agree(one.da_dq, two.da_dq @ S + two.da_dv @ dS, 1e-11)
    agree(one.da_dv, two.da_dv @ S, 1e-11)
    agree(one.da_dtau, two.da_dtau, 1e-11)


def test_the_poles_at_an_equilibrium_do_not_depend_on_coordinates():
    robot, q = sl.Dynamics(zoo.five_bar()), zoo.five_bar_start()
    still, tau = np.zeros(4), robot.static_torques(q)
    poles = []
    for dofs in CHOICES["five_bar"]:
        found = robot.derivatives(q, still, tau, dofs=dofs).independent
        A = np.block([[np.zeros((2, 2)), np.eye(2)], [found.da_dq, found.da_dv]])
        poles.append(np.sort_complex(np.linalg.eigvals(A)))
    agree(poles[0], poles[1], BOUND)


@pytest.mark.parametrize("method", ["elimination", "dense", "closed_topology", "simple_closed_chain"])
def test_methods_agree_along_closed_motions(method):
    _, q, v, tau = moving(zoo.four_bar(), zoo.four_bar_start())
    first, other = (sl.Dynamics(zoo.four_bar(), method=x) for x in (None, method))
    agree(other.derivatives(q, v, tau).da, first.derivatives(q, v, tau).da, 1e-11)


@pytest.mark.slow
def test_raw_derivatives_combined_along_closed_motions_are_the_independent_ones():
    robot, q, v, tau = moving(zoo.stewart(), zoo.stewart_start())
    raw, found = robot.derivatives(q, v, tau, coordinates="tree"), robot.derivatives(q, v, tau)
    agree(raw.da_dq @ found.dq + raw.da_dv @ found.dv, found.da_dq, 1e-11)
    agree(raw.da_dv @ found.dq, found.da_dv, 1e-11)
    agree(raw.da_dtau, found.da_dtau, 1e-11)


def test_off_the_loops_derivatives_depend_on_the_method():
    """A reason for "independent": what a method computes where a loop is open is its own affair."""
    _, q, v, tau = moving(zoo.four_bar(), zoo.four_bar_start())
    methods = (sl.Dynamics(zoo.four_bar(), method=x) for x in ("elimination", "dense"))
    one, two = (x.derivatives(q, v, tau, coordinates="tree").da_dq for x in methods)
    assert np.abs(one - two).max() > 0.1 * np.abs(one).max()


@pytest.mark.slow
def test_singular_positions_are_refused_with_a_sentence():
    good, flat = folded_four_bar(0.5), folded_four_bar(0.0)
    robot = sl.Dynamics(good.model)
    for coordinates in ("independent", "tree"):
        with pytest.raises(StateError, match="singular configuration") as caught:
            robot.derivatives(flat.q, flat.v, flat.tau, coordinates=coordinates)
        assert caught.value.reason is Reason.SINGULAR_CLOSURE
        assert str(caught.value).startswith("derivatives: ")
        with pytest.warns(sl.SpanloopWarning, match="derivatives: 1 of 3 states has no answer") as seen:
            found = robot.derivatives(np.stack([good.q, flat.q, good.q]), good.v, good.tau, coordinates=coordinates)
        assert len(seen) == 1
        assert np.isnan(found.da[1]).all()
        np.testing.assert_array_equal(found.da[0], found.da[2])
        np.testing.assert_allclose(
            found.da[0], robot.derivatives(good.q, good.v, good.tau, coordinates=coordinates).da, rtol=1e-12
        )


@pytest.mark.parametrize("coordinates", ["independent", "tree"])
def test_near_a_singular_position_derivatives_are_right_to_1e_4_or_refused(coordinates):
    """Of the accelerations, 11 rad/s². The folded parallelogram moves as one, with da_dq = 11.763 δ to δ³."""
    robot = sl.Dynamics(folded_four_bar(0.5).model)
    for distance in (1e-2, 1e-3, 1e-4):
        case = folded_four_bar(distance)
        found = robot.derivatives(case.q, case.v, case.tau, coordinates=coordinates)
        along = found.da_dq if coordinates == "independent" else found.da_dq @ np.array((1.0, -1.0, 1.0))[:, None]
        np.testing.assert_allclose(along[:, 0], 11.763 * distance * np.array((1.0, -1.0, 1.0)), atol=1e-3)
    for distance in (1e-5, 1e-6, 1e-7):
        case = folded_four_bar(distance)
        with pytest.raises(StateError, match="too near") as caught:
            robot.derivatives(case.q, case.v, case.tau, coordinates=coordinates)
        assert caught.value.reason is Reason.SINGULAR_CLOSURE


def test_the_least_solution_of_a_singular_position_has_no_derivative():
    flat = folded_four_bar(0.0)
    robot = sl.Dynamics(flat.model, on_singular="minimum_norm")
    for coordinates in ("independent", "tree"):
        with pytest.raises(StateError, match="no unique tangent"):
            robot.derivatives(flat.q, flat.v, flat.tau, coordinates=coordinates)


@pytest.mark.slow
def test_chains_on_threads_are_differentiated_on_one():
    robot, q, v, tau = moving(zoo.five_bar(), zoo.five_bar_start())
    threaded = sl.Dynamics(zoo.five_bar(), chain_threads=2)
    np.testing.assert_allclose(
        threaded.derivatives(q, v, tau).da, robot.derivatives(q, v, tau).da, rtol=1e-12, atol=1e-11
    )
    raw = threaded.derivatives(q, v, tau, coordinates="tree")
    assert raw.da.shape == (4, 12)


def test_one_singular_state_has_no_derivative_of_any_kind_and_counts_as_one():
    """robot.derivative of a closed mechanism is a batch of directions, of which the caller knows nothing."""
    good, flat = folded_four_bar(0.5), folded_four_bar(0.0)
    robot = sl.Dynamics(good.model)
    with pytest.raises(StateError) as caught:
        robot.derivative("forward_dynamics", {"q": flat.q, "v": flat.v, "tau": flat.tau})
    assert caught.value.reason is Reason.SINGULAR_CLOSURE
    inputs = {"q": np.stack([good.q, flat.q]), "v": good.v, "tau": good.tau}
    with pytest.warns(sl.SpanloopWarning, match="1 of 2 states has no answer"):
        found = robot.derivative("forward_dynamics", inputs)
    raw = robot.derivatives(good.q, good.v, good.tau, coordinates="tree")
    np.testing.assert_allclose(found["q"][0], raw.da_dq, rtol=1e-12, atol=1e-12)
    assert np.isnan(found["tau"][1]).all()


def test_batches_have_axes_of_their_own_and_out_is_written():
    robot, q, v, tau = moving(zoo.five_bar(), zoo.five_bar_start())
    one = robot.derivatives(q, v, tau)
    loads = np.stack([tau, 2.0 * tau, 0.0 * tau])
    out = np.empty((2, 3, 4, 2 * 2 + 4))
    many = robot.derivatives(np.stack([q, q])[:, None], v, loads, out=out)
    assert np.shares_memory(many.da_dq, out)
    assert many.da_dv.shape == (2, 3, 4, 2)
    assert many.independent.da_dtau.shape == (2, 3, 2, 4)
    np.testing.assert_allclose(many.da[1, 0], one.da, rtol=1e-12, atol=1e-12)
    with pytest.raises(InputError, match="out has shape"):
        robot.derivatives(q, v, tau, out=np.empty((4, 12)))


@pytest.mark.slow
def test_many_states_are_computed_in_parts(monkeypatch):
    from spanloop.derivatives import batched_directions

    robot, q, v, tau = moving(zoo.five_bar(), zoo.five_bar_start())
    taus = np.linspace(0.0, 1.0, 7)[:, None] * tau
    whole = robot.derivatives(q, v, taus)
    monkeypatch.setattr(batched_directions, "_ROWS", 20)
    np.testing.assert_array_equal(robot.derivatives(q, v, taus).da, whole.da)


@pytest.mark.slow
def test_single_precision():
    robot, q, v, tau = moving(zoo.five_bar(), zoo.five_bar_start())
    single = sl.Dynamics(zoo.five_bar(), dtype="float32")
    expected = robot.derivatives(q, v, tau).da
    agree(single.derivatives(q, v, tau).da, expected, 1e-4)


def test_what_does_not_fit_is_refused():
    robot, q, v, tau = moving(zoo.four_bar(), zoo.four_bar_start())
    with pytest.raises(InputError, match="coordinates is 'minimal'"):
        robot.derivatives(q, v, tau, coordinates="minimal")
    with pytest.raises(InputError, match="dofs are for coordinates='independent'"):
        robot.derivatives(q, v, tau, coordinates="tree", dofs="crank_hinge")
    with pytest.raises(InputError, match="2 independent DoF are named"):
        robot.derivatives(q, v, tau, dofs=("crank_hinge", "rocker_hinge"))
    with pytest.raises(StateError) as caught:
        robot.derivatives(q, v + 0.1, tau)
    assert caught.value.reason is Reason.OPENING_VELOCITY
    model, start = mechanism("arms 2 general")
    still = np.zeros(model.nv)
    with pytest.raises(UnsupportedError, match="positions move in more ways than rates"):
        sl.Dynamics(model).derivatives(start, still, still)


@pytest.mark.slow
def test_a_tree_has_all_its_dofs_as_independent_coordinates():
    robot = sl.Dynamics(zoo.puma())
    q, v = robot.model.random_state(seed=1)
    found = robot.derivatives(q, v, np.ones(6), coordinates="independent")
    np.testing.assert_allclose(found.da, robot.derivatives(q, v, np.ones(6)).da, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(found.dq, np.eye(6))


@pytest.mark.parametrize("dofs", [["drive1", "drive1"], ["drive1", 0]])
def test_an_independent_dof_that_is_named_twice_is_refused(dofs):
    robot, q = sl.Dynamics(zoo.five_bar()), zoo.five_bar_start()
    for call in (robot.velocity_map, robot.linearize, robot.modes):
        with pytest.raises(InputError, match="more than once"):
            call(q, dofs=dofs)


@pytest.mark.parametrize("method", ["elimination", "dense", "simple_closed_chain"])
def test_by_a_length_in_a_loop_the_derivative_of_closed_states_has_those_along_the_closing_motion(method):
    """The length alone opens the loop: that derivative differs by method, the sum does not."""
    model, name, step = sl.zoo.four_bar(), "coupler_hinge.position.x", 1e-5
    robot, q, p = sl.Dynamics(model, method=method), sl.zoo.four_bar_start(), model.parameters()
    v, tau = robot.complete_velocity(q, {"crank_hinge": 1.3}), np.array([0.5, -0.2, 0.1])

    def closed(length):
        other = sl.Dynamics(model.with_parameters({name: length}))
        at = other.assemble(q, fixed=["crank_hinge"])
        rates = other.complete_velocity(at, {"crank_hinge": 1.3})
        return at, rates, other.forward_dynamics(at, rates, tau)

    length = p.values[p.index(name)]
    pairs = zip(closed(length + step), closed(length - step), strict=True)
    dq, dv, da = ((a - b) / (2 * step) for a, b in pairs)
    by = robot.derivative("forward_dynamics", {"q": q, "v": v, "tau": tau}, wrt=("q", "v", "parameters"))
    alone = by["parameters"][:, p.index(name)]
    assert np.allclose(alone + by["q"] @ dq + by["v"] @ dv, da, rtol=1e-6)  # differences leave some 1e-9
    assert not np.allclose(alone, da, rtol=0.05)
