"""The papers' methods for closed chains against a dense solution of the equations in 50 digits, and their growth.

Accelerations are compared relative to the largest one: 1e-10 on well-conditioned states (see test_loops.py). Methods
are `simple_closed_chain` (Lilly & Orin), `arms_on_object`, `_1`, `_2`, `_3` (Kreutz & Rodriguez), `closed_topology`
(Rodriguez, Jain & Kreutz).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from closed_answers import AGREE, accelerations, answer_of, case_of, difference
from closed_zoo import CASES as ZOO
from counting import generic_arms, operations, plan_of, slope
from dense_closures import ClosedReference
from dense_driven import consistent, exact
from random_chains import random_chains
from random_loops import CLOSING, moving, random_loops, random_plane_loop, unequal
from singular_cases import CASES as SINGULAR
from singular_cases import outcome

import spanloop as sl
from spanloop import zoo
from spanloop.algorithms.catalog import TREE_METHODS
from spanloop.errors import InputError, Reason, StateError, UnsupportedError
from spanloop.joints.soft_finger import SoftFinger

ARMS = ("arms_on_object", "arms_on_object_1", "arms_on_object_2", "arms_on_object_3")
METHODS = ("simple_closed_chain", *ARMS, "closed_topology")
every_method = pytest.mark.parametrize("method", METHODS)

LOOPS_INSIDE = ("arms with linkage",)  # arms that have loops of their own
HELD = tuple(
    n for n in ZOO if ("arms" in n or n in ("stewart", "pumas 2", "three_pumas")) and n not in LOOPS_INSIDE
)  # arms of their own on one free body
FITS = {"closed_topology": tuple(ZOO), **dict.fromkeys(ARMS, HELD)}
FITS["simple_closed_chain"] = tuple(ZOO)


# ---- against a dense solution in 50 digits


@pytest.mark.slow
@pytest.mark.parametrize(("method", "name"), [(m, n) for m in METHODS for n in FITS[m]])
def test_zoo_agrees_with_fifty_digits(method, name):
    a = accelerations(case_of(name), method=method, target="python")
    assert difference(a, answer_of(name)) < AGREE


@pytest.mark.parametrize(("method", "name"), [(m, n) for m in METHODS for n in ZOO if n not in FITS[m]])
def test_a_method_that_does_not_fit_says_why(method, name):
    """And names one that does."""
    with pytest.raises(UnsupportedError, match=f"'{method}' needs .*; .*\\. Use 'elimination'"):
        sl.compile(case_of(name).model, "forward_dynamics", method=method)


@pytest.mark.slow
def test_given_motions_that_a_loop_joins_are_refused_by_simple_closed_chain():
    """It left such rows out, and answered with a loop that opens."""
    b = sl.Builder("given").body("stand", 1.0, inertia=(1, 1, 1)).body("arm", 2.0, inertia=(1, 1, 1))
    b.universal("tilt", "world", "stand", driven=True).spherical("ball", "world", "arm")
    b.frame("top", "stand", (0.5, 0.1, 0.2)).frame("tip", "arm", (0.4, 0.1, 0.5))
    model = b.loop("top", "tip", sl.joints.Distance(0.3), name="rod").build()
    model = model.with_loop("world", "top", sl.joints.Distance(0.5), name="rope")
    sentence = "loop 'rope' joins two bodies whose motion is given. Use 'elimination'"
    with pytest.raises(UnsupportedError, match=sentence):
        sl.compile(model, "forward_dynamics", method="simple_closed_chain")


COMPILED = [(m, "arms 2 ball") for m in METHODS] + [(m, "hexapod") for m in ("simple_closed_chain", "closed_topology")]
COMPILED += [pytest.param(m, n, marks=[pytest.mark.slow]) for m in METHODS for n in ("arms 2", "stewart")]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "name"), COMPILED)
def test_machine_code_agrees_with_fifty_digits_alone_and_in_a_batch(method, name):
    case, expected = case_of(name), answer_of(name)
    kernel = sl.compile(case.model, "forward_dynamics", method=method)
    assert difference(kernel(case.q, case.v, case.tau), expected) < AGREE
    many = kernel(np.stack([case.q] * 9), case.v, case.tau)
    assert difference(many, np.stack([expected] * 9)) < AGREE


def _random(method: str, seed: int, **options):
    """A random system that the method fits."""
    return random_chains(seed, sort=None if method in ("simple_closed_chain", "closed_topology") else 0, **options)


@pytest.mark.slow
@pytest.mark.campaign(200)
@every_method
@pytest.mark.parametrize(
    "seed", [pytest.param(s, marks=[pytest.mark.slow] if s >= 2 else []) for s in range(100)]
)  # fmt: skip
def test_random_chains_agree_with_fifty_digits(method, seed):
    """Arms and legs of all kinds of joints, closures of all kinds, on the ground and on a driven support."""
    case = _random(method, seed)
    a = accelerations(case, method=method, target="python")
    assert difference(a, exact(case.model, case.q, case.v, case.tau)) < AGREE


@pytest.mark.slow
@pytest.mark.parametrize("method", ["simple_closed_chain", "closed_topology"])
def test_mass_ratios_of_a_million_keep_nine_digits(method):
    """simple_closed_chain lost them here: its refinement had not converged."""
    case = unequal(random_loops(7), 6.0, 7)
    a = accelerations(case, method=method, target="python")
    assert difference(a, exact(case.model, case.q, case.v, case.tau)) < 1e-9


@pytest.mark.parametrize("method", ["elimination", "closed_topology"])
def test_digits_lost_to_mass_ratios_beyond_a_million_are_found_again(method):
    """Every method by itself is off by 1e-6 or more here, and leaves that as a residual of rows."""
    case = unequal(random_plane_loop(9), 12.0, 9)
    a = accelerations(case, method=method, target="python")
    assert difference(a, exact(case.model, case.q, case.v, case.tau)) < 1e-9


def test_digits_lost_to_mass_ratios_beyond_a_million_are_not_answered():
    case = unequal(random_plane_loop(9), 12.0, 9)
    with pytest.raises(StateError) as caught:
        accelerations(case, method="dense", target="python")
    assert caught.value.reason in (Reason.ROUNDING, Reason.SINGULAR_MASS, Reason.SINGULAR_CLOSURE)


@pytest.mark.slow
def test_the_random_chains_are_as_they_should_be():
    """One to four chains, of both types, on the ground and on a moving support, closed by joints of every kind."""
    models = [random_chains(seed).model for seed in range(40)]
    assert {len(m.loops) for m in models} == {1, 2, 3, 4}
    assert {any("object" in (x.a, x.b) for x in m.loops) for m in models} == {True, False}
    assert {any(j.driven for j in m.joints) for m in models} == {True, False}
    assert {x.kind.name for m in models for x in m.loops} == set(CLOSING)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["simple_closed_chain", "closed_topology"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_support_that_moves(method, seed):
    """Arms and legs on a driven body."""
    case = random_chains(seed, sort=seed - 1, moving_support=True)
    a = accelerations(case, method=method, target="python")
    assert difference(a, exact(case.model, case.q, case.v, case.tau)) < AGREE


@pytest.mark.parametrize("method", ["simple_closed_chain", "closed_topology"])
@pytest.mark.parametrize(
    "seed", [pytest.param(s, marks=[pytest.mark.slow] if s >= 6 else []) for s in range(100)]
)  # fmt: skip
def test_random_loops_agree_with_fifty_digits(method, seed):
    """Mechanisms with loops anywhere: inside chains, around two of them, on what the reference member carries."""
    a = accelerations(case_of(f"random {seed}"), method=method, target="python")
    assert difference(a, answer_of(f"random {seed}")) < AGREE


@pytest.mark.slow
@every_method
@pytest.mark.parametrize("joints", [(2, 5), (6, 7), (8, 10)], ids=["below six", "six", "above six"])
def test_chains_of_any_number_of_joints(method, joints):
    case = random_chains(1, sort=0, joints=joints, arms=2)
    a = accelerations(case, method=method, target="python")
    assert difference(a, exact(case.model, case.q, case.v, case.tau)) < AGREE


# ---- grasps of all sorts, singular configurations


def _held(grasp, m: int = 2, **options):
    model = zoo.arms_with_object(m, grasp=grasp, **options)
    q = zoo.arms_with_object_start(m, grasp=grasp, **options)
    return moving(model, q, np.random.default_rng(7))


@pytest.mark.slow
@every_method
@pytest.mark.parametrize("grasp", ["fixed", "revolute", "spherical", SoftFinger()], ids=str)
def test_rigid_and_loose_grasps(method, grasp):
    """Six, five, three and four rows; redundant arms of eight joints beside those of six."""
    arm = zoo.chain(8)
    posture = np.linspace(0.3, 1.0, 8)
    for case in (_held("fixed") if grasp == "fixed" else _soft(grasp), _soft(grasp, arm=arm, posture=posture)):
        a = accelerations(case, method=method, target="python")
        expected = sl.compile(case.model, "forward_dynamics", method="dense", target="python")(case.q, case.v, case.tau)
        assert difference(a, expected) < AGREE


def _soft(grasp, **options):
    """Arms with this closure; a soft finger is put in place of point contacts."""
    if not isinstance(grasp, SoftFinger):
        return _held(grasp, **options)
    case = _held("spherical", **options)
    model = replace(case.model, loops=tuple(replace(x, kind=grasp) for x in case.model.loops))
    robot = sl.Dynamics(model)
    J = robot.closure_jacobian(case.q)
    return replace(case, model=model, v=case.v - np.linalg.pinv(J) @ (J @ case.v))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["simple_closed_chain", *ARMS[1:], "closed_topology"])
@pytest.mark.parametrize("which", ["one wrist", pytest.param("both wrists", marks=[pytest.mark.slow])])
def test_an_arm_in_a_singular_position_is_no_obstacle(method, which):
    """Its own admittance loses a rank, the closures' rows do not: right to 1e-10 at every distance from it."""
    family = next(x for x in SINGULAR if x.name == which)
    for distance in (1e-6, 0.0):
        what, error = outcome(family.at(distance), method)
        assert what == "answer"
        assert error < AGREE, distance


