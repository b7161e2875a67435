"""The Scene of a model: shapes, joints, closures, frames and colours as plain data, and the poses of all bodies.

The scene knows no renderer: the page and the live viewer draw the same Scene. Shapes come from the model's visual
geometry; a body without visual geometry gets limbs between its joints, or the box of its inertia (see `body_shapes`).
"""

from __future__ import annotations

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
from spanloop.view import body_shapes, palette
from spanloop.view.body_shapes import Shape


@dataclass(frozen=True)
class SceneBody:
    """A body: name, colour ("#rrggbb"), mass [kg], shapes in its frame, the ellipsoid of its inertia, if any, and the
    shapes that replace meshes which a renderer cannot read."""

    name: str
    color: str
    mass: float
    shapes: tuple[Shape, ...]
    inertia: Shape | None
    simple: tuple[Shape, ...] = ()


@dataclass(frozen=True)
class SceneJoint:
    """A joint of the tree: it sits at the origin of `bodies[body]`, axis (3,) in that body's axes or None; its other
    frame has this placement in `bodies[parent]`."""

    name: str
    kind: str
    body: int
    parent: int
    axis: Floats3 | None
    placement: Placement


@dataclass(frozen=True)
class SceneClosure:
    """A joint that closes a loop, between a frame on body a and one on body b (numbers in `bodies`)."""

    name: str
    kind: str
    a: int
    b: int
    placement_a: Placement
    placement_b: Placement
    axis: Floats3 | None


@dataclass(frozen=True)
class SceneFrame:
    """A named frame of the user on a body."""

    name: str
    body: int
    placement: Placement


@dataclass(frozen=True)
class Scene:
    """The visible parts of a model. bodies[0] is the world; body i is the child of joints[i − 1].

    size [m]: approximate size of the mechanism, which scales markers, arrows and cameras. notes: what the scene shows
    differently from the model.
    """

    name: str
    bodies: tuple[SceneBody, ...]
    joints: tuple[SceneJoint, ...]
    closures: tuple[SceneClosure, ...]
    frames: tuple[SceneFrame, ...]
    size: float
    notes: tuple[str, ...] = ()


def scene(model: Model, q: ArrayLike | None = None, folder: str | Path | None = None) -> Scene:
    """The scene of a model; q (nq,) is the configuration that sizes are taken from (default: neutral).

    folder: the folder of the model's file, searched for meshes; without it simple shapes replace them.
    """
    robot = Dynamics(model, target="python")
    at = poses(robot, model.neutral() if q is None else np.asarray(q, float))
    size = body_shapes.reach(model, at)
    number = model.body_number
    colors = palette.of_bodies(model)
    shapes, notes = body_shapes.shapes(model, size, folder)
    bodies = [SceneBody(WORLD, palette.GROUND, 0.0, shapes[WORLD], None)]
    for k, body in enumerate(model.bodies):
        ellipsoid = body_shapes.ellipsoid(body.inertia)
        simple = body_shapes.derived(model, body, size)
        bodies.append(SceneBody(body.name, colors[k], body.inertia.mass, shapes[body.name], ellipsoid, simple))
    return Scene(
        model.name,
        tuple(bodies),
        tuple(
            SceneJoint(j.name, j.kind.name, number[j.child], number[j.parent], body_shapes.axis_of(j.kind), j.placement)
            for j in model.joints
        ),
        tuple(
            SceneClosure(
                x.name, x.kind.name, number[x.a], number[x.b], x.placement_a, x.placement_b, body_shapes.axis_of(x.kind)
            )
            for x in model.loops
        ),
        tuple(SceneFrame(f.name, number[f.body], f.placement) for f in model.frames),
        size,
        notes,
    )


def poses(robot: Dynamics, q: ArrayLike) -> np.ndarray:
    """Poses (..., n_bodies + 1, 4, 4) of the world and all bodies at q (..., nq), in one kernel; NaN rows stay NaN."""
    model = robot.model
    q = np.asarray(q, float)
    names = list(mechanism(model).anchors)
    order = [names.index(name) for name in (WORLD, *(b.name for b in model.bodies))]
    kernel = robot.kernel("poses")
    found = over_samples("poses", kernel.evaluate, q if q.ndim > 1 else q[None])[..., order, :, :]
    return found if q.ndim > 1 else found[0]


def extent_points(seen: Scene, at: np.ndarray) -> np.ndarray:
    """Corners (n, points, 3) of the boxes around all shapes, at poses (n, n_bodies + 1, 4, 4)."""
    parts = []
    for k, body in enumerate(seen.bodies):
        meshes = any(s.kind == "mesh" for s in body.shapes)  # the size of a mesh is unknown here
        local = [body_shapes.corners(s) for s in (*body.shapes, *(body.simple if meshes else ()))]
        if local:
            own = np.concatenate(local)
            parts.append(np.einsum("nij,cj->nci", at[:, k, :3, :3], own) + at[:, k, None, :3, 3])
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(at), 1, 3))


def matrix(placement: Placement) -> np.ndarray:
    """A placement as (4, 4)."""
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = placement.rotation, placement.position
    return out
