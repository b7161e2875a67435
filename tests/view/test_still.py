"""Pictures of mechanisms at rest: transparent where nothing is, the mechanism in the middle, readable as PNG."""

from __future__ import annotations

import io

import numpy as np
import pytest

import spanloop as sl
from spanloop.view.gallery.png import png
from spanloop.view.video.still import FILLED, still


def test_the_mechanism_fills_the_picture_and_the_rest_is_transparent():
    picture = still(sl.zoo.pendulum(2), [0.4, 0.6], (200, 120))
    assert (picture.shape, picture.dtype) == ((120, 200, 4), np.uint8)
    opaque = picture[..., 3] > 250
    rows, columns = (np.flatnonzero(opaque.any(axis=k)) for k in (1, 0))
    share = max(np.ptp(rows) / 120, np.ptp(columns) / 200)
    assert share == pytest.approx(FILLED, abs=0.03)  # of a pixel or two
    assert abs(rows[0] + rows[-1] - 119) <= 4
    assert abs(columns[0] + columns[-1] - 199) <= 4
    assert picture[0, 0, 3] == 0


def test_colours_do_not_depend_on_the_background():
    """An opaque pixel of a blue rod is blue; over black and over white it is the same."""
    picture = still(sl.zoo.pendulum(1), [0.0], (64, 64)).astype(int)
    rod = picture[picture[..., 3] == 255]
    assert len(rod) > 20
    assert (rod[:, 2] > rod[:, 0]).mean() > 0.5


def test_a_png_is_read_by_another_library_as_it_was():
    image = pytest.importorskip("PIL.Image")
    picture = np.random.default_rng(3).integers(0, 256, (7, 5, 4)).astype(np.uint8)
    assert (np.asarray(image.open(io.BytesIO(png(picture)))) == picture).all()
