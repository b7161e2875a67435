"""The kernels behind a function on JAX arrays: compiled when XLA first needs them, and registered with it by name."""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
import threading
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.ffi

from spanloop.bridges.call_inputs import moves_freely, refuse_switches
from spanloop.compiler.runtime.xla import Handler, cpu_handler, gpu_handler
from spanloop.errors import UnsupportedError
from spanloop.joints import General
from spanloop.kernels.compile import compile
from spanloop.kernels.lowering import POSITIONS
from spanloop.model import Model

_lock = threading.RLock()
_registered: dict[str, Handler] = {}  # by the name that XLA knows; what XLA may call is never unloaded


@dataclass(frozen=True)
class Call:
    """A function of a model or its derivative as XLA calls it; two calls are equal if they compute the same.

    mode: None, "jvp", "vjp" or "jacobian", by the inputs wrt. Inputs are (..., size), the answer (..., width).
    by_coordinates: derivatives by q are by its nq coordinates; kernels have them by the nv joint rates.
    """

    key: str
    mode: str | None
    wrt: tuple[str, ...]
    kernels: Kernels = field(compare=False, repr=False)
    by_coordinates: bool = False

    @property
    def name(self) -> str:
        """Of the function."""
        return self.kernels.name

    @functools.cached_property
    def width(self) -> int:
        """How many numbers the answer has."""
        if self.mode == "vjp":
            return sum(s.stop - s.start for s in self.places.values())
        return math.prod(self.definition.signature()[1])

    @functools.cached_property
    def places(self) -> dict[str, slice]:
        """Where a pullback has the derivatives by each input of wrt."""
        if not self.by_coordinates:
            return dict(self.definition.places)
        sizes = dict(zip(self.kernels.names, self.kernels.sizes, strict=True))
        ends = list(itertools.accumulate(sizes[n] for n in self.wrt))
        return {n: slice(end - sizes[n], end) for n, end in zip(self.wrt, ends, strict=True)}

    @property
    def by_rates(self) -> Call:
        """The same derivative as kernels have it."""
        return replace(self, by_coordinates=False)

    @functools.cached_property
    def definition(self) -> Any:
        """What the kernel computes."""
        return self.kernels.compiled(self, target="python").definition

    def target(self, platform: str, dtype: str, count: int | None, common: tuple[bool, ...]) -> tuple[str, Handler]:
        """The name of the handler that XLA shall call, and the handler.

        count: states, None if XLA will know; common: which inputs have one row for all of them.
        """
        devices = _cuda_devices() if platform == "cuda" else ()
        which = f"{common} {count}" if devices else "one" if count == 1 else "many"
        parts = (self.key, str(self.mode), str(self.wrt), dtype, which)
        name = f"spanloop.{self.name}.{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:40]}"
        with _lock:
            if (known := f"{platform}:{name}") not in _registered:
                if devices:
                    compiled = [self.kernels.compiled(self, target="cuda", dtype=dtype, device=k) for k in devices]
                    handler = gpu_handler(compiled, common, count or 0)
                else:
                    handler = cpu_handler(self.kernels.compiled(self, dtype=dtype), count == 1)
                capsule = jax.ffi.pycapsule(handler.address)
                jax.ffi.register_ffi_target(name, capsule, platform="CUDA" if devices else "cpu")
                _registered[known] = handler
            return name, _registered[known]


class Kernels:
    """One function of one model and its derivatives, for every dtype and device that it is called with."""

    def __init__(self, model: Model, name: str, options: dict[str, Any]):
        self.model, self.name, self.options = model, name, options
        first = compile(model, name, **options, target="python")  # also checks the options
        self.names = tuple(n for n, _ in first.inputs)
        self.sizes = tuple(k for _, k in first.inputs)
        self.shape: tuple[int, ...] = first.shape
        self.moves_freely = moves_freely(model)
        self.has_orthogonal_rates = not any(isinstance(j.kind, General) for j in model.joints)
        self._key: str = first.definition.key
        self._calls: dict[tuple[str | None, tuple[str, ...]], Call] = {}

    def call(self, mode: str | None = None, wrt: tuple[str, ...] = ()) -> Call:
        """The function itself, or a derivative by inputs, coordinates among them."""
        refuse_switches(self.name, wrt, self.names)
        lifts = mode in ("jvp", "vjp") and self.moves_freely and any(n in POSITIONS for n in wrt)
        return self._calls.setdefault((mode, wrt), Call(self._key, mode, wrt, self, lifts))

    def compiled(self, call: Call, **more: Any) -> Any:
        """The kernel of a call."""
        derivative: dict[str, Any] = {"derivative": call.mode, "wrt": call.wrt} if call.mode else {}
        return compile(self.model, self.name, **self.options, **derivative, **more)

    @functools.cached_property
    def rate_matrix(self) -> Call:
        """N (nq · nv numbers) of q and zeros (nv): q̇ = N(q) v."""
        return Kernels(self.model, "integrate", {}).call("jacobian", ("delta",))


def refuse_platform(name: str, platform: str) -> None:
    """UnsupportedError for devices that kernels are not compiled for."""
    if platform not in ("cpu", "cuda"):
        raise UnsupportedError(
            f"{name}: arrays on {platform!r} are not supported; expected arrays on the CPU or on NVIDIA GPUs. "
            "Try jax.device_put(x, jax.devices('cpu')[0])"
        )


def _cuda_devices() -> tuple[int, ...]:
    """Numbers of the GPUs that JAX uses in this process; the first where it uses none (it compiles for others)."""
    try:
        return tuple(d.local_hardware_id for d in jax.local_devices(backend="cuda"))
    except RuntimeError:
        return (0,)
