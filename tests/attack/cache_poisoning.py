"""Attack the kernel cache: entries flipped, cut, swapped, linked, locked, or made writable for others.

A case is a cache with the entries of a few kernels. Each round spoils them in one way; the kernels must then have the
bits that they have without a cache, and neither warn nor fail where the cache can be written.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
from tally import Tally, until

import spanloop as sl
from spanloop.compiler.runtime import cache

ROUNDS = 25


def attack(seed: int, deadline: float) -> Tally:
    """Cases 0, 1, 2, ... of a seed until the deadline."""
    return until(case, seed, deadline)


def case(seed: int, k: int) -> Tally:
    """One cache, spoilt again and again."""
    rng = np.random.default_rng([seed, k])
    tally, number = Tally(), int(rng.integers(10**6))
    folder = Path(tempfile.mkdtemp(prefix="poison-"))
    with mock.patch.dict(os.environ, SPANLOOP_CACHE="off"):
        expected = _bits(number)
    try:
        with mock.patch.dict(os.environ, SPANLOOP_CACHE=str(folder)), warnings.catch_warnings():
            warnings.simplefilter("error")
            _bits(number)
            for turn in range(ROUNDS):
                poison = POISONS[rng.integers(len(POISONS))]
                name = f"cache_poisoning.case({seed}, {k}), round {turn}, {poison.__name__.strip('_')}"
                with mock.patch.object(cache, "_warned", {"folder"}):  # a folder that is refused warns, rightly
                    poison(sorted(p for p in folder.iterdir() if p.is_file()), rng)
                    try:
                        found = _bits(number)
                    except Exception as error:
                        tally.fail(f"{name}: {type(error).__name__}: {error}")
                        return tally
                if found != expected:
                    tally.fail(f"{name}: other bits")
                    return tally
                tally.count(right=1)
                _restore(folder, number)
    finally:
        _restore_rights(folder)
        shutil.rmtree(folder, ignore_errors=True)
    return tally


def _bits(number: int) -> bytes:
    """Of a kernel of each kind: one state, a batch, looped, a motion."""
    model = sl.zoo.chain(3, seed=number)
    q, v = model.random_state(1)
    robot = sl.Dynamics(model)
    run = sl.simulate(robot, q, v, duration=0.01, limits="ignore")
    looped = sl.compile(model, "forward_dynamics", lowering="looped")
    one, many = robot.forward_dynamics(q, v, v), robot.forward_dynamics(np.repeat(q[None], 2, 0), v, v)
    return b"".join(x.tobytes() for x in (one, many, looped(q, v, v), run.q))


def _restore_rights(folder: Path) -> None:
    os.chmod(folder, 0o700)
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.is_symlink():
            path.unlink()
        else:
            os.chmod(path, 0o600)


def _restore(folder: Path, number: int) -> None:
    """A folder that can be used again, with all entries."""
    _restore_rights(folder)
    _bits(number)


# ---- poisons: each spoils entries


def _flipped_bits(entries: list[Path], rng: np.random.Generator) -> None:
    for path in entries:
        data = bytearray(path.read_bytes())
        for _ in range(int(rng.integers(1, 5))):
            data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
        path.write_bytes(data)


def _cut(entries: list[Path], rng: np.random.Generator) -> None:
    for path in entries:
        data = path.read_bytes()
        path.write_bytes(data[: rng.integers(len(data))])


def _empty(entries: list[Path], rng: np.random.Generator) -> None:
    for path in entries:
        path.write_bytes(b"")


def _longer(entries: list[Path], rng: np.random.Generator) -> None:
    for path in entries:
        path.write_bytes(path.read_bytes() + rng.bytes(int(rng.integers(1, 1000))))


def _foreign(entries: list[Path], rng: np.random.Generator) -> None:
    """Whole entries under names of others, and files that are no entries."""
    contents = [path.read_bytes() for path in entries]
    for path, k in zip(entries, rng.permutation(len(entries)), strict=True):
        path.write_bytes(contents[k] if rng.random() < 0.8 else rng.bytes(500))


def _head_that_lies(entries: list[Path], rng: np.random.Generator) -> None:
    """A checksum that fits a body of noise, or a head that is no JSON or not ours."""
    for path in entries:
        head = (b"", b"{", b"[]", b"7", b'{"key": 1}', b'{"key": "' + path.name.encode() + b'"}', rng.bytes(50))
        chosen = head[rng.integers(len(head))]
        length = len(chosen) if rng.random() < 0.7 else int(rng.integers(2**62))
        body = length.to_bytes(8, "little") + chosen + rng.bytes(int(rng.integers(200)))
        path.write_bytes(b"spanloop kernel 2\n" + hashlib.sha256(body).digest() + body)


def _links(entries: list[Path], rng: np.random.Generator) -> None:
    for path in entries:
        other = entries[rng.integers(len(entries))]
        path.unlink()
        path.symlink_to(rng.choice(["/dev/zero", "/etc/hostname", str(other), "/nowhere"]))


def _folders(entries: list[Path], rng: np.random.Generator) -> None:
    path = entries[rng.integers(len(entries))]
    path.unlink()
    path.mkdir()


def _pipes(entries: list[Path], rng: np.random.Generator) -> None:
    for path in entries:
        path.unlink()
        os.mkfifo(path)


def _writable_for_others(entries: list[Path], rng: np.random.Generator) -> None:
    _flipped_bits(entries, rng)
    for path in (entries[0].parent, *entries):
        os.chmod(path, 0o777)


def _read_only(entries: list[Path], rng: np.random.Generator) -> None:
    _flipped_bits(entries, rng)
    for path in entries:
        os.chmod(path, 0o400)
    os.chmod(entries[0].parent, 0o500)


def _unreadable(entries: list[Path], rng: np.random.Generator) -> None:
    for path in entries:
        os.chmod(path, 0)


POISONS = (
    _flipped_bits, _cut, _empty, _longer, _foreign, _head_that_lies, _links, _folders, _pipes, _writable_for_others,
    _read_only, _unreadable,
)  # fmt: skip
