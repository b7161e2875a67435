"""Runs in files: exact round trips, names that others can read, nothing half written."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from motions import batch_of, flying_run, four_bar_run, integrated
from sentences import says

import spanloop as sl
from spanloop.errors import FileError, InputError, UnsupportedError
from spanloop.trajectory import Outcome, Segment, Trajectory
from spanloop.trajectory.files.seal import sealed

FORMATS = (".nc", ".h5", ".npz")


def with_everything():
    """A batch of two axes with forces, memory, ends, residuals, two segments, odd settings and a text beyond ASCII."""
    flat = batch_of(flying_run(), [201, 100, 7, 201, 12, 1])
    n = len(flat)
    rng = np.random.default_rng(8)

    def grid(x):
        return x.reshape(2, 3, *x.shape[1:])

    whole = replace(flat.segments[0].mapped(grid), memory=rng.normal(size=(2, 3, n, 4)))
    ends = flat.ends.mapped(grid)
    return Trajectory(
        flat.model,
        (replace(whole.samples(slice(0, 50)), held=True), whole.samples(slice(50, None))),
        tuple(replace(o, sentence=f"{o.sentence}\nτ → 0, “enough”") for o in flat.outcomes),
        {"method": "rk4", "step": 0.1 + 0.2, "count": 3, "project": True, "nothing": float("nan"), "name": "ü"},
        {"trunk": rng.normal(size=(2, 3, n, 6)), "fl_hip": rng.normal(size=(2, 3, n, 6))},
        replace(ends, times=flat.ends.times.reshape(2, 3), memory=np.zeros((2, 3, 1, 4))),
        rng.uniform(size=(2, 3)),
    )


def assert_same(a, b):
    """Bit for bit, NaN included."""
    assert a.model == b.model
    assert a.outcomes == b.outcomes or str(a.outcomes) == str(b.outcomes)  # NaN times are not equal
    assert str(a.settings) == str(b.settings)
    assert len(a.segments) == len(b.segments)
    pairs = [*zip(a.segments, b.segments, strict=True), *([(a.ends, b.ends)] if a.ends else [])]
    for s, t in pairs:
        assert s.held == t.held
        for name in ("times", "q", "v", "tau", "memory"):
            assert_identical(getattr(s, name), getattr(t, name))
    assert list(a.forces or ()) == list(b.forces or ())
    for name in a.forces or ():
        assert_identical(a.forces[name], b.forces[name])
    assert_identical(a.residual, b.residual)


def assert_identical(a, b):
    if a is None or b is None:
        assert a is b
        return
    assert (a.shape, a.dtype) == (b.shape, b.dtype)
    assert a.tobytes() == b.tobytes()


# ---- round trips


@pytest.mark.parametrize("extension", FORMATS)
def test_a_run_reads_back_bit_for_bit(extension, tmp_path):
    for k, run in enumerate((four_bar_run(), batch_of(four_bar_run(), [301, 7]), with_everything())):
        path = tmp_path / f"run{k}{extension}"
        run.save(path)
        assert_same(run, sl.load_run(path))
        assert_same(run, Trajectory.load(str(path)))


@pytest.mark.parametrize("extension", FORMATS)
def test_single_precision_stays_single(extension, tmp_path):
    run = four_bar_run()
    s = run.segments[0]
    small = replace(run, segments=(Segment(s.times, *(x.astype(np.float32) for x in (s.q, s.v, s.tau))),))
    small.save(tmp_path / f"run{extension}")
    assert sl.load_run(tmp_path / f"run{extension}").q.dtype == np.float32
    assert_same(small, sl.load_run(tmp_path / f"run{extension}"))


def test_every_mechanism_of_the_zoo_reads_back(tmp_path):
    for name in ("puma", "stewart", "four_bar", "quadruped", "andrews", "arms_with_object"):
        model = getattr(sl.zoo, name)()
        n = 3
        q = np.tile(model.neutral(), (n, 1))
        zeros = np.zeros((n, model.nv))
        run = Trajectory(model, Segment(np.arange(n), q, zeros, zeros), Outcome("finished", "", 2.0), {})
        for extension in FORMATS:
            run.save(tmp_path / f"{name}{extension}")
            assert_same(run, sl.load_run(tmp_path / f"{name}{extension}"))


@pytest.mark.parametrize("extension", FORMATS)
def test_a_model_that_cannot_move_reads_back(extension, tmp_path):
    model = sl.Builder("rock").body("stone", 1.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1)).fixed("f", "world", "stone").build()
    none = np.empty((4, 0))
    run = Trajectory(model, Segment(np.arange(4.0), none, none, none), Outcome("finished", "", 3.0), {})
    run.save(tmp_path / f"run{extension}")
    assert_same(run, sl.load_run(tmp_path / f"run{extension}"))


# ---- what others see


@pytest.mark.slow
def test_xarray_opens_a_run_with_names_and_units(tmp_path):
    xarray = pytest.importorskip("xarray")
    run = with_everything()
    run.save(tmp_path / "run.nc")
    with xarray.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as found:
        assert dict(found.sizes) == {
            "run_0": 2, "run_1": 3, "time": 201, "coordinate": 19, "dof": 18, "memory_entry": 4, "body": 2,
            "component": 6,
        }  # fmt: skip
        assert found.q.dims == ("run_0", "run_1", "time", "coordinate")
        assert found.force.dims == ("run_0", "run_1", "time", "body", "component")
        np.testing.assert_array_equal(found.time, run.times)
        assert found.time.attrs["units"] == "s"
        knee = found.q.sel(coordinate="fl_knee", run_0=1, run_1=0)
        np.testing.assert_array_equal(knee, run[1, 0]["fl_knee"].q)
        assert knee.coords["coordinate_unit"] == "rad"
        assert found.tau.sel(dof="root.vx").coords["torque_unit"] == "N"
        np.testing.assert_array_equal(found.force.sel(body="trunk"), run.forces["trunk"])
        assert found.outcome.values.tolist() == [["finished", "event", "event"], ["finished", "event", "event"]]
        assert json.loads(found.attrs["settings"])["method"] == "rk4"
        assert found.model.item().startswith("format = 1")
        np.testing.assert_array_equal(found.segment, [0] * 50 + [1] * 151)


def test_a_single_run_has_no_batch_axis_in_its_file(tmp_path):
    xarray = pytest.importorskip("xarray")
    four_bar_run().save(tmp_path / "run.h5")
    with xarray.open_dataset(tmp_path / "run.h5", engine="h5netcdf") as found:
        assert found.v.dims == ("time", "dof")
        assert found.outcome.item() == "finished"
        np.testing.assert_array_equal(found.v.sel(dof="crank_hinge"), four_bar_run()["crank_hinge"].v)


def test_numpy_alone_reads_the_arrays_of_an_npz(tmp_path):
    run = four_bar_run()
    run.save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz", allow_pickle=False) as found:
        np.testing.assert_array_equal(found["q"], run.q)
        assert json.loads(found["header"].tobytes())["settings"] == dict(run.settings)


def test_a_csv_has_named_columns_and_exact_numbers(tmp_path):
    run = flying_run()[:5]
    run.save(tmp_path / "run.csv")
    lines = (tmp_path / "run.csv").read_text(encoding="utf-8").splitlines()
    assert lines[:4] == [
        f"# spanloop {sl.__version__}",
        "# quadruped: 0.004 s in 5 samples, from 0 s.",
        "# Made with method rk4, step 0.001, closures none.",
        "# The run finished at 0.2 s.",
    ]
    rows = list(csv.reader(line for line in lines if not line.startswith("#")))
    assert len(rows[0]) == len(set(rows[0])) == 1 + 19 + 18 + 18
    assert rows[0][:3] == ["time [s]", "root.q.w [1]", "root.q.x [1]"]
    column = {name: np.array([float(row[k]) for row in rows[1:]]) for k, name in enumerate(rows[0])}
    np.testing.assert_array_equal(column["time [s]"], run.times)
    np.testing.assert_array_equal(column["root.q.pz [m]"], run["root"].q[:, 6])
    np.testing.assert_array_equal(column["root.v.wx [rad/s]"], run["root"].v[:, 0])
    np.testing.assert_array_equal(column["fl_knee.q [rad]"], run["fl_knee"].q)
    np.testing.assert_array_equal(column["hr_knee.tau [N m]"], run["hr_knee"].tau)


@pytest.mark.slow
def test_columns_of_every_kind_of_joint_have_names_of_their_own(tmp_path):
    for kind in ("cylindrical", "universal", "spherical", "planar", "general", "helical", "prismatic"):
        model = sl.zoo.chain(2, kind, seed=5)
        q, v = model.random_state(1)
        integrated(model, q, v, 2e-3, 1e-3).save(tmp_path / "run.csv")
        names = (tmp_path / "run.csv").read_text(encoding="utf-8").splitlines()[4].split(",")
        assert len(set(names)) == 1 + model.nq + 2 * model.nv


def test_a_driven_joints_column_is_an_acceleration(tmp_path):
    run = four_bar_run()[:2]
    replace(run, model=run.model.drive("crank_hinge")).save(tmp_path / "run.csv")
    assert "crank_hinge.tau [rad/s²],coupler_hinge.tau [N m]" in (tmp_path / "run.csv").read_text(encoding="utf-8")


# ---- what goes wrong


def test_extensions_and_batches_that_do_not_fit_get_a_sentence(tmp_path):
    run = four_bar_run()
    with says(InputError, "run.mat: the extension is '.mat'; runs are saved as .nc, .h5, .npz or .csv"):
        run.save(tmp_path / "run.mat")
    with says(InputError, "run.ncd: the extension is '.ncd'; runs are read from .nc, .h5 or .npz: did you mean '.nc'?"):
        sl.load_run(tmp_path / "run.ncd")
    with says(InputError, "path is a int; expected text or a pathlib.Path"):
        run.save(3)
    with says(
        InputError,
        "run.csv: a .csv file holds one run, and this is a batch of shape (2,). Save one of them, run[0].save(...), or "
        "all as .nc or .npz",
    ):
        batch_of(run, [301, 7]).save(tmp_path / "run.csv")
    with says(UnsupportedError, "run.csv: a .csv file holds no model, so that no run can be read from it"):
        sl.load_run(tmp_path / "run.csv")
    assert list(tmp_path.iterdir()) == []


def test_missing_h5py_is_said_with_the_cure(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    sentence = (
        "run.nc: .nc and .h5 files need h5py, which is not installed: pip install h5py. A .npz file needs nothing more"
    )
    with says(UnsupportedError, sentence):
        four_bar_run().save(tmp_path / "run.nc")
    (tmp_path / "run.nc").write_bytes(sealed(b"x"))
    with says(UnsupportedError, sentence):
        sl.load_run(tmp_path / "run.nc")


@pytest.mark.parametrize("extension", FORMATS)
def test_files_that_are_no_runs_get_a_sentence(extension, tmp_path):
    path = tmp_path / f"run{extension}"
    with says(FileError, f"run{extension}: there is no such file"):
        sl.load_run(path)
    path.mkdir()
    with says(FileError, f"run{extension}: is not a file"):
        sl.load_run(path)
    path.rmdir()
    for content in (b"", b"hello", b"\x89HDF\r\n\x1a\n", b"PK\x03\x04"):
        path.write_bytes(content)
        with says(FileError, f"run{extension}: is not a run that run.save has written, or not all of one: the seal"):
            sl.load_run(path)
        path.write_bytes(sealed(content))
        with pytest.raises(FileError, match=rf"run\{extension}: is damaged \(.+\); expected a run that run.save has"):
            sl.load_run(path)


@pytest.mark.parametrize("extension", FORMATS)
def test_a_file_that_is_cut_off_or_overwritten_gets_a_sentence(extension, tmp_path):
    path = tmp_path / f"run{extension}"
    four_bar_run().save(path)
    whole = path.read_bytes()
    for part in (0.999, 0.9, 0.5, 0.1, 0.01):
        path.write_bytes(whole[: int(part * len(whole))])
        with pytest.raises(FileError):
            sl.load_run(path)


@pytest.mark.parametrize("extension", FORMATS)
def test_every_flipped_bit_is_found(extension, tmp_path):
    path = tmp_path / f"run{extension}"
    four_bar_run()[:20].save(path)
    whole, rng = path.read_bytes(), np.random.default_rng(10)
    for _ in range(300):
        broken = bytearray(whole)
        broken[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
        path.write_bytes(broken)
        with pytest.raises(FileError, match=r"is damaged: its bytes have changed|the seal .* is missing"):
            sl.load_run(path)


# ---- sizes are checked before they are allocated


def archive(path, arrays, compressed=False):
    """A sealed .npz file of these arrays; those that are bytes are stored as they are."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED) as file:
        for name, x in arrays.items():
            data = io.BytesIO()
            if not isinstance(x, bytes):
                np.save(data, x)
            file.writestr(f"{name}.npy", x if isinstance(x, bytes) else data.getvalue())
    path.write_bytes(sealed(out.getvalue()))


