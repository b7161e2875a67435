"""Where a mesh lies that a file names. Nothing outside the file's own folder or package is ever looked at."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from spanloop.model.load.findings import Findings
from spanloop.model.parts import Body


def resolve_mesh(filename: str, folder: str | Path) -> tuple[Path | None, str]:
    """The mesh's path and an empty note, or None and a note that says why.

    `package://name/rest` (and SDF's `model://name/rest`) is looked for in the nearest folder above `folder` that is
    called `name` or holds a package `name` (a folder with a package.xml). Any other name is relative to `folder`.
    """
    folder = Path(folder).resolve()
    if filename.startswith(("package://", "model://")):
        package, _, rest = filename.partition("://")[2].lstrip("/").partition("/")
        root = _package(package, folder)
        if root is None:
            return None, f"mesh {filename!r}: no package {package!r} at or above the file's folder"
    elif "://" in filename:
        return (
            None,
            f"mesh {filename!r}: not looked for; expected package://... or a path relative to the file",
        )
    else:
        root, rest = folder, filename
    return inside(root, rest, filename)


def note_missing(bodies: Iterable[Body], folder: Path, findings: Findings) -> None:
    """Finds the meshes that cannot be found."""
    for file in dict.fromkeys(g.file for b in bodies for g in b.geometry if g.shape == "mesh"):
        note = resolve_mesh(file, folder)[1]
        if note:
            findings.add("meshes not found", note)


def _package(name: str, folder: Path) -> Path | None:
    if name in ("", ".", "..") or "\\" in name or "\0" in name:
        return None
    for above in (folder, *folder.parents):
        if above.name == name:
            return above
        if (above / name / "package.xml").is_file():
            return above / name
    return None


def inside(root: Path, rest: str, filename: str) -> tuple[Path | None, str]:
    """The path and an empty note, if it stays inside root, links followed, and is a file; else None and why."""
    try:
        found = (root / rest).resolve()
        if Path(rest).is_absolute() or ".." in Path(rest).parts or not found.is_relative_to(root.resolve()):
            return None, f"mesh {filename!r}: refused, it leads out of the folder {root.name!r}"
        if found.is_file():
            return found, ""
    except (OSError, ValueError, RuntimeError):  # a name that no file can have, or links in a circle
        pass
    return None, f"mesh {filename!r}: there is no such file in the folder {root.name!r}"
