"""Object code kept on disk, one file an entry, so that a kernel starts in milliseconds.

An entry is trusted only if folder and file belong to this user, nobody else may write them, neither is a symbolic
link, and its checksum fits; anything else is ignored and built anew. Writing is atomic, so that several
processes may work at once. Where nothing can be written there is one warning and no cache.

The folder is $SPANLOOP_CACHE, else $XDG_CACHE_HOME/spanloop, else ~/.cache/spanloop; SPANLOOP_CACHE=off turns it off.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
import warnings
from pathlib import Path
from typing import Any

from spanloop.errors import SpanloopWarning

_MAGIC = b"spanloop kernel 1\n"
_warned = False


def folder() -> Path | None:
    """Where entries are kept; None if caching is off."""
    chosen = os.environ.get("SPANLOOP_CACHE")
    if chosen is not None:
        return None if chosen in ("", "off") else Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "spanloop"


def read(key: str) -> tuple[dict[str, Any], bytes] | None:
    """What is known of an entry, and its object code; None if there is no entry that can be trusted."""
    where = folder()
    if where is None or not _is_ours(where):
        return None
    flags = sum(getattr(os, name, 0) for name in ("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
    try:
        handle = os.open(where / key, flags)
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or not _is_private(status):
            os.close(handle)
            return None
        with os.fdopen(handle, "rb") as file:
            return _unpacked(file.read(), key)
    except OSError:
        return None


def write(key: str, facts: dict[str, Any], code: bytes) -> None:
    """Keep an entry; on any failure of the disk warn once and go on."""
    where = folder()
    if where is None:
        return
    try:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_ours(where):
            raise OSError(f"{where} does not belong to this user alone")
        _write_atomically(where, key, _packed(key, facts, code))
    except OSError as problem:
        _warn_once(problem)


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


def _packed(key: str, facts: dict[str, Any], code: bytes) -> bytes:
    head = json.dumps({"key": key, **facts}).encode()
    body = len(head).to_bytes(8, "little") + head + code
    return _MAGIC + hashlib.sha256(body).digest() + body


def _unpacked(data: bytes, key: str) -> tuple[dict[str, Any], bytes] | None:
    start = len(_MAGIC)
    body = data[start + 32 :]
    if data[:start] != _MAGIC or len(body) < 8 or hashlib.sha256(body).digest() != data[start : start + 32]:
        return None
    length = int.from_bytes(body[:8], "little")
    facts = json.loads(body[8 : 8 + length])
    return (facts, body[8 + length :]) if facts.get("key") == key else None


def trusted(where: Path) -> bool:
    """Are entries in this folder used? Only if it belongs to this user, and nobody else may write there."""
    return _is_ours(where)


def _is_ours(where: Path) -> bool:
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


def _warn_once(problem: OSError) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"compiled kernels cannot be kept on disk ({problem}); every process compiles them anew. "
            "Set SPANLOOP_CACHE to a folder of your own, or to 'off'",
            SpanloopWarning,
            stacklevel=2,
        )
