"""MJCF bodies: joints, inertias, shapes and sites.

A body with several joints becomes a chain: each joint but the last carries a body without mass, called BODY::JOINT. A
joint's coordinate is MuJoCo's own, `ref` included; at neutral q a free body is at its place in the file.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spanloop.errors import FileError
from spanloop.joints import Fixed, Free, JointKind, Prismatic, Revolute, Spherical
from spanloop.math.quaternion import matrix
from spanloop.model.exact_rotations import snap_rotation
from spanloop.model.files.load_notes import ACTS, Color, LoadNotes
from spanloop.model.files.mjcf.contacts import read_surface
from spanloop.model.orders.mujoco import KINDS, body_names, joint_names
from spanloop.model.parts import WORLD, Body, Frame, Geometry, Inertia, Joint, Placement
from spanloop.types import Floats3

SHAPES = {"mjGEOM_SPHERE": "sphere", "mjGEOM_CAPSULE": "capsule", "mjGEOM_CYLINDER": "cylinder", "mjGEOM_BOX": "box"}
SHAPES["mjGEOM_ELLIPSOID"] = "ellipsoid"
NO_COLOR = [0.5, 0.5, 0.5, 1.0]  # MuJoCo's default
AGREE = 1e-8  # of the largest number: MuJoCo's principal axes are not more exact
SHOWN_GROUPS = 2  # the last group of geoms that MuJoCo's viewer shows by default
UPPER = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


@dataclass
class Parts:
    """Bodies, joints and frames of the file, poses of joints in their children and of bodies in the world."""

    names: list[str]
    bodies: list[Body] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    at_child: dict[str, Placement] = field(default_factory=dict)
    rest: list[Placement] = field(default_factory=lambda: [Placement()])  # of MuJoCo's bodies, at qpos0
    sites: list[str] = field(default_factory=list)  # the frames' names, by number of the site
    shapes: dict[int, tuple[str, int]] = field(default_factory=dict)  # by geom: its body, and its number there
    ground: dict[int, Geometry] = field(default_factory=dict)  # by geom: shapes of the world, planes of other bodies


def read_bodies(source: Any, notes: LoadNotes) -> Parts:
    """All bodies with their joints, inertias, shapes and sites."""
    m = source.model
    parts = Parts(body_names(m))
    joints = joint_names(m)
    taken_bodies, taken_joints = set(parts.names), set(joints)
    driven = _driven(source)
    elements = {b.id: b for b in source.spec.bodies}
    specs = {j.id: j for j in source.spec.joints}
    for i in range(1, m.nbody):
        where = source.where(elements[i])
        above = int(m.body_parentid[i])
        place = placement(m.body_quat[i], m.body_pos[i], notes)
        parts.rest.append(parts.rest[above] @ place)
        inertia = read_inertia(source, elements[i], i, notes)
        shapes = dict(_shapes(source, i, notes))
        parts.shapes |= {g: (parts.names[i], k) for k, g in enumerate(shapes)}
        parts.bodies.append(Body(parts.names[i], inertia, tuple(shapes.values()), where))
        if m.body_mocapid[i] >= 0:
            notes.add("mocap bodies, fixed to the world here", repr(parts.names[i]))
        own = range(int(m.body_jntadr[i]), int(m.body_jntadr[i]) + int(m.body_jntnum[i]))
        if not own:
            name = _free_name(f"{parts.names[i]}_fixed", taken_joints)
            parts.joints.append(Joint(name, Fixed(), parts.names[above], parts.names[i], place, where=where))
            continue
        parent, before = parts.names[above], (0.0, 0.0, 0.0)
        for k in own:
            last = k == own[-1]
            child = parts.names[i] if last else _free_name(f"{parts.names[i]}::{joints[k]}", taken_bodies)
            anchor = _three(m.jnt_pos[k]) if KINDS[int(m.jnt_type[k])] != "free" else (0.0, 0.0, 0.0)
            step = Placement(position=tuple(a - b for a, b in zip(anchor, before, strict=True)))  # type: ignore[arg-type]
            j = _joint(source, k, joints[k], parent, child, place @ step, k in driven, source.where(specs[k]), notes)
            parts.joints.append(j)
            if not last:
                parts.bodies.append(Body(child, where=where))
            elif any(anchor):
                parts.at_child[j.name] = Placement(position=anchor)
            parent, before, place = child, anchor, Placement()
    parts.frames += _sites(source, parts, notes)
    parts.ground = dict(_shapes(source, 0, notes)) | dict(_planes(source, notes))
    if m.body_geomnum[0]:
        notes.add("shapes of the world, for contacts only", f"{int(m.body_geomnum[0])} geoms")
    return parts


def _joint(
    source: Any,
    k: int,
    name: str,
    parent: str,
    child: str,
    place: Placement,
    driven: bool,
    where: str,
    notes: LoadNotes,
) -> Joint:
    m = source.model
    kind_name = KINDS[int(m.jnt_type[k])]
    q, v = int(m.jnt_qposadr[k]), int(m.jnt_dofadr[k])
    settings: dict[str, Any] = {"actuated": driven and kind_name != "free", "where": where}
    label = f"joint {name!r} ({where})"
    for ours, theirs in (("damping", m.dof_damping), ("friction", m.dof_frictionloss), ("armature", m.dof_armature)):
        settings[ours] = notes.losses(ours, (float(theirs[v]),), label)[0]
    settings["stiffness"] = notes.losses("stiffness", (float(m.jnt_stiffness[k]),), label)[0]
    if kind_name == "free" and settings["armature"]:
        settings["armature"] = 0.0
        notes.add(f"{ACTS} armature of a free joint", label)
    for array, row, what in (("dof_dampingpoly", v, "damping"), ("jnt_stiffnesspoly", k, "stiffness")):
        if hasattr(m, array) and np.any(getattr(m, array)[row]):
            notes.add(f"{ACTS} {what} that is no constant", label)
    if m.jnt_limited[k] and kind_name in ("hinge", "slide"):
        settings["lower"], settings["upper"] = (float(x) for x in m.jnt_range[k])
    elif m.jnt_limited[k]:
        notes.add("range of a ball joint left out", label)
    if m.jnt_actfrclimited[k]:
        low, high = (float(x) for x in m.jnt_actfrcrange[k])
        settings["effort"] = max(abs(low), abs(high))
        if low != -high:
            notes.add("actuatorfrcrange that is not symmetric, its larger side is the effort", label)
    kind: JointKind
    if kind_name in ("free", "ball"):
        return Joint(name, Free() if kind_name == "free" else Spherical(), parent, child, place, **settings)
    axis = notes.axis(m.jnt_axis[k].tolist())
    if not any(axis):
        raise FileError(f"{where}: joint {name!r}: its axis has no direction; expected for example '0 0 1'")
    kind = Revolute(axis) if kind_name == "hinge" else Prismatic(axis)
    settings["rest"] = float(m.qpos_spring[q])
    reference = float(m.qpos0[q])
    return Joint(name, kind, parent, child, place @ _back(kind, axis, reference, notes), **settings)


def _back(kind: JointKind, axis: Floats3, reference: float, notes: LoadNotes) -> Placement:
    """The pose that takes the joint from its reference coordinate (`ref`) back to 0."""
    if reference == 0.0:
        return Placement()
    if kind.name == "prismatic":
        return Placement(position=_three([-reference * x for x in axis]))
    s, c = math.sin(-reference / 2.0), math.cos(-reference / 2.0)
    return placement((c, *(s * x for x in axis)), (0.0, 0.0, 0.0), notes)


def _driven(source: Any) -> set[int]:
    """Numbers of the joints that an actuator drives; all if the file has no actuator."""
    m, kinds = source.model, source.mujoco.mjtTrn
    if not len(m.actuator_trntype):
        return set(range(m.njnt))
    direct = (int(kinds.mjTRN_JOINT), int(kinds.mjTRN_JOINTINPARENT))
    return {int(m.actuator_trnid[k, 0]) for k, t in enumerate(m.actuator_trntype) if int(t) in direct}


def _shapes(source: Any, body: int, notes: LoadNotes) -> Iterator[tuple[int, Geometry]]:
    """The shapes of a body, each with the number of its geom."""
    m, kinds = source.model, source.mujoco.mjtGeom
    for g in range(int(m.body_geomadr[body]), int(m.body_geomadr[body]) + int(m.body_geomnum[body])):
        collides = m.geom_contype[g] or m.geom_conaffinity[g]
        is_hidden = m.geom_group[g] > SHOWN_GROUPS  # in MuJoCo's viewer, unless the user asks
        use = "collision" if collides or is_hidden else "visual"
        look: dict[str, Any] = {"use": use, "color": _color(m, g)}
        look["surface"] = read_surface(m, g) if use == "collision" else None
        place = placement(m.geom_quat[g], m.geom_pos[g], notes)
        if g in source.meshes:
            mesh = source.meshes[g]
            place = _as_written(m, g, place, notes) @ mesh.placement
            if mesh.file:
                yield g, Geometry("mesh", mesh.scale, mesh.file, place, **look)
            else:
                notes.add("meshes that are in no file left out", f"geom {g} of {m.body(body).name!r}")
            continue
        kind = kinds(int(m.geom_type[g])).name
        x, y, z = (float(s) for s in m.geom_size[g])
        sizes = {"sphere": (x,), "capsule": (x, 2 * y), "cylinder": (x, 2 * y), "box": (2 * x, 2 * y, 2 * z)}
        sizes["ellipsoid"] = (x, y, z)
        if kind in SHAPES and g not in source.other_shapes:
            yield g, Geometry(SHAPES[kind], sizes[SHAPES[kind]], "", place, **look)
        elif body and g not in source.other_shapes and not (kind == "mjGEOM_PLANE" and collides):
            notes.add(f"shape {kind[7:].lower()} left out", f"geom {g} of {m.body(body).name!r}")


def _planes(source: Any, notes: LoadNotes) -> Iterator[tuple[int, Geometry]]:
    """The planes that collide; MuJoCo has them on bodies that are fixed to the world only."""
    m = source.model
    for g in np.flatnonzero(m.geom_type == int(source.mujoco.mjtGeom.mjGEOM_PLANE)).tolist():
        if m.geom_contype[g] or m.geom_conaffinity[g] or g in m.pair_geom1 or g in m.pair_geom2:
            place = placement(m.geom_quat[g], m.geom_pos[g], notes)
            color, surface = _color(m, g), read_surface(m, g)
            yield g, Geometry("plane", (), "", place, "collision", color, surface=surface)


def _as_written(m: Any, g: int, place: Placement, notes: LoadNotes) -> Placement:
    """The pose of a mesh's geom in the file, before the compiler moved the mesh to its centre and principal axes."""
    k = int(m.geom_dataid[g])
    return place @ placement(m.mesh_quat[k], m.mesh_pos[k], notes).inverse() if k >= 0 else place


