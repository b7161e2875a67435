"""What a flexible body is made from: a beam, or finite elements."""

from __future__ import annotations

from spanloop.flexible.beam import Beam
from spanloop.flexible.finite_element_body import FiniteElementBody

Recipe = Beam | FiniteElementBody
EXPECTED = "expected a beam, as sl.flexible.beam(...), or finite elements, as sl.flexible.from_matrices(...)"


def places(recipe: Recipe) -> dict[str, tuple[float, float, float]]:
    """Positions of the nodes in the frame of the root [m], by name, without the root."""
    if isinstance(recipe, Beam):
        return {name: (x, 0.0, 0.0) for name, x in recipe.nodes}
    return dict(recipe.nodes)
