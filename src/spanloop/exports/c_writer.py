"""Writes the C files of sl.export: NAME.c and NAME.h, both or none."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spanloop.errors import FileError
from spanloop.exports.c_names import prefix_of, refuse_system_header
from spanloop.exports.c_source import c_source
from spanloop.model import Model
from spanloop.model.files.file_io import write_file
from spanloop.model.files.own_files import own_content


def write_c(
    model: Model, functions: Sequence[str] | Mapping[str, Any], path: Path, *, name: str | None = None, **options: Any
) -> Path:
    """Write functions and, with step=, a motion of a model as C99; returns the path of the source.

    name: the prefix of all names in C; by default that of the file.
    """
    prefix = prefix_of(path.stem, "the file's name") if name is None else prefix_of(name)
    refuse_system_header(path.stem)
    beside = path.with_suffix(".h")
    if not path.parent.is_dir():
        raise FileError(f"{path}: there is no folder {str(path.parent)!r}; make it first")
    before, _ = own_content(beside), own_content(path)
    made = c_source(model, functions, prefix, file=beside.name, **options)
    write_file(beside, made.header.encode())
    try:
        write_file(path, made.source.encode())
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink() if before is None else beside.write_bytes(before)
        raise
    return path
