"""Paths of the meshes that a file names. Only the file's own folder or package is searched."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from spanloop.model.files.load_notes import LoadNotes
from spanloop.model.parts import Body

MOST_SEARCHED = 2000  # meshes of one file


def resolve_mesh(filename: str, folder: str | Path) -> tuple[Path | None, str]:
    """Return the mesh's path and an empty note, or None and a note with the reason.

    `package://name/rest` (and SDF's `model://name/rest`) is searched for in the nearest folder above `folder` that is
    called `name` or holds a package `name` (a folder with a package.xml). Any other name is relative to `folder`.
    """
    return _searched(filename, Path(folder).resolve(), {})


def note_missing(bodies: Iterable[Body], folder: Path, notes: LoadNotes) -> None:
    """Note the meshes that are missing."""
    here, packages = folder.resolve(), dict[str, Path | None]()
    files = list(dict.fromkeys(g.file for b in bodies for g in b.geometry if g.shape == "mesh"))
    if len(files) > MOST_SEARCHED:
        notes.add(f"meshes not searched for, the file names more than {MOST_SEARCHED}", repr(files[MOST_SEARCHED]))
    for file in files[:MOST_SEARCHED]:
        note = _searched(file, here, packages)[1]
        if note:
            notes.add("meshes not found", note)


def _searched(filename: str, folder: Path, packages: dict[str, Path | None]) -> tuple[Path | None, str]:
    """packages: the folders of packages found so far, by name."""
    if not filename.startswith(("package://", "model://")):
        if "://" in filename:
            return None, f"mesh {filename!r}: not searched for; expected package://... or a path relative to the file"
        return inside(folder, filename, filename)
    package, _, rest = filename.partition("://")[2].lstrip("/").partition("/")
    if package not in packages:
        packages[package] = _package(package, folder)
    root = packages[package]
    if root is None:
        return None, f"mesh {filename!r}: no package {package!r} at or above the file's folder"
    return inside(root, rest, filename)


def _package(name: str, folder: Path) -> Path | None:
    if name in ("", ".", "..") or "\\" in name or "\0" in name:
        return None
    for above in (folder, *folder.parents):
        if above.name == name:
            return above
        try:
            if (above / name / "package.xml").is_file():
                return (above / name).resolve()
        except OSError:  # a name that no folder can have
            return None
    return None


def inside(root: Path, rest: str, filename: str) -> tuple[Path | None, str]:
    """The path and an empty note, if it stays inside root, links followed, and is a file; else None and why.

    root: a folder without links in its path.
    """
    try:
        found = os.path.realpath(os.path.join(root, rest))
        if os.path.isabs(rest) or ".." in Path(rest).parts or not found.startswith(os.path.join(root, "")):
            return None, f"mesh {filename!r}: refused, it leads out of the folder {root.name!r}"
        if os.path.isfile(found):
            return Path(found), ""
    except (OSError, ValueError, RuntimeError):  # a name that no file can have, or links in a circle
        pass
    return None, f"mesh {filename!r}: there is no such file in the folder {root.name!r}"
