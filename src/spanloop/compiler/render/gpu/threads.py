"""A Plan as LLVM text for NVIDIA GPUs, one thread a state:

    batch(in0, in1, ..., out, status, i32 n)

Layouts of arrays: "columns", number j of state i at [j·n + i]; "rows", at [i·size + j], which a warp reads and writes
together, line by line, and turns in shared memory (of 32 states and more); "direct", the same arrays, each thread its
own row: faster where a state has few numbers, and for fewer states. An input that is `common` has one row for all
states. Every state gets a status; the row of one that is refused is NaN. Five things decide the speed:

- all inputs are loaded at the beginning: loaded where first needed, each would expose the latency of memory;
- in long kernels inputs are checked on arrival: at the end all of them would still be held;
- beyond `budget` held values the one that is needed last moves to shared memory, [slot][thread] (lower/spilling.py);
- kernels that can do with fewer registers get no more than let three warps run side by side (entry.most_registers);
- addresses of the end follow from a thread number that is read anew: else LLVM holds those of the beginning.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from spanloop.compiler.lower import Plan
from spanloop.compiler.lower.spilling import Spills, spills
from spanloop.compiler.render.gpu import entry
from spanloop.compiler.render.gpu.row_tiles import RowTiles, pitch
from spanloop.compiler.render.gpu.state_checks import StateChecks, status_bits
from spanloop.compiler.render.instructions import Body, Real, declarations
from spanloop.compiler.render.single import angles, input_places, last_conditions
from spanloop.compiler.trace import INPUT, Expression

BUDGET = {"float": 200, "double": 95}  # values held in registers
FEW = 32  # numbers of a state up to which each thread reads its own row
SMALL = {"float": 56, "double": 24}  # held values up to which blocks have several warps
SHARED = 216 * 1024  # bytes of shared memory of a multiprocessor that spills may take
WARPS = 8  # that share it
FEWER = 4  # that share it where so many fewer spills are left to the assembler that it pays (double)
FITTING = 6  # values beyond the budget, for each slot, up to which that is so
SEVERAL = 128  # threads of such a block


@dataclass(frozen=True)
class ThreadKernel:
    """Text of a kernel and how it is launched.

    threads, states: of a block; shared: bytes of shared memory that it takes.
    """

    source: str
    threads: int
    shared: int
    layout: str
    states: int


@dataclass(frozen=True)
class Layout:
    """How arrays lie: kind "rows", "direct" or "columns"; common: of each input, whether all states share one row."""

    kind: str
    common: tuple[bool, ...] = ()

    @staticmethod
    def of_rows(sizes: Sequence[int], real: str, common: tuple[bool, ...] = (), few: int = FEW) -> Layout:
        """The faster of the two kinds for arrays in rows; long rows do not fit the shared memory.

        sizes: of the inputs and of the answer; few: numbers up to which each thread reads its own row.
        """
        own = [size for k, size in enumerate(sizes) if not (common and k < len(common) and common[k])]
        is_long = pitch(max(own)) * entry.WARP * Real(real).size > SHARED // FEWER
        return Layout("direct" if sum(own) <= few or is_long else "rows", common)

    def is_common(self, k: int) -> bool:
        """Whether input k has one row for all states."""
        return bool(self.common) and self.common[k]


def thread_kernel(
    plan: Plan, real: str, layout: Layout, budget: int | None = None, warps: int | None = None
) -> ThreadKernel:
    """The kernel of a plan.

    budget: values that a thread holds in registers; warps: for how many on a multiprocessor its shared memory suffices.
    """
    budget, line = budget or BUDGET[real], entry.WARP * Real(real).size
    moves = spills(plan, budget, SHARED // (warps or WARPS) // line)
    if warps is None and real == "double" and moves.peak - budget <= FITTING * moves.n_slots:
        moves = spills(plan, budget, SHARED // FEWER // line)
    threads = SEVERAL if moves.peak <= SMALL[real] and layout.kind != "rows" else entry.WARP
    return _Writer(plan, Real(real), layout, moves, threads).kernel()


@dataclass
class _Writer:
    plan: Plan
    t: Real
    layout: Layout
    moves: Spills
    threads: int
    count: int = 0
    loaded: dict[tuple[int, int], str] = field(default_factory=dict)

    def kernel(self) -> ThreadKernel:
        self.sizes, self.n_out = [size for _, size in self.plan.inputs], len(self.plan.outputs)
        self.places, (self.turning, self.others) = input_places(self.plan), angles(self.plan)
        self.body = Body(self.t, self._fetched)
        self.checks = StateChecks(self.new, self.t, in_place=self.moves.n_slots > 0)
        self.tiles = RowTiles(self.new, self.body.lines, self.t)
        self._begin()
        self._load_inputs()
        self._compute()
        outputs = [self.body.value(x) for x in self.plan.outputs + self.plan.demand_flags]
        conditions = self._conditions(outputs)
        self._store(outputs)
        self._mark(conditions)
        rows = max(map(pitch, (*self._own_sizes(), self.n_out))) if self.layout.kind == "rows" else 0
        shared = self.threads * max(rows, self.moves.n_slots) * self.t.size
        return ThreadKernel(self._function(), self.threads, shared, self.layout.kind, self.threads)

    def _function(self) -> str:
        arguments = [f"ptr addrspace(1) noalias readonly %a{k}" for k in range(len(self.sizes))]
        arguments += ["ptr addrspace(1) noalias %out", "ptr addrspace(1) noalias %status", "i32 %n"]
        head = f"define ptx_kernel void @batch({', '.join(arguments)}) {{\nentry:\n"
        registers = entry.most_registers(self.moves.peak, self.n_out, self.t.real)
        end = declarations(self.t) + entry.INTRINSICS + entry.limits("batch", self.threads, registers)
        return entry.shared_memory(self.t.real) + head + "\n".join(self.body.lines) + "\n}\n" + end

    def new(self, text: str) -> str:
        """Append an instruction; the name of its value."""
        self.count += 1
        return self.body.line(f"n{self.count}_", text)

    def _own_sizes(self) -> list[int]:
        return [size for k, size in enumerate(self.sizes) if not self.layout.is_common(k)]

    # ---- states and addresses

    def _begin(self) -> None:
        """%i is the thread's state, %base the block's first.

        Rows are complete: the last block begins so that its 32 states exist. Otherwise threads past the last state
        compute that one again. Both write the same twice.
        """
        self.body.lines += [
            f"%tid = {entry.THREAD}\n%block = {entry.BLOCK}\n%base.own = mul i32 %block, {self.threads}",
            "%final32 = sub i32 %n, 1\n%n64 = zext i32 %n to i64",
        ]
        self.body.lines += [
            f"%full = sub i32 %n, {entry.WARP}\n%base32 = call i32 @llvm.umin.i32(i32 %base.own, i32 %full)"
            if self.layout.kind == "rows"
            else "%base32 = add i32 %base.own, 0",
            "%i.own = add i32 %base32, %tid\n%i32 = call i32 @llvm.umin.i32(i32 %i.own, i32 %final32)",
            "%base = zext i32 %base32 to i64\n%i = zext i32 %i32 to i64",
        ]

    def _place(self, array: str, j: int, size: int, state: str = "%i") -> str:
        """The address of number j of this thread's state."""
        if self.layout.kind == "columns":
            at = self.new(f"add i64 {self.new(f'mul i64 %n64, {j}')}, {state}")
        else:
            at = self.new(f"add i64 {self.new(f'mul i64 {state}, {size}')}, {j}")
        return self.new(f"getelementptr {self.t.real}, ptr addrspace(1) {array}, i64 {at}")

    def _slot(self, index: int) -> str:
        at = self.new(f"add i32 %tid, {self.threads * self.moves.slot[index]}")
        return self.new(f"getelementptr {self.t.real}, ptr addrspace(3) @tile, i32 {at}")

    # ---- inputs

    def _load_inputs(self) -> None:
        r = self.t.real
        if self.layout.kind == "rows":
            own = [(k, size) for k, size in enumerate(self.sizes) if not self.layout.is_common(k)]
            self.loaded = self.tiles.read(own, "%tid")
        for n in self.plan.arguments:
            k, j = self.places[int(n.value)]
            if (k, j) in self.loaded:
                continue
            if self.layout.is_common(k):
                p = self.new(f"getelementptr {r}, ptr addrspace(1) %a{k}, i64 {j}")
            else:
                p = self._place(f"%a{k}", j, self.sizes[k])
            self.loaded[k, j] = self.new(f"load {r}, ptr addrspace(1) {p}")
        for n in self.plan.arguments:
            self.body.value(n)

    def _fetched(self, body: Body, n: Expression) -> str:
        """An input on its arrival, checked; or a value that was moved to shared memory."""
        if n.op != INPUT:
            return self.new(f"load {self.t.real}, ptr addrspace(3) {self._slot(n.index)}")
        x = self.loaded[self.places[int(n.value)]]
        self.checks.number(x)
        if int(n.value) in self.turning:
            self.checks.angle(x)
        return x

    # ---- operations

    def _compute(self) -> None:
        body = self.body
        for n, moves in zip(self.moves.nodes, self.moves.after, strict=True):
            body.add((n,))
            for i in moves.stored:
                body.lines.append(f"store {self.t.real} {body.values[i]}, ptr addrspace(3) {self._slot(i)}")
            for i in moves.dropped:
                del body.values[i]

    def _conditions(self, outputs: list[str]) -> list[tuple[str, int]]:
        """What must hold of a state, with the status bit of a state for which it does not."""
        seen: set[str] = set()
        for value, x in zip(outputs, self.plan.outputs + self.plan.demand_flags, strict=True):
            if value not in seen and (isinstance(x, Expression) or not math.isfinite(x)):
                seen.add(value)
                self.checks.last_number(value)
        return self.checks.conditions() + last_conditions(self.body, self.plan, self.others)

    # ---- outputs

    def _store(self, outputs: list[str]) -> None:
        self.body.lines.append('%tid.end = call i32 asm sideeffect "mov.u32 $0, %tid.x;", "=r"()')
        own = self.new("add i32 %base32, %tid.end")
        at = self.new(f"call i32 @llvm.umin.i32(i32 {own}, i32 {self.new('sub i32 %n, 1')})")
        self.state = self.new(f"zext i32 {at} to i64")
        if self.layout.kind == "rows":
            self.tiles.write(outputs[: self.n_out], "%tid.end")
            return
        for j in range(self.n_out):
            p = self._place("%out", j, self.n_out, self.state)
            self.body.lines.append(f"store {self.t.real} {outputs[j]}, ptr addrspace(1) {p}")

    def _mark(self, conditions: list[tuple[str, int]]) -> None:
        """The status of every state; NaN in the row of one that is refused."""
        status, lines = status_bits(self.new, conditions), self.body.lines
        if self.layout.kind == "rows":
            lines.append(entry.BARRIER)  # rows are written by all threads together
        lines += [
            f"%status.p = getelementptr i8, ptr addrspace(1) %status, i64 {self.state}",
            f"store i8 {status}, ptr addrspace(1) %status.p",
            f"%refused = icmp ne i8 {status}, 0",
            "br i1 %refused, label %mark, label %done\nmark:",
        ]
        for j in range(self.n_out):
            p = self._place("%out", j, self.n_out, self.state)
            lines.append(f"store {self.t.real} {self.t.constant(math.nan)}, ptr addrspace(1) {p}")
        lines.append("br label %done\ndone:\nret void")
