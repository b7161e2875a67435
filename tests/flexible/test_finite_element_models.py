"""Models with bodies from finite elements: edits, parameters, exports and other kernels treat them as beams."""

import numpy as np
import pytest

import spanloop as sl

BOOM = sl.flexible.beam(0.5, E=7e10, density=2700.0, section=sl.flexible.circle(0.01), elements=2)


@pytest.fixture(scope="module")
def part():
    return sl.flexible.from_matrices(sl.flexible.to_matrices(BOOM), interfaces={"root": 0, "tip": 4}, modes=1)


@pytest.fixture(scope="module")
def rigid_arm():
    b = sl.Builder("arm").body("upper", 1.0, (0.25, 0, 0), (0.01, 0.1, 0.1))
    b.body("fore", 1.0, (0.2, 0, 0), (0.01, 0.1, 0.1))
    return b.revolute("a", "world", "upper", "y").revolute("b", "upper", "fore", "y", (0.5, 0, 0)).build()


def test_a_rigid_body_becomes_one_of_finite_elements_and_rigid_again(rigid_arm, part):
    soft = rigid_arm.with_flexible("upper", part)
    assert soft.joint("b").parent == "upper.tip"
    assert soft.nv == 2 + part.n
    assert soft.notes[-1] == f"body 'upper': now finite elements of {part.mass:g} kg; it was rigid, 1 kg"
    stiff = soft.rigid("upper")
    assert stiff.nv == 2
    assert stiff.mass == pytest.approx(soft.mass, rel=1e-12)
    q = np.array([0.3, -0.4])
    M = sl.Dynamics(soft).mass_matrix(np.concatenate([q[:1], np.zeros(part.n), q[1:]]))
    joints = [soft.v_slice("a").start, soft.v_slice("b").start]
    np.testing.assert_allclose(M[np.ix_(joints, joints)], sl.Dynamics(stiff).mass_matrix(q), rtol=1e-9)


def test_a_part_beside_the_interfaces_is_refused_with_them(part):
    b = sl.Builder("arm").body("upper", 1.0, (0.25, 0, 0), (0.01, 0.1, 0.1)).body("fore", 1.0, (0.2, 0, 0))
    model = b.revolute("a", "world", "upper", "y").revolute("b", "upper", "fore", "y", (0.4, 0.1, 0)).build()
    with pytest.raises(sl.errors.ModelError, match=r"where no interface is \(tip at \(0.5, 0, 0\)\)"):
        model.with_flexible("upper", part)


def test_other_materials_are_refused_and_names_change(rigid_arm, part):
    soft = rigid_arm.with_flexible("upper", part)
    with pytest.raises(sl.errors.UnsupportedError, match="no beam from which modes of another material follow"):
        soft.with_material("upper", E=1e11)
    named = soft.rename({"upper": "lower"})
    assert named.joint("lower.modes").kind == soft.joint("upper.modes").kind


def test_another_density_multiplies_mass_and_moments_by_one_factor_as_the_refusal_of_others_says(rigid_arm):
    fe = sl.flexible.to_matrices(BOOM)
    given = {"dofs": fe.dofs, "interfaces": {"root": 0, "tip": 4}, "modes": 2}  # one each of y and z, which are equal
    soft, expected = (
        rigid_arm.with_flexible("upper", sl.flexible.from_matrices(m * fe.mass, fe.stiffness, fe.positions, **given))
        for m in (1.0, 3.0)
    )
    own = soft.parameters()
    with pytest.raises(sl.errors.ModelError, match="Multiply its mass and all its moments of inertia by one factor"):
        soft.with_parameters({"upper.mass": 1.0})
    names = [x for x in own.names if x.startswith(("upper.mass", "upper.inertia"))]
    dense = soft.with_parameters(own.changed({x: 3.0 * own.values[own.index(x)] for x in names}))
    q, tau = (np.concatenate([[x], np.zeros(soft.nv - 2), [y]]) for x, y in ((0.3, -0.4), (1.0, 2.0)))
    found, wanted = (sl.Dynamics(m).forward_dynamics(q, 0.0 * tau, tau) for m in (dense, expected))
    np.testing.assert_allclose(found[[0, -1]], wanted[[0, -1]], rtol=1e-7)


@pytest.mark.slow
def test_inverse_and_forward_dynamics_and_derivatives_belong_together(rigid_arm, part):
    robot = sl.Dynamics(rigid_arm.with_flexible("upper", part))
    rng = np.random.default_rng(0)
    q, v, tau = (s * rng.standard_normal(robot.model.nv) for s in (0.01, 0.3, 1.0))
    a = robot.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(robot.inverse_dynamics(q, v, a), tau, atol=1e-8)
    found = robot.derivatives(q, v, tau)
    step = 1e-7 * rng.standard_normal(robot.model.nv)
    change = (robot.forward_dynamics(q + step, v, tau) - robot.forward_dynamics(q - step, v, tau)) / 2.0
    np.testing.assert_allclose(found.da_dq @ step, change, atol=1e-6 * np.abs(change).max())
