"""Processes that attacks interrupt and kill: started, spoken to in lines, and judged by how they end."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import tempfile
import threading
from typing import Any

PATIENCE = 60.0  # s that a victim may take for what is not timed


class Victim:
    """A Python process that runs a file of this folder; prints lines, and reads one before each action."""

    def __init__(self, script: str, *words: Any, interpreter: str = sys.executable, **environment: str):
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            [interpreter, "-X", "faulthandler", script, *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env={**os.environ, **environment},
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in self.process.stdout:
            self._lines.put(line.strip())
        self._lines.put("")  # no more

    def line(self, seconds: float = PATIENCE) -> str | None:
        """The next line; "" if the process has ended, None if nothing comes in time."""
        try:
            return self._lines.get(timeout=seconds)
        except queue.Empty:
            return None

    def tell(self, word: str) -> None:
        """Let it go on."""
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def end(self) -> str:
        """End it, if it has not ended; what it wrote last on stderr, and how it ended."""
        if self.process.poll() is None:
            self.process.kill()
        code = self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            stream.close()
        self.errors.seek(0)
        text = self.errors.read().decode(errors="replace")
        self.errors.close()
        return f"exit code {code}; {text[-1500:]}"

    def __enter__(self) -> Victim:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.errors.closed:
            self.end()
