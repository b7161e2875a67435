"""Every kind of joint keeps the axioms of a joint; the kinds that Pinocchio has agree with it."""

from __future__ import annotations

import numpy as np
import pytest
from frames import columns, derivative, matrix, twist
from sentences import says

from spanloop.errors import ModelError, UnsupportedError
from spanloop.joints import KINDS, Free, General, Helical, Planar, Revolute, Spherical, Universal
from spanloop.joints.kind import AxisJoint
from spanloop.math.inertia import RigidInertia
from spanloop.math.rotation import Rotation
from spanloop.math.spatial import Transform, combined
from spanloop.zoo.random_models import plain_kind, random_kind

# derivatives by differences are good to about 1e-12 (see frames.derivative); one order in hand, twice
DIFFERENCES = 1e-10
# a few products of rotations: some dozens of roundings of numbers of order 1
ROUNDING = 1e-14

SEEDS = range(4)
CASES = [pytest.param(name, None, id=name) for name in KINDS]
CASES += [pytest.param(name, seed, id=f"{name}-seed{seed}") for name in KINDS for seed in SEEDS]
every_kind = pytest.mark.parametrize(("name", "seed"), CASES)


def kind_of(name, seed):
    return plain_kind(name) if seed is None else random_kind(name, np.random.default_rng(seed))


def state_of(kind, seed):
    """Coordinates and rates of order 1, quaternions unit."""
    rng = np.random.default_rng(1000 + (seed or 0))
    q = rng.uniform(-1.5, 1.5, kind.nq)
    if kind.unit_parts(q):
        q[:4] = rng.normal(size=4)
        q[:4] /= np.linalg.norm(q[:4])
    return q.tolist(), rng.uniform(-1.0, 1.0, kind.nv).tolist()


def same_coordinates(kind, a, b, tolerance):
    """Equal, a quaternion up to its sign."""
    a, b = np.array(a), np.array(b)
    if kind.unit_parts(a) and np.dot(a[:4], b[:4]) < 0.0:
        b[:4] = -b[:4]
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


def random_inertia(rng):
    points = rng.normal(size=(5, 3))
    masses = rng.uniform(0.5, 1.0, 5)
    second = np.einsum("k,ki,kj->ij", masses, points, points)
    return RigidInertia(float(masses.sum()), tuple((masses @ points).tolist()), tuple(map(tuple, second.tolist())))


# ---- axioms


@every_kind
def test_transform_moves_as_motion_space_says(name, seed):
    kind = kind_of(name, seed)
    q, v = state_of(kind, seed)
    rate = np.array(kind.rates(q, v))
    found = twist(lambda t: matrix(kind.transform((np.array(q) + t * rate).tolist())))
    np.testing.assert_allclose(found, columns(kind.motion_space(q)) @ v, rtol=0, atol=DIFFERENCES)


@every_kind
def test_motion_and_constraint_space_are_complementary(name, seed):
    kind = kind_of(name, seed)
    q, _ = state_of(kind, seed)
    phi, constraint = columns(kind.motion_space(q)), columns(kind.constraint_space(q))
    assert phi.shape == (6, kind.nv)
    assert constraint.shape == (6, 6 - kind.nv)
    np.testing.assert_allclose(constraint.T @ phi, 0.0, atol=ROUNDING)
    smallest = np.linalg.svd(np.hstack((phi, constraint)), compute_uv=False)[-1]
    assert smallest > 0.1, "the six columns are nearly dependent"


@every_kind
def test_motion_space_rate_is_the_derivative_of_motion_space(name, seed):
    kind = kind_of(name, seed)
    q, v = state_of(kind, seed)
    rate = np.array(kind.rates(q, v))
    found = derivative(lambda t: columns(kind.motion_space((np.array(q) + t * rate).tolist())) @ v)
    np.testing.assert_allclose(np.array(tuple(kind.motion_space_rate(q, v))), found, rtol=0, atol=DIFFERENCES)


@every_kind
def test_motion_space_rates_are_the_derivatives_of_the_columns(name, seed):
    kind = kind_of(name, seed)
    q, v = state_of(kind, seed)
    rate = np.array(kind.rates(q, v))
    found = derivative(lambda t: columns(kind.motion_space((np.array(q) + t * rate).tolist())))
    each = kind.motion_space_rates(q, v)
    np.testing.assert_allclose(columns(each), found, rtol=0, atol=DIFFERENCES)
    np.testing.assert_allclose(tuple(combined(each, v)), tuple(kind.motion_space_rate(q, v)), atol=ROUNDING)


@every_kind
@pytest.mark.parametrize("time", [0.0, 0.01, 0.7])
def test_plus_follows_the_rates(name, seed, time):
    """plus(q, t v) solves dq/dt = rates(q, v) with v constant, at any time t."""
    kind = kind_of(name, seed)
    q, v = state_of(kind, seed)

    def path(t):
        return np.array(kind.plus(q, [(time + t) * x for x in v]))

    expected = kind.rates(path(0.0).tolist(), v)
    np.testing.assert_allclose(derivative(path), expected, rtol=0, atol=DIFFERENCES)


