"""Examines every model file of a folder and prints a table of what was read, compared and simulated.

    python tests/corpus/run.py --folder F --workers 1 --minutes 60 [--results R.json] [--only TEXT] [--again R.json]

Each worker is a process of its own that handles many files; it is killed where a file takes too long, and started anew
after a crash. Files with the same bytes are examined once. --again takes over the results of an earlier run, and
examines the files that had a problem there or were not reached.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from model_files import ModelFile, model_files
from table import has_problem, summary

HERE = Path(__file__).parent


class Worker:
    """A process that examines files one after another."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.process, self.used = seconds, None, 0
        self.buffer = b""

    def examined(self, file: ModelFile, folder: Path) -> dict[str, Any]:
        """The result of one file; of one that crashes or takes too long, the stage at which it does."""
        if self.process is None or self.used > 150:
            self.stop()
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            self.process = subprocess.Popen([sys.executable, str(HERE / "examine.py")], **pipes)
            self.used, self.buffer = 0, b""
        self.used += 1
        job = {"path": str(folder / file.path), "root": str(folder / file.package), "format": file.format}
        self.process.stdin.write(json.dumps(job).encode() + b"\n")
        self.process.stdin.flush()
        told, until = {"stage": "start", "known": {}}, time.monotonic() + self.seconds
        while True:
            line = self._line(until)
            if line is None:
                hung = self.process.poll() is None
                code = self.process.returncode
                self.stop()
                return {**told["known"], "ended": "hang" if hung else f"crash {code}", "stage": told["stage"]}
            told = json.loads(line)
            if "result" in told:
                return dict(told["result"])

    def _line(self, until: float) -> bytes | None:
        """The next line of the process; None if there is none in time or the process ended."""
        stream = self.process.stdout.fileno()
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([stream], [], [], max(until - time.monotonic(), 0.0))
            chunk = os.read(stream, 65536) if ready else b""
            if not chunk:
                if ready:
                    self.process.wait()
                return None
            self.buffer += chunk
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line

    def stop(self) -> None:
        """End the process, if there is one."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def run(given: argparse.Namespace, files: list[ModelFile], before: dict[str, Any]) -> dict[str, Any]:
    """The results by path; those of `before` that have no problem are taken over."""
    known = {path: found for path, found in before.items() if not has_problem(found)}
    todo = [file for file in files if file.path not in known]
    random.Random(0).shuffle(todo)
    sizes = Counter(file.package for file in files)
    slow = {path for path, found in before.items() if "ended" in found}
    todo.sort(key=lambda file: (file.path not in slow, -sizes[file.package]))  # taken from the end: slow ones are last
    results, lock, deadline = dict(known), threading.Lock(), time.monotonic() + 60.0 * given.minutes

    def work() -> None:
        worker = Worker(given.seconds)
        while time.monotonic() < deadline:
            with lock:
                if not todo:
                    break
                file = todo.pop()
            found = {**asdict(file), **worker.examined(file, given.folder)}
            with lock:
                results[file.path] = found
                if len(results) % 20 == 0:
                    given.results.write_text(json.dumps(results, indent=1))
                    print(f"{len(results)} of {len(files)}", file=sys.stderr, flush=True)
        worker.stop()

    crew = [threading.Thread(target=work) for _ in range(given.workers)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    given.results.write_text(json.dumps(results, indent=1))
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seconds", type=float, default=60.0, help="the longest time for one file")
    parser.add_argument("--results", type=Path, default=Path("corpus_results.json"))
    parser.add_argument("--only", default="", help="examine only files whose path contains this text")
    parser.add_argument("--without", help="leave out files whose path contains this text")
    parser.add_argument("--again", type=Path, help="results of an earlier run; only its problems are examined")
    given = parser.parse_args()
    files = [f for f in model_files(given.folder) if given.only in f.path]
    files = [f for f in files if not given.without or given.without not in f.path]
    before = json.loads(given.again.read_text()) if given.again else {}
    results = run(given, files, before)
    text, is_clean = summary(results, len(files))
    print(text)
    return 0 if is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