@pytest.mark.parametrize("method", ["simple_closed_chain", "closed_topology"])
@pytest.mark.parametrize("which", ["folded four-bar", "five-bar in line"])
def test_lost_rank_is_refused_and_never_silently_wrong(method, which):
    """An answer beside such a position may have lost eps/δ², the square of the distance."""
    family = next(x for x in SINGULAR if x.name == which)
    for distance in (1e-2, 1e-4, 1e-6, 1e-8, 0.0):
        what, error = outcome(family.at(distance), method)
        assert what == "refused" or error < 1e-10 + 10 * 2.2e-16 / distance**2, distance
    assert outcome(family.at(0.0), method)[0] == "refused"


@pytest.mark.parametrize("seed", range(3))
def test_two_five_joint_arms_with_a_rigid_grasp(seed):
    """The trap: a pseudo-inverse of each arm's admittance would get the object wrong by most of its acceleration."""
    case = case_of("five-joint arms 2", seed)
    expected = exact(case.model, case.q, case.v, case.tau)
    for method in METHODS:
        assert difference(accelerations(case, method=method, target="python"), expected) < AGREE, method


# ---- all that acts on them


@pytest.mark.slow
@every_method
def test_forces_from_outside(method):
    case = case_of("arms 3 pin")
    rng = np.random.default_rng(11)
    forces = {name: rng.normal(size=6) for name in ("object", "arm1_elbow_link", "arm3_spin_link")}
    robot = sl.Dynamics(case.model, method=method, target="python")
    a = robot.forward_dynamics(case.q, case.v, case.tau, forces=forces)
    assert difference(a, exact(case.model, case.q, case.v, case.tau, forces)) < AGREE


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "name", "driven"),
    [(m, "arms 2 ball", ("arm1_turn", "arm2_elbow")) for m in METHODS]
    + [(m, "hexapod", ("floating",)) for m in ("simple_closed_chain", "closed_topology")][1:]
    + [("simple_closed_chain", "hexapod", ("coxa1", "femur3"))],
)
def test_driven_joints_have_their_given_accelerations(method, name, driven):
    """In the chain, at its base and at its tip (a hip)."""
    case = case_of(name)
    joints = [j.name for j in case.model.joints]
    driven = [d if d in joints else next(j for j in joints if j.endswith(d[-1]) and j != "floating") for d in driven]
    model = case.model.drive(*driven)
    a = accelerations(replace(case, model=model), method=method, target="python")
    for joint in driven:
        np.testing.assert_array_equal(a[model.v_slice(joint)], case.tau[model.v_slice(joint)])
    assert difference(a, exact(model, case.q, case.v, case.tau)) < AGREE