@every_kind
@pytest.mark.parametrize("size", [1.0, 1e-2, 1e-7])
def test_plus_and_minus_are_inverse(name, seed, size):
    kind = kind_of(name, seed)
    q, v = state_of(kind, seed)
    delta = [size * x for x in v]
    if name == "general":
        with says(UnsupportedError, "two poses have no difference"):
            kind.minus(q, q)
        return
    # 1e-15 of coordinates of order 1, amplified at most a few times by the logarithm
    np.testing.assert_allclose(kind.minus(kind.plus(q, delta), q), delta, rtol=0, atol=ROUNDING)
    other, _ = state_of(kind, 77)
    same_coordinates(kind, kind.plus(q, kind.minus(other, q)), other, ROUNDING)


@every_kind
def test_frames_coincide_at_neutral(name, seed):
    kind = kind_of(name, seed)
    assert len(kind.neutral()) == kind.nq
    np.testing.assert_allclose(matrix(kind.transform(kind.neutral())), np.eye(4), atol=ROUNDING)


@every_kind
def test_plus_keeps_quaternions_unit(name, seed):
    kind = kind_of(name, seed)
    q, v = state_of(kind, seed)
    for part in kind.unit_parts(kind.plus(q, v)):
        assert abs(np.linalg.norm(part) - 1.0) < 4e-16


# ---- what kernels use


@every_kind
def test_a_joint_is_its_sides(name, seed):
    """transform(q) = A z.transform(q) Bᵀ; spaces are those of z turned by B."""
    kind = kind_of(name, seed)
    q, v = state_of(kind, seed)
    before, z, after = kind.sides()
    composed = Transform(before) @ z.transform(q) @ Transform(after.T)
    np.testing.assert_allclose(matrix(composed), matrix(kind.transform(q)), atol=ROUNDING)
    turned = columns(s.turned(after) for s in z.motion_space(q))
    np.testing.assert_allclose(turned, columns(kind.motion_space(q)), atol=ROUNDING)
    rate = tuple(z.motion_space_rate(q, v).turned(after))
    np.testing.assert_allclose(rate, tuple(kind.motion_space_rate(q, v)), atol=ROUNDING)
    np.testing.assert_allclose(z.rates(q, v), kind.rates(q, v), atol=ROUNDING)
    crossed = columns(f.turned(after) for f in z.constraint_space(q)).T @ columns(kind.motion_space(q))
    np.testing.assert_allclose(crossed, 0.0, atol=ROUNDING)


@every_kind
def test_a_led_joint_turns_by_the_angle_first(name, seed):
    z = kind_of(name, seed).sides().kind
    q, _ = state_of(z, seed)
    led = z.led_by(0.3)
    if led is None:
        return
    expected = matrix(Transform(Rotation.about(2, 0.3))) @ matrix(z.transform(q))
    np.testing.assert_allclose(matrix(led.transform(q)), expected, atol=ROUNDING)
    np.testing.assert_allclose(columns(led.motion_space(q)), columns(z.motion_space(q)), atol=ROUNDING)


@every_kind
def test_the_hidden_part_of_an_inertia_is_felt_alike_everywhere(name, seed):
    """Seen from the parent it does not depend on q, and moving the joint alone gives it no momentum."""
    z = kind_of(name, seed).sides().kind
    hidden = z.hidden(random_inertia(np.random.default_rng(seed or 0)))
    q, _ = state_of(z, seed)
    one, two = (hidden.carried(z.transform(x)) for x in (q, z.neutral()))
    if name == "universal":  # its rotation is not 0 at neutral, but a point mass does not mind
        assert hidden.second == RigidInertia().second
    for a, b in ((one.mass, two.mass), (one.first, two.first), (one.second, two.second)):
        np.testing.assert_allclose(a, b, rtol=0, atol=20 * ROUNDING)
    for column in z.motion_space(q):
        np.testing.assert_allclose(tuple(hidden @ column), 0.0, atol=20 * ROUNDING)


SPRUNG = [make() for name, make in KINDS.items() if name not in ("general", "fixed")]


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_is_described_by_what_it_needs(name):
    kind = kind_of(name, 3)
    assert KINDS[name](**kind.describe()) == kind


# ---- sentences


def test_a_zero_axis_is_refused():
    with pytest.raises(ModelError) as error:
        Revolute((0, 0, 0))
    assert str(error.value) == (
        "revolute joint: axis is (0.0, 0.0, 0.0), which has no direction; expected a non-zero vector, "
        "for example (0, 0, 1)"
    )


def test_an_unknown_axis_name_is_refused():
    with says(ModelError, "axis is 'w'; expected 'x', 'y', 'z', '-x', ... or three numbers"):
        Revolute("w")


def test_axes_have_names_and_signs():
    assert Revolute("-y").axis == (0.0, -1.0, 0.0)
    assert Revolute((0, 0, 5)).axis == (0.0, 0.0, 1.0)


