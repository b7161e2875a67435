"""The initial states of runs: checked, and projected to the closed loops if they are a little off."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spanloop.algorithms.closed.closure_kinematics import OPEN
from spanloop.algorithms.papers.saha.legs import NotLegs
from spanloop.compiler.runtime.arrays import converted, leading_shape
from spanloop.contacts.geometry_check import overlap_refusal
from spanloop.contacts.settings import refuse_column
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, Reason, Refusal, SpanloopWarning, StateError, UnsupportedError, listed
from spanloop.kernels import KernelSpec
from spanloop.loops.assembly.assembly import Limits, assemble
from spanloop.loops.batching import faulty_states
from spanloop.loops.closure_errors import errors, positional, relative_errors, worst
from spanloop.loops.constraint_rank import in_general, structures
from spanloop.model import Model
from spanloop.model.poses import ROOM, default_position
from spanloop.simulation.events.endings import Limit
from spanloop.simulation.minimal.completion import METHOD
from spanloop.simulation.system import SINGULAR, System
from spanloop.simulation.traced_kernels import kernel

SURFACES = "friction and restitution of contacts"
NOTICED = 1e-9  # rad, or of the loop's length, or their rates: a smaller correction of the start is not reported
_MOST = 20  # Newton steps in minimal coordinates
_CLOSED = 1e-14  # rad, or of the loop's length: a smaller closure error is not corrected
_ENOUGH = 1e-9  # rad, or of the loop's length: must be reached
_COMPLETED = 0.05  # rad, or of the loop's length: what Newton's method closes around the actuated joints
_UNDETERMINED = "where the actuated joints do not determine the motion of the others. Use closures='project'"


@dataclass(frozen=True)
class LiveRobot:
    """A robot whose kernels take these parameters: (n,), or (runs, n) for functions of as many states."""

    robot: Dynamics
    parameters: np.ndarray

    @property
    def model(self) -> Model:
        """The mechanism; its own numbers are not used."""
        return self.robot.model

    def kernel(self, function: str, **options: Any) -> LiveKernel:
        """The kernel of a function, with its parameters given."""
        return LiveKernel(self.robot.kernel(function, parameters="live", **options), self.parameters)


@dataclass(frozen=True)
class LiveKernel:
    """A kernel and its last input, the parameters."""

    kernel: Any
    parameters: np.ndarray

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the numbers that it computes with."""
        found: np.dtype[Any] = self.kernel.dtype
        return found

    def evaluate(self, *inputs: np.ndarray) -> np.ndarray:
        """The kernel's answer at the inputs before the parameters."""
        found: np.ndarray = self.kernel.evaluate(*inputs, self.parameters)
        return found


def runs(shapes: Mapping[str, tuple[int, ...]], where: str = "simulate") -> tuple[int, ...]:
    """The axes of the runs that these arguments have together; where: begins messages."""
    if SURFACES in shapes:
        refuse_column(f"{SURFACES} have", shapes[SURFACES], shapes)
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        given = ", ".join(f"{name} {shape}" for name, shape in shapes.items() if shape)
        raise InputError(f"{where}: numbers of runs do not fit together: {given}; they must be equal or 1") from None


def states(
    robot: Dynamics,
    q,
    v,
    shapes: Mapping[str, tuple[int, ...]],
    parameters: np.ndarray | None = None,
    where: str = "simulate",
) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """Rows q (n, nq) and v (n, nv), and the shape of the batch.

    shapes: of other arguments that have one entry a run, by name. parameters (..., n): live ones, if there are any.
    where: begins messages.
    """
    model = robot.model
    if q is None or isinstance(q, Mapping):
        q = _default(robot, parameters, q or {}, where)
    if v is None or isinstance(v, Mapping):
        v = _rates(robot, parameters, q, v, where) if v else np.zeros(model.nv)
    q = converted(where, "q", model.nq, q, np.dtype(float))
    v = converted(where, "v", model.nv, v, np.dtype(float))
    leading = runs({"q": q.shape[:-1], "v": v.shape[:-1], **shapes}, where)
    if 0 in leading:
        raise InputError(f"{where}: the batch has the shape {leading}; there is nothing to simulate")
    n = math.prod(leading)  # -1 would not do for a model in which nothing moves
    q = np.array(np.broadcast_to(q, (*leading, model.nq)).reshape(n, model.nq))
    v = np.array(np.broadcast_to(v, (*leading, model.nv)).reshape(n, model.nv))
    _check(robot, q, v, leading, where)
    return q, v, leading


