"""Models in files: load and save choose the format by the file's extension."""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from spanloop.errors import FileError, InputError, SpanloopWarning, UnsupportedError, listed
from spanloop.model.files.loss_report import Written
from spanloop.model.flexible_bodies.pieces import flexible_bodies
from spanloop.model.model import Model

if TYPE_CHECKING:
    from spanloop.flexible.recipe import Recipe
    from spanloop.model.files.mesh_paths import Folders

_MESH = (
    "a mesh is the shape of one body, not a mechanism; load the file that names it (.urdf, .xml, .sdf), or describe "
)
_MESH += "bodies and joints with sl.Builder, which takes meshes as geometry"
NOT_READ = {
    **dict.fromkeys((".stl", ".obj", ".dae", ".ply", ".glb", ".gltf", ".off", ".msh"), _MESH),
    **dict.fromkeys(
        (".step", ".stp", ".iges", ".igs"), "CAD files are not read; export URDF, MJCF or SDF from CAD first"
    ),
    ".xacro": "xacro is not read; expand it first (xacro robot.xacro > robot.urdf)",
    ".mjb": "a compiled MuJoCo model is not read; save it as MJCF first (mujoco.mj_saveLastXML)",
}
FORMATS = {".toml": "TOML", ".urdf": "URDF", ".xml": "MJCF", ".mjcf": "MJCF", ".sdf": "SDF", ".csv": "CSV"}


@dataclass(frozen=True)
class Options:
    """What the caller of load asks for."""

    base: str | None
    folders: Folders
    repair: bool
    contacts: bool | str = False


def load(
    path: str | os.PathLike[str],
    base: str | None = None,
    loops: str | os.PathLike[str] | None = None,
    *,
    root: str | os.PathLike[str] | None = None,
    repair: bool = False,
    contacts: bool | str = False,
    flexible: Mapping[str, Recipe] | None = None,
) -> Model:
    """Return the model in a .urdf, .xml or .mjcf (MJCF), .sdf or .world, .toml, or .csv (Denavit-Hartenberg) file.

    base: how the root link of a URDF or SDF stands on the world, "fixed" or "free". By default it is fixed for a URDF,
        and as the file describes it for an SDF; files of the other formats always describe it.
    loops: a .toml file with [[loop]] and [[coupling]] tables, which close the loops of a URDF
    root: a folder from which includes and meshes may be read too, for files that name them by `..`, by links or in
        other packages. By default nothing is read outside the file's own folder and package.
    repair: replace inertias that no body can have (negative or zero principal moments, one above the sum of the others,
        no mass) by the nearest ones that a body has; a note for each body has both. By default they stay as written.
    contacts: of an MJCF or SDF, whether the pairs of shapes that collide there become contacts (64 at most); "ground":
        those with a shape that is fixed to the world. By default a note has their number. A TOML's are always read.
    flexible: bodies that become flexible, {"upper": sl.flexible.beam(...)}, as model.with_flexible makes them

    `model.notes` lists what the loader changed or found suspect. Suspect inertias, Coulomb friction, and parts that are
    left out although they act on the motion also give one SpanloopWarning each.

    Raises FileError, with file and line, for a file that cannot be read; UnsupportedError for content that a model
    cannot hold; ModelError for parts that form no mechanism. docs/files.md lists what each format can hold.

    >>> written = sl.zoo.puma().without_losses().save("arm.urdf")
    >>> sl.load("arm.urdf").nv
    6
    """
    from spanloop.model.files.contact_pairs import check_choice
    from spanloop.model.files.file_io import checked_path, read_file
    from spanloop.model.files.mesh_paths import Folders
    from spanloop.model.inertia_check import check_inertias

    path, contacts = checked_path(path), check_choice(contacts)
    extension = path.suffix.lower()
    if extension in NOT_READ:
        raise UnsupportedError(f"{path.name}: {NOT_READ[extension]}")
    if path.is_dir():
        inside = sorted(x.name for x in path.iterdir() if x.suffix.lower() in READERS and x.is_file())
        files = f". Files in it that can be read: {listed(inside, 6)}" if inside else ""
        raise FileError(f"{path}: is a folder; expected a file{files}")
    if extension not in READERS:
        raise InputError(f"{path.name}: the extension is {extension!r}; {_formats(extension, READERS)}")
    options = Options(base, Folders.of(path.parent, root), repair, contacts)
    model = READERS[extension](read_file(path), path, options)
    if loops is not None:
        from spanloop.model.files.toml.reader import with_loops_of

        model = with_loops_of(model, checked_path(loops))
    if flexible is not None:
        model = _with_beams(model, flexible)
    if repair:
        from spanloop.model.files.inertia_repair import repaired

        model, changes = repaired(model)
        model = replace(model, notes=model.notes + changes)
    suspect = check_inertias(model, strict=False)
    _warn(suspect, model, path.name)
    if extension == ".toml" or not suspect:
        return model  # our own format is read as written, notes too
    return replace(model, notes=model.notes + suspect)


def _with_beams(model: Model, flexible: Mapping[str, Recipe]) -> Model:
    if not isinstance(flexible, Mapping):
        raise InputError(f"load: flexible is {flexible!r}; expected a beam by body, {{'upper': sl.flexible.beam(...)}}")
    for body, beam in flexible.items():
        model = model.with_flexible(body, beam)
    return model