@pytest.mark.slow
@every_method
def test_live_parameters_give_what_a_recompiled_model_gives(method):
    case = case_of("arms 2 ball")
    kernel = sl.compile(case.model, "forward_dynamics", method=method, parameters="live", target="python")
    heavy = case.model.bodies[0]
    inertia = replace(heavy.inertia, mass=2.0 * heavy.inertia.mass)
    bodies = (replace(heavy, inertia=inertia), *case.model.bodies[1:])
    for model in (case.model, replace(case.model, bodies=bodies)):
        a = kernel(case.q, case.v, case.tau, model.parameters().values)
        assert difference(a, exact(model, case.q, case.v, case.tau)) < AGREE


@pytest.mark.slow
@every_method
def test_switchable_grasps_are_switched_without_a_new_kernel(method):
    case = case_of("arms 3 pin")
    loops = tuple(replace(x, switchable=True) for x in case.model.loops)
    robot = sl.Dynamics(replace(case.model, loops=loops), method=method, target="python")
    for active in (["holding1", "holding3"], ["holding2"], [x.name for x in loops]):
        left = replace(case.model, loops=tuple(x for x in case.model.loops if x.name in active))
        v = consistent(left, case.q, case.v)
        a = robot.forward_dynamics(case.q, v, case.tau, active_loops=active)
        assert difference(a, exact(left, case.q, v, case.tau)) < AGREE


