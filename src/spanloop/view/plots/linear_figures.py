"""Figures of linear models: gain and phase over frequency, and poles in the complex plane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.errors import InputError
from spanloop.linear.responses import usual_frequencies
from spanloop.view.plots.canvas import FAINT, GREY, PALETTE, as_label, axes_for, legend, line_styles, style_axes

if TYPE_CHECKING:
    from spanloop.linear.linear_model import LinearModel

_MOST = 24  # lines of one figure
_RATIOS = (0.1, 0.3, 0.5, 0.7, 0.9)  # damping ratios that are drawn as rays


def bode(linear: LinearModel, *, frequencies: ArrayLike | None = None, ax: Any = None) -> Any:
    """Plot gain and phase [degrees] of every output to every input over frequency [rad/s], in two panels.

    frequencies (n,) [rad/s]: by default from a tenth of the slowest to ten times the fastest pole. Pairs that have no
    response are left out.
    """
    omega = usual_frequencies(linear) if frequencies is None else _rising(frequencies)
    response = linear.frequency_response(omega)
    pairs = [(p, m) for p in range(len(linear.outputs)) for m in range(len(linear.inputs)) if response[:, p, m].any()]
    if not pairs or len(pairs) > _MOST:
        raise InputError(
            f"bode: {len(pairs)} pairs of inputs and outputs respond; a figure has 1 to {_MOST}. Name fewer: "
            "robot.linearize(q, inputs=[...], outputs=[...])"
        )
    gain_axes, phase_axes = axes_for(ax, 2, (8.0, 6.0))
    for (p, m), style in zip(pairs, line_styles(len(pairs)), strict=True):
        _draw(gain_axes, phase_axes, omega, response[:, p, m], as_label(_pair(linear, p, m)), style)
    style_axes(gain_axes, "", "gain")
    style_axes(phase_axes, "frequency [rad/s]", "phase [°]")
    gain_axes.set_yscale("log")
    for one in (gain_axes, phase_axes):
        one.set_xscale("log")
        one.set_xlim(omega[0], omega[-1])
    _mark_quarter_turns(phase_axes)
    legend(gain_axes, "output / input")
    return gain_axes, phase_axes


def _rising(frequencies: ArrayLike) -> np.ndarray:
    """Given frequencies in rising order; those that a logarithmic axis cannot have are refused."""
    try:
        omega = np.unique(np.asarray(frequencies, dtype=float))
    except (TypeError, ValueError):
        raise InputError(f"bode: frequencies are {frequencies!r}; expected numbers > 0 (n,) [rad/s]") from None
    if not len(omega) or not np.isfinite(omega).all() or omega[0] <= 0.0:
        found = f"from {omega[0]:g} to {omega[-1]:g}" if len(omega) else "none"
        raise InputError(f"bode: frequencies are {found}; expected finite numbers > 0 (n,) [rad/s]")
    return omega


def _draw(gain_axes: Any, phase_axes: Any, omega: np.ndarray, values: np.ndarray, label: str, style: Any) -> None:
    known = np.isfinite(values) & (values != 0.0)
    phase = np.full(len(values), np.nan)
    phase[known] = np.degrees(np.unwrap(np.angle(values[known])))
    if known.any():
        phase -= 360.0 * np.round(phase[known][0] / 360.0 - 1e-9)
    gain_axes.plot(omega, np.where(known, np.abs(values), np.nan), label=label, linewidth=1.5, **style)
    phase_axes.plot(omega, phase, linewidth=1.5, **style)


def _pair(linear: LinearModel, output: int, input: int) -> str:
    above, below = linear.output_units[output] or "1", linear.input_units[input]
    unit = f"{above} / ({below})" if " " in below or "/" in below else f"{above} / {below}" if below else above
    return f"{linear.outputs[output]} / {linear.inputs[input]} [{unit}]"


def _mark_quarter_turns(ax: Any) -> None:
    from matplotlib.ticker import MultipleLocator

    low, high = ax.get_ylim()
    ax.yaxis.set_major_locator(MultipleLocator(45.0 if high - low < 200.0 else 90.0 if high - low < 600.0 else 180.0))


def poles(linear: LinearModel, *, ax: Any = None) -> Any:
    """Plot the poles in the complex plane [1/s]: stable left of the axis, or inside the circle in discrete time.

    Of a batch every operating point has its colour, in the order of a colour map. Rays are of equal damping ratio.
    """
    (ax,) = axes_for(ax, size=(6.5, 5.5))
    values = linear.poles.reshape(-1, len(linear.states))
    colors = [PALETTE[0]] if len(values) == 1 else _shades(len(values))
    for row, color in zip(values, colors, strict=True):
        ax.plot(row.real, row.imag, "x", color=color, markersize=7, markeredgewidth=1.6, linestyle="none", zorder=3)
    style_axes(ax, "real part [1/s]" if linear.step is None else "real part", "imaginary part")
    if linear.step is None:
        ax.set_ylabel("imaginary part [rad/s]")
        _frame(ax, values)
    else:
        turn = np.linspace(0.0, 2.0 * np.pi, 200)
        ax.plot(np.cos(turn), np.sin(turn), color=GREY, linewidth=1.0)
        ax.set_aspect("equal")
    return ax


def _shades(count: int) -> Any:
    from matplotlib import colormaps

    return colormaps["viridis"](np.linspace(0.0, 0.9, count))


def _frame(ax: Any, values: np.ndarray) -> None:
    """The axes of the plane, room around the poles, and rays of equal damping ratio."""
    finite = values[np.isfinite(values)]
    size = np.abs(finite).max(initial=0.0) or 1.0
    left, right = min(finite.real.min(initial=0.0), -0.05 * size), max(finite.real.max(initial=0.0), 0.05 * size)
    high = max(np.abs(finite.imag).max(initial=0.0), 0.3 * size)
    ax.axhline(0.0, color=GREY, linewidth=0.9, zorder=1)
    ax.axvline(0.0, color=GREY, linewidth=0.9, zorder=1)
    room = 0.1 * (right - left)
    ax.set_xlim(left - room, right + room)
    ax.set_ylim(-1.15 * high, 1.15 * high)
    for ratio in _RATIOS if finite.imag.any() else ():
        slope = np.sqrt(1.0 - ratio**2) / ratio
        x = max(left - room, -1.15 * high / slope)
        for sign in (1.0, -1.0):
            ax.plot([0.0, x], [0.0, -sign * slope * x], color=FAINT, linewidth=1.0, linestyle="--", zorder=0)
        ax.annotate(
            f"{ratio:g}", (x, -slope * x), xytext=(2, -9), textcoords="offset points", fontsize=7, color=GREY,
            annotation_clip=True,
        )  # fmt: skip
