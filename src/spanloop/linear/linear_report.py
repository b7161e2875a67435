"""A linear model as text: names, operating point, poles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spanloop.errors import listed
from spanloop.linear.responses import margin

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
    values = model.poles
    if not len(values):
        return []
    rows = ["  pole [1/s]              frequency [Hz]   damping ratio" if model.step is None else "  pole (z)"]
    for x in [v for v in values if v.imag >= 0.0][:_MOST]:
        pole = f"{x.real:.5g}" if x.imag == 0.0 else f"{x.real:.5g} ± {x.imag:.5g}j"
        rows.append(
            f"  {pole:22}" + (f"  {abs(x) / (2 * np.pi):14.5g}   {_damping(x):13.4g}" if model.step is None else "")
        )
    unstable = int((margin(model, values) > 0.0).sum())
    stable = model.is_stable
    verdict = (
        "stable"
        if stable
        else f"unstable: {unstable} poles grow"
        if unstable and not _marginal(model)
        else "not asymptotically stable"
    )
    return [*rows, f"  {verdict}"]


def _marginal(model: LinearModel) -> bool:
    """Whether no pole grows by more than rounding."""
    from spanloop.linear.responses import edge

    return bool((margin(model, model.poles) <= edge(model)).all())


def _damping(pole: complex) -> float:
    return -pole.real / abs(pole) if abs(pole) else 0.0
