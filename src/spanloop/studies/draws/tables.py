"""Tables of draws: columns by name from a mapping or a CSV file."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from spanloop.errors import FileError, InputError
from spanloop.model.files.file_io import checked_path, decoded, read_file


def table_of(given: Any) -> tuple[list[str], np.ndarray]:
    """Names and numbers (runs, k) of a table."""
    if isinstance(given, str | os.PathLike):
        return read_table(Path(given))
    if not isinstance(given, Mapping) or not given:
        raise InputError(f"study: table is a {type(given).__name__}; expected {{'name': numbers}} or a .csv file")
    columns = []
    for name, values in given.items():
        try:
            column = np.array(values, float)
        except (TypeError, ValueError):
            column = np.empty((0, 0))
        if column.ndim != 1 or not len(column):
            raise InputError(f"study: table[{name!r}] is {values!r:.60}; expected numbers (runs,)")
        columns.append(column)
    lengths = {name: len(x) for name, x in zip(given, columns, strict=True)}
    if len(set(lengths.values())) > 1:
        raise InputError(f"study: columns of the table have different lengths: {lengths}")
    return [str(name) for name in given], np.column_stack(columns)


def read_table(path: Path) -> tuple[list[str], np.ndarray]:
    """A CSV file with names in its first line; lines that begin with # are left out."""
    where = checked_path(path)
    lines = [
        x for x in decoded(read_file(where, "a table"), where.name).splitlines() if x.strip() and not x.startswith("#")
    ]
    rows = list(csv.reader(lines))
    if len(rows) < 2:
        raise FileError(f"{where.name}: has {len(rows)} lines; expected names in the first, and numbers below them")
    names = [x.strip() for x in rows[0]]
    if len(set(names)) < len(names) or not all(names):
        raise FileError(f"{where.name}: the first line is {','.join(names)!r:.80}; expected names, each once")
    numbers = np.empty((len(rows) - 1, len(names)))
    for k, row in enumerate(rows[1:]):
        if len(row) != len(names):
            raise FileError(f"{where.name}: row {k + 1} has {len(row)} numbers; expected {len(names)}")
        for j, text in enumerate(row):
            try:
                numbers[k, j] = float(text)
            except ValueError:
                raise FileError(f"{where.name}: row {k + 1}: {names[j]!r} is {text!r:.40}; expected a number") from None
    return names, numbers
