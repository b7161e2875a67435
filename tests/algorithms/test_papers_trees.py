"""The papers' open-chain methods: bounds, Pinocchio, dense matrices, constraint forces, growth of the count."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
from dense_reference import Reference
from frames import derivative
from mechanisms import EPS, RANDOM, ROBOTS, ZOO, model_of, states
from random_trees import CARRIED, tree, with_bouquet

import spanloop as sl
from spanloop import zoo
from spanloop.algorithms.catalog import FUNCTIONS
from spanloop.algorithms.papers.saha.complement_matrices import decoupled_matrices
from spanloop.algorithms.papers.yamane_nakamura.split_links import split
from spanloop.errors import StateError, UnsupportedError
from spanloop.joints import KINDS
from spanloop.kernels import KernelSpec
from spanloop.model.parameters import applied
from spanloop.sweeps.tested_pivots import IN_MATRIX
from spanloop.topology import mechanism
from spanloop.zoo.random_models import random_kind

FORWARD = tuple(FUNCTIONS["forward_dynamics"].methods)
VIRTUAL_WORK = ("virtual_work", "virtual_work_unsplit")
# thin rods, whose inertia has no inverse
RODS = ("pendulum", "pendulum5")
# answers are sums of some hundred products of numbers whose size the bound is relative to
ROUNDING = 1e-13

FEW, ALL = 12, 200
every_tree = pytest.mark.parametrize(
    "seed", [pytest.param(s, marks=[pytest.mark.slow] if s >= FEW else []) for s in range(ALL)]
)
every_method = pytest.mark.parametrize("method", FORWARD)
KINDS_OF_CHAINS = tuple(n for n in ZOO if n.startswith("chain_"))
COMPILED = [(n, m) for m in FORWARD[2:] for n in ("puma", "random3")] + [
    (n, "virtual_work") for n in ("star", "random0", "random5", *KINDS_OF_CHAINS)
]
zoo_and_random = pytest.mark.parametrize("name", [n for n in (*ZOO, *RANDOM[:12]) if n not in RODS])


def norm(x):
    return np.linalg.norm(x, 2) if np.size(x) else 0.0


def near(found, expected, bound=ROUNDING, scale=0.0):
    size = max(float(np.abs(expected).max(initial=0.0)), scale)
    np.testing.assert_allclose(found, expected, rtol=0, atol=bound * size + 1e-300)


def ask(model, function, *inputs, **options):
    return sl.compile(model, function, target="python", **options)(*inputs)


# ---- the bounds that we promise


@every_tree
def test_every_method_satisfies_the_equations_of_motion_and_agrees(seed):
    """‖M a + h − tau‖ ≤ 1e-13 (‖M‖‖a‖ + ‖h‖ + ‖tau‖), M and h dense; ‖a − a'‖ ≤ 100 eps cond(M) of the sizes."""
    model = tree(seed)
    q, v, tau = next(states(model, 1, seed))
    reference = Reference(model, q, v)
    M, h = reference.mass_matrix(), reference.bias()
    known = ask(model, "forward_dynamics", q, v, tau)
    rounding = 100 * EPS * np.linalg.cond(M) * (norm(known) + norm(tau) / norm(M))
    smallest = (1.0 / (np.diag(np.linalg.inv(M)) * np.diag(M))).min()
    for method in FORWARD:
        if method in ("composite_body", "unit_vector") and smallest < IN_MATRIX:
            continue  # may be refused (decision 24)
        a = ask(model, "forward_dynamics", q, v, tau, method=method)
        residual = norm(M @ a + h - tau) / (norm(M) * norm(a) + norm(h) + norm(tau))
        assert residual <= 1e-13, f"{method}: {residual:.1e}"
        assert norm(a - known) <= rounding, method


@pytest.mark.slow
def test_the_trees_are_as_the_goal_has_them():
    """1 to 60 bodies, every kind of joint, floating ones, and links with twelve children."""
    models = [tree(s) for s in range(ALL)]
    counts = [len(m.bodies) for m in models]
    assert min(counts) <= 2
    assert max(counts) == 60
    assert {j.kind.name for m in models for j in m.joints} == set(KINDS)
    assert sum(m.joints[0].kind.name == "free" for m in models) >= ALL // 3
    carried = [max(sum(j.parent == b.name for j in m.joints) for b in m.bodies) for m in models]
    assert max(carried) >= CARRIED


