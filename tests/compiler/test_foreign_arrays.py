"""Arrays of other libraries in calls on the CPU: read where NumPy can, and otherwise a sentence says what to give."""

from __future__ import annotations

import re
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

import spanloop as sl
from spanloop.compiler.runtime.device_arrays import borrowed
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
    with pytest.raises(InputError, match=r"simulate: tau is a torch\.Tensor that requires grad"):
        sl.simulate(sl.zoo.puma(), tau=tensor.clone().requires_grad_(), duration=0.01)


ANY_ENTRY = {
    "kernel": ("gravity_torques: q is", lambda x: sl.compile(sl.zoo.puma(), "gravity_torques")(x)),
    "list": ("gravity_torques: q holds", lambda x: sl.compile(sl.zoo.puma(), "gravity_torques")(list(x))),
    "python": ("gravity_torques: q is", lambda x: sl.compile(sl.zoo.puma(), "gravity_torques", target="python")(x)),
    "gpu": ("q is", lambda x: borrowed("gravity_torques", "q", x)),
    "dynamics": ("integrate: delta is", lambda x: sl.Dynamics(sl.zoo.puma()).integrate(Q, x)),
    "force": (
        "bias: the force on 'link2' is",
        lambda x: sl.Dynamics(sl.zoo.puma()).bias(Q, Q, forces={"link2": x}),
    ),
    "weights": ("weights is", lambda x: sl.Dynamics(sl.zoo.puma()).vjp("gravity_torques", {"q": Q}, x)),
    "assemble": ("assemble: q is", lambda x: sl.Dynamics(sl.zoo.puma()).assemble(x)),
    "q of a run": ("simulate: q is", lambda x: sl.simulate(sl.zoo.puma(), x, duration=0.01)),
    "v of a run": ("simulate: v is", lambda x: sl.simulate(sl.zoo.puma(), Q, x, duration=0.01)),
    "q by name": ("simulate: q['joint1'] is", lambda x: sl.simulate(sl.zoo.puma(), {"joint1": x[0]}, duration=0.01)),
    "tau": ("simulate: tau is", lambda x: sl.simulate(sl.zoo.puma(), Q, tau=x, duration=0.01)),
    "tau by name": (
        "simulate: tau['joint1'] is",
        lambda x: sl.simulate(sl.zoo.puma(), Q, tau={"joint1": x[0]}, duration=0.01),
    ),
    "force of a run": (
        "simulate: the force on 'link2' is",
        lambda x: sl.simulate(sl.zoo.puma(), Q, forces={"link2": x}, duration=0.01),
    ),
}


@pytest.mark.parametrize("entry", ANY_ENTRY)
def test_duals_of_pytorch_are_refused_because_their_tangents_would_be_lost(entry):
    forward_ad = pytest.importorskip("torch.autograd.forward_ad")
    torch = pytest.importorskip("torch")
    begin, call = ANY_ENTRY[entry]
    numbers = torch.tensor(Q)
    words = r" a (torch\.Tensor|tensor) with a tangent of .*, which would be lost; .*spanloop\.torch has functions"
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(numbers, torch.ones_like(numbers))
        with pytest.raises(InputError, match=re.escape(begin) + words):
            call(dual)
        call(forward_ad.unpack_dual(dual).primal)


@pytest.mark.slow
def test_duals_cost_numpy_arrays_nothing_and_torch_is_not_imported():
    code = "import sys, numpy as np, spanloop as sl; sl.compile(sl.zoo.puma(), 'gravity_torques')([0.0] * 6); "
    done = subprocess.run(
        [sys.executable, "-c", code + "print('torch' in sys.modules)"], capture_output=True, text=True, timeout=300
    )
    assert done.stdout == "False\n", done.stderr


@pytest.mark.parametrize("transform", ["vmap", "grad", "jvp"])
def test_tensors_of_transforms_are_sent_to_the_bridge_of_pytorch(kernel, transform):
    torch = pytest.importorskip("torch")
    q = torch.tensor(Q)
    calls = {
        "vmap": lambda f: torch.func.vmap(f)(q[None]),
        "grad": lambda f: torch.func.grad(lambda q: f(q).sum())(q),
        "jvp": lambda f: torch.func.jvp(f, (q,), (q,)),
    }
    for f in (kernel, sl.Dynamics(sl.zoo.puma()).gravity_torques):
        with pytest.raises(InputError, match=r"q is traced by PyTorch, as inside .*spanloop\.torch has functions"):
            calls[transform](f)


def test_objects_are_named_with_what_makes_numbers_of_them(kernel):
    pandas = pytest.importorskip("pandas")
    for x, found in (
        (np.zeros(6, dtype=object), "int; expected real numbers of shape (..., 6). Try q.astype(float)"),
        (pandas.Series(Q, dtype=object), "float; expected real numbers of shape (..., 6). Try q.astype(float)"),
        ([Fraction(1, 2)] * 6, "Fraction; expected real numbers of shape (..., 6). Try numpy.array(q, float)"),
        (np.array([None] * 6), "NoneType; expected real numbers of shape (..., 6)"),
        (np.array([[1.0], [2.0, 3.0]], dtype=object), "list (ragged rows?); expected real numbers of shape (..., 6)"),
    ):
        with pytest.raises(InputError) as error:
            kernel(x)
        assert str(error.value) == f"gravity_torques: q holds Python objects of type {found}"


def test_tracers_of_jax_are_sent_to_its_bridge(kernel):
    jax = pytest.importorskip("jax")
    with pytest.raises(InputError, match=r"q is traced by JAX, as inside jit, .*spanloop\.jax has functions"):
        jax.jit(kernel)(Q.astype(np.float32))
