"""Solids of a scene for the renderer: triangles with smooth normals and colours, each tied to a body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from spanloop.math.rotation import toward
from spanloop.model.parts import Placement
from spanloop.view import palette
from spanloop.view.body_shapes import Shape
from spanloop.view.contact_forces import COLORS, ContactForces
from spanloop.view.meshes.decimation import decimated
from spanloop.view.meshes.mesh import Mesh
from spanloop.view.meshes.primitives import arrow, primitive
from spanloop.view.moving_scene import SceneHold
from spanloop.view.scene import Scene, matrix

TRIANGLES = 40_000  # of all meshes
DISC = 1.9  # radius of the disc around a joint at its stop, in that of the joint's mark
CROWD = 256  # triangles around one corner from which their normals are not averaged
CREASE = np.cos(0.6)  # of the angle from which an edge is sharp
ARROW = 0.014  # radius of an arrow's head, in sizes of the mechanism
TURNING = {"revolute": 2.6, "helical": 4.2, "cylindrical": 4.2}  # length of a mark, in its radii
BALLS = ("spherical", "universal", "general")
SLIDING = ("prismatic", "cylindrical", "helical")


@dataclass(frozen=True, eq=False)
class Solids:
    """Triangles of the whole scene: corners (m, 3, 3) [m] and normals (m, 3, 3) in the frames of bodies (m,),
    colours (m, 3), 0 to 1, and the mark (m,) that a triangle is of, −1 for none: closures, then those that have broken,
    then stops and couplings."""

    corners: np.ndarray
    normals: np.ndarray
    colors: np.ndarray
    bodies: np.ndarray
    marks: np.ndarray

    def shown(self, present: np.ndarray, marks: np.ndarray) -> Solids:
        """The triangles of bodies that are present (n_bodies + 1,) and of marks (n_marks,) that are shown."""
        kept = present[self.bodies] & np.append(marks, True)[self.marks]
        if kept.all():
            return self
        return Solids(*(x[kept] for x in (self.corners, self.normals, self.colors, self.bodies, self.marks)))

    def at(self, poses: np.ndarray) -> Solids:
        """The same with corners and normals in the world, at poses (n_bodies + 1, 4, 4)."""
        turn, place = poses[self.bodies, :3, :3], poses[self.bodies, :3, 3]
        corners = np.einsum("mij,mkj->mki", turn, self.corners) + place[:, None]
        return replace(self, corners=corners, normals=np.einsum("mij,mkj->mki", turn, self.normals))


def solids(seen: Scene, holds: Sequence[SceneHold] = ()) -> Solids:
    """The triangles of a scene: shapes of bodies, marks of joints and closures, of stops and couplings.

    Without surfaces that bend, which `bent_surfaces` has.
    """
    total = sum(len(s.mesh.faces) for b in seen.bodies for s in b.shapes if s.mesh is not None)
    share = min(1.0, TRIANGLES / max(total, 1))
    parts = []
    for k, body in enumerate(seen.bodies):
        for shape in body.shapes if body.surface is None else ():
            mesh = shape.mesh and decimated(shape.mesh, max(200, int(share * len(shape.mesh.faces))))
            parts.append(
                _part(mesh or primitive(shape.kind, shape.size), shape.placement, shape.color or body.color, k)
            )
    for shape, color, k in _joint_marks(seen):
        parts.append(_part(primitive(shape.kind, shape.size), shape.placement, color, k))
    count = len(seen.closures)
    for number, c in enumerate(seen.closures):
        ball = primitive("sphere", (c.mark,))
        parts.append(_part(ball, c.placement_b, palette.CLOSED, c.b, number))
        parts.append(_part(ball, c.placement_b, palette.OPEN, c.b, count + number))
    for number, hold in enumerate(holds):
        j = seen.joints[hold.joint]
        turn = Placement(toward(j.axis or (0.0, 0.0, 1.0)).matrix())
        radius = DISC * (j.mark or 0.01 * seen.size)
        color = palette.EVENTS["impact"] if hold.is_stop else palette.CLOSED
        parts.append(_part(primitive("cylinder", (radius, 0.5 * radius)), turn, color, j.body, 2 * count + number))
    return _joined(parts)


def bent_surfaces(seen: Scene, eta: Mapping[int, np.ndarray], present: np.ndarray) -> Solids | None:
    """The surfaces that bend, of bodies that are present, by the coordinates (modes,) of each."""
    parts = []
    for k, own in eta.items():
        body, mesh = seen.bodies[k], seen.bodies[k].surface
        if present[k] and mesh is not None:
            parts.append(_part(_fewer(mesh).bent(own), body.shapes[0].placement, body.color, k))
    return _joined(parts) if parts else None


@lru_cache(maxsize=8)
def _fewer(mesh: Mesh) -> Mesh:
    return decimated(mesh, TRIANGLES)


def surfaces(seen: Scene) -> list[Solids | None]:
    """The triangles of each of the scene's patches; None for a floor without arrows."""
    out: list[Solids | None] = []
    for patch in seen.patches:
        meshes = [(s.mesh, s.placement) for s in patch.shapes("") if s.mesh is not None]
        parts = [_part(mesh, placement, palette.GROUND, patch.body) for mesh, placement in meshes]
        out.append(_joined(parts) if parts else None)
    return out


