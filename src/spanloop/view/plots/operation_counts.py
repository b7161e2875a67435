"""Operation counts of kernels: by method, and over the size of a mechanism."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from spanloop.algorithms import catalog
from spanloop.errors import InputError, SpanloopError
from spanloop.kernels import KernelSpec
from spanloop.model import Model
from spanloop.view.plots.canvas import GREY, PALETTE, as_label, axes_for, legend, line_styles, style_axes

OPERATIONS = ("multiplications", "additions", "divisions", "negations", "sincos", "square_roots")


def counts(
    model: Model, function: str = "forward_dynamics", methods: Sequence[str] | None = None, *, ax: Any = None
) -> Any:
    """Plot the operations of a function by method, as bars. methods: default all that support the model.

    They are counted before multiplications and additions are fused. Nothing is compiled.
    """
    found = operation_counts(model, function, methods)
    (ax,) = axes_for(ax, size=(8.0, 1.4 + 0.45 * len(found)))
    left = np.zeros(len(found))
    for kind, color in zip(OPERATIONS, PALETTE, strict=False):
        values = np.array([getattr(operations, kind) for operations in found.values()])
        if values.any():
            ax.barh(list(found), values, left=left, color=color, label=kind.replace("_", " "), height=0.62)
        left += values
    for k, total in enumerate(left):
        ax.text(total, k, f" {total:,.0f}".replace(",", " "), va="center", fontsize=9, color=GREY)
    style_axes(ax, "operations", "method")
    ax.invert_yaxis()
    ax.margins(x=0.12)
    ax.grid(False, axis="y")
    ax.set_title(f"{function.replace('_', ' ')} of {as_label(model.name)}", fontsize=10, loc="left")
    legend(ax)
    return ax


def scaling(
    family: Callable[[int], Model],
    sizes: Sequence[int] = (2, 4, 8, 16, 32),
    function: str = "forward_dynamics",
    methods: Sequence[str] | None = None,
    *,
    ax: Any = None,
) -> Any:
    """Plot operations over the size of a family of models, for example sl.zoo.chain; one line a method.

    Both axes are logarithmic; a dotted line is proportional to the size. Nothing is compiled.
    """
    sizes = sorted(int(n) for n in sizes)
    found: dict[str, list[int]] = {}
    for n in sizes:
        for method, operations in operation_counts(family(n), function, methods).items():
            found.setdefault(method, []).append(total(operations))
    (ax,) = axes_for(ax, size=(7.0, 4.5))
    for (method, values), style in zip(found.items(), line_styles(len(found)), strict=True):
        ax.plot(sizes, values, marker="o", markersize=4, label=method, **style)
    start = min(values[0] for values in found.values())
    ax.plot(sizes, [start * n / sizes[0] for n in sizes], ":", color=GREY, label="proportional to n")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(sizes, [str(n) for n in sizes])
    ax.minorticks_off()
    style_axes(ax, f"n of {family.__name__}(n)", "operations")
    ax.set_title(function.replace("_", " "), fontsize=10, loc="left")
    legend(ax)
    return ax


def operation_counts(model: Model, function: str, methods: Sequence[str] | None = None) -> Mapping[str, Any]:
    """Operations by method. methods: default all that support the model."""
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
        raise InputError(f"plot: no method of {function} supports model {model.name!r}")
    return found


def total(operations: Any) -> int:
    """The sum of all operations; selections between two values are not counted."""
    return sum(getattr(operations, kind) for kind in OPERATIONS)
