"""Runs with events in files: tables, segments and their models read back bit for bit."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import numpy as np
import pytest
from event_motions import bouncing, coupled_carts, meeting_bodies
from sentences import says

import spanloop as sl
from spanloop.errors import InputError
from spanloop.trajectory import EventTable, Outcome, Segment, Trajectory
from spanloop.trajectory.files.serialize import pack


def assert_same_tables(one: EventTable, other: EventTable):
    for f in fields(EventTable):
        a, b = getattr(one, f.name), getattr(other, f.name)
        if isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b, err_msg=f.name)
            assert a.shape == b.shape, f.name
        elif isinstance(a, dict):
            assert a.keys() == b.keys()
            for name in a:
                np.testing.assert_array_equal(a[name], b[name])
        else:
            assert a == b, f.name


def two_models():
    """A run that goes on with another model: a pendulum, then two carts."""
    carts = coupled_carts()
    times = np.linspace(-1.0, 0.0, 11)
    swing = Segment(times, np.zeros((11, 1)), np.zeros((11, 1)), np.zeros((11, 1)), model=sl.zoo.pendulum())
    first = replace(carts.segments[0], closed=())
    outcome = Outcome("finished", "The run finished.", 1.0)
    return Trajectory(carts.model, (swing, first), (outcome,), {"step": 0.01})


@pytest.mark.parametrize("extension", ["npz", "nc"])
@pytest.mark.parametrize("make", [coupled_carts, bouncing, meeting_bodies, two_models])
def test_runs_with_events_read_back_bit_for_bit(tmp_path, make, extension):
    run = make()
    run.save(tmp_path / f"run.{extension}")
    again = sl.load_run(tmp_path / f"run.{extension}")
    assert_same_tables(again.events, run.events)
    assert len(again.segments) == len(run.segments)
    for one, other in zip(again.segments, run.segments, strict=True):
        assert (one.closed, one.absent, one.model) == (other.closed, other.absent, other.model)
        for name in ("times", "q", "v", "tau"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_runs_without_events_keep_the_format_that_older_versions_read():
    header, arrays = pack(bouncing(batch=False).pieces[0])
    assert header["format"] == 2
    assert all(len(s) == 2 for s in header["segments"])
    assert not any(name.startswith("event_") for name in arrays)
    assert pack(coupled_carts())[0]["format"] == 3
    json.dumps(pack(coupled_carts())[0])


@pytest.mark.slow
def test_xarray_finds_the_events(tmp_path):
    xarray = pytest.importorskip("xarray")
    coupled_carts().save(tmp_path / "run.nc")
    with xarray.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as data:
        assert data["event_kind"].values.tolist() == ["attach", "release"]
        assert data["event_on"].dims == ("event", "switch")


def test_a_csv_file_has_the_events_among_its_comments(tmp_path):
    coupled_carts().save(tmp_path / "run.csv")
    text = (tmp_path / "run.csv").read_text()
    assert "# 0.5       attach   hook" in text
    assert text.count("\n0.5,") == 2  # before and after
    with says(InputError, "models with different joints"):
        two_models().save(tmp_path / "other.csv")


def test_segments_with_other_joints_are_reached_by_name_or_segment():
    run = two_models()
    with says(InputError, 'Use run.segments[k].q, or run["joint"].q'):
        _ = run.q
    assert run.segments[0].q.shape == (11, 1)
    hinge = run.segments[0].model.joints[0].name
    assert np.isnan(run[hinge].q[11:]).all()
    assert np.isfinite(run[hinge].q[:11]).all()
    assert np.isfinite(run["left_rail"].v[11:]).all()
    assert np.isnan(run["left_rail"].a[:11]).all()
    assert run.energy.shape == (len(run), 2)
    assert len(run.times) == 11 + 51
    assert np.isnan(run["right"].position[:11]).all()
    assert run.at([-0.55, 0.1]).segments[1].q.shape == (1, 2)
    assert run.audit()["energy"].verdict == "well"
    assert "left_rail" in str(run)
