"""A Plan as LLVM text for NVIDIA GPUs, several warps to 32 states:

    batch(in0, in1, ..., out, status, i32 n)

Arguments, layouts, statuses and rows of NaN are those of render/gpu/threads.py. Each warp does the work of one worker
(lower/exchange.py) for the same 32 states, one state a thread; values cross in shared memory, [slot][state], with a
barrier between stages. So a state has the registers of all its warps, and small batches keep more of the GPU busy.
Warps and states form a group; a block has one group, or several that share the instructions which it fetches.

Rows, of 32 states and more, are moved to shared memory by the whole group and stay there until the end: a warp reads
an input again where it does not hold it. Columns are loaded first, by each warp that needs them. Shared memory of a
group, in numbers:

    status [warp][state] | rows of inputs | values that cross [slot][state] | spilled values [warp][slot][state]

The rows of the answer take the place of all but the status.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from spanloop.compiler.lower.exchange import Exchange
from spanloop.compiler.lower.plan import Output
from spanloop.compiler.lower.spilling import Spills, spills_of
from spanloop.compiler.render.gpu import entry
from spanloop.compiler.render.gpu.row_tiles import RowTiles, pitch
from spanloop.compiler.render.gpu.state_checks import StateChecks, status_bits
from spanloop.compiler.render.gpu.threads import BUDGET, SHARED, Layout, ThreadKernel
from spanloop.compiler.render.instructions import Body, Real, declarations
from spanloop.compiler.render.single import OFF_GUARD, angles, input_places
from spanloop.compiler.trace import INPUT, Expression

RESIDENT = (4, 2, 1)  # groups on a multiprocessor, of which the first is chosen that leaves memory for spilled values
FIXED = 0.75  # of its memory that a group may need for other things
_W = entry.WARP


def warp_kernel(
    exchange: Exchange, real: str, layout: Layout, groups: int = 1, budget: int | None = None, shared: int = SHARED
) -> ThreadKernel:
    """The kernel of a divided plan that `fits`.

    groups: of a block; budget: values that a thread holds in registers; shared: bytes of shared memory of a block.
    """
    memory, size, shared = _Memory.of(exchange, layout), Real(real).size, min(shared, SHARED)
    shares = [shared // k for k in RESIDENT if k >= groups] or [shared // groups]
    most = next((x for x in shares if memory.spilled * size <= FIXED * x), shares[-1])
    slots = (most // size - memory.spilled) // (_W * exchange.workers)
    workers = _workers(exchange, memory, budget or BUDGET[real], slots)
    return _Writer(exchange, Real(real), layout, groups, memory, workers).kernel()


def fits(exchange: Exchange, real: str, layout: Layout, groups: int = 1, shared: int = SHARED) -> bool:
    """Whether rows and the values that cross fit the shared memory of a block."""
    memory = _Memory.of(exchange, layout)
    return groups * max(memory.spilled, memory.answer) * Real(real).size <= min(shared, SHARED)


@dataclass(frozen=True)
class _Memory:
    """Where things are in the shared memory of a group, in numbers."""

    rows: dict[int, int]  # of each input that is moved as rows
    crossing: int
    spilled: int
    answer: int  # rows of it; they begin where the status ends

    @staticmethod
    def of(exchange: Exchange, layout: Layout) -> _Memory:
        at, rows = _W * exchange.workers, {}
        for k, (_, size) in enumerate(exchange.plan.inputs):
            if layout.kind == "rows" and not layout.is_common(k):
                rows[k] = at
                at += _W * pitch(size)
        answer = _W * pitch(len(exchange.plan.outputs)) if layout.kind == "rows" else 0
        return _Memory(rows, at, at + _W * exchange.n_slots, answer)


@dataclass(frozen=True)
class _Worker:
    """What one warp does beside its operations.

    outputs: the numbers of those that it has; inputs: what it reads; checked: those inputs that it checks; has_guards:
    whether it checks the guards of the plan.
    """

    number: int
    moves: Spills
    outputs: tuple[int, ...]
    inputs: tuple[Expression, ...]
    checked: frozenset[int]
    has_guards: bool


def _workers(exchange: Exchange, memory: _Memory, budget: int, slots: int) -> list[_Worker]:
    """An input is checked by the first worker that reads it; guards, and inputs that none reads, by the least busy."""
    plan, count = exchange.plan, exchange.workers
    every, places = plan.outputs + plan.demand_flags, input_places(plan)
    outputs = [tuple(j for j, x in enumerate(every) if exchange.home_of(x) == w) for w in range(count)]
    work = [exchange.work(w) for w in range(count)]
    read = [_inputs(work[w], [every[j] for j in outputs[w]]) for w in range(count)]
    idle = min(range(count), key=lambda w: len(work[w]))
    read[idle] |= _inputs(plan.checks, plan.guards)
    checker = {n.index: idle for n in plan.arguments}
    for w in reversed(range(count)):
        checker.update((i, w) for i in read[w])
    found = []
    for w in range(count):
        checked = frozenset(i for i, v in checker.items() if v == w)
        inputs = tuple(n for n in plan.arguments if n.index in read[w] | checked)
        kept = {n.index for n in inputs if places[int(n.value)][0] in memory.rows}
        kept |= {i for n in work[w] for i in (n.index, *(x.index for x in _operands(n))) if i in exchange.slot}
        moves = spills_of(work[w], [every[j] for j in outputs[w]], budget, slots, kept)
        found.append(_Worker(w, moves, outputs[w], inputs, checked, w == idle))
    return found


def _operands(n: Expression) -> list[Expression]:
    return [x for x in (n.a, n.b, n.c) if x is not None]


def _inputs(nodes: Sequence[Expression], outputs: Sequence[Output]) -> set[int]:
    """Which inputs these operations and outputs read."""
    read = [x for n in nodes for x in (n, *_operands(n))] + [x for x in outputs if isinstance(x, Expression)]
    return {x.index for x in read if x.op == INPUT}


@dataclass
class _Writer:
    exchange: Exchange
    t: Real
    layout: Layout
    groups: int
    memory: _Memory
    workers: list[_Worker]
    lines: list[str] = field(default_factory=list)
    count: int = 0

    def kernel(self) -> ThreadKernel:
        self.plan, self.places = self.exchange.plan, input_places(self.exchange.plan)
        self.sizes, self.n_out = [size for _, size in self.plan.inputs], len(self.plan.outputs)
        self.turning, others = angles(self.plan)
        self.computed_angles = {x.index for x in others}
        self.in_place = any(w.moves.n_slots for w in self.workers)
        spilled = _W * sum(w.moves.n_slots for w in self.workers)
        status = _W * len(self.workers)
        self.size = max(self.memory.spilled + spilled, status + self.memory.answer)
        self.threads = _W * len(self.workers)  # of a group
        self.tiles = RowTiles(self.new, self.lines, self.t, self.threads, "%tile")
        self._begin()
        for worker in self.workers:
            _Warp(self, worker).write()
        if self.layout.kind == "rows":
            self.lines.append("rows:")
            self.tiles.empty(self.n_out, status, self._thread_again("rows"))
            self.lines.append("ret void")
        source, threads = self._function(), self.threads * self.groups
        return ThreadKernel(source, threads, self.groups * self.size * self.t.size, self.layout.kind, _W * self.groups)

    def _function(self) -> str:
        arguments = [f"ptr addrspace(1) noalias readonly %a{k}" for k in range(len(self.sizes))]
        arguments += ["ptr addrspace(1) noalias %out", "ptr addrspace(1) noalias %status", "i32 %n"]
        head = f"define ptx_kernel void @batch({', '.join(arguments)}) {{\nentry:\n"
        registers = entry.most_registers(max(w.moves.peak for w in self.workers), 0, self.t.real)
        end = declarations(self.t) + entry.INTRINSICS
        end += entry.limits("batch", self.threads * self.groups, registers)
        return entry.shared_memory(self.t.real) + head + "\n".join(self.lines) + "\n}\n" + end + entry.CONVERGENT

    def new(self, text: str) -> str:
        """Append an instruction; the name of its value."""
        self.count += 1
        self.lines.append(f"%n{self.count}_ = {text}")
        return f"%n{self.count}_"

    @property
    def barrier(self) -> str:
        """All warps of a group wait for one another."""
        return entry.BARRIER if self.groups == 1 else entry.group_barrier("%group", self.threads)

    def _begin(self) -> None:
        """%i is the thread's state, %lane its number in the group, %base the group's first state.

        Rows are complete: the last group begins so that its 32 states exist. Otherwise threads past the last state
        compute that one again. Both write the same twice.
        """
        others = " ".join(f"i32 {w.number}, label %warp{w.number}" for w in self.workers[1:])
        bound = f"sub i32 %n, {_W}" if self.layout.kind == "rows" else "sub i32 %n, 1"
        self.lines += [
            f"%tid = {entry.THREAD}\n%block = {entry.BLOCK}",
            f"%lane = urem i32 %tid, {_W}\n%warp = udiv i32 %tid, {_W}",
            f"%group = urem i32 %warp, {self.groups}\n%worker = udiv i32 %warp, {self.groups}",
            f"%before = mul i32 %block, {self.groups}\n%number = add i32 %before, %group",
            f"%base.own = mul i32 %number, {_W}\n%bound = {bound}\n%final32 = sub i32 %n, 1",
            "%base32 = call i32 @llvm.umin.i32(i32 %base.own, i32 %bound)\n%i.own = add i32 %base32, %lane",
            "%i32 = call i32 @llvm.umin.i32(i32 %i.own, i32 %final32)\n%i = zext i32 %i32 to i64",
            "%base = zext i32 %base32 to i64\n%n64 = zext i32 %n to i64",
            f"%tile.at = mul i32 %group, {self.size}",
            f"%tile = getelementptr {self.t.real}, ptr addrspace(3) @tile, i32 %tile.at",
        ]
        if self.memory.rows:
            thread = self.new(f"add i32 {self.new(f'mul i32 %worker, {_W}')}, %lane")
            self.tiles.fill([(k, self.sizes[k]) for k in self.memory.rows], self.memory.rows, thread)
            self.lines.append(self.barrier)
        self.lines.append(f"switch i32 %worker, label %warp0 [{others}]")

    def _thread_again(self, tag: str) -> str:
        """The thread's number in its group, read anew: else LLVM holds what it computed of it at the beginning."""
        self.lines.append(f'%tid.{tag} = call i32 asm sideeffect "mov.u32 $0, %tid.x;", "=r"()')
        if self.groups == 1:
            return f"%tid.{tag}"
        warp = self.new(f"udiv i32 {self.new(f'udiv i32 %tid.{tag}, {_W}')}, {self.groups}")
        return self.new(f"add i32 {self.new(f'mul i32 {warp}, {_W}')}, {self.new(f'urem i32 %tid.{tag}, {_W}')}")

    def place(self, array: str, j: int, size: int, state: str = "%i") -> str:
        """The address of number j of a state."""
        if self.layout.kind == "columns":
            at = self.new(f"add i64 {self.new(f'mul i64 %n64, {j}')}, {state}")
        else:
            at = self.new(f"add i64 {self.new(f'mul i64 {state}, {size}')}, {j}")
        return self.new(f"getelementptr {self.t.real}, ptr addrspace(1) {array}, i64 {at}")

    def cell(self, first: int, lane: str = "%lane", pitch: int = 1) -> str:
        """The address in shared memory of this state's number, `first` being that of the group's first state."""
        at = lane if pitch == 1 else self.new(f"mul i32 {lane}, {pitch}")
        return self.new(
            f"getelementptr {self.t.real}, ptr addrspace(3) %tile, i32 {self.new(f'add i32 {at}, {first}')}"
        )