def _color(m: Any, g: int) -> Color | None:
    """The geom's own colour, that of its material if it has none, None if it has neither."""
    rgba, material = m.geom_rgba[g].tolist(), int(m.geom_matid[g])
    if rgba == NO_COLOR:
        if material < 0:
            return None
        rgba = m.mat_rgba[material].tolist()
    red, green, blue, opacity = (min(max(round(x, 6), 0.0), 1.0) for x in rgba)  # they are of single precision
    return (red, green, blue, opacity)


def _sites(source: Any, parts: Parts, notes: LoadNotes) -> Iterator[Frame]:
    m = source.model
    taken = {WORLD, *parts.names}
    for i in range(m.nsite):
        name = m.site(i).name or f"site{i}"
        if name in taken:
            free = _free_name(f"{name}_site", taken)
            notes.add("sites renamed, a body or site has their name", f"{name!r} is {free!r}")
            name = free
        taken.add(name)
        parts.sites.append(name)
        place = placement(m.site_quat[i], m.site_pos[i], notes)
        yield Frame(name, parts.names[int(m.site_bodyid[i])], place)


def placement(quaternion: Any, position: Any, notes: LoadNotes) -> Placement:
    """A pose from MuJoCo's numbers, its rotation snapped."""
    w, x, y, z = (float(c) for c in quaternion)
    if x == y == z == 0.0:
        return Placement(position=_three(position))
    length = math.sqrt(w * w + x * x + y * y + z * z)
    rotation, changed = snap_rotation(matrix((w / length, x / length, y / length, z / length)))
    notes.rotations += changed
    return Placement(rotation, _three(position))


