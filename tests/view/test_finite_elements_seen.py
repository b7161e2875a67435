"""Surfaces of bodies from finite elements: one mesh that moves with the modes, and colours of the strain energy."""

import re
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("skfem")
from bending_bars import LENGTH, PageSurface, SoftBar, hinged, pictured, still_run, under_a_force

import spanloop as sl
from spanloop.view import animation
from spanloop.view.beams import segments, surfaces
from spanloop.view.beams.patches import MOST, patches
from spanloop.view.meshes.decimation import decimated
from spanloop.view.meshes.mesh import Mesh
from spanloop.view.moving_scene import moving_scene
from spanloop.view.page import bending
from spanloop.view.page.live.live_kernels import _bending
from spanloop.view.page.meshes import STEPS, packed_meshes
from spanloop.view.scene import poses, scene
from spanloop.view.video.still import still


@pytest.fixture(scope="module")
def soft():
    return SoftBar()


@pytest.fixture(scope="module")
def model(soft):
    return hinged(soft.body())


@pytest.fixture(scope="module")
def stiffening(soft):
    """The same with the second-order displacements of its interface."""
    return hinged(soft.body(stiffening=True))


@pytest.fixture(scope="module")
def many(soft):
    """A bar with 30 modes."""
    return hinged(soft.body(modes=24))


def swung(model, size, count=1, seed=3):
    """States (count, nq) with the hinge turned and modes of equal strain energy, the tip displaced by about `size`."""
    print(f"seed {seed}")
    part = next(j.kind.source for j in model.joints if j.kind.bends)
    rng = np.random.default_rng(seed)
    eta = rng.normal(size=(count, part.n)) / np.sqrt(part.stiffness)
    eta *= size / np.linalg.norm(eta @ part.shifts[0], axis=1).max()
    rows = np.tile(model.neutral(), (count, 1))
    rows[:, model.q_slice("hinge")] = np.linspace(0.0, 1.0, count)[:, None]
    rows[:, model.q_slice("bar.modes")] = eta
    return rows


# ---- positions, by other means


def loaded(soft, load):
    """Displacements (nodes, 3) of the unreduced bar, its root held and its tip rigid, under a load (6,)."""
    from scipy.sparse import csc_matrix, hstack
    from scipy.sparse.linalg import spsolve

    s = soft.solid
    row = {tuple(d): k for k, d in enumerate(s.dofs.tolist())}
    middle = s.positions[soft.tip].mean(axis=0)
    tied = np.zeros((len(s.dofs), 6))
    for node in soft.tip.tolist():
        x, y, z = s.positions[node] - middle
        tied[[row[node, c] for c in range(3)]] = np.hstack([np.eye(3), [[0, z, -y], [-z, 0, x], [y, -x, 0]]])
    free = np.flatnonzero(~np.isin(s.dofs[:, 0], [*soft.tip, *soft.root]))
    unit = csc_matrix((np.ones(len(free)), (free, np.arange(len(free)))), shape=(len(s.dofs), len(free)))
    T = hstack([unit, csc_matrix(tied)]).tocsc()
    d = T @ spsolve((T.T @ s.stiffness @ T).tocsc(), np.concatenate([np.zeros(len(free)), load]))
    out = np.zeros_like(s.positions)
    out[s.dofs[:, 0], s.dofs[:, 1]] = d
    return out


@pytest.mark.slow
def test_a_page_has_the_nodes_of_the_unreduced_model_under_a_load_at_the_tip(soft, model):
    still_model = model.with_gravity((0.0, 0.0, 0.0))
    force, moment = np.array([0.0, 0.002, 0.003]), np.array([1e-4, 0.0, 0.0])
    expected = loaded(soft, np.concatenate([force, moment]))
    q = sl.Dynamics(still_model).static_deflection({"hinge": 0.0}, {"bar.tip": np.concatenate([moment, force])})
    drawn = PageSurface(pictured(still_run(still_model, q)))
    nodes = np.unique(soft.triangles)
    assert len(drawn.rest) == len(nodes)
    moved = drawn.vertices(0) - drawn.rest - (0.1, 0.2, 0.3)
    order = [np.linalg.norm(soft.solid.positions[nodes] - x, axis=1).argmin() for x in drawn.rest]
    largest = np.abs(expected).max()
    assert 1e-4 < largest < 0.02 * LENGTH
    # float32 of eta and poses, 16 bits of movements; what differs beyond is of second order in a slope of 0.01
    assert np.abs(moved - expected[nodes][order]).max() < 3e-3 * largest


