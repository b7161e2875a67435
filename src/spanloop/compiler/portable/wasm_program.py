"""A WebAssembly module of one Schedule and of kernels, all on one memory: functions without arguments.

| export | returns |
|---|---|
| memory | all arrays, float64, at the places of `Program.memory` |
| begin | the calls at the start of a step |
| step | 0, or the bits of what ended the step (render/rollout.py) |
| a kernel's name | 0, or the bits of its status (render/single.py); outputs are NaN where it is not 0 |

The caller writes inputs, time and step length into their arrays first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spanloop.compiler.lower.plan import Plan
from spanloop.compiler.lower.schedule import (
    Bound,
    Call,
    For,
    Item,
    Log,
    OneOf,
    Place,
    Repeat,
    Schedule,
    When,
    following,
)
from spanloop.compiler.portable import wasm_binary as w
from spanloop.compiler.portable.memory import (
    LOG,
    LOGGED,
    Memory,
    add_schedule,
    copied,
    copy_of,
    portable_plans,
    read_places,
    tables,
)
from spanloop.compiler.portable.pieces import PortablePlan
from spanloop.compiler.portable.status import FLAGS, with_flags
from spanloop.compiler.portable.wasm_plan import LENGTH, add_plan, add_sincos
from spanloop.compiler.render.rollout import FINITE, HALTED, LARGEST, LOST, NOT_CONVERGED
from spanloop.compiler.render.single import FAR_ANGLE, NOT_FINITE, OFF_GUARD

_FLAGS = "status"  # the array of flags of kernels


@dataclass(frozen=True)
class _Kernel:
    name: str
    plan: PortablePlan
    reads: tuple[str, ...]
    write: str


class Program:
    """What a module has: add a schedule and kernels, then take its `binary`."""

    def __init__(self) -> None:
        self.memory = Memory()
        self._schedule: Schedule | None = None
        self._capacity = 0
        self._plans: dict[int, PortablePlan] = {}
        self._kernels: list[_Kernel] = []

    def add_schedule(self, schedule: Schedule, capacity: int = 16) -> None:
        """The functions `begin` and `step`; capacity: rows of its log."""
        assert self._schedule is None
        self._schedule, self._capacity = schedule, capacity
        self._plans = portable_plans(schedule, LENGTH, LENGTH)
        add_schedule(self.memory, schedule, capacity)
        for c in schedule.calls():
            for n in copied(c, self._plans[id(c.plan)]):
                self.memory.add(copy_of(n), schedule.sizes[n])

    def add_kernel(self, name: str, plan: Plan, write: str | None = None, reads: Sequence[str] | None = None) -> None:
        """A function `name`; its inputs are arrays of their own names, or `reads`; its outputs array `write`."""
        inputs = tuple(reads or [n for n, _ in plan.inputs])
        for array, (_, size) in zip(inputs, plan.inputs, strict=True):
            self.memory.add(array, size)
        self.memory.add(write or name, len(plan.outputs))
        self.memory.add(_FLAGS, FLAGS)
        whole = PortablePlan(with_flags(plan, "double"), (len(plan.outputs), FLAGS), LENGTH, LENGTH)
        self._kernels.append(_Kernel(name, whole, inputs, write or name))

    def binary(self, sections: Mapping[str, bytes] | None = None) -> bytes:
        """The module; sections: custom ones by name, for those who read it."""
        module, exports = w.Module(), dict[str, int]()
        sincos, scratch = add_sincos(module), self.memory.size
        plans = [*self._plans.values(), *(k.plan for k in self._kernels)]
        end = 8 * (scratch + max((p.segments.n_slots for p in plans), default=0))
        data = list[tuple[int, bytes]]()
        if self._schedule is not None:
            numbers = {k: add_plan(module, sincos, p, scratch) for k, p in self._plans.items()}
            places = dict[tuple[int, ...], int]()
            for table in tables(self._schedule):
                places[table] = end
                data.append((end, b"".join(x.to_bytes(4, "little") for x in table)))
                end += 4 * len(table)
            exports = _Steps(self._schedule, self.memory, self._plans, numbers, places, self._capacity).add(module)
        for k in self._kernels:
            exports[k.name] = _add_kernel(module, self.memory, k, add_plan(module, sincos, k.plan, scratch))
        return module.binary(exports, max(end, 8), data, sections or {})


def _add_kernel(module: w.Module, memory: Memory, k: _Kernel, plan: int) -> int:
    """The function of a kernel: () -> status."""
    at, (status, j) = memory.places, range(2)
    arrays = (*k.reads, k.write, _FLAGS)
    code = b"".join(w.i32(8 * at[n]) for n in arrays) + w.call(plan)
    flags = [w.i32(0) + w.load(at[_FLAGS] + i) + w.f64(0.0) + w.F64_EQ + w.I32_EQZ for i in range(FLAGS)]
    bits = zip(flags, (NOT_FINITE, OFF_GUARD, FAR_ANGLE), strict=True)
    code += b"".join(f + w.i32(bit) + w.I32_MUL + (w.I32_OR if i else b"") for i, (f, bit) in enumerate(bits))
    code += w.put(status)
    for n in (*k.reads, k.write):  # x − x is 0 where x is finite
        entry = w.get(j) + w.load(at[n])
        test = entry + entry + w.F64_SUB + w.f64(0.0) + w.F64_EQ + w.I32_EQZ
        code += _each(j, memory.sizes[n], w.get(status) + test + w.I32_OR + w.put(status))
    nan = _each(j, memory.sizes[k.write], w.get(j) + w.f64(math.nan) + w.store(at[k.write]))
    code += w.get(status) + w.IF + nan + w.END + w.get(status)
    assert NOT_FINITE == 1
    return module.add([], [w.I32], [(2, w.I32)], code)


def _each(local: int, count: int, code: bytes) -> bytes:
    """Code for each number of an array; the local holds its address less that of the array's first."""
    if not count:
        return b""
    more = w.get(local) + w.i32(8) + w.I32_ADD + w.tee(local) + w.i32(8 * count) + w.I32_LT + w.branch_if(0)
    return w.i32(0) + w.put(local) + w.LOOP + code + more + w.END


