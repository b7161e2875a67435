"""Kernels on disk: found again, never trusted blindly, and never in the way."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest

import spanloop as sl
from spanloop import kernels, zoo
from spanloop.compiler.runtime import cache, machine
from spanloop.errors import SpanloopWarning

Q, V, TAU = np.array([0.3, -0.4]), np.array([0.1, 0.2]), np.array([1.0, -1.0])
needs_owners = pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owners here")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache of this test's own, and no memory of warnings."""
    where = tmp_path / "cache"
    monkeypatch.setenv("SPANLOOP_CACHE", str(where))
    monkeypatch.setattr(cache, "_warned", set())
    monkeypatch.setattr(cache, "_unmeasured", float("inf"))
    return where


@pytest.fixture
def compilations(monkeypatch):
    """A list that grows with every compilation."""
    made = []
    compile_ = machine.object_code
    monkeypatch.setattr(machine, "object_code", lambda source: made.append(1) or compile_(source))
    return made


def answer():
    """One state and a batch, so that both parts of a kernel are made."""
    k = sl.compile(zoo.pendulum(2), "forward_dynamics")
    one = k(Q, V, TAU)
    np.testing.assert_allclose(k(np.tile(Q, (2, 1)), V, TAU)[1], one, rtol=1e-12)
    return one


EXPECTED = sl.compile(zoo.pendulum(2), "forward_dynamics", target="python")(Q, V, TAU)


def check():
    np.testing.assert_allclose(answer(), EXPECTED, rtol=1e-12)


def entries(folder):
    return sorted(p for p in folder.iterdir() if not p.name.startswith("."))


# ---- found again


def test_a_second_kernel_comes_from_disk_without_tracing(folder, compilations, monkeypatch):
    check()
    assert len(compilations) == 2
    assert len(entries(folder)) == 2
    monkeypatch.setattr(kernels.KernelSpec, "plan", None)
    monkeypatch.setattr(kernels.KernelSpec, "signature", None)
    check()
    assert len(compilations) == 2


def test_a_looped_kernel_finds_its_tables_on_disk(folder, compilations, monkeypatch):
    model = zoo.chain(60, seed=4)
    q, v = model.random_state(5)
    first = sl.compile(model, "forward_dynamics")
    expected, many = first(q, v, v), first(np.tile(q, (2, 1)), v, v)
    monkeypatch.setattr(kernels.KernelSpec, "plan", None)
    monkeypatch.setattr(kernels.KernelSpec, "program", None)
    second = sl.compile(model, "forward_dynamics")
    np.testing.assert_array_equal(second(q, v, v), expected)
    np.testing.assert_array_equal(second(np.tile(q, (2, 1)), v, v), many)
    assert second.from_cache
    assert len(compilations) == 2


def test_what_is_known_of_a_kernel_comes_from_disk_too(folder, monkeypatch):
    first = sl.compile(zoo.puma(), "inverse_dynamics")
    monkeypatch.setattr(kernels.KernelSpec, "plan", None)
    second = sl.compile(zoo.puma(), "inverse_dynamics")
    assert second.operations == first.operations
    assert second.inputs == first.inputs
    assert second.shape == first.shape
    assert repr(second) == repr(first)


