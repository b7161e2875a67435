"""Matrix Market (.mtx, .mm): real matrices as coordinates or as an array. [NIST, Matrix Market Exchange Formats]"""

from __future__ import annotations

from functools import partial

import numpy as np

from spanloop.flexible.files.file_bytes import FileBytes
from spanloop.flexible.files.file_matrix import FileMatrix, symmetric
from spanloop.flexible.files.number_table import filled, table, whole, whole_column

BANNER = "%%matrixmarket"


def read(file: FileBytes) -> list[FileMatrix]:
    """The matrix of the file."""
    lines = file.lines()
    is_array, is_half = _banner(file, lines[0])
    rows, numbers = filled(lines, "%")
    if not rows:
        file.fail(len(lines), "there is no line with the size; expected rows and columns")
    sizes, line = rows[0].split(), int(numbers[0])
    if len(sizes) != (2 if is_array else 3):
        file.fail(
            line, f"{rows[0][:60]!r}; expected rows and columns" + ("" if is_array else ", and the number of entries")
        )
    size, columns, *count = (whole(file, line, x, "a size", most=2**40) for x in sizes)
    if size != columns:
        file.fail(line, f"the matrix has {size} rows and {columns} columns; expected a square one")
    entries = count[0] if count else (size * (size + 1) // 2 if is_half else size * size)
    if len(rows) - 1 != entries:
        file.fail(int(numbers[-1]), f"there are {len(rows) - 1} lines with entries; expected {entries}")
    if size > max(1000, len(file.data)):
        file.fail(
            line, f"the matrix has {size} rows, in a file of {len(file.data)} bytes; expected an entry in each row"
        )
    if is_array:
        values = table(file, rows[1:], numbers[1:], "entry")[:, 0]
        if is_half:
            second, first = np.triu_indices(size)
        else:
            second, first = (x.ravel() for x in np.indices((size, size)))
        there = values != 0.0
        first, second, values, numbers = first[there], second[there], values[there], numbers[1:][there]
    else:
        found = table(file, rows[1:], numbers[1:], "row, column, entry")
        numbers = numbers[1:]
        first = whole_column(file, found[:, 0], numbers, "row", 1, size) - 1
        second = whole_column(file, found[:, 1], numbers, "column", 1, size) - 1
        values = found[:, 2]
        if is_half and (first < second).any():
            file.fail(
                int(numbers[np.argmax(first < second)]), "an entry above the diagonal; expected the lower triangle"
            )
    return [FileMatrix("", partial(symmetric, file, first, second, values, size, numbers, of_halves=is_half))]


def _banner(file: FileBytes, line: str) -> tuple[bool, bool]:
    """Whether the entries are an array, and whether they are of one triangle."""
    words = line.lower().split()
    if len(words) != 5 or words[0] != BANNER or words[1] != "matrix":
        file.fail(1, f"{line[:80]!r}; expected %%MatrixMarket matrix coordinate real symmetric")
    form, kind, symmetry = words[2:]
    if form not in ("coordinate", "array"):
        file.fail(1, f"the format is {form!r}; expected coordinate or array")
    if kind not in ("real", "double", "integer"):
        file.fail(1, f"the entries are {kind!r}; expected real")
    if symmetry not in ("symmetric", "general"):
        file.fail(1, f"the symmetry is {symmetry!r}; expected symmetric, or general with a symmetric matrix")
    return form == "array", symmetry == "symmetric"
