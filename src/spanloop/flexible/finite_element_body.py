"""A body reduced from finite elements: what sl.flexible.from_matrices returns, and files keep."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import sha256

import numpy as np
from numpy.typing import ArrayLike

from spanloop.flexible.body import FlexibleBody, FlexibleNode, Stations
from spanloop.flexible.modes import Modal
from spanloop.flexible.particles import antisymmetric, tuples
from spanloop.math.flexible import Particles, Sections
from spanloop.math.flexible_nodes import NodeShape

_EULER = np.pi**2 / 12.0  # buckling load of a cantilever, π²/4 EI/L², over its stiffness at the tip times its length
LEVELS = {
    0: "matrices reduced to interfaces: inertia couples with deformation as at rest",
    1: "full matrices: no geometric stiffening",
    2: "with geometric stiffening",
}


@dataclass(frozen=True, eq=False, repr=False)
class FiniteElementBody:
    """A flexible body with n modes from finite elements, in the frame of its root; two with equal numbers are equal.

    mass [kg], center (3,), moments (6,) about it; stiffness, damping (n,)
    weights, positions, translations, bent, mixed, swirls, masses: its particles, as math/flexible.py has them
    names: of its interfaces but the root; at (k, 3): where they are; shifts, turns (k, n, 3), bent_shifts, bent_turns
        (k, n, n, 3): how they move with the modes
    level: of data (LEVELS); loads: keys of the loads with stiffening; effective (6,): shares of the mass and of the
        moments of inertia about the root that move with the modes; left_out: share of strain energy under unit
        accelerations and interface loads that the modes do not follow, at most this after sl.flexible.fewer; NaN if
        unknown
    vertices (m, 3), triangles (t, 3), movement (m, n, 3): the surface that is drawn, energies (t, n, n): strain energy
        of a triangle's element by two modes; empty if not given
    turning (k, n, 3): rotations of the places that turn most, by unit modes; empty where none is known
    any_spin: whether simulations take any spin without stiffening
    """

    mass: float
    center: np.ndarray
    moments: np.ndarray
    stiffness: np.ndarray
    damping: np.ndarray
    mode_names: tuple[str, ...]
    mode_units: tuple[str, ...]
    weights: np.ndarray
    positions: np.ndarray
    translations: np.ndarray
    bent: np.ndarray
    mixed: np.ndarray
    swirls: np.ndarray
    masses: np.ndarray
    names: tuple[str, ...]
    at: np.ndarray
    shifts: np.ndarray
    turns: np.ndarray
    bent_shifts: np.ndarray
    bent_turns: np.ndarray
    level: int
    loads: tuple[str, ...]
    basis: str
    size: int
    source: str
    effective: np.ndarray
    left_out: float
    vertices: np.ndarray
    triangles: np.ndarray
    movement: np.ndarray
    energies: np.ndarray
    turning: np.ndarray
    any_spin: bool = False

    pieces = 1  # of the recipes of flexible bodies
    number = 0

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all numbers and names."""
        found = sha256()
        for f in fields(self):
            value = getattr(self, f.name)
            data = np.ascontiguousarray(value).tobytes() if isinstance(value, np.ndarray) else repr(value).encode()
            found.update(f.name.encode() + b"\0" + data + b"\0")
        return found.hexdigest()

    def __repr__(self) -> str:
        return f"FiniteElementBody({self.mass:g} kg, {self.n} modes, {self.basis}, level={self.level})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FiniteElementBody) and (self is other or self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def n(self) -> int:
        """Number of modes."""
        return len(self.stiffness)

    @property
    def nodes(self) -> tuple[tuple[str, tuple[float, float, float]], ...]:
        """Names and positions [m] of the interfaces but the root."""
        return tuple((name, tuple(x)) for name, x in zip(self.names, self.at.tolist(), strict=True))

    @cached_property
    def particles(self) -> Particles:
        """The mass."""
        n = self.n
        sections = Sections(
            tuples(self.mixed),
            tuples(antisymmetric(self.swirls)),
            tuples(self.swirls),
            tuples(np.zeros((n, n, 3))),
            tuples(self.masses),
        )
        numbers = (self.weights, self.positions, self.translations, self.bent)
        weights, positions, translations, bent = (tuples(x) for x in numbers)
        return Particles(weights, positions, translations, bent, sections)

    @cached_property
    def frequencies(self) -> np.ndarray:
        """Frequencies of the modes with the root held [rad/s]; robot.modes(q).frequencies are in Hz."""
        return np.sqrt(self.stiffness / np.array(self.particles.modal_masses))

    @cached_property
    def body(self) -> FlexibleBody:
        """The flexible body."""
        modal = Modal(self.particles, self.mass, self.mode_units, self.mode_names, self)
        shapes = [
            NodeShape(*(tuples(x[k]) for x in (self.shifts, self.turns, self.bent_shifts, self.bent_turns)))
            for k in range(len(self.names))
        ]
        nodes = tuple(FlexibleNode(name, x, s) for (name, x), s in zip(self.nodes, shapes, strict=True))
        numbers = (self.center, self.moments, self.stiffness, self.damping, self.frequencies)
        center, moments, stiffness, damping, frequencies = (tuples(x) for x in numbers)
        return FlexibleBody(self.mass, center, moments, modal, stiffness, damping, nodes, frequencies)

    @property
    def bodies(self) -> tuple[FlexibleBody, ...]:
        """The flexible body, alone."""
        return (self.body,)

    @property
    def length(self) -> float:
        """The size of the body [m]: how far an interface or a point of it is from the root."""
        points = np.concatenate([self.at.reshape(-1, 3), self.vertices.reshape(-1, 3), self.center[None]])
        return float(np.linalg.norm(points, axis=1).max())

    @property
    def missing_spins(self) -> tuple[str, ...]:
        """Keys of the spins with which the body does not stiffen."""
        given = self.loads if self.level == 2 else ()
        return tuple(key for key in ("wxwx", "wywy", "wzwz", "wxwy", "wxwz", "wywz") if key not in given)

    @property
    def has_spin(self) -> bool:
        """Whether the body stiffens with every spin."""
        return not self.missing_spins

    def stiffens(self, name: str) -> bool:
        """Whether the body stiffens with every force at an interface."""
        return self.level == 2 and all(f"{name}.{force}" in self.loads for force in ("fx", "fy", "fz"))

    def buckling_load(self, name: str, stiffness: ArrayLike | None = None) -> float:
        """About the compression [N] along the line from the root to an interface at which the body buckles.

        From its stiffening; without it as a cantilever buckles whose tip is as soft across that line:
        π²/4 EI/L² = 0.82 k L. Infinite for an interface at the root itself. stiffness (n,): of its modes, where a model
        has other ones than the body.
        """
        own = self.stiffness if stiffness is None else np.asarray(stiffness, float)
        k = self.names.index(name)
        distance = float(np.linalg.norm(self.at[k]))
        if distance <= 1e-9 * self.length:
            return np.inf
        if not (own > 0.0).all():
            return 0.0
        along = self.at[k] / distance
        if self.level == 2 and f"{name}.fx" in self.loads:
            g = -self.bent_shifts[k] @ along / np.sqrt(np.outer(own, own))
            largest = float(np.linalg.eigvalsh(0.5 * (g + g.T))[-1])
            return 1.0 / largest if largest > 0.0 else np.inf
        across = self.shifts[k] - np.outer(self.shifts[k] @ along, along)
        softness = float(np.linalg.eigvalsh((across / own[:, None]).T @ across)[-1])
        return _EULER * distance / softness if softness > 0.0 else np.inf

    def stations(self, count: int = 16) -> Stations:
        """Its root and interfaces, and how they move."""
        n = self.n
        own = (self.at, self.shifts, self.turns, self.bent_shifts, self.bent_turns)
        shapes = ((1, 3), (1, n, 3), (1, n, 3), (1, n, n, 3), (1, n, n, 3))
        return Stations(
            *(np.concatenate([np.zeros(s), x.reshape(-1, *s[1:])]) for x, s in zip(own, shapes, strict=True))
        )

    def __str__(self) -> str:
        return printout(self)


