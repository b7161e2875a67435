"""Abaqus .mtx: global matrices of *MATRIX GENERATE and matrices of substructures.

| request | lines |
|---|---|
| *MATRIX OUTPUT, FORMAT=MATRIX INPUT | node, degree of freedom, node, degree of freedom, entry |
| *MATRIX OUTPUT, FORMAT=COORDINATE | row, column, entry |
| *SUBSTRUCTURE MATRIX OUTPUT, OUTPUT FILE=USER DEFINED | *USER ELEMENT, *MATRIX |

*USER ELEMENT has its nodes as comments, and its degrees of freedom; *MATRIX has columns from the first row to the
diagonal, or with UNSYM all of them. Symmetric matrices have one triangle or both. CalculiX writes substructures in the
same way. Entries may follow a line *MATRIX INPUT, whose SCALE FACTOR multiplies them.
[Abaqus Keywords Guide: *MATRIX INPUT, *MATRIX OUTPUT, *USER ELEMENT, *MATRIX]
"""

from __future__ import annotations

import re
from functools import partial

import numpy as np

from spanloop.flexible.files.file_bytes import FileBytes
from spanloop.flexible.files.file_matrix import FileMatrix, of_indices, of_labelled, sparse, symmetric
from spanloop.flexible.files.number_table import filled, real, table, whole, whole_column

_ENTRY = "node of the row, its degree of freedom, node of the column, its degree of freedom, entry"
_LARGEST_LABEL = 2**31


def read(file: FileBytes) -> list[FileMatrix]:
    """The matrices of the file."""
    lines = file.lines()
    if any(_keyword(line).startswith("*USERELEMENT") for line in lines):
        return _Substructure(file, lines).matrices()
    rows, numbers = filled(lines, "*")
    if not rows:
        file.fail(
            len(lines),
            "there are no entries; expected lines of node, degree of freedom, node, degree of freedom, entry",
        )
    scale, of_halves = _options(file, lines)
    if len(rows[0].replace(",", " ").split()) == 3:
        found = table(file, rows, numbers, "row, column, entry")
    else:
        found = table(file, rows, numbers, _ENTRY)
    found[:, -1] *= scale
    if found.shape[1] == 3:
        return [of_indices(file, found, numbers, of_halves)]
    return [_labelled(file, found, numbers, of_halves)]


def _options(file: FileBytes, lines: list[str]) -> tuple[float, bool]:
    """What *MATRIX INPUT says of the entries below it: the factor of all, and whether they may be one triangle."""
    found = [k for k, line in enumerate(lines) if _keyword(line).startswith("*MATRIXINPUT")]
    if len(found) > 1:
        file.fail(found[1] + 1, "a second *MATRIX INPUT; expected one matrix in a file for mass= or stiffness=")
    scale, of_halves = 1.0, True
    for option in _keyword(lines[found[0]]).split(",")[1:] if found else []:
        key, _, value = option.partition("=")
        if key == "SCALEFACTOR":
            scale = real(file, found[0] + 1, value, "SCALE FACTOR of *MATRIX INPUT")
        elif option == "TYPE=UNSYMMETRIC":
            of_halves = False
        elif key not in ("", "NAME") and option != "TYPE=SYMMETRIC":
            file.fail(found[0] + 1, f"{option[:60]} of *MATRIX INPUT is not supported; expected the entries below it")
    return scale, of_halves


def _keyword(line: str) -> str:
    """A keyword with its options, in capitals and without blanks; empty for other lines."""
    text = line.lstrip()
    return re.sub(r"\s", "", text).upper() if text.startswith("*") and not text.startswith("**") else ""


def _labelled(file: FileBytes, found: np.ndarray, numbers: np.ndarray, of_halves: bool) -> FileMatrix:
    """The matrix of lines that name nodes and degrees of freedom."""
    names = _ENTRY.split(", ")
    internal = (found[:, 0] < 1) | (found[:, 2] < 1)
    if internal.any():
        k = int(np.argmax(internal))
        file.fail(int(numbers[k]), "an internal node, such as of hybrid elements or multipliers; they cannot be read")
    bounds = (_LARGEST_LABEL, 6, _LARGEST_LABEL, 6)
    entries = tuple(whole_column(file, found[:, k], numbers, names[k], 1, bounds[k]) for k in range(4))
    return of_labelled(file, "", entries, found[:, 4], numbers, of_halves)


