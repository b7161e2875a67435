"""Beams: slender straight bodies that bend, twist and stretch, from a few numbers of the section and the material."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from spanloop.flexible import reduction
from spanloop.flexible.body import FlexibleBody, FlexibleNode, Stations
from spanloop.flexible.modes import Modal
from spanloop.flexible.particles import particles, rigid_moments
from spanloop.flexible.rod import DIRECTIONS, Fields, Rod
from spanloop.flexible.second_order import second_order
from spanloop.flexible.sections import Section
from spanloop.math.flexible_nodes import NodeShape

BASES = ("craig-bampton", "cantilever", "full")
THEORIES = ("euler-bernoulli", "timoshenko")


@dataclass(frozen=True)
class Beam:
    """The recipe of a beam; sl.flexible.beam checks and makes it. Its axis is x from 0 to `length`.

    sections: equally spaced from root to tip, properties between them linear
    nodes: names and positions [m] along x; modes: by direction, in the order of DIRECTIONS
    """

    length: float
    E: float
    G: float
    density: float
    sections: tuple[Section, ...]
    nodes: tuple[tuple[str, float], ...]
    modes: tuple[tuple[str, int], ...]
    basis: str
    theory: str
    elements: int
    pieces: int
    damping: tuple[float, ...]

    @cached_property
    def bodies(self) -> tuple[FlexibleBody, ...]:
        """The pieces, from root to tip: one body each, whose root is the tip of the one before."""
        return tuple(_piece(self, k) for k in range(self.pieces))

    @property
    def mass(self) -> float:
        """Mass [kg]."""
        return sum(b.mass for b in self.bodies)

    @property
    def frequencies(self) -> np.ndarray:
        """Frequencies of the modes of each piece with its root held [rad/s]."""
        return np.array([w for b in self.bodies for w in b.frequencies])

    def node_piece(self, x: float) -> int:
        """The number of the piece on which a position along the beam lies."""
        step = self.length / self.pieces
        return min(self.pieces - 1, max(0, int(np.ceil(x / step - 1e-9)) - 1))

    def __str__(self) -> str:
        return printout(self)


@dataclass(frozen=True)
class BeamPiece:
    """What the modes of a flexible body were computed from: a piece of a beam."""

    beam: Beam
    number: int = 0

    @property
    def body(self) -> FlexibleBody:
        """The flexible body that the piece is."""
        return self.beam.bodies[self.number]

    @property
    def shapes(self) -> tuple[Rod, tuple[tuple[str, np.ndarray], ...]]:
        """The rod in finite elements, and the shapes (dofs, n) of the modes of each direction."""
        model = _finite_elements(self.beam, self.number)
        return model.rod, model.bases

    def stations(self, count: int = 16) -> Stations:
        """Places along the piece: `count` and the root, or every element's end if there are fewer."""
        model = _finite_elements(self.beam, self.number)
        ends = np.unique(np.linspace(0, len(model.rod.lengths), count + 1).round().astype(int))
        return model.stations(ends)

    def sections_at(self, x: np.ndarray) -> list[tuple[float, float, bool]]:
        """Width, height and roundness of what is drawn at positions along the piece [m]."""
        start = self.number * self.beam.length / self.beam.pieces
        at = np.linspace(0.0, self.beam.length, max(2, len(self.beam.sections)))
        sections = self.beam.sections if len(self.beam.sections) > 1 else self.beam.sections * 2
        sizes = [np.interp(start + x, at, [s.outline[k] for s in sections]) for k in (0, 1)]
        return [(float(b), float(h), sections[0].is_round) for b, h in zip(*sizes, strict=True)]


# ---- from a recipe to a body


@dataclass(frozen=True)
class _Model:
    """A rod with its basis: fields of the modes at Gauss points and at the ends of elements."""

    rod: Rod
    directions: tuple[str, ...]  # of each mode
    fields: Fields
    ends: Fields
    stiffness: np.ndarray
    bases: tuple[tuple[str, np.ndarray], ...]  # shapes (dofs, n) of each direction

    def stations(self, edges: np.ndarray) -> Stations:
        """The shapes at edges of elements (0 is the root, which does not move)."""
        bent = second_order(self.rod, self.fields)
        n = len(self.directions)
        zero, zero2 = np.zeros((1, n, 3)), np.zeros((1, n, n, 3))
        linear = [np.concatenate([zero, np.swapaxes(x, 0, 1)]) for x in (self.ends.u, self.ends.theta)]
        square = [np.concatenate([zero2, np.moveaxis(x, 2, 0)]) for x in (bent.g_ends, bent.gamma_ends)]
        positions = np.stack([self.rod.edges, 0.0 * self.rod.edges, 0.0 * self.rod.edges], axis=1)
        return Stations(positions[edges], *(x[edges] for x in (*linear, *square)))


