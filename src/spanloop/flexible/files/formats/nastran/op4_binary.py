"""OP4 files that are binary: Fortran's records, of either endianness, with integers of four or eight bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spanloop.flexible.files.file_bytes import FileBytes
from spanloop.flexible.files.file_matrix import FileMatrix, unusable
from spanloop.flexible.files.formats.nastran.op4 import Header, Strings, matrix

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
    strings = Strings()
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
        if not header.problem and words:
            _add_column(records, header, types, content, strings)
    if header.problem:
        return unusable(header.name, header.problem)
    complaint = strings.complaint(header)
    if complaint:
        file.fail_at(*complaint)
    values = _values(file, types, strings)
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


def _add_column(records: _Records, header: Header, types: _Types, content: bytes, strings: Strings) -> None:
    """Add the strings of a column's record; their places are those of their values."""
    size = types.integer.itemsize
    column, row, *heads = np.frombuffer(content, types.integer).tolist()
    if row > 0:
        count, rest = divmod(len(heads) - 1, types.words)
        if rest:
            records.file.fail_at(
                records.start, f"column {column} has {len(heads) - 1} words; expected a multiple of {types.words}"
            )
        strings.add(column, row, count, records.start + 3 * size)
        return
    at, end = 1, len(heads)  # heads[0] is the number of words
    while at < end:
        if header.is_big:
            words, first = heads[at] - 1, heads[at + 1] if at + 1 < end else 0
            begin = at + 2
        else:
            words, first = heads[at] // 65536 - 1, heads[at] % 65536
            begin = at + 1
        count, rest = divmod(words, types.words)
        if count < 1 or rest or begin + words > end:
            place = records.start + (2 + at) * size
            records.file.fail_at(place, f"a string of {words} words does not fit column {column} of {header.name}")
        strings.add(column, first, count, records.start + (2 + begin) * size)
        at = begin + words


def _values(file: FileBytes, types: _Types, strings: Strings) -> np.ndarray:
    """The values of all strings, gathered at once: the file as words of four bytes, of which a value has one or two."""
    per_value = types.value.itemsize // 4
    counts = np.array(strings.counts, dtype=np.int64)
    starts = np.array(strings.places, dtype=np.int64) // 4  # every record has a multiple of four bytes
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    first = np.repeat(starts, counts) + per_value * within
    words = np.frombuffer(file.data, np.uint32, len(file.data) // 4)
    gathered = np.stack([words[first + k] for k in range(per_value)], axis=1)
    return gathered.reshape(-1).view(types.value).astype(float)
