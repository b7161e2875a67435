"""A run as a header of plain values and a few arrays, which every file format stores; .npz files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

import spanloop
from spanloop.errors import FileError
from spanloop.model import Model
from spanloop.model.files.toml import reader as toml_reader
from spanloop.model.files.toml import writer as toml_writer
from spanloop.trajectory.events import NO_EVENTS
from spanloop.trajectory.files import event_columns, npz
from spanloop.trajectory.segment import CONTACT_ARRAYS, SAMPLED, Outcome, Segment

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

FORMAT = 2  # 1, never released, had no seal
WITH_EVENTS = 3  # has a table of events, or segments with models of their own
WITH_CONTACTS = 4  # the same, and forces of contacts
FORMATS = (FORMAT, WITH_EVENTS, WITH_CONTACTS)

Header = dict[str, Any]  # values that JSON can hold

Arrays = dict[str, np.ndarray]


def pack(run: Trajectory) -> tuple[Header, Arrays]:
    """The header and the arrays, samples joined over segments, of a run."""
    models = list(dict.fromkeys(s.model for s in run.segments if s.model not in (None, run.model)))
    touching = any(s.contact_forces is not None for s in run.segments)
    changes = run.events is not NO_EVENTS or bool(models) or touching
    header = {
        "format": WITH_CONTACTS if touching else WITH_EVENTS if changes else FORMAT,
        "spanloop": spanloop.__version__,
        "model": toml_writer.dumps(run.model),
        "settings": dict(run.settings),
        "outcomes": [[str(o.reason), o.sentence, o.time] for o in run.outcomes],
        "segments": [[len(s), s.held, *(_topology(s, models) if changes else ())] for s in run.segments],
        "bodies": list(run.forces or ()),
    }
    arrays: dict[str, Any] = {"times": run.times, **{name: _samples(run, name) for name in SAMPLED}}
    if changes:
        header["models"] = [toml_writer.dumps(model) for model in models]
        header["earlier"] = [dict(settings) for settings in run.earlier]
        header["events"], columns = event_columns.packed(run.events)
        arrays |= columns
    if touching:
        header["contacts"] = [None if (x := s.contact_forces) is None else x.shape[-1] for s in run.segments]
    if run.forces:
        arrays["forces"] = np.stack(list(run.forces.values()), axis=-2)
    if run.ends is not None:
        arrays |= {f"end_{name}": getattr(run.ends, name) for name in ("times", *SAMPLED)}
    arrays |= {"residual": run.residual, "parameters": run.parameters, "surfaces": run.surfaces}
    return header, {name: x for name, x in arrays.items() if x is not None}


def _topology(s: Segment, models: list[Model]) -> tuple[list[str] | None, list[str], int | None]:
    """Closed switches, absent bodies, and the number of its model; None for the run's."""
    closed = None if s.closed is None else list(s.closed)
    return closed, list(s.absent), models.index(s.model) if s.model in models else None


def _samples(run: Trajectory, name: str) -> np.ndarray | None:
    """Samples of all segments; where their models differ in size, as wide as the widest, NaN beyond."""
    parts = [getattr(s, name) for s in run.segments]
    if name in CONTACT_ARRAYS:  # of models with and without contacts
        parts = [np.zeros((*s.q.shape[:-1], 0)) if x is None else x for s, x in zip(run.segments, parts, strict=True)]
    if any(x is None for x in parts):
        return None
    if not any(x.size for x in parts) and name in CONTACT_ARRAYS:
        return None
    width = max(x.shape[-1] for x in parts)
    if all(x.shape[-1] == width for x in parts):
        return np.concatenate(parts, axis=-2) if len(parts) > 1 else parts[0]

    def widened(x: np.ndarray) -> np.ndarray:
        return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, width - x.shape[-1])], constant_values=np.nan)

    return np.concatenate([widened(x) for x in parts], axis=-2)


def unpack(header: Header, arrays: Arrays) -> Trajectory:
    """The run that was packed."""
    from spanloop.trajectory.trajectory import Trajectory

    segments, begin = [], 0
    whole, own = _segment(arrays), toml_reader.loads(header["model"], "model")
    models = [toml_reader.loads(text, "model") for text in header.get("models", ())]
    widths = header.get("contacts") or [None] * len(header["segments"])
    for (count, held, *topology), width in zip(header["segments"], widths, strict=True):
        s = _with_contacts(replace(whole.samples(slice(begin, begin + count)), held=held), width)
        segments.append(_cut(s, own, models, *topology))
        begin += count
    if begin != len(whole):
        raise ValueError(f"the segments have {begin} samples together; expected {len(whole)}")
    return Trajectory(
        own,
        tuple(segments),
        tuple(Outcome(*parts) for parts in header["outcomes"]),
        header["settings"],
        {body: arrays["forces"][..., k, :] for k, body in enumerate(header["bodies"])},
        _segment(arrays, "end_") if "end_times" in arrays else None,
        arrays.get("residual"),
        arrays.get("parameters"),
        event_columns.unpacked(header.get("events", {}), arrays),
        tuple(header.get("earlier", ())),
        arrays.get("surfaces"),
    )


def _with_contacts(s: Segment, width: int | None) -> Segment:
    """A segment whose forces of contacts have this width; None: it has no contacts."""
    if width is None or s.contact_forces is None:
        return replace(s, contact_forces=None, contact_checks=None)
    return replace(s, contact_forces=s.contact_forces[..., :width])


def _cut(
    s: Segment,
    own: Model,
    models: list[Model],
    closed: list[str] | None = None,
    absent: Sequence[str] = (),
    number: int | None = None,
) -> Segment:
    """A segment with its topology, as wide as its model."""
    known = own if number is None else models[number]
    model = None if number is None and closed is None else known
    nq, nv = known.nq, known.nv
    closed_names = None if closed is None else tuple(closed)
    return replace(s, q=s.q[..., :nq], v=s.v[..., :nv], tau=s.tau[..., :nv], model=model, closed=closed_names,
                   absent=tuple(absent))  # fmt: skip


def _segment(arrays: Arrays, prefix: str = "") -> Segment:
    times, q, v, tau = (arrays[prefix + name] for name in ("times", "q", "v", "tau"))
    others: dict[str, Any] = {name: arrays.get(prefix + name) for name in ("memory", *CONTACT_ARRAYS)}
    return Segment(times, q, v, tau, **others)


def check_format(header: Header, file: str) -> None:
    """Check that this version reads the format."""
    if header.get("format") not in FORMATS:
        raise FileError(
            f"{file}: the run has format {header.get('format')!r}; this spanloop reads {FORMAT} to {WITH_CONTACTS}. "
            f"It was written by spanloop {header.get('spanloop', '(unknown)')}"
        )


# ---- .npz: the arrays as NumPy stores them, the header as JSON text


def dumped(packed: tuple[Header, Arrays], file: str) -> bytes:
    """The file's content."""
    header, arrays = packed
    return npz.dumped({"header": np.frombuffer(as_text(header).encode(), np.uint8), **arrays})


def loaded(data: bytes, file: str) -> tuple[Header, Arrays]:
    """Header and arrays of a file's content."""
    arrays = npz.loaded(data)
    header = arrays.pop("header").tobytes()
    return as_header(header), arrays


def as_text(header: Header) -> str:
    """The header as JSON in ASCII."""
    return json.dumps(header)


def as_header(text: bytes) -> Header:
    """The header of its text; ValueError if it is none."""
    header = json.loads(text)
    if not isinstance(header, dict):
        raise ValueError(f"its header is a {type(header).__name__}")
    return header