@pytest.mark.slow
def test_another_process_finds_what_this_one_made(folder):
    check()
    code = (
        "import numpy as np, spanloop as sl\n"
        "from spanloop.compiler.runtime import machine\n"
        "machine.object_code = None\n"
        "k = sl.compile(sl.zoo.pendulum(2), 'forward_dynamics')\n"
        "print(k(np.array([0.3, -0.4]), np.array([0.1, 0.2]), np.array([1.0, -1.0])).tolist())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    np.testing.assert_allclose(eval(done.stdout), EXPECTED, rtol=1e-12)


@pytest.mark.slow
def test_several_processes_at_once_give_one_set_of_entries(folder):
    code = (
        "import numpy as np, spanloop as sl\n"
        "k = sl.compile(sl.zoo.puma(), 'forward_dynamics')\n"
        "z = np.zeros(6)\n"
        "print(k(z, z, z).tolist())\n"
    )
    runs = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    printed = {run.communicate(timeout=120)[0] for run in runs}
    assert [run.returncode for run in runs] == [0] * 4
    assert len(printed) == 1
    assert len(list(folder.iterdir())) == 1


CHANGES = {
    "model": lambda: sl.compile(zoo.pendulum(2, mass=1.1), "forward_dynamics"),
    "last bit of a number": lambda: sl.compile(zoo.pendulum(2, mass=np.nextafter(1.0, 2.0)), "forward_dynamics"),
    "gravity": lambda: sl.compile(zoo.pendulum(2).with_gravity((0, 0, -1.6)), "forward_dynamics"),
    "method": lambda: sl.compile(zoo.pendulum(2), "forward_dynamics", method="composite_body"),
    "dtype": lambda: sl.compile(zoo.pendulum(2), "forward_dynamics", dtype="float32"),
    "parameters": lambda: sl.compile(zoo.pendulum(2), "forward_dynamics", parameters="live"),
    "forces": lambda: sl.compile(zoo.pendulum(2), "forward_dynamics", forces=["rod1"]),
    "other forces": lambda: sl.compile(zoo.pendulum(2), "forward_dynamics", forces=["rod2"]),
    "order of forces": lambda: sl.compile(zoo.pendulum(2), "forward_dynamics", forces=["rod2", "rod1"]),
    "regrouping": lambda: sl.compile(zoo.pendulum(2), "forward_dynamics", regroup=False),
    "driven": lambda: sl.compile(zoo.pendulum(2).drive("hinge1"), "forward_dynamics"),
    "frame": lambda: sl.compile(zoo.pendulum(2), "pose", frame="tip"),
    "other frame": lambda: sl.compile(zoo.pendulum(2), "pose", frame="rod1"),
    "axes": lambda: sl.compile(zoo.pendulum(2), "jacobian", frame="tip", expressed_in="rod1"),
}


def test_whatever_changes_the_kernel_changes_its_name_on_disk(folder, compilations):
    sl.compile(zoo.pendulum(2), "forward_dynamics")
    for k, make in enumerate(CHANGES.values()):
        make()
        assert len(compilations) == k + 2
    assert len(entries(folder)) == len(CHANGES) + 1


@pytest.mark.parametrize("name", ["damping", "armature", "stiffness"])
def test_losses_change_the_name_too(folder, compilations, name):
    model = zoo.pendulum(2)
    sl.compile(model, "bias")
    sl.compile(replace(model, joints=(replace(model.joints[0], **{name: (0.5,)}), model.joints[1])), "bias")
    assert len(compilations) == 2


def test_what_cannot_matter_does_not_change_the_name(folder, compilations):
    model = zoo.pendulum(2)
    sl.compile(model, "bias")
    sl.compile(replace(model, name="other", notes=("a note",)), "bias")
    sl.compile(model, "bias", threads=2)
    assert len(compilations) == 1


def test_another_cpu_would_get_another_entry(folder, compilations, monkeypatch):
    sl.compile(zoo.pendulum(2), "bias")
    name = machine.identity()
    monkeypatch.setattr(machine, "identity", lambda: name + "|another")
    sl.compile(zoo.pendulum(2), "bias")
    assert len(compilations) == 2


def test_changed_sources_would_get_another_entry(folder, compilations, monkeypatch):
    sl.compile(zoo.pendulum(2), "bias")
    monkeypatch.setattr(kernels.spec, "source_hash", lambda: "another")
    sl.compile(zoo.pendulum(2), "bias")
    assert len(compilations) == 2


# ---- not trusted


def flipped(path):
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)


def swapped(path):
    """The other entry, whole and with a good checksum, under this name."""
    other = next(p for p in entries(path.parent) if p != path)
    path.write_bytes(other.read_bytes())


