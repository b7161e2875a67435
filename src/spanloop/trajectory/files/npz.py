"""Sealed .npz files: arrays as NumPy stores them, without compression, so that they are never larger than the file.

The sizes that a file claims are compared with its own before anything is allocated.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping

import numpy as np

from spanloop.trajectory.files.seal import LENGTH, sealed


def dumped(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The content of a sealed .npz file. To other programs the seal is the archive's comment."""
    out = io.BytesIO()
    np.savez(out, **arrays)  # type: ignore[arg-type]
    data = out.getvalue()
    return sealed(data[:-2] + LENGTH.to_bytes(2, "little"))  # the length of the comment is the archive's end


def loaded(data: bytes) -> dict[str, np.ndarray]:
    """The arrays of a file's content, read-only; ValueError if it is no such file, or claims more than it holds."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if any(m.compress_type != zipfile.ZIP_STORED for m in members):
                raise ValueError("it holds compressed arrays; expected plain ones")
            claimed = sum(m.file_size for m in members)
            if claimed > len(data):
                raise ValueError(f"it claims to hold {claimed / 1e9:.3g} GB in {len(data) / 1e9:.3g} GB")
            return {m.filename.removesuffix(".npy"): _array(archive.read(m)) for m in members}
    except Exception as error:  # whatever the libraries raise: the file is not what it should be
        raise ValueError(f"{error}".partition("\n")[0] or type(error).__name__) from None


def _array(data: bytes) -> np.ndarray:
    """The array of a .npy file's content."""
    file = io.BytesIO(data)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("an array is in another version of NumPy's format; expected 1.0")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    claimed = math.prod(shape) * dtype.itemsize
    if dtype.hasobject or min(shape, default=0) < 0 or claimed != len(data) - file.tell():
        raise ValueError(f"an array claims {claimed} bytes of {dtype}; it has {len(data) - file.tell()}")
    if not claimed:
        return np.empty(shape, dtype)
    return np.frombuffer(data, dtype, offset=file.tell()).reshape(shape, order="F" if fortran else "C")
