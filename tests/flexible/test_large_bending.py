"""The table of docs/flexible.md on large bending: a cantilever under a load across its tip, against the elastica."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_bvp

import spanloop as sl

PAGE = Path(__file__).parents[2] / "docs" / "flexible.md"
BENDING = 7e10 * 1e-8 / 12.0  # N m²
LOADS = {0.05: 0.1, 0.1: 0.2, 0.2: 0.4, 0.3: 0.6, 0.46: 1.0}  # slope of the tip [rad]: load [EI/L²]


def elastica(load: float) -> tuple[float, float]:
    """Slope and deflection of the tip, of EI θ'' = −P cos θ, for a length of 1 m and P [EI/L²]."""

    def slopes(s, y):
        return np.array([y[1], -load * np.cos(y[0]), np.sin(y[0])])

    found = solve_bvp(
        slopes,
        lambda a, b: np.array([a[0], b[1], a[2]]),
        np.linspace(0.0, 1.0, 50),
        np.zeros((3, 50)),
        tol=1e-8,
    )
    return float(found.y[0, -1]), float(found.y[2, -1])


def deflection(load: float, pieces: int) -> float:
    beam = sl.flexible.beam(
        1.0, E=7e10, density=1.0, area=1e-4, I=1e-8 / 12.0, modes={"y": 0}, pieces=pieces, elements=4
    )
    b = sl.Builder("cantilever", gravity=(0.0, 0.0, 0.0)).body("beam", flexible=beam).fixed("clamp", "world", "beam")
    robot = sl.Dynamics(b.build(), target="python")
    force = {"beam.tip": [0.0, 0.0, 0.0, 0.0, load * BENDING, 0.0]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sl.SpanloopWarning)  # of slopes, which this is about
        q = robot.static_deflection(robot.model.neutral(), force)
    return float(robot.pose(q, "beam.tip")[1, 3])


def table() -> dict[int, list[float]]:
    """Errors [%] by the number of pieces, of the slopes in LOADS."""
    text = PAGE.read_text(encoding="utf-8").replace("one piece", "`pieces=1`")
    rows = re.findall(r"^\| `pieces=(\d+)` \|(.*)\|$", text, re.MULTILINE)
    return {int(n): [float(x.strip(" %") or "nan") for x in row.split("|")] for n, row in rows}


def test_the_known_elastica():
    assert elastica(1.0) == pytest.approx((0.46135, 0.30172), abs=1e-5)  # published tables


@pytest.mark.slow
@pytest.mark.parametrize("pieces", [1, 2, 4])
def test_deflections_are_off_by_what_the_page_says(pieces):
    for (slope, load), stated in zip(LOADS.items(), table()[pieces], strict=True):
        turned, exact = elastica(load)
        assert turned == pytest.approx(slope, abs=0.01)
        error = 100.0 * abs(deflection(load, pieces) / exact - 1.0)
        assert error == pytest.approx(stated, abs=0.05 + 0.1 * stated)
