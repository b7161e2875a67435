"""Videos of runs: frames from the renderer, written as .mp4 (ffmpeg) or .gif (Pillow)."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.errors import InputError, UnsupportedError
from spanloop.model.files.file_io import write_file
from spanloop.view.contact_forces import contact_forces
from spanloop.view.moving_scene import moving_scene
from spanloop.view.target_file import target_file
from spanloop.view.video.rasterizer import LENS, Eye, Triangles, ground, picture
from spanloop.view.video.solids import Solids, bent_surfaces, contact_arrows, slides, solids, surfaces
from spanloop.view.window import Window, window

if TYPE_CHECKING:
    from spanloop.trajectory import Trajectory

FORMATS = (".mp4", ".gif")
MOST_FRAMES = 20_000
STEEPEST = 0.5 * np.pi - 1e-4  # elevation from which pictures are drawn; z is up in all of them
ROOM = 0.94  # share of the picture that the corners may fill


def write(
    run: Trajectory,
    path: str | Path,
    *,
    fps: float | None = None,
    size: tuple[int, int] = (960, 540),
    speed: float = 1.0,
    view: tuple[float, float] = (-0.95, 0.4),
    folder: str | Path | None = None,
) -> Path:
    """Write a run as a video and return its path, which must end in .mp4 or .gif.

    fps: frames a second (default: 30, for a .gif 20). size: width and height in pixels. speed: 0.5 is slow motion.
    view: azimuth and elevation of the camera [rad]: azimuth 0 looks from +x, pi/2 from +y, elevation pi/2 from above.
    folder: where meshes are whose path the
    model does not have.
    """
    if run.batch:
        raise InputError(f"this is a batch of {len(run.outcomes)} runs; a video shows one of them: run[0].video(...)")
    where = target_file(path, "a video", FORMATS, "run.page(...) writes .html")
    kind = where.suffix.lower()
    fps = (20.0 if kind == ".gif" else 30.0) if fps is None else fps
    _check(fps, size, speed, view)
    encode = _gif if kind == ".gif" else _mp4
    _needed(kind)
    count = round(run.duration / speed * fps) + 1
    if count > MOST_FRAMES:
        raise InputError(
            f"video: {run.duration:g} s at speed {speed:g} and {fps:g} frames a second are {count} frames; at most "
            f"{MOST_FRAMES} are drawn. {_fewer(run, speed, fps)}"
        )
    times = np.linspace(run.times[0], run.times[-1], count)
    pictures = frames(run, times, size, view, folder)
    write_file(where, encode(pictures, size, fps))
    return where


def _fewer(run: Trajectory, speed: float, fps: float) -> str:
    """What makes a video of few enough frames."""
    least = run.duration * fps / (MOST_FRAMES - 1)
    if speed < min(1.0, least):
        return f"Try: speed={_rounded_up(least)}"
    start, stop = float(run.times[0]), float(run.times[0]) + 0.9 * MOST_FRAMES / fps * speed
    return f"Raise speed=, or choose a part: run.between({start:g}, {stop:.3g}).video(...)"


def _rounded_up(x: float) -> str:
    """Two digits of a number, none smaller than it."""
    return f"{x * 1.05:.2g}"


def frames(
    run: Trajectory,
    times: np.ndarray,
    size: tuple[int, int] = (960, 540),
    view: tuple[float, float] = (-0.95, 0.4),
    folder: str | Path | None = None,
) -> Iterator[np.ndarray]:
    """Pictures (height, width, 3) of a run at some times [s], as bytes."""
    few = run.at(times) if len(times) > 1 else run[:1]
    moved = moving_scene(few, folder)
    found = contact_forces(run)
    touching = None if found is None else found.at(run.times, times)
    seen, at = moved.scene, moved.poses
    shown = window(seen, moved.corners())
    solid, planes = solids(seen, moved.holds), surfaces(seen)
    marks = np.concatenate([moved.closed, moved.broken, moved.held], axis=1)
    shown_parts: dict[bytes, Solids] = {}
    away = distance(shown, view, size[0] / size[1]) * direction(view)
    back = None
    for k in range(len(times)):
        if not np.isfinite(at[k]).all():
            continue
        target = shown.middle + (0.0 if shown.follow is None else shown.follow[k] - shown.follow[0])
        eye = Eye(target + away, target, size)
        if back is None or shown.follow is not None:
            back = ground(eye, shown.ground, seen.size, any(p.is_floor for p in seen.patches))
        present, flags = moved.present[moved.segments[k]], marks[moved.segments[k]]
        key = present.tobytes() + flags.tobytes()
        if key not in shown_parts:
            shown_parts[key] = solid.shown(present, flags)
        bent = bent_surfaces(seen, {b: eta[k] for b, eta in moved.bending.items()}, present)
        parts = [shown_parts[key].at(at[k]), slides(seen, at[k], present), bent and bent.at(at[k])]
        for patch, plane in zip(seen.patches, planes, strict=True):
            if plane is not None and present[patch.body] and patch.faces(eye.position, at[k, patch.body]):
                parts.append(plane.at(at[k]))
        arrows = None if touching is None else contact_arrows(touching, k, seen.size)
        image = picture(eye, back, shown.ground, triangles([*parts, arrows]), triangles([arrows]))
        yield np.round(255.0 * image).astype(np.uint8)


def triangles(parts: list[Solids | None]) -> Triangles | None:
    """Corners, normals and colours of solids in the world."""
    found = [x for x in parts if x is not None]
    if not found:
        return None
    return Triangles(*(np.concatenate([getattr(x, name) for x in found]) for name in ("corners", "normals", "colors")))


def direction(view: tuple[float, float]) -> np.ndarray:
    azimuth, elevation = view[0], float(np.clip(view[1], -STEEPEST, STEEPEST))
    level = np.cos(elevation)
    return np.array([level * np.cos(azimuth), level * np.sin(azimuth), np.sin(elevation)])


def distance(shown: Window, view: tuple[float, float], aspect: float) -> float:
    """How far the eye must be from the middle [m] to see all corners of the window."""
    z = direction(view)
    x = np.array([-np.sin(view[0]), np.cos(view[0]), 0.0])
    corners = shown.half * np.array([(i, j, k) for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)])
    a, b, c = (np.array([x, np.cross(z, x), z]) @ corners.T)[:3]
    up = np.tan(0.5 * LENS) * ROOM
    return float(np.max([c + np.abs(b) / up, c + np.abs(a) / (up * aspect)]))


def _check(fps: Any, size: Any, speed: Any, view: Any) -> None:
    """Raise InputError for options that no video can have."""
    pair = size if isinstance(size, tuple | list) else ()
    if len(pair) != 2 or any(not _is_pixels(x) for x in pair):
        raise InputError(f"video: size is {size!r}; expected width and height, even numbers of pixels from 16 to 4096")
    for name, value, most in (("fps", fps, 240.0), ("speed", speed, 1e6)):
        if not _is_number(value) or not 0.0 < value <= most:
            raise InputError(f"video: {name} is {value!r}; expected a number above 0, at most {most:g}")
    checked_view(view, "video")


def checked_view(view: Any, owner: str) -> tuple[float, float]:
    """Azimuth and elevation of a camera [rad]; raises InputError if it is something else. owner: begins the message."""
    angles = view if isinstance(view, tuple | list | np.ndarray) else ()
    fits = len(angles) == 2 and all(_is_number(x) and np.isfinite(x) for x in angles)
    if not fits or abs(angles[1]) > 1.5708:
        raise InputError(
            f"{owner}: view is {view!r}; expected azimuth and elevation of the camera [rad], the elevation at most "
            "pi/2; from the side: view=(0, 0), from above: view=(0, 1.57)"
        )
    return float(angles[0]), float(angles[1])


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float | np.integer | np.floating) and not isinstance(x, bool)


def _is_pixels(x: Any) -> bool:
    return isinstance(x, int | np.integer) and not isinstance(x, bool) and int(x) in range(16, 4097, 2)


def _needed(kind: str) -> None:
    """Raise UnsupportedError, before anything is drawn, if what writes this kind of file is not installed."""
    if kind == ".mp4":
        _ffmpeg()
        return
    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        raise UnsupportedError("a .gif needs Pillow, which is not installed; try: pip install pillow") from None


def _ffmpeg() -> str:
    """The path of ffmpeg: that of the package imageio-ffmpeg, or the machine's own."""
    try:
        import imageio_ffmpeg

        return str(imageio_ffmpeg.get_ffmpeg_exe())
    except (ImportError, RuntimeError):
        found = shutil.which("ffmpeg")
    if found is None:
        raise UnsupportedError(
            "an .mp4 needs ffmpeg, which is not installed; try: pip install imageio-ffmpeg, or write a .gif"
        )
    return found


