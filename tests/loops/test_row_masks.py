"""Which rows of switchable loops are redundant depends on the set that is closed, and on the assembly: every set
against the rank of dense Jacobians."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from random_loops import random_loops

import spanloop as sl
from spanloop.errors import InputError, UnsupportedError
from spanloop.kernels import row_masks as kept_masks
from spanloop.kernels.row_masks import combinations, row_masks, undetermined_rows
from spanloop.kernels.spec import redundancy_of
from spanloop.topology import mechanism
from spanloop.topology.captured_frames import captured_at, captured_placement, with_captured_placements

RANK = 1e-7


def switchable(model: sl.Model, *names: str) -> sl.Model:
    return replace(model, loops=tuple(replace(x, switchable=x.name in names) for x in model.loops))


def fingers(arms: int = 2, links: int = 3) -> sl.Model:
    """Arms in a plane that hold a plate, which a five-bar moves, rigidly: three rows of each grasp have no effect in
    the plane, and what the plate's two degrees of freedom leave is shared by the grasps."""
    b = sl.Builder("fingers", gravity=(0.0, -9.81, 0.0))
    for name in ("left", "right", "upper", "plate"):
        b.body(name, 1.0, inertia=(0.1, 0.1, 0.1))
    b.revolute("p", "world", "left", "z").revolute("r", "world", "right", "z", (1.2, 0.0, 0.0))
    b.revolute("s", "left", "plate", "z", (1.0, 0.0, 0.0)).revolute("t", "right", "upper", "z", (1.0, 0.0, 0.0))
    b.frame("tip", "upper", (0.9, 0.0, 0.0)).frame("corner", "plate", (0.9, 0.0, 0.0))
    b.loop("tip", "corner", sl.joints.Revolute("z"), name="pin")
    for i in range(arms):
        parent, position = "world", (0.4 + 0.5 * i, 2.5, 0.0)
        for k in range(links):
            b.body(f"f{i}{k}", 0.5, inertia=(0.05, 0.05, 0.05))
            b.revolute(f"j{i}{k}", parent, f"f{i}{k}", "z", position)
            parent, position = f"f{i}{k}", (0.9, 0.0, 0.0)
        b.frame(f"end{i}", parent, position).frame(f"hold{i}", "plate", (0.2 + 0.3 * i, 0.1, 0.0))
    model = b.build()
    for i in range(arms):
        model = model.with_loop(f"end{i}", f"hold{i}", "fixed", name=f"grip{i}", switchable=True)
    return model


def start(model: sl.Model) -> np.ndarray:
    """The five-bar closed, the fingers above it."""
    robot = sl.Dynamics(model)._with_active_loops([])
    return robot.assemble({"p": 1.9, "r": 1.2, "s": -1.2, "t": 1.3} | {j.name: -0.7 for j in model.joints[4:]})


def assert_independent(J: np.ndarray, permanent: list[int], rows: list[int], mask: dict[int, float]):
    """The switched rows that the mask keeps have the rank of all, beside the permanent ones."""
    kept = [r for r in rows if mask[r] > 0]
    base, part, whole = (
        np.linalg.matrix_rank(J[x], tol=RANK) if x else 0 for x in (permanent, permanent + kept, permanent + rows)
    )
    assert part == base + len(kept)
    assert part == whole


def check_sets(model: sl.Model, near: np.ndarray, names: list[str], closed_at, captures=()):
    """Every set; closed_at(set, k) is a random state q and the Jacobian there."""
    m, table = mechanism(model), row_masks(model, names, near=near, captures=captures)
    permanent = sorted(set(range(m.n_rows)) - set(m.switched_rows))
    assert table.shape == (2 ** len(names), len(m.switched_rows))
    for closed, values in zip(combinations(names), table, strict=True):
        mask = dict(zip(m.switched_rows, values, strict=True))
        rows = [r for name in closed for r in m.switches[name]]
        assert {r for r, x in mask.items() if x} == set(rows)
        for k in range(2):
            assert_independent(closed_at(closed, k), permanent, rows, mask)
    return table


def scaled(m, J: np.ndarray) -> np.ndarray:
    return J / np.array(m.row_lengths)[:, None] * np.array(m.dof_lengths)


