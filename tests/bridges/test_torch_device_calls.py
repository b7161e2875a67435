"""What a call on CUDA tensors hands to the kernel, seen without a GPU: a kernel that computes where it is told to.

Tensors are in the memory of the CPU here; the kernel in the place of the GPU's reads and writes at the addresses that
it gets, so that a wrong address, row or count is a wrong answer.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
from types import SimpleNamespace

import numpy as np
import pytest

import spanloop as sl
from spanloop.compiler.runtime.gpu import driver
from spanloop.compiler.runtime.gpu.driver import Function
from spanloop.compiler.runtime.gpu.kernel import GpuKernel

torch = pytest.importorskip("torch")
import spanloop.torch as bridge  # noqa: E402
from spanloop.bridges import torch_kernels  # noqa: E402
from spanloop.compiler.runtime.gpu import tensors  # noqa: E402

STREAM = 4711


class KernelAtAddresses:
    """A kernel in the place of a GPU's: rows at addresses in, rows at an address out, a byte of status a state."""

    def __init__(self, kernel, seen: list):
        self.kernel, self.seen = kernel, seen
        self.inputs, self.shape, self.name, self.dtype = kernel.inputs, kernel.shape, kernel.name, kernel.dtype
        self.definition = kernel.definition

    def start(self, pointers, common, out, status, n, stream):
        given = [
            self._array(p, (k,) if c else (n, k)) for p, (_, k), c in zip(pointers, self.inputs, common, strict=True)
        ]
        self._array(out, (n, *self.shape))[:] = self.kernel(*given)
        np.ctypeslib.as_array((ctypes.c_uint8 * n).from_address(status))[:] = 0
        self.seen.append((common, n, stream))

    def _array(self, address, shape):
        kind = ctypes.c_double if self.dtype == np.float64 else ctypes.c_float
        return np.ctypeslib.as_array((kind * math.prod(shape)).from_address(address)).reshape(shape)


@pytest.fixture
def seen(monkeypatch):
    """Calls of spanloop.torch go the way of CUDA tensors; (common, n, stream) of each launch."""
    found: list = []
    compiled = torch_kernels.kernel_for
    monkeypatch.setattr(torch_kernels, "kernel_for", lambda *a: KernelAtAddresses(compiled(*a), found))
    cuda = SimpleNamespace(
        current_stream=lambda _: SimpleNamespace(cuda_stream=STREAM),
        current_device=lambda: 0,
        device=lambda _: contextlib.nullcontext(),
    )
    given = SimpleNamespace(empty=torch.empty, uint8=torch.uint8, cuda=cuda)

    def called(kernel, inputs, shape):
        leading = torch_kernels._leading(kernel, inputs)
        rows = [torch_kernels._rows(x.detach(), leading) for x in inputs]
        return tensors.answered(kernel, given, rows, leading)[0].reshape(*leading, *shape)

    monkeypatch.setattr(torch_kernels, "called", called)
    return found


def states(model, *leading, seed=1):
    rng = np.random.default_rng(seed)
    pairs = [model.random_state(seed=seed + k) for k in range(math.prod(leading))]
    q, v = (torch.tensor(np.array([p[k] for p in pairs])).reshape(*leading, -1) for k in range(2))
    return q, v, torch.tensor(rng.normal(size=(*leading, model.nv)))


def test_rows_and_the_current_stream_reach_the_kernel(seen):
    model = sl.zoo.puma()
    q, v, tau = states(model, 5)
    found = bridge.forward_dynamics(model)(q, v, tau)
    assert np.array_equal(found.numpy(), sl.compile(model, "forward_dynamics")(q.numpy(), v.numpy(), tau.numpy()))
    assert seen == [((False, False, False), 5, STREAM)]


def test_batch_axes_are_expanded_and_one_row_serves_all_states(seen):
    model = sl.zoo.puma()
    q, v, tau = states(model, 4, 3)
    f, kernel = bridge.forward_dynamics(model), sl.compile(model, "forward_dynamics")
    found = f(q, v[:1], tau[0, 0])
    expected = kernel(q.numpy(), np.broadcast_to(v[:1].numpy(), v.shape), tau[0, 0].numpy())
    assert np.array_equal(found.numpy(), expected)
    assert seen == [((False, False, True), 12, STREAM)]
    turned = f(q.transpose(0, 1), v.transpose(0, 1), tau.transpose(0, 1))  # rows that are not one after the other
    assert np.array_equal(turned.transpose(0, 1).numpy(), kernel(q.numpy(), v.numpy(), tau.numpy()))


