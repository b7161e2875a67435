"""`spanloop.torch`: functions of models on PyTorch tensors, with gradients (docs/torch.md).

import spanloop.torch
forward_dynamics = spanloop.torch.forward_dynamics(model)
a = forward_dynamics(q, v, tau)
"""

from __future__ import annotations

from typing import Any

try:
    import torch as _torch
except ImportError as error:
    raise ImportError(f"spanloop.torch needs PyTorch ({error}); try: pip install 'spanloop[torch]'") from None

from spanloop.bridges.versions import too_old

if _old := too_old("torch", _torch.__version__):
    raise ImportError(f"spanloop.torch {_old}")

from spanloop.bridges.call_inputs import check_options
from spanloop.bridges.torch_function import TorchFunction
from spanloop.model import Model

__all__ = [
    "TorchFunction",
    "bias",
    "energy",
    "forward_dynamics",
    "function",
    "gravity_torques",
    "inverse_dynamics",
    "jacobian",
    "mass_matrix",
    "pose",
]


_OTHERS = {  # options of sl.compile that PyTorch has no use for
    "layout": "tensors have a row for every state",
    "warps": "it is chosen by the size of a batch",
}


def function(model: Model, name: str, **options: Any) -> TorchFunction:
    """Return a function of the catalog as a callable on tensors; options: those of sl.compile, as frame="link6"."""
    check_options(name, options, "tensors", "PyTorch", _OTHERS)
    return TorchFunction(model, name, options)


def forward_dynamics(model: Model, **options: Any) -> TorchFunction:
    """Return accelerations as a function of (q, v, tau)."""
    return function(model, "forward_dynamics", **options)


def inverse_dynamics(model: Model, **options: Any) -> TorchFunction:
    """Return torques of a tree as a function of (q, v, a)."""
    return function(model, "inverse_dynamics", **options)


def mass_matrix(model: Model, **options: Any) -> TorchFunction:
    """Return the mass matrix (..., nv, nv) as a function of q."""
    return function(model, "mass_matrix", **options)


def bias(model: Model, **options: Any) -> TorchFunction:
    """Return the torques that hold accelerations at 0 as a function of (q, v)."""
    return function(model, "bias", **options)


def gravity_torques(model: Model, **options: Any) -> TorchFunction:
    """Return the torques that hold the weight as a function of q."""
    return function(model, "gravity_torques", **options)


def energy(model: Model, **options: Any) -> TorchFunction:
    """Return kinetic and potential energy (..., 2) as a function of (q, v)."""
    return function(model, "energy", **options)


def pose(model: Model, frame: str, **options: Any) -> TorchFunction:
    """Return the pose of a frame as a function of q."""
    return function(model, "pose", frame=frame, **options)


def jacobian(model: Model, frame: str, **options: Any) -> TorchFunction:
    """Return the Jacobian of a frame as a function of q."""
    return function(model, "jacobian", frame=frame, **options)
