"""Files to models: load(path) by the file's extension."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

from spanloop.errors import InputError, SpanloopWarning, UnsupportedError, nearest
from spanloop.model.files.loss_report import Written
from spanloop.model.model import Model

NOT_READ = {
    ".xacro": "xacro is not read; expand it first (xacro robot.xacro > robot.urdf)",
    ".mjb": "a compiled MuJoCo model is not read; save it as MJCF first (mujoco.mj_saveLastXML)",
}


def load(path, base: str | None = None, loops=None) -> Model:
    """The model in a .urdf, .xml (MJCF), .sdf or .toml file, or in a .csv file with a Denavit-Hartenberg table.

    base: how the root link of a URDF or SDF stands on the world, "fixed" or "free"; None is fixed for a URDF, and
    what the file says for an SDF. The other formats always say it themselves.
    loops: a .toml file with the [[loop]] and [[coupling]] tables to close a URDF's loops with.

    What the loader changed or found suspect is in the model's notes; suspect inertias, Coulomb friction and what
    was left out though it acts on the motion also give one warning each.
    """
    from spanloop.model.files.file_io import checked_path, read
    from spanloop.model.inertia_check import check_inertias

    path = checked_path(path)
    extension = path.suffix.lower()
    if extension in NOT_READ:
        raise UnsupportedError(f"{path.name}: {NOT_READ[extension]}")
    if extension not in READERS:
        raise InputError(f"{path.name}: the extension is {extension!r}; {nearest(extension, EXTENSIONS)}")
    data = read(path)
    model = READERS[extension](data, path, base)
    if loops is not None:
        from spanloop.model.files.toml.reader import closed

        model = closed(model, checked_path(loops))
    suspect = check_inertias(model, strict=False)
    _warn(suspect, model, path.name)
    if extension == ".toml" or not suspect:
        return model  # our own format is read as written, notes too
    return replace(model, notes=model.notes + suspect)


def _urdf(data: bytes, path: Path, base: str | None) -> Model:
    from spanloop.model.files.urdf.reader import loads

    return loads(data, path.name, "fixed" if base is None else base, path.parent)


def _sdf(data: bytes, path: Path, base: str | None) -> Model:
    from spanloop.model.files.sdf.reader import loads

    return loads(data, path.name, base, path.parent)


def _mjcf(data: bytes, path: Path, base: str | None) -> Model:
    from spanloop.model.files.mjcf.reader import loads

    _has_own_base(path, base)
    return loads(data, path.name, path.parent)


def _toml(data: bytes, path: Path, base: str | None) -> Model:
    from spanloop.model.files.toml.reader import loads

    _has_own_base(path, base)
    return loads(data, path.name)


def _csv(data: bytes, path: Path, base: str | None) -> Model:
    from spanloop.model.files.dh.reader import loads

    _has_own_base(path, base)
    return loads(data, path.name)


READERS = {
    ".urdf": _urdf,
    ".xml": _mjcf,
    ".mjcf": _mjcf,
    ".sdf": _sdf,
    ".world": _sdf,
    ".toml": _toml,
    ".csv": _csv,
}

EXTENSIONS = tuple(READERS)


def _has_own_base(path: Path, base: str | None) -> None:
    if base not in (None, "fixed"):
        raise InputError(
            f"{path.name}: base={base!r} is for URDF files; a {path.suffix} file says itself how its bodies stand on "
            "the world"
        )


def _warn(suspect: tuple[str, ...], model: Model, file: str) -> None:
    from spanloop.model.files.load_notes import ACTS

    missing = [n for n in model.notes if n.startswith(ACTS)]
    for notes in (missing, suspect):
        if notes:
            rest = f" ({len(notes) - 1} more in model.notes)" if len(notes) > 1 else ""
            warnings.warn(f"{file}: {notes[0]}{rest}", SpanloopWarning, stacklevel=3)
    rubbing = [j.name for j in model.joints if any(j.friction)]
    if rubbing:
        found = f"{len(rubbing)} joints have Coulomb friction ({rubbing[0]!r} first)"
        warnings.warn(f"{file}: {found}; it acts in simulation only", SpanloopWarning, stacklevel=3)


# ---- Models to files: save(model, path) by the file's extension.


FORMATS = {".toml": "TOML", ".urdf": "URDF", ".xml": "MJCF", ".mjcf": "MJCF", ".sdf": "SDF", ".csv": "CSV"}


def save(model: Model, path, force: bool = False) -> Written:
    """Writes the model to a .toml, .urdf, .xml (MJCF), .sdf or .csv file, completely or not at all.

    Only TOML holds everything. What another format cannot hold is named by the error, and nothing is written; with
    `force` the rest is. The answer has the text, what is lost and what is said otherwise.
    """
    from spanloop.model.files.file_io import write

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
            from spanloop.model.files.toml import writer as toml_writer

            return Written(toml_writer.dumps(model))
        case "URDF":
            from spanloop.model.files.urdf import writer as urdf_writer

            return urdf_writer.dumps(model)
        case "MJCF":
            from spanloop.model.files.mjcf import writer as mjcf_writer

            return mjcf_writer.dumps(model)
        case "SDF":
            from spanloop.model.files.sdf import writer as sdf_writer

            return sdf_writer.dumps(model)
        case _:
            from spanloop.model.files.dh import writer as dh_writer

            return dh_writer.dumps(model)
