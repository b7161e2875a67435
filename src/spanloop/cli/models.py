"""The word that names a mechanism: a file, or one of the zoo."""

from __future__ import annotations

import argparse
import inspect

from spanloop import zoo
from spanloop.errors import InputError, nearest
from spanloop.model import Model
from spanloop.model.load import load

ZOO = "zoo:"


def add_model(parser: argparse.ArgumentParser) -> None:
    """The words that name a mechanism."""
    told = "a .urdf, .xml (MJCF), .sdf, .toml or .csv file, or zoo:NAME (zoo:puma, zoo:chain:6)"
    parser.add_argument("file", metavar="MODEL", help=told)
    parser.add_argument("--base", choices=("fixed", "free"), help="how a URDF's root link stands on the world (fixed)")


def model_of(file: str, base: str | None) -> Model:
    """The model that a word names: a path, or zoo:NAME, or zoo:NAME:NUMBER for those of any size."""
    if not file.startswith(ZOO):
        return load(file, base)
    if base is not None:
        raise InputError(f"{file}: --base is for URDF files; a mechanism of the zoo has its own")
    name, _, size = file.removeprefix(ZOO).partition(":")
    if name not in zoo.names():
        raise InputError(f"the zoo has no {name!r}; {nearest(name, zoo.names())}")
    return getattr(zoo, name)(*_size(name, size))


def _size(name: str, size: str) -> tuple[int, ...]:
    """The number after the name: how many bodies, or the seed of a random model."""
    parameters = list(inspect.signature(getattr(zoo, name)).parameters.values())
    if not size:
        if parameters and parameters[0].default is inspect.Parameter.empty:
            raise InputError(f"zoo:{name} needs a number ({parameters[0].name}); try zoo:{name}:6")
        return ()
    if not parameters or parameters[0].kind is inspect.Parameter.KEYWORD_ONLY:
        raise InputError(f"zoo:{name} takes no number; try zoo:{name}")
    if not size.isdecimal() or len(size) > 6:
        raise InputError(f"zoo:{name}:{size}: {size!r} is not a whole number of at most six digits; try zoo:{name}:6")
    return (int(size),)
