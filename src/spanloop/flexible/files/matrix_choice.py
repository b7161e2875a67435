"""Which matrices of which files are the mass and the stiffness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spanloop.errors import FileError, InputError, UnsupportedError, listed, nearest
from spanloop.flexible.files.file_bytes import FileBytes
from spanloop.flexible.files.file_matrix import FileMatrix
from spanloop.flexible.files.file_nodes import FileNodes
from spanloop.flexible.files.formats import abaqus_matrix, calculix, harwell_boeing, matrix_market, npz
from spanloop.flexible.files.formats.nastran import dmig, op4
from spanloop.flexible.files.opened_files import OpenedFiles, PathLike

MATRICES = {
    ".op4": op4.read,
    ".pch": dmig.read,
    ".bdf": dmig.read,
    ".dmig": dmig.read,
    ".mtx": abaqus_matrix.read,
    ".mm": matrix_market.read,
    ".sti": calculix.read,
    ".mas": calculix.read,
    ".hb": harwell_boeing.read,
    ".rsa": harwell_boeing.read,
    ".rua": harwell_boeing.read,
}
_BEGINNINGS = {"mass": "M", "stiffness": "K"}  # of the names of matrices
_WORDS = {"mass": "MASS", "stiffness": "STIFFNESS"}


@dataclass(frozen=True, eq=False)
class Chosen:
    """A matrix (N, N), SciPy sparse, the keys of its rows, and the file that it comes from; see `FileMatrix`."""

    file: FileBytes
    matrix: Any
    keys: np.ndarray | None
    is_open: bool


def mass_and_stiffness(
    files: OpenedFiles, path: PathLike | None, paths: Mapping[str, PathLike | None], names: Mapping[str, str | None]
) -> tuple[dict[str, Chosen], FileNodes | None]:
    """Mass and stiffness, and nodes that come with them."""
    if path is not None and None not in paths.values():
        raise InputError("path, mass and stiffness are given; expected path, or mass and stiffness")
    found, nodes, chosen = {}, None, None
    contents: dict[int, tuple[list[FileMatrix], FileNodes | None]] = {}
    for which in ("mass", "stiffness"):
        given = paths[which] if paths[which] is not None else path
        if given is None:
            raise InputError(f"load needs {which}; expected a file with both matrices, or mass= and stiffness=")
        file = files.take(given, which if paths[which] is not None else "path")
        if id(file) not in contents:
            contents[id(file)] = _content(file)
        every, own = contents[id(file)]
        nodes = nodes or own
        one = _choice(file, every, which, names[which], alone=paths[which] is not None)
        if which == "stiffness" and chosen is one:
            raise InputError(
                f"{file.path}: matrix {one.name!r} would be the mass and the stiffness; expected two matrices. Try "
                "mass_name= and stiffness_name=, or mass= and stiffness="
            )
        chosen = one
        found[which] = Chosen(file, one.made(), one.keys, one.is_open)
    return found, nodes


def _content(file: FileBytes) -> tuple[list[FileMatrix], FileNodes | None]:
    """The matrices of a file, and its nodes if it has some."""
    if file.extension == ".npz":
        return npz.read(file)
    if file.extension in (".sid", ".sid_fem"):
        raise UnsupportedError(
            f"{file.path}: a SID file has modes, no mass and stiffness of nodes; use sl.flexible.load_modal and "
            "from_modal"
        )
    if file.extension == ".mtx" and file.begins(matrix_market.BANNER):
        return matrix_market.read(file), None
    if file.extension not in MATRICES:
        known = (*MATRICES, ".npz")
        raise InputError(f"{file.path}: the extension is {file.extension!r}; {nearest(file.extension, known)}")
    return MATRICES[file.extension](file), None


def _choice(file: FileBytes, every: list[FileMatrix], which: str, name: str | None, alone: bool) -> FileMatrix:
    """The mass or the stiffness among the matrices of a file. alone: the file was given for this one."""
    names = [matrix.name for matrix in every]
    if len(set(names)) < len(names):
        file.fail(None, f"a name of a matrix is there twice: {listed(names, 12)}")
    if name is not None:
        match = [matrix for matrix in every if matrix.name.upper() == name.upper()]
        if not match:
            raise InputError(f"{file.path}: there is no matrix {name!r} for {which}_name; {nearest(name, names)}")
    elif alone and len(every) == 1:
        match = every
        other = next(key for key in _BEGINNINGS if key != which)
        if names[0].upper().startswith(_BEGINNINGS[other]):
            file.fail(
                None, f"it has {names[0]!r} alone, by its name the {other}, not the {which}. If not, say {which}_name="
            )
    else:
        match = [m for m in every if m.name.upper() == _WORDS[which]]
        named = [m for m in every if m.name.upper().startswith(_BEGINNINGS[which])]
        match = match or [m for m in named if not m.problem] or named[:1]
    if not match and names == [""]:
        file.fail(
            None, f"it has one matrix, without a name; expected mass= and stiffness=, one file each{_beside(file)}"
        )
    if len(match) != 1:
        begins = f"one whose name begins with {_BEGINNINGS[which]}"
        file.fail(
            None,
            f"{len(match)} matrices can be the {which}; it has {listed(map(repr, names), 12)}, "
            f"expected {begins}. Try {which}_name=, or {which}= another file",
        )
    if match[0].problem:
        raise FileError(f"{file.path}: matrix {match[0].name} cannot be the {which}: {match[0].problem}")
    return match[0]


def _beside(file: FileBytes) -> str:
    """The file of CalculiX's other matrix, if it is there."""
    other = Path(file.path).with_suffix({".sti": ".mas", ".mas": ".sti"}.get(file.extension, ".none"))
    return f". Beside it is {other.name}" if other.is_file() else ""