@pytest.mark.parametrize(("name", "method"), COMPILED)
def test_machine_code_says_what_the_steps_say(name, method):
    """One state and a batch, with a force on the last body."""
    model = model_of(name)
    body = model.bodies[-1].name
    q, v, tau = next(states(model, 1, seed=31))
    force = np.linspace(-1.0, 1.0, 6)
    expected = ask(model, "forward_dynamics", q, v, tau, force, method=method, forces=(body,))
    k = sl.compile(model, "forward_dynamics", method=method, forces=(body,))
    bound = 100 * EPS * np.linalg.cond(ask(model, "mass_matrix", q))
    near(k(q, v, tau, force), expected, bound)
    near(k(np.stack([q] * 9), v, tau, force), np.stack([expected] * 9), bound)


@every_method
@pytest.mark.parametrize("seed", range(0, 8))
def test_forces_from_outside_act_as_in_the_dense_equations(seed, method):
    model = tree(seed)
    names = (model.bodies[0].name, model.bodies[-1].name)
    q, v, tau = next(states(model, 1, seed=32))
    f = np.random.default_rng(seed).normal(size=(2, 6))
    reference = Reference(model, q, v)
    loads = {names[0]: f[0]}
    loads[names[1]] = loads.get(names[1], 0.0) + f[1]
    M, h = reference.mass_matrix(), reference.bias(loads)
    a = ask(model, "forward_dynamics", q, v, tau, f.ravel(), method=method, forces=names)
    assert norm(M @ a + h - tau) <= ROUNDING * (norm(M) * norm(a) + norm(h) + norm(tau))


