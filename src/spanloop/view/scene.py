"""The Scene of a model: shapes, joints, closures, frames and colours as plain data, and the poses of all bodies.

The scene knows no renderer: the page and the live viewer draw the same Scene. Shapes come from the model's visual
geometry and its meshes; a body without geometry gets a stand-in (see `stand_ins`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from spanloop.dynamics import Dynamics
from spanloop.model import WORLD, Model
from spanloop.model.parts import Placement
from spanloop.topology import mechanism
from spanloop.trajectory.quantities import over_samples
from spanloop.types import Floats3
from spanloop.view import body_shapes, palette, stand_ins
from spanloop.view.beams import segments
from spanloop.view.body_shapes import Shape, axis_of
from spanloop.view.contact_shapes import SceneSurface, contact_shapes, place_of, surfaces
from spanloop.view.marks import Marks
from spanloop.view.meshes.mesh import Mesh
from spanloop.view.surface_patches import ScenePatch, patches

LARGEST_INERTIA = 0.2  # half axis of an ellipsoid at most, in sizes of the mechanism
ABSURD_MESH = 20.0  # diagonal of a mesh that no body of the mechanism can have, in its sizes
ABSURD_INERTIA = 1.0  # half axis that no body of the mechanism can have, in its sizes


@dataclass(frozen=True)
class SceneBody:
    """A body: name, colour ("#rrggbb") of shapes without one, mass [kg], shapes in its frame, the ellipsoid of its
    inertia, if any, and the shapes of its contacts that are not among them. A segment of a flexible body: of which
    (number in `bodies`); a surface that bends: the stiffness of its modes."""

    name: str
    color: str
    mass: float
    shapes: tuple[Shape, ...]
    inertia: Shape | None
    contacts: tuple[Shape, ...] = ()
    segment_of: int | None = None
    stiffness: tuple[float, ...] = ()

    @property
    def surface(self) -> Mesh | None:
        """The mesh that bends, if this is one."""
        mesh = self.shapes[0].mesh if self.segment_of is not None else None
        return mesh if mesh is not None and mesh.movement is not None else None


@dataclass(frozen=True)
class SceneJoint:
    """A joint of the tree: it sits at the origin of `bodies[body]`, axis (3,) in that body's axes or None; its other
    frame has this placement in `bodies[parent]`. mark [m]: the radius to draw it with."""

    name: str
    kind: str
    body: int
    parent: int
    axis: Floats3 | None
    placement: Placement
    mark: float


@dataclass(frozen=True)
class SceneClosure:
    """A joint that closes a loop, between a frame on body a and one on body b (numbers in `bodies`). mark [m]: the
    radius to draw it with."""

    name: str
    kind: str
    a: int
    b: int
    placement_a: Placement
    placement_b: Placement
    axis: Floats3 | None
    mark: float


@dataclass(frozen=True)
class SceneFrame:
    """A named frame of the user on a body."""

    name: str
    body: int
    placement: Placement


@dataclass(frozen=True)
class SceneContact:
    """A contact and the names of its points, by the body (number in `bodies`) and the placement of its shape a."""

    name: str
    points: tuple[str, ...]
    body: int
    placement: Placement


@dataclass(frozen=True)
class Scene:
    """The visible parts of a model. bodies[0] is the world; body i is the child of joints[i − 1]. Segments of flexible
    bodies follow, without joints.

    surfaces: planes that others touch; patches: the parts of them that are shown.
    size [m]: approximate size of the mechanism, which scales markers, arrows and cameras. notes: what the scene shows
    differently from the model; lost: those about meshes that are not shown.
    """

    name: str
    bodies: tuple[SceneBody, ...]
    joints: tuple[SceneJoint, ...]
    closures: tuple[SceneClosure, ...]
    frames: tuple[SceneFrame, ...]
    size: float
    notes: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    contacts: tuple[SceneContact, ...] = ()
    surfaces: tuple[SceneSurface, ...] = ()
    patches: tuple[ScenePatch, ...] = ()

    @property
    def floats(self) -> bool:
        """Whether nothing but free joints ties the mechanism to the world."""
        held = [j for j in self.joints if j.parent == 0 and j.kind != "free"]
        return not held and not any(0 in (c.a, c.b) for c in self.closures)


def scene(model: Model, q: ArrayLike | None = None, folder: str | Path | None = None) -> Scene:
    """The scene of a model; q (nq,) is the configuration that sizes are taken from (default: neutral).

    folder: the folder of the model's file, searched for meshes whose path the model does not have.
    """
    robot = Dynamics(model, target="python")
    at = poses(robot, model.neutral() if q is None else np.asarray(q, float))
    bodies, size, notes, lost = _bodies(model, at, folder)
    number = model.body_number
    marks = Marks(model, _marked(model, bodies, size), size)
    planes = surfaces(model, size)
    return Scene(
        model.name,
        bodies,
        tuple(
            SceneJoint(j.name, j.kind.name, number[j.child], number[j.parent], axis_of(j.kind), j.placement, mark)
            for j, mark in zip(model.joints, marks.joints(), strict=True)
        ),
        tuple(
            SceneClosure(
                x.name, x.kind.name, number[x.a], number[x.b], x.placement_a, x.placement_b, axis_of(x.kind), mark
            )
            for x, mark in zip(model.loops, marks.loops(), strict=True)
        ),
        tuple(SceneFrame(f.name, number[f.body], f.placement) for f in model.frames),
        size,
        notes,
        lost,
        tuple(SceneContact(c.name, c.point_names, *place_of(model, c.a)) for c in model.contacts),
        planes,
        patches(planes, at[None], size),
    )


def _bodies(model: Model, at: np.ndarray, folder: str | Path | None):
    """The world and all bodies, the size of the mechanism [m], and notes."""
    notes: list[str] = []
    collisions = body_shapes.shows_collisions(model)
    size = stand_ins.reach(model, at)
    size = max([size, *(body_shapes.extent(s) for own in contact_shapes(model, 0.0)[1:] for s in own)])
    own: list[tuple[Shape, ...]] = [()]
    for b in model.bodies:
        own.append(_sensible(b.name, body_shapes.own_shapes(b, collisions, folder, notes), model, size, notes))
    lost = tuple(dict.fromkeys(notes))
    pictured = body_shapes.is_pictured(model)
    bent = segments.bent_bodies(model)
    if pictured and any(own):
        rows = [(s,) for b in bent for s in segments.segment_shapes(b.source, size)]
        points = _placed_corners([*own, *rows], at[None])
        size = max(float(np.linalg.norm(np.ptp(points.reshape(-1, 3), axis=0))), 1e-6)
    colors = palette.of_bodies(model)
    touching = contact_shapes(model, size)
    stands = (*(() if pictured else stand_ins.stands(model, size)), *touching[0])
    bodies = [SceneBody(WORLD, palette.GROUND, 0.0, stands, None)]
    large = []
    bending, parts = {b.body for b in bent}, segments.massless_parts(model)
    for k, body in enumerate(model.bodies):
        shapes = own[k + 1]
        if k + 1 in bending:
            bodies.append(SceneBody(body.name, colors[k], body.inertia.mass, shapes, None))
            continue
        seen = [g for g in body.geometry if body_shapes.is_visible(g)]
        hidden = bool(body.geometry) and not seen and any(own)
        if not shapes and not hidden and (any(g.use == "visual" for g in seen) or not pictured):
            shapes = stand_ins.derived(model, body, size)
            if body.name in parts:  # limbs only, to what is beside it
                shapes = tuple(s for s in shapes if s.kind != "sphere")
        if not own[k + 1] and not hidden:
            shapes = stand_ins.with_contacts(model, body, shapes, touching[k + 1], size)
        others = tuple(s for s in touching[k + 1] if s not in shapes)
        inertia = body_shapes.ellipsoid(body.inertia, LARGEST_INERTIA * size)
        full = body_shapes.ellipsoid(body.inertia)
        heavy = body.inertia.mass > 0.01 * model.mass
        if heavy and full is not None and max(full.size) > ABSURD_INERTIA * size:
            large.append(repr(body.name))
        bodies.append(SceneBody(body.name, colors[k], body.inertia.mass, shapes, inertia, others))
    bodies += [
        SceneBody(bodies[b.body].name, bodies[b.body].color, 0.0, (shape,), None, segment_of=b.body, stiffness=own)
        for b in bent
        for own in [segments.stiffness_of(b.source)]
        for shape in segments.segment_shapes(b.source, size)
    ]
    if large:
        listed = ", ".join(large[:4]) + (f" and {len(large) - 4} more" if len(large) > 4 else "")
        notes.append(f"these bodies have inertias of far larger ones; their ellipsoids are drawn smaller: {listed}")
    return tuple(bodies), size, tuple(dict.fromkeys(notes)), lost


def _marked(model: Model, bodies: Sequence[SceneBody], size: float) -> list[tuple[Shape, ...]]:
    """The shapes of all bodies on which marks of joints sit; roots and nodes of flexible bodies have their beam's."""
    shapes = [b.shapes for b in bodies]
    number = model.body_number
    for bent in segments.bent_bodies(model):
        thin = [0.5 * float(x.min()) for x in segments.widths(bent.source, size)[0]]
        nodes = [number[j.child] for j in model.joints if j.kind.rides and number[j.parent] == bent.body]
        for k, radius in ((bent.root, thin[0]), *((k, thin[-1]) for k in nodes)):
            shapes[k] = (*shapes[k], body_shapes.rod((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), radius))
    return shapes


