"""Pivots that are nothing: what counts as zero, and what is done about it.

A pivot is compared with its closure's own admittance, before any row was eliminated. At a common ancestor, or last in
the root system, a pivot below TINY of that counts as zero. Before a free body it is held at HELD of that and the
solution refined once: what is held up changes it by some HELD, rounding by ε/HELD, and the refinement squares the sum.
"""

from __future__ import annotations

from spanloop.math.scalar import where
from spanloop.math.vector3 import is_zero, total

TINY = 1e-12
HELD = 1e-8  # √ε balances the two


def row_groups(mechanism) -> dict[int, tuple]:
    """Rows of one closure and one sort (moments, forces) belong together: their pivots share a scale."""
    return {r: (c.number, c.sort(k)) for c in mechanism.closures for k, r in enumerate(c.rows)}


def guarded(pivot, scale):
    """1/pivot, or 0 where the pivot is nothing beside the scale."""
    if is_zero(pivot):
        return 0.0
    ok = pivot > TINY * scale
    return where(ok, 1.0, 0.0) / where(ok, pivot, 1.0)


class Guard:
    """Reciprocals of pivots. L0: the rows' own admittances; mask: 1 or 0 for rows that can be switched."""

    def __init__(self, mechanism):
        self.group = row_groups(mechanism)

    def scale(self, r: int, L0: dict):
        key = self.group.get(r)
        return total(x for s, x in L0.items() if (s == r if key is None else self.group.get(s) == key))

    def zero(self, r: int, pivot, L0: dict, mask: dict):
        """1/pivot, or 0 where the pivot is nothing or the row is switched off."""
        over = guarded(pivot, self.scale(r, L0))
        return over * mask[r] if r in mask else over

    def bound(self, r: int, pivot, L0: dict, mask: dict) -> tuple:
        """TINY of the scale, and the pivot that must be above it; a row that is switched off need not be."""
        least = TINY * self.scale(r, L0)
        return (least * mask[r] - (1.0 - mask[r]), pivot) if r in mask else (least, pivot)

    def held(self, r: int, pivot, L0: dict, mask: dict) -> tuple:
        """1/pivot, the pivot no less than HELD of the scale, and what that adds to it; 0 for a row switched off."""
        scale = self.scale(r, L0)
        least = HELD * scale if not is_zero(scale) else HELD
        fine = pivot > least if not is_zero(pivot) else False
        over = 1.0 / (least if fine is False else where(fine, pivot, least))
        added = least if fine is False else where(fine, 0.0, least - pivot)
        return (over * mask[r] if r in mask else over), added
