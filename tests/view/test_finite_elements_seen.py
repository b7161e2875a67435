"""Surfaces of bodies from finite elements: patches follow the shapes, and colours the strain energy."""

import numpy as np
import pytest

pytest.importorskip("skfem")
from solid_elements import Solid, bar

import spanloop as sl
from spanloop.view.beams import segments, surfaces
from spanloop.view.moving_scene import moving_scene
from spanloop.view.scene import poses, scene


@pytest.fixture(scope="module")
def part():
    solid = Solid(bar(0.5, counts=(10, 2, 2)))
    outside = solid.basis.mesh.boundary_facets()
    corner = {tuple(x): k for k, x in enumerate(solid.positions.round(9))}
    number = np.array([corner[tuple(x)] for x in solid.basis.mesh.p.T.round(9)])
    triangles = number[solid.basis.mesh.facets[:, outside].T]

    def energy(shapes):
        share = np.zeros((len(triangles), shapes.shape[1], shapes.shape[1]))
        share[7] = shapes.T @ (solid.stiffness @ shapes)  # all of it in one triangle
        return share

    return sl.flexible.from_matrices(
        solid.mass, solid.stiffness, solid.positions, dofs=solid.dofs, modes=2, surface=triangles,
        surface_energy=energy, interfaces={"root": solid.at(0.0), "tip": solid.at(0.5)},
    )  # fmt: skip


@pytest.fixture(scope="module")
def model(part):
    return sl.Builder("rotor").body("bar", flexible=part).revolute("hinge", "world", "bar", "y").build()


def test_every_triangle_is_drawn_once_and_patches_follow_the_shapes(model, part):
    found = surfaces.surface(part)
    assert 10 < len(found.triangles) <= surfaces.MOST
    assert sorted(np.concatenate(found.triangles)) == list(range(len(part.triangles)))
    q = model.neutral()
    eta = np.zeros(part.n)
    eta[:2] = 2e-3, -1e-3
    q[model.q_slice("bar.modes")] = eta
    seen, at = scene(model, q), poses(sl.Dynamics(model), q)
    first = model.n_bodies + 1
    assert len(seen.bodies) - first == len(found.triangles) == segments.segment_count(model)
    moved = part.vertices + np.einsum("vna,n->va", part.movement, eta)
    for k, own in enumerate(found.triangles):
        nodes = np.unique(part.triangles[own])
        pose = at[first + k]
        drawn = seen.bodies[first + k].shapes[0].mesh.vertices @ pose[:3, :3].T + pose[:3, 3]
        assert np.abs(drawn - moved[nodes]).max() < 0.02 * np.abs(moved - part.vertices).max()


def test_colours_of_a_run_show_where_the_strain_energy_is(model, part):
    run = sl.simulate(model, duration=0.01, step=1e-5)
    seen = moving_scene(run).scene
    colors = np.concatenate([b.shapes[0].mesh.colors for b in seen.bodies[model.n_bodies + 1 :]])
    order = np.concatenate(surfaces.surface(part).triangles)
    assert list(order[colors == colors[np.flatnonzero(order == 7)[0]]]) == [7]
    assert surfaces.ramp(np.array([0.0, 1.0])).tolist() == [0x2B4C9B, 0xC82F2A]


def test_pages_and_animations_are_written(model, tmp_path):
    run = sl.simulate(model, duration=0.01, step=1e-5, sample=1e-3)
    run.page(tmp_path / "run.html")
    model.page(tmp_path / "live.html")
    assert (tmp_path / "run.html").stat().st_size > 1e4
    assert (tmp_path / "live.html").stat().st_size > 1e4


def test_poses_of_a_live_page_are_those_of_the_scene(model, part):
    from spanloop.view.page.live.live_kernels import _local

    eta = [1e-3 * (k + 1) for k in range(part.n)]
    bent = segments.bent_bodies(model)[0]
    q = np.zeros(model.nq)
    q[bent.q] = eta
    expected = segments._local_poses(part, np.array(eta))
    for k, (turn, place) in enumerate(_local(bent, list(q))):
        np.testing.assert_allclose(np.array(turn), expected[k, :3, :3], atol=1e-12)
        np.testing.assert_allclose(place, expected[k, :3, 3], atol=1e-12)
