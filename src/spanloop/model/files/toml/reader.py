"""The reader of spanloop's own format: values are taken as written, none is snapped or added."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, cast

from spanloop.errors import FileError, InputError, ModelError, nearest
from spanloop.joints import CLOSURE_KINDS, JointKind
from spanloop.model.contacts.contact import SETTINGS, Contact
from spanloop.model.contacts.contact_check import refuse_same_pairs
from spanloop.model.contacts.contact_input import ContactSettings, Side, contact_of
from spanloop.model.files.file_io import check_parts, decoded, read_file
from spanloop.model.files.toml.beams import KINDS as FLEXIBLE_KINDS
from spanloop.model.files.toml.beams import completed, read_beam, read_kind, with_recipe_inertia
from spanloop.model.files.toml.elements import read_elements
from spanloop.model.model import Model
from spanloop.model.parts import (
    Actuator,
    Body,
    Coupling,
    Frame,
    Geometry,
    Inertia,
    Joint,
    Loop,
    Placement,
    Sensor,
    Surface,
    has_motor,
)

_NEEDED: Any = object()
_WHOLE = 2**63  # TOML's bound of whole numbers
_LETTERS = {3: "three", 6: "six"}


class Table:
    """The keys of one table, and its place for errors: `arm.toml: joint 'elbow'`.

    Each key is read by type; a key that is missing, of another type or unknown raises FileError.
    """

    def __init__(self, content: Any, file: str, what: str):
        self.where = f"{file}: {what}"
        if not isinstance(content, dict):
            raise FileError(f"{self.where} is {content!r:.40}; expected a table")
        self.file, self.content, self.known = file, content, set[str]()
        if isinstance(content.get("name"), str):
            self.where = f"{file}: {what} {content['name']!r}"

    def _get(self, key: str, default: Any) -> Any:
        self.known.add(key)
        if key not in self.content and default is _NEEDED:
            raise FileError(f"{self.where}: has no {key}; expected {key} = ...")
        return self.content.get(key, default)

    def _must(self, good: bool, key: str, value: Any, expected: str) -> None:
        if not good:
            if "number" in expected and _has_long_integer(value):
                expected += ", whole ones below 2^63; write larger ones with an exponent, as 1e38"
            raise FileError(f"{self.where}: {key} is {value!r:.60}; expected {expected}")

    def text(self, key: str, default: Any = _NEEDED) -> str:
        """A string."""
        value: str = self._get(key, default)
        self._must(isinstance(value, str), key, value, "a text in quotes")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """A boolean."""
        value: bool = self._get(key, default)
        self._must(isinstance(value, bool), key, value, "true or false")
        return value

    def number(self, key: str, default: Any = _NEEDED) -> float:
        """A number."""
        value = self._get(key, default)
        self._must(_is_number(value), key, value, "a number")
        return float(value)

    def optional(self, key: str) -> float | None:
        """A number, or None if it is missing."""
        return None if self._get(key, None) is None else self.number(key)

    def whole(self, key: str, default: Any = _NEEDED) -> int:
        """A whole number."""
        value: int = self._get(key, default)
        self._must(_is_number(value) and isinstance(value, int), key, value, "a whole number")
        return value

    def numbers(self, key: str, count: int | None = None, default: Any = _NEEDED) -> tuple[float, ...]:
        """A list of `count` numbers, of any length if None."""
        value = self._get(key, default)
        expected = "a list of numbers" if count is None else f"{_LETTERS.get(count, count)} numbers"
        good = isinstance(value, (list, tuple)) and all(map(_is_number, value))
        self._must(good and count in (None, len(value)), key, value, expected)
        return tuple(map(float, value))

    def per_dof(self, key: str) -> float | tuple[float, ...] | None:
        """A number, a list of numbers, or None."""
        value = self._get(key, None)
        return value if value is None or _is_number(value) else self.numbers(key)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings."""
        value = self._get(key, [])
        good = isinstance(value, list) and all(isinstance(v, str) for v in value)
        self._must(good, key, value, "a list of texts")
        return tuple(value)

    def placement(self, suffix: str = "") -> Placement:
        """The pose of the keys position and rotation."""
        nowhere = Placement()
        position = self.numbers("position" + suffix, 3, nowhere.position)
        key = "rotation" + suffix
        rows = self._get(key, nowhere.rotation)
        good = isinstance(rows, (list, tuple)) and len(rows) == 3
        good = good and all(isinstance(r, (list, tuple)) and len(r) == 3 and all(map(_is_number, r)) for r in rows)
        self._must(good, key, rows, "a matrix of three rows of three numbers")
        return Placement(tuple(tuple(map(float, r)) for r in rows), position)  # type: ignore[arg-type]

    def points(self, key: str) -> tuple[tuple[float, ...], ...]:
        """A list of points of three numbers each; an empty one if it is missing."""
        rows = self._get(key, ())
        good = isinstance(rows, (list, tuple)) and all(isinstance(r, (list, tuple)) and len(r) == 3 for r in rows)
        self._must(good and all(map(_is_number, (x for r in rows for x in r))), key, rows, "points of three numbers")
        return tuple(tuple(map(float, r)) for r in rows)

    def table(self, key: str) -> Table:
        """The table [key]; an empty one if it is missing."""
        return Table(self._get(key, {}), self.file, f"[{key}]")

    def tables(self, key: str, what: str | None = None) -> list[Table]:
        """The tables [[key]]."""
        value = self._get(key, [])
        self._must(isinstance(value, list), key, value, f"tables [[{key}]]")
        return [Table(content, self.file, what or key) for content in value]

    def settings(self) -> tuple[tuple[str, Any], ...]:
        """The table [settings] as pairs; sequences are tuples."""
        value = self._get("settings", {})
        self._must(isinstance(value, dict), "settings", value, "a table")
        return tuple((name, self._setting(name, v)) for name, v in value.items())

    def _setting(self, name: str, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(self._setting(name, v) for v in value)
        good = isinstance(value, (bool, str)) or _is_number(value)
        self._must(good, f"setting {name!r}", value, "a number, string, boolean or list of these")
        return value

    def rest(self, allowed: set[str]) -> dict[str, Any]:
        """The keys that nobody asked for, if they are allowed."""
        left = {k: v for k, v in self.content.items() if k not in self.known}
        for key in left:
            if key not in allowed:
                offer = nearest(key, sorted((self.known | allowed) - set(self.content)))
                raise FileError(f"{self.where}: the key {key!r} is not known; {offer}")
        return left

    def end(self) -> None:
        """Nothing may be left over."""
        self.rest(set())


def _is_number(x: Any) -> bool:
    return isinstance(x, float) or (isinstance(x, int) and not isinstance(x, bool) and abs(x) < _WHOLE)


def _has_long_integer(x: Any) -> bool:
    return any(map(_has_long_integer, x)) if isinstance(x, (list, tuple)) else isinstance(x, int) and abs(x) >= _WHOLE


FORMAT = 1

LARGEST_TEXT = 10 * 10**6  # characters
MOST_VALUES = 10**6
_KEY = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')"""
_REFUSED = {  # the parser takes time with the square of these
    re.compile(rf"(?:^|[{{,])[ \t\[]*{_KEY}(?:[ \t]*\.[ \t]*{_KEY}){{4}}", re.MULTILINE): "a key of five parts or more",
    re.compile(r"[0-9_]{1000}"): "a number with a thousand digits",
}

LIMITS = ("lower", "upper", "speed", "effort")

PER_DOF = ("damping", "friction", "armature", "stiffness")

ONE_NUMBER = tuple(key for key in SETTINGS if key != "surface_velocity")  # of the settings of a contact

SURFACE = ("friction", "torsion", "rolling", "restitution")


def loads(data: bytes | str, file: str = "text.toml", folder: Path | None = None) -> Model:
    """The model in TOML text; `file` is the name that errors show, folder: where files beside it are."""
    top = Table(parsed(data if isinstance(data, str) else decoded(data, file), file), file, "model")
    _check_format(top)
    check_parts(sum(len(value) for value in top.content.values() if isinstance(value, list)), file)
    recipes: dict[str, dict[str, Any]] = {"beam": dict(map(read_beam, top.tables("beam")))}
    recipes["finite_elements"] = dict(read_elements(t, folder) for t in top.tables("finite_elements"))
    body_tables, joint_tables = top.tables("body"), top.tables("joint")
    bodies = tuple(map(_body, body_tables))
    joints = completed([_joint(t, recipes) for t in joint_tables], joint_tables)
    parts: dict[str, Any] = {
        "bodies": with_recipe_inertia(bodies, body_tables, joints),
        "joints": joints,
        "frames": tuple(map(_frame, top.tables("frame"))),
        "loops": tuple(map(_loop, top.tables("loop"))),
        "couplings": tuple(map(_coupling, top.tables("coupling"))),
        "actuators": tuple(map(_actuator, top.tables("actuator"))),
        "sensors": tuple(map(_sensor, top.tables("sensor"))),
        "gravity": top.numbers("gravity", 3, (0.0, 0.0, -9.81)),
        "notes": top.texts("notes"),
    }
    name, contacts = top.text("name"), top.tables("contact")
    top.end()
    model = Model(name, **parts)
    found = tuple(_contact(t, model) for t in contacts)
    model = replace(model, contacts=found) if found else model
    refuse_same_pairs(model, found)
    return model


def parsed(text: str, file: str) -> dict[str, Any]:
    """The keys of TOML text; `file` is the name that errors show."""
    import tomllib

    _check_extent(text, file)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r" \(at line (\d+), column \d+\)$", str(error))
        line = place[1] if place else str(text.count("\n") + 1)
        reason = str(error)[: place.start()] if place else str(error).removesuffix(" (at end of document)")
        raise FileError(f"{file}:{line}: not readable as TOML ({reason}); expected key = value") from None
    except RecursionError:
        raise FileError(f"{file}: lists are nested too deep; no mechanism needs that") from None
    except ValueError as error:  # of a whole number with thousands of digits
        raise FileError(f"{file}: not readable as TOML ({error})") from None


