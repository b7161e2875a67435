"""Artifacts (object code and what its callers must know) kept on disk, so that a kernel starts in milliseconds.

An entry is trusted only if folder and file belong to this user, no other user may write them, neither is a symbolic
link, and its checksum fits; anything else is ignored and built anew. Writing is atomic, so that several
processes may work at once. Where nothing can be written there is one warning and no cache.

The folder is $SPANLOOP_CACHE, else $XDG_CACHE_HOME/spanloop, else ~/.cache/spanloop; SPANLOOP_CACHE=off turns it off.
It holds $SPANLOOP_CACHE_MB megabytes (512): beyond that, entries that were not used for longest are removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import stat
import tempfile
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from spanloop.errors import SpanloopWarning

BOUND = 512.0  # MB, if SPANLOOP_CACHE_MB is not set
_MAGIC = b"spanloop kernel 2\n"
_ENTRY = re.compile(r".+-[0-9a-f]{40}")
_PART = re.compile(r"\.new-\w{8}")
_PRECISE = 3600.0  # s: when an entry was used is known to this
_ABANDONED = 60.0  # s: no writing takes as long
_warned: set[str] = set()
_unmeasured = math.inf  # bytes written since the folder was measured


@dataclass(frozen=True)
class Artifact:
    """Object code, facts about it (plain JSON values), and the arrays that it reads."""

    code: bytes
    facts: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, np.ndarray] = field(default_factory=dict)
    from_cache: bool = False


def key(name: str, *parts: str) -> str:
    """The name of an entry: readable at its beginning, then a hash of all parts."""
    return f"{name}-{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:40]}"


def folder() -> Path | None:
    """Where entries are kept; None if caching is off."""
    chosen = os.environ.get("SPANLOOP_CACHE")
    if chosen is not None:
        return None if chosen in ("", "off") else Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "spanloop"


def read(key: str) -> Artifact | None:
    """The artifact under this key; None if there is no entry that can be trusted."""
    where = folder()
    if where is None or not is_trusted(where):
        return None
    flags = sum(getattr(os, name, 0) for name in ("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
    try:
        handle = os.open(where / key, flags)
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or not _is_private(status):
            os.close(handle)
            return None
        with os.fdopen(handle, "rb") as file:
            found = _unpacked(file.read(), key)
        if found is not None and time.time() - status.st_mtime > _PRECISE:
            with contextlib.suppress(OSError):
                os.utime(where / key)
        return found
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # no such file, or a head that is not ours
        return None


def write(key: str, artifact: Artifact) -> None:
    """Keep an artifact; on any failure of the disk warn once and go on."""
    where = folder()
    if where is None:
        return
    try:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not is_trusted(where):
            raise OSError(f"{where} does not belong to this user alone")
        _write_atomically(where, key, _packed(key, artifact))
    except OSError as problem:
        _warn_once(
            "folder",
            f"compiled kernels cannot be kept on disk ({problem}); every process compiles them anew. "
            "Set SPANLOOP_CACHE to a folder of your own, or to 'off'",
        )


def _write_atomically(where: Path, key: str, data: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=where, prefix=".new-")  # made with mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, where / key)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    _keep_bound(where, key, len(data))


def _packed(key: str, artifact: Artifact) -> bytes:
    """The magic, a checksum of the rest, the length of a JSON head, the head, the code, the tables."""
    tables = [(name, x.dtype.str, x.shape) for name, x in artifact.tables.items()]
    head = json.dumps({"key": key, "code": len(artifact.code), "tables": tables, "facts": artifact.facts}).encode()
    data = b"".join((artifact.code, *(np.ascontiguousarray(x).tobytes() for x in artifact.tables.values())))
    body = len(head).to_bytes(8, "little") + head + data
    return _MAGIC + hashlib.sha256(body).digest() + body


def _unpacked(data: bytes, key: str) -> Artifact | None:
    start = len(_MAGIC)
    body = data[start + 32 :]
    if data[:start] != _MAGIC or len(body) < 8 or hashlib.sha256(body).digest() != data[start : start + 32]:
        return None
    length = int.from_bytes(body[:8], "little")
    head = json.loads(body[8 : 8 + length])
    if head.get("key") != key:
        return None
    at = 8 + length
    code, at = body[at : at + head["code"]], at + head["code"]
    tables = {}
    for name, kind, shape in head["tables"]:
        count = int(np.prod(shape))
        tables[name] = np.frombuffer(body, kind, count, at).reshape(shape).copy()
        at += tables[name].nbytes
    return Artifact(code, head["facts"], tables, from_cache=True)


def is_trusted(where: Path) -> bool:
    """True if entries in this folder are used: it belongs to this user, and no other user may write there."""
    try:
        status = os.lstat(where)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and _is_private(status)


def _is_private(status: os.stat_result) -> bool:
    """Owned by this user, and not writable for others."""
    if not hasattr(os, "getuid"):
        return True
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _warn_once(subject: str, sentence: str) -> None:
    if subject not in _warned:
        _warned.add(subject)
        warnings.warn(sentence, SpanloopWarning, stacklevel=2)


# ---- size


@dataclass(frozen=True)
class File:
    """A file of the cache: a kernel, or a part of one that was not written to its end."""

    path: Path
    size: int  # bytes
    used: float  # s since the epoch, to the hour
    is_kernel: bool = True

    def remove(self) -> None:
        """Remove it, unless another process has done so or the folder cannot be written."""
        with contextlib.suppress(OSError):
            self.path.unlink()


def files() -> list[File]:
    """All files of the cache, the one that was not used for longest first."""
    where, found = folder(), []
    if where is None:
        return []
    with contextlib.suppress(OSError), os.scandir(where) as entries:
        for entry in entries:
            is_kernel = _ENTRY.fullmatch(entry.name) is not None
            if not is_kernel and not _PART.fullmatch(entry.name):
                continue  # not ours
            with contextlib.suppress(OSError):  # another process has removed it
                status = entry.stat(follow_symlinks=False)
                found.append(File(Path(entry.path), status.st_size, status.st_mtime, is_kernel))
    return sorted(found, key=lambda file: file.used)


def bound() -> float:
    """How many bytes the cache may hold."""
    chosen = os.environ.get("SPANLOOP_CACHE_MB", "")
    try:
        megabytes = float(chosen or BOUND)
    except ValueError:
        megabytes = math.nan
    if not megabytes >= 0.0:
        _warn_once("bound", f"SPANLOOP_CACHE_MB is {chosen!r}; expected a number of megabytes. {BOUND:g} MB are used")
        megabytes = BOUND
    return 1e6 * megabytes


def _keep_bound(where: Path, newest: str, size: int) -> None:
    """After an entry was written: remove parts that nobody finishes, and the oldest entries beyond the bound.

    The folder is measured after the first entry of a process and after every sixteenth of the bound.
    """
    global _unmeasured
    most = bound()
    _unmeasured += size
    if _unmeasured < most / 16:
        return
    _unmeasured = 0.0
    kept = files()
    for part in [f for f in kept if not f.is_kernel and time.time() - f.used > _ABANDONED]:
        part.remove()
    total = sum(f.size for f in kept)
    for entry in [f for f in kept if f.is_kernel and f.path != where / newest]:
        if total <= most * 15 / 16:
            break
        entry.remove()
        total -= entry.size
