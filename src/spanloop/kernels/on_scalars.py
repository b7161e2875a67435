"""`sl.on_scalars`: a function of the catalog in plain arithmetic, for what is compiled into a simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spanloop.algorithms.closed.closure_kinematics import extra_inputs
from spanloop.errors import InputError
from spanloop.kernels.row_masks import row_masks
from spanloop.kernels.spec import KernelSpec
from spanloop.math.scalar import where
from spanloop.model import Model
from spanloop.topology import mechanism

CLOSURE_INPUTS = ("active", "given")  # inputs of the dynamics that belong to switchable and to driven loops


def on_scalars(
    model: Model,
    function: str,
    *,
    method: str | None = None,
    forces: str | Sequence[str] = (),
    frame: str | None = None,
    expressed_in: str | None = None,
    near: Sequence[float] | None = None,
) -> Callable[..., list[Any]]:
    """Return a function of the catalog in plain arithmetic, f(q, v, ...) -> list, for floats or traced scalars.

    For controllers and forces that are compiled into a simulation.

    Arguments:
        function: a name of the catalog, as for sl.compile: "bias", "mass_matrix", "pose", ...
        method: the algorithm; by default the first in the catalog.
        forces: names of bodies with external forces; adds the input `forces`, six numbers [torque; force] for each.
        frame, expressed_in: frame or body of pose, jacobian and jacobian_bias, and the axes of the result.
        near: a closed state q (nq,), which selects the assembly of loops, as for sl.compile.

    Returns:
        f, which takes the inputs of the kernel that sl.compile returns, one sequence each (q of nq numbers, v, a, tau
        of nv), in SI units, and returns a list, or a list of rows where the kernel returns a matrix. Where a state has
        no answer (loops in a singular configuration) all numbers are NaN. Open loops are not refused. The inputs
        `active` and `given` of switchable and driven loops may be left out: they are then those of the simulation whose
        q is given; elsewhere all loops are closed, without accelerations of their own.

    Raises:
        InputError: an option, a name or the length of an input does not fit.

    Example:
        >>> gravity = sl.on_scalars(sl.zoo.pendulum(1), "bias")
        >>> len(gravity([0.5], [0.0]))
        1
    """
    spec = KernelSpec.of(
        model,
        function,
        method=method,
        forces=forces,
        frame=frame,
        expressed_in=expressed_in,
        near=near,
        refuses_open=False,  # the stages of a step may leave the closed loops a little
    )
    inputs, shape = spec.signature()

    def compute(*given: Sequence[Any]) -> list[Any]:
        missing = inputs[len(given) :]
        if given and missing and all(name in CLOSURE_INPUTS for name, _ in missing):
            known = {**closed_loops(model, near), **getattr(given[0], "closures", {})}
            given += tuple(known[name] for name, _ in missing)
        if len(given) != len(inputs):
            names = ", ".join(n for n, _ in inputs)
            raise InputError(f"{function} on scalars: {len(given)} arguments are given; expected ({names})")
        for (name, size), x in zip(inputs, given, strict=True):
            if len(x) != size:
                raise InputError(f"{function} on scalars: {name} has {len(x)} numbers; expected {size}")
        answer, demands = spec.compute({n: list(x) for (n, _), x in zip(inputs, given, strict=True)})
        for less, more in demands:
            refused = where(less < more, 0.0, math.nan)
            answer = [x + refused for x in answer]
        return _rows(answer, shape)

    return compute


def closed_loops(model: Model, near: Sequence[float] | None = None) -> dict[str, Sequence[float]]:
    """The inputs of switchable and driven loops that a model has, with all loops closed, and none accelerated.

    near: a state q (nq,) of the assembly.
    """
    m = mechanism(model)
    found: dict[str, Sequence[float] | np.ndarray] = {
        "active": row_masks(model, (), closed=frozenset(m.switches), near=near)[0],
        "given": [0.0] * len(m.given_rows),
    }
    return {name: [float(x) for x in found[name]] for name in extra_inputs(m)}


def _rows(answer: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """A flat list in C order as a list of rows, where there are rows."""
    if len(shape) < 2:
        return answer
    return [answer[k * shape[1] : (k + 1) * shape[1]] for k in range(shape[0])]
