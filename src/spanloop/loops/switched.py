"""What is said of loops, checked: which of those that can be switched are closed, how those that are driven move."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.loops.actuating import joined
from spanloop.model import Model


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
