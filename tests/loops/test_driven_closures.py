"""One linkage cut at two joints must move alike: what is said of a joint in the tree can be said of it as a loop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from dense_closures import ClosedReference
from dense_driven import loops_with_all_that_acts, motions
from linkage import linkage
from momentum import about_origin, rate_of_momentum
from random_loops import random_loops
from sentences import says

import spanloop as sl
from spanloop import zoo
from spanloop.errors import InputError, StateError
from spanloop.loops.arguments import with_loop_forces


def matching_states(cut_d: sl.Model, cut_b: sl.Model):
    """q and v of the linkage in both descriptions, and how the coordinates correspond."""
    first, second = sl.Dynamics(cut_d), sl.Dynamics(cut_b)
    q = first.assemble(np.array([-0.9, 0.8, -1.6]))
    v = first.project(q, np.array([1.0, 0.3, -0.5]))[1]
    names = [j.name for j in cut_b.joints]
    turn = q[0] + q[1] - q[2]  # of the coupler on the rocker
    rate = v[0] + v[1] - v[2]
    values = {"a": (q[0], v[0]), "c": (q[2], v[2]), "d": (turn, rate)}
    q2, v2 = (np.array([values[n][k] for n in names]) for k in (0, 1))
    assert np.abs(second.closure_error(q2)).max() < 1e-12
    return (first, q, v), (second, q2, v2), names


def test_a_driven_closure_moves_like_the_driven_joint_it_is():
    (first, q, v), (second, q2, v2), names = matching_states(linkage("d", driven=True), linkage("b", driven=True))
    alpha = 0.7
    tau2 = np.zeros(3)
    tau2[names.index("d")] = alpha
    a2 = second.forward_dynamics(q2, v2, tau2)
    a = first.forward_dynamics(q, v, np.zeros(3), loop_accelerations={"d": [alpha]})
    assert a[0] + a[1] - a[2] == pytest.approx(alpha, abs=1e-12)
    assert a[0] == pytest.approx(a2[names.index("a")], rel=1e-11)
    dense = sl.Dynamics(first.model, method="dense").forward_dynamics(
        q, v, np.zeros(3), loop_accelerations={"d": [alpha]}
    )
    np.testing.assert_allclose(dense, a, rtol=1e-10)


def test_a_known_force_in_a_closure_is_the_torque_of_that_joint():
    (first, q, v), (second, q2, v2), names = matching_states(linkage("d"), linkage("b"))
    tau2 = np.zeros(3)
    tau2[names.index("d")] = 1.3
    a2 = second.forward_dynamics(q2, v2, tau2)
    a = first.forward_dynamics(q, v, np.zeros(3), loop_forces={"d": [1.3]})
    assert a[0] == pytest.approx(a2[names.index("a")], rel=1e-11)


def test_names_of_driven_and_known_loops_are_checked():
    robot = sl.Dynamics(linkage("d", driven=True))
    q = robot.assemble(np.array([-0.9, 0.8, -1.6]))
    z = np.zeros(3)
    with pytest.raises(InputError) as said:
        robot.forward_dynamics(q, z, z, loop_accelerations={"D": [1.0]})
    assert (
        str(said.value)
        == "forward_dynamics: loop_accelerations names 'D', which is not a driven loop; did you mean 'd'?"
    )
    with pytest.raises(InputError) as said:
        robot.forward_dynamics(q, z, z, loop_forces={"d": [1.0, 2.0]})
    assert str(said.value) == "forward_dynamics: the force of loop 'd' has shape (2,); expected (..., 1)"


def test_an_acceleration_that_is_not_finite_is_named_as_the_caller_names_it():
    robot = sl.Dynamics(linkage("d", driven=True))
    q, z = robot.assemble(np.array([-0.9, 0.8, -1.6])), np.zeros(3)
    unknown = {"d": [np.nan]}
    with pytest.raises(StateError, match=r"^forward_dynamics: loop_accelerations\[0\] is nan; every number"):
        robot.forward_dynamics(q, z, z, loop_accelerations=unknown)
    with pytest.raises(InputError, match=r"^simulate: loop_accelerations holds a number that is not finite"):
        sl.simulate(robot, q, duration=0.1, closures=sl.Closures(loop_accelerations=unknown))
    with pytest.raises(InputError, match=r"^simulate: loop_accelerations names 'D'"):
        sl.simulate(robot, q, duration=0.1, closures=sl.Closures(loop_accelerations={"D": [0.0]}))


def test_a_gear_moves_like_the_two_joints_it_couples():
    """Two flywheels on a gear of ratio −2: one DoF with the inertia I₁ + 4 I₂ (rates 1 and −2)."""
    b = sl.Builder("gear").body("one", 1.0, inertia=(0.2, 0.2, 0.3)).body("two", 1.0, inertia=(0.3, 0.3, 0.5))
    b.revolute("p", "world", "one", "z").revolute("q", "world", "two", "z", (1.0, 0.0, 0.0))
    b.coupling("gear", "q", "p", -2.0, 0.0)
    for method in ("elimination", "dense"):
        a = sl.Dynamics(b.build(), method=method).forward_dynamics(np.zeros(2), np.zeros(2), [0.4, 0.1])
        np.testing.assert_allclose(a, (0.4 - 2 * 0.1) / (0.3 + 4 * 0.5) * np.array([1.0, -2.0]), rtol=1e-13)


def test_a_known_force_along_a_universal_closure_does_the_power_of_its_rates():
    """The force h on the two rates does the power h · rate, whatever the state: Jacobians of the two bodies say so."""
    b = sl.Builder("pair")
    for name in ("one", "two"):
        b.body(name, 1.0, (0.1, 0.0, 0.0), (0.01, 0.02, 0.02)).spherical(name + "_ball", "world", name)
    model = b.build().with_loop("one", "two", sl.joints.Universal(axis="x", second_axis=(0.0, 0.6, 0.8)))
    q, h = np.tile((1.0, 0.0, 0.0, 0.0), 2), np.array([0.7, -0.4])
    robot = sl.Dynamics(model)
    pushed = with_loop_forces(robot, q, {"one_two": h}, {})
    w = np.array([0.3, -0.2, 0.5])
    first, second = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.6, 0.8])
    for rates in ((1.0, 0.0), (0.0, 1.0)):
        relative = rates[0] * first + rates[1] * second
        power = pushed["one"][:3] @ w + pushed["two"][:3] @ (w + relative)
        assert power == pytest.approx(h @ rates, abs=1e-12)


# ---- all calls take what forward dynamics takes


def driven_and_switched(kind: str, seed: int):
    """A random mechanism whose first loop, of this kind, is driven, and whose second may be switched off."""
    case = random_loops(seed, 2, closing=kind)
    first, second = case.model.loops
    model = replace(case.model, loops=(replace(first, driven=True), replace(second, switchable=True)))
    rng = np.random.default_rng(seed)
    words = {
        "loop_accelerations": {first.name: rng.normal(size=first.kind.nv)},
        "loop_forces": {x.name: rng.normal(size=x.kind.nv) for x in (first, second) if x.kind.nv},
        "forces": {model.bodies[-1].name: rng.normal(size=6)},
    }
    return sl.Dynamics(model, target="python"), (case.q, case.v, case.tau), words


def without(words: dict, loop: str) -> dict:
    return {
        **words,
        "loop_forces": {name: x for name, x in words["loop_forces"].items() if name != loop},
        "active_loops": [],
    }


SOLVED = [("revolute", 0), ("prismatic", 0), ("universal", 1), ("spherical", 1), ("cylindrical", 1), ("planar", 1)]


@pytest.mark.parametrize(("kind", "seed"), SOLVED)
@pytest.mark.slow
def test_closure_forces_agree_with_dense_equations(kind, seed):
    """Given accelerations, known forces, forces from outside, a loop switched off. To 1e-11 of the largest number."""
    robot, state, words = driven_and_switched(kind, seed)
    cases = [without(words, robot.model.loops[1].name)] + [words] * (
        seed == 0
    )  # else what is given contradicts the second loop
    for told in cases:
        found = robot.solve(*state, **told)
        a, forces = loops_with_all_that_acts(robot.model, *state, **told)
        np.testing.assert_allclose(found.a, a, atol=1e-11 * np.abs(a).max())
        np.testing.assert_allclose(found.a, robot.forward_dynamics(*state, **told), atol=0.0)
        for name, six in forces.items():
            np.testing.assert_allclose(found.loop_forces[name], six, atol=1e-11 * max(np.abs(six).max(), 1.0))
        assert found.residual < 1e-11
        assert all(found.unique.values())
        assert found.status == "ok"


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "seed"), SOLVED)
def test_every_body_obeys_newton_and_euler_whatever_acts_in_loops(kind, seed):
    robot, (q, v, tau), words = driven_and_switched(kind, seed)
    model = robot.model
    words = without(words, model.loops[1].name) if seed else words
    f, a = robot.reactions(q, v, tau, **words), robot.forward_dynamics(q, v, tau, **words)
    largest = max(np.abs(x).max() for x in f.values())
    net = {b.name: np.zeros(6) for b in model.bodies} | {"world": np.zeros(6)}
    for body, six in words["forces"].items():
        net[body] += about_origin(six, robot.pose(q, body)[:3, 3])
    for j in model.joints:
        wrench = about_origin(f[j.name], robot.pose(q, j.child)[:3, 3])
        net[j.child] += wrench
        net[j.parent] -= wrench
    for x in model.loops:
        pose = robot.pose(q, x.b)
        wrench = about_origin(f[x.name], pose[:3, 3] + pose[:3, :3] @ np.array(x.placement_b.position))
        net[x.b] += wrench
        net[x.a] -= wrench
    for b in model.bodies:
        np.testing.assert_allclose(net[b.name], rate_of_momentum(model, robot, b, q, v, a), atol=1e-11 * largest)


@pytest.mark.slow
def test_forces_of_loops_that_are_not_active_are_zero_in_a_batch():
    robot, q = sl.Dynamics(zoo.hexapod(switchable=True)), zoo.hexapod_start()
    nv = robot.model.nv
    tau = np.random.default_rng(0).normal(size=(3, nv))
    tripod = [f"standing{i}" for i in (1, 3, 5)]
    found = robot.solve(q, np.zeros(nv), tau, active_loops=iter(tripod))
    for k in range(3):
        a, forces = loops_with_all_that_acts(robot.model, q, np.zeros(nv), tau[k], tripod)
        np.testing.assert_allclose(found.a[k], a, atol=1e-9 * np.abs(a).max())
        for name, six in forces.items():
            np.testing.assert_allclose(found.loop_forces[name][k], six, atol=1e-9)
    assert not found.loop_forces["standing2"].any()
    assert list(found.status) == ["ok"] * 3


@pytest.mark.slow
def test_inverse_dynamics_tells_of_released_feet_that_they_carry_nothing():
    robot, q = sl.Dynamics(zoo.hexapod(switchable=True), target="python"), zoo.hexapod_start()
    z, tripod = np.zeros(robot.model.nv), [f"standing{i}" for i in (1, 3, 5)]
    tau = np.concatenate((np.zeros(6), np.random.default_rng(0).normal(size=18)))
    found = robot.solve(q, z, tau, active_loops=tripod)
    back = robot.solve_inverse(q, z, found.a, active_loops=tripod)
    np.testing.assert_allclose(back.tau[:6], 0.0, atol=1e-12)
    assert list(back.loop_forces) == list(found.loop_forces)
    assert back.rows.shape == found.rows.shape
    ahead = robot.solve(q, z, back.tau, active_loops=tripod)
    np.testing.assert_allclose(back.rows, ahead.rows, atol=1e-9)
    for name, six in ahead.loop_forces.items():
        np.testing.assert_allclose(back.loop_forces[name], six, atol=1e-9)
    assert not back.loop_forces["standing2"].any()


@pytest.mark.parametrize("kind", ["universal", "general", "helical"])
def test_given_accelerations_are_those_of_the_dofs_of_axes_that_are_not_square(kind):
    """ẅ of r = φ α in the dense equations; the axes of random kinds are at any angle."""
    case = random_loops(1, 1, closing=kind)
    model = case.model.drive("loop1")
    given = {"loop1": np.random.default_rng(0).normal(size=model.loops[0].kind.nv)}
    a, _ = loops_with_all_that_acts(model, case.q, case.v, case.tau, loop_accelerations=given)
    for method in ("elimination", "dense"):
        robot = sl.Dynamics(model, method=method, target="python")
        found = robot.forward_dynamics(case.q, case.v, case.tau, loop_accelerations=given)
        np.testing.assert_allclose(found, a, atol=1e-11 * np.abs(a).max())
    found = sl.papers.grasp_accelerations(robot, case.q, case.v, a)
    np.testing.assert_allclose(found, given["loop1"], atol=1e-11 * np.abs(a).max())


@pytest.mark.parametrize("kind", ["universal", "general", "spherical", "prismatic"])
def test_grasp_velocities_are_the_rates_of_the_loop(kind):
    """φ W is the velocity of the child frame against the parent's, in its axes; both with v at hand and in a batch."""
    case = random_loops(3, 1, closing=kind)
    robot, reference = sl.Dynamics(case.model, target="python"), ClosedReference(case.model, case.q, case.v)
    (loop,) = case.model.loops
    W = sl.papers.grasp_velocities(robot, case.q, case.v)
    np.testing.assert_allclose(
        motions(loop.kind, reference.coordinates(loop)) @ W, reference._relative(loop)[0], atol=1e-11
    )
    np.testing.assert_allclose(
        sl.papers.grasp_velocities(robot, case.q, np.stack((case.v, 2.0 * case.v)))[1], 2.0 * W, atol=1e-13
    )
    with says(InputError, "grasp_velocities: v has shape (1,); expected"):
        sl.papers.grasp_velocities(robot, case.q, [1.0])


