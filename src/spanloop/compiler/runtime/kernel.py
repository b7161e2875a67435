"""A Kernel: one compiled function, called with one state or many."""

from __future__ import annotations

import ctypes
import hashlib
import math
import operator
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

import spanloop
from spanloop.compiler.lower import Looped, Operations, Plan
from spanloop.compiler.render.batch import batch, scratch_size
from spanloop.compiler.render.call import call
from spanloop.compiler.render.looping import TABLE, looped_batch, looped_scratch, looped_single
from spanloop.compiler.render.single import single
from spanloop.compiler.render.status import FAR_ANGLE
from spanloop.compiler.runtime import arrays, cache, machine, python_call
from spanloop.compiler.runtime.python_call import builtin
from spanloop.errors import InputError, Refusal, StateError, StateWarning, UnsupportedError

REAL = {"float64": "double", "float32": "float"}
_POINTER, _WORD = ctypes.c_void_p, ctypes.c_int64


@dataclass(frozen=True)
class Recipe:
    """What a kernel is made from. Everything is asked for only when needed, so that a cached kernel traces nothing."""

    name: str
    key: str  # of all that the plan depends on
    plan: Callable[[], Plan | Looped]
    reference: Callable[..., np.ndarray | None]  # one state on floats; None where it has no answer
    explain: Callable[..., Refusal]  # why this one state has no answer


