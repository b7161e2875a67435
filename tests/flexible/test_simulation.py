"""Runs of flexible bodies: published motions, energy, results by name, batches, events, contacts, control."""

from __future__ import annotations

import numpy as np
import pytest
from flexible_runs import FOUR_BAR_START, arm, boom, four_bar, spin_up, spun, tip_in_hub

import spanloop as sl
from spanloop.compiler.runtime.rollout import Rollout
from spanloop.errors import UnsupportedError
from spanloop.simulation import checkpoint
from spanloop.simulation.run_files import read_run

SOFT = {"modes": {"y": 0, "z": 0, "torsion": 0}, "E": 7e9, "section": sl.flexible.circle(0.02), "length": 1.5,
        "nodes": {"mid": 0.8}, "damping": 0.01}  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore:simulate. steps of")


# ---- published motions


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "within"),
    [
        ({"modes": {"y": 3}, "basis": "cantilever"}, 4e-3),  # the field of second order, its energy kept whole: 0.5759
        ({"modes": {"y": 0}, "pieces": 2}, 1e-3),
        ({"modes": {"y": 0}, "pieces": 4}, 5e-4),
    ],
)
def test_the_spin_up_bends_by_as_much_as_eight_pieces_do_and_comes_to_rest(recipe, within):
    """Kane, Ryan & Banerjee; 0.5738 m of eight consistent pieces, 6.76 s."""
    run = spin_up(spun(**recipe), integrator="implicit", step=2.5e-3)
    across = tip_in_hub(run)[:, 1]
    assert np.abs(across).max() == pytest.approx(0.5738, rel=within)
    assert run.times[np.argmax(np.abs(across))] == pytest.approx(6.76, abs=0.02)
    assert np.abs(across[run.times > 16.0]).max() < 4e-3


@pytest.mark.slow
def test_the_steady_elongation_is_that_of_the_closed_form():
    """ρA ω² L³ / (3 EA) = 5.143e-4 m; published 5.14e-4."""
    model = spun(modes={"y": 2, "extension": 3}, basis="cantilever")
    run = spin_up(model, integrator="implicit", step=0.01)
    longer = run["boom.modes"].q[run.times > 16.0][:, 2:].sum(axis=-1).mean()  # each shape is 1 m at the tip
    assert longer == pytest.approx(1.2 * 36.0 * 1e3 / (3.0 * 2.8e7), rel=1e-3)
    assert longer == pytest.approx(5.14e-4, rel=1e-3)


# ---- energy


def _drift(run):
    """The largest change of energy, of the energy that the motion exchanges."""
    energy = run.energy.sum(axis=-1)
    return np.abs(energy - energy[0]).max() / run.energy[:, 0].max()


@pytest.mark.slow
def test_an_arm_of_two_flexible_links_keeps_its_energy_over_ten_seconds():
    model = arm()
    q, v = model.random_state(seed=3)
    for j in model.joints:
        if j.kind.bends:
            q[model.q_slice(j.name)] *= 0.01
            v[model.v_slice(j.name)] *= 0.02
    run = sl.simulate(model, q, v, duration=10.0, integrator=sl.Integrator("DOP853", accuracy=1e-12), sample=0.1)
    assert min(x.max() for x in run.strain_energy.values()) > 0.1  # J: both bend
    assert _drift(run) < 1e-10


@pytest.mark.slow
def test_a_four_bar_with_a_flexible_coupler_keeps_its_energy_over_ten_seconds():
    model = four_bar()
    q = sl.Dynamics(model).assemble(FOUR_BAR_START, ["crank_hinge"])
    run = sl.simulate(model, q, duration=10.0, integrator=sl.Integrator("DOP853", accuracy=1e-12), sample=0.1)
    assert np.ptp(run["crank_hinge"].q) > 2.0
    assert _drift(run) < 1e-10
    assert np.abs(run.closure_error).max() < 1e-12


def test_strain_energy_is_the_potential_energy_without_gravity():
    model = spun(modes={"y": 1}, pieces=2)
    robot, q = sl.Dynamics(model), model.random_state(seed=1)[0] * 0.01
    found = robot.strain_energy(q)
    assert list(found) == ["boom"]
    assert found["boom"] == pytest.approx(robot.energy(q, np.zeros(model.nv))[1], rel=1e-12)
    both = robot.strain_energy(np.stack([q, 2.0 * q]))["boom"]
    assert np.allclose(both, found["boom"] * np.array([1.0, 4.0]), rtol=1e-12)


# ---- results


@pytest.mark.slow
def test_modes_and_nodes_are_found_by_name_and_nodes_move_as_their_positions_do():
    model = boom(tip_mass=0.3, **SOFT)
    run = sl.simulate(model, {"hinge": 0.3}, duration=0.1, step=1e-4, integrator="rk4")
    assert np.array_equal(run["boom.modes"].q, run.q[:, model.q_slice("boom.modes")])
    for node in ("boom.mid", "boom.tip", "load"):
        at = run[node].position
        rate = (at[2:] - at[:-2]) / 2e-4
        assert np.abs(rate - run[node].velocity[1:-1, 3:]).max() < 1e-5 * np.abs(rate).max()