def test_known_forces_of_a_soft_finger_roll_it():
    model, q = zoo.arms_with_object(2, grasp="soft_finger"), zoo.arms_with_object_start(2, grasp="soft_finger")
    robot, rng = sl.Dynamics(model, target="python"), np.random.default_rng(2)
    v = robot.project(q, rng.normal(size=model.nv))[1]
    tau, known = rng.normal(size=model.nv), {"holding1": rng.normal(size=2), "holding2": rng.normal(size=2)}
    found = robot.solve(q, v, tau, loop_forces=known)
    a, forces = loops_with_all_that_acts(model, q, v, tau, loop_forces=known)
    np.testing.assert_allclose(found.a, a, atol=1e-10 * np.abs(a).max())
    for name, six in forces.items():
        np.testing.assert_allclose(found.loop_forces[name], six, atol=1e-9)


def test_inverse_dynamics_with_known_and_given_is_the_opposite_of_forward_dynamics():
    """Torques come out less what the known forces do; the closure forces are those of the motion."""
    robot = sl.Dynamics(linkage("d"))
    q = robot.assemble(np.array([-0.9, 0.8, -1.6]))
    v = robot.project(q, np.array([1.0, 0.3, -0.5]))[1]
    known, alone = {"d": [1.3]}, ["a"]
    for forces in (None, {"coupler": np.arange(6.0)}):
        a = robot.forward_dynamics(q, v, [0.4, 0.0, 0.0], loop_forces=known, forces=forces)
        tau = robot.inverse_dynamics(q, v, a, actuated=alone, loop_forces=known, forces=forces)
        np.testing.assert_allclose(tau, (0.4, 0.0, 0.0), atol=1e-11)
        assert abs(robot.inverse_dynamics(q, v, a, actuated=alone, forces=forces)[0] - 0.4) > 0.1
        both = robot.solve_inverse(q, v, a, actuated=alone, loop_forces=known, forces=forces)
        ahead = robot.solve(q, v, tau, loop_forces=known, forces=forces)
        np.testing.assert_allclose(both.loop_forces["d"], ahead.loop_forces["d"], atol=1e-11)
    wanted = {"d": np.array([0.0, 2.0, 0.0, 3.0, 0.0, 4.0])}
    spare = {"internal_forces": wanted, "actuated": ["a", "b", "c"], "loop_forces": known}
    assert robot.solve_inverse(q, v, a, **spare).loop_forces["d"][1] == pytest.approx(1.3, abs=1e-10)  # about the hinge


