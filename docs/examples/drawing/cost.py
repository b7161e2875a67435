"""Operations over the size of closed chains: in all, on scales of powers, and for each arm or joint."""

from __future__ import annotations

from drawing.style import GREY, PALETTE, legend_above, panels, style_axes

BLUE, ORANGE, GREEN, PINK, AMBER, SKY, BLACK = PALETTE
PENS = {  # colour, line, mark, width; RCCFD 1 and 2 nearly coincide: one is a broad band, the other dots on it
    "elimination": (ORANGE, "-", "o", 1.8),
    "simple_closed_chain": (BLUE, "-", "s", 1.8),
    "closed_topology": (SKY, "-", "^", 1.8),
    "arms_on_object_1": (GREEN, "-", "", 5.0),
    "arms_on_object_2": (BLACK, ":", "", 1.8),
    "arms_on_object_3": (AMBER, "-", "v", 1.8),
    "arms_on_object": (BLACK, "-", "D", 1.8),
    "dense": (GREY, "--", "x", 1.8),
    "parallel_legs": (PINK, "-.", "p", 1.8),
}


def growth(x) -> dict:
    return {
        "16_over_arms": _curves(x["over_arms"], "arms m, six joints each", "operations for each arm", 1),
        "16_over_joints": _curves(x["over_joints"], "joints N of each of three arms", "operations for each joint", 3),
    }


def _curves(found: dict, size: str, each: str, arms: int):
    """found {method: {size: operations}}; arms: how many times the size there is of what `each` names."""
    figure, axes = panels(1, 2, 4.8, 9.5)
    both, share = axes[0]
    for method, row in found.items():
        color, line, mark, width = PENS[method]
        style = {"color": color, "linestyle": line, "marker": mark, "markersize": 5, "linewidth": width}
        both.plot(list(row), list(row.values()), label=method, **style)
        share.plot(list(row), [n / (arms * k) for k, n in row.items()], **style)
    sizes = sorted({n for row in found.values() for n in row})
    first = min(row[sizes[0]] for row in found.values())
    both.plot(sizes, [0.8 * first * n / sizes[0] for n in sizes], ":", color=ORANGE, label="in proportion")
    both.set_yscale("log")
    for ax, word in ((both, "operations of one call"), (share, each)):
        ax.set_xscale("log", base=2)
        ax.set_xticks(sizes, [str(n) for n in sizes])
        ax.minorticks_off()
        style_axes(ax, size, word)
    tops = sorted(max(n / (arms * k) for k, n in row.items()) for row in found.values())
    share.set_ylim(0.0, min(1.1 * tops[-1], 2.5 * tops[len(tops) // 2]))
    legend_above(figure, both, 3)
    return figure
