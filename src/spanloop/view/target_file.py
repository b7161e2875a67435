"""The file that a picture is written to, checked before anything is drawn."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from spanloop.errors import InputError


def target_file(path: Any, what: str, endings: tuple[str, ...], others: str) -> Path:
    """The path of a new file. Raises InputError if it is no path, has another ending, or its folder is missing.

    what: "a page" or "a video". others: which call writes other kinds of files.
    """
    if not isinstance(path, str | os.PathLike) or isinstance(path, bytes):
        raise InputError(f"the path is {path!r}; expected the name of {what}, as 'run{endings[0]}'")
    where = Path(path)
    if where.suffix.lower() not in endings:
        more = f"; {others}" if others else ""
        raise InputError(f"{path}: {what} ends in {' or '.join(endings)}{more}")
    if not where.parent.is_dir():
        raise InputError(f"{path}: there is no folder {str(where.parent)!r}; make it first")
    return where