def test_joints_complete_the_motion_of_a_driven_loop():
    """The motion of one joint and what is given along the loop make that of all, in inverse dynamics, too."""
    b = sl.Builder("five")
    for k in range(4):
        b.body(f"rod{k}", 1.0, (0.25, 0.0, 0.0), (0.01, 0.1, 0.1))
        parent, at = ("world", (0.0, 0.0, 0.0)) if k == 0 else (f"rod{k - 1}", (0.5, 0.0, 0.0))
        b.revolute(f"hinge{k}", parent, f"rod{k}", "y", at)
    b.frame("tip", "rod3", (0.5, 0.0, 0.0)).frame("wall", "world", (1.2, 0.0, 0.0))
    robot = sl.Dynamics(b.build().with_loop("wall", "tip", sl.joints.Revolute("y"), name="pin").drive("pin"))
    q = robot.assemble(np.array([-0.9, 0.5, 0.6, 0.4]))
    given = {"pin": [0.7]}
    a = robot.complete_acceleration(q, np.zeros(4), {"hinge0": 1.5}, loop_accelerations=given)
    assert a[0] == 1.5
    assert a.sum() == pytest.approx(0.7, abs=1e-12)
    tau = robot.inverse_dynamics(q, np.zeros(4), {"hinge0": 1.5}, loop_accelerations=given, actuated=["hinge0"])
    np.testing.assert_allclose(robot.forward_dynamics(q, np.zeros(4), tau, loop_accelerations=given), a, atol=1e-11)


