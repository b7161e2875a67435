"""Files of finite-element programs: read whole, with checks of what they are, and split into lines."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from spanloop.errors import FileError, InputError, in_one_line, nearest_file

LARGEST = 2**30  # bytes
_NO_TEXT = bytes(range(9)) + bytes(range(14, 32))  # control characters that no text file has
_MARK = b"\xef\xbb\xbf"  # that editors put before UTF-8
_CUT_NUMBER = re.compile(r"(\d[EeDd]?|[.+-])\s*\Z")  # ends a line that may have gone on


@dataclass(frozen=True, eq=False)
class FileBytes:
    """A file that was read: its path as given, its content, and the SHA-256 of that."""

    path: str
    data: bytes
    digest: str

    @property
    def extension(self) -> str:
        """The extension in small letters, with its dot."""
        return Path(self.path).suffix.lower()

    def begins(self, word: str) -> bool:
        """Whether the file begins with a word in small letters, in either case."""
        return self.data[: len(_MARK) + len(word)].removeprefix(_MARK).lower().startswith(word.encode())

    def lines(self) -> list[str]:
        """The lines of a text file, one character a byte. Raises FileError where its last number may be cut off."""
        if self.data.translate(None, _NO_TEXT) != self.data:
            place = next(k for k, byte in enumerate(self.data) if byte in _NO_TEXT)
            line = self.data.count(b"\n", 0, place) + 1
            self.fail(line, f"byte 0x{self.data[place]:02x} is no text; expected a text file. Is it a binary one?")
        lines = self.data.removeprefix(_MARK).decode("latin-1").replace("\r\n", "\n").replace("\r", "\n").split("\n")
        if _CUT_NUMBER.search(lines[-1]):
            self.fail(
                len(lines), "the file ends within a line. Was it cut off? If not, end that line with a line break"
            )
        return lines

    def fail(self, line: int | None, sentence: str) -> NoReturn:
        """Raise FileError for a line, counted from one, or for the file as a whole."""
        place = self.path if line is None else f"{self.path}:{line}"
        raise FileError(f"{place}: {in_one_line(sentence)}")

    def fail_at(self, byte: int, sentence: str) -> NoReturn:
        """Raise FileError for a byte of a binary file, counted from zero."""
        raise FileError(f"{self.path}, byte {byte}: {in_one_line(sentence)}")


def read_bytes(path: str | os.PathLike[str], argument: str) -> FileBytes:
    """Read a regular file of at most 1 GiB that is not empty. argument: its name in the call."""
    try:
        place = Path(path)
    except TypeError:
        raise InputError(f"{argument} is a {type(path).__name__}; expected the path of a file") from None
    try:
        found = os.stat(place)
        refusal = _refusal(found)
        data = place.read_bytes() if refusal is None else b""
    except (FileNotFoundError, NotADirectoryError):
        raise FileError(f"{place}: there is no such file; {nearest_file(place)}") from None
    except MemoryError:
        raise FileError(f"{place}: does not fit into memory; read it on a larger machine") from None
    except (OSError, ValueError) as error:  # a ValueError comes from a name that no file can have
        reason = getattr(error, "strerror", None) or str(error)
        raise FileError(f"{place}: cannot be read ({reason}); expected a readable file") from None
    if refusal is None and not data.strip():
        refusal = "the file is empty; expected matrices or nodes of finite elements"
    if refusal is not None:
        raise FileError(f"{place}: {refusal}")
    return FileBytes(str(place), data, hashlib.sha256(data).hexdigest())


def _refusal(found: os.stat_result) -> str | None:
    """Why a file is not read at all."""
    if stat.S_ISDIR(found.st_mode):
        return "is a folder; expected a file"
    if not stat.S_ISREG(found.st_mode):
        return "is a device or pipe; expected a file"
    if found.st_size > LARGEST:
        return (
            f"has {found.st_size / 2**20:.0f} MB; at most {LARGEST // 2**20} MB are read. Try a binary .op4 or an .npz"
        )
    return None
