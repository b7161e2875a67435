"""Dynamics of trees: closed forms, identities, dense Newton-Euler, Pinocchio, and the promised bounds."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from dense_reference import Extended, Reference, solve
from frames import derivative, twist
from mechanisms import (
    EPS,
    MORE_RANDOM,
    RANDOM,
    ROBOTS,
    ZOO,
    batch,
    frame_of,
    kernel,
    model_of,
    states,
)

import spanloop as sl
from spanloop import zoo
from spanloop.algorithms.catalog import FUNCTIONS
from spanloop.model.parameters import applied

ON_TREES = [name for name, entry in FUNCTIONS.items() if not (entry.needs_closures or entry.needs_contacts)]

G = 9.81
# answers are sums of some hundred products of numbers whose size the bound is relative to
ROUNDING = 1e-13
# central differences of sixth order: 1e-12 for rates of order 1, more for the wild ones of random states
DIFFERENCES = 1e-8

NAMES = (*ZOO, *ROBOTS, *RANDOM)
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in MORE_RANDOM]
every_model = pytest.mark.parametrize("name", [*NAMES, *SLOW])
some_models = pytest.mark.parametrize("name", [*ZOO, *RANDOM[:12]])

# these are asked of machine code, the others on floats, which test_compiler.py ties to machine code
COMPILED = ("forward_dynamics", "inverse_dynamics", "mass_matrix")


def ask(name, function, *inputs, **options):
    """The answer of a kernel, machine code for the main functions and Python's floats for the others."""
    target = "cpu" if function in COMPILED and name not in MORE_RANDOM else "python"
    return kernel(name, function, target=target, **options)(*inputs)


def near(found, expected, bound=ROUNDING, scale=0.0):
    """Equal to `bound` of the largest expected number (or of `scale`, where that is larger)."""
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    assert found.shape == expected.shape
    size = max(float(np.abs(expected).max(initial=0.0)), scale)
    np.testing.assert_allclose(found, expected, rtol=0, atol=bound * size + 1e-300)


def norm(x):
    return np.linalg.norm(x, 2) if np.size(x) else 0.0


# ---- closed form


@pytest.mark.parametrize("angle", [0.0, 0.3, -2.0, math.pi])
def test_a_hanging_rod_swings_as_its_formula_says(angle):
    """(m l²/3) a + m g (l/2) sin q = tau."""
    robot = sl.Dynamics(zoo.pendulum(length=0.7, mass=2.0))
    inertia, weight = 2.0 * 0.7**2 / 3.0, 2.0 * G * 0.35
    q, v, tau = np.array([angle]), np.array([1.7]), np.array([0.4])
    assert robot.forward_dynamics(q, v, tau)[0] == pytest.approx((0.4 - weight * math.sin(angle)) / inertia)
    assert robot.gravity_torques(q)[0] == pytest.approx(weight * math.sin(angle), abs=1e-15)
    assert robot.mass_matrix(q)[0, 0] == pytest.approx(inertia)
    assert robot.mass_matrix_inverse(q)[0, 0] == pytest.approx(1.0 / inertia)
    kinetic, potential = robot.energy(q, v)
    assert kinetic == pytest.approx(0.5 * inertia * 1.7**2)
    assert potential == pytest.approx(-weight * math.cos(angle))


def test_two_rods_have_the_mass_matrix_of_the_textbook():
    """l = m = 1: M₁₁ = 5/3 + cos q₂, M₁₂ = 1/3 + cos(q₂)/2, M₂₂ = 1/3; h₁ = −sin(q₂)/2 (2 v₁ v₂ + v₂²)."""
    model = zoo.pendulum(2).with_gravity((0.0, 0.0, 0.0))
    robot = sl.Dynamics(model)
    q, v = np.array([0.4, 1.1]), np.array([0.7, -1.3])
    c, s = math.cos(1.1), math.sin(1.1)
    near(robot.mass_matrix(q), [[5 / 3 + c, 1 / 3 + c / 2], [1 / 3 + c / 2, 1 / 3]])
    near(robot.bias(q, v), [-s / 2 * (2 * v[0] * v[1] + v[1] ** 2), s / 2 * v[0] ** 2])


