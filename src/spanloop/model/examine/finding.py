"""Something that is worth saying about a mechanism, as data; words.py says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Finding:
    """What was found (a topic of words.py), at which parts, with which numbers."""

    topic: str
    parts: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)


def label(what: str, part) -> str:
    """A part by name and, if known, file and line: body 'forearm' (arm.urdf:41)."""
    return f"{what} {part.name!r}" + (f" ({part.where})" if part.where else "")
