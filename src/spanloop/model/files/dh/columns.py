"""The columns of a Denavit-Hartenberg table in a CSV file: their names, what they measure, their units."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from spanloop.errors import FileError, nearest

# unit -> what it measures, and how many of it make the SI unit
UNITS = {
    "m": ("length", 1.0), "cm": ("length", 1e2), "mm": ("length", 1e3),
    "rad": ("angle", 1.0), "deg": ("angle", math.degrees(1.0)),
    "m/s": ("velocity", 1.0), "mm/s": ("velocity", 1e3),
    "rad/s": ("rate", 1.0), "deg/s": ("rate", math.degrees(1.0)),
    "kg": ("mass", 1.0), "g": ("mass", 1e3),
    "kg m2": ("inertia", 1.0), "kg cm2": ("inertia", 1e4), "kg mm2": ("inertia", 1e6),
    "g cm2": ("inertia", 1e7), "g mm2": ("inertia", 1e9),
}  # fmt: skip
# column -> what it measures for a revolute and for a prismatic joint; "": SI units only
NUMBERS = {
    "a": ("length",) * 2, "b": ("length",) * 2, "alpha": ("angle",) * 2, "theta": ("angle",) * 2, "mass": ("mass",) * 2,
    **{f"{v}{k}": ("length",) * 2 for v in "rc" for k in "xyz"},
    **{f"i{k}": ("inertia",) * 2 for k in ("xx", "xy", "xz", "yy", "yz", "zz")},
    "lower": ("angle", "length"), "upper": ("angle", "length"), "rest": ("angle", "length"),
    "speed": ("rate", "velocity"), "effort": ("", ""), "damping": ("", ""), "friction": ("", ""),
    "stiffness": ("", ""), "armature": ("", ""),
}  # fmt: skip
OPTIONS = ("lower", "upper", "speed", "effort", "damping", "friction", "armature", "stiffness", "rest")
FLAGS = ("driven", "actuated")
WORDS = ("joint", "name", "body", *FLAGS)
ALIASES = {"d": "b", "type": "joint"}


@dataclass(frozen=True)
class Column:
    """A column of the header: its name, as written and as understood, and its units by what they measure."""

    text: str
    name: str
    units: dict[str, float]


def read_column(text: str, where: str) -> Column:
    name, bracket, rest = text.partition("[")
    name = name.strip().lower()
    name = ALIASES.get(name, name)
    if name not in NUMBERS and name not in WORDS:
        raise FileError(f"{where}: there is no column {text!r}; {nearest(name, [*WORDS, *NUMBERS])}")
    units = dict(_units(text, name, rest, where)) if bracket else {}
    return Column(text, name, units)


def _units(text: str, name: str, rest: str, where: str) -> Iterator[tuple[str, float]]:
    """What a column's units measure, and how many of them make the SI unit: `lower [deg or mm]` has two."""
    allowed = NUMBERS.get(name, ())
    for unit in rest.rstrip("] ").split(" or "):
        plain = " ".join(unit.replace("²", "2").replace("^", "").replace("*", " ").split())
        measures, factor = UNITS.get(plain, (None, 1.0))
        if measures not in allowed:
            known = [u for u, (measured, _) in UNITS.items() if measured in allowed]
            raise FileError(f"{where}: the unit of {text!r} is not known; " + (_either(known) or "expected none (SI)"))
        yield measures, factor  # type: ignore[misc]


def _either(units: list[str]) -> str:
    return f"expected {', '.join(units)}" if units else ""


def unique(columns: list[Column], where: str) -> None:
    names = [c.name for c in columns]
    for c in columns:
        if names.count(c.name) > 1:
            raise FileError(f"{where}: two columns say {c.name!r} ({c.text!r} is one); expected one")


def read_number(text: str, column: Column, slides: bool, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        hint = "; write a point, not a comma" if "," in text else ""
        raise FileError(f"{where}: {column.text} is {text!r}; expected a number{hint}") from None
    if math.isnan(value) or (math.isinf(value) and column.name not in ("lower", "upper", "speed", "effort")):
        raise FileError(f"{where}: {column.text} is {text!r}; expected a finite number")
    measures = NUMBERS[column.name][slides]
    if column.units and measures not in column.units:
        kind = "prismatic" if slides else "revolute"
        raise FileError(
            f"{where}: {column.text!r} has no unit for the {kind} joint; name both, as in {column.name} [deg or mm]"
        )
    factor = column.units.get(measures, 1.0)
    return math.radians(value) if factor == math.degrees(1.0) else value / factor
