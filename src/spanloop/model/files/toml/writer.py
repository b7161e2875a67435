"""Writer of spanloop's own format: everything a model holds, as TOML that reads back bit for bit.

Default values are left out. Each joint precedes its child body.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import MISSING, fields
from typing import Any

from spanloop.errors import ModelError
from spanloop.flexible.beam import Beam
from spanloop.flexible.recipe import Recipe
from spanloop.joints import JointKind
from spanloop.model.contacts.contact import SETTINGS, Contact
from spanloop.model.files.loss_report import Written
from spanloop.model.files.toml.beams import (
    ALWAYS,
    beam_entries,
    kind_entries,
    recipe_names,
    recipe_values,
    section_entries,
)
from spanloop.model.files.toml.elements import element_entries
from spanloop.model.model import Model
from spanloop.model.parts import Actuator, Body, Geometry, Inertia, Joint, Loop, Placement, Sensor, Surface, has_motor

FORMAT = 1

PER_DOF = ("damping", "friction", "armature", "stiffness")

LIMITS = ("lower", "upper", "speed", "effort")

Entry = tuple[str, Any, Any]  # key, value, the default that is not written

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}
_CONTROL = re.compile(r'["\\\x00-\x1f\x7f]')


def written(model: Model, stem: str) -> Written:
    """The model as TOML text, and the files beside it for bodies from finite elements; stem: of the file's name."""
    beside: dict[str, bytes] = {}
    return Written(dumps(model, (stem, beside)), beside=beside)


def dumps(model: Model, beside: tuple[str, dict[str, bytes]] | None = None) -> str:
    """The model as TOML text; beside: the stem of its file's name, and where files beside it are put.

    Without it bodies from finite elements are in the text itself.
    """
    head = [
        ("format", FORMAT, ALWAYS),
        ("name", model.name, ALWAYS),
        ("gravity", model.gravity, (0.0, 0.0, -9.81)),
        ("notes", model.notes, ()),
    ]
    recipes = recipe_names(model)
    blocks = [
        _lines(head, f"model {model.name!r}"),
        *(x for b, name in recipes.items() for x in _recipe(b, name, beside)),
    ]
    for joint, body in zip(model.joints, model.bodies, strict=True):
        own = recipe_values(model, joint)
        blocks += [_joint(joint, kind_entries(model, joint, recipes), own), *_body(body, own.get("inertia", Inertia()))]
    for f in model.frames:
        blocks.append(_table("frame", f, [("body", f.body, ALWAYS), *_placement(f.placement)]))
    blocks += map(_loop, model.loops)
    for c in model.couplings:
        ends = [("joint", c.joint, ALWAYS), ("source", c.source, None)]
        rest = [("ratio", c.ratio, 1.0), ("offset", c.offset, 0.0), ("switchable", c.switchable, False)]
        blocks.append(_table("coupling", c, [*ends, *rest]))
    for a in model.actuators:
        blocks += [_table("actuator", a, [("joint", a.joint, ALWAYS)]), *_settings("actuator", a)]
    for s in model.sensors:
        what = [("kind", s.kind, ALWAYS), ("at", s.at, ALWAYS)]
        blocks += [_table("sensor", s, what), *_settings("sensor", s)]
    for contact in model.contacts:
        blocks += _contact(contact)
    return "\n\n".join(blocks) + "\n"


def _recipe(recipe: Recipe, name: str, beside: tuple[str, dict[str, bytes]] | None) -> list[str]:
    if isinstance(recipe, Beam):
        return _beam(recipe, name)
    return ["[[finite_elements]]\n" + _lines(element_entries(recipe, name, beside), f"finite elements {name!r}")]


def _beam(beam: Beam, name: str) -> list[str]:
    owner = f"beam {name!r}"
    blocks = ["[[beam]]\n" + _lines(beam_entries(beam, name), owner)]
    nodes = [pair for pair in beam.nodes if pair[0] != "tip"]
    for title, pairs in (("modes", beam.modes), ("nodes", nodes)):
        lines = [f"{key(word, owner)} = {text(value, owner)}" for word, value in pairs]
        blocks += ["\n".join([f"[beam.{title}]", *lines])] if lines else []
    return [*blocks, *("[[beam.section]]\n" + _lines(section_entries(s), owner) for s in beam.sections)]


def _body(b: Body, usual: Inertia) -> list[str]:
    """usual: the inertia that is not written; any part of another one is."""
    i, nothing = b.inertia, Inertia()
    entries: list[Entry] = []
    if i != usual:
        mass = nothing.mass if usual == nothing else ALWAYS
        entries = [("mass", i.mass, mass), ("center", i.center, nothing.center)]
        entries.append(("moments", i.moments, nothing.moments))
    shapes = [_lines(_geometry(g), f"body {b.name!r}: geometry") for g in b.geometry]
    return [_table("body", b, entries), *(f"[[body.geometry]]\n{shape}" for shape in shapes)]


def _contact(c: Contact) -> list[str]:
    nothing = {f.name: f.default for f in fields(c)}
    tables = [_table("contact", c, [(name, getattr(c, name), nothing[name]) for name in SETTINGS])]
    for end, side in (("a", c.a), ("b", c.b)):
        lines = _lines([("at", side.at, ALWAYS), *_geometry(side.geometry, "collision")], f"contact {c.name!r}: {end}")
        tables.append(f"[contact.{end}]\n{lines}")
    return tables


