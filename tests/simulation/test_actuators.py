"""Actuators as model elements: inertia and damping in the equations, the rest between command and joint."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop.errors import InputError, ModelError, SpanloopWarning
from spanloop.model import Actuator, motor
from spanloop.model.files.mjcf.actuators_and_sensors import ACTUATORS
from spanloop.model.motors import LAWS
from spanloop.simulation import control

TAUS = np.linspace(-5.0, 5.0, 20)[:, None]


def rail(**settings) -> sl.Model:
    """1 kg on a rail along x, with a motor."""
    b = sl.Builder("cart")
    b.body("cart", 1.0)
    b.prismatic("rail", "world", "cart", "x")
    return replace(b.build(), actuators=(motor("drive", "rail", **settings),))


def arm(**settings) -> sl.Model:
    model = sl.zoo.puma()
    return replace(model, actuators=(motor("m2", "joint2", **settings), motor("m5", "joint5", **settings)))


# ---- in the equations of motion


def test_a_rotor_is_an_armature_of_gear_squared_times_its_inertia():
    model = arm(gear=-60.0, rotor_inertia=2e-5, damping=3e-5)
    plain = sl.zoo.puma()
    joints = tuple(
        replace(j, armature=0.072, damping=0.108) if j.name in ("joint2", "joint5") else j for j in plain.joints
    )
    twin = replace(plain, joints=joints)
    q, v = model.random_state(3)
    for name, given in (("mass_matrix", (q,)), ("bias", (q, v)), ("forward_dynamics", (q, v, v)), ("energy", (q, v))):
        found, wanted = (getattr(sl.Dynamics(m), name)(*given) for m in (model, twin))
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
        assert np.abs(found - getattr(sl.Dynamics(plain), name)(*given)).max() > 1e-3


def test_a_motion_is_that_of_forward_dynamics_of_the_same_model():
    model = arm(gear=60.0, rotor_inertia=2e-5, damping=3e-5, friction=0.01, max_torque=0.2)
    run = sl.simulate(model, duration=0.1, tau=[0.0, 30.0, 0.0, 0.0, 1.0, 0.0])
    rate = (run.v[2:] - run.v[:-2]) / (2.0 * run.step)
    np.testing.assert_allclose(run.a[11:-1], rate[10:], atol=5e-3)  # friction changes fast at first
    np.testing.assert_allclose(run.a, sl.Dynamics(model).forward_dynamics(run.q, run.v, run.tau), atol=1e-9)


def test_live_parameters_and_rotors_go_together():
    model = arm(gear=10.0, rotor_inertia=1e-3)
    q, _ = model.random_state(1)
    live = sl.compile(model, "mass_matrix", parameters="live")(q, model.parameters().values)
    np.testing.assert_allclose(live, sl.Dynamics(model).mass_matrix(q), atol=1e-12)


def test_a_model_without_losses_has_no_rotors():
    model = arm(gear=60.0, rotor_inertia=2e-5, damping=1e-3, friction=0.1, max_torque=3.0).without_losses()
    assert model.actuators[0].settings == (("gear", 60.0), ("max_torque", 3.0))
    q, _ = model.random_state(1)
    twin = sl.Dynamics(sl.zoo.puma().without_losses())
    np.testing.assert_allclose(sl.Dynamics(model).mass_matrix(q), twin.mass_matrix(q), atol=1e-14)


def test_one_freedom_of_several_has_a_motor():
    b = sl.Builder("collar")
    b.body("collar", 1.0, (0, 0, 0), (0.1, 0.1, 0.1))
    b.joint("guide", "cylindrical", "world", "collar")
    model = replace(b.build(), actuators=(motor("push", "guide", gear=10.0, rotor_inertia=0.01, dof=1),))
    np.testing.assert_allclose(np.diag(sl.Dynamics(model).mass_matrix([0.0, 0.0])), [0.1, 2.0], atol=1e-15)
    with says(ModelError, "actuator 'push': dof is 2; joint 'guide' has DoF 0 to 1"):
        replace(model, actuators=(motor("push", "guide", dof=2),))
    vague = replace(model, actuators=(motor("push", "guide", rotor_inertia=0.01),))
    with says(ModelError, "actuator 'push': joint 'guide' has 2 DoF; choose the one it drives: dof=0, ..."):
        sl.Dynamics(vague).mass_matrix([0.0, 0.0])


def test_actuators_go_through_a_file(tmp_path):
    model = arm(gear=60.0, rotor_inertia=2e-5, delay=0.002)
    model.save(tmp_path / "arm.toml")
    again = sl.load(tmp_path / "arm.toml")
    assert again.actuators == model.actuators
    q, _ = model.random_state(1)
    np.testing.assert_array_equal(sl.Dynamics(again).mass_matrix(q), sl.Dynamics(model).mass_matrix(q))


# ---- between command and joint


def test_saturation_clips_at_the_joint_by_gear_times_torque():
    model = rail(gear=-5.0, max_torque=2.0)
    tau = np.linspace(-30.0, 30.0, 61)[:, None]
    run = sl.simulate(model, duration=0.061, tau=tau)
    np.testing.assert_allclose(run.tau[:-1], np.clip(tau, -10.0, 10.0), atol=1e-12)


def test_bounds_on_one_side():
    """A motor that pulls only: its torque is not positive."""
    run = sl.simulate(rail(force_range=(-9.0, 0.0)), duration=0.02, tau=np.linspace(-1.0, 1.0, 20)[:, None])
    np.testing.assert_allclose(run.tau[:-1, 0], np.minimum(np.linspace(-1.0, 1.0, 20), 0.0), atol=1e-15)


def test_the_closest_bound_counts():
    """As MJCF files have them: a control between −1 and 1 with a gain of 3, a force up to 2."""
    run = sl.simulate(rail(control_range=(-1.0, 1.0), gain=3.0, force_range=(-9.0, 2.0)), duration=0.02, tau=TAUS)
    np.testing.assert_allclose(run.tau[:-1, 0], np.clip(TAUS[:, 0], -3.0, 2.0), atol=1e-15)


def test_torque_falls_with_speed_to_nothing():
    """m v' = stall (1 − v/top): v = top (1 − exp(−stall t / (m top)))."""
    model = rail(stall_torque=4.0, max_speed=3.0)
    run = sl.simulate(model, duration=2.0, tau=[100.0])
    np.testing.assert_allclose(run["rail"].v, 3.0 * (1.0 - np.exp(-4.0 / 3.0 * run.times)), atol=1e-9)
    fast = sl.simulate(model, [0.0], [4.0], duration=0.01, tau=[100.0])
    assert not fast.tau.any()
    brake = sl.simulate(model, [0.0], [1.5], duration=0.001, tau=[-100.0])
    assert brake.tau[0, 0] == pytest.approx(-6.0)


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_a_delay_shifts_commands_by_whole_steps(steps):
    tau = np.random.default_rng(0).normal(size=(50, 1))
    run = sl.simulate(rail(delay=steps * 1e-3, gear=4.0), duration=0.05, tau=tau)
    np.testing.assert_array_equal(run.tau[:steps], 0.0)
    np.testing.assert_allclose(run.tau[steps:-1], tau[:-steps], atol=1e-15)


