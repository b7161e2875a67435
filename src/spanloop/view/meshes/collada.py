"""Reader of COLLADA (.dae): triangles, polygons and their diffuse colours, placed by the nodes of the scene.

The file's unit is applied. Its `up_axis` is not, as in RViz: exporters write Y_UP into files whose axes a URDF uses as
they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spanloop.view.meshes.mesh import MOST, NO_COLOR, Mesh
from spanloop.view.meshes.stl_obj import packed_color

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_DEEPEST = 64  # nodes in nodes
_MOST_NODES = 20_000


@dataclass(frozen=True, eq=False)
class _Part:
    """Triangles (m, 3) of one primitive element on corners (n, 3), and the name of their material."""

    vertices: np.ndarray
    faces: np.ndarray
    material: str


def collada(path: Path) -> Mesh:
    """The triangles of the file's scene."""
    root = _parsed(path)
    by_id = {key: e for e in root.iter() if (key := e.get("id"))}
    unit = root.find("asset/unit")
    meter = float(unit.get("meter", "1")) if unit is not None else 1.0
    if not 0.0 < meter < 1e6:
        raise ValueError(f"its unit is {meter:g} m")
    colors = _colors(root, by_id)
    walk = _Walk(by_id, colors)
    for scene in root.findall("library_visual_scenes/visual_scene"):
        for node in scene.findall("node"):
            walk.visit(node, np.diag((meter, meter, meter, 1.0)), 0)
    found = walk.found
    if not found:  # a file without a scene: all its geometry
        for geometry in root.findall("library_geometries/geometry"):
            found += [(meter * p.vertices, p.faces, colors.get(p.material, NO_COLOR)) for p in _parts(geometry)]
    return _joined(found)


def _parsed(path: Path) -> Element:
    from xml.etree import ElementTree

    data = path.read_bytes()
    text = data.decode("utf-8-sig", errors="replace")
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("it declares a document type, which can define entities; these are not read")
    try:
        root = ElementTree.fromstring(text.encode())
    except ElementTree.ParseError as error:
        raise ValueError(f"it is not XML: {error}") from None
    for e in root.iter():
        e.tag = e.tag.rpartition("}")[2]
    return root


@dataclass
class _Walk:
    """The geometry of the nodes visited: corners, triangles and a colour of each part."""

    by_id: dict[str, Element]
    colors: dict[str, int]
    found: list[tuple[np.ndarray, np.ndarray, int]] = field(default_factory=list)
    parts: dict[str, list[_Part]] = field(default_factory=dict)
    visited: int = 0
    triangles: int = 0

    def visit(self, node: Element, above: np.ndarray, depth: int) -> None:
        """Collect the geometry of a node and of the nodes in it; above (4, 4): from its frame to the mesh's."""
        self.visited += 1
        if depth > _DEEPEST or self.visited > _MOST_NODES:
            raise ValueError(f"its nodes are nested more than {_DEEPEST} deep, or there are more than {_MOST_NODES}")
        here = above @ _transform(node)
        for instance in node.findall("instance_geometry"):
            self._add(instance, here)
        for instance in node.findall("instance_node"):
            other = self.by_id.get(instance.get("url", "")[1:])
            if other is not None:
                self.visit(other, here, depth + 1)
        for inside in node.findall("node"):
            self.visit(inside, here, depth + 1)

    def _add(self, instance: Element, here: np.ndarray) -> None:
        geometry = self.by_id.get(instance.get("url", "")[1:])
        if geometry is None:
            return
        bound = {m.get("symbol", ""): m.get("target", "")[1:] for m in instance.iter("instance_material")}
        key = geometry.get("id", "")
        if key not in self.parts:
            self.parts[key] = _parts(geometry)
        for p in self.parts[key]:
            self.triangles += len(p.faces)
            if self.triangles > MOST:
                raise ValueError(f"it has more than {MOST} triangles")
            color = self.colors.get(bound.get(p.material, p.material), NO_COLOR)
            self.found.append((p.vertices @ here[:3, :3].T + here[:3, 3], p.faces, color))


def _transform(node: Element) -> np.ndarray:
    """The product (4, 4) of a node's transformations, in their order."""
    out = np.eye(4)
    for e in node:
        numbers = _floats(e) if e.tag in ("matrix", "translate", "rotate", "scale") else None
        if numbers is None:
            continue
        one = np.eye(4)
        if e.tag == "matrix":
            one = numbers[:16].reshape(4, 4)
        elif e.tag == "translate":
            one[:3, 3] = numbers[:3]
        elif e.tag == "scale":
            one[:3, :3] = np.diag(numbers[:3])
        else:
            one[:3, :3] = _turned(numbers[:3], float(np.radians(numbers[3])))
        out = out @ one
    return out


