"""The primitive `spanloop`: a call of a kernel, and what jvp, grad, vmap, jit and shard_map do with it.

    answer (*batch, width), status (*batch)  =  spanloop(x0, x1, ..., call=...)

An input is (*batch, size), or (size,): one row for all states. The push forward ("jvp") is linear in its directions
and the pullback ("vjp") in its weights, and each is the other's transpose: so one definition gives forward and reverse
mode. Second derivatives are refused: the derivative kernels have no derivatives of their own.

Kernels differentiate by joint rates v, JAX by coordinates q. Where q̇ = N(q) v and N is not 1, the lowering of a
derivative has the step between them, so that a pullback whose weights are 0 is 0 even where N is not finite.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import jax
import jax.ffi
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.sharding import PartitionSpec

from spanloop.bridges.jax_kernels import Call, Kernels, refuse_platform
from spanloop.compiler.runtime.xla import scratch_size
from spanloop.errors import UnsupportedError
from spanloop.kernels.lowering import POSITIONS

MOST = 2**30  # states of one call on a GPU
spanloop_p = Primitive("spanloop")
spanloop_p.multiple_results = True


def evaluate(which: Call, *inputs: jax.Array) -> list[Any]:
    """Answer and status."""
    return spanloop_p.bind(*_equally_varying(inputs), call=which)


def batch_axes(inputs: Sequence[Any]) -> tuple[int, ...]:
    """The batch axes of inputs that are (*batch, size) or (size,)."""
    return next((tuple(x.shape[:-1]) for x in inputs if len(x.shape) > 1), ())


# ---- jit


@functools.lru_cache(maxsize=1024)
def _compiled(which: Call) -> Any:
    def compute(*inputs: jax.Array) -> tuple[Any, ...]:
        return tuple(spanloop_p.bind(*inputs, call=which))

    compute.__qualname__ = which.name  # jax_debug_nans names it
    setattr(compute, "_apply_primitive", True)  # noqa: B010  of one step: jax_debug_nans does not look inside
    return jax.jit(compute)


@spanloop_p.def_impl
def _evaluated(*inputs: Any, call: Call) -> list[Any]:
    with jax.disable_jit(False) if option("jax_disable_jit") else nullcontext():  # a kernel has no other form
        found = list(_compiled(call)(*inputs))
    if option("jax_debug_nans") and np.isnan(np.asarray(found[0])).any():
        raise FloatingPointError(f"invalid value (nan) encountered in {call.name}")
    return found


def option(name: str) -> bool:
    """Whether an option of JAX is on."""
    return bool(getattr(jax.config, name))


@spanloop_p.def_abstract_eval
def _shapes(*inputs: Any, call: Call) -> list[Any]:
    axes, width = batch_axes(inputs), call.width
    first = next((x for x in inputs if len(x.shape) > 1), inputs[0])
    return [_like(first, (*axes, width), first.dtype), _like(first, axes, np.dtype(np.uint8))]


def _like(aval: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """An abstract array that varies over the same axes of a mesh as another, and is not spread over explicit ones."""
    sharding = aval.sharding.update(spec=PartitionSpec(*(None for _ in shape)))
    return aval.update(shape=shape, dtype=dtype, weak_type=False, sharding=sharding)


def _lowered(ctx: Any, *operands: Any, call: Call, platform: str | None) -> Any:
    """XLA's call of the handler; pullbacks of states without an answer are 0 where their weights are."""
    refuse_platform(call.name, platform or ctx.module_context.platforms[0])
    assert platform is not None
    if call.by_coordinates:
        rule = mlir.lower_fun(functools.partial(_by_coordinates, call=call), multiple_results=True)
        return rule(ctx.replace(avals_in=[_like(x, x.shape, x.dtype) for x in ctx.avals_in]), *operands)
    answer, marks = ctx.avals_out
    axes = batch_axes(ctx.avals_in)
    count = math.prod(axes) if all(isinstance(n, int) for n in axes) else None  # None: XLA will know
    if platform == "cuda" and (count is None or count > MOST):
        raise UnsupportedError(f"{call.name}: batch axes {axes}; on GPUs they are numbers of up to {MOST} states")
    common = tuple(bool(axes) and len(x.shape) == 1 and count != 1 for x in ctx.avals_in)
    name, handler = call.target(platform, answer.dtype.name, count, common)
    scratch = scratch_size(handler, count or 0)
    more = [_like(marks, (scratch,), marks.dtype)] if scratch else []
    found, status, *_ = jax.ffi.ffi_lowering(name)(ctx.replace(avals_out=[answer, marks, *more]), *operands)
    if call.mode == "vjp":
        weights = ctx.avals_in[-1]
        weights = _like(weights, weights.shape, weights.dtype)
        rule = mlir.lower_fun(_zero_without_weights, multiple_results=False)
        (found,) = rule(ctx.replace(avals_in=[answer, weights], avals_out=[answer]), found, operands[-1])
    return [found, status]


