"""Quaternions must have length 1: the conditions on coordinates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spanloop.model import Model
from spanloop.topology.anonymous import Anonymous

UNIT_TOLERANCE = 1e-6
POSITIONS = ("q", "start")  # inputs that hold coordinates


def unit_conditions(model: Model, inputs: Mapping[str, Sequence[Any]]) -> Iterator[Any]:
    """The conditions on the coordinates of all joints."""
    for name in POSITIONS:
        for joint in model.joints if name in inputs else ():
            for part in joint.kind.unit_parts(tuple(inputs[name][model.q_slice(joint.name)])):
                yield _is_unit(part)


def units_of(link: Anonymous, inputs: Mapping[str, Sequence[Any]]) -> list[Any]:
    """The conditions on one link's coordinates."""
    return [_is_unit(part) for n in POSITIONS if n in inputs for part in link.kind.unit_parts(tuple(inputs[n]))]


def _is_unit(part: Sequence[Any]):
    square = sum((x * x for x in part), 0.0)
    return (square < 1.0 + 2.0 * UNIT_TOLERANCE) & (square > 1.0 - 2.0 * UNIT_TOLERANCE)
