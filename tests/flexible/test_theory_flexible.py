"""docs/theory/flexible.md, section 5: the pivot of a free hinge, with the kinetic energy truncated and whole."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import spanloop as sl

PAGE = Path(__file__).parents[2] / "docs" / "theory" / "flexible.md"


def beam(n: int) -> sl.flexible.Beam:
    return sl.flexible.beam(1.0, E=7e10, density=2700.0, area=1e-4, I=1e-8 / 12, modes={"y": n}, basis="cantilever")


def moments(n: int):
    """x, φ, g (particles, ..., 3) of a beam, and the slope of its tip for a unit of the first mode."""
    (body,) = beam(n).bodies
    mass = body.modal.particles
    slope = body.nodes[0].shape.rotations[0][2]
    return *(np.array(x) for x in (mass.positions, mass.translations, mass.bent)), slope


def truncated_pivot(x, phi, g, eta) -> float:
    """Of T to second order in η and η̇: only the moment of inertia depends on η."""
    a = (x[:, :1] * phi[..., 1]).sum(axis=0)
    m = np.einsum("pia,pja->ij", phi, phi)
    moment = (x**2).sum() + eta @ (m + np.einsum("pa,pija->ij", x, g)) @ eta
    return moment - a @ np.linalg.solve(m, a)


def whole_pivot(n: int, eta) -> float:
    """From our mass matrix."""
    b = sl.Builder("hinged").body("beam", flexible=beam(n)).revolute("hinge", "world", "beam", "z")
    M = sl.Dynamics(b.build(), target="python").mass_matrix([0.0, *eta])
    return M[0, 0] - M[0, 1:] @ np.linalg.solve(M[1:, 1:], M[1:, 0])


def rows() -> list[list[float]]:
    """The numbers of the table."""
    table = re.findall(r"^\| (?:pivot|slope|whole)[^|]*\|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [[float(x) for x in row.split("|")] for row in table]


@pytest.mark.parametrize("n", range(1, 7))
def test_the_truncated_pivot_is_zero_at_the_slope_of_the_page_and_the_whole_one_is_not(n):
    at_rest, slopes, whole = (row[n - 1] for row in rows())
    x, phi, g, slope = moments(n)
    moment, eta = (x**2).sum(), np.zeros(n)
    assert truncated_pivot(x, phi, g, eta) / moment == pytest.approx(at_rest, rel=0.05)  # two digits
    eta[0] = slopes / slope
    assert abs(truncated_pivot(x, phi, g, eta)) < 0.1 * at_rest * moment
    assert truncated_pivot(x, phi, g, 1.1 * eta) < 0.0
    assert whole_pivot(n, eta) / moment == pytest.approx(whole, rel=0.05)


def test_a_planar_beam_has_as_many_particles_as_the_page_says():
    counts = [len(beam(n).bodies[0].modal.particles.weights) for n in (1, 2, 3, 4)]
    assert all(count <= n * (n + 1) // 2 + n + 2 for n, count in enumerate(counts, 1))
    assert counts[-1] == 14