def parts_of(tmp_path):
    four_bar_run().save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz", allow_pickle=False) as found:
        return dict(found)


def peak(call):
    """The most memory [bytes] that Python held during a call that raises FileError, and the error."""
    tracemalloc.start()
    try:
        with pytest.raises(FileError) as error:
            call()
        return tracemalloc.get_traced_memory()[1], str(error.value)
    finally:
        tracemalloc.stop()


def test_an_archive_that_unpacks_to_much_more_is_refused_before_it_is_read(tmp_path):
    bomb = parts_of(tmp_path) | {"v": np.zeros((10_000_000,))}
    archive(tmp_path / "run.npz", bomb, compressed=True)
    assert (tmp_path / "run.npz").stat().st_size < 1_000_000
    memory, sentence = peak(lambda: sl.load_run(tmp_path / "run.npz"))
    assert "run.npz: is damaged (it holds compressed arrays; expected plain ones)" in sentence
    assert memory < 2_000_000


def test_a_header_that_claims_eight_petabytes_is_refused(tmp_path):
    text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000, 1), }".ljust(117) + b"\n"
    lie = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    archive(tmp_path / "run.npz", parts_of(tmp_path) | {"q": lie})
    memory, sentence = peak(lambda: sl.load_run(tmp_path / "run.npz"))
    assert "is damaged (an array claims 8000000000000000 bytes of float64; it has 0)" in sentence
    assert memory < 2_000_000


