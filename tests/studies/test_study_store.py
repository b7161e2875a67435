"""Stores: chunks as they finish, studies that go on, refusals of other studies and of other processes."""

from __future__ import annotations

import _thread
import errno
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from study_cases import KEEP, arm, four_bar, same

import spanloop as sl
from spanloop.errors import FileError, InputError
from spanloop.studies.chunk import run_chunk
from spanloop.studies.storage import store as stores

st = sl.studies


class Stopped(Exception):
    pass


def stopped_after(study, count, monkeypatch):
    """Run a study that stops, as if killed, before chunk `count` counts."""
    write, seen = stores.Store.write, []

    def counted(self, k, arrays):
        if len(seen) == count:
            first, end = self.span(k)
            self._array("fast")[first:end] = -1.0  # a part of the chunk is there
            raise Stopped
        seen.append(k)
        write(self, k, arrays)

    with monkeypatch.context() as patched:
        patched.setattr(stores.Store, "write", counted)
        with pytest.raises(Stopped):
            study.run()
    return seen


@pytest.mark.slow
def test_a_study_that_stopped_goes_on_and_computes_no_chunk_twice(tmp_path, monkeypatch):
    seen = stopped_after(four_bar(store=tmp_path / "s", chunk=4), 3, monkeypatch)
    again = four_bar(store=tmp_path / "s", chunk=4)
    assert again.status().startswith("12 of 37 runs")
    assert again.results().sizes["run"] == 12
    write, later = stores.Store.write, []

    def counted(self, k, arrays):
        later.append(k)
        write(self, k, arrays)

    monkeypatch.setattr(stores.Store, "write", counted)
    again.run()
    assert sorted(seen + later) == list(range(10))
    same(again.results(), four_bar().run().results())


def test_a_store_stays_where_it_was_when_the_process_goes_elsewhere(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    study = four_bar(store="s").run()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert study.status().startswith("37 of 37")
    assert study.run().results().sizes["run"] == 37
    assert not (tmp_path / "elsewhere" / "s").exists()


def test_results_before_the_first_run_make_no_store_which_another_process_may_be_making(tmp_path):
    """Both wrote the same folder: one lost its arrays, or found those of the other there."""
    study = four_bar(store=tmp_path / "s")
    assert study.results().sizes["run"] == 0
    assert study.failures() == {}
    assert list(tmp_path.iterdir()) == []
    assert study.run().results().sizes["run"] == 37


def test_a_finished_study_is_read_without_computing(tmp_path, monkeypatch):
    four_bar(store=tmp_path / "s").run()
    monkeypatch.setattr("spanloop.studies.execution.run_chunk", None)
    same(four_bar(store=tmp_path / "s").run().results(), four_bar(store=tmp_path / "s").results())


@pytest.mark.slow
def test_a_chunk_size_given_later_does_not_change_the_store(tmp_path, monkeypatch):
    stopped_after(four_bar(store=tmp_path / "s", chunk=4), 3, monkeypatch)
    same(four_bar(store=tmp_path / "s", chunk=7).run().results(), four_bar().run().results())


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"seed": 9}, "seed was 3, and is 9"),
        ({"runs": 38}, "runs was 37, and is 38"),
        ({"duration": 0.06}, "duration was 0.05, and is 0.06"),
        ({"vary": {"coupler.mass": st.Uniform(1.0, 2.0)}}, "vary.coupler.mass was Normal"),
        ({"keep": {"fast": st.Smallest("v.crank_hinge")}}, "keep.fast was Largest"),
        ({"forces": {"crank": [0, 0, 0, 1, 0, 0]}}, "what acts was"),
        ({"v": {"crank_hinge": 1.0}, "limits": "ignore"}, "limits was nothing, and is 'ignore'"),
    ],
)
def test_a_store_of_another_study_is_refused_with_what_differs(tmp_path, changed, words):
    four_bar(store=tmp_path / "s").run()
    with pytest.raises(InputError, match="is the store of another study") as refused:
        four_bar(store=tmp_path / "s", **changed).run()
    assert words in str(refused.value)


