"""Independent DoF: which ones determine the rest, and velocities and accelerations completed from them.

With the DoF split into independent (i) and dependent (d) ones, J_d v_d + J_i v_i = 0 gives v = T v_i, and
J_d a_d + J_i a_i + γ = 0 the accelerations.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spanloop.compiler.runtime.arrays import converted
from spanloop.errors import InputError, Reason, Refusal, listed
from spanloop.loops.arguments import dof_names, dofs_called
from spanloop.loops.batching import Computed, Refusals, Robot, faulty_states, one_state, over_states, values
from spanloop.loops.closure_errors import mechanism_of
from spanloop.loops.constraint_rank import RANK, Structure, by_assembly, in_general, rank, singular_values, structure
from spanloop.loops.motion_refusals import open_loops, opening_velocities
from spanloop.math.torch_duals import refuse_tangents
from spanloop.model import Model

_PASSIVE, _ACTUATED, _DRIVEN, _NAMED = range(4)
# a DoF of at most this kind becomes dependent if its column has at least this share of the best one
_SHARES = ((_PASSIVE, 1e-3), (_ACTUATED, 1e-6), (_DRIVEN, 1e-6), (_NAMED, 0.0))


@dataclass(frozen=True)
class IndependentCoordinates:
    """A choice of DoF that determine all others: their places in v, and their names."""

    dofs: tuple[int, ...]
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.dofs)


Dofs = Sequence[str | int] | IndependentCoordinates | str | None  # names of joints or DoF, places in v, or a choice


def independent_coordinates(
    robot: Robot, q: ArrayLike | None = None, prefer: Sequence[str] = ()
) -> IndependentCoordinates:
    """Independent DoF of the mechanism in general, or those that are best at one state q (nq,).

    Driven and actuated joints are preferred; joints named in `prefer` are taken, or the sentence says why not.
    """
    model = robot.model
    prefer = (prefer,) if isinstance(prefer, str) else tuple(prefer)
    named = [k for name in prefer for k in dofs_called(model, name)]
    if q is None:
        rows = in_general(model)
        if rows is None:
            raise InputError(
                f"model {model.name!r}: no closed state was found, and the choice of independent DoF needs one; "
                "give it: robot.independent_coordinates(q)"
            )
        J, r = rows.jacobian, rows.rank
    else:
        q = one_state("independent_coordinates", robot, q)
        J = structure(robot, q).scaled(values(robot, "closure_jacobian", q))
        r = rank(singular_values(J))
    dependent = _dependent(J, r, _kinds(model, named))
    lost = [k for k in named if k in dependent]
    if lost:
        names = dof_names(model)
        raise InputError(
            f"independent_coordinates: {names[lost[0]]!r} cannot be chosen with {', '.join(map(repr, prefer))}: "
            f"the loops leave {model.nv - r} DoF, and it follows from the others"
        )
    return _choice(model, [k for k in range(model.nv) if k not in dependent])


def velocity_map(robot: Robot, q: ArrayLike, dofs: Dofs = None) -> np.ndarray:
    """T (..., nv, n): v = T v_i, for n independent DoF (names, numbers, or the usual choice)."""
    chosen = resolved(robot, q, dofs, "velocity_map")

    def compute(q: np.ndarray) -> Computed:
        T, _, refusals = maps(robot, q, chosen)
        return (T,), refusals | open_loops(robot, q)

    return over_states("velocity_map", robot, by_assembly(robot, compute), q=(q, robot.model.nq))[0]


def complete_velocity(
    robot: Robot, q: ArrayLike, rates: ArrayLike | Mapping[str, ArrayLike], dofs: Dofs = None
) -> np.ndarray:
    """v (..., nv) with J v = 0 from independent rates (..., n), or from {"joint": rate}; open loops are refused."""
    chosen, rates = _rates(robot, q, rates, dofs, "complete_velocity")

    def compute(q: np.ndarray, rates: np.ndarray) -> Computed:
        T, _, refusals = maps(robot, q, chosen)
        return (np.einsum("nvk,nk->nv", T, rates),), refusals | open_loops(robot, q)

    sizes = {"q": (q, robot.model.nq), "rates": (rates, len(chosen))}
    return over_states("complete_velocity", robot, by_assembly(robot, compute), **sizes)[0]


def complete_acceleration(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    accelerations: ArrayLike | Mapping[str, ArrayLike],
    dofs: Dofs = None,
    driven: ArrayLike | None = None,
    name: str = "complete_acceleration",
) -> np.ndarray:
    """a (..., nv) with J a + γ = 0 from independent accelerations (..., n), or from {"joint": acceleration}.

    driven (..., k): the accelerations of the DoF of driven loops; 0 by default. name: of the calling function.
    """
    model = robot.model
    chosen, rates = _rates(robot, q, accelerations, dofs, name)
    rows = list(mechanism_of(model).given_rows)

    def compute(q: np.ndarray, v: np.ndarray, rates: np.ndarray, driven: np.ndarray) -> Computed:
        T, backward, refusals = maps(robot, q, chosen)
        bias = values(robot, "closure_bias", q, v)
        bias[:, rows] -= driven
        general = structure_of(robot, q)
        refusals |= opening_velocities(robot, general, values(robot, "closure_jacobian", q), v)
        refusals |= open_loops(robot, q)
        bias = general.scaled_errors(bias)
        return (np.einsum("nvk,nk->nv", T, rates) - np.einsum("nvr,nr->nv", backward, bias),), refusals

    sizes = {"q": (q, model.nq), "v": (v, model.nv), "accelerations": (rates, len(chosen))}
    sizes["loop_accelerations"] = (np.zeros(len(rows)) if driven is None else driven, len(rows))
    return over_states(name, robot, by_assembly(robot, compute), **sizes)[0]


def mobility(robot: Robot, q: ArrayLike | None = None) -> int | NDArray[np.integer[Any]]:
    """DoF that the loops leave: in general, or at states q (..., nq) (a whole number, or an array of them)."""
    model = robot.model
    if q is None:
        rows = in_general(model)
        if rows is None:
            raise InputError(
                f"model {model.name!r}: no closed state was found, so its mobility in general is not known; "
                "ask at a state: robot.mobility(q)"
            )
        return model.nv - rows.rank

    def compute(q: np.ndarray) -> Computed:
        J = structure_of(robot, q).scaled(values(robot, "closure_jacobian", q))
        return (np.array([model.nv - rank(singular_values(x)) for x in J], dtype=int),), {}

    found = over_states("mobility", robot, by_assembly(robot, compute), q=(q, model.nq))[0]
    return found if found.ndim else int(found)


def resolved(
    robot: Robot, q: ArrayLike, dofs: Dofs, name: str = "", option: str = "dofs=[...]"
) -> IndependentCoordinates:
    """The independent DoF that names, numbers or None mean. name: of the calling function; option: for the error."""
    model, owner = robot.model, name or f"model {robot.model.name!r}"
    rows = converted(owner, "q", model.nq, q, np.dtype(float))
    rows = rows.reshape(math.prod(rows.shape[:-1]), model.nq)
    rows = rows[~np.isin(np.arange(len(rows)), list(faulty_states(robot, {"q": rows})))]
    if isinstance(dofs, IndependentCoordinates):
        chosen = dofs
    elif dofs is not None:
        entries = [dofs] if isinstance(dofs, str) else list(dofs)
        each = [dofs_called(model, x) if isinstance(x, str) else [_place(model, x, owner)] for x in entries]
        places = [k for part in each for k in part]
        twice = [x for x, part in zip(entries, each, strict=True) if any(places.count(k) > 1 for k in part)]
        if twice:
            raise InputError(f"{owner}: dofs names {twice[0]!r} more than once; every independent DoF counts once")
        chosen = _choice(model, places)
    elif (usual := in_general(model)) is not None and structure_of(robot, rows) is usual:
        chosen = _usual_choice(model, usual)
    else:  # no closed state is known, or another assembly than the usual one
        chosen = independent_coordinates(robot, rows[0] if len(rows) else model.neutral())
    left = model.nv - structure_of(robot, rows).rank
    if len(chosen) != left:
        raise InputError(
            f"{owner}: {len(chosen)} independent DoF are named ({listed(chosen.names, 6)}); the loops leave "
            f"{left}. Name {left} that determine the others, {option}; robot.independent_coordinates(q) gives a choice"
        )
    return chosen


def _place(model: Model, number: object, owner: str) -> int:
    if not isinstance(number, int | np.integer) or not 0 <= number < model.nv:
        raise InputError(
            f"{owner}: {number!r} is no DoF; expected a joint's name, or a number from 0 to {model.nv - 1}"
        )
    return int(number)


def structure_of(robot: Robot, q: np.ndarray) -> Structure:
    """The rows of the mechanism in the assembly of the first of the states q (n, nq); by_assembly keeps it the same."""
    return structure(robot, q[0] if len(q) else robot.model.neutral())


def _rates(
    robot: Robot, q: ArrayLike, rates: ArrayLike | Mapping[str, ArrayLike], dofs: Dofs, name: str
) -> tuple[IndependentCoordinates, ArrayLike]:
    """The independent DoF, and their rates (or accelerations) (..., n)."""
    if not isinstance(rates, Mapping):
        return resolved(robot, q, dofs, name), rates
    still = _modes_at_rest(robot, q, [k for joint in rates for k in dofs_called(robot.model, joint)])
    chosen = resolved(robot, q, [*rates, *still], name, 'as {"joint": ...}')
    columns = []
    for joint, numbers in rates.items():
        refuse_tangents(name, f"the rate of {joint!r}", numbers)
        x = np.asarray(numbers, dtype=float)
        columns.append(x[..., None] if len(dofs_called(robot.model, joint)) == 1 else x)
    columns.append(np.zeros(len(still)))
    leading = np.broadcast_shapes(*(x.shape[:-1] for x in columns))
    return chosen, np.concatenate([np.broadcast_to(x, (*leading, x.shape[-1])) for x in columns], axis=-1)


def _modes_at_rest(robot: Robot, q: ArrayLike, named: Sequence[int]) -> list[int]:
    """Modes of flexible bodies that are at rest while named DoF move: all that are not named and that loops leave free.

    Where joints alone do not answer the named DoF, some modes do; they are not among these.
    """
    model = robot.model
    modes = [k for j in model.joints if j.kind.bends for k in range(model.nv)[model.v_slice(j.name)] if k not in named]
    states = np.asarray(q, dtype=float)
    if not modes or states.shape[-1:] != (model.nq,):  # a position of another size is refused where it is read
        return []
    rows = states.reshape(-1, model.nq)
    rows = rows[np.isfinite(rows).all(axis=1)][:1]
    if not len(rows):
        return []
    general = structure_of(robot, rows)
    J = general.scaled(values(robot, "closure_jacobian", rows))[0]
    answering = [k for k in range(model.nv) if k not in named and k not in modes]
    left, size, still = J - _along(J[:, answering], J), np.linalg.norm(J), list(modes)
    while still:
        best = max(still, key=lambda k: float(np.linalg.norm(left[:, k])))
        if np.linalg.norm(left[:, best]) <= 1e-6 * size:
            break
        still.remove(best)
        left = left - _along(left[:, [best]], left)
    return still


def _along(columns: np.ndarray, J: np.ndarray) -> np.ndarray:
    """What J has in the space of some columns."""
    U, s, _ = np.linalg.svd(columns, full_matrices=False)
    basis = U[:, s > RANK * max(s.max(initial=0.0), 1e-300)]
    return np.asarray(basis @ (basis.T @ J))


def maps(robot: Robot, q: np.ndarray, chosen: IndependentCoordinates) -> tuple[np.ndarray, np.ndarray, Refusals]:
    """T (n, nv, k) and the answer of the dependent DoF to the rows, (n, nv, rows), at states q (n, nq)."""
    return maps_of(structure_of(robot, q), values(robot, "closure_jacobian", q), chosen)


def maps_of(
    rows: Structure, jacobian: np.ndarray, chosen: IndependentCoordinates
) -> tuple[np.ndarray, np.ndarray, Refusals]:
    """The same from Jacobians (n, n_rows, nv) of states of one assembly."""
    J, (n, _, nv) = rows.scaled(jacobian), jacobian.shape
    free = list(chosen.dofs)
    rest = [k for k in range(nv) if k not in free]
    U, s, Vt = np.linalg.svd(J[:, :, rest], full_matrices=False)
    size = np.linalg.norm(J, axis=(1, 2))
    weak = s.min(axis=1, initial=np.inf) <= RANK * size if rest else np.zeros(n, dtype=bool)
    s = np.where(s > RANK * size[:, None], s, np.inf)
    backward = np.zeros((n, nv, J.shape[1]))
    backward[:, rest] = np.einsum("nkv,nk,nrk->nvr", Vt, 1.0 / s, U, optimize=True)
    backward *= rows.dof_lengths[:, None]
    T = -backward @ (J[:, :, free] / rows.dof_lengths[free])
    T[:, free] = np.eye(len(free))
    refusal = Refusal(
        Reason.UNDETERMINED,
        f"{', '.join(chosen.names)} do not determine the other DoF at this state. "
        "Choose others there: dofs=robot.independent_coordinates(q)",
    )
    return T, backward, {int(k): refusal for k in np.flatnonzero(weak)}


def _dependent(J: np.ndarray, r: int, kinds: np.ndarray) -> set[int]:
    """Columns of J that follow from the others: the longest left each time, but unwanted kinds last."""
    left = J.copy()
    taken: list[int] = []
    for _ in range(r):
        lengths = np.linalg.norm(left, axis=0)
        lengths[taken] = 0.0
        k = _next(lengths, kinds)
        taken.append(k)
        e = left[:, k] / lengths[k]
        left -= np.outer(e, e @ left)
    return set(taken)


def _next(lengths: np.ndarray, kinds: np.ndarray) -> int:
    for kind, share in _SHARES:
        allowed = np.where(kinds <= kind, lengths, -1.0)
        if allowed.max() > share * lengths.max():
            break
    return int(np.argmax(allowed))


def _kinds(model: Model, named: Sequence[int]) -> np.ndarray:
    kinds = [
        _DRIVEN if j.driven else _ACTUATED if j.actuated else _PASSIVE for j in model.joints for _ in range(j.kind.nv)
    ]
    return np.array([_NAMED if k in named else s for k, s in enumerate(kinds)], dtype=int)


@functools.lru_cache(maxsize=64)
def _usual_choice(model: Model, usual: Structure) -> IndependentCoordinates:
    """independent_coordinates(robot) without a state; usual: the rows of the model in general."""
    dependent = _dependent(usual.jacobian, usual.rank, _kinds(model, ()))
    return _choice(model, [k for k in range(model.nv) if k not in dependent])


def _choice(model: Model, dofs: Sequence[int]) -> IndependentCoordinates:
    names = dof_names(model)
    return IndependentCoordinates(tuple(dofs), tuple(names[k] for k in dofs))