def _sensible(body: str, shapes: tuple[Shape, ...], model: Model, size: float, notes: list[str]) -> tuple[Shape, ...]:
    """The shapes of a body without meshes far larger than the mechanism, which are noted."""
    large = _far_too_large(shapes, model, size)
    notes += [
        f"body {body!r}: mesh {Path(s.file).name!r} is {across:.3g} m across, the mechanism without meshes "
        f"{most:.2g} m; is it in millimetres? scale=0.001. It is not drawn"
        for s, across, most in large
    ]
    return tuple(s for s in shapes if all(s is not other for other, _, _ in large))


def _far_too_large(shapes: tuple[Shape, ...], model: Model, size: float) -> list[tuple[Shape, float, float]]:
    """Meshes far larger than the mechanism: each with its diagonal and the mechanism's [m]."""
    if all(s.mesh is None for s in shapes):
        return []
    boxes = [body_shapes.inertia_box(b.inertia) for b in model.bodies]
    most = max(size, *(body_shapes.extent(s) for s in (*boxes, *shapes) if s is not None and s.mesh is None), 0.0)
    found = [(s, body_shapes.extent(s), most) for s in shapes if s.mesh is not None]
    return [row for row in found if row[1] > ABSURD_MESH * most]


def large_meshes(model: Model, folder: str | Path | None = None) -> list[tuple[str, str, float, float]]:
    """Meshes far larger than the mechanism: body, name of the file, diagonal of the mesh and of the mechanism [m]."""
    size = stand_ins.reach(model, poses(Dynamics(model, target="python"), model.neutral()))
    collisions = body_shapes.shows_collisions(model)
    return [
        (b.name, Path(s.file).name, across, most)
        for b in model.bodies
        for s, across, most in _far_too_large(body_shapes.own_shapes(b, collisions, folder, []), model, size)
    ]


