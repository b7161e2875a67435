"""Kernels of models with flexible bodies that are made in other ways: machine code, long chains, threads, captures,
contacts; and what else refuses them."""

from __future__ import annotations

import numpy as np
import pytest
from flexible_mechanisms import case, loop, tree_parts, tube
from flexible_reference import Reference
from test_every_function import CASES, accelerations, answers, near

import spanloop as sl
from spanloop.errors import UnsupportedError
from spanloop.kernels import KernelSpec
from spanloop.topology import mechanism
from spanloop.topology.captured_frames import captured_placement

COMPILED = [x for x in CASES if x[0] == "loop" or x[1] in ("forward_dynamics", "mass_matrix_inverse", "force_response")]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name", "method"), COMPILED)
def test_machine_code_agrees_with_dense_algebra(kind, name, method):
    """1e-9 for what is solved, whose condition is 1e6; all of the rest to 1e-12 of its largest number."""
    algebra = ("mass_matrix", "bias", "tree_inverse_dynamics", "energy", "reactions", "pose", "poses", "jacobian")
    for found, expected in answers(kind, name, method, target="cpu"):
        near(found, expected, 1e-12 if name in algebra else 1e-9)


def long_chain(n: int = 52) -> sl.Model:
    """Rigid links in series, and one flexible body among them."""
    b, last = sl.Builder("long chain"), "world"
    for k in range(n):
        at = (0.0, 0.0, 0.0) if last in ("world", "bent.tip") else (0.1, 0.0, 0.0)
        if k == n // 2:
            b.body("bent", flexible=tube(0.3, modes={"y": 1, "z": 1})).revolute(f"joint{k}", last, "bent", "z", at)
            last = "bent.tip"
        else:
            b.body(f"link{k}", 0.5, (0.05, 0.01, 0.0), (0.001, 0.002, 0.002))
            b.revolute(f"joint{k}", last, f"link{k}", "xyz"[k % 3], at)
            last = f"link{k}"
    return b.build()


@pytest.mark.slow
def test_a_long_chain_with_one_flexible_link_is_unrolled():
    """More than 48 links are looped over where all are rigid."""
    model = long_chain()
    bent = np.concatenate([np.full(j.kind.nq, 0.01 if j.kind.bends else 0.5) for j in model.joints])
    rng = np.random.default_rng(0)
    q, v, a = rng.normal(size=model.nq) * bent, rng.normal(size=model.nv), rng.normal(size=model.nv)
    dense = Reference(model)
    tau = dense.mass_matrix(q) @ a + dense.bias(q, v)
    near(sl.compile(model, "inverse_dynamics")(q, v, a), tau)
    found = sl.compile(model, "forward_dynamics")(q, v, tau)  # the condition of M is 1e10: what it does is compared
    near(dense.mass_matrix(q) @ found + dense.bias(q, v), tau, 1e-11)
    for name in ("inverse_dynamics", "forward_dynamics", "energy"):
        with pytest.raises(UnsupportedError, match=r"cannot be looped: 'bent\.modes' are modes of a flexible body"):
            sl.compile(model, name, lowering="looped")


