"""Standard Input Data (SID): a flexible body in modal coordinates, as text of SIMPACK, FEMBS and others.

The file is a tree of blocks, `name ... end name`. A block of a Taylor expansion has order, nrow, ncol, nq, nqn,
structure (0 zero, 1 diagonal, 2 symmetric, 3 general, 4 unit), and entries m0(i, j), m1(i, k, j) that are not zero:
M(q) = M0 + Σ_k M1[:, k, :] q_k. [Wallrapp1994]
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from spanloop.flexible.files.file_bytes import FileBytes
from spanloop.flexible.files.number_table import real, whole

TERMS = ("mdCM", "J", "Ct", "Cr", "Me", "Gr", "Ge", "Oe", "ksigma", "Ke", "De")
_AT_NODES = ("origin", "phi", "psi", "AP")
_ENTRY = re.compile(r"\s*m([01])\s*\(([\d\s,]+)\)\s*=(.*)\Z", re.IGNORECASE)
_SETTING = re.compile(r"\s*([A-Za-z]\w*)\s*(?:\(\s*(\d{1,9})\s*\))?\s*=(.*)\Z")
_SIZES = ("order", "nrow", "ncol", "nq", "nqn", "structure")


@dataclass(frozen=True, eq=False)
class Expansion:
    """A quantity to first order in the modal coordinates: constant (rows, columns), slope (rows, modes, columns)."""

    constant: np.ndarray
    slope: np.ndarray


@dataclass(frozen=True, eq=False)
class ModalNode:
    """A node: its label; position (3, 1), orientation (3, 3), and motion with the modes, (3, modes), as expansions."""

    label: int
    position: Expansion
    translation: Expansion
    rotation: Expansion
    orientation: Expansion


@dataclass(frozen=True, eq=False)
class ModalData:
    """A flexible body in modal coordinates, as SID files have it; no mass and stiffness of nodes are in it.

    mass; modes: their names; nodes; terms: expansions by SID's names (mdCM, J, Ct, Cr, Me, Gr, Ge, Oe, ksigma, Ke, De);
    source: the file with its digest. In the units of the file.
    """

    mass: float
    modes: tuple[str, ...]
    nodes: tuple[ModalNode, ...]
    terms: dict[str, Expansion]
    source: str

    @property
    def file(self) -> str:
        """The file's path, without its digest."""
        return self.source.rpartition(" (")[0]

    @property
    def stiffening(self) -> bool:
        """Whether the file has geometric stiffness: the slopes of Ct and of the nodes' phi are nothing else."""
        return bool(self.terms["Ct"].slope.any()) or any(node.translation.slope.any() for node in self.nodes)


def read(file: FileBytes) -> ModalData:
    """The body of a SID file."""
    return _Reader(file).body()