def poses(robot: Dynamics, q: ArrayLike) -> np.ndarray:
    """Poses (..., n, 4, 4) of the world, all bodies and the segments of flexible ones at q (..., nq), as Scene.bodies.

    One kernel for all bodies; NaN rows stay NaN.
    """
    model = robot.model
    q = np.asarray(q, float)
    names = list(mechanism(model).anchors)
    order = [names.index(name) for name in (WORLD, *(b.name for b in model.bodies))]
    kernel = robot.kernel("poses")
    rows = q if q.ndim > 1 else q[None]
    found = over_samples("poses", kernel.evaluate, rows)[..., order, :, :]
    found = np.concatenate([found, segments.segment_poses(model, found, rows)], axis=-3)
    return found if q.ndim > 1 else found[0]


def extent_points(seen: Scene, at: np.ndarray) -> np.ndarray:
    """Corners (n, points, 3) of the boxes around all shapes, at poses (n, n_bodies + 1, 4, 4)."""
    return _placed_corners([b.shapes for b in seen.bodies], at)


def outermost(body: SceneBody, at: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """Corners (n, points, 3) of a surface that are outermost at rest, bent by eta (n, modes) at poses (n, 4, 4)."""
    mesh = body.surface
    assert mesh is not None
    assert mesh.movement is not None
    ways = np.array([(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1)])
    used = np.unique(mesh.faces)
    own = used[np.unique((mesh.vertices[used] @ ways.T).argmax(axis=0))]
    local = mesh.vertices[own] + np.einsum("vka,nk->nva", mesh.movement[own], eta)
    return np.asarray(np.einsum("nij,ncj->nci", at[:, :3, :3], local) + at[:, None, :3, 3])


def _placed_corners(shapes: Sequence[tuple[Shape, ...]], at: np.ndarray) -> np.ndarray:
    parts = []
    for k, own in enumerate(shapes):
        if own:
            local = np.concatenate([body_shapes.corners(s) for s in own])
            parts.append(np.einsum("nij,cj->nci", at[:, k, :3, :3], local) + at[:, k, None, :3, 3])
    return np.concatenate(parts, axis=1) if parts else at[..., :3, 3]


def matrix(placement: Placement) -> np.ndarray:
    """A placement as (4, 4)."""
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = placement.rotation, placement.position
    return out
