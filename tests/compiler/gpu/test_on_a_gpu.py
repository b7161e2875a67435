"""What only a GPU can show: launches, rows in shared memory, streams, arrays of other libraries."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import spanloop as sl
from spanloop.compiler.runtime.gpu import driver
from spanloop.errors import DeviceError, InputError, StateError, StateWarning

pytestmark = pytest.mark.skipif(not driver.is_available(), reason="needs an NVIDIA GPU")


def states(model, start=None, count=1000, dtype="float64"):
    rng, robot = np.random.default_rng(2), sl.Dynamics(model)
    if start is None:
        q = np.array([model.random_state(seed=k)[0] for k in range(count)])
        v = rng.standard_normal((count, model.nv))
    else:
        q = np.tile(np.array(start, float), (count, 1))
        v = robot.project(q, rng.standard_normal((count, model.nv)))[1]
    return [x.astype(dtype) for x in (q, v, rng.standard_normal((count, model.nv)))]


MODELS = {
    "puma": lambda: (sl.zoo.puma(), None),
    "quadruped": lambda: (sl.zoo.quadruped(), None),
    "stewart": lambda: (sl.zoo.stewart(), sl.zoo.stewart_start()),
    "chain": lambda: (sl.zoo.chain(60), None),
}


@pytest.mark.parametrize("count", [1, 2, 31, 33, 1000])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", MODELS)
def test_numpy_arrays_agree_with_the_cpu_whatever_their_number(name, dtype, count):
    model, start = MODELS[name]()
    given = states(model, start, count, dtype)
    expected = sl.compile(model, "forward_dynamics", dtype=dtype)(*given)
    found = sl.compile(model, "forward_dynamics", dtype=dtype, target="cuda")(*given)
    bound = 1e-11 if dtype == "float64" else 2e-4 if name == "chain" else 1e-4
    assert np.abs(found - expected).max() <= bound * np.abs(expected).max()


@pytest.mark.parametrize("count", [1, 31, 33, 100, 5000])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("warps", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["quadruped", "stewart"])
def test_warps_agree_with_the_cpu_in_rows_and_columns(name, warps, dtype, count):
    model, start = MODELS[name]()
    given = states(model, start, count, dtype)
    expected = sl.compile(model, "forward_dynamics", dtype=dtype)(*given)
    bound = (1e-11 if dtype == "float64" else 1e-4) * np.abs(expected).max()
    kernel = sl.compile(model, "forward_dynamics", dtype=dtype, target="cuda", warps=warps)
    assert np.abs(kernel(*given) - expected).max() <= bound
    kernel = sl.compile(model, "forward_dynamics", dtype=dtype, target="cuda", warps=warps, layout="columns")
    assert np.abs(kernel(*(x.T for x in given)).T - expected).max() <= bound


@pytest.mark.parametrize("groups", [2, 4])
def test_groups_of_a_block_wait_for_their_own_warps_only(groups):
    model, start = MODELS["quadruped"]()
    given = states(model, start, 1000)
    kernel = sl.compile(model, "forward_dynamics", target="cuda", warps=2)
    kernel.codes.groups = groups
    expected = sl.compile(model, "forward_dynamics")(*given)
    assert np.abs(kernel(*given) - expected).max() <= 1e-11 * np.abs(expected).max()


def test_refused_states_of_several_warps_behave_as_on_the_cpu():
    model, start = MODELS["stewart"]()
    given = states(model, start, 70)
    given[0][40, 3] += 0.1
    kernel = sl.compile(model, "forward_dynamics", target="cuda", warps=3)
    with pytest.warns(StateWarning, match="1 of 70 states has no answer.*state 40"):
        found = kernel(*given)
    assert np.isnan(found[40]).all()
    assert np.isfinite(np.delete(found, 40, axis=0)).all()


def test_out_that_is_an_input_is_refused():
    cupy = pytest.importorskip("cupy")
    x = cupy.zeros((4, 6))
    with pytest.raises(InputError, match="out shares memory with tau"):
        sl.compile(sl.zoo.puma(), "forward_dynamics", target="cuda")(cupy.zeros((4, 6)), cupy.zeros((4, 6)), x, out=x)


def test_columns_are_the_transpose_of_rows():
    model, start = MODELS["stewart"]()
    given = states(model, start, 100)
    rows = sl.compile(model, "forward_dynamics", target="cuda")(*given)
    columns = sl.compile(model, "forward_dynamics", target="cuda", layout="columns")(*(x.T for x in given))
    assert np.abs(rows - columns.T).max() <= 1e-12 * np.abs(rows).max()


def test_one_state_and_one_row_for_all():
    model = sl.zoo.puma()
    q, v, tau = states(model, None, 50)
    kernel = sl.compile(model, "forward_dynamics", target="cuda", parameters="live")
    live = model.parameters().values
    assert kernel(q[0], v[0], tau[0], live).shape == (6,)
    expected = sl.compile(model, "forward_dynamics")(q, v, tau)
    assert np.abs(kernel(q, v, tau, live) - expected).max() <= 1e-11 * np.abs(expected).max()


def test_states_without_an_answer_behave_as_on_the_cpu():
    model, start = sl.zoo.four_bar(), np.array(sl.zoo.four_bar_start())
    kernel = sl.compile(model, "forward_dynamics", target="cuda")
    q = np.tile(start, (5, 1))
    q[2, 1] += 0.1
    with pytest.warns(StateWarning, match="1 of 5 states has no answer.*state 2"):
        found = kernel(q, np.zeros((5, 3)), np.zeros((5, 3)))
    assert np.isnan(found[2]).all()
    assert np.isfinite(found[[0, 1, 3, 4]]).all()
    with pytest.raises(StateError, match="closing"):
        kernel(q[2], np.zeros(3), np.zeros(3))


def test_angles_beyond_the_fast_sine_are_answered():
    model = sl.zoo.puma()
    q, v, tau = states(model, None, 4)
    q[1, 0] = 3e14
    found = sl.compile(model, "forward_dynamics", target="cuda")(q, v, tau)
    expected = sl.compile(model, "forward_dynamics")(q, v, tau)
    assert np.abs(found - expected).max() <= 1e-11 * np.abs(expected).max()


def test_cupy_arrays_come_back_as_cupy_arrays_on_their_stream():
    cupy = pytest.importorskip("cupy")
    model = sl.zoo.puma()
    given = states(model, None, 3000)
    kernel, expected = sl.compile(model, "forward_dynamics", target="cuda"), sl.Dynamics(model).forward_dynamics(*given)
    for stream in (cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True)):
        with stream:
            found = kernel(*map(cupy.asarray, given))
            assert isinstance(found, cupy.ndarray)
            assert float(abs(found - cupy.asarray(expected)).max()) <= 1e-11 * np.abs(expected).max()
    out = cupy.empty((3000, 6))
    pointer = out.data.ptr
    assert kernel(*map(cupy.asarray, given), out=out) is out
    assert out.data.ptr == pointer
    assert np.abs(out.get() - expected).max() <= 1e-11 * np.abs(expected).max()


def test_torch_tensors_come_back_as_tensors_on_their_stream():
    torch = pytest.importorskip("torch")
    model, start = MODELS["stewart"]()
    given = states(model, start, 3000, "float32")
    kernel = sl.compile(model, "forward_dynamics", target="cuda", dtype="float32")
    expected = sl.compile(model, "forward_dynamics", dtype="float32")(*given)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        slow = torch.randn(6000, 6000, device="cuda")
        for _ in range(10):  # the inputs are ready only when the stream has done this
            slow = slow @ slow / 100.0
        tensors = [torch.from_numpy(x).cuda() + 0.0 * slow[0, 0].nan_to_num(0, 0, 0) for x in given]
        found = kernel(*tensors)
        assert found.is_cuda
        assert found.dtype == torch.float32
        error = (found.cpu() - torch.from_numpy(expected)).abs().max().item()
    assert error <= 1e-4 * np.abs(expected).max()


def test_jax_arrays_come_back_as_jax_arrays():
    jax = pytest.importorskip("jax")
    model = sl.zoo.puma()
    given = states(model, None, 100, "float32")
    kernel = sl.compile(model, "forward_dynamics", target="cuda", dtype="float32")
    expected = sl.compile(model, "forward_dynamics", dtype="float32")(*given)
    arrays = [jax.numpy.asarray(x) for x in given]
    if arrays[0].devices().pop().platform != "gpu":
        pytest.skip("this JAX has no GPU")
    found = kernel(*arrays)
    assert isinstance(found, jax.Array)
    assert np.abs(np.asarray(found) - expected).max() <= 1e-4 * np.abs(expected).max()


def test_a_check_of_device_arrays_warns_and_the_status_says_which():
    cupy = pytest.importorskip("cupy")
    model, q = sl.zoo.four_bar(), np.tile(np.array(sl.zoo.four_bar_start()), (6, 1))
    q[4, 1] += 0.1
    kernel, zeros = sl.compile(model, "forward_dynamics", target="cuda"), cupy.zeros((6, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = kernel(cupy.asarray(q), zeros, zeros)
    assert bool(cupy.isnan(found[4]).all())
    assert cupy.asarray(kernel.status).get().nonzero()[0].tolist() == [4]
    with pytest.warns(StateWarning, match="state 4"):
        kernel(cupy.asarray(q), zeros, zeros, check=True)
    with pytest.raises(StateError):
        kernel(cupy.asarray(q[4]), zeros[0], zeros[0], check=True)


def test_arrays_that_do_not_fit_are_refused_with_a_sentence():
    cupy = pytest.importorskip("cupy")
    kernel = sl.compile(sl.zoo.puma(), "forward_dynamics", target="cuda")
    x = cupy.zeros((4, 6))
    with pytest.raises(InputError, match="v holds float32; expected float64"):
        kernel(x, x.astype("float32"), x)
    with pytest.raises(InputError, match="gaps"):
        kernel(cupy.zeros((6, 4)).T, x, x)
    with pytest.raises(InputError, match="batch axes do not fit"):
        kernel(x, cupy.zeros((5, 6)), x)
    with pytest.raises(InputError, match=r"shape \(4, 5\)"):
        kernel(cupy.zeros((4, 5)), x, x)
    with pytest.raises(InputError, match="out has shape"):
        kernel(x, x, x, out=cupy.empty((4, 5)))
    with pytest.raises(DeviceError, match="there is no GPU 9"):
        sl.compile(sl.zoo.puma(), "forward_dynamics", target="cuda", device=9)(np.zeros(6), np.zeros(6), np.zeros(6))


def test_derivatives_and_whole_robots_run_there():
    model = sl.zoo.quadruped()
    given = states(model, None, 20)
    cpu, gpu = sl.Dynamics(model), sl.Dynamics(model, target="cuda")
    a, b = cpu.derivatives(*given), gpu.derivatives(*given)
    assert np.abs(a.da_dq - b.da_dq).max() <= 1e-10 * np.abs(a.da_dq).max()
    assert np.abs(cpu.mass_matrix(given[0]) - gpu.mass_matrix(given[0])).max() <= 1e-11
