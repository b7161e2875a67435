"""What only a GPU can show of functions on JAX arrays: launches on XLA's stream, memory, gradients there."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl
from spanloop.compiler.runtime.gpu import driver

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

import spanloop.jax as bridge  # noqa: E402


def devices() -> list:
    try:
        return jax.devices("cuda") if driver.is_available() else []
    except RuntimeError:
        return []


pytestmark = pytest.mark.skipif(not devices(), reason="needs an NVIDIA GPU, and JAX with CUDA")
BOUNDS = {"float64": 1e-11, "float32": 1e-4}


@pytest.fixture(autouse=True)
def _double_precision():
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


def states(model: sl.Model, count: int, start=None, dtype: str = "float64") -> list[np.ndarray]:
    rng = np.random.default_rng(2)
    q = np.array([model.random_state(seed=k)[0] for k in range(count)]) if start is None else np.tile(start, (count, 1))
    v = rng.standard_normal((count, model.nv))
    if start is not None:
        v = sl.Dynamics(model).project(q, v)[1]
    return [x.astype(dtype) for x in (q, v, rng.standard_normal((count, model.nv)))]


def there(arrays) -> list:
    return [jax.device_put(x, devices()[0]) for x in arrays]


def is_near(found, expected, bound: float) -> bool:
    return bool(np.abs(np.asarray(found) - expected).max() <= bound * np.abs(expected).max())


MODELS = {
    "puma": lambda: (sl.zoo.puma(), None),
    "quadruped": lambda: (sl.zoo.quadruped(), None),
    "stewart": lambda: (sl.zoo.stewart(), np.array(sl.zoo.stewart_start())),
    "chain": lambda: (sl.zoo.chain(60), None),  # loops over links: scratch memory
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", MODELS)
def test_values_agree_with_the_cpu_whatever_the_number_of_states(name, dtype):
    model, start = MODELS[name]()
    f, kernel = jax.jit(bridge.forward_dynamics(model)), sl.compile(model, "forward_dynamics", dtype=dtype)
    for count in (1, 2, 33, 1000):
        given = states(model, count, start, dtype)
        found = f(*there(given))
        assert found.devices() == {devices()[0]}
        assert is_near(found, kernel(*given), BOUNDS[dtype] * (2 if name == "chain" else 1))
        one = f(*there(x[0] for x in given))
        assert is_near(one, kernel(*(x[0] for x in given)), BOUNDS[dtype] * (2 if name == "chain" else 1))


def test_a_row_that_states_share_and_no_states_at_all():
    model = sl.zoo.puma()
    q, v, tau = states(model, 500)
    f = jax.jit(bridge.forward_dynamics(model, parameters="live"))
    found = f(*there((q, v[0], tau, model.parameters().values)))
    assert is_near(found, sl.compile(model, "forward_dynamics")(q, v[0], tau), 1e-11)
    assert f(*there((q[:0], v[0], tau[:0], model.parameters().values))).shape == (0, 6)


@pytest.mark.parametrize("name", ["puma", "quadruped", "stewart"])
def test_gradients_agree_with_the_cpu(name):
    model, start = MODELS[name]()
    given = states(model, 300, start)
    gradient = jax.jit(jax.grad(lambda *x: (bridge.forward_dynamics(model)(*x) ** 2).sum(), argnums=(0, 1, 2)))
    with jax.default_device(jax.devices("cpu")[0]):
        expected = gradient(*map(jnp.asarray, given))
    for found, by in zip(gradient(*there(given)), expected, strict=True):
        assert is_near(found, np.asarray(by), 1e-9)


def test_forward_mode_vmap_and_jacobians():
    model = sl.zoo.puma()
    given = states(model, 20)
    f = bridge.forward_dynamics(model)
    expected = sl.Dynamics(model).derivatives(*given).da_dq
    for jacobian in (jax.jacrev, jax.jacfwd):
        assert is_near(jax.jit(jax.vmap(jacobian(f)))(*there(given)), expected, 1e-10)


def test_states_without_an_answer_are_nan_and_leave_gradients_of_zero():
    model = sl.zoo.puma()
    f, (q, v, tau) = bridge.forward_dynamics(model), states(model, 100)
    q[17, 0] = np.nan
    q, v, tau = there((q, v, tau))
    answer, has_answer = jax.jit(f.with_status)(q, v, tau)
    assert np.flatnonzero(~np.asarray(has_answer)).tolist() == [17]
    assert np.isnan(np.asarray(answer[17])).all()
    loss = lambda tau: jnp.where(has_answer[:, None], f(q, v, tau), 0.0).sum()  # noqa: E731
    found = np.asarray(jax.jit(jax.grad(loss))(tau))
    assert np.isfinite(found).all()
    assert (found[17] == 0).all()


def test_a_scan_and_its_gradient_agree_with_the_cpu():
    model, step = sl.zoo.puma(), 1e-3
    f, given = bridge.forward_dynamics(model), states(model, 4096)

    def end(q, v, tau):
        def advance(state, _):
            q, v = state
            v = v + step * f(q, v, tau)
            return (q + step * v, v), None

        return jax.lax.scan(advance, (q, v), None, length=50)[0][0]

    both = jax.jit(lambda *x: (end(*x), jax.grad(lambda *y: end(*y).sum(), argnums=2)(*x)))
    with jax.default_device(jax.devices("cpu")[0]):
        expected = both(*map(jnp.asarray, given))
    for found, cpu in zip(both(*there(given)), expected, strict=True):
        assert is_near(found, np.asarray(cpu), 1e-9)


@pytest.mark.skipif(len(devices()) < 2, reason="needs two GPUs")
def test_every_gpu_runs_its_own_copy():
    model = sl.zoo.puma()
    given, f = states(model, 100), jax.jit(bridge.forward_dynamics(model))
    expected = sl.compile(model, "forward_dynamics")(*given)
    for device in devices():
        found = f(*(jax.device_put(x, device) for x in given))
        assert found.devices() == {device}
        assert is_near(found, expected, 1e-11)
