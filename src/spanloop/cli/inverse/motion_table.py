"""Motions of joints from a CSV file, a line of names and a line of numbers for each time:

    time [s], joint1.q [rad], joint1.v [rad/s], joint1.a [rad/s²], joint2.q [deg], ...

`joint1` alone means joint1.q; lines that begin with # are comments; columns of torques are ignored, so that the .csv
file of a run can be read. Missing velocities and accelerations are derivatives of splines.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from spanloop.cli.shared_arguments import UNITS
from spanloop.errors import FileError, nearest
from spanloop.joints.kind import JointKind
from spanloop.model import Model
from spanloop.model.files.file_io import decoded, read_file
from spanloop.model.parts import Joint
from spanloop.trajectory.files import labels
from spanloop.trajectory.resampling import LEAST, slopes

Motion = tuple[np.ndarray, np.ndarray, np.ndarray]  # q (n, nq), v (n, nv), a (n, nv) of a joint
_TIMES = ("time", "t")
_LETTERS = ("q", "v", "a")


def read_motions(file: str, model: Model) -> tuple[np.ndarray, dict[str, Motion]]:
    """Times (n,) [s] and the motion of each joint in the file."""
    path = Path(file)
    columns = _columns(decoded(read_file(path), file), file, model)
    times = columns.pop("time", None)
    if times is None:
        raise FileError(f"{file}: there is no column 'time'; expected the times of the samples in seconds")
    if len(times) < LEAST or not (np.diff(times) > 0.0).all():
        raise FileError(f"{file}: expected at least {LEAST} samples at times that increase; there are {len(times)}")
    motions = {}
    for joint in model.joints:
        names = _names(model, joint)
        if any(name in columns for letter in _LETTERS for name in names[letter]):
            motions[joint.name] = _motion(file, joint, times, columns, names)
    return times, motions


def _motion(file: str, joint: Joint, times: np.ndarray, columns: dict, names: dict[str, list[str]]) -> Motion:
    found = {letter: _together(file, columns, names[letter]) for letter in _LETTERS}
    q, v, a = (found[letter] for letter in _LETTERS)
    if q is None:
        raise FileError(f"{file}: joint {joint.name!r} has rates and no coordinates; add {', '.join(names['q'])}")
    if v is None:
        if type(joint.kind).rates is not JointKind.rates:
            raise FileError(
                f"{file}: the rates of joint {joint.name!r} ({joint.kind.name}) are not those of its coordinates; "
                f"add {', '.join(names['v'])}"
            )
        v = slopes(times, q)
    return q, v, slopes(times, v) if a is None else a


def _together(file: str, columns: dict[str, np.ndarray], names: Sequence[str]) -> np.ndarray | None:
    """The columns (n, m) of these names; None if there are none."""
    missing = [name for name in names if name not in columns]
    if missing and len(missing) < len(names):
        raise FileError(f"{file}: there is no column {missing[0]!r}, though there are others of the joint; add it")
    return None if missing else np.stack([columns[name] for name in names], axis=1).reshape(-1, len(names))


def _columns(text: str, file: str, model: Model) -> dict[str, np.ndarray]:
    """Columns by plain name, in SI units."""
    lines = [(k, line) for k, line in enumerate(text.splitlines(), 1) if line.strip() and not line.startswith("#")]
    rows = [next(csv.reader([line])) for _, line in lines]
    if not rows:
        raise FileError(f"{file}: there is no line of names; expected time, joint1, joint2, ...")
    known = [name for j in model.joints for names in _names(model, j).values() for name in names]
    heads = [_head(cell, file, known) for cell in rows[0]]
    twice = [name for k, (name, _) in enumerate(heads) if name and name in [n for n, _ in heads[:k]]]
    if twice:
        raise FileError(f"{file}: column {twice[0]!r} occurs twice")
    table = [_numbers(row, heads, f"{file}:{line}") for (line, _), row in zip(lines[1:], rows[1:], strict=True)]
    array = np.array(table, dtype=float).reshape(-1, len(heads))
    return {name: array[:, k] * factor for k, (name, factor) in enumerate(heads) if name}


def _head(cell: str, file: str, known: list[str]) -> tuple[str, float]:
    """Plain name and factor to SI units of a column; no name if the column is ignored."""
    match = re.fullmatch(r"\s*(.*?)\s*(?:\[([^\]]*)\])?\s*", cell)
    name, unit = (match[1], match[2] or "") if match else (cell, "")
    if name in _TIMES:
        return "time", _factor(unit, {"s": 1.0, "ms": 1e-3}, f"{file}: column {name!r}")
    for candidate in (name, f"{name}.q"):
        if candidate in known:
            return candidate, _factor(unit.split("/")[0], UNITS, f"{file}: column {name!r}")
    if ".tau" in name:
        return "", 1.0
    names = ["time", *(k.removesuffix(".q") for k in known)]
    raise FileError(f"{file}: column {name!r} belongs to no joint; {nearest(name, names)}")


def _factor(unit: str, known: dict[str, float], where: str) -> float:
    """Factor from a unit to SI units; no unit, or 1, is SI."""
    if unit in ("", "1"):
        return 1.0
    if unit not in known:
        raise FileError(f"{where}: unknown unit {unit!r}; expected one of {', '.join(known)}")
    return known[unit]


def _numbers(row: list[str], heads: list, where: str) -> list[float]:
    if len(row) != len(heads):
        raise FileError(f"{where}: there are {len(row)} numbers; the line of names has {len(heads)}")
    out = []
    for cell, (name, _) in zip(row, heads, strict=True):
        try:
            out.append(float(cell) if name else 0.0)
        except ValueError:
            out.append(math.nan)
        if not math.isfinite(out[-1]):
            raise FileError(f"{where}: {name} is {cell!r}; expected a finite number")
    return out


def _names(model: Model, joint: Joint) -> dict[str, list[str]]:
    """The joint's columns of coordinates, rates and accelerations."""
    q = labels.coordinates(model)[model.q_slice(joint.name)]
    v = labels.dofs(model)[model.v_slice(joint.name)]
    return {k: [labels.joined(n, k, part) for n, part in (q if k == "q" else v)] for k in _LETTERS}