def test_a_delay_shifts_a_controllers_command_by_whole_steps():
    """The torque in a step is what the law said at the start of the step three before."""
    model = rail(delay=3e-3)
    law = control.pd(model, 50.0, 2.0, {"rail": control.sine(0.0, 0.2, 5.0)})
    run = sl.simulate(model, [0.1], duration=0.05, controller=law)
    aim = 0.2 * np.sin(10.0 * np.pi * run.times), 2.0 * np.pi * np.cos(10.0 * np.pi * run.times)
    said = 50.0 * (aim[0] - run["rail"].q) + 2.0 * (aim[1] - run["rail"].v)
    np.testing.assert_allclose(run["rail"].tau[3:], said[:-3], atol=1e-12)


def test_a_delay_stays_as_long_when_accuracy_halves_the_steps():
    """Commands are taken at the ticks of the first step."""
    model = rail(delay=4e-3)
    law = control.path(lambda t: (t, 1.0, 0.0))
    runs = [
        sl.simulate(
            model, duration=0.02, step=1e-3, controller=lambda t, q, v: law(t)[0], integrator=sl.Integrator(accuracy=a)
        )
        for a in (None, 1e-3)
    ]
    assert runs[1].step == 5e-4
    np.testing.assert_allclose(runs[0].tau[:, 0], np.maximum(runs[0].times - 4e-3, 0.0), atol=1e-12)
    np.testing.assert_allclose(runs[1].tau, runs[0].tau, atol=1e-12)


