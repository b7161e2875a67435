"""Files of finite-element programs, written as their manuals describe them, by code that shares nothing with readers.

A writer takes matrices as NumPy has them, keys (N, 2) with node and component of each row, and gives text or bytes.
"""

from __future__ import annotations

import struct

import numpy as np


def random_symmetric(rng: np.random.Generator, size: int, density: float = 0.2) -> np.ndarray:
    """A sparse symmetric matrix with a positive diagonal, of numbers of many magnitudes."""
    upper = np.triu(rng.normal(size=(size, size)) * 10.0 ** rng.uniform(-8, 8, (size, size)), 1)
    upper[rng.random((size, size)) > density] = 0.0
    return upper + upper.T + np.diag(rng.uniform(1.0, 9.0, size))


def lower_entries(matrix: np.ndarray):
    """Row, column and value of each entry that is not zero, on and below the diagonal, column by column."""
    for j in range(len(matrix)):
        for i in range(j, len(matrix)):
            if matrix[i, j] != 0.0:
                yield i, j, float(matrix[i, j])


# ---- Abaqus


def abaqus_labelled(matrix: np.ndarray, keys: np.ndarray) -> str:
    """*MATRIX OUTPUT, FORMAT=MATRIX INPUT."""
    lines = [f"{keys[i][0]},{keys[i][1]}, {keys[j][0]},{keys[j][1]},{v: .16e}" for i, j, v in lower_entries(matrix)]
    return "**\n** ASSEMBLED MATRIX\n" + "\n".join(lines) + "\n"


def coordinates(matrix: np.ndarray) -> str:
    """*MATRIX OUTPUT, FORMAT=COORDINATE, and CalculiX's .sti and .mas."""
    return "".join(f"{i + 1} {j + 1} {v:.16e}\n" for i, j, v in lower_entries(matrix))


def substructure(stiffness: np.ndarray, mass: np.ndarray, keys: np.ndarray) -> str:
    """*SUBSTRUCTURE MATRIX OUTPUT; keys in groups of one node each."""
    nodes = list(dict.fromkeys(int(k[0]) for k in keys))
    lines = ["**", "** GENERATION OF SUBSTRUCTURE", f"*USER ELEMENT,NODES=  {len(nodes):8d},LINEAR", "** ELEMENT NODES"]
    lines += ["**" + ",".join(f"{n:10d}" for n in nodes[k : k + 8]) + "," for k in range(0, len(nodes), 8)]
    before = None
    for position, node in enumerate(nodes, start=1):
        own = [str(int(k[1])) for k in keys if k[0] == node]
        if own != before:
            lines.append(",".join(own if position == 1 else [str(position), *own]))
        before = own
    for name, matrix in (("STIFFNESS", stiffness), ("MASS", mass)):
        lines.append(f"*MATRIX,TYPE={name}")
        for j in range(len(matrix)):
            column = [f"{x:.16e}" for x in matrix[: j + 1, j]]
            lines += [
                ", ".join(column[k : k + 4]) + ("," if k + 4 >= len(column) else "") for k in range(0, len(column), 4)
            ]
    return "\n".join(lines) + "\n"


def input_nodes(labels: np.ndarray, positions: np.ndarray) -> str:
    """An input file of Abaqus or CalculiX with nodes."""
    rows = [f"{n}, {x!r}, {y!r}, {z!r}" for n, (x, y, z) in zip(labels, positions.tolist(), strict=True)]
    return (
        "*HEADING\nA body\n** nodes\n*NODE, NSET=ALL\n"
        + "\n".join(rows)
        + "\n*ELEMENT, TYPE=C3D8\n1, 1,2,3,4,5,6,7,8\n"
    )


# ---- CalculiX


def dof_file(keys: np.ndarray) -> str:
    return "".join(f"{node}.{component}\n" for node, component in keys)


def frd(labels: np.ndarray, positions: np.ndarray, short: bool = False) -> str:
    """The block of nodes of a result file."""
    width = 5 if short else 10
    head = f"{'    2C':24}{len(labels):12d}{'':37}{0 if short else 1}"
    rows = [f" -1{n:{width}d}" + "".join(f"{x:12.5E}" for x in p) for n, p in zip(labels, positions, strict=True)]
    return "    1C\n    1UUSER\n" + head + "\n" + "\n".join(rows) + "\n -3\n 9999\n"


