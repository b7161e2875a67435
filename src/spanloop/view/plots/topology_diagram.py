"""Diagram of a model's topology: the spanning tree, one row a body, with loops as arcs beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spanloop.model import WORLD, Model
from spanloop.model.parts import Joint
from spanloop.view.plots.canvas import GREY, INK, as_label, axes_for, line_styles

_INDENT, _ROW = 0.26, 0.25  # inch for each step away from the world, and for each body
_LETTER, _SMALL = 0.072, 0.062  # inch, about: the width of a letter of a body's name, and of a joint's
_LANE = 0.22  # inch between arcs that pass each other
_APART = 0.5  # of a row, over which arcs that end there are spread


@dataclass(frozen=True)
class Arc:
    """A closure between two rows; arcs that would overlap have different lanes."""

    name: str
    kind: str
    top: int
    bottom: int
    lane: int


def topology(model: Model, *, ax: Any = None) -> Any:
    """Draw bodies in rows below their parents, each with its joint, and loops as arcs.

    A dashed arc is a coupling. A dot is white for an unactuated joint, orange for a driven one.
    """
    names = [WORLD, *(j.child for j in model.joints)]
    depth = _depths(model)
    arcs = arcs_of(model)
    ends = [_INDENT * depth[k] + _width(model, k) + 0.35 for k in range(len(names))]
    first = max((max(ends[a.top], ends[a.bottom]) for a in arcs), default=0.0)
    last = first + _LANE * (1 + max((a.lane for a in arcs), default=0))
    room = max((_SMALL * len(f"{a.name} ({a.kind})") for a in arcs), default=0.0)
    width = max(max(ends), last + room) + 0.2
    (ax,) = axes_for(ax, size=(max(4.0, width), max(1.2, _ROW * len(names) + 0.3)))
    _draw_tree(ax, model, depth)
    for arc, style in zip(arcs, line_styles(len(arcs)), strict=True):
        rows = [row + _offset(arcs, arc, row) for row in (arc.top, arc.bottom)]
        _draw_arc(
            ax, arc, (ends[arc.top], ends[arc.bottom]), rows, (first + _LANE * (arc.lane + 0.6), last), style["color"]
        )
    ax.set_xlim(-0.15, width)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.axis("off")
    ax.set_title(_title(model), loc="left", fontsize=10, color=INK)
    return ax


def arcs_of(model: Model) -> list[Arc]:
    """Arcs of loops and couplings, each in the nearest lane that is free on its rows."""
    number, child = model.body_number, {j.name: j.child for j in model.joints}
    ends = [(x.name, x.kind.name, number[x.a], number[x.b]) for x in model.loops]
    ends += [(c.name, "coupling", number[child[c.joints[-1]]], number[child[c.joint]]) for c in model.couplings]
    taken: list[list[tuple[int, int]]] = []
    found = {}
    for name, kind, a, b in sorted(ends, key=lambda e: abs(e[2] - e[3])):
        top, bottom = min(a, b), max(a, b)
        lane = next((k for k, spans in enumerate(taken) if _free(spans, top, bottom)), len(taken))
        if lane == len(taken):
            taken.append([])
        taken[lane].append((top, bottom))
        found[name] = Arc(name, kind, top, bottom, lane)
    return [found[name] for name, *_ in ends]


def _free(spans: Sequence[tuple[int, int]], top: int, bottom: int) -> bool:
    return all(bottom < a or top > b for a, b in spans)


def _depths(model: Model) -> list[int]:
    depth = [0]
    for parent in model.parents:
        depth.append(depth[parent] + 1)
    return depth


def _width(model: Model, k: int) -> float:
    """Approximate width [inch] of a row's text."""
    if k == 0:
        return _LETTER * len(WORLD)
    joint = model.joints[k - 1]
    return _LETTER * len(joint.child) + _SMALL * (len(_joint_label(joint)) + 1)


def _joint_label(joint: Joint) -> str:
    return f"{as_label(joint.name)} ({joint.kind.name}{', driven' if joint.driven else ''})"


def _offset(arcs: Sequence[Arc], arc: Arc, row: int) -> float:
    """Offset of an arc's end from the middle of a row, so that arcs do not overlap; longer ones are higher."""
    others = sorted((a for a in arcs if row in (a.top, a.bottom)), key=lambda a: (row != a.bottom, -a.lane))
    return _APART * ((others.index(arc) + 0.5) / len(others) - 0.5)


def _draw_tree(ax: Any, model: Model, depth: Sequence[int]) -> None:
    for k, joint in enumerate((None, *model.joints)):
        x = _INDENT * depth[k]
        if joint is not None:
            parent = model.parents[k - 1]
            corner = _INDENT * depth[parent]
            ax.plot([corner, corner, x], [parent, k, k], color=GREY, linewidth=1.2, zorder=1)
        ax.plot([x], [k], "o" if joint else "s", markersize=7, color=INK, markerfacecolor=_fill(joint))
        name = ax.text(
            x + 0.14, k, WORLD if joint is None else as_label(joint.child), va="center", fontsize=9, color=INK
        )
        if joint is not None:
            ax.annotate(
                _joint_label(joint),
                (1.0, 0.5),
                xycoords=name,
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color=GREY,
            )


def _fill(joint: Joint | None) -> str:
    """Colour of a dot: dark for the world, orange for a driven joint, white for an unactuated one, blue otherwise."""
    if joint is None:
        return INK
    return "#E69F00" if joint.driven else "#56B4E9" if joint.actuated else "white"


def _draw_arc(
    ax: Any, arc: Arc, ends: Sequence[float], rows: Sequence[float], places: tuple[float, float], color: Any
) -> None:
    """Draw an arc. places: x of its vertical part, and x of its label."""
    turn, last = places
    style = {"color": color, "linewidth": 1.6, "linestyle": "--" if arc.kind == "coupling" else "-"}
    ax.plot([ends[0], turn, turn, ends[1]], [rows[0], rows[0], rows[1], rows[1]], zorder=0, **style)
    ax.plot(ends, rows, "o", markersize=3.5, color=color)
    ax.plot([turn, last], [rows[1]] * 2, ":", color=color, linewidth=0.8, zorder=0)
    ax.text(last + 0.05, rows[1], f"{as_label(arc.name)} ({arc.kind})", va="center", fontsize=8, color=color)


def _title(model: Model) -> str:
    loops, couplings = len(model.loops), len(model.couplings)
    parts = [f"{len(model.joints)} joints with {model.nv} DoF", f"{loops} loop{'s' * (loops != 1)}"]
    parts += [f"{couplings} coupling{'s' * (couplings != 1)}"] * bool(couplings)
    return f"{as_label(model.name)}: {', '.join(parts)}"