def _check_extent(text: str, file: str) -> None:
    """Raise FileError for text that no mechanism needs and that would take the parser minutes or gigabytes."""
    if len(text) > LARGEST_TEXT:
        size = len(text) / 1e6
        raise FileError(f"{file}: has {size:.1f} MB; a mechanism in TOML may have {LARGEST_TEXT / 1e6:g} MB at most")
    values = sum(map(text.count, ("\n", ",", "=", "[", "{")))
    if values > MOST_VALUES:
        raise FileError(f"{file}: has some {values} values; no mechanism needs more than {MOST_VALUES}")
    for pattern, what in _REFUSED.items():
        found = pattern.search(text)
        if found:
            line = text.count("\n", 0, found.end()) + 1
            raise FileError(f"{file}:{line}: {what}; no mechanism needs that")


def _check_format(top: Table) -> None:
    version = top.number("format")
    if version != FORMAT:
        raise FileError(f"{top.where}: format is {version:g}; this version of spanloop reads format {FORMAT}")


def _body(t: Table) -> Body:
    nothing = Inertia()
    inertia = Inertia(
        t.number("mass", 0.0),
        t.numbers("center", 3, nothing.center),  # type: ignore[arg-type]
        t.numbers("moments", 6, nothing.moments),  # type: ignore[arg-type]
    )
    geometry = tuple(_geometry(g) for g in t.tables("geometry", f"body {t.text('name')!r}: geometry"))
    body = Body(t.text("name"), inertia, geometry, where=t.file)
    t.end()
    return body


