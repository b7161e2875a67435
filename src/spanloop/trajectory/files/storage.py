"""Saving and loading runs: .nc, .h5 (netCDF-4), .npz, .csv (write only); files are complete or not written at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from spanloop.errors import FileError, InputError, UnsupportedError, nearest
from spanloop.model.files.file_io import write_file
from spanloop.trajectory.files import csv, netcdf, serialize
from spanloop.trajectory.files.seal import read_sealed
from spanloop.trajectory.files.serialize import check_format, pack, unpack

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
    """The run in a .nc, .h5 or .npz file that run.save has written, bit for bit.

    >>> import tempfile
    >>> from pathlib import Path
    >>> run = sl.simulate(sl.zoo.pendulum(), [1.0], duration=0.1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run.save(Path(folder) / "run.npz")
    ...     again = sl.load_run(Path(folder) / "run.npz")
    >>> bool((again.q == run.q).all())
    True
    """
    path = _checked(path, READ, "runs are read from .nc, .h5 or .npz")
    data = read_sealed(path, "a run that run.save has written", "Take another copy of it")
    reader = serialize if path.suffix.lower() == ".npz" else netcdf
    try:
        header, arrays = reader.loaded(data, path.name)
    except UnsupportedError:  # h5py is missing
        raise
    except Exception as error:  # whatever parsers raise
        raise _damaged(path, error) from None
    check_format(header, str(path))
    try:
        return unpack(header, arrays)
    except Exception as error:  # parts that are missing, or do not fit together
        raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> FileError:
    if isinstance(error, MemoryError):
        return FileError(f"{path}: does not fit into memory; read it on a larger machine")
    reason = str(error).partition("\n")[0] or type(error).__name__
    return FileError(f"{path}: is damaged ({reason}); expected a run that run.save has written")


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
