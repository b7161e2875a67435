"""Models to files: save(model, path) by the file's extension."""

from __future__ import annotations

from pathlib import Path

from spanloop.errors import InputError, UnsupportedError, nearest
from spanloop.model.model import Model
from spanloop.model.save.account import Written

FORMATS = {".toml": "TOML", ".urdf": "URDF", ".xml": "MJCF", ".mjcf": "MJCF", ".sdf": "SDF", ".csv": "CSV"}


def save(model: Model, path, force: bool = False) -> Written:
    """Writes the model to a .toml, .urdf, .xml (MJCF), .sdf or .csv file, completely or not at all.

    Only TOML holds everything. What another format cannot hold is named by the error, and nothing is written; with
    `force` the rest is. The answer has the text, what is lost and what is said otherwise.
    """
    from spanloop.model.save.atomic import write

    path = checked_path(path)
    written = written_for(model, path)
    if written.lost and not force:
        raise UnsupportedError(
            f"{path.name}: {FORMATS[path.suffix.lower()]} cannot hold {'; '.join(written.lost)}. "
            "Save as .toml, or write the rest with force"
        )
    write(path, written.text.encode())
    return written


def checked_path(path) -> Path:
    try:
        path = Path(path)
    except TypeError:
        raise InputError(f"path is a {type(path).__name__}; expected text or a pathlib.Path") from None
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path}: the extension is {path.suffix!r}; {nearest(path.suffix.lower(), FORMATS)}")
    return path


def written_for(model: Model, path: Path) -> Written:
    """The model as the text of such a file; nothing is written."""
    try:
        return _dumped(model, FORMATS[path.suffix.lower()])
    except UnsupportedError as error:
        raise UnsupportedError(f"{path.name}: {error}") from None


def _dumped(model: Model, target: str) -> Written:
    match target:
        case "TOML":
            from spanloop.model.save import toml

            return Written(toml.dumps(model))
        case "URDF":
            from spanloop.model.save import urdf

            return urdf.dumps(model)
        case "MJCF":
            from spanloop.model.save import mjcf

            return mjcf.dumps(model)
        case "SDF":
            from spanloop.model.save import sdf

            return sdf.dumps(model)
        case _:
            from spanloop.model.save import dh_csv

            return dh_csv.dumps(model)