@lru_cache(maxsize=64)
def _finite_elements(beam: Beam, number: int) -> _Model:
    """The finite-element model of a piece, reduced to its modes."""
    rod, interfaces = _rod(beam, number)
    found: list[tuple[str, np.ndarray, np.ndarray]] = []
    for direction, n in beam.modes:
        K, M = rod.matrices(direction)
        if beam.basis == "full":
            basis = reduction.natural_modes(K, M, len(K))
        elif beam.basis == "cantilever":
            basis = reduction.natural_modes(K, M, n)
        else:
            held = [d for edge in interfaces for d in rod.dofs_at(direction, edge)]
            basis = reduction.craig_bampton(K, M, held, n)
        basis = _scaled(rod, direction, basis)
        found.append((direction, basis, np.einsum("ik,ij,jk->k", basis, K, basis)))
    fields = [rod.fields(direction, basis) for direction, basis, _ in found]
    ends = [rod.end_fields(direction, basis) for direction, basis, _ in found]
    return _Model(
        rod,
        tuple(direction for direction, basis, _ in found for _ in range(basis.shape[1])),
        _stacked(fields),
        _stacked(ends),
        np.concatenate([k for *_, k in found]) if found else np.zeros(0),
        tuple((direction, basis) for direction, basis, _ in found),
    )


def _stacked(fields: list[Fields]) -> Fields:
    return Fields(*(np.concatenate([getattr(f, name) for f in fields]) for name in ("u", "theta", "kappa", "gamma")))


def _rod(beam: Beam, number: int) -> tuple[Rod, list[int]]:
    """The rod of a piece, and the numbers of the edges at its nodes."""
    step = beam.length / beam.pieces
    own = [x - number * step for _, x in beam.nodes if beam.node_piece(x) == number and x > 0.0]
    at = sorted({step, *own})
    edges, last = [0.0], 0.0
    for x in at:
        if x - last > 1e-9 * step:
            count = max(1, round(beam.elements * (x - last) / step))
            edges += list(np.linspace(last, x, count + 1)[1:])
            last = x
    places = np.array(edges)
    interfaces = [int(np.argmin(np.abs(places - x))) for x in at]
    rod = Rod(places, {})
    return Rod(places, properties(beam, number * step + rod.points)), sorted(set(interfaces))


def properties(beam: Beam, x: np.ndarray) -> dict[str, np.ndarray]:
    """Section properties at positions along the beam."""
    sections = beam.sections if len(beam.sections) > 1 else beam.sections * 2
    at = np.linspace(0.0, beam.length, len(sections))

    def along(name: str) -> np.ndarray:
        return np.asarray(np.interp(x, at, [getattr(s, name) for s in sections]))

    area, Iy, Iz = along("area"), along("Iy"), along("Iz")
    thick = beam.theory == "timoshenko"
    infinite = np.full_like(area, np.inf)
    return {
        "mass": beam.density * area,
        "EA": beam.E * area,
        "kGAy": beam.G * area * along("shear_y") if thick else infinite,
        "kGAz": beam.G * area * along("shear_z") if thick else infinite,
        "GJ": beam.G * along("J"),
        "EIy": beam.E * Iy,
        "EIz": beam.E * Iz,
        "polar": beam.density * (Iy + Iz),
        "about_y": beam.density * Iy * float(thick),
        "about_z": beam.density * Iz * float(thick),
        "across_y": beam.density * Iz,
        "across_z": beam.density * Iy,
    }


def _scaled(rod: Rod, direction: str, basis: np.ndarray) -> np.ndarray:
    """The basis with the largest displacement of each vector 1 m, or rotation 1 rad, and positive at its last place."""
    ends = rod.end_fields(direction, basis)
    values = (ends.theta if direction == "torsion" else ends.u)[:, :, {"y": 1, "z": 2}.get(direction, 0)]
    largest = np.abs(values).max(axis=1)
    last = values[np.arange(len(values)), -1]
    sign = np.where(np.abs(last) > 1e-6 * largest, np.sign(last), 1.0)
    return np.asarray(basis * (sign / np.where(largest > 0.0, largest, 1.0)))


