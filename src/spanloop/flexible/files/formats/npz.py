"""NumPy .npz with the matrices of a user's own program.

| key | |
|---|---|
| mass, stiffness | (N, N); or sparse: mass_row, mass_column, mass_value, each (k,), with indices from zero; likewise |
| positions | (n_nodes, 3) |
| dofs | (N, 2): index of a node in positions, component 0 ... 5; without it N = 6 n_nodes, in that order |
| labels | (n_nodes,): numbers of the nodes; optional |
"""

from __future__ import annotations

import io
import math
import zipfile
from functools import partial

import numpy as np

from spanloop.errors import SpanloopError, nearest
from spanloop.flexible.files.file_bytes import LARGEST, FileBytes
from spanloop.flexible.files.file_matrix import FileMatrix, symmetric
from spanloop.flexible.files.file_nodes import FileNodes

KEYS = ("mass", "stiffness", "positions", "dofs", "labels") + tuple(
    f"{name}_{part}" for name in ("mass", "stiffness") for part in ("row", "column", "value")
)


def read(file: FileBytes) -> tuple[list[FileMatrix], FileNodes]:
    """Mass and stiffness, with the keys of their rows, and the nodes."""
    arrays = _arrays(file)
    positions = _array(file, arrays, "positions", "f", 2)
    if positions.shape[1] != 3 or not len(positions):
        file.fail(None, f"positions has shape {positions.shape}; expected (n_nodes, 3)")
    labels = _labels(file, arrays, len(positions))
    keys = _keys(file, arrays, labels)
    names = [name for name in ("mass", "stiffness") if name in arrays or f"{name}_value" in arrays]
    order = np.argsort(labels)
    return [_matrix(file, arrays, name, keys) for name in names], FileNodes(labels[order], positions[order])


def _arrays(file: FileBytes) -> dict[str, np.ndarray]:
    """All arrays of the file; sizes are compared with what they take before they are made."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(file.data))
        found = {}
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if name not in KEYS:
                file.fail(None, f"it has an array {name[:60]!r}, which is not known; {nearest(name[:60], KEYS)}")
            if name in found:
                file.fail(None, f"it has array {name} twice")
            if sum(x.file_size for x in archive.infolist()) > LARGEST:
                file.fail(None, f"its arrays take more than {LARGEST // 2**20} MB")
            found[name] = _unpacked(file, name, archive.read(info))
    except SpanloopError:
        raise
    except Exception as error:  # whatever parsers raise
        file.fail(None, f"is damaged ({str(error)[:100]}); expected an .npz that NumPy has written")
    return found


def _unpacked(file: FileBytes, name: str, content: bytes) -> np.ndarray:
    """An array of an .npy file within the archive."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, kind = header(stream)
    if kind.hasobject or math.prod(shape) * kind.itemsize != len(content) - stream.tell():
        file.fail(None, f"array {name} has shape {shape} of {kind}, but {len(content)} bytes; expected numbers")
    stream.seek(0)
    return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))


def _array(file: FileBytes, arrays: dict[str, np.ndarray], name: str, kind: str, dimensions: int) -> np.ndarray:
    """An array of the file as finite doubles ("f") or integers ("i")."""
    if name not in arrays:
        file.fail(None, f"it has no array {name}; there are {', '.join(sorted(arrays)) or 'none'}")
    found = arrays[name]
    if found.dtype.kind not in ("iu" if kind == "i" else "iuf") or found.ndim != dimensions:
        words = "integers" if kind == "i" else "numbers"
        file.fail(None, f"{name} has shape {found.shape} of {found.dtype}; expected {words} in {dimensions} dimensions")
    if not np.isfinite(found).all():
        file.fail(None, f"{name} contains numbers that are not finite")
    return found.astype(np.int64 if kind == "i" else float)


def _labels(file: FileBytes, arrays: dict[str, np.ndarray], count: int) -> np.ndarray:
    if "labels" not in arrays:
        return np.arange(1, count + 1)
    labels = _array(file, arrays, "labels", "i", 1)
    if len(labels) != count or len(np.unique(labels)) < count or labels.min() < 0 or labels.max() >= 2**31:
        file.fail(
            None,
            f"labels has {len(labels)} numbers for {count} nodes; expected a different one, 0 to 2147483647, for each",
        )
    return labels


def _keys(file: FileBytes, arrays: dict[str, np.ndarray], labels: np.ndarray) -> np.ndarray:
    """Label and component 1 ... 6 (N, 2) of each row."""
    if "dofs" not in arrays:
        return np.stack([np.repeat(labels, 6), np.tile(np.arange(1, 7), len(labels))], axis=1)
    dofs = _array(file, arrays, "dofs", "i", 2)
    if dofs.shape[1] != 2 or not len(dofs) or len(np.unique(dofs, axis=0)) < len(dofs):
        file.fail(None, f"dofs has shape {dofs.shape}; expected (N, 2) with a different node and component in each row")
    nodes, components = dofs.T
    if nodes.min() < 0 or nodes.max() >= len(labels) or components.min() < 0 or components.max() > 5:
        file.fail(None, f"dofs has a node beyond 0 ... {len(labels) - 1}, or a component beyond 0 ... 5")
    return np.stack([labels[nodes], components + 1], axis=1)


def _matrix(file: FileBytes, arrays: dict[str, np.ndarray], name: str, keys: np.ndarray) -> FileMatrix:
    """Mass or stiffness, dense or sparse."""
    size = len(keys)
    if name in arrays and any(f"{name}_{part}" in arrays for part in ("row", "column", "value")):
        file.fail(None, f"it has {name}, and parts of a sparse {name}; expected one of both")
    if name in arrays:
        dense = _array(file, arrays, name, "f", 2)
        if dense.shape != (size, size):
            file.fail(None, f"{name} has shape {dense.shape}; expected ({size}, {size}), by dofs and positions")
        rows, columns = np.nonzero(dense)
        values = dense[rows, columns]
    else:
        rows, columns = (_array(file, arrays, f"{name}_{part}", "i", 1) for part in ("row", "column"))
        values = _array(file, arrays, f"{name}_value", "f", 1)
        if not len(rows) == len(columns) == len(values):
            file.fail(
                None,
                f"{name}_row, _column and _value have {len(rows)}, {len(columns)} and {len(values)} numbers",
            )
        if len(rows) and not 0 <= min(rows.min(), columns.min()) <= max(rows.max(), columns.max()) < size:
            file.fail(None, f"{name}_row or {name}_column is beyond 0 ... {size - 1}")
    of_halves = name not in arrays
    return FileMatrix(name, partial(symmetric, file, rows, columns, values, size, None, of_halves, name), keys)
