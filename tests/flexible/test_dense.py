"""Recursions with flexible bodies against energies of mass points, differentiated (support/flexible_reference.py)."""

from __future__ import annotations

import numpy as np
import pytest
from flexible_reference import Reference

import spanloop as sl

pytestmark = pytest.mark.slow
SEED = 20261117
STEEL = {"E": 2.1e11, "density": 7800.0}


def soft(length=1.0, **options):
    """A beam that is soft for its mass: its stiffness does not hide other forces."""
    given = {"section": sl.flexible.rectangle(0.02, 0.03), "E": 2e6, "density": 1000.0, "elements": 6} | options
    return sl.flexible.beam(length, **given)


def chain() -> sl.Model:
    """A slider, two beams in three dimensions with skew hinges, a load, and a part on an inner node."""
    first = soft(2.0, modes={"y": 0, "torsion": 0, "extension": 0}, theory="timoshenko", nodes={"mid": 0.8})
    second = soft(modes={"y": 2, "z": 1, "torsion": 1}, basis="cantilever", damping=0.02)
    b = sl.Builder("chain").body("hub", 1.0, (0.1, 0.0, 0.2), (0.1, 0.2, 0.15))
    b = b.prismatic("rail", "world", "hub", (1.0, 2.0, 0.5)).body("boom", flexible=first)
    b = b.revolute("hinge", "hub", "boom", (0.2, 0.3, 1.0), (0.1, 0.0, 0.3), (0.3, 0.2, 0.1), damping=0.3)
    b = b.body("arm", flexible=second)
    b = b.revolute("elbow", "boom.tip", "arm", (1.0, 0.2, 1.0), (0.05, 0.02, 0.01), (0.3, -0.2, 0.1), armature=0.01)
    b = b.body("load", 2.0, (0.1, 0.05, 0.0), (0.03, 0.04, 0.05)).fixed("grip", "arm.tip", "load", (0.05, 0.0, 0.0))
    b = b.body("cell", 0.5, (0.1, 0.05, 0.0), (0.01, 0.01, 0.015))
    return b.revolute("pivot", "boom.mid", "cell", "y", (0.0, 0.0, 0.02)).build()


def pieces() -> sl.Model:
    """A tapered beam of two pieces on a hinge."""
    ends = [sl.flexible.circle(0.02), sl.flexible.circle(0.01)]
    b = sl.Builder("pieces").body("boom", flexible=soft(section=ends, modes={"y": 0, "z": 0, "torsion": 0}, pieces=2))
    return b.revolute("hinge", "world", "boom", (0.0, 1.0, 1.0)).build()


def many_modes() -> sl.Model:
    """Ten modes on one body, with a tip body on a hinge."""
    b = sl.Builder("many").body("boom", flexible=soft(modes={"y": 4, "z": 4, "torsion": 2}, basis="cantilever"))
    b = b.revolute("hinge", "world", "boom", "z").body("tip", 0.3, (0.1, 0.0, 0.0), (0.002, 0.003, 0.003))
    return b.revolute("wrist", "boom.tip", "tip", "y").build()


def branch() -> sl.Model:
    """Two beams on one hub, the second on an inner node of the first."""
    b = sl.Builder("branch").body("trunk", flexible=soft(modes=0, nodes={"fork": 0.5}))
    b = b.revolute("base", "world", "trunk", "x").body("twig", flexible=soft(0.6, modes={"z": 1, "torsion": 0}))
    b = b.revolute("knot", "trunk.fork", "twig", "y", rotation=(0.0, 0.0, 1.0))
    return b.body("fruit", 0.2, (0.0, 0.02, 0.0), (1e-4, 2e-4, 2e-4)).fixed("stem", "twig.tip", "fruit").build()


TREES = (chain, pieces, many_modes, branch)