def test_a_free_body_falls_and_tumbles_as_euler_says():
    """I ω' = −ω × I ω about the mass centre; the origin, here the mass centre, falls with g."""
    b = sl.Builder("brick").body("brick", 3.0, inertia=(0.02, 0.05, 0.06)).free("root", "world", "brick")
    robot = sl.Dynamics(b.build())
    q, v = robot.model.random_state(1)
    a = robot.forward_dynamics(q, v, np.zeros(6))
    I = np.diag((0.02, 0.05, 0.06))
    near(a[:3], np.linalg.solve(I, -np.cross(v[:3], I @ v[:3])))
    R = robot.pose(q, "brick")[:3, :3]
    # v is in body axes, so its rate lacks ω × u
    near(R @ (a[3:] + np.cross(v[:3], v[3:])), [0.0, 0.0, -G])


def test_a_nut_on_a_vertical_screw_falls_slower():
    """(I + m p²) a = −m g p."""
    b = sl.Builder("nut").body("nut", 2.0, inertia=(0.02, 0.02, 0.03))
    b.helical("screw", "world", "nut", "z", pitch=0.1)
    robot = sl.Dynamics(b.build())
    a = robot.forward_dynamics(np.array([0.3]), np.array([4.0]), np.zeros(1))
    assert a[0] == pytest.approx(-2.0 * G * 0.1 / (0.03 + 2.0 * 0.1**2))


def test_a_spring_and_a_damper_on_a_slider_give_the_oscillator():
    """m a = −k (q − rest) − d v + tau."""
    b = sl.Builder("oscillator", gravity=(0.0, 0.0, 0.0)).body("mass", 2.0, inertia=(1.0, 1.0, 1.0))
    b.prismatic("slide", "world", "mass", "x", stiffness=30.0, damping=0.5, rest=(0.2,), armature=1.0)
    robot = sl.Dynamics(b.build())
    q, v, tau = np.array([0.5]), np.array([-1.2]), np.array([0.7])
    force = -30.0 * 0.3 + 0.5 * 1.2 + 0.7
    assert robot.forward_dynamics(q, v, tau)[0] == pytest.approx(force / 3.0)
    assert robot.bias(q, v)[0] == pytest.approx(30.0 * 0.3 - 0.5 * 1.2)
    near(robot.energy(q, v), [0.5 * 3.0 * 1.44, 0.5 * 30.0 * 0.09])
    assert robot.gravity_torques(q)[0] == 0.0


# ---- the bounds that we promise


@every_model
def test_forward_dynamics_satisfies_the_equations_of_motion(name):
    """‖M a + h − tau‖ ≤ 1e-13 (‖M‖‖a‖ + ‖h‖ + ‖tau‖), M and h of the dense reference."""
    for q, v, tau in states(model_of(name), 2, seed=1):
        reference = Reference(model_of(name), q, v)
        M, h = reference.mass_matrix(), reference.bias()
        a = ask(name, "forward_dynamics", q, v, tau)
        assert norm(M @ a + h - tau) <= 1e-13 * (norm(M) * norm(a) + norm(h) + norm(tau))


@every_model
def test_inverse_dynamics_undoes_forward_dynamics(name):
    """The same bound with our own inverse dynamics; and back again, to the conditioning of M."""
    for q, v, tau in states(model_of(name), 2, seed=2):
        reference = Reference(model_of(name), q, v)
        M, h = reference.mass_matrix(), reference.bias()
        a = ask(name, "forward_dynamics", q, v, tau)
        residual = norm(ask(name, "inverse_dynamics", q, v, a) - tau)
        assert residual <= 1e-13 * (norm(M) * norm(a) + norm(h) + norm(tau))
        again = ask(name, "forward_dynamics", q, v, ask(name, "inverse_dynamics", q, v, tau))
        rounding = 100 * EPS * np.linalg.cond(M)
        assert norm(again - tau) <= rounding * (norm(tau) + norm(h) / norm(M))


EXACT = ["puma", "panda", "chain8_random", "chain_universal", "chain_free", "quadruped"]


@pytest.mark.parametrize("name", EXACT)
def test_accelerations_are_right_to_the_conditioning_of_the_mass_matrix(name):
    """‖a − a₅₀‖ ≤ 100 eps cond₂(M) ‖a₅₀‖, a₅₀ computed with 50 digits."""
    model = model_of(name)
    assert not any(any(j.stiffness) for j in model.joints)  # a spring would need a logarithm of 50 digits
    for q, v, tau in states(model, 1, seed=3):
        reference = Reference(model, q, v, Extended)
        M, h = reference.mass_matrix(), reference.bias()
        exact = solve(M, np.array([Extended(x) for x in tau]) - h).astype(float)
        M, h = M.astype(float), h.astype(float)
        a = ask(name, "forward_dynamics", q, v, tau)
        assert norm(a - exact) <= 100 * EPS * np.linalg.cond(M) * norm(exact)
        near(ask(name, "mass_matrix", q), M, 1e-14)
        near(ask(name, "bias", q, v), h, 1e-13, scale=norm(M))
    assert mpmath.mp.dps == 50


