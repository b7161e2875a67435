"""Sensors as model elements: readings that follow from a run."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sentences import says

import spanloop as sl
from spanloop.errors import InputError, ModelError
from spanloop.model import Sensor
from spanloop.model.sensor_settings import ERRORS, KINDS
from spanloop.simulation import control
from spanloop.trajectory.sensors import READERS

START = np.array([0.1, -0.5, 0.4, 0.2, 0.6, -0.1])


def with_sensor(model: sl.Model, kind: str, at: str, **settings) -> sl.Model:
    return replace(model, sensors=(Sensor("it", kind, at, tuple(settings.items())),))


def swing(kind: str, at: str, duration=0.2, **settings):
    """A run of an arm that falls."""
    model = with_sensor(sl.zoo.puma(), kind, at, **settings)
    return sl.simulate(model, START, np.ones(6), duration=duration, limits="ignore")


# ---- inertial


def test_an_imu_at_rest_reads_gravity_upward_in_its_axes():
    model = with_sensor(sl.zoo.puma(), "imu", "tool")
    run = sl.simulate(model, START, duration=0.05, controller=control.gravity(model))
    read = run.sensor("it")
    up = run["tool"].pose[:, :3, :3].transpose(0, 2, 1) @ np.array([0.0, 0.0, 9.81])
    np.testing.assert_allclose(read["specific_force"], up, atol=1e-9)
    np.testing.assert_allclose(read["angular_velocity"], 0.0, atol=1e-12)


def test_an_imu_in_free_fall_reads_nothing():
    run = sl.simulate(_block(), v=[0.0, 0.0, 0.0, 1.0, 2.0, 3.0], duration=0.1)
    np.testing.assert_allclose(run.sensor("it")["specific_force"], 0.0, atol=1e-10)


def _block() -> sl.Model:
    b = sl.Builder("block")
    b.body("block", 2.0, (0, 0, 0), (0.1, 0.2, 0.3))
    b.free("root", "world", "block")
    b.frame("corner", "block", (0.1, 0.2, 0.3))
    return with_sensor(b.build(), "imu", "block")


def test_an_imu_agrees_with_differences_of_poses():
    """Second differences at 1 ms err by h²/12 of the fourth derivative, first differences by h²/6 of the third."""
    run = swing("imu", "tool")
    read, h = run.sensor("it"), run.step
    p, turn = run["tool"].position, run["tool"].pose[:, :3, :3]
    acceleration = (p[2:] - 2.0 * p[1:-1] + p[:-2]) / h**2
    seen = np.einsum("nji,nj->ni", turn[1:-1], acceleration + [0.0, 0.0, 9.81])
    np.testing.assert_allclose(read["specific_force"][1:-1], seen, atol=2e-4)
    spin = np.einsum("nji,njk->nik", turn[1:-1], (turn[2:] - turn[:-2]) / (2.0 * h))  # Rᵀ dR/dt = [ω]×
    omega = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=1)
    np.testing.assert_allclose(read["angular_velocity"][1:-1], omega, atol=1e-4)
    assert np.ptp(read["specific_force"], axis=0).max() > 2.0


def test_gyro_and_accelerometer_are_the_halves_of_an_imu():
    both = swing("imu", "tool").sensor("it")
    np.testing.assert_array_equal(swing("gyro", "tool").sensor("it")["angular_velocity"], both["angular_velocity"])
    np.testing.assert_array_equal(swing("accelerometer", "tool").sensor("it")["specific_force"], both["specific_force"])


def test_gyro_and_accelerometer_read_what_mujocos_read(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    model = sl.zoo.puma().with_sensor("spin", "gyro", "tool").with_sensor("push", "accelerometer", "tool")
    run = sl.simulate(model, START, np.ones(6), duration=0.1, limits="ignore", tau=[1.0, 2.0, 3.0, 0.1, 0.2, 0.3])
    model.save(tmp_path / "arm.xml")
    theirs = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    data = mujoco.MjData(theirs)
    for k in (0, 50, 100):
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = run.q[k], run.v[k], run.tau[k]
        mujoco.mj_forward(theirs, data)
        np.testing.assert_allclose(run.sensor("spin")["angular_velocity"][k], data.sensor("spin").data, atol=1e-9)
        np.testing.assert_allclose(run.sensor("push")["specific_force"][k], data.sensor("push").data, atol=1e-6)


def test_bias_and_noise_are_added_and_come_back_with_the_seed():
    """White noise of density d at the rate of samples f has the standard deviation d √f; 1 % of 40 000 numbers."""
    exact = swing("imu", "tool", 2.0).sensor("it")
    settings = {"gyro_bias": (0.1, 0.2, 0.3), "accelerometer_density": 1e-3, "seed": 3}
    first, again = (swing("imu", "tool", 2.0, **settings).sensor("it") for _ in range(2))
    np.testing.assert_allclose(first["angular_velocity"] - exact["angular_velocity"], [[0.1, 0.2, 0.3]] * 2001)
    noise = first["specific_force"] - exact["specific_force"]
    assert noise.std() == pytest.approx(1e-3 * np.sqrt(1000.0), rel=0.05)
    np.testing.assert_array_equal(first["specific_force"], again["specific_force"])
    other = swing("imu", "tool", 2.0, **{**settings, "seed": 4}).sensor("it")
    assert np.abs(other["specific_force"] - first["specific_force"]).max() > 1e-3


def test_noise_is_a_deviation_and_a_cutoff_bounds_readings():
    exact, rough, short = (
        swing("gyro", "tool", 2.0, **settings).sensor("it")["angular_velocity"]
        for settings in ({}, {"noise": 0.2}, {"noise": 0.2, "cutoff": 0.9})
    )
    assert (rough - exact).std() == pytest.approx(0.2, rel=0.05)
    np.testing.assert_array_equal(short, np.clip(rough, -0.9, 0.9))
    assert np.abs(rough).max() > 0.9


# ---- at joints


def test_an_encoder_reads_whole_counts():
    run = swing("encoder", "joint2", counts=1000, offset=0.01)
    read = run.sensor("it")
    np.testing.assert_array_equal(read["counts"], np.round(read["counts"]))
    np.testing.assert_allclose(read["position"], read["counts"] * 2.0 * np.pi / 1000.0)
    assert np.abs(read["position"] - run["joint2"].q - 0.01).max() <= np.pi / 1000.0 * (1 + 1e-9)
    assert len(np.unique(read["counts"])) > 20


def test_an_encoder_holds_its_reading_between_ticks():
    run = swing("encoder", "joint2", rate=100.0)
    read = run.sensor("it")["position"]
    np.testing.assert_array_equal(read, run["joint2"].q[np.arange(201) // 10 * 10])


def test_a_tachometer_and_a_torque_sensor_read_rate_and_torque():
    run = swing("tachometer", "joint3", bias=0.5)
    np.testing.assert_allclose(run.sensor("it")["velocity"], run["joint3"].v + 0.5)
    model = with_sensor(sl.zoo.puma(), "torque", "joint3")
    held = sl.simulate(model, START, duration=0.01, controller=control.gravity(model))
    np.testing.assert_allclose(
        held.sensor("it")["torque"], sl.Dynamics(model).gravity_torques(held.q)[:, 2], atol=1e-12
    )


def test_a_force_torque_sensor_carries_the_weight_beyond_it():
    """At rest a joint holds everything it carries against gravity, and the moment of that about its child's origin."""
    model = with_sensor(sl.zoo.puma(), "force_torque", "joint4")
    robot = sl.Dynamics(model)
    run = sl.simulate(model, START, duration=0.01, controller=control.gravity(model))
    read = run.sensor("it")
    child = robot.pose(START, model.joint("joint4").child)
    carried = [b for b in model.bodies if b.name in ("link4", "link5", "link6")]
    assert len(carried) == 3
    lift, moment = np.zeros(3), np.zeros(3)
    for b in carried:
        pose = robot.pose(START, b.name)
        force = np.array([0.0, 0.0, 9.81 * b.inertia.mass])
        lift += force
        moment += np.cross(pose[:3, :3] @ b.inertia.center + pose[:3, 3] - child[:3, 3], force)
    np.testing.assert_allclose(read["force"][3], child[:3, :3].T @ lift, atol=1e-9)
    np.testing.assert_allclose(read["torque"][3], child[:3, :3].T @ moment, atol=1e-9)