def closed(
    robot: Dynamics, system: System, q: np.ndarray, v: np.ndarray, constants: np.ndarray
) -> tuple[np.ndarray, np.ndarray, str]:
    """Rows q and v with the loops closed, and a note on what was changed, "" if nothing; open loops are refused.

    Live parameters decide: where they are lengths, the loops close elsewhere than those of the model. In minimal
    coordinates the other joints follow from the actuated ones, and one start may serve runs of slightly other lengths.
    """
    if system.closures == "none" or not system.has_loops:
        return q, v, ""
    live = system.live_parameters(constants)
    own = robot if live is None else LiveRobot(robot, live)
    openness = _openness(own, q, _COMPLETED if live is not None and system.minimal else OPEN)
    if not system.keeps_closed:
        return q, v, ""
    if system.minimal:
        there = completed(system, q, v, constants)
    elif live is not None:
        there = _projected_by_steps(system, q, v, openness, constants)
    else:
        there = _projected(robot, q, v, openness)
    if openness.max(initial=0.0) > NOTICED:  # redundant rows that no joint closes stay as they are
        openness = openness - _openness(own, there[0])
    return *there, _note(openness, v, there[1], robot.model)


def assembly(robot: Dynamics, q: np.ndarray) -> tuple[float, ...] | None:
    """A state of the assembly that all runs q (n, nq) begin in; None where it is one near the neutral state."""
    if not robot.model.loops:
        return None
    found, number = structures(robot, q)
    if len(np.unique(number)) > 1:
        k = int(np.flatnonzero(number != number[0])[0])
        words = (
            f"run {k} starts in another assembly of the loops than run 0: other rows are redundant there. "
            "Simulate the runs of each assembly in a call of their own; robot.diagnose(q) tells them apart"
        )
        raise StateError.of("simulate", Refusal(Reason.OTHER_ASSEMBLY, words))
    return None if found[number[0]] is in_general(robot.model) else tuple(map(float, q[0]))


def refuse_overlaps(
    robot: Dynamics, system: System, q: np.ndarray, constants: Mapping[str, Any], batch: tuple[int, ...]
) -> None:
    """Raise StateError where shapes of hard contacts overlap too deep at rows q (n, nq); of bodies that are there.

    constants: of the runs, by name, each (..., size) with axes that fit the batch.
    """
    rows = {n: np.broadcast_to(x, (*batch, x.shape[-1])).reshape(len(q), -1) for n, x in constants.items()}
    gaps, bound = system.gaps(q, rows).reshape(*batch, -1), system.overlap
    begins = system.switching.begins_present if system.switching else ()
    gaps[..., [not all(begins[k] for k in own) for own in system.bodies_of_points]] = np.inf
    if overlap_refusal(robot.model, gaps, bound=bound) is None:
        return
    normals = None if "p" in constants else robot.contact_geometry(q).normal.reshape(*gaps.shape, 3)
    refusal = overlap_refusal(robot.model, gaps, normals, bound)
    assert refusal is not None
    raise StateError.of("simulate", refusal)


