"""Nodes of a file: their labels, positions, and the axes of their degrees of freedom."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from spanloop.flexible.files.file_bytes import FileBytes


@dataclass(frozen=True, eq=False)
class FileNodes:
    """Nodes in ascending order of their labels.

    labels (n,), positions (n, 3) in the file's unit; axes: rotation (3, 3) from a node's own axes to those of
    positions, of the labels whose degrees of freedom have axes of their own
    """

    labels: np.ndarray
    positions: np.ndarray
    axes: dict[int, np.ndarray] = field(default_factory=dict)


def nodes(
    file: FileBytes,
    labels: np.ndarray,
    positions: np.ndarray,
    lines: np.ndarray,
    axes: dict[int, np.ndarray] | None = None,
) -> FileNodes:
    """The nodes, sorted. Raises FileError for a label that is there twice with another position."""
    order = np.argsort(labels, kind="stable")
    labels, positions, lines = labels[order], positions[order], lines[order]
    repeats = np.concatenate([[False], labels[1:] == labels[:-1]])
    moved = repeats & np.concatenate([[False], (positions[1:] != positions[:-1]).any(axis=1)])
    if moved.any():
        k = int(np.argmax(moved))
        file.fail(int(lines[k]), f"node {labels[k]} is there twice, first in line {lines[k - 1]}, at another position")
    return FileNodes(labels[~repeats], positions[~repeats], axes or {})