def _zero_without_weights(found: jax.Array, weights: jax.Array) -> jax.Array:
    return jnp.where((weights == 0).all(-1, keepdims=True), jnp.zeros_like(found), found)


def _by_coordinates(*inputs: jax.Array, call: Call) -> list[jax.Array]:
    """A derivative by coordinates, from that by joint rates."""
    kernels, which = call.kernels, call.by_rates
    names, n = kernels.names, len(kernels.names)
    if call.mode == "jvp":
        given = zip(call.wrt, inputs[n:], strict=True)
        rates = [_rates(kernels, inputs[names.index(x)], d) if x in POSITIONS else d for x, d in given]
        return evaluate(which, *inputs[:n], *rates)
    found, status = evaluate(which, *inputs)
    pairs = ((x, found[..., place]) for x, place in which.places.items())
    parts = [_lifted(kernels, inputs[names.index(x)], g) if x in POSITIONS else g for x, g in pairs]
    return [_zero_without_weights(jnp.concatenate(parts, -1), inputs[-1]), status]


def _rates(kernels: Kernels, q: jax.Array, direction: jax.Array) -> jax.Array:
    """(NᵀN)⁻¹ Nᵀ d: the joint rates (nv) nearest to a direction of coordinates (nq), with q̇ = N(q) v."""
    n = _rate_matrix(kernels, q)
    return _solved(kernels, n, jnp.einsum("...ij,...i->...j", n, direction))


def _lifted(kernels: Kernels, q: jax.Array, by_rates: jax.Array) -> jax.Array:
    """N (NᵀN)⁻¹ g: of joint rates (nv) the derivative by coordinates (nq); the transpose of _rates."""
    n = _rate_matrix(kernels, q)
    return jnp.einsum("...ij,...j->...i", n, _solved(kernels, n, by_rates))


def _rate_matrix(kernels: Kernels, q: jax.Array) -> jax.Array:
    nq, nv = kernels.model.nq, kernels.model.nv
    n: jax.Array = evaluate(kernels.rate_matrix, q, jnp.zeros(nv, q.dtype))[0]
    return n.reshape(*n.shape[:-1], nq, nv)


def _solved(kernels: Kernels, n: jax.Array, x: jax.Array) -> jax.Array:
    """(NᵀN)⁻¹ x."""
    if kernels.has_orthogonal_rates:
        return x / (n * n).sum(-2)
    matrix = jnp.einsum("...ij,...ik->...jk", n, n)
    return jnp.linalg.solve(jnp.broadcast_to(matrix, (*x.shape, x.shape[-1])), x[..., None])[..., 0]


for _platform in ("cpu", "cuda"):
    mlir.register_lowering(spanloop_p, functools.partial(_lowered, platform=_platform), platform=_platform)
mlir.register_lowering(spanloop_p, functools.partial(_lowered, platform=None))


# ---- vmap


def _batched(inputs: Sequence[Any], dims: Sequence[int | None], *, call: Call) -> tuple[Any, Any]:
    """The axis of vmap becomes the first batch axis; what it does not reach and has one row keeps one."""
    size = next(x.shape[d] for x, d in zip(inputs, dims, strict=True) if d is not None)
    own = [x.shape if d is None else (*x.shape[:d], *x.shape[d + 1 :]) for x, d in zip(inputs, dims, strict=True)]
    axes = next((s[:-1] for s in own if len(s) > 1), ())
    given = []
    for x, d in zip(inputs, dims, strict=True):
        if d is not None:
            x = jnp.moveaxis(x, d, 0)
            x = x.reshape(size, *(1,) * (len(axes) + 2 - x.ndim), *x.shape[1:])
        is_shared = d is None and x.ndim == 1
        given.append(x if is_shared else jnp.broadcast_to(x, (size, *axes, x.shape[-1])))
    return spanloop_p.bind(*given, call=call), (0, 0)


batching.primitive_batchers[spanloop_p] = _batched


