"""The arguments of dynamics calls, checked: actuators, forces by name, loops that are switched, driven or loaded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.algorithms.papers.kreutz_rodriguez import grasps
from spanloop.errors import InputError, Reason, Refusal, StateError, nearest
from spanloop.kernels.row_masks import row_masks
from spanloop.math.spatial import Motion
from spanloop.math.torch_duals import refuse_tangents
from spanloop.model import Model
from spanloop.model.parts import Loop


def dof_names(model: Model) -> list[str]:
    """A name for each entry of v: the joint's, with a number where it has several DoF, or as "boom.modes[y1]"."""
    return [name for j in model.joints for name in j.kind.dof_names(j.name)]


def dofs_called(model: Model, name: str) -> list[int]:
    """Places in v of a joint, or of one of its DoF."""
    names = dof_names(model)
    if name in names:
        return [names.index(name)]
    joints = [j.name for j in model.joints]
    if name not in joints:
        raise InputError(f"model {model.name!r} has no joint or DoF {name!r}; {nearest(name, joints + names)}")
    s = model.v_slice(name)
    return list(range(s.start, s.stop))


# ---- actuators


@dataclass(frozen=True, eq=False)
class Actuators:
    """DoF that can carry a torque: places in v, names, and the weights of their squares (n,)."""

    dofs: tuple[int, ...]
    names: tuple[str, ...]
    weights: np.ndarray

    def __len__(self) -> int:
        return len(self.dofs)


def actuators(model: Model, actuated: Sequence[str] | None, weights, function: str = "inverse_dynamics") -> Actuators:
    """The joints or DoF named; those of model.actuated and driven ones by default.

    weights: {"joint": weight}, 1 for the others; or one number a DoF, in the order of the DoF.
    """
    if actuated is None:
        chosen = [k for j in model.joints if j.actuated or j.driven for k in dofs_called(model, j.name)]
    else:
        named = [actuated] if isinstance(actuated, str) else list(actuated)
        chosen = sorted({k for name in named for k in dofs_called(model, name)})
    names = dof_names(model)
    return Actuators(tuple(chosen), tuple(names[k] for k in chosen), _weights(model, chosen, weights, function))


def _weights(model: Model, chosen: Sequence[int], weights, function: str) -> np.ndarray:
    if isinstance(weights, Mapping):
        out = np.ones(len(chosen))
        for name, weight in weights.items():
            theirs = [chosen.index(k) for k in dofs_called(model, name) if k in chosen]
            if not theirs:
                raise InputError(f"{function}: weights names {name!r}, which is not among the actuators")
            out[theirs] = weight
    else:
        out = np.ones(len(chosen)) if weights is None else np.array(weights, dtype=float)
    if out.shape != (len(chosen),) or not (np.isfinite(out).all() and (out > 0.0).all()):
        raise InputError(
            f"{function}: weights is {weights!r}; expected positive numbers, by joint or one for each of the "
            f"{len(chosen)} actuated DoF"
        )
    return out


# ---- forces by name


def wanted_forces(model: Model, internal_forces: Mapping | None) -> tuple[tuple[str, ...], np.ndarray]:
    """Names of the loops whose forces the caller asks for, in the model's order, and the forces (..., 6 n)."""
    if not isinstance(internal_forces, Mapping | None):
        raise InputError(
            f"inverse_dynamics: internal_forces is a {type(internal_forces).__name__}; expected "
            "{'loop': [torque; force] (..., 6)}"
        )
    return forces_in_order(
        internal_forces or {},
        [x.name for x in model.loops],
        "inverse_dynamics: internal_forces",
        "a loop",
        "inverse_dynamics: the internal force of",
    )


def external_forces(model: Model, function: str, forces: Mapping) -> tuple[tuple[str, ...], np.ndarray]:
    """Names of the bodies with external forces, in the model's order, and the forces (..., 6 n)."""
    if not isinstance(forces, Mapping):
        raise InputError(f"{function}: forces is a {type(forces).__name__}; expected {{'body': array (..., 6)}}")
    bodies = [b.name for b in model.bodies]
    return forces_in_order(forces, bodies, f"{function}: forces", "a body", f"{function}: the force on")


