"""Figures of a study: histogram, fan chart over time, tornado of sensitivities, map over two variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.view.plots.canvas import FAINT, GREY, PALETTE, as_label, axes_for, style_axes

if TYPE_CHECKING:
    import xarray

    from spanloop.studies.study import Study

FIGURES = ("histogram", "fan", "tornado", "map")
_FAN = ((0.05, 0.95, 0.18), (0.25, 0.75, 0.32))  # quantiles, and how dark they are
_POINTS = 20_000  # of a map, at most
_GOOD = ("finished",)


def plot(study: Study, what: str, *names: str, ax: Any = None) -> Any:
    """One of FIGURES of the study's results; returns its axes."""
    if what not in FIGURES:
        raise InputError(f"study.plot: there is no figure {what!r}; {nearest(str(what), FIGURES)}")
    data = study.results()
    if not data.sizes["run"]:
        raise InputError("study.plot: no run is finished; call study.run() first")
    if what == "tornado":
        return tornado(study, *_counted(what, names, 1), ax=ax)
    if what == "map":
        return success_map(study, *_counted(what, names, 2, 3), ax=ax)
    return (histogram if what == "histogram" else fan)(data, *_counted(what, names, 1), ax=ax)


def _counted(what: str, names: tuple[str, ...], low: int, high: int | None = None) -> tuple[str, ...]:
    if not low <= len(names) <= (high or low):
        needed = f"{low} or {high} names" if high else f"{low} name" + "s" * (low > 1)
        raise InputError(f"study.plot({what!r}) has {len(names)} names; expected {needed} of variables of the results")
    return names


def labelled(data: xarray.Dataset, name: str) -> str:
    """A name with its unit."""
    unit = data[name].attrs.get("units", "")
    return as_label(f"{name} [{unit}]" if unit and unit != "1" else name)


def _column(data: xarray.Dataset, name: str, dims: int) -> np.ndarray:
    known = [str(n) for n, x in data.data_vars.items() if x.ndim == dims and x.dtype.kind == "f"]
    if name not in known:
        kind = "number" if dims == 1 else "quantity over time"
        raise InputError(f"study.plot: there is no {kind} {name!r} in the results; {nearest(name, known)}")
    return np.asarray(data[name].values, float)


def _axes(ax: Any, size: tuple[float, float] = (7.0, 4.2)) -> Any:
    (found,) = axes_for(ax, size=size)
    return found


def histogram(data: xarray.Dataset, name: str, *, ax: Any = None) -> Any:
    """How often a number has which values, with its median and the 5 % and 95 % quantiles."""
    x = _column(data, name, 1)
    x = x[np.isfinite(x)]
    ax = _axes(ax)
    if not len(x):
        raise InputError(f"study.plot: {name!r} is a number in none of the runs")
    ax.hist(x, bins=int(np.clip(np.sqrt(len(x)), 10, 100)), color=PALETTE[0], alpha=0.8)
    for value, style in zip(np.quantile(x, (0.05, 0.5, 0.95)), (":", "-", ":"), strict=True):
        ax.axvline(value, color=PALETTE[1], linestyle=style, linewidth=1.4)
    style_axes(ax, labelled(data, name), f"runs of {len(x)}")
    return ax


def fan(data: xarray.Dataset, name: str, *, ax: Any = None) -> Any:
    """A quantity over time: the median, and bands that hold half and nine tenths of the runs that go on."""
    rows = _column(data, name, 2)
    (time,) = (d for d in data[name].dims if d != "run")
    ax = _axes(ax)
    t = data[time].values
    going = np.isfinite(rows).any(axis=0)
    if not going.any():
        raise InputError(f"study.plot: no run has a finite {name!r}; study.failures() has the reasons")
    t, rows = t[going], rows[:, going]
    for low, high, shade in _FAN:
        a, b = np.nanquantile(rows, (low, high), axis=0)
        ax.fill_between(
            t, a, b, color=PALETTE[0], alpha=shade, linewidth=0, label=f"{100 * (high - low):.0f} % of runs"
        )
    ax.plot(t, np.nanmedian(rows, axis=0), color=PALETTE[0], linewidth=1.8, label="median")
    style_axes(ax, "t [s]", labelled(data, name))
    ax.legend(frameon=False, fontsize=8)
    return ax


def tornado(study: Study, name: str, *, ax: Any = None) -> Any:
    """Rank correlations of a number with each variable, the strongest on top; Sobol' indices beside them if known."""
    found = study.sensitivity(name)
    order = sorted(found.ranks, key=lambda n: abs(np.nan_to_num(found.ranks[n])))
    ax = _axes(ax, (7.0, 1.6 + 0.45 * len(order)))
    y = np.arange(len(order))
    height = 0.26 if found.total else 0.6
    ax.barh(
        y + (height if found.total else 0.0),
        [found.ranks[n] for n in order],
        height,
        color=PALETTE[0],
        label="rank correlation",
    )
    if found.first and found.total:
        ax.barh(y, [found.first[n] for n in order], height, color=PALETTE[1], label="Sobol' index, alone")
        ax.barh(y - height, [found.total[n] for n in order], height, color=PALETTE[4], label="Sobol' index, total")
    ax.set_yticks(y, [as_label(n) for n in order])
    ax.axvline(0.0, color=GREY, linewidth=0.8)
    style_axes(ax, as_label(f"what acts on {name}"), "")
    ax.legend(frameon=False, fontsize=8)
    return ax


def success_map(study: Study, x: str, y: str, color: str | None = None, *, ax: Any = None) -> Any:
    """Runs over two variables: which finished and how the others ended, or coloured by a number that is kept."""
    data = study.results()
    a, b = (_column(data, name, 1) for name in (x, y))
    outcome = data["outcome"].values
    ax = _axes(ax, (6.4, 5.4))
    some = np.arange(len(a)) if len(a) <= _POINTS else np.linspace(0, len(a) - 1, _POINTS).astype(int)
    dots: dict[str, Any] = {"s": float(np.clip(3e4 / len(some), 3.0, 60.0)), "linewidths": 0.0}
    if color is not None:
        z = _column(data, color, 1)
        well = some[np.isfinite(z[some])]
        ax.scatter(a[some], b[some], color=FAINT, **dots)
        drawn = ax.scatter(a[well], b[well], c=z[well], cmap="viridis", **dots)
        ax.figure.colorbar(drawn, ax=ax, label=labelled(data, color))
    else:
        kinds = sorted(set(outcome), key=lambda k: (k not in _GOOD, k))
        shades = {k: PALETTE[2] if k in _GOOD else PALETTE[(1, 3, 4, 5, 0, 6)[i % 6]] for i, k in enumerate(kinds)}
        for kind in kinds:
            mine = some[outcome[some] == kind]
            share = 100.0 * (outcome == kind).mean()
            ax.scatter(a[mine], b[mine], color=shades[kind], label=as_label(f"{kind} {share:.3g} %"), **dots)
        ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    style_axes(ax, labelled(data, x), labelled(data, y))
    return ax
