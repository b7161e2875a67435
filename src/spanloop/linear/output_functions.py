"""A user's function of the state, differentiated along directions: it is traced as controllers are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spanloop.compiler.derivative.forward import directional
from spanloop.compiler.lower import Plan, traced_inputs
from spanloop.compiler.lower.evaluation import ARRAY_FUNCTIONS, evaluated
from spanloop.compiler.trace import TraceError
from spanloop.compiler.traced_arrays import TracedArray
from spanloop.errors import InputError
from spanloop.model import Model


def function_changes(
    model: Model, function: Callable[..., Any], name: str, q: np.ndarray, v: np.ndarray, dq: np.ndarray, dv: np.ndarray
) -> tuple[np.ndarray, bool]:
    """The changes (n, p, k) of function(q, v) along directions dq, dv (n, nv, k) in joint rates; is it one number?"""
    sizes = (("q", model.nq), ("v", model.nv), ("dq", model.nv), ("dv", model.nv))
    x = traced_inputs(sizes)
    try:
        answer = function(TracedArray.of(x["q"]), TracedArray.of(x["v"]))
    except (TypeError, IndexError) as error:
        if not isinstance(error, TraceError):
            raise InputError(
                f"linearize: output {name!r} does not take (q, v), arrays (nq,) and (nv,), as they are ({error}). One "
                "joint of q is q[model.q_slice('elbow')]"
            ) from error
        raise InputError(
            f"linearize: output {name!r} cannot be differentiated: {error}. Write it in the arithmetic of NumPy"
        ) from None
    single = np.ndim(answer) == 0
    rates = directional(
        list(np.ravel(TracedArray.of(answer))), [*x["q"], *x["v"]], [*_rates(model, x["q"], x["dq"]), *x["dv"]]
    )
    plan = Plan.of(f"output {name}", x, (len(rates),), rates, (), ())
    rows = [y[:, :, None] for y in (q, v)] + [dq, dv]
    columns = [column for y in rows for column in np.moveaxis(y, 1, 0)]
    with np.errstate(all="ignore"):
        found, _ = evaluated(plan, columns, ARRAY_FUNCTIONS)
    shape = (len(q), dq.shape[-1])
    changes = np.stack([np.broadcast_to(np.asarray(y, dtype=float), shape) for y in found], axis=1)
    if not np.isfinite(changes).all():
        raise InputError(
            f"linearize: the derivative of output {name!r} is not finite at the operating point (a root of 0, a "
            "division by 0); choose an output that is smooth there"
        )
    return changes, single


def _rates(model: Model, q: Sequence[Any], dq: Sequence[Any]) -> list[Any]:
    """The rates (nq) of the coordinates that move by joint rates."""
    out: list[Any] = []
    for joint in model.joints:
        s, w = model.q_slice(joint.name), model.v_slice(joint.name)
        out += joint.kind.rates(q[s], dq[w])
    return out
