"""K must let every rigid motion pass, row by row: a lost entry is found, digits of files are not mistaken for one."""

import warnings

import numpy as np
import pytest

import spanloop as sl
from support.frame_elements import frame, straight

OBLIQUE = frame(np.linspace([0.0, 0.0, 0.0], [1.0, 0.4, 0.3], 5))  # along no axis: all directions are coupled
M, K, POSITIONS = OBLIQUE.mass, OBLIQUE.stiffness, OBLIQUE.positions
ENDS = {"root": 0, "tip": len(POSITIONS) - 1}


def made(stiffness=K, positions=POSITIONS):
    return sl.flexible.from_matrices(M, stiffness, positions, interfaces=ENDS, modes=2)


def digits(A, count):
    return np.vectorize(lambda x: float(f"{x:.{count - 1}e}"))(A)


def pairs_between_directions():
    """Entries above the diagonal that couple two directions, of displacement or of rotation."""
    i, j = np.nonzero(np.triu(np.abs(K) > 1e-3 * np.abs(K).max() * 1e-6, 1))
    kind = np.arange(len(K)) % 6
    other = (kind[i] != kind[j]) & (kind[i] // 3 == kind[j] // 3)
    return list(zip(i[other].tolist(), j[other].tolist(), strict=True))


@pytest.mark.parametrize("share", [1.0, 0.3, 0.1])
def test_a_pair_of_entries_that_is_lost_or_wrong_is_refused(share):
    pairs = pairs_between_directions()
    assert len(pairs) > 50
    for i, j in pairs:
        wrong = K.copy()
        wrong[[i, j], [j, i]] *= 1.0 - share
        with pytest.raises(sl.errors.InputError, match="from_matrices: K resists rigid motion"):
            made(wrong)


def test_the_message_names_the_row_and_the_motion():
    wrong = K.copy()
    wrong[9, 10] = wrong[10, 9] = 0.0  # node 1, rotation x with rotation y
    with pytest.raises(sl.errors.InputError, match=r"rotation about [xy], in row (9|10) \(node 1, rotation [xy]\)"):
        made(wrong)


@pytest.mark.parametrize("count", [7, 9])
def test_entries_of_seven_digits_and_more_are_taken_without_a_warning(count):
    stubby = frame(np.linspace([0.0, 0.0, 0.0], [0.2, 0.08, 0.06], 3), 0.05, 0.04)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sl.flexible.from_matrices(
            stubby.mass,
            digits(stubby.stiffness, count),
            digits(stubby.positions, count),
            interfaces={"root": 0, "tip": 2},
            modes=2,
        )


def test_entries_of_few_digits_are_refused_where_they_hold_a_slender_body_and_else_a_warning():
    with pytest.raises(sl.errors.InputError, match=r"like a spring to the ground with .* give K with more digits"):
        made(digits(K, 7))
    stubby = straight(0.2, 1, width=0.1, height=0.1)
    wrong = stubby.stiffness.copy()
    wrong[[1, 11], [11, 1]] *= 1.0 + 6e-5
    with pytest.warns(sl.errors.SpanloopWarning, match="Give K and positions with more digits"):
        sl.flexible.from_matrices(stubby.mass, wrong, stubby.positions, interfaces={"root": 0, "tip": 1}, modes=2)


def test_rounding_of_a_model_that_was_reduced_before_is_no_support():
    """A body with the root alone, as modes: the stiffness of its six boundary coordinates is rounding."""
    part = sl.flexible.from_matrices(M, K, POSITIONS, interfaces={"root": 0}, basis="cantilever", modes=4)
    full = sl.Dynamics(sl.Builder("b", gravity=(0, 0, 0)).body("b", flexible=part).free("f", "world", "b").build())
    inertia = full.mass_matrix(full.model.neutral())
    stiffness = np.diag([0.0] * 6 + list(part.stiffness))
    noise = np.random.default_rng(2).standard_normal(stiffness.shape) * 1e-12 * part.stiffness.max()
    reduced = stiffness + 0.5 * (noise + noise.T)
    order = [3, 4, 5, 0, 1, 2, *range(6, 10)] if full.model.joint("f").kind.units[0] == "rad" else list(range(10))
    at = np.ix_(order, order)
    dofs = np.array([(0, c) for c in range(6)] + [(-1, 0)] * 4)
    again = sl.flexible.from_matrices(
        inertia[at], reduced[at], [[0.0, 0.0, 0.0]], dofs=dofs, interfaces={"root": 0}, basis="cantilever", modes=4
    )
    np.testing.assert_allclose(again.frequencies, part.frequencies, rtol=1e-6)