@pytest.mark.slow
@pytest.mark.parametrize("turn", [0.0, 0.8])
def test_the_surface_ends_where_the_frame_of_its_interface_is(stiffening, turn):
    part = next(j.kind.source for j in stiffening.joints if j.kind.bends)
    q = stiffening.neutral()
    q[stiffening.q_slice("hinge")] = turn
    eta = under_a_force(part, (0.0, 0.03, 0.04))  # bent by a tenth of its length
    q[stiffening.q_slice("bar.modes")] = eta
    drawn = PageSurface(pictured(still_run(stiffening, q)))
    frame = sl.Dynamics(stiffening).pose(q, "bar.tip")
    end = np.abs(drawn.rest[:, 0] - LENGTH) < 1e-4
    rigid = (drawn.rest[end] - part.at[0]) @ frame[:3, :3].T + frame[:3, 3]
    deflection = np.linalg.norm(drawn.vertices(0) - drawn.vertices(0, 0.0 * eta), axis=1).max()
    gap = np.linalg.norm(drawn.vertices(0)[end] - rigid, axis=1).max()
    without = np.linalg.norm(drawn.vertices(0, eta)[end] - rigid, axis=1).max()
    assert deflection > 0.049
    assert gap < 0.01 * deflection  # how the section turns is of first order: θ²/2 of its half width
    assert without > 0.03 * deflection  # the coordinates alone leave the shortening out
    root = np.abs(drawn.rest[:, 0]) < 1e-4
    assert np.abs(drawn.vertices(0)[root] - drawn.vertices(0, 0.0 * eta)[root]).max() < 1e-6


@pytest.mark.slow
def test_added_coordinates_of_the_second_order_are_small_and_their_kernel_is_the_same(stiffening):
    q = swung(stiffening, 0.02)[0]
    found = segments.surface_coordinates(stiffening, q)
    (expected,) = found.values()
    assert list(found) == [stiffening.n_bodies + 1]
    np.testing.assert_allclose(_bending(stiffening, q.tolist()), expected, rtol=0.0, atol=1e-12)
    eta = q[stiffening.q_slice("bar.modes")]
    assert 0.0 < np.abs(expected - eta).max() < 0.1 * np.abs(eta).max()


# ---- more modes than a page has shapes


@pytest.mark.slow
def test_sixteen_modes_are_drawn_as_they_are(soft):
    model = hinged(soft.body(modes=10))
    drawn = PageSurface(data := pictured(still_run(model, swung(model, 0.01, 4))))
    assert drawn.count == bending.MOST == 16
    assert not [n for n in data["notes"] if "combinations" in n]
    np.testing.assert_array_equal(drawn.mix, np.eye(16))


@pytest.mark.slow
@pytest.mark.parametrize(("count", "rank"), [(40, 30), (8, 8)])
def test_more_modes_are_combined_and_the_note_says_what_is_left_out(many, count, rank):
    part = next(j.kind.source for j in many.joints if j.kind.bends)
    rows = swung(many, 0.01, count)
    data = pictured(still_run(many, rows))
    drawn = PageSurface(data)
    assert (drawn.count, drawn.mix.shape) == (16, (16, 30))
    (note,) = (n for n in data["notes"] if "combinations" in n)
    said = float(re.search(r"leave out ([\d.e-]+) of its largest", note).group(1))
    whole = np.einsum("vka,nk->nva", part.movement, rows[:, many.q_slice("bar.modes")])
    seen = np.einsum("vka,nk->nva", drawn.shapes, drawn.eta @ drawn.mix.T)
    size = np.linalg.norm(whole, axis=-1).max()
    missing = np.linalg.norm(whole - seen, axis=-1).max() / size
    assert missing <= 1.1 * said + 3.0 * np.sqrt(3.0 * 16.0) / STEPS * 10.0  # one digit is said, and steps of movements
    if rank > 16:
        assert missing > 1e-4
        assert missing > 0.8 * said
    else:
        assert said < 1e-2  # a motion of few shapes loses nothing but what others take


@pytest.mark.slow
def test_the_note_of_a_page_without_a_run_says_nothing_of_its_motion(many):
    (note,) = pictured(still_run(many, many.neutral()))["notes"]
    assert re.fullmatch(r".* They leave out 0\.\d+ of displacements in which all modes have .*", note)


