"""Forces and torques that joints and loops carry, over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.view.plots.courses import Course, draw

if TYPE_CHECKING:
    from spanloop.results.trajectory import Trajectory

COMPONENTS = ("size", "x", "y", "z")


def reactions(run: Trajectory, names: str | Sequence[str] | None = None, *, component: str = "size", ax=None):
    """What joints and loops carry over time, forces [N] and torques [N m] in two panels.

    names: of joints and loops; all if not told. component: "size", or "x", "y", "z" in world axes. A star marks a
    force that is one of many possible ones, the shortest, because rows are redundant.
    """
    if component not in COMPONENTS:
        raise InputError(f"plot: component is {component!r}; {nearest(component, COMPONENTS)}")
    found = run.reactions()
    listed = list(found) if names is None else [names] if isinstance(names, str) else list(names)
    for name in listed:
        if name not in found:
            raise InputError(f"plot: there is no joint or loop {name!r}; {nearest(name, found)}")
    courses = []
    for unit, part in (("N", slice(3, 6)), ("N m", slice(0, 3))):
        for name in listed:
            star = "" if found.unique.get(name, True) else " *"
            courses.append(Course(name + star, unit, _component(found[name][..., part], component)))
    what = "" if component == "size" else f", along {component}"
    return draw(run, courses, {"N": f"force{what}", "N m": f"torque{what}", "": ""}, ax)


def _component(three: np.ndarray, component: str) -> np.ndarray:
    if component == "size":
        return np.linalg.norm(three, axis=-1)
    return three[..., "xyz".index(component)]