@every_method
@pytest.mark.parametrize("seed", range(0, 8))
def test_a_driven_joint_accelerates_as_told(seed, method):
    """Its entry of tau is its acceleration; the equations of all other freedoms hold."""
    free = tree(seed)
    rng = np.random.default_rng(seed)
    moving = [j.name for j in free.joints if j.kind.nv]
    model = free.drive(*rng.choice(moving, size=max(1, len(moving) // 3), replace=False))
    told = np.concatenate([np.full(j.kind.nv, j.driven) for j in model.joints]).astype(bool)
    q, v, given = next(states(model, 1, seed=33))
    a = ask(model, "forward_dynamics", q, v, given, method=method)
    assert (a[told] == given[told]).all()
    reference = Reference(free, q, v)
    M, h = reference.mass_matrix(), reference.bias()
    residual = norm((M @ a + h - given)[~told])
    assert residual <= ROUNDING * (norm(M) * norm(a) + norm(h) + norm(given))


@pytest.mark.slow
@every_method
@pytest.mark.parametrize("name", ["chain_prismatic", "random3", "chain_universal"])
def test_live_parameters_give_what_a_recompiled_model_gives(name, method):
    model = model_of(name)
    q, v, tau = next(states(model, 1, seed=34))
    values = model.parameters().values * np.random.default_rng(34).uniform(0.95, 1.05)
    values[[n.split(".")[1] == "armature" for n in model.parameters().names]] = 0.02
    k = sl.compile(model, "forward_dynamics", method=method, parameters="live", target="cpu")
    changed = applied(model, values)
    expected = ask(changed, "forward_dynamics", q, v, tau)
    bound = 100 * EPS * np.linalg.cond(ask(changed, "mass_matrix", q))
    near(k(q, v, tau, values), expected, bound)
    own = ask(model, "forward_dynamics", q, v, tau)
    near(k(q, v, tau, model.parameters().values), own, bound)  # also where there is no rotor


@functools.cache
def peer(seed):
    """A tree of joints that Pinocchio has, without losses but armature, and Pinocchio's."""
    pinocchio_peer = pytest.importorskip("pinocchio_peer")
    model = pinocchio_peer.with_known_kinds(tree(seed, pinocchio_peer.KINDS))
    joints = (replace(j, damping=(), friction=(), stiffness=()) for j in model.joints)
    model = replace(model, joints=tuple(joints))
    return model, pinocchio_peer.Peer(model)


@every_method
@pytest.mark.parametrize("seed", [pytest.param(s, marks=[pytest.mark.slow] if s >= 6 else []) for s in range(40)])
def test_pinocchio_finds_the_same_accelerations(seed, method):
    model, theirs = peer(seed)
    q, v, tau = next(states(model, 1, seed=35))
    expected = theirs.forward_dynamics(q, v, tau)
    M = theirs.mass_matrix(q)
    bound = 100 * EPS * np.linalg.cond(M) * (norm(expected) + norm(tau) / norm(M))
    assert norm(ask(model, "forward_dynamics", q, v, tau, method=method) - expected) <= bound


# ---- Yamane & Nakamura


@pytest.mark.parametrize("method", VIRTUAL_WORK)
@every_tree
def test_constraint_forces_and_torques_give_each_body_its_newton_and_euler(seed, method):
    """To 1e-12 of the largest force; the bodies' accelerations are dense, from the method's own a."""
    model = tree(seed)
    q, v, tau = next(states(model, 1, seed))
    constraints = ask(model, "constraint_forces", q, v, tau, method=method)
    a = ask(model, "forward_dynamics", q, v, tau, method=method)
    reference = Reference(model, q, v)
    torque = tau + reference.passive() - np.array([x for j in model.joints for x in j.armature]) * a
    net = {b.name: np.zeros(6) for b in model.bodies} | {"world": np.zeros(6)}
    largest = 0.0
    for joint, six in zip(model.joints, constraints, strict=True):
        body = reference.bodies[joint.child]
        wrench = six + along_joint(model, joint, q, torque, body.R)
        largest = max(largest, np.abs(wrench).max())
        about_origin = np.concatenate((wrench[:3] + np.cross(body.p, wrench[3:]), wrench[3:]))
        net[joint.child] += about_origin
        net[joint.parent] -= about_origin
    for b in model.bodies:
        np.testing.assert_allclose(net[b.name], rate_of_momentum(reference, b, a), rtol=0, atol=1e-12 * largest)


def along_joint(model, joint, q, torque, R):
    """The force of a joint's torques, without any part that the constraints could carry."""
    S = np.array([tuple(s) for s in joint.kind.motion_space(q[model.q_slice(joint.name)])]).reshape(-1, 6)
    six = np.linalg.pinv(S) @ torque[model.v_slice(joint.name)] if len(S) else np.zeros(6)
    return np.concatenate((R @ six[:3], R @ six[3:]))


def rate_of_momentum(reference, b, a):
    """d/dt of a body's momentum about the world's origin, less gravity's."""
    body, (c, _, bias, Jc) = reference.bodies[b.name], reference.center(b)
    force = b.inertia.mass * (bias + Jc @ a - np.array(reference.model.gravity))
    I, alpha = reference._inertia(b), body.alpha + body.Jw @ a
    return np.concatenate((I @ alpha + np.cross(body.w, I @ body.w) + np.cross(c, force), force))


@zoo_and_random
def test_constraints_do_no_work_on_their_joints(name):
    model = model_of(name)
    q, v, tau = next(states(model, 1, seed=36))
    reference = Reference(model, q, v)
    for joint, six in zip(model.joints, ask(model, "constraint_forces", q, v, tau), strict=True):
        R = reference.bodies[joint.child].R
        local = np.concatenate((R.T @ six[:3], R.T @ six[3:]))
        for s in joint.kind.motion_space(q[model.q_slice(joint.name)]):
            assert abs(np.dot(tuple(s), local)) <= 1e-13 * (1.0 + norm(six))


def test_a_split_link_has_at_most_three_joints_and_the_same_inertia():
    model = with_bouquet(zoo.random_model(5, 4), 5)
    whole = mechanism(model)
    parts = split(whole)
    joints = np.zeros(len(parts.links), int)
    for link in parts.links:
        joints[link.number] += 1
        if link.parent >= 0:
            joints[link.parent] += 1
    assert joints.max() == 3
    assert [link.name for link in parts.links if link.name] == [link.name for link in whole.links]
    assert math.isclose(sum(x.inertia.mass for x in parts.links), sum(x.inertia.mass for x in whole.links))
    carried = np.bincount([link.parent for link in whole.links if link.parent >= 0])
    assert len(parts.links) - len(whole.links) == sum(max(0, n - 2) for n in carried)  # n + 1 joints: n − 2 more


@pytest.mark.parametrize("method", VIRTUAL_WORK)
def test_a_body_without_inertia_is_refused_by_name(method):
    b = sl.Builder("string").body("bead", 1.0, inertia=(1.0, 1.0, 1.0)).body("thread", 0.0)
    b.revolute("knot", "world", "thread").revolute("hook", "thread", "bead", position=(1.0, 0.0, 0.0))
    with pytest.raises(UnsupportedError) as e:
        sl.compile(b.build(), "forward_dynamics", method=method)
    assert str(e.value) == (
        "method 'virtual_work': body 'thread' (joint 'knot') has no mass; "
        "the method inverts the inertia of every body. Give it some, or use method 'articulated_body'"
    )
    with pytest.raises(UnsupportedError, match=r"body 'rod1' \(joint 'hinge1'\) has no significant inertia about one"):
        sl.compile(zoo.pendulum(), "forward_dynamics", method=method)


def thin_chain(n, kind, ratio, seed):
    """Rods of 1 kg and 1 m one behind the other, with so little inertia about their axes."""
    rng = np.random.default_rng(seed)
    b, parent = sl.Builder("rods"), "world"
    for i in range(n):
        b.body(f"rod{i}", 1.0, (0.5, 0.0, 0.0), (ratio / 12, 1 / 12, 1 / 12))
        b.joint(f"joint{i}", random_kind(kind, rng), parent, f"rod{i}", (float(i > 0), 0.0, 0.0), rng.normal(size=3))
        parent = f"rod{i}"
    return b.build()


@pytest.mark.parametrize("kind", ["revolute", "cylindrical", "universal"])
def test_thin_bodies_cost_no_digits_that_are_not_missed(kind):
    """Within the bounds, or refused with a sentence: down to 1e-5 by the digits lost, beneath by name."""
    refused = []
    for ratio in (1e-2, 1e-3, 1e-4, 2e-5, 1e-6):
        for n, seed in ((2, 0), (5, 1), (15, 2)):
            model = thin_chain(n, kind, ratio, seed)
            q, v, tau = next(states(model, 1, seed))
            try:
                a = ask(model, "forward_dynamics", q, v, tau, method="virtual_work")
            except (StateError, UnsupportedError) as e:
                refused.append((ratio, str(e)))
                continue
            reference = Reference(model, q, v)
            M, h = reference.mass_matrix(), reference.bias()
            assert norm(M @ a + h - tau) <= ROUNDING * (norm(M) * norm(a) + norm(h) + norm(tau))
    assert all(ratio <= 1e-4 for ratio, _ in refused)
    named = [why for ratio, why in refused if ratio == 1e-6]
    assert len(named) == 3
    assert all("has no significant inertia" in why for why in named)
    assert all("rounding errors are too large" in why for ratio, why in refused if ratio > 1e-6)


@pytest.mark.slow
def test_an_answer_lost_to_rounding_is_refused_also_in_machine_code():
    """With live parameters, too: one state raises and names the body, a batch has a row of NaN."""
    good, bad = (thin_chain(9, "cylindrical", ratio, 2) for ratio in (0.1, 1e-7))
    q, v, tau = next(states(good, 1, 2))
    k = sl.compile(good, "forward_dynamics", method="virtual_work", parameters="live")
    assert np.isfinite(k(q, v, tau, good.parameters().values)).all()
    with pytest.raises(StateError) as e:
        k(q, v, tau, bad.parameters().values)
    assert "body 'rod0' (joint 'joint0') has no significant inertia about one of its axes" in str(e.value)
    sets = np.stack([x.parameters().values for x in (good, bad, good)])
    for kernel in (k, sl.compile(good, "forward_dynamics", method="virtual_work", parameters="live", target="python")):
        with pytest.warns(sl.SpanloopWarning):
            a = kernel(q, v, tau, sets)
        assert (np.isfinite(a).all(axis=1) == [True, False, True]).all()


def test_the_sentence_of_an_answer_lost_to_rounding():
    sentences = set()
    for seed in range(8):
        model = thin_chain(5, "cylindrical", 2e-5, seed)
        spec = KernelSpec.of(model, "forward_dynamics", method="virtual_work")
        state = next(states(model, 1, seed))
        if spec.reference(*state) is None:
            sentences.add(spec.explain(*state).sentence)
    assert sentences == {
        "rounding errors are too large in method 'virtual_work': a body is too thin, or too light for what it "
        "carries. Use method 'articulated_body'"
    }


@every_method
def test_single_precision_is_answered_or_refused_when_the_kernel_is_made(method):
    model = zoo.puma()
    q, v, tau = next(states(model, 1, seed=40))
    if method in VIRTUAL_WORK:
        with pytest.raises(UnsupportedError, match=f"method '{method}' needs double precision; leave out dtype"):
            sl.compile(model, "forward_dynamics", method=method, dtype="float32")
        return
    a = sl.compile(model, "forward_dynamics", method=method, dtype="float32")(q, v, tau)
    near(a, ask(model, "forward_dynamics", q, v, tau), 1e-4)


@pytest.mark.parametrize("name", ROBOTS)
def test_robots_of_the_field_are_not_refused(name):
    """Panda, ANYmal, TALOS, as their files have them, massless frames included."""
    model = model_of(name)
    q, v, tau = next(states(model, 1, seed=39))
    reference = Reference(model, q, v)
    M, h = reference.mass_matrix(), reference.bias()
    for method in FORWARD:
        a = ask(model, "forward_dynamics", q, v, tau, method=method)
        assert norm(M @ a + h - tau) <= ROUNDING * (norm(M) * norm(a) + norm(h) + norm(tau))


# ---- Saha


def dense_complement(model, q):
    """N (6n, nv) at the origins of the bodies, in world axes."""
    reference = Reference(model, q)
    return np.vstack([np.vstack((reference.bodies[b.name].Jw, reference.bodies[b.name].Ju)) for b in model.bodies])


def skew(a):
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


@zoo_and_random
def test_the_decoupled_matrices_propagate_rates_to_twists(name):
    """N_l N_d is the dense Jacobian of all bodies, in link axes; N_l is lower block triangular with ones."""
    model = model_of(name).fuse()
    q, _, _ = next(states(model, 1, seed=37))
    reference, m = Reference(model, q), mechanism(model)
    Nl, Nd = decoupled_matrices(m, q)
    expected = dense_complement(model, q)
    for i, b in enumerate(model.bodies):
        turn = np.array(m.anchors[b.name].rotation) @ reference.bodies[b.name].R.T
        expected[6 * i : 6 * i + 6] = np.kron(np.eye(2), turn) @ expected[6 * i : 6 * i + 6]
    near(Nl @ Nd, expected, 1e-14, scale=1.0)
    blocks = Nl.reshape(len(m.links), 6, len(m.links), 6).swapaxes(1, 2)
    for i, j in np.argwhere(np.ones((len(m.links),) * 2)):
        if i < j:
            assert not blocks[i, j].any()
        if i == j:
            assert (blocks[i, j] == np.eye(6)).all()


@every_tree
def test_inertia_matrix_factors_and_torques_of_the_complement_are_the_dense_ones(seed):
    model = tree(seed)
    q, v, a = next(states(model, 1, seed))
    reference = Reference(model, q, v)
    M, h = reference.mass_matrix(), reference.bias()
    near(ask(model, "mass_matrix", q, method="decoupled_complement"), M)
    near(ask(model, "mass_matrix", q, method="unit_vector"), M)
    U, D = ask(model, "inertia_factors", q)
    assert (np.tril(U, -1) == 0).all()
    assert (np.diag(U) == 1).all()
    assert np.count_nonzero(D - np.diag(np.diag(D))) == 0
    near(U @ D @ U.T, M)
    size = norm(M) * (norm(a) + 1.0) + norm(h)
    near(ask(model, "inverse_dynamics", q, v, a, method="decoupled_complement"), M @ a + h, scale=size)
    near(ask(model, "bias", q, v, method="decoupled_complement"), h, scale=size)


@zoo_and_random
def test_convective_inertia_is_what_the_complement_and_its_rate_give(name):
    """C = Nᵀ(M Ṅ + W M E N) with dense N, Ṅ by differences; C v = the vector = the bias without gravity and losses."""
    model = model_of(name).fuse().without_losses().with_gravity((0.0, 0.0, 0.0))
    q, v, _ = next(states(model, 1, seed=38))
    v = np.clip(v, -1.0, 1.0)
    move = sl.compile(model, "integrate", target="python")
    N = dense_complement(model, q)
    rate = derivative(lambda t: dense_complement(model, move(q, t * v)))
    reference = Reference(model, q, v)
    expected = np.zeros((model.nv, model.nv))
    for i, b in enumerate(model.bodies):
        body, mass = reference.bodies[b.name], b.inertia.mass
        d, w = skew(body.R @ np.array(b.inertia.center)), skew(body.w)
        spatial = np.block([[reference._inertia(b) - mass * d @ d, mass * d], [-mass * d, mass * np.eye(3)]])
        rows, W, E = slice(6 * i, 6 * i + 6), np.kron(np.eye(2), w), np.diag([1, 1, 1, 0, 0, 0])
        expected += N[rows].T @ (spatial @ rate[rows] + W @ spatial @ E @ N[rows])
    C = ask(model, "convective_inertia", q, v)
    near(C, expected, 1e-9, scale=1.0)  # differences of sixth order
    h = reference.bias()
    near(C @ v, h, scale=norm(C) * norm(v))
    near(ask(model, "convective_torque", q, v), h, scale=norm(C) * norm(v))


def test_torques_on_sahas_path_are_the_dense_ones():
    """The PUMA from rest to rest (eq. 22), at eleven times; at both ends v = a = 0."""
    model = zoo.puma()
    q, v, a = zoo.cycloidal_path(np.zeros(6), np.full(6, np.pi), 10.0, np.linspace(0.0, 10.0, 11))
    tau = sl.compile(model, "inverse_dynamics", method="decoupled_complement")(q, v, a)
    for k in range(11):
        reference = Reference(model, q[k], v[k])
        near(tau[k], reference.mass_matrix() @ a[k] + reference.bias())
    near(q[-1], np.full(6, np.pi))
    near(np.stack((v[0], a[0], v[-1], a[-1])), np.zeros((4, 6)), 1e-15, scale=1.0)


# ---- growth


def count(model, method, function="forward_dynamics"):
    n = KernelSpec.of(model, function, method=method, lowering="unrolled").plan.operations
    return n.multiplications + n.additions + n.divisions


def slope(make, sizes, method):
    small, large = (count(make(n), method) for n in sizes)
    return math.log(large / small) / math.log(sizes[1] / sizes[0])


FAMILIES = {
    "chains of hinges": (lambda n: zoo.chain(n, seed=1), (48, 96)),
    "chains of balls": (lambda n: zoo.chain(n, "spherical", seed=1), (48, 96)),
    "stars": (zoo.star, (40, 80)),
}


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("method", ["virtual_work", "decoupled_complement", "articulated_body"])
def test_the_count_grows_with_the_number_of_links(method, family):
    assert slope(*FAMILIES[family], method) <= 1.05


@pytest.mark.slow
def test_without_splitting_stars_cost_more_than_in_proportion():
    """Unit vectors do not: the mass matrix is factored from the tips inward, which keeps the tree's zeros."""
    assert slope(zoo.star, (8, 16), "virtual_work_unsplit") > 2.0
    assert slope(zoo.star, (8, 16), "unit_vector") < 1.2
    assert count(zoo.star(12), "virtual_work") < count(zoo.star(12), "virtual_work_unsplit")
    assert count(zoo.star(3), "virtual_work") > count(zoo.star(3), "virtual_work_unsplit")