def test_combinations_are_better_than_the_sixteen_modes_that_move_most(many):
    part = next(j.kind.source for j in many.joints if j.kind.bends)
    eta = swung(many, 0.01, 60)[:, many.q_slice("bar.modes")]
    mesh = scene(many).bodies[many.n_bodies + 1].surface
    mix, shapes, others = bending.combined(mesh, eta, part.stiffness)
    whole = np.einsum("vka,nk->nva", part.movement, eta)
    combined = whole - np.einsum("vka,nk->nva", shapes, eta @ mix.T)
    sizes = (part.movement**2).sum(axis=(0, 2)) * (eta**2).sum(axis=0)
    kept = np.argsort(-sizes)[: bending.MOST]
    chosen = whole - np.einsum("vka,nk->nva", part.movement[:, kept], eta[:, kept])
    assert (combined**2).sum() < (chosen**2).sum()
    assert 0.0 < others < 1.0


# ---- meshes


@pytest.mark.slow
def test_a_coarser_surface_moves_as_the_fine_one(soft):
    part = SoftBar((24, 4, 4)).body()
    mesh = surfaces.surface_shape(part).mesh
    few = decimated(mesh, len(mesh.faces) // 4)
    assert len(few.faces) <= len(mesh.faces) // 4
    eta = under_a_force(part, (0.0, 0.0, 0.05))
    near = np.linalg.norm(mesh.vertices[:, None] - few.vertices, axis=2).argmin(axis=0)
    moved = few.bent(eta).vertices - few.vertices
    expected = mesh.bent(eta).vertices[near] - mesh.vertices[near]
    assert np.abs(moved - expected).max() < 0.1 * np.abs(expected).max()  # corners are up to half a cell away
    assert mesh.bent(0.0 * eta).vertices == pytest.approx(mesh.vertices)


def test_surfaces_of_a_page_have_a_bounded_size(monkeypatch, model):
    monkeypatch.setattr("spanloop.view.page.meshes.MOVEMENTS", 1200)
    seen = scene(model)
    whole = seen.bodies[model.n_bodies + 1].surface
    packed, _ = packed_meshes(seen)
    (mesh,) = (m for m in packed if "steps" in m)
    faces = sum(count for count, _ in mesh["colors"])
    assert faces <= 2 * 1200 // (3 * 8) < len(whole.faces)


@pytest.mark.slow
def test_surfaces_of_different_bodies_keep_their_meshes(soft):
    thin = soft.body(modes=0)
    b = sl.Builder("two").body("first", flexible=soft.body()).body("second", flexible=thin)
    model = b.revolute("a", "world", "first", "y").revolute("b", "first.tip", "second", "y").build()
    data = pictured(still_run(model, model.neutral()))
    meshes = [b["shapes"][0]["mesh"] for b in data["bodies"] if "eta" in b]
    assert len(set(meshes)) == 2
    assert [len(data["meshes"][k]["steps"]) for k in meshes] == [8, 6]


@pytest.mark.slow
def test_colours_of_a_run_show_where_the_strain_energy_is(soft):
    def energy(shapes):
        share = np.zeros((len(soft.triangles), shapes.shape[1], shapes.shape[1]))
        share[7] = shapes.T @ (soft.solid.stiffness @ shapes)  # all of it in one triangle
        return share

    model = hinged(soft.body(surface_energy=energy))
    seen = moving_scene(still_run(model, swung(model, 0.01, 3))).scene
    colors = seen.bodies[model.n_bodies + 1].surface.colors
    assert list(np.flatnonzero(colors == colors[7])) == [7]
    assert surfaces.ramp(np.array([0.0, 1.0])).tolist() == [0x2B4C9B, 0xC82F2A]


# ---- other drawings


def test_patches_of_animations_follow_the_shapes_and_cover_every_triangle_once(model):
    part = next(j.kind.source for j in model.joints if j.kind.bends)
    mesh = surfaces.surface_shape(part).mesh
    found = patches(mesh)
    assert 10 < len(found.meshes) <= MOST
    assert sum(len(m.faces) for m in found.meshes) == len(mesh.faces)
    eta = swung(model, 0.005)[0, model.q_slice("bar.modes")]
    moved, rest = mesh.bent(eta).vertices, mesh.vertices
    for own, place, pose in zip(found.meshes, found.stations.positions, found.poses(eta), strict=True):
        near = [int(np.linalg.norm(rest - x - place, axis=1).argmin()) for x in own.vertices]
        drawn = own.vertices @ pose[:3, :3].T + pose[:3, 3]
        assert np.abs(drawn - moved[near]).max() < 0.05 * np.abs(moved - rest).max()


@pytest.mark.slow
def test_pictures_and_animations_bend(model, tmp_path):
    rows = swung(model, 0.05, 2)
    rows[:, model.q_slice("hinge")] = 0.0
    straight = model.neutral()
    pictures = [still(model, q, (160, 120)) for q in (straight, rows[0])]
    assert (np.abs(pictures[0].astype(int) - pictures[1]).max(axis=-1) > 40).mean() > 0.005
    run = still_run(model, rows)
    run.page(tmp_path / "run.html")
    assert (tmp_path / "run.html").stat().st_size < 400_000
    outlines = [s for s in animation._strokes(moving_scene(run)) if s.points.shape[1] == 4 and s.closed]
    assert len(outlines) > 10
    assert max(np.abs(s.points[1] - s.points[0]).max() for s in outlines) > 0.02


def test_the_viewer_moves_the_corners(model):
    pytest.importorskip("viser")
    from spanloop.view.viewer.scene_nodes import SceneNodes
    from spanloop.view.viewer.server import start_server, stop_server

    q = swung(model, 0.05)[0]
    eta = segments.surface_coordinates(model, q)
    (k,) = eta
    server = start_server(label="test")
    try:
        nodes = SceneNodes(server.scene, scene(model), np.array((0.0, 0.0, 1.0)))
        ((handle, mesh),) = nodes._surfaces[k]
        np.testing.assert_allclose(handle.vertices, mesh.vertices, atol=1e-6)
        nodes.place(poses(sl.Dynamics(model), q), bending=eta)
        np.testing.assert_allclose(handle.vertices, mesh.bent(eta[k]).vertices, atol=1e-6)
        assert np.abs(handle.vertices - mesh.vertices).max() > 0.03
    finally:
        stop_server(server)


def test_the_window_of_a_run_has_room_for_what_bends(model):
    rows = swung(model, 0.3, 1)
    corners = moving_scene(still_run(model, rows)).corners()[0]
    drawn = PageSurface(pictured(still_run(model, rows))).vertices(0)
    lengths = np.ptp(drawn, axis=0)
    assert np.all(corners.min(axis=0) < drawn.min(axis=0) + 0.2 * lengths)
    assert np.all(corners.max(axis=0) > drawn.max(axis=0) - 0.2 * lengths)


def test_a_surface_has_the_pose_of_its_body(model):
    q = swung(model, 0.01)[0]
    at = poses(sl.Dynamics(model), q)
    np.testing.assert_allclose(at[model.n_bodies + 1], at[model.body_number["bar"]], atol=1e-15)
    assert segments.segment_count(model) == 1


def test_rigid_meshes_do_not_bend():
    mesh = Mesh.of(np.eye(3), np.array([[0, 1, 2]]))
    assert mesh.bent(np.ones(2)) is mesh


def test_a_run_whose_joints_change_draws_the_surface_of_each_segment(model):
    locked = model.lock("hinge")
    first = still_run(model, swung(model, 0.01, 2))
    second = still_run(locked, swung_modes(locked, 0.02, 3))
    times = first.times[-1] + second.times
    segment = replace(second.segments[0], times=times, model=locked)
    run = first.changed(segments=(*first.segments, segment))
    moved = moving_scene(run)
    found = [k for k, b in enumerate(moved.scene.bodies) if b.surface is not None]
    assert sorted(moved.bending) == found
    assert len(found) == 2
    shown = moved.present[moved.segments]
    for k, own in zip(found, (slice(0, 2), slice(2, 5)), strict=True):
        assert shown[own, k].all()
        assert np.abs(moved.bending[k][own]).max() > 0.0
        outside = np.delete(moved.bending[k], np.arange(5)[own], axis=0)
        assert not outside.any()
        assert not np.delete(shown[:, k], np.arange(5)[own]).any()
    assert len([b for b in pictured(run)["bodies"] if "eta" in b]) == 2


def swung_modes(model, size, count):
    """States (count, nq) in which the modes alone move."""
    part = next(j.kind.source for j in model.joints if j.kind.bends)
    rows = np.tile(model.neutral(), (count, 1))
    rows[:, model.q_slice("bar.modes")] = np.linspace(0.5, 1.0, count)[:, None] * under_a_force(part, (0.0, 0.0, size))
    return rows
