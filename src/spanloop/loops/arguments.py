"""Who drives: actuators by name, what each of their torques costs, and the loop forces that are asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.algorithms.papers.kreutz_rodriguez import grasps
from spanloop.errors import InputError, StateError, nearest
from spanloop.loops.independent import freedom_names, freedoms_called
from spanloop.math.spatial import Motion
from spanloop.model import Model
from spanloop.model.parts import Loop


@dataclass(frozen=True, eq=False)
class Actuators:
    """Freedoms that can carry a torque: places in v, names, and the weights of their squares (n,)."""

    freedoms: tuple[int, ...]
    names: tuple[str, ...]
    weights: np.ndarray

    def __len__(self) -> int:
        return len(self.freedoms)


def actuators(model: Model, actuated: Sequence[str] | None, weights) -> Actuators:
    """The joints or freedoms named; those of model.actuated and driven ones if nothing is said.

    weights: {"joint": weight}, 1 for the others; or one number a freedom, in the order of the freedoms.
    """
    if actuated is None:
        chosen = [k for j in model.joints if j.actuated or j.driven for k in freedoms_called(model, j.name)]
    else:
        named = [actuated] if isinstance(actuated, str) else list(actuated)
        chosen = sorted({k for name in named for k in freedoms_called(model, name)})
    names = freedom_names(model)
    return Actuators(tuple(chosen), tuple(names[k] for k in chosen), _weights(model, chosen, weights))


def _weights(model: Model, chosen: Sequence[int], weights) -> np.ndarray:
    if isinstance(weights, Mapping):
        out = np.ones(len(chosen))
        for name, weight in weights.items():
            theirs = [chosen.index(k) for k in freedoms_called(model, name) if k in chosen]
            if not theirs:
                raise InputError(f"inverse_dynamics: weights names {name!r}, which is not among the actuators")
            out[theirs] = weight
    else:
        out = np.ones(len(chosen)) if weights is None else np.array(weights, dtype=float)
    if out.shape != (len(chosen),) or not (np.isfinite(out).all() and (out > 0.0).all()):
        raise InputError(
            f"inverse_dynamics: weights is {weights!r}; expected positive numbers, by joint or one for each of the "
            f"{len(chosen)} actuated freedoms"
        )
    return out


def wanted_forces(model: Model, internal: Mapping | None) -> tuple[tuple[str, ...], np.ndarray]:
    """Names of the loops whose forces are asked for, in their order, and the forces (..., 6 n)."""
    if not isinstance(internal, Mapping | None):
        raise InputError(
            f"inverse_dynamics: internal is a {type(internal).__name__}; expected {{'loop': [torque; force] (..., 6)}}"
        )
    known = [x.name for x in model.loops]
    words = ("inverse_dynamics: internal", "a loop", "inverse_dynamics: the internal force of")
    return forces_in_order(internal or {}, known, *words)


def forces_in_order(
    forces: Mapping, known: Sequence[str], argument: str, sort: str, one: str
) -> tuple[tuple[str, ...], np.ndarray]:
    """Names of what forces are given for, in the known order, and the forces (..., 6 n); words for sentences."""
    for name, six in forces.items():
        if name not in known:
            raise InputError(f"{argument} names {name!r}, which is not {sort}; {nearest(name, known)}")
        if np.shape(six)[-1:] != (6,):
            raise InputError(f"{one} {name!r} has shape {np.shape(six)}; expected (..., 6), [torque; force]")
    names = tuple(sorted(forces, key=known.index))
    return names, joined([forces[n] for n in names])


def joined(arrays: Sequence) -> np.ndarray:
    """Arrays (..., n) side by side, their batch axes brought together; (0,) for none."""
    if not arrays:
        return np.zeros(0)
    given = [np.asarray(x) for x in arrays]
    leading = np.broadcast_shapes(*(x.shape[:-1] for x in given))
    return np.concatenate([np.broadcast_to(x, (*leading, x.shape[-1])) for x in given], axis=-1)


# ---- What is said of loops, checked: which of those that can be switched are closed, how those that are driven move.


def switchable_loops(model: Model) -> list[str]:
    return [x.name for x in model.loops if x.switchable]


def active_loops(model: Model, active: Iterable[str] | None, function: str = "forward_dynamics") -> frozenset[str]:
    """The switchable loops that are closed now; all of them if not told."""
    switchable = switchable_loops(model)
    if isinstance(active, str) or not isinstance(active, Iterable | None):
        raise InputError(f"{function}: active is {active!r}; expected names of loops, as ['grasp', ...]; [] for none")
    chosen = frozenset(switchable if active is None else active)
    _all_known(chosen, switchable, f"{function}: active", "a switchable loop")
    return chosen


def given_rows(model: Model, given: Mapping, function: str = "forward_dynamics") -> np.ndarray:
    """Accelerations (..., n) of the freedoms of all driven loops, 0 where none is told."""
    if not isinstance(given, Mapping):
        raise InputError(f"{function}: given is a {type(given).__name__}; expected {{'loop': accelerations (..., n)}}")
    driven = [x for x in model.loops if x.driven]
    _all_known(given, [x.name for x in driven], f"{function}: given", "a driven loop")
    for x in driven:
        if x.name in given and np.shape(given[x.name])[-1:] != (x.kind.nv,):
            raise InputError(
                f"{function}: the given acceleration of {x.name!r} has shape {np.shape(given[x.name])}; "
                f"expected (..., {x.kind.nv}), one for each freedom of a {x.kind.name} joint"
            )
    return joined([given.get(x.name, np.zeros(x.kind.nv)) for x in driven])


def _all_known(names: Iterable[str], known: list[str], what: str, meaning: str) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"{what} names {name!r}, which is not {meaning}; {nearest(name, known)}")


# ---- Forces that are known along a loop's own freedoms: a motor, spring or friction in the cut joint. [Lilly & Orin,
# h_k]


def known_forces(
    robot, q, known: Mapping, forces: Mapping, active: Collection[str] | None = None, name: str = "forward_dynamics"
) -> dict[str, np.ndarray]:
    """External forces by body with those along loops' freedoms added; `robot` is a Dynamics."""
    robot.loads(name, forces)  # says what is wrong with them
    return on_bodies(robot, q, known_wrenches(robot, q, known, active, name), forces)