# ---- Nastran


def op4_text(matrices: dict[str, np.ndarray], sparse: bool = False, wide: bool = False) -> str:
    """OUTPUT4, text; sparse: big strings, one for each entry; wide: integers of 16 characters."""
    width, end = (16, "|I16") if wide else (8, "")
    lines = []
    for name, matrix in matrices.items():
        size = len(matrix)
        lines.append(f"{size:{width}d}{-size if sparse else size:{width}d}{6:8d}{2:8d}{name:8}1P,3E23.16{end}")
        for j in range(size):
            rows = np.flatnonzero(matrix[:, j])
            if sparse:
                lines.append(f"{j + 1:{width}d}{0:{width}d}{4 * len(rows):{width}d}")
                for i in rows:
                    lines += [f"{3:{width}d}{i + 1:{width}d}", f"{matrix[i, j]:23.16E}"]
            elif len(rows):
                values = [f"{x:23.16E}" for x in matrix[rows[0] : rows[-1] + 1, j]]
                lines.append(f"{j + 1:{width}d}{rows[0] + 1:{width}d}{len(values):{width}d}")
                lines += ["".join(values[k : k + 3]) for k in range(0, len(values), 3)]
        lines += [f"{size + 1:{width}d}{1:{width}d}{1:{width}d}", f"{1.0:23.16E}"]
    return "\n".join(lines) + "\n"


def op4_binary(matrices: dict[str, np.ndarray], order: str = "<", integer: str = "i", kind: int = 2) -> bytes:
    """OUTPUT4, binary and dense. integer: "i" of four bytes or "q" of eight; kind: 1 single, 2 double."""
    real = "d" if kind == 2 or integer == "q" else "f"
    words = struct.calcsize(real) // struct.calcsize(integer)
    data = b""

    def record(content: bytes) -> bytes:
        length = struct.pack(order + "i", len(content))
        return length + content + length

    for name, matrix in matrices.items():
        size = len(matrix)
        name_bytes = name.encode().ljust(8)
        if integer == "q":
            name_bytes = name_bytes[:4].ljust(8) + name_bytes[4:].ljust(8)
        data += record(struct.pack(f"{order}4{integer}", size, size, 6, kind) + name_bytes)
        for j in range(size):
            rows = np.flatnonzero(matrix[:, j])
            if len(rows):
                values = matrix[rows[0] : rows[-1] + 1, j]
                head = struct.pack(f"{order}3{integer}", j + 1, rows[0] + 1, words * len(values))
                data += record(head + struct.pack(f"{order}{len(values)}{real}", *values))
        data += record(struct.pack(f"{order}3{integer}", size + 1, 1, words) + struct.pack(order + real, 1.0))
    return data


def dmig(matrices: dict[str, np.ndarray], keys: np.ndarray, form: str = "large") -> str:
    """DMIG cards with one triangle; form: large (16 characters), small (8) or free (commas)."""
    lines = ["$ punched"]
    for name, matrix in matrices.items():
        lines.append(f"DMIG    {name:8}{0:8d}{6:8d}{2:8d}{0:8d}{'':16}{len(matrix):8d}")
        for j in range(len(matrix)):
            entries = [(i, v) for i, jj, v in lower_entries(matrix) if jj == j]
            lines += _dmig_column(name, keys[j], [(keys[i], v) for i, v in entries], form)
    return "\n".join(lines) + "\n"


def _dmig_column(name: str, column: np.ndarray, entries: list, form: str) -> list[str]:
    if form == "large":
        head = f"DMIG*   {name:16}{column[0]:16d}{column[1]:16d}"
        return [head, *(f"*       {k[0]:16d}{k[1]:16d}{f'{v:.9E}'.replace('E', 'D'):>16}" for k, v in entries)]
    if form == "small":
        (first, value), *rest = entries
        head = f"DMIG    {name:8}{column[0]:8d}{column[1]:8d}{'':8}{first[0]:8d}{first[1]:8d}{_short(value):>8}"
        return [head, *(f"        {k[0]:8d}{k[1]:8d}{_short(v):>8}" for k, v in rest)]
    (first, value), *rest = entries
    head = f"DMIG,{name},{column[0]},{column[1]},,{first[0]},{first[1]},{value!r}"
    return [head, *(f",{k[0]},{k[1]},{v!r}" for k, v in rest)]


