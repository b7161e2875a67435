"""Flexible bodies in TOML: the recipe of a beam in a table [[beam]], of which joints with modes and nodes name parts.

A joint of kind "modal" has `beam` and `piece` (1 by default), a joint of kind "node" also `node`. Shapes and modal
masses are computed from the recipe when the file is read. So are stiffness, damping, the inertia of the body and the
positions of nodes, unless the file has them: it does where they are not those of the recipe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from spanloop.errors import FileError, InputError, UnsupportedError, nearest
from spanloop.flexible.beam import Beam, BeamPiece
from spanloop.flexible.beam_input import beam as checked_beam
from spanloop.flexible.finite_element_body import FiniteElementBody
from spanloop.flexible.modes import Modal, Node
from spanloop.flexible.recipe import Recipe
from spanloop.flexible.sections import Section
from spanloop.joints import JointKind
from spanloop.model.flexible_bodies.pieces import flexible_bodies
from spanloop.model.model import Model
from spanloop.model.parts import Body, Inertia, Joint, Placement

if TYPE_CHECKING:
    from spanloop.model.files.toml.reader import Table

ALWAYS = object()
KINDS = (Modal.name, Node.name)
_NUMBERS = ("length", "E", "G", "density")
_WORDS = ("basis", "theory")
_COUNTS = ("elements", "pieces")
_END = "end"


# ---- writing


def recipe_names(model: Model) -> dict[Recipe, str]:
    """The recipes of a model's flexible bodies, each with a name: that of the first body made from it."""
    found: dict[Recipe, str] = {}
    for body in flexible_bodies(model.bodies, model.joints).values():
        recipe = body.beam or body.elements
        if recipe is None:
            raise UnsupportedError(
                f"body {body.name!r}: it is flexible without a beam or finite elements, which a file needs"
            )
        found.setdefault(recipe, body.name)
    return found


def beam_entries(beam: Beam, name: str) -> list[tuple[str, Any, Any]]:
    """Keys of [[beam]]."""
    keys = (*_NUMBERS, *_WORDS, *_COUNTS, "damping")
    return [("name", name, ALWAYS), *((key, getattr(beam, key), ALWAYS) for key in keys)]


def section_entries(section: Section) -> list[tuple[str, Any, Any]]:
    """Keys of [[beam.section]]."""
    return [(f.name, getattr(section, f.name), ALWAYS) for f in fields(section)]


def kind_entries(model: Model, joint: Joint, recipes: dict[Recipe, str]) -> list[tuple[str, Any, Any]] | None:
    """Keys of the kind of a joint inside a flexible body; None for any other."""
    if not (joint.kind.bends or joint.kind.rides):
        return None
    modes = joint if joint.kind.bends else model.joints[model.body_number[joint.parent] - 1]
    source: BeamPiece | FiniteElementBody = modes.kind.source  # type: ignore[attr-defined]
    if isinstance(source, BeamPiece):
        keys: list[tuple[str, Any, Any]] = [("beam", recipes[source.beam], ALWAYS), ("piece", source.number + 1, 1)]
    else:
        keys = [("finite_elements", recipes[source], ALWAYS)]
    if isinstance(joint.kind, Node):
        nodes = source.body.nodes
        own = [node.name for node in nodes if node.shape == joint.kind.shape]
        if not own:
            raise UnsupportedError(f"joint {joint.name!r}: its shape is not that of a node of its recipe, as in a file")
        keys.append(("node", own[0], ALWAYS))
    return keys


def recipe_values(model: Model, joint: Joint) -> dict[str, Any]:
    """What the recipe gives a joint inside a flexible body and its child, by key: a file leaves that out."""
    if isinstance(joint.kind, Modal):
        return _values_of_modes(joint.kind)
    if isinstance(joint.kind, Node):
        modes = model.joints[model.body_number[joint.parent] - 1].kind
        return {"placement": _placement_of(modes, joint.kind)}
    return {}


def _values_of_modes(kind: Modal) -> dict[str, Any]:
    piece = kind.source.body
    inertia = Inertia(piece.mass, piece.center, piece.moments)
    return {"stiffness": piece.stiffness, "damping": piece.damping, "inertia": inertia}