def test_two_equal_axes_of_a_universal_joint_are_refused():
    with says(ModelError, "universal joint: both axes are along"):
        Universal("x", "-x")


def test_a_general_joint_refuses_dependent_or_wrong_columns():
    with says(ModelError, "the motion space has 2 columns of rank 1"):
        General(((0, 0, 1, 0, 0, 0), (0, 0, 2, 0, 0, 0)))
    with says(ModelError, "six numbers a column"):
        General(((0, 0, 1),))
    with says(ModelError, "not complementary"):
        General(((0, 0, 0, 0, 0, 1),), tuple(map(tuple, np.eye(6)[1:].tolist())))


# ---- Pinocchio

pin = pytest.importorskip("pinocchio")
A = np.array([0.48, -0.6, 0.64])  # a unit vector
B = np.array([0.8, 0.0, -0.6])  # square to A, as Pinocchio's universal joint wants


def _cylindrical():
    joint = pin.JointModelComposite(2)
    joint.addJoint(pin.JointModelRevoluteUnaligned(A))
    joint.addJoint(pin.JointModelPrismaticUnaligned(A))
    return joint


def _quaternion_last(q):
    return [*q[1:4], q[0]]


def _same(x):
    return list(x)


def _angular_last(v):
    return [*v[3:], *v[:3]]


COMPARED = {
    "revolute x": (Revolute("x"), lambda: pin.JointModelRX(), _same, _same),
    "revolute y": (Revolute("y"), lambda: pin.JointModelRY(), _same, _same),
    "revolute": (Revolute(tuple(A)), lambda: pin.JointModelRevoluteUnaligned(A), _same, _same),
    "prismatic": (KINDS["prismatic"](tuple(A)), lambda: pin.JointModelPrismaticUnaligned(A), _same, _same),
    "helical": (Helical(tuple(A), 0.2), lambda: pin.JointModelHelicalUnaligned(A, 0.2), _same, _same),
    "universal": (Universal(tuple(A), tuple(B)), lambda: pin.JointModelUniversal(A, B), _same, _same),
    "cylindrical": (KINDS["cylindrical"](tuple(A)), _cylindrical, _same, _same),
    "spherical": (Spherical(), lambda: pin.JointModelSpherical(), _quaternion_last, _same),
    "planar": (
        Planar(),
        lambda: pin.JointModelPlanar(),
        lambda q: [q[1], q[2], np.cos(q[0]), np.sin(q[0])],
        lambda v: [v[1], v[2], v[0]],
    ),
    "free": (
        Free(),
        lambda: pin.JointModelFreeFlyer(),
        lambda q: [*q[4:], *_quaternion_last(q)],
        _angular_last,
    ),
}


@pytest.mark.parametrize("name", COMPARED)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_joint_agrees_with_pinocchios(name, seed):
    """Placement, velocity and, with no acceleration of the joint, the acceleration of the child."""
    kind, make, q_to, v_to = COMPARED[name]
    q, v = state_of(kind, seed)
    model = pin.Model()
    model.addJoint(0, make(), pin.SE3.Identity(), "joint")
    data = model.createData()
    pin.forwardKinematics(model, data, np.array(q_to(q)), np.array(v_to(v)), np.zeros(kind.nv))
    np.testing.assert_allclose(matrix(kind.transform(q)), data.oMi[1].homogeneous, atol=ROUNDING)
    motion = columns(kind.motion_space(q)) @ v
    np.testing.assert_allclose(motion, _angular_last(data.v[1].vector), atol=ROUNDING)
    bias = tuple(kind.motion_space_rate(q, v))
    np.testing.assert_allclose(bias, _angular_last(data.a[1].vector), atol=ROUNDING)


def test_every_axis_kind_is_compared_or_known_to_be_missing():
    compared = {kind.name for kind, *_ in COMPARED.values()}
    assert set(KINDS) - compared == {"fixed", "general"}
    assert {k.name for k in KINDS.values() if issubclass(k, AxisJoint)} <= compared


@pytest.mark.parametrize("kind", SPRUNG, ids=lambda k: k.name)
def test_the_torque_of_a_spring_is_minus_the_gradient_of_its_energy(kind):
    """By central differences along `plus`; step 1e-5 leaves 1e-9 of the energy's third derivative."""
    rng = np.random.default_rng(5)
    q, rest = (kind.plus(kind.neutral(), rng.uniform(-0.6, 0.6, kind.nv)) for _ in range(2))
    stiffness = rng.uniform(1.0, 3.0, kind.nv)
    torque, _ = kind.spring(q, rest, stiffness)
    for k in range(kind.nv):
        step = np.zeros(kind.nv)
        step[k] = 1e-5
        energies = [kind.spring(kind.plus(q, s * step), rest, stiffness)[1] for s in (1, -1)]
        assert abs(torque[k] + (energies[0] - energies[1]) / 2e-5) < 1e-8
