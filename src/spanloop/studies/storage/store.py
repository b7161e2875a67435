"""The store of a study: a Zarr group with one array a variable, filled chunk by chunk.

A chunk is there when its entry of the array `finished` is, and all its files are: that entry is written last, and every
file of Zarr's local store is moved into place in one step, so that a process that is killed leaves nothing half written
that counts. All files are written, also those of fill values alone, which Zarr leaves out by default: a file that is
missing was lost, and its chunk is computed again. The files of a chunk carry a CRC-32C, which Zarr checks when it reads
them.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from spanloop.errors import FileError, InputError, UnsupportedError
from spanloop.studies.storage.store_path import LONGEST_ENDING

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FORMAT = 1
KEY = "spanloop_study"
_HEAD = "zarr.json"  # a file in the folder of a group
_ALL_FILES = {"write_empty_chunks": True}


@dataclass(frozen=True)
class Variable:
    """An array of the results: its shape for each run, dimensions, type and attributes."""

    shape: tuple[int, ...]
    dims: tuple[str, ...]
    dtype: str
    attrs: Mapping[str, Any] = field(default_factory=dict)


class Store:
    """The results of a study on disk, or in memory if there is no path."""

    def __init__(self, path: Path | None, group: Any, chunk: int, runs: int):
        self.path, self.group, self.chunk, self.runs = path, group, chunk, runs
        self._arrays: dict[str, Any] = {}  # opened once: Zarr reads a file for that

    @property
    def chunks(self) -> int:
        """How many chunks the study has."""
        return -(-self.runs // self.chunk)

    def span(self, k: int) -> tuple[int, int]:
        """The runs of chunk k, from the first to before the end."""
        return k * self.chunk, min(self.runs, (k + 1) * self.chunk)

    def finished(self) -> np.ndarray:
        """Which chunks (n,) are there, with all their files."""
        self.refuse_removed()
        marks = self._array("finished")
        try:
            found: np.ndarray = np.asarray(marks[:]) == 1
        except Exception:  # whatever codecs raise of an entry with other bytes
            found = np.array([_is_one(marks, k) for k in range(self.chunks)])
        if self.path is not None:
            for k in np.flatnonzero(found).tolist():
                found[k] = all(file.is_file() for file in self.files(k))
        return found

    def files(self, k: int) -> Iterator[Path]:
        """The files of chunk k, without its entry of `finished`."""
        assert self.path is not None
        for name in self._variables:
            array = self._array(name)
            if 0 not in array.shape:
                yield self.path / name / array.metadata.encode_chunk_key((k, *(0 for _ in array.shape[1:])))

    @cached_property
    def _variables(self) -> list[str]:
        """Names of the arrays with a row for each run."""
        named = self.group.attrs[KEY]["variables"]
        return [name for name in named if self._array(name).metadata.dimension_names[0] == "run"]

    def _array(self, name: str) -> Any:
        if name not in self._arrays:
            self._arrays[name] = self.group[name].with_config(_ALL_FILES)
        return self._arrays[name]

    @property
    def removed(self) -> bool:
        """Whether the folder is no longer there."""
        return self.path is not None and not is_begun(self.path)

    def refuse_removed(self) -> None:
        """Raise FileError if the folder is no longer there."""
        if self.removed:
            raise self._gone()

    def _gone(self) -> FileError:
        return FileError(
            f"{self.path}: the store was removed while it was in use, with the chunks in it. run() makes a new one "
            "once nothing is left of the folder"
        )

    def write(self, k: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Write chunk k; it counts when all of it is there."""
        first, end = self.span(k)
        self.refuse_removed()
        try:
            for name, array in arrays.items():
                self._array(name)[first:end] = array
            self._array("finished")[k] = 1
        except KeyError:  # an array that is no longer there
            raise self._gone() from None
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            words = "the disk is full" if full else error.strerror or str(error)
            raise FileError(
                f"{self.path}: chunk {k} cannot be written: {words}. {int(self.finished().sum())} of {self.chunks} "
                "chunks are stored, and none of them is lost: make room, and run the study again"
            ) from error


def is_begun(path: Path | None) -> bool:
    """Whether a store may be at this path: the file is there that is written last when one is made."""
    return path is not None and (path / _HEAD).is_file()


def _zarr() -> Any:
    try:
        import zarr
    except ImportError:
        raise UnsupportedError("a study needs Zarr for its results; pip install 'spanloop[study]'") from None
    return zarr