@pytest.mark.parametrize("layout", [{"chunks": (1000,)}, {"chunks": (1000,), "compression": "gzip"}, {}])
def test_an_hdf5_file_that_claims_much_more_than_it_has_is_refused(layout, tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "run.nc"
    four_bar_run().save(path)
    with h5py.File(path, "a") as f:
        for name in list(f):
            if name == "q":
                del f[name]
        f.create_dataset("q", shape=(10**13,), dtype=float, **layout)
    path.write_bytes(sealed(path.read_bytes()))
    memory, sentence = peak(lambda: sl.load_run(path))
    expected = "is not stored as one piece" if layout else "claims 80000000000000 bytes of float64"
    assert f"run.nc: is damaged ('q' {expected}" in sentence
    assert memory < 2_000_000


def test_an_hdf5_file_does_not_lead_to_other_files(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "run.nc"
    four_bar_run().save(path)
    with h5py.File(tmp_path / "other.h5", "w") as f:
        f["q"] = np.zeros((301, 3))
    with h5py.File(path, "a") as f:
        del f["q"]
        f["q"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "q")
    path.write_bytes(sealed(path.read_bytes()))
    with says(FileError, "run.nc: is damaged ('q' is not in the file)"):
        sl.load_run(path)


def test_foreign_files_of_the_right_kind_get_a_sentence(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "run.nc", "w") as f:
        f["x"] = 1.0
    np.savez(tmp_path / "run.npz", x=np.zeros(3))
    for name in ("run.nc", "run.npz"):
        with says(FileError, f"{name}: is not a run that run.save has written"):
            sl.load_run(tmp_path / name)


def test_a_file_that_another_program_wrote_to_is_refused(tmp_path):
    h5py = pytest.importorskip("h5py")
    four_bar_run().save(tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc", "a") as f:
        f["q"][3] = 0.0
    with says(FileError, "It was cut off, another program wrote it, or wrote to it since. Take another copy of it"):
        sl.load_run(tmp_path / "run.nc")


def test_a_later_format_is_refused_with_its_number(tmp_path):
    parts = parts_of(tmp_path)
    header = json.loads(parts["header"].tobytes()) | {"format": 7}
    archive(tmp_path / "run.npz", parts | {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)})
    sentence = "run.npz: the run has format 7; this spanloop reads 2 to 4. It was written by spanloop"
    with says(FileError, sentence):
        sl.load_run(tmp_path / "run.npz")


def test_parts_that_do_not_fit_together_are_damage(tmp_path):
    arrays = parts_of(tmp_path)
    archive(tmp_path / "run.npz", arrays | {"v": arrays["v"][:, :2]})
    with says(FileError, "run.npz: is damaged (v has shape (301, 2); expected (301, 3)); expected a run that run.save"):
        sl.load_run(tmp_path / "run.npz")
    del arrays["tau"]
    archive(tmp_path / "run.npz", arrays)
    with says(FileError, "run.npz: is damaged ('tau'); expected a run that run.save has written"):
        sl.load_run(tmp_path / "run.npz")


@pytest.mark.parametrize("extension", [*FORMATS, ".csv"])
def test_a_full_disk_leaves_the_old_file_as_it_was(extension, tmp_path, monkeypatch):
    path = tmp_path / f"run{extension}"
    four_bar_run()[:10].save(path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with says(FileError, f"run{extension}: cannot be written (No space left on device); nothing was changed"):
        four_bar_run().save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_folder_that_is_not_there_or_not_ours_gets_a_sentence(tmp_path):
    with says(FileError, "run.nc: cannot be written (No such file or directory); nothing was changed"):
        four_bar_run().save(tmp_path / "no" / "run.nc")
    (tmp_path / "run.npz").mkdir()
    with says(FileError, "run.npz: cannot be written (Is a directory); nothing was changed"):
        four_bar_run().save(tmp_path / "run.npz")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no way to kill at once")
def test_a_program_killed_while_saving_leaves_a_whole_file(tmp_path):
    """Saves over and over in another process, which is killed at some moment: the file is one of those it wrote."""
    path = tmp_path / "run.npz"
    program = (
        "import numpy as np, spanloop as sl\n"
        "from spanloop.trajectory import Outcome, Segment, Trajectory\n"
        "m = sl.zoo.pendulum()\n"
        "k = 0\n"
        "while True:\n"
        "    x = np.full((100000, 1), float(k)); k += 1\n"
        "    s = Segment(np.arange(100000), x, x, x)\n"
        f"    Trajectory(m, s, Outcome('finished', '', 0.0), {{}}).save({str(path)!r})\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program])
    try:
        deadline = time.monotonic() + 60.0
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.123)
    finally:
        child.kill()
        child.wait()
    q = sl.load_run(path).q
    assert (q == q[0]).all()
