"""The text of a model: what `print(model)` and `spanloop info` show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from spanloop.errors import in_one_line
from spanloop.model.model import Model
from spanloop.model.parts import Coupling, Loop

_HEADINGS = ("no", "body", "parent", "joint", "kind", "DoF", "mass [kg]")
_NUMBERS = (0, 5, 6)  # columns set to the right


def printout(model: Model) -> str:
    """Return counts, the tree as a table, frames, loops, couplings and notes, as plain text."""
    lines = [f"model {model.name!r}", *_summary(model), ""]
    lines += _table([_HEADINGS, *_rows(model)])
    lines += _section("frames", [in_one_line(f"{f.name} on {f.body}") for f in model.frames])
    lines += _section("loops", [_loop(x) for x in model.loops])
    lines += _section("couplings (mimic)", [_coupling(c) for c in model.couplings])
    lines += _section("notes", [in_one_line(note) for note in model.notes])
    return "\n".join(lines)


def _summary(model: Model) -> list[str]:
    kinds = Counter(j.kind.name for j in model.joints)
    joints = ", ".join(f"{n} {kind}" for kind, n in kinds.most_common()) or "none"
    gravity = ", ".join(f"{x:g}" for x in model.gravity)
    return [
        f"  bodies    {model.n_bodies}",
        f"  joints    {joints}",
        f"  nq, nv    {model.nq}, {model.nv}",
        f"  mass      {model.mass:g} kg",
        f"  gravity   ({gravity}) m/s²",
    ]


def _rows(model: Model) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for i, (b, j) in enumerate(zip(model.bodies, model.joints, strict=True), 1):
        driven = " (driven)" if j.driven else ""
        dofs = str(j.kind.nv)
        names = map(in_one_line, (b.name, j.parent, j.name))
        rows.append((str(i), *names, j.kind.name + driven, dofs, f"{b.inertia.mass:g}"))
    return rows


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if k in _NUMBERS else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    return lines


def _section(title: str, items: list[str]) -> list[str]:
    return ["", title, *(f"  {item}" for item in items)] if items else []


def _loop(x: Loop) -> str:
    marks = [word for word, holds in (("driven", x.driven), ("switchable", x.switchable)) if holds]
    words = f"{x.name}: {x.kind.name} between {x.a} and {x.b}" + (f" ({', '.join(marks)})" if marks else "")
    return in_one_line(words)


def _coupling(c: Coupling) -> str:
    offset = f" {'+' if c.offset > 0 else '-'} {abs(c.offset):g}" if c.offset else ""
    return in_one_line(f"{c.name}: {c.joint} = {c.ratio:g} {c.source}{offset}")
