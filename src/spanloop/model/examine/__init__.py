"""Examining a model: what a colleague would say about it, as findings; words.py has the sentences."""

from __future__ import annotations

from pathlib import Path

from spanloop.model.examine.inertia_findings import inertias
from spanloop.model.examine.messages import Finding
from spanloop.model.examine.overview import joints, makeup, meshes, notes
from spanloop.model.examine.possible_loops import closing
from spanloop.model.model import Model


def examine(model: Model, folder: Path | None = None) -> tuple[Finding, ...]:
    """Everything that can be said without computing motions; folder: where meshes are looked for (None: not at all)."""
    found = [*makeup(model), *inertias(model), *joints(model), *closing(model)]
    if folder is not None:
        found += meshes(model, folder)
    return (*found, *notes(model))


__all__ = ["Finding", "examine"]
