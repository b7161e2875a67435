"""Levels of data of bodies from finite elements: what check and info say, where runs warn and refuse."""

import warnings

import numpy as np
import pytest

import spanloop as sl
from spanloop.model.examine import examine

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


@pytest.mark.slow
def test_slow_spins_run_in_silence_faster_ones_warn_and_fast_ones_are_refused():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = spun(part(), 0.05)
    assert run.audit()["spin"].value == pytest.approx(0.05, rel=1e-3)
    with pytest.warns(sl.errors.SpanloopWarning, match="spins with 0.2 of its first frequency"):
        run = spun(part(), 0.2)
    assert "stiffness is wrong by up to about 4.8 %" in str(run.audit())
    with pytest.raises(
        sl.errors.UnsupportedError, match="at the start; its finite elements have no geometric stiffening"
    ):
        spun(part(), 0.4)
    with pytest.warns(sl.errors.SpanloopWarning, match="spins with 0.4"):
        assert len(spun(part(any_spin=True), 0.4)) == 101


def test_the_spins_that_stiffening_lacks_are_named_and_any_spin_only_where_it_helps():
    zero = np.zeros((len(FE.dofs),) * 2)
    squares = part(stiffening=dict.fromkeys(("wxwx", "wywy", "wzwz"), zero))
    with pytest.raises(
        sl.errors.UnsupportedError, match=r"lack wxwy, wxwz, wywz of .* Give wxwy, .*, or any_spin=True"
    ):
        spun(squares, 0.4, duration=1e-3)
    (level,) = [f for f in examine(rotor(squares)) if f.topic == "level_spin"]
    assert level.values["missing"] == " with wxwy, wxwz, wywz"
    for flexible, share in ((part(), 0.2), (part(any_spin=True), 0.4)):
        with pytest.warns(sl.errors.SpanloopWarning, match=r"Give sl.flexible.from_matrices stiffening=$"):
            spun(flexible, share, duration=1e-3)


def softened(model, factor):
    own = model.parameters()
    names = [x for x in own.names if x.startswith("blade.modes.stiffness")]
    return own.changed({x: factor * own.values[own.index(x)] for x in names})


def test_spins_are_judged_with_live_parameters():
    flexible = part()
    model, slowest = rotor(flexible), flexible.frequencies.min()
    slow, fast = {"hub": 0.05 * slowest}, {"hub": 0.5 * slowest}
    short = {"duration": 1e-4, "step": 1e-5}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sl.simulate(model, v=fast, parameters=softened(model, 1e3), **short)
    with pytest.raises(sl.errors.UnsupportedError, match=r"spins with 0\.5 of its first frequency at the start"):
        sl.simulate(model, v=slow, parameters=softened(model, 0.01), **short)
    rows = np.array([softened(model, 1.0).values, softened(model, 0.01).values])
    rates = np.zeros((2, model.nv))
    rates[:, model.v_slice("hub")] = slow["hub"]
    with pytest.raises(sl.errors.UnsupportedError, match=r"spins with 0\.5 of its first frequency"):
        sl.simulate(model, v=rates, parameters=rows, **short)
    with pytest.raises(sl.errors.UnsupportedError, match=r"gradient: .* spins with 0\.5 of its first frequency"):
        sl.gradient(model, lambda q, v: q[0], v=rates[0], parameters=rows[1], wrt="v", **short)


def test_the_spin_of_a_body_without_stiffness_is_beyond_all_bounds_in_a_sentence():
    model = rotor(part())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loose = softened(model, 0.0)
        for given, options in ((model, {"parameters": loose}), (model.with_parameters(loose), {})):
            with pytest.raises(sl.errors.UnsupportedError, match="spins with inf of its first frequency at the start"):
                sl.simulate(given, v={"hub": 1.0}, duration=1e-4, step=1e-5, **options)
        with pytest.raises(
            sl.errors.UnsupportedError, match=r"inf of its first frequency at 0\.\d+ s.* about 1e\+03 %"
        ):
            sl.simulate(model.with_parameters(loose), duration=1e-3, step=1e-4, tau={"hub": 1.0})


def test_a_run_that_comes_to_spin_too_fast_is_refused_with_the_time():
    with pytest.raises(sl.errors.UnsupportedError, match=r"the run is sound before 0\.0\d+ s"):
        spun(part(), 0.25, duration=0.3, tau={"hub": 30.0})


@pytest.mark.slow
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


@pytest.mark.slow
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


COLUMN = sl.flexible.from_matrices(FE, interfaces={"root": 0, "tip": 6}, modes=1)


