"""Arrays of other libraries that a kernel on the CPU reads with NumPy; a sentence for those that NumPy cannot read."""

from __future__ import annotations

from typing import Any

import numpy as np

from spanloop.errors import InputError
from spanloop.math.torch_duals import WITH_DERIVATIVES, is_tensor, is_traced, refuse_tangents


def as_numpy(where: str, name: str, x: Any, expected: str) -> np.ndarray:
    """x as a NumPy array, where it can be without a copy; InputError otherwise.

    An object on the CPU that has only DLPack is read, too. where, name: begin the sentence; expected: its shape.
    """
    if isinstance(x, np.ndarray):
        return np.asarray(x)
    try:
        refuse_tangents(where, name, x)
        found = np.asarray(x)
        return np.from_dlpack(x) if found.dtype.kind == "O" and hasattr(x, "__dlpack__") else found
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{where}: {name} {_fault(x, error)}; expected numbers of shape {expected}") from None


def _kind(x: Any) -> str:
    """ "is a torch.Tensor"."""
    return f"is a {type(x).__module__.partition('.')[0]}.{type(x).__name__}"


def _fault(x: Any, error: Exception) -> str:
    """What x is, and what to do with it: "is a torch.Tensor that requires grad (...)"."""
    if isinstance(x, list | tuple):
        return "cannot be made an array"
    if any(c.__name__ == "Tracer" and c.__module__.startswith("jax") for c in type(x).__mro__):
        return "is traced by JAX, as inside jit, grad or vmap (spanloop.jax has functions of models for these)"
    if is_tensor(x) and is_traced(x):
        return (
            "is traced by PyTorch, as inside torch.func.vmap, jvp or grad, or torch.compile (spanloop.torch has "
            "functions of models for these)"
        )
    if getattr(x, "requires_grad", False) is True:
        return f"{_kind(x)} that requires grad (give its .detach() for numbers alone; {WITH_DERIVATIVES})"
    if "bfloat16" in str(getattr(x, "dtype", "")):
        return f"{_kind(x)} of bfloat16, which NumPy does not have (give its .float() or .double())"
    if _is_elsewhere(x):
        return f"{_kind(x)} on another device (copy it to the CPU, or use target='cuda', which reads arrays on a GPU)"
    return f"{_kind(x)} that NumPy cannot read ({str(error).partition(chr(10))[0][:120]})"


def _is_elsewhere(x: Any) -> bool:
    """Whether an array is not on the CPU."""
    try:
        return int(x.__dlpack_device__()[0]) != 1
    except Exception:  # an object without DLPack, or one that lends nothing
        return hasattr(x, "__cuda_array_interface__")
