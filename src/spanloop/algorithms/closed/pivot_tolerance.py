"""Pivots of closure rows: which count as zero, which are clamped. Equations: docs/theory/elimination.md.

A pivot is compared with the admittance of its closure before any row is eliminated (19). At a common ancestor, or last
in the root system, a pivot below PIVOT_TOLERANCE of that counts as zero. Before a free body it is clamped at CLAMP of
that and the solution refined once (20), (21): clamping changes the solution by about CLAMP, rounding by 1e-16/CLAMP,
and the refinement squares the sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spanloop.math.scalar import where
from spanloop.math.symmetric import LDL, PIVOT_TOLERANCE, SINGLE_PIVOT_TOLERANCE, guarded_inverse, pivot_bounds
from spanloop.math.vector3 import is_zero, total
from spanloop.types import Scalar

REFINED = 1e-6  # of the scale: where pivots are smaller a refined kernel takes over
CLAMP = 1e-8  # the root of 1e-16 balances the two


def row_groups(mechanism) -> dict[int, tuple]:
    """The group of each row: rows of one closure and one kind (moments, forces) share the scale of their pivots.

    A row of a general joint may be a moment and a force at once; it has a scale of its own.
    """
    return {
        r: (c.number, k if c.kind.name == "general" else c.row_kind(k))
        for c in mechanism.closures
        for k, r in enumerate(c.rows)
    }


def pivot_tolerance(mechanism) -> float:
    """The share of its scale below which a pivot counts as zero, in the mechanism's precision."""
    return SINGLE_PIVOT_TOLERANCE if mechanism.single else REFINED if mechanism.refines else PIVOT_TOLERANCE


def row_bounds(mechanism, numbers: Sequence[int], admittance) -> list[Scalar]:
    """Below which a pivot of the admittance of these rows counts as zero (19)."""
    groups = row_groups(mechanism)
    diagonal = [row[k] for k, row in enumerate(admittance)]
    return pivot_bounds(diagonal, [groups[r] for r in numbers], pivot_tolerance(mechanism))


def masked_factors(admittance, bounds: Sequence[Scalar], masks: Sequence[Scalar]) -> LDL:
    """LDLᵀ without the rows whose pivot counts as zero, and without those that are switched off (mask 0)."""
    return LDL(admittance, lambda k, pivot: guarded_inverse(pivot, bounds[k]) * masks[k])


def pivot_demands(bounds: Sequence[Scalar], factors: LDL, masks: Sequence[Scalar]) -> list[tuple]:
    """Pairs (bound, pivot) of the first rows, of which the first must be less; always so for a row switched off."""
    return [(y * x - (1.0 - y), pivot) for x, y, pivot in zip(bounds, masks, factors.pivots, strict=False)]


class PivotTolerance:
    """Reciprocals of pivots. L0: the rows' own admittances; mask: 1 or 0 for rows that can be switched."""

    def __init__(self, mechanism):
        self.group, self.tolerance = row_groups(mechanism), pivot_tolerance(mechanism)
        self.refines, self.length = mechanism.refines, mechanism.length
        self.gravity = total(g * g for g in mechanism.gravity) * (1.0 / (self.length * self.length))

    def scale(self, r: int, L0: Mapping[int, Scalar]) -> Scalar:
        """The admittance of all rows in the group of row r, before any row is eliminated (19)."""
        key = self.group.get(r)
        return total(x for t, x in L0.items() if (t == r if key is None else self.group.get(t) == key))

    def inverse(self, r: int, pivot, L0: Mapping[int, Scalar], mask: Mapping[int, Scalar]):
        """1/pivot, or 0 where the pivot counts as zero or the row is switched off (19)."""
        inverse_pivot = guarded_inverse(pivot, self.tolerance * self.scale(r, L0))
        return inverse_pivot * mask[r] if r in mask else inverse_pivot

    def bound(self, r: int, pivot, L0: Mapping[int, Scalar], mask: Mapping[int, Scalar]) -> tuple:
        """The pair (the tolerated share of the scale, pivot); the first must be less, and is for a row switched off."""
        least = self.tolerance * self.scale(r, L0)
        return (least * mask[r] - (1.0 - mask[r]), pivot) if r in mask else (least, pivot)

    def clamped(self, r: int, pivot, L0: Mapping[int, Scalar], mask: Mapping[int, Scalar]) -> tuple:
        """1/(pivot + δ), the pivot raised to at least CLAMP of the scale, and δ (20); 0 for a row switched off."""
        scale = self.scale(r, L0)
        least = CLAMP * scale if not is_zero(scale) else CLAMP
        fine = pivot > least if not is_zero(pivot) else False
        inverse_pivot = 1.0 / (least if fine is False else where(fine, pivot, least))
        added = least if fine is False else where(fine, 0.0, least - pivot)
        return (inverse_pivot * mask[r] if r in mask else inverse_pivot), added
