"""A symmetric matrix of a file, from its entries: one triangle, or both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import numpy as np

from spanloop.errors import UnsupportedError
from spanloop.flexible.files.file_bytes import FileBytes
from spanloop.flexible.files.number_table import whole_column

ROUNDING = 1e-6  # of an entry: files in single precision have seven digits
NEGLIGIBLE = 1e-12  # of the largest entry


@dataclass(frozen=True, eq=False)
class FileMatrix:
    """A matrix of a file.

    name: as the file has it; made: gives it as SciPy sparse (N, N), or raises FileError if it is not symmetric;
    problem: why it cannot be mass or stiffness, empty if it can;
    keys (N, 2): label of the node and component 1 ... 6 of each row, 0 for a coordinate without a place; None where the
    file does not have them;
    is_open: N is the largest index that occurs, because the file does not have it
    """

    name: str
    made: Callable[[], Any]
    keys: np.ndarray | None = None
    problem: str = ""
    is_open: bool = False


def sparse() -> Any:
    """SciPy's sparse matrices."""
    try:
        import scipy.sparse
    except ImportError:
        raise UnsupportedError(
            "files of finite elements need scipy, which is not installed; try: pip install scipy"
        ) from None
    return scipy.sparse


def symmetric(
    file: FileBytes,
    rows: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    size: int,
    lines: np.ndarray | None,
    of_halves: bool = True,
    name: str = "",
) -> Any:
    """The symmetric matrix (size, size) of entries, SciPy sparse.

    The entries are the whole matrix or, with of_halves, possibly one triangle: every pair once, in either order.
    lines: where each entry is, for messages; None where there is no such place; name: of the matrix, for messages.
    """
    module = sparse()
    entries = _Entries(file, rows, columns, values, lines, f"{name}: " if name else "")
    entries.check_once(size)
    entries.check_diagonal(size)
    if entries.have_mirror_images(size, of_halves):
        found = module.coo_matrix((values, (rows, columns)), shape=(size, size)).tocsr()
        found = 0.5 * (found + found.T)
    else:
        off = rows != columns
        i, j = np.concatenate([rows, columns[off]]), np.concatenate([columns, rows[off]])
        found = module.coo_matrix((np.concatenate([values, values[off]]), (i, j)), shape=(size, size)).tocsr()
    found.eliminate_zeros()
    return found


@dataclass(frozen=True, eq=False)
class _Entries:
    """Entries of a matrix with what messages need."""

    file: FileBytes
    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    lines: np.ndarray | None
    name: str

    def fail(self, k: int, sentence: str) -> NoReturn:
        """Raise FileError for an entry."""
        line = None if self.lines is None else int(self.lines[k])
        self.file.fail(
            line,
            f"{self.name}entry ({int(self.rows[k]) + 1}, {int(self.columns[k]) + 1}) = {self.values[k]:.9g} {sentence}",
        )

    def check_once(self, size: int) -> None:
        """Raise FileError for an entry that is there twice."""
        place = self.rows * size + self.columns
        order = np.argsort(place, kind="stable")
        twice = place[order][1:] == place[order][:-1]
        if twice.any():
            k = int(np.argmax(twice))
            first, second = int(order[k]), int(order[k + 1])
            at = "" if self.lines is None else f", first in line {int(self.lines[first])}"
            self.fail(second, f"is there twice{at}; expected each entry once")

    def check_diagonal(self, size: int) -> None:
        """Raise FileError for an entry in a row or column without one on the diagonal: no energy is negative."""
        diagonal = np.zeros(size)
        is_on = self.rows == self.columns
        diagonal[self.rows[is_on]] = self.values[is_on]
        least = NEGLIGIBLE * float(np.abs(self.values).max(initial=0.0))
        lacking = (diagonal[self.rows] == 0.0) | (diagonal[self.columns] == 0.0)
        wrong = ~is_on & lacking & (np.abs(self.values) > least)
        if wrong.any():
            k = int(np.argmax(wrong))
            self.fail(
                k, "is in a row or column with zero on the diagonal, as no mass or stiffness is. Was the file cut off?"
            )

    def have_mirror_images(self, size: int, of_halves: bool) -> bool:
        """Whether both triangles are there; raises FileError where an entry differs from its mirror image."""
        off = self.rows != self.columns
        if not off.any():
            return False
        forward, backward = self.rows * size + self.columns, self.columns * size + self.rows
        order = np.argsort(forward, kind="stable")
        partner = order[np.minimum(np.searchsorted(forward[order], backward), len(order) - 1)]
        paired = off & (forward[partner] == backward)
        if of_halves and not paired.any():
            return False
        values, other = self.values, self.values[partner]
        least = NEGLIGIBLE * float(np.abs(values).max())
        alone = off & ~paired & (np.abs(values) > least)
        if alone.any():
            wanted = "all of it or one triangle" if of_halves else "both of its triangles"
            self.fail(int(np.argmax(alone)), f"has no mirror image; expected a symmetric matrix, {wanted}")
        unlike = paired & (np.abs(values - other) > ROUNDING * np.maximum(np.abs(values), np.abs(other)) + least)
        if unlike.any():
            k = int(np.argmax(unlike))
            self.fail(k, f"differs from its mirror image, {other[k]:.9g}; expected a symmetric matrix")
        return True


def unusable(name: str, problem: str) -> FileMatrix:
    """A matrix that cannot be mass or stiffness."""
    return FileMatrix(name, lambda: None, problem=problem)


def of_indices(file: FileBytes, found: np.ndarray, lines: np.ndarray, of_halves: bool = True) -> FileMatrix:
    """A matrix of rows (n, 3) of a table: row and column from one, value; its size follows from them."""
    most = max(1000, len(file.data))  # so that a wrong index does not fill the memory
    rows = whole_column(file, found[:, 0], lines, "row", 1, most) - 1
    columns = whole_column(file, found[:, 1], lines, "column", 1, most) - 1
    size = int(max(rows.max(), columns.max())) + 1
    return FileMatrix("", partial(symmetric, file, rows, columns, found[:, 2], size, lines, of_halves), is_open=True)


def of_labelled(
    file: FileBytes,
    name: str,
    entries: tuple[np.ndarray, ...],
    values: np.ndarray,
    lines: np.ndarray,
    of_halves: bool = True,
) -> FileMatrix:
    """A matrix of entries that name node and component of their rows and columns, in the order of nodes.

    entries: label and component of the row, label and component of the column, each (n,) of integers
    """
    row = entries[0] * 8 + entries[1]
    column = entries[2] * 8 + entries[3]
    codes, places = np.unique(np.concatenate([row, column]), return_inverse=True)
    rows, columns = places.reshape(2, -1)
    keys = np.stack([codes // 8, codes % 8], axis=1)
    return FileMatrix(name, partial(symmetric, file, rows, columns, values, len(codes), lines, of_halves), keys)