def test_a_delay_that_is_no_whole_number_of_steps_is_rounded_with_a_word():
    with pytest.warns(SpanloopWarning, match=r"its delay of 0.0025 s is taken as 2 steps of 0.001 s, 0.002 s"):
        sl.simulate(rail(delay=2.5e-3), duration=0.01)


def test_torque_follows_its_command_with_a_lag():
    """1 − exp(−t/T) to a constant command; the fourth-order decay errs by x⁵/120 a step, x = 0.05."""
    run = sl.simulate(rail(lag=0.02), duration=0.1, tau=[3.0])
    np.testing.assert_allclose(run["rail"].tau, 3.0 * (1.0 - np.exp(-run.times / 0.02)), atol=1e-7)
    both = sl.simulate(rail(lag=0.02, delay=5e-3), duration=0.1, tau=[3.0])
    np.testing.assert_allclose(both["rail"].tau[5:], run["rail"].tau[:-5], atol=1e-12)


def test_a_lag_shorter_than_a_step_is_stable():
    run = sl.simulate(rail(lag=1e-5), duration=0.01, tau=[3.0])
    np.testing.assert_allclose(run["rail"].tau[1:], 3.0, rtol=1e-4)


def test_a_motors_friction_is_felt_through_the_gear():
    run = sl.simulate(rail(gear=5.0, friction=0.2), [0.0], [2.0], duration=0.5)
    np.testing.assert_allclose(run["rail"].v, 2.0 - run.times, atol=2e-4)


def test_a_gear_loses_its_share_in_both_directions():
    """Driving, 0.8 of the torque arrives; driven back, 1.2 of it resists."""
    model = rail(gear=3.0, efficiency=0.8)
    for v, share in ((50.0, 0.8), (-50.0, 1.2)):
        run = sl.simulate(model, [0.0], [v], duration=0.001, tau=[6.0])
        assert run.tau[0, 0] == pytest.approx(6.0 * share, rel=1e-6)


def test_a_batch_is_its_runs():
    model = arm(gear=60.0, rotor_inertia=2e-5, friction=0.01, max_torque=0.5, max_speed=500.0, delay=2e-3, lag=4e-3)
    rng = np.random.default_rng(2)
    q, aim = 0.1 * rng.normal(size=(3, 6)), np.full(6, 0.2)
    law = control.pd(model, 40.0, 4.0, aim)
    many = sl.simulate(model, q, duration=0.1, controller=law)
    for k in range(3):
        one = sl.simulate(model, q[k], duration=0.1, controller=law)
        np.testing.assert_allclose(many.q[k], one.q, atol=1e-12)
        np.testing.assert_allclose(many.memory[k], one.memory, atol=1e-12)


def test_power_of_the_motors_is_what_the_energy_gains():
    """Joint torque times rate, less the motors' damping, integrated by Simpson's rule."""
    model = arm(gear=20.0, rotor_inertia=1e-4, damping=2e-4, friction=0.005, max_torque=0.5)
    run = sl.simulate(model, duration=0.4, tau=[0.0, 20.0, 0.0, 0.0, 1.0, 0.0])
    damping = np.array([0.0, 0.08, 0.0, 0.0, 0.08, 0.0])
    own = np.array([j.damping[0] for j in model.joints])
    power = np.einsum("nk,nk->n", run.tau - (damping + own) * run.v, run.v)
    gained = (run.step / 3.0) * np.cumsum(power[:-2:2] + 4.0 * power[1:-1:2] + power[2::2])
    np.testing.assert_allclose(run.energy[2::2].sum(axis=1) - run.energy[0].sum(), gained, atol=1e-6)


