"""Beams as rigid segments with springs: frequencies and the spin-up of a beam, against closed forms and references."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import InputError, ModelError

SLENDER = {"E": 7e10, "density": 2700.0, "section": sl.flexible.rectangle(0.004, 0.002)}


def frequencies(model: sl.Model) -> np.ndarray:
    """Of small motions about the neutral state [rad/s], from the mass matrix and the springs."""
    M = np.asarray(sl.Dynamics(model).mass_matrix(model.neutral()))
    K = np.diag([k for j in model.joints for k in j.stiffness])
    return np.sort(np.sqrt(np.linalg.eigvals(np.linalg.solve(M, K)).real))


def clamped(beam: sl.flexible.Beam, n: int) -> sl.Model:
    return sl.Builder("c", gravity=(0, 0, 0)).segments("boom", beam, n).fixed("clamp", "world", "boom").build()


@pytest.mark.slow
def test_frequencies_of_a_clamped_beam_converge_to_the_closed_form():
    s = SLENDER["section"]
    beam = sl.flexible.beam(1.0, modes={"y": 1, "z": 1, "torsion": 1, "extension": 1}, **SLENDER)
    bending = 1.875104068711961**2 * np.sqrt(7e10 / (2700.0 * s.area))
    torsion = np.pi / 2 * np.sqrt(beam.G * s.J / (2700.0 * (s.Iy + s.Iz)))
    extension = np.pi / 2 * np.sqrt(7e10 / 2700.0)
    errors = []
    for n in (4, 8, 16):
        model = clamped(beam, n)
        assert model.nv == 4 * n
        assert model.mass == pytest.approx(beam.mass, rel=1e-12)
        found = frequencies(model)
        exact = (bending * np.sqrt(s.Iy), bending * np.sqrt(s.Iz), torsion, extension)
        errors.append([np.abs(found / x - 1.0).min() for x in exact])
    assert max(errors[0]) < 0.015
    assert max(errors[2]) < 0.001
    np.testing.assert_allclose(np.array(errors[1]) / errors[2], 4.0, rtol=0.02)  # with 1/n²


@pytest.mark.slow
def test_mass_and_stiffness_of_a_beam_are_symmetric():
    """A free beam has the same frequencies seen from both ends, and those of the closed form."""
    model = sl.Builder("f", gravity=(0, 0, 0)).segments("boom", sl.flexible.beam(1.0, modes={"y": 1}, **SLENDER), 32)
    model = model.free("root", "world", "boom").build()
    M = np.asarray(sl.Dynamics(model).mass_matrix(model.neutral()))
    K = np.diag([k for j in model.joints for k in (j.stiffness or (0.0,) * j.kind.nv)])
    w = np.sort(np.sqrt(np.abs(np.linalg.eigvals(np.linalg.solve(M, K)).real)))
    s = SLENDER["section"]
    assert w[6] == pytest.approx(4.730040744862704**2 * np.sqrt(7e10 * s.Iz / (2700.0 * s.area)), rel=2e-3)


@pytest.mark.slow
def test_a_tapered_beam_converges_to_its_finite_elements():
    beam = sl.flexible.beam(
        1.0, E=7e10, density=2700.0, section=[sl.flexible.circle(0.01), sl.flexible.circle(0.005)],
        modes={"y": 2}, basis="cantilever",
    )  # fmt: skip
    np.testing.assert_allclose(frequencies(clamped(beam, 40))[:2], beam.frequencies, rtol=4e-3)


def test_nodes_are_bodies_on_their_segments_and_other_joints_to_them_close_loops():
    beam = sl.flexible.beam(1.0, modes={"y": 1}, nodes={"mid": 0.3}, **SLENDER)
    b = sl.Builder("two").segments("boom", beam, 4).revolute("hinge", "world", "boom", "z")
    model = b.revolute("pin", "world", "boom.tip", "z", (1.0, 0, 0)).build()
    assert [x.name for x in model.loops] == ["pin"]
    assert model.notes == ()
    places = {
        name: sl.Dynamics(model).pose(model.neutral(), name)[:3, 3] for name in ("boom.root", "boom.mid", "boom.tip")
    }
    np.testing.assert_allclose(list(places.values()), [(0, 0, 0), (0.3, 0, 0), (1, 0, 0)], atol=1e-15)
    with pytest.raises(ModelError, match=r"is no node of it.*boom.root, boom.mid, boom.tip"):
        b.frame("eye", "boom", (0.5, 0, 0)).build()


def test_damping_is_that_of_the_first_mode():
    beam = sl.flexible.beam(1.0, modes={"y": 1}, damping=0.02, **SLENDER)
    model = clamped(beam, 16)
    M = np.asarray(sl.Dynamics(model).mass_matrix(model.neutral()))
    K, D = (np.diag([k for j in model.joints for k in getattr(j, name)]) for name in ("stiffness", "damping"))
    n = len(M)
    poles = np.linalg.eigvals(
        np.block([[np.zeros((n, n)), np.eye(n)], [-np.linalg.solve(M, K), -np.linalg.solve(M, D)]])
    )
    slowest = poles[np.abs(poles).argmin()]
    assert -slowest.real / abs(slowest) == pytest.approx(0.02, rel=2e-3)


def spin_up(n: int, step: float) -> float:
    """The largest deflection of the tip [m] of a beam of 10 m whose hub turns from 0 to 6 rad/s in 15 s."""
    beam = sl.flexible.beam(10.0, E=7e10, density=3000.0, area=4e-4, I=2e-7, modes={"y": 1})
    model = sl.Builder("hub", gravity=(0, 0, 0)).segments("boom", beam, n).revolute("hub", "world", "boom", "z")
    model = model.build().drive("hub")
    rest = [0.0] * (model.nv - 1)
    run = sl.simulate(
        model, duration=8.0, step=step, integrator="rk4", sample=0.01,
        controller=lambda t, q, v: [0.4 * (1.0 - np.cos(2.0 * np.pi * t / 15.0)), *rest],
    )  # fmt: skip
    angle, tip = run.q[:, 0], np.asarray(run["boom.tip"].position)
    return float(np.abs(np.cos(angle) * tip[:, 1] - np.sin(angle) * tip[:, 0]).max())


@pytest.mark.slow
def test_the_spin_up_converges_to_the_reference():
    """0.5738 m, of eight flexible pieces; with 8 and 16 segments within 1.3 % and 0.33 %, the error falls as 1/n²."""
    errors = [spin_up(8, 2e-3) / 0.5738 - 1.0, spin_up(16, 5e-4) / 0.5738 - 1.0]
    assert abs(errors[0]) < 0.013
    assert abs(errors[1]) < 0.0033
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((3, 4), "3 is no beam; expected one, as sl.flexible.beam"),
        (("beam", 0), "there are 0; expected a whole number from 1 to 1000"),
        (("beam", 2.5), "there are 2.5; expected a whole number"),
        (("thick", 4), "the beam is a timoshenko one; hinges do not shear"),
        (("damped", 4), "damping has 2 ratios; expected one, segments have no modes"),
    ],
)
def test_segments_that_cannot_be_are_refused(arguments, said):
    beams = {
        "beam": lambda: sl.flexible.beam(1.0, modes={"y": 1}, **SLENDER),
        "thick": lambda: sl.flexible.beam(1.0, modes={"y": 1}, theory="timoshenko", **SLENDER),
        "damped": lambda: sl.flexible.beam(1.0, modes={"y": 2}, basis="cantilever", damping=(0.1, 0.2), **SLENDER),
    }
    beam, count = arguments
    with pytest.raises(InputError, match=said):
        sl.Builder("x").segments("boom", beams[beam]() if isinstance(beam, str) else beam, count)
