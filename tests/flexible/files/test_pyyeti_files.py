"""Files that pyyeti has written (`pyyeti/make_files.py`): OP4, DMIG and bulk data of Nastran."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import SpanloopWarning

FOLDER = Path(__file__).parent / "pyyeti"
EXPECTED = np.load(FOLDER / "expected.npz")
FORMS = ("dense", "bigmat", "nonbigmat")


@pytest.fixture(autouse=True)
def no_warning_of_units():
    """The matrices are random: their masses are those of no body."""
    with pytest.warns(SpanloopWarning, match="units="):
        yield


@pytest.mark.parametrize("name", [f"{kind}_{form}" for kind in ("text", "little", "big") for form in FORMS])
def test_op4_is_read_to_the_last_bit(name):
    body = sl.flexible.load(FOLDER / f"{name}.op4", nodes=FOLDER / "wide.bdf")
    assert (body.mass.toarray() == EXPECTED["mass"]).all()
    assert (body.stiffness.toarray() == EXPECTED["stiffness"]).all()
    assert (body.labels == EXPECTED["labels"]).all()
    assert (body.dofs == [(n, c) for n in range(4) for c in range(6)]).all()


def test_op4_of_nine_digits_is_read_to_its_digits():
    body = sl.flexible.load(FOLDER / "short_text.op4", nodes=FOLDER / "wide.bdf")
    np.testing.assert_allclose(body.stiffness.toarray(), EXPECTED["stiffness"], rtol=6e-10, atol=0)  # 10 digits printed


def test_dmig_is_read_to_its_digits():
    body = sl.flexible.load(FOLDER / "plain.pch", nodes=FOLDER / "wide.bdf")
    np.testing.assert_allclose(body.mass.toarray(), EXPECTED["mass"], rtol=6e-10, atol=0)  # 10 digits printed
    np.testing.assert_allclose(body.stiffness.toarray(), EXPECTED["stiffness"], rtol=6e-10, atol=0)


@pytest.mark.parametrize(("name", "digits"), [("wide", 8), ("narrow", 5)])
def test_positions_of_grids_are_those_of_the_cards(name, digits):
    body = sl.flexible.load(FOLDER / "text_dense.op4", nodes=FOLDER / f"{name}.bdf")
    np.testing.assert_allclose(body.positions, EXPECTED["positions"], rtol=0, atol=0.5001 * 10.0**-digits)


def test_rectangular_coordinate_systems_place_nodes_and_turn_matrices_as_pyyeti_says():
    body = sl.flexible.load(FOLDER / "text_dense.op4", nodes=FOLDER / "turned.bdf")
    np.testing.assert_allclose(body.positions, EXPECTED["basic"], atol=1e-14)
    turn = np.zeros((24, 24))
    for k, axes in enumerate(EXPECTED["axes"]):
        for first in (6 * k, 6 * k + 3):
            turn[first : first + 3, first : first + 3] = axes
    for name in ("mass", "stiffness"):
        expected = turn @ EXPECTED[name] @ turn.T
        np.testing.assert_allclose(getattr(body, name).toarray(), expected, atol=1e-12 * np.abs(expected).max())