DAMAGE = {
    "a flipped bit": flipped,
    "truncated": lambda p: p.write_bytes(p.read_bytes()[:-10]),
    "truncated to its head": lambda p: p.write_bytes(p.read_bytes()[:20]),
    "empty": lambda p: p.write_bytes(b""),
    "foreign": lambda p: p.write_bytes(b"\x7fELF and nothing we know" * 100),
    "another entry under this name": swapped,
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_entry_is_made_anew(folder, compilations, how):
    check()
    good = [p.read_bytes() for p in entries(folder)]
    assert len(set(good)) == 2
    for path in entries(folder):
        DAMAGE[how](path)
    check()
    assert len(compilations) == (3 if how == "another entry under this name" else 4)
    check()
    assert len(compilations) == (3 if how == "another entry under this name" else 4)  # healed


@needs_owners
@pytest.mark.parametrize("bit", [stat.S_IWGRP, stat.S_IWOTH], ids=["group", "others"])
def test_a_file_that_others_may_write_is_not_trusted(folder, compilations, bit):
    check()
    for path in entries(folder):
        path.chmod(0o600 | bit)
    check()
    assert len(compilations) == 4
    assert not any(p.stat().st_mode & bit for p in entries(folder))  # replaced by private ones


@needs_owners
@pytest.mark.parametrize("bit", [stat.S_IWGRP, stat.S_IWOTH], ids=["group", "others"])
def test_a_folder_that_others_may_write_is_not_used(folder, compilations, bit):
    check()
    folder.chmod(0o700 | bit)
    for path in entries(folder):
        flipped(path)
    with pytest.warns(SpanloopWarning, match="does not belong to this user alone") as caught:
        check()
    assert len(caught) == 1
    assert len(compilations) == 4
    folder.chmod(0o700)


@needs_owners
def test_entries_are_private_and_the_folder_too(folder):
    check()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in entries(folder)} == {0o600}


@needs_owners
def test_what_another_user_owns_is_not_trusted(folder, compilations, monkeypatch):
    check()
    me = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: me + 1)
    with pytest.warns(SpanloopWarning, match="does not belong to this user alone"):
        check()
    assert len(compilations) == 4


def test_a_linked_file_is_not_followed(folder, compilations, tmp_path):
    check()
    for k, path in enumerate(entries(folder)):
        path.rename(tmp_path / f"elsewhere{k}")
        path.symlink_to(tmp_path / f"elsewhere{k}")
    check()
    assert len(compilations) == 4
    assert not any(p.is_symlink() for p in entries(folder))  # replaced


def test_a_linked_folder_is_not_followed(folder, compilations, tmp_path):
    check()
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    before = sorted((tmp_path / "elsewhere").iterdir())
    with pytest.warns(SpanloopWarning):
        check()
    assert len(compilations) == 4
    assert sorted((tmp_path / "elsewhere").iterdir()) == before


def test_a_folder_under_the_name_of_an_entry_is_survived(folder):
    check()
    for path in entries(folder):
        path.unlink()
        path.mkdir()
    with pytest.warns(SpanloopWarning, match="compiled kernels cannot be kept on disk"):
        check()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_a_pipe_under_the_name_of_an_entry_blocks_nothing(folder):
    check()
    for path in entries(folder):
        path.unlink()
        os.mkfifo(path, 0o600)
    code = "import spanloop as sl; sl.compile(sl.zoo.pendulum(2), 'forward_dynamics')"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=20)


# ---- in nobody's way


