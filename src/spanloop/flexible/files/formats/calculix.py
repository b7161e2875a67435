"""CalculiX: matrices of *FREQUENCY, SOLVER=MATRIXSTORAGE (.sti, .mas), their rows (.dof), and nodes of results (.frd).

.sti and .mas have lines of row, column and entry, of one triangle; a line of .dof has node and component of a row, as
in 12.3. [CalculiX CrunchiX manual, *FREQUENCY; CalculiX GraphiX manual, Result Format]
"""

from __future__ import annotations

import re

import numpy as np

from spanloop.flexible.files.file_bytes import FileBytes
from spanloop.flexible.files.file_matrix import FileMatrix, of_indices
from spanloop.flexible.files.file_nodes import FileNodes, nodes
from spanloop.flexible.files.number_table import filled, real, table, whole

_ROW = re.compile(r"\s*(\d{1,10})\.([0-6])\s*\Z")
_PAIR = re.compile(r"\s*(\d{1,10})[\s,]+([0-6])\s*\Z")


def read(file: FileBytes) -> list[FileMatrix]:
    """The matrix of a .sti or .mas file."""
    lines, numbers = filled(file.lines(), "#")
    if not lines:
        file.fail(None, "there are no entries; expected lines of row, column, entry")
    return [of_indices(file, table(file, lines, numbers, "row, column, entry"), numbers)]


def read_dofs(file: FileBytes) -> np.ndarray:
    """Label and component (N, 2) of each row, from lines such as `12.3` or `12 3`."""
    lines, numbers = filled(file.lines(), "#")
    found: dict[tuple[int, int], int] = {}
    for line, number in zip(lines, numbers, strict=True):
        match = _ROW.match(line) or _PAIR.match(line)
        if not match:
            file.fail(int(number), f"{line.strip()[:40]!r}; expected node and component 0 to 6, as 12.3 or 12 3")
        key = int(match[1]), int(match[2])
        if key in found:
            file.fail(int(number), f"component {key[1]} of node {key[0]} is there twice, first in line {found[key]}")
        found[key] = int(number)
    return np.array(list(found), dtype=np.int64).reshape(-1, 2)


def read_nodes(file: FileBytes) -> FileNodes:
    """The nodes of an .frd file with text, short or long; its coordinates have six digits."""
    labels: list[int] = []
    positions: list[list[float]] = []
    numbers: list[int] = []
    lines = file.data.split(b"\n")  # results after the nodes may be binary
    begin = next((k for k, line in enumerate(lines) if re.match(rb" +2C", line)), None)
    if begin is None:
        file.fail(None, "there is no block of nodes (2C); expected an .frd file of CalculiX")
    declared = lines[begin].decode("latin-1")
    form = declared[73:75].strip() or "1"
    if form not in ("0", "1"):
        file.fail(begin + 1, f"the block of nodes has format {form!r}, binary; expected text, as *NODE FILE writes it")
    width = 5 if form == "0" else 10
    for number, raw in enumerate(lines[begin + 1 :], start=begin + 2):
        line = raw.decode("latin-1").rstrip()
        if line.startswith(" -3"):
            break
        if not line.startswith(" -1") or len(line) != 3 + width + 36:
            file.fail(
                number, f"{line[:60]!r}; expected a node of {3 + width + 36} characters, or -3 at the end of the nodes"
            )
        labels.append(whole(file, number, line[3 : 3 + width], "label of a node"))
        fields = [line[3 + width + 12 * k : 3 + width + 12 * (k + 1)] for k in range(3)]
        positions.append([real(file, number, x, f"a coordinate of node {labels[-1]}") for x in fields])
        numbers.append(number)
    else:
        file.fail(len(lines), "the block of nodes does not end; expected -3 after the last node")
    count = declared[24:36].strip()
    if not labels or (count and count != str(len(labels))):
        file.fail(begin + 1, f"the block has {len(labels)} nodes; expected {count or 'some'}")
    return nodes(file, np.array(labels, dtype=np.int64), np.array(positions), np.array(numbers))
