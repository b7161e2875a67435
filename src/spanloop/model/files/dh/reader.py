"""Reader of Denavit-Hartenberg tables in CSV files: a row for each joint, names and units of columns in the header.

# convention: standard            (or modified)
# about: center                   (or origin: what inertias are about)
joint, a [mm], b [mm], alpha [deg], theta [deg], mass [kg], rx [mm], ry [mm], rz [mm], ixx, iyy, izz
r,     0,      0,      -90,         0,           10.521,    0,       0,       54,      1.612, 1.612, 0.5091

docs/dh.md lists the columns. Lines that begin with # are comments; those that begin with a known key are settings.
"""

from __future__ import annotations

import csv
import difflib
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spanloop.errors import FileError, nearest
from spanloop.model.exact_rotations import rotation_of_angles, snap_rotation
from spanloop.model.files.dh.table import ABOUT, CONVENTIONS, DHRow
from spanloop.model.files.file_io import checked_path, decoded, read_file
from spanloop.model.model import Model
from spanloop.model.parts import Placement

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
LARGEST_TEXT = 10**6
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
    """The column of a cell of the header."""
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


def check_unique(columns: list[Column], where: str) -> None:
    """Raise FileError where two columns have one name."""
    names = [c.name for c in columns]
    for c in columns:
        if names.count(c.name) > 1:
            raise FileError(f"{where}: two columns give {c.name!r} ({c.text!r} is one); expected one")


def read_number(text: str, column: Column, slides: bool, where: str) -> float:
    """The number of a cell in SI units; slides: of a prismatic joint."""
    try:
        value = float(text if text.isascii() and "_" not in text else "")
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


SETTINGS = ("name", "convention", "about", "gravity", "base position", "base rotation")


def loads(data: bytes | str, file: str = "table.csv") -> Model:
    """The model in the text of a CSV file; `file` is the name that errors show."""
    from spanloop.model.files.dh.table import from_dh

    rows, settings = parsed(data if isinstance(data, str) else decoded(data, file), file)
    return from_dh(rows, **{"name": Path(file).stem, **settings})


def read_table(path: str | os.PathLike[str]) -> tuple[list[DHRow], dict[str, Any]]:
    """The rows of a file and its settings."""
    path = checked_path(path)
    if path.suffix.lower() != ".csv":
        raise FileError(f"{path.name}: the extension is {path.suffix!r}; a Denavit-Hartenberg table is a .csv file")
    rows, settings = parsed(decoded(read_file(path), path.name), path.name)
    return rows, {"name": path.stem, **settings}


def parsed(text: str, file: str) -> tuple[list[DHRow], dict[str, Any]]:
    """The rows and settings in the text of a file."""
    if len(text) > LARGEST_TEXT:
        raise FileError(f"{file}: has {len(text)} characters; a table of joints may have {LARGEST_TEXT} at most")
    settings: dict[str, Any] = {}
    columns: list[Column] = []
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{file}:{number}"
        if line.lstrip().startswith("#"):
            settings |= _setting(line.lstrip().lstrip("#").strip(), where)
        elif line.strip() and not columns:
            separator = next((s for s in ";\t" if s in line), ",")
            columns = [read_column(cell, where) for cell in _cells(line, separator, where)]
            check_unique(columns, where)
        elif line.strip():
            cells = _cells(line, separator, where)
            if len(cells) != len(columns):
                raise FileError(f"{where}: there are {len(cells)} cells; expected {len(columns)}, as in the header")
            rows.append(_row(dict(zip((c.name for c in columns), cells, strict=True)), columns, where))
    if not rows:
        raise FileError(
            f"{file}: there is no row; expected a header (joint, a, b, alpha, theta, ...) and a row a joint"
        )
    base = Placement(
        settings.pop("base rotation", Placement().rotation), settings.pop("base position", (0.0, 0.0, 0.0))
    )
    return rows, settings | ({"base": base} if base != Placement() else {})


def _cells(line: str, separator: str, where: str) -> list[str]:
    try:
        return [
            cell.strip() for cell in next(csv.reader([line], delimiter=separator, skipinitialspace=True, strict=True))
        ]
    except csv.Error as error:
        raise FileError(f"{where}: not readable as CSV ({error})") from None


def _setting(text: str, where: str) -> dict[str, Any]:
    """What a comment sets, if it sets something."""
    key, colon, value = (part.strip() for part in text.partition(":"))
    key, *units = key.lower().rstrip("]").split("[")
    key = key.strip()
    if not colon:
        return {}
    if key not in SETTINGS:
        meant = difflib.get_close_matches(key, SETTINGS, 1, 0.8)
        if meant:
            raise FileError(f"{where}: {key!r} is not a setting; did you mean {meant[0]!r}?")
        return {}
    if key == "name":
        return {key: value}
    for word, known in (("convention", CONVENTIONS), ("about", ABOUT)):
        if key == word:
            if value not in known:
                raise FileError(f"{where}: {key} is {value!r}; {nearest(value, known)}")
            return {key: value}
    numbers = _three(value, key, where)
    if key != "base rotation":
        return {key: numbers}
    if units and units[0] not in ("deg", "rad"):
        raise FileError(f"{where}: the unit of {key} is {units[0]!r}; expected deg or rad")
    angles = map(math.radians, numbers) if units == ["deg"] else numbers
    return {key: snap_rotation(rotation_of_angles(*angles))[0]}


def _three(text: str, key: str, where: str) -> tuple[float, ...]:
    try:
        numbers = tuple(map(float, text.replace(",", " ").split()))
    except ValueError:
        numbers = ()
    if len(numbers) != 3 or not all(map(math.isfinite, numbers)):
        raise FileError(f"{where}: {key} is {text!r}; expected three numbers")
    return numbers


def _row(cells: dict[str, str], columns: list[Column], where: str) -> DHRow:
    joint = cells.get("joint", "") or "r"
    if joint.lower() not in ("r", "p", "revolute", "prismatic"):
        raise FileError(f"{where}: joint is {joint!r}; expected r (revolute) or p (prismatic)")
    slides = joint.lower().startswith("p")
    x = {c.name: read_number(cells[c.name], c, slides, where) for c in columns if c.name in NUMBERS and cells[c.name]}
    flags = {c.name: _flag(cells[c.name], c.name, where) for c in columns if c.name in FLAGS and cells[c.name]}
    vectors = {key: tuple(x.get(c + k, 0.0) for k in "xyz") for key, c in (("r", "r"), ("center", "c"))
               if any(c + k in x for k in "xyz")}  # fmt: skip
    if len(vectors) == 2:
        raise FileError(f"{where}: rx, ry, rz and cx, cy, cz are opposite vectors; give one of them")
    return DHRow(
        **{k: x.get(k, 0.0) for k in ("a", "b", "alpha", "theta", "mass")},
        joint=joint.lower()[0],
        inertia=tuple(x.get(f"i{k}", 0.0) for k in ("xx", "xy", "xz", "yy", "yz", "zz")),
        name=cells.get("name", ""),
        body=cells.get("body", ""),
        options={k: x[k] for k in OPTIONS if k in x} | flags,
        where=where,
        r=vectors.get("r"),
        center=vectors.get("center"),
    )


def _flag(text: str, name: str, where: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise FileError(f"{where}: {name} is {text!r}; expected true or false")
    return text.lower() == "true"
