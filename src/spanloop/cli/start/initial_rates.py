"""Rates at the start from the arguments of --v, where loops make the others follow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, StateError, listed
from spanloop.simulation.initial_state import completed_rates, switches_closed


def rates_around_loops(robot: Dynamics, q: np.ndarray, rates: Mapping[str, Sequence[float]]) -> np.ndarray:
    """v (nv,) with these rates of joints by name and closed loops; a refusal says which --v to add or to leave out."""
    try:
        return completed_rates(robot, q, {name: x[0] if len(x) == 1 else x for name, x in rates.items()})
    except (InputError, StateError) as error:
        words = _remedy(robot, q, list(rates))
        if not words:
            raise
        raise InputError(words) from error


def _remedy(robot: Dynamics, q: np.ndarray, named: list[str]) -> str:
    """What is wrong with the choice of joints, in words of the command line; "" if it is something else."""
    try:
        left = int(robot.mobility(q))
        kept = _independent(robot, q, [], named, left)
        every = _independent(robot, q, kept, _candidates(robot, q), left)
    except (InputError, StateError):
        return ""
    follow, missing = [x for x in named if x not in kept], every[len(kept) :]
    if not follow and not missing:
        return ""
    words = f"--v names {listed(named)}; the loops leave {left} DoF, whose rates determine the others"
    if follow:
        words += f". Leave out {listed([f'--v {x}' for x in follow])}, which the others or the loops determine"
    if missing:
        words += f"{'; add' if follow else '. Add'} {' '.join(_argument(robot, x) for x in missing)}"
    return f"{words}. {switches_closed(robot.model)}".removesuffix(". ")


def _independent(robot: Dynamics, q: np.ndarray, first: list[str], more: Iterable[str], most: int) -> list[str]:
    """Joints whose DoF can be chosen together, at most this many DoF: the first ones, and more in their order."""
    found = list(first)
    for name in more:
        wanted = [*found, name]
        if name in found or sum(_width(robot, x) for x in wanted) > most:
            continue
        try:
            robot.independent_coordinates(q, wanted)
        except InputError:
            continue
        found = wanted
    return found


def _candidates(robot: Dynamics, q: np.ndarray) -> list[str]:
    """All joints that move, those of the usual choice first."""
    usual, model = set(robot.independent_coordinates(q).dofs), robot.model
    joints = [j.name for j in model.joints if j.kind.nv]
    return sorted(joints, key=lambda x: not usual.issuperset(range(model.nv)[model.v_slice(x)]))


def _width(robot: Dynamics, joint: str) -> int:
    return int(robot.model.joint(joint).kind.nv)


def _argument(robot: Dynamics, joint: str) -> str:
    word = f"{joint}={','.join(['0'] * _width(robot, joint))}"
    return f'--v "{word}"' if " " in joint else f"--v {word}"