def _geometry(g: Geometry, use: str = "visual") -> list[Entry]:
    """use: the one that is not written."""
    return [
        ("shape", g.shape, ALWAYS),
        ("use", g.use, use),
        ("size", g.size, ()),
        ("file", g.file, ""),
        ("color", g.color, None),
        *_placement(g.placement),
        ("vertices", g.vertices, ()),
        *_surface(g.surface),
    ]


def _surface(s: Surface | None) -> list[Entry]:
    if s is None:
        return []
    values = [(name, getattr(s, name), None) for name in ("friction", "torsion", "rolling", "restitution", "condim")]
    return [*values, ("priority", s.priority, 0), ("rule", s.rule, ALWAYS)]


def _joint(j: Joint, flexible: list[Entry] | None, own: dict[str, Any]) -> str:
    """own: what the recipe of a beam gives it, which is not written."""
    n = j.kind.nv
    usual = {name: _single(own.get(name, (0.0,) * n)) for name in PER_DOF}
    entries = [
        ("kind", j.kind.name, ALWAYS),
        ("parent", j.parent, ALWAYS),
        ("child", j.child, ALWAYS),
        *(_kind(j.kind) if flexible is None else flexible),
        *(_placement(j.placement) if j.placement != own.get("placement") else ()),
        *((name, _single(getattr(j, name)), None) for name in LIMITS),
        *((name, _single(getattr(j, name)), usual[name]) for name in PER_DOF),
        ("rest", j.rest, j.kind.neutral()),
        ("driven", j.driven, False),
        ("actuated", j.actuated, has_motor(j.kind.name)),
    ]
    return _table("joint", j, entries)


def _loop(x: Loop) -> str:
    entries = [
        ("kind", x.kind.name, ALWAYS),
        ("a", x.a, ALWAYS),
        ("b", x.b, ALWAYS),
        *_kind(x.kind),
        *_placement(x.placement_a, "_a"),
        *_placement(x.placement_b, "_b"),
        ("driven", x.driven, False),
        ("switchable", x.switchable, False),
    ]
    return _table("loop", x, entries)


def _kind(kind: JointKind) -> list[Entry]:
    """The kind's description, and whatever else differs from the kind's defaults."""
    described = kind.describe()
    rest = [f for f in fields(kind) if f.name not in described]  # type: ignore[arg-type]
    defaults = [(f.name, getattr(kind, f.name), ALWAYS if f.default is MISSING else f.default) for f in rest]
    return [*((name, value, ALWAYS) for name, value in described.items()), *defaults]


def _placement(p: Placement, suffix: str = "") -> list[Entry]:
    nowhere = Placement()
    return [
        ("position" + suffix, p.position, nowhere.position),
        ("rotation" + suffix, p.rotation, nowhere.rotation),
    ]


def _settings(table: str, part: Actuator | Sensor) -> Iterable[str]:
    if not part.settings:
        return
    owner = f"{table} {part.name!r}: setting"
    names = [name for name, _ in part.settings]
    if len(set(names)) < len(names):
        raise ModelError(f"{owner}s are {names}; names must be unique")
    lines = [f"{key(name, owner)} = {text(value, f'{owner} {name!r}')}" for name, value in part.settings]
    yield "\n".join([f"[{table}.settings]", *lines])


def _single(values: tuple[float, ...] | None) -> float | tuple[float, ...] | None:
    """The number itself of a joint with one DoF."""
    return values[0] if values is not None and len(values) == 1 else values


def _table(table: str, part: Any, entries: list[Entry]) -> str:
    return f"[[{table}]]\n" + _lines([("name", part.name, ALWAYS), *entries], f"{table} {part.name!r}")


def _lines(entries: list[Entry], owner: str) -> str:
    """key = value for each value that has not its default; texts are compared, since 0.0 == -0.0."""
    lines = []
    for name, value, default in entries:
        if value is None:
            continue
        written = text(value, f"{owner}: {name}")
        if default is ALWAYS or default is None or written != text(default, owner):
            lines.append(f"{name} = {written}")
    return "\n".join(lines)


# ---- values


def text(value: Any, owner: str) -> str:
    """A boolean, integer, float, string or sequence of these."""
    if isinstance(value, str):
        return quoted(value, owner)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(float(value))  # float(): a NumPy scalar prints otherwise
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(text(v, owner) for v in value) + "]"
    raise ModelError(f"{owner} is a {type(value).__name__}; a file holds numbers, strings, booleans and lists of these")


def quoted(value: str, owner: str) -> str:
    """A basic string: quotes, backslashes and control characters escaped."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ModelError(f"{owner} is {value!r}, which is not text (half a character); a file cannot hold it") from None
    return '"' + _CONTROL.sub(lambda m: _ESCAPES.get(m[0]) or f"\\u{ord(m[0]):04x}", value) + '"'


def key(name: str, owner: str) -> str:
    """A key, quoted if it has other characters than letters, digits, - and _."""
    return name if _BARE.fullmatch(name) else quoted(name, owner)
