"""Numbers in text files: single fields with Fortran's exponents, and tables of many lines at once."""

from __future__ import annotations

import io
import re

import numpy as np

from spanloop.flexible.files.file_bytes import FileBytes

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([EeDd][+-]?\d{1,4}|[+-]\d{1,4})?\Z")
_WHOLE = re.compile(r"[+-]?\d{1,18}\Z")
_SEPARATORS = str.maketrans(",\tDd", "  Ee")
_IN_TABLES = str.maketrans("", "", "0123456789+-.eE \n")


def real(file: FileBytes, line: int, field: str, what: str) -> float:
    """The finite number of a field: 1.5, 1.5E-3, 1.5D-3, or 1.5-3 as Nastran shortens it."""
    text = field.strip()
    found = _NUMBER.match(text)
    if not found:
        file.fail(line, f"{what} is {text[:40]!r}; expected a number")
    exponent = found[2] or ""
    base = text[: len(text) - len(exponent)]
    value = float(f"{base}E{exponent.lstrip('EeDd')}" if exponent else base)
    if not np.isfinite(value):
        file.fail(line, f"{what} is {text[:40]!r}, which is beyond the range of doubles")
    return value


def whole(file: FileBytes, line: int, field: str, what: str, least: int = 1, most: int = 2**31) -> int:
    """The whole number of a field, within bounds."""
    text = field.strip()
    if not _WHOLE.match(text):
        file.fail(line, f"{what} is {text[:40]!r}; expected a whole number")
    value = int(text)
    if not least <= value <= most:
        file.fail(line, f"{what} is {value}; expected {least} to {most}")
    return value


def filled(lines: list[str], comment: str) -> tuple[list[str], np.ndarray]:
    """The lines that are neither blank nor begin with the comment, and their numbers from one."""
    numbers = [k for k, line in enumerate(lines) if line.strip() and not line.lstrip().startswith(comment)]
    return [lines[k] for k in numbers], np.array(numbers, dtype=np.int64) + 1


def table(file: FileBytes, lines: list[str], numbers: np.ndarray, columns: str) -> np.ndarray:
    """The numbers (n, k) of lines that have k each, between blanks or commas.

    lines: none of them blank; numbers (n,): the lines' numbers, from one; columns: names of the k numbers, with commas.
    """
    names = columns.split(", ")
    text = "\n".join(lines).translate(_SEPARATORS)
    if text.translate(_IN_TABLES):
        _complain(file, lines, numbers, names)
    try:
        found = np.loadtxt(io.StringIO(text), ndmin=2, comments=None)
    except ValueError:
        _complain(file, lines, numbers, names)
    if found.shape != (len(lines), len(names)) or not np.isfinite(found).all():
        _complain(file, lines, numbers, names)
    return found


def _complain(file: FileBytes, lines: list[str], numbers: np.ndarray, names: list[str]) -> None:
    """Raise FileError for the first line that is not what a table has."""
    for line, number in zip(lines, numbers, strict=True):
        fields = line.translate(_SEPARATORS).split()
        if len(fields) != len(names):
            expected = f"{len(names)} numbers ({', '.join(names)})"
            file.fail(int(number), f"there are {len(fields)} fields, {line.strip()[:60]!r}; expected {expected}")
        for field, name in zip(fields, names, strict=True):
            real(file, int(number), field, name)
            if re.search(r"[\d.][+-]", field):
                file.fail(int(number), f"{name} is {field!r}; expected a number with E before its exponent")
    file.fail(int(numbers[0]), f"the lines from here on are no table of {', '.join(names)}")


def whole_column(
    file: FileBytes, column: np.ndarray, numbers: np.ndarray, what: str, least: int, most: int
) -> np.ndarray:
    """A column of a table as integers, all within bounds."""
    wrong = (column != np.floor(column)) | (column < least) | (column > most)
    if wrong.any():
        k = int(np.argmax(wrong))
        file.fail(int(numbers[k]), f"{what} is {column[k]:.17g}; expected a whole number, {least} to {most}")
    return column.astype(np.int64)


def fixed_width(file: FileBytes, lines: list[str], numbers: list[int], counts: list[int], width: int) -> np.ndarray:
    """The numbers of lines of fields with a fixed width and nothing between them, as Fortran writes them.

    counts: how many fields each line has.
    """
    padded = []
    for line, number, count in zip(lines, numbers, counts, strict=True):
        text = line.rstrip()
        if len(text) > width * count or len(text) <= width * (count - 1):
            found = -(-len(text) // width)
            file.fail(number, f"the line has {found} fields of {width} characters; expected {count}")
        padded.append(text.ljust(width * count))
    joined = "".join(padded).replace("D", "E").replace("d", "e")
    fields = np.frombuffer(joined.encode("latin-1"), dtype=f"S{width}")
    try:
        if joined.translate(_IN_TABLES):
            raise ValueError
        values = fields.astype(float)
        if not np.isfinite(values).all():
            raise ValueError
    except ValueError:
        for line, number, count in zip(padded, numbers, counts, strict=True):
            for k in range(count):
                real(file, number, line[k * width : (k + 1) * width], f"number {k + 1} of the line")
        return _slowly(file, padded, numbers, counts, width)
    return values


def _slowly(file: FileBytes, lines: list[str], numbers: list[int], counts: list[int], width: int) -> np.ndarray:
    """Fields that only Fortran reads, as 1.5-103."""
    return np.array(
        [
            real(file, number, line[k * width : (k + 1) * width], "a number")
            for line, number, count in zip(lines, numbers, counts, strict=True)
            for k in range(count)
        ]
    )
