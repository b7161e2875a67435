"""Bodies that pass through each other: collision shapes that overlap along a motion and have no contact.

MuJoCo's mj_geomDistance measures them, on the host; meshes count as their convex hulls. Left out are bodies that a
joint or loop joins, which overlap by design, and pairs with a contact of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.errors import UnsupportedError, listed
from spanloop.kernels.compile import compile
from spanloop.math.quaternion import of_rotations
from spanloop.model import Model
from spanloop.model.contacts.contact_check import links_of
from spanloop.model.parts import WORLD, Geometry
from spanloop.topology import mechanism
from spanloop.trajectory.audit.findings import NOT_JUDGED, Finding, verdict_on

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

BOUND = 1e-4  # m: what convex hulls of meshes that just touch may overlap
_MOST = 200  # samples of a motion that are measured
_FORMATS = (".stl", ".obj", ".msh")  # meshes that MuJoCo reads
_SHOWN = 3  # pairs that are named


@dataclass(frozen=True)
class Overlap:
    """Two bodies that overlap, how deep [m], and at which sample."""

    a: str
    b: str
    depth: float
    sample: int


@dataclass(frozen=True)
class Overlaps:
    """Pairs of bodies that overlap, deepest first; how many pairs were measured, and shapes that could not be."""

    found: tuple[Overlap, ...]
    n_pairs: int
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class _Shape:
    at: str  # body or frame
    geometry: Geometry


def undeclared_overlaps(model: Model, q: np.ndarray, bound: float = BOUND) -> Overlaps:
    """The pairs of bodies without a contact that overlap by more than the bound [m] at states q (n, nq).

    UnsupportedError: MuJoCo is not installed.
    """
    mujoco = _mujoco()
    shapes, left_out = _measurable(mujoco, _shapes(model))
    pairs = list(_pairs(model, shapes))
    if not pairs:
        return Overlaps((), 0, left_out)
    theirs = _compiled(mujoco, shapes)
    data = mujoco.MjData(theirs)
    names = list(mechanism(model).anchors)
    places = [names.index(s.at) for s in shapes]
    poses = compile(model, "poses")(q).reshape(-1, len(names), 4, 4)[:, places]
    turns = of_rotations(poses[..., :3, :3])
    reach = np.where(theirs.geom_rbound > 0.0, theirs.geom_rbound, np.inf)  # a plane has none
    one, other = np.array(pairs).T
    deepest: dict[tuple[str, str], Overlap] = {}
    for sample in range(len(poses)):
        data.mocap_pos[:], data.mocap_quat[:] = poses[sample, :, :3, 3], turns[sample]
        mujoco.mj_kinematics(theirs, data)
        apart = np.linalg.norm(data.geom_xpos[one] - data.geom_xpos[other], axis=-1)
        for p in np.flatnonzero(apart < reach[one] + reach[other]):
            depth = -mujoco.mj_geomDistance(theirs, data, *pairs[p], 0.0, None)
            key = shapes[pairs[p][0]].at, shapes[pairs[p][1]].at
            if depth > bound and (key not in deepest or depth > deepest[key].depth):
                deepest[key] = Overlap(*key, depth, sample)
    return Overlaps(tuple(sorted(deepest.values(), key=lambda x: -x.depth)), len(pairs), left_out)


def overlap_finding(run: Trajectory) -> Finding:
    """The finding on bodies of a run that pass through each other without a contact."""
    known = np.argwhere(np.isfinite(run.q).all(axis=-1))
    chosen = known[np.unique(np.linspace(0, len(known) - 1, min(len(known), _MOST)).astype(int))]
    overlaps = undeclared_overlaps(run.model, run.q[tuple(chosen.T)])
    parts = [
        f"{x.a!r} and {x.b!r} by up to {1e3 * x.depth:.3g} mm, {_when(run, chosen[x.sample])}"
        for x in overlaps.found[:_SHOWN]
    ]
    more = f"; {len(overlaps.found) - _SHOWN} more pairs" if len(overlaps.found) > _SHOWN else ""
    unread = f" Not measured: {listed(overlaps.left_out, _SHOWN)}." if overlaps.left_out else ""
    measured = f"{overlaps.n_pairs} pairs at {len(chosen)} samples, meshes as their convex hulls"
    value = max((x.depth for x in overlaps.found), default=0.0)
    if not overlaps.n_pairs:
        sentence = f"No two bodies that could pass through each other have collision shapes.{unread}"
        return Finding("overlaps", np.nan, BOUND, "m", NOT_JUDGED, sentence)
    if parts:
        sentence = f"Shapes without a contact overlap: {'; '.join(parts)}{more} (bound {1e3 * BOUND:g} mm; {measured})."
    else:
        sentence = f"No shapes without a contact overlap by more than {1e3 * BOUND:g} mm ({measured})."
    return Finding("overlaps", value, BOUND, "m", verdict_on(value, BOUND, 0.0), sentence + unread)


def _when(run: Trajectory, place: np.ndarray) -> str:
    *which, sample = map(int, place)
    of_run = f" of run {which[0] if len(which) == 1 else tuple(which)}" if which else ""
    return f"at {run.times[sample]:g} s{of_run}"


def _shapes(model: Model) -> list[_Shape]:
    """Collision shapes of the bodies, and of contacts those that no body has."""
    own = [_Shape(b.name, g) for b in model.bodies for g in b.geometry if g.use == "collision"]
    more = [_Shape(s.at, s.geometry) for c in model.contacts for s in c.sides]
    return list(dict.fromkeys([*own, *more]))


def _pairs(model: Model, shapes: list[_Shape]) -> Iterator[tuple[int, int]]:
    """Numbers of the shapes that must not overlap."""
    links = links_of(model, model.joints)
    joined = {frozenset((links[x.a], links[x.b])) for x in model.loops}
    joined |= {frozenset((links[j.parent], links[j.child])) for j in model.joints if j.kind.name != "free"}
    stood_for = _declared(model)
    for i, one in enumerate(shapes):
        for k in range(i):
            other = shapes[k]
            carriers = frozenset((links[one.at], links[other.at]))
            if len(carriers) == 2 and carriers not in joined and not _is_declared(stood_for, one, other):
                yield k, i


def _declared(model: Model) -> list[tuple[set[_Shape], set[_Shape]]]:
    """For each contact the shapes that its sides stand for: themselves, and all of a body whose own they are not."""
    out = []
    for c in model.contacts:
        sides = []
        for s in c.sides:
            shape, body = _Shape(s.at, s.geometry), WORLD if s.at == WORLD else model.frame(s.at).body
            own = {_Shape(b.name, g) for b in model.bodies if b.name == body for g in b.geometry}
            sides.append({shape} if shape in own else {shape, *own})
        out.append((sides[0], sides[1]))
    return out


def _is_declared(stood_for: list[tuple[set[_Shape], set[_Shape]]], one: _Shape, other: _Shape) -> bool:
    return any((one in a and other in b) or (one in b and other in a) for a, b in stood_for)


# ---- MuJoCo


def _mujoco() -> Any:
    try:
        import mujoco
    except ImportError:
        raise UnsupportedError(
            "audit(meshes=True) measures shapes with MuJoCo, which is not installed; pip install 'spanloop[mjcf]'"
        ) from None
    return mujoco


def _measurable(mujoco: Any, shapes: list[_Shape]) -> tuple[list[_Shape], tuple[str, ...]]:
    """The shapes that MuJoCo can measure, and words for those that it cannot."""
    kept, left_out = [], []
    for s in shapes:
        if s.geometry.shape == "point":
            continue
        if s.geometry.shape == "mesh":
            if not s.geometry.path or Path(s.geometry.path).suffix.lower() not in _FORMATS:
                left_out.append(f"mesh {s.geometry.file!r} of {s.at!r} (not found, or not STL, OBJ or MSH)")
                continue
            try:
                _compiled(mujoco, [s])
            except ValueError as error:
                left_out.append(f"mesh {s.geometry.file!r} of {s.at!r} ({str(error).splitlines()[0]})")
                continue
        kept.append(s)
    return kept, tuple(left_out)


def _compiled(mujoco: Any, shapes: list[_Shape]) -> Any:
    """A model of MuJoCo with one body a shape, whose poses are inputs."""
    spec = mujoco.MjSpec()
    for k, s in enumerate(shapes):
        g = s.geometry
        quaternion = of_rotations(np.array(g.placement.rotation))
        body = spec.worldbody.add_body(name=str(k), mocap=True)
        geom = body.add_geom(type=_type(mujoco, g), pos=g.placement.position, quat=quaternion, size=_half_sizes(g))
        if g.shape in ("mesh", "hull"):
            mesh = spec.add_mesh(name=str(k), inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL)
            if g.shape == "mesh":
                mesh.file, mesh.scale = g.path, g.size or (1.0, 1.0, 1.0)
            else:
                mesh.uservert = np.array(g.vertices).ravel()
            geom.meshname = str(k)
    return spec.compile()


def _type(mujoco: Any, g: Geometry) -> Any:
    return getattr(mujoco.mjtGeom, f"mjGEOM_{'MESH' if g.shape == 'hull' else g.shape.upper()}")


def _half_sizes(g: Geometry) -> list[float]:
    """MuJoCo's sizes of a shape."""
    match g.shape:
        case "sphere":
            return [g.size[0], 0.0, 0.0]
        case "capsule" | "cylinder":
            return [g.size[0], 0.5 * g.size[1], 0.0]
        case "box":
            return [0.5 * x for x in g.size]
        case "ellipsoid":
            return list(g.size)
        case "plane":
            return [1.0, 1.0, 1.0]
    return [0.0, 0.0, 0.0]
