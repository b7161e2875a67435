"""Nodes of input files of Abaqus and CalculiX: *NODE."""

from __future__ import annotations

import re

import numpy as np

from spanloop.flexible.files.file_bytes import FileBytes
from spanloop.flexible.files.file_nodes import FileNodes, nodes
from spanloop.flexible.files.number_table import real, whole

_MOVED = {
    "*INCLUDE": "is not followed; put what it includes into this file",
    "*SYSTEM": "is not supported; expected nodes in global coordinates",
    "*TRANSFORM": "turns degrees of freedom, which is not supported; expected global axes at every node",
    "*NGEN": "generates nodes, which is not supported; expected all nodes below *NODE",
    "*NCOPY": "generates nodes, which is not supported; expected all nodes below *NODE",
    "*NFILL": "generates nodes, which is not supported; expected all nodes below *NODE",
    "*NMAP": "moves nodes, which is not supported; expected all nodes below *NODE",
    "*IMPERFECTION": "moves nodes, which is not supported; expected all nodes in their places below *NODE",
}
_BETWEEN = {"*NODE", "*INSTANCE"}


def read(file: FileBytes) -> FileNodes:
    """The nodes of all *NODE blocks, in global coordinates."""
    labels: list[int] = []
    positions: list[list[float]] = []
    lines: list[int] = []
    block, goes_on = "", False
    for number, line in enumerate(file.lines(), start=1):
        text = line.strip()
        if not text or text.startswith("**"):
            continue
        if goes_on and text[0].isalpha():  # options of a keyword line that ends with a comma
            _check_options(file, number, block, text)
            goes_on = text.endswith(",")
        elif text.startswith("*"):
            block, goes_on = _block(file, number, text), text.endswith(",")
        elif block == "*NODE":
            label, point = _node(file, number, text)
            labels.append(label)
            positions.append(point)
            lines.append(number)
        elif block == "*INSTANCE":
            file.fail(
                number, "the instance is moved or turned, which is not supported; expected nodes in global coordinates"
            )
    if not labels:
        file.fail(None, "there is no *NODE block with nodes; expected the nodes of the body")
    return nodes(file, np.array(labels, dtype=np.int64), np.array(positions), np.array(lines))


def _block(file: FileBytes, number: int, text: str) -> str:
    """The keyword of a line if data below it matter."""
    keyword, _, options = re.sub(r"^\*\s+", "*", text).partition(",")
    keyword = re.sub(r"\s+", " ", keyword.strip().upper())
    if keyword in _MOVED:
        file.fail(number, f"{keyword} {_MOVED[keyword]}")
    _check_options(file, number, keyword, options)
    return keyword if keyword in _BETWEEN else ""


def _check_options(file: FileBytes, number: int, keyword: str, text: str) -> None:
    """Raise FileError for options of *NODE that say where the nodes are."""
    for option in re.sub(r"\s", "", text.upper()).split(",") if keyword == "*NODE" else []:
        if option.startswith("INPUT=") or (option.startswith("SYSTEM=") and option != "SYSTEM=R"):
            file.fail(number, f"*NODE with {option} is not supported; expected nodes in global coordinates below it")


def _node(file: FileBytes, number: int, text: str) -> tuple[int, list[float]]:
    """The label and position of a line; coordinates that are left out are zero."""
    fields = [x.strip() for x in text.rstrip(",").split(",")]
    if not 2 <= len(fields) <= 7:
        file.fail(number, f"{text[:60]!r}; expected node, x, y, z with commas between them")
    label = whole(file, number, fields[0], "label of a node")
    point = [real(file, number, x or "0.", f"a coordinate of node {label}") for x in fields[1:4]]
    return label, point + [0.0] * (3 - len(point))