@every_method
def test_a_driven_grasp_moves_as_told(method):
    """Given relative accelerations α_k^c along the freedoms of a pin, against the method of elimination."""
    case = case_of("arms 3 pin")
    loops = (replace(case.model.loops[0], driven=True), *case.model.loops[1:])
    model = replace(case.model, loops=loops)
    found = [
        sl.Dynamics(model, method=m, target="python").forward_dynamics(
            case.q, case.v, case.tau, loop_accelerations={"holding1": [0.7]}
        )
        for m in (method, "elimination")
    ]
    assert difference(*found) < AGREE


@every_method
def test_known_forces_along_the_freedoms_of_a_grasp(method):
    """h_k of eq. 33, at the tips."""
    case = case_of("arms 3 pin")
    known = {"holding2": [1.3]}
    found = [
        sl.Dynamics(case.model, method=m, target="python").forward_dynamics(case.q, case.v, case.tau, loop_forces=known)
        for m in (method, "elimination")
    ]
    assert difference(*found) < AGREE


@pytest.mark.slow
def test_a_machine_on_legs_with_an_arm_of_its_own():
    """Type 1; what only the reference member carries is part of its inertia."""
    model, q = zoo.hexapod(), zoo.hexapod_start()
    bodies, joints = model.bodies, model.joints
    arm = zoo.chain(3, seed=4)
    carried = tuple(replace(b, name=f"arm_{b.name}") for b in arm.bodies)
    under = {"world": "body"} | {b.name: f"arm_{b.name}" for b in arm.bodies}
    hinges = tuple(replace(j, name=f"arm_{j.name}", parent=under[j.parent], child=under[j.child]) for j in arm.joints)
    model = replace(model, bodies=(*bodies, *carried), joints=(*joints, *hinges))
    case = moving(model, np.concatenate((q, [0.3, -0.4, 0.5])), np.random.default_rng(8))
    expected = exact(case.model, case.q, case.v, case.tau)
    for method in ("simple_closed_chain", "closed_topology"):
        assert difference(accelerations(case, method=method, target="python"), expected) < AGREE


# ---- open chains underneath


@pytest.mark.parametrize("open_chain", TREE_METHODS)
def test_any_tree_method_serves_as_open_chain(open_chain):
    case = case_of("arms 2")
    kernel = sl.compile(case.model, "forward_dynamics", method="arms_on_object", open_chain=open_chain, target="python")
    assert difference(kernel(case.q, case.v, case.tau), answer_of("arms 2")) < AGREE


