"""A run as a header of plain values and a few arrays, which every file format stores; .npz files."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

import spanloop
from spanloop.errors import FileError
from spanloop.model.files.toml import reader as toml_reader
from spanloop.model.files.toml import writer as toml_writer
from spanloop.trajectory.files import npz
from spanloop.trajectory.segment import Outcome, Segment

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

FORMAT = 2  # 1, never released, had no seal

SAMPLES = ("q", "v", "tau", "memory")

Header = dict[str, Any]  # values that JSON can hold

Arrays = dict[str, np.ndarray]


def pack(run: Trajectory) -> tuple[Header, Arrays]:
    """The header and the arrays, samples joined over segments, of a run."""
    header = {
        "format": FORMAT,
        "spanloop": spanloop.__version__,
        "model": toml_writer.dumps(run.model),
        "settings": dict(run.settings),
        "outcomes": [[str(o.reason), o.sentence, o.time] for o in run.outcomes],
        "segments": [[len(s), s.held] for s in run.segments],
        "bodies": list(run.forces or ()),
    }
    arrays = {"times": run.times, **{name: getattr(run, name) for name in SAMPLES}}
    if run.forces:
        arrays["forces"] = np.stack(list(run.forces.values()), axis=-2)
    if run.ends is not None:
        arrays |= {f"end_{name}": getattr(run.ends, name) for name in ("times", *SAMPLES)}
    arrays |= {"residual": run.residual, "parameters": run.parameters}
    return header, {name: x for name, x in arrays.items() if x is not None}


def unpack(header: Header, arrays: Arrays) -> Trajectory:
    """The run that was packed."""
    from spanloop.trajectory.trajectory import Trajectory

    segments, begin = [], 0
    whole = _segment(arrays)
    for count, held in header["segments"]:
        segments.append(replace(whole.samples(slice(begin, begin + count)), held=held))
        begin += count
    if begin != len(whole):
        raise ValueError(f"the segments have {begin} samples together; expected {len(whole)}")
    return Trajectory(
        toml_reader.loads(header["model"], "model"),
        tuple(segments),
        tuple(Outcome(*parts) for parts in header["outcomes"]),
        header["settings"],
        {body: arrays["forces"][..., k, :] for k, body in enumerate(header["bodies"])},
        _segment(arrays, "end_") if "end_times" in arrays else None,
        arrays.get("residual"),
        arrays.get("parameters"),
    )


def _segment(arrays: Arrays, prefix: str = "") -> Segment:
    times, q, v, tau = (arrays[prefix + name] for name in ("times", "q", "v", "tau"))
    return Segment(times, q, v, tau, arrays.get(f"{prefix}memory"))


def check_format(header: Header, file: str) -> None:
    """Check that this version reads the format."""
    if header.get("format") != FORMAT:
        raise FileError(
            f"{file}: the run has format {header.get('format')!r}; this spanloop reads format {FORMAT}. "
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
