"""Studies of bodies from finite elements without stiffening: runs that spin too fast have failed, as in sl.simulate."""

import warnings

import numpy as np
import pytest

import spanloop as sl

pytest.importorskip("zarr")
st = sl.studies
FE = sl.flexible.to_matrices(
    sl.flexible.beam(1.0, E=7e10, density=2700.0, section=sl.flexible.circle(0.01), elements=3)
)


def rotor(**options):
    """A blade on a hub that turns, and its first frequency [rad/s]."""
    part = sl.flexible.from_matrices(FE, interfaces={"root": 0, "tip": 6}, basis="cantilever", modes=2, **options)
    b = sl.Builder("rotor", gravity=(0, 0, 0)).body("blade", flexible=part).body("tip", 0.1, inertia=(1e-4,) * 3)
    model = b.revolute("hub", "world", "blade", "z").fixed("weld", "blade.tip", "tip").build()
    return model, part.frequencies.min()


def study(shares, store=None, **options):
    model, slowest = rotor(**options)
    keep = {"energy": "energy.total"}
    return sl.Study(
        model, table={"v.hub": np.array(shares) * slowest}, duration=0.01, step=1e-4, keep=keep, store=store
    )


def test_runs_that_spin_too_fast_fail_as_alone_and_enter_no_statistic():
    many = study([0.05, 0.2, 0.4])
    with pytest.warns(sl.errors.SpanloopWarning, match=r"spins with 0\.2 of its first frequency in run 1"):
        many.run()
    data = many.results()
    assert data["outcome"].values.tolist() == ["finished", "finished", "spin"]
    np.testing.assert_allclose(data["blade.spin"].values, [0.05, 0.2, np.nan], rtol=1e-3)
    assert np.isnan(data["energy"].values[2])
    assert "spins with 0.4 of its first frequency; its finite elements have no geometric" in many.failures()[2]
    with pytest.raises(sl.errors.UnsupportedError, match=r"spins with 0\.4"):
        many.rerun(2)


def test_spins_are_judged_with_the_stiffness_and_the_mass_of_each_run():
    model, slowest = rotor()
    own = model.parameters()
    names = [x for x in own.names if x.startswith(("blade.modes.stiffness", "blade.mass", "blade.inertia"))]
    factors = {x: np.array([1.0, 0.01, 1.0]) if "stiffness" in x else np.array([1.0, 1.0, 4.0]) for x in names}
    table = {x: factor * own.values[own.index(x)] for x, factor in factors.items()}
    many = sl.Study(model, table=table, v={"hub": 0.05 * slowest}, duration=0.01, step=1e-4)
    many.run()
    data = many.results()
    assert data["outcome"].values.tolist() == ["finished", "spin", "finished"]
    np.testing.assert_allclose(data["blade.spin"].values, [0.05, np.nan, 0.1], rtol=2e-2)
    assert "spins with 0.5 of its first frequency" in many.failures()[1]


@pytest.mark.slow
def test_slow_runs_are_silent_and_a_spin_between_samples_counts():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study([0.05, 0.01]).run()
    model, slowest = rotor()

    def there_and_back(t, q, v):  # the hub comes to more than 0.3 of the first frequency, and back to rest
        return {"hub": 120.0 * np.cos(2.0 * np.pi * t / 0.2)}

    once = sl.Study(model, table={"q.hub": [0.0]}, controller=there_and_back, duration=0.2, step=1e-4)
    once.run()
    run = sl.simulate(rotor(any_spin=True)[0], controller=there_and_back, duration=0.2, step=1e-4, sample=1e-4)
    rates = np.abs(run["hub"].v)
    assert rates[-1] < 0.2 * slowest < 0.3 * slowest < rates.max()
    assert once.results()["outcome"].values.tolist() == ["spin"]


def test_any_spin_is_part_of_the_definition_of_a_study(tmp_path):
    with pytest.warns(sl.errors.SpanloopWarning, match="spins with 0.4"):
        assert not study([0.05, 0.4], tmp_path / "s.zarr", any_spin=True).run().failures()
    with pytest.raises(sl.errors.InputError, match="keep"):
        study([0.05, 0.4], tmp_path / "s.zarr").run()


def test_the_name_of_a_spin_is_taken():
    with pytest.raises(sl.errors.InputError, match=r"'blade\.spin' anyway"):
        sl.Study(rotor()[0], table={"q.hub": [0.0]}, duration=0.01, keep={"blade.spin": "q.hub"})
