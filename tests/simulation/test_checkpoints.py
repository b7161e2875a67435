"""Checkpoints: found out at the start, resumed to the same bits, never another run's, never half a file."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
import zipfile
from datetime import datetime

import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop import zoo
from spanloop.compiler.runtime.rollout import Rollout
from spanloop.errors import FileError, InputError, SpanloopWarning
from spanloop.model.files import file_io
from spanloop.simulation import checkpoint
from spanloop.simulation.callback_identity import NotIdentifiable, identity, outside_sources
from spanloop.trajectory.files.seal import sealed

GAIN = 3.0


def brake(t, q, v):
    return -GAIN * v + np.sin(t)


def simulated(file=None, function=brake, duration=0.05, **options):
    given = sl.control.callback(function, **options)
    return sl.simulate(zoo.pendulum(2), [1.0, 0.2], duration=duration, controller=given,
                       integrator=sl.Integrator(checkpoint=file))  # fmt: skip


@pytest.fixture
def at_every_step(monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "_SHARE", np.inf)


def interrupted(monkeypatch, call, after=20):
    """Call with an exception after some steps."""
    original, calls = Rollout.run, []

    def killed(self, *args):
        calls.append(1)
        if len(calls) == after:
            raise ZeroDivisionError("killed")
        return original(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(Rollout, "run", killed)
        with pytest.raises(ZeroDivisionError):
            call()


def steps_in(file):
    with np.load(file) as data:
        return int(data["done"])


# ---- torques of callbacks


def test_a_resumed_callback_run_has_all_its_torques(tmp_path, monkeypatch, at_every_step):
    file = tmp_path / "run.ckpt"
    interrupted(monkeypatch, lambda: simulated(file))
    run, whole = simulated(file), simulated()
    assert run.settings["resumed"] == "at 0.019 s"
    assert "resumed at 0.019 s" in str(run)
    for name in ("times", "q", "v", "tau"):
        assert getattr(run, name).tobytes() == getattr(whole, name).tobytes(), name
    assert "resumed" not in whole.settings
    assert list(tmp_path.iterdir()) == []


def test_another_callback_is_refused(tmp_path, monkeypatch, at_every_step):
    file = tmp_path / "run.ckpt"
    interrupted(monkeypatch, lambda: simulated(file))
    with says(InputError, "run.ckpt: this checkpoint belongs to another callback"):
        simulated(file, lambda t, q, v: -v)
    monkeypatch.setitem(globals(), "GAIN", 4.0)
    with says(InputError, "run.ckpt: this checkpoint belongs to another callback"):
        simulated(file)
    monkeypatch.undo()
    assert simulated(file).settings["resumed"]


def test_a_callback_with_a_memory_of_its_own_keeps_no_progress_and_says_so(tmp_path, monkeypatch, at_every_step):
    class Integral:
        def __init__(self):
            self.sum = 0.0

        def __call__(self, t, q, v):
            self.sum = self.sum + q
            return -0.1 * self.sum

    file = tmp_path / "run.ckpt"
    with pytest.warns(SpanloopWarning, match="the callback changes values that it holds") as found:
        interrupted(monkeypatch, lambda: simulated(file, Integral()))
    assert len(found) == 1
    assert steps_in(file) == 0
    with pytest.warns(SpanloopWarning, match="the callback changes values that it holds"):
        run = simulated(file, Integral())
    assert np.array_equal(run.q, simulated(None, Integral()).q)


def test_a_callback_that_comes_to_hold_a_connection_does_not_end_the_run(tmp_path, at_every_step):
    held = []

    def law(t, q, v):
        if not held:
            held.append(open(os.devnull))  # noqa: SIM115
        return -v

    with pytest.warns(SpanloopWarning, match="the callback changes values that it holds"):
        run = simulated(tmp_path / "run.ckpt", law)
    held[0].close()
    assert run.outcome.finished


def test_random_numbers_of_a_callback_keep_no_progress_unless_vouched_for(tmp_path, monkeypatch, at_every_step):
    def noisy(t, q, v):
        return np.random.normal(size=2) - v

    file = tmp_path / "run.ckpt"
    with pytest.warns(SpanloopWarning, match=r"the callback reads numpy\.random\.normal, whose.*no progress is"):
        interrupted(monkeypatch, lambda: simulated(file, noisy))
    assert steps_in(file) == 0
    file.unlink()
    interrupted(monkeypatch, lambda: simulated(file, noisy, key="vouched"))
    assert steps_in(file) == 19


def test_sources_outside_a_callback_are_found_where_its_code_reads_them():
    clock = time.perf_counter

    def helper(x):
        return x * int(os.environ["GAIN"])

    def inside(t, q, v):
        import numpy

        return numpy.random.rand()

    def nested(t, q, v):
        return [(lambda y: helper(y))(x) for x in q]

    class Law:
        def __call__(self, t, q, v):
            return self.noise(q)

        def noise(self, q):
            return q + random.random()

    for function, names in (
        (brake, []),
        (lambda t, q, v: sys.float_info.epsilon * np.sin(os.path.sep == "/"), []),
        (lambda t, q, v: time.time(), ["time.time"]),
        (lambda t, q, v: clock(), ["clock"]),
        (lambda t, q, v: sys.argv, ["sys.argv"]),
        (lambda t, q, v: datetime.now(), ["datetime"]),
        (lambda t, q, v, r=np.random: r.normal(), ["numpy.random"]),
        (lambda t, q, v: open("gain").read(), ["builtins.open"]),  # noqa: SIM115
        (nested, ["os.environ"]),
        (Law(), ["random.random"]),
    ):
        assert outside_sources(function) == names, names
    assert "numpy.random" in outside_sources(inside)


def test_an_exception_of_a_callback_leaves_the_progress_on_disk(tmp_path):
    file = tmp_path / "run.ckpt"
    with pytest.raises(ZeroDivisionError):
        simulated(file, lambda t, q, v: [1 // int(t < 0.0295), 0.0])
    assert steps_in(file) == 30


def test_what_identifies_a_callback():
    def scaled(by):
        return lambda t, q, v: by * v

    class Law:
        def __init__(self, gain):
            self.gain = gain

        def __call__(self, t, q, v):
            return -self.gain * v

    robot = sl.Dynamics(zoo.puma())

    def weight(t, q, v):
        return robot.inverse_dynamics(q, v, v)

    before = identity(weight)
    weight(0.0, np.zeros(6), np.zeros(6))
    assert identity(weight) == before  # a compiled kernel is no state
    assert identity(scaled(2.0)) == identity(scaled(2.0)) != identity(scaled(3.0))
    assert identity(scaled(np.arange(3.0))) != identity(scaled(np.arange(4.0)))
    assert identity(Law(1.0)) == identity(Law(1.0)) != identity(Law(2.0))
    assert identity(Law(1.0).__call__) != identity(Law(2.0).__call__)
    rng = np.random.default_rng(0)
    before = identity(scaled(rng))
    rng.normal()
    assert identity(scaled(rng)) != before
    with open(os.devnull) as file, pytest.raises(NotIdentifiable):
        identity(scaled(file))


SCRIPT = """
import numpy as np
from spanloop.simulation.callback_identity import identity
import math
NAMES, TABLE = {"a", "b", "c", "d"}, np.arange(5.0)
def part(x):
    return math.sin(x) if "a" in {"a", "b", "c"} and x in NAMES else part(x - 1)
