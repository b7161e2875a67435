"""Nastran DMIG: matrices in bulk data, as EXTSEOUT(DMIGPCH) and other requests punch them.

| card | fields |
|---|---|
| header | name, 0, form (1 square, 2 and 9 rectangular, 6 one triangle), type (1, 2 real; 3, 4 complex) |
| column | name, node, component, blank; then in groups of four: node, component, value, imaginary part |

Components are 1 ... 6; 0 is a scalar point, such as a modal coordinate, which has no position.
[MSC Nastran, Quick Reference Guide, DMIG]
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from spanloop.flexible.files.file_bytes import FileBytes
from spanloop.flexible.files.file_matrix import FileMatrix, of_labelled, unusable
from spanloop.flexible.files.formats.nastran.cards import Card, cards
from spanloop.flexible.files.number_table import real, whole


@dataclass(eq=False)
class _Columns:
    """What a matrix has so far: its form, its type, and its entries with their lines."""

    form: int
    kind: int
    entries: list[tuple[int, int, int, int]] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)


def read(file: FileBytes) -> list[FileMatrix]:
    """All matrices of the DMIG cards of a file."""
    found: dict[str, _Columns] = {}
    for card in cards(file, ("DMIG",)):
        name = card.field(1).upper()
        if not name:
            file.fail(card.line, "a DMIG card has no name; expected one in its first field")
        if card.field(2) == "0":
            if name in found:
                file.fail(card.line, f"matrix {name} begins twice; expected one header for each matrix")
            form = whole(file, card.line, card.field(3), f"form of {name}", most=9)
            found[name] = _Columns(form, whole(file, card.line, card.field(4), f"type of {name}", most=4))
        elif name not in found:
            file.fail(card.line, f"a column of {name} before its header; expected a card DMIG, {name}, 0, form, type")
        else:
            _column(file, card, name, found[name])
    return [_matrix(file, name, columns) for name, columns in found.items()]


def _column(file: FileBytes, card: Card, name: str, columns: _Columns) -> None:
    """Add the entries of a card."""
    column = _place(file, card, 2, name)
    for k in range(5, len(card.fields) + 1, 4):
        if not any(card.field(k + i) for i in range(4)):
            continue
        row = _place(file, card, k, name)
        columns.entries.append((*row, *column))
        columns.values.append(real(file, card.line_of(k), card.field(k + 2), f"an entry of {name}"))
        columns.lines.append(card.line_of(k))


def _place(file: FileBytes, card: Card, k: int, name: str) -> tuple[int, int]:
    """Node and component from two fields."""
    line = card.line_of(k)
    node = whole(file, line, card.field(k), f"a node of {name}")
    return node, whole(file, line, card.field(k + 1) or "0", f"component of node {node} of {name}", least=0, most=6)


def _matrix(file: FileBytes, name: str, columns: _Columns) -> FileMatrix:
    if columns.kind > 2:
        return unusable(name, "it is complex")
    if columns.form not in (1, 6):
        return unusable(name, f"it has form {columns.form}; expected 1 (square) or 6 (symmetric)")
    if not columns.entries:
        return unusable(name, "it has no entries")
    entries = np.array(columns.entries, dtype=np.int64)
    values, lines = np.array(columns.values), np.array(columns.lines)
    return of_labelled(file, name, tuple(entries.T), values, lines, of_halves=columns.form == 6)