def _three(values: Any) -> Floats3:
    x, y, z = (float(c) + 0.0 for c in values)
    return (x, y, z)


def _free_name(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name


# ---- inertias as written, or as MuJoCo's compiler computes them


def read_inertia(source: Any, element: Any, i: int, notes: LoadNotes) -> Inertia:
    """The inertia of body i. What MuJoCo changed (balanceinertia, boundmass, settotalmass, ...) is kept and noted."""
    m = source.model
    mass, center = float(m.body_mass[i]), m.body_ipos[i]
    turn = _turn(m.body_iquat[i])
    tensor = turn @ np.diag(m.body_inertia[i]) @ turn.T
    written = _written(source, element)
    if written is not None:
        if _same(written, (mass, center, tensor)):
            mass, center, tensor = written
        elif not _aligned(source, i, written, mass, tensor):
            notes.add(
                "inertias that MuJoCo's compiler changed as the file's settings ask, read as changed",
                f"body {m.body(i).name!r} ({source.where(element)}), mass {written[0]:g} kg is now {mass:g} kg, "
                f"moments {_moments(written[2])} are now {_moments(tensor)} kg m²",
            )
    scale = np.abs(tensor).max() * 1e-15
    moments = tuple(0.0 if abs(tensor[r, c]) <= scale else float(tensor[r, c]) for r, c in UPPER)
    x, y, z = (float(c) + 0.0 for c in center)
    return Inertia(float(mass), (x, y, z), moments)  # type: ignore[arg-type]


def _written(source: Any, element: Any) -> tuple[float, np.ndarray, np.ndarray] | None:
    """Mass, centre and tensor in the body's axes as the file gives them; None where they come from elsewhere."""
    kinds = source.mujoco.mjtInertiaFromGeom
    if not element.explicitinertial or source.spec.compiler.inertiafromgeom == kinds.mjINERTIAFROMGEOM_TRUE:
        return None
    if not math.isnan(element.fullinertia[0]):
        xx, yy, zz, xy, xz, yz = element.fullinertia
        tensor = np.array(((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))
    elif element.ialt.type == source.mujoco.mjtOrientation.mjORIENTATION_QUAT:
        length = np.linalg.norm(element.iquat)
        turn = _turn(element.iquat / length)
        tensor = (
            turn @ np.diag(element.inertia) @ turn.T if abs(element.iquat[0]) < length else np.diag(element.inertia)
        )
    else:
        return None
    return float(element.mass), np.array(element.ipos), tensor


def _turn(quaternion: np.ndarray) -> np.ndarray:
    w, x, y, z = quaternion.tolist()
    return np.array(matrix((w, x, y, z)), dtype=float)


def _same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return all(np.abs(np.subtract(x, y)).max() <= AGREE * np.abs(y).max() + 1e-300 for x, y in zip(a, b, strict=True))


def _aligned(source: Any, i: int, written: Sequence[Any], mass: float, tensor: np.ndarray) -> bool:
    """Has MuJoCo only put the frame of a free body into its principal axes (align)?"""
    m = source.model
    free = m.body_jntnum[i] == 1 and m.jnt_type[m.body_jntadr[i]] == 0
    principal = np.linalg.eigvalsh(written[2]), np.linalg.eigvalsh(tensor)
    return bool(free and _same((written[0], principal[0]), (mass, principal[1])))


def _moments(tensor: np.ndarray) -> str:
    return ", ".join(f"{x:.4g}" for x in np.linalg.eigvalsh(tensor))