def law(t, q, v, gain=3.0):
    return [part(x) * TABLE[0] for x in q]
print(identity(law))
"""


@pytest.mark.slow
def test_a_script_that_runs_again_has_the_same_callback():
    found = {
        subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True,
                       env={**os.environ, "PYTHONHASHSEED": seed}).stdout
        for seed in "12"
    }  # fmt: skip
    assert len(found) == 1


@pytest.mark.slow
def test_a_callback_that_cannot_be_compared_needs_a_key(tmp_path, monkeypatch, at_every_step):
    file, log = tmp_path / "run.ckpt", open(os.devnull, "w")  # noqa: SIM115

    def logged(t, q, v):
        log.write(f"{t}\n")
        return -v

    with says(InputError, "simulate: the callback cannot be compared with that of a later call (cannot pickle"):
        simulated(file, logged)
    interrupted(monkeypatch, lambda: simulated(file, logged, key="one"))
    with says(InputError, "belongs to another callback"):
        simulated(file, logged, key="two")
    run = simulated(file, logged, key="one")
    log.close()
    assert run.settings["resumed"]
    assert np.array_equal(run.tau, simulated(None, lambda t, q, v: -v).tau)
    with says(InputError, "callback: key is a int; expected text"):
        sl.control.callback(brake, key=3)


# ---- files that cannot be written


def test_a_checkpoint_that_cannot_be_written_is_found_out_at_the_start(tmp_path, monkeypatch):
    monkeypatch.setattr(Rollout, "run", lambda *_: pytest.fail("the simulation started"))
    for file, reason in (
        (tmp_path / "no" / "run.ckpt", "No such file or directory"),
        ("a\0b", "embedded null byte"),
    ):
        with says(FileError, f"cannot be written ({reason}); nothing was changed. The simulation did not start"):
            simulated(file)
    with says(FileError, "is not a file"):
        simulated(tmp_path)


def test_a_disk_that_fills_up_is_one_warning_and_the_run_goes_on(tmp_path, at_every_step):
    folder = tmp_path / "gone"
    folder.mkdir()

    def law(t, q, v):
        if 0.02 < t < 0.022:
            shutil.rmtree(folder, ignore_errors=True)
        return -v

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run = simulated(folder / "run.ckpt", law)
    assert [str(w.message) for w in found] == [
        f"simulate: checkpoint {folder / 'run.ckpt'}: cannot be written (No such file or directory); nothing was "
        "changed. The simulation goes on without it, and tries again from time to time"
    ]
    assert run.outcome.finished
    assert np.array_equal(run.q, simulated(None, lambda t, q, v: -v).q)


def test_with_accuracy_there_is_no_checkpoint():
    with says(InputError, "checkpoint is for steps of one length; with accuracy they are halved. Give step instead"):
        sl.Integrator(accuracy=1e-6, checkpoint="run.ckpt")


# ---- files that are damaged, or of something else


def kept(tmp_path, monkeypatch):
    file = tmp_path / "run.ckpt"
    interrupted(monkeypatch, lambda: simulated(file))
    return file


@pytest.mark.slow
def test_every_flipped_bit_of_a_checkpoint_is_found(tmp_path, monkeypatch, at_every_step):
    file = kept(tmp_path, monkeypatch)
    whole, rng = file.read_bytes(), np.random.default_rng(4)
    with monkeypatch.context() as patch:
        patch.setattr(Rollout, "run", lambda *_: pytest.fail("the simulation started"))
        for _ in range(30):
            broken = bytearray(whole)
            broken[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
            file.write_bytes(broken)
            with pytest.raises(FileError, match=r"run\.ckpt: is (damaged|not a checkpoint).*Remove it to start anew"):
                simulated(file)
            assert file.read_bytes() == broken
    file.write_bytes(whole)
    assert simulated(file).settings["resumed"]


@pytest.mark.slow
def test_foreign_and_resealed_files_get_a_sentence(tmp_path, monkeypatch, at_every_step):
    file = kept(tmp_path, monkeypatch)
    with np.load(file) as data:
        arrays = dict(data)
    simulated().save(tmp_path / "run.npz")
    run = (tmp_path / "run.npz").read_bytes()
    for content, sentence in (
        (run, "run.ckpt: is no checkpoint ('key'). Remove it to start anew"),
        (sealed(b"PK\x03\x04"), "run.ckpt: is no checkpoint (File is not a zip file). Remove it"),
        (checkpoint.npz.dumped(arrays | {"state": arrays["state"][:, 1:]}), "its arrays do not fit this simulation"),
        (checkpoint.npz.dumped(arrays | {"done": np.array(10**9)}), "its arrays do not fit this simulation"),
    ):
        file.write_bytes(content)
        with says(FileError, sentence):
            simulated(file)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("record.npy", bytes(50_000_000))
    file.write_bytes(sealed(file.read_bytes()))
    with says(FileError, "run.ckpt: is no checkpoint (it holds compressed arrays; expected plain ones)"):
        simulated(file)


# ---- part files


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no way to kill at once")
def test_part_files_of_killed_writers_are_removed_at_the_next_write(tmp_path):
    target, other = tmp_path / "model.toml", tmp_path / ".0123456789abcdef.part"
    other.write_bytes(b"of something else")
    program = (
        "import os, pathlib, time\n"
        "from spanloop.model.files.file_io import write_file\n"
        "os.fsync = lambda _: time.sleep(60)\n"
        f"write_file(pathlib.Path({str(target)!r}), b'never')\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program])
    try:
        deadline = time.monotonic() + 60.0
        while not (parts := [p for p in tmp_path.glob(".*.part") if p != other and p.stat().st_size]):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.utime(parts[0], (1.0, 1.0))  # as if it had been writing for long
        file_io.write_file(target, b"first")
        assert parts[0].exists()  # its writer lives
    finally:
        child.kill()
        child.wait()
    file_io.write_file(tmp_path / "another.toml", b"another")
    assert parts[0].exists()  # not that target's
    file_io.write_file(target, b"second")
    assert sorted(p.name for p in tmp_path.iterdir()) == [other.name, "another.toml", "model.toml"]
    assert target.read_bytes() == b"second"
