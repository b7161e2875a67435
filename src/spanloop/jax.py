"""`spanloop.jax`: functions of models on JAX arrays, for jit, vmap, grad, jvp, scan and shard_map (docs/jax.md).

import spanloop.jax
forward_dynamics = jax.jit(spanloop.jax.forward_dynamics(model))
a = forward_dynamics(q, v, tau)
"""

from __future__ import annotations

from typing import Any

try:
    import jax as _jax
except ImportError as error:
    raise ImportError(f"spanloop.jax needs JAX ({error}); try: pip install 'spanloop[jax]'") from None

from spanloop.bridges.versions import too_old

if _old := too_old("jax", _jax.__version__):
    raise ImportError(f"spanloop.jax {_old}")

from spanloop.bridges.call_inputs import check_options
from spanloop.bridges.jax_export import call_names
from spanloop.bridges.jax_function import JaxFunction
from spanloop.model import Model

__all__ = [
    "JaxFunction",
    "bias",
    "call_names",
    "energy",
    "forward_dynamics",
    "function",
    "gravity_torques",
    "inverse_dynamics",
    "jacobian",
    "mass_matrix",
    "pose",
]


_OTHERS = {  # options of sl.compile that JAX has no use for
    "threads": "XLA calls a kernel on one thread; jax.shard_map divides a batch among devices",
    "chain_threads": "XLA calls a kernel on one thread",
    "layout": "arrays of JAX have a row for every state",
    "warps": "it is chosen by the size of a batch",
}


def function(model: Model, name: str, **options: Any) -> JaxFunction:
    """Return a function of the catalog as a callable on arrays; options: those of sl.compile, as frame="link6"."""
    check_options(name, options, "arrays", "JAX", _OTHERS)
    return JaxFunction(model, name, options)


def forward_dynamics(model: Model, **options: Any) -> JaxFunction:
    """Return accelerations as a function of (q, v, tau)."""
    return function(model, "forward_dynamics", **options)


def inverse_dynamics(model: Model, **options: Any) -> JaxFunction:
    """Return torques of a tree as a function of (q, v, a)."""
    return function(model, "inverse_dynamics", **options)


def mass_matrix(model: Model, **options: Any) -> JaxFunction:
    """Return the mass matrix (..., nv, nv) as a function of q."""
    return function(model, "mass_matrix", **options)


def bias(model: Model, **options: Any) -> JaxFunction:
    """Return the torques that hold accelerations at 0 as a function of (q, v)."""
    return function(model, "bias", **options)


def gravity_torques(model: Model, **options: Any) -> JaxFunction:
    """Return the torques that hold the weight as a function of q."""
    return function(model, "gravity_torques", **options)


def energy(model: Model, **options: Any) -> JaxFunction:
    """Return kinetic and potential energy (..., 2) as a function of (q, v)."""
    return function(model, "energy", **options)


def pose(model: Model, frame: str, **options: Any) -> JaxFunction:
    """Return the pose of a frame as a function of q."""
    return function(model, "pose", frame=frame, **options)


def jacobian(model: Model, frame: str, **options: Any) -> JaxFunction:
    """Return the Jacobian of a frame as a function of q."""
    return function(model, "jacobian", frame=frame, **options)
