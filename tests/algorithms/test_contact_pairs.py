"""Pairs of shapes: gaps, normals and points beside MuJoCo and closed forms, on floats and compiled."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spanloop.algorithms.contact.pairs import PAIRS, pair_touches
from spanloop.algorithms.contact.touch import Side, tangents
from spanloop.math.rotation import Rotation
from spanloop.math.spatial import Transform
from spanloop.model.parts import Geometry

SIZES = {
    "point": (),
    "plane": (),
    "sphere": (0.3,),
    "capsule": (0.2, 0.7),
    "box": (0.5, 0.8, 1.1),
    "cylinder": (0.4, 0.9),
}
COMPARED = [pair for pair in PAIRS if not {"hull", "point"} & set(pair)]


def pose(rotation, position) -> Transform:
    rows = tuple(tuple(float(x) for x in r) for r in rotation)
    return Transform(Rotation.full(rows), tuple(float(x) for x in position))


def random_rotation(rng) -> np.ndarray:
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return q * np.linalg.det(q)


def touches_of(a: str, b: str, X_a: Transform, X_b: Transform):
    sides = Side(X_a, Transform()), Side(X_b, Transform())
    return pair_touches(Geometry(a, SIZES[a]), sides[0], Geometry(b, SIZES[b]), sides[1])


def geom(name: str, shape: str) -> str:
    size = {
        "plane": (1, 1, 1),
        "box": [0.5 * x for x in SIZES["box"]],
        "sphere": SIZES["sphere"],
    }.get(shape) or (SIZES[shape][0], 0.5 * SIZES[shape][1])
    numbers = " ".join(map(str, size))
    return f"<body name='{name}' mocap='true'><geom type='{shape}' size='{numbers}'/></body>"


@pytest.mark.parametrize(("a", "b"), COMPARED)
def test_gap_normal_and_point_are_those_of_mujoco(a, b):
    """At random poses, a third to all of them overlapping; the smallest gap of a pair with several points."""
    mujoco = pytest.importorskip("mujoco")
    m = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{geom('b', b)}{geom('a', a)}</worldbody></mujoco>")
    d = mujoco.MjData(m)
    rng = np.random.default_rng(17)
    overlapping = 0
    for _ in range(300):
        R_a, R_b = random_rotation(rng), random_rotation(rng)
        p_a, p_b = 0.5 * rng.normal(size=3), 0.2 * rng.normal(size=3)
        d.mocap_pos[:] = p_b, p_a
        for k, R in enumerate((R_b, R_a)):
            mujoco.mju_mat2Quat(d.mocap_quat[k], R.ravel())
        mujoco.mj_kinematics(m, d)
        from_to = np.zeros(6)
        distance = mujoco.mj_geomDistance(m, d, 0, 1, 100.0, from_to)
        nearest = min(touches_of(a, b, pose(R_a, p_a), pose(R_b, p_b)), key=lambda t: t.gap)
        overlapping += distance < 0.0
        assert nearest.gap == pytest.approx(distance, abs=1e-12)
        way = (from_to[3:] - from_to[:3]) / distance
        np.testing.assert_allclose(nearest.normal, way, atol=1e-9)
        share = SIZES[a][0] / (SIZES[a][0] + SIZES[b][0]) if b in ("sphere", "capsule") else 0.0  # of the gap
        np.testing.assert_allclose(nearest.point, (1.0 - share) * from_to[3:] + share * from_to[:3], atol=1e-9)
    assert 50 < overlapping < 295


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_the_order_of_a_pair_only_turns_the_normal_over(a, b):
    if "hull" in (a, b):
        pytest.skip("as a box")
    rng = np.random.default_rng(3)
    X_a, X_b = (pose(random_rotation(rng), rng.normal(size=3)) for _ in range(2))
    for one, other in zip(touches_of(a, b, X_a, X_b), touches_of(b, a, X_b, X_a), strict=True):
        assert one.gap == pytest.approx(other.gap, abs=1e-15)
        np.testing.assert_allclose(one.normal, np.negative(other.normal), atol=1e-15)
        np.testing.assert_allclose(one.point, other.point, atol=1e-15)


def test_tangents_are_orthonormal_and_right_handed_for_every_normal():
    rng = np.random.default_rng(5)
    cases = [*np.eye(3), *-np.eye(3), (-0.36, -0.48, -0.8), *rng.normal(size=(200, 3))]
    near = np.array((-0.36, -0.48, -0.8)) + 1e-4 * rng.normal(size=(50, 3))
    for n in (*cases, *near):
        n = np.array(n) / np.linalg.norm(n)
        R = np.array([n, *tangents(tuple(n.tolist()))])
        np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-10)
        assert np.linalg.det(R) > 0.999
    np.testing.assert_allclose(tangents((0.0, 0.0, 1.0)), [(1, 0, 0), (0, 1, 0)], atol=1e-15)


def test_closed_forms_of_the_plane():
    tilted = pose([(math.cos(0.3), 0, math.sin(0.3)), (0, 1, 0), (-math.sin(0.3), 0, math.cos(0.3))], (0, 0, 2.0))
    ground = pose(np.eye(3), (0, 0, 0))
    (sphere,) = touches_of("sphere", "plane", tilted, ground)
    assert sphere.gap == 2.0 - 0.3
    assert sphere.point == pytest.approx((0, 0, 1.7))
    ends = [t.gap for t in touches_of("capsule", "plane", tilted, ground)]
    assert sorted(ends) == pytest.approx([2.0 + s * 0.35 * math.cos(0.3) - 0.2 for s in (-1, 1)])
    lowest = min(t.gap for t in touches_of("box", "plane", tilted, ground))
    assert lowest == pytest.approx(2.0 - 0.25 * math.sin(0.3) - 0.55 * math.cos(0.3))
    lowest = min(t.gap for t in touches_of("cylinder", "plane", tilted, ground))
    assert lowest == pytest.approx(2.0 - 0.4 * math.sin(0.3) - 0.45 * math.cos(0.3))
