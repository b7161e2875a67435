"""Files of an earlier export are replaced; files that others wrote are not."""

from __future__ import annotations

from pathlib import Path

from spanloop.errors import FileError, InputError

MARK = "written by spanloop"  # in the first lines of our texts, in letters of either case
_HEAD = 4000  # bytes
_SECTION = b"\x08spanloop{"  # of our WebAssembly modules: the custom section that describes them


def own_content(path: Path) -> bytes | None:
    """What a file that will be replaced holds; None: there is none. InputError if another program wrote it."""
    if not path.is_file():
        return None
    try:
        found = path.read_bytes()
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror}); nothing was changed") from None
    own = MARK.encode() in found[:_HEAD].lower() or (found.startswith(b"\0asm") and _SECTION in found)
    if found and not own:
        raise InputError(
            f"export: {path} is there, and spanloop did not write it; it would be overwritten. Choose another file "
            "name, or remove it first"
        )
    return found
