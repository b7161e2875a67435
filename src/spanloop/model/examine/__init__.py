"""Examination of a model: findings about its inertias, joints, loops and files, without computing motions."""

from __future__ import annotations

from pathlib import Path

from spanloop.model.examine.inertia_findings import inertias
from spanloop.model.examine.messages import Finding
from spanloop.model.examine.overview import contacts, joints, meshes, notes, summary
from spanloop.model.examine.possible_loops import possible_loops
from spanloop.model.examine.weight_findings import own_weight
from spanloop.model.model import Model


def examine(model: Model, folder: Path | None = None) -> tuple[Finding, ...]:
    """Return the findings of a model; folder: of its meshes, None leaves meshes out."""
    found = [*summary(model), *inertias(model), *own_weight(model), *joints(model), *contacts(model)]
    found += possible_loops(model)
    if folder is not None:
        found += meshes(model, folder)
    return (*found, *notes(model))


__all__ = ["Finding", "examine"]