class _Steps:
    """The functions of a schedule."""

    def __init__(
        self,
        schedule: Schedule,
        memory: Memory,
        plans: dict[int, PortablePlan],
        numbers: dict[int, int],
        table_places: dict[tuple[int, ...], int],
        capacity: int,
    ):
        self.schedule, self.memory, self.plans, self.numbers = schedule, memory, plans, numbers
        self.table_places, self.capacity = table_places, capacity
        self.n_locals = 0
        self.counters: dict[str, int] = {}

    def add(self, module: w.Module) -> dict[str, int]:
        s = self.schedule
        begin = module.add([], [], [], self._all(s.begin)[0])
        kept, on = self._new(), self._new()
        advance, done = self._all(s.advance)
        code = w.call(begin) + advance
        code += w.i32(1) + w.put(kept) + w.i32(1) + w.put(on)
        j = self._new()
        for n in s.committed:
            limit = (FINITE if n in s.unbounded else LARGEST)["double"]
            entry = w.get(j) + w.load(self.memory.places[following(n)])
            test = entry + w.F64_ABS + w.f64(limit) + w.F64_LT
            code += _each(j, s.sizes[n], w.get(kept) + test + w.I32_AND + w.put(kept))
        if s.halt:
            test = w.get(j) + w.load(self.memory.places[s.halt]) + w.f64(0.0) + w.F64_GE
            code += _each(j, s.sizes[s.halt], w.get(on) + test + w.I32_AND + w.put(on))
        well = w.i32(1) + b"".join(w.get(x) + w.I32_AND for x in done)
        status = w.get(kept) + w.I32_EQZ + w.i32(LOST) + w.I32_MUL
        status += w.get(on) + w.I32_EQZ + w.i32(HALTED) + w.I32_MUL + w.I32_OR
        status += well + w.I32_EQZ + w.i32(NOT_CONVERGED) + w.I32_MUL + w.I32_OR
        code += status + w.tee(j) + w.IF + w.get(j) + w.RETURN + w.END
        for n in s.committed:
            code += self._copy(self.memory.places[n], self.memory.places[following(n)], s.sizes[n])
        step = module.add([], [w.I32], [(self.n_locals, w.I32)], code + w.i32(0))
        return {"begin": begin, "step": step}

    def _new(self) -> int:
        self.n_locals += 1
        return self.n_locals - 1

    def _copy(self, to: int, source: int, size: int) -> bytes:
        return w.i32(8 * to) + w.i32(8 * source) + w.i32(8 * size) + w.MEMORY_COPY if size else b""

    def _all(self, items: Sequence[Item]) -> tuple[bytes, list[int]]:
        """Calls and loops in order; for each repetition the local that is 1 if it was done in time."""
        code, done = b"", list[int]()
        for x in items:
            if isinstance(x, Repeat):
                more, own = self._repeat(x)
                code, done = code + more, done + own
            elif isinstance(x, When):
                inner, _ = self._all(x.calls)
                code += self._number(x.flag) + w.f64(0.0) + w.F64_GT + w.IF + inner + w.END
            elif isinstance(x, For):
                code += self._for(x)
            elif isinstance(x, OneOf):
                code += self._one_of(x)
            else:
                code += self._call(x)
        return code, done

    def _for(self, f: For) -> bytes:
        c = self._new()
        first, end = self._bound(f.first), self._bound(f.end)
        outer, self.counters = self.counters, {**self.counters, f.counter: c}
        inner, _ = self._all(f.calls)
        self.counters = outer
        leave = w.get(c) + end + w.I32_GE + w.branch_if(1)
        again = w.get(c) + w.i32(1) + w.I32_ADD + w.put(c) + w.branch(0)
        return first + w.put(c) + w.BLOCK + w.LOOP + leave + inner + again + w.END + w.END

    def _one_of(self, x: OneOf) -> bytes:
        entry = w.get(self.counters[x.counter]) + w.i32(4) + w.I32_MUL + w.load_word(self.table_places[x.table])
        chosen = self._new()
        cases = (w.get(chosen) + w.i32(k) + w.I32_EQ + w.IF + self._call(c) + w.END for k, c in enumerate(x.calls))
        return entry + w.put(chosen) + b"".join(cases)

    def _repeat(self, r: Repeat) -> tuple[bytes, list[int]]:
        own, turn = self._new(), self._new()
        inner, done = self._all(r.calls)
        code = w.i32(0) + w.put(turn) + w.BLOCK + w.LOOP + inner
        code += self._number(r.left) + w.f64(0.0) + w.F64_LE + w.tee(own) + w.branch_if(1)
        code += w.get(turn) + w.i32(1) + w.I32_ADD + w.tee(turn) + w.i32(r.most) + w.I32_GE + w.branch_if(1)
        code += self._all(r.between)[0] + (self._append(r.log) if r.log is not None else b"")
        return code + w.branch(0) + w.END + w.END, [*done, own]

    def _append(self, log: Log) -> bytes:
        """A row of the log where the flag is positive."""
        at, width = self.memory.places, self.schedule.width(log.arrays)
        logged = w.i32(0) + w.load(at[LOGGED])
        code, before = self._number(log.flag) + w.f64(0.0) + w.F64_GT + w.IF, 0
        code += logged + w.f64(float(self.capacity)) + w.F64_LT + w.IF
        for n in log.arrays:
            size = self.schedule.sizes[n]
            row = logged + w.I32_TRUNCATED + w.i32(8 * width) + w.I32_MUL + w.i32(8 * (at[LOG] + before)) + w.I32_ADD
            code += row + w.i32(8 * at[n]) + w.i32(8 * size) + w.MEMORY_COPY if size else b""
            before += size
        return code + w.END + w.i32(0) + logged + w.f64(1.0) + w.F64_ADD + w.store(at[LOGGED]) + w.END

    def _call(self, c: Call) -> bytes:
        at, code = self.memory.places, b""
        both = copied(c, self.plans[id(c.plan)])
        for n in both:
            code += self._copy(at[copy_of(n)], at[n], self.schedule.sizes[n])
        code += b"".join(self._address(place) for place in (*read_places(c, both), *c.writes))
        return code + w.call(self.numbers[id(c.plan)])

    def _address(self, place: Place) -> bytes:
        if isinstance(place, str):
            return w.i32(8 * self.memory.places[place])
        code = w.i32(8 * (self.memory.places[place.array] + place.offset))
        for counter, stride in place.at:
            if isinstance(stride, int):
                term = w.get(self.counters[counter]) + w.i32(8 * stride) + w.I32_MUL
            else:
                entry = w.get(self.counters[counter]) + w.i32(4) + w.I32_MUL + w.load_word(self.table_places[stride])
                term = entry + w.i32(8) + w.I32_MUL
            code += term + w.I32_ADD
        return code

    def _number(self, place: Place) -> bytes:
        return self._address(place) + w.load(0)

    def _bound(self, b: Bound) -> bytes:
        return w.i32(b) if isinstance(b, int) else w.get(self.counters[b[0]]) + w.i32(b[1]) + w.I32_ADD