def test_what_is_said_of_loops_is_checked_in_every_call():
    robot = sl.Dynamics(linkage("d", driven=True))
    q, z = robot.assemble(np.array([-0.9, 0.8, -1.6])), np.zeros(3)
    for call in ("forward_dynamics", "solve", "reactions", "inverse_dynamics", "solve_inverse"):
        ask = getattr(robot, call)
        for given, what in (
            ([1.0], "loop_accelerations is a list; expected {'loop'"),
            ({"d": 1.0}, "the acceleration of loop 'd' has shape (); expected"),
        ):
            with says(InputError, what):
                ask(q, z, z, loop_accelerations=given)
        for known, what in (
            ([1.0], "loop_forces is a list; expected {'loop'"),
            ({"e": [1.0]}, "loop_forces names 'e', which is"),
        ):
            with says(InputError, what):
                ask(q, z, z, loop_forces=known)
        with says(StateError, "loop_forces['d'][0] is nan; every number must be finite"):
            ask(q, z, z, loop_forces={"d": [np.nan]})
        with says(InputError, "active_loops is 'd'; expected names of loops"):
            ask(q, z, z, active_loops="d")
    robot = sl.Dynamics(zoo.hexapod(switchable=True))
    q, z = zoo.hexapod_start(), np.zeros(robot.model.nv)
    for call in (robot.forward_dynamics, robot.inverse_dynamics, robot.solve):
        with says(InputError, "loop_forces names 'standing1', which is not active: an open loop carries no force"):
            call(q, z, z, active_loops=[], loop_forces={"standing1": np.ones(3)})
    rods = sl.Dynamics(linkage("d").with_loop("crank", "rocker", sl.joints.Distance(0.9), name="rod"), target="python")
    with says(InputError, "loop_forces names 'rod', a distance joint, which has no DoF of its own"):
        rods.forward_dynamics(np.zeros(3), np.zeros(3), np.zeros(3), loop_forces={"rod": [1.0]})


