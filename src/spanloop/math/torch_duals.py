"""Duals of torch.autograd.forward_ad, numbers with a tangent: refused where NumPy would read the numbers alone.

PyTorch is not imported: whoever has a tensor has it loaded.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from spanloop.errors import InputError

WITH_DERIVATIVES = "spanloop.torch has functions of models with derivatives"


def refuse_tangents(where: str, name: str, x: Any) -> None:
    """Refuse duals, also in lists; where, name: begin the sentence."""
    if has_tangent(x):
        what = "holds a tensor" if isinstance(x, list | tuple) else "is a torch.Tensor"
        raise InputError(
            f"{where}: {name} {what} with a tangent of torch.autograd.forward_ad, which would be lost; expected "
            f"numbers without one. Try forward_ad.unpack_dual(x).primal; {WITH_DERIVATIVES}"
        )


def has_tangent(x: Any) -> bool:
    """Whether x, or an entry of a list, is a dual; at once False where no level of duals is entered."""
    forward = sys.modules.get("torch.autograd.forward_ad")
    if forward is None or getattr(forward, "_current_level", 0) < 0 or isinstance(x, np.ndarray):
        return False
    if isinstance(x, list | tuple):
        return any(map(has_tangent, x))
    return is_tensor(x) and not is_traced(x) and forward.unpack_dual(x).tangent is not None


def is_tensor(x: Any) -> bool:
    """Whether x is a tensor of PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_traced(tensor: Any) -> bool:
    """Whether a tensor is one of a transform or of a graph, without numbers of its own."""
    torch = sys.modules["torch"]
    if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return True
    is_wrapped = getattr(torch._C._functorch, "is_functorch_wrapped_tensor", None)
    return is_wrapped is not None and bool(is_wrapped(tensor))