def refusing(number):
    def refuse(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    return refuse


def fails_once_with(sentence, compilations):
    """Works, with one warning for all kernels of the process."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check()
        sl.compile(zoo.pendulum(3), "bias")
    assert [w.category for w in caught] == [SpanloopWarning]
    assert str(caught[0].message) == (
        f"compiled kernels cannot be kept on disk ({sentence}); every process compiles them anew. "
        "Set SPANLOOP_CACHE to a folder of your own, or to 'off'"
    )
    assert len(compilations) == 3


def test_a_read_only_folder_still_works(folder, compilations, monkeypatch):
    monkeypatch.setattr(tempfile, "mkstemp", refusing(errno.EROFS))
    fails_once_with(f"[Errno {errno.EROFS}] Read-only file system", compilations)


def test_a_full_disk_still_works_and_leaves_no_rubbish(folder, compilations, monkeypatch):
    class Full:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *how):
            self.file.close()

        write = staticmethod(refusing(errno.ENOSPC))

    open_ = os.fdopen
    monkeypatch.setattr(os, "fdopen", lambda h, mode: Full(open_(h, mode)) if mode == "wb" else open_(h, mode))
    fails_once_with(f"[Errno {errno.ENOSPC}] No space left on device", compilations)
    assert not list(folder.iterdir())


def test_a_file_where_the_folder_should_be_still_works(folder, compilations):
    folder.write_text("a file")
    fails_once_with(f"[Errno {errno.EEXIST}] File exists: {str(folder)!r}", compilations)
    assert folder.read_text() == "a file"


def test_a_folder_that_cannot_be_made_still_works(folder, compilations, monkeypatch, tmp_path):
    (tmp_path / "block").write_text("a file")
    monkeypatch.setenv("SPANLOOP_CACHE", str(tmp_path / "block" / "cache"))
    where = str(tmp_path / "block" / "cache")
    fails_once_with(f"[Errno {errno.ENOTDIR}] Not a directory: {where!r}", compilations)


@pytest.mark.parametrize("word", ["off", ""])
def test_the_cache_can_be_turned_off(folder, compilations, monkeypatch, word):
    monkeypatch.setenv("SPANLOOP_CACHE", word)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check()
        check()
    assert len(compilations) == 4
    assert not folder.exists()


def test_where_entries_are_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("SPANLOOP_CACHE", str(tmp_path))
    assert cache.folder() == tmp_path
    monkeypatch.delenv("SPANLOOP_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder() == tmp_path / "spanloop"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    if os.name == "posix":
        assert cache.folder() == tmp_path / ".cache" / "spanloop"


# ---- bounded


def kept(size: int, days: float, name: str) -> str:
    """An entry of this size that was last used some days ago."""
    key = cache.key(name, name)
    cache.write(key, cache.Artifact(bytes(size)))
    then = time.time() - 86400 * days
    os.utime(cache.folder() / key, (then, then))
    return key


def test_the_entries_unused_for_longest_are_removed_beyond_the_bound(folder, monkeypatch):
    monkeypatch.setenv("SPANLOOP_CACHE_MB", "1")
    old, older, oldest = (kept(300_000, days, f"day{days}") for days in (1, 2, 3))
    assert cache.read(oldest) is not None  # which is a use
    newest = kept(300_000, 0, "today")
    assert {f.path.name for f in cache.files()} == {oldest, old, newest}
    assert older not in {f.path.name for f in cache.files()}


def test_an_entry_larger_than_the_bound_is_kept_alone(folder, monkeypatch):
    monkeypatch.setenv("SPANLOOP_CACHE_MB", "0.1")
    kept(50_000, 1, "small")
    large = kept(300_000, 0, "large")
    assert [f.path.name for f in cache.files()] == [large]


def test_the_folder_is_measured_only_now_and_then(folder, monkeypatch):
    kept(1000, 0, "first")
    monkeypatch.setattr(cache, "files", None)
    kept(1000, 0, "second")


def test_what_is_not_a_kernel_stays(folder, monkeypatch):
    folder.mkdir(mode=0o700)
    (folder / "thesis.tex").write_text("x" * 1000)
    monkeypatch.setenv("SPANLOOP_CACHE_MB", "0")
    kept(1000, 0, "first")
    assert (folder / "thesis.tex").exists()
    assert [f.path.name for f in cache.files()] == [cache.key("first", "first")]


def test_parts_that_nobody_finishes_are_removed(folder):
    folder.mkdir(mode=0o700)
    (folder / ".new-abcdefgh").write_bytes(b"left behind")
    (folder / ".new-12345678").write_bytes(b"being written")
    os.utime(folder / ".new-abcdefgh", (1e9, 1e9))
    kept(1000, 0, "first")
    assert [f.path.name for f in cache.files() if not f.is_kernel] == [".new-12345678"]


def test_a_bound_that_is_no_number_is_reported_once(folder, monkeypatch):
    monkeypatch.setenv("SPANLOOP_CACHE_MB", "much")
    with pytest.warns(SpanloopWarning, match="SPANLOOP_CACHE_MB is 'much'; expected a number of megabytes"):
        assert cache.bound() == 512e6
    assert cache.bound() == 512e6
