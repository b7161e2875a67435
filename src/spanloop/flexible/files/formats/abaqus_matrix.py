"""Abaqus .mtx: global matrices of *MATRIX GENERATE and matrices of substructures.

| request | lines |
|---|---|
| *MATRIX OUTPUT, FORMAT=MATRIX INPUT | node, degree of freedom, node, degree of freedom, entry |
| *MATRIX OUTPUT, FORMAT=COORDINATE | row, column, entry |
| *SUBSTRUCTURE MATRIX OUTPUT, OUTPUT FILE=USER DEFINED | *USER ELEMENT, *MATRIX |

*USER ELEMENT has its nodes as comments, and its degrees of freedom; *MATRIX has columns from the first row to the
diagonal. Symmetric matrices have one triangle or both. CalculiX writes substructures in the same way.
[Abaqus Keywords Guide: *MATRIX INPUT, *MATRIX OUTPUT, *USER ELEMENT, *MATRIX]
"""

from __future__ import annotations

import re
from functools import partial

import numpy as np

from spanloop.flexible.files.file_bytes import FileBytes
from spanloop.flexible.files.file_matrix import FileMatrix, of_indices, of_labelled, sparse
from spanloop.flexible.files.number_table import filled, real, table, whole, whole_column

_ENTRY = "node of the row, its degree of freedom, node of the column, its degree of freedom, entry"
_LARGEST_LABEL = 2**31


def read(file: FileBytes) -> list[FileMatrix]:
    """The matrices of the file."""
    lines = file.lines()
    if any(line.lstrip().upper().startswith(("*USER ELEMENT", "*USERELEMENT")) for line in lines):
        return _Substructure(file, lines).matrices()
    rows, numbers = filled(lines, "*")
    if not rows:
        file.fail(
            len(lines),
            "there are no entries; expected lines of node, degree of freedom, node, degree of freedom, entry",
        )
    if len(rows[0].replace(",", " ").split()) == 3:
        return [of_indices(file, table(file, rows, numbers, "row, column, entry"), numbers)]
    return [_labelled(file, table(file, rows, numbers, _ENTRY), numbers)]


def _labelled(file: FileBytes, found: np.ndarray, numbers: np.ndarray) -> FileMatrix:
    """The matrix of lines that name nodes and degrees of freedom."""
    names = _ENTRY.split(", ")
    internal = (found[:, 0] < 1) | (found[:, 2] < 1)
    if internal.any():
        k = int(np.argmax(internal))
        file.fail(int(numbers[k]), "an internal node, such as of hybrid elements or multipliers; they cannot be read")
    bounds = (_LARGEST_LABEL, 6, _LARGEST_LABEL, 6)
    entries = tuple(whole_column(file, found[:, k], numbers, names[k], 1, bounds[k]) for k in range(4))
    return of_labelled(file, "", entries, found[:, 4], numbers)


class _Substructure:
    """The parts of a substructure's file: keyword lines with what follows them."""

    def __init__(self, file: FileBytes, lines: list[str]):
        self.file, self.lines = file, lines
        self.starts = [k for k, line in enumerate(lines) if re.match(r"\s*\*[^*]", line)]

    def matrices(self) -> list[FileMatrix]:
        """Each *MATRIX with the rows that *USER ELEMENT has declared."""
        elements = [k for k in self.starts if self._keyword(k).startswith("*USERELEMENT")]
        if len(elements) > 1:
            self.file.fail(
                elements[1] + 1, "a second *USER ELEMENT; expected one substructure, not the matrices of elements"
            )
        keys = self._keys(elements[0])
        found = []
        for k in self.starts:
            kind = re.match(r"\*MATRIX,TYPE=(\w+)\Z", self._keyword(k))
            if kind:
                found.append(self._matrix(k, kind[1], keys))
        return found

    def _keyword(self, k: int) -> str:
        return re.sub(r"\s", "", self.lines[k]).upper()

    def _end(self, k: int) -> int:
        """Where the part of a keyword line ends."""
        return next((s for s in self.starts if s > k), len(self.lines))

    def _keys(self, k: int) -> np.ndarray:
        """Label and component (N, 2) of each row."""
        count = re.search(r"NODES=(\d{1,9})(,|\Z)", self._keyword(k))
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

    def _matrix(self, k: int, kind: str, keys: np.ndarray) -> FileMatrix:
        """The matrix below a keyword line: its columns, each from the first row to the diagonal."""
        values: list[float] = []
        for n, line in enumerate(self.lines[k + 1 : self._end(k)], start=k + 2):
            if not line.lstrip().startswith("**"):
                values += [real(self.file, n, x, f"an entry of {kind}") for x in line.replace(",", " ").split()]
        size = len(keys)
        if len(values) != size * (size + 1) // 2:
            expected = f"{size * (size + 1) // 2} of the upper triangle of {size} degrees of freedom"
            self.file.fail(self._end(k), f"{kind} has {len(values)} entries; expected {expected}")
        full = np.zeros((size, size))
        columns, rows = np.tril_indices(size)
        full[rows, columns] = full[columns, rows] = values
        return FileMatrix(kind, partial(sparse().csr_matrix, full), keys)