# ---- derivatives


def _differentiated(primals: Sequence[Any], tangents: Sequence[Any], *, call: Call) -> tuple[Any, Any]:
    answer, status = spanloop_p.bind(*primals, call=call)
    kernels, n = call.kernels, len(call.kernels.names)
    moved = [not isinstance(t, ad.Zero) for t in tangents]
    if call.mode is None:
        wrt = tuple(name for name, m in zip(kernels.names, moved, strict=True) if m)
        directions = [t for t, m in zip(tangents, moved, strict=True) if m]
        along = evaluate(kernels.call("jvp", wrt), *primals, *directions)[0]
    elif any(moved[:n]):
        raise UnsupportedError(
            f"{call.name}: second derivatives are not supported; the derivative of this function has none of its own. "
            "Try differences of first derivatives; for a derivative that a loss takes as a constant, "
            "jax.lax.stop_gradient of its inputs"
        )
    else:
        directions = [ad.instantiate_zeros(t) for t in tangents[n:]]
        along = spanloop_p.bind(*primals[:n], *directions, call=call)[0]
    return (answer, status), (along, ad.Zero(_tangent_type(status)))


def _tangent_type(x: Any) -> Any:
    aval = jax.typeof(x)
    return aval.to_tangent_aval() if hasattr(aval, "to_tangent_aval") else aval.at_least_vspace()


def _transposed(cotangents: Sequence[Any], *inputs: Any, call: Call) -> list[Any]:
    """The pullback of a push forward and the other way round; a cotangent of a row that states share is a sum."""
    kernels, n = call.kernels, len(call.kernels.names)
    bar, primals, linear = cotangents[0], inputs[:n], inputs[n:]
    if isinstance(bar, ad.Zero):
        return [None] * len(inputs)
    is_wanted = [ad.is_undefined_primal(x) for x in linear]
    if call.mode == "jvp":
        wrt = tuple(name for name, w in zip(call.wrt, is_wanted, strict=True) if w)
        which = kernels.call("vjp", wrt)
        found = spanloop_p.bind(*primals, bar, call=which)[0]
        parts = [found[..., which.places[name]] for name in wrt]
    else:
        bars = [bar[..., call.places[name]] for name in call.wrt]
        parts = [spanloop_p.bind(*primals, *bars, call=kernels.call("jvp", call.wrt))[0]]
    each = iter(parts)
    back = [_summed(next(each), x.aval) if w else None for x, w in zip(linear, is_wanted, strict=True)]
    return [None] * n + back


def _summed(x: Any, aval: Any) -> Any:
    """A cotangent in the shape of what it belongs to, and spread over the explicit axes of a mesh as that is."""
    x = x.sum(tuple(range(x.ndim - 1))) if x.ndim > len(aval.shape) else x
    return x if jax.typeof(x).sharding.spec == aval.sharding.spec else _reshard(x, aval.sharding)


ad.primitive_jvps[spanloop_p] = _differentiated
ad.primitive_transposes[spanloop_p] = _transposed


# ---- devices


def gathered(x: jax.Array) -> jax.Array:
    """The array on every device, if it is spread over explicit axes of a mesh."""
    spread = jax.typeof(x).sharding
    whole = PartitionSpec(*(None for _ in x.shape))
    return x if all(axes is None for axes in spread.spec) else _reshard(x, spread.update(spec=whole))


def _reshard(x: Any, sharding: Any) -> Any:
    if hasattr(jax.sharding, "reshard"):
        return jax.sharding.reshard(x, sharding)
    from jax.experimental.shard import reshard  # earlier versions of JAX

    return reshard(x, sharding)


def _equally_varying(inputs: Sequence[Any]) -> list[Any]:
    """Inputs that vary over the same axes of a mesh, inside shard_map; elsewhere the inputs."""
    axes = [_varying(x) for x in inputs]
    every = frozenset().union(*axes)
    return [x if not every - own else _varied(x, tuple(every - own)) for x, own in zip(inputs, axes, strict=True)]


def _varying(x: Any) -> frozenset[Any]:
    aval = jax.typeof(x)
    kind = getattr(aval, "manual_axis_type", None)  # later versions of JAX
    return getattr(aval, "vma", frozenset()) if kind is None else kind.varying


def _varied(x: Any, axes: tuple[Any, ...]) -> Any:
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(x, axes, to="varying")
    return getattr(jax.lax, "pvary")(x, axes)  # noqa: B009  earlier versions of JAX
