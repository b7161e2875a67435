"""What takes long is reported where somebody watches, and nowhere else."""

from __future__ import annotations

import sys
import threading
import time
import types

import pytest

import spanloop as sl
from spanloop.compiler.runtime import machine, progress


@pytest.fixture
def watched(monkeypatch):
    """Somebody watches, and has little patience."""
    monkeypatch.setenv("SPANLOOP_PROGRESS", "on")
    monkeypatch.setattr(progress, "PATIENCE", 0.01)


def test_a_long_compilation_is_reported_with_its_time(watched, capsys):
    with machine.reported("compiling X"):
        time.sleep(0.1)
    assert capsys.readouterr().err.split(" ... ")[0] == "compiling X"


def test_a_short_one_is_not(monkeypatch, capsys):
    monkeypatch.setenv("SPANLOOP_PROGRESS", "on")
    with machine.reported("compiling X"):
        pass
    assert capsys.readouterr().err == ""


def test_one_line_at_a_time(watched, capsys):
    def work(name: str) -> None:
        with machine.reported(name), machine.reported("inner"):
            time.sleep(0.1)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert capsys.readouterr().err.count(" ... ") == 1
    with progress.silence():
        work("three")
    assert capsys.readouterr().err == ""
    work("four")
    assert capsys.readouterr().err.startswith("four ... ")


def test_what_fails_is_reported_as_stopped(watched, capsys):
    report = machine.reported("compiling X")
    report.__enter__()
    time.sleep(0.1)
    report.__exit__(KeyboardInterrupt, None, None)
    assert capsys.readouterr().err.startswith("compiling X ... stopped after 0.")


@pytest.mark.parametrize("chosen", ["off", "", "auto"])
def test_a_pipe_stays_silent_and_a_variable_decides(watched, monkeypatch, capsys, chosen):
    monkeypatch.setenv("SPANLOOP_PROGRESS", chosen)
    with machine.reported("compiling X"):
        time.sleep(0.05)
    assert capsys.readouterr().err == ""


def test_a_notebook_is_watched(monkeypatch):
    monkeypatch.delenv("SPANLOOP_PROGRESS", raising=False)
    assert not machine.is_watched()
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    assert machine.is_watched()
    monkeypatch.setattr(sys, "stderr", None)  # as under pythonw
    monkeypatch.delitem(sys.modules, "ipykernel")
    assert not machine.is_watched()


def test_every_compilation_is_reported_once_and_a_cached_kernel_not_at_all(monkeypatch):
    found, original = [], machine.reported
    monkeypatch.setattr(machine, "reported", lambda what: found.append(what) or original(what))
    model = sl.zoo.pendulum(1).with_inertia("rod1", mass=1.2345).rename({}, name="swing")
    kernel = sl.compile(model, "forward_dynamics")
    kernel([[0.1], [0.2]], [[0.0]], [[0.0]])
    assert found == [
        "compiling forward dynamics of 'swing' (1 DoF)",
        "compiling forward dynamics of 'swing' (1 DoF) for batches",
    ]
    sl.simulate(model, [0.1], duration=0.01)
    assert "compiling the simulation of 'swing' (1 DoF)" in found
    before = len(found)
    sl.compile(model, "forward_dynamics")([[0.1], [0.2]], [[0.0]], [[0.0]])
    assert len(found) == before
