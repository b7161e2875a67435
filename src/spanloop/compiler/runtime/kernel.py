"""A Kernel: one compiled function, called with one state or many.

A Kernel is made from an Artifact, and its making traces nothing. Its Definition is consulted later, on demand: for the
code of batches, for states that the machine code hands back, and for those who want to see plan or source.
"""

from __future__ import annotations

import ctypes
import math
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from spanloop.compiler.lower import Looped, Operations, PairSystem, Plan
from spanloop.compiler.render.batch import batch, scratch_size
from spanloop.compiler.render.call import call
from spanloop.compiler.render.pair_code import pair_batch, pair_scratch, pair_single
from spanloop.compiler.render.rolled import TABLE, looped_batch, looped_scratch, looped_single
from spanloop.compiler.render.single import FAR_ANGLE, single
from spanloop.compiler.runtime import arrays, cache, machine, python_call
from spanloop.compiler.runtime.cache import Artifact
from spanloop.compiler.runtime.nan_rows import refuse_states
from spanloop.errors import InputError, Refusal, StateError, UnsupportedError

REAL = {"float64": "double", "float32": "float"}
_POINTER, _WORD = ctypes.c_void_p, ctypes.c_int64
_ASSEMBLIES = 4  # refused states of a batch for which another assembly is looked for
AnyPlan = Plan | Looped | PairSystem
_Rows = Sequence[tuple[np.ndarray, int]]  # of each input: contiguous rows, and how many numbers apart they are


class Definition(Protocol):
    """What a kernel computes, apart from machine code."""

    @property
    def name(self) -> str:
        """Of the function; errors begin with it."""

    @property
    def label(self) -> str:
        """What it computes, for reports."""

    @property
    def key(self) -> str:
        """Names everything that the plan depends on; needs no tracing."""

    @property
    def plan(self) -> AnyPlan:
        """The operations in order."""

    def signature(self) -> tuple[tuple[tuple[str, int], ...], tuple[int, ...]]:
        """Names and sizes of the inputs, shape of the answer."""

    def reference(self, *arrays: np.ndarray) -> np.ndarray | None:
        """The answer of one state on Python floats; None if it has none."""

    def explain(self, *arrays: np.ndarray) -> Refusal:
        """Why this one state has no answer."""

    def other_kernels(self, dtype: str, *arrays: np.ndarray) -> Iterator[Kernel]:
        """Kernels that may answer a state that this one refuses: refined, or of another assembly of the loops."""


def single_source(plan: AnyPlan, real: str) -> str:
    """LLVM source of the function of one state; real: "double" or "float"."""
    if isinstance(plan, PairSystem):
        return pair_single(plan, real)
    return looped_single(plan, real) if isinstance(plan, Looped) else single(plan, real)


def batch_source(plan: AnyPlan, real: str, lanes: int) -> str:
    """LLVM source of the function of many states, `lanes` to a vector."""
    if isinstance(plan, PairSystem):
        return pair_batch(plan, real, lanes)
    return looped_batch(plan, real, lanes) if isinstance(plan, Looped) else batch(plan, real, lanes)


def batch_scratch(plan: AnyPlan, real: str, lanes: int) -> int:
    """Numbers of scratch memory that the function of many states needs."""
    if isinstance(plan, PairSystem):
        return pair_scratch(plan, real, lanes)
    return looped_scratch(plan, lanes) if isinstance(plan, Looped) else scratch_size(plan, lanes)


def artifact_of(plan: AnyPlan, source: str, real: str, **facts: Any) -> Artifact:
    """Object code for the plan's function of one state, callable from Python; facts: more than every kernel has."""
    code = machine.object_code(source + call(plan, real))
    facts |= {"inputs": plan.inputs, "shape": plan.shape, "operations": asdict(plan.operations)}
    walked = plan.front if isinstance(plan, PairSystem) else plan
    if not isinstance(walked, Looped):
        return Artifact(code, facts)
    tables = {name: np.asarray(getattr(walked, name)) for name in TABLE if name != "memory"}
    return Artifact(code, {**facts, "memory": walked.size}, tables)


class Remade:
    """Is pickled as the call that made it: machine code fits one machine alone."""

    name: str
    origin: Callable[[], Any] | None = None  # makes this kernel again, in any process

    def __reduce__(self) -> tuple[Any, ...]:
        if self.origin is None:
            raise TypeError(
                f"the kernel {self.name!r} cannot be pickled, because no call of sl.compile made it; "
                "pass the model on, and make the kernel there"
            )
        return self.origin, ()


