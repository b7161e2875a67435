"""Closures of a pair of systems as their user gives them: between which frames, of which kind, of whose points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.loops.arguments import external_forces
from spanloop.model import Model, user_input
from spanloop.model.parts import WORLD, Loop, Placement

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
    known = [*frames_of(primary), *frames_of(secondary)]
    raise InputError(
        f"neither {primary.name!r} nor {secondary.name!r} has a frame or body {frame!r}; {nearest(frame, known)}"
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


def loads(model: Model, forces: Mapping) -> dict[str, np.ndarray]:
    """External forces [torque; force] (..., 6) by body, in the model's order, their batch axes broadcast."""
    names, _ = external_forces(model, "forward_dynamics", forces)
    wide = np.broadcast_arrays(*(np.asarray(forces[n], float) for n in names)) if names else []
    return dict(zip(names, wide, strict=True))


def stand_in(fine: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Rows (..., n) with the first that is fine in place of all that are not."""
    return x if fine.all() else np.where(fine[..., None], x, x[fine][0])