@pytest.mark.parametrize("design", ["random", "latin", "sobol", "saltelli"])
def test_the_same_variables_in_another_order_have_other_draws_and_are_another_study(tmp_path, design):
    vary = {"v.crank_hinge": st.Uniform(0.5, 2.0), "coupler.mass": st.Uniform(0.9, 1.1)}
    given = {"design": design, "runs": 8, "store": tmp_path / "s"}
    study = four_bar(vary=vary, **given).run()
    with pytest.raises(InputError, match=r"order of vary\[0\] was v.crank_hinge, and is coupler.mass"):
        four_bar(vary=dict(reversed(vary.items())), **given).run()
    for name, draws in four_bar(vary=vary, **given).draws().items():
        assert np.array_equal(study.results()[name].values, draws)


def test_a_grid_in_another_order_of_its_variables_is_another_study(tmp_path):
    vary = {"v.crank_hinge": st.Levels(0.5, 2.0, 3), "coupler.mass": st.Levels(0.9, 1.1, 2)}
    given = {"design": "grid", "runs": None, "store": tmp_path / "s"}
    four_bar(vary=vary, **given).run()
    with pytest.raises(InputError, match=r"order of vary\[0\] was v.crank_hinge, and is coupler.mass"):
        four_bar(vary=dict(reversed(vary.items())), **given).run()


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"damping": 20.0, "stiffness": 20.0}, r"inputs\[0\] was stiffness = 20.0, and is damping = 20.0"),
        ({"stiffness": 20.0, "damping": 1.0}, r"inputs\[1\] was damping = 20.0, and is damping = 1.0"),
    ],
)
def test_inputs_of_other_names_or_in_another_order_are_another_study(tmp_path, inputs, words):
    arm(store=tmp_path / "s", inputs={"stiffness": 20.0, "damping": 20.0}).run()
    with pytest.raises(InputError, match=words):
        arm(store=tmp_path / "s", inputs=inputs).run()


@pytest.mark.slow
def test_what_is_kept_in_another_order_is_the_same_study(tmp_path):
    found = four_bar(store=tmp_path / "s").run().results()
    turned = dict(reversed(KEEP.items()))
    same(four_bar(store=tmp_path / "s", keep=turned).run().results(), found)
    same(four_bar(keep=turned).run().results(), found)


def test_a_folder_that_is_no_store_is_refused(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "notes.txt").write_text("mine")
    with pytest.raises(FileError, match="is no store of a study"):
        four_bar(store=tmp_path / "s").run()
    assert (tmp_path / "s" / "notes.txt").read_text() == "mine"


def test_the_rest_of_a_store_that_was_removed_is_refused_with_what_to_do(tmp_path):
    four_bar(store=tmp_path / "s").run()
    (tmp_path / "s" / "zarr.json").unlink()
    with pytest.raises(FileError, match=r"the folder has files, but no zarr.json .* Remove it, or give another store"):
        four_bar(store=tmp_path / "s").run()


def test_an_interrupt_while_the_store_is_opened_comes_after_it(tmp_path, monkeypatch):
    """Cut in the middle, imports of Zarr may swallow it, and its coroutines are left without being awaited."""
    opened, seen = stores.opened, []

    def slow(*given):
        assert threading.current_thread() is not threading.main_thread()
        _thread.interrupt_main()
        time.sleep(0.2)
        found = opened(*given)
        seen.append(found)
        return found

    monkeypatch.setattr(stores, "opened", slow)
    with pytest.raises(KeyboardInterrupt):
        four_bar(store=tmp_path / "s").run()
    assert len(seen) == 1


@pytest.mark.slow
def test_a_store_in_use_by_another_process_is_refused(tmp_path):
    code = f"""
        from pathlib import Path
        from spanloop.studies.storage.store import locked
        with locked(Path({str(tmp_path / "s")!r})):
            print("locked", flush=True)
            input()
    """
    other = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(FileError, match=f"in use by process {other.pid} "):
            four_bar(store=tmp_path / "s").run()
    finally:
        other.kill()
        other.wait()
    assert four_bar(store=tmp_path / "s").run().status().startswith("37 of 37")  # the lock went with the process


@pytest.mark.slow
def test_a_full_disk_stops_the_study_and_loses_nothing(tmp_path, monkeypatch):
    study, written = four_bar(store=tmp_path / "s", chunk=4), []
    setitem = type(study._store().group["fast"]).__setitem__

    def full(self, place, values):
        if len(written) == 30:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(place)
        setitem(self, place, values)

    with monkeypatch.context() as patched:
        patched.setattr(type(study._store().group["fast"]), "__setitem__", full)
        with pytest.raises(FileError, match=r"the disk is full\. 2 of 10 chunks are stored, and none of them is lost"):
            study.run()
    same(four_bar(store=tmp_path / "s", chunk=4).run().results(), four_bar().run().results())