def four_bar(kind: str = "spherical") -> sl.Model:
    """A spatial four-bar with two flexible members."""
    b = sl.Builder("four bar").body("crank", 1.0, (0.2, 0.0, 0.0), (0.01, 0.03, 0.03))
    b = b.body("coupler", flexible=soft(modes=1)).body("rocker", flexible=soft(0.8, modes=0))
    b = b.revolute("a", "world", "crank", "y").revolute("b", "crank", "coupler", (0.1, 1.0, 0.0), (0.4, 0.0, 0.0))
    b = b.revolute("c", "world", "rocker", (0.0, 1.0, 0.1), (0.9, 0.0, 0.0))
    return b.loop("coupler.tip", "rocker.tip", kind, name="d").build()


def ring() -> sl.Model:
    """A loop between two nodes of one flexible body, through a bar that bends: rows meet on the flexible body."""
    b = (
        sl.Builder("ring")
        .body("base", flexible=soft(modes=0, nodes={"mid": 0.4}))
        .revolute("hinge", "world", "base", "z")
    )
    b = b.body("strut", 0.4, (0.15, 0.0, 0.0), (1e-3, 3e-3, 3e-3)).revolute("foot", "base.mid", "strut", "y")
    b = b.frame("head", "strut", (0.3, 0.0, 0.3))
    b = b.body("tie", flexible=soft(0.5, modes=0)).revolute("pin", "base.tip", "tie", "y")
    return b.loop("head", "tie.tip", "spherical", name="knot").build()


def state(model: sl.Model, rng) -> tuple[np.ndarray, np.ndarray]:
    """A state whose bodies are bent by slopes of order 0.1."""
    q, v = rng.uniform(-1.0, 1.0, model.nv), rng.normal(size=model.nv)
    for joint in model.joints:
        if joint.kind.bends:
            q[model.q_slice(joint.name)] *= 0.05
    return q, v


def closed_state(model: sl.Model, rng) -> tuple[np.ndarray, np.ndarray]:
    robot = sl.Dynamics(model)
    q, v = state(model, rng)
    q = robot.assemble(q)
    J = np.array([Reference(model).closures(q, e).rate for e in np.eye(model.nv)]).T
    return q, v - np.linalg.pinv(J) @ (J @ v)


def scaled(matrix, M):
    """A matrix or vector of joint space with the entries that count alike."""
    size = np.sqrt(M.diagonal())
    return matrix / (np.outer(size, size) if np.ndim(matrix) == 2 else size)


@pytest.mark.parametrize("make", TREES)
def test_mass_matrix_and_bias_are_those_of_the_mass_points(make):
    model, rng = make(), np.random.default_rng(SEED)
    robot, reference = sl.Dynamics(model), Reference(model)
    q, v = state(model, rng)
    M, h = reference.mass_matrix(q), reference.bias(q, v)
    assert np.abs(scaled(robot.mass_matrix(q) - M, M)).max() < 1e-12
    assert np.abs(scaled(robot.bias(q, v) - h, M)).max() < 1e-12 * np.abs(scaled(h, M)).max()
    a = rng.normal(size=model.nv)
    tau = M @ a + h
    assert np.abs(scaled(robot.inverse_dynamics(q, v, a) - tau, M)).max() < 1e-12 * np.abs(scaled(tau, M)).max()
    assert robot.energy(q, v) == pytest.approx(reference.energies(q, v), rel=1e-12)


@pytest.mark.parametrize("make", TREES)
@pytest.mark.parametrize("method", ["articulated_body", "articulated_body_textbook"])
def test_forward_dynamics_solves_the_dense_equations(make, method):
    """The residual M a + h − tau: accelerations themselves have the condition number of M besides."""
    model, rng = make(), np.random.default_rng(SEED + 1)
    reference = Reference(model)
    q, v = state(model, rng)
    tau = rng.normal(size=model.nv)
    M, h = reference.mass_matrix(q), reference.bias(q, v)
    a = sl.compile(model, "forward_dynamics", method=method)(q, v, tau)
    size = max(np.abs(scaled(h, M)).max(), np.abs(np.sqrt(M.diagonal()) * a).max())
    assert np.abs(scaled(M @ a + h - tau, M)).max() < 1e-12 * size


