"""The audit of runs with contacts: what is well in true ones, and what it finds in others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from touching_motions import FRICTION, MASS, G, ball, bouncing_ball, box, sliding_box

import spanloop as sl
from spanloop.model.parts import Sensor

FOUND = ("complementarity", "penetration", "cones", "uniqueness", "jams")


def changed(run, **arrays):
    (segment,) = run.segments
    return run.changed(segments=(replace(segment, **arrays),))


@pytest.mark.slow
def test_a_box_that_slides_is_well_and_friction_has_its_name():
    audit = sliding_box().audit()
    assert audit.well
    assert all(audit[name].verdict == "well" for name in (*FOUND, "energy", "linear momentum", "angular momentum"))
    assert "Work of friction of 'touch' -3.721 J" in audit["energy"].sentence
    assert audit["energy"].value < 1e-9


def test_a_ball_that_bounces_loses_energy_by_name_and_step_by_step_energy_is_not_judged():
    run = bouncing_ball()
    audit = run.audit()
    assert audit.well
    assert audit["contact impacts"].verdict == "well"
    lost = MASS * G * 1.0 * (1.0 - 0.25**2)  # two bounces in a second
    assert f"'touch' {lost:.2g}" in audit["contact impacts"].sentence
    assert audit["energy"].verdict == "not judged"
    assert audit["energy"].value < 0.2


def test_an_impact_that_adds_energy_is_a_fault():
    audit = bouncing_ball(1.2, duration=0.6).audit()
    assert "contact impacts" in audit.faults
    assert "One adds" in audit["contact impacts"].sentence


@pytest.mark.slow
def test_forces_that_do_not_explain_the_motion_are_faults():
    run = sliding_box()
    forces = run.segments[0].contact_forces.copy().reshape(len(run), 8, 3)
    forces[..., 1] *= 0.5
    assert {"energy", "linear momentum"} <= set(
        changed(run, contact_forces=forces.reshape(len(run), -1)).audit().faults
    )
    forces[..., 1] *= 2.1
    assert "cones" in changed(run, contact_forces=forces.reshape(len(run), -1)).audit().faults


@pytest.mark.slow
def test_bodies_that_sink_in_are_a_fault_and_named():
    run = sliding_box()
    q = run.q.copy()
    q[:, 6] -= 1e-4
    audit = changed(run, q=q).audit()
    assert "penetration" in audit.faults
    assert "0.0001 m, 'touch." in audit["penetration"].sentence
    assert "penetration" not in changed(run, q=q).audit(penetration=1e-3).faults


@pytest.mark.parametrize(("column", "value", "name"), [(0, 1e-6, "complementarity"), (1, 1e-4, "penetration"),
                                                       (2, 3.0, "jams")])  # fmt: skip
@pytest.mark.slow
def test_what_any_step_left_counts(column, value, name):
    run = sliding_box()
    checks = run.segments[0].contact_checks.copy()
    checks[100:, column] = value
    assert changed(run, contact_checks=checks).audit().faults == (name,)
    assert changed(run, contact_checks=checks)[:50].audit().well


def test_samples_several_steps_apart_do_not_judge_what_happens_between_them():
    audit = bouncing_ball()[::10].audit()
    assert not audit.faults
    assert "give sample= a step" in audit["energy"].sentence
    assert audit["contact impacts"].verdict == "not judged"
    assert bouncing_ball()[:400:10].audit()["energy"].verdict == "well"  # it falls


@pytest.mark.slow
def test_a_simulated_box_comes_to_rest_and_all_is_well():
    model = box()
    run = sl.simulate(model, [1, 0, 0, 0, 0, 0, 0.1], [0, 0, 0, 2.0, 0, 0], duration=0.8)
    audit = run.audit()
    assert audit.well
    assert audit["energy"].value < 1e-10
    assert run.contacts["touch"].state[-1] == "sticks"
    assert not run.contacts["touch"].unique.any()
    assert run.contacts.motion_is_unique.all()
    assert abs(run.a[1:600, 3] + FRICTION * G).max() < 1e-9


@pytest.mark.slow
def test_runs_of_a_batch_with_friction_of_their_own():
    friction = [0.1, 0.3]
    settings = sl.contacts.Settings(friction={"touch": friction})
    runs = sl.simulate(box(), [1, 0, 0, 0, 0, 0, 0.1], [0, 0, 0, 2.0, 0, 0], duration=0.1, contacts=settings)
    assert runs.audit().well
    for k, mu in enumerate(friction):
        assert runs[k].model.contacts[0].friction == mu
        assert runs[k].audit().well
        alone = sl.simulate(runs[k].model, [1, 0, 0, 0, 0, 0, 0.1], [0, 0, 0, 2.0, 0, 0], duration=0.1)
        assert np.array_equal(alone.q, runs[k].q)
        np.testing.assert_allclose(runs.contacts["touch"].force[k, 1:, 0], -mu * MASS * G, rtol=0, atol=1e-9)
        assert set(runs.contacts["touch"].state[k, 1:]) == {"slips"}


@pytest.mark.slow
def test_a_run_that_goes_on_keeps_its_contacts():
    first = sl.simulate(ball(restitution=0.5), [1, 0, 0, 0, 0, 0, 0.3], duration=0.25)
    run = first.continued(duration=0.25)
    ahead = sl.simulate(first.model, [1, 0, 0, 0, 0, 0, 0.3], duration=0.5)
    np.testing.assert_allclose(run.q[-1], ahead.q[-1], rtol=0, atol=1e-12)
    assert run.settings["contacts"] == "steps"
    force = run.contacts["touch"].force[:, 2]
    assert len(force) == len(run)
    np.testing.assert_allclose(force[252:], ahead.contacts["touch"].force[251:, 2], rtol=0, atol=1e-7)
    falls = sl.simulate(ball(), [1, 0, 0, 0, 0, 0, 0.3], duration=0.1, contacts="ignore").continued(duration=0.4)
    assert falls.q[-1, 6] < -0.5


@pytest.mark.slow
def test_a_checkpoint_goes_on_with_the_same_bits(tmp_path):
    def call(path, stop):
        calls = []

        def law(t, q, v):
            calls.append(t)
            if stop and len(calls) == 120:
                raise KeyboardInterrupt
            return np.zeros(6)

        law = sl.control.callback(law, key="still")
        integrator = sl.Integrator(checkpoint=path)
        return sl.simulate(box(), [1, 0, 0, 0, 0, 0, 0.11], [0, 0, 0, 2, 0, 0], duration=0.2, controller=law,
                           integrator=integrator)  # fmt: skip

    whole, path = call(tmp_path / "whole.npz", False), tmp_path / "run.npz"
    assert call(path, True).outcome.reason == "interrupted"
    again = call(path, False)
    assert again.settings["resumed"]
    assert np.array_equal(whole.q, again.q)
    one, other = (run.segments[0].contact_forces for run in (whole, again))
    assert np.array_equal(one, other, equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize("impacts", ["steps", "events"])
def test_a_ball_with_restitution_that_rolls_does_not_hop(impacts):
    """The velocity before a step is that in the world, not in axes that have turned with the ball."""
    model = ball(friction=0.3, restitution=0.5)
    run = sl.simulate(model, [1, 0, 0, 0, 0, 0, 0.1], [0, 0, 0, 1.0, 0, 0], duration=0.2, contacts=impacts)
    assert abs(run.contacts["touch"].gap).max() < 1e-15
    assert run.contacts["touch"].state[-1] == "sticks"
    assert not len(run.events)
    assert run.audit().well


@pytest.mark.slow
def test_a_box_that_falls_on_a_corner_keeps_its_momentum_in_every_step():
    half = 0.02
    run = sl.simulate(box(), [np.cos(half), np.sin(half), 0, 0, 0, 0, 0.3], [0, 0, 0, 1.0, 0, 0], duration=0.25)
    pushed = run.contacts["touch"].force[1:] + [0.0, 0.0, -MASS * G]
    change = np.diff(run.momentum[:, 3:], axis=0) - run.step * pushed
    assert np.abs(change).max() < 1e-6  # RK4 turns the axes of the body
    assert not run.audit().faults


@pytest.mark.slow
def test_a_linkage_on_a_stop_keeps_its_loops_and_located_impacts_balance_its_energy():
    plane = ("world", sl.contacts.Plane(position=(0, 0, 0.366)))
    model = sl.zoo.four_bar().with_contact("stop", ("coupler", sl.contacts.Sphere(0.05)), plane, restitution=0.6)
    steps, events = (sl.simulate(model, sl.zoo.four_bar_start(), duration=0.7, contacts=x) for x in ("steps", "events"))
    assert not steps.audit().faults
    assert steps.audit()["energy"].verdict == "not judged"
    assert events.events.name.tolist() == ["stop"]
    assert events.contacts["stop"].events.energy_lost.tolist() == events.events.energy_lost.tolist()
    assert all(f.verdict == "well" for f in events.audit().findings)
    assert events.audit()["closure"].value < 1e-12
    assert np.isfinite(steps.reactions()["crank_hinge"]).all()


@pytest.mark.slow
@pytest.mark.parametrize("impacts", ["steps", "events"])
def test_loops_that_attach_and_release_go_with_contacts(impacts, tmp_path):
    ball = {"inertia": [0.01] * 3, "geometry": [sl.contacts.Sphere(0.1)]}
    b = (
        sl.Builder("two")
        .body("a", 1.0, **ball)
        .body("b", 1.0, **ball)
        .free("ja", "world", "a")
        .free("jb", "world", "b")
    )
    model = b.loop("a", "b", "fixed", name="grip", switchable=True).build().with_ground(friction=0.5)
    events = [sl.events.Attach("grip", at=0.15, capture=True), sl.events.Release("grip", at=0.3)]
    q, v = [1, 0, 0, 0, 0, 0, 0.1, 1, 0, 0, 0, 0.5, 0, 0.3], [0, 0, 0, 1, 0, 0, *[0] * 6]
    run = sl.simulate(model, q, v, duration=0.5, contacts=impacts, events=events)
    faults = set(run.audit(velocity=1e-7).faults)
    assert not faults
    assert np.isfinite(run.a).all()
    run.save(tmp_path / "run.npz")
    again = sl.load_run(tmp_path / "run.npz")
    assert np.array_equal(again.contacts["a"].force, run.contacts["a"].force)
    assert str(again.events) == str(run.events)


@pytest.mark.slow
def test_an_accelerometer_on_a_box_that_rests_reads_its_weight():
    model = replace(box(), sensors=(Sensor("imu", "imu", "body"),))
    run = sl.simulate(model, [1, 0, 0, 0, 0, 0, 0.1], duration=0.02)
    np.testing.assert_allclose(run.sensor("imu")["specific_force"], [[0.0, 0.0, G]] * len(run), rtol=0, atol=1e-9)


@pytest.mark.slow
def test_of_many_runs_the_first_are_judged_and_the_residuals_of_all(monkeypatch):
    monkeypatch.setattr("spanloop.trajectory.audit.audit._MOST_RUNS", 2)
    v = np.zeros((3, 2, 6))
    v[..., 3] = [[1.0, 2.0], [0.5, 1.5], [0.1, 0.2]]
    runs = sl.simulate(ball(friction=0.3), [1, 0, 0, 0, 0, 0, 0.1], v, duration=0.05)
    checks = runs.segments[0].contact_checks.copy()
    checks[2, 1, :, 0] = 1.0
    audit = changed(runs, contact_checks=checks).audit()
    assert audit.faults == ("complementarity",)
    assert "Judged in the first 2 of 6 runs." in audit["energy"].sentence


@pytest.mark.slow
def test_a_foot_that_pushes_off_while_its_leg_turns_is_closed_and_hits_nothing():
    b = sl.Builder("leg").body("hip", mass=2.0, inertia=(0.01,) * 3)
    b.body("thigh", mass=0.3, center=(0, 0, -0.15), inertia=(0.002, 0.002, 1e-4))
    b.body("shank", mass=0.2, center=(0, 0, -0.15), inertia=(0.0015, 0.0015, 1e-4))
    b.prismatic("rail", "world", "hip", "z").revolute("h", "hip", "thigh", "y")
    b.revolute("k", "thigh", "shank", "y", (0, 0, -0.3)).frame("toe", "shank", (0, 0, -0.3))
    model = b.build().with_contact("toe", ("toe", sl.contacts.Sphere(0.02)), "ground", friction=0.8)

    def push_off(t, q, v):
        push = sl.where(t - 0.2 > 0, sl.where(0.28 - t > 0, 1.0, 0.0), 0.0)
        return {"h": 80 * (0.6 - q["h"]) - 4 * v["h"], "k": 200 * (0.9 * push - 1.2 - q["k"]) - 4 * v["k"]}

    q = [0.6 * np.cos(0.6) + 0.02, 0.6, -1.2]
    run = sl.simulate(model, q, duration=0.3, controller=push_off, contacts="events")
    toe = run.contacts["toe"]
    assert toe.normal_force.max() > 500.0
    assert not (toe.state[toe.normal_force > 0.0] == "open").any()
    assert not run.contacts.work.hits.any()  # the one impact is an event
    assert "impacts of" not in run.audit()["energy"].sentence


@pytest.mark.slow
def test_samples_several_steps_apart_print_no_balance_that_nobody_knows():
    audit = sl.simulate(ball(restitution=0.5), [1, 0, 0, 0, 0, 0, 0.6], duration=0.5, sample=0.01).audit()
    assert audit.well
    for name in ("energy", "linear momentum", "contact impacts"):
        assert audit[name].verdict == "not judged"
        assert "several steps apart" in audit[name].sentence
        assert " J" not in audit[name].sentence
        assert np.isnan(audit[name].value)


@pytest.mark.slow
@pytest.mark.parametrize("contacts", ["steps", "events"])
def test_a_ball_that_rests_or_slides_in_float32_is_well(contacts):
    single = sl.Integrator(dtype="float32")
    for v in (None, [0, 0, 0, 1.0, 0, 0]):
        run = sl.simulate(ball(), [1, 0, 0, 0, 0, 0, 0.1], v, duration=0.3, contacts=contacts, integrator=single)
        assert run.audit().well, str(run.audit())


def _with_camera_and_pedestal() -> sl.Model:
    """A ball that carries a camera on a fixed joint, on a pedestal that is bolted to the world."""
    b = sl.Builder("bolted").body("ped", mass=5.0, inertia=(0.1,) * 3, geometry=[sl.contacts.Box(1, 1, 0.2)])
    b.body("base", mass=1.0, inertia=(0.01,) * 3, geometry=[sl.contacts.Sphere(0.1)])
    b.body("cam", mass=0.1, inertia=(1e-4,) * 3)
    b.fixed("bolt", "world", "ped", (0, 0, -0.1)).free("root", "world", "base").fixed("mount", "base", "cam")
    return b.build().with_contact("touch", "base", "ped", friction=0.5)


@pytest.mark.slow
def test_bodies_on_fixed_joints_have_the_results_of_the_fused_model():
    model = replace(_with_camera_and_pedestal(), sensors=(Sensor("imu", "imu", "cam"),))
    own, fused = (
        sl.simulate(m, [1, 0, 0, 0, 0, 0, 0.1], [0, 0, 0, 1, 0, 0], duration=0.05) for m in (model, model.fuse())
    )
    one, other = own.audit(), fused.audit()
    assert one.well
    assert other.well
    assert "Contacts alone hold the mechanism" in other["linear momentum"].sentence
    assert one["energy"].value == pytest.approx(other["energy"].value, abs=1e-12)
    np.testing.assert_allclose(own.contacts.work.work, fused.contacts.work.work, atol=1e-12)
    np.testing.assert_allclose(own.a, fused.a, atol=1e-9)
    imu = own.sensor("imu")["specific_force"], fused.sensor("imu")["specific_force"]
    np.testing.assert_allclose(*imu, atol=1e-9)
    reactions = own.reactions()
    np.testing.assert_allclose(reactions["bolt"][-1, 3:], [-5.3955, 0, 6.1 * 9.81], atol=1e-4)
    np.testing.assert_allclose(reactions["root"], 0.0, atol=1e-9)
    np.testing.assert_allclose(own.acting["ped"][-1, 3:], -own.contacts["touch"].force[-1], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("contacts", ["steps", "events"])
def test_heavy_boxes_slide_as_light_ones(contacts):
    b = sl.Builder("heavy").body("box", mass=1e11, inertia=(1e9,) * 3, geometry=[sl.contacts.Box(0.2, 0.2, 0.2)])
    model = b.free("flight", "world", "box").build().with_ground(friction=0.5)
    run = sl.simulate(model, [1, 0, 0, 0, 0, 0, 0.1], [0, 0, 0, 2, 0, 0], duration=0.1, contacts=contacts)
    assert run.outcome.reason == "finished"
    assert run.v[-1, 3] == pytest.approx(2.0 - 0.5 * 9.81 * 0.1, abs=1e-12)
