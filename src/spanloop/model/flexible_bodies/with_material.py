"""with_material: a flexible body of another material."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.errors import InputError, UnsupportedError, nearest
from spanloop.flexible.beam import Beam
from spanloop.flexible.body import FlexibleBody
from spanloop.flexible.modes import Node
from spanloop.model import user_input
from spanloop.model.flexible_bodies.pieces import Piece, flexible_bodies
from spanloop.model.parts import Body, Inertia, Joint

if TYPE_CHECKING:
    from spanloop.model.model import Model


def with_material(
    model: Model, body: str, *, E: float | None = None, density: float | None = None, damping: float | None = None
) -> Model:
    """Return the model with another material of a flexible body; None keeps a value.

    E: Young's modulus [Pa]; the shear modulus changes with it (the same Poisson's ratio). density [kg/m³]; damping: of
    each mode, as a ratio of its critical damping; by default the ratios stay as they are

    Stiffness changes with E, mass and inertia with density. Names and order of parameters stay the same, so that
    model.with_material(...).parameters() is an input of kernels of this model with parameters="live".
    Raises InputError for numbers that no material has.

    >>> beam = sl.flexible.beam(1.0, E=7e10, density=2700.0, section=sl.flexible.circle(0.01), modes={"y": 1})
    >>> arm = sl.Builder("arm").body("boom", flexible=beam).revolute("hinge", "world", "boom").build()
    >>> steel = arm.with_material("boom", E=2.1e11, density=7850.0)
    >>> stiffness = [model.joint("boom.modes").stiffness[0] for model in (arm, steel)]
    >>> round(steel.mass / arm.mass, 4), round(stiffness[1] / stiffness[0], 4)
    (2.9074, 3.0)
    """
    known = flexible_bodies(model.bodies, model.joints)
    owner = f"with_material: body {body!r}"
    if body not in known:
        what = nearest(body, known) if known else "it has none at all"
        raise InputError(f"with_material: model {model.name!r} has no flexible body {body!r}; {what}")
    old = known[body].beam
    if old is None:
        raise UnsupportedError(f"{owner} has no beam from which modes of another material follow")
    if E is None and density is None and damping is None:
        raise InputError(f"{owner}: nothing is given; expected E=, density= or damping=")
    new = _changed(old, E, density, damping, owner)
    bodies: dict[str, Body] = {}
    joints: dict[str, Joint] = {}
    for piece in known[body].pieces:
        number = piece.modal.source.number
        changed = _piece(piece, old.bodies[number], new.bodies[number], damping is not None)
        bodies[piece.body.name] = changed[0]
        joints |= {j.name: j for j in changed[1]}
    return replace(
        model,
        bodies=tuple(bodies.get(b.name, b) for b in model.bodies),
        joints=tuple(joints.get(j.name, j) for j in model.joints),
    )


def _changed(beam: Beam, E: Any, density: Any, damping: Any, owner: str) -> Beam:
    """The recipe with the other material."""
    values = {
        name: user_input.number(x, f"{owner}: {name}")
        for name, x in {"E": E, "density": density, "damping": damping}.items()
        if x is not None
    }
    for name, unit in (("E", "Pa"), ("density", "kg/m³")):
        if values.get(name, 1.0) <= 0.0:
            raise InputError(f"{owner}: {name} is {values[name]:g} {unit}; must be > 0")
    if values.get("damping", 0.0) < 0.0:
        raise InputError(f"{owner}: damping is {values['damping']:g}; expected a ratio of critical damping, 0 or more")
    new: dict[str, Any] = dict(values)
    if "E" in new:
        new["G"] = beam.G * (new["E"] / beam.E)
    if "damping" in new:
        new["damping"] = (new["damping"],)
    return replace(beam, **new)


def _piece(piece: Piece, old: FlexibleBody, new: FlexibleBody, damped: bool) -> tuple[Body, list[Joint]]:
    """The body and the joints of a piece, all numbers in the proportion in which those of the recipe change."""
    i, j = piece.body.inertia, piece.joint
    inertia = Inertia(
        _scaled((i.mass,), (old.mass,), (new.mass,))[0],
        new.center,
        _scaled(i.moments, old.moments, new.moments),  # type: ignore[arg-type]
    )
    stiffness = _scaled(j.stiffness, old.stiffness, new.stiffness)
    roots = [np.sqrt(np.array(x.stiffness) * x.mass) for x in (old, new)]  # critical damping is in proportion to them
    kept = tuple((np.array(j.damping) * roots[1] / roots[0]).tolist())
    damping = new.damping if damped or j.damping == old.damping else kept
    nodes = [replace(x, kind=Node(_shape(x, old, new))) for x in piece.nodes]
    modes = replace(j, kind=new.modal, stiffness=stiffness, damping=damping)
    return replace(piece.body, inertia=inertia), [modes, *nodes]


def _shape(joint: Joint, old: FlexibleBody, new: FlexibleBody) -> Any:
    """The shape of a node in the new body."""
    k = [node.shape for node in old.nodes].index(joint.kind.shape)  # type: ignore[attr-defined]
    return new.nodes[k].shape


def _scaled(values: Sequence[float], old: Sequence[float], new: Sequence[float]) -> tuple[float, ...]:
    """Values in the proportion of new ones to old ones; the new ones themselves where the values are the old ones."""
    scale: Callable[[float, float, float], float] = lambda x, a, b: b if x == a else x * (b / a) if a else x  # noqa: E731
    return tuple(scale(*each) for each in zip(values, old, new, strict=True))
