"""The code of one function on an NVIDIA GPU: LLVM text, machine code in the cache, loaded when it is first needed.

A function has several codes: for inputs with one row for all states, for one or several warps a state, for few states.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import llvmlite
import numpy as np

from spanloop.compiler.lower import Looped, PairSystem, Part, Plan
from spanloop.compiler.lower.exchange import exchange
from spanloop.compiler.render.gpu.called_batch import THREADS, called_batch
from spanloop.compiler.render.gpu.entry import WARP
from spanloop.compiler.render.gpu.threads import FEW, SHARED, Layout, ThreadKernel, thread_kernel
from spanloop.compiler.render.gpu.warps import fits, warp_kernel
from spanloop.compiler.render.rolled import TABLE
from spanloop.compiler.runtime import arrays, cache, machine
from spanloop.compiler.runtime.cache import Artifact
from spanloop.compiler.runtime.gpu import assembly, driver
from spanloop.compiler.runtime.gpu.driver import Device, Memory
from spanloop.compiler.runtime.gpu.warp_choice import MOST, WarpChoice, warp_choice
from spanloop.compiler.runtime.kernel import Definition, batch_scratch, batch_source
from spanloop.errors import InputError, UnsupportedError

LONGEST = 30_000  # operations and outputs of one run of instructions; the assembler's time grows faster than these


@dataclass(frozen=True)
class Code:
    """A function that is loaded on the device and how it is launched.

    threads, states: of a block; scratch: numbers that a thread needs, None if it needs none.
    """

    function: driver.Function
    threads: int
    states: int
    scratch: int | None
    kept: tuple[Memory, ...] = ()


@dataclass(frozen=True)
class Variant:
    """One of a function's codes.

    common: which inputs have one row for all states; warps: of 32 states; are_few: fewer than 32 states in rows;
    groups: of 32 states, that a block of several warps has.
    """

    common: tuple[bool, ...]
    warps: int = 1
    are_few: bool = False
    groups: int = 1


class DeviceCode:
    """All codes of a function."""

    def __init__(
        self,
        definition: Definition,
        dtype: np.dtype,
        real: str,
        layout: str,
        number: int,
        warps: int | None = None,
        parts: Callable[[], Sequence[Part]] = tuple,
    ):
        """number: of the GPU; warps: of a state, None for a choice by the size of a batch; parts: of the mechanism."""
        self.definition, self.dtype, self.real, self.layout = definition, dtype, real, layout
        self.number, self.warps, self.parts = number, checked_warps(definition.name, warps), parts
        self.groups = 1
        self._loaded: dict[Variant, Code] = {}

    @property
    def device(self) -> Device:
        """The GPU; DeviceError if there is none."""
        return Device.of(self.number)

    # ---- variants

    def variant(self, common: tuple[bool, ...], n: int) -> Variant:
        """What serves a batch of n states; common: which inputs have one row for all states."""
        warps = self.warps or self.choice.of_batch(n, self.device.multiprocessors)
        return Variant(common, warps, self._are_few(common, warps, n), self.groups)

    def large(self) -> Variant:
        """What serves large batches with a row of every input for each state."""
        common = (False,) * len(self.definition.signature()[0])
        return Variant(common, self.warps or self.choice.large, False, self.groups)

    def _are_few(self, common: tuple[bool, ...], warps: int, n: int) -> bool:
        """Whether states are too few for the code that moves the rows of 32 together."""
        return n < WARP and self.choice.is_straight and self._layout(Variant(common, warps)).kind == "rows"

    @cached_property
    def choice(self) -> WarpChoice:
        """The number of warps that is chosen, which the cache keeps: it takes the plan."""
        shared = self._shared
        key = cache.key(self.definition.name, self.definition.key, "warps", self.real, self.layout, str(shared))
        artifact = cache.read(key)
        if artifact is not None:
            return WarpChoice(**artifact.facts)
        plan, found = self.definition.plan, WarpChoice(is_straight=False)
        if isinstance(plan, Plan) and len(plan.nodes) + len(plan.outputs) <= LONGEST:
            layout = self._layout(Variant((False,) * len(plan.inputs), 2))
            found = warp_choice(plan, self.parts(), self.real, layout, shared)
        cache.write(key, Artifact(b"", asdict(found)))
        return found

    @property
    def _shared(self) -> int:
        return self.device.shared if driver.is_available() else SHARED

    # ---- text

    def text(self, variant: Variant) -> tuple[str, dict[str, Any]]:
        """LLVM text and the facts of a launch."""
        plan, real, name = self.definition.plan, self.real, self.definition.name
        facts: dict[str, Any] = {"operations": asdict(plan.operations)}
        if isinstance(plan, Plan) and self.choice.is_straight:
            layout = self._layout(variant)
            made = self._divided(plan, variant, layout) if variant.warps > 1 else thread_kernel(plan, real, layout)
            facts |= {"name": "batch", "threads": made.threads, "states": made.states, "shared": made.shared}
            return made.source, facts
        if self.layout == "columns" or variant.warps > 1:
            option = "layout='columns'" if self.layout == "columns" else f"warps={variant.warps}"
            raise UnsupportedError(
                f"{name}: {option} is for kernels of up to {LONGEST} operations without loops over links; "
                "use layout='rows', and leave warps out"
            )
        scratch = batch_scratch(plan, real, 1)
        text = called_batch(batch_source(plan, real, 1), len(plan.inputs), real, scratch)
        return text, {**facts, "name": "called", "threads": THREADS, "states": THREADS, "shared": 0, "scratch": scratch}

    def _divided(self, plan: Plan, variant: Variant, layout: Layout) -> ThreadKernel:
        found, name = exchange(plan, self.parts(), variant.warps), self.definition.name
        if found is None:
            raise UnsupportedError(
                f"{name}: the operations cannot be divided among {variant.warps} warps: the mechanism has too few "
                "chains that are large enough, or the answer is not one number for each degree of freedom. Use fewer, "
                "or leave warps out"
            )
        if not fits(found, self.real, layout, variant.groups, self._shared):
            raise UnsupportedError(
                f"{name}: {variant.warps} warps exchange more values than the shared memory of a block holds; use fewer"
            )
        return warp_kernel(found, self.real, layout, variant.groups, shared=self._shared)

    def _layout(self, variant: Variant) -> Layout:
        """Several warps move rows together wherever they fit the shared memory, one warp if it has many numbers."""
        if self.layout == "columns":
            return Layout("columns", variant.common)
        inputs, shape = self.definition.signature()
        sizes = [*(size for _, size in inputs), math.prod(shape)]
        found = Layout.of_rows(sizes, self.real, variant.common, 0 if variant.warps > 1 else FEW)
        return Layout("direct", variant.common) if variant.are_few else found

    # ---- machine code

    def loaded(self, variant: Variant) -> Code:
        """The code, on the device."""
        if variant not in self._loaded:
            artifact = self._artifact(variant)
            facts = artifact.facts
            module = driver.Module(self.device, artifact.code)
            function = module.function(facts["name"], facts["shared"])
            kept = self._tables(module, artifact)
            self._loaded[variant] = Code(function, facts["threads"], facts["states"], facts.get("scratch"), kept)
        return self._loaded[variant]

    def _artifact(self, variant: Variant) -> Artifact:
        device, definition = self.device, self.definition
        identity = (device.capability, device.driver, llvmlite.__version__)
        key = cache.key(definition.name, definition.key, "cuda", self.real, self.layout, str(variant), str(identity))
        artifact = cache.read(key)
        if artifact is None:
            with machine.reported(f"compiling {definition.label} for {device.name}"):
                text, facts = self.text(variant)
                cubin = driver.linked(device, assembly.ptx(text, device.capability))
            artifact = Artifact(cubin, facts, self._looped_tables())
            cache.write(key, artifact)
        return artifact

    def _looped_tables(self) -> dict[str, np.ndarray]:
        plan = self.definition.plan
        walked = plan.front if isinstance(plan, PairSystem) else plan
        if not isinstance(walked, Looped):
            return {}
        return {name: np.asarray(getattr(walked, name)) for name in TABLE if name != "memory"}

    def _tables(self, module: driver.Module, artifact: Artifact) -> tuple[Memory, ...]:
        """What loops over links read, copied to the device; the code's table points there."""
        if not artifact.tables:
            return ()
        kept, pointers = [], np.zeros(len(TABLE), np.uint64)
        for k, name in enumerate(TABLE):
            if name in artifact.tables:
                kind = self.dtype if name in ("numbers", "world") else artifact.tables[name].dtype
                kept.append(copied(self.device, np.ascontiguousarray(artifact.tables[name], kind), 0))
                pointers[k] = kept[-1].pointer
        driver.synchronize(self.device)
        module.write_global("data", pointers.tobytes())
        return tuple(kept)


def checked_warps(name: str, warps: Any) -> int | None:
    """The number of warps that a user asks for; InputError unless it is 1 to MOST, or None."""
    if warps is None or (isinstance(warps, int) and not isinstance(warps, bool) and 1 <= warps <= MOST):
        return warps
    raise InputError(f"{name}: warps is {warps!r}; expected 1 to {MOST}, or None for a choice by the size of the batch")


def copied(device: Device, a: np.ndarray, stream: int) -> Memory:
    """An array, copied to the device in the order of a stream."""
    memory = Memory(device, a.nbytes, stream)
    memory.write(arrays.address(a), a.nbytes)
    return memory
