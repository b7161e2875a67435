"""Harwell-Boeing (.hb, .rsa, .rua): columns of a sparse matrix, as Ansys exports them (HBMAT, *EXPORT).

SciPy reads the unsymmetric kind (RUA) only; programs of finite elements write one triangle (RSA).
[Duff, Grimes, Lewis: Users' Guide for the Harwell-Boeing Sparse Matrix Collection, 1992]
"""

from __future__ import annotations

import re
from functools import partial

import numpy as np

from spanloop.flexible.files.file_bytes import FileBytes
from spanloop.flexible.files.file_matrix import FileMatrix, symmetric
from spanloop.flexible.files.number_table import fixed_width, whole, whole_column

_INTEGERS = re.compile(r"\((?P<count>\d*)I(?P<width>\d+)(?:\.\d+)?\)\Z", re.IGNORECASE)
_REALS = re.compile(
    r"\((?:(?P<scale>\d+)P,?)?(?P<count>\d*)[EDFG](?P<width>\d+)\.(?P<decimals>\d+)(?:E\d+)?\)\Z", re.IGNORECASE
)


def read(file: FileBytes) -> list[FileMatrix]:
    """The matrix of the file."""
    lines = file.lines()
    while lines and not lines[-1].strip():
        lines.pop()
    if len(lines) < 5:
        file.fail(len(lines), "the file ends after this line; expected four lines of header, then numbers")
    cards = [whole(file, 2, x, "a number of lines", least=0) for x in _fields(lines[1], 14, 5) if x.strip()]
    if len(cards) < 4:
        file.fail(2, f"{lines[1][:72]!r}; expected numbers of lines: all, pointers, rows, entries")
    size, count, of_halves = _sizes(file, lines[2])
    formats = [lines[3][a:b].strip() for a, b in ((0, 16), (16, 32), (32, 52))]
    start = 5 if len(cards) > 4 and cards[4] > 0 else 4
    pointers, at_pointers, start = _numbers(file, lines, start, cards[1], formats[0], _INTEGERS, size + 1, "pointers")
    rows, at_rows, start = _numbers(file, lines, start, cards[2], formats[1], _INTEGERS, count, "rows")
    values, at_values, _ = _numbers(file, lines, start, cards[3], formats[2], _REALS, count, "entries")
    begins = whole_column(file, pointers, at_pointers, "a pointer", 1, count + 1) - 1
    if begins[0] != 0 or begins[-1] != count or (np.diff(begins) < 0).any():
        file.fail(int(at_pointers[0]), f"the pointers do not ascend from 1 to {count + 1}")
    first = whole_column(file, rows, at_rows, "a row", 1, size) - 1
    second = np.repeat(np.arange(size), np.diff(begins))
    return [FileMatrix("", partial(symmetric, file, first, second, values, size, at_values, of_halves))]


def _fields(line: str, width: int, count: int) -> list[str]:
    return [line[k * width : (k + 1) * width] for k in range(count)]


def _sizes(file: FileBytes, line: str) -> tuple[int, int, bool]:
    """Rows, entries, and whether entries are of one triangle."""
    kind = line[:3].upper()
    if kind not in ("RSA", "RUA"):
        file.fail(3, f"the type is {kind!r}; expected RSA (real, symmetric, assembled) or RUA")
    rows, columns, count = (whole(file, 3, x, "a size", most=2**40) for x in _fields(line[14:], 14, 3))
    if rows != columns:
        file.fail(3, f"the matrix has {rows} rows and {columns} columns; expected a square one")
    if max(rows, count) > len(file.data):
        file.fail(3, f"{rows} rows and {count} entries, in a file of {len(file.data)} bytes. Was it cut off?")
    return rows, count, kind == "RSA"


def _numbers(
    file: FileBytes,
    lines: list[str],
    start: int,
    declared: int,
    form: str,
    pattern: re.Pattern[str],
    count: int,
    what: str,
) -> tuple[np.ndarray, np.ndarray, int]:
    """The numbers of the next lines, the line of each, and where the lines after them begin."""
    match = pattern.match(form.replace(" ", ""))
    if not match:
        file.fail(4, f"{what} have the format {form!r}; expected one such as (10I8) or (1P,3E25.16)")
    per_line, width = int(match["count"][:6] or 1), int(match["width"][:6])
    needed = -(-count // per_line) if per_line else 0
    if not (0 < per_line <= 1000 and 0 < width <= 100) or needed != declared:
        file.fail(2, f"{what} have {declared} lines, but {count} of them in format {form} have {needed}")
    if start + needed > len(lines):
        file.fail(
            len(lines),
            f"the file ends after this line; {start + needed - len(lines)} more lines of {what} are expected",
        )
    counts = [per_line] * (needed - 1) + [count - per_line * (needed - 1)]
    at = list(range(start + 1, start + needed + 1))
    text = [_justified(lines[start + k], n, width) for k, n in enumerate(counts)]
    values = fixed_width(file, text, at, counts, width)
    places = np.repeat(at, counts)
    if pattern is _REALS:
        padded = [line.rstrip().ljust(width * n) for line, n in zip(text, counts, strict=True)]
        _check_plain(file, padded, places, values, match)
    return values, places, start + needed


def _check_plain(file: FileBytes, lines: list[str], at: np.ndarray, values: np.ndarray, form: re.Match[str]) -> None:
    """Raise FileError for a number that Fortran reads as another one than it is printed as.

    Without a point it has the decimals of the format; without an exponent it is divided by the format's power of ten.
    """
    width = int(form["width"])
    letters = np.frombuffer("".join(lines).encode("latin-1"), dtype="S1").reshape(-1, width)
    is_sign = (letters == b"+") | (letters == b"-")
    has_exponent = np.isin(letters, [b"E", b"e", b"D", b"d"]).any(axis=1)
    has_exponent |= (is_sign[:, 1:] & (letters[:, :-1] != b" ")).any(axis=1)
    pointless = ~(letters == b".").any(axis=1) & (int(form["decimals"]) > 0)
    scaled = ~has_exponent & (int(form["scale"] or 0) > 0)
    wrong = (pointless | scaled) & (values != 0.0)
    if wrong.any():
        k = int(np.argmax(wrong))
        lacking = "a decimal point" if pointless[k] else "an exponent"
        field = letters[k].tobytes().decode("latin-1").strip()
        file.fail(int(at[k]), f"{field!r} is without {lacking}: in the format {form[0]} it is another number. Add one")


def _justified(line: str, count: int, width: int) -> str:
    """The line with its fields in their places: SciPy's hb_write declares a width of 25 and prints 24."""
    fields = line.split()
    if len(fields) != count or len(line.rstrip()) == count * width or max(map(len, fields)) > width:
        return line
    return "".join(field.rjust(width) for field in fields)
