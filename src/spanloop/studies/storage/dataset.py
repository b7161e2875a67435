"""The results of a study as an xarray.Dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.errors import FileError, UnsupportedError
from spanloop.studies.chunk import FAILED_CODES, OUTCOMES
from spanloop.studies.storage.store import KEY, Store

if TYPE_CHECKING:
    import xarray

_SHOWN = 3  # damaged files that are named


def dataset(store: Store) -> xarray.Dataset:
    """All variables over `run`, of the runs that are finished; outcomes as words."""
    try:
        import xarray as xr
    except ImportError:
        raise UnsupportedError("results are an xarray.Dataset; pip install 'spanloop[study]'") from None
    which = finished_runs(store)
    variables: dict[str, Any] = {}
    coords: dict[str, Any] = {"run": which}
    head = store.group.attrs[KEY]
    for name in head["variables"]:
        array = store.group[name]
        dims = array.metadata.dimension_names
        attrs = dict(array.attrs)
        if dims[0] != "run":
            coords[name] = (dims, np.asarray(array[:]), attrs)
            continue
        variables[name] = (dims, rows(store, name, which), attrs)
    variables["outcome"] = (("run",), np.array(OUTCOMES)[variables["outcome"][1]], variables["outcome"][2])
    return xr.Dataset(variables, coords, {"model": str(head["definition"]["model"])})


def finished_runs(store: Store) -> np.ndarray:
    """Numbers of the runs that are stored."""
    spans = [np.arange(*store.span(int(k))) for k in np.flatnonzero(store.finished())]
    return np.concatenate(spans) if spans else np.zeros(0, int)


def rows(store: Store, name: str, which: np.ndarray) -> np.ndarray:
    """A variable of these runs."""
    array = store.group[name]
    try:
        found = np.asarray(array[:])
    except Exception as error:  # whatever codecs raise of damaged bytes
        raise FileError(
            f"{store.path}: variable {name!r} is damaged{_damaged(store, array)} ({str(error)[:120]}). Remove such a "
            "file, and run() computes its chunk again"
        ) from None
    return found if len(which) == store.runs else found[which]


def _damaged(store: Store, array: Any) -> str:
    """The files of an array that cannot be read, the first ones, as words."""
    files = []
    for k in range(store.chunks):
        first, end = store.span(k)
        try:
            array[first:end]
        except Exception:  # whatever codecs raise
            files.append(f"{array.basename}/{array.metadata.encode_chunk_key((k, *(0 for _ in array.shape[1:])))}")
    more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
    return f" in {', '.join(files[:_SHOWN])}{more}" if files else ""


def failure_table(store: Store) -> dict[int, str]:
    """{number: reason} of the runs that failed."""
    which = finished_runs(store)
    codes = rows(store, "outcome", which)
    failed = np.flatnonzero(np.isin(codes, FAILED_CODES))
    reasons: Any = rows(store, "reason", which) if len(failed) else []
    return {int(which[k]): str(reasons[k]) for k in failed}
