"""The audit of flexible bodies: strain, slopes, truncation, and modes that steps do not resolve; both sides of each."""

from __future__ import annotations

import numpy as np
import pytest
from flexible_runs import boom, four_bar, spin_up, spun

import spanloop as sl

pytestmark = pytest.mark.filterwarnings("ignore:simulate. steps of")


def held(model, start):
    """The audit of a boom that a torque holds as it would rest, from a start at the hinge's angle 0."""
    robot = sl.Dynamics(model)
    rest = robot.static_deflection({"hinge": 0.0})
    tau = {"hinge": robot.static_torques(rest)[0]}
    q = rest if start == "rest" else {"hinge": 0.0}
    return sl.simulate(model, q, duration=0.5, step=1e-3, tau=tau, integrator="implicit")


@pytest.mark.slow
def test_a_boom_that_starts_at_rest_is_well():
    audit = held(boom(modes=1), "rest").audit()
    assert audit.well, str(audit)
    assert audit["modes"].value < 1e-20
    assert "do not resolve 3 modes" in audit["modes"].sentence


@pytest.mark.slow
def test_a_boom_that_is_let_go_names_the_modes_that_ring_and_what_helps():
    audit = held(boom(modes=1), "straight").audit()
    assert set(audit.faults) >= {"energy", "modes"}
    sentence = audit["modes"].sentence
    assert all(words in sentence for words in ("z3 of 'boom.modes'", "robot.static_deflection", "damping="))
    assert "see the finding 'modes'" in audit["energy"].sentence


@pytest.mark.slow
def test_steps_that_resolve_all_modes_are_well():
    model = boom(modes={"z": 0})
    run = sl.simulate(model, {"hinge": 0.0}, duration=0.1, step=1e-4, integrator="rk4")
    audit = run.audit()
    assert audit["modes"].verdict == "well"
    assert "resolve all modes" in audit["modes"].sentence
    assert run.audit(modes=-1.0)["modes"].verdict == "not well"  # the bound can fail


@pytest.mark.slow
def test_adaptive_integrators_have_no_steps_to_judge():
    run = sl.simulate(boom(modes={"z": 0}), {"hinge": 0.0}, duration=0.01, integrator="DOP853")
    assert "modes" not in [f.name for f in run.audit().findings]


@pytest.mark.slow
def test_strain_energy_is_reported_by_body_and_strain_has_a_bound():
    run = held(boom(modes=1), "rest")
    finding = run.audit()["strain energy"]
    moment = 2700.0 * 0.02**2 * 9.81 * 2.0**2 / 2.0  # at the root
    assert finding.value == pytest.approx(moment * 0.01 / (7e10 * 0.02**4 / 12.0), rel=0.1)  # of 16 stations
    assert f"{run.strain_energy['boom'].max():.3g} J in 'boom'" in finding.sentence
    assert run.audit(strain=1e-5)["strain energy"].verdict == "not well"


@pytest.mark.slow
@pytest.mark.parametrize(("E", "verdict"), [(7e10, "well"), (2e9, "not well")])
def test_slopes_beyond_a_fifth_of_a_radian_ask_for_pieces(E, verdict):
    model = boom(modes={"z": 1}, E=E)
    run = sl.simulate(model, {"hinge": 0.0}, duration=0.3, step=1e-3, tau={"hinge": -20.0}, integrator="implicit")
    finding = run.audit()["slopes"]
    tip = run["boom.tip"].pose[..., :3, :3]
    root = run["boom.root"].pose[..., :3, :3]
    turned = np.einsum("nij,nik->njk", root, tip)
    assert finding.value == pytest.approx(np.arccos((np.trace(turned, axis1=1, axis2=2) - 1.0) / 2.0).max(), rel=0.2)
    assert finding.verdict == verdict
    assert ("pieces=2" in finding.sentence) == (verdict == "not well")


@pytest.mark.slow
def test_energy_in_the_last_mode_asks_for_more_modes():
    few = held(boom(modes={"z": 0}), "straight").audit()["truncation"]
    assert few.verdict == "not well"
    assert "give more modes=" in few.sentence
    assert held(boom(modes={"z": 1}), "rest").audit()["truncation"].verdict == "well"
    free_tip = held(boom(modes={"z": 2}, basis="cantilever"), "straight").audit()["truncation"]
    assert "or its basis='craig-bampton'" in free_tip.sentence
    one = held(boom(modes={"z": 1}, basis="cantilever"), "rest").audit()["truncation"]
    assert one.verdict == "not judged"
    assert "compare with modes=2" in one.sentence


@pytest.mark.slow
def test_the_spin_up_of_four_pieces_holds_no_energy_in_modes_that_are_not_resolved():
    run = spin_up(spun(modes={"y": 0}, pieces=4), 10.0, integrator="implicit", step=0.01)
    audit = run.audit()
    for name in ("modes", "slopes", "strain energy"):
        assert audit[name].verdict == "well", str(audit)
    assert "do not resolve" in audit["modes"].sentence


@pytest.mark.slow
def test_batches_and_loops_are_judged_as_single_runs():
    model = four_bar()
    robot = sl.Dynamics(model)
    q = robot.static_deflection({"crank_hinge": 1.0, "coupler_hinge": -0.6, "rocker_hinge": 1.6})
    run = sl.simulate(model, np.stack([q, q]), duration=0.1, step=1e-3, integrator="implicit")
    names = ("strain energy", "slopes", "truncation", "modes")
    assert [run.audit()[n].value for n in names] == pytest.approx([run[0].audit()[n].value for n in names])
    assert run.strain_energy["coupler"].shape == (2, 101)
