"""Levels of data of bodies from finite elements: what check and info say, where runs warn and refuse."""

import warnings

import numpy as np
import pytest

import spanloop as sl

BOOM = sl.flexible.beam(1.0, E=7e10, density=2700.0, section=sl.flexible.circle(0.01), elements=3)
FE = sl.flexible.to_matrices(BOOM)


def part(**options):
    return sl.flexible.from_matrices(FE, interfaces={"root": 0, "tip": 6}, basis="cantilever", modes=2, **options)


def rotor(flexible):
    b = sl.Builder("rotor", gravity=(0, 0, 0)).body("blade", flexible=flexible).body("tip", 0.1, inertia=(1e-4,) * 3)
    return b.revolute("hub", "world", "blade", "z").fixed("weld", "blade.tip", "tip").build()


def spun(flexible, share, duration=0.01, **options):
    model = rotor(flexible)
    rate = share * flexible.frequencies.min()
    return sl.simulate(model, v={"hub": rate}, duration=duration, step=1e-4, **options)


def test_slow_spins_run_in_silence_faster_ones_warn_and_fast_ones_are_refused():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = spun(part(), 0.05)
    assert run.audit()["spin"].value == pytest.approx(0.05, rel=1e-3)
    with pytest.warns(sl.errors.SpanloopWarning, match="spins with 0.2 of its first frequency"):
        run = spun(part(), 0.2)
    assert "stiffness is wrong by about 4.8 %" in str(run.audit())
    with pytest.raises(
        sl.errors.UnsupportedError, match="at the start; its finite elements have no geometric stiffening"
    ):
        spun(part(), 0.4)
    with pytest.warns(sl.errors.SpanloopWarning, match="spins with 0.4"):
        assert len(spun(part(any_spin=True), 0.4)) == 101


def test_a_run_that_comes_to_spin_too_fast_is_refused_with_the_time():
    with pytest.raises(sl.errors.UnsupportedError, match=r"the run is sound before 0\.0\d+ s"):
        spun(part(), 0.25, duration=0.3, tau={"hub": 30.0})


def test_a_body_with_stiffening_of_all_spins_is_not_judged():
    zero = np.zeros((len(FE.dofs),) * 2)
    every = dict.fromkeys(("wxwx", "wywy", "wzwz", "wxwy", "wxwz", "wywz"), zero)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = spun(part(stiffening=every), 0.4)
    assert "spin" not in [f.name for f in run.audit().findings]
    with pytest.raises(sl.errors.UnsupportedError):
        spun(part(stiffening={"wzwz": zero}), 0.4)


def test_the_level_is_in_the_printout_and_in_check(capsys, tmp_path):
    model = rotor(part())
    assert "level of data 1 (full matrices: no geometric stiffening)" in str(model)
    model.save(tmp_path / "rotor.toml")
    from spanloop.cli.main import main

    main(["check", str(tmp_path / "rotor.toml")])
    found = capsys.readouterr().out
    assert "level of data 1" in found
    main(["info", str(tmp_path / "rotor.toml")])
    assert "level of data 1" in capsys.readouterr().out


def test_loads_along_a_body_are_compared_with_those_that_buckle_it():
    flexible = sl.flexible.from_matrices(FE, interfaces={"root": 0, "tip": 6}, modes=1)
    euler = np.pi**2 / 4.0 * 7e10 * np.pi * 0.01**4 / 4.0
    assert flexible.buckling_load("tip") == pytest.approx(euler, rel=1e-3)
    b = (
        sl.Builder("column", gravity=(-9.81, 0, 0))
        .body("post", flexible=flexible)
        .body("top", 20.0, inertia=(0.1,) * 3)
    )
    model = b.fixed("foot", "world", "post").fixed("weld", "post.tip", "top").build()
    robot = sl.Dynamics(model)
    run = sl.simulate(robot, robot.static_deflection(model.neutral()), duration=0.01, step=1e-4)
    audit = {f.name: f for f in run.audit().findings}
    assert audit["loads along"].value == pytest.approx(20.0 * 9.81 / euler, rel=1e-2)
    assert "stiffening= of from_matrices" in audit["loads along"].sentence