def test_a_force_torque_sensor_is_the_reaction_in_the_childs_axes():
    run = swing("force_torque", "joint3")
    read = run.sensor("it")
    turn = run[run.model.joint("joint3").child].pose[:, :3, :3]
    np.testing.assert_allclose(np.einsum("nij,nj->ni", turn, read["force"]), run["joint3"].force[:, 3:], atol=1e-9)
    np.testing.assert_allclose(np.einsum("nij,nj->ni", turn, read["torque"]), run["joint3"].force[:, :3], atol=1e-9)


def test_a_force_torque_sensor_in_a_loop_is_the_reaction():
    model = with_sensor(sl.zoo.four_bar(), "force_torque", "crank_hinge")
    run = sl.simulate(model, sl.zoo.four_bar_start(), duration=0.05)
    turn = run[model.joint("crank_hinge").child].pose[:, :3, :3]
    force = np.einsum("nij,nj->ni", turn, run.sensor("it")["force"])
    np.testing.assert_allclose(force, run["crank_hinge"].force[:, 3:], atol=1e-9)


def test_a_position_sensor_reads_a_frames_place():
    run = swing("position", "tool")
    np.testing.assert_array_equal(run.sensor("it")["position"], run["tool"].position)


# ---- batches, files, sentences


def test_readings_of_a_batch_are_those_of_its_runs():
    model = with_sensor(sl.zoo.puma(), "imu", "tool", rate=200.0)
    many = sl.simulate(model, START + 0.1 * np.arange(6).reshape(2, 3, 1), duration=0.02, limits="ignore")
    read = many.sensor("it")
    assert read["times"].shape == (21,)
    assert read["specific_force"].shape == (2, 3, 21, 3)
    one = many[1, 2].sensor("it")
    np.testing.assert_allclose(one["specific_force"], read["specific_force"][1, 2], atol=1e-9)