def test_a_long_chain_stays_within_the_bound():
    """64 bodies, where the bound is promised to end."""
    model = zoo.chain(64)
    robot = sl.Dynamics(model)
    q, v, tau = next(states(model, 1, seed=4))
    reference = Reference(model, q, v)
    M, h = reference.mass_matrix(), reference.bias()
    a = robot.forward_dynamics(q, v, tau)
    scale = norm(M) * norm(a) + norm(h) + norm(tau)
    assert norm(M @ a + h - tau) <= 1e-13 * scale
    assert norm(robot.inverse_dynamics(q, v, a) - tau) <= 1e-13 * scale


# ---- identities


@every_model
def test_the_mass_matrix_is_symmetric_and_positive(name):
    q, _, _ = next(states(model_of(name), 1, seed=5))
    M = ask(name, "mass_matrix", q)
    assert (M == M.T).all()
    assert np.linalg.eigvalsh(M)[0] > 0.0


@every_model
def test_the_mass_matrix_times_its_inverse_is_one(name):
    q, _, _ = next(states(model_of(name), 1, seed=6))
    M, inverse = ask(name, "mass_matrix", q), ask(name, "mass_matrix_inverse", q)
    assert (inverse == inverse.T).all()
    assert norm(M @ inverse - np.eye(len(M))) <= 100 * EPS * np.linalg.cond(M)


@every_model
def test_torque_is_mass_matrix_times_acceleration_plus_bias(name):
    for q, v, a in states(model_of(name), 1, seed=7):
        M, h = ask(name, "mass_matrix", q), ask(name, "bias", q, v)
        expected = M @ a + h
        near(ask(name, "inverse_dynamics", q, v, a), expected, scale=norm(M) * norm(a) + norm(h))


@every_model
def test_kinetic_energy_is_half_the_velocity_in_the_mass_matrix(name):
    for q, v, _ in states(model_of(name), 1, seed=8):
        near(ask(name, "energy", q, v)[0], 0.5 * v @ ask(name, "mass_matrix", q) @ v)


def energy_rate(name, q, v, a):
    """dE/dt along the motion q ⊕ (v t), v + a t."""

    def energy(t):
        return ask(name, "energy", ask(name, "integrate", q, t * v), v + t * a).sum()

    return derivative(energy)


@every_model
def test_power_equals_rate_of_energy(name):
    """tau·v = dE/dt + what the dampers take."""
    model = model_of(name)
    damping = np.array([x for j in model.joints for x in j.damping])
    for q, v, tau in states(model, 1, seed=9):
        v, tau = 0.3 * v, 0.3 * tau
        a = ask(name, "forward_dynamics", q, v, tau)
        power = tau @ v - damping @ (v * v)
        kinetic = ask(name, "energy", q, v)[0]
        size = abs(power) + kinetic * (1.0 + norm(a)) + 1.0
        assert abs(energy_rate(name, q, v, a) - power) <= DIFFERENCES * size


@pytest.mark.parametrize("kind", ["spherical", "free", "planar"])
@pytest.mark.parametrize("even", [True, False], ids=["equal stiffness", "unequal stiffness"])
def test_a_spring_on_a_turning_joint_has_the_energy_it_says(kind, even):
    """The potential's rate is minus the spring's power: a loss-free mechanism keeps its energy."""
    n = {"spherical": 3, "free": 6, "planar": 3}[kind]
    stiffness = 4.0 if even else [1.0 + k for k in range(n)]
    b = sl.Builder("spring").body("body", 1.0, (0.1, 0.0, 0.05), (0.02, 0.03, 0.04))
    b.joint("joint", kind, "world", "body", stiffness=stiffness)
    robot = sl.Dynamics(b.build(), target="python")
    for seed in range(3):
        q, v = robot.model.random_state(seed)
        a = robot.forward_dynamics(q, v, np.zeros(n))

        def energy(t, q=q, v=v, a=a):
            return robot.energy(robot.integrate(q, t * v), v + t * a).sum()

        assert abs(derivative(energy)) <= DIFFERENCES * (1.0 + norm(a))


