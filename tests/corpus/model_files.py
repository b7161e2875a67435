"""Model files of a folder: which there are, of which format, and which are copies of one another."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOTS = {b"robot": "URDF", b"mujoco": "MJCF", b"sdf": "SDF"}
FORMATS = {".urdf": "URDF", ".xml": "MJCF", ".mjcf": "MJCF", ".sdf": "SDF", ".world": "SDF"}
_OPENING = re.compile(rb"<([A-Za-z][\w.:-]*)")
_SKIPPED = re.compile(rb"<!--.*?-->|<\?.*?\?>|<!DOCTYPE[^>]*>", re.DOTALL)


@dataclass(frozen=True)
class ModelFile:
    """A model file: its package's folder, its path below the corpus, its format and how many copies of it there are."""

    package: str
    path: str
    format: str
    copies: int = 1


def model_files(folder: Path) -> list[ModelFile]:
    """The distinct model files below `folder`; of several with the same bytes the first, with the number of copies."""
    groups: dict[tuple[str, str], list[ModelFile]] = {}
    for path, sort in _found(folder):
        name = path.relative_to(folder)
        key = hashlib.sha256(path.read_bytes()).hexdigest(), sort
        groups.setdefault(key, []).append(ModelFile(name.parts[0], str(name), sort))
    first = [ModelFile(g[0].package, g[0].path, g[0].format, len(g)) for g in groups.values()]
    return sorted(first, key=lambda x: (x.format, x.path))


def _found(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.suffix.lower() in FORMATS and path.is_file() and not hidden:
            sort = FORMATS[path.suffix.lower()]
            if _format_inside(path) == sort:
                yield path, sort


def _format_inside(path: Path) -> str | None:
    """The format that the outermost element names; None for other XML, as sensors, packages and parts to include."""
    opening = _OPENING.search(_SKIPPED.sub(b"", path.read_bytes()))
    return ROOTS.get(opening[1]) if opening else None