def printout(body: FiniteElementBody) -> str:
    """Mass, modes, interfaces, the level of data, and what the modes leave out."""
    hertz = body.frequencies / (2.0 * np.pi)
    x, y, z = body.center
    xx, xy, xz, yy, yz, zz = body.moments
    loads = f" ({', '.join(body.loads)})" if body.level == 2 and len(body.loads) < 12 else ""
    shares = ", ".join(f"{s:.3g}" for s in body.effective)
    moved = f"move {shares} of the mass along x, y, z and of the inertia about x, y, z"
    is_modal = np.isnan(body.left_out)
    lines = [
        f"modal data of {body.source}: {body.n} modes"
        if is_modal
        else f"finite elements of {body.source}: {body.size} degrees of freedom, {body.basis} to {body.n} modes",
        f"  mass {body.mass:.6g} kg, centre ({x:.4g}, {y:.4g}, {z:.4g}) m from the root, "
        f"inertia about it xx {xx:.4g}, yy {yy:.4g}, zz {zz:.4g}, xy {xy:.3g}, xz {xz:.3g}, yz {yz:.3g} kg m²",
        "  modes with the root held [Hz]: "
        + ", ".join(f"{name} {f:.5g}" for name, f in zip(body.mode_names, hertz, strict=True)),
        "  interfaces: root" + "".join(f", {name} at ({a:.4g}, {b:.4g}, {c:.4g}) m" for name, (a, b, c) in body.nodes),
        f"  level of data {body.level}: {LEVELS[body.level]}{loads}",
        f"  the modes {moved}"
        if is_modal
        else f"  the modes leave out {body.left_out:.2g} of the strain energy under accelerations and interface loads; "
        f"they {moved}",
    ]
    return "\n".join(lines)