class Kernel:
    """k(q, v, tau) → array (..., *shape); inputs have any number of leading batch axes.

    out= takes an array to write into. `call` is the same function without Python in between for a single state.
    """

    _sort = "single"  # of the code for one state

    def __init__(self, recipe: Recipe, dtype: str = "float64", threads: int = 1):
        dtype = checked_dtype(dtype)
        self.recipe, self.name, self.threads = recipe, recipe.name, checked_threads(threads)
        self.dtype = np.dtype(dtype)
        self._real = REAL[dtype]
        self.from_cache = True  # was everything so far found on disk?
        facts, code = self._code(self._sort, self._single_source)
        self.inputs: tuple[tuple[str, int], ...] = tuple((n, k) for n, k in facts["inputs"])
        self.shape: tuple[int, ...] = tuple(facts["shape"])
        self.operations = Operations(**facts["operations"])
        self._scratch = facts["scratch"]
        self._known = facts
        self._single_code = code
        pointers = [_POINTER] * (len(self.inputs) + 1)
        self._single = ctypes.CFUNCTYPE(ctypes.c_int32, *pointers)(code.function("kernel"))
        self.call = self.entry(self.evaluate)

    # ---- what it is

    @cached_property
    def plan(self) -> Plan | Looped:
        """The ordered operations; of a looped kernel its steps and data."""
        return self.recipe.plan()

    @property
    def depth(self) -> int:
        """Operations on the critical path: how many must follow one another, however many run at once."""
        if isinstance(self.plan, Looped):
            raise UnsupportedError(f"{self.name}: looped code has no critical path that is known; lowering='unrolled'")
        return self.plan.depth

    @property
    def source(self) -> str:
        """LLVM source of the function of one state."""
        plan = self.plan
        return looped_single(plan, self._real) if isinstance(plan, Looped) else single(plan, self._real)

    @property
    def batch_source(self) -> str:
        """LLVM source of the function of many states."""
        plan, lanes = self.plan, machine.lanes(self._real)
        return looped_batch(plan, self._real, lanes) if isinstance(plan, Looped) else batch(plan, self._real, lanes)

    def __repr__(self) -> str:
        inputs = ", ".join(f"{n}[{k}]" for n, k in self.inputs)
        return f"<kernel {self.name}({inputs}) -> {self.shape} {self.dtype}: {self.operations}>"

    # ---- making

    def _single_source(self) -> str:
        return self.source + call(self.plan, self._real)

    def _code(self, part: str, source: Callable[[], str]) -> tuple[dict[str, Any], machine.Code]:
        """Facts and loaded code of a part: from disk, else compiled and kept there."""
        text = "|".join((self.recipe.key, part, self._real, machine.identity()))
        key = f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:40]}"
        found = cache.read(key)
        self.from_cache = self.from_cache and found is not None
        if found is None:
            data = machine.object_code(source())
            found = (self._facts(), data)
            cache.write(key, *found)
        code = machine.Code(found[1])
        if found[0]["looped"]:
            self._hand_over(code)
        return found[0], code

    def _hand_over(self, code: machine.Code) -> None:
        """Give looped code the data of all links."""
        table = (ctypes.c_void_p * len(TABLE)).from_address(code.variable("data"))
        for k, name in enumerate(TABLE):
            table[k] = arrays.address(self._data[name])

    @cached_property
    def _data(self) -> dict[str, np.ndarray]:
        """What looped code reads; must live as long as the code."""
        plan = self.plan
        assert isinstance(plan, Looped)
        reals = {"numbers": plan.numbers, "world": plan.world}
        data = {name: np.ascontiguousarray(x, self.dtype) for name, x in reals.items()}
        memory = np.empty(plan.size + 8, self.dtype)
        return {**data, "meta": plan.meta, "answer": plan.answer, "memory": memory}

    def _facts(self) -> dict[str, Any]:
        plan, lanes = self.plan, machine.lanes(self._real)
        return {
            "inputs": plan.inputs,
            "shape": plan.shape,
            "operations": asdict(plan.operations),
            "scratch": looped_scratch(plan, lanes) if isinstance(plan, Looped) else scratch_size(plan, lanes),
            "looped": isinstance(plan, Looped),
        }

    @cached_property
    def _batch(self):
        _, code = self._code("batch", lambda: self.batch_source)
        kinds = [_POINTER, _WORD] * len(self.inputs) + [_POINTER] * 3 + [_WORD] * 2
        function = ctypes.CFUNCTYPE(_WORD, *kinds)(code.function("batch"))
        return function, code

    # ---- calling

    def entry(self, fallback: Callable) -> Callable:
        """The compiled call for single states, with `fallback`, which must hold this kernel, for all it does not
        take."""
        if not python_call.abi_fits():
            return fallback
        return builtin(self._single_code, self.name, self.dtype, fallback)

    def __call__(self, *inputs, out: np.ndarray | None = None) -> np.ndarray:
        return self.call(*inputs) if out is None else self.call(*inputs, out=out)

    def evaluate(self, *inputs, out: np.ndarray | None = None) -> np.ndarray:
        """The same as a call, for every input that can be converted."""
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
            raise StateError.of(self.name, self.recipe.explain(*given))

    def _from_reference(self, given: list[np.ndarray], target: np.ndarray) -> int:
        """An angle too large for the compiled sine: computed on floats, slowly and exactly; 0 if that has an answer."""
        answer = self.recipe.reference(*given)
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
            flat = target.reshape(count, -1)
            for i in map(int, np.flatnonzero(status & FAR_ANGLE)):
                row = flat[i].reshape(self.shape)
                if not self._from_reference([_row(x, s, i) for x, s in laid], row):
                    flat[i], status[i] = row.ravel(), 0
            self._warn(laid, status, leading)

    def _run_rows(self, laid, target: np.ndarray, status: np.ndarray, count: int) -> int:
        function, _ = self._batch
        width = machine.lanes(self._real)
        fixed = [x for a, stride in laid for x in (arrays.address(a), stride)]
        fixed += [arrays.address(target), arrays.address(status)]

        def run(begin: int, end: int) -> int:
            scratch = np.empty(self._scratch + 8, self.dtype)
            return function(*fixed, arrays.address(scratch), begin, end)

        groups = -(-count // width)
        parts = min(self.threads, groups)
        if parts <= 1:
            return run(0, count)
        edges = [min(count, width * (groups * k // parts)) for k in range(parts + 1)]
        others = [pool(parts).submit(run, a, b) for a, b in pairwise(edges[1:])]
        return run(edges[0], edges[1]) + sum(f.result() for f in others)  # this thread works too

    def _warn(self, laid, status: np.ndarray, leading: tuple[int, ...]) -> None:
        wrong = np.flatnonzero(status)
        if len(wrong):
            first = int(wrong[0])
            refusal = self.recipe.explain(*(_row(x, s, first) for x, s in laid))
            warn_of_states(self.name, len(wrong), len(status), first, leading, refusal)


def warn_of_states(name: str, bad: int, count: int, first: int, leading: tuple[int, ...], refusal: Refusal) -> None:
    """Warn once of the states of a batch that have no answer; refusal: of the first one."""
    index = tuple(int(i) for i in np.unravel_index(first, leading))
    states = "1 state has" if bad == 1 else f"{bad} states have"
    message = (
        f"{name}: {states} no answer, of {count}; their rows are NaN. "
        f"The first is state {index if len(index) > 1 else index[0]}: {refusal}"
    )
    warnings.warn(StateWarning(message, refusal), stacklevel=_depth_of_caller())


def _depth_of_caller() -> int:
    """How many frames up the first one outside this package is."""
    home = os.path.dirname(spanloop.__file__)
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(home):
        frame, depth = frame.f_back, depth + 1
    return depth


def _row(x: np.ndarray, stride: int, i: int) -> np.ndarray:
    return x[i] if stride else x


def checked_dtype(dtype) -> str:
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = None
    if name not in REAL:
        raise InputError(f"dtype is {dtype!r}; expected 'float64' or 'float32'")
    return name


def checked_threads(threads: int, name: str = "threads") -> int:
    try:
        n = operator.index(threads)
    except TypeError:
        n = -1
    if n < 0 or isinstance(threads, bool):
        raise InputError(f"{name} is {threads!r}; expected a whole number, 0 for all cores")
    return n or (os.cpu_count() or 1)


_pools: dict[int, ThreadPoolExecutor] = {}
if hasattr(os, "register_at_fork"):  # a forked process inherits the pools but not their threads
    os.register_at_fork(after_in_child=_pools.clear)


def pool(size: int) -> ThreadPoolExecutor:
    if size not in _pools:
        _pools[size] = ThreadPoolExecutor(size, thread_name_prefix="spanloop")
    return _pools[size]
