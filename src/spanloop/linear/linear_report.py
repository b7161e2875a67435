"""A linear model as text: names, operating point, poles."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from spanloop.errors import listed
from spanloop.linear.responses import grows, rounded

if TYPE_CHECKING:
    from spanloop.linear.linear_model import LinearModel

_MOST = 12  # poles that are printed


def text(model: LinearModel) -> str:
    """Sizes, names with units, what the operating point is, and the poles."""
    kind = "ẋ = A x + B u" if model.step is None else f"x⁺ = A x + B u, steps of {model.step:g} s"
    rows = [f"{model.name}: {kind}, y = C x + D u" + (f", {_points(model)}" if model.batch else "")]
    for what, names, units in (
        ("states", model.states, model.state_units),
        ("inputs", model.inputs, model.input_units),
        ("outputs", model.outputs, model.output_units),
    ):
        shown = [f"{name} [{unit}]" if unit else name for name, unit in zip(names, units, strict=True)]
        rows.append(f"  {what:8} {len(names):3}: {listed(shown, 8) if shown else 'none'}")
    rows += _operating(model)
    if model.error_bound:
        rows.append(f"  reduced: the error of the response is at most {model.error_bound:.3g} at any frequency")
    rows += [f"  note: {x}" for x in model.notes]
    return "\n".join(rows + ([] if model.batch else _poles(model)))


def _points(model: LinearModel) -> str:
    return f"{int(np.prod(model.batch))} operating points {model.batch}"


def _operating(model: LinearModel) -> list[str]:
    """Whether the operating point is an equilibrium, at rest or in motion."""
    point = model.point
    if point is None:
        return []
    if model.batch:
        return [f"  equilibria: {int(point.is_equilibrium.sum())} of {point.is_equilibrium.size} operating points"]
    if bool(point.is_equilibrium):
        return ["  about an equilibrium at rest"]
    about = "motion" if np.any(point.v) else "rest"
    accelerating = np.abs(point.a).max(initial=0.0)
    return [
        f"  about {about}, no equilibrium: accelerations up to {accelerating:.3g} there; x is the deviation from the "
        "motion through this state (linear.drift)"
    ]


def _poles(model: LinearModel) -> list[str]:
    """A row for each pole or pair, with how often it occurs; less than rounding is printed as 0."""
    values = model.poles
    if not len(values):
        return []
    rows = ["  pole [1/s]              frequency [Hz]   damping ratio" if model.step is None else "  pole (z)"]
    shown = Counter(_row(model, x) for x in rounded(model, values) if x.imag >= 0.0)
    for row, count in list(shown.items())[:_MOST]:
        rows.append(row if count == 1 else f"{row}   {count} times")
    if len(shown) > _MOST:
        rows.append(f"  and {len(shown) - _MOST} more")
    growing = int(grows(model, values).sum())
    if growing:
        return [*rows, f"  unstable: {growing} pole{' grows' if growing == 1 else 's grow'}"]
    return [*rows, "  stable" if model.is_stable else "  marginal: no pole grows, some do not decay"]


def _row(model: LinearModel, pole: complex) -> str:
    text = f"{pole.real:.5g}" if pole.imag == 0.0 else f"{pole.real:.5g} ± {pole.imag:.5g}j"
    if model.step is not None:
        return f"  {text}"
    damping = 0.0 - pole.real / abs(pole) if abs(pole) else 0.0
    return f"  {text:22}  {abs(pole) / (2 * np.pi):14.5g}   {damping:13.4g}"
