"""`sl.flexible.load`: mass, stiffness and nodes of a body from files of finite-element programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from spanloop.flexible.files.file_bytes import read_bytes
from spanloop.flexible.files.formats import sid
from spanloop.flexible.files.matrix_choice import mass_and_stiffness
from spanloop.flexible.files.node_choice import chosen_nodes
from spanloop.flexible.files.opened_files import OpenedFiles, PathLike
from spanloop.flexible.files.own_axes import turned
from spanloop.flexible.files.row_keys import aligned, places
from spanloop.flexible.files.unit_suspicion import warn_of_units
from spanloop.flexible.files.units import Units
from spanloop.flexible.finite_elements import FiniteElements


def load(
    path: PathLike | None = None,
    *,
    mass: PathLike | None = None,
    stiffness: PathLike | None = None,
    nodes: PathLike | Mapping[int, Any] | None = None,
    dofs: PathLike | np.ndarray | None = None,
    mass_name: str | None = None,
    stiffness_name: str | None = None,
    units: str = "m kg s",
) -> FiniteElements:
    """Read the mass, the stiffness and the nodes of a body in finite elements.

    path: a file with both matrices: .op4, .pch (DMIG), .mtx (Abaqus substructure), .npz; or mass and stiffness, one
        file each: these and .sti, .mas (CalculiX), .mtx (Abaqus, Matrix Market), .hb, .rsa, .rua (Harwell-Boeing)
    nodes: the file with the positions: .bdf, .dat, .nas (Nastran GRID), .inp (Abaqus, CalculiX), .frd; or a dictionary
        of positions (3,) by number of the node. An .npz has them
    dofs: node and component 1 ... 6 of each row, where the matrices' file does not have them: a file (.dof of
        CalculiX), an array (N, 2), or components that every node has, such as "123", nodes in ascending order. By
        default all six. Component 0: a coordinate without a place, such as of a mode
    mass_name, stiffness_name: names of the matrices in the file; by default those that begin with M and K
    units: length, mass and time of the files, such as "mm t s"; the result is in m, kg, s

    Raises FileError with file and line where a file is damaged. `source` of the result has the SHA-256 of each file.

    >>> import numpy as np, tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder) / "rod.npz", mass=np.eye(2), stiffness=[[1, -1], [-1, 1]],
    ...              positions=[[0, 0, 0], [1, 0, 0]], dofs=[[0, 0], [1, 0]])
    ...     rod = sl.flexible.load(Path(folder) / "rod.npz")
    >>> rod.stiffness.toarray()
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    scale = Units.of(units)
    files = OpenedFiles()
    names = {"mass": mass_name, "stiffness": stiffness_name}
    found, own_nodes = mass_and_stiffness(files, path, {"mass": mass, "stiffness": stiffness}, names)
    table = chosen_nodes(files, nodes, own_nodes)
    keys, matrices = aligned(files, found, dofs, table)
    indices, used, labels = places(keys, table, files)
    matrices = {name: turned(matrix, keys, table.axes, files.first) for name, matrix in matrices.items()}
    components = np.maximum(keys[:, 1] - 1, 0)  # coordinates without a place keep their unit
    result = FiniteElements(
        mass=scale.mass_matrix(matrices["mass"], components),
        stiffness=scale.stiffness_matrix(matrices["stiffness"], components),
        positions=table.positions[used] * scale.length,
        dofs=np.stack([indices, components], axis=1),
        labels=labels,
        source=files.source(units),
    )
    warn_of_units(result, units)
    return result


def load_modal(path: PathLike) -> sid.ModalData:
    """Read a flexible body in modal coordinates from a SID file (.sid, .SID_FEM), in the units of the file."""
    return sid.read(read_bytes(path, "path"))
