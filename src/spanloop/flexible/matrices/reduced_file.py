"""Bodies from finite elements as .npz files: numbers and names, no code; equal bodies have equal bytes."""

from __future__ import annotations

import io
from dataclasses import fields

import numpy as np

from spanloop.errors import FileError
from spanloop.flexible.finite_element_body import FiniteElementBody

_TEXTS = ("mode_names", "mode_units", "names", "loads")  # tuples of texts
_ONE = {"mass": float, "level": int, "basis": str, "size": int, "source": str, "left_out": float, "any_spin": bool}
_KINDS = {float: "f", int: "iu", str: "U", bool: "b"}  # of NumPy's types
_AXES = {"stiffness": 1, "weights": 1, "vertices": 2, "triangles": 2, "energies": 3, "turning": 3}
_FORMAT = 1


def to_bytes(body: FiniteElementBody) -> bytes:
    """The body as the content of an .npz file."""
    parts = {f.name: getattr(body, f.name) for f in fields(body)}
    arrays = {name: np.array(x, dtype=str) if name in _TEXTS else np.asarray(x) for name, x in parts.items()}
    out = io.BytesIO()
    np.savez_compressed(out, format=np.array(_FORMAT), **arrays)  # type: ignore[arg-type]
    return out.getvalue()


def from_bytes(data: bytes, where: str) -> FiniteElementBody:
    """The body in the content of an .npz file; `where` names it in errors."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
    except Exception as error:  # a broken archive has many: of zip, zlib, the headers of arrays, memory
        raise FileError(
            f"{where}: not readable as a flexible body ({error}); expected an .npz that save wrote"
        ) from None
    names = [f.name for f in fields(FiniteElementBody)]
    missing = [name for name in (*names, "format") if name not in found]
    if missing or found["format"].shape or found["format"] != _FORMAT:
        what = f"has no {missing[0]!r}" if missing else f"is of format {found['format']!s:.40}"
        raise FileError(f"{where}: {what}; expected a flexible body of format {_FORMAT}")
    try:
        values = {name: _value(name, found[name]) for name in names}
        body = FiniteElementBody(**values)
    except (TypeError, ValueError) as error:
        raise FileError(f"{where}: not a flexible body ({error})") from None
    _check_shapes(body, where)
    return body


def _value(name: str, x: np.ndarray):
    """A field of the body; ValueError for an array of another type or shape."""
    kind = str if name in _TEXTS else _ONE.get(name)
    if kind is None:
        return np.asarray(x)
    if x.dtype.kind not in _KINDS[kind] or x.ndim != (name in _TEXTS):
        raise ValueError(f"{name} is {x.dtype} of shape {x.shape}")
    return tuple(map(str, x)) if name in _TEXTS else kind(x[()])


def _check_shapes(b: FiniteElementBody, where: str) -> None:
    for name, axes in _AXES.items():
        if getattr(b, name).ndim != axes:
            raise FileError(f"{where}: {name} has the shape {getattr(b, name).shape}; expected {axes} axes")
    n, p, k, m = len(b.stiffness), len(b.weights), len(b.names), len(b.vertices)
    expected = {
        "center": (3,), "moments": (6,), "stiffness": (n,), "damping": (n,), "weights": (p,), "positions": (p, 3),
        "translations": (p, n, 3), "bent": (p, n, n, 3), "mixed": (n, 3, 3), "swirls": (n, n, 3), "masses": (n, n),
        "at": (k, 3), "shifts": (k, n, 3), "turns": (k, n, 3), "bent_shifts": (k, n, n, 3), "bent_turns": (k, n, n, 3),
        "vertices": (m, 3), "movement": (m, n, 3), "effective": (6,), "mode_names": (n,), "mode_units": (n,),
        "turning": (len(b.turning), n, 3), "energies": (len(b.triangles) if len(b.energies) else 0, n, n),
    }  # fmt: skip
    for name, shape in expected.items():
        value = getattr(b, name)
        found = np.shape(value)
        if found != shape:
            raise FileError(f"{where}: {name} has the shape {found}; expected {shape}")
        if isinstance(value, np.ndarray) and (value.dtype != float or not np.isfinite(value).all()):
            raise FileError(f"{where}: {name} has a value that is no finite number")
    if b.level not in (0, 1, 2) or not 0.0 < b.mass < np.inf or not (b.stiffness > 0.0).all():
        raise FileError(f"{where}: level, mass or stiffness is one that no flexible body has")
    is_whole = b.triangles.dtype.kind in "iu" and b.triangles.shape[1:] == (3,)
    if not is_whole or (b.triangles.size and not 0 <= b.triangles.min() <= b.triangles.max() < m):
        raise FileError(f"{where}: its triangles name points that are not there")
