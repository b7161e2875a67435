"""Checkpoints: the progress of a time loop on disk, from which the same call continues with the same numbers."""

from __future__ import annotations

import contextlib
import hashlib
import time
import warnings
from pathlib import Path

import numpy as np

from spanloop.errors import FileError, InputError, SpanloopWarning, listed
from spanloop.model.files.file_io import write_file
from spanloop.simulation.callback_identity import NotIdentifiable, identity, outside_sources
from spanloop.simulation.controllers import Callback
from spanloop.simulation.inputs import Inputs
from spanloop.simulation.time_loop import Progress
from spanloop.trajectory.files import npz
from spanloop.trajectory.files.seal import read_sealed

SECONDS = 5.0  # of computing between two checkpoints
_SHARE = 0.05  # of the time, at most, that goes into writing them


class Checkpoint:
    """A sealed .npz file, and when it was last written.

    key: a hash of everything that the numbers depend on, but the callback, whose torques so far are among the inputs.
    """

    def __init__(self, path, key: str, every: int, inputs: Inputs):
        self.path, self.key, self.every, self.inputs = Path(path), key, every, inputs
        self.callback = "" if inputs.callback is None else _identity(inputs.callback)
        self.outside = self._outside(inputs.callback)
        self.next = 0.0  # when it is to be written
        self.warned = False

    def begin(self, p: Progress) -> None:
        """Fill p with what is on disk, if there is something; then write the file, to learn at once whether that works.

        Raises FileError for a file that is damaged or cannot be written, InputError for one of another simulation.
        """
        if self.path.exists():
            self._resume(p)
        try:
            self.write(p)
        except FileError as error:
            raise FileError(
                f"checkpoint {error}. The simulation did not start: choose a file in a folder that can be written to"
            ) from None

    @property
    def is_due(self) -> bool:
        """Whether it is time to write the file."""
        return time.perf_counter() >= self.next

    def keep(self, p: Progress, now: bool = False) -> None:
        """Write the file if it is time, or now; if that fails, the run goes on with one warning."""
        if not now and not self.is_due:
            return
        try:
            if self._state_is_kept():
                self.write(p)
        except (FileError, MemoryError) as error:
            self._warn(f"checkpoint {error}. The simulation goes on without it, and tries again from time to time")
            self.next = time.perf_counter() + SECONDS

    def write(self, p: Progress) -> None:
        """Write the file."""
        began = time.perf_counter()
        arrays = {
            "key": np.array(self.key),
            "callback": np.array(self.callback),
            "record": p.record[:, : p.done // self.every + 1],
            "state": p.state,
            "why": p.why,
            "counts": p.counts,
            "done": np.array(p.done),
            "torques": self.inputs.kept_rows(len(p.state), p.done),
            "log": np.concatenate(p.log) if p.log else np.zeros((0, 0)),
        }
        write_file(self.path, npz.dumped(arrays))
        now = time.perf_counter()
        self.next = now + max(SECONDS, (now - began) / _SHARE)

    def remove(self) -> None:
        """Remove the file: the simulation is done."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            self._warn(f"checkpoint {self.path}: cannot be removed ({error.strerror}); the simulation is done")

    def _resume(self, p: Progress) -> None:
        try:
            data = npz.loaded(read_sealed(self.path, "a checkpoint", "Remove it to start anew"))
            key, callback, done = str(data["key"]), str(data["callback"]), int(data["done"])
            kept = {name: data[name] for name in ("record", "state", "why", "counts", "torques")}
            log = data["log"]
        except FileError:
            raise
        except Exception as error:  # whatever parsers raise
            raise FileError(f"{self.path}: is no checkpoint ({error}). Remove it to start anew") from None
        if key != self.key:
            raise InputError(
                f"{self.path}: this checkpoint belongs to another simulation (other model, state, inputs, integrator, "
                "step or version of spanloop). Remove it, or choose another name"
            )
        if callback != self.callback:
            raise InputError(
                f"{self.path}: this checkpoint belongs to another callback (other code, other values that it reads, or "
                "another version of Python). Remove it, or choose another name"
            )
        self._check(p, done, kept)
        p.log = [log] if len(log) else []
        p.record[:, : kept["record"].shape[1]] = kept["record"]
        p.state, p.why, p.counts = (kept[name].copy() for name in ("state", "why", "counts"))
        p.done = p.resumed = done
        self.inputs.keep_rows(kept["torques"])

    def _check(self, p: Progress, done: int, kept: dict[str, np.ndarray]) -> None:
        """FileError unless what was kept has the shapes of this simulation."""
        n, samples, width = p.record.shape
        torques = (n, done, self.inputs.width) if self.callback else (0, 0, 0)
        expected = {name: (x.shape, x.dtype) for name, x in (("state", p.state), ("why", p.why), ("counts", p.counts))}
        expected["record"] = (n, done // self.every + 1, width), p.record.dtype
        expected["torques"] = torques, np.dtype(float)
        fits = 0 <= done // self.every < samples and {k: (x.shape, x.dtype) for k, x in kept.items()} == expected
        if not fits or (kept["counts"] < 0).any() or (kept["counts"] > done).any():
            raise FileError(f"{self.path}: its arrays do not fit this simulation. Remove it to start anew")

    def _state_is_kept(self) -> bool:
        """Whether a later process has all that the run depends on: a callback's own memory is not in the file."""
        callback, does = self.inputs.callback, "changes values that it holds"
        with contextlib.suppress(InputError):  # it has come to hold what cannot be compared
            if callback is None or _identity(callback) == self.callback:
                if not self.outside:
                    return True
                does = f"reads {listed(self.outside)}, whose numbers are others in another process"
        self._warn(
            f"checkpoint {self.path}: the callback {does}, which a checkpoint does not keep; no progress is kept. If "
            f"its torques depend on t, q and v alone, vouch for it: {_VOUCH}"
        )
        return False

    @staticmethod
    def _outside(callback: Callback | None) -> list[str]:
        """Sources of numbers that the callback reads beside what it holds; none if the user vouches for it."""
        return [] if callback is None or callback.key else outside_sources(callback.function)

    def _warn(self, words: str) -> None:
        if not self.warned:
            warnings.warn(f"simulate: {words}", SpanloopWarning, stacklevel=8)
        self.warned = True


_VOUCH = "sl.control.callback(function, key='a name'), with another key whenever the function changes"


def _identity(callback: Callback) -> str:
    if callback.key:
        return f"key {callback.key}"
    try:
        return identity(callback.function)
    except NotIdentifiable as error:
        raise InputError(
            f"simulate: the callback cannot be compared with that of a later call ({error}), and a checkpoint must not "
            f"continue with another one. Vouch for it: {_VOUCH}"
        ) from None


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
