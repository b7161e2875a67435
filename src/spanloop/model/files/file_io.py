"""Files on disk: read whole with checks, written completely or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import stat
import time
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be removed
    fcntl = None  # type: ignore[assignment]

from spanloop.errors import FileError, InputError, nearest_file

LARGEST = 64 * 2**20  # bytes
MOST_PARTS = 40_000  # bodies, joints and frames of one file: ten seconds of reading


def checked_path(path: str | os.PathLike[str]) -> Path:
    """The path; raises InputError for an argument that is none."""
    try:
        return Path(path)
    except TypeError:
        raise InputError(f"path is a {type(path).__name__}; expected text or a pathlib.Path") from None


def read_file(path: Path, what: str = "a mechanism") -> bytes:
    """The content of a regular, readable file of at most 64 MB that is not empty; what: is expected in it."""
    try:
        found = os.stat(path)
        data = path.read_bytes() if _refusal(found, what) is None else b""
    except (FileNotFoundError, NotADirectoryError):
        raise FileError(f"{path}: there is no such file; {nearest_file(path)}") from None
    except (OSError, ValueError) as error:  # a ValueError comes from a name that no file can have
        reason = getattr(error, "strerror", None) or str(error)
        raise FileError(f"{path}: cannot be read ({reason}); expected a readable file") from None
    refusal = _refusal(found, what)
    if refusal is None and not data.strip():
        refusal = f"the file is empty; expected {what}"
    if refusal is not None:
        raise FileError(f"{path}: {refusal}")
    return data


def _refusal(found: os.stat_result, what: str) -> str | None:
    """Why a file is not read at all."""
    if stat.S_ISDIR(found.st_mode):
        return "is a folder; expected a file"
    if not stat.S_ISREG(found.st_mode):
        return "is a device or pipe; expected a file"
    if found.st_size > LARGEST:
        return f"has {found.st_size / 2**20:.0f} MB; {what}'s file may have {LARGEST // 2**20} MB at most"
    return None


def check_parts(count: int, file: str) -> None:
    """Raise FileError for more parts than a file may have."""
    if count > MOST_PARTS:
        raise FileError(f"{file}: has {count} bodies, joints and other parts; at most {MOST_PARTS} are read")


def decoded(data: bytes, file: str) -> str:
    """The text of UTF-8 bytes."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(_not_utf8(data, file, error)) from None


def utf8_complaint(data: bytes, file: str) -> str:
    """The sentence about the first byte that is not UTF-8, empty if all are."""
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _not_utf8(data, file, error)
    return ""


def _not_utf8(data: bytes, file: str, error: UnicodeDecodeError) -> str:
    line = data.count(b"\n", 0, error.start) + 1
    return f"{file}:{line}: byte 0x{data[error.start]:02x} is not UTF-8 text; save the file as UTF-8"


def write_file(path: Path, data: bytes) -> None:
    """Write the data to a temporary file in the same folder, then move it into place in one step."""
    try:
        target = Path(os.path.realpath(path))  # a link stays a link
        part = target.with_name(f"{_prefix(target)}{secrets.token_hex(4)}.part")
        _remove_abandoned(target)
        try:
            with open(part, "xb") as file:
                _lock(file)  # until the file is closed, or its writer killed
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                if target.exists():
                    shutil.copymode(target, part)
                if fcntl is not None:
                    os.replace(part, target)
            if fcntl is None:
                os.replace(part, target)
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
    except (OSError, ValueError) as error:  # a ValueError comes from a name that no file can have
        reason = getattr(error, "strerror", None) or str(error)
        raise FileError(f"{path}: cannot be written ({reason}); nothing was changed") from None


_YOUNG = 1.0  # s: a temporary file may not be locked yet


def _prefix(target: Path) -> str:
    """How the names of a file's temporary files begin."""
    return f".{hashlib.sha256(target.name.encode(errors='surrogateescape')).hexdigest()[:16]}-"


def _remove_abandoned(target: Path) -> None:
    """Remove temporary files of this target whose writers were killed."""
    for part in target.parent.glob(f"{_prefix(target)}*.part"):
        with contextlib.suppress(OSError):
            if time.time() - part.stat().st_mtime > _YOUNG:
                if fcntl is None:
                    part.unlink()
                    continue
                with open(part, "r+b") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # an OSError while a writer lives
                    part.unlink()


def _lock(file: BinaryIO) -> None:
    with contextlib.suppress(OSError):  # a file system without locks
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
