"""What acts on a pair beside its state: forces from outside, loops that are switched or driven."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from spanloop.algorithms.closed.setting import row_mask
from spanloop.errors import InputError, nearest
from spanloop.loops.switched import active_loops, given_rows, switchable_loops
from spanloop.model import Model
from spanloop.topology import mechanism


def loads(model: Model, forces: Mapping) -> dict[str, np.ndarray]:
    """Forces [torque; force] (..., 6) by body, in the model's order, their batch axes broadcast."""
    known = [b.name for b in model.bodies]
    _all_known(forces, known, "forces", "a body")
    for name, six in forces.items():
        if np.shape(six)[-1:] != (6,):
            raise InputError(
                f"forward_dynamics: the force on {name!r} has shape {np.shape(six)}; expected (..., 6), [torque; force]"
            )
    names = sorted(forces, key=known.index)
    wide = np.broadcast_arrays(*(np.asarray(forces[n], float) for n in names)) if names else []
    return dict(zip(names, wide, strict=True))


def loop_inputs(model: Model, active: Iterable[str] | None, given: Mapping) -> tuple[np.ndarray, ...]:
    """Step D's inputs for switchable and for driven loops; there are none where the model has no such loop."""
    chosen, told = active_loops(model, active), given_rows(model, given)
    masks = (row_mask(mechanism(model), chosen),) if switchable_loops(model) else ()
    return masks + ((told,) if any(x.driven for x in model.loops) else ())


def stand_in(fine: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Rows (..., n) with the first that is fine in place of all that are not."""
    return x if fine.all() else np.where(fine[..., None], x, x[fine][0])


def _all_known(names: Iterable[str], known: Iterable[str], what: str, meaning: str) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"forward_dynamics: {what} names {name!r}, which is not {meaning}; {nearest(name, known)}")