class _Reader:
    """The lines of a file, taken one after the other."""

    def __init__(self, file: FileBytes):
        self.file, self.lines, self.line = file, file.lines(), 0

    def take(self) -> str:
        """The next line that is not blank."""
        while self.line < len(self.lines):
            self.line += 1
            if self.lines[self.line - 1].strip():
                return self.lines[self.line - 1].strip()
        self.file.fail(len(self.lines), "the file ends within a block; expected its end")

    def fail(self, sentence: str) -> None:
        self.file.fail(self.line, sentence)

    def body(self) -> ModalData:
        """The whole file: a title, then the part with its modal body."""
        while not re.fullmatch(r"part", self.take(), re.IGNORECASE):
            if self.line > 50:
                self.file.fail(1, "there is no line `part` near the beginning; expected a SID file")
        if not re.match(r"new\s+modal", self.take(), re.IGNORECASE):
            self.fail("expected `new modal` after `part`")
        mass, modes = self._reference()
        nodes: list[ModalNode] = []
        terms: dict[str, Expansion] = {}
        while True:
            word = self.take()
            if re.fullmatch(r"end\s+modal", word, re.IGNORECASE):
                break
            name = next((t for t in TERMS if t.lower() == word.lower()), None)
            if word.lower() == "frame" and not nodes:
                nodes = self._nodes(len(modes))
            elif name is not None and name not in terms:
                terms[name] = self._expansion(name, len(modes))
            else:
                self.fail(f"{word[:40]!r}; expected each of {', '.join(TERMS)} once, or end modal")
        missing = [name for name in ("mdCM", "J", "Ct", "Cr", "Me", "Ke") if name not in terms]
        if missing:
            self.fail(f"{', '.join(missing)} is not in the file; expected it before `end modal`")
        return ModalData(mass, modes, tuple(nodes), terms, f"{self.file.path} (sha256:{self.file.digest})")

    def _reference(self) -> tuple[float, tuple[str, ...]]:
        """Mass and names of the modes."""
        if self.take().lower() != "refmod":
            self.fail("expected `refmod` after `new modal`")
        mass, count, names = None, None, dict[int, str]()
        while not re.fullmatch(r"end\s+refmod", word := self.take(), re.IGNORECASE):
            match = _SETTING.match(word)
            key = match[1].lower() if match else ""
            if match and key == "mass" and mass is None:
                mass = real(self.file, self.line, match[3], "mass")
            elif match and key == "nelastq" and count is None:
                count = whole(self.file, self.line, match[3], "number of modes", least=0, most=10_000)
            elif match and key == "ielastq" and match[2]:
                names[int(match[2])] = match[3].strip().strip("'")
            else:
                self.fail(f"{word[:60]!r}; expected mass, nelastq or ielastq, each once")
        if mass is None or count is None or any(not 1 <= k <= count for k in names):
            self.fail("mass or nelastq is missing in refmod, or ielastq has a number beyond nelastq")
        return float(mass or 0.0), tuple(names.get(k, f"mode {k}") for k in range(1, int(count or 0) + 1))

    def _nodes(self, modes: int) -> list[ModalNode]:
        """The nodes of the block `frame`."""
        found: list[ModalNode] = []
        while not re.fullmatch(r"end\s+frame", word := self.take(), re.IGNORECASE):
            match = re.fullmatch(r"new\s+node\s*=(.*)", word, re.IGNORECASE)
            if not match:
                self.fail(f"{word[:60]!r}; expected `new node = number` or `end frame`")
            label = whole(self.file, self.line, match[1] if match else "", "number of a node")
            parts: dict[str, Expansion] = {}
            while not re.fullmatch(r"end\s+node", word := self.take(), re.IGNORECASE):
                name = next((p for p in _AT_NODES if p.lower() == word.lower()), None)
                if name is not None and name not in parts:
                    parts[name] = self._expansion(name, modes)
                elif not re.match(r"rframe\s*=", word, re.IGNORECASE):
                    self.fail(f"{word[:60]!r}; expected rframe, or each of {', '.join(_AT_NODES)} once")
            if len(parts) < len(_AT_NODES) or label in (node.label for node in found):
                self.fail(f"node {label} is there twice, or one of {', '.join(_AT_NODES)} is missing")
            found.append(ModalNode(label, *(parts[name] for name in _AT_NODES)))
        return found

    def _expansion(self, name: str, modes: int) -> Expansion:
        """The Taylor expansion of a block."""
        begin = self.line
        sizes: dict[str, int] = {}
        entries: list[tuple[int, list[int], float, int]] = []
        while not re.fullmatch(rf"end\s+{name}", word := self.take(), re.IGNORECASE):
            entry, setting = _ENTRY.match(word), _SETTING.match(word)
            if entry:
                places = [whole(self.file, self.line, x, f"index of {name}") for x in entry[2].split(",")]
                entries.append(
                    (int(entry[1]), places, real(self.file, self.line, entry[3], f"entry of {name}"), self.line)
                )
            elif setting and setting[1].lower() in _SIZES and setting[1].lower() not in sizes:
                key = setting[1].lower()
                sizes[key] = whole(self.file, self.line, setting[3], f"{key} of {name}", least=0, most=100_000)
            else:
                self.fail(
                    f"{word[:60]!r}; expected {', '.join(_SIZES)} of {name}, once, entries m0 and m1, or end {name}"
                )
        self._check_sizes(name, sizes, modes, begin)
        shape = sizes["nrow"], sizes["nq"] if sizes["order"] else 0, sizes["ncol"]
        return self._filled(name, sizes["structure"], shape, entries, begin)

    def _check_sizes(self, name: str, sizes: dict[str, int], modes: int, line: int) -> None:
        """Raise FileError for sizes that are missing, do not fit the modes, or are too large for the file."""
        missing = [key for key in _SIZES if key not in sizes]
        if missing:
            self.file.fail(line, f"{name} has no {', '.join(missing)}")
        if sizes["order"] > 1 or sizes["structure"] > 4 or sizes["nqn"]:
            self.file.fail(
                line,
                f"{name} has order {sizes['order']}, structure {sizes['structure']} and nqn {sizes['nqn']}; "
                "expected order 0 or 1, structure 0 to 4, nqn 0",
            )
        if sizes["order"] and sizes["nq"] != modes:
            self.file.fail(line, f"{name} has nq {sizes['nq']}; expected {modes}, the number of modes")
        largest = 9 * (modes + 1)
        if max(sizes["nrow"], sizes["ncol"]) > largest:
            self.file.fail(
                line,
                f"{name} has {sizes['nrow']} rows and {sizes['ncol']} columns; {modes} modes make at most {largest}",
            )

    def _filled(
        self,
        name: str,
        structure: int,
        shape: tuple[int, int, int],
        entries: list[tuple[int, list[int], float, int]],
        line: int,
    ) -> Expansion:
        """The matrices of an expansion from its structure and its entries."""
        rows, modes, columns = shape
        if rows * columns * (modes + 1) * 8 > max(2**20, 1000 * len(self.file.data)):
            self.file.fail(
                line,
                f"{name} has {rows} x {columns} x {modes} entries, too many for a file of {len(self.file.data)} bytes",
            )
        constant, slope = np.zeros((rows, columns)), np.zeros(shape)
        if structure == 4:
            constant = np.eye(rows, columns)
        if structure in (1, 2) and rows != columns:
            self.file.fail(line, f"{name} is diagonal or symmetric, with {rows} rows and {columns} columns")
        seen = set()
        for order, places, value, at in entries:
            limits = (rows, columns) if order == 0 else (rows, modes, columns)
            if len(places) != len(limits) or any(p > n for p, n in zip(places, limits, strict=False)):
                self.file.fail(
                    at,
                    f"m{order}({', '.join(map(str, places))}) of {name}; its sizes are {', '.join(map(str, limits))}",
                )
            key = (order, *places)
            if (
                key in seen
                or (structure in (0, 4) and order == 0)
                or (structure == 1 and order == 0 and places[0] != places[-1])
            ):
                self.file.fail(at, f"an entry of {name} is there twice, or does not fit structure {structure}")
            seen.add(key)
            index = tuple(p - 1 for p in places)
            target = constant if order == 0 else slope
            target[index] = value
            if structure == 2 and (order, *places[::-1]) not in seen:
                target[index[::-1]] = value
        return Expansion(constant, slope)
