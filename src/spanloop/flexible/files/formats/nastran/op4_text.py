"""OP4 files that are text; `op4.py` has the table of their parts."""

from __future__ import annotations

import re

import numpy as np

from spanloop.flexible.files.file_bytes import FileBytes
from spanloop.flexible.files.file_matrix import FileMatrix, unusable
from spanloop.flexible.files.formats.nastran.op4 import Header, Strings, matrix
from spanloop.flexible.files.number_table import fixed_width, whole

_FORMAT = re.compile(r"(?:1P,?)?(\d+)[ED](\d+)\.\d+\s*\Z", re.IGNORECASE)
_WIDE = "|I16"  # ends the header of a file whose integers have 16 characters


def read(file: FileBytes) -> list[FileMatrix]:
    """All matrices of the file."""
    cursor = _Cursor(file, file.lines())
    found = []
    while not cursor.at_end():
        found.append(_matrix(cursor))
    return found


class _Cursor:
    """The lines of a file, taken one after the other."""

    def __init__(self, file: FileBytes, lines: list[str]):
        while lines and not lines[-1].strip():
            lines.pop()
        self.file, self.lines, self.line, self.width = file, lines, 0, 8  # line: number of the last one taken

    def at_end(self) -> bool:
        return self.line == len(self.lines)

    def take(self, expected: str) -> str:
        """The next line."""
        if self.at_end():
            self.file.fail(self.line, f"the file ends after this line; expected {expected}")
        self.line += 1
        return self.lines[self.line - 1]

    def integers(self, count: int, names: str) -> list[int]:
        """The next line as integers of fixed width."""
        text = self.take(names).rstrip()
        if len(text) > self.width * count:
            self.file.fail(self.line, f"{text[:60]!r}; expected {names}, {self.width} characters each")
        fields = [text[k * self.width : (k + 1) * self.width] for k in range(count)]
        labels = names.split(", ")
        return [whole(self.file, self.line, f, n, least=0) for f, n in zip(fields, labels, strict=True)]

    def integer(self, name: str) -> int:
        """The next line as one integer of any width."""
        return whole(self.file, self.line + 1, self.take(name), name, least=0, most=2**48)


def _matrix(cursor: _Cursor) -> FileMatrix:
    """The next matrix: its header, its columns, and the column beyond the last one."""
    file = cursor.file
    header, per_line, width = _header(cursor)
    strings = Strings()
    values: list[tuple[int, int]] = []  # number and count of fields of lines with values
    while True:
        column, row, words = cursor.integers(3, "column, first row, number of words")
        if column > header.columns:
            _take_values(cursor, max(words, 1), per_line)
            break
        if row > 0:
            strings.add(column, row, words, cursor.line)
            values += _take_values(cursor, words, per_line)
            continue
        while words > 0:
            row, count, used = _string(cursor, header)
            words -= used
            if words < 0:
                file.fail(cursor.line, f"the string goes {-words} words beyond the end of column {column}")
            strings.add(column, row, count, cursor.line)
            values += _take_values(cursor, count * (2 if header.kind > 2 else 1), per_line)
    if header.problem:
        return unusable(header.name, header.problem)
    complaint = strings.complaint(header)
    if complaint:
        file.fail(*complaint)
    lines = [cursor.lines[number - 1] for number, _ in values]
    numbers = fixed_width(file, lines, [n for n, _ in values], [c for _, c in values], width)
    return matrix(file, header, strings, numbers)


def _header(cursor: _Cursor) -> tuple[Header, int, int]:
    """The header of the next matrix, how many numbers a line has, and their width."""
    text = cursor.take("a matrix").rstrip()
    file, line = cursor.file, cursor.line
    cursor.width = 16 if text.endswith(_WIDE) else 8
    text = text.removesuffix(_WIDE)
    ends = np.cumsum([cursor.width, cursor.width, 8, 8, 8])
    fields = [text[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    labels = ("number of columns", "number of rows", "form", "type")
    least = (1, -(2**31), 0, 1)
    given = [whole(file, line, f, n, least=x) for f, n, x in zip(fields[:4], labels, least, strict=True)]
    header = Header.of(fields[4], *given)
    complaint = header.complaint(len(file.data))
    written = text[ends[-1] :].strip() or "5E16.9"
    form = _FORMAT.match(written)
    if not complaint and not form:
        complaint = f"numbers have the format {written[:40]!r}; expected one such as 1P,3E23.16"
    if complaint or not form:
        file.fail(line, complaint)
    per_line, width = int(form[1][:6]), int(form[2][:6])
    if not (0 < per_line <= 100 and 0 < width <= 100):
        file.fail(line, f"numbers have the format {written[:40]!r}; expected one such as 1P,3E23.16")
    return header, per_line, width


def _string(cursor: _Cursor, header: Header) -> tuple[int, int, int]:
    """First row and values of the string that begins in the next line, and how many words of its column it uses."""
    if header.is_big:
        words, row = cursor.integers(2, "number of words, first row")
        words, used = words - 1, words + 1
    else:
        both = cursor.integer("number of words and first row in one integer")
        words, row, used = both // 65536 - 1, both % 65536, both // 65536
    per_value = {1: 1, 2: 2, 3: 2, 4: 4}[header.kind]
    if words < 1 or words % per_value:
        cursor.file.fail(cursor.line, f"a string has {words} words; expected a multiple of {per_value}")
    return row, words // per_value, used


def _take_values(cursor: _Cursor, count: int, per_line: int) -> list[tuple[int, int]]:
    """The numbers of the next lines, which have `count` values, and how many each has."""
    full, rest = divmod(count, per_line)
    needed = full + (rest > 0)
    left = len(cursor.lines) - cursor.line
    if needed > left:
        cursor.file.fail(len(cursor.lines), f"the file ends after this line; {needed - left} more lines are expected")
    first = cursor.line + 1
    cursor.line += needed
    return [(first + k, per_line) for k in range(full)] + ([(first + full, rest)] if rest else [])