def opened(
    path: Path | None, definition: Mapping[str, Any], variables: Mapping[str, Variable], coordinates: Mapping[str, Any],
    chunk: int, runs: int,
) -> Store:  # fmt: skip
    """The store of this study: the one at the path, if it is of the same definition, else a new one.

    coordinates: {dimension: (numbers, attributes)}.

    Raises:
        InputError: the store is of another study, with what differs.
        FileError: the path is no store, or cannot be written.
    """
    zarr = _zarr()
    if path is None:
        return _made(zarr, None, zarr.storage.MemoryStore(), definition, variables, coordinates, chunk, runs)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        return _resumed(path, definition, variables, coordinates)
    part = path.with_name(f".{path.name}{LONGEST_ENDING}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(part, ignore_errors=True)  # of a process that was killed here
        _made(zarr, path, str(part), definition, variables, coordinates, chunk, runs)
        os.replace(part, path)
    except OSError as error:
        raise FileError(f"{path}: cannot be made ({error.strerror or error}); choose another store") from None
    return read(path)[0]


def _made(
    zarr: Any, path: Path | None, where: Any, definition: Mapping[str, Any], variables: Mapping[str, Variable],
    coordinates: Mapping[str, Any], chunk: int, runs: int,
) -> Store:  # fmt: skip
    group = zarr.create_group(where, zarr_format=3)
    _add_missing(group, variables, coordinates, chunk, runs)
    head = {"format": FORMAT, "chunk": chunk, "runs": runs, "definition": dict(definition)}
    head["variables"] = [*coordinates, *variables]  # in this order
    group.attrs[KEY] = json.loads(json.dumps(head))  # last: a store without it was never begun
    return Store(path, group, chunk, runs)


def _add_missing(
    group: Any, variables: Mapping[str, Variable], coordinates: Mapping[str, Any], chunk: int, runs: int
) -> None:
    """Make the arrays that a group does not have."""
    from zarr.codecs import Crc32cCodec, ZstdCodec

    codecs = (ZstdCodec(level=1), Crc32cCodec())
    for name, v in variables.items():
        if name not in group:
            group.create_array(
                name,
                shape=(runs, *v.shape),
                chunks=(min(chunk, runs), *v.shape),
                dtype=v.dtype,
                compressors=codecs,
                fill_value="" if v.dtype == "str" else 0 if v.dtype == "uint8" else float("nan"),
                dimension_names=("run", *v.dims),
                attributes=dict(v.attrs),
            )
    for name, (given, attrs) in coordinates.items():
        numbers = np.asarray(given, float)
        if name not in group:
            group.create_array(
                name,
                shape=numbers.shape,
                chunks=(max(1, len(numbers)),),
                dtype=numbers.dtype,
                fill_value=float("nan"),
                dimension_names=(name,),
                attributes=dict(attrs),
                compressors=codecs,
            )
        if not _holds(group[name], numbers):
            group[name][:] = numbers
    if "finished" not in group:
        group.create_array(
            "finished",
            shape=(-(-runs // chunk),),
            chunks=(1,),
            dtype="uint8",
            fill_value=0,
            compressors=None,
            dimension_names=("chunk",),
        )


def _holds(array: Any, numbers: np.ndarray) -> bool:
    """Whether an array can be read and has these numbers."""
    try:
        return bool(np.array_equal(array[:], numbers))
    except Exception:  # whatever codecs raise of damaged bytes
        return False


def _is_one(marks: Any, k: int) -> bool:
    """Whether entry k of `finished` can be read, and counts."""
    try:
        return bool(marks[k] == 1)
    except Exception:  # whatever codecs raise of damaged bytes
        return False


def read(path: Path) -> tuple[Store, dict[str, Any]]:
    """The store at a path, and the definition of its study."""
    zarr = _zarr()
    if path.is_dir() and not is_begun(path):
        raise FileError(
            f"{path}: is no store of a study: the folder has files, but no {_HEAD} (one that was partly removed, or "
            "another folder). Remove it, or give another store"
        )
    try:
        group = zarr.open_group(str(path), mode="r+", zarr_format=3)
        head = group.attrs.asdict().get(KEY)
    except Exception as error:  # whatever Zarr raises of a folder that is none of its own
        raise FileError(f"{path}: is no store of a study ({str(error)[:100]})") from None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise FileError(f"{path}: is no store of a study, or one of another version; choose another path, or remove it")
    return Store(path, group, int(head["chunk"]), int(head["runs"])), head["definition"]


def _resumed(
    path: Path, definition: Mapping[str, Any], variables: Mapping[str, Variable], coordinates: Mapping[str, Any]
) -> Store:
    """The store at a path, if it is of this definition; arrays that were lost are made again, without their chunks."""
    store, kept = read(path)
    differs = differences(kept, json.loads(json.dumps(dict(definition))))
    if differs:
        raise InputError(
            f"{path}: is the store of another study: {'; '.join(differs)}. Give another store, or remove this one"
        )
    try:
        _add_missing(store.group, variables, coordinates, store.chunk, store.runs)
    except Exception as error:  # an array's own description is damaged, or the folder cannot be written
        raise FileError(
            f"{path}: an array of the store is damaged or missing, and cannot be made again ({str(error)[:120]}). "
            "Copy the store again, or remove it"
        ) from None
    return store


def differences(kept: Mapping[str, Any], now: Mapping[str, Any], before: str = "") -> list[str]:
    """What differs between two definitions, a sentence each."""
    out = []
    for name in dict.fromkeys((*kept, *now)):
        a, b = kept.get(name), now.get(name)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            out += differences(a, b, f"{before}{name}.")
        elif isinstance(a, list) and isinstance(b, list):
            was, is_now = ({f"{name}[{k}]": y for k, y in enumerate(x)} for x in (a, b))
            out += differences(was, is_now, before)[:1]  # the others mostly follow from the first
        elif a != b:
            shown = ["nothing" if x is None else f"{x!s:.60}" for x in (a, b)]
            out.append(f"{before}{name} was {shown[0]}, and is {shown[1]}")
    return out


@contextlib.contextmanager
def locked(path: Path | None) -> Iterator[None]:
    """Keep other processes from writing to a store; the lock goes with the process, however it ends.

    It is a file beside the store, which stays.

    Raises:
        FileError: another process has it.
    """
    if path is None:
        yield
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(path.with_name(f"{path.name}.lock"), "a+b")  # noqa: SIM115
    except OSError as error:
        raise FileError(f"{path}: cannot be used as a store ({error.strerror or error})") from None
    with file:
        try:
            _lock(file)
        except OSError:
            file.seek(0)
            owner = file.read(200).decode(errors="replace").strip() or "another process"
            raise FileError(
                f"{path}: the store is in use by {owner}; wait until it ends, or give this study a store of its own"
            ) from None
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
        file.flush()
        yield


def _lock(file: Any) -> None:
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:  # pragma: no cover
        import msvcrt

        file.seek(1 << 20)  # beyond what is written, so that others can read who has the lock
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        file.seek(0)
