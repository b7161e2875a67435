"""Videos of runs: frames that show the mechanism, files that play, messages before anything is drawn."""

from __future__ import annotations

import builtins
import shutil

import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop.errors import InputError, UnsupportedError
from spanloop.view.meshes.mesh import Mesh
from spanloop.view.meshes.primitives import primitive
from spanloop.view.scene import extent_points, poses, scene
from spanloop.view.video.rasterizer import PAPER, Eye, Triangles, picture
from spanloop.view.video.solids import smooth_normals
from spanloop.view.video.video import frames


@pytest.fixture(scope="module")
def swing():
    model = sl.zoo.pendulum(2)
    return sl.simulate(model, [1.0, 0.5], duration=0.2)


EYE = Eye(np.array((0.0, -5.0, 0.0)), np.zeros(3), (60, 40))


def drawn(*triangles):
    corners = np.array([t for t, _ in triangles], float)
    normals = np.zeros_like(corners) + (0.0, -1.0, 0.0)
    back = np.tile(PAPER, (40, 60, 1))
    return picture(EYE, back, -10.0, Triangles(corners, normals, np.array([c for _, c in triangles], float)))


def test_the_nearer_of_two_triangles_is_seen_whichever_comes_first():
    near = (((-1, -1, -1), (1, -1, -1), (0, -1, 1)), (1, 0, 0))
    far = (((-2, 1, -2), (2, 1, -2), (0, 1, 2)), (0, 0, 1))
    for order in ((near, far), (far, near)):
        image = drawn(*order)
        assert image[20, 30, 0] > 0.4 > image[20, 30, 2]
        np.testing.assert_allclose(image[0, 0], PAPER, atol=1e-6)


def test_a_triangle_covers_its_area():
    square = [(((-1, 0, -1), (1, 0, -1), (1, 0, 1)), (0, 0, 0)), (((-1, 0, -1), (1, 0, 1), (-1, 0, 1)), (0, 0, 0))]
    side = 2.0 * EYE.focal / 5.0
    covered = (np.abs(drawn(*square) - PAPER).max(axis=-1) > 0.05).sum()
    assert abs(covered - side**2) < 4.0 * side  # half covered pixels along the edges


def test_triangles_behind_the_eye_are_left_out():
    image = drawn((((-1, -9, -1), (1, -9, -1), (0, -9, 1)), (1, 0, 0)), (((0, -9, 0), (0, 9, 0), (1, 9, 1)), (1, 0, 0)))
    np.testing.assert_allclose(image, np.tile(PAPER, (40, 60, 1)), atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "size", "volume"),
    [
        ("box", (1.0, 2.0, 3.0), 6.0),
        ("cylinder", (1.0, 2.0), 2.0 * np.pi),
        ("capsule", (1.0, 2.0), (2.0 + 4.0 / 3.0) * np.pi),
        ("sphere", (1.0,), 4.0 / 3.0 * np.pi),
        ("ellipsoid", (1.0, 2.0, 0.5), 4.0 / 3.0 * np.pi),
    ],
)
def test_simple_shapes_enclose_their_volume(kind, size, volume):
    """Flat sides lose 1 % of a circle of 24 corners, and 3 % of a sphere."""
    mesh = primitive(kind, size)
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    enclosed = np.einsum("mi,mi->m", a, np.cross(b, c)).sum() / 6.0
    assert 0.95 * volume < enclosed <= volume * (1.0 + 1e-12)
    outward = np.einsum("mki,mki->mk", smooth_normals(mesh), mesh.vertices[mesh.faces])
    assert outward.min() > 0.0


def test_every_frame_shows_the_whole_mechanism_and_they_differ(swing):
    pictures = list(frames(swing, np.linspace(0.0, 0.2, 3), (160, 90)))
    assert [p.shape for p in pictures] == [(90, 160, 3)] * 3
    assert not (pictures[0] == pictures[2]).all()
    seen = scene(swing.model, swing.q[0])
    assert np.isfinite(extent_points(seen, poses(swing.robot, swing.q))).all()
    for p in pictures:
        strong = np.ptp(p.astype(int), axis=-1) > 40  # coloured: not paper, floor or shadow
        assert strong.any()
        assert not np.concatenate([strong[0], strong[-1], strong[:, 0], strong[:, -1]]).any()


