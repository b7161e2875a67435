"""Operations over the size of closed chains, on scales of powers."""

from __future__ import annotations

from drawing.style import GREY, PALETTE, dressed, panels
from spanloop.view.plots.canvas import pens

MARKS = "os^vD<>ph"


def growth(x) -> dict:
    return {
        "16_over_arms": _curves(x["over_arms"], "arms m (six joints each)"),
        "16_over_joints": _curves(x["over_joints"], "joints N of each of two arms"),
    }


def _curves(found: dict, size: str):
    figure, axes = panels(1, 1, 4.6, 9.0)
    ax = axes[0, 0]
    colors = [PALETTE[k] for k in (1, 0, 5, 2, 3, 4, 6)]
    colors += [pen["color"] for pen in pens(9)]
    for k, (method, row) in enumerate(found.items()):
        ax.plot(list(row), list(row.values()), marker=MARKS[k], markersize=5, color=colors[k], label=method)
    sizes = sorted({n for row in found.values() for n in row})
    first = min(row[sizes[0]] for row in found.values())
    ax.plot(sizes, [0.8 * first * n / sizes[0] for n in sizes], ":", color=GREY, label="in proportion")
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(sizes, [str(n) for n in sizes])
    ax.minorticks_off()
    dressed(ax, size, "operations of one call")
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, frameon=False)
    return figure