def test_sensors_go_through_a_file(tmp_path):
    model = with_sensor(sl.zoo.puma(), "imu", "tool", gyro_bias=(0.1, 0.0, 0.0), rate=200.0)
    model.save(tmp_path / "arm.toml")
    assert sl.load(tmp_path / "arm.toml").sensors == model.sensors


@pytest.mark.parametrize(
    ("kind", "at", "settings", "sentence"),
    [
        ("imu", "joint1", {}, "sensor 'it': imu is at joint 'joint1'; expected a frame or body"),
        ("encoder", "tool", {}, "sensor 'it': encoder is at frame 'tool'; expected a joint"),
        ("encodr", "joint1", {}, "sensor 'it': there is no kind 'encodr'; did you mean 'encoder'?"),
        ("encoder", "joint1", {"count": 5}, "sensor 'it': encoder has no setting 'count'; did you mean 'counts'?"),
        ("encoder", "joint1", {"counts": 0}, "sensor 'it': counts is 0; must be > 0"),
        ("imu", "tool", {"gyro_noise": -1.0}, "sensor 'it': gyro_noise is -1; must be >= 0"),
        ("imu", "tool", {"gyro_bias": (1.0, 2.0)}, "sensor 'it': gyro_bias is (1.0, 2.0); expected a number, or three"),
        ("gyro", "tool", {"rate": -5.0}, "sensor 'it': rate is -5; must be > 0"),
        ("gyro", "tool", {"seed": 1.5}, "sensor 'it': seed is 1.5; expected a whole number, not negative"),
    ],
)
def test_a_sensor_that_cannot_be_is_said(kind, at, settings, sentence):
    """When it is added, and when a model that came from elsewhere is read."""
    added = partial(sl.zoo.puma().with_sensor, "it", kind, at, **settings)
    for call in (added, lambda: swing(kind, at, 0.005, **settings).sensor("it")):
        with pytest.raises((InputError, ModelError)) as caught:  # a model refuses numbers by itself
            call()
        assert str(caught.value).replace(".0;", ";") == sentence


def test_every_kind_of_sensor_can_be_added_and_read():
    assert READERS.keys() == KINDS.keys()
    for name, kind in KINDS.items():
        at = "joint2" if kind.place == "joint" else "tool"
        one = {lead + error: 0.1 for lead in kind.readings.values() for error in ERRORS}
        model = sl.zoo.puma().with_sensor("it", name, at, rate=100, seed=1, **one)
        assert dict(model.sensors[0].settings)["seed"] == 1
        assert kind.readings.keys() <= sl.simulate(model, duration=0.005).sensor("it").keys()


def test_sensors_that_only_files_hold_have_the_settings_of_all():
    assert sl.zoo.puma().with_sensor("skin", "touch", "tool", noise=0.1).sensors[0].kind == "touch"
    with says(InputError, "sensor 'skin': touch has no setting 'noize'; did you mean 'noise'?"):
        sl.zoo.puma().with_sensor("skin", "touch", "tool", noize=0.1)


def test_a_sensor_that_is_not_there_is_said():
    with says(InputError, "has no sensor 'us'; there are 'it'"):
        swing("imu", "tool", 0.005).sensor("us")
    block = with_sensor(_block(), "encoder", "root")
    with says(InputError, "sensor 'it': joint 'root' is free; an encoder reads joints of one DoF"):
        sl.simulate(block, duration=0.01).sensor("it")
