"""Joints that lack something: limits, room, strength. Meshes that cannot be reached. What was said on reading."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from spanloop.model.examine.finding import Finding, label
from spanloop.model.examine.messages import counted
from spanloop.model.files.mesh_paths import resolve_mesh
from spanloop.model.model import Model


def joints(model: Model) -> Iterator[Finding]:
    """Limits and friction."""
    single = [j for j in model.joints if j.kind.nv == 1]
    followers = {c.joint for c in model.couplings}
    free = [j for j in single if j.actuated and j.name not in followers and j.lower is None and j.upper is None]
    if free:
        count = counted(len(free), "driven joint is", "driven joints are")
        yield Finding("no_limits", tuple(repr(j.name) for j in free), {"count": count})
    for j in single:
        if j.lower is not None and j.lower == j.upper:
            yield Finding("no_room", (label("joint", j),), {"value": j.lower[0]})
    for what in ("effort", "speed"):
        none = [j for j in single if getattr(j, what) == (0.0,) and j.actuated]
        if none:
            yield Finding("zero_limit", tuple(label("joint", j) for j in none), {"what": what})
    rubbing = [j for j in model.joints if any(j.friction)]
    if rubbing:
        count = counted(len(rubbing), "joint")
        yield Finding("friction", tuple(repr(j.name) for j in rubbing), {"count": count})


def meshes(model: Model, folder: Path) -> Iterator[Finding]:
    """Meshes that are not where the file says."""
    files = dict.fromkeys(g.file for b in model.bodies for g in b.geometry if g.shape == "mesh")
    notes = {file: resolve_mesh(file, folder)[1] for file in files}
    missing = [file for file, note in notes.items() if note]
    if missing:
        why = notes[missing[0]].removeprefix(f"mesh {missing[0]!r}: ")
        parts = tuple(repr(f) for f in missing)
        yield Finding("mesh", parts, {"count": counted(len(missing), "mesh", "meshes"), "why": why})


def notes(model: Model) -> Iterator[Finding]:
    for text in model.notes:
        if not text.startswith("meshes not found"):
            yield Finding("noted", values={"text": text})
