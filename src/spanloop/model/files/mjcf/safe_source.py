"""MJCF files made safe for MuJoCo's compiler: one text with its includes inside, and no access to other files.

The text has one tag a line, so that the line MuJoCo names in an error leads back to the file and line it came from.
Elements that only draw (textures, skins; of materials all but the colour) are removed; elements that a model cannot
hold are removed and noted. The compiler gets meshes only where a body's inertia comes from them, and only from the
folders that may be read.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from spanloop.errors import FileError, UnsupportedError
from spanloop.math.quaternion import matrix
from spanloop.model.files.file_io import read_file
from spanloop.model.files.load_notes import ACTS, LoadNotes
from spanloop.model.files.mesh_paths import Folders
from spanloop.model.files.xml_reader import MOST, Element, parse
from spanloop.model.parts import Placement

DRAWN = {"texture", "layer", "skin", "hfield", "visual", "statistic", "light", "size"}
NOTED = {
    "keyframe": "<keyframe> left out",
    "custom": "<custom> left out",
    "extension": f"{ACTS} plugins",
    "plugin": f"{ACTS} plugins",
    "composite": f"{ACTS} <composite>, its bodies too",
    "flexcomp": f"{ACTS} <flexcomp>, its bodies too",
    "deformable": f"{ACTS} <deformable>",
}
OTHER_SENSORS = "sensors of neither joint, body nor site left out"
NOT_READ = {
    "attach": "<attach> is not followed; write the bodies into this file",
    "model": "<model file='...'> is not followed; write its bodies into this file",
}
NAMES = ("name", "class", "childclass", "model", "body", "joint", "site", "geom", "mesh", "file", "tendon", "actuator")
NO_FILES = ("meshdir", "texturedir", "assetdir", "strippath")
DEEPEST = 400  # nested bodies
MOST_INCLUDES, MOST_ELEMENTS, MOST_COPIES = 100, 20_000, 2_000  # MuJoCo's compiler takes time with their squares
MOST_COUNT = 10_000  # of what an attribute in COUNTS makes the compiler allocate
COUNTS = ("dim", "actdim", "nsample", "num", "maxhullvert")
DROPPED = ("plugin", "resolution")  # attributes
OF_MATERIALS = ("name", "class", "rgba")  # attributes that are kept


@dataclass
class Safe:
    """The text, where each of its lines comes from, and how its meshes are found."""

    lines: list[str] = field(default_factory=list)
    where: list[str] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)  # of <compiler>, about files
    elements: int = 0  # copies included

    @property
    def text(self) -> str:
        """The whole text."""
        return "\n".join(self.lines)

    def place(self, element: Any) -> str:
        """The file and line that an element of MuJoCo's spec comes from."""
        found = re.search(r"line (\d+)", element.info or "")
        number = int(found[1]) if found else 0
        return self.where[number - 1] if 1 <= number <= len(self.where) else self.where[0]

    def add(self, line: str, element: Element) -> None:
        """Append a line that comes from an element."""
        self.lines.append(line)
        self.where.append(element.where)


def safe_text(data: bytes, file: str, folders: Folders | None, notes: LoadNotes) -> Safe:
    """The text of a file and of all it includes from its own folder."""
    root = parse(data, file, notes, deepest=DEEPEST)
    if root.tag in ("robot", "sdf"):
        name, extension = ("URDF", ".urdf") if root.tag == "robot" else ("SDF", ".sdf")
        raise UnsupportedError(f"{root.where}: this is {name}, not MJCF; rename it to {extension}")
    if root.tag == "mujocoinclude":
        raise FileError(
            f"{root.where}: <mujocoinclude> is a part that other files include, which MuJoCo does not read by itself "
            "either; load the file that includes it"
        )
    if root.tag != "mujoco":
        raise FileError(f"{root.where}: the outermost element is <{root.tag}>; expected <mujoco>")
    included = _included(root, folders, {file}, [0], 1)
    safe = Safe()
    _write(included, safe, notes, 1)
    return safe


def _included(root: Element, folders: Folders | None, seen: set[str], count: list[int], depth: int) -> Element:
    """The element with every <include> replaced by the content of that file."""
    if depth > DEEPEST:
        raise FileError(f"{root.where}: elements are nested more than {DEEPEST} deep; none needs that")
    children: list[Element] = []
    for child in root.children:
        count[0] += 1
        if count[0] > MOST:
            raise FileError(f"{child.where}: more than {MOST} elements; no mechanism needs that many")
        if child.tag == "include":
            children += _included(_file(child, folders, seen), folders, seen, count, depth + 1).children
        else:
            children.append(_included(child, folders, seen, count, depth + 1))
    root.children = children
    return root


