"""The Delassus matrix beside dense linear algebra: trees, loops, two bodies that move, torsion, driven joints."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl


def chain():
    """Three links, two points on the last one, a ball on the first touching a ball on the last."""
    b = sl.Builder("chain")
    for k, parent in enumerate(("world", "one", "two")):
        name = ("one", "two", "three")[k]
        b = b.body(name, 1.0 + k, center=(0.1, 0.0, 0.2), inertia=(0.02, 0.03, 0.04))
        b = b.revolute(f"j{k}", parent, name, axis="xyz"[k], position=(0.0, 0.1, 0.3))
    m = b.build().with_contact("tip", ("three", sl.contacts.Point(position=(0.2, 0.1, 0.0))), "ground", friction=0.5)
    m = m.with_contact("rod", ("three", sl.contacts.Capsule(0.02, 0.3)), "ground", friction=0.2)
    return m.with_contact(
        "balls",
        ("one", sl.contacts.Sphere(0.05, position=(0.1, 0.0, 0.0))),
        ("three", sl.contacts.Sphere(0.03)),
        friction=0.3,
        torsion=0.01,
    )


def leg():
    """The leg with two loops, its foot on the ground."""
    return sl.zoo.linkage_leg().with_contact("foot", ("foot", sl.contacts.Sphere(0.02)), "ground", friction=0.5)


def dense(model, q):
    """J Y Jᵀ with columns of J from contact_geometry's velocities, rows of spin from frame velocities."""
    robot = sl.Dynamics(model)
    columns = []
    for e in np.eye(model.nv):
        g = robot.contact_geometry(q, e)
        u = np.concatenate([g.gap_rate[:, None], np.einsum("kdx,kx->kd", g.axes[:, 1:], g.slip)], axis=1)
        turns = [_spin(robot, q, e, c) for c in model.contacts for _ in c.point_names]
        spin = np.einsum("kdx,kx->kd", g.axes, np.array(turns))
        columns.append(np.concatenate([u, spin], axis=1) if any(c.torsion for c in model.contacts) else u)
    J = np.array([x.ravel() for x in columns]).T
    inverse = np.linalg.inv(robot.mass_matrix(q))
    if model.loops:
        C = sl.compile(model, "closure_jacobian")(q)
        inverse = inverse - inverse @ C.T @ np.linalg.pinv(C @ inverse @ C.T, rcond=1e-10) @ C @ inverse
    return J @ inverse @ J.T


def _spin(robot, q, v, contact):
    """Angular velocity of side a relative to side b."""

    def of(side):
        return np.zeros(3) if side.at == "world" else robot.frame_velocity(q, v, side.at)[:3]

    return of(contact.a) - of(contact.b)


@pytest.mark.slow
@pytest.mark.parametrize("model", [chain(), leg()], ids=["chain", "leg with loops"])
def test_the_matrix_is_that_of_dense_algebra(model):
    robot, rng = sl.Dynamics(model), np.random.default_rng(1)
    states = [
        model.neutral() + 0.3 * rng.normal(size=model.nq) if not model.loops else model.neutral() for _ in range(3)
    ]
    states = np.array([robot.assemble(q) if model.loops else q for q in states])
    W = robot.delassus(states)
    for k, q in enumerate(states):
        expected = dense(model, q)
        assert np.abs(W[k] - expected).max() < 1e-12 * np.abs(expected).max()
    assert (robot.delassus(states[0]) == W[0]).all()


def test_a_model_without_contacts_has_none():
    with pytest.raises(sl.errors.InputError, match="has no contacts"):
        sl.Dynamics(sl.zoo.puma()).delassus(np.zeros(6))