# ---- sentences


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"gear": 0}, "actuator 'm': gear is 0; a gear of ratio 0 moves nothing. Leave it out for a direct drive"),
        ({"gear": float("nan")}, "actuator 'm': gear is nan; every number must be finite"),
        ({"gear": "5"}, "actuator 'm': gear is '5'; expected a finite number"),
        ({"rotor_inertia": -1.0}, "actuator 'm': rotor_inertia is -1; must be >= 0"),
        ({"max_torque": 0.0}, "actuator 'm': max_torque is 0; must be > 0"),
        ({"efficiency": 1.2}, "actuator 'm': efficiency is 1.2; must be > 0 and <= 1"),
        ({"delay": -1.0}, "actuator 'm': delay is -1; must be >= 0"),
        ({"force_range": (1.0, -1.0)}, "actuator 'm': force_range is (1.0, -1.0); expected two numbers, the lower and"),
        ({"force_range": 2.0}, "actuator 'm': force_range is 2.0; expected two numbers, the lower and the upper bound"),
        (
            {"max_speed": 3.0},
            "actuator 'm': max_speed is given without a torque at rest; add stall_torque or max_torque",
        ),
        ({"rotor_intertia": 1.0}, "actuator 'm': there is no setting 'rotor_intertia'; did you mean 'rotor_inertia'?"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_impossible_settings_are_said(settings, sentence):
    with says(ModelError, sentence):
        motor("m", "joint1", **settings)
    with says(ModelError, sentence):
        sl.zoo.puma().with_actuator("m", "joint1", **settings)
    if "rotor_intertia" not in settings:
        with says(ModelError, sentence):
            replace(sl.zoo.puma(), actuators=(Actuator("m", "joint1", tuple(settings.items())),))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"kind": "moter"}, "actuator 'm': there is no kind 'moter'; did you mean 'motor'?"),
        (
            {"kind": "position", "stifness": 5.0},
            "actuator 'm': a 'position' has no setting 'stifness'; did you mean 'stiffness'?",
        ),
        (
            {"kind": "velocity", "lag": 0.1},
            "actuator 'm': a 'velocity' has no setting 'lag'; there are 'damping', 'kind'",
        ),
    ],
)
def test_a_kind_or_setting_that_there_is_not_is_said_when_an_actuator_is_added(settings, sentence):
    with says(ModelError, sentence):
        sl.zoo.puma().with_actuator("m", "joint1", **settings)


def test_actuators_that_only_files_hold_have_settings_that_mjcf_has():
    assert {kind: set(names) for kind, names in ACTUATORS.items() if kind != "motor"} == {
        kind: set(names) for kind, names in LAWS.items() if kind != "muscle"
    }


def test_what_simulation_cannot_do_is_said():
    with says(
        InputError, "actuator 'drive': its delay of 2 s is 2000 steps of 0.001 s; at most 1000. Take longer steps"
    ):
        sl.simulate(rail(delay=2.0), duration=0.1)
    with says(ModelError, "actuator 'm': 'jont1' is not a joint; did you mean 'joint1'?"):
        replace(sl.zoo.puma(), actuators=(motor("m", "jont1"),))
    twice = replace(rail(), actuators=(motor("a", "rail"), motor("b", "rail")))
    with pytest.warns(sl.SpanloopWarning, match="simulate: several actuators drive joint 'rail', and a command cannot"):
        sl.simulate(twice, duration=0.1)
    odd = replace(rail(), actuators=(Actuator("m", "rail", (("gian", 2.0),)),))
    with says(InputError, "simulate: actuator 'm': there is no setting 'gian'; did you mean 'gain'?"):
        sl.simulate(odd, duration=0.1)
    with says(InputError, "no steps for delays and memory to count"):
        sl.simulate(rail(lag=0.1), duration=0.1, integrator="DOP853")


def test_an_actuator_of_another_kind_is_passed_over_with_a_word():
    """A position servo's damping is that of its law: it is not in the equations."""
    settings = (("kind", "position"), ("gear", 3.0), ("stiffness", 5.0), ("damping", 2.0))
    servo = replace(rail(), actuators=(Actuator("servo", "rail", settings),))
    with pytest.warns(SpanloopWarning, match="actuator 'servo', a 'position', has a law that simulation does not know"):
        run = sl.simulate(servo, [0.0], [1.0], duration=0.01, tau=[2.0])
    np.testing.assert_array_equal(run.tau, 2.0)
    np.testing.assert_allclose(run["rail"].v, 1.0 + 2.0 * run.times, atol=1e-12)


def test_the_audit_knows_what_motors_lose():
    model = arm(gear=20.0, rotor_inertia=1e-4, damping=2e-3)
    run = sl.simulate(model, duration=0.2, tau=[0.0, 20.0, 0.0, 0.0, 1.0, 0.0])
    assert run.audit()["energy"].verdict == "well"


def test_bounds_that_exclude_each_other_are_refused():
    with says(InputError, "its bounds exclude each other: a torque of at least 5 and at most 2 N m"):
        sl.simulate(rail(force_range=(5.0, 9.0), max_torque=2.0), duration=0.02)
