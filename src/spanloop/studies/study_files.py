"""Studies as TOML files: a run's file with tables [vary] and [keep].

model = "zoo:four_bar"
duration = 1.0
runs = 1000
store = "study.zarr"

[vary]
"coupler.mass" = {normal = [1.0, 0.1], relative = true}

[keep]
fast = {largest = "abs(v.crank_hinge)"}
end = "q.crank_hinge"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spanloop.errors import FileError, InputError, SpanloopError, nearest
from spanloop.model import Model
from spanloop.model.files.file_io import checked_path, decoded, read_file
from spanloop.model.files.toml.reader import Table, parsed
from spanloop.simulation.run_files.reader import RunFile, run_in
from spanloop.studies.draws.distributions import KINDS, Distribution
from spanloop.studies.kept import EventCount, FirstEvent, Samples, form
from spanloop.studies.study import Study

_OPTIONS = {"normal": ("low", "high"), "choice": ("weights",)}  # keys of distributions, beside relative and unit
_KEYS = ("runs", "seed", "design", "table", "store", "vary", "keep", "trajectories", "chunk")


@dataclass(frozen=True)
class StudyFile:
    """A study as plain data. run: the arguments of every run; own: those of sl.Study alone."""

    path: Path
    run: RunFile
    own: Mapping[str, Any]

    def study(self, model: Model) -> Study:
        """The study of a model."""
        arguments = {"duration": 5.0, **self.run.arguments(model)}
        try:
            return Study(model, **{**arguments, **self.own})
        except FileError:
            raise
        except InputError as error:
            raise FileError(f"{self.path.name}: {error}") from None


def read_study(path: str | Path) -> StudyFile:
    """Read the TOML file of a study.

    Raises:
        FileError: the file cannot be read, or a key is missing, unknown or of another type.
    """
    where = checked_path(path)
    if where.suffix.lower() != ".toml":
        raise FileError(f"{where.name or where}: the extension is {where.suffix!r}; a study is read from a .toml file")
    content = parsed(decoded(read_file(where, "a study"), where.name), where.name)
    top = Table({k: v for k, v in content.items() if k in _KEYS}, where.name, "study")
    rest = Table({k: v for k, v in content.items() if k not in _KEYS}, where.name, "study")
    run = run_in(rest, where, known=_KEYS)
    own: dict[str, Any] = {key: top.whole(key) for key in ("runs", "seed", "chunk") if key in top.content}
    if "design" in top.content:
        own["design"] = top.text("design")
    own["trajectories"] = top.flag("trajectories", False)
    own["store"] = where.parent / top.text("store", f"{where.stem}.zarr")
    if "table" in top.content:
        own["table"] = where.parent / top.text("table")
    if "vary" in top.content:
        inner = top.table("vary")
        own["vary"] = {name: _distribution(inner, name) for name in inner.content}
    inner = top.table("keep")
    own["keep"] = {name: _kept(inner, name) for name in inner.content}
    return StudyFile(where, run, own)


def _distribution(table: Table, name: str) -> Distribution:
    """{uniform = [low, high], relative = true, unit = "N m"}, or {normal = [mean, deviation], low = 0.0}."""
    where = f"{table.where}: {name!r}"
    value = table.content[name]
    if not isinstance(value, Mapping):
        raise FileError(f"{where} is {value!r:.60}; expected a distribution, as {{uniform = [0.9, 1.1]}}")
    kinds = [key for key in value if key in KINDS]
    known = ("relative", "unit", *(_OPTIONS.get(kinds[0], ()) if len(kinds) == 1 else ()))
    others = [key for key in value if key not in KINDS and key not in known]
    if not kinds and others:
        raise FileError(f"{where}: the distribution {others[0]!r} is not known; {nearest(others[0], KINDS)}")
    if len(kinds) != 1:
        raise FileError(f"{where} has {', '.join(kinds) or 'no distribution'}; expected one of {', '.join(KINDS)}")
    kind = kinds[0]
    if others:
        raise FileError(f"{where}: {kind} has no key {others[0]!r}; {nearest(others[0], known)}")
    options = {key: value[key] for key in known if key in value}
    numbers = value[kind]
    if not isinstance(numbers, list):
        raise FileError(f"{where}: {kind} is {numbers!r:.60}; expected numbers in brackets")
    try:
        given = (numbers,) if kind == "choice" else numbers
        return KINDS[kind](*given, **options)
    except TypeError:
        more = "".join(f" and {key}" for key in _OPTIONS.get(kind, ()) if key in options)
        said = f"{kind} has {len(numbers)} numbers{more}"
        raise FileError(f"{where}: {said}; see sl.studies.{KINDS[kind].__name__}") from None
    except SpanloopError as error:
        raise FileError(f"{where}: {error}") from None


def _kept(table: Table, name: str) -> Any:
    """A quantity, or {largest = "abs(v.elbow)", unit = "rad/s"}."""
    where, value = f"{table.where}: {name!r}", table.content[name]
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping):
        raise FileError(f'{where} is {value!r:.60}; expected a quantity, or {{largest = "v.elbow"}}')
    forms = [key for key in value if key not in ("unit", "times")]
    if len(forms) != 1 or not isinstance(value[forms[0]], str):
        raise FileError(f'{where} is {dict(value)!r:.60}; expected one quantity, as {{largest = "v.elbow"}}')
    try:
        cls = form(forms[0], where)
    except InputError as error:
        raise FileError(str(error)) from None
    more = {key: value[key] for key in ("unit", "times") if key in value}
    if ("times" in more and cls is not Samples) or (more and cls in (EventCount, FirstEvent)):
        raise FileError(f"{where}: {forms[0]} takes no {', '.join(more)}")
    try:
        return cls(value[forms[0]], **more)
    except InputError as error:
        raise FileError(f"{where}: {error}") from None
