"""Shapes that touch, as a scene shows them: those of contacts on each body, and the planes that they touch."""

from __future__ import annotations

from dataclasses import dataclass

from spanloop.math.vector3 import times
from spanloop.model import Model
from spanloop.model.contacts import ContactSide
from spanloop.model.parts import Geometry, Placement
from spanloop.types import Floats3
from spanloop.view.body_shapes import Shape, hull

POINT = 0.013  # radius of the ball of a point, in sizes of the mechanism
LEVEL = 1e-9  # a plane is level if its normal differs from z by less


@dataclass(frozen=True)
class SceneSurface:
    """A plane that others touch, on `bodies[body]`: z of its placement is its normal.

    velocity (3,) [m/s]: of the surface relative to its body, in the body's axes. touching: what can touch it, a number
    in `bodies` and a shape in that body's frame.
    """

    body: int
    placement: Placement
    velocity: Floats3
    touching: tuple[tuple[int, Shape], ...]

    @property
    def is_level(self) -> bool:
        """Whether it is a level floor of the world."""
        return self.body == 0 and self.placement.rotation[2][2] > 1.0 - LEVEL


def place_of(model: Model, side: ContactSide) -> tuple[int, Placement]:
    """The number of the body that carries a side of a contact, 0 for the world, and its shape's placement there."""
    body, placement = side.on(model)
    return model.body_number[body], placement


def contact_shapes(model: Model, size: float) -> list[tuple[Shape, ...]]:
    """The shapes of contacts on the world and on every body, each once; planes are none of them. size [m]: of the
    mechanism, for points."""
    out: list[dict[tuple, Shape]] = [{} for _ in model.body_number]
    for contact in model.contacts:
        for side in (contact.a, contact.b):
            body, placement = place_of(model, side)
            shape = shape_of(side.geometry, placement, size)
            if shape is not None:
                out[body][side.geometry.shape, side.geometry.size, side.geometry.vertices, placement] = shape
    return [tuple(own.values()) for own in out]


def shape_of(g: Geometry, placement: Placement, size: float) -> Shape | None:
    """The shape of a contact at a placement in its body: a point as a small ball; None for a plane."""
    if g.shape == "plane":
        return None
    if g.shape == "point":
        return Shape("sphere", (POINT * size,), placement, derived=True)
    if g.shape == "hull":
        return hull(g.vertices, placement)
    return Shape(g.shape, g.size, placement)


def surfaces(model: Model, size: float) -> tuple[SceneSurface, ...]:
    """The planes of a model's contacts, each once, with all that can touch it."""
    found: dict[tuple[int, Placement, Floats3], dict[tuple[int, Placement], Shape]] = {}
    for contact in model.contacts:
        sides = (contact.a, contact.b)
        for plane, other in (sides, sides[::-1]):
            if plane.geometry.shape != "plane":
                continue
            turn = model.frame(plane.at).placement.rotation
            velocity = times(turn, contact.surface_velocity) if plane is contact.b else (0.0, 0.0, 0.0)
            body, placement = place_of(model, other)
            shape = shape_of(other.geometry, placement, size)
            if shape is not None:
                found.setdefault((*place_of(model, plane), velocity), {})[body, placement] = shape
    return tuple(
        SceneSurface(body, placement, velocity, tuple((b, shape) for (b, _), shape in others.items()))
        for (body, placement, velocity), others in found.items()
    )


def floor_height(found: tuple[SceneSurface, ...]) -> float | None:
    """The height [m] of the lowest level plane of the world, which is the floor; None without one."""
    return min((s.placement.position[2] for s in found if s.is_level), default=None)