# ---- motions


@pytest.mark.slow
def test_a_known_force_moves_a_linkage_as_the_torque_of_that_joint_does():
    (first, q, v), (second, q2, v2), _ = matching_states(linkage("d"), linkage("b"))

    def force(t, q, v):
        return {"d": [1.3 * t - 0.2 * v["a"]]}

    def torque(t, q, v):
        return {"d": 1.3 * t - 0.2 * v["a"]}

    how = {"duration": 0.2, "step": 1e-3}
    for push, there in (({"d": [1.3]}, {"tau": {"d": 1.3}}), (force, {"controller": torque})):
        one = sl.simulate(first, q, v, **how, closures=sl.Closures(loop_forces=push))
        other = sl.simulate(second, q2, v2, **how, **there)
        for name in ("a", "c"):
            np.testing.assert_allclose(
                one.q[:, one.model.q_slice(name)], other.q[:, other.model.q_slice(name)], atol=1e-9
            )
        assert one.audit()["energy"].verdict == "well"
    more = sl.simulate(first, q, v, **how, closures=sl.Closures(loop_forces=force), forces={"rocker": np.zeros(6)})
    np.testing.assert_allclose(more.q, one.q, atol=1e-13)


@pytest.mark.parametrize("kind", ["universal", "cylindrical", "helical", "general"])
def test_forces_compiled_into_a_motion_are_those_of_forward_dynamics(kind):
    case = random_loops(3, 1, closing=kind)
    h = np.random.default_rng(1).normal(size=case.model.loops[0].kind.nv)
    found = sl.forces.along_loops(case.model, {"loop1": h})(0.0, case.q.tolist(), case.v.tolist())
    wanted = with_loop_forces(sl.Dynamics(case.model, target="python"), case.q, {"loop1": h}, {})
    assert set(found) == set(wanted)
    for body, six in wanted.items():
        np.testing.assert_allclose(found[body], six, atol=1e-12 * np.abs(six).max())


