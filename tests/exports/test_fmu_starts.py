"""Starts that are set in a unit of loops: they are kept, the others follow, or they are refused."""

from __future__ import annotations

import numpy as np
import pytest
from fmu_instances import instances, needs_compiler

import spanloop as sl
from spanloop.exports.export import export

pytestmark = [needs_compiler, pytest.mark.slow]


def swinging_linkage() -> sl.Model:
    """A four-bar on a swing: the swing is outside the loop."""
    b = sl.Builder("swinging linkage")
    for name, length in (("swing", 1.0), ("crank", 0.3), ("coupler", 0.8), ("rocker", 0.6)):
        b.body(name, mass=1.0, center=(0.5 * length, 0.0, 0.0), inertia=(0.01, 0.05, 0.05))
    b.revolute("pivot", "world", "swing", axis="z")
    b.revolute("crank pin", "swing", "crank", axis="z")
    b.revolute("coupler pin", "crank", "coupler", axis="z", position=(0.3, 0.0, 0.0))
    b.revolute("rocker pin", "swing", "rocker", axis="z", position=(0.9, 0.0, 0.0))
    b.frame("coupler end", "coupler", position=(0.8, 0.0, 0.0))
    b.frame("rocker end", "rocker", position=(0.6, 0.0, 0.0))
    b.loop("coupler end", "rocker end", "revolute")
    return b.build()


@pytest.fixture(scope="module")
def unit(tmp_path_factory):
    model = swinging_linkage()
    q = sl.Dynamics(model).assemble([0.2, 1.2, -0.8, 1.9])
    return model, q, export(model, tmp_path_factory.mktemp("unit") / "linkage.fmu", q=q)


def settled(path, values):
    """q, v, closure error and messages after the initialization."""
    with instances(path) as (a,):
        a.set_named(values)
        a.initialize()
        return a.all_of("q."), a.all_of("v."), a.get("closure_error")[0], a.said


def refused(path, values):
    with instances(path) as (a,):
        a.set_named(values)
        with pytest.raises(Exception, match="fmi3ExitInitializationMode"):
            a.initialize()
        return a.said


def test_a_velocity_that_is_set_is_kept_and_joints_outside_its_loop_rest(unit):
    model, q, path = unit
    found, v, _, _ = settled(path, {"v.crank pin": 1.0})
    assert np.abs(found - q).max() < 1e-14
    assert v == pytest.approx(sl.Dynamics(model).complete_velocity(q, {"pivot": 0.0, "crank pin": 1.0}), abs=1e-12)
    v = settled(path, {"v.rocker pin": 1.0, "v.pivot": -2.0})[1]
    assert v == pytest.approx(sl.Dynamics(model).complete_velocity(q, {"pivot": -2.0, "rocker pin": 1.0}), abs=1e-12)


def test_a_position_that_is_set_is_kept_and_the_loop_closes_around_it(unit):
    model, q, path = unit
    found, v, left, said = settled(path, {"q.crank pin": q[1] + 0.03, "v.crank pin": 1.0})
    assert found[:2] == pytest.approx([q[0], q[1] + 0.03], abs=1e-12)
    assert left < 1e-13
    assert v[:2] == pytest.approx([0.0, 1.0], abs=1e-12)
    assert found == pytest.approx(sl.Dynamics(model).assemble(found, fixed=["pivot", "crank pin"]), abs=1e-12)
    assert "the start was brought to the closed loops" in said


def test_zeros_that_are_set_are_kept_too(tmp_path):
    model, q = sl.zoo.five_bar(), sl.zoo.five_bar_start()
    path = export(model, tmp_path / "five.fmu", q=q, v={"drive1": 0.5, "drive2": 0.5})
    v = settled(path, {"v.drive1": 1.0, "v.drive2": 0.0})[1]
    expected = sl.Dynamics(model).complete_velocity(q, {"drive1": 1.0, "drive2": 0.0})
    assert v == pytest.approx(expected, abs=1e-12)


def test_starts_that_the_loops_do_not_allow_together_are_refused_with_both_values(unit):
    _, q, path = unit
    said = refused(path, {"v.crank pin": 1.0, "v.rocker pin": 5.0})
    assert "v.crank pin, set to 1, would become 2.4334" in said
    assert "would become" in refused(path, {"q.crank pin": q[1] + 0.01, "q.rocker pin": q[3] - 0.01})


def test_an_importer_may_set_all_starts_as_they_were_exported(unit):
    """The one that differs is kept; warnings name those that are not."""
    model, q, path = unit
    exported = {f"v.{j.name}": 0.0 for j in model.joints} | {
        f"q.{j.name}": x for j, x in zip(model.joints, q, strict=True)
    }
    _, v, _, said = settled(path, exported | {"v.crank pin": 1.0})
    assert v == pytest.approx(sl.Dynamics(model).complete_velocity(q, {"pivot": 0.0, "crank pin": 1.0}), abs=1e-12)
    for name, now in (("rocker pin", v[3]), ("coupler pin", v[2])):
        assert f"v.{name} was set to 0, as it was exported; the closed loops make it {now:.9g}" in said
    assert "v.pivot was set" not in said
