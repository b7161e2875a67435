"""Closure errors of loops and couplings by name, in metres and radians."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from spanloop.errors import listed
from spanloop.loops.batching import Robot, values
from spanloop.math.spatial import Transform
from spanloop.model import Model
from spanloop.topology import Mechanism, mechanism
from spanloop.topology.tree_paths import meeting, path


@dataclass(frozen=True)
class Row:
    """One constraint by its name, the number of the loop or coupling it belongs to, and the unit of its error."""

    name: str
    owner: int
    unit: str
    positional: bool  # False: it constrains velocities only


@dataclass(frozen=True)
class Miss:
    """By how much a loop or coupling is not closed."""

    name: str
    what: str  # loop 'closing', between 'coupler' and 'rocker'
    meters: float
    radians: float
    length: float  # m, of the loop

    @property
    def size(self) -> float:
        """The larger of the angle [rad] and the distance as a share of the loop's length."""
        return max(self.meters / self.length, self.radians)

    def by(self) -> str:
        shares = ((self.meters, self.meters / self.length, "m"), (self.radians, self.radians, "rad"))
        return " and ".join(f"{x:.3g} {unit}" for x, share, unit in shares if share > 0.01 * self.size) or "0"


@functools.lru_cache(maxsize=64)
def mechanism_of(model: Model) -> Mechanism:
    """The model as numbers, kept."""
    return mechanism(model)


def idle(model: Model) -> tuple[str, ...]:
    """Names of loops between bodies that no joint moves against each other."""
    return tuple(c.name for c in mechanism_of(model).closures if c.a.link == c.b.link)


@functools.lru_cache(maxsize=64)
def rows_of(model: Model) -> tuple[Row, ...]:
    """All rows: of the loops, then of the couplings."""
    m, out = mechanism_of(model), []
    for c in m.closures:
        miss = c.kind.closure_error(Transform())
        units = [{"moment": "rad", "force": "m"}[c.row_kind(k)] for k in range(len(c.rows))]
        out += [Row(c.row_name(k), c.number, u, miss[k] is not None) for k, u in enumerate(units)]
    for k, coupling in enumerate(model.couplings):
        unit = model.joint(coupling.joint).kind.units[0]
        out.append(Row(coupling.name, len(m.closures) + k, unit, True))
    return tuple(out)


def positional(model: Model) -> np.ndarray:
    """Which rows (n_rows,) constrain positions."""
    return np.array([r.positional for r in rows_of(model)], dtype=bool)


def errors(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Closure errors (n, n_rows), those of angles as angles: their sine vanishes for frames that face away, too."""
    e, cosines = values(robot, "closure_error", q), values(robot, "closure_facing", q)
    for c in mechanism_of(robot.model).closures:
        rows = [r for k, r in enumerate(c.rows) if c.row_kind(k) == "moment"]
        if len(rows) < 2 or c.kind.name == "general":
            continue
        sine = np.linalg.norm(e[:, rows], axis=1)
        angle = np.arctan2(sine, cosines[:, c.number])
        e[:, rows] *= (np.where(sine > 1e-9, angle, 1.0) / np.where(sine > 1e-9, sine, 1.0))[:, None]
        e[:, rows[0]] = np.where((sine <= 1e-9) & (angle > 1.0), angle, e[:, rows[0]])
    return e


def relative_errors(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Closure errors (n, n_rows) in rad, or as shares of their loop's length: tolerances are compared with these."""
    return errors(robot, q) / np.array(mechanism_of(robot.model).row_lengths)


def misses(model: Model, error: np.ndarray) -> tuple[Miss, ...]:
    """Errors (n_rows,) of one state, by loop and coupling."""
    rows = rows_of(model)
    owners = [(x.name, f"loop {x.name!r}, between {x.a!r} and {x.b!r},") for x in model.loops]
    owners += [(c.name, f"coupling {c.name!r}, of joint {' to '.join(map(repr, c.joints))},") for c in model.couplings]
    m, out = mechanism_of(model), []
    lengths = [c.length for c in m.closures] + [m.length] * len(model.couplings)
    for number, (name, what) in enumerate(owners):
        sizes = {
            unit: float(np.linalg.norm([error[k] for k, r in enumerate(rows) if (r.owner, r.unit) == (number, unit)]))
            for unit in ("m", "rad")
        }
        out.append(Miss(name, what, sizes["m"], sizes["rad"], lengths[number]))
    return tuple(out)


def worst(model: Model, error: np.ndarray) -> Miss:
    """The loop or coupling that is farthest from closed."""
    return max(misses(model, error), key=lambda miss: miss.size)


def largest_rows(model: Model, error: np.ndarray) -> str:
    """The rows that are open most, each loop's own: "'closing: force along y' stays open by 0.0012 mm"."""
    lengths = np.array(mechanism_of(model).row_lengths)
    shares = np.abs(error) / lengths * positional(model)
    rows = rows_of(model)
    most = [int(k) for k in np.argsort(-shares) if shares[k] > 0.1 * shares.max()]
    parts = [f"{rows[k].name!r} stays open by {1e3 * abs(error[k]):.2g} m{rows[k].unit}" for k in most]
    return listed(parts, 3)


def joints_around(model: Model, name: str) -> frozenset[str]:
    """Names of the joints in a loop or coupling, and in those that share joints with it, one after the other."""
    m = mechanism_of(model)
    groups = {c.name: _between(m, c.a.link, c.b.link) for c in m.closures}
    groups |= {c.name: set(c.joints) for c in model.couplings}
    found, left = set(groups.pop(name)), groups
    while any(found & own for own in left.values()):
        found |= set().union(*(own for own in left.values() if found & own))
        left = {other: own for other, own in left.items() if not own <= found}
    return frozenset(found)


def _between(m: Mechanism, a: int, b: int) -> set[str]:
    """Names of the joints that move two links against each other."""
    top = meeting(m.parents, a, b)
    ends = (path(m.parents, a), path(m.parents, b))
    bending = [top] if top >= 0 and m.links[top].kind.bends else []  # its modes move its nodes against each other
    return {m.links[i].name for end in ends for i in (*end[: end.index(top)], *bending)}
