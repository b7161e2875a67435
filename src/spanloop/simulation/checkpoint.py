"""Checkpoints: the progress of a time loop on disk, from which the same call continues with the same numbers."""

from __future__ import annotations

import hashlib
import io
import time
import zipfile
from pathlib import Path

import numpy as np

from spanloop.errors import FileError, InputError
from spanloop.model.files.file_io import write_file
from spanloop.simulation.time_loop import Progress

SECONDS = 5.0  # of computing between two checkpoints


class Checkpoint:
    """A file, and when it was last written. key: a hash of everything that the numbers depend on."""

    def __init__(self, path, key: str, every: int):
        self.path, self.key, self.every = Path(path), key, every
        self.last = time.perf_counter()

    def resume(self, p: Progress) -> bool:
        """Fill p with what is on disk; False if there is nothing."""
        if not self.path.exists():
            return False
        try:
            with np.load(self.path, allow_pickle=False) as data:
                key, record = str(data["key"]), data["record"]
                state, why, counts, done = data["state"], data["why"], data["counts"], int(data["done"])
        except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError) as error:
            raise FileError(f"{self.path}: cannot be read as a checkpoint ({error}). Remove it to start anew") from None
        if key != self.key:
            raise InputError(
                f"{self.path}: this checkpoint belongs to another simulation (other model, state, inputs, integrator, "
                "step or version of spanloop). Remove it, or choose another name"
            )
        p.record[:, : record.shape[1]] = record
        p.state, p.why, p.counts, p.done = state, why, counts, done
        return True

    def keep(self, p: Progress) -> None:
        """Write the file, if it is time."""
        if time.perf_counter() - self.last >= SECONDS:
            self.write(p)

    def write(self, p: Progress) -> None:
        """Write the file."""
        data = io.BytesIO()
        record = p.record[:, : p.done // self.every + 1]
        np.savez(data, key=self.key, record=record, state=p.state, why=p.why, counts=p.counts, done=p.done)
        write_file(self.path, data.getvalue())
        self.last = time.perf_counter()

    def remove(self) -> None:
        """Remove the file: the simulation is done."""
        self.path.unlink(missing_ok=True)


def key_of(*parts) -> str:
    """A hash over texts, numbers and arrays."""
    digest = hashlib.sha256()
    for x in parts:
        if isinstance(x, np.ndarray):
            digest.update(repr((x.shape, str(x.dtype))).encode())
            digest.update(np.ascontiguousarray(x).tobytes())
        else:
            digest.update(repr(x).encode())
    return digest.hexdigest()
