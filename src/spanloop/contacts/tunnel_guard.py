"""Steps that could pass through a shape: a call that fails them, and the refusal of the state before one.

A step fails where a gap that is open falls, at the rate that it has at the start of the step, by more than the shapes
are thick (geometry_check.tunnel_limit). Planes cannot be passed: a model with planes alone has no such call.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from spanloop.compiler.lower.schedule import Item
from spanloop.contacts.delassus import DelassusCalls
from spanloop.contacts.geometry_check import may_tunnel, tunnel_limits, tunnel_refusal
from spanloop.contacts.mechanics import ContactMechanics
from spanloop.errors import Refusal
from spanloop.math.scalar import where
from spanloop.math.vector3 import dot


def gaps_and_rates(mechanics: ContactMechanics, x: Mapping[str, Sequence[Any]]) -> tuple[list[Any], list[Any]]:
    """Gaps (n) [m] and their rates (n) [m/s] at q and v of x, on any scalar."""
    gaps, rows = mechanics.gaps_and_rows(x)
    V, size = mechanics.link_velocities(x), 6 * mechanics.block
    ways = list(enumerate(mechanics.ways))
    rates = []
    for i in range(mechanics.n):
        own = [(size * (i * len(ways) + w), 6 * links[i]) for w, links in ways]
        rates.append(sum(dot(rows[r : r + 6], V[k : k + 6]) for r, k in own))
    return gaps, rates


def tunnel_calls(
    delassus: DelassusCalls, q: str, v: str, after: str, bodies: Sequence[tuple[int, ...]] = ()
) -> list[Item]:
    """Velocities `after` a step from q and v are NaN where the step can pass through a shape.

    bodies: for each point those that come and go and that it needs, places in the array `present`.
    """
    mechanics = delassus.mechanics
    limits = tunnel_limits(mechanics.model)
    if all(limit == math.inf for limit in limits):
        return []

    needed, present = bodies or [()] * len(limits), ["present"] * any(bodies)

    def page(q, v, h, after, *given):
        x = {**dict(zip(mechanics.given, given[: len(mechanics.given)], strict=True)), "q": q, "v": v}
        first = after[0]
        found = zip(*gaps_and_rates(mechanics, x), limits, needed, strict=True)
        for gap, rate, limit, own in found:
            if limit < math.inf:
                passes = may_tunnel(gap, rate, h[0], limit)
                for body in own:
                    passes = passes & (given[-1][body] > 0.5)
                first = where(passes, math.nan, first)
        return ([first, *after[1:]],)

    return [delassus.stage.call("tunnel", (q, v, "h", after, *mechanics.given, *present), (after,), page)]


def passing(
    mechanics: ContactMechanics, x: Mapping[str, Sequence[Any]], step: float, is_there: Sequence[bool] = ()
) -> Refusal | None:
    """Why a step [s] from the state x, in floats, can pass through a shape; None where it cannot.

    is_there: whether each point has both of its bodies; all have by default.
    """
    if all(limit == math.inf for limit in tunnel_limits(mechanics.model)):
        return None
    gaps, rates = gaps_and_rates(mechanics, x)
    gaps = [gap if here else math.nan for gap, here in zip(gaps, is_there or [True] * len(gaps), strict=True)]
    return tunnel_refusal(mechanics.model, gaps, rates, step)