@every_model
def test_gravity_is_the_rate_of_potential_energy(name):
    """g·v = dU/dt, springs apart."""
    model = model_of(name)
    for q, v, _ in states(model, 1, seed=10):
        held = ask(name, "gravity_torques", q) @ v

        def potential(t, q=q, v=v):
            moved = ask(name, "integrate", q, t * v)
            return Reference(model.without_losses(), moved).energy()[1]

        assert abs(derivative(potential) - held) <= DIFFERENCES * (1.0 + abs(held))


@every_model
def test_the_jacobian_of_the_mass_centre_gives_linear_momentum_per_mass(name):
    model = model_of(name)
    mass = sum(b.inertia.mass for b in Reference(model, model.neutral()).moving)
    for q, v, _ in states(model, 1, seed=13):
        near(mass * (ask(name, "center_of_mass_jacobian", q) @ v), ask(name, "momentum", q, v)[3:], scale=mass)


@every_model
def test_linear_momentum_is_mass_times_velocity_of_the_mass_centre(name):
    model = model_of(name)
    mass = sum(b.inertia.mass for b in Reference(model, model.neutral()).moving)
    for q, v, _ in states(model, 1, seed=11):

        def center(t, q=q, v=v):
            return ask(name, "center_of_mass", ask(name, "integrate", q, t * v))

        near(ask(name, "momentum", q, v)[3:] / mass, derivative(center), DIFFERENCES, scale=1.0)


def test_a_floating_machine_keeps_its_momentum_without_gravity():
    """dp/dt = 0 for any torques inside: about the mass centre and in world axes."""
    robot = sl.Dynamics(zoo.quadruped().with_gravity((0.0, 0.0, 0.0)), target="python")
    q, v, tau = next(states(robot.model, 1, seed=12))
    tau[:6] = 0.0
    a = robot.forward_dynamics(q, v, tau)
    rate = derivative(lambda t: robot.momentum(robot.integrate(q, t * v), v + t * a))
    near(rate, np.zeros(6), DIFFERENCES, scale=norm(a))


@every_model
def test_the_jacobian_gives_the_velocity_of_the_frame(name):
    model = model_of(name)
    frame = frame_of(model)
    for q, v, _ in states(model, 1, seed=13):

        def pose(t, q=q, v=v):
            return ask(name, "pose", ask(name, "integrate", q, t * v), frame=frame)

        moved = twist(pose)
        R = pose(0.0)[:3, :3]
        expected = np.concatenate((R @ moved[:3], R @ moved[3:]))
        near(ask(name, "jacobian", q, frame=frame) @ v, expected, DIFFERENCES, scale=1.0)
        own = ask(name, "jacobian", q, frame=frame, expressed_in=frame) @ v
        near(own, moved, DIFFERENCES, scale=1.0)


@every_model
def test_the_jacobian_bias_is_the_rate_of_the_frames_velocity(name):
    """d(J v)/dt at constant v: the classical acceleration."""
    model = model_of(name)
    frame = frame_of(model)
    for q, v, _ in states(model, 1, seed=14):
        v = 0.5 * v

        def velocity(t, q=q, v=v):
            return ask(name, "jacobian", ask(name, "integrate", q, t * v), frame=frame) @ v

        found = ask(name, "jacobian_bias", q, v, frame=frame)
        near(found, derivative(velocity), DIFFERENCES, scale=1.0 + v @ v)
        R = ask(name, "pose", q, frame=frame)[:3, :3]
        own = ask(name, "jacobian_bias", q, v, frame=frame, expressed_in=frame)
        near(own, np.concatenate((R.T @ found[:3], R.T @ found[3:])), scale=1.0)


@some_models
def test_external_forces_act_as_the_transposed_jacobian_says(name):
    """tau(forces) = tau − Σ Jᵀ f, on every body at once, fixed ones included."""
    model = model_of(name)
    rng = np.random.default_rng(15)
    bodies = tuple(b.name for b in model.bodies)
    q, v, a = next(states(model, 1, seed=15))
    f = rng.normal(size=(len(bodies), 6))
    expected = ask(name, "inverse_dynamics", q, v, a)
    for body, six in zip(bodies, f, strict=True):
        expected = expected - ask(name, "jacobian", q, frame=body).T @ six
    tau = kernel(name, "inverse_dynamics", target="python", forces=bodies)(q, v, a, f.ravel())
    size = norm(expected) + norm(f)
    near(tau, expected, scale=size)
    h = kernel(name, "bias", target="python", forces=bodies)(q, v, f.ravel())
    near(h, Reference(model, q, v).bias(dict(zip(bodies, f, strict=True))), scale=size)
    again = kernel(name, "forward_dynamics", target="python", forces=bodies)(q, v, tau, f.ravel())
    M = ask(name, "mass_matrix", q)
    assert norm(again - a) <= 100 * EPS * np.linalg.cond(M) * (norm(a) + size / norm(M))