def slides(seen: Scene, poses: np.ndarray, present: np.ndarray) -> Solids | None:
    """Rods from where slides start on their carriers to the bodies that slide and are present, in the world."""
    parts = []
    for j in seen.joints:
        if j.kind not in SLIDING or not present[j.body]:
            continue
        start, end = (poses[j.parent] @ matrix(j.placement))[:3, 3], poses[j.body][:3, 3]
        length = float(np.linalg.norm(end - start))
        if 0.01 * seen.size < length < 100.0 * seen.size:
            x, y, z = ((end - start) / length).tolist()
            a, b, c = (0.5 * (start + end)).tolist()
            rod = primitive("cylinder", (0.008 * seen.size, length))
            parts.append(_part(rod, Placement(toward((x, y, z)).matrix(), (a, b, c)), seen.bodies[j.body].color, 0))
    return _joined(parts) if parts else None


def contact_arrows(touching: ContactForces, k: int, size: float) -> Solids | None:
    """Arrows of the forces of contacts at sample k, in the world; size [m]: of the mechanism."""
    parts = []
    now = touching.sample(k)
    for point, way, state in zip(now.points[0], now.arrows(size)[0], now.states[0], strict=True):
        length = float(np.linalg.norm(way))
        if length > 0.0:
            x, y, z = (way / length).tolist()
            a, b, c = point.tolist()
            thick = ARROW * size * float(np.clip(10.0 * length / size, 0.4, 1.0))
            parts.append(
                _part(arrow(thick, length), Placement(toward((x, y, z)).matrix(), (a, b, c)), COLORS[int(state)], 0)
            )
    return _joined(parts) if parts else None


def _joined(parts: list[tuple[np.ndarray, ...]]) -> Solids:
    return Solids(*(np.concatenate([p[i] for p in parts]) for i in range(5)))


def _joint_marks(seen: Scene) -> list[tuple[Shape, str, int]]:
    """The marks of joints: shape, colour, and the body that they are on."""
    out = []
    for j in seen.joints:
        r = j.mark
        turn = Placement(toward(j.axis).matrix()) if j.axis is not None else Placement()
        if not r:
            continue
        if j.kind in TURNING:
            out.append((Shape("cylinder", (r, TURNING[j.kind] * r), turn), palette.JOINT, j.body))
        elif j.kind == "prismatic":
            out.append((Shape("box", (1.8 * r, 1.8 * r, 3.2 * r), turn), palette.JOINT, j.body))
        elif j.kind in BALLS:
            out.append((Shape("sphere", (1.2 * r,)), palette.JOINT, j.body))
    return out


def _part(mesh: Mesh, placement: Placement, color: str, body: int, mark: int = -1) -> tuple[np.ndarray, ...]:
    """Corners, normals, colours, bodies and marks of a mesh; mark: −1 for none."""
    turn, place = np.array(placement.rotation), np.array(placement.position)
    corners = mesh.vertices[mesh.faces] @ turn.T + place
    own = np.array([int(color[k : k + 2], 16) / 255.0 for k in (1, 3, 5)])
    packed = mesh.colors[:, None] >> np.array([16, 8, 0]) & 255
    colors = np.where(mesh.colors[:, None] >= 0, packed / 255.0, own)
    owners = np.full(len(corners), body), np.full(len(corners), mark)
    return corners, smooth_normals(mesh) @ turn.T, colors, *owners


def smooth_normals(mesh: Mesh) -> np.ndarray:
    """At each corner (m, 3, 3) of a triangle the mean normal of those around it that are nearly in its plane."""
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    flat = np.cross(b - a, c - a)  # as long as the triangle is large
    units = flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-300)
    corners = mesh.faces.ravel()
    order = np.argsort(corners, kind="stable")
    counts = np.bincount(corners, minlength=len(mesh.vertices))
    starts = np.cumsum(counts) - counts
    around = counts[corners]
    owner, step = ragged(np.where(around <= CROWD, around, 0))
    others = order[starts[corners[owner]] + step] // 3
    near = np.einsum("pi,pi->p", units[owner // 3], units[others]) > CREASE
    owner, others = owner[near], others[near]
    out = np.stack([np.bincount(owner, flat[others, k], len(corners)) for k in range(3)], axis=1)
    out = np.where(np.abs(out).max(axis=1, keepdims=True) > 0.0, out, np.repeat(units, 3, axis=0))
    lengths = np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-300)
    return np.asarray((out / lengths).reshape(-1, 3, 3))


def ragged(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For rows of these lengths: the row of each entry, and its number within the row."""
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