def column(share):
    """A column with a weight on it that is a share of the load that buckles it."""
    mass = share * COLUMN.buckling_load("tip") / 9.81
    b = sl.Builder("column", gravity=(-9.81, 0, 0)).body("post", flexible=COLUMN).body("top", mass, inertia=(0.1,) * 3)
    return sl.Dynamics(b.fixed("foot", "world", "post").fixed("weld", "post.tip", "top").build())


def test_check_and_warnings_of_loads_have_the_stiffness_of_the_model():
    robot = column(0.05)
    own = robot.model.parameters()
    names = [x for x in own.names if x.startswith("post.modes.stiffness")]
    soft = robot.model.with_parameters(own.changed({x: 0.25 * own.values[own.index(x)] for x in names}))
    with pytest.warns(sl.errors.SpanloopWarning, match=r"carries 0\.2 of the load along it"):
        sl.Dynamics(soft).static_deflection(soft.neutral())
    (level,) = [f for f in examine(soft) if f.topic == "level_spin"]
    assert level.values["spin"] == pytest.approx(0.05 * COLUMN.frequencies.min())
    assert f"{0.25 * COLUMN.buckling_load('tip'):.3g} N at 'tip'" in level.values["buckles"]


@pytest.mark.slow
def test_calls_at_rest_warn_of_a_load_near_buckling_and_are_silent_far_from_it():
    robot = column(0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q = robot.static_deflection(robot.model.neutral())
        robot.modes(q)
        robot.linearize(q)
    robot = column(0.75)
    words = "'post' carries 0.75 of the load along it at 'tip' that buckles it"
    with pytest.warns(sl.errors.SpanloopWarning, match=f"static_deflection: body {words}"):
        q = robot.static_deflection(robot.model.neutral())
    with pytest.warns(sl.errors.SpanloopWarning, match=f"modes: body {words}"):
        robot.modes(q)
    with pytest.warns(sl.errors.SpanloopWarning, match=f"linearize: body {words}"):
        robot.linearize(q)
    with pytest.warns(sl.errors.SpanloopWarning, match=f"simulate: body {words}"):
        sl.simulate(robot, q, duration=1e-3, step=1e-4)
    with pytest.warns(sl.errors.SpanloopWarning, match="above 1 it has buckled"):
        column(1.5).static_deflection(robot.model.neutral())


def test_a_load_at_a_node_counts_as_a_weight_there_does_and_one_across_it_does_not():
    b = sl.Builder("post", gravity=(0, 0, 0)).body("post", flexible=COLUMN).fixed("foot", "world", "post")
    robot, most = sl.Dynamics(b.build()), COLUMN.buckling_load("tip")
    with pytest.warns(sl.errors.SpanloopWarning, match=r"carries 0\.5 of the load"):
        robot.static_deflection(robot.model.neutral(), {"post.tip": [0, 0, 0, -0.5 * most, 0, 0]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot.static_deflection(robot.model.neutral(), {"post.tip": [0, 0, 0, 0, 0.02 * most, 0]})


def test_stiffening_of_one_load_is_not_stiffening_of_all():
    zero = np.zeros((len(FE.dofs),) * 2)
    forces = {f"tip.{k}": zero for k in ("fx", "fy", "fz")}
    options = {"interfaces": {"root": 0, "tip": 6}, "modes": 1}
    assert not sl.flexible.from_matrices(FE, stiffening={"wzwz": zero}, **options).stiffens("tip")
    assert sl.flexible.from_matrices(FE, stiffening=forces, **options).stiffens("tip")


@pytest.mark.slow
def test_linear_models_and_gradients_judge_spin_as_runs_do():
    flexible = part()
    robot = sl.Dynamics(rotor(flexible))
    still = robot.model.neutral()

    def rates(share):
        return np.array([share * flexible.frequencies.min(), 0.0, 0.0])

    def gradient(share):
        return sl.gradient(robot, lambda q, v: v[0] ** 2, still, rates(share), duration=2e-3, step=1e-4, wrt=("v",))

    for call, name in ((lambda x: robot.linearize(still, rates(x)), "linearize"), (gradient, "gradient")):
        with pytest.warns(sl.errors.SpanloopWarning, match=f"{name}: body 'blade' spins with 0.2 of its first"):
            call(0.2)
        with pytest.raises(sl.errors.UnsupportedError, match=f"{name}: body 'blade' spins with 0.4 of its first"):
            call(0.4)


def test_a_run_that_diverged_is_named_as_one():
    model = rotor(part())
    with pytest.raises(sl.errors.UnsupportedError, match=r"more likely a run that has diverged: steps of 0\.01 s"):
        sl.simulate(model, duration=1.0, step=0.01, integrator="rk4", tau={"hub": 5.0})