def _geometry(t: Table, use: str = "visual") -> Geometry:
    """use: that of a shape that names none."""
    size = t.numbers("size", None, ())
    color = t.numbers("color", 4) if "color" in t.content else None
    what = t.text("shape"), size, t.text("file", ""), t.placement(), t.text("use", use), color
    geometry = Geometry(*what, vertices=t.points("vertices"), surface=_surface(t))  # type: ignore[arg-type]
    t.end()
    return geometry


def _surface(t: Table) -> Surface | None:
    """The surface of a shape that has any of its keys."""
    values = {name: t.number(name) for name in SURFACE if name in t.content}
    whole = {name: t.whole(name) for name in ("condim", "priority") if name in t.content}
    if "rule" not in t.content and not values and not whole:
        return None
    return Surface(**values, **whole, rule=t.text("rule", "maximum"))  # type: ignore[arg-type]


def _joint(t: Table, recipes: dict[str, dict[str, Any]]) -> Joint:
    name, parent, child, placement = t.text("name"), t.text("parent"), t.text("child"), t.placement()
    settings: dict[str, Any] = {key: t.per_dof(key) for key in LIMITS}
    settings |= {key: value for key in PER_DOF if (value := t.per_dof(key)) is not None}
    rest = t.per_dof("rest")
    settings |= {"rest": () if rest is None else rest}
    actuated = t.flag("actuated", has_motor(t.text("kind")))
    settings |= {"driven": t.flag("driven", False), "actuated": actuated}
    kind = read_kind(t, recipes) if t.text("kind") in FLEXIBLE_KINDS else _kind(t)
    return Joint(name, kind, parent, child, placement, where=t.file, **settings)


