"""Contacts of an MJCF: the pairs of geoms that MuJoCo's filters let collide, with its friction of each pair.

MuJoCo collides two geoms if their masks agree (contype, conaffinity), unless they are on one body or on bodies without
a joint between them, on a body and its parent (the world is nobody's parent here), or on bodies of an <exclude>. A
<pair> collides always, with friction of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.model.files.contact_pairs import Colliding, Details, Side, numbered_pairs
from spanloop.model.files.load_notes import ACTS, LoadNotes
from spanloop.model.parts import WORLD, Geometry, Surface

SOLVER = (("solref", (0.02, 1.0)), ("solimp", (0.9, 0.95, 0.001, 0.5, 2.0)))  # MuJoCo's defaults


@dataclass(frozen=True)
class Solids:
    """What collides: names of bodies, the links that move them, and shapes by geom, in the bodies of the model."""

    names: Sequence[str]
    links: Mapping[str, str]
    shapes: Mapping[int, Geometry]


def read_surface(m: Any, g: int) -> Surface:
    """The friction of a geom: sliding, torsional [m], rolling [m]."""
    slide, spin, roll = (max(float(x), 0.0) for x in m.geom_friction[g])
    return Surface(slide, spin, roll, None, "maximum", int(m.geom_condim[g]), int(m.geom_priority[g]))


def read_pairs(source: Any, solids: Solids, notes: LoadNotes) -> Colliding:
    """All pairs that collide in MuJoCo: those of <pair>s first."""
    m = source.model
    sides = _sides(source, solids)
    if _is_disabled(source):
        return Colliding(sides, np.zeros((0, 2), int), lambda k: Details())
    declared = declared_pairs(m)
    for k in range(m.npair):
        if k not in declared.values():
            one, other = sides[m.pair_geom1[k]].name, sides[m.pair_geom2[k]].name
            notes.add("a second <pair> of the same geoms left out", f"{one!r} and {other!r}")
        elif m.pair_friction[k][0] != m.pair_friction[k][1] or m.pair_friction[k][3] != m.pair_friction[k][4]:
            notes.add("friction that differs between two directions, the smaller is read", f"<pair> {k}")
    numbers = list(declared.values())
    ends = np.concatenate((np.array(list(declared), int).reshape(-1, 2), candidate_pairs(m, source.mujoco)))

    def details(k: int) -> Details:
        if k < len(numbers):
            pair = numbers[k]
            where = next((source.where(p) for p in source.spec.pairs if p.id == pair), "")
            return Details(pair_values(source, pair), m.pair(pair).name, where)
        a, b = ends[k].tolist()
        element = next(g for g in source.spec.geoms if g.id == max(a, b))
        return Details(geom_values(source, a, b), where=source.where(element))

    return Colliding(sides, ends, details)


def note_settings(source: Any, notes: LoadNotes) -> None:
    """Note what a hard contact does not have: stiffness and damping of contacts, and margins, which shift them."""
    m = source.model
    for key, default in SOLVER:
        rows = np.concatenate((getattr(m, f"geom_{key}"), getattr(m, f"pair_{key}")))
        if rows.size and not np.allclose(rows, default):
            notes.add("solref and solimp of contacts left out; contacts are hard here", key)
    margins = np.concatenate((m.geom_margin - m.geom_gap, m.pair_margin - m.pair_gap))
    if (margins > 0.0).any():
        notes.add(f"{ACTS} margin of contacts, at which shapes touch before they meet", f"{margins.max():g} m at most")


def _is_disabled(source: Any) -> bool:
    bits, flags = source.mujoco.mjtDisableBit, int(source.model.opt.disableflags)
    return bool(flags & (int(bits.mjDSBL_CONTACT) | int(bits.mjDSBL_CONSTRAINT)))


# ---- which geoms collide


def declared_pairs(m: Any) -> dict[tuple[int, int], int]:
    """The number of the <pair> of two geoms, of several the first."""
    out: dict[tuple[int, int], int] = {}
    for k in range(m.npair):
        a, b = sorted((int(m.pair_geom1[k]), int(m.pair_geom2[k])))
        out.setdefault((a, b), k)
    return out


def candidate_pairs(m: Any, mujoco: Any) -> np.ndarray:
    """Numbers (n, 2) of the geoms that collide by MuJoCo's filters, without those of a <pair>."""
    bodies = m.geom_bodyid.astype(int)
    welded = m.body_weldid[bodies]
    above = m.body_weldid[m.body_parentid[welded]]
    flat = np.isin(m.geom_type, (int(mujoco.mjtGeom.mjGEOM_PLANE), int(mujoco.mjtGeom.mjGEOM_HFIELD)))
    with_parents = int(m.opt.disableflags) & int(mujoco.mjtDisableBit.mjDSBL_FILTERPARENT)
    declared = np.array([a * m.ngeom + b for a, b in declared_pairs(m)], int)

    def collide(a: int, b: np.ndarray) -> np.ndarray:
        good = (m.geom_contype[a] & m.geom_conaffinity[b]) | (m.geom_contype[b] & m.geom_conaffinity[a]) != 0
        good &= (welded[b] != welded[a]) & ~(flat[b] & flat[a])
        if not with_parents and welded[a] != 0:
            good &= ~((welded[b] != 0) & ((above[b] == welded[a]) | (welded[b] == above[a])))
        if m.nexclude:
            low, high = np.minimum(bodies[a], bodies[b]), np.maximum(bodies[a], bodies[b])
            good &= ~np.isin((low << 16) + high, m.exclude_signature)
        return good & ~np.isin(a * m.ngeom + b, declared)

    return numbered_pairs(solid_geoms(m), collide)