def _file(element: Element, folders: Folders | None, seen: set[str]) -> Element:
    name = element.text("file")
    if folders is None:
        raise FileError(f"{element.where}: <include> of {name!r}, but the text is in no folder; load it from a file")
    path, note, name = _found(name, element.file, folders)
    if name in seen or len(seen) > MOST_INCLUDES:
        raise FileError(f"{element.where}: <include> of {name!r} a second time; MuJoCo takes every file once")
    seen.add(name)
    if path is None:
        raise FileError(f"{element.where}: <include> {note}")
    return parse(read_file(path), name, element.notes, deepest=DEEPEST)


def _found(name: str, source: str, folders: Folders, written: str = "") -> tuple[Path | None, str, str]:
    """The path of a file, or None and why, and its name seen from the main file.

    MuJoCo searches from the main file, then from the one that names it (source), there without meshdir (written).
    """
    path, note = folders.find(name)
    beside = str(PurePosixPath(source).parent / (written or name))
    if path is None and beside != name and folders.find(beside)[0] is not None:
        return folders.find(beside)[0], "", beside
    return path, note, name


def _write(element: Element, safe: Safe, notes: LoadNotes, copies: int) -> None:
    """The element as lines, without what is left out."""
    safe.elements += copies
    if safe.elements > MOST_ELEMENTS:
        raise FileError(f"{element.where}: more than {MOST_ELEMENTS} elements, copies included; expected fewer")
    attributes = {k: v for k, v in element.attributes.items() if k not in DROPPED}
    if element.tag == "material":
        attributes = {k: v for k, v in attributes.items() if k in OF_MATERIALS}
    elif element.tag != "geom":
        attributes.pop("material", None)
    for key, value in attributes.items():
        if not _finite(value) and key.rstrip("12") not in NAMES:
            raise FileError(f"{element.where}: <{element.tag}> {key} is {value[:60]!r}; every number must be finite")
        if key in COUNTS and not _below(value, MOST_COUNT):
            raise FileError(f"{element.where}: <{element.tag}> {key} is {value[:60]!r}; at most {MOST_COUNT} are read")
    if element.tag == "compiler":
        safe.settings |= {k: attributes.pop(k) for k in NO_FILES if k in attributes}
    if element.tag == "replicate":
        copies = _copies(element, copies)
    written = "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items())
    if not element.children:
        safe.add(f"<{element.tag}{written}/>", element)
        return
    safe.add(f"<{element.tag}{written}>", element)
    for child in element.children:
        if child.tag in NOT_READ:
            raise UnsupportedError(f"{child.where}: {NOT_READ[child.tag]}")
        if child.tag in NOTED:
            notes.add(NOTED[child.tag], child.where)
        elif child.tag == "contact" and element.tag == "sensor":
            notes.add(OTHER_SENSORS, f"{child.attributes.get('name', '')!r} ({child.where})")
        elif child.tag not in DRAWN:
            _write(child, safe, notes, copies)
    safe.add(f"</{element.tag}>", element)


def _finite(value: str) -> bool:
    """Whether the text is not numbers, or all of them are finite."""
    try:
        return all(math.isfinite(float(word)) for word in value.split())
    except ValueError:
        return True


def _below(value: str, most: int) -> bool:
    """Whether the text is not a number, or not above a bound."""
    try:
        return float(value) <= most
    except ValueError:
        return True


def _copies(element: Element, so_far: int) -> int:
    """The number of copies that a <replicate> makes, which is limited."""
    count = element.number("count")
    if not 1 <= count <= MOST_COPIES or so_far * count > MOST_COPIES:
        raise FileError(
            f"{element.where}: <replicate> makes {count * so_far:g} copies; expected 1 to {MOST_COPIES} in all"
        )
    return int(so_far * count)


@dataclass(frozen=True)
class Mesh:
    """A mesh's file, its scale and the pose that its corners, scaled, have in the frame of its geom."""

    file: str
    scale: tuple[float, ...]
    placement: Placement


def _mesh(mesh: Any, safe: Safe, folders: Folders | None, notes: LoadNotes) -> Mesh:
    """MuJoCo moves a mesh by refpos and refquat and scales it then: S Rᵀ (x − p)."""
    scale, turn, shift = tuple(map(float, mesh.scale)), list(mesh.refquat), np.array(mesh.refpos)
    if any(turn[1:]) and len(set(scale)) > 1:
        notes.add("refquat of a mesh that is scaled unevenly left out", f"{mesh.name!r} ({safe.place(mesh)})")
        turn = [1.0, 0.0, 0.0, 0.0]
    w, x, y, z = np.array(turn) / np.linalg.norm(turn)
    back = np.array(matrix((w, -x, -y, -z)), dtype=float)
    rows: Any = tuple(tuple(row) for row in back.tolist())
    position: Any = tuple((-(np.array(scale) * (back @ shift)) + 0.0).tolist())
    return Mesh(_seen(mesh, safe, folders), () if scale == (1.0, 1.0, 1.0) else scale, Placement(rows, position))


