"""Files to models: load(path) by the file's extension."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

from spanloop.errors import InputError, SpanloopWarning, UnsupportedError, nearest
from spanloop.model.model import Model

EXTENSIONS = (".urdf", ".toml", ".csv")
NOT_READ = {
    ".xacro": "xacro is not read; expand it first (xacro robot.xacro > robot.urdf)",
    ".xml": "MJCF is not read yet; expected .urdf or .toml",
    ".mjcf": "MJCF is not read yet; expected .urdf or .toml",
    ".sdf": "SDF is not read yet; expected .urdf or .toml",
}


def load(path, base: str = "fixed") -> Model:
    """The model in a .urdf or .toml file, or in a .csv file with a Denavit-Hartenberg table.

    base: how the root link of a URDF stands on the world, "fixed" or "free". What the loader changed or found
    suspect is in the model's notes; suspect inertias and Coulomb friction also give one warning each.
    """
    from spanloop.model.load.files import checked_path, read
    from spanloop.model.load.judge import judge

    path = checked_path(path)
    extension = path.suffix.lower()
    if extension in NOT_READ:
        raise UnsupportedError(f"{path.name}: {NOT_READ[extension]}")
    if extension not in EXTENSIONS:
        raise InputError(f"{path.name}: the extension is {extension!r}; {nearest(extension, EXTENSIONS)}")
    data = read(path)
    if extension != ".urdf":
        _has_own_base(path, base)
    model = READERS[extension](data, path, base)
    suspect = judge(model, strict=False)
    _warn(suspect, model, path.name)
    if extension == ".toml" or not suspect:
        return model  # our own format is read as written, notes too
    return replace(model, notes=model.notes + suspect)


def _urdf(data: bytes, path: Path, base: str) -> Model:
    from spanloop.model.load.urdf import loads

    return loads(data, path.name, base, path.parent)


def _toml(data: bytes, path: Path, base: str) -> Model:
    from spanloop.model.load.toml import loads

    return loads(data, path.name)


def _csv(data: bytes, path: Path, base: str) -> Model:
    from spanloop.model.load.dh_csv import loads

    return loads(data, path.name)


READERS = {".urdf": _urdf, ".toml": _toml, ".csv": _csv}


def _has_own_base(path: Path, base: str) -> None:
    if base != "fixed":
        raise InputError(
            f"{path.name}: base={base!r} is for URDF files; a {path.suffix} file says itself how its bodies stand on "
            "the world"
        )


def _warn(suspect: tuple[str, ...], model: Model, file: str) -> None:
    if suspect:
        rest = f" ({len(suspect) - 1} more in model.notes)" if len(suspect) > 1 else ""
        warnings.warn(f"{file}: {suspect[0]}{rest}", SpanloopWarning, stacklevel=3)
    rubbing = [j.name for j in model.joints if any(j.friction)]
    if rubbing:
        found = f"{len(rubbing)} joints have Coulomb friction ({rubbing[0]!r} first)"
        warnings.warn(f"{file}: {found}; it acts in simulation only", SpanloopWarning, stacklevel=3)
