"""Nastran OP4: matrices by OUTPUT4, as text or binary, dense or sparse.

| item | |
|---|---|
| header | columns, rows (negative: "big" strings), form, type, name; in text also the format of numbers |
| column | number, first row (0: sparse), words; then values, or strings of consecutive rows |
| string | big: words + 1, first row; else words + 1 and first row in one integer, 65536 (words + 1) + row |
| end | a column beyond the last one |

Types: 1 real single, 2 real double, 3 and 4 complex. A word is four bytes; eight in files of 64-bit integers. Text
counts values of dense columns, and words of sparse ones. [MSC Nastran, DMAP Programmer's Guide, OUTPUT4]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from spanloop.flexible.files.file_bytes import FileBytes
from spanloop.flexible.files.file_matrix import FileMatrix, symmetric

MOST_ROWS = 2**31
OLD_STRINGS = 65536  # rows of a matrix from which on strings are big
_FORMS = {1: "square", 2: "rectangular", 6: "symmetric"}
_KINDS = {1: "real", 2: "real", 3: "complex", 4: "complex"}


@dataclass(frozen=True)
class Header:
    """What precedes the columns of a matrix; is_big: of its strings."""

    name: str
    columns: int
    rows: int
    form: int
    kind: int
    is_big: bool

    @staticmethod
    def of(name: str, columns: int, rows: int, form: int, kind: int) -> Header:
        """A header as the file has it, with the sign of its rows."""
        return Header(name.strip(), columns, abs(rows), form, kind, rows < 0 or rows >= OLD_STRINGS)

    def complaint(self, size: int) -> str:
        """What is wrong with the header of a matrix in a file of so many bytes; empty if nothing is."""
        if not self.name or not self.name.isprintable():
            return f"the matrix has the name {self.name!r}; expected printable letters"
        if self.kind not in _KINDS:
            return f"matrix {self.name} has type {self.kind}; expected 1 to 4"
        if not (0 < self.columns <= size and 0 < self.rows <= MOST_ROWS):
            return f"matrix {self.name} has {self.rows} rows and {self.columns} columns, in a file of {size} bytes"
        return ""

    @property
    def problem(self) -> str:
        """Why the matrix cannot be mass or stiffness; empty if it can."""
        if self.rows != self.columns:
            return f"it has {self.rows} rows and {self.columns} columns"
        if self.form not in _FORMS:
            return f"it has form {self.form}; expected 1 (square) or 6 (symmetric)"
        return "" if _KINDS[self.kind] == "real" else "it is complex"


class Strings:
    """Values of consecutive rows: column and first row, both from one, how many, and where the file has them."""

    def __init__(self) -> None:
        self.columns, self.rows, self.counts, self.places = list[int](), list[int](), list[int](), list[int]()

    def add(self, column: int, row: int, count: int, place: int) -> None:
        """Append a string."""
        self.columns.append(column)
        self.rows.append(row)
        self.counts.append(count)
        self.places.append(place)

    def complaint(self, header: Header) -> tuple[int, str] | None:
        """The place of the first string that does not fit the matrix, and what is wrong with it."""
        columns, rows, counts = (np.array(x, dtype=np.int64) for x in (self.columns, self.rows, self.counts))
        wrong = (counts < 1) | (rows < 1) | (rows + counts - 1 > header.rows) | (columns < 1)
        after = (columns[1:] > columns[:-1]) | ((columns[1:] == columns[:-1]) & (rows[1:] >= (rows + counts)[:-1]))
        wrong[1:] |= ~after
        if not wrong.any():
            return None
        k = int(np.argmax(wrong))
        found = f"rows {rows[k]} to {rows[k] + counts[k] - 1} of column {columns[k]}"
        return self.places[k], f"{found}; expected ascending rows and columns, and {header.name} has {header.rows} rows"


def matrix(file: FileBytes, header: Header, strings: Strings, values: np.ndarray) -> FileMatrix:
    """The matrix of its strings; values: of all strings, one after the other."""
    counts = np.array(strings.counts, dtype=np.int64)
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    rows = np.repeat(np.array(strings.rows, dtype=np.int64) - 1, counts) + np.arange(len(values)) - starts
    columns = np.repeat(np.array(strings.columns, dtype=np.int64) - 1, counts)
    there = values != 0.0
    entries = (rows[there], columns[there], values[there])
    made = partial(symmetric, file, *entries, header.rows, None, of_halves=header.form == 6, name=header.name)
    return FileMatrix(header.name, made)


def read(file: FileBytes) -> list[FileMatrix]:
    """All matrices of an OP4 file, text or binary."""
    from spanloop.flexible.files.formats.nastran import op4_binary, op4_text

    return op4_binary.read(file) if op4_binary.is_binary(file.data) else op4_text.read(file)
