"""What a model consists of: bodies, joints, base, mass; limits and friction; meshes; notes of its file."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from spanloop.flexible.finite_element_body import LEVELS, FiniteElementBody
from spanloop.flexible.matrices.spin import SPIN
from spanloop.model.examine.messages import Finding, counted
from spanloop.model.files.mesh_paths import MOST_SEARCHED, resolve_mesh
from spanloop.model.flexible_bodies.pieces import Piece, flexible_bodies
from spanloop.model.model import Model
from spanloop.model.parts import WORLD
from spanloop.model.poses import neutral_poses
from spanloop.model.value_check import label


def summary(model: Model) -> Iterator[Finding]:
    """Yield findings about bodies, joints, base, DoF, mass and reach."""
    kinds = Counter(j.kind.name for j in model.joints)
    listed = ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())
    joints = f"{counted(len(model.joints), 'joint')} ({listed})" if model.joints else "no joints"
    yield Finding("makeup", values={"bodies": counted(model.n_bodies, "body", "bodies"), "joints": joints})
    for body in flexible_bodies(model.bodies, model.joints).values():
        hertz = [f for piece in body.pieces for f in piece.frequencies / (2.0 * math.pi)]
        modes = f"{counted(len(hertz), 'mode')} from {min(hertz):.4g} to {max(hertz):.4g} Hz with the root held"
        yield Finding("flexible", (repr(body.name),), {"modes": modes, "nodes": body.places()})
        if body.elements is not None:
            yield _level(body.name, body.elements, body.pieces[0])
    roots = [j for j in model.joints if j.parent == WORLD]
    floating = [j.child for j in roots if j.kind.name == "free"]
    if roots:
        yield Finding("base", values={"how": _base(len(roots), floating)})
    if not model.nv:
        yield Finding("nothing_moves")
        return
    actuated = sum(j.kind.nv for j in model.joints if j.actuated)
    dofs = counted(model.nv, "degree of freedom", "degrees of freedom")
    yield Finding("dofs", values={"dofs": dofs, "actuated": actuated})
    heaviest = max(model.bodies, key=lambda b: b.inertia.mass)
    most = heaviest.inertia.mass
    yield Finding("mass", values={"mass": float(model.mass), "heaviest": repr(heaviest.name), "most": float(most)})
    reach = max(math.hypot(*p.position) for p in neutral_poses(model).values())
    yield Finding("reach", values={"reach": reach})


def _level(name: str, body: FiniteElementBody, piece: Piece) -> Finding:
    """The level of data of a body from finite elements, and where it is not enough; piece: with the model's numbers."""
    values = {"level": str(body.level), "what": LEVELS[body.level]}
    if body.has_spin:
        return Finding("level", (repr(name),), values)
    buckling = {n: body.buckling_load(n, piece.joint.stiffness) for n in body.names if not body.stiffens(n)}
    loads = [f"{most:.3g} N at {n!r}" for n, most in buckling.items() if math.isfinite(most)]
    values["buckles"] = f", and about loads along it that buckle it ({', '.join(loads)})" if loads else ""
    values["missing"] = f" with {', '.join(body.missing_spins)}" if body.level == 2 else ""
    return Finding("level_spin", (repr(name),), values | {"spin": SPIN * float(piece.frequencies.min())})


def _base(count: int, floating: list[str]) -> str:
    if len(floating) == count == 1:
        return f"It floats: {floating[0]!r} moves freely in the world"
    if floating:
        return f"{counted(len(floating), 'body floats', 'bodies float')}, {count - len(floating)} more on the world"
    return "It stands on the world" if count == 1 else f"It stands on the world by {count} joints"


def joints(model: Model) -> Iterator[Finding]:
    """Yield findings about limits and friction."""
    single = [j for j in model.joints if j.kind.nv == 1]
    followers = {c.joint for c in model.couplings}
    free = [j for j in single if j.actuated and j.name not in followers and j.lower is None and j.upper is None]
    if free:
        count = counted(len(free), "joint with a motor is", "joints with motors are")
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


def contacts(model: Model) -> Iterator[Finding]:
    """Yield findings about contacts, or about collision shapes that touch nothing."""
    if model.contacts:
        points = counted(sum(c.n_points for c in model.contacts), "point")
        values = {"contacts": counted(len(model.contacts), "contact"), "points": points}
        yield Finding("contacts", tuple(repr(c.name) for c in model.contacts), values)
        return
    shaped = [b.name for b in model.bodies if any(g.use == "collision" for g in b.geometry)]
    if shaped:
        count = counted(len(shaped), "body has", "bodies have")
        yield Finding("no_contacts", tuple(map(repr, shaped)), {"count": count})


def meshes(model: Model, folder: Path) -> Iterator[Finding]:
    """Yield the meshes that are missing from the folder."""
    unknown = dict.fromkeys(g.file for b in model.bodies for g in b.geometry if g.shape == "mesh" and not g.path)
    notes = {file: resolve_mesh(file, folder)[1] for file in list(unknown)[:MOST_SEARCHED]}
    missing = [file for file, note in notes.items() if note]
    if missing:
        why = notes[missing[0]].removeprefix(f"mesh {missing[0]!r}: ")
        parts = tuple(repr(f) for f in missing)
        yield Finding("mesh", parts, {"count": counted(len(missing), "mesh", "meshes"), "why": why})


def notes(model: Model) -> Iterator[Finding]:
    """Yield the notes of the model, but those about meshes."""
    for text in model.notes:
        if not text.startswith("meshes not found"):
            yield Finding("noted", values={"text": text})
