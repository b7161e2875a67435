"""Operations that kernels take: by method, and over the size of a mechanism."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from spanloop.algorithms import catalog
from spanloop.errors import InputError, SpanloopError
from spanloop.kernels import KernelSpec
from spanloop.model import Model
from spanloop.view.plots.canvas import GREY, PALETTE, blank, dressed, legend, pens

SORTS = ("multiplications", "additions", "divisions", "negations", "sincos", "square_roots")


def counts(model: Model, function: str = "forward_dynamics", methods: Sequence[str] | None = None, *, ax=None):
    """Operations of a function by method, as bars; methods: all that fit the model if not told.

    They are counted before multiplications and additions are fused. Nothing is compiled for it.
    """
    found = counted(model, function, methods)
    (ax,) = blank(ax, size=(8.0, 1.4 + 0.45 * len(found)))
    left = np.zeros(len(found))
    for sort, color in zip(SORTS, PALETTE, strict=False):
        values = np.array([getattr(operations, sort) for operations in found.values()])
        if values.any():
            ax.barh(list(found), values, left=left, color=color, label=sort.replace("_", " "), height=0.62)
        left += values
    for k, total in enumerate(left):
        ax.text(total, k, f" {total:,.0f}".replace(",", " "), va="center", fontsize=9, color=GREY)
    dressed(ax, "operations", "method")
    ax.invert_yaxis()
    ax.margins(x=0.12)
    ax.grid(False, axis="y")
    ax.set_title(f"{function.replace('_', ' ')} of {model.name}", fontsize=10, loc="left")
    legend(ax)
    return ax


def scaling(
    family: Callable[[int], Model],
    sizes: Sequence[int] = (2, 4, 8, 16, 32),
    function: str = "forward_dynamics",
    methods: Sequence[str] | None = None,
    *,
    ax=None,
):
    """Operations over the size of a family of models, sl.zoo.chain say, a line for each method.

    Both scales are powers; a dotted line rises in proportion to the size. Nothing is compiled for it.
    """
    sizes = sorted(int(n) for n in sizes)
    found: dict[str, list[int]] = {}
    for n in sizes:
        for method, operations in counted(family(n), function, methods).items():
            found.setdefault(method, []).append(total(operations))
    (ax,) = blank(ax, size=(7.0, 4.5))
    for (method, values), pen in zip(found.items(), pens(len(found)), strict=True):
        ax.plot(sizes, values, marker="o", markersize=4, label=method, **pen)
    start = min(values[0] for values in found.values())
    ax.plot(sizes, [start * n / sizes[0] for n in sizes], ":", color=GREY, label="in proportion to n")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(sizes, [str(n) for n in sizes])
    ax.minorticks_off()
    dressed(ax, f"n of {family.__name__}(n)", "operations")
    ax.set_title(function.replace("_", " "), fontsize=10, loc="left")
    legend(ax)
    return ax


def counted(model: Model, function: str, methods: Sequence[str] | None = None) -> Mapping[str, Any]:
    """Operations by method."""
    entry = catalog.function(function)
    closed = bool(model.loops or model.couplings)
    fitting = entry.closed if closed and entry.closed is not None else entry.methods
    found = {}
    for method in fitting if methods is None else methods:
        try:
            found[method] = KernelSpec.of(model, function, method=method).plan.operations
        except SpanloopError:
            if methods is not None:
                raise
    if not found:
        raise InputError(f"plot: no method of {function} fits model {model.name!r}")
    return found


def total(operations) -> int:
    """All operations of these sorts; choices between two values are not counted."""
    return sum(getattr(operations, sort) for sort in SORTS)
