"""Writing a file completely or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from pathlib import Path

from spanloop.errors import FileError


def write(path: Path, data: bytes) -> None:
    """The data as a file: first beside it under another name, then put in its place in one step."""
    target = Path(os.path.realpath(path))  # a link stays a link
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        try:
            with open(part, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                shutil.copymode(target, part)
            os.replace(part, target)
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
    except (OSError, ValueError) as error:  # a ValueError comes from a name that no file can have
        reason = getattr(error, "strerror", None) or str(error)
        raise FileError(f"{path}: cannot be written ({reason}); nothing was changed") from None
