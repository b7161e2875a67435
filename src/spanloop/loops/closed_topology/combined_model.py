"""Two systems as one model, and the model of their points of closure alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spanloop.errors import InputError, UnsupportedError
from spanloop.joints import Free
from spanloop.loops.closed_topology.closures import on_bodies
from spanloop.model import Model
from spanloop.model.edits.rename import all_names
from spanloop.model.parts import WORLD, Body, Joint, Loop


def joined(primary: Model, secondary: Model, loops: Sequence[Loop]) -> Model:
    """Both systems and all loops as one model: q, v and tau have the primary system's entries first."""
    _fit_together(primary, secondary)
    names = [*all_names(primary), *all_names(secondary), *(x.name for x in loops)]
    whole = replace(
        primary,
        name=f"{primary.name}_{secondary.name}",
        bodies=primary.bodies + secondary.bodies,
        joints=primary.joints + secondary.joints,
        frames=primary.frames + secondary.frames,
        loops=primary.loops + secondary.loops,
        actuators=primary.actuators + secondary.actuators,
        sensors=primary.sensors + secondary.sensors,
        notes=primary.notes + secondary.notes,
    )
    for x in loops:
        if names.count(x.name) > 1:
            raise InputError(
                f"closure {x.name!r}: something else has this name; give another: (frame, frame, joint, name)"
            )
    return replace(whole, loops=(*whole.loops, *(on_bodies(x, whole) for x in loops)))


def of_points(points: Sequence[str], loops: Sequence[Loop]) -> Model:
    """A free body for each point of closure, and the loops between them: all that step D knows."""
    bodies = tuple(Body(name) for name in points)
    joints = tuple(Joint(f"{name} moves", Free(), WORLD, name) for name in points)
    return Model("points of closure", bodies, joints, loops=tuple(loops), gravity=(0.0, 0.0, 0.0))


def _fit_together(primary: Model, secondary: Model) -> None:
    taken = set(all_names(primary))
    for name in all_names(secondary):
        if name in taken:
            raise InputError(
                f"{primary.name!r} and {secondary.name!r} both have a part {name!r}; rename one: "
                f'model.rename({{"{name}": ...}})'
            )
    if primary.gravity != secondary.gravity:
        raise InputError(
            f"gravity is {primary.gravity} in {primary.name!r} and {secondary.gravity} in {secondary.name!r}; "
            "expected one: model.with_gravity(...)"
        )
    for model in (primary, secondary):
        if model.couplings:
            raise UnsupportedError(
                f"a closed topology has no couplings between joints ({model.couplings[0].name!r} of {model.name!r}); "
                "make one model of both systems and use method 'elimination'"
            )
