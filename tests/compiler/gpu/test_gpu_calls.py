"""Calls of kernels on a GPU that is memory of this process: which code runs, how it is launched, what comes back."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import StateError, StateWarning
from support import gpu_in_memory


@pytest.fixture
def device(monkeypatch):
    return gpu_in_memory.use(monkeypatch)


def states(model, count: int, seed: int = 2) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    q = np.array([model.random_state(seed=k)[0] for k in range(count)])
    return [q, rng.standard_normal((count, model.nv)), rng.standard_normal((count, model.nv))]


def agrees(found, expected, bound: float = 1e-12) -> bool:
    return np.abs(found - expected).max() <= bound * np.abs(expected).max()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "warps", "launch"),
    [
        (5, None, ("batch", 1, 128)),  # few: each thread reads its own row
        (70, None, ("batch", 3, 128)),  # small: four warps to 32 states
        (70, 1, ("batch", 3, 32)),
        (70, 2, ("batch", 3, 64)),
        (33, 3, ("batch", 2, 96)),
    ],
)
def test_the_size_of_a_batch_decides_how_it_is_launched(device, count, warps, launch):
    model = sl.zoo.quadruped()
    given = states(model, count)
    kernel = sl.compile(model, "forward_dynamics", target="cuda", warps=warps)
    assert agrees(kernel(*given), sl.compile(model, "forward_dynamics")(*given))
    assert device.launches == [launch]
    assert not kernel.status.any()


def test_large_batches_are_launched_with_one_warp_a_state_or_two(device):
    kernel = sl.compile(sl.zoo.quadruped(), "forward_dynamics", target="cuda")
    common = (False, False, False)
    assert kernel.codes.variant(common, 8448).warps == 4  # eight warps on each of 132 multiprocessors
    assert kernel.codes.variant(common, 8449).warps == kernel.codes.choice.large
    assert kernel.codes.variant(common, 31).are_few
    assert not kernel.codes.variant(common, 32).are_few


@pytest.mark.parametrize("count", [1, 31, 33])
def test_columns_and_rows_of_all_sizes_agree_with_the_cpu(device, count):
    model = sl.zoo.puma()
    given, kernel = states(model, count), sl.compile(model, "mass_matrix")
    rows = sl.compile(model, "mass_matrix", target="cuda")
    assert agrees(rows(given[0]), kernel(given[0]))
    columns = sl.compile(model, "mass_matrix", target="cuda", layout="columns")
    assert agrees(np.moveaxis(columns(given[0].T), -1, 0), kernel(given[0]))


@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize("count", [5, 70])
def test_an_answer_without_numbers_has_its_shape(device, count, layout):
    model = sl.zoo.quadruped()  # a tree: it has no closures
    q = states(model, count)[0]
    given = q.T if layout == "columns" else q
    error = sl.compile(model, "closure_error", target="cuda", layout=layout)(given)
    jacobian = sl.compile(model, "closure_jacobian", target="cuda", layout=layout)(given)
    assert error.shape == ((0, count) if layout == "columns" else (count, 0))
    assert jacobian.shape == ((0, model.nv, count) if layout == "columns" else (count, 0, model.nv))


@pytest.mark.slow
def test_batches_that_do_not_fit_the_memory_are_computed_in_parts(device, monkeypatch):
    model = sl.zoo.quadruped()
    given, kernel = states(model, 90), sl.compile(model, "forward_dynamics", target="cuda", warps=1)
    monkeypatch.setattr(kernel, "_fitting", lambda _: 40)
    assert agrees(kernel(*given), sl.compile(model, "forward_dynamics")(*given))
    assert device.launches == [("batch", 2, 32), ("batch", 2, 32), ("batch", 1, 32)]  # the last has 10 states


def test_columns_that_do_not_fit_the_memory_are_computed_in_parts(device, monkeypatch):
    model = sl.zoo.pendulum(2)
    q = states(model, 90)[0]
    kernel = sl.compile(model, "mass_matrix", target="cuda", layout="columns", warps=1)
    monkeypatch.setattr(kernel, "_fitting", lambda _: 40)
    found = kernel(q.T)
    assert agrees(np.moveaxis(found, -1, 0), sl.compile(model, "mass_matrix")(q))
    assert len(device.launches) == 3  # of 40, 40 and 10 states
    assert kernel.status.shape == (90,)


@pytest.mark.parametrize("count", [0, 1, 33])
@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_one_column_serves_all_states(device, count, shape):
    model = sl.zoo.pendulum(2)
    q, own = states(model, 33)[0][:count], model.parameters().values
    kernel = sl.compile(model, "mass_matrix", target="cuda", layout="columns", parameters="live")
    found = kernel(q.T, own.reshape(shape))
    assert found.shape == (2, 2, count)
    np.testing.assert_allclose(np.moveaxis(found, -1, 0), sl.compile(model, "mass_matrix")(q), rtol=1e-12)


@pytest.mark.slow
def test_one_row_for_all_states_is_copied_once(device):
    model = sl.zoo.quadruped()
    q, v, tau = states(model, 40)
    kernel = sl.compile(model, "forward_dynamics", target="cuda", parameters="live", warps=2)
    found = kernel(q, v, tau[0], model.parameters().values)
    expected = sl.compile(model, "forward_dynamics")(q, v, np.tile(tau[0], (40, 1)))
    assert agrees(found, expected, 1e-11)


@pytest.mark.slow
def test_states_without_an_answer_behave_as_on_the_cpu(device):
    model = sl.zoo.quadruped()
    given = states(model, 40)
    given[0][7, :4] = 1.0  # no unit quaternion
    given[0][9, 8] = 3e14  # beyond the fast sine: the CPU answers
    kernel, cpu = (sl.compile(model, "forward_dynamics", target=t) for t in ("cuda", "cpu"))
    with pytest.warns(StateWarning, match="1 of 40 states has no answer"):
        found = kernel(*given)
    with pytest.warns(StateWarning):
        expected = cpu(*given)
    assert kernel.status.nonzero()[0].tolist() == [7]
    assert np.isnan(found[7]).all()
    assert agrees(np.delete(found, 7, axis=0), np.delete(expected, 7, axis=0))
    with pytest.raises(StateError, match="quaternion"):
        kernel(*(x[7] for x in given))