class Kernel(Remade):
    """k(q, v, tau) → array (..., *shape); inputs have any number of leading batch axes.

    out= takes an array to write into. `call` is the same function without Python in between for a single state.
    """

    def __init__(self, artifact: Artifact, definition: Definition, dtype: str = "float64", threads: int = 1):
        """artifact: machine code of one state for this dtype; threads: over the states of a batch, 0 for all cores."""
        dtype = checked_dtype(dtype)
        self.name, self.definition, self.threads = definition.name, definition, checked_threads(threads)
        self.dtype, self._real = np.dtype(dtype), REAL[dtype]
        self.from_cache = artifact.from_cache  # everything so far was found on disk
        self.inputs: tuple[tuple[str, int], ...] = tuple((n, k) for n, k in artifact.facts["inputs"])
        self.shape: tuple[int, ...] = tuple(artifact.facts["shape"])
        self.operations = Operations(**artifact.facts["operations"])
        self._effort = self.operations.total
        self._tables = self._loop_tables(artifact)
        self._single_code = self._loaded(artifact, "kernel", "call", "api")
        pointers = [_POINTER] * (len(self.inputs) + 1)
        self._single = ctypes.CFUNCTYPE(ctypes.c_int32, *pointers)(self._single_code.address("kernel"))
        self.call = self.entry(self.evaluate, self._documentation())

    # ---- what it is

    @property
    def plan(self) -> AnyPlan:
        """The operations in order; of a looped kernel its steps and data."""
        return self.definition.plan

    @property
    def depth(self) -> int:
        """Operations on the critical path: how many must follow one another, however many run in parallel."""
        if not isinstance(self.plan, Plan):
            raise UnsupportedError(f"{self.name}: looped code has no critical path that is known; lowering='unrolled'")
        return self.plan.depth

    @property
    def source(self) -> str:
        """LLVM source of the function of one state."""
        return single_source(self.plan, self._real)

    @property
    def batch_source(self) -> str:
        """LLVM source of the function of many states."""
        return batch_source(self.plan, self._real, machine.lanes(self._real))

    @property
    def wasm(self) -> bytes:
        """A WebAssembly module of the function of one state (docs/wasm.md); UnsupportedError where there is none."""
        from spanloop.compiler.portable.wasm_kernel import wasm_kernel

        return wasm_kernel(self.name, self.plan, self.dtype.name)

    def __repr__(self) -> str:
        inputs = ", ".join(f"{n}[{k}]" for n, k in self.inputs)
        return f"<kernel {self.name}({inputs}) -> {self.shape} {self.dtype}: {self.operations}>"

    def _documentation(self) -> str:
        names = [n for n, _ in self.inputs]
        shapes = "\n".join(f"{n}: array (..., {size})" for n, size in self.inputs)
        shape = ", ".join(map(str, ("...", *self.shape)))
        text = f"Return the array ({shape}) of {self.dtype}; out takes an array to write into.\n\n{shapes}"
        return python_call.documentation(self.name, f"({', '.join(names)}, *, out=None)", text)

    # ---- machine code

    def _loaded(self, artifact: Artifact, *names: str) -> machine.Code:
        code = machine.Code(artifact.code, *names)
        if self._tables:
            table = (ctypes.c_void_p * len(TABLE)).from_address(code.address("data"))
            for k, name in enumerate(TABLE):
                table[k] = arrays.address(self._tables[name])
        return code

    def _loop_tables(self, artifact: Artifact) -> dict[str, np.ndarray]:
        """What looped code reads, and its memory; lives as long as the code."""
        if not artifact.tables:
            return {}
        reals = {n: np.ascontiguousarray(artifact.tables[n], self.dtype) for n in ("numbers", "world")}
        return {**artifact.tables, **reals, "memory": np.empty(artifact.facts["memory"] + 8, self.dtype)}

    @cached_property
    def _batch(self) -> tuple[Callable[..., int], int, machine.Code]:
        """The function of many states, the size of its scratch memory, and the code that must stay loaded."""
        key = cache.key(self.name, self.definition.key, "batch", self._real, machine.identity())
        artifact = cache.read(key)
        self.from_cache = self.from_cache and artifact is not None
        if artifact is None:
            with machine.reported(f"compiling {self.definition.label} for batches"):
                plan, lanes = self.plan, machine.lanes(self._real)
                scratch = batch_scratch(plan, self._real, lanes)
                artifact = Artifact(machine.object_code(self.batch_source), {"scratch": scratch})
            cache.write(key, artifact)
        code = self._loaded(artifact, "batch")
        kinds = [_POINTER, _WORD] * len(self.inputs) + [_POINTER] * 3 + [_WORD] * 2
        return ctypes.CFUNCTYPE(_WORD, *kinds)(code.address("batch")), artifact.facts["scratch"], code

    @property
    def single_address(self) -> int:
        """Address of the function of one state (render/single.py); it is valid while this kernel lives."""
        return self._single_code.address("kernel")

    @property
    def batch_address(self) -> tuple[int, int]:
        """Address of the function of many states (render/batch.py), and how many numbers of scratch it needs."""
        _, scratch, code = self._batch
        return code.address("batch"), scratch

    # ---- calling

    def entry(self, fallback: Callable[..., Any], documentation: str | None = None) -> Callable[..., Any]:
        """The compiled call for single states, a builtin function with the documentation of `fallback`.

        fallback: takes over whatever the compiled call does not accept; it must keep this kernel alive.
        """
        if not python_call.abi_fits():
            return fallback
        text = python_call.documentation_of(fallback) if documentation is None else documentation
        return python_call.builtin(self._single_code, self.name, self.dtype, fallback, text)

    def __call__(self, *inputs: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """The answer (..., *shape) at one state or many; out: an array to write into.

        A single state without an answer raises StateError; in a batch its row is NaN, with one StateWarning.
        """
        return self.call(*inputs) if out is None else self.call(*inputs, out=out)

    def evaluate(self, *inputs: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """The same as a call, through Python, for every input that can be converted."""
        given, leading = arrays.accepted(self.name, self.inputs, inputs, self.dtype)
        shape = leading + self.shape
        if out is not None:
            arrays.checked_out(self.name, out, shape, self.dtype)
        in_place = out is not None and arrays.usable_in_place(out, given)
        target = out if out is not None and in_place else np.empty(shape, self.dtype)
        if leading:
            self._many(given, leading, target)
        else:
            self._one(given, target)
        if out is None or in_place:
            return target
        out[...] = target
        return out

    def attempt(self, given: Sequence[np.ndarray], target: np.ndarray) -> bool:
        """One state, contiguous arrays of this dtype, into target; False if it has no answer (nothing is raised)."""
        status = self._single(*(arrays.address(a) for a in given), arrays.address(target))
        if status & FAR_ANGLE:
            status = self._from_reference(list(given), target)
        return status == 0

    def _one(self, given: list[np.ndarray], target: np.ndarray) -> None:
        given = [np.ascontiguousarray(a) for a in given]
        status = self._single(*(arrays.address(a) for a in given), arrays.address(target))
        if status & FAR_ANGLE:
            status = self._from_reference(given, target)
        if status:
            others = self.definition.other_kernels(self.dtype.name, *given)
            if not any(other.attempt(given, target) for other in others):
                raise StateError.of(self.name, self.definition.explain(*given))

    def _from_reference(self, given: list[np.ndarray], target: np.ndarray) -> int:
        """An angle too large for the compiled sine: computed on floats, slowly and exactly; 0 if that has an answer."""
        answer = self.definition.reference(*given)
        if answer is None:
            return FAR_ANGLE
        target[...] = answer
        return 0

    def _many(self, given: list[np.ndarray], leading: tuple[int, ...], target: np.ndarray) -> None:
        count = math.prod(leading)
        if count == 0:
            return
        status = np.zeros(count, np.uint8)
        laid = [arrays.rows(a, leading) for a in given]
        bad = self._run_rows(laid, target, status, count)
        if bad:
            flat = target.reshape(count, math.prod(self.shape))
            for i in map(int, np.flatnonzero(status & FAR_ANGLE)):
                row = flat[i].reshape(self.shape)
                if not self._from_reference([_row(x, s, i) for x, s in laid], row):
                    flat[i], status[i] = row.ravel(), 0
            self._answer_elsewhere(laid, flat, status)
            refuse_states(
                self.name,
                np.flatnonzero(status),
                lambda k: self.definition.explain(*(_row(x, s, k) for x, s in laid)),
                leading,
                flat,
            )

    def _answer_elsewhere(self, laid: _Rows, flat: np.ndarray, status: np.ndarray) -> None:
        """States of a batch that other kernels answer: refined, or of other assemblies of the loops."""
        for first in map(int, np.flatnonzero(status)[:_ASSEMBLIES]):
            for other in self.definition.other_kernels(self.dtype.name, *(_row(x, s, first) for x, s in laid)):
                for i in map(int, np.flatnonzero(status)):
                    row = flat[i].reshape(self.shape)
                    if other.attempt([_row(x, s, i) for x, s in laid], row):
                        flat[i], status[i] = row.ravel(), 0

    def _run_rows(self, laid: _Rows, target: np.ndarray, status: np.ndarray, count: int) -> int:
        """How many rows have no answer; status gets the reasons. One row is a single state: no code of batches."""
        if count == 1:
            status[0] = self._single(*(arrays.address(a) for a, _ in laid), arrays.address(target))
            return int(status[0] != 0)
        function, scratch_numbers, _ = self._batch
        found: list[int] = []

        def work(slices: Iterable[tuple[int, int]]) -> None:
            fixed = [x for a, stride in laid for x in (arrays.address(a), stride)]
            fixed += [arrays.address(target), arrays.address(status)]
            scratch = np.empty(scratch_numbers + 8, self.dtype)
            for begin, end in slices:
                found.append(function(*fixed, arrays.address(scratch), begin, end))

        if count * self._effort < machine.SLICE // 50:
            work([(0, count)])
        else:
            machine.Slices(count, machine.lanes(self._real), self._effort, self.threads).share(work)
        return sum(found)


def _row(x: np.ndarray, stride: int, i: int) -> np.ndarray:
    return x[i] if stride else x


def checked_dtype(dtype: Any) -> str:
    """The name of a dtype that kernels have."""
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = None
    if name not in REAL:
        raise InputError(f"dtype is {dtype!r}; expected 'float64' or 'float32'")
    return name


def checked_threads(threads: int, name: str = "threads") -> int:
    """How many threads; 0 stands for all cores."""
    try:
        n = operator.index(threads)
    except TypeError:
        n = -1
    if n < 0 or isinstance(threads, bool):
        raise InputError(f"{name} is {threads!r}; expected a whole number, 0 for all cores")
    return n or (os.cpu_count() or 1)