@pytest.mark.slow
def test_forces_by_name_broadcast_over_a_batch():
    robot = sl.Dynamics(model_of("quadruped"))
    q, v, tau = batch(robot.model, 5, seed=16)
    rng = np.random.default_rng(16)
    one, many = rng.normal(size=6), rng.normal(size=(5, 6))
    a = robot.forward_dynamics(q, v, tau, forces={"fl_shank": one, "trunk": many})
    for i in range(5):
        alone = robot.forward_dynamics(q[i], v[i], tau[i], forces={"trunk": many[i], "fl_shank": one})
        near(a[i], alone)
    assert (robot.forward_dynamics(q, v, tau, forces={}) == robot.forward_dynamics(q, v, tau)).all()


@some_models
@pytest.mark.parametrize("method", ["articulated_body", "composite_body"])
def test_a_driven_joint_accelerates_as_told(name, method):
    """Of forward dynamics' tau a driven joint's entry is its a; inverse dynamics confirms all the others."""
    model = model_of(name)
    rng = np.random.default_rng(17)
    moving = [j.name for j in model.joints if j.kind.nv]
    driven = model.drive(*rng.choice(moving, size=max(1, len(moving) // 3), replace=False))
    k = sl.compile(driven, "forward_dynamics", method=method, target="python")
    q, v, given = next(states(model, 1, seed=17))
    told = np.concatenate([np.full(j.kind.nv, j.driven) for j in driven.joints]).astype(bool)
    a = k(q, v, given)
    assert (a[told] == given[told]).all()
    tau = ask(name, "inverse_dynamics", q, v, a)
    M = ask(name, "mass_matrix", q)
    rounding = 100 * EPS * np.linalg.cond(M)
    assert norm(tau[~told] - given[~told]) <= rounding * (norm(M) * norm(a) + norm(ask(name, "bias", q, v)))


def test_everything_driven_gives_back_what_was_told():
    model = model_of("puma")
    robot = sl.Dynamics(model.drive(*[j.name for j in model.joints]))
    q, v, a = next(states(model, 1, seed=18))
    assert (robot.forward_dynamics(q, v, a) == a).all()


def test_armature_stands_on_the_diagonal_of_the_mass_matrix():
    model = model_of("quadruped")
    q, _, _ = next(states(model, 1, seed=19))
    armature = np.array([x for j in model.joints for x in j.armature])
    assert armature.any()
    bare = sl.Dynamics(model.without_losses(), target="python").mass_matrix(q)
    M = sl.Dynamics(model, target="python").mass_matrix(q)
    near(M - bare, np.diag(armature), 1e-14, scale=norm(bare))


@some_models
def test_dampers_and_springs_are_torques_in_the_bias(name):
    model = model_of(name)
    q, v, _ = next(states(model, 1, seed=20))
    bare = sl.compile(model.without_losses(), "bias", target="python")(q, v)
    near(ask(name, "bias", q, v), bare - Reference(model, q, v).passive(), scale=norm(bare))


@every_model
def test_composite_and_articulated_bodies_agree(name):
    for q, v, tau in states(model_of(name), 1, seed=21):
        a = ask(name, "forward_dynamics", q, v, tau)
        other = kernel(name, "forward_dynamics", method="composite_body", target="python")(q, v, tau)
        M = ask(name, "mass_matrix", q)
        assert norm(a - other) <= 100 * EPS * np.linalg.cond(M) * (norm(a) + norm(tau) / norm(M))


@every_model
def test_integrate_and_difference_are_inverse(name):
    model = model_of(name)
    if any(j.kind.name == "general" for j in model.joints):
        pytest.skip("a general joint has no difference")
    for q, v, _ in states(model, 2, seed=22):
        delta = np.clip(v, -1.5, 1.5)  # rotations below pi
        moved = ask(name, "integrate", q, delta)
        near(ask(name, "difference", q, moved), delta, 1e-12, scale=1.0)
        near(ask(name, "integrate", q, np.zeros(model.nv)), q, 1e-15, scale=1.0)
        half = ask(name, "integrate", ask(name, "integrate", q, 0.5 * delta), 0.5 * delta)
        near(ask(name, "difference", half, moved), np.zeros(model.nv), 1e-12, scale=1.0)


# ---- an independent reference


@every_model
def test_every_answer_is_that_of_dense_newton_and_euler(name):
    model = model_of(name)
    frame = frame_of(model)
    for q, v, a in states(model, 2, seed=23):
        reference = Reference(model, q, v)
        M, h = reference.mass_matrix(), reference.bias()
        size = norm(M) * (norm(a) + 1.0) + norm(h)
        near(ask(name, "mass_matrix", q), M)
        near(ask(name, "bias", q, v), h, scale=size)
        near(ask(name, "gravity_torques", q), reference.gravity(), scale=norm(M))
        near(ask(name, "inverse_dynamics", q, v, a), M @ a + h, scale=size)
        near(ask(name, "energy", q, v), reference.energy())
        near(ask(name, "momentum", q, v), reference.momentum())
        near(ask(name, "center_of_mass", q), reference.center_of_mass(), scale=1.0)
        near(ask(name, "pose", q, frame=frame), reference.pose(frame))
        near(ask(name, "jacobian", q, frame=frame), reference.jacobian(frame), scale=1.0)
        near(ask(name, "jacobian_bias", q, v, frame=frame), reference.jacobian_bias(frame), scale=1.0 + v @ v)


@functools.cache
def peer_of(name):
    """The mechanism without losses but armature, as Pinocchio can have it, and Pinocchio's."""
    pinocchio_peer = pytest.importorskip("pinocchio_peer")
    model = model_of(name)
    if any(j.kind.name == "general" for j in model.joints):
        number = int(name[6:]) if name.startswith("random") else 0
        model = zoo.random_model(number, kinds=pinocchio_peer.KINDS)
    model = pinocchio_peer.with_known_kinds(model)
    joints = (replace(j, damping=(), friction=(), stiffness=()) for j in model.joints)
    model = replace(model, joints=tuple(joints))
    target = "python" if name.startswith("random") else "cpu"
    return model, pinocchio_peer.Peer(model), sl.Dynamics(model, target=target)


@every_model
def test_every_answer_is_pinocchios(name):
    model, peer, robot = peer_of(name)
    frame = frame_of(model)
    for q, v, x in states(model, 2, seed=24):
        M, h = peer.mass_matrix(q), peer.bias(q, v)
        rounding = 100 * EPS * np.linalg.cond(M)
        size = norm(M) * (norm(x) + 1.0) + norm(h)
        a = peer.forward_dynamics(q, v, x)
        assert norm(robot.forward_dynamics(q, v, x) - a) <= rounding * norm(a)
        near(robot.inverse_dynamics(q, v, x), peer.inverse_dynamics(q, v, x), scale=size)
        near(robot.bias(q, v), h, scale=size)
        near(robot.gravity_torques(q), peer.gravity(q), scale=norm(M))
        near(robot.mass_matrix(q), M)
        near(robot.mass_matrix_inverse(q), peer.mass_matrix_inverse(q), rounding)
        near(robot.energy(q, v), peer.energy(q, v))
        near(robot.momentum(q, v), peer.momentum(q, v), scale=norm(M))
        near(robot.center_of_mass(q), peer.center_of_mass(q), scale=1.0)
        near(robot.pose(q, frame), peer.pose(q, frame))
        near(robot.jacobian(q, frame), peer.jacobian(q, frame), scale=1.0)
        near(robot.jacobian_bias(q, v, frame), peer.jacobian_bias(q, v, frame), scale=1.0 + v @ v)
        moment = norm(M) * (1.0 + v @ v)
        near(robot.center_of_mass_jacobian(q), peer.center_of_mass_jacobian(q), scale=1.0)
        near(robot.centroidal_momentum_matrix(q), peer.centroidal_momentum_matrix(q, v), scale=norm(M))
        near(robot.centroidal_momentum_bias(q, v), peer.centroidal_momentum_bias(q, v), scale=moment)
        velocity, classical, spatial, R = peer.frame_motion(q, v, x, frame)
        near(robot.frame_velocity(q, v, frame), velocity, scale=1.0 + norm(v))
        near(robot.frame_acceleration(q, v, x, frame), classical, scale=1.0 + norm(x) + v @ v)
        near(robot.frame_acceleration(q, v, x, frame, spatial=True), spatial, scale=1.0 + norm(x) + v @ v)
        local = robot.frame_velocity(q, v, frame, expressed_in=frame)
        near(np.concatenate((R @ local[:3], R @ local[3:])), velocity, scale=1.0 + norm(v))
        moved = robot.integrate(q, v)
        # Pinocchio's logarithm in the plane loses eps/angle², which these states keep below 1e-10
        near(peer.difference(peer.integrate(q, v), moved), np.zeros(model.nv), 1e-10, scale=1.0)
        near(robot.difference(q, moved), peer.difference(q, moved), 1e-10, scale=1.0)


@pytest.mark.parametrize("name", ["quadruped", "puma", "chain_planar", *RANDOM[:10]])
def test_external_forces_act_as_pinocchios(name):
    model, peer, robot = peer_of(name)
    rng = np.random.default_rng(25)
    q, v, x = next(states(model, 1, seed=25))
    forces = {b.name: rng.normal(size=6) for b in model.bodies}
    M = peer.mass_matrix(q)
    tau = peer.inverse_dynamics(q, v, x, forces)
    near(robot.inverse_dynamics(q, v, x, forces=forces), tau, scale=norm(M) * norm(x))
    a = peer.forward_dynamics(q, v, x, forces)
    found = robot.forward_dynamics(q, v, x, forces=forces)
    assert norm(found - a) <= 100 * EPS * np.linalg.cond(M) * norm(a)


@pytest.mark.parametrize("name", ROBOTS)
def test_a_loaded_robot_is_the_one_that_pinocchio_loads(name):
    """Both from the same file. Ours is snapped: what is within 1e-9 of a right angle is made exact."""
    pin = pytest.importorskip("pinocchio")
    from mechanisms import _FILES, _FINGERS, robot_file

    file, base = _FILES[name]
    root = [pin.JointModelFreeFlyer()] if base == "free" else []
    theirs = pin.buildModelFromUrdf(str(robot_file(file)), *root)
    if name == "panda":
        theirs = pin.buildReducedModel(theirs, [theirs.getJointId(f) for f in _FINGERS], pin.neutral(theirs))
    theirs.armature = np.zeros(theirs.nv)
    model = model_of(name)
    order = sl.PinocchioOrder(model, list(theirs.names), list(theirs.nqs))
    for q, v, tau in states(model, 2, seed=26):
        args = (order.q_to(q), order.v_to(v), order.v_to(tau))
        expected = order.v_from(pin.aba(theirs, theirs.createData(), *args))
        near(ask(name, "forward_dynamics", q, v, tau), expected, 1e-7)


# ---- regrouping of base parameters


def question(function, model):
    """The inputs and options of a function at a random state; forces where it takes them."""
    q, v, x = next(states(model, 1, seed=27))
    entry = FUNCTIONS[function]
    options, more = {}, ()
    if "frame" in entry.options:
        options["frame"] = frame_of(model)
    if "frames" in entry.options:
        options["frames"] = (frame_of(model), model.bodies[0].name)
    if "loaded" in entry.options:
        options["forces"] = (model.bodies[0].name, model.bodies[-1].name)
        more = (np.random.default_rng(28).normal(size=12),)
    if "points" in entry.options:
        options["points"] = (model.bodies[0].name, model.bodies[-1].name)
    inputs = {
        "integrate": (q, x),
        "difference": (q, next(states(model, 1, seed=28))[0]),
    }.get(function)
    if inputs is None:
        names = sl.compile(model, function, target="python", **options).inputs
        known = {"q": q, "v": v, "a": x, "tau": x, "error": np.zeros(0), "push": np.linspace(-1.0, 2.0, 12)}
        known |= {n: np.linspace(-1.0, 2.0, size) for n, size in names if n == "impulse"}
        inputs = tuple(known[n] for n, _ in names if n in known)
    return inputs + more, options


# what solves with the mass matrix: errors grow with its condition
SOLVING = (
    "forward_dynamics",
    "mass_matrix_inverse",
    "operational_inverse_inertia",
    "force_response",
    "impulse_response",
)
REGROUPED = ["puma", "quadruped", "star", "chain_universal", "chain_planar", *RANDOM[:8]]


@pytest.mark.parametrize("function", ON_TREES)
@pytest.mark.parametrize("name", REGROUPED)
def test_regrouped_inertias_do_not_show(name, function):
    """Armature, springs, forces and joints of every kind are among the cases."""
    model = model_of(name)
    if function == "difference" and any(j.kind.name == "general" for j in model.joints):
        pytest.skip("a general joint has no difference")
    inputs, options = question(function, model)
    compiled = name in ("puma", "quadruped", "star") and function not in (
        "closure_error",
        "closure_jacobian",
        "closure_bias",
    )
    target = "cpu" if compiled else "python"
    kernels = [sl.compile(model, function, target=target, regroup=r, **options) for r in (True, False)]
    found, expected = (k(*inputs) for k in kernels)
    M = ask(name, "mass_matrix", inputs[0])
    solving = function in SOLVING
    bound = 100 * EPS * np.linalg.cond(M) if solving else ROUNDING
    near(found, expected, bound, scale=0.0 if solving else norm(M))


def test_regrouping_saves_operations():
    for function in ("inverse_dynamics", "forward_dynamics", "mass_matrix"):
        few, many = (sl.compile(zoo.puma(), function, regroup=r).operations for r in (True, False))
        assert few.multiplications < many.multiplications
        assert few.additions < many.additions


def test_the_puma_takes_as_few_operations_as_the_best_published():
    """Inverse 175 multiplications, 142 additions; forward 372, 299; a division is a multiplication here."""
    inverse = sl.compile(zoo.puma(), "inverse_dynamics").operations
    assert inverse.multiplications + inverse.divisions <= 175
    assert inverse.additions <= 142
    forward = sl.compile(zoo.puma(), "forward_dynamics").operations
    assert forward.multiplications + forward.divisions <= 372
    assert forward.additions <= 299


# ---- live parameters


def changed_parameters(model, rng):
    """Every number of the model changed; losses where there were none, inertias still possible."""
    values = model.parameters().values * rng.uniform(0.9, 1.1)
    for k, name in enumerate(model.parameters().names):
        last = name.split(".")[1]
        if last in ("damping", "armature", "stiffness"):
            values[k] = rng.uniform(0.0, 0.1) if "general" not in kind_of(model, name) else 0.0
        elif last in ("position", "center") or name.startswith("gravity"):
            values[k] += rng.uniform(-0.05, 0.05)
    return values


def kind_of(model, parameter):
    owner = parameter.split(".")[0]
    return next((j.kind.name for j in model.joints if j.name == owner), "")


LIVE = ("puma", "quadruped", "chain_universal", "chain_planar", "random3", "random5", "random8")


@pytest.mark.parametrize("function", ON_TREES)
@pytest.mark.parametrize("name", LIVE)
def test_live_parameters_give_what_a_recompiled_model_gives(name, function):
    model = model_of(name)
    if any(j.kind.name == "general" for j in model.joints) and function == "difference":
        pytest.skip("a general joint has no difference")
    rng = np.random.default_rng(29)
    inputs, options = question(function, model)
    target = "cpu" if name in ("puma", "random3") else "python"
    k = sl.compile(model, function, parameters="live", target=target, **options)
    own = model.parameters().values
    sets = np.array([own, changed_parameters(model, rng), changed_parameters(model, rng)])
    many = k(*(np.broadcast_to(x, (3, len(x))) for x in inputs), sets)  # one set a state
    for p, found in zip(sets, many, strict=True):
        baked = sl.compile(applied(model, p), function, target="python", **options)(*inputs)
        solving = function in SOLVING
        M = sl.compile(applied(model, p), "mass_matrix", target="python")(inputs[0])
        bound = 100 * EPS * np.linalg.cond(M) if solving else ROUNDING
        near(found, baked, bound, scale=0.0 if solving else norm(M))
        near(k(*inputs, p), baked, bound, scale=0.0 if solving else norm(M))  # one set for one state
    shared = k(*(np.broadcast_to(x, (4, len(x))) for x in inputs), sets[1])  # one set for all
    near(shared, np.broadcast_to(many[1], shared.shape), 1e-12)


@pytest.mark.parametrize("function", [f for f in ON_TREES if f != "difference"])
def test_live_parameters_work_with_a_general_joint(function):
    """Its stiffness is always zero: a spring on it is refused."""
    model = model_of("chain_general")
    inputs, options = question(function, model)
    k = sl.compile(model, function, parameters="live", **options)
    baked = sl.compile(model, function, target="python", **options)
    near(k(*inputs, model.parameters().values), baked(*inputs), 1e-11)