@lru_cache(maxsize=64)
def _piece(beam: Beam, number: int) -> FlexibleBody:
    """One piece of a beam as a flexible body."""
    model = _finite_elements(beam, number)
    rod = model.rod
    mass, first, second = rigid_moments(rod)
    center = first / mass
    about = (np.trace(second) * np.eye(3) - second) - mass * (center @ center * np.eye(3) - np.outer(center, center))
    bent = second_order(rod, model.fields)
    own = particles(rod, model.fields, bent.g)
    masses = np.array(own.modal_masses)
    frequencies = np.sqrt(model.stiffness / masses)
    modal = Modal(
        own,
        mass,
        tuple("rad" if d == "torsion" else "m" for d in model.directions),
        _names(model.directions),
        BeamPiece(beam, number),
    )
    return FlexibleBody(
        mass,
        tuple(center.tolist()),
        tuple(float(about[i, j]) for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))),
        modal,
        tuple(model.stiffness.tolist()),
        tuple(_damping(beam, number, model, frequencies).tolist()),
        _nodes(beam, number, model),
        tuple(frequencies.tolist()),
    )


def _damping(beam: Beam, number: int, model: _Model, frequencies: np.ndarray) -> np.ndarray:
    """Damping 2 ζ k/ω of each mode: ω is its own frequency, of pieces that of the whole beam's slowest mode."""
    if len(beam.damping) > 1:
        start = sum(len(_finite_elements(beam, k).stiffness) for k in range(number))
        ratios = np.array(beam.damping[start : start + len(frequencies)])
        return np.asarray(2.0 * ratios * model.stiffness / frequencies)
    if beam.pieces > 1:
        slowest = _slowest(beam)
        frequencies = np.array([slowest[d] for d in model.directions])
    return np.asarray(2.0 * beam.damping[0] * model.stiffness / frequencies)


@lru_cache(maxsize=64)
def _slowest(beam: Beam) -> dict[str, float]:
    """The slowest frequency of the whole beam with its root held [rad/s], by direction."""
    modes = tuple((direction, 1) for direction, _ in beam.modes)
    whole = replace(beam, pieces=1, modes=modes, basis="cantilever", damping=(0.0,), elements=max(beam.elements, 10))
    return dict(zip((d for d, _ in modes), _piece(whole, 0).frequencies, strict=True))


def _nodes(beam: Beam, number: int, model: _Model) -> tuple[FlexibleNode, ...]:
    """The nodes on a piece; the end of every piece is its tip."""
    step = beam.length / beam.pieces
    last = number == beam.pieces - 1
    wanted = {name: x - number * step for name, x in beam.nodes if beam.node_piece(x) == number and x > 0.0}
    if not last:
        wanted["end"] = step
    edges = np.array([int(np.argmin(np.abs(model.rod.edges - x))) for x in wanted.values()])
    at = model.stations(edges)
    out = []
    for k, name in enumerate(wanted):
        shape = NodeShape(*(_tuples(x[k]) for x in (at.translations, at.rotations)),
                          *(_tuples(x[k]) for x in (at.bent_translations, at.bent_rotations)))  # fmt: skip
        out.append(FlexibleNode(name, tuple(at.positions[k].tolist()), shape))
    return tuple(out)


def _names(directions: tuple[str, ...]) -> tuple[str, ...]:
    """y1, y2, ..., torsion1, ..."""
    counts = dict.fromkeys(DIRECTIONS, 0)
    out = []
    for d in directions:
        counts[d] += 1
        out.append(f"{d}{counts[d]}")
    return tuple(out)


def _tuples(a: np.ndarray):
    """Nested tuples of floats, without the residues of rounding."""
    return tuple(_tuples(x) for x in a) if a.ndim else (float(a) if abs(a) > 1e-15 else 0.0)


def printout(beam: Beam) -> str:
    """Mass, modes with their frequencies, nodes, and where the beam is doubtful."""
    kind = f"{beam.basis}, {beam.theory}, {beam.elements} elements" + (
        f", {beam.pieces} pieces" if beam.pieces > 1 else ""
    )
    lines = [f"beam of {beam.length:g} m, {beam.mass:g} kg ({kind})"]
    for k, body in enumerate(beam.bodies):
        of = f"piece {k + 1}: " if beam.pieces > 1 else ""
        modes = ", ".join(
            f"{name} {w / (2.0 * np.pi):.4g} Hz"
            for name, w in zip(body.modal.mode_names, body.frequencies, strict=True)
        )
        lines.append(f"  {of}modes with the root held: {modes}")
    lines.append("  nodes: " + ", ".join(f"{name} at {x:g} m" for name, x in (("root", 0.0), *beam.nodes)))
    return "\n".join(lines)