@pytest.mark.slow
def test_sensors_at_nodes_read_what_the_node_does():
    model = boom(tip_mass=0.3, **SOFT).with_sensor("tip", "imu", "boom.tip")
    run = sl.simulate(model, {"hinge": 0.3}, duration=0.1, step=1e-4, integrator="rk4")
    read = run.sensor("tip")
    at, turn = run["boom.tip"].position, run["boom.tip"].pose[:, :3, :3]
    second = (at[2:] - 2.0 * at[1:-1] + at[:-2]) / 1e-8 + [0.0, 0.0, 9.81]
    seen = np.einsum("nij,ni->nj", turn[1:-1], second)
    assert np.abs(seen - read["specific_force"][1:-1]).max() < 1e-3 * np.abs(seen).max()
    own = np.einsum("nij,ni->nj", turn, run["boom.tip"].velocity[:, :3])
    assert np.allclose(own, read["angular_velocity"], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["implicit", "rk4"])
def test_batches_are_single_runs_bit_for_bit(integrator):
    model = boom(tip_mass=0.3, **SOFT)
    q = np.zeros((3, model.nq))
    q[:, 0], q[:, 3] = (0.0, 0.5, 1.0), 0.01
    options = {"duration": 0.05, "step": 2e-4, "integrator": integrator}
    runs = sl.simulate(model, q, **options)
    for k in range(3):
        alone = sl.simulate(model, q[k], **options)
        assert np.array_equal(runs.q[k], alone.q)
        assert np.array_equal(runs.v[k], alone.v)


