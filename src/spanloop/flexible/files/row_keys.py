"""Which node and component each row of the matrices is."""

from __future__ import annotations

import os
import re
import warnings
from typing import Any

import numpy as np

from spanloop.errors import FileError, InputError, SpanloopWarning, listed
from spanloop.flexible.files.file_nodes import FileNodes
from spanloop.flexible.files.formats import calculix
from spanloop.flexible.files.matrix_choice import Chosen
from spanloop.flexible.files.opened_files import OpenedFiles


def aligned(
    files: OpenedFiles, found: dict[str, Chosen], dofs: Any, nodes: FileNodes
) -> tuple[np.ndarray, dict[str, Any]]:
    """Label and component 1 ... 6 (N, 2) of rows, and both matrices with these rows."""
    keyed = {name: x.keys for name, x in found.items() if x.keys is not None}
    if len(keyed) == 2 and dofs is not None:
        raise InputError(
            f"dofs is given, but {found['mass'].file.path} has the nodes of its rows; expected one of both"
        )
    if len(keyed) == 2:
        if np.array_equal(keyed["mass"], keyed["stiffness"]):
            return keyed["mass"], {name: x.matrix for name, x in found.items()}
        keys = np.unique(np.concatenate(list(keyed.values())), axis=0)
        for name, x in found.items():
            _warn_of_missing_rows(x, name, len(keys) - len(keyed[name]))
        return keys, {name: _spread(x.matrix, keyed[name], keys) for name, x in found.items()}
    if keyed:
        has, lacks = (found[name].file.path for name in (*keyed, *(n for n in found if n not in keyed)))
        raise InputError(f"{has} has the nodes of its rows, and {lacks} does not; expected both matrices in one format")
    keys = _keys(files, dofs, nodes, max(x.matrix.shape[0] for x in found.values()))
    matrices = {}
    for name, x in found.items():
        rows = x.matrix.shape[0]
        if rows > len(keys) or (rows < len(keys) and not x.is_open):
            raise FileError(
                f"{x.file.path}: the {name} has {rows} rows, but there are {len(keys)} degrees of freedom "
                f"({len(nodes.labels)} nodes). Try dofs="
            )
        if rows < len(keys) and name == "stiffness":
            x.file.fail(None, f"the stiffness ends with row {rows} of {len(keys)}. Was it cut off?")
        _warn_of_missing_rows(x, name, len(keys) - rows)
        matrix = x.matrix.copy()
        matrix.resize((len(keys), len(keys)))
        matrices[name] = matrix
    return keys, matrices


def _warn_of_missing_rows(chosen: Chosen, name: str, count: int) -> None:
    if count:
        sentence = f"{chosen.file.path}: {count} degrees of freedom have no {name}. Was the file cut off?"
        warnings.warn(sentence, SpanloopWarning, stacklevel=4)


def _spread(matrix: Any, own: np.ndarray, keys: np.ndarray) -> Any:
    """A matrix with the rows `own` in the larger one with the rows `keys`, which are sorted."""
    places = np.searchsorted(keys[:, 0] * 8 + keys[:, 1], own[:, 0] * 8 + own[:, 1])
    entries = matrix.tocoo()
    moved = (entries.data, (places[entries.row], places[entries.col]))
    return type(entries)(moved, shape=(len(keys), len(keys))).tocsr()


def _keys(files: OpenedFiles, dofs: Any, nodes: FileNodes, size: int) -> np.ndarray:
    """Label and component 1 ... 6 (N, 2) of rows, by the argument dofs."""
    if dofs is None and size != 6 * len(nodes.labels):
        raise FileError(
            f"{files.first.path}: the matrices have {size} rows, and {len(nodes.labels)} nodes have "
            f'{6 * len(nodes.labels)} degrees of freedom; expected dofs=, such as "123" for solids'
        )
    if isinstance(dofs, str) and re.fullmatch("[1-6]+", dofs) and list(dofs) != sorted(set(dofs)):
        raise InputError(f"dofs is {dofs!r}; expected components in ascending order, {''.join(sorted(set(dofs)))!r}")
    if dofs is None or (isinstance(dofs, str) and re.fullmatch("[1-6]+", dofs)):
        components = np.array(sorted({int(c) for c in dofs or "123456"}))
        return np.stack([np.repeat(nodes.labels, len(components)), np.tile(components, len(nodes.labels))], axis=1)
    if isinstance(dofs, (str, os.PathLike)):
        return calculix.read_dofs(files.take(dofs, "dofs"))
    try:
        keys = np.array(dofs)
    except ValueError:
        keys = np.zeros(0)
    if keys.ndim != 2 or keys.shape[1] != 2 or keys.dtype.kind not in "iu":
        raise InputError(
            f"dofs has shape {keys.shape} of {keys.dtype}; expected integers (N, 2): node, component 1 to 6"
        )
    pairs, counts = np.unique(keys, axis=0, return_counts=True)
    if (counts > 1).any():
        node, component = pairs[counts > 1][0].tolist()
        raise InputError(f"dofs has component {component} of node {node} twice; expected each row once")
    if keys[:, 1].min() < 0 or keys[:, 1].max() > 6:
        raise InputError(f"dofs has component {keys[:, 1].min()} to {keys[:, 1].max()}; expected 1 to 6, or 0")
    return keys.astype(np.int64)


def places(keys: np.ndarray, nodes: FileNodes, files: OpenedFiles) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Index of each row's node among those that are used, -1 without one, the places of these, and their labels."""
    has_node = keys[:, 1] > 0
    labels, places = np.unique(keys[has_node, 0], return_inverse=True)
    both = np.isin(labels, keys[~has_node, 0])
    if both.any():
        raise FileError(
            f"{files.first.path}: node {labels[both][0]} has component 0, a coordinate without a place, beside "
            "components 1 ... 6. Are components counted from 0? Expected 1 to 6, and numbers of no node for coordinates"
        )
    used = np.searchsorted(nodes.labels, labels)
    there = used < len(nodes.labels)
    there[there] = nodes.labels[used[there]] == labels[there]
    if not there.all():
        missing = labels[~there]
        raise FileError(
            f"{files.first.path}: node{'s' if len(missing) > 1 else ''} {listed(map(str, missing), 8)} of the matrices "
            f"{'are' if len(missing) > 1 else 'is'} not among the {len(nodes.labels)} nodes with positions"
        )
    indices = np.full(len(keys), -1)
    indices[has_node] = places.reshape(-1)
    return indices, used, labels