def forces_in_order(
    forces: Mapping, names: Sequence[str], argument: str, kind: str, subject: str
) -> tuple[tuple[str, ...], np.ndarray]:
    """The keys of `forces` in the order of `names`, and the forces (..., 6 n) side by side.

    argument, kind, subject: parts of the error messages, e.g. "forces", "a body", "the force on".
    """
    for name, six in forces.items():
        if name not in names:
            raise InputError(f"{argument} names {name!r}, which is not {kind}; {nearest(name, names)}")
        if np.shape(six)[-1:] != (6,):
            raise InputError(f"{subject} {name!r} has shape {np.shape(six)}; expected (..., 6), [torque; force]")
        refuse_tangents(subject.partition(":")[0], f"{subject.partition(': ')[2]} {name!r}", six)
    ordered = tuple(sorted(forces, key=names.index))
    return ordered, joined([forces[n] for n in ordered])


def joined(arrays: Sequence) -> np.ndarray:
    """Arrays (..., n) side by side with their batch axes broadcast; (0,) for none."""
    if not arrays:
        return np.zeros(0)
    parts = [np.asarray(x) for x in arrays]
    leading = np.broadcast_shapes(*(x.shape[:-1] for x in parts))
    return np.concatenate([np.broadcast_to(x, (*leading, x.shape[-1])) for x in parts], axis=-1)


# ---- loops that are switched or driven


def checked_active_loops(
    model: Model, active_loops: Iterable[str] | None, function: str = "forward_dynamics"
) -> frozenset[str]:
    """Names of the switchable loops and couplings that are closed; all of them for None."""
    switchable = list(model.switches)
    if isinstance(active_loops, str) or not isinstance(active_loops, Iterable | None):
        raise InputError(
            f"{function}: active_loops is {active_loops!r}; expected names of loops, as ['grasp', ...]; [] for none"
        )
    names = frozenset(switchable if active_loops is None else active_loops)
    _check_names(names, switchable, f"{function}: active_loops", "a switchable loop or coupling")
    return names


def loop_acceleration_rows(
    model: Model, loop_accelerations: Mapping | None, function: str = "forward_dynamics"
) -> np.ndarray:
    """Accelerations (..., n) along the DoF of all driven loops; 0 for loops that are not named."""
    named = {} if loop_accelerations is None else loop_accelerations
    if not isinstance(named, Mapping):
        raise InputError(
            f"{function}: loop_accelerations is a {type(named).__name__}; expected {{'loop': accelerations (..., n)}}"
        )
    driven = [x for x in model.loops if x.driven]
    _check_names(named, [x.name for x in driven], f"{function}: loop_accelerations", "a driven loop")
    for name, given in named.items():
        refuse_tangents(function, f"the acceleration of loop {name!r}", given)
    for x in driven:
        if x.name in named and np.shape(named[x.name])[-1:] != (x.kind.nv,):
            raise InputError(
                f"{function}: the acceleration of loop {x.name!r} has shape {np.shape(named[x.name])}; "
                f"expected (..., {x.kind.nv}), one for each DoF of a {x.kind.name} joint"
            )
    return joined([named.get(x.name, np.zeros(x.kind.nv)) for x in driven])


def active_row_mask(
    model: Model, active_loops: frozenset[str], near: Sequence[float] | np.ndarray | None = None
) -> np.ndarray:
    """1 for every row of switchable loops and couplings that acts while these are closed, 0 for the others, -1 for
    rows that depend on others; near: a state q (nq,) of the assembly."""
    mask: np.ndarray = row_masks(model, (), closed=active_loops, near=near)[0]
    return mask


def loop_inputs(
    model: Model,
    active_loops: Iterable[str] | None,
    loop_accelerations: Mapping | None,
    mask: Callable[[Model, frozenset[str]], np.ndarray] = active_row_mask,
    function: str = "forward_dynamics",
) -> tuple[np.ndarray, ...]:
    """A kernel's inputs for switchable and for driven loops; none where the model has no such loop with rows."""
    names = checked_active_loops(model, active_loops, function)
    accelerations = loop_acceleration_rows(model, loop_accelerations, function)
    masks = (mask(model, names),) if model.switches else ()
    found = masks + ((accelerations,) if any(x.driven for x in model.loops) else ())
    return tuple(x for x in found if x.shape[-1])


def _check_names(names: Iterable[str], known: list[str], argument: str, kind: str) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"{argument} names {name!r}, which is not {kind}; {nearest(name, known)}")


# ---- forces along a loop's own DoF: a motor, spring or friction in the cut joint [Lilly & Orin, h_k]