@pytest.mark.parametrize(
    ("known", "what"),
    [
        ([1.0], "simulate: loop_forces is a list; expected {'loop': forces (..., n)}"),
        ({"d": [[1.0], [2.0]]}, "has shape (2, 1); expected (1,). For one that changes give a function (t, q, v)"),
        (lambda t, q, v: {"d": 1.0}, "simulate: loop_forces gives 1.0 for 'd'; expected a list of 1"),
        (lambda t, q, v: {"c": [1.0]}, "simulate: loop_forces names 'c', which is not a loop; there are 'd'"),
        (lambda t, q, v: [1.0], "simulate: loop_forces returned a list; expected {'loop': numbers}"),
    ],
)
def test_known_forces_of_a_motion_are_checked(known, what):
    model = linkage("d")
    with says(InputError, what):
        sl.simulate(
            model,
            sl.Dynamics(model).assemble(np.array([-0.9, 0.8, -1.6])),
            duration=0.01,
            closures=sl.Closures(loop_forces=known),
        )


# ---- a robot without the loops that are not active


def test_inverse_dynamics_of_a_robot_whose_loops_are_all_open_needs_no_method_for_loops():
    model, q = zoo.hexapod(switchable=True), zoo.hexapod_start()
    robot, z = sl.Dynamics(model, method="closed_topology", target="python"), np.zeros(model.nv)
    tau = np.concatenate((np.zeros(6), np.random.default_rng(1).normal(size=model.nv - 6)))
    a = robot.forward_dynamics(q, z, tau, active_loops=[])
    np.testing.assert_allclose(robot.inverse_dynamics(q, z, a, active_loops=[]), tau, atol=1e-10)


@pytest.mark.slow
def test_a_robot_with_fewer_loops_keeps_its_options():
    model, q = zoo.arms_with_object(3), zoo.arms_with_object_start(3)
    model = replace(model, loops=tuple(replace(x, switchable=True) for x in model.loops))
    words = {"method": "arms_on_object", "open_chain": "articulated_body", "target": "python"}
    robot, z = sl.Dynamics(model, on_singular="minimum_norm", **words), np.zeros(model.nv)
    fewer = robot._with_active_loops(["holding1", "holding2"])
    assert fewer.method == "arms_on_object"
    assert fewer.on_singular == "minimum_norm"
    assert fewer.__reduce__()[1][2] == "articulated_body"
    np.testing.assert_allclose(
        fewer.forward_dynamics(q, z, z),
        robot.forward_dynamics(q, z, z, active_loops=["holding1", "holding2"]),
        atol=1e-9,
    )
    assert robot._with_active_loops([]).method is None


@pytest.mark.parametrize("closures", ["project", "feedback", "none"])
def test_a_driven_loop_keeps_its_acceleration_in_a_run(closures):
    """The hinge that closes a four-bar is accelerated at 1 rad/s²; after 0.05 s it turns at 0.05 rad/s."""
    model = sl.zoo.four_bar().remove("closing")
    loop = sl.zoo.four_bar().loops[0]
    driven = replace(model, loops=(replace(loop, driven=True),))
    robot = sl.Dynamics(driven)
    how = sl.Closures(closures, loop_accelerations={"closing": [1.0]})
    run = sl.simulate(driven, sl.zoo.four_bar_start(), duration=0.05, closures=how)
    assert run.outcome.finished
    rate = (robot.closure_jacobian(run.q[-1]) @ run.v[-1])[-1]
    assert rate == pytest.approx(0.05, abs=1e-6)
