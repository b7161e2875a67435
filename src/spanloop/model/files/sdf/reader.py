"""Reader of SDF, the description format of Gazebo, versions 1.3 to 1.11."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from spanloop.errors import FileError, InputError, SpanloopError, UnsupportedError
from spanloop.model.edits.rename import renamed
from spanloop.model.files.contact_pairs import contacts_of, too_many_shapes
from spanloop.model.files.file_io import check_parts
from spanloop.model.files.load_notes import ACTS, LoadNotes
from spanloop.model.files.mesh_paths import Folders, located
from spanloop.model.files.sdf.contacts import note_settings, read_pairs
from spanloop.model.files.sdf.includes import GROUND_PLANE, Way, put_in_place, read_sdf, version_of
from spanloop.model.files.sdf.joints import JointElement, read_gearbox, read_joint, read_mimic
from spanloop.model.files.sdf.links import Solid, read_link
from spanloop.model.files.sdf.scopes import Scope, joined, read_scope
from spanloop.model.files.sdf.tree_and_loops import assembled
from spanloop.model.files.sdf.values import flag, numbers, text
from spanloop.model.files.xml_reader import Element
from spanloop.model.model import Model
from spanloop.model.parts import WORLD, Coupling, Frame, Placement
from spanloop.types import Floats3

LEFT_OUT = ("plugin", "gripper", "state", "actor", "population")


def loads(
    data: bytes | str,
    file: str = "text.sdf",
    base: str | None = None,
    folders: Folders | None = None,
    repair: bool = False,
    contacts: bool | str = False,
) -> Model:
    """The model in the text of an SDF; inertias are not checked.

    file: the name that errors show; base: "free" or "fixed", how links stand on the world that no joint ties to it
    (None: free, and fixed in a model that is static); folders: where meshes are searched for;
    repair: masses below 0 are read without their sign; contacts: whether the pairs of shapes that collide are read,
    "ground" for those with shapes fixed to the world.
    """
    if base not in (None, "fixed", "free"):
        raise InputError(f"base is {base!r}; expected 'fixed' or 'free'")
    notes = LoadNotes(repair=repair)
    root = read_sdf(data.encode() if isinstance(data, str) else data, file, notes)
    top = _top(root)
    way = Way((folders.own / file,)) if folders is not None else Way()
    put_in_place(top, folders, notes, way)
    _must_move(top)
    names = [e.text("name") for e in top.all("model")]
    only = names[0] if len(names) == 1 else ""
    try:
        model, solids, scopes = _read(top, version_of(root), base, file, folders, notes)
        if not too_many_shapes(sum(map(len, solids.values())), contacts, file, notes):
            pairs = read_pairs(model, solids, scopes, GROUND_PLANE in way.left_out, notes)
            if contacts and len(pairs.ends):
                note_settings(solids, notes)
            model = replace(model, contacts=contacts_of(pairs, contacts, file, notes))
    except SpanloopError as error:
        raise type(error)(_plain(str(error), only)) from None
    gravity = _gravity(top, notes)
    sentences = tuple(_plain(note, only) for note in notes.sentences())
    name = only or top.attributes.get("name") or Path(file).stem
    return replace(
        renamed(model, lambda name: name.removeprefix(f"{only}::")) if only else model,
        gravity=gravity,
        name=name,
        notes=sentences,
    )


def _plain(sentence: str, only: str) -> str:
    """A sentence in which links are called as in the file, without the name of the only model in front."""
    return sentence.replace(f"'{only}::", "'") if only else sentence


def _read(
    top: Element,
    version: tuple[int, int],
    base: str | None,
    file: str,
    folders: Folders | None,
    notes: LoadNotes,
) -> tuple[Model, dict[str, list[Solid]], list[Scope]]:
    """The model, its shapes that collide by body, and its scopes."""
    ground = read_scope(top, "", version < (1, 7), notes)
    scopes = list(_scopes(ground))
    check_parts(sum(len(scope.entries) for scope in scopes), file)
    for scope in scopes[1:]:
        scope.canonical(scope.element)  # every model has a link
    links = [read_link(e, scope, notes) for scope in scopes for e in scope.element.all("link")]
    bodies = located([body for body, _ in links], folders, notes)
    joints, couplings = _joints(ground, scopes, notes)
    frames = [f for scope in scopes for f in _frames(ground, scope)]
    _note_left_out(scopes, notes)
    model = assembled(bodies, joints, frames, couplings, ground, base, notes)
    return model, {body.name: owned for body, owned in links}, scopes


def _top(root: Element) -> Element:
    """The element that holds the models: the only <world>, or <sdf> itself."""
    worlds = list(root.all("world"))
    if len(worlds) > 1:
        raise UnsupportedError(f"{worlds[1].where}: a second <world>; expected one at most")
    top = worlds[0] if worlds else root
    return top


def _must_move(top: Element) -> None:
    if not any(top.all("model")):
        raise FileError(f"{top.where}: <{top.tag}> has no <model>; expected one at least")


def _scopes(scope: Scope) -> Iterator[Scope]:
    yield scope
    for inner in scope.inside.values():
        yield from _scopes(inner)


def _joints(ground: Scope, scopes: list[Scope], notes: LoadNotes) -> tuple[list[JointElement], list[Coupling]]:
    elements = [(e, scope) for scope in scopes for e in scope.element.all("joint")]
    joints = [read_joint(e, ground, scope, notes) for e, scope in elements if e.text("type") != "gearbox"]
    gears = [read_gearbox(e, ground, scope, joints, notes) for e, scope in elements if e.text("type") == "gearbox"]
    mimics = [c for t in joints if (c := read_mimic(t, joints, notes)) is not None]
    return joints, [*gears, *mimics]


def _frames(ground: Scope, scope: Scope) -> Iterator[Frame]:
    for name, entry in scope.entries.items():
        if entry.tag == "frame":
            body = scope.body(name, entry.element)
            place = Placement() if body == WORLD else ground.pose(body, entry.element)
            here = joined(place.inverse(), ground.pose(scope.full(name), entry.element))
            yield Frame(scope.full(name), body, here, entry.element.where)


def _note_left_out(scopes: list[Scope], notes: LoadNotes) -> None:
    for scope in scopes:
        for child in scope.element.children:
            if child.tag in LEFT_OUT:
                notes.add(f"<{child.tag}> left out", child.where)


def _links(element: Element) -> Iterator[Element]:
    """The links of models that are not static."""
    for child in element.children:
        if child.tag == "link":
            yield child
        elif child.tag == "model" and not flag(child, "static"):
            yield from _links(child)


def _gravity(top: Element, notes: LoadNotes) -> Floats3:
    """The gravity of the world; none if every link is free of it."""
    links = list(_links(top))
    free = [e for e in links if text(e, "gravity", "true").lower() in ("false", "0")]
    if free:
        place = f"link {free[0].text('name')!r} ({free[0].where})"
        if len(free) == len(links):
            notes.add("<gravity>false</gravity> of every link, read as no gravity", place)
            return (0.0, 0.0, 0.0)
        notes.add(f"{ACTS} <gravity>false</gravity>; gravity pulls here", place)
    element = top.one("gravity") if top.tag == "world" else None
    if element is None:
        return (0.0, 0.0, -9.8) if top.tag == "world" else (0.0, 0.0, -9.81)
    return numbers(element, 3)  # type: ignore[return-value]
