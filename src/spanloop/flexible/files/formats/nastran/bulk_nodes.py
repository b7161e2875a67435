"""Nodes of Nastran's bulk data: GRID cards with rectangular coordinate systems (CORD2R)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spanloop.flexible.files.file_bytes import FileBytes
from spanloop.flexible.files.file_nodes import FileNodes, nodes
from spanloop.flexible.files.formats.nastran.cards import Card, cards
from spanloop.flexible.files.number_table import real, whole

_OTHER_SYSTEMS = ("CORD1R", "CORD1C", "CORD1S", "CORD2C", "CORD2S", "CORD3G")


@dataclass(frozen=True, eq=False)
class _System:
    """A coordinate system in basic axes: origin (3,), axes as columns (3, 3)."""

    origin: np.ndarray
    axes: np.ndarray


def read(file: FileBytes) -> FileNodes:
    """The nodes of GRID cards, in basic coordinates, with the axes of their degrees of freedom."""
    grids, defaults, systems = [], {}, {}
    for card in cards(file, ("GRID", "GRDSET", "CORD2R", *_OTHER_SYSTEMS)):
        if card.name == "GRID":
            grids.append(card)
        elif card.name == "GRDSET":
            defaults = {2: card.field(2), 6: card.field(6)}
        else:
            systems[whole(file, card.line, card.field(1), f"number of a {card.name}")] = card
    if not grids:
        file.fail(None, "there is no GRID card; expected the nodes of the body")
    frames = _Frames(file, systems)
    labels, positions, axes = [], [], {}
    for card in grids:
        label = whole(file, card.line, card.field(1), "number of a GRID")
        if card.per_line == 4 and len(card.lines) < 2:
            file.fail(card.line, f"GRID* {label} has no second line; expected one with its third coordinate")
        at, own = (_system_of(file, card, k, defaults) for k in (2, 6))
        point = np.array(
            [real(file, card.line_of(k), card.field(k) or "0.", f"a coordinate of GRID {label}") for k in (3, 4, 5)]
        )
        system = frames.found(at, card.line)
        labels.append(label)
        positions.append(point if system is None else system.origin + system.axes @ point)
        turned = frames.found(own, card.line)
        if turned is not None:
            axes[label] = turned.axes
    lines = np.array([card.line for card in grids])
    return nodes(file, np.array(labels, dtype=np.int64), np.array(positions), lines, axes)


def _system_of(file: FileBytes, card: Card, k: int, defaults: dict[int, str]) -> int:
    """The number of the coordinate system in a field of a GRID card."""
    text = card.field(k) or defaults.get(k) or "0"
    if text == "-1":
        file.fail(card.line_of(k), f"GRID {card.field(1)} belongs to a fluid; expected nodes of a structure")
    return whole(file, card.line_of(k), text, f"coordinate system of GRID {card.field(1)}", least=0)


class _Frames:
    """Coordinate systems by number, made when they are asked for."""

    def __init__(self, file: FileBytes, systems: dict[int, Card]):
        self.file, self.cards, self.made = file, systems, dict[int, _System]()

    def found(self, number: int, line: int, within: tuple[int, ...] = ()) -> _System | None:
        """The system, None for basic axes. within: systems that are defined in this one."""
        if number == 0:
            return None
        if number not in self.made:
            if number not in self.cards:
                self.file.fail(line, f"coordinate system {number} is not in the file; expected its CORD2R card")
            card = self.cards[number]
            if card.name != "CORD2R":
                self.file.fail(
                    card.line,
                    f"{card.name} {number} is not supported, and line {line} uses it; expected CORD2R or basic axes",
                )
            if number in within or len(within) > 100:
                self.file.fail(card.line, f"CORD2R {number} is defined in itself")
            self.made[number] = self._system(card, number, within)
        return self.made[number]

    def _system(self, card: Card, number: int, within: tuple[int, ...]) -> _System:
        """Axes by three points: the origin, one on z, one in the half-plane of x and z."""
        text = card.field(2) or "0"
        base = whole(self.file, card.line, text, f"reference of CORD2R {number}", least=0)
        numbers = [
            real(self.file, card.line_of(k), card.field(k) or "0.", f"a coordinate of CORD2R {number}")
            for k in range(3, 12)
        ]
        origin, on_z, in_xz = np.array(numbers).reshape(3, 3)
        z = on_z - origin
        y = np.cross(z, in_xz - origin)
        size = np.linalg.norm(z) * np.linalg.norm(in_xz - origin)
        if not np.linalg.norm(y) > 1e-9 * size or not np.isfinite(size):
            self.file.fail(card.line, f"the three points of CORD2R {number} are on one line")
        y, z = y / np.linalg.norm(y), z / np.linalg.norm(z)
        own = _System(origin, np.stack([np.cross(y, z), y, z], axis=1))
        outer = self.found(base, card.line, (*within, number))
        return own if outer is None else _System(outer.origin + outer.axes @ origin, outer.axes @ own.axes)
