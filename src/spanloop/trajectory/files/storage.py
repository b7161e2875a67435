"""Saving and loading runs: .nc, .h5 (netCDF-4), .npz, .csv (write only); files are complete or not written at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from spanloop.errors import FileError, InputError, UnsupportedError, nearest
from spanloop.model.files.file_io import write_file
from spanloop.trajectory.files import csv, netcdf, serialize
from spanloop.trajectory.files.serialize import pack, unpack

if TYPE_CHECKING:
    from spanloop.trajectory.trajectory import Trajectory

READ = (".nc", ".h5", ".npz")
EXTENSIONS = (*READ, ".csv")


def save(run: Trajectory, path) -> None:
    """Writes a run to a file by its extension."""
    path = _checked(path, EXTENSIONS, "runs are saved as .nc, .h5, .npz or .csv")
    extension = path.suffix.lower()
    if extension == ".csv":
        write_file(path, csv.dumped(run, path.name))
    else:
        write_file(path, (serialize if extension == ".npz" else netcdf).dumped(pack(run), path.name))


def load_run(path) -> Trajectory:
    """The run in a .nc, .h5 or .npz file that run.save has written, bit for bit."""
    path = _checked(path, READ, "runs are read from .nc, .h5 or .npz")
    extension = path.suffix.lower()
    _refuse(path)
    header, arrays = (serialize if extension == ".npz" else netcdf).loaded(path)
    try:
        return unpack(header, arrays)
    except (ValueError, KeyError, TypeError, IndexError) as error:  # parts that do not fit together
        raise FileError(f"{path}: is damaged ({error}); expected a run that run.save has written") from None


def _checked(path, extensions: tuple[str, ...], expected: str) -> Path:
    try:
        path = Path(path)
    except TypeError:
        raise InputError(f"path is a {type(path).__name__}; expected text or a pathlib.Path") from None
    extension = path.suffix.lower()
    if extension == ".csv" and extension not in extensions:
        raise UnsupportedError(f"{path}: a .csv file holds no model, so that no run can be read from it")
    if extension not in extensions:
        near = nearest(path.suffix, extensions)
        hint = f": {near}" if near.startswith("did") else ""
        raise InputError(f"{path}: the extension is {path.suffix!r}; {expected}{hint}")
    return path


def _refuse(path: Path) -> None:
    """A sentence for what is no file at all."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise FileError(f"{path}: there is no such file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileError(f"{path}: cannot be read ({reason}); expected a readable file") from None
    if not stat.S_ISREG(mode):
        raise FileError(f"{path}: is not a file")