@pytest.mark.slow
def test_redundant_rows_in_the_plane_differ_by_set():
    model = fingers()
    q, robot, m = start(model), sl.Dynamics(model, target="python"), mechanism(model)

    def closed_at(closed, k):
        guess = q + 0.05 * np.random.default_rng(k).normal(size=len(q))
        return scaled(m, robot.closure_jacobian(robot._with_active_loops(closed).assemble(guess)))

    table = check_sets(model, q, ["grip0", "grip1"], closed_at)
    assert [int((x == 1).sum()) for x in table] == [0, 3, 3, 6]  # 2 + 3 + 3 degrees of freedom


@pytest.mark.slow
def test_active_rows_by_names_make_kernels_answer_as_calls_by_names_do():
    model = switchable(sl.zoo.five_bar(), sl.zoo.five_bar().loops[0].name)
    robot = sl.Dynamics(model)
    (name,), q = model.switches, robot.assemble(sl.zoo.five_bar_start())
    kernel, z = sl.compile(model, "forward_dynamics"), np.zeros(model.nv)
    for names in ([name], []):
        expected = robot.forward_dynamics(q, z, z, active_loops=names)
        for rows in (robot.active_rows(names), robot.active_rows(names, near=q)):
            np.testing.assert_array_equal(kernel(q, z, z, rows), expected)
    robot.active_rows()[:] = 0.0  # a copy
    assert (robot.active_rows() == 1.0).any()
    with pytest.raises(InputError, match=r"active_rows: active_loops names 'grup', which is not a switchable loop"):
        robot.active_rows(["grup"])
    with pytest.raises(InputError, match=r"active_rows: near has shape \(1,\); expected a closed state"):
        robot.active_rows(near=[0.0])


@pytest.mark.slow
def test_one_arm_with_two_grasps_holds_by_one_of_them():
    """Both grasps of one pair of bodies: closed together, the second adds nothing."""
    model = fingers(1)
    grip = model.loops[1]
    model = replace(model, loops=(*model.loops, replace(grip, name="again")))
    q = start(model)
    table = row_masks(model, ["again", "grip0"], near=q)
    assert [int((x == 1).sum()) for x in table] == [0, 3, 3, 3]
    assert [int((x == -1).sum()) for x in table] == [0, 3, 3, 9]


@pytest.mark.slow
def test_forces_of_grasps_that_share_rows_are_not_determined():
    model = fingers(1)
    model = replace(model, loops=(*model.loops, replace(model.loops[1], name="again")))
    found = undetermined_rows(model, ["again", "grip0"], near=start(model))
    assert found[:3] == (frozenset(), frozenset(), frozenset())
    assert [len(found[3] & set(rows)) for rows in mechanism(model).switches.values()] == [3, 3]  # those in the plane


def test_captured_grasps_are_closed_anywhere():
    model = fingers(2, links=2)  # arms of two links cannot place a hand rigidly: only captured grasps can close
    q, m = start(model), mechanism(model)
    robot = sl.Dynamics(model, target="python")

    def closed_at(closed, k):
        guess = q + 0.1 * np.random.default_rng(k).normal(size=len(q))
        state = robot._with_active_loops([]).assemble(guess)
        held = captured_at(m, state.tolist(), sorted(closed))
        placed = with_captured_placements(
            model, sorted(closed), [x for n in sorted(closed) for x in captured_placement(m, state.tolist(), n)]
        )
        return scaled(held, sl.Dynamics(placed, target="python").closure_jacobian(state))

    names = ["grip0", "grip1"]
    table = check_sets(model, q, names, closed_at, captures=names)
    assert [int((x == 1).sum()) for x in table] == [0, 3, 3, 6]


def test_redundant_rows_in_space_differ_by_set():
    case = random_loops(4, n_loops=2, doubled=True)
    names = [x.name for x in case.model.loops]
    first, again = names[0], names[-1]
    model = switchable(case.model, first, again)
    m, J = mechanism(model), sl.Dynamics(model, target="python").closure_jacobian(case.q)

    table = check_sets(model, case.q, [first, again], lambda closed, k: scaled(m, J))
    assert not (table[1:3] == -1).any()
    assert (table[3] == -1).sum() == len(m.switches[again])


@pytest.mark.slow
def test_sets_that_are_given_are_the_rows_of_the_table():
    model = fingers()
    q = start(model)
    table = row_masks(model, ["grip0", "grip1"], near=q)
    given = row_masks(model, ["grip0", "grip1"], near=q, sets=[{"grip1"}, set()])
    np.testing.assert_array_equal(given, table[[2, 0]])
    np.testing.assert_array_equal(row_masks(model, ["grip1"], closed=["grip0"], near=q), table[[1, 3]])