def save(model: Model, path: str | os.PathLike[str], *, force: bool = False) -> Written:
    """Write the model to a .toml, .urdf, .xml or .mjcf (MJCF), .sdf or .csv file, completely or not at all.

    Only TOML holds everything. If the format cannot hold a part, UnsupportedError lists what would be lost, and nothing
    is written; force: write the rest.

    Returns the text (`text`), what it lacks (`lost`) and what it represents in another way (`remarks`).
    """
    from spanloop.model.files.file_io import write_file

    path = save_path(path)
    written = written_for(model, path)
    if written.lost and not force:
        raise UnsupportedError(
            f"{path.name}: {FORMATS[path.suffix.lower()]} cannot hold {'; '.join(written.lost)}. "
            "Save as .toml, or write the rest with force"
        )
    for name, data in written.beside.items():
        write_file(path.with_name(name), data)
    write_file(path, written.text.encode())
    return written


def save_path(path: str | os.PathLike[str]) -> Path:
    """A path whose extension names a format."""
    from spanloop.model.files.file_io import checked_path

    path = checked_path(path)
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path}: the extension is {path.suffix!r}; {_formats(path.suffix.lower(), FORMATS)}")
    return path


def _formats(extension: str, known: Iterable[str]) -> str:
    """A clause that offers the extension of which this is a slip, or lists all."""
    alike = difflib.get_close_matches(extension, list(known), n=1, cutoff=0.75)
    return f"did you mean {alike[0]!r}?" if alike else f"expected {', '.join(known)}"


def written_for(model: Model, path: Path) -> Written:
    """The model as the text of such a file, which is not written."""
    try:
        return _written(model, FORMATS[path.suffix.lower()], path.stem)
    except UnsupportedError as error:
        raise UnsupportedError(f"{path.name}: {error}") from None


def _written(model: Model, target: str, stem: str) -> Written:
    bending = flexible_bodies(model.bodies, model.joints) if target != "TOML" else {}
    if bending:
        rigid = _written(model.rigid(*bending), target, stem)
        lost = f"that bodies are flexible: {listed(map(repr, bending), 3)}"
        return replace(rigid, lost=(lost, *rigid.lost))
    match target:
        case "TOML":
            from spanloop.model.files.toml import writer as toml_writer

            return toml_writer.written(model, stem)
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


def _urdf(data: bytes, path: Path, options: Options) -> Model:
    from spanloop.model.files.urdf.reader import loads

    _check_contacts(path, options.contacts, "model.with_ground() makes contacts of its collision shapes")
    return loads(data, path.name, "fixed" if options.base is None else options.base, options.folders, options.repair)


def _sdf(data: bytes, path: Path, options: Options) -> Model:
    from spanloop.model.files.sdf.reader import loads

    return loads(data, path.name, options.base, options.folders, options.repair, options.contacts)


def _mjcf(data: bytes, path: Path, options: Options) -> Model:
    from spanloop.model.files.mjcf.reader import loads

    _check_base(path, options.base)
    return loads(data, path.name, options.folders, options.contacts)


def _toml(data: bytes, path: Path, options: Options) -> Model:
    from spanloop.model.files.load_notes import LoadNotes
    from spanloop.model.files.mesh_paths import located
    from spanloop.model.files.toml.reader import loads

    _check_base(path, options.base)
    model = loads(data, path.name, path.parent)
    if not any(g.file for b in model.bodies for g in b.geometry):
        return model
    return replace(model, bodies=tuple(located(model.bodies, options.folders, LoadNotes())))


def _csv(data: bytes, path: Path, options: Options) -> Model:
    from spanloop.model.files.dh.reader import loads

    _check_contacts(path, options.contacts, "model.with_contact adds them")
    _check_base(path, options.base)
    return loads(data, path.name)


READERS: dict[str, Callable[[bytes, Path, Options], Model]] = {
    ".urdf": _urdf,
    ".xml": _mjcf,
    ".mjcf": _mjcf,
    ".sdf": _sdf,
    ".world": _sdf,
    ".toml": _toml,
    ".csv": _csv,
}


def _check_base(path: Path, base: str | None) -> None:
    """Only URDF and SDF files leave the base open."""
    if base not in (None, "fixed"):
        raise InputError(
            f"{path.name}: base={base!r} is for URDF files; a {path.suffix} file describes itself how its "
            "bodies stand on the world"
        )


def _check_contacts(path: Path, contacts: bool | str, advice: str) -> None:
    """Only MJCF and SDF files describe what collides."""
    if contacts:
        raise InputError(
            f"{path.name}: contacts={contacts!r}, but {FORMATS[path.suffix.lower()]} describes none; {advice}"
        )


def _warn(suspect: tuple[str, ...], model: Model, file: str) -> None:
    from spanloop.model.files.load_notes import ACTS, INVALID, REPAIRED

    told = [tuple(n for n in model.notes if n.startswith(begin)) for begin in (ACTS, INVALID, REPAIRED)]
    for notes in (*told, suspect):
        if notes:
            rest = f" ({len(notes) - 1} more in model.notes)" if len(notes) > 1 else ""
            warnings.warn(f"{file}: {notes[0]}{rest}", SpanloopWarning, stacklevel=3)
    rubbing = [j.name for j in model.joints if any(j.friction)]
    if rubbing:
        found = f"{len(rubbing)} joints have Coulomb friction ({rubbing[0]!r} first)"
        warnings.warn(f"{file}: {found}; it acts in simulation only", SpanloopWarning, stacklevel=3)