class _Warp:
    """The instructions of one warp of the group."""

    def __init__(self, writer: _Writer, worker: _Worker):
        self.writer, self.worker, self.t = writer, worker, writer.t
        self.new, self.lines = writer.new, writer.lines
        self.body = Body(self.t, self._fetched, tag=f".w{worker.number}")
        self.body.lines = writer.lines
        self.checks = StateChecks(self.new, self.t, writer.in_place)
        self.unchecked = set(worker.checked)
        before = sum(w.moves.n_slots for w in writer.workers[: worker.number])
        self.spilled = writer.memory.spilled + _W * before
        self.loaded: dict[int, str] = {}

    def write(self) -> None:
        """Inputs, operations with barriers between the stages, status, outputs."""
        self.lines.append(f"warp{self.worker.number}:")
        self._load_inputs()
        guards = self._guards()
        self._compute()
        plan, every = self.writer.plan, self.writer.plan.outputs + self.writer.plan.demand_flags
        outputs = {j: self.body.value(every[j]) for j in self.worker.outputs}
        for value in {v: j for j, v in outputs.items() if _varies(every[j])}:
            self.checks.last_number(value)
        status = status_bits(self.new, self.checks.conditions() + guards, "i32")
        self._finish({j: x for j, x in outputs.items() if j < len(plan.outputs)}, status)

    # ---- inputs

    def _load_inputs(self) -> None:
        """Ask for all numbers that are not in shared memory; then check those that are this warp's to check."""
        w, r = self.writer, self.t.real
        for n in self.worker.inputs:
            k, j = w.places[int(n.value)]
            if k in w.memory.rows:
                continue
            if w.layout.is_common(k):
                p = self.new(f"getelementptr {r}, ptr addrspace(1) %a{k}, i64 {j}")
            else:
                p = w.place(f"%a{k}", j, w.sizes[k])
            self.loaded[n.index] = self.new(f"load {r}, ptr addrspace(1) {p}")
        for n in self.worker.inputs:
            if n.index in self.loaded:
                self.body.value(n)

    def _fetched(self, body: Body, n: Expression) -> str:
        """An input, checked when it is first seen; or a value in shared memory, of this warp or another."""
        w, r = self.writer, self.t.real
        if n.op != INPUT:
            slots, first = (w.exchange.slot, w.memory.crossing)
            if n.index not in slots:
                slots, first = self.worker.moves.slot, self.spilled
            return self.new(f"load {r}, ptr addrspace(3) {w.cell(first + _W * slots[n.index])}")
        k, j = w.places[int(n.value)]
        if n.index in self.loaded:
            x = self.loaded[n.index]
        else:
            p = w.cell(w.memory.rows[k] + j, "%lane", pitch(w.sizes[k]))
            x = self.new(f"load {r}, ptr addrspace(3) {p}")
        if n.index in self.unchecked:
            self.unchecked.remove(n.index)
            self.checks.number(x)
            if int(n.value) in w.turning:
                self.checks.angle(x)
        return x

    def _guards(self) -> list[tuple[str, int]]:
        """Conditions on the inputs, with their bit; the values are this warp's own, whoever computes them too."""
        if not self.worker.has_guards:
            return []
        body = Body(self.t, lambda _, n: self.body.value(n), tag=f".g{self.worker.number}")
        body.lines = self.lines
        body.add(self.writer.plan.checks)
        return [(body.value(g), OFF_GUARD) for g in self.writer.plan.guards]

    # ---- operations

    def _compute(self) -> None:
        w, body, moves = self.writer, self.body, self.worker.moves
        at = 0
        for k, nodes in enumerate(w.exchange.stages[self.worker.number]):
            if k:
                self.lines.append(w.barrier)
            for n, after in zip(nodes, moves.after[at : at + len(nodes)], strict=True):
                body.add((n,))
                self._share(n)
                for i in after.stored:
                    self._store(body.values[i], self.spilled + _W * moves.slot[i])
                for i in after.dropped:
                    del body.values[i]
            at += len(nodes)
        for n in self.worker.inputs:
            if n.index in self.unchecked:
                body.value(n)

    def _share(self, n: Expression) -> None:
        """Write a value that another warp reads; check one that is an angle."""
        w = self.writer
        if w.exchange.home[n.index] != self.worker.number:
            return
        if n.index in w.exchange.slot:
            self._store(self.body.values[n.index], w.memory.crossing + _W * w.exchange.slot[n.index])
        if n.index in w.computed_angles:
            self.checks.angle(self.body.values[n.index])

    def _store(self, value: str, first: int) -> None:
        self.lines.append(f"store {self.t.real} {value}, ptr addrspace(3) {self.writer.cell(first)}")

    # ---- status and outputs

    def _finish(self, outputs: dict[int, str], status: str) -> None:
        """Combine the statuses of all warps of the state; write outputs, or NaN where it is refused."""
        w, r, number = self.writer, self.t.real, self.worker.number
        thread = w._thread_again(str(number))
        lane = self.new(f"urem i32 {thread}, {_W}")
        self.lines.append(f"store i32 {status}, ptr addrspace(3) {w.cell(_W * number, lane)}")
        self.lines.append(w.barrier)
        total = status
        for other in w.workers:
            if other.number != number:
                found = self.new(f"load i32, ptr addrspace(3) {w.cell(_W * other.number, lane)}")
                total = self.new(f"or i32 {total}, {found}")
        refused = self.new(f"icmp ne i32 {total}, 0")
        nan = self.t.constant(math.nan)
        at = self.new(f"call i32 @llvm.umin.i32(i32 {self.new(f'add i32 %base32, {lane}')}, i32 %final32)")
        state = self.new(f"zext i32 {at} to i64")
        if number == 0:
            p = self.new(f"getelementptr i8, ptr addrspace(1) %status, i64 {state}")
            self.lines.append(f"store i8 {self.new(f'trunc i32 {total} to i8')}, ptr addrspace(1) {p}")
        first = _W * len(w.workers)
        for j, x in outputs.items():
            answer = self.new(f"select i1 {refused}, {r} {nan}, {r} {x}")
            if w.layout.kind == "rows":
                p = w.cell(first + j, lane, pitch(w.n_out))
                self.lines.append(f"store {r} {answer}, ptr addrspace(3) {p}")
            else:
                self.lines.append(f"store {r} {answer}, ptr addrspace(1) {w.place('%out', j, w.n_out, state)}")
        self.lines += [w.barrier, "br label %rows"] if w.layout.kind == "rows" else ["ret void"]


def _varies(x: Output) -> bool:
    return isinstance(x, Expression) or not math.isfinite(x)
