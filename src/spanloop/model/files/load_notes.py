"""Notes that a reader collects: what it changed or left out of a file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from spanloop.errors import ModelError
from spanloop.model.exact_rotations import rotation_of_angles, snap_axis, snap_rotation
from spanloop.types import Floats3, Floats33

Color = tuple[float, float, float, float]
ACTS = "left out, though it acts on the motion:"  # begins notes that also give a warning, as does
INVALID = "not valid in this format:"  # read as other programs read it
REPAIRED = "repaired:"


@lru_cache(maxsize=4096)  # robots repeat their angles
def _snapped(roll: float, pitch: float, yaw: float) -> tuple[Floats33, bool]:
    return snap_rotation(rotation_of_angles(roll, pitch, yaw))


@dataclass
class LoadNotes:
    """Counts of what was snapped, and for each other sentence the places it is about.

    repair: masses that no body can have are replaced, with a note, instead of refused.
    """

    rotations: int = 0
    axes: int = 0
    places: dict[str, dict[str, None]] = field(default_factory=dict)
    repair: bool = False

    def rotation(self, roll: float, pitch: float, yaw: float) -> Floats33:
        """The snapped rotation Rz(yaw) Ry(pitch) Rx(roll)."""
        rotation, changed = _snapped(roll, pitch, yaw)
        self.rotations += changed
        return rotation

    def axis(self, axis: Sequence[float]) -> Floats3:
        """The snapped axis."""
        snapped, changed = snap_axis(axis)
        self.axes += changed
        return snapped

    def color(self, text: str, place: str) -> Color | None:
        """Red, green, blue and opacity, 0 to 1, opaque unless given; None and a note for any other text."""
        try:
            values = [min(max(float(x), 0.0), 1.0) for x in text.split()]
        except ValueError:
            values = []
        if len(values) not in (3, 4) or any(map(math.isnan, values)):
            self.add("colours that are not 3 or 4 numbers, left out", place)
            return None
        red, green, blue, opacity = (*values, 1.0)[:4]
        return (red, green, blue, opacity)

    def mass(self, mass: float, owner: str) -> float:
        """The mass of a body; `owner` names it, with file and line."""
        if mass >= 0.0:
            return mass
        if not self.repair:
            raise ModelError(
                f"{owner}: mass is {mass:g} kg; must be >= 0. Was the sign lost in the export? "
                "repair=True drops the sign"
            )
        self.add(f"{REPAIRED} a negative mass, read without its sign", f"{owner}, mass {mass:g} kg is now {-mass:g} kg")
        return -mass

    def losses(self, name: str, values: Sequence[float], owner: str) -> tuple[float, ...]:
        """Damping, friction, armature or stiffness of a joint: those below 0 are read as 0, with a note."""
        if any(x < 0.0 for x in values):
            self.add(f"{INVALID} negative {name}, read as 0", owner)
        return tuple(max(x, 0.0) for x in values)

    def limits(self, settings: dict[str, Any], owner: str) -> dict[str, Any]:
        """The settings of a joint without limits that exclude every position, with a note."""
        low, high = (np.atleast_1d(settings.get(key, ())) for key in ("lower", "upper"))
        if not low.size or not high.size or (low <= high).all():
            return settings
        self.add(f"{INVALID} lower limit above the upper one, read as without limits", owner)
        return {key: value for key, value in settings.items() if key not in ("lower", "upper")}

    def add(self, sentence: str, place: str) -> None:
        """Note a sentence about a place in the file; `sentences` lists equal ones once."""
        self.places.setdefault(sentence, {})[place] = None

    def sentences(self) -> list[str]:
        """One note for each sentence, with its first place and the number of the others."""
        notes = []
        for sentence, places in self.places.items():
            more = f" and {len(places) - 1} more" if len(places) > 1 else ""
            notes.append(f"{sentence}: {next(iter(places))}{more}")
        snapped = []
        if self.rotations:
            snapped.append(f"{self.rotations} rotation" + "s" * (self.rotations > 1))
        if self.axes:
            snapped.append(f"{self.axes} " + ("axes" if self.axes > 1 else "axis"))
        if snapped:
            notes.append(f"snapped to exact zeros and right angles within 1e-9: {', '.join(snapped)}")
        return notes
