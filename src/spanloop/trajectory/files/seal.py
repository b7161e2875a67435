"""The seal of a file: the SHA-256 of all its bytes, as its last 80 bytes.

It is checked before any parser reads the file: a bit that changed on a disk or a line never becomes a number, and never
reaches the libraries that read .npz and HDF5, some of which hang or fail on damaged files. Both kinds of file may have
bytes at their end that are no part of them. A seal finds damage; it does not prove who wrote a file.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from spanloop.errors import FileError

_MARK = b"spanloop sha256 "
LENGTH = len(_MARK) + 64  # bytes


def sealed(data: bytes) -> bytes:
    """The data, followed by its seal."""
    return data + _seal(data)


def read_sealed(path: Path, what: str, cure: str) -> bytes:
    """The bytes of a file, seal included, if its seal matches.

    what: the file's content in words ("a run that run.save has written"); cure: what to do about a damaged one.
    """
    data = _read(path)
    body, seal = memoryview(data)[:-LENGTH], data[-LENGTH:]
    if not seal.startswith(_MARK):
        raise FileError(
            f"{path}: is not {what}, or not all of one: the seal (a SHA-256) at its end is missing. It was cut off, "
            f"another program wrote it, or wrote to it since. {cure}"
        )
    if seal != _seal(body):
        raise FileError(
            f"{path}: is damaged: its bytes have changed since it was written (their SHA-256 is another). {cure}"
        )
    return data


def _seal(data: bytes | memoryview) -> bytes:
    return _MARK + hashlib.sha256(data).hexdigest().encode()


def _read(path: Path) -> bytes:
    """The bytes of a regular file that fits into memory."""
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            raise FileError(f"{path}: is not a file")
        if found.st_size > memory():
            raise FileError(
                f"{path}: has {found.st_size / 1e9:.3g} GB, more than the {memory() / 1e9:.3g} GB of memory here; "
                "read it on a larger machine"
            )
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise FileError(f"{path}: there is no such file") from None
    except MemoryError:
        raise FileError(f"{path}: does not fit into memory; read it on a larger machine") from None
    except FileError:
        raise
    except (OSError, ValueError) as error:  # a ValueError comes from a name that no file can have
        reason = getattr(error, "strerror", None) or str(error)
        raise FileError(f"{path}: cannot be read ({reason}); expected a readable file") from None


def memory() -> float:
    """The machine's memory [bytes]; infinite where it is not known."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return float("inf")
