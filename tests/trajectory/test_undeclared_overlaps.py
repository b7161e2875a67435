"""Shapes without a contact that overlap along a motion are found by MuJoCo; declared pairs and neighbours are not."""

from __future__ import annotations

import struct
import sys
from dataclasses import replace

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import UnsupportedError
from spanloop.model.parts import Geometry
from spanloop.trajectory.audit.undeclared_overlaps import undeclared_overlaps

pytest.importorskip("mujoco")

CUBE = [(x, y, z) for x in (0.1, -0.1) for y in (0.1, -0.1) for z in (0.1, -0.1)]


def two_sliders(*shapes: Geometry) -> sl.Model:
    """Bodies a, b, ... that slide along x, each with a collision shape."""
    b = sl.Builder("sliders")
    for name, shape in zip("abcd", shapes, strict=False):
        b.body(name, mass=1.0, inertia=(0.1, 0.1, 0.1), geometry=[shape]).free(f"f{name}", "world", name)
    return b.build()


def at(*places: tuple[float, float, float]) -> np.ndarray:
    return np.array([x for p in places for x in (1.0, 0.0, 0.0, 0.0, *p)])


def test_the_deepest_overlap_of_a_pair_is_found_with_its_sample():
    model = two_sliders(sl.contacts.Box(0.2, 0.2, 0.2), sl.contacts.Hull(CUBE), sl.contacts.Sphere(0.1))
    q = np.array([at((0, 0, 0), (x, 0, 0), (0, 5, 0)) for x in (1.0, 0.19, 0.17, 0.25)])
    found = undeclared_overlaps(model, q)
    assert [(x.a, x.b, x.sample) for x in found.found] == [("a", "b", 2)]
    assert found.found[0].depth == pytest.approx(0.03, abs=1e-6)
    assert found.n_pairs == 3
    assert found.left_out == ()


def test_a_declared_pair_may_overlap_and_a_body_below_the_declared_ground_may_not():
    model = two_sliders(sl.contacts.Sphere(0.1), sl.contacts.Sphere(0.1))
    q = at((0, 0, 0.05), (0.15, 0, 0.1))[None]
    assert [(x.a, x.b) for x in undeclared_overlaps(model, q).found] == [("a", "b")]
    model = model.with_contact("pair", "a", "b")
    assert undeclared_overlaps(model, q).n_pairs == 0
    model = model.with_contact("b", "b", "ground")
    (found,) = undeclared_overlaps(model, q).found
    assert {found.a, found.b} == {"a", "world"}
    assert found.depth == pytest.approx(0.05)
    stand_in = model.with_contact("a", ("a", sl.contacts.Point()), "ground")  # for the shape of a itself
    assert undeclared_overlaps(stand_in, q).found == ()


def test_neighbours_on_a_joint_overlap_by_design():
    b = sl.Builder("arm").body("upper", mass=1.0, inertia=(0.1,) * 3, geometry=[sl.contacts.Sphere(0.1)])
    b.body("lower", mass=1.0, inertia=(0.1,) * 3, geometry=[sl.contacts.Sphere(0.1)])
    model = b.free("f", "world", "upper").revolute("elbow", "upper", "lower", "y").build()
    assert undeclared_overlaps(model, model.neutral()[None]).n_pairs == 0


def test_a_mesh_counts_as_its_hull_and_one_that_cannot_be_read_is_named(tmp_path):
    faces = np.array([int(k) for k in "013032467475045051237276026064157173"]).reshape(-1, 3)
    triangles = b"".join(struct.pack("<12fH", *([0.0] * 3), *(x for k in f for x in CUBE[k]), 0) for f in faces)
    path = tmp_path / "cube.stl"
    path.write_bytes(b"\0" * 80 + struct.pack("<I", len(faces)) + triangles)
    mesh = Geometry("mesh", (1.0, 1.0, 2.0), file="cube.stl", use="collision", path=str(path))
    missing = Geometry("mesh", file="lost.stl", use="collision")
    model = two_sliders(mesh, sl.contacts.Sphere(0.1), missing)
    found = undeclared_overlaps(model, at((0, 0, 0), (0, 0, 0.29), (0, 0, 0))[None])
    assert found.found[0].depth == pytest.approx(0.01, abs=1e-5)
    assert found.left_out == ("mesh 'lost.stl' of 'c' (not found, or not STL, OBJ or MSH)",)
    broken = replace(mesh, path=str(tmp_path / "broken.stl"))
    (tmp_path / "broken.stl").write_bytes(b"no mesh")
    model = two_sliders(broken, sl.contacts.Sphere(0.1))
    assert "mesh 'cube.stl' of 'a' (Error" in undeclared_overlaps(model, at((0, 0, 0), (0, 0, 0))[None]).left_out[0]


def test_without_mujoco_the_audit_of_meshes_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(UnsupportedError, match="not installed; pip install 'spanloop"):
        undeclared_overlaps(two_sliders(sl.contacts.Sphere(0.1)), at((0, 0, 0))[None])


@pytest.mark.slow
def test_the_audit_of_meshes_names_bodies_that_fell_through_the_ground():
    model = two_sliders(sl.contacts.Sphere(0.1), sl.contacts.Sphere(0.1)).with_contact("a", "a", "ground")
    run = sl.simulate(model, at((0, 0, 0.1), (1, 0, 0.15)), duration=0.2, step=1e-3)
    found = run.audit(meshes=True)["overlaps"]
    assert found.verdict == "not well"
    assert found.value == pytest.approx(0.1 - run.q[-1, 13], abs=1e-6)
    assert "'b' and 'world' by up to 146 mm, at 0.2 s" in found.sentence or "'world' and 'b'" in found.sentence
    both = sl.simulate(model.with_contact("b", "b", "ground"), at((0, 0, 0.1), (1, 0, 0.15)), duration=0.2, step=1e-3)
    assert both.audit(meshes=True)["overlaps"].verdict == "well"
    assert "overlaps" not in [f.name for f in run.audit().findings]
