"""OP4 files that are binary: Fortran's records, of either endianness, with integers of four or eight bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spanloop.flexible.files.file_bytes import FileBytes
from spanloop.flexible.files.file_matrix import FileMatrix, unusable
from spanloop.flexible.files.nastran.op4 import Header, String, check_string, matrix

_HEADERS = {24: 4, 48: 8}  # bytes of a header's record, and of an integer in it


def is_binary(data: bytes) -> bool:
    """Whether the file begins with a binary header."""
    return len(data) > 4 and any(int.from_bytes(data[:4], order) in _HEADERS for order in ("little", "big"))


def read(file: FileBytes) -> list[FileMatrix]:
    """All matrices of the file."""
    order = "<" if int.from_bytes(file.data[:4], "little") in _HEADERS else ">"
    records = _Records(file, order)
    found = []
    while records.place < len(file.data):
        found.append(_matrix(records))
    return found


class _Records:
    """The records of a file, taken one after the other; each has its length before and after it."""

    def __init__(self, file: FileBytes, order: str):
        self.file, self.order, self.place, self.start = file, order, 0, 0  # start: of the last record's content

    def take(self, expected: str) -> bytes:
        """The content of the next record."""
        data, begin = self.file.data, self.place
        length = self._length(begin, expected)
        end = begin + 4 + length
        if length < 0 or end + 4 > len(data):
            self.file.fail_at(
                begin,
                f"a record of {length} bytes, but the file has {len(data)} bytes. Was it cut off? Expected {expected}",
            )
        if self._length(end, expected) != length:
            self.file.fail_at(end, f"a record of {length} bytes ends with another length; expected {expected}")
        self.place, self.start = end + 4, begin + 4
        return data[begin + 4 : end]

    def _length(self, place: int, expected: str) -> int:
        raw = self.file.data[place : place + 4]
        if len(raw) < 4:
            self.file.fail_at(len(self.file.data), f"the file ends; expected {expected}")
        return int(np.frombuffer(raw, self.order + "i4")[0])


@dataclass(frozen=True)
class _Types:
    """How integers and values are stored; words: of a value."""

    integer: np.dtype
    value: np.dtype
    words: int

    @staticmethod
    def of(order: str, size: int, kind: int) -> _Types:
        is_double = kind % 2 == 0 or size == 8
        words = (2 if is_double and size == 4 else 1) * (2 if kind > 2 else 1)
        return _Types(np.dtype(f"{order}i{size}"), np.dtype(f"{order}f{8 if is_double else 4}"), words)


def _matrix(records: _Records) -> FileMatrix:
    """The next matrix: its header, its columns, and the column beyond the last one."""
    file = records.file
    header, size = _header(records)
    types = _Types.of(records.order, size, header.kind)
    strings: list[String] = []
    parts: list[np.ndarray] = []
    while True:
        content = records.take(f"a column of {header.name}")
        if len(content) < 3 * size or len(content) % size:
            file.fail_at(records.start, f"a record of {len(content)} bytes; expected a column of {header.name}")
        column, row, words = (int(x) for x in np.frombuffer(content, types.integer, 3))
        if column > header.columns:
            break
        if column < 1 or row < 0 or words != len(content) // size - 3:
            file.fail_at(
                records.start,
                f"column {column}, row {row} with {words} words in a record of {len(content)} bytes; "
                f"expected a column of {header.name} and {len(content) // size - 3} words",
            )
        if not header.problem:
            _column(records, header, types, content[3 * size :], (column, row), strings, parts)
    if header.problem:
        return unusable(header.name, header.problem)
    values = np.concatenate(parts).astype(float) if parts else np.zeros(0)
    if not np.isfinite(values).all():
        file.fail(None, f"matrix {header.name} contains numbers that are not finite")
    return matrix(file, header, strings, values)


def _header(records: _Records) -> tuple[Header, int]:
    """The header of the next matrix and the size of its integers [bytes]."""
    content = records.take("the header of a matrix")
    size = _HEADERS.get(len(content))
    if size is None:
        records.file.fail_at(records.start, f"a record of {len(content)} bytes; expected a header of 24 or 48 bytes")
    numbers = [int(x) for x in np.frombuffer(content, f"{records.order}i{size}", 4)]
    name = content[4 * size :].replace(b"\0", b" ").decode("latin-1")
    header = Header.of("".join(name.split()), *numbers)
    complaint = header.complaint(len(records.file.data))
    if complaint:
        records.file.fail_at(records.start, complaint)
    return header, size


def _column(
    records: _Records,
    header: Header,
    types: _Types,
    body: bytes,
    place: tuple[int, int],
    strings: list[String],
    parts: list[np.ndarray],
) -> None:
    """Append the strings and values of a column. place: column and first row, from one; row 0 if it is sparse."""
    column, row = place
    size, at = types.integer.itemsize, 0
    while at < len(body):
        length = len(body)
        if row == 0:
            heads = 2 if header.is_big else 1
            if at + heads * size > len(body):
                records.file.fail_at(records.start + 3 * size + at, "a string is cut off at the end of its record")
            first, *second = (int(x) for x in np.frombuffer(body, types.integer, heads, at))
            words, start = (first - 1, second[0]) if second else (first // 65536 - 1, first % 65536)
            at += heads * size
            length = words * size
        else:
            start = row
        count, rest = divmod(length, size * types.words)
        string = String(column - 1, start - 1, count)
        complaint = check_string(header, string, strings[-1] if strings else None)
        if not complaint and (rest or at + length > len(body)):
            complaint = f"a string of {length} bytes does not fit column {column}"
        if complaint:
            records.file.fail_at(records.start + 3 * size + at, complaint)
        strings.append(string)
        parts.append(np.frombuffer(body, types.value, count, at))
        at += length
