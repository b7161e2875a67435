"""The path of a study's store, from the argument `store`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from spanloop.errors import InputError

_ADDRESS = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)::?/")  # "s3://bucket/x", and "s3:/bucket/x" of a pathlib.Path
LONGEST_ENDING = ".part"  # of a file or folder that is made beside the store
_LETTERS = 2  # of a scheme, at least: one is a drive of Windows


def store_path(given: Any) -> Path | None:
    """The folder of the store; None where results stay in memory.

    Raises:
        InputError: it is no path, or an address of another machine.
    """
    if given is None:
        return None
    text = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise InputError(f"study: store is {given!r:.60}; expected the path of a folder, as 'study.zarr'")
    found = _ADDRESS.match(text)
    if found is not None and len(found[1]) >= _LETTERS:
        raise InputError(
            f"study: store is {text!r:.80}, an address; expected the path of a folder of this machine, as "
            "'study.zarr'. Copy the folder to the address when the study is finished"
        )
    path = Path(text)
    if path.name in ("", ".."):
        raise InputError(f"study: store is {text!r:.80}; expected the path of a folder of its own, as 'study.zarr'")
    try:
        path.with_name(f".{path.name}{LONGEST_ENDING}").exists()
    except OSError as error:
        raise InputError(f"study: store is {text!r:.80}: {error.strerror}; give another path") from None
    return path.absolute()  # wherever the process goes later