def test_more_sets_than_64_are_refused():
    with pytest.raises(
        UnsupportedError, match=r"^7 loops and couplings .* make 128 sets of closed loops; .* at most 64"
    ):
        row_masks(fingers(), [f"g{i}" for i in range(7)])
    with pytest.raises(UnsupportedError, match="make 65 sets"):
        row_masks(fingers(), ["grip0"], sets=[()] * 65)


def test_a_second_run_from_a_neighbouring_state_computes_no_masks(monkeypatch):
    model = fingers()
    q = start(model)
    first = row_masks(model, ["grip0", "grip1"], near=q)
    monkeypatch.setattr(kept_masks, "masks_of_sets", None)
    assert row_masks(model, ["grip0", "grip1"], near=q + 1e-9) is first


@pytest.mark.slow
def test_loops_that_exclude_each_other_leave_the_rows_of_the_others_redundant():
    """A five-bar, of whose pin three rows have no effect in the plane, and two grips that cannot hold at once."""
    model = fingers()
    away = model.loops[1].placement_b.position
    far = replace(
        model.loops[1], name="far", placement_b=replace(model.loops[1].placement_b, position=(9.0, *away[1:]))
    )
    model = replace(model, loops=(*model.loops[:2], far))
    q = start(model)
    for near in (None, q):
        assert len(redundancy_of(model, near).dropped) == 3
    table = row_masks(model, ["grip0", "far"], near=q)
    assert [int((x == 1).sum()) for x in table[:3]] == [0, 3, 3]


# ---- runs with constant active loops


CORNERS = [(np.cos(x), np.sin(x), 0.0) for x in 2.0 * np.pi / 3.0 * np.arange(3)]


def rods() -> sl.Model:
    """A plate in its plane on three parallel rods of 0.5 m; one of them is redundant unless the plate has turned."""
    b = sl.Builder("three rods", gravity=(0.0, -9.81, 0.0))
    b.body("plate", mass=1.0, center=(0.1, 0.2, 0.0), inertia=(0.1, 0.1, 0.2)).planar("plane", "world", "plate", "z")
    for i, p in enumerate(CORNERS):
        b.frame(f"w{i}", "world", p).frame(f"p{i}", "plate", p)
        b.loop(f"w{i}", f"p{i}", sl.joints.Distance(0.5), name=f"rod{i}")
    return switchable(b.build(), "rod2")


@pytest.mark.parametrize("closures", ["project", sl.Closures(active_loops=["rod2"])])
def test_a_switchable_rod_acts_in_the_assembly_of_the_start(closures):
    twisted = np.array([2.0 * np.arcsin(0.25), 0.0, 0.0])
    run = sl.simulate(rods(), twisted, duration=0.02, step=1e-3, closures=closures)
    assert np.abs(run.q - twisted).max() < 1e-12  # a structure: it stays where it is
    parallel = sl.simulate(rods(), np.array([0.0, 0.3, 0.4]), duration=0.02, step=1e-3, closures=closures)
    assert np.abs(parallel.v[-1]).max() > 0.05


@pytest.mark.slow
def test_loops_that_close_at_a_dead_centre_only_do_not_make_permanent_rows_redundant():
    """A slider-crank, and a stop that the slider can just reach: both close only where the crank is stretched, and
    there the permanent rows lose rank."""
    b = sl.Builder("press")
    for name in ("crank", "rod", "slider"):
        b.body(name, 1.0, inertia=(0.1, 0.1, 0.1))
    b.revolute("drive", "world", "crank", "z").revolute("pin", "crank", "rod", "z", (0.5, 0.0, 0.0))
    b.prismatic("slide", "world", "slider", "x").frame("end", "rod", (1.5, 0.0, 0.0))
    b.loop("end", "slider", sl.joints.PointOnLine("z"), name="wrist").frame("wall", "world", (2.0, 0.0, 0.0))
    model = b.build().with_loop("wall", "slider", sl.joints.PointOnPlane("x"), name="stop", switchable=True)
    q = sl.Dynamics(model)._with_active_loops([]).assemble({"drive": 1.0, "pin": -1.3, "slide": 1.6})
    for near in (None, q):
        assert not redundancy_of(model, near).dropped
        assert redundancy_of(model, near).is_known
    assert row_masks(model, ["stop"], near=q).tolist() == [[0.0], [1.0]]