def take_meshes(
    mujoco: Any, spec: Any, safe: Safe, folders: Folders | None, notes: LoadNotes
) -> list[tuple[Any, Mesh | None]]:
    """The geoms that are drawn as meshes, with the mesh, and those of heightfields, with None.

    Where the body's inertia is written, the geom becomes a small ball before it is compiled: its pose is all we need.
    """
    files = {mesh.name or PurePosixPath(mesh.file).stem: mesh for mesh in spec.meshes}
    always = spec.compiler.inertiafromgeom == mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    found: list[tuple[Any, Mesh | None]] = []
    needed = set()
    for geom in spec.geoms:
        if geom.hfieldname or geom.type == mujoco.mjtGeom.mjGEOM_HFIELD:
            notes.add("shape hfield left out", repr(geom.name))
            geom.hfieldname = ""
            found.append((geom, None))
        elif not geom.meshname:
            continue
        else:
            mesh = files.get(geom.meshname)
            if mesh is None:
                continue  # MuJoCo's compiler reports it
            drawn_only = geom.parent.name == "world" or _weighs_nothing(geom, spec)
            fitted = geom.type != mujoco.mjtGeom.mjGEOM_MESH
            if not drawn_only and (always or not geom.parent.explicitinertial):
                needed.add(geom.meshname)
                if not fitted:
                    found.append((geom, _mesh(mesh, safe, folders, notes)))
                continue
            found.append((geom, _mesh(mesh, safe, folders, notes)))
            geom.meshname = ""
        geom.type, geom.size, geom.density = mujoco.mjtGeom.mjGEOM_SPHERE, [1e-3, 0.0, 0.0], 0.0
    for sensor in [s for s in spec.sensors if mujoco.mjtObj.mjOBJ_MESH in (s.objtype, s.reftype)]:
        notes.add(OTHER_SENSORS, f"{sensor.name!r} ({safe.place(sensor)})")
        _delete(spec, sensor)
    assets: dict[str, bytes] = {}
    for name, mesh in files.items():
        if name in needed:
            if mesh.file:
                data, mesh.name = _content(mesh, folders, safe), name
                mesh.file = f"{len(assets)}{PurePosixPath(mesh.file).suffix}"
                assets[mesh.file] = data
        else:
            _delete(spec, mesh)
    spec.meshdir = spec.texturedir = ""
    spec.assets = assets
    return found


def drop_contacts(spec: Any, safe: Safe, notes: LoadNotes) -> None:
    """Remove pairs and excludes of geoms and bodies that are not there, as those of a <composite> that is left out."""
    geoms, bodies = ({x.name for x in parts} for parts in (spec.geoms, spec.bodies))
    for element, ends, known in (
        *((p, (p.geomname1, p.geomname2), geoms) for p in spec.pairs),
        *((e, (e.bodyname1, e.bodyname2), bodies) for e in spec.excludes),
    ):
        if not known.issuperset(ends):
            notes.add("<pair> and <exclude> of what is not there left out", safe.place(element))
            _delete(spec, element)


def _weighs_nothing(geom: Any, spec: Any) -> bool:
    """Whether a geom adds nothing to the inertia of its body."""
    low, high = spec.compiler.inertiagrouprange
    no_mass = geom.density == 0.0 if math.isnan(geom.mass) else geom.mass == 0.0
    return no_mass or not low <= geom.group <= high


def _path(file: str, safe: Safe) -> str:
    """The file as seen from the folder of the model."""
    if not file:
        return ""
    if safe.settings.get("strippath") == "true":
        file = PurePosixPath(file).name
    directory = safe.settings.get("meshdir") or safe.settings.get("assetdir") or ""
    return file if PurePosixPath(file).is_absolute() else str(PurePosixPath(directory) / file)


def _delete(spec: Any, element: Any) -> None:
    if hasattr(spec, "delete"):
        spec.delete(element)
    else:  # older versions of MuJoCo
        element.delete()


def _seen(mesh: Any, safe: Safe, folders: Folders | None) -> str:
    """The mesh's file as seen from the folder of the model."""
    name = _path(mesh.file, safe)
    if folders is None or not name:
        return name
    return _found(name, safe.place(mesh).rpartition(":")[0], folders, mesh.file)[2]


def _content(mesh: Any, folders: Folders | None, safe: Safe) -> bytes:
    file = _seen(mesh, safe, folders)
    path, note = folders.find(file) if folders is not None else (None, f"{file!r}: the text is in no folder")
    if path is None:
        raise FileError(f"{safe.place(mesh)}: a body's inertia comes from a mesh. mesh {note}. Write an <inertial>")
    try:
        return read_file(path)
    except FileError as error:
        why = str(error).removeprefix(f"{path}: ")
        raise FileError(
            f"{safe.place(mesh)}: a body's inertia comes from a mesh. mesh {file!r}: {why}. Write an <inertial>"
        ) from None
