"""`sl.export`: functions and motions of a model as files that need no Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from spanloop.errors import InputError
from spanloop.kernels.spec import checked_model
from spanloop.model import Model

Writer = Callable[..., Path]


def export(model: Model, functions: str | Path | Sequence[str], path: str | Path | None = None, **options: Any) -> Path:
    """Write functions or a motion of a model as code for other programs; the ending of the file names the form.

    | file | form | options |
    |---|---|---|
    """
    checked_model(model, "export")
    where: Any = functions if path is None else path
    names: Any = () if path is None else functions
    if not isinstance(where, str | Path):
        raise InputError(f"export: the file is {where!r}; expected a name that ends in {_endings()}")
    ending = Path(where).suffix.lower()
    if ending not in _writers():
        raise InputError(f"export: {where} ends in {ending!r}; expected {_endings()}")
    return _writers()[ending](model, (names,) if isinstance(names, str) else tuple(names), Path(where), **options)


def _writers() -> dict[str, Writer]:
    """The function that writes each kind of file: (model, functions, path, **options) -> path."""
    from spanloop.export.c_writer import write_c

    return {".c": write_c}


def _endings() -> str:
    return ", ".join(_writers())
