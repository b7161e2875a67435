"""Writes the C files of sl.export: NAME.c and NAME.h, both or none."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spanloop.errors import FileError, InputError
from spanloop.exports.c_header import MARK
from spanloop.exports.c_names import prefix_of
from spanloop.exports.c_source import c_source
from spanloop.model import Model
from spanloop.model.files.file_io import write_file


def write_c(
    model: Model, functions: Sequence[str] | Mapping[str, Any], path: Path, *, name: str | None = None, **options: Any
) -> Path:
    """Write functions and, with step=, a motion of a model as C99; returns the path of the source.

    name: the prefix of all names in C; by default that of the file.
    """
    prefix = prefix_of(path.stem, "the file's name") if name is None else prefix_of(name)
    beside = path.with_suffix(".h")
    if not path.parent.is_dir():
        raise FileError(f"{path}: there is no folder {str(path.parent)!r}; make it first")
    before = _own(beside)
    made = c_source(model, functions, prefix, file=beside.name, **options)
    write_file(beside, made.header.encode())
    try:
        write_file(path, made.source.encode())
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink() if before is None else beside.write_bytes(before)
        raise
    return path


def _own(beside: Path) -> bytes | None:
    """What the header holds already; InputError if it is not one of ours. None: there is none."""
    if not beside.exists():
        return None
    try:
        found = beside.read_bytes()
    except OSError as error:
        raise FileError(f"{beside}: cannot be read ({error.strerror}); nothing was changed") from None
    if MARK.encode() not in found[:2000]:
        raise InputError(
            f"export: {beside} is there, and no header of spanloop; it would be overwritten. Choose another file name"
        )
    return found
