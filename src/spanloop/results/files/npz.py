"""Runs as .npz: the arrays as NumPy stores them, the header as JSON text. Needs nothing beside NumPy."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from pathlib import Path

import numpy as np

from spanloop.errors import FileError
from spanloop.results.files.packing import Arrays, Header, check_format


def dumped(packed: tuple[Header, Arrays], file: str) -> bytes:
    """The file's content."""
    header, arrays = packed
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    out = io.BytesIO()
    np.savez(out, header=text, **arrays)  # type: ignore[arg-type]
    return out.getvalue()


def loaded(path: Path) -> tuple[Header, Arrays]:
    """Header and arrays of a file."""
    try:
        if not zipfile.is_zipfile(path):
            raise FileError(f"{path}: is no .npz file, or not all of one")
        with np.load(path, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
        header = json.loads(arrays.pop("header").tobytes())
    except FileError:
        raise
    except KeyError:
        raise FileError(f"{path}: holds arrays but no run of spanloop") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FileError(f"{path}: cannot be read as .npz ({reason}); is it complete?") from None
    check_format(header, str(path))
    return header, arrays