def test_one_state_and_no_state(seen):
    model = sl.zoo.puma()
    q, v, tau = states(model, 2)
    f = bridge.forward_dynamics(model)
    assert f(q[0], v[0], tau[0]).shape == (6,)
    assert seen.pop()[0] == (False, False, False)
    assert f(q[:0], v[:0], tau[:0]).shape == (0, 6)
    assert not seen


@pytest.mark.parametrize("make", [sl.zoo.puma, sl.zoo.quadruped])
def test_gradients_and_transforms_agree_with_the_cpu(seen, make, monkeypatch):
    model = make()
    given = [x.requires_grad_() for x in states(model, 3)]
    f = bridge.forward_dynamics(model)
    loss = f(*given).square().sum()
    found = torch.autograd.grad(loss, given)
    mapped = torch.func.vmap(torch.func.grad(lambda *x: f(*x).square().sum(), argnums=(0, 1, 2)))(*given)
    assert len(seen) > 2
    monkeypatch.undo()
    expected = torch.autograd.grad(bridge.forward_dynamics(model)(*given).square().sum(), given)
    for a, b, c in zip(found, mapped, expected, strict=True):
        assert torch.allclose(a, c, rtol=1e-12, atol=1e-12 * float(c.abs().max()))
        assert torch.allclose(b, c, rtol=1e-12, atol=1e-12 * float(c.abs().max()))


def test_with_status_says_which_states_have_an_answer(seen):
    model = sl.zoo.four_bar()
    q = torch.tensor(sl.zoo.four_bar_start()).repeat(3, 1)
    q[1, 1] += 0.1
    zero = torch.zeros(3, 3, dtype=torch.float64)
    answer, has_answer = bridge.forward_dynamics(model).with_status(q, zero, zero)
    assert has_answer.tolist() == [True, False, True]
    assert torch.isnan(answer[1]).all()
    assert seen == [((False, False, False), 3, STREAM)]


def test_the_kernel_of_cuda_tensors_is_a_gpus():
    kernel = torch_kernels.kernel_for(
        sl.zoo.puma(), "forward_dynamics", {"derivative": "vjp"}, torch.float32, torch.device("cuda", 1)
    )
    assert isinstance(kernel, GpuKernel)
    assert kernel.codes.number == 1
    assert kernel.dtype == np.float32


def test_only_tensors_that_fit_are_read_as_they_are():
    kernel = torch_kernels.kernel_for(sl.zoo.puma(), "forward_dynamics", {}, torch.float32, torch.device("cuda", 0))

    class Tensor(torch.Tensor):
        device = torch.device("cuda", 0)

    def on_gpu(*shape, dtype=torch.float32):
        return torch.zeros(*shape, dtype=dtype).as_subclass(Tensor)

    x, row = on_gpu(4, 3, 6), on_gpu(6)
    assert tensors.batch_axes(kernel, [x, x, row]) == (4, 3)
    assert tensors.batch_axes(kernel, [row, row, row]) == ()
    for other in (
        torch.zeros(4, 3, 6),  # on the CPU
        np.zeros((4, 3, 6), np.float32),
        on_gpu(4, 3, 6, dtype=torch.float64),
        on_gpu(4, 3, 5),
        on_gpu(5, 3, 6),
        on_gpu(3, 4, 6).transpose(0, 1),
        on_gpu(4, 3, 6).requires_grad_(),
    ):
        assert tensors.batch_axes(kernel, [x, x, other]) is None
    assert tensors.batch_axes(kernel, [np.zeros(6)] * 3) is None
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(on_gpu(4, 3, 6), on_gpu(4, 3, 6))
        assert tensors.batch_axes(kernel, [x, x, dual]) is None


def test_packed_arguments_reach_the_driver_as_they_are(monkeypatch):
    kinds = [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3]
    seen = []

    def launch(*given):
        extra = ctypes.cast(given[10], ctypes.POINTER(ctypes.c_uint64))
        size = ctypes.c_size_t.from_address(extra[3]).value
        seen.append((given[0], given[1], given[4], given[7], given[8], ctypes.string_at(extra[1], size)))
        assert (extra[0], extra[2], extra[4]) == (1, 2, 0)
        return 0

    entered = []
    launchers = ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(launch), entered.append
    monkeypatch.setattr(driver, "_launchers", lambda: launchers)
    module = SimpleNamespace(device=SimpleNamespace(context=99))
    Function(module, 7, 1024).launch_packed(3, 64, b"\0" * 8 + b"abcd", 5)
    assert entered == [99]
    assert seen == [(7, 3, 64, 1024, 5, b"\0" * 8 + b"abcd")]