def _openness(robot: Dynamics | LiveRobot, q: np.ndarray, most: float = OPEN) -> np.ndarray:
    """The largest closure error (n,) of each state [rad, or of the loop's length]; more than `most` is refused."""
    every = errors(robot, q)
    openness = np.abs(relative_errors(robot, q)[:, positional(robot.model)]).max(axis=1, initial=0.0)
    far = np.flatnonzero(openness > most)
    if len(far):
        k = int(far[0])
        miss = worst(robot.model, every[k])
        which = f"run {k} starts where " if len(q) > 1 else ""
        live = " (with the live parameters)" if isinstance(robot, LiveRobot) else ""
        closer = "sl.Dynamics(model.with_parameters(...))" if live else "robot"
        words = f"{which}{miss.what} is open by {miss.by()}{live}. Close it first: q = {closer}.assemble(q)"
        raise StateError.of("simulate", Refusal(Reason.OPEN_LOOP, words))
    return openness


def _projected(robot: Dynamics, q: np.ndarray, v: np.ndarray, openness: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows q, v projected to the closed loops; states that are closed and at rest stay as they are."""
    off = (openness > _CLOSED) | v.any(axis=1)
    if off.any():
        q, v = q.copy(), v.copy()
        q[off], v[off] = robot.project(q[off], v[off])
    return q, v


def _projected_by_steps(
    system: System, q: np.ndarray, v: np.ndarray, openness: np.ndarray, constants: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same with the corrections of a step, which know live parameters; constants (n or 1, width)."""
    nq, nv, names = system.model.nq, system.model.nv, system.constants
    off = np.flatnonzero((openness > _CLOSED) | v.any(axis=1))
    if not len(off):
        return q, v

    def compute(x):
        q, left = system.closed_position(x)
        return [*q, *system.closed_velocity({**x, "q": q}), left], ()

    sizes = {"q": nq, "v": nv} | {n: system.sizes[n] for n in names}
    closer = kernel("closed", sizes, nq + nv + 1, compute, system.key())
    given = _split(constants[off] if len(constants) > 1 else constants, [system.sizes[n] for n in names])
    rows, left = np.concatenate([q[off], v[off]], axis=1), np.full(len(off), np.inf)
    for _ in range(_MOST):
        found = closer.evaluate(rows[:, :nq], rows[:, nq:], *given)
        better = (left > _CLOSED) & (found[:, -1] < np.maximum(0.5 * left, _CLOSED))  # whatever its neighbours do
        rows[better], left[better] = found[better, :-1], found[better, -1]
        if not (better & (left > _CLOSED)).any():
            break
    lost = np.flatnonzero(~(left < _ENOUGH))
    if len(lost):
        words = f"{_which(int(off[lost[0]]), q)} where the loops cannot be closed with the live parameters"
        raise StateError.of("simulate", Refusal(Reason.NOT_CLOSABLE, words))
    q, v = q.copy(), v.copy()
    q[off], v[off] = rows[:, :nq], rows[:, nq:]
    return q, v


def _note(closed: np.ndarray, before: np.ndarray, after: np.ndarray, model: Model) -> str:
    """A sentence and a warning on how states were changed, if by more than NOTICED.

    closed (n,): by how much loops were open that are no longer; before, after: velocities.
    """
    by_q, by_v = closed.max(initial=0.0), np.abs(after - before).max(initial=0.0)
    if max(by_q, by_v) <= NOTICED:
        return ""
    parts = [f"loops were open by up to {by_q:.1e} (rad, or of their length)"] if by_q > NOTICED else []
    parts += [f"velocities opened the loops, and were changed by up to {by_v:.1e}"] if by_v > NOTICED else []
    words = f"the start was brought to the closed loops: {'; '.join(parts)}"
    words = ". ".join(filter(None, [words, switches_closed(model)]))
    warnings.warn(f"simulate: {words}", SpanloopWarning, stacklevel=5)
    return words


_ENDS_LATER = "that limit ends the run only after the joint has come inside"


def note_on_limits(limits: Sequence[Limit], q: np.ndarray, is_stop: bool = False) -> str:
    """A sentence on joints that start at or beyond a limit, which is not checked before they have come inside.

    "" if there are none; q (n, nq). is_stop: the limits are stops, at which a joint may start.
    """
    beyond = [x for x in limits if (x.value(q.T) < -NOTICED if is_stop else x.value(q.T) <= 0.0).any()]
    if not beyond:
        return ""
    first = beyond[0]
    values = first.value(q.T)
    at = float(q[np.argmin(values), first.place])
    by = float(-values.min())
    where = f"{by:.2g} beyond" if by > 0.0 else "exactly at"
    more = f" (and {len(beyond) - 1} more)" if len(beyond) > 1 else ""
    does = "it may come inside, and is held where it goes further" if is_stop else _ENDS_LATER
    return (
        f"joint {first.joint!r} starts at {at:g}, {where} its {first.word} limit {first.bound:g}{more}; "
        f"{does}. limits='ignore' leaves limits out"
    )


def _default(robot: Dynamics, parameters: np.ndarray | None, given: Mapping[str, Any], where: str) -> np.ndarray:
    """The default position (..., nq), with its loops assembled, for each set of live parameters (..., n).

    given: coordinates of joints by name, which stay as they are.
    """
    guess = default_position(robot.model)
    if given:
        from spanloop.model.user_input import by_name

        guess = by_name(robot.model, given, guess, "q", where)
    if not (robot.model.loops or robot.model.couplings):
        return guess
    if parameters is None:
        return assembled(robot, guess, tuple(given))
    shape = leading_shape(where, ["q", "parameters"], [guess, parameters])
    pairs = (np.broadcast_to(x, (*shape, x.shape[-1])).reshape(-1, x.shape[-1]) for x in (guess, parameters))
    found = [assembled(LiveRobot(robot, p), start, tuple(given)) for start, p in zip(*pairs, strict=True)]
    return np.array(found).reshape(*shape, guess.shape[-1])


def _rates(robot: Dynamics, parameters: np.ndarray | None, q: Any, given: Mapping[str, Any], where: str) -> np.ndarray:
    """Velocities (..., nv) from rates of joints by name: zero at the others, or what closed loops make of them."""
    from spanloop.model.user_input import by_name

    model = robot.model
    v = by_name(model, given, np.zeros(model.nv), "v", where)
    if not (model.loops or model.couplings):
        return v
    if parameters is not None:
        raise InputError(f"{where}: v is given by name, for loops whose parameters are live; give an array (..., nv)")
    rates = {name: v[..., model.v_slice(name)] for name in given}
    return completed_rates(robot, q, {name: x[..., 0] if x.shape[-1] == 1 else x for name, x in rates.items()})


def completed_rates(robot: Dynamics, q: Any, rates: Mapping[str, Any]) -> np.ndarray:
    """robot.complete_velocity; a refusal names the switchable loops and couplings that are closed."""
    try:
        return robot.complete_velocity(q, rates)
    except (StateError, InputError) as error:
        words = switches_closed(robot.model)
        if not words:
            raise
        if isinstance(error, InputError):
            raise InputError(f"{error}. {words}") from error
        raise StateError.of(error.where, replace(error.refusal, sentence=f"{error.refusal}. {words}")) from error


def switches_closed(model: Model) -> str:
    """A sentence on the switchable loops and couplings that are closed at the start, "" if there are none."""
    if not model.switches:
        return ""
    return (
        f"Switchable, and closed at the start: {listed(map(repr, model.switches))}. "
        "closures=sl.Closures(active_loops=[...]) (active_loops in the file of a run) names those that are to be"
    )


def assembled(robot: Dynamics | LiveRobot, guess: np.ndarray, fixed: Sequence[str] = ()) -> np.ndarray:
    """Coordinates (nq,) near the guess with all loops closed, and a little room to limits of joints.

    At or beyond limits if need be; fixed: as assemble.

    Raises:
        StateError: the loops close nowhere near.
    """
    try:
        found = assemble(robot, guess, fixed)
    except StateError as within_limits:
        try:
            return assemble(robot, guess, fixed, limits="ignore")
        except StateError:
            raise within_limits from None
    if not Limits(robot.model, fixed, room=ROOM).reached(found):
        return found
    try:
        return assemble(robot, found, fixed, room=ROOM)
    except StateError:
        return found


def _check(robot: Dynamics, q: np.ndarray, v: np.ndarray, leading: tuple[int, ...], where: str) -> None:
    """Every number is finite and every quaternion of unit length; nothing of a batch runs if one state fails."""
    faults = faulty_states(robot, {"q": q, "v": v})
    if faults:
        k = min(faults)
        run = f"run {k}: " if leading else ""
        raise StateError.of(where, replace(faults[k], sentence=f"{run}{faults[k]}"))


# Minimal coordinates: which models have them, and states completed from the actuated joints.


def refuse_minimal(robot: Dynamics, method: str | None) -> None:
    """Refuse what cannot be simulated in minimal coordinates."""
    if method not in (None, METHOD):
        raise InputError(
            f"closures='minimal' is computed by method={METHOD!r}; method is {method!r}. "
            "Leave it out, or use closures='project'"
        )
    if robot.on_singular != "raise":
        raise InputError(
            f"on_singular={robot.on_singular!r} has no meaning with closures='minimal': at a singular configuration "
            "the actuated joints do not determine the motion. Use closures='project'"
        )
    try:
        KernelSpec.of(robot.model, "position_completion").signature()
    except NotLegs as error:
        other = f", or a model in which {_named(robot)} are actuated" if error.counted else ""
        raise UnsupportedError(
            f"closures='minimal' is for legs on one platform: {error.why}. Use closures='project'{other}"
        ) from None
    if not robot.model.actuated:
        raise UnsupportedError("closures='minimal' integrates actuated joints, and the loops leave none to move")


def _named(robot: Dynamics) -> str:
    """Degrees of freedom that could be actuated instead."""
    return "just " + ", ".join(repr(name) for name in robot.independent_coordinates().names)


def completed(system: System, q: np.ndarray, v: np.ndarray, constants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows q (n, nq), v (n, nv) with the loops closed around the actuated joints; constants (n or 1, width)."""
    nq, nv = system.model.nq, system.model.nv
    sizes = {"q": nq, "v": nv} | {n: system.sizes[n] for n in system.constants}

    def round_of(x):
        q, v, left = system.completed(x, 1)
        T, pairs = system.actuated_rates(x)
        return [*q, *v, left], [*pairs, (SINGULAR, system.completion.margin(T))]

    round_kernel = kernel("completed", sizes, nq + nv + 1, round_of, system.key())
    out = np.concatenate([q, v], axis=1)
    for k, row in enumerate(out):
        given = _split(constants[k if len(constants) > 1 else 0], [system.sizes[n] for n in system.constants])
        found, left = np.empty(nq + nv + 1), np.inf
        for _ in range(_MOST):
            if not round_kernel.attempt([row[:nq].copy(), row[nq:].copy(), *given], found):
                words = f"{_which(k, out)} in a singular configuration of the legs, {_UNDETERMINED}"
                raise StateError.of("simulate", Refusal(Reason.UNDETERMINED, words))
            before, left = left, float(found[-1])
            row[:] = found[:-1]
            if left < _CLOSED or left > 0.5 * before:
                break
        if not left < _ENOUGH:
            words = (
                f"{_which(k, out)} where the loops do not close with the actuated joints as they are: "
                f"{left:.3g} m or rad is left. Close them first: q = robot.assemble(q)"
            )
            raise StateError.of("simulate", Refusal(Reason.NOT_CLOSABLE, words))
    return out[:, :nq], out[:, nq:]


def _split(rows: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
    """The arrays (..., size) that stand side by side in rows (..., width)."""
    ends = np.cumsum(sizes)
    return [np.ascontiguousarray(rows[..., end - size : end]) for end, size in zip(ends, sizes, strict=True)]


def _which(k: int, rows: np.ndarray) -> str:
    return f"run {k} starts" if len(rows) > 1 else "the run starts"
