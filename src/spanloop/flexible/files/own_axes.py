"""Matrices whose nodes have axes of their own, in common axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from spanloop.errors import listed
from spanloop.flexible.files.file_bytes import FileBytes
from spanloop.flexible.files.file_matrix import sparse


def turned(matrix: Any, keys: np.ndarray, axes: dict[int, np.ndarray], file: FileBytes) -> Any:
    """R A Rᵀ, where R has the rotation of each node that has axes of its own, for displacements and for rotations.

    keys (N, 2): label and component 1 ... 6 of each row; axes: rotations (3, 3) from a node's own axes, by label
    """
    rows = [k for k, label in enumerate(keys[:, 0]) if int(label) in axes]
    if not rows:
        return matrix
    place = {(int(keys[k, 0]), int(keys[k, 1])): k for k in rows}
    blocks = [(label, first) for label in dict.fromkeys(label for label, _ in place) for first in (1, 4)]
    entries: dict[tuple[int, int], float] = {(k, k): 1.0 for k in range(len(keys))}
    for label, first in blocks:
        own = [place.get((label, first + k)) for k in range(3)]
        there = [first + k for k in range(3) if own[k] is not None]
        if 0 < len(there) < 3:
            file.fail(
                None,
                f"node {label} has axes of its own, but only its components {listed(map(str, there))}; "
                "expected all three, because they are turned into common axes",
            )
        if there:
            entries.update({(int(own[i]), int(own[j])): float(axes[label][i, j]) for i in range(3) for j in range(3)})  # type: ignore[arg-type]
    i, j = np.array(list(entries)).T
    rotation = sparse().coo_matrix((list(entries.values()), (i, j)), shape=matrix.shape).tocsr()
    found = rotation @ matrix @ rotation.T
    return (0.5 * (found + found.T)).tocsr()