def _mp4(pictures: Iterator[np.ndarray], size: tuple[int, int], fps: float) -> bytes:
    """The frames as H.264 in an MP4 file that browsers and slides play."""
    width, height = size
    with tempfile.TemporaryDirectory(prefix="spanloop-video-") as folder:
        target = os.path.join(folder, "run.mp4")
        command = [
            _ffmpeg(), "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}",
            "-r", f"{fps:g}", "-i", "-", "-an", "-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "20",
            "-movflags", "+faststart", target,
        ]  # fmt: skip
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdin is not None
        try:
            for image in pictures:
                process.stdin.write(image.tobytes())
        except BrokenPipeError:
            pass  # ffmpeg has ended; it says why
        except BaseException:
            process.kill()
            process.wait()
            raise
        complaint = process.communicate()[1].decode(errors="replace").strip()
        if process.returncode:
            raise UnsupportedError(f"ffmpeg cannot write the video: {complaint.splitlines()[-1] if complaint else '?'}")
        return Path(target).read_bytes()


def _gif(pictures: Iterator[np.ndarray], size: tuple[int, int], fps: float) -> bytes:
    """The frames as an endless GIF."""
    from PIL import Image

    images = [Image.fromarray(x).quantize(128, dither=Image.Dither.NONE) for x in pictures]
    out = io.BytesIO()
    gap = max(20, 10 * round(100.0 / fps))  # ms; a GIF counts hundredths
    images[0].save(out, "GIF", save_all=True, append_images=images[1:], duration=gap, loop=0, optimize=False)
    return out.getvalue()
