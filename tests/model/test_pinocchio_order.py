"""States and forces converted to Pinocchio's order mean there what they mean here."""

from __future__ import annotations

import numpy as np
import pytest
from frames import body_pose, matrix
from sentences import says

from spanloop import zoo
from spanloop.errors import InputError, UnsupportedError
from spanloop.joints import General, Planar
from spanloop.model.builder import Builder
from spanloop.model.orders.pinocchio import PinocchioOrder

pin = pytest.importorskip("pinocchio")

# products of some ten rotations, lengths of order 1
ROUNDING = 1e-13

AXIS_JOINTS = {
    "revolute": lambda k: pin.JointModelRevoluteUnaligned(np.array(k.axis)),
    "prismatic": lambda k: pin.JointModelPrismaticUnaligned(np.array(k.axis)),
    "helical": lambda k: pin.JointModelHelicalUnaligned(np.array(k.axis), k.pitch),
    "spherical": lambda k: pin.JointModelSpherical(),
    "planar": lambda k: pin.JointModelPlanar(),
    "free": lambda k: pin.JointModelFreeFlyer(),
}


def mixed_model(seed):
    """A random tree of the kinds that Pinocchio has, with a planar joint (normal z) and a fixed one."""
    kinds = ["revolute", "prismatic", "helical", "spherical", "free"]
    random = zoo.random_model(seed, 6, kinds)
    b = Builder("mixed")
    for body in random.bodies:
        b.body(body.name, body.inertia.mass, body.inertia.center, body.inertia.moments)
    for j in random.joints:
        b.joint(j.name, j.kind, j.parent, j.child, j.placement.position, j.placement.rotation)
    b.body("slab", 1.0, (0.1, 0.0, 0.0), (0.01, 0.01, 0.01))
    b.planar("slide", "body2", "slab", position=(0.1, 0.2, 0.0), rotation=(0.3, 0.2, 0.1))
    b.body("knob", 0.5, inertia=(0.01, 0.01, 0.01))
    b.fixed("glue", "slab", "knob", position=(0.1, 0.0, 0.0))
    return b.build()


def pinocchio_model(model):
    """The same tree in Pinocchio, children in reverse order so that its numbering differs from ours."""
    theirs = pin.Model()
    numbers = {"world": (0, pin.SE3.Identity())}

    def add(parent):
        for j in reversed([j for j in model.joints if j.parent == parent]):
            number, inside = numbers[parent]
            place = inside * pin.SE3(matrix(j.placement))
            if j.kind.nv:
                number = theirs.addJoint(number, AXIS_JOINTS[j.kind.name](j.kind), place, j.name)
                place = pin.SE3.Identity()
            i = model.body(j.child).inertia
            inertia = pin.Inertia(i.mass, np.array(i.center), np.array(i.matrix()))
            theirs.appendBodyToJoint(number, inertia, place)
            numbers[j.child] = (number, place)
            add(j.child)

    add("world")
    return theirs


