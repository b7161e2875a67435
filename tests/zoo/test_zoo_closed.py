"""The closed mechanisms of the zoo: assembled, mobile as they should be, and moved as others say."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from closed_zoo import CASES, NO_CASES, mechanism
from dense_closures import ClosedReference, Extended, independent_rows
from pinocchio_closures import ClosedPeer
from sentences import says
from work import lines_run

from spanloop import zoo
from spanloop.errors import InputError
from spanloop.joints import Revolute
from spanloop.model.files.toml.reader import loads
from spanloop.model.files.toml.writer import dumps

PLANE = ("four_bar", "slider_crank", "five_bar", "n_four_bar 8", "andrews")


def moving(case, seed=0):
    """Model, q, v that keeps the loops closed, tau."""
    model, q = mechanism(case)
    rng = np.random.default_rng(seed)
    v = ClosedReference(model, q).consistent(rng.normal(size=model.nv))
    return model, q, v, rng.normal(size=model.nv)


def moved(model, q, step):
    return np.concatenate(
        [j.kind.plus(q[model.q_slice(j.name)].tolist(), step[model.v_slice(j.name)].tolist()) for j in model.joints]
    )


# ---- the mechanisms


@pytest.mark.parametrize("case", CASES)
def test_the_start_is_closed(case):
    model, q = mechanism(case)
    assert q.shape == (model.nq,)
    assert np.abs(ClosedReference(model, q).closure_error()).max() < 1e-14
    for joint in model.joints:
        for part in joint.kind.unit_parts(q[model.q_slice(joint.name)].tolist()):
            assert abs(np.linalg.norm(part) - 1.0) < 1e-15


@pytest.mark.parametrize("case", CASES)
def test_mobility_and_rows(case):
    mobility, rows, independent = CASES[case][3:]
    reference = ClosedReference(*mechanism(case))
    assert len(reference.closure_jacobian()) == rows
    assert reference.rank() == len(independent_rows(reference.closure_jacobian())) == independent
    assert reference.mobility() == mobility


@pytest.mark.parametrize("case", CASES)
def test_bodies_could_exist_and_names_are_words(case):
    model, _ = mechanism(case)
    assert not model.notes
    for body in model.bodies:
        a, b, c = np.linalg.eigvalsh(np.array(body.inertia.matrix()))
        assert body.inertia.mass > 0.0
        assert a >= 0.0
        assert a + b >= c * (1.0 - 1e-12)
    for part in (*model.joints, *model.loops):
        assert all(word.rstrip("0123456789").isalpha() for word in part.name.split("_"))


@pytest.mark.parametrize("case", CASES)
def test_a_file_gives_the_same_model(case):
    model, _ = mechanism(case)
    assert loads(dumps(model)) == model


@pytest.mark.parametrize("name", zoo.names(closed=True))
def test_start_takes_the_arguments_of_its_mechanism(name):
    own = inspect.signature(getattr(zoo, name)).parameters
    start = inspect.signature(getattr(zoo, f"{name}_start")).parameters
    assert {k: p.default for k, p in own.items()}.items() <= {k: p.default for k, p in start.items()}.items()


def test_names_tell_closed_from_open():
    assert set(zoo.names()) == set(zoo.names(closed=True)) | set(zoo.names(closed=False))
    assert not set(zoo.names(closed=True)) & set(zoo.names(closed=False))
    assert {CASES[case][0] for case in CASES} | NO_CASES == set(zoo.names(closed=True))
    assert "puma" in zoo.names(closed=False)


def test_a_chain_of_loops_is_made_with_work_that_grows_with_its_length():
    few, many = (lines_run(lambda n=n: zoo.n_four_bar(n)) for n in (16, 64))
    assert many < 6 * few
    assert len(zoo.n_four_bar(64).loops) == 64


def test_gravity_does_not_act_in_the_plane_of_the_squeezer():
    model, q = mechanism("andrews")
    np.testing.assert_allclose(ClosedReference(model, q).gravity(), 0.0, atol=1e-18)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: zoo.four_bar(closure="prismatic"), "four_bar: it cannot be closed by 'prismatic'; there are"),
        (lambda: zoo.four_bar_start(rocker=0.2), "four_bar: links of 2.2 m and 0.2 m cannot meet"),
        (
            lambda: zoo.four_bar_start(assembly="opened"),
            "four_bar: there is no assembly 'opened'; did you mean 'open'?",
        ),
        (lambda: zoo.five_bar_start(assembly="belo"), "five_bar: there is no assembly 'belo'; did you mean 'below'?"),
        (
            lambda: zoo.carpet_scraper_start(assembly="rigth"),
            "carpet_scraper: there is no assembly 'rigth'; did you mean 'right'?",
        ),
        (lambda: zoo.n_four_bar(0), "n_four_bar: 0 loops are asked for; expected at least 1"),
        (lambda: zoo.slider_crank_start(offset=0.5), "slider_crank: a rod of 0.3 m cannot reach the slide"),
        (lambda: zoo.bricard_start(angle=2.5), "bricard: angle is 2.5 rad; the ring closes up to 2.0944 rad"),
        (lambda: zoo.delta_start(position=(0.0, 0.0, -2.0)), "delta: no angle of the crank lets its rod reach"),
        (lambda: zoo.hexapod_start(position=(0.0, 0.0, 0.5)), "hexapod: leg 1 cannot reach its foothold"),
        (lambda: zoo.arms_with_object(0), "arms_with_object: 0 arms are asked for; expected at least 1"),
        (lambda: zoo.arms_with_object(2, arm="sixx"), "there is no arm 'sixx'; did you mean 'six'?"),
        (lambda: zoo.arms_with_object(2, arm=zoo.quadruped()), "has no frame or body 'tool'"),
        (lambda: zoo.arms_with_object(2, posture=(0.0,) * 5), "posture has 5 numbers; the arm has 6 coordinates"),
    ],
)
def test_what_cannot_be_assembled_gets_its_sentence(call, sentence):
    with says(InputError, sentence):
        call()


@pytest.mark.parametrize(
    ("model", "q"),
    [
        (zoo.four_bar(), zoo.four_bar_start(angle=2.5, assembly="crossed")),
        (zoo.five_bar(), zoo.five_bar_start(assembly="above")),
        (zoo.stewart(), zoo.stewart_start(position=(0.2, 0.1, 1.0), turn=(0.2, 0.1, -0.3))),
        (zoo.delta(), zoo.delta_start(position=(-0.1, 0.12, -0.7))),
        (zoo.linkage_leg(), zoo.linkage_leg_start(knee=-0.5, pitch=-0.4, roll=0.3)),
        (zoo.hexapod(), zoo.hexapod_start(position=(-0.03, 0.02, 0.1), turn=(-0.1, 0.1, -0.1))),
        (zoo.bricard(), zoo.bricard_start(angle=np.pi / 2)),
        (zoo.carpet_scraper(), zoo.carpet_scraper_start(angle=2.0, assembly="right")),
        (zoo.flyball_governor(), zoo.flyball_governor_start(angle=1.2, turn=0.5)),
        (
            zoo.arms_with_object(3, posture=(0.1, 0.6, -0.8, 0.2, 0.0, 0.4)),  # wrists stretched
            zoo.arms_with_object_start(3, posture=(0.1, 0.6, -0.8, 0.2, 0.0, 0.4)),
        ),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_other_starts_are_closed(model, q):
    assert np.abs(ClosedReference(model, q).closure_error()).max() < 1e-14


def test_a_posture_with_stretched_wrists_is_singular():
    """Roll and spin of each arm turn about one line: its own Jacobian loses a rank, the closures lose none."""
    posture = (0.1, 0.6, -0.8, 0.2, 0.0, 0.4)
    model, q = zoo.arms_with_object(2, posture=posture), zoo.arms_with_object_start(2, posture=posture)
    J = ClosedReference(model, q).closure_jacobian()
    assert np.linalg.matrix_rank(J[:6, model.v_slice("arm1_turn").start :][:, :6], tol=1e-9) == 5
    assert ClosedReference(model, q).rank() == 12


def test_three_pumas_are_those_of_the_table_around_a_disc():
    model, one = zoo.three_pumas(), zoo.puma()
    for i in (1, 2, 3):
        assert [model.body(f"arm{i}_{b.name}").inertia for b in one.bodies] == [b.inertia for b in one.bodies]
    assert model.mass == pytest.approx(3.0 * one.mass + 6.0)
    assert model.body("object").inertia.moments == pytest.approx((0.09875, 0.0, 0.0, 0.09875, 0.0, 0.1875))
    columns = np.array([model.joint(f"arm{i}_joint1").placement.position for i in (1, 2, 3)])
    np.testing.assert_allclose(columns[:, 2], columns[0, 2], atol=1e-12)
    np.testing.assert_allclose(columns.sum(axis=0)[:2], 0.0, atol=1e-12)  # evenly around


# ---- the squeezer, whose accelerations and forces are published


def test_andrews_starts_with_the_accelerations_and_forces_of_the_test_set():
    """[Test Set for IVP Solvers, Andrews' squeezing mechanism: initial values]"""
    model, q = mechanism("andrews")
    reference = ClosedReference(model, q)
    a, force = reference.forward_dynamics(zoo.andrews_forces(q))
    expected = np.array((14222.4439199541138705911625887, -10666.8329399655854029433719415, 0, 0, 0, 0, 0))
    np.testing.assert_allclose(a, expected, rtol=1e-13, atol=1e-13 * expected.max())
    expected = np.zeros((3, 6))
    expected[0, 3:5] = 98.5668703962410896057654982170, -6.12268834425566265503114393122
    np.testing.assert_allclose(reference.loop_forces(force), expected, rtol=1e-13, atol=1e-11)


def test_andrews_ends_with_the_accelerations_and_forces_of_the_test_set():
    """Its reference solution at 0.03 s, whose accelerations open the loops by 1e-7 of the centrifugal terms.

    The order there is β Θ γ Φ δ Ω ε.
    """
    order = [0, 1, 2, 4, 3, 6, 5]
    q = (15.81077119629904, -15.75637105984298, 0.04082224013073101, -0.5347301163226948)
    q = np.array((*q, 0.5244099658805304, 0.5347301163226948, 1.048080741042263))[order]
    v = (1139.920302151208, -1424.379294994111, 11.03291221937134, 19.29337464421385)
    v = np.array((*v, 0.5735699284790808, -19.29337464421385, 0.3231791658026955))[order]
    a = (-24631.76316945196, 51850.37701610329, 324102.5686413781, 566749.3645176213)
    a = np.array((*a, 16743.62929479361, -566749.3645176222, 9826.520791458422))[order]
    forces = (199.1753333731910, -29.75531228015052, 23.06654119098399, 31.45271365475927)
    forces = np.reshape((*forces, 22.64249232082739, 11.61740700019673), (3, 2))
    reference = ClosedReference(zoo.andrews(), q, v)
    assert np.abs(reference.closure_error()).max() < 1e-12
    found, force = reference.forward_dynamics(zoo.andrews_forces(q))
    np.testing.assert_allclose(found, a, atol=1e-6 * np.abs(a).max())
    np.testing.assert_allclose(reference.loop_forces(force)[:, 3:5], forces, atol=1e-6 * np.abs(forces).max())


def test_forces_of_the_squeezer_are_those_of_its_spring():
    """The gradient of −c₀ (L − l₀)²/2, with L the distance between the frames on the ground and on the lever."""
    model, q = mechanism("andrews")

    def energy(angle):
        state = np.array([*q[:2], angle, *q[3:]])
        reference = ClosedReference(model, state)
        hook, post = reference.pose("spring_hook")[:3, 3], reference.pose("spring_post")[:3, 3]
        stretch = np.linalg.norm(hook - post) - 0.07785
        return 0.5 * 4530.0 * stretch**2

    h = 1e-5
    slope = (energy(q[2] + h) - energy(q[2] - h)) / (2.0 * h)
    tau = zoo.andrews_forces(np.stack((q, q)))
    assert tau.shape == (2, 7)
    np.testing.assert_allclose(tau[1], (0.033, 0.0, -slope, 0.0, 0.0, 0.0, 0.0), atol=1e-8)


# ---- the dense reference itself


@pytest.mark.parametrize("case", CASES)
def test_the_error_changes_as_its_jacobian_says(case):
    model, q = mechanism(case)
    if case == "arms 2 general":
        pytest.skip("its rows are rows of velocity")
    rng = np.random.default_rng(1)
    v, h = rng.normal(size=model.nv), 1e-5
    ahead, behind = (ClosedReference(model, moved(model, q, s * h * v)).closure_error() for s in (1.0, -1.0))
    # truncation h² and rounding eps/h, both about 1e-10
    np.testing.assert_allclose(
        (ahead - behind) / (2.0 * h), ClosedReference(model, q).closure_jacobian() @ v, atol=1e-8
    )


@pytest.mark.parametrize("case", CASES)
def test_accelerations_keep_the_loops_closed(case):
    """d(J v)/dt = 0 along q(t) with these v and a, by central differences."""
    model, q, v, tau = moving(case)
    a, _ = ClosedReference(model, q, v).forward_dynamics(0.01 * tau if case.startswith("andrews") else tau)
    h = 1e-5 / max(1.0, np.abs(v).max(), np.sqrt(np.abs(a).max()))

    def rate(t):
        there = moved(model, q, t * v + 0.5 * t * t * a)
        return ClosedReference(model, there).closure_jacobian() @ (v + t * a)

    scale = max(1.0, np.abs(a).max())
    np.testing.assert_allclose((rate(h) - rate(-h)) / (2.0 * h), 0.0, atol=1e-6 * scale)


@pytest.mark.parametrize("case", ["four_bar", "five_bar", "bricard", "delta", "five-joint arms 2", "arms 2 cardan"])
def test_floats_agree_with_fifty_digits(case):
    model, q, v, tau = moving(case)
    a, _ = ClosedReference(model, q, v).forward_dynamics(tau)
    exact = ClosedReference(model, q, v, Extended).exact_forward_dynamics(tau)
    np.testing.assert_allclose(a, exact, atol=1e-11 * np.abs(exact).max())


def test_closing_by_a_hinge_or_by_a_ball_moves_a_plane_loop_alike():
    for case in PLANE:
        name, arguments, options = CASES[case][:3]
        model, q, v, tau = moving(case)
        ball = getattr(zoo, name)(*arguments, **options, closure="spherical")
        a, _ = ClosedReference(model, q, v).forward_dynamics(tau)
        b, _ = ClosedReference(ball, q, v).forward_dynamics(tau)
        np.testing.assert_allclose(a, b, atol=1e-11 * np.abs(b).max())


def test_the_coordinates_of_a_closing_hinge_are_its_angle():
    model = zoo.four_bar()
    q = zoo.four_bar_start(angle=2.0)
    found = ClosedReference(model, q).coordinates(model.loops[0])[0]
    assert found == pytest.approx((q[2] - q[0] - q[1] + np.pi) % (2 * np.pi) - np.pi, abs=1e-14)
    assert model.loops[0].kind == Revolute((0.0, -1.0, 0.0))


PINOCCHIO = [case for case in CASES if case in PLANE or ClosedPeer.knows(mechanism(case)[0])]


@pytest.mark.parametrize("case", PINOCCHIO)
@pytest.mark.parametrize("seed", range(3))
def test_accelerations_agree_with_pinocchio(case, seed):
    model, q, v, tau = moving(case, seed)
    name, arguments, options = CASES[case][:3]
    known = getattr(zoo, name)(*arguments, **options, closure="spherical") if case in PLANE else model
    a, _ = ClosedReference(model, q, v).forward_dynamics(tau)
    peer = ClosedPeer(known).closed_forward_dynamics(q, v, tau)
    np.testing.assert_allclose(a, peer, atol=1e-9 * max(1.0, np.abs(a).max()))