def test_open_chain_is_checked():
    model = case_of("arms 2").model
    with pytest.raises(InputError, match="there is no open-chain method 'articulated'"):
        sl.Dynamics(model, method="arms_on_object", open_chain="articulated")
    with pytest.raises(InputError, match="takes no open_chain"):
        sl.Dynamics(model, open_chain="articulated_body")


# ---- growth


@pytest.mark.slow
@pytest.mark.parametrize("method", ["simple_closed_chain", "closed_topology"])
def test_operations_grow_linearly_with_the_number_of_chains(method):
    """Slopes ≤ 1.05, over m = 1 ... 64."""
    sizes = (1, 4, 16, 64)
    counts = [operations(plan_of(generic_arms(m, 6), method)) for m in sizes]
    assert slope(sizes, counts) <= 1.05
    each = np.diff(counts) / np.diff(sizes)
    np.testing.assert_allclose(each, each[-1], rtol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("m", [1, 2, 4])
@pytest.mark.parametrize("method", ["simple_closed_chain", "closed_topology"])
def test_operations_grow_linearly_with_the_number_of_joints(method, m):
    """A joint more always costs the same; on the line through the counts, slopes ≤ 1.05 over N = 3 ... 40."""
    sizes, every = (3, 5, 8, 13, 22, 40), range(3, 41)
    counts = [operations(plan_of(generic_arms(m, n), method)) for n in sizes]
    each = np.diff(counts) / np.diff(sizes)
    np.testing.assert_allclose(each, each[0], rtol=0.0 if method == "simple_closed_chain" else 0.01)
    assert slope(every, np.interp(every, sizes, counts)) <= 1.05


@pytest.mark.slow
@pytest.mark.parametrize("m", [1, 2, pytest.param(4, marks=pytest.mark.campaign(0))])
@pytest.mark.parametrize("method", ["simple_closed_chain", "closed_topology"])
def test_operations_of_arms_of_any_length(method, m):
    """Every N = 3 ... 40. A last link of which rounding leaves a trace where it should vanish costs 18 more, and 39
    more by closed_topology, where it hides that an axis is one of the frame."""
    sizes = range(3, 41)
    counts = [operations(plan_of(generic_arms(m, n), method)) for n in sizes]
    assert slope(sizes, counts) <= 1.05
    line = np.polynomial.Polynomial.fit(sizes, counts, 1)
    assert np.abs(counts - line(np.array(sizes))).max() <= (25 if method == "simple_closed_chain" else 40) * m


@pytest.mark.slow
def test_operations_of_recursive_arms_grow_linearly_with_the_number_of_joints():
    """The first two joints of an arm cost less, so the slope falls to 1 from above: 1.10 from N = 3, 1.05 from 12."""
    sizes = (3, 6, 12, 24, 40)
    counts = [operations(plan_of(generic_arms(2, n), "arms_on_object_2")) for n in sizes]
    each = np.diff(counts) / np.diff(sizes)
    np.testing.assert_allclose(each, each[-1], rtol=0.04)
    assert slope(sizes[2:], counts[2:]) <= 1.05 < slope(sizes, counts) <= 1.12


@pytest.mark.parametrize(
    "method", [pytest.param(m, marks=[pytest.mark.slow] if m[-1] != "2" else []) for m in ARMS[1:]]
)
def test_recursive_arms_cost_n_and_the_cube_of_the_arms(method):
    """Joints more cost the same on every arm; third differences over ℓ are those of the factors of a 3ℓ × 3ℓ matrix."""
    sizes = (4, 8, 12, 16)
    short, long = ([operations(plan_of(generic_arms(m, n), method)) for m in sizes] for n in (6, 9))
    more = np.subtract(long, short)
    np.testing.assert_allclose(more / np.array(sizes), more[0] / sizes[0], rtol=1e-3)
    cube = 2 * 3**3 / 6  # (3ℓ)³/6 multiplications and as many additions
    np.testing.assert_allclose(np.diff(short, 3), 6 * cube * 4**3, rtol=0.02)


@pytest.mark.slow
def test_the_critical_path_grows_with_the_logarithm_of_the_chains():
    depth = [plan_of(generic_arms(m, 6), "simple_closed_chain").depth for m in (4, 8, 16)]
    assert depth[1] - depth[0] == depth[2] - depth[1] <= 4
    longer = [plan_of(generic_arms(2, n), "simple_closed_chain").depth for n in (6, 12, 24)]
    np.testing.assert_allclose((longer[2] - longer[1]) / 12, (longer[1] - longer[0]) / 6, rtol=0.1)


@pytest.mark.slow
def test_fewer_operations_than_the_tables_of_lilly_and_orin():
    """10 292 multiplications and 8 468 additions for three generic arms of six joints, n_c = 3."""
    n = plan_of(generic_arms(3, 6), "simple_closed_chain").operations
    assert n.multiplications < 10292
    assert n.additions < 8468


def test_a_kernel_knows_its_critical_path():
    kernel = sl.compile(case_of("arms 2 ball").model, "forward_dynamics", method="simple_closed_chain")
    assert 0 < kernel.depth < kernel.operations.multiplications


# ---- columns: a system by itself


def _columns(model, points):
    """Kernels of steps A to C and of step E."""
    return tuple(
        sl.compile(model, name, points=points, target="python") for name in ("free_response", "forced_response")
    )


def _split(numbers, nv: int, k: int):
    """β̇ᶠ; pose, velocity and acceleration by point; Λ."""
    at = numbers[nv : nv + 24 * k].reshape(k, 24)
    points = [(x[:12].reshape(3, 4), x[12:18], x[18:24]) for x in at]
    return numbers[:nv], points, numbers[nv + 24 * k :].reshape(6 * k, 6 * k)


def _step_d(kind, arms, held, admittances):
    """Contact forces [torque; force] at the arms' points and at the object's, by dense algebra in world axes."""
    rows, known = [], []
    k = len(arms)
    for n, ((X_a, V_a, a_a), (X_b, V_b, a_b)) in enumerate(zip(arms, held, strict=True)):
        d = X_b[:, 3] - X_a[:, 3]
        w_a, w_b = V_a[:3], V_b[:3]
        spin, slide = w_b - w_a, V_b[3:] - V_a[3:] - np.cross(w_a, d)
        there = a_a[3:] + np.cross(a_a[:3], d) + np.cross(w_a, np.cross(w_a, d))
        rate = np.concatenate((a_b[:3] - a_a[:3] - np.cross(w_b, spin), a_b[3:] - there - np.cross(w_a + w_b, slide)))
        for w in kind.constraint_space(kind.neutral()):
            moment, force = X_b[:, :3] @ w.angular, X_b[:, :3] @ w.linear
            row = np.zeros((2 * k, 6))
            row[n], row[k + n] = -np.concatenate((moment + np.cross(d, force), force)), np.concatenate((moment, force))
            rows.append(row.ravel())
            known.append(np.concatenate((moment, force)) @ rate)
    A = np.array(rows)
    L = np.zeros((12 * k, 12 * k))
    L[: 6 * k, : 6 * k], L[6 * k :, 6 * k :] = admittances
    push = A.T @ np.linalg.solve(A @ L @ A.T, -np.array(known))
    return push[: 6 * k], push[6 * k :]


@pytest.mark.slow
@pytest.mark.parametrize("grasp", ["fixed", "revolute", "spherical"])
def test_columns_of_arms_and_object_meet_in_step_d(grasp):
    """Programs of the arms know no object and no grasp: another object, or another grasp, leaves them as they are."""
    model = zoo.arms_with_object(2, grasp=grasp)
    heavy = replace(model.bodies[0], inertia=replace(model.bodies[0].inertia, mass=9.0))
    arms = replace(
        model,
        bodies=model.bodies[1:],
        joints=model.joints[1:],
        frames=tuple(f for f in model.frames if f.body != "object"),
        loops=(),
    )
    tools, holds = ("arm1_tool", "arm2_tool"), ("grasp1", "grasp2")
    of_arms = _columns(arms, tools)
    for body in (model.bodies[0], heavy):
        whole = replace(model, bodies=(body, *model.bodies[1:]))
        frames = tuple(f for f in model.frames if f.body == "object")
        held = replace(model, bodies=(body,), joints=model.joints[:1], frames=frames, loops=())
        of_object = _columns(held, holds)
        case = moving(whole, zoo.arms_with_object_start(2, grasp=grasp), np.random.default_rng(3))
        q, v, tau = (np.split(x, [n]) for x, n in ((case.q, 7), (case.v, 6), (case.tau, 6)))
        b_s, at_s, L_s = _split(of_object[0](q[0], v[0], tau[0]), 6, 2)
        b_p, at_p, L_p = _split(of_arms[0](q[1], v[1], tau[1]), 12, 2)
        push_p, push_s = _step_d(model.loops[0].kind, at_p, at_s, (L_p, L_s))
        a = np.concatenate((b_s + of_object[1](q[0], push_s), b_p + of_arms[1](q[1], push_p)))
        assert difference(a, exact(whole, case.q, case.v, case.tau)) < AGREE


def test_admittance_between_branches_with_a_common_base_that_moves():
    """Λ = J M⁻¹ Jᵀ, also between branches, where lemma 5 of the paper has zero."""
    model = zoo.tree(7, seed=2)
    points = ("world", *(b.name for b in model.bodies[-3:]))
    robot = sl.Dynamics(model)
    q, v = model.random_state(np.random.default_rng(4))
    numbers = _columns(model, points)[0](q, v, np.zeros(model.nv))
    J = np.vstack([np.zeros((6, model.nv)) if p == "world" else robot.jacobian(q, p) for p in points])
    expected = J @ np.linalg.solve(robot.mass_matrix(q), J.T)
    found = _split(numbers, model.nv, len(points))[2]
    np.testing.assert_allclose(found, expected, atol=1e-11 * np.abs(expected).max())
    assert np.abs(expected[6:12, 12:18]).max() > 1e-3  # they do couple


@pytest.mark.slow
def test_feedback_pulls_a_loop_closed_with_every_recursive_method():
    """Lilly & Orin's step 5: the same motion as with the method of elimination."""
    case = _held("spherical")
    ends = [
        sl.simulate(
            case.model, case.q, case.v, duration=0.02, step=1e-3, closures="feedback", method=method
        ).q[-1]
        for method in ("elimination", "simple_closed_chain", "arms_on_object_2", "closed_topology")
    ]  # fmt: skip
    for q in ends[1:]:
        np.testing.assert_allclose(q, ends[0], atol=1e-10)


@pytest.mark.parametrize("grasp", ["revolute", "spherical", "universal", "prismatic", SoftFinger()], ids=str)
def test_accelerations_along_the_freedoms_of_a_grasp(grasp):
    """Ẇ of a.8 from dense relative accelerations: φ Ẇ + dφ/dt W is what the closure leaves of them."""
    case = _soft(grasp)
    robot = sl.Dynamics(case.model, target="python")
    a = robot.forward_dynamics(case.q, case.v, case.tau)
    found = sl.papers.grasp_accelerations(robot, case.q, case.v, a)
    reference, expected = ClosedReference(case.model, case.q, case.v), []
    for loop in case.model.loops:
        W, J, rate = reference._relative(loop)
        if isinstance(grasp, SoftFinger):
            expected += list((J @ a + rate)[:2])
            continue
        q = reference.coordinates(loop)
        phi = np.array([tuple(s) for s in loop.kind.motion_space(q)]).T
        W = np.linalg.lstsq(phi, W, rcond=None)[0]
        own = np.array(tuple(loop.kind.motion_space_rate(q, W.tolist())))
        expected += list(np.linalg.lstsq(phi, J @ a + rate - own, rcond=None)[0])
    np.testing.assert_allclose(found, expected, atol=1e-10 * np.abs(a).max())


@pytest.mark.slow
@pytest.mark.parametrize("method", ["simple_closed_chain", "closed_topology"])
def test_feet_that_are_lifted_and_put_down(method):
    """Six, three and one of six legs stand; contacts that are switched carry no chain, but hold one."""
    case, names = case_of("hexapod"), [x.name for x in case_of("hexapod").model.loops]
    robot = sl.Dynamics(zoo.hexapod(switchable=True), method=method, target="python")
    for active in (names, names[::2], names[3:4]):
        left = replace(case.model, loops=tuple(x for x in case.model.loops if x.name in active))
        v = consistent(left, case.q, case.v)
        a = robot.forward_dynamics(case.q, v, case.tau, active_loops=active)
        assert difference(a, exact(left, case.q, v, case.tau)) < AGREE