def with_loop_forces(
    robot,
    q,
    loop_forces: Mapping,
    forces: Mapping,
    active_loops: Collection[str] | None = None,
    function: str = "forward_dynamics",
) -> dict[str, np.ndarray]:
    """External forces by body, with the forces along the DoF of loops added; `robot` is a Dynamics."""
    external_forces(robot.model, function, forces)  # checks them
    return on_bodies(robot, q, loop_wrenches(robot, q, loop_forces, active_loops, function), forces)


def loop_wrenches(
    robot,
    q,
    loop_forces: Mapping,
    active_loops: Collection[str] | None = None,
    function: str = "forward_dynamics",
) -> dict[str, np.ndarray]:
    """[torque; force] (..., 6) by loop, on body b at the loop's child frame in world axes: φ (φᵀφ)⁻¹ h.

    Its power is h · rate. active_loops: the switchable loops that are closed; all of them for None.
    """
    wrenches = {}
    for loop, h in checked_loop_forces(robot.model, loop_forces, active_loops, function):
        rotation = robot.pose(q, loop.b)[..., :3, :3] @ np.array(loop.placement_b.rotation)
        six = np.einsum("...kn,...n->...k", np.linalg.pinv(_motion_space(robot, loop, q, rotation)), h)
        parts = [np.einsum("...ij,...j->...i", rotation, six[..., k : k + 3]) for k in (0, 3)]
        wrenches[loop.name] = np.concatenate(parts, axis=-1)
    return wrenches


def checked_loop_forces(
    model: Model, loop_forces: Mapping, active_loops: Collection[str] | None, function: str
) -> list[tuple[Loop, np.ndarray]]:
    """The loops named, each with its forces (..., n)."""
    if not isinstance(loop_forces, Mapping):
        raise InputError(
            f"{function}: loop_forces is a {type(loop_forces).__name__}; expected {{'loop': forces (..., n)}}"
        )
    return [
        (loop := loop_with_force(model, name, active_loops, function), _checked_force(loop, x, function))
        for name, x in loop_forces.items()
    ]


def loop_with_force(model: Model, name: str, active_loops: Collection[str] | None, function: str) -> Loop:
    """The loop of this name; InputError unless it is closed and a force can act along its DoF."""
    loops = {x.name: x for x in model.loops}
    if name not in loops:
        raise InputError(f"{function}: loop_forces names {name!r}, which is not a loop; {nearest(name, loops)}")
    loop = loops[name]
    if loop.switchable and active_loops is not None and name not in active_loops:
        raise InputError(
            f"{function}: loop_forces names {name!r}, which is not active: an open loop carries no force. Leave it "
            "out of loop_forces=, or name it in active_loops="
        )
    if not motion(loop):
        raise InputError(
            f"{function}: loop_forces names {name!r}, a {loop.kind.name} joint, which has no DoF of its own for a "
            "force to act along. Use forces={'body': [torque; force]}"
        )
    return loop


def on_bodies(robot, q, wrenches: Mapping[str, np.ndarray], forces: Mapping) -> dict[str, np.ndarray]:
    """Forces by body, at body origins in world axes: the external ones plus those of loops on their two bodies."""
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


def _checked_force(loop: Loop, force, function: str) -> np.ndarray:
    n, shape = len(motion(loop)), np.shape(force)
    if shape[-1:] != (n,):
        raise InputError(f"{function}: the force of loop {loop.name!r} has shape {shape}; expected (..., {n})")
    refuse_tangents(function, f"the force of loop {loop.name!r}", force)
    numbers = np.asarray(force, float)
    if numbers.ndim == 1 and not np.isfinite(numbers).all():
        k = int(np.argmax(~np.isfinite(numbers)))
        sentence = f"loop_forces[{loop.name!r}][{k}] is {numbers[k]}; every number must be finite"
        raise StateError.of(function, Refusal(Reason.NOT_FINITE, sentence))
    return numbers


def _motion_space(robot, loop: Loop, q, rotation: np.ndarray) -> np.ndarray:
    """φᵀ (..., n, 6) in the child's axes; rotation: the child frame's axes in the world."""
    if loop.kind.constant_space:
        return np.array([tuple(s) for s in motion(loop)])
    kind: Any = loop.kind  # a universal joint: its first axis is fixed in the parent
    first = robot.pose(q, loop.a)[..., :3, :3] @ np.array(loop.placement_a.rotation) @ np.array(kind.axis)
    space = np.zeros((*first.shape[:-1], 2, 6))
    space[..., 0, :3] = np.einsum("...ji,...j->...i", rotation, first)
    space[..., 1, :3] = kind.second_axis
    return space