class _Substructure:
    """The parts of a substructure's file: keyword lines with what follows them."""

    def __init__(self, file: FileBytes, lines: list[str]):
        self.file, self.lines = file, lines
        self.starts = [k for k, line in enumerate(lines) if _keyword(line)]

    def matrices(self) -> list[FileMatrix]:
        """Each *MATRIX with the rows that *USER ELEMENT has declared."""
        elements = [k for k in self.starts if _keyword(self.lines[k]).startswith("*USERELEMENT")]
        if len(elements) > 1:
            self.file.fail(
                elements[1] + 1, "a second *USER ELEMENT; expected one substructure, not the matrices of elements"
            )
        keys = self._keys(elements[0])
        may_be_whole = ",UNSYM" in _keyword(self.lines[elements[0]])
        found = []
        for k in self.starts:
            kind = re.match(r"\*MATRIX,TYPE=(\w+)\Z", _keyword(self.lines[k]))
            if kind:
                found.append(self._matrix(k, kind[1], keys, may_be_whole))
        return found

    def _end(self, k: int) -> int:
        """Where the part of a keyword line ends."""
        return next((s for s in self.starts if s > k), len(self.lines))

    def _keys(self, k: int) -> np.ndarray:
        """Label and component (N, 2) of each row."""
        count = re.search(r"NODES=(\d{1,9})(,|\Z)", _keyword(self.lines[k]))
        part = list(enumerate(self.lines[k + 1 : self._end(k)], start=k + 2))
        nodes = [
            whole(self.file, n, x, "a node of the substructure", most=_LARGEST_LABEL)
            for n, line in part
            if line.lstrip().startswith("**") and re.fullmatch(r"[\s\d,]+", line.strip().lstrip("*"))
            for x in line.strip().lstrip("*").replace(",", " ").split()
        ]
        if not count or not nodes or int(count[1]) != len(nodes):
            declared = count[1] if count else "no"
            self.file.fail(
                k + 1,
                f"{declared} nodes are declared, and {len(nodes)} are listed; expected NODES= and a list below it",
            )
        lists: dict[int, list[int]] = {}  # position among the nodes at which a list of components first applies
        for n, line in part:
            if line.strip() and not line.lstrip().startswith("**"):
                fields = [x for x in line.replace(",", " ").split() if x]
                position = whole(self.file, n, fields.pop(0), "position of a node", most=len(nodes)) if lists else 1
                if position in lists:
                    self.file.fail(n, f"degrees of freedom of node {position} of the substructure are there twice")
                lists[position] = [whole(self.file, n, x, "a degree of freedom", most=6) for x in fields]
        keys, current = [], lists.get(1, [])
        for position, node in enumerate(nodes, start=1):
            current = lists.get(position, current)
            keys += [(node, component) for component in current]
        if not keys or len(set(keys)) < len(keys):
            self.file.fail(k + 1, "the degrees of freedom of the substructure are missing, or one is there twice")
        return np.array(keys, dtype=np.int64)

    def _matrix(self, k: int, kind: str, keys: np.ndarray, may_be_whole: bool) -> FileMatrix:
        """The matrix below a keyword line: its columns, each from the first row to the diagonal, or of UNSYM all of it.

        Of one file with UNSYM Abaqus writes the stiffness whole and the mass to the diagonal.
        """
        values: list[float] = []
        for n, line in enumerate(self.lines[k + 1 : self._end(k)], start=k + 2):
            if not line.lstrip().startswith("**"):
                values += [real(self.file, n, x, f"an entry of {kind}") for x in line.replace(",", " ").split()]
        size = len(keys)
        if may_be_whole and len(values) == size * size:
            whole_columns = np.reshape(values, (size, size))
            columns, rows = np.nonzero(whole_columns)
            entries = whole_columns[columns, rows]
            made = partial(symmetric, self.file, rows, columns, entries, size, None, False, kind)
            return FileMatrix(kind, made, keys)
        if len(values) != size * (size + 1) // 2:
            expected = f"{size * (size + 1) // 2} of the upper triangle of {size} degrees of freedom"
            expected += f", or {size * size} of all of it" if may_be_whole else ""
            self.file.fail(self._end(k), f"{kind} has {len(values)} entries; expected {expected}")
        full = np.zeros((size, size))
        columns, rows = np.tril_indices(size)
        full[rows, columns] = full[columns, rows] = values
        return FileMatrix(kind, partial(sparse().csr_matrix, full), keys)