def flip(file):
    """Change one bit of a file."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def test_damaged_bytes_are_found_with_the_file_to_remove(tmp_path):
    path = tmp_path / "s"
    four_bar(store=path, chunk=10).run()
    flip(path / "fast" / "c" / "3")
    with pytest.raises(FileError, match=r"variable 'fast' is damaged in fast/c/3 .* run\(\) computes its chunk again"):
        four_bar(store=path).results()
    (path / "fast" / "c" / "3").unlink()
    same(four_bar(store=path).run().results(), four_bar().run().results())


LOST = {  # runs of chunks that are whole when these files are gone
    "fast/c/1": 27,
    "outcome/c/0": 27,
    "reason/c/3": 30,
    "path/c/2/0": 27,
    "coupler.mass/c/0": 27,
    "finished/c/1": 27,
    "time/c/0": 37,
    "fast/zarr.json": 37,
    "outcome": 0,
    "fast": 0,
    "time": 37,
    "finished": 0,
}


@pytest.mark.slow
def test_a_file_that_is_missing_is_found_and_its_chunk_computed_again(tmp_path):
    path, expected = tmp_path / "s", four_bar().run().results()
    four_bar(store=path, chunk=10).run()
    for name, left in LOST.items():
        shutil.rmtree(path / name) if (path / name).is_dir() else (path / name).unlink()
        study = four_bar(store=path)
        assert study.status().startswith(f"{left} of 37 runs"), name
        found = study.results()
        same(found, expected.isel(run=found["run"].values))
        same(study.run().results(), expected)


def test_lost_outcomes_of_failed_runs_do_not_read_as_finished(tmp_path):
    draws = [*[1e7] * 3, *[0.4] * 9]  # rad/s: the first three are lost in the first steps

    def study():
        vary = {"table": {"v.hinge1": draws}, "duration": 0.05, "keep": {"end": "q.hinge1"}, "chunk": 4}
        return sl.Study(sl.zoo.pendulum(2), store=tmp_path / "s", **vary)

    failures = study().run().failures()
    assert list(failures) == [0, 1, 2]
    for file in (tmp_path / "s" / "outcome" / "c").iterdir():
        file.unlink()
    assert study().summary().runs == 0
    assert study().run().failures() == failures


@pytest.mark.slow
@pytest.mark.parametrize("damage", [flip, lambda file: file.write_bytes(b"")])
def test_a_damaged_mark_of_a_chunk_counts_as_none(tmp_path, damage):
    path = tmp_path / "s"
    four_bar(store=path, chunk=10).run()
    damage(path / "finished" / "c" / "0")
    assert four_bar(store=path).status().startswith("27 of 37 runs")
    same(four_bar(store=path).run().results(), four_bar().run().results())


def test_a_damaged_description_of_an_array_is_refused_and_made_again_when_it_is_removed(tmp_path):
    path = tmp_path / "s"
    four_bar(store=path).run()
    (path / "fast" / "zarr.json").write_text("{")
    with pytest.raises(FileError, match="an array of the store is damaged"):
        four_bar(store=path).status()
    (path / "fast" / "zarr.json").unlink()
    same(four_bar(store=path).results(), four_bar().run().results())


def test_a_finished_store_needs_no_lock(tmp_path, monkeypatch):
    """On a file system that is read-only no file beside the store can be made."""
    four_bar(store=tmp_path / "s").run()

    def refused(path):
        raise FileError(f"{path}: Read-only file system")

    monkeypatch.setattr(stores, "locked", refused)
    assert four_bar(store=tmp_path / "s").run().status().startswith("37 of 37")


@pytest.mark.slow
def test_a_store_that_is_removed_while_it_is_written_is_an_error_with_what_to_do(tmp_path, monkeypatch):
    path = tmp_path / "s"
    study, calls = four_bar(store=path, chunk=4), []

    def removing(*given):
        calls.append(given)
        if len(calls) == 3:
            path.rename(tmp_path / "elsewhere")
        return run_chunk(*given)

    with monkeypatch.context() as patched:
        patched.setattr("spanloop.studies.execution.run_chunk", removing)
        with pytest.raises(FileError, match=r"the store was removed while it was in use.* run\(\) makes a new one"):
            study.run(threads=1)
    shutil.rmtree(path, ignore_errors=True)  # what was written of a chunk meanwhile
    same(study.run().results(), four_bar().run().results())


@pytest.mark.parametrize(
    ("store", "words"),
    [
        ("s3://bucket/x.zarr", "an address; expected the path of a folder of this machine"),
        (Path("gs://bucket/x.zarr"), "an address; expected the path of a folder"),
        ("", "store is ''; expected the path of a folder"),
        (3, "store is 3; expected the path of a folder"),
    ],
)
def test_a_store_that_is_no_folder_is_refused(store, words):
    with pytest.raises(InputError, match=words):
        four_bar(store=store)


def test_other_tools_read_the_store(tmp_path):
    import xarray

    found = four_bar(store=tmp_path / "s").run().results()
    plain = xarray.open_zarr(tmp_path / "s", consolidated=False, chunks=None)
    assert (plain["fast"].values == found["fast"].values).all()
    assert plain["fast"].attrs["units"] == "rad/s"
    assert plain["path"].dims == ("run", "time")
    assert found["time"].values == pytest.approx(np.arange(6) * 0.01)


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_finished(tmp_path):
    code = f"""
        import sys
        sys.path[:0] = {sys.path!r}
        from study_cases import four_bar
        study = four_bar(store={str(tmp_path / "s")!r}, runs=4000, chunk=20, duration=2.0)
        print("begins", flush=True)
        study.run(threads=1)
    """
    other = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "begins\n"
    mark, late = tmp_path / "s" / "finished" / "c" / "0", time.monotonic() + 60
    while not mark.exists():
        assert time.monotonic() < late
        time.sleep(0.02)
    other.send_signal(signal.SIGINT)
    other.wait(60)
    assert other.returncode != 0
    study = four_bar(store=tmp_path / "s", runs=4000, chunk=20, duration=2.0)
    kept = study.results()
    assert 0 < kept.sizes["run"] < 4000
    first = four_bar(runs=4000, chunk=20, duration=2.0)
    k = int(kept["run"].values[-1])
    assert first.rerun(k).q[-1, 0] == kept["path"].values[-1, -1]


@pytest.mark.slow
def test_an_interrupt_while_a_chunk_is_written_loses_no_chunk_that_was_computed(tmp_path, monkeypatch):
    study, write, computed, seen = four_bar(store=tmp_path / "s", chunk=4), stores.Store.write, [], []

    def interrupted(self, k, arrays):
        seen.append(k)
        if len(seen) == 2:
            first, end = self.span(k)
            self._array("fast")[first:end] = -1.0
            raise KeyboardInterrupt
        write(self, k, arrays)

    def counted(*given):
        found = run_chunk(*given)
        computed.append(given)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(stores.Store, "write", interrupted)
        patched.setattr("spanloop.studies.execution.run_chunk", counted)
        with pytest.raises(KeyboardInterrupt) as raised:
            study.run(threads=1)
    assert len(computed) == int(study._store().finished().sum()) < 10
    assert "runs are finished" in raised.value.__notes__[0]
    same(four_bar(store=tmp_path / "s", chunk=4).run().results(), four_bar().run().results())


@pytest.mark.slow
def test_an_error_of_one_chunk_loses_no_other_that_was_computed(tmp_path, monkeypatch):
    study, computed, calls = four_bar(store=tmp_path / "s", chunk=4), [], []

    def failing(*given):
        calls.append(given)
        if len(calls) == 3:
            raise ZeroDivisionError("of a chunk")
        found = run_chunk(*given)
        computed.append(given)
        return found

    with monkeypatch.context() as patched:
        patched.setattr("spanloop.studies.execution.run_chunk", failing)
        with pytest.raises(ZeroDivisionError, match="of a chunk"):
            study.run(threads=2)
    assert len(computed) == int(study._store().finished().sum()) < 10
    same(four_bar(store=tmp_path / "s", chunk=4).run().results(), four_bar().run().results())


@pytest.mark.slow
def test_a_definition_with_functions_is_the_same_in_another_process():
    code = f"""
        import sys
        sys.path[:0] = {sys.path!r}
        import json
        import spanloop as sl
        from study_cases import arm
        model = sl.zoo.pendulum(2)
        law = sl.control.pd(model, kp=10.0, kd=1.0, target=[0.1, 0.2])
        print(json.dumps([arm()._prepared.definition, arm(controller=law, inputs=None, vary={{
            "q.hinge1": sl.studies.Uniform(0.1, 1.0)}})._prepared.definition]))
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    found = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert found[0] == found[1]
    assert "law " in found[0]
    assert "JointLaw " in found[0]
