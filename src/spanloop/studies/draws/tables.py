"""Tables of draws: columns by name from a mapping or a CSV file."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from spanloop.errors import FileError, InputError
from spanloop.model.files.file_io import checked_path, decoded, read_file
from spanloop.studies.real_numbers import real_numbers

_SEPARATORS = re.compile(r"[;\t|]")
_FORM = "commas between numbers, and points in them, as 1.5,2.0"


def table_of(given: Any) -> tuple[list[str], np.ndarray]:
    """Names and numbers (runs, k) of a table."""
    if isinstance(given, str | os.PathLike):
        return read_table(Path(given))
    if not isinstance(given, Mapping) or not given:
        raise InputError(f"study: table is a {type(given).__name__}; expected {{'name': numbers}} or a .csv file")
    columns = []
    for name, values in given.items():
        column = real_numbers(values)
        if column is None or column.ndim != 1 or not len(column):
            raise InputError(f"study: table[{name!r}] is {values!r:.60}; expected real numbers (runs,)")
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
    if len(names) == 1 and (found := _SEPARATORS.search(names[0])):
        raise FileError(f"{where.name}: the first line has no comma, but {found[0]!r}; expected {_FORM}")
    numbers = np.empty((len(rows) - 1, len(names)))
    for k, row in enumerate(rows[1:]):
        if len(row) != len(names):
            tip = f". Are there decimal commas? Expected are {_FORM}" if len(row) == 2 * len(names) else ""
            raise FileError(f"{where.name}: row {k + 1} has {len(row)} numbers; expected {len(names)}{tip}")
        for j, text in enumerate(row):
            try:
                numbers[k, j] = float(text.replace("_", "?"))  # Python reads 1_0 as 10
            except ValueError:
                words = f"{where.name}: row {k + 1}: {names[j]!r} is {text!r:.40}; expected a number"
                raise FileError(words + (" with a decimal point" if "," in text else "")) from None
    return names, numbers