def _placement_of(modes: Any, node: Node) -> Placement:
    nodes = modes.source.body.nodes
    return next((Placement(position=x.position) for x in nodes if x.shape == node.shape), Placement())


# ---- reading


def completed(joints: Sequence[Joint], tables: Sequence[Table]) -> tuple[Joint, ...]:
    """Joints inside flexible bodies with what their tables leave to the recipe; tables: of the joints, one each."""
    modes = {j.child: j.kind for j in joints if isinstance(j.kind, Modal)}
    out = []
    for j, t in zip(joints, tables, strict=True):
        if isinstance(j.kind, Modal):
            own = _values_of_modes(j.kind)
            j = replace(j, **{key: own[key] for key in ("stiffness", "damping") if key not in t.content})
        elif isinstance(j.kind, Node) and j.parent in modes and not {"position", "rotation"} & t.content.keys():
            j = replace(j, placement=_placement_of(modes[j.parent], j.kind))
        out.append(j)
    return tuple(out)


def with_recipe_inertia(bodies: Sequence[Body], tables: Sequence[Table], joints: Sequence[Joint]) -> tuple[Body, ...]:
    """Bodies with the inertia of the recipe where they stand on modes and their tables have none."""
    modes = {j.child: j.kind for j in joints if isinstance(j.kind, Modal)}
    bare = {b.name for b, t in zip(bodies, tables, strict=True) if not {"mass", "center", "moments"} & t.content.keys()}
    return tuple(
        replace(b, inertia=_values_of_modes(modes[b.name])["inertia"]) if b.name in bare and b.name in modes else b
        for b in bodies
    )


def read_beam(t: Table) -> tuple[str, Beam]:
    """The name and the beam of a table [[beam]]."""
    name = t.text("name")
    arguments: dict[str, Any] = {key: t.number(key) for key in _NUMBERS}
    arguments |= {key: t.text(key) for key in _WORDS} | {key: t.whole(key) for key in _COUNTS}
    arguments["damping"] = t.numbers("damping")
    arguments["section"] = [_section(x) for x in t.tables("section", f"beam {name!r}: section")]
    for key in ("modes", "nodes"):
        inner = t.table(key)
        inner.where = f"{t.where}: {key}"
        read = inner.whole if key == "modes" else inner.number
        arguments[key] = {name: read(name) for name in inner.content}
    t.end()
    try:
        return name, checked_beam(**arguments)
    except InputError as error:
        raise FileError(f"{t.where}: {str(error).removeprefix('beam: ')}") from None


def _section(t: Table) -> Section:
    numbers = {f.name: t.number(f.name) for f in fields(Section) if f.name not in ("outline", "is_round")}
    section = Section(**numbers, outline=t.numbers("outline", 2), is_round=t.flag("is_round", True))  # type: ignore[arg-type]
    t.end()
    return section


def read_kind(t: Table, recipes: dict[str, dict[str, Any]]) -> JointKind:
    """The kind of a joint with modes, or of a node; recipes: by table and name."""
    table = "finite_elements" if "finite_elements" in t.content else "beam"
    what = table.replace("_", " ")
    name, number, known = t.text(table), t.whole("piece", 1), recipes[table]
    if name not in known:
        offer = nearest(name, known) if known else f"the file has no [[{table}]]"
        raise FileError(f"{t.where}: there is no {what} {name!r}; {offer}")
    if not 1 <= number <= known[name].pieces:
        raise FileError(f"{t.where}: piece is {number}; {what} {name!r} has {known[name].pieces}")
    piece = known[name].bodies[number - 1]
    if t.text("kind") == Modal.name:
        t.end()
        return piece.modal
    nodes, wanted = {node.name: node.shape for node in piece.nodes}, t.text("node")
    t.end()
    if wanted not in nodes:
        raise FileError(
            f"{t.where}: {what} {name!r} has no node {wanted!r} on piece {number}; {nearest(wanted, nodes)}"
        )
    return Node(nodes[wanted])
