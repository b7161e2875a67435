"""The page of modes: each shape swings for one period of two seconds, over and over; a list chooses the mode."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.errors import InputError, SpanloopWarning
from spanloop.loops.arguments import dof_names
from spanloop.loops.closure_errors import mechanism_of
from spanloop.model.files.file_io import write_file
from spanloop.trajectory import EndReason, Outcome, Segment, Trajectory
from spanloop.view.beams.segments import segment_count, surface_modes
from spanloop.view.moving_scene import moving_scene
from spanloop.view.noise import least_force, noise_levels
from spanloop.view.page.bending import bending
from spanloop.view.page.data import BYTES, closure_group, picture
from spanloop.view.page.html import page_of
from spanloop.view.page.inline import InlinePage
from spanloop.view.target_file import target_file

if TYPE_CHECKING:
    from spanloop.linear.modes import Modes

PERIOD, PAUSE = 2.0, 0.1  # s on the page: one period of any mode, and between two modes
MOST, LEAST = 120, 24  # frames of a period
PARTS = 16  # DoF of a shape that are listed


def write(modes: Modes, path: str | Path, **options: Any) -> Path:
    """Write the page of modes and return its path, which must end in .html; options: those of `text`."""
    where = target_file(path, "a page", (".html", ".htm"), "")
    write_file(where, text(modes, **options).encode())
    return where


def inline(modes: Modes, height: int, **options: Any) -> InlinePage:
    """The page of modes for a notebook."""
    return InlinePage(modes.robot.model.name, text(modes, **options), height)


def text(
    modes: Modes,
    *,
    title: str = "",
    amplitude: float | None = None,
    numbers: Sequence[int] | None = None,
    folder: str | Path | None = None,
) -> str:
    """The page of modes as HTML text.

    amplitude [rad, or of the mechanism's length]: of the DoF that moves most. numbers: of the modes that are shown;
    all by default. folder: where the model's mesh files are.
    """
    return page_of(modes_data(modes, title or f"modes of {modes.robot.model.name}", amplitude, numbers, folder))


def modes_data(
    modes: Modes, title: str, amplitude: float | None, numbers: Sequence[int] | None, folder: str | Path | None
) -> dict[str, Any]:
    """Everything the page shows, ready for JSON."""
    shown = list(range(len(modes))) if numbers is None else [int(k) for k in numbers]
    if not shown:
        raise InputError(f"{modes!r}: there is no mode to show")
    run = shapes_run(modes, shown, amplitude)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SpanloopWarning)
        moved = moving_scene(run, folder)
    loops = list(dict.fromkeys(c.name for c in moved.scene.closures))
    shown_surfaces = bending(moved)
    notes = [*moved.scene.notes, *shown_surfaces.notes, *modes.notes, *dict.fromkeys(str(w.message) for w in caught)]
    return {
        "title": title,
        **picture(moved, run.times, shown_surfaces),
        "modes": [_mode(modes, k, i * (PERIOD + PAUSE)) for i, k in enumerate(shown)],
        "touches": {"names": [], "values": ""},
        "groups": [closure_group(run, loops)] if loops else [],
        "noise": noise_levels(run.model, moved.scene.size),
        "arrows": [],
        "least_force": least_force(run.model),
        "headline": str(modes).splitlines()[0],
        "outcome": run.outcome.sentence,
        "audit": None,
        "settings": [["acceleration left at the equilibrium", f"{modes.residual:.1e} m/s²"]],
        "notes": list(dict.fromkeys(notes)),
    }


def shapes_run(modes: Modes, numbers: Sequence[int], amplitude: float | None = None) -> Trajectory:
    """The modes one after the other, each for one period of PERIOD seconds, with the loops closed at every sample."""
    model = modes.robot.model
    frame = 7 * (model.n_bodies + segment_count(model) + 1) + surface_modes(model)
    samples = int(np.clip(BYTES / (4 * frame * len(numbers)), LEAST, MOST))
    motions = [modes.motion(k, amplitude=amplitude, samples=samples) for k in numbers]
    times = [i * (PERIOD + PAUSE) + phases * (PERIOD / (2.0 * np.pi)) for i, (phases, _) in enumerate(motions)]
    q = np.concatenate([x for _, x in motions])
    segment = Segment(np.concatenate(times), q, np.zeros((len(q), model.nv)), np.tile(modes.tau, (len(q), 1)))
    end = Outcome(EndReason.FINISHED, "Shapes of modes, enlarged and slowed down.", float(segment.times[-1]))
    return Trajectory(model, (segment,), (end,), {"motion": "modes"})


def _mode(modes: Modes, number: int, start: float) -> dict[str, Any]:
    kind, hertz = modes.kinds[number], f"{modes.frequencies[number]:.4g}"
    words = f"mode {number}: {hertz} Hz" if kind == "oscillation" else f"mode {number}: {kind}"
    return {
        "start": start,
        "end": start + PERIOD,
        "hertz": hertz,
        "rate": f"{modes.angular_frequencies[number]:.4g}",
        "damping": f"{modes.damping_ratios[number]:.3g}",
        "kind": kind,
        "words": words,
        "parts": _parts(modes, number),
    }


def _parts(modes: Modes, number: int) -> list[tuple[str, float, str]]:
    """The largest parts of a shape: name of the DoF, share of the largest (negative: backward), and the same in words.

    Displacements are in units of the mechanism's length.
    """
    model = modes.robot.model
    shape = modes.shapes[:, number] / np.array(mechanism_of(model).dof_lengths)
    shape = shape / shape[np.argmax(np.abs(shape))]
    order = [int(k) for k in np.argsort(-np.abs(shape).round(9), kind="stable")[:PARTS] if abs(shape[k]) > 1e-3]
    names = dof_names(model)
    return [(names[k], float(np.copysign(abs(shape[k]), shape[k].real)), _words(complex(shape[k]))) for k in order]


def _words(x: complex) -> str:
    return f"{x.real:.2f}" if abs(x.imag) < 0.005 else f"{abs(x):.2f}∠{np.degrees(np.angle(x)):.0f}°"
