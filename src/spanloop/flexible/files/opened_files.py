"""The files of one call, each read once."""

from __future__ import annotations

import os

from spanloop.flexible.files.file_bytes import FileBytes, read_bytes

PathLike = str | os.PathLike[str]


class OpenedFiles:
    """The files that were read, each once."""

    def __init__(self) -> None:
        self.read: dict[str, FileBytes] = {}

    def take(self, path: PathLike, argument: str) -> FileBytes:
        """The file of a path."""
        key = os.fspath(path) if isinstance(path, (str, os.PathLike)) else ""
        if key not in self.read or not key:
            self.read[key] = read_bytes(path, argument)
        return self.read[key]

    @property
    def first(self) -> FileBytes:
        return next(iter(self.read.values()))

    def source(self, units: str) -> str:
        """The files with their digests, and the units that they were read with."""
        return ", ".join(f"{x.path} (sha256:{x.digest})" for x in self.read.values()) + f"; units {units}"
