"""Paths of the files that a model's file names: includes and meshes.

Only the file's own folder, its packages and the folder `root` are searched; links that lead out of them are not
followed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from spanloop.errors import InputError
from spanloop.model.files.load_notes import LoadNotes
from spanloop.model.parts import Body, Geometry

MOST_SEARCHED = 2000  # meshes of one file
MARKS = ("package.xml", "model.config")  # of a folder that is a package
PACKAGES = ("package://", "model://")


@dataclass(frozen=True)
class Folders:
    """The folders from which a file's includes and meshes may be read, without links in their paths."""

    own: Path
    root: Path | None = None
    packages: dict[str, Path | None] = field(default_factory=dict)  # found so far, by name

    @staticmethod
    def of(folder: str | Path, root: str | os.PathLike[str] | None = None) -> Folders:
        """The file's own folder and a second one, which must exist."""
        if root is None:
            return Folders(Path(folder).resolve())
        try:
            wide = Path(root).resolve()
            exists = wide.is_dir()
        except TypeError:
            raise InputError(f"root is a {type(root).__name__}; expected a folder as text or pathlib.Path") from None
        except (OSError, ValueError, RuntimeError):  # a name that no folder can have, or links in a circle
            exists = False
        if not exists:
            raise InputError(f"root is {str(root)!r}; there is no such folder")
        return Folders(Path(folder).resolve(), wide)

    def find(self, name: str) -> tuple[Path | None, str]:
        """Return the path of a file and an empty note, or None and a note with the reason.

        `package://name/rest` (and SDF's `model://name/rest`) is searched for in the nearest folder above the file's
        that is called `name` or holds a package `name` (a folder with a package.xml or model.config), then as the
        folder `name` in root. Any other name is relative to the file's folder.
        """
        if not name.startswith(PACKAGES):
            plain = name.removeprefix("file://")
            if "://" in plain:
                return None, f"{name!r}: not searched for; expected package://... or a path relative to the file"
            return self._inside(plain, name, self.own)
        package, _, rest = name.partition("://")[2].lstrip("/").partition("/")
        if package not in self.packages:
            self.packages[package] = _package(package, self.own, self.root)
        found = self.packages[package]
        if found is None:
            where = f"at or above the file's folder, nor in root={str(self.root)!r}" if self.root else _WHERE
            return None, f"{name!r}: no package {package!r} {where}"
        return self._inside(rest, name, found)

    def _inside(self, rest: str, name: str, folder: Path) -> tuple[Path | None, str]:
        """The path and an empty note, if it stays inside the folder or root, links followed, and is a file."""
        try:
            plain = os.path.normpath(os.path.join(folder, rest))
            found = os.path.realpath(os.path.join(folder, rest))
            allowed = any(_holds(top, found) for top in (folder, self.root))
            if not allowed and os.path.exists(found):
                return None, self._refusal(name, plain, found, folder)
            if allowed and os.path.isfile(found):
                return Path(found), ""
        except (OSError, ValueError, RuntimeError):  # a name that no file can have, or links in a circle
            pass
        return None, f"{name!r}: there is no such file in the folder {folder.name!r}"

    def _refusal(self, name: str, plain: str, found: str, folder: Path) -> str:
        tops = [top for top in (folder, self.root) if top is not None]
        how = "a symbolic link leads" if any(_holds(top, plain) for top in tops) else "it leads"
        out = " and of ".join(f"root={str(top)!r}" if top is self.root else f"the folder {top.name!r}" for top in tops)
        common = os.path.commonpath([folder, found])
        wide = common if os.path.dirname(common) != common else os.path.dirname(found)
        return f"{name!r}: refused, {how} out of {out}. If you trust the file, load it with root={wide!r}"


_WHERE = "at or above the file's folder; root= may name the folder that holds it"


def resolve_mesh(filename: str, folder: str | Path, root: str | Path | None = None) -> tuple[Path | None, str]:
    """Return the mesh's path and an empty note, or None and a note with the reason, as Folders.find does."""
    found, note = Folders.of(folder, root).find(filename)
    return found, note and f"mesh {note}"


def located(bodies: Iterable[Body], folders: Folders | None, notes: LoadNotes) -> list[Body]:
    """The bodies with the paths of their meshes; those that are missing are noted."""
    if folders is None:
        return list(bodies)
    paths: dict[str, tuple[str, str]] = {}  # where a mesh is, or why it is nowhere

    def path(g: Geometry) -> Geometry:
        if not g.file:
            return g
        if g.file not in paths:
            paths[g.file] = _noted(g.file, folders, notes) if len(paths) < MOST_SEARCHED else ("", "")
            if len(paths) == MOST_SEARCHED + 1:
                notes.add(f"meshes not searched for, the file names more than {MOST_SEARCHED}", repr(g.file))
        where, missing = paths[g.file]
        return replace(g, path=where, missing=missing)

    return [replace(b, geometry=tuple(map(path, b.geometry))) if b.geometry else b for b in bodies]


def _noted(file: str, folders: Folders, notes: LoadNotes) -> tuple[str, str]:
    found, note = folders.find(file)
    if found is None:
        notes.add("meshes not found", f"mesh {note}")
        return "", f"mesh {note}"
    return str(found), ""


def _package(name: str, folder: Path, root: Path | None) -> Path | None:
    if name in ("", ".", "..") or "\\" in name or "\0" in name:
        return None
    try:
        for above in (folder, *folder.parents):
            if above.name == name:
                return above
            if any((above / name / mark).is_file() for mark in MARKS):
                return (above / name).resolve()
        if root is not None and root.name == name:
            return root
        if root is not None and (root / name).is_dir() and _holds(root, os.path.realpath(root / name)):
            return (root / name).resolve()
    except OSError:  # a name that no folder can have
        pass
    return None


def _holds(folder: Path | None, path: str) -> bool:
    """Whether the path is inside the folder."""
    return folder is not None and path.startswith(os.path.join(folder, ""))