def known_wrenches(
    robot, q, known: Mapping, active: Collection[str] | None = None, name: str = "forward_dynamics"
) -> dict[str, np.ndarray]:
    """[torque; force] (..., 6) by loop, on body b at the loop's child frame in world axes: φ (φᵀφ)⁻¹ h.

    It does the power h · rate. active: switchable loops that are closed now; all of them if None.
    """
    found = {}
    for loop, values in checked(robot.model, known, active, name):
        turn = robot.pose(q, loop.b)[..., :3, :3] @ np.array(loop.placement_b.rotation)
        six = np.einsum("...kn,...n->...k", np.linalg.pinv(_motion_space(robot, loop, q, turn)), values)
        parts = [np.einsum("...ij,...j->...i", turn, six[..., k : k + 3]) for k in (0, 3)]
        found[loop.name] = np.concatenate(parts, axis=-1)
    return found


def checked(model: Model, known: Mapping, active: Collection[str] | None, name: str) -> list[tuple[Loop, np.ndarray]]:
    """Loops, all of them closed, each with its numbers (..., n)."""
    if not isinstance(known, Mapping):
        raise InputError(f"{name}: known is a {type(known).__name__}; expected {{'loop': forces (..., n)}}")
    return [(loop := pushed(model, which, active, name), _numbers(loop, x, name)) for which, x in known.items()]


def pushed(model: Model, which: str, active: Collection[str] | None, name: str) -> Loop:
    """The loop of this name, if a force can act along its freedoms."""
    loops = {x.name: x for x in model.loops}
    if which not in loops:
        raise InputError(f"{name}: known names {which!r}, which is not a loop; {nearest(which, loops)}")
    loop = loops[which]
    if loop.switchable and active is not None and which not in active:
        raise InputError(
            f"{name}: known names {which!r}, which is not active: an open loop carries no force. Leave it out of "
            "known=, or name it in active="
        )
    if not motion(loop):
        raise InputError(
            f"{name}: known names {which!r}, a {loop.kind.name} joint, which has no freedoms of its own for a force "
            "to act along. Use forces={'body': [torque; force]}"
        )
    return loop


def on_bodies(robot, q, wrenches: Mapping[str, np.ndarray], forces: Mapping) -> dict[str, np.ndarray]:
    """Forces by body, at body origins in world axes: those from outside, and those of loops on their two bodies."""
    out = {name: np.asarray(six, float) for name, six in forces.items()}
    for loop in robot.model.loops:
        if loop.name not in wrenches:
            continue
        wrench, pose = wrenches[loop.name], robot.pose(q, loop.b)
        at = pose[..., :3, 3] + pose[..., :3, :3] @ np.array(loop.placement_b.position)
        for body, sign in ((loop.b, 1.0), (loop.a, -1.0)):
            if body != "world":
                lever = at - robot.pose(q, body)[..., :3, 3]
                torque = wrench[..., :3] + np.cross(lever, wrench[..., 3:])
                six = sign * np.concatenate([torque, wrench[..., 3:]], axis=-1)
                out[body] = out[body] + six if body in out else six
    return out


def motion(loop: Loop) -> tuple[Motion, ...]:
    """φ of a loop where its joint is neutral, in the child's axes; of a soft finger its two columns of rolling."""
    kind = loop.kind
    return kind.motion_space(kind.neutral()) if kind.carries else grasps.motion(kind, kind.closing_pose())


def _numbers(loop: Loop, values, name: str) -> np.ndarray:
    n, shape = len(motion(loop)), np.shape(values)
    if shape[-1:] != (n,):
        raise InputError(f"{name}: the known force of {loop.name!r} has shape {shape}; expected (..., {n})")
    numbers = np.asarray(values, float)
    if numbers.ndim == 1 and not np.isfinite(numbers).all():
        k = int(np.argmax(~np.isfinite(numbers)))
        raise StateError(f"{name}: known[{loop.name!r}][{k}] is {numbers[k]}; every number must be finite")
    return numbers


def _motion_space(robot, loop: Loop, q, turn: np.ndarray) -> np.ndarray:
    """φᵀ (..., n, 6) in the child's axes; turn: the child frame's axes in the world."""
    if loop.kind.constant_space:
        return np.array([tuple(s) for s in motion(loop)])
    kind: Any = loop.kind  # a universal joint: its first axis is fixed in the parent
    first = robot.pose(q, loop.a)[..., :3, :3] @ np.array(loop.placement_a.rotation) @ np.array(kind.axis)
    space = np.zeros((*first.shape[:-1], 2, 6))
    space[..., 0, :3] = np.einsum("...ji,...j->...i", turn, first)
    space[..., 1, :3] = kind.second_axis
    return space
