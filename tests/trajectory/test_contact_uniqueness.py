"""Which contact forces and motions are unique: counted by hand for a rigid body on points."""

from __future__ import annotations

import numpy as np
import pytest

from spanloop.contacts.uniqueness import unique

SQUARE = [(0.2, 0.1), (-0.2, 0.1), (-0.2, -0.1), (0.2, -0.1)]


def delassus(corners, height=0.3):
    """J M⁻¹ Jᵀ in axes (z, x, y) of points of a body of 2 kg, below its centre of mass."""
    rows = []
    for x, y in corners:
        r = np.array([x, y, -height])
        rows += [[*np.cross(r, d), *d] for d in ([0, 0, 1], [1, 0, 0], [0, 1, 0])]
    J = np.array(rows, float)
    return J @ np.diag(1.0 / np.array([0.03, 0.04, 0.05, 2.0, 2.0, 2.0])) @ J.T


def sticking(count):
    return np.broadcast_to(np.eye(3), (count, 3, 3)).copy()


def slipping(directions, friction=0.5):
    """Columns (n, 3, 3) of points that slip along unit vectors (n, 2), and their pull (n, 3) in the world."""
    d = np.array(directions, float)
    out = np.zeros((len(d), 3, 3))
    out[:, 0, 0], out[:, 1:, 0] = 1.0, -friction * d
    return out, friction * np.column_stack([d, np.zeros(len(d))])


def judged(corners, columns, slips, pull):
    forces, motion = unique(delassus(corners)[None], columns[None], np.array([slips]), pull[None])
    return forces[0].tolist(), bool(motion[0])


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_of_points_that_stick_one_alone_has_a_unique_force(count):
    corners = SQUARE[:count]
    found = judged(corners, sticking(count), [False] * count, np.zeros((count, 3)))
    assert found == ([count == 1] * count, True)


@pytest.mark.parametrize("count", [3, 4])
def test_points_without_friction_have_unique_forces_up_to_three(count):
    columns = np.zeros((count, 3, 3))
    columns[:, 0, 0] = 1.0
    assert judged(SQUARE[:count], columns, [True] * count, np.zeros((count, 3))) == ([count == 3] * count, True)


def test_four_points_that_slide_alike_share_their_forces_in_many_ways_and_move_in_one():
    columns, pull = slipping([(1, 0)] * 4)
    assert judged(SQUARE, columns, [True] * 4, pull) == ([False] * 4, True)


def test_four_points_that_slide_and_spin_may_move_in_more_than_one_way():
    columns, pull = slipping([(np.cos(a), np.sin(a)) for a in (0.3, 0.8, 2.0, 4.0)])
    _, motion = judged(SQUARE, columns, [True] * 4, pull)
    assert not motion


def test_three_points_that_slide_and_spin_move_in_one_way():
    columns, pull = slipping([(np.cos(a), np.sin(a)) for a in (0.3, 0.8, 2.0)])
    assert judged(SQUARE[:3], columns, [True] * 3, pull) == ([True] * 3, True)


def test_open_points_do_not_count():
    columns = sticking(4)
    columns[1:] = 0.0
    assert judged(SQUARE, columns, [False] * 4, np.zeros((4, 3))) == ([True] * 4, True)


def test_compliant_points_have_unique_normal_forces():
    columns = np.zeros((4, 3, 3))
    columns[:, 0, 0] = 1.0
    W = delassus(SQUARE)
    normals = 3 * np.arange(4)
    W[normals, normals] += 1e-3
    forces, _ = unique(W[None], columns[None], np.ones((1, 4), bool), np.zeros((1, 4, 3)))
    assert forces.all()


def test_a_direction_in_which_a_point_cannot_move_is_left_out():
    W = np.diag([2.0, 3.0, 1e-17])[None]
    force, motion = unique(W, np.eye(3)[None, None], np.zeros((1, 1), bool), np.zeros((1, 1, 3)))
    assert (force.tolist(), motion.tolist()) == ([[True]], [True])
