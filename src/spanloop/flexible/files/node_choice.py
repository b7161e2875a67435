"""Where the positions of nodes come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.flexible.files.file_nodes import FileNodes
from spanloop.flexible.files.formats import abaqus_nodes, calculix, npz
from spanloop.flexible.files.formats.nastran import bulk_nodes
from spanloop.flexible.files.opened_files import OpenedFiles

NODES = {
    ".bdf": bulk_nodes.read,
    ".nas": bulk_nodes.read,
    ".dat": bulk_nodes.read,
    ".blk": bulk_nodes.read,
    ".asm": bulk_nodes.read,
    ".pch": bulk_nodes.read,
    ".inp": abaqus_nodes.read,
    ".frd": calculix.read_nodes,
}


def chosen_nodes(files: OpenedFiles, nodes: Any, own: FileNodes | None) -> FileNodes:
    """The nodes of a file, of a dictionary, or of the matrices' file."""
    if nodes is None and own is None:
        raise InputError(f"load needs nodes: {files.first.path} has no positions; expected a .bdf, .inp or .frd file")
    if isinstance(nodes, Mapping):
        return _given(nodes)
    if nodes is None:
        assert own is not None
        return own
    file = files.take(nodes, "nodes")
    if file.extension == ".npz":
        return npz.read(file)[1]
    if file.extension not in NODES:
        raise InputError(
            f"{file.path}: the extension is {file.extension!r}; {nearest(file.extension, (*NODES, '.npz'))}"
        )
    return NODES[file.extension](file)


def _given(nodes: Mapping[int, Any]) -> FileNodes:
    """Nodes of a dictionary."""
    try:
        labels = np.array([int(label) for label in nodes], dtype=np.int64)
        positions = np.array([np.asarray(nodes[label], dtype=float) for label in nodes], dtype=float)
    except (TypeError, ValueError, OverflowError):
        labels, positions = np.zeros(0, dtype=np.int64), np.zeros(0)
    if positions.ndim != 2 or positions.shape[1] != 3 or not np.isfinite(positions).all():
        raise InputError("nodes is a dictionary without finite positions; expected {number: (x, y, z), ...}")
    if len(np.unique(labels)) < len(labels) or (labels != np.array(list(nodes), dtype=float)).any():
        raise InputError("nodes is a dictionary whose keys are not whole numbers, each once; expected numbers of nodes")
    order = np.argsort(labels)
    return FileNodes(labels[order], positions[order])