@pytest.mark.slow
def test_chains_of_one_state_in_threads():
    """Two flexible arms on a free body: each is a part of its own."""
    b = sl.Builder("two arms").body("hub", 3.0, (0.0, 0.0, 0.0), (0.2, 0.3, 0.4)).free("flight", "world", "hub")
    for side in (-1.0, 1.0):
        name = "left" if side < 0 else "right"
        b.body(name, flexible=tube(modes={"y": 1, "z": 1}))
        b.revolute(f"{name}_joint", "hub", name, "z", (0.3 * side, 0.1, 0.0))
        b.body(f"{name}_hand", 0.4, (0.1, 0.0, 0.0), (0.01, 0.01, 0.01))
        b.revolute(f"{name}_wrist", f"{name}.tip", f"{name}_hand", "y")
    model = b.build()
    rng = np.random.default_rng(1)
    q = np.asarray(model.neutral()) + 0.0
    for j in model.joints:
        if j.kind.bends:
            q[model.q_slice(j.name)] = 0.02 * rng.normal(size=j.kind.nq)
    v, tau = rng.normal(size=model.nv), rng.normal(size=model.nv)
    expected = sl.compile(model, "forward_dynamics")(q, v, tau)
    near(sl.compile(model, "forward_dynamics", chain_threads=2)(q, v, tau), expected, 1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("held", ["whip.tip", "boom.middle", "tool"])
def test_a_captured_frame_is_held_where_it_was_found(held):
    """A node, and a body beyond nodes, welded to the world as it is bent; against M a + h = tau + Jᵀ λ, J a + γ = 0."""
    c = case("tree")
    model = c.model.with_frame("post", "world", (0.2, 0.3, 0.4))
    model = model.with_loop("post", held, "fixed", name="grip", switchable=True)
    J, M, n = c.jacobian(held), c.M, c.model.nv
    v = c.v - np.linalg.pinv(J) @ (J @ c.v)
    bias, h = c.reference.jacobian_bias(held, c.q, v), c.reference.bias(c.q, v)
    whole = np.block([[M, J.T], [J, np.zeros((6, 6))]])
    expected = np.linalg.solve(whole, np.concatenate([c.a - h, -bias]))[:n]
    captured = np.array(captured_placement(mechanism(model), c.q.tolist(), "grip"))
    spec = KernelSpec.of(model, "forward_dynamics", captures=["grip"], coarse=True)
    near(spec.reference(c.q, v, c.a, np.ones(6), captured), expected, 1e-9)


# ---- contacts


def test_points_of_contact_ride_on_nodes():
    """The gap of a ball at a node over the ground, and the rate of its lowest point."""
    c = case("tree")
    b = tree_parts().body("ball", 0.2, inertia=(0.001,) * 3, geometry=[sl.contacts.Sphere(0.1)])
    model, frame = b.fixed("weld", "whip.tip", "ball", (0.1, 0.0, 0.0)).build().with_ground(friction=0.3), "ball"
    dense = Reference(model)
    spec = KernelSpec.of(model, "contact_geometry")
    point = np.asarray(spec.reference(c.q))[0]
    at = dense.frames(c.q, c.v)[frame][1].value
    assert point[0] == pytest.approx(at[2] - 0.1, abs=1e-13)
    np.testing.assert_allclose(point[1:3], at[:2], atol=1e-13)
    rates = np.asarray(KernelSpec.of(model, "contact_velocities").reference(c.q, c.v))[0]
    V, axes = dense.velocity(frame, c.q, c.v), point[4:].reshape(3, 3)
    lowest = V[3:] + np.cross(V[:3], (0.0, 0.0, -0.1))
    np.testing.assert_allclose(rates[:3], axes @ lowest, atol=1e-12)
    np.testing.assert_allclose(rates[3:], axes @ V[:3], atol=1e-12)


# ---- loops


@pytest.mark.slow
@pytest.mark.parametrize("method", ["elimination", "dense", "closed_topology"])
@pytest.mark.parametrize("ends", [("slider", "arm"), ("boom.middle", "whip"), ("base", "whip.tip")])
def test_a_loop_on_one_flexible_body(method, ends):
    """Its ends meet at the body that bends, or span several; closed by a ball at a bent state, at speed."""
    c = case("tree")
    poses = c.reference.frames(c.q, c.v)
    (R, p), meeting = poses[ends[0]], poses[ends[1]][1].value
    model = c.model.with_frame("catch", ends[0], tuple(R.value.T @ (meeting - p.value)))
    model = model.with_loop("catch", ends[1], "spherical")
    dense = Reference(model)
    J = (dense.jacobian(ends[1], c.q) - dense.jacobian("catch", c.q))[3:]
    v = c.v - np.linalg.pinv(J) @ (J @ c.v)
    bias = (dense.jacobian_bias(ends[1], c.q, v) - dense.jacobian_bias("catch", c.q, v))[3:]
    whole = np.block([[c.M, J.T], [J, np.zeros((3, 3))]])
    expected = np.linalg.solve(whole, np.concatenate([c.a - dense.bias(c.q, v), -bias]))[: model.nv]
    spec = KernelSpec.of(model, "forward_dynamics", method=method, near=c.q)
    near(spec.reference(c.q, v, c.a), expected, 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["elimination", "dense"])
@pytest.mark.parametrize("pair", [("slide", "elbow"), ("elbow", "yaw"), ("wrist", "shoulder")])
def test_couplings_across_flexible_bodies(method, pair):
    """Joints on two nodes of one flexible body, and on both sides of it, turn in proportion."""
    c, model = case("tree"), tree_parts().coupling("gear", *pair, ratio=0.7).build()
    J, q = np.zeros((1, model.nv)), c.q + 0.0
    J[0, model.v_slice(pair[0])], J[0, model.v_slice(pair[1])] = 1.0, -0.7
    q[model.q_slice(pair[0])] = 0.7 * q[model.q_slice(pair[1])]
    v = c.v - np.linalg.pinv(J) @ (J @ c.v)
    whole = np.block([[c.reference.mass_matrix(q), J.T], [J, np.zeros((1, 1))]])
    expected = np.linalg.solve(whole, [*(c.a - c.reference.bias(q, v)), 0.0])[:-1]
    near(KernelSpec.of(model, "forward_dynamics", method=method).reference(q, v, c.a), expected, 1e-9)


@pytest.mark.slow
def test_systems_with_kernels_of_their_own():
    """The flexible loop as crank and rocker, each with its steps A to C and E."""
    c, b = case("loop"), sl.Builder("crank")
    b.body("boom", flexible=tube(nodes={"middle": 0.4}, modes={"y": 1, "z": 1})).revolute("drive", "world", "boom", "z")
    b.body("arm", 0.5, (0.4, 0.0, 0.0), (0.01, 0.03, 0.03)).revolute("pin", "boom.tip", "arm", "z")
    crank, b = b.frame("tool", "arm", (0.9, 0.0, 0.0)).build(), sl.Builder("rocker")
    b.body("whip", flexible=tube(modes={"y": 1, "z": 0})).revolute("pivot", "world", "whip", "z", (1.0, 0.1, 0.0))
    pair = sl.ClosedTopology(crank, b.build(), [("tool", "whip.tip", "spherical")], target="python")
    near(pair.forward_dynamics(c.q, c.v, c.a), accelerations(c, {"tau": c.a}), 1e-9)


@pytest.mark.slow
def test_flexible_arms_on_a_rigid_object():
    """Where arms hold one free body, closed_topology solves its six equations alone."""
    b = sl.Builder("arms on a box").body("box", 2.0, (0.0, 0.0, 0.0), (0.02, 0.03, 0.04)).free("flight", "world", "box")
    for side, name in ((-1.0, "left"), (1.0, "right")):
        b.body(name, flexible=tube(0.5, modes={"y": 1, "z": 1})).universal(
            f"{name}_base", "world", name, position=(side, 0.0, 0.0)
        )
        b.body(f"{name}_hand", 0.3, (0.1, 0.0, 0.0), (0.01, 0.01, 0.01))
        b.universal(f"{name}_elbow", f"{name}.tip", f"{name}_hand")
        b.frame(f"{name}_grip", f"{name}_hand", (0.5, 0.0, 0.0)).frame(f"{name}_side", "box", (0.2 * side, 0.0, 0.0))
        b.loop(f"{name}_grip", f"{name}_side", "spherical")
    model = b.build()
    robot, rng = sl.Dynamics(model, target="python"), np.random.default_rng(2)
    start = np.asarray(model.neutral()) + 0.0
    for joint in model.joints:
        at = model.q_slice(joint.name)
        if joint.kind.name == "universal":
            start[at] = rng.normal(size=2) * 0.5 + (2.0 if "left" not in joint.name else 0.5)
        elif joint.kind.bends:
            start[at] = 0.01 * rng.normal(size=joint.kind.nq)
    q = np.asarray(robot.assemble(start))
    J, v, tau = robot.closure_jacobian(q), rng.normal(size=model.nv), rng.normal(size=model.nv)
    v = v - np.linalg.pinv(J) @ (J @ v)
    expected = robot.forward_dynamics(q, v, tau)
    found = sl.Dynamics(model, method="closed_topology", target="python").forward_dynamics(q, v, tau)
    near(found, expected, 1e-8)


@pytest.mark.slow
def test_torques_of_a_motion_by_subsystems():
    """Saha's recursion over subsystems finds the torques that made the motion."""
    c = case("loop")
    robot, tau = sl.Dynamics(c.model, target="python"), np.zeros(c.model.nv)
    for name in ("drive", "pin", "pivot"):
        tau[c.model.v_slice(name)] = 1.3
    a = accelerations(c, {"tau": tau})
    for options in ({}, {"by_subsystems": True}):
        near(robot.inverse_dynamics(c.q, c.v, a, **options), tau, 1e-7)


# ---- refusals besides those of the catalog


def test_complements_and_minimal_coordinates_refuse():
    with pytest.raises(UnsupportedError, match=r"^parallel_complement is for rigid bodies: body 'boom'"):
        sl.papers.parallel_complement(sl.Dynamics(loop()), case("loop").q)
    with pytest.raises(UnsupportedError, match="is for rigid bodies: body 'boom' of 'flexible loop' bends"):
        sl.simulate(loop(), case("loop").q, duration=0.01, closures="minimal")