def solid_geoms(m: Any) -> np.ndarray:
    """Numbers of the geoms that can collide without a <pair>."""
    return np.flatnonzero(m.geom_contype | m.geom_conaffinity)


# ---- how they rub


def geom_values(source: Any, a: int, b: int) -> dict[str, float]:
    """Friction, torsion and rolling of two geoms."""
    m = source.model
    one, other = read_surface(m, a), read_surface(m, b)
    forced = _forced(source)
    if forced is None:
        return one.touching(other)
    slide, spin, roll = forced
    condims = max(one, other, key=lambda s: s.priority) if one.priority != other.priority else None
    condim = condims.condim if condims is not None else max(one.condim or 1, other.condim or 1)
    return Surface(slide, spin, roll, condim=condim).touching(None)


def pair_values(source: Any, k: int) -> dict[str, float]:
    """Friction, torsion and rolling of a <pair>."""
    m = source.model
    first, second, spin, *roll = (max(float(x), 0.0) for x in m.pair_friction[k])
    slide, spin, rolling = _forced(source) or (min(first, second), spin, min(roll))
    return Surface(slide, spin, rolling, condim=int(m.pair_dim[k])).touching(None)


def _forced(source: Any) -> tuple[float, float, float] | None:
    """The friction of all contacts, if the file's <option> overrides that of geoms."""
    if not int(source.model.opt.enableflags) & int(source.mujoco.mjtEnableBit.mjENBL_OVERRIDE):
        return None
    first, second, spin, *roll = (max(float(x), 0.0) for x in source.model.opt.o_friction)
    return min(first, second), spin, min(roll)


# ---- shapes


def _sides(source: Any, solids: Solids) -> list[Side]:
    """Every geom as a side: its name, or that of its body, with a number if the body has several that collide."""
    m, kinds = source.model, source.mujoco.mjtGeom
    several = np.bincount(m.geom_bodyid[solid_geoms(m)], minlength=m.nbody) > 1
    out = []
    for g in range(m.ngeom):
        body = int(m.geom_bodyid[g])
        name = m.geom(g).name or solids.names[body] + f".{g - int(m.body_geomadr[body])}" * bool(several[body])
        shape = solids.shapes.get(g)
        what = kinds(int(m.geom_type[g])).name[7:].lower() if shape is None else shape.shape
        at = solids.names[body] if body else WORLD
        out.append(Side(name, at, source.other_shapes.get(g, what), shape, solids.links[at]))
    return out
