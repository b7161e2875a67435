"""Material of flexible bodies: E, density and damping by name, and as live parameters."""

from __future__ import annotations

import numpy as np
import pytest
from flexible_arms import arm, boom

import spanloop as sl
from spanloop.errors import InputError, ModelError, StateError

STEEL = {"E": 2.1e11, "density": 7850.0}


@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize("theory", ["euler-bernoulli", "timoshenko"])
def test_another_material_is_the_beam_built_with_it(pieces, theory):
    changed = arm(boom(pieces=pieces, theory=theory)).build().with_material("boom", **STEEL, damping=0.03)
    built = arm(boom(pieces=pieces, theory=theory, **STEEL, damping=0.03)).build()
    assert changed.parameters().names == built.parameters().names
    np.testing.assert_allclose(changed.parameters().values, built.parameters().values, rtol=1e-9)
    assert changed.joint("wrist") == built.joint("wrist")


def test_ratios_of_damping_stay_where_none_is_given():
    built = arm(boom(**STEEL, damping=0.01)).build().joint("boom.modes")
    changed = arm(boom(damping=0.01)).build().with_material("boom", **STEEL).joint("boom.modes")
    np.testing.assert_allclose(changed.damping, built.damping, rtol=1e-9)
    own = arm().build().with_joint("boom.modes", damping=0.7)
    np.testing.assert_allclose(own.with_material("boom", E=4 * 7e10).joint("boom.modes").damping, 1.4, rtol=1e-9)


def test_numbers_changed_by_hand_keep_their_proportion():
    model = arm().build()
    twice = model.with_joint("boom.modes", stiffness=tuple(2.0 * k for k in model.joint("boom.modes").stiffness))
    found = twice.with_material("boom", E=2.1e11).joint("boom.modes").stiffness
    np.testing.assert_allclose(found, np.array(model.joint("boom.modes").stiffness) * 2.0 * 3.0, rtol=1e-9)


@pytest.mark.slow
def test_live_parameters_are_the_beam_built_with_another_material():
    model = arm(boom(modes={"y": 0, "torsion": 0})).build()
    steel = arm(boom(modes={"y": 0, "torsion": 0}, **STEEL)).build()
    q, v = model.random_state(seed=3)
    tau = np.linspace(-1.0, 1.0, model.nv)
    kernel = sl.compile(model, "forward_dynamics", parameters="live")
    expected = sl.Dynamics(steel).forward_dynamics(q, v, tau)
    given = model.with_material("boom", **STEEL).parameters()
    np.testing.assert_allclose(kernel(q, v, tau, given), expected, rtol=1e-9)
    baked = sl.Dynamics(model.with_parameters(given)).forward_dynamics(q, v, tau)
    np.testing.assert_allclose(baked, expected, rtol=1e-9)
    with pytest.raises(StateError, match=r"flexible body 'boom' change in proportion only; .*with_material\('boom'"):
        kernel(q, v, tau, model.parameters().changed({"boom.mass": 1.0}))
    single = sl.compile(model, "forward_dynamics", parameters="live", dtype="float32")
    close = single(*(np.asarray(x, np.float32) for x in (q, v, tau, given.values)))
    np.testing.assert_allclose(close, expected, atol=2e-3 * np.abs(expected).max())


@pytest.mark.slow
def test_a_run_with_live_parameters_is_that_of_the_other_beam():
    model = arm(boom(modes={"y": 0}, nodes=None)).build()
    changed = model.with_material("boom", **STEEL)
    q, _ = model.random_state(seed=1)
    live = sl.simulate(model, q, duration=0.01, step=1e-5, parameters=changed.parameters())
    np.testing.assert_allclose(live.q, sl.simulate(changed, q, duration=0.01, step=1e-5).q, atol=1e-10)


def test_mass_alone_cannot_change():
    model = arm().build()
    for edit in (
        lambda: model.with_parameters({"boom.mass": 1.0}),
        lambda: model.with_parameters({"boom.center.x": 0.6}),
        lambda: model.with_parameters({"boom.inertia.yy": 1.0}),
        lambda: model.with_inertia("boom", mass=1.0),
    ):
        with pytest.raises(ModelError, match=r"body 'boom'.*in proportion only.*with_material\('boom', density="):
            edit()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "nothing is given; expected E=, density= or damping="),
        ({"E": 0.0}, "E is 0 Pa; must be > 0"),
        ({"density": -1.0}, "density is -1 kg/m³; must be > 0"),
        ({"damping": -0.1}, "damping is -0.1; expected a ratio of critical damping, 0 or more"),
        ({"E": "stiff"}, "E is 'stiff'"),
        ({"E": float("nan")}, "E is nan"),
    ],
)
def test_a_material_that_cannot_be_is_refused(settings, said):
    with pytest.raises((InputError, ModelError), match=said):
        arm().build().with_material("boom", **settings)


def test_the_body_of_a_material_is_a_flexible_one():
    with pytest.raises(InputError, match=r"has no flexible body 'hub'; did you mean 'boom'|has no flexible body 'hub'"):
        arm().build().with_material("hub", E=1e9)
    with pytest.raises(InputError, match=r"has no flexible body 'link1'; it has none at all"):
        sl.zoo.puma().with_material("link1", E=1e9)


@pytest.mark.slow
@pytest.mark.parametrize("pieces", [1, 2, 4])
def test_damping_is_that_of_the_slowest_mode_however_many_pieces_there_are(pieces):
    beam = sl.flexible.beam(1.0, E=7e10, density=2700.0, section=sl.flexible.circle(0.01), modes={"y": 1},
                            damping=0.01, pieces=pieces)  # fmt: skip
    b = sl.Builder("boom", gravity=(0.0, 0.0, 0.0)).body("boom", flexible=beam).fixed("clamp", "world", "boom")
    robot = sl.Dynamics(b.build())
    assert robot.modes(robot.model.neutral()).damping_ratios[0] == pytest.approx(0.01, rel=2e-3)
