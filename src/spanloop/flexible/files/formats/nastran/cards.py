"""Cards of Nastran's bulk data: fields of 8 or 16 characters, or between commas; continued lines joined."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from spanloop.flexible.files.file_bytes import FileBytes

_BEGIN = re.compile(r"\s*BEGIN\s+(BULK|SUPER)", re.IGNORECASE)


@dataclass(frozen=True)
class Card:
    """A card: the number of its first line, its name in capitals, its fields after the name, which may be blank.

    lines: numbers of all of its lines; per_line: how many fields a line has
    """

    line: int
    name: str
    fields: list[str]
    lines: list[int]
    per_line: int

    def field(self, k: int) -> str:
        """A field, from one as manuals count those after the name; blank beyond the last."""
        return self.fields[k - 1].strip() if k <= len(self.fields) else ""

    def line_of(self, k: int) -> int:
        """The number of the line with a field."""
        return self.lines[min((k - 1) // self.per_line, len(self.lines) - 1)]


def cards(file: FileBytes, names: Collection[str]) -> Iterator[Card]:
    """The cards of the given names, in order; others are passed over; an INCLUDE and repeated cards (=) are refused."""
    lines = file.lines()
    begin = next((k + 1 for k, line in enumerate(lines) if _BEGIN.match(line)), 0)
    card: Card | None = None
    for number, raw in enumerate(lines[begin:], start=begin + 1):
        line = raw.partition("$")[0].rstrip()
        if not line.strip():
            continue
        name, fields, per_line = _split(line)
        if name == "":
            if card is not None:
                _continue(file, card, fields, number, per_line)
            continue
        if name.startswith("=") and card is not None:
            file.fail(number, f"= repeats {card.name} of line {card.line}, which is not supported; write its cards out")
        if card is not None:
            yield card
        card = Card(number, name, fields, [number], per_line) if name in names else None
        if name == "ENDDATA":
            return
        if name.startswith("INCLUDE"):
            file.fail(number, "INCLUDE is not followed; put the cards of that file into this one")
    if card is not None:
        yield card


def _continue(file: FileBytes, card: Card, fields: list[str], number: int, per_line: int) -> None:
    """Append the fields of a line that continues a card."""
    if per_line != card.per_line:
        file.fail(number, f"a line with {per_line} fields continues one with {card.per_line}; expected the same width")
    missing = card.per_line * len(card.lines) - len(card.fields)
    card.fields.extend([""] * missing + fields)
    card.lines.append(number)


def _split(line: str) -> tuple[str, list[str], int]:
    """The name of a line's card (empty: the line continues one), its fields, and how many it can have."""
    if "," in line:
        first, *rest = line.split(",")
        is_large = first.strip().endswith("*") or first.strip().startswith("*")
        per_line = 4 if is_large else 8
        fields = rest[:per_line]
    else:
        line = line.expandtabs(8)
        first = line[:8]
        is_large = first.rstrip().endswith("*") or first.startswith("*")
        width, per_line = (16, 4) if is_large else (8, 8)
        body = line[8:72]
        fields = [body[k : k + width] for k in range(0, len(body), width)]
    name = first.strip().rstrip("*").upper()
    return ("" if first[:1] in "+* " and not _is_name(first) else name), fields, per_line


def _is_name(first: str) -> bool:
    """Whether a first field that begins with a blank is a name all the same."""
    return first[:1] == " " and first.strip().rstrip("*").isalnum() and first.strip()[:1].isalpha()
