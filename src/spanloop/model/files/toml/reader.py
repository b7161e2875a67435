"""spanloop's own format, read as written: nothing is snapped, judged or added."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from spanloop.errors import FileError, ModelError, nearest
from spanloop.joints import CLOSURE_KINDS, JointKind
from spanloop.model.files.source_file import decoded, read
from spanloop.model.files.toml.table import Table
from spanloop.model.model import Model
from spanloop.model.parts import Actuator, Body, Coupling, Frame, Geometry, Inertia, Joint, Loop, Sensor

FORMAT = 1

LIMITS = ("lower", "upper", "speed", "effort")

PER_FREEDOM = ("damping", "friction", "armature", "stiffness")


def loads(data: bytes | str, file: str = "text.toml") -> Model:
    """The model in TOML text; `file` is the name that errors show."""
    top = Table(_parsed(data if isinstance(data, str) else decoded(data, file), file), file, "model")
    _check_format(top)
    parts: dict[str, Any] = {
        "bodies": tuple(map(_body, top.tables("body"))),
        "joints": tuple(map(_joint, top.tables("joint"))),
        "frames": tuple(map(_frame, top.tables("frame"))),
        "loops": tuple(map(_loop, top.tables("loop"))),
        "couplings": tuple(map(_coupling, top.tables("coupling"))),
        "actuators": tuple(map(_actuator, top.tables("actuator"))),
        "sensors": tuple(map(_sensor, top.tables("sensor"))),
        "gravity": top.numbers("gravity", 3, (0.0, 0.0, -9.81)),
        "notes": top.texts("notes"),
    }
    name = top.text("name")
    top.end()
    return Model(name, **parts)


def _parsed(text: str, file: str) -> dict[str, Any]:
    import re
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r" \(at line (\d+), column \d+\)$", str(error))
        line = place[1] if place else str(text.count("\n") + 1)
        reason = str(error)[: place.start()] if place else str(error).removesuffix(" (at end of document)")
        raise FileError(f"{file}:{line}: not readable as TOML ({reason}); expected key = value") from None
    except RecursionError:
        raise FileError(f"{file}: lists stand in each other too deep; no mechanism needs that") from None
    except ValueError as error:  # of a whole number with thousands of digits
        raise FileError(f"{file}: not readable as TOML ({error})") from None


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


def _geometry(t: Table) -> Geometry:
    size = t.numbers("size", None, ())
    geometry = Geometry(t.text("shape"), size, t.text("file", ""), t.placement(), t.text("use", "visual"))
    t.end()
    return geometry


def _joint(t: Table) -> Joint:
    name, parent, child, placement = t.text("name"), t.text("parent"), t.text("child"), t.placement()
    settings: dict[str, Any] = {key: t.per_freedom(key) for key in LIMITS}
    settings |= {key: value for key in PER_FREEDOM if (value := t.per_freedom(key)) is not None}
    rest = t.per_freedom("rest")
    settings |= {"rest": () if rest is None else rest}
    settings |= {"driven": t.flag("driven", False), "actuated": t.flag("actuated", True)}
    return Joint(name, _kind(t), parent, child, placement, where=t.file, **settings)


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
    ends = t.text("name"), t.text("joint"), t.text("source")
    coupling = Coupling(*ends, t.number("ratio", 1.0), t.number("offset", 0.0), where=t.file)
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


# ---- Loops and couplings from a TOML file of their own: load("leg.urdf", loops="leg.toml").


def closed(model: Model, path: Path) -> Model:
    """The model with the [[loop]] and [[coupling]] tables of a .toml file; `format = 1` may be there and need not."""
    if path.suffix.lower() != ".toml":
        raise FileError(f"{path.name}: the extension is {path.suffix!r}; loops are read from a .toml file")
    return closed_by(model, read(path), path.name)


def closed_by(model: Model, data: bytes | str, file: str) -> Model:
    """The model with the loops and couplings in TOML text; `file` is the name that errors show."""
    text = data if isinstance(data, str) else decoded(data, file)
    top = Table(_parsed(text, file), file, "loops")
    top.number("format", 1)
    loops = tuple(map(_loop, top.tables("loop")))
    couplings = tuple(map(_coupling, top.tables("coupling")))
    top.end()
    if not loops and not couplings:
        raise FileError(f"{file}: there is no [[loop]] and no [[coupling]]; expected one at least")
    return replace(model, loops=(*model.loops, *loops), couplings=(*model.couplings, *couplings))
