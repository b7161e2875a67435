"""Impacts of rows that close: closed forms, dense linear algebra, energy; and the wrenches that forces of rows add up
to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from random_loops import random_loops

import spanloop as sl
from spanloop import zoo
from spanloop.algorithms.closed.closure_kinematics import loop_wrenches
from spanloop.algorithms.closed.row_masks import row_mask
from spanloop.kernels import KernelSpec
from spanloop.topology import mechanism


def impact(model: sl.Model, q, v, closed=None, restitution=0.0, **options):
    """delta, impulses, u on floats, with the switchable loops `closed`; all of them if None."""
    m = mechanism(model)
    names = frozenset(x.name for x in model.loops) if closed is None else frozenset(closed)
    spec = KernelSpec.of(model, "impact", near=q, coarse=True, **options)
    given = {"q": q, "v": v, "active": row_mask(m, names), "armature": np.zeros(m.nv)}
    given["restitution"] = np.broadcast_to(restitution, len(m.switched_rows))
    answer, demands = spec.compute({n: [float(x) for x in given[n]] for n, _ in spec.signature()[0]})
    assert all(a < b for a, b in demands)
    return np.split(np.array(answer, float), [m.nv, m.nv + m.n_rows])


def rod(length: float, kind: str) -> sl.Model:
    """A slender rod along x that flies freely, and a pin in the world where its left end is."""
    b = sl.Builder("rod").body("rod", 1.5, inertia=np.array([0.1, 1.0, 1.0]) * 1.5 * length**2 / 12)
    b.free("flies", "world", "rod").frame("end", "rod", (-length / 2, 0.0, 0.0))
    return b.build().with_loop("world", "end", kind, name="pin", switchable=True)


@pytest.mark.parametrize("kind", ["revolute", "spherical"])
def test_a_rod_caught_at_one_end_turns_at_3v_2l_and_loses_a_quarter_of_its_energy(kind):
    length, speed = 0.8, 1.7
    model = rod(length, kind)
    q = np.array([1.0, 0.0, 0.0, 0.0, length / 2, 0.0, 0.0])
    v = np.array([0.0, 0.0, 0.0, 0.0, speed, 0.0])
    delta, impulses, u = impact(model, q, v)
    robot = sl.Dynamics(model)
    before, after = (0.5 * x @ robot.mass_matrix(q) @ x for x in (v, v + delta))
    assert (v + delta)[2] == pytest.approx(1.5 * speed / length, rel=1e-13)
    assert 1.0 - after / before == pytest.approx(0.25, abs=1e-13)
    assert -0.5 * impulses @ u == pytest.approx(before - after, rel=1e-13)


def test_a_clutch_brings_two_discs_to_one_rate():
    b = sl.Builder("clutch").body("one", 1.0, inertia=(0.2, 0.2, 0.3)).body("two", 2.0, inertia=(0.3, 0.3, 0.5))
    b.revolute("p", "world", "one", "z").revolute("r", "world", "two", "z")
    model = b.build().with_loop("one", "two", "fixed", name="clutch", switchable=True)
    delta, impulses, u = impact(model, np.array([0.4, 0.4]), np.array([7.0, -2.0]))
    np.testing.assert_allclose(np.array([7.0, -2.0]) + delta, (0.3 * 7 - 0.5 * 2) / 0.8, rtol=1e-13)
    assert -0.5 * impulses @ u == pytest.approx(0.5 * 0.3 * 0.5 / 0.8 * 81, rel=1e-13)


def switched(seed: int, which: slice = slice(1), **options):
    """A random closed mechanism, its loops of this slice switchable, and a velocity that opens these alone."""
    case = random_loops(seed, **options)
    names = [x.name for x in case.model.loops[which]]
    model = replace(case.model, loops=tuple(replace(x, switchable=x.name in names) for x in case.model.loops))
    m, J = mechanism(model), sl.Dynamics(model).closure_jacobian(case.q)
    permanent = J[[r for r in range(m.n_rows) if r not in m.switched_rows]]
    v = np.random.default_rng(seed).normal(size=model.nv)
    return model, case.q, v - np.linalg.pinv(permanent) @ (permanent @ v), m, J


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("restitution", [0.0, 0.6])
def test_an_impact_is_the_one_of_dense_matrices(seed, restitution):
    model, q, v, m, J = switched(seed, n_loops=2 + seed % 2)
    delta, impulses, u = impact(model, q, v, restitution=restitution)
    M = sl.Dynamics(model).mass_matrix(q)
    e = np.array([restitution if r in m.switched_rows else 0.0 for r in range(m.n_rows)])
    scale = np.abs(v).max()
    np.testing.assert_allclose(u, J @ v, atol=1e-12 * scale)
    np.testing.assert_allclose(J @ (v + delta), -e * u, atol=1e-9 * scale)
    dense = -np.linalg.solve(J @ np.linalg.solve(M, J.T), (1 + e) * u)  # the rows are independent
    np.testing.assert_allclose(impulses, dense, rtol=1e-7, atol=1e-8 * np.abs(dense).max())
    np.testing.assert_allclose(M @ delta, J.T @ impulses, atol=1e-8 * np.abs(M @ v).max())
    lost = 0.5 * v @ M @ v - 0.5 * (v + delta) @ M @ (v + delta)
    assert -0.5 * impulses @ (u - e * u) == pytest.approx(lost, rel=1e-7, abs=1e-9 * (v @ M @ v))


def test_rows_that_are_off_take_no_impulse_and_report_their_rate():
    model, q, v, m, J = switched(3, slice(2), n_loops=2)
    first, second = model.loops
    delta, impulses, u = impact(model, q, v, closed=[first.name])
    rows = {c.name: list(c.rows) for c in m.closures}
    np.testing.assert_array_equal(impulses[rows[second.name]], 0.0)
    np.testing.assert_allclose(u, J @ v, atol=1e-12)
    np.testing.assert_allclose((J @ (v + delta))[rows[first.name]], 0.0, atol=1e-9)


def test_gears_stay_engaged_in_an_impact():
    b = sl.Builder("geared").body("one", 1.0, inertia=(0.2, 0.2, 0.3)).body("two", 1.0, inertia=(0.3, 0.3, 0.5))
    b.body("three", 1.0, inertia=(0.3, 0.3, 0.4)).revolute("p", "world", "one", "z").revolute("r", "world", "two", "z")
    b.revolute("s", "world", "three", "z").coupling("gear", "r", "p", -2.0, 0.0)
    model = b.build().with_loop("two", "three", "fixed", name="clutch", switchable=True)
    v = np.array([1.0, -2.0, 5.0])
    delta, impulses, u = impact(model, np.zeros(3), v)
    after = v + delta
    assert after[1] == pytest.approx(-2 * after[0], abs=1e-13)
    assert after[2] == pytest.approx(after[1], abs=1e-13)
    momentum = 0.3 * v[0] - 2 * (0.5 * v[1] + 0.4 * v[2])  # along the motion (1, −2, −2) that is left
    assert after[0] == pytest.approx(momentum / (0.3 + 4 * 0.9), rel=1e-13)
    inertia = np.array([0.3, 0.5, 0.4])
    assert -0.5 * impulses @ u == pytest.approx(0.5 * (inertia @ v**2 - inertia @ after**2), rel=1e-12)


def test_a_compiled_impact_is_that_on_floats():
    model = replace(zoo.four_bar(), loops=tuple(replace(x, switchable=True) for x in zoo.four_bar().loops))
    q, v = zoo.four_bar_start(), np.array([1.0, 0.5, -0.3])
    active = row_mask(mechanism(model), frozenset(x.name for x in model.loops))
    found = sl.compile(model, "impact")(q, v, active, np.full(len(active), 0.5))
    np.testing.assert_allclose(found, np.concatenate(impact(model, q, v, restitution=0.5)), atol=1e-12)


def test_armature_that_is_added_counts():
    model = replace(zoo.four_bar(), loops=tuple(replace(x, switchable=True) for x in zoo.four_bar().loops))
    q, v = zoo.four_bar_start(), np.array([1.0, 0.5, -0.3])
    first = impact(model, q, v)
    again = impact(model, q, v, adds_armature=True)
    for x, y in zip(first, again, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-12)


# ---- forces of rows, and the wrenches that they add up to


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_forces_of_rows_add_up_to_the_wrenches_of_loops(seed):
    case = random_loops(seed, n_loops=2)
    model, m = case.model, mechanism(case.model)
    robot = sl.Dynamics(model)
    spec = KernelSpec.of(model, "forward_dynamics", near=case.q, with_forces=True, coarse=True)
    given = {"q": case.q, "v": case.v, "tau": case.tau}
    answer, _ = spec.compute({n: given[n].tolist() for n, _ in spec.signature()[0]})
    np.testing.assert_allclose(answer[: m.nv], robot.forward_dynamics(case.q, case.v, case.tau), rtol=1e-7, atol=1e-7)
    found = loop_wrenches(m, case.q.tolist(), answer[m.nv :])
    solution = robot.solve(case.q, case.v, case.tau)
    for loop in model.loops:
        turn = robot.pose(case.q, loop.b)[:3, :3] @ np.array(loop.placement_b.rotation)
        world = solution.loop_forces[loop.name]
        own = np.concatenate([turn.T @ world[:3], turn.T @ world[3:]])
        np.testing.assert_allclose(found[loop.name], own, rtol=1e-6, atol=1e-7 * np.abs(own).max())
