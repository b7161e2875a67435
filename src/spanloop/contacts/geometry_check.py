"""Refusals of a run's contacts: shapes that overlap at the start, and shapes that a step can pass through."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from spanloop.errors import Reason, Refusal
from spanloop.model import Model
from spanloop.model.contacts import Contact
from spanloop.types import Scalar

OVERLAP = 1e-6  # m by which hard shapes may overlap at the start


def overlap_refusal(
    model: Model, gaps: ArrayLike, normals: ArrayLike | None = None, bound: float = OVERLAP
) -> Refusal | None:
    """Why a run cannot start at gaps (..., n) [m] of the contact points: the deepest overlap; None where there is none.

    normals (..., n, 3): from b to a, for the advice. Compliant contacts may overlap: they rest so.
    """
    found = deepest_overlap(model, gaps, bound)
    if found is None:
        return None
    place, depth, words = found
    contact = _of_points(model)[place[-1]]
    fact = f"{words}; at most {1e3 * bound:.4g} mm at the start"
    advice = f"Move {contact.a.at!r} away from {contact.b.at!r}"
    if normals is not None:
        move = ", ".join(f"{x:.4g}" for x in depth * np.asarray(normals, float)[place] + 0.0)
        advice += f" by ({move}) m in world axes"
    return Refusal(Reason.OVERLAP, f"{fact}. {advice}, or allow it: contacts=sl.contacts.Settings(overlap=...)", fact)


def deepest_overlap(model: Model, gaps: ArrayLike, bound: float) -> tuple[tuple[int, ...], float, str] | None:
    """The deepest overlap of hard contacts at gaps (..., n) [m], if it is more than a bound [m]; None if not.

    Its place, how deep it is [m], and words with the contact and the shapes.
    """
    contacts = _of_points(model)
    depths = -np.asarray(gaps, float)
    depths = np.where([c.stiffness is None for c in contacts], depths, -np.inf)
    if not depths.size or not np.nanmax(depths) > bound:
        return None
    place = tuple(int(k) for k in np.unravel_index(np.nanargmax(depths), depths.shape))
    contact, depth = contacts[place[-1]], float(depths[place])
    point = _names(model)[place[-1]]
    at = f", deepest at {point!r}" if point != contact.name else ""
    return place, depth, f"contact {contact.name!r}{_run(place)}: {pair(contact)} overlap by {1e3 * depth:.4g} mm{at}"


def tunnel_limit(contact: Contact) -> float:
    """How deep the shapes of a contact may overlap before they push each other out on the wrong side [m].

    A plane is the surface of a half-space: no step passes through it. Of spheres and capsules it is the sum of the
    radii, of a box or cylinder half of its least thickness takes the place of the radius.
    """
    shapes = contact.a.geometry, contact.b.geometry
    if any(g.shape == "plane" for g in shapes):
        return np.inf
    inner = {"point": lambda s: 0.0, "box": lambda s: 0.5 * min(s), "cylinder": lambda s: min(s[0], 0.5 * s[1])}
    return float(sum(inner.get(g.shape, lambda s: s[0])(g.size) for g in shapes))


def tunnel_limits(model: Model) -> tuple[float, ...]:
    """The limit of each contact point [m]; infinite where nothing can be passed through."""
    return tuple(tunnel_limit(c) for c in _of_points(model))


def may_tunnel(gap: Scalar, rate: Scalar, step: Scalar, limit: float) -> Scalar:
    """Whether a point that is apart now is beyond the limit after a step at this rate; on any scalar."""
    return (gap > 0.0) & (gap + step * rate < -limit)


def tunnel_refusal(model: Model, gaps: ArrayLike, rates: ArrayLike, step: float) -> Refusal | None:
    """Why a step [s] is too long for gaps (..., n) [m] that change at rates (..., n) [m/s]; None where it is not."""
    gaps, rates = np.asarray(gaps, float), np.asarray(rates, float)
    limits = np.array(tunnel_limits(model))
    passes = (gaps > 0.0) & (gaps + step * rates < -limits)
    if not passes.any():
        return None
    place = np.unravel_index(np.argmax(np.where(passes, -rates / limits.clip(1e-300), 0.0)), gaps.shape)
    contact, speed, limit = _of_points(model)[place[-1]], -float(rates[place]), float(limits[place[-1]])
    fact = (
        f"contact {contact.name!r}{_run(place)}: {pair(contact)} approach at {speed:.4g} m/s, which is "
        f"{1e3 * speed * step:.4g} mm in a step of {step:g} s; beyond {1e3 * limit:.4g} mm they can pass through each "
        "other"
    )
    enough = 0.99 * limit / speed  # whatever the gap
    return Refusal(Reason.TUNNEL, f"{fact}. Take steps of at most {enough:.2g} s, or thicker shapes", fact)


def pair(contact: Contact) -> str:
    """The two shapes of a contact in words."""
    return " and ".join(f"the {s.geometry.shape} of {s.at!r}" for s in (contact.a, contact.b))


def _of_points(model: Model) -> list[Contact]:
    return [c for c in model.contacts for _ in range(c.n_points)]


def _names(model: Model) -> list[str]:
    return [name for c in model.contacts for name in c.point_names]


def _run(place: Sequence[int | np.intp]) -> str:
    """Which run of a batch, in words."""
    batch = tuple(int(k) for k in place[:-1])
    return f" of run {batch[0] if len(batch) == 1 else batch}" if batch else ""
