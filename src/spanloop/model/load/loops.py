"""Loops and couplings from a TOML file of their own: load("leg.urdf", loops="leg.toml")."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from spanloop.errors import FileError
from spanloop.model.load import toml
from spanloop.model.load.files import decoded, read
from spanloop.model.load.table import Table
from spanloop.model.model import Model


def closed(model: Model, path: Path) -> Model:
    """The model with the [[loop]] and [[coupling]] tables of a .toml file; `format = 1` may be there and need not."""
    if path.suffix.lower() != ".toml":
        raise FileError(f"{path.name}: the extension is {path.suffix!r}; loops are read from a .toml file")
    return closed_by(model, read(path), path.name)


def closed_by(model: Model, data: bytes | str, file: str) -> Model:
    """The model with the loops and couplings in TOML text; `file` is the name that errors show."""
    text = data if isinstance(data, str) else decoded(data, file)
    top = Table(toml._parsed(text, file), file, "loops")
    top.number("format", 1)
    loops = tuple(map(toml._loop, top.tables("loop")))
    couplings = tuple(map(toml._coupling, top.tables("coupling")))
    top.end()
    if not loops and not couplings:
        raise FileError(f"{file}: there is no [[loop]] and no [[coupling]]; expected one at least")
    return replace(model, loops=(*model.loops, *loops), couplings=(*model.couplings, *couplings))