def _loop(t: Table) -> Loop:
    name, a, b = t.text("name"), t.text("a"), t.text("b")
    placements = t.placement("_a"), t.placement("_b")
    driven, switchable = t.flag("driven", False), t.flag("switchable", False)
    return Loop(name, _kind(t), a, b, *placements, driven, switchable, where=t.file)


def _kind(t: Table) -> JointKind:
    """The kind with all the keys that are left as its parameters."""
    name = t.text("kind")
    if name not in CLOSURE_KINDS:
        raise FileError(f"{t.where}: kind is {name!r}; {nearest(name, CLOSURE_KINDS)}")
    kind = CLOSURE_KINDS[name]
    parameters = t.rest({f.name for f in fields(kind)})  # type: ignore[arg-type]
    for f in fields(kind):  # type: ignore[arg-type]
        if f.name in parameters and isinstance(f.default, bool):
            parameters[f.name] = t.flag(f.name, f.default)
        elif f.name in parameters and isinstance(f.default, float):
            parameters[f.name] = t.number(f.name)
    try:
        return kind(**parameters)
    except ModelError as error:
        raise FileError(f"{t.where}: {str(error).removeprefix(f'{name} joint: ')}") from None
    except (TypeError, ValueError, OverflowError):
        raise FileError(f"{t.where}: {parameters!r:.60} do not fit a {name} joint; expected numbers") from None


def _frame(t: Table) -> Frame:
    frame = Frame(t.text("name"), t.text("body"), t.placement(), where=t.file)
    t.end()
    return frame


def _coupling(t: Table) -> Coupling:
    ends = t.text("name"), t.text("joint"), t.text("source", "") or None
    numbers = t.number("ratio", 1.0), t.number("offset", 0.0)
    coupling = Coupling(*ends, *numbers, t.flag("switchable", False), where=t.file)
    t.end()
    return coupling


def _actuator(t: Table) -> Actuator:
    actuator = Actuator(t.text("name"), t.text("joint"), t.settings())
    t.end()
    return actuator


def _sensor(t: Table) -> Sensor:
    sensor = Sensor(t.text("name"), t.text("kind"), t.text("at"), t.settings())
    t.end()
    return sensor


def _contact(t: Table, model: Model) -> Contact:
    name, a, b = t.text("name"), _side(t, "a"), _side(t, "b")
    settings: dict[str, Any] = {key: t.optional(key) for key in ONE_NUMBER}
    settings["surface_velocity"] = t.numbers("surface_velocity", 3, (0.0, 0.0, 0.0))
    t.end()
    try:
        return replace(contact_of(model, name, a, b, cast(ContactSettings, settings)), where=t.file)
    except InputError as error:
        raise FileError(f"{t.file}: {error}") from None


def _side(t: Table, end: str) -> Side:
    """A side as model.with_contact takes it: a name, or a table with a shape."""
    if not isinstance(t.content.get(end), dict):
        return t.text(end)
    side = t.table(end)
    side.where = f"{t.where}: {end}"
    return (side.text("at"), _geometry(side, "collision"))


# ---- loops of a separate file


def with_loops_of(model: Model, path: Path) -> Model:
    """The model with the [[loop]] and [[coupling]] tables of a .toml file; `format = 1` may be there and need not."""
    if path.suffix.lower() != ".toml":
        raise FileError(f"{path.name}: the extension is {path.suffix!r}; loops are read from a .toml file")
    return with_loops_in(model, read_file(path), path.name)


def with_loops_in(model: Model, data: bytes | str, file: str) -> Model:
    """The model with the loops and couplings in TOML text; `file` is the name that errors show."""
    text = data if isinstance(data, str) else decoded(data, file)
    top = Table(parsed(text, file), file, "loops")
    top.number("format", 1)
    loops = tuple(map(_loop, top.tables("loop")))
    couplings = tuple(map(_coupling, top.tables("coupling")))
    top.end()
    if not loops and not couplings:
        raise FileError(f"{file}: there is no [[loop]] and no [[coupling]]; expected one at least")
    return replace(model, loops=(*model.loops, *loops), couplings=(*model.couplings, *couplings))