def test_a_gif_plays_in_real_time(swing, tmp_path):
    image = pytest.importorskip("PIL.Image", reason="a .gif needs Pillow")
    path = swing.video(tmp_path / "run.gif", size=(160, 90), fps=20)
    with image.open(path) as found:
        assert (found.n_frames, found.size, found.info["duration"]) == (5, (160, 90), 50)


@pytest.mark.slow
def test_an_mp4_has_the_frames_of_the_run(swing, tmp_path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="an .mp4 needs ffmpeg")
    path = swing.video(tmp_path / "run.mp4", size=(160, 90), speed=0.5)
    found = ffmpeg.read_frames(str(path))
    meta = next(found)
    assert (meta["size"], meta["fps"], len(list(found))) == ((160, 90), 30.0, 13)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"path": "run.avi"}, "a video ends in .mp4 or .gif"),
        ({"path": "there/is/none.mp4"}, "there is no folder"),
        ({"size": (161, 90)}, "size is (161, 90); expected width and height, even numbers"),
        ({"fps": float("nan")}, "fps is nan; expected a number above 0"),
        ({"speed": -1.0}, "speed is -1.0; expected a number above 0"),
        ({"speed": 1e-6}, "at most 20000 are drawn. Try: speed=0.00021"),
        ({"fps": 0}, "fps is 0; expected a number above 0"),
        ({"size": 320}, "size is 320; expected width and height"),
        ({"view": (1, 2, 3)}, "view is (1, 2, 3); expected azimuth and elevation of the camera [rad]"),
        ({"view": "top"}, "view is 'top'; expected azimuth and elevation of the camera [rad]"),
        ({"view": (45, 30)}, "the elevation at most pi/2"),
    ],
)
def test_what_cannot_be_written_is_refused_first(swing, options, sentence, tmp_path):
    path = tmp_path / options.pop("path", "run.gif")
    with says(InputError, sentence):
        swing.video(path, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("method", ["page", "video"])
def test_pages_and_videos_refuse_a_path_in_the_same_words(swing, method, tmp_path):
    write, ending = getattr(swing, method), {"page": "html", "video": "gif"}[method]
    with says(InputError, f"the path is None; expected the name of a {method}, as 'run."):
        write(None)
    with says(InputError, "there is no folder"):
        write(tmp_path / "none" / f"run.{ending}")


def test_a_view_from_above_is_drawn(swing):
    image = next(frames(swing, swing.times[:2], (160, 90), (0.3, 0.5 * np.pi)))
    assert image.std() > 5.0


def test_normals_of_a_fan_of_many_triangles_take_little_work():
    n = 20_000
    turn = np.linspace(0.0, 2.0 * np.pi, n, endpoint=False)
    points = np.vstack([[0.0, 0.0, 1.0], np.column_stack([np.cos(turn), np.sin(turn), 0.0 * turn])])
    rim = np.arange(n)
    fan = Mesh.of(points, np.column_stack([0 * rim, 1 + rim, 1 + (rim + 1) % n]))
    np.testing.assert_allclose(smooth_normals(fan)[..., 2], np.sqrt(0.5), atol=1e-6)


def test_a_batch_is_refused(tmp_path):
    run = sl.simulate(sl.zoo.pendulum(1), np.ones((3, 1)), np.zeros((3, 1)), duration=0.01)
    with says(InputError, "a video shows one of them: run[0].video(...)"):
        run.video(tmp_path / "x.gif")


@pytest.mark.parametrize(
    ("name", "needed"), [("run.mp4", "pip install imageio-ffmpeg"), ("run.gif", "pip install pillow")]
)
def test_a_missing_library_is_named(swing, name, needed, tmp_path, monkeypatch):
    real = builtins.__import__

    def without(module, *rest, **more):
        if module.startswith(("imageio_ffmpeg", "PIL")):
            raise ImportError(module)
        return real(module, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with says(UnsupportedError, needed):
        swing.video(tmp_path / name)