def _turned(axis: np.ndarray, angle: float) -> np.ndarray:
    """The rotation (3, 3) by an angle [rad] about an axis."""
    length = np.linalg.norm(axis)
    if length == 0.0:
        return np.eye(3)
    x, y, z = axis / length
    k = np.array([(0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)])
    return np.eye(3) + np.sin(angle) * k + (1.0 - np.cos(angle)) * k @ k


def _parts(geometry: Element) -> list[_Part]:
    """The primitives of a geometry that have surfaces."""
    mesh = geometry.find("mesh")
    if mesh is None:
        return []
    sources = {s.get("id", ""): s for s in mesh.findall("source")}
    positions = {
        v.get("id", ""): i.get("source", "")[1:]
        for v in mesh.findall("vertices")
        for i in v.findall("input")
        if i.get("semantic") == "POSITION"
    }
    out = []
    for e in mesh:
        if e.tag in ("triangles", "polylist", "polygons"):
            inputs = e.findall("input")
            vertex = next((i for i in inputs if i.get("semantic") == "VERTEX"), None)
            if vertex is None:
                continue
            source = sources[positions[vertex.get("source", "")[1:]]]
            stride = 1 + max(int(i.get("offset", "0")) for i in inputs)
            faces = _triangles(e, stride, int(vertex.get("offset", "0")))
            if len(faces):
                out.append(_Part(_points(source), faces, e.get("material", "")))
    return out


def _points(source: Element) -> np.ndarray:
    array, accessor = source.find("float_array"), source.find("technique_common/accessor")
    numbers = _floats(array) if array is not None else np.zeros(0)
    stride = int(accessor.get("stride", "3")) if accessor is not None else 3
    return numbers[: len(numbers) // stride * stride].reshape(-1, stride)[:, :3]


def _triangles(e: Element, stride: int, offset: int) -> np.ndarray:
    """Numbers (m, 3) of corners; polygons as fans."""
    lists = [np.array((p.text or "").split(), np.int64)[offset::stride] for p in e.findall("p")]
    if e.tag == "polygons":
        counts = np.array([len(x) for x in lists], np.int64)
    elif e.tag == "polylist" and (listed := e.find("vcount")) is not None:
        counts = np.array((listed.text or "").split(), np.int64)
    else:
        return np.concatenate(lists).reshape(-1, 3) if lists else np.zeros((0, 3), np.int64)
    corners = np.concatenate(lists) if lists else np.zeros(0, np.int64)
    if counts.sum() > len(corners) or (counts < 0).any():
        raise ValueError("a polygon has more corners than are listed")
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    fans = np.maximum(counts - 2, 0)
    first = np.repeat(starts, fans)
    step = np.arange(fans.sum()) - np.repeat(np.cumsum(fans) - fans, fans)
    return np.stack([corners[first], corners[first + step + 1], corners[first + step + 2]], axis=1)


def _colors(root: Element, by_id: dict[str, Element]) -> dict[str, int]:
    """Diffuse colours by a material's id; NO_COLOR for a picture, which is not read."""
    out = {}
    for material in root.findall("library_materials/material"):
        instance = material.find("instance_effect")
        effect = by_id.get(instance.get("url", "")[1:]) if instance is not None else None
        diffuse = next(effect.iter("diffuse"), None) if effect is not None else None
        color = diffuse.find("color") if diffuse is not None else None
        out[material.get("id", "")] = packed_color(_floats(color).tolist()) if color is not None else NO_COLOR
    return out


def _joined(found: list[tuple[np.ndarray, np.ndarray, int]]) -> Mesh:
    if not found:
        raise ValueError("it contains no triangles")
    sizes = np.cumsum([0, *(len(v) for v, _, _ in found)])
    for v, f, _ in found:
        if f.min() < 0 or f.max() >= len(v):
            raise ValueError(f"a triangle names corner {f.max()} of {len(v)}")
    return Mesh.of(
        np.concatenate([v for v, _, _ in found]),
        np.concatenate([f + n for (_, f, _), n in zip(found, sizes[:-1], strict=True)]),
        np.concatenate([np.full(len(f), color) for _, f, color in found]),
    )


def _floats(e: Element) -> np.ndarray:
    return np.array((e.text or "").split(), float)
