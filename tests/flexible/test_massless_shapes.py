"""Bodies from finite elements with massless motions: what cannot be a coordinate is left out and named."""

import warnings

import numpy as np
import pytest

import spanloop as sl
from support.frame_elements import frame, straight

LUMPED = straight(lumped=True)


def made(body, basis="craig-bampton", tip=10, **options):
    return sl.flexible.from_matrices(
        body.mass, body.stiffness, body.positions, interfaces={"root": 0, "tip": tip}, basis=basis, **options
    )


@pytest.mark.slow
@pytest.mark.parametrize("basis", ["craig-bampton", "rubin", "guyan"])
def test_torsion_of_a_lumped_beam_is_left_out_and_named(basis):
    modes = {} if basis == "guyan" else {"modes": 3}
    with pytest.warns(sl.errors.SpanloopWarning, match="1 of . shapes move no mass .* rotation about x of 'tip'"):
        part = made(LUMPED, basis, **modes)
    assert part.frequencies.max() < 1e5
    assert not np.abs(part.turns[0, :, 0]).max() > 1e-9
    b = sl.Builder("arm").body("boom", flexible=part).body("load", 0.2, inertia=(1e-3,) * 3)
    robot = sl.Dynamics(b.revolute("hinge", "world", "boom", "y").fixed("grip", "boom.tip", "load").build())
    still = np.zeros(robot.model.nv)
    assert np.isfinite(robot.forward_dynamics(robot.model.neutral(), still, still)).all()
    bent = sl.Dynamics(sl.Builder("c").body("boom", flexible=part).fixed("clamp", "world", "boom").build())
    q = bent.static_deflection(bent.model.neutral())
    weight = 9.81 * 2700.0 * 0.03 * 0.01
    np.testing.assert_allclose(  # weight q L⁴/8EI of a beam; half of the last element's is at the tip: 1 + 1/3n²
        bent.pose(q, "boom.tip")[2, 3], -weight / (8.0 * 7e10 * 0.03 * 0.01**3 / 12.0) * (1.0 + 1.0 / 300.0), rtol=2e-3
    )


def test_a_bent_chain_of_lumped_masses_has_all_its_shapes():
    bend = np.concatenate([np.linspace([0, 0, 0], [0.5, 0, 0], 6), np.linspace([0.5, 0.1, 0], [0.5, 0.5, 0], 5)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert made(frame(bend, lumped=True), modes=3).n == 9
        assert made(frame(bend, lumped=True), "free", modes=3).n == 3


def test_free_modes_of_masses_on_a_line_are_refused_for_their_mass():
    with pytest.raises(sl.errors.InputError, match="M has no inertia for a rigid motion, most rotation about x"):
        made(LUMPED, "free", modes=3)


@pytest.mark.slow
@pytest.mark.parametrize("basis", ["cantilever", "free"])
def test_truncation_of_natural_modes_is_a_share_of_strain_energy(basis):
    part = made(straight(), basis, modes=3)
    model = sl.Builder("b", gravity=(0, 0, 0)).body("boom", flexible=part).free("f", "world", "boom").build()
    q = np.array(model.neutral())
    own = model.q_slice("boom.modes")
    q[own] = [1e-3, 1e-4, 1e-5]
    run = sl.simulate(model, q, duration=0.05, step=2e-5, sample=1e-4, integrator="rk4")
    energy = 0.5 * run.q[:, own] ** 2 * part.stiffness
    expected = energy[:, 2].max() / energy.sum(axis=1).max()
    assert 0.0 < expected < 1.0
    assert run.audit()["truncation"].value == pytest.approx(expected, rel=1e-9)
