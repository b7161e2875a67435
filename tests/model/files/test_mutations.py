"""Damaged files give an error with file and line or a model: never a crash, a hang or a silent repair.

A seed says everything: which file, which damage. `mutated(data, seed)` makes the copy again. MuJoCo's compiler runs in
this process; it has survived all copies so far.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import signal
import warnings
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from mutations import mutated

from spanloop.errors import SpanloopError, SpanloopWarning
from spanloop.model import Model
from spanloop.model.files import load

URDF = (
    "panda_description/urdf/panda.urdf",
    "ur_description/urdf/ur5_robot.urdf",
    "solo_description/robots/solo.urdf",
    "anymal_b_simple_description/robots/anymal.urdf",
    "tiago_description/robots/tiago.urdf",
)
SDF = ("cassie.sdf", "cassie_reduced.sdf", "cassie_simple.sdf", "cassie_v2.sdf", "cassie_wo_gearbox_spring.sdf")
HANG = 60  # s, a hundred times what the slowest copy takes
FEW, MANY = 40, 340  # copies of each format


@cache
def originals(extension: str) -> tuple[bytes, ...]:
    if extension == "xml":
        from mjcf_files import CLOSED, TREES, impedance

        return tuple(impedance(text, 0.99).encode() for text in (*TREES.values(), *CLOSED.values()))
    wheel = importlib.metadata.distribution("example-robot-data")
    robots = Path(str(wheel.locate_file("cmeel.prefix/share/example-robot-data/robots")))
    files = URDF if extension == "urdf" else [f"cassie_description/robots/{name}" for name in SDF]
    return tuple((robots / file).read_bytes() for file in files)


def read(data: bytes, path: Path) -> Model:
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpanloopWarning)
        return load(path)


@contextmanager
def no_hang():
    def stop(*_):
        raise TimeoutError(f"no answer after {HANG} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(HANG)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def check(extension: str, seeds: range, folder: Path) -> None:
    """Every copy gives a model or one of our errors, which names file and line; a telling change shows."""
    if extension == "xml":
        pytest.importorskip("mujoco")
    elif not _has_robots():
        pytest.skip("example-robot-data is not installed")
    files = originals(extension)
    path = folder / f"copy.{extension}"
    whole = [read(data, path) for data in files]
    outcomes = {"loaded": 0, "refused": 0}
    for seed in seeds:
        which = seed // 2 % len(files)
        mutation = mutated(files[which], seed)
        print(f"seed {seed}, file {which}: {mutation.what}")
        try:
            with no_hang():
                model = read(mutation.data, path)
        except SpanloopError as error:
            said, model = str(error), None
        outcomes["loaded" if model else "refused"] += 1
        if model is None:
            empty = not mutation.data.strip()
            assert empty or re.search(rf"copy\.{extension}:\d+", said), f"seed {seed}: no line in {said!r}"
            continue
        assert not mutation.shows or model != whole[which], f"seed {seed}: {mutation.what} was lost without a word"
    assert all(outcomes.values()), outcomes


def _has_robots() -> bool:
    try:
        importlib.metadata.distribution("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no alarm on this system")
@pytest.mark.parametrize("extension", ["urdf", "sdf", "xml"])
def test_a_few_damaged_files(extension, tmp_path):
    check(extension, range(FEW), tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no alarm on this system")
@pytest.mark.parametrize("extension", ["urdf", "sdf", "xml"])
def test_a_thousand_damaged_files(extension, tmp_path):
    check(extension, range(1000, 1000 + MANY), tmp_path)


def test_a_file_of_bytes_at_random_is_refused(tmp_path):
    import random

    for seed in range(20):
        data = random.Random(seed).randbytes(500)
        for extension in ("urdf", "sdf", "xml", "toml"):
            if extension == "xml" and importlib.util.find_spec("mujoco") is None:
                continue
            with pytest.raises(SpanloopError, match=rf"copy\.{extension}"):
                read(data, tmp_path / f"copy.{extension}")