def _short(value: float) -> str:
    """A number in eight characters as Nastran shortens it: 1.234+5."""
    mantissa, exponent = f"{value:.2E}".split("E")
    return f"{mantissa}{int(exponent):+d}"


def grids(labels: np.ndarray, positions: np.ndarray, form: str) -> str:
    """GRID cards."""
    lines = ["SOL 103", "CEND", "BEGIN BULK", "$ nodes", "PARAM   POST    -1"]
    for n, (x, y, z) in zip(labels, positions.tolist(), strict=True):
        if form == "large":
            lines += [f"GRID*   {n:16d}{'':16}{x:16.9E}{y:16.9E}", f"*       {z:16.9E}"]
        elif form == "small":
            lines.append(f"GRID    {n:8d}{'':8}{x:8.5f}{y:8.5f}{z:8.5f}")
        else:
            lines.append(f"GRID,{n},,{x!r},{y!r},{z!r}")
    return "\n".join([*lines, "ENDDATA"]) + "\n"


# ---- Harwell-Boeing


def harwell_boeing(matrix: np.ndarray) -> str:
    """RSA: the lower triangle."""
    rows, columns, values = (list(x) for x in zip(*lower_entries(matrix), strict=True))
    size = len(matrix)
    pointers = [1 + sum(c < j for c in columns) for j in range(size + 1)]
    parts = []
    for numbers, per_line, form in ((pointers, 8, "10d"), ([r + 1 for r in rows], 8, "10d"), (values, 3, "26.16E")):
        fields = [f"{x:{form}}" for x in numbers]
        parts.append(["".join(fields[k : k + per_line]) for k in range(0, len(fields), per_line)])
    counts = [len(p) for p in parts]
    head = [
        f"{'A matrix of the tests':72}{'KEY':8}",
        "".join(f"{n:14d}" for n in (sum(counts), *counts, 0)),
        f"{'RSA':14}{size:14d}{size:14d}{len(values):14d}{0:14d}",
        f"{'(8I10)':16}{'(8I10)':16}{'(1P,3E26.16)':20}",
    ]
    return "\n".join([*head, *parts[0], *parts[1], *parts[2]]) + "\n"


# ---- SID


def sid(mass: float, modes: int, nodes: dict[int, dict[str, tuple]], terms: dict[str, tuple]) -> str:
    """Expansions are (structure, constant (r, c), slope (r, modes, c) or None)."""
    lines = [f"{len(nodes):5d}{modes:5d}    : No. nodes, No. modes", " part", "   new modal     =", "     refmod"]
    lines += [f"       mass     = {_fortran(mass)}", f"       nelastq     = {modes}"]
    lines += [f"       ielastq ({k:4d}) = Eigen Mode {k} : {k}.5 Hz" for k in range(1, modes + 1)]
    lines += ["     end refmod", "     frame"]
    for label, parts in nodes.items():
        lines += [f"       new node     = {label}", "         rframe     = body ref"]
        for name, expansion in parts.items():
            lines += _expansion(name, modes, *expansion)
        lines.append("       end node")
    lines.append("     end frame")
    for name, expansion in terms.items():
        lines += _expansion(name, modes, *expansion)
    return "\n".join([*lines, "   end modal", " end part"]) + "\n"


def _expansion(name: str, modes: int, structure: int, constant: np.ndarray, slope: np.ndarray | None) -> list[str]:
    sizes = {
        "order": int(slope is not None),
        "nrow": constant.shape[0],
        "ncol": constant.shape[1],
        "nq": modes,
        "nqn": 0,
    }
    lines = [f"         {name}", *(f"           {k:10} = {v}" for k, v in (*sizes.items(), ("structure", structure)))]
    if structure in (1, 2, 3):
        for i, j in zip(*np.nonzero(constant), strict=True):
            if structure == 3 or i >= j:
                lines.append(f"           m0({i + 1:3d},{j + 1:3d})  = {_fortran(constant[i, j])}")
    if slope is not None:
        for i, k, j in zip(*np.nonzero(slope), strict=True):
            lines.append(f"           m1({i + 1:3d},{k + 1:3d},{j + 1:3d})  = {_fortran(slope[i, k, j])}")
    return [*lines, f"         end {name}"]


def _fortran(value: float) -> str:
    return f"{value:.16E}".replace("E", "D")
