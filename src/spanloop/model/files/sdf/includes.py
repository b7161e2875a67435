"""Models that an SDF includes from other files, put in place as sdformat does.

<include><uri>model://arm</uri> names a folder with a model.config, which names the file, or with a model.sdf; a path
that ends in .sdf names the file itself. <name>, <pose> and <static> of the <include> replace the model's own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from spanloop.errors import FileError, UnsupportedError
from spanloop.model.files.file_io import read_file
from spanloop.model.files.load_notes import LoadNotes
from spanloop.model.files.mesh_paths import PACKAGES, Folders
from spanloop.model.files.sdf.values import content
from spanloop.model.files.xml_reader import Element, parse

OLDEST, NEWEST = (1, 3), (1, 11)
GROUND_PLANE = "model://ground_plane"
FURNITURE = ("model://sun", GROUND_PLANE)  # of Gazebo, in the files of most worlds: without moving parts
REPLACED = ("name", "pose", "static", "placement_frame")
MOST = 100  # includes


@dataclass(frozen=True)
class Way:
    """The files that led to an <include>, and how many files were included so far, in all."""

    files: tuple[Path, ...] = ()
    count: list[int] = field(default_factory=lambda: [0])
    left_out: list[str] = field(default_factory=list)


def read_sdf(data: bytes, file: str, notes: LoadNotes) -> Element:
    """The <sdf> element of a file of any version from 1.3 on, its axes as version 1.5 has them."""
    root = parse(data, file, notes, content=True)
    if root.tag in ("robot", "mujoco"):
        raise UnsupportedError(
            f"{root.where}: this is {'URDF' if root.tag == 'robot' else 'MJCF (MuJoCo)'}, not SDF; "
            f"rename it to {'.urdf' if root.tag == 'robot' else '.xml'}"
        )
    if root.tag != "sdf":
        raise FileError(f"{root.where}: the outermost element is <{root.tag}>; expected <sdf version='...'>")
    version = version_of(root)
    if version < OLDEST:
        text = root.text("version")
        raise UnsupportedError(f"{root.where}: SDF {text} is too old; 1.3 to 1.11 are read. Convert it with gz sdf -p")
    if version > NEWEST:
        notes.add("newer than SDF 1.11, the last version known here", f"version {root.text('version')} ({root.where})")
    if version < (1, 5):
        _in_model_axes(root)
    return root


def version_of(root: Element) -> tuple[int, int]:
    """The version of an <sdf> element."""
    text = root.text("version")
    match = re.fullmatch(r"(\d{1,3})\.(\d{1,3})(\.\d{1,3})?", text)
    if match is None:
        raise FileError(f"{root.where}: <sdf> version is {text!r}; expected for example 1.7")
    return int(match[1]), int(match[2])


def _in_model_axes(element: Element) -> None:
    """Before version 1.5 an <axis> is in the model's axes."""
    for child in element.children:
        if child.tag in ("axis", "axis2"):
            flag = Element("use_parent_model_frame", {}, child.file, child.line, child.notes)
            flag.content = "true"
            child.children.append(flag)
        elif child.tag in ("world", "model", "joint"):
            _in_model_axes(child)


def put_in_place(element: Element, folders: Folders | None, notes: LoadNotes, way: Way) -> None:
    """Replace every <include> of a world or model by the model it names; way: the files that led here."""
    children: list[Element] = []
    for child in element.children:
        if child.tag == "include":
            children += _included(child, folders, notes, way)
        else:
            if child.tag in ("model", "world"):
                put_in_place(child, folders, notes, way)
            children.append(child)
    element.children = children


def _included(include: Element, folders: Folders | None, notes: LoadNotes, way: Way) -> list[Element]:
    uri = content(include.needed("uri"))
    if folders is None:
        raise FileError(f"{include.where}: <include> of {uri!r}, but the text is in no folder; load it from a file")
    if include.attributes.get("merge", "false").strip().lower() in ("true", "1"):
        raise UnsupportedError(f"{include.where}: <include merge='true'> is not read; write the links into this file")
    path, why = _file(uri, folders, notes)
    if path is None:
        if uri.rstrip("/") in FURNITURE:
            notes.add("<include> left out, it has no moving parts", f"{uri} ({include.where})")
            way.left_out.append(uri.rstrip("/"))
            return []
        raise FileError(f"{include.where}: <include> {why}")
    if path in way.files:
        raise FileError(f"{include.where}: <include> of {uri!r} leads back to itself; expected a file that ends")
    way.count[0] += 1
    if way.count[0] > MOST:
        raise FileError(f"{include.where}: more than {MOST} files are included; no mechanism needs that many")
    root = read_sdf(read_file(path), path.name, notes)
    models = list(root.all("model"))
    if len(models) != 1:
        if not models and any(c.tag in ("light", "actor") for c in root.children):
            return []
        raise UnsupportedError(f"{include.where}: <include> of {uri!r} has {len(models)} models; expected one")
    _prefix_meshes(models[0], uri)
    put_in_place(models[0], folders, notes, Way((*way.files, path), way.count, way.left_out))
    return [_replaced(models[0], include)]


def _file(uri: str, folders: Folders, notes: LoadNotes) -> tuple[Path | None, str]:
    """The file that a uri names, or None and the reason."""
    if uri.endswith((".sdf", ".world", ".xml")):
        return folders.find(uri)
    config, _ = folders.find(f"{uri.rstrip('/')}/model.config")
    names = ["model.sdf"]
    if config is not None:
        found = parse(read_file(config), config.name, notes, content=True)
        files = [(version_of(e), content(e)) for e in found.all("sdf") if "version" in e.attributes]
        names = [name for _, name in sorted(files, reverse=True)] or [e.content.strip() for e in found.all("sdf")]
    why = ""
    for name in names:
        path, why = folders.find(f"{uri.rstrip('/')}/{name}")
        if path is not None:
            return path, ""
    return None, why


def _prefix_meshes(element: Element, uri: str) -> None:
    """Meshes beside an included file are named from the folder of the file that includes it."""
    folder = PurePosixPath(uri).parent if uri.endswith((".sdf", ".world", ".xml")) else PurePosixPath(uri)
    text = str(folder).replace(":/", "://", 1) if uri.startswith(PACKAGES) else str(folder)
    for child in element.children:
        if element.tag == "mesh" and child.tag == "uri":
            name = child.content.strip()
            if "://" not in name and not name.startswith("/"):
                child.content = f"{text}/{name}"
        elif child.tag != "include":
            _prefix_meshes(child, uri)


def _replaced(model: Element, include: Element) -> Element:
    """The model with the name, the pose and the like that its <include> gives."""
    for given in include.children:
        if given.tag == "name":
            model.attributes = {**model.attributes, "name": content(given)}
        elif given.tag == "placement_frame":
            model.attributes = {**model.attributes, "placement_frame": content(given)}
        elif given.tag in REPLACED:
            model.children = [given, *(c for c in model.children if c.tag != given.tag)]
    return model
