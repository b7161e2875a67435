"""Which mechanisms are legs on one platform, and which of their links is what. [Saha, fig. 10]

The platform is the link at which all closures end. Every closure ends a leg: the links from the world to its other
end. The platform itself may be free, or the last link of one more leg. Every link belongs to one leg only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.errors import UnsupportedError, listed
from spanloop.joints.driven import DrivenClosure
from spanloop.topology.tree_paths import path

_RANK = 1e-8  # of the largest singular value: what is smaller counts as zero
_SHARE = 0.1  # of a motion of unit length: DoF with less have no part in it
MARKING = "mark which joints are actuated: model.actuate(..., only=True), model.unactuate(...)"


class NotLegs(UnsupportedError):
    """A mechanism is not one of legs on one platform; why, in a few words; counted: for its number of actuators?"""

    def __init__(self, why: str, counted: bool = False):
        super().__init__(f"method 'parallel_legs' does not fit: {why}. Use 'elimination'{f', or {MARKING}' * counted}")
        self.why, self.counted, self.advice = why, counted, f". {MARKING[0].upper()}{MARKING[1:]}" if counted else ""


@dataclass(frozen=True)
class Leg:
    """Links from the world outward, and the closure that joins the last to the platform; None: it carries it."""

    links: tuple[int, ...]
    closure: int | None


@dataclass(frozen=True)
class Legs:
    """The platform's link, the legs, and the actuated DoF (places in v)."""

    platform: int
    legs: tuple[Leg, ...]
    actuated: tuple[int, ...]


def legs_of(mechanism, mobility: int | None = None) -> Legs:
    """The mechanism as legs on a platform; UnsupportedError says why it is none."""
    m = mechanism
    _refuse_features(m)
    platform = _platform(m)
    legs = [Leg(_way(m, _other(c, platform)), c.number) for c in m.closures]
    if not m.links[platform].floats:
        legs.append(Leg(_way(m, platform), None))
    elif m.links[platform].kind.name != "free":
        raise NotLegs(f"the platform's joint {m.links[platform].name!r} is not of the kind 'free'")
    _refuse_shared(m, platform, legs)
    actuated = tuple(f for x in m.links if x.actuated and not x.floats for f in range(x.v.start, x.v.stop))
    if mobility is not None and len(actuated) != mobility:
        count = f"{len(actuated)} DoF {'is' if len(actuated) == 1 else 'are'} actuated"
        must = f"{count}, and the loops leave {mobility}; the numbers must be equal"
        raise NotLegs(must + _named(m, actuated), counted=True)
    return Legs(platform, tuple(legs), actuated)


def legs_with(mechanism, redundancy: Redundancy | None) -> Legs:
    """The same, for as many actuated DoF as the loops leave, which must determine the others."""
    if redundancy is None:
        return legs_of(mechanism)
    if not redundancy.is_known:
        raise NotLegs("no closed state was found")
    legs = legs_of(mechanism, mechanism.nv - mechanism.n_rows + len(redundancy.dropped))
    _refuse_undetermined(mechanism, legs, redundancy)
    return legs


def _refuse_undetermined(m, legs: Legs, redundancy: Redundancy) -> None:
    """Actuated joints that leave a motion of the others free at every closed state that is known."""
    kept = [r for r in range(m.n_rows) if r not in redundancy.dropped]
    rest = [f for f in range(m.nv) if f not in legs.actuated]
    motions = [_left(J[np.ix_(kept, rest)]) for J in redundancy.jacobians]
    if not motions or not all(len(x) for x in motions):
        return
    share = np.max([np.abs(x).max(axis=0) for x in motions], axis=0)
    moving = tuple(f for f, x in zip(rest, share, strict=True) if x > _SHARE)
    free = [repr(x.name) for x in m.links if any(x.v.start <= f < x.v.stop for f in moving)]
    raise NotLegs(
        f"wherever the loops are closed, the actuated joints leave a motion of {listed(free, 4)} free"
        + _named(m, legs.actuated),
        counted=True,
    )


def _left(J: np.ndarray) -> np.ndarray:
    """Unit vectors (k, n) along which the columns (rows, n) do not move the rows."""
    length = np.linalg.norm(J, axis=1, keepdims=True)
    _, s, Vt = np.linalg.svd(J / np.where(length > 0.0, length, 1.0))
    return Vt[int(np.sum(s > _RANK * s.max(initial=0.0))) :]


def _named(m, dofs: tuple[int, ...]) -> str:
    names = [repr(x.name) for x in m.links if x.v.start in dofs]
    return f" (actuated: {listed(names, 4)})" if names else ""


def _refuse_features(m) -> None:
    if m.gears:
        raise NotLegs(f"{m.gears[0].name!r} couples joints")
    for link in m.links:
        if link.kind.bends:
            raise NotLegs(f"{link.name!r} are modes of a body that bends, and legs are of rigid ones")
        if link.driven:
            raise NotLegs(f"joint {link.name!r} is driven")
    for c in m.closures:
        if isinstance(c.kind, DrivenClosure) or c.switchable:
            raise NotLegs(f"loop {c.name!r} is {'switchable' if c.switchable else 'driven'}")
        if not c.kind.constant_space or not c.kind.carries:
            raise NotLegs(f"loop {c.name!r} is closed by a {c.kind.name} joint, whose motion space is not constant")


def _platform(m) -> int:
    """The link at which all closures end; of two, the one that floats, or else the child."""
    common = set.intersection(*({c.a.link, c.b.link} for c in m.closures)) - {-1}
    if not common:
        raise NotLegs("the loops do not all end at one body")
    first = m.closures[0]
    return max(common, key=lambda i: (m.links[i].floats, i == first.b.link))


def _other(closure, platform: int) -> int:
    return closure.a.link if closure.b.link == platform else closure.b.link


def _way(m, link: int) -> tuple[int, ...]:
    return tuple(i for i in reversed(path(m.parents, link)) if i >= 0)


def _refuse_shared(m, platform: int, legs: list[Leg]) -> None:
    count = [sum(i in leg.links for leg in legs) for i in range(len(m.links))]
    for link, n in zip(m.links, count, strict=True):
        if n > 1:
            raise NotLegs(f"joint {link.name!r} belongs to more than one leg")
        if n == 0 and not (link.number == platform and link.floats):
            raise NotLegs(f"joint {link.name!r} belongs to no leg")