@pytest.mark.parametrize("seed", range(8))
def test_converted_coordinates_place_the_bodies_alike(seed):
    model = mixed_model(seed)
    theirs = pinocchio_model(model)
    order = PinocchioOrder(model, list(theirs.names))
    q, _ = model.random_state(seed)
    data = theirs.createData()
    pin.forwardKinematics(theirs, data, order.q_to(q))
    for j in model.joints:
        if j.kind.nv:
            found = data.oMi[theirs.getJointId(j.name)].homogeneous
            np.testing.assert_allclose(found, body_pose(model, q, j.child), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("seed", range(8))
def test_converted_velocities_move_the_coordinates_alike(seed):
    """pin.integrate(q, v) is kind.plus(q, v), joint by joint."""
    model = mixed_model(seed)
    theirs = pinocchio_model(model)
    order = PinocchioOrder(model, list(theirs.names))
    q, v = model.random_state(seed)
    moved = np.concatenate(
        [j.kind.plus(q[model.q_slice(j.name)].tolist(), v[model.v_slice(j.name)].tolist()) for j in model.joints]
    )
    found = pin.integrate(theirs, order.q_to(q), order.v_to(v))
    np.testing.assert_allclose(np.abs(found), np.abs(order.q_to(moved)), rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(pin.difference(theirs, found, order.q_to(moved)), 0.0, atol=ROUNDING)


@pytest.mark.parametrize("seed", range(4))
def test_there_and_back_is_the_identity_on_batches(seed):
    model = mixed_model(seed)
    order = PinocchioOrder(model, list(pinocchio_model(model).names))
    states = [model.random_state(k) for k in range(6)]
    q = np.array([s[0] for s in states]).reshape(2, 3, -1)
    v = np.array([s[1] for s in states]).reshape(2, 3, -1)
    np.testing.assert_allclose(order.q_from(order.q_to(q)), q, rtol=0, atol=1e-15)
    assert (order.v_from(order.v_to(v)) == v).all()
    assert (order.v_to(order.v_from(v)) == v).all()
    assert order.q_to(q).shape == (2, 3, order.nq)


@pytest.mark.parametrize("seed", range(4))
def test_power_is_the_same_number(seed):
    """tau·v does not depend on the order, so tau is converted as v is."""
    model = mixed_model(seed)
    order = PinocchioOrder(model, list(pinocchio_model(model).names))
    rng = np.random.default_rng(seed)
    tau, v = rng.normal(size=(2, model.nv))
    assert order.v_to(tau) @ order.v_to(v) == pytest.approx(tau @ v, abs=1e-13)


@pytest.mark.parametrize("seed", range(4))
def test_fused_bodies_have_the_inertias_that_pinocchio_gives_them(seed):
    model = mixed_model(seed)
    theirs = pinocchio_model(model)
    fused = model.fuse()
    for j in fused.joints:
        ours, expected = fused.body(j.child).inertia, theirs.inertias[theirs.getJointId(j.name)]
        assert ours.mass == pytest.approx(expected.mass, abs=1e-15)
        np.testing.assert_allclose(ours.center, expected.lever, rtol=0, atol=1e-15)
        np.testing.assert_allclose(ours.matrix(), expected.inertia, rtol=0, atol=1e-15)


def test_a_force_swaps_its_halves():
    f = np.arange(12.0).reshape(2, 6)
    assert PinocchioOrder.force_to(f)[0].tolist() == [3.0, 4.0, 5.0, 0.0, 1.0, 2.0]
    assert (PinocchioOrder.force_from(PinocchioOrder.force_to(f)) == f).all()


def test_the_floating_base_may_be_called_root_joint():
    model = zoo.quadruped()
    names = ["universe", "root_joint", *[j.name for j in model.joints[1:]]]
    order = PinocchioOrder(model, names)
    q = model.neutral()
    q[4:7] = (1.0, 2.0, 3.0)
    assert order.q_to(q)[:7].tolist() == [1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0]


def test_a_hinge_without_limits_may_have_cosine_and_sine():
    model = zoo.pendulum(2)
    order = PinocchioOrder(model, ["universe", "hinge1", "hinge2"], [0, 2, 1])
    q = np.array([0.3, 0.4])
    np.testing.assert_allclose(order.q_to(q), [np.cos(0.3), np.sin(0.3), 0.4])
    np.testing.assert_allclose(order.q_from(order.q_to(q)), q)


def test_missing_and_extra_names_are_said():
    model = zoo.pendulum(2)
    with pytest.raises(
        InputError, match=r"Pinocchio's joint 'hinge3' is no moving joint of model 'pendulum2'; did you mean"
    ):
        PinocchioOrder(model, ["universe", "hinge1", "hinge2", "hinge3"])
    with says(InputError, "joint 'hinge2' of model 'pendulum2' is not among Pinocchio's"):
        PinocchioOrder(model, ["universe", "hinge1"])
    with says(InputError, "nqs has 2 entries for 3 names; expected one each"):
        PinocchioOrder(model, ["universe", "hinge1", "hinge2"], [1, 1])
    with says(InputError, "q has shape (3,); expected (..., 2)"):
        PinocchioOrder(model, ["universe", "hinge1", "hinge2"]).q_to(np.zeros(3))


def test_the_model_of_pinocchio_stands_for_its_names():
    class Theirs:
        names, nqs = ("universe", "hinge1", "hinge2"), (0, 2, 1)

    np.testing.assert_allclose(
        PinocchioOrder(zoo.pendulum(2), Theirs()).q_to([0.5, 0.2]), [np.cos(0.5), np.sin(0.5), 0.2]
    )
    with says(InputError, "PinocchioOrder: names is a int; expected the pinocchio.Model"):
        PinocchioOrder(zoo.pendulum(2), 3)


@pytest.mark.parametrize("kind", [General(((0, 0, 1, 0, 0, 0),)), Planar("x")])
def test_what_pinocchio_does_not_have_is_said(kind):
    b = Builder("odd").body("slab", 1.0, inertia=(1.0, 1.0, 1.5)).joint("odd", kind, "world", "slab")
    with says(UnsupportedError, "joint 'odd': Pinocchio"):
        PinocchioOrder(b.build(), ["universe", "odd"])
