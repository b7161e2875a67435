"""Damaged model files: each gives a model or one of spanloop's errors, in time and within memory, never a traceback.

Cases run in a process of their own, which a watchdog ends when it hangs and replaces when it dies. A model that loads
is written to TOML and read back bit for bit; of some, `check`, `info` and `convert` run, and forward dynamics of a few.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import select
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from mutated_models import Case, case
from tally import Tally

SECONDS = 10.0  # of processor time for one case
PATIENCE = 60.0  # s until a case that does not answer is ended
MEGABYTES = 1000.0  # of memory
CHECKED, COMPUTED, COMPILED = 10, 20, 200  # of the cases, one in so many
LEAST = 60  # cases
SMALL = 12  # degrees of freedom of the models that are compiled


def attack(seed: int, deadline: float) -> Tally:
    """Cases 0, 1, ... of a seed until the deadline, and some in any case: a worker takes seconds to begin."""
    tally, k = Tally(), 0
    while time.monotonic() < deadline or k < LEAST:
        with contextlib.closing(Worker(seed, k)) as worker:
            while worker.alive and (time.monotonic() < deadline or k < LEAST):
                answer = worker.answer()
                k += 1
                _count(tally, answer, f"files.case({seed}, {k - 1})")
    return tally


def _count(tally: Tally, answer: dict, label: str) -> None:
    if answer["outcome"] in ("loaded", "refused"):
        tally.count(right=answer["outcome"] == "loaded", refused=answer["outcome"] == "refused")
    else:
        tally.fail(f"{label} ({answer['what']:.120}): {answer['outcome']} {answer.get('words', '')}")
    for note in answer.get("notes", ()):
        tally.notes[note] += 1


class Worker:
    """A process that tries the cases of a seed from a first one on."""

    def __init__(self, seed: int, first: int):
        command = [sys.executable, str(Path(__file__).resolve()), str(seed), str(first)]
        environment = {**os.environ, "SPANLOOP_TRACEBACK": "1", "SPANLOOP_CACHE": "off"}
        self.seed, self.next, self.alive = seed, first, True
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
        self.lines = b""

    def answer(self) -> dict:
        """What came out of the next case; a worker that hangs or dies is not alive afterwards."""
        number, self.next = self.next, self.next + 1
        end = time.monotonic() + PATIENCE
        stream = self.process.stdout
        assert stream is not None
        while b"\n" not in self.lines:
            ready, _, _ = select.select([stream], [], [], max(0.0, end - time.monotonic()))
            data = os.read(stream.fileno(), 65536) if ready else b""
            if not data:
                self.alive = False
                died = "hangs" if not ready else f"crashes with {self.process.wait(10)}"
                return {"outcome": died, "what": case(self.seed, number).what}
            self.lines += data
        line, _, self.lines = self.lines.partition(b"\n")
        return json.loads(line)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


def tried(seed: int, k: int, folder: Path) -> dict:
    """Case k of a seed in this process."""
    made = case(seed, k)
    answer = {"what": made.what, "notes": ["well-formed"] if made.formed else ["by bytes"]}
    began = time.process_time()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            answer["outcome"] = _outcome(made, k, folder, answer["notes"])
    except Exception:
        answer["outcome"], answer["words"] = "raises", traceback.format_exc(limit=-3)[-700:]
    seconds, size = time.process_time() - began, _resident()
    if seconds > SECONDS:
        answer["outcome"] = f"takes {seconds:.0f} s"
    if size > MEGABYTES:
        answer["outcome"] = f"takes {size:.0f} MB"
    return answer


def _outcome(made: Case, k: int, folder: Path, notes: list[str]) -> str:
    import spanloop as sl
    from spanloop.cli.main import main
    from spanloop.model.files.toml import reader, writer

    path = folder / f"copy.{made.extension}"
    path.write_bytes(made.data)
    try:
        model = sl.load(path)
    except sl.SpanloopError:
        if k % CHECKED == 0:
            with contextlib.redirect_stderr(io.StringIO()) as told:
                assert main(["info", str(path)]) == 2
            assert told.getvalue().isascii() or told.getvalue().replace("\n", "").isprintable()
        return "refused"
    again = reader.loads(writer.dumps(model))
    assert _parts(again) == _parts(model), "TOML does not give the model back"
    if k % CHECKED == 5:
        notes.append("converted")
        _convert(model, folder)
    compiled = k % COMPILED == 0 and model.nv <= SMALL
    if k % CHECKED == 0 and (compiled or not (model.loops or model.couplings)):
        notes.append("checked")
        with contextlib.redirect_stderr(io.StringIO()):
            assert main(["info", str(path), "--json"]) == 0
            assert main(["check", str(path)]) in (0, 1)
    if compiled or (k % COMPUTED == 0 and not model.loops):
        notes.append("computed")
        _compute(model, "cpu" if compiled else "python")
    return "loaded"


def _parts(model) -> str:
    return repr([getattr(model, f.name) for f in dataclasses.fields(model)])


def _convert(model, folder: Path) -> None:
    """The model in every other format, as far as that holds it, is read again."""
    import spanloop as sl

    for extension in ("urdf", "xml", "sdf", "csv"):
        with contextlib.suppress(sl.SpanloopError):
            model.save(folder / f"converted.{extension}", force=True)
            sl.load(folder / f"converted.{extension}")


def _compute(model, target: str) -> None:
    """Forward dynamics at two states: finite, or refused."""
    import numpy as np

    import spanloop as sl

    robot = sl.Dynamics(model, target=target)
    for seed in (0, 1):
        q, v = model.random_state(seed=seed)
        try:
            assert np.isfinite(robot.forward_dynamics(q, v, np.zeros(model.nv))).all()
        except sl.SpanloopError:
            continue


def _resident() -> float:
    """The largest memory of this process so far [MB]; getrusage would count that of the process which started it."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def work(seed: int, first: int) -> None:
    """Try cases one after the other; print an answer for each."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))  # a bomb ends in a MemoryError
    told, sys.stdout = sys.stdout, sys.stderr
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        os.chdir(folder)
        k = first
        while True:
            print(json.dumps(tried(seed, k, Path(folder))), file=told, flush=True)
            k += 1


if __name__ == "__main__":
    work(int(sys.argv[1]), int(sys.argv[2]))
