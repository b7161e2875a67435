"""Loops where rows are redundant, nearly redundant, or lose their rank: right, or refused, never silently wrong."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from closed_answers import difference
from closed_zoo import mechanism
from dense_closures import ClosedReference
from dense_driven import exact
from random_loops import Case, moving
from sentences import says
from singular_cases import CASES as SINGULAR
from singular_cases import DISTANCES, Singular, folded_four_bar, outcome, worst_allowed

import spanloop as sl
from spanloop import zoo
from spanloop.errors import StateError
from spanloop.math.quaternion import exponential, matrix
from spanloop.topology import mechanism as numbers_of

TILTS = (1e-7, 1e-6, 1e-5)
FACTOR = 30.0  # an acceleration may change by this many times the tilt; 20 is seen where v is large (drifted states)
PLANE = {  # mechanism of the zoo: the hinge that is tilted
    "four_bar": "coupler_hinge",
    "five_bar": "elbow1",
    "slider_crank": "crank_pin",
    "andrews": "delta",
    "n_four_bar 8": "coupler_hinge3",
    "bricard": "joint3",
}


def state(name: str) -> tuple[Case, np.ndarray]:
    """A moving mechanism, and what it does, by dense matrices."""
    case = moving(*mechanism(name), np.random.default_rng(1))
    return case, ClosedReference(case.model, case.q, case.v).forward_dynamics(case.tau)[0]


def turned(rotation, tilt: float, axis) -> tuple:
    """A rotation matrix turned by a small angle about a direction that is square to `axis`."""
    about = np.cross(axis, (0.3, 0.5, 0.8))
    small = np.array(matrix(exponential(tuple((tilt * about / np.linalg.norm(about)).tolist()))))
    return tuple(map(tuple, (small @ np.array(rotation)).tolist()))


def with_tilted_joint(model, name: str, tilt: float):
    def changed(joint):
        if joint.name != name:
            return joint
        axis = turned(np.array(joint.kind.axis)[:, None], tilt, joint.kind.axis)
        return replace(joint, kind=replace(joint.kind, axis=tuple(x for (x,) in axis)))

    return replace(model, joints=tuple(map(changed, model.joints)))


def with_tilted_loop(model, number: int, tilt: float):
    loop = model.loops[number]
    axis = getattr(loop.kind, "axis", (0.0, 0.0, 1.0))
    place = replace(loop.placement_a, rotation=turned(loop.placement_a.rotation, tilt, axis))
    loops = (*model.loops[:number], replace(loop, placement_a=place), *model.loops[number + 1 :])
    return replace(model, loops=loops)


# ---- redundant rows, nearly aligned


@pytest.mark.slow
@pytest.mark.parametrize("tilt", TILTS)
@pytest.mark.parametrize("name", PLANE)
def test_a_tilted_hinge_moves_the_mechanism_as_if_aligned(name, tilt):
    case, expected = state(name)
    joint = PLANE[name] if name != "bricard" else case.model.joints[2].name
    model = with_tilted_joint(case.model, joint, tilt)
    assert model != case.model
    a = sl.compile(model, "forward_dynamics")(case.q, case.v, case.tau)
    assert difference(a, expected) < FACTOR * tilt


@pytest.mark.slow
@pytest.mark.parametrize("tilt", TILTS)
@pytest.mark.parametrize("name", PLANE)
def test_a_tilted_closure_moves_the_mechanism_as_if_aligned(name, tilt):
    case, expected = state(name)
    a = sl.compile(with_tilted_loop(case.model, 0, tilt), "forward_dynamics")(case.q, case.v, case.tau)
    assert difference(a, expected) < FACTOR * tilt


@pytest.mark.parametrize("tilt", TILTS)
@pytest.mark.parametrize("name", PLANE)
def test_a_drifted_state_moves_as_one_nearby(name, tilt):
    case, expected = state(name)
    step = np.random.default_rng(3).uniform(-tilt, tilt, case.model.nv)
    kernel = sl.compile(case.model, "forward_dynamics")
    assert difference(kernel(case.q + step, case.v, case.tau), expected) < FACTOR * tilt
    assert difference(kernel(case.q, case.v + step, case.tau), expected) < FACTOR * tilt


@pytest.mark.slow
@pytest.mark.parametrize("name", ["arms 2", "four_bar", "linkage_leg", "stewart"])
def test_a_closure_said_twice_changes_nothing(name):
    case = moving(*mechanism(name), np.random.default_rng(1))
    twice = replace(case.model, loops=(*case.model.loops, *(replace(x, name=f"{x.name}2") for x in case.model.loops)))
    a = sl.compile(twice, "forward_dynamics")(case.q, case.v, case.tau)
    assert difference(a, exact(case.model, case.q, case.v, case.tau)) < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("tilt", TILTS)
@pytest.mark.parametrize("name", ["arms 2", "four_bar"])
def test_a_closure_said_twice_with_one_of_them_tilted_changes_nothing(name, tilt):
    case = moving(*mechanism(name), np.random.default_rng(1))
    twice = replace(case.model, loops=(*case.model.loops, replace(case.model.loops[0], name="again")))
    twice = with_tilted_loop(twice, len(twice.loops) - 1, tilt)
    a = sl.compile(twice, "forward_dynamics")(case.q, case.v, case.tau)
    assert difference(a, exact(case.model, case.q, case.v, case.tau)) < FACTOR * tilt


@pytest.mark.slow
@pytest.mark.parametrize("drift", TILTS)
@pytest.mark.parametrize("name", ["arms 2", "four_bar"])
def test_a_closure_said_twice_changes_nothing_in_a_drifted_state(name, drift):
    case = moving(*mechanism(name), np.random.default_rng(1))
    twice = replace(case.model, loops=(*case.model.loops, replace(case.model.loops[0], name="again")))
    step = np.random.default_rng(4).uniform(-drift, drift, case.model.nv)
    q = sl.Dynamics(case.model).integrate(case.q, step)
    once = sl.compile(case.model, "forward_dynamics")(q, case.v, case.tau)
    a = sl.compile(twice, "forward_dynamics")(q, case.v, case.tau)
    assert difference(a, once) < FACTOR * drift


@pytest.mark.slow
@pytest.mark.parametrize("name", ["four_bar", "five_bar", "bricard", "andrews", "n_four_bar 8"])
def test_forces_of_redundant_rows_are_the_shortest_and_marked(name):
    case = moving(*mechanism(name), np.random.default_rng(1))
    reference = ClosedReference(case.model, case.q, case.v)
    a, _ = reference.forward_dynamics(case.tau)
    found = sl.Dynamics(case.model).solve(case.q, case.v, case.tau)
    np.testing.assert_allclose(found.a, a, atol=1e-10 * np.abs(a).max())
    J = np.array(reference.closure_jacobian(), dtype=float)
    needed = reference.mass_matrix() @ a + reference.bias() - case.tau
    lengths = np.array(numbers_of(case.model).row_lengths)  # forces are compared with moments at the loop's length
    shortest = np.linalg.pinv((J / lengths[:, None]).T, rcond=1e-9) @ needed
    # the length does not depend on the axes in which a loop's rows are written, as long as they are square
    assert np.linalg.norm(found.rows * lengths) == pytest.approx(np.linalg.norm(shortest), rel=1e-8)
    assert not any(found.unique.values())


# ---- singular configurations


@pytest.mark.slow
@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("case", SINGULAR, ids=lambda c: c.name)
def test_at_singular_positions_the_answer_is_right_or_refused(case: Singular, distance: float):
    what, error = outcome(case.at(distance))
    if what == "answer":
        assert error < worst_allowed(case, distance)
    else:
        assert what == "refused"
        assert not case.keeps_rank  # accelerations are unique there: an answer is due
        assert distance <= 1e-4  # well before, rounding leaves half of the digits


@pytest.mark.slow
@pytest.mark.parametrize("case", SINGULAR, ids=lambda c: c.name)
def test_a_batch_through_a_singular_position_raises_nothing(case: Singular):
    """Rows are right or NaN, those that are NaN are counted in one warning."""
    cases = [case.at(d) for d in DISTANCES]
    robot = sl.Dynamics(cases[0].model)
    same = [c for c in cases if c.model == cases[0].model]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        a = robot.forward_dynamics(*(np.array([getattr(c, k) for c in same]) for k in ("q", "v", "tau")))
    bad = ~np.isfinite(a).all(axis=1)
    assert len([w for w in heard if issubclass(w.category, sl.SpanloopWarning)]) == int(bad.any())
    for c, row, distance in zip(same, a, DISTANCES, strict=False):
        if np.isfinite(row).all():
            assert difference(row, exact(c.model, c.q, c.v, c.tau)) < worst_allowed(case, distance)


def test_at_a_singular_position_the_loops_that_depend_on_each_other_are_named():
    model = zoo.four_bar(ground=2.0, crank=1.0, coupler=2.0, rocker=1.0)
    with says(StateError, f"depend on each other here (in {model.loops[0].name!r}), so that"):
        sl.Dynamics(model).forward_dynamics(np.zeros(3), np.zeros(3), np.zeros(3))


def test_a_singular_position_is_called_by_its_name():
    case = folded_four_bar(0.0)
    with says(StateError, "singular configuration"):
        sl.Dynamics(case.model).forward_dynamics(case.q, case.v, case.tau)


@pytest.mark.parametrize("angle", [1e-7, 1.4e-8, 1e-8, 1e-9, 1e-12])
def test_no_angle_is_too_small_to_count(angle):
    """A cosine is 1 in floats below 1.5e-8 rad; the sine is not 0 there."""
    model = zoo.pendulum(2)
    for target in ("cpu", "python"):
        x, _, _ = sl.compile(model, "pose", frame="tip", target=target)(np.array((angle, 0.0)))[:3, 3]
        assert x == pytest.approx(-2.0 * angle, rel=1e-12, abs=0.0)


@pytest.mark.parametrize("rotation", [None, (np.pi / 2, 0, 0), (0, np.pi / 2, 0), (0.3, 0.2, 0.1)])
def test_a_ball_pin_of_a_plane_body_is_regular_however_the_plane_is_turned(rotation):
    """The row across the plane is redundant in the axes of the body, which a ball lets turn against the world's."""
    rod = sl.Builder("rod").body("rod", 1.0, (0.1, 0.2, 0), (0.01,) * 3)
    rod = rod.planar("base", "world", "rod", rotation=rotation)
    model = rod.frame("foot", "rod", (0, -0.4, 0)).loop("world", "foot", "spherical", name="pin").build()
    robot = sl.Dynamics(model)
    q = robot.assemble(model.neutral())
    run = sl.simulate(model, q, duration=0.05)
    assert run.outcome.finished
    dense = sl.Dynamics(model, method="dense").forward_dynamics(q, np.zeros(3), np.zeros(3))
    np.testing.assert_allclose(run.a[0], dense, atol=1e-9)