@pytest.mark.slow
def test_checkpoints_resume_to_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "_SHARE", np.inf)
    model = boom(tip_mass=0.3, **SOFT)

    def push(t, q, v):
        return np.zeros(len(v))

    def simulated(file=None):
        kept = sl.Integrator("implicit", checkpoint=file)
        return sl.simulate(model, {"hinge": 0.3}, duration=0.05, step=1e-3, integrator=kept,
                           controller=sl.control.callback(push))  # fmt: skip

    original, calls = Rollout.run, []

    def killed(self, *args):
        calls.append(1)
        if len(calls) == 20:
            raise ZeroDivisionError
        return original(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(Rollout, "run", killed)
        with pytest.raises(ZeroDivisionError):
            simulated(tmp_path / "run.ckpt")
    resumed = simulated(tmp_path / "run.ckpt")
    assert "resumed" in resumed.settings
    assert np.array_equal(resumed.q, simulated().q)


@pytest.mark.slow
def test_run_files_set_modes_by_name_and_files_of_runs_have_them(tmp_path):
    model = boom(tip_mass=0.3, **SOFT)
    n = model.joint("boom.modes").kind.nq
    bent = [0.001 * k for k in range(n)]
    file = tmp_path / "run.toml"
    file.write_text(f'duration = 0.05\nstep = 1e-3\n[q]\nhinge = 0.3\n"boom.modes" = {bent}\n', encoding="utf-8")
    run = sl.simulate(model, **read_run(file).arguments(model))
    assert run.q[0].tolist() == [0.3, *bent]
    run.save(tmp_path / "run.csv")
    assert "boom.modes" in (tmp_path / "run.csv").read_text(encoding="utf-8")
    for name in ("run.npz", "run.nc"):
        run.save(tmp_path / name)
        back = sl.Trajectory.load(tmp_path / name)
        assert np.array_equal(back.q, run.q)
        assert back.model == model
    again = run.continued(duration=0.05, step=1e-3)
    whole = sl.simulate(model, run.q[0], duration=0.1, step=1e-3)
    assert np.array_equal(again.q[-1], whole.q[-1])


# ---- events, contacts, control


@pytest.mark.slow
def test_a_body_is_attached_to_a_node_and_released():
    beam = sl.flexible.beam(1.5, E=7e9, density=2700.0, section=sl.flexible.circle(0.02), modes={"z": 0})
    b = sl.Builder("boom").body("boom", flexible=beam).revolute("hinge", "world", "boom", "y")
    b.body("part", 0.2, inertia=[1e-4] * 3).free("flight", "world", "part")
    model = b.loop("boom.tip", "part", "fixed", name="grip", switchable=True).build()
    q = np.array(model.neutral())
    q[model.q_slice("flight")] = [1, 0, 0, 0, 1.5, 0, 0]
    run = sl.simulate(
        model, q, duration=0.15, step=2e-4, integrator="rk4", closures=sl.Closures(active_loops=[]),
        events=[sl.events.Attach("grip", at=0.02, capture=True), sl.events.Release("grip", at=0.1)],
    )  # fmt: skip
    assert run.events.kind.tolist() == ["attach", "release"]
    audit = run.audit()
    assert not {"energy", "closure", "linear momentum"} & set(audit.faults), str(audit)
    distance = run["part"].position - run["boom.tip"].position
    held = (run.times > 0.021) & (run.times < 0.099)
    lengths = np.linalg.norm(distance[held], axis=-1)
    assert np.ptp(lengths) < 1e-9
    assert run.strain_energy["boom"].max() > 1e-3


@pytest.mark.slow
def test_a_stop_of_the_hinge_sets_the_boom_ringing():
    model = boom(tip_mass=0.3, **SOFT).with_joint("hinge", limits=(-0.1, 0.35))
    run = sl.simulate(model, {"hinge": 0.3}, duration=0.3, step=2e-4, limits="stop", integrator="rk4")
    assert run.outcome.reason == "finished"
    assert run["hinge"].q.max() < 0.35 + 1e-9
    assert "attach" in run.events.kind.tolist()
    assert run.strain_energy["boom"].max() > 10.0 * run.strain_energy["boom"][run.times < 0.05].max()


@pytest.mark.slow
@pytest.mark.parametrize("place", ["load", "boom.mid"])
def test_what_sits_on_a_node_meets_the_ground(place):
    model = boom(height=0.3, tip_mass=0.3, **SOFT)
    model = model.with_contact("foot", (place, sl.contacts.Sphere(0.05)), "ground", friction=0.4)
    run = sl.simulate(model, duration=0.4, step=5e-4)
    assert run.outcome.reason == "finished"
    gap = run.contacts["foot"].gap
    assert -1e-6 < gap.min() < 1e-6
    assert np.allclose(run[place].position[:, 2] - 0.05, np.ravel(gap), atol=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("error:.*no actuator holds")
def test_control_acts_on_the_hinge_and_leaves_modes_alone():
    model = boom(tip_mass=0.3, **SOFT)
    robot = sl.Dynamics(model)
    law = sl.control.pd(model, 200.0, 40.0, target={"hinge": 0.1}, gravity=True)
    run = sl.simulate(model, {"hinge": 0.3}, duration=3.0, step=1e-3, controller=law)
    assert np.abs(run.tau[:, 1:]).max() == 0.0
    assert run["hinge"].q[-1] == pytest.approx(0.1, abs=1e-3)
    rest = robot.static_deflection({"hinge": 0.2})
    held = sl.simulate(model, rest, duration=0.2, step=1e-3, controller=sl.control.gravity(model))
    assert np.abs(held.q - rest).max() < 1e-9
    refused = pytest.raises(UnsupportedError, match=r"joint 'boom\.modes' is not actuated")
    with refused:
        sl.control.computed_torque(model, {"hinge": sl.control.quintic(0.0, 0.5, 1.0)}, kp=1.0, kd=1.0)
    with refused:
        sl.control.operational_space(model, "load", target=[1.0, 0, 0.3], kp=10.0, kd=5.0)


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_gravity_compensation_holds_a_four_bar_as_its_coupler_sags():
    model = four_bar()
    rest = sl.Dynamics(model).static_deflection(FOUR_BAR_START)
    run = sl.simulate(model, rest, duration=0.1, step=1e-3, controller=sl.control.gravity(model, near=rest))
    assert np.abs(run.q - rest).max() < 1e-8
    assert np.abs(run.tau[0] - sl.Dynamics(model).static_torques(rest)).max() < 1e-8


@pytest.mark.slow
def test_minimal_coordinates_refuse_bodies_that_bend():
    model = four_bar()
    q = sl.Dynamics(model).static_deflection(FOUR_BAR_START)
    with pytest.raises(UnsupportedError, match="is for rigid bodies: body 'coupler' of 'four_bar' bends"):
        sl.simulate(model, q, duration=0.1, closures="minimal")
    feedback = sl.simulate(model, q, duration=0.1, step=1e-3, closures="feedback")
    exact = sl.simulate(model, q, duration=0.1, step=1e-3)
    assert np.abs(feedback.q - exact.q).max() < 1e-5


@pytest.mark.slow
def test_forces_at_nodes_do_work_and_float32_runs():
    model = boom(tip_mass=0.3, **SOFT)
    options = {"duration": 0.1, "step": 1e-4, "integrator": "rk4"}
    run = sl.simulate(model, {"hinge": 0.3}, forces={"boom.mid": [0, 0, 0, 0, 0, 30.0]}, **options)
    finding = run.audit()["energy"]
    assert finding.verdict == "well", finding.sentence
    assert "Work of forces" in finding.sentence
    single = sl.simulate(
        model, {"hinge": 0.3}, duration=0.1, step=1e-3, integrator=sl.Integrator("implicit", dtype="float32")
    )
    double = sl.simulate(model, {"hinge": 0.3}, duration=0.1, step=1e-3, integrator="implicit")
    assert np.abs(single.q - double.q).max() < 1e-5