@pytest.mark.parametrize("make", [four_bar, lambda: four_bar("fixed"), ring], ids=["four bar", "weld", "ring"])
@pytest.mark.parametrize("method", ["elimination", "dense"])
def test_closed_loops_solve_the_dense_equations(make, method):
    model, rng = make(), np.random.default_rng(SEED + 2)
    q, v = closed_state(model, rng)
    tau = rng.normal(size=model.nv)
    want = Reference(model).forward_dynamics(q, v, tau)
    found = sl.compile(model, "forward_dynamics", method=method, near=q)(q, v, tau)
    assert np.abs(found - want).max() < 1e-10 * np.abs(want).max()


def test_velocities_and_accelerations_of_nodes_are_rates_of_their_poses():
    model, rng = chain(), np.random.default_rng(SEED + 3)
    robot, reference = sl.Dynamics(model), Reference(model)
    q, v = state(model, rng)
    for body in ("boom.tip", "arm.tip", "load", "cell"):
        R, p = reference.poses(q, v)[body]
        pose = robot.pose(q, body)
        assert np.abs(pose[:3, 3] - p.value).max() < 1e-13
        assert np.abs(pose[:3, :3] - R.value).max() < 1e-13
        spin = R.rate @ R.value.T
        velocity = np.array([spin[2, 1], spin[0, 2], spin[1, 0], *p.rate])
        assert np.abs(robot.frame_velocity(q, v, body) - velocity).max() < 1e-12
        assert np.abs(robot.jacobian(q, body) @ v - velocity).max() < 1e-12
        moved = reference.poses(q + 1e-30j * v, v.astype(complex))[body][1].rate.imag / 1e-30
        assert np.abs(robot.jacobian_bias(q, v, body)[3:] - moved).max() < 1e-12 * np.abs(moved).max()


def test_momentum_of_a_free_flexible_body_is_that_of_its_points():
    b = sl.Builder("free", gravity=(0.0, 0.0, 0.0)).body("hub", 1.0, (0.1, 0.0, 0.0), (0.1, 0.1, 0.1))
    b = b.free("root", "world", "hub").body("boom", flexible=soft(modes=1, theory="timoshenko"))
    model = b.fixed("mount", "hub", "boom", (0.2, 0.0, 0.0)).build()
    robot, rng = sl.Dynamics(model), np.random.default_rng(SEED + 4)
    q, v = model.neutral(), rng.normal(size=model.nv)
    q[7:] = 0.03 * rng.normal(size=model.nq - 7)
    A = robot.centroidal_momentum_matrix(q)
    assert np.abs(A @ v - robot.momentum(q, v)).max() < 1e-12
    step = 1e-6  # the centre of mass moves with the linear momentum
    ahead, behind = (robot.center_of_mass(robot.integrate(q, s * v)) for s in (step, -step))
    assert np.abs((ahead - behind) / (2.0 * step) * model.mass - robot.momentum(q, v)[3:]).max() < 1e-8


def test_a_straight_rigid_limit_is_the_rigid_body():
    """A beam of enormous stiffness, modes at rest, has the reactions and torques of a rod of its mass and inertia."""
    beam = sl.flexible.beam(1.0, **STEEL, section=sl.flexible.circle(0.01), theory="timoshenko")
    b = sl.Builder("rigid").body("rod", flexible=beam).revolute("hinge", "world", "rod", "y")
    model = b.build()
    body = model.body("rod").inertia
    c = sl.Builder("plain").body("rod", body.mass, body.center, body.moments).revolute("hinge", "world", "rod", "y")
    plain = c.build()
    q, v, a = (np.zeros(model.nv) for _ in range(3))
    q[0], v[0], a[0] = 0.3, 2.0, -1.5
    torque = sl.Dynamics(model).inverse_dynamics(q, v, a)[0]
    assert torque == pytest.approx(sl.Dynamics(plain).inverse_dynamics(q[:1], v[:1], a[:1])[0], rel=1e-13)
    assert body.mass == pytest.approx(7800.0 * np.pi * 1e-4, rel=1e-13)
    thin, cross = body.mass / 12.0, body.mass * 1e-4 / 4.0
    assert body.moments == pytest.approx((2.0 * cross, 0.0, 0.0, thin + cross, 0.0, thin + cross), rel=1e-12)
