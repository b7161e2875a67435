"""The text of a model: what `print(model)`, `spanloop info` and a notebook show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from math import pi

from spanloop.errors import in_one_line
from spanloop.flexible.finite_element_body import LEVELS
from spanloop.model.contacts.contact import Contact
from spanloop.model.flexible_bodies.pieces import FlexibleParts, flexible_bodies
from spanloop.model.model import Model
from spanloop.model.parts import Coupling, Loop

_HEADINGS = ("no", "body", "parent", "joint", "kind", "DoF", "mass [kg]")
_NUMBERS = (0, 5, 6)  # columns set to the right
_MOST = 60  # rows of a table in a notebook


def line(model: Model) -> str:
    """Name and counts in one line."""
    counts = [
        (model.n_bodies, "body", "bodies"),
        (model.nv, "DoF", "DoF"),
        (len(model.loops), "loop", "loops"),
        (len(model.couplings), "coupling", "couplings"),
        (len(model.contacts), "contact", "contacts"),
    ]
    return (
        f"Model({', '.join([repr(model.name), *(f'{n} {one if n == 1 else more}' for n, one, more in counts if n)])})"
    )


def html(model: Model) -> str:
    """The same as `printout` in HTML, with the first rows of long tables."""
    summary = "; ".join(" ".join(row.split()) for row in _summary(model))
    out = heading(f"model {model.name!r}", summary) + table(_HEADINGS, _rows(model), _NUMBERS, _MOST)
    out += items("flexible bodies", _flexible(model), _MOST)
    out += items("frames", [f"{f.name} on {f.body}" for f in model.frames], _MOST)
    out += items("loops", [_loop(x) for x in model.loops], _MOST)
    out += items("couplings", [_coupling(c) for c in model.couplings], _MOST)
    out += items("contacts", [_contact(c) for c in model.contacts], _MOST)
    return out + items("notes", list(model.notes), _MOST)


def printout(model: Model) -> str:
    """Return counts, the tree as a table, frames, loops, couplings, contacts and notes, as plain text."""
    lines = [f"model {model.name!r}", *_summary(model), ""]
    lines += _table([_HEADINGS, *_rows(model)])
    lines += _section("flexible bodies", _flexible(model))
    lines += _section("frames", [in_one_line(f"{f.name} on {f.body}") for f in model.frames])
    lines += _section("loops", [_loop(x) for x in model.loops])
    lines += _section("couplings", [_coupling(c) for c in model.couplings])
    lines += _section("contacts", [_contact(c) for c in model.contacts])
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
    bare = _bare(model)
    for i, (b, j) in enumerate(zip(model.bodies, model.joints, strict=True), 1):
        driven = " (driven)" if j.driven else ""
        dofs = str(j.kind.nv)
        names = map(in_one_line, (b.name, j.parent, j.name))
        mass = "-" if b.name in bare else f"{b.inertia.mass:g}"
        rows.append((str(i), *names, j.kind.name + driven, dofs, mass))
    return rows


def _bare(model: Model) -> set[str]:
    """Roots and nodes of flexible bodies that have no mass of their own."""
    ends = {j.parent for j in model.joints if j.kind.bends} | {j.child for j in model.joints if j.kind.rides}
    return {b.name for b in model.bodies if b.name in ends and not b.inertia.mass}


def _flexible(model: Model) -> list[str]:
    """For each flexible body a line on it, and one for each piece on its modes."""
    found = flexible_bodies(model.bodies, model.joints).values()
    return [row for body in found for row in (_flexible_body(body), *_modes(body))]


def _flexible_body(body: FlexibleParts) -> str:
    beam = body.beam
    elements = body.elements
    what = f"beam of {beam.length:g} m, {body.mass:g} kg" if beam is not None else f"{body.mass:g} kg"
    if elements is not None:
        what += f" of finite elements, level of data {elements.level} ({LEVELS[elements.level]})"
    return in_one_line(f"{body.name}: {what}; nodes {', '.join((body.root, *body.nodes))}")


def _modes(body: FlexibleParts) -> list[str]:
    out = []
    for piece in body.pieces:
        hertz = piece.frequencies / (2.0 * pi)
        named = [f"{name} {f:.4g}" for name, f in zip(piece.modal.mode_names, hertz, strict=True)]
        out.append(in_one_line(f"{piece.joint.name} with the root held [Hz]: {', '.join(named)}"))
    return out


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
    marks = [word for word, holds in (("held", c.source is None), ("switchable", c.switchable)) if holds]
    value = f"{c.offset:g}" if c.source is None else f"{c.ratio:g} {c.source}{offset}"
    return in_one_line(f"{c.name}: {c.joint} = {value}" + (f" ({', '.join(marks)})" if marks else ""))


def _contact(c: Contact) -> str:
    sides = " with ".join(f"{s.geometry.shape} of {s.at}" for s in c.sides)
    values: list[tuple[str, float | None, str]] = [
        ("restitution", c.restitution, ""),
        ("torsion", c.torsion, " m"),
        ("rolling", c.rolling, " m"),
        ("stiffness", c.stiffness, " N/m"),
        ("damping", c.damping, " N s/m"),
    ]
    marks = [f"friction {c.friction:g}", *(f"{name} {x:g}{unit}" for name, x, unit in values if x)]
    if any(c.surface_velocity):
        marks.append(f"surface velocity ({', '.join(f'{x:g}' for x in c.surface_velocity)}) m/s")
    points = f", {c.n_points} points" if c.n_points > 1 else ""
    return in_one_line(f"{c.name}: {sides} ({', '.join(marks)}){points}")


# ---- HTML, with all text escaped


def heading(title: str, below: str = "") -> str:
    """A line in bold, and one below it."""
    parts = [f"<b>{_text(title)}</b>" if title else "", _text(below)]
    return f"<p>{'<br>'.join(filter(None, parts))}</p>"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = (), most: int = 60) -> str:
    """The first rows of a table; right: the numbers of columns set to the right."""
    sides = ["right" if k in right else "left" for k in range(len(headings))]
    lines = [_row("th", headings, sides), *(_row("td", row, sides) for row in rows[:most])]
    return f"<table>{''.join(lines)}</table>{_more(len(rows) - most)}"


def items(title: str, listed: Sequence[str], most: int = 60) -> str:
    """A titled list of its first items; nothing if there are none."""
    if not listed:
        return ""
    points = "".join(f"<li>{_text(x)}</li>" for x in listed[:most])
    return f"<p><b>{_text(title)}</b></p><ul>{points}</ul>{_more(len(listed) - most)}"


def lines(text: str) -> str:
    """A text of several lines: the first in bold, the others as a list."""
    first, *rest = text.splitlines() or [""]
    return heading(first) + (f"<ul>{''.join(f'<li>{_text(x)}</li>' for x in rest if x.strip())}</ul>" if rest else "")


def _row(tag: str, cells: Sequence[str], sides: Sequence[str]) -> str:
    pairs = zip(cells, sides, strict=True)
    return f"<tr>{''.join(f'<{tag} style=text-align:{side}>{_text(cell)}</{tag}>' for cell, side in pairs)}</tr>"


def _more(count: int) -> str:
    return f"<p>and {count} more</p>" if count > 0 else ""


def _text(words: str) -> str:
    return escape(in_one_line(words.strip()))
