"""spanloop.torch on CUDA tensors: what only a GPU can show."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl
from spanloop.compiler.runtime.gpu import driver
from spanloop.errors import InputError

torch = pytest.importorskip("torch")
import spanloop.torch as bridge  # noqa: E402

pytestmark = pytest.mark.skipif(
    not (driver.is_available() and torch.cuda.is_available()), reason="needs an NVIDIA GPU and a CUDA build of PyTorch"
)


def states(name: str, count: int, dtype=torch.float64, seed: int = 1) -> tuple[sl.Model, list]:
    """A model and closed states q, v, tau as tensors (count, n) on the GPU."""
    model, rng = getattr(sl.zoo, name)(), np.random.default_rng(seed)
    if model.loops:
        q = np.tile(np.array(getattr(sl.zoo, f"{name}_start")(), float), (count, 1))
        v = sl.Dynamics(model).project(q, rng.standard_normal((count, model.nv)))[1]
    else:
        q = np.array([model.random_state(seed=seed + k)[0] for k in range(count)])
        v = rng.standard_normal((count, model.nv))
    return model, [torch.tensor(x, dtype=dtype, device="cuda") for x in (q, v, rng.standard_normal((count, model.nv)))]


def close(a, b, bound: float) -> bool:
    return float((a.cpu() - b.cpu()).abs().max()) <= bound * float(b.abs().max())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", ["puma", "quadruped", "stewart"])
@pytest.mark.parametrize("count", [1, 31, 1000, 40_000])
def test_values_and_gradients_agree_with_the_cpu(name, dtype, count):
    model, given = states(name, count, dtype)
    f = bridge.forward_dynamics(model)
    bound = 1e-10 if dtype == torch.float64 else 1e-3
    on_gpu, on_cpu = ([x.to(d, copy=True).requires_grad_() for x in given] for d in ("cuda", "cpu"))
    a, b = f(*on_gpu), f(*on_cpu)
    assert a.is_cuda
    assert close(a.detach(), b.detach(), bound)
    a.sum().backward()
    b.sum().backward()
    assert close(on_gpu[2].grad, on_cpu[2].grad, bound)


@pytest.mark.parametrize("name", ["four_bar", "puma", "stewart"])
def test_gradcheck_by_tau(name):
    model, (q, v, tau) = states(name, 2)
    f = bridge.forward_dynamics(model)
    assert torch.autograd.gradcheck(lambda x: f(q, v, x), (tau.requires_grad_(),), nondet_tol=1e-12)


def test_gradcheck_of_a_tree_by_all_inputs():
    model, given = states("puma", 2)
    assert torch.autograd.gradcheck(bridge.forward_dynamics(model), [x.requires_grad_() for x in given])


def test_another_stream_computes_after_what_is_in_its_queue():
    model, given = states("stewart", 5000, torch.float32)
    f = bridge.forward_dynamics(model)
    expected = f(*(x.cpu() for x in given))
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        slow = torch.randn(6000, 6000, device="cuda")
        for _ in range(10):  # the inputs are ready only when the stream has done this
            slow = slow @ slow / 100.0
        late = [(x + 0.0 * slow[0, 0].nan_to_num(0, 0, 0)).requires_grad_() for x in given]
        found = f(*late)
        gradient = torch.autograd.grad(found.sum(), late[2])[0]
    side.synchronize()
    assert close(found.detach(), expected, 1e-3)
    assert torch.isfinite(gradient).all()


def test_transforms_of_torch_func():
    model, given = states("quadruped", 6)
    f = bridge.forward_dynamics(model)
    direct = f(*given)
    assert close(torch.func.vmap(f)(*given), direct, 1e-12)
    one = [x[0] for x in given]
    backward = torch.func.jacrev(f, argnums=2)(*one)
    assert close(torch.func.jacfwd(f, argnums=2)(*one), backward, 1e-10)


def test_a_compiled_function_is_one_operator():
    model, given = states("puma", 100)
    f = bridge.forward_dynamics(model)
    compiled = torch.compile(lambda q, v, tau: f(q, v, 2.0 * tau).square().sum(), backend="aot_eager")
    tau = given[2].requires_grad_()
    compiled(*given).backward()
    expected = torch.autograd.grad(f(given[0], given[1], 2.0 * tau).square().sum(), tau)[0]
    assert close(tau.grad, expected, 1e-12)


def test_states_without_an_answer_are_nan_and_nothing_waits_for_them():
    model, (q, v, tau) = states("four_bar", 6)
    q[4, 1] += 0.1
    f = bridge.forward_dynamics(model)
    tau.requires_grad_()
    answer, has_answer = f.with_status(q, v, tau)
    assert has_answer.tolist() == [True] * 4 + [False, True]
    torch.where(has_answer[:, None], answer, 0.0).sum().backward()
    assert torch.isfinite(tau.grad).all()
    assert torch.isnan(f(q, v, tau.detach())[4]).all()
    assert torch.isnan(f(q[4], v[4], tau[4].detach())).all()  # on the CPU this raises; here the answer is not known yet


def test_batch_axes_broadcast_and_parameters_are_one_row():
    model, (q, v, tau) = states("puma", 12)
    f = bridge.forward_dynamics(model, parameters="live")
    q, v = q.reshape(4, 3, -1), v.reshape(4, 3, -1)[:1]
    mass = torch.tensor(6.0, dtype=torch.float64, device="cuda", requires_grad=True)
    found = f(q, v, tau[0], {"link3.mass": mass})
    assert found.shape == (4, 3, 6)
    found.sum().backward()
    on_cpu = mass.detach().cpu().requires_grad_()
    f(q.cpu(), v.cpu(), tau[0].cpu(), {"link3.mass": on_cpu}).sum().backward()
    assert abs(float(mass.grad) - float(on_cpu.grad)) <= 1e-9 * abs(float(on_cpu.grad))


def test_tensors_on_different_devices_are_refused():
    model, (q, v, tau) = states("puma", 3)
    with pytest.raises(InputError, match="expected one dtype and one device"):
        bridge.forward_dynamics(model)(q, v.cpu(), tau)
