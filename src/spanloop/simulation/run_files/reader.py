"""The reader of a run's TOML file: each key checked, with file and table in every message."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from spanloop.contacts import Settings
from spanloop.contacts.settings import IMPACTS
from spanloop.errors import FileError, InputError, nearest
from spanloop.model import Model
from spanloop.model.files.file_io import checked_path, decoded, read_file
from spanloop.model.files.toml.reader import FORMAT, Table, parsed
from spanloop.simulation.events.kinds import Appear, Attach, End, Event, Grasp, OneSided, Release, Stop, Vanish
from spanloop.simulation.run_files.conditions import WRENCH, condition
from spanloop.simulation.system import Closures

KINDS: dict[str, type[Event]] = {
    "attach": Attach,
    "release": Release,
    "one_sided": OneSided,
    "stop": Stop,
    "grasp": Grasp,
    "appear": Appear,
    "vanish": Vanish,
    "end": End,
}
TEXT_KEYS = ("kind", "loop", "joint", "body", "name", "when", "on_break")
NUMBERS = ("duration", "step", "sample")
TEXTS = ("integrator", "limits")
BY_NAME = ("q", "v", "tau", "forces")
Values = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class RunFile:
    """A run as plain data: sl.simulate(model, **file.arguments(model)).

    path: of the file, for messages. model: the file or zoo:NAME of the mechanism, "" if the file names none.
    settings: duration, step, sample, integrator, limits and contacts, as far as the file has them. q, v, tau: numbers
    by joint. forces: [torque; force] by body. closures: how loops are kept closed. active_loops: None without any.
    """

    path: Path
    model: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    q: Values = field(default_factory=dict)
    v: Values = field(default_factory=dict)
    tau: Values = field(default_factory=dict)
    forces: Values = field(default_factory=dict)
    closures: str = "project"
    active_loops: tuple[str, ...] | None = None
    event_tables: tuple[Mapping[str, Any], ...] = ()

    def events(self, model: Model) -> list[Event]:
        """The events of the file, for sl.simulate(..., events=...)."""
        return events_in(self.event_tables, model, self.path.name)

    def arguments(self, model: Model) -> dict[str, Any]:
        """The arguments of sl.simulate; what the file does not have is left out."""
        self.check(model)
        out: dict[str, Any] = dict(self.settings)
        for key in BY_NAME:
            if values := getattr(self, key):
                out[key] = {name: x[0] if len(x) == 1 else list(x) for name, x in values.items()}
        if self.closures != "project" or self.active_loops is not None:
            out["closures"] = Closures(self.closures, active_loops=self.active_loops)
        events = self.events(model)
        return {**out, "events": events} if events else out

    def check(self, model: Model) -> None:
        """FileError unless every joint and body that the file names is there, with as many numbers as it has."""
        for key in BY_NAME:
            known = [b.name for b in model.bodies] if key == "forces" else [j.name for j in model.joints]
            for name, values in getattr(self, key).items():
                where = f"{self.path.name}: [{key}]"
                if name not in known:
                    what = "body" if key == "forces" else "joint"
                    raise FileError(f"{where}: {model.name!r} has no {what} {name!r}; {nearest(name, known)}")
                place = model.q_slice(name) if key == "q" else None if key == "forces" else model.v_slice(name)
                count = WRENCH if place is None else place.stop - place.start
                if len(values) != count:
                    noun = "number is" if count == 1 else "numbers are"
                    raise FileError(f"{where}: {name!r} has {len(values)} values; {count} {noun} expected")


def read_run(path: str | Path) -> RunFile:
    """Read the TOML file of a run.

    Raises:
        FileError: the file cannot be read, or a key is missing, unknown or of another type.
    """
    where = checked_path(path)
    if where.suffix.lower() != ".toml":
        raise FileError(f"{where.name}: the extension is {where.suffix!r}; a run is read from a .toml file")
    return run_in(Table(parsed(decoded(read_file(where), where.name), where.name), where.name, "run"), where)


def run_in(top: Table, where: Path, known: Iterable[str] = ()) -> RunFile:
    """The run in a table of a file; known: keys of the file that are not of a run, for what is offered in messages."""
    for key in ("body", "joint"):
        if key in top.content:
            raise FileError(
                f'{where.name}: [[{key}]] belongs to the file of a model; a run names it: model = "arm.toml"'
            )
    version = top.number("format", FORMAT)
    if version != FORMAT:
        raise FileError(f"{top.where}: format is {version:g}; this version of spanloop reads format {FORMAT}")
    settings: dict[str, Any] = {key: top.number(key) for key in NUMBERS if key in top.content}
    settings |= {key: top.text(key) for key in TEXTS if key in top.content}
    settings |= _contacts(top) if "contacts" in top.content else {}
    model = top.text("model", "")
    if model and not model.startswith("zoo:"):
        model = str(where.parent / model)
    out = RunFile(
        where,
        model,
        settings,
        **{key: _by_name(top, key) for key in BY_NAME},
        closures=top.text("closures", "project"),
        active_loops=top.texts("active_loops") if "active_loops" in top.content else None,
        event_tables=tuple(t.content for t in top.tables("events", "event")),
    )
    top.known |= {*NUMBERS, *TEXTS, "active_loops", "contacts", *known}
    top.end()
    return out


def _contacts(top: Table) -> dict[str, Any]:
    """How contacts are treated: contacts = "events", or a table [contacts]."""
    if not isinstance(top.content["contacts"], Mapping):
        values: dict[str, Any] = {"impacts": top.text("contacts")}
        if values["impacts"] not in IMPACTS:
            raise FileError(f"{top.where}: contacts is {values['impacts']!r}; expected {', '.join(map(repr, IMPACTS))}")
    else:
        inner = top.table("contacts")
        values = {key: inner.text(key) for key in ("impacts", "on_jam") if key in inner.content}
        values |= {"overlap": inner.number("overlap")} if "overlap" in inner.content else {}
        for key in ("friction", "restitution"):
            if isinstance(inner.content.get(key), Mapping):
                own = inner.table(key)
                values[key] = {name: own.number(name) for name in own.content}
                own.end()
            elif key in inner.content:
                values[key] = inner.number(key)
        inner.known |= {"impacts", "on_jam", "overlap", "friction", "restitution"}
        inner.end()
    try:
        settings = Settings(**values)
    except InputError as error:
        raise FileError(f"{top.where}: {error}") from None
    return {"contacts": settings.impacts if settings == Settings(settings.impacts) else settings}


def _by_name(top: Table, key: str) -> Values:
    """Numbers by name of a table [q]; a single number stands for a list of one."""
    inner = top.table(key)
    return {
        name: inner.numbers(name) if isinstance(x, list) else (inner.number(name),) for name, x in inner.content.items()
    }


# ---- events


def events_in(tables: Iterable[Mapping[str, Any]], model: Model, file: str) -> list[Event]:
    """The events of tables [[events]], of a file of this name."""
    return [_event(Table(content, file, f"event {k + 1}"), f"event {k + 1}", model) for k, content in enumerate(tables)]


def name_key(kind: str) -> str:
    """The key of what an event of this kind is about: "loop", "body" or "name"."""
    return fields(KINDS[kind])[0].name if kind in KINDS else "name"


def _event(t: Table, which: str, model: Model) -> Event:
    t.where = f"{t.file}: {which}"
    kind = t.text("kind")
    if kind not in KINDS:
        raise FileError(f"{t.where}: kind is {kind!r}; {nearest(kind, KINDS)}")
    cls = KINDS[kind]
    first, *others = (f for f in fields(cls))
    name = t.text(first.name)
    t.where += f" ({kind} {name!r})"
    _check_name(t, first.name, name, model)
    known = {f.name: f for f in others}
    values = {key: _READERS[key](t, key, model) for key in known if key in t.content}
    if cls is Appear:
        values |= _pose(t, values)
    t.known |= set(known)
    t.end()
    missing = [f.name for f in others if f.default is MISSING and f.name not in values]
    if missing:
        raise FileError(f"{t.where}: has no {missing[0]}; expected {missing[0]} = ...")
    try:
        return cls(name, **values)
    except InputError as error:
        raise FileError(f"{t.where}: {str(error).partition(': ')[2]}") from None


def _check_name(t: Table, key: str, name: str, model: Model) -> None:
    """FileError unless the model has the loop, coupling or body."""
    if key == "loop":
        known = [*(x.name for x in model.loops), *(x.name for x in model.couplings)]
        what = "loop or coupling"
    elif key == "body":
        known, what = [b.name for b in model.bodies], "body"
    else:
        return
    if name not in known:
        raise FileError(f"{t.where}: {model.name!r} has no {what} {name!r}; {nearest(name, known)}")


def _number(t: Table, key: str, model: Model) -> Any:
    return t.number(key)


def _whole(t: Table, key: str, model: Model) -> int:
    value = t.number(key)
    if value != int(value):
        raise FileError(f"{t.where}: {key} is {value}; expected a whole number")
    return int(value)


def _when(t: Table, key: str, model: Model) -> Callable[..., Any]:
    try:
        return condition(t.text(key), model, f"{t.where}: {key}")
    except InputError as error:
        raise FileError(str(error)) from None


def _matrix(t: Table, key: str, model: Model) -> np.ndarray:
    rows = t.content[key]
    good = isinstance(rows, list) and len(rows) == 4 and all(isinstance(r, list) and len(r) == 4 for r in rows)
    if not good or not all(type(x) in (int, float) for r in rows for x in r):
        raise FileError(f"{t.where}: {key} is {rows!r:.60}; expected a matrix of four rows of four numbers")
    return np.array(rows, dtype=float)


def _pose(t: Table, values: dict[str, Any]) -> dict[str, Any]:
    """The pose of the keys position and rotation, which a model's file has, too."""
    if not {"position", "rotation"} & set(t.content):
        return {}
    if "pose" in values:
        raise FileError(f"{t.where}: has pose and position or rotation; expected one of both ways")
    placement = t.placement()
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = placement.rotation, placement.position
    return {"pose": pose}


_READERS: dict[str, Callable[[Table, str, Model], Any]] = {
    **dict.fromkeys(("at", "speed", "restitution", "resting", "friction", "torsion"), _number),
    **dict.fromkeys(("row", "sign"), _whole),
    "when": _when,
    "capture": lambda t, key, model: t.flag(key, False),
    "on_break": lambda t, key, model: t.text(key),
    "velocity": lambda t, key, model: np.array(t.numbers(key, 6)),
    "normal": lambda t, key, model: t.numbers(key, 3),
    "pose": _matrix,
}
