"""Arrays of other libraries in calls on the CPU: read where NumPy can, and otherwise a sentence says what to give."""

from __future__ import annotations

import re

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import InputError

Q = np.linspace(-0.4, 0.8, 6)


class OnlyDLPack:
    """An array of a library that knows nothing of NumPy."""

    def __init__(self, numbers: np.ndarray):
        self.numbers = numbers

    def __dlpack__(self, **how):
        return self.numbers.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.numbers.__dlpack_device__()


class OnAGpu(OnlyDLPack):
    def __dlpack__(self, **how):
        raise BufferError("it is on a GPU")

    def __dlpack_device__(self):
        return (2, 0)


@pytest.fixture(scope="module")
def kernel():
    return sl.compile(sl.zoo.puma(), "gravity_torques")


@pytest.mark.parametrize("q", [Q, np.stack([Q, -Q])])
def test_objects_that_have_only_dlpack_are_read(kernel, q):
    assert np.array_equal(kernel(OnlyDLPack(q)), kernel(q))
    assert np.array_equal(sl.Dynamics(sl.zoo.puma()).gravity_torques(OnlyDLPack(q)), kernel(q))
    assert np.array_equal(kernel(OnlyDLPack(q.astype(np.float32))), kernel(q.astype(np.float32)))


@pytest.mark.parametrize("library", ["torch", "jax.numpy"])
def test_the_answer_to_arrays_of_other_libraries_on_the_cpu_is_numpys(kernel, library):
    given = pytest.importorskip(library).asarray(Q)
    found = kernel(given)
    assert type(found) is np.ndarray
    assert np.array_equal(found, kernel(np.asarray(given)))


def refused(kernel, x) -> str:
    with pytest.raises(InputError, match=r"^gravity_torques: q ") as error:
        kernel(x)
    assert str(error.value).endswith("; expected numbers of shape (..., 6)")
    return str(error.value)


def test_what_is_on_a_gpu_is_named_with_what_to_do(kernel):
    words = r"q is a \w+.OnAGpu on another device (copy it to the CPU, or use target='cuda'"
    assert re.search(re.escape(words).replace(r"\\w\+", r"\w+"), refused(kernel, OnAGpu(Q)))


def test_tensors_that_numpy_cannot_read_are_named_with_what_to_do(kernel):
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(Q)
    words = "q is a torch.Tensor that requires grad (give its .detach() for numbers alone; spanloop.torch has functions"
    assert words in refused(kernel, tensor.clone().requires_grad_())
    assert "q is a torch.Tensor of bfloat16, which NumPy does not have" in refused(kernel, tensor.bfloat16())
    assert "q is a torch.Tensor that NumPy cannot read (" in refused(kernel, tensor.to_sparse())
    with pytest.raises(InputError, match=r"simulate: q is a torch\.Tensor that requires grad"):
        sl.simulate(sl.zoo.puma(), tensor.clone().requires_grad_(), duration=0.01)


def test_tracers_of_jax_are_sent_to_its_bridge(kernel):
    jax = pytest.importorskip("jax")
    with pytest.raises(InputError, match=r"q is traced by JAX, as inside jit, .*spanloop\.jax has functions"):
        jax.jit(kernel)(Q.astype(np.float32))
