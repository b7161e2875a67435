"""Who drives: actuators by name, what each of their torques costs, and the loop forces that are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.loops.independent import freedom_names, freedoms_called
from spanloop.model import Model


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
