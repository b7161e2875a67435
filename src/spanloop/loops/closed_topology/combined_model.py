"""Two systems and the closures between their frames as one model, and the model of their points of closure alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spanloop.errors import InputError, UnsupportedError, nearest
from spanloop.joints import Free
from spanloop.model import Model, user_input
from spanloop.model.edits.rename import all_names
from spanloop.model.parts import WORLD, Body, Joint, Loop, Placement

PRIMARY, SECONDARY = "primary", "secondary"


def as_loops(closures: Sequence) -> tuple[Loop, ...]:
    """Loops whose ends are names of frames or bodies; a loop's placements are placements in those frames."""
    if isinstance(closures, str | Loop) or not isinstance(closures, Sequence):
        raise InputError(
            f"closures is a {type(closures).__name__}; expected a list of (frame, frame, joint) or of loops"
        )
    return tuple(x if isinstance(x, Loop) else _loop(x) for x in closures)


def _loop(closure) -> Loop:
    parts = tuple(closure) if isinstance(closure, tuple | list) else ()
    if len(parts) not in (3, 4) or not all(isinstance(x, str) for x in (*parts[:2], *parts[3:])):
        raise InputError(f"a closure is {closure!r}; expected (frame, frame, joint) or (frame, frame, joint, name)")
    a, b, joint = parts[:3]
    name = parts[3] if len(parts) == 4 else f"{a}_{b}"
    return Loop(name, user_input.joint_kind(joint, f"closure {name!r}"), a, b)


def owner(frame: str, primary: Model, secondary: Model) -> str:
    """Which system a frame or body belongs to; the world belongs to neither."""
    if frame == WORLD:
        return WORLD
    for system, model in ((PRIMARY, primary), (SECONDARY, secondary)):
        if frame in frames_of(model):
            return system
    names = [*frames_of(primary), *frames_of(secondary)]
    raise InputError(
        f"neither {primary.name!r} nor {secondary.name!r} has a frame or body {frame!r}; {nearest(frame, names)}"
    )


def frames_of(model: Model) -> tuple[str, ...]:
    """Names of the frames and bodies of a model."""
    return (*(f.name for f in model.frames), *(b.name for b in model.bodies))


def points(loops: Sequence[Loop], more: Sequence[str], system: str, primary: Model, secondary: Model) -> tuple:
    """The points of closure of one system, in the order in which they are met."""
    names = [*(x for loop in loops for x in (loop.a, loop.b)), *more]
    return tuple(dict.fromkeys(x for x in names if owner(x, primary, secondary) == system))


def on_bodies(loop: Loop, model: Model) -> Loop:
    """A loop between frames as one between the bodies that carry them."""
    a, b = model.frame(loop.a), model.frame(loop.b)
    if a.body == b.body:
        raise InputError(
            f"closure {loop.name!r}: {loop.a!r} and {loop.b!r} are both on body {a.body!r}; a closure joins two bodies"
        )
    in_a, in_b = (_within(f.placement, x) for f, x in ((a, loop.placement_a), (b, loop.placement_b)))
    return replace(loop, a=a.body, b=b.body, placement_a=in_a, placement_b=in_b)


def _within(frame: Placement, placement: Placement) -> Placement:
    return frame if placement == Placement() else frame @ placement


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
        contacts=primary.contacts + secondary.contacts,
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
