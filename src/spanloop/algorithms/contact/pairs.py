"""The pairs of shapes that can touch: one table, and the touches of a pair."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from spanloop.algorithms.contact.capsule_pairs import capsule_touches
from spanloop.algorithms.contact.plane_pairs import plane_touches
from spanloop.algorithms.contact.sphere_pairs import DISTANCES, sphere_touches
from spanloop.algorithms.contact.touch import Side, Touch
from spanloop.math.spatial import Transform
from spanloop.model.parts import Geometry

if TYPE_CHECKING:
    from spanloop.model.contacts import Contact

# touches of shapes a and b, with normals from b to a; the order of a pair does not matter
PAIRS: dict[tuple[str, str], Callable[[Geometry, Side, Geometry, Side], list[Touch]]] = {
    **{(a, "plane"): plane_touches for a in ("point", "sphere", "capsule", "box", "cylinder", "hull")},
    **{(a, b): sphere_touches for a in ("sphere", "point") for b in DISTANCES},
    ("capsule", "capsule"): capsule_touches,
}


def pair_touches(first: Geometry, a: Side, second: Geometry, b: Side) -> list[Touch]:
    """The touches of a pair of shapes on any scalar, one for each candidate point; KeyError: no such pair."""
    if (first.shape, second.shape) in PAIRS:
        return PAIRS[first.shape, second.shape](first, a, second, b)
    return [touch.swapped() for touch in PAIRS[second.shape, first.shape](second, b, first, a)]


def touches(contact: Contact, X_a: Transform, X_b: Transform) -> list[Touch]:
    """The touches of a contact whose sides' bodies or frames (`at`) have the poses X_a, X_b."""
    first, second = contact.a.geometry, contact.b.geometry
    return pair_touches(first, Side(X_a, first.placement.transform()), second, Side(X_b, second.placement.transform()))
