"""A Schedule as an LLVM function: the time loop of many runs, one vector lane each.

    void rollout(ptr state, ptr constants, i64 constant_stride, ptr controls, i64 run_stride, i64 step_stride,
                 ptr record, i64 record_stride, ptr counts, ptr why,
                 double start, double h, i64 first, i64 steps, i64 every,
                 ptr log, i64 log_stride, i64 capacity, ptr logged, ptr memory, i64 begin, i64 end)

Runs begin..end − 1 take `steps` steps of length h from step number `first` on; time is start + number·h. Arrays are
plain C order: state (runs, numbers) is read and written back; constants and controls have strides in numbers (0: the
same for all); record (runs, record_stride) gets a row at the start of every `every`-th step and after the last.
counts (runs) gets the number of steps that ended well, why (runs) the bits of what ended a run; a run that comes
with bits set does not move. log, log_stride, capacity and logged are those of `append` (render/run_log.py). memory:
where arrays are that are too large for the stack (`distant`); each call has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from typing import Any

from spanloop.compiler.lower.lifetimes import shared_places
from spanloop.compiler.lower.schedule import (
    STEP,
    TIME,
    Block,
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
    array_of,
    following,
)
from spanloop.compiler.render.batch import block_declarations, load_block, store_block
from spanloop.compiler.render.instructions import Body, Real, declarations
from spanloop.compiler.render.plan_function import PlanFunction, function_source
from spanloop.compiler.render.run_log import append_function
from spanloop.compiler.render.single import PACK

LARGEST = {"double": 1e9, "float": 1e6}  # size of a number of the state, in range of the fast sine and cosine
FINITE = {"double": 1e300, "float": 1e37}  # size of one in arrays that are not bounded
LOST = 1  # a number is not finite or not below LARGEST
HALTED = 2  # an entry of `halt` is negative
NOT_CONVERGED = 4  # a repetition was not done in time
NEAR = 1000  # numbers: larger arrays are not on the stack
CHANGED = "%changed"  # where the state is kept that calls change themselves
LONG = 64  # numbers: longer arrays are read from rows and written to them in loops

_HEAD = (
    "define void @rollout(ptr %state, ptr %constants, i64 %constant_stride, ptr %controls, i64 %run_stride, "
    "i64 %step_stride, ptr %record, i64 %record_stride, ptr %counts, ptr %why, "
    "double %start, double %h, i64 %first, i64 %steps, i64 %every, "
    "ptr %log, i64 %log_stride, i64 %capacity, ptr %logged, ptr %memory, i64 %begin, i64 %end) #0 {"
)


def distant(schedule: Schedule, real: str, width: int) -> tuple[dict[str, int], int]:
    """Where arrays begin that are too large for the stack, in bytes, by name; and how many bytes they take."""
    number, at, places = Real(real, width).size * width, 0, dict[str, int]()
    for name, size in (*schedule.sizes.items(), (CHANGED, schedule.width(schedule.changed))):
        if size > NEAR:
            places[name] = at
            at += -(-size * number // 64) * 64
    return places, at


def rollout(schedule: Schedule, real: str, width: int, pack: int = PACK, is_local: bool = False) -> str:
    """Source of `rollout` with `width` runs to a vector; pack: sines that share a vector where it has one lane.

    is_local: for a GPU, where what would be on the stack is in an address space of its own; memory is short there, so
    arrays that are not needed at once share it.
    """
    t = Real(real, width)
    plan_functions = _plan_functions(schedule, distant(schedule, real, width)[0] if is_local else None)
    functions = "".join(function_source(s, t, pack) for s in plan_functions.values())
    if schedule.log is not None:
        functions += append_function(t, [schedule.sizes[n] for n in schedule.log.arrays])
    text = functions + _Loop(schedule, t, plan_functions, is_local).source()
    wide = (t, t.wide(2), t.wide(pack)) if width == 1 and pack > 1 else (t,)
    masked = block_declarations(Body(t, _nothing)) if width > 1 else ""
    bits = 256 if width == 1 else width * t.size * 8
    attributes = f'attributes #0 = {{ nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}" }}\n'
    return text + declarations(*wide) + masked + attributes


def _plan_functions(schedule: Schedule, far: Container[str] | None = None) -> dict[int, PlanFunction]:
    """The function of each plan, by the plan's identity; far: arrays that are not local, where that counts."""
    sizes = {id(c.plan): tuple(_size(schedule, n) for n in c.writes) for c in schedule.calls()}
    found = {id(p): PlanFunction(f"s{k}.{p.name}", p, sizes[id(p)]) for k, p in enumerate(schedule.plans())}
    if far is None:
        return found
    elsewhere: dict[int, set[str]] = {key: set() for key in found}
    for c in schedule.calls():
        places = zip(found[id(c.plan)].arguments, (*c.reads, *c.writes), strict=True)
        elsewhere[id(c.plan)] |= {x for x, place in places if array_of(place) in far}
    return {k: replace(f, local=frozenset(f.arguments) - elsewhere[k]) for k, f in found.items()}


def _size(schedule: Schedule, place: Place) -> int:
    return place.size if isinstance(place, Block) else schedule.sizes[place]


def _nothing(body, node):
    raise AssertionError("the loop computes no expressions")


class _Loop:
    """The time loop around the functions of the plans, block after block."""

    def __init__(self, schedule: Schedule, t: Real, plan_functions: dict[int, PlanFunction], shares: bool):
        self.schedule, self.t, self.plan_functions, self.shares = schedule, t, plan_functions, shares
        self.body = Body(t, _nothing)
        self.block = "entry"
        self.names = self.loops = 0
        self.counters: dict[str, str] = {}  # of the loops around a call
        self.tables: dict[tuple[int, ...], str] = {}

    def source(self) -> str:
        s, t = self.schedule, self.t
        self._allocate()
        self._line("%any = icmp slt i64 %begin, %end")
        self._line("%final = sub i64 %end, 1")
        self._line("%last_step = sub i64 %steps, 1")
        self._line("br i1 %any, label %group, label %done")

        self._begin("group")
        self._line("%i = phi i64 [%begin, %entry], [%i.next, %stored]")
        self._number_runs()
        state = self._rows("%state", s.width(s.state))
        self._load(state, s.state)
        if s.constants:
            self._load(self._rows("%constants", "%constant_stride"), s.constants)
        self._lanes("why", "i8", "%why")
        still = self._new(f"icmp eq {self._vector('i8')} %why.in, {self._zero('i8')}")
        self._line("br label %loaded")
        self._begin("loaded")
        self._line("br label %step")

        self._begin("step")
        whole = self._vector("i64")
        self._line("%s = phi i64 [0, %loaded], [%s.next, %moved]")
        self._line(f"%alive = phi {t.truth} [{still}, %loaded], [%alive.next, %moved]")
        self._line(f"%count = phi {whole} [{self._zero('i64')}, %loaded], [%count.next, %moved]")
        self._line(f"%bits = phi {self._vector('i8')} [%why.in, %loaded], [%bits.next, %moved]")
        self._fill(STEP, self._real("%h"))
        self._time()
        if s.controls:
            self._read_controls()
        for c in s.begin:
            self._call(c)
        self._line("%phase = urem i64 %s, %every")
        self._line("%sampled = icmp eq i64 %phase, 0")
        self._line("%wanted = icmp ne ptr %record, null")
        self._line("%recorded = and i1 %sampled, %wanted")
        self._line("br i1 %recorded, label %write, label %go")

        self._begin("write")
        number = self._new("udiv i64 %s, %every")
        at = self._new(f"mul i64 {number}, {s.width(s.record)}")
        start = self._new(f"getelementptr {t.real}, ptr %record, i64 {at}")
        self._store(self._rows(start, "%record_stride"), s.record)
        self._line("br label %go")

        self._begin("go")
        self._line("%ended = icmp sge i64 %s, %steps")
        self._line("br i1 %ended, label %finish, label %advance")

        self._begin("advance")
        if s.changed:
            self._keep()
        self._commit(self._all(s.advance))
        if s.changed:
            self._restore()
        self._line("br label %moved")
        self._begin("moved")
        self._line(f"br i1 {self._some('%alive.next')}, label %step, label %finish")

        self._begin("finish")
        self._line(f"%count.out = phi {whole} [%count, %go], [%count.next, %moved]")
        self._line(f"%bits.out = phi {self._vector('i8')} [%bits, %go], [%bits.next, %moved]")
        self._store(state, s.state)
        self._write_lanes("i64", "%counts", "%count.out")
        self._write_lanes("i8", "%why", "%bits.out")
        self._line("br label %stored")
        self._begin("stored")
        self._line(f"%i.next = add i64 %i, {t.width}")
        self._line("%more = icmp slt i64 %i.next, %end")
        self._line("br i1 %more, label %group, label %done")
        self._begin("done")
        self._line("ret void")
        tables = "".join(
            f"{name} = internal constant [{len(x)} x i64] [{', '.join(f'i64 {k}' for k in x)}]\n"
            for x, name in self.tables.items()
        )
        return tables + _HEAD + "\nentry:\n" + "\n".join(self.body.lines) + "\n}\n"

    # ---- instructions

    def _line(self, text: str) -> None:
        self.body.lines.append(text)

    def _new(self, text: str) -> str:
        self.names += 1
        self._line(f"%n{self.names} = {text}")
        return f"%n{self.names}"

    def _begin(self, label: str) -> None:
        self.block = label
        self._line(f"{label}:")

    def _vector(self, kind: str) -> str:
        return kind if self.t.width == 1 else f"<{self.t.width} x {kind}>"

    def _zero(self, kind: str) -> str:
        return "0" if self.t.width == 1 else "zeroinitializer"

    def _truth(self, yes: bool) -> str:
        word = "true" if yes else "false"
        return word if self.t.width == 1 else f"splat (i1 {word})"

    def _some(self, mask: str) -> str:
        """Whether a mask is set for any lane."""
        return mask if self.t.width == 1 else self._new(f"icmp ne i{self.t.width} {self._packed(mask)}, 0")

    def _every(self, mask: str) -> str:
        """Whether a mask is set for all lanes."""
        return mask if self.t.width == 1 else self._new(f"icmp eq i{self.t.width} {self._packed(mask)}, -1")

    def _packed(self, mask: str) -> str:
        """A mask as a whole number, one bit a lane."""
        return mask if self.t.width == 1 else self._new(f"bitcast {self.t.truth} {mask} to i{self.t.width}")

    def _splat_i8(self, bit: int) -> str:
        return str(bit) if self.t.width == 1 else f"splat (i8 {bit})"

    # ---- arrays

    def _allocate(self) -> None:
        far = distant(self.schedule, self.t.real, self.t.width)[0]
        shared = self._allocate_shared(far) if self.shares else {}
        for k, (name, size) in enumerate(self.schedule.sizes.items()):
            if name in shared:
                self._line(f"%m{k} = getelementptr {self.t.value}, ptr %shared, i64 {shared[name]}")
            elif name in far:
                self._line(f"%m{k} = getelementptr i8, ptr %memory, i64 {far[name]}")
            else:
                self._line(f"%m{k} = alloca [{max(size, 1)} x {self.t.value}], align 64")
        self.memory = {name: f"%m{k}" for k, name in enumerate(self.schedule.sizes)}
        if any(self.schedule.sizes[n] > LONG for n in self.schedule.committed):
            self._line(f"%outside = alloca {self.t.value}, align 64")
        copied = sorted({n for c in self.schedule.calls() for n in self._copied(c)})
        for k, name in enumerate(copied):
            self._line(f"%copy{k} = alloca [{self.schedule.sizes[name]} x {self.t.value}], align 64")
        if CHANGED in far:
            self._line(f"%changed = getelementptr i8, ptr %memory, i64 {far[CHANGED]}")
        elif self.schedule.changed:
            size = self.schedule.width(self.schedule.changed)
            self._line(f"%changed = alloca [{size} x {self.t.value}], align 64")
        self.copies = {name: f"%copy{k}" for k, name in enumerate(copied)}

    def _allocate_shared(self, apart: Container[str]) -> dict[str, int]:
        """Memory of all arrays but those apart, and where each begins in it, in numbers."""
        in_pieces = {key for key, f in self.plan_functions.items() if len(f.segments.pieces) > 1}
        places, size = shared_places(self.schedule, in_pieces, apart)
        self._line(f"%shared = alloca [{max(size, 1)} x {self.t.value}], align 64")
        return places

    def _copied(self, c: Call) -> list[str]:
        """Arrays that a call reads and writes where its plan, in several pieces, may read after it has written."""
        if len(self.plan_functions[id(c.plan)].segments.pieces) == 1:
            return []
        written = {array_of(n) for n in c.writes}
        both = [n for n in c.reads if array_of(n) in written]
        assert all(isinstance(n, str) for n in both), f"{c.plan.name} is too long to change blocks of an array"
        return [n for n in both if isinstance(n, str)]

    def _place(self, name: Place, j: int) -> str:
        return self._new(f"getelementptr {self.t.value}, ptr {self._begins(name)}, i64 {j}")

    def _begins(self, place: Place) -> str:
        """Where an array or a block of it begins."""
        if isinstance(place, str):
            return self.memory[place]
        at = str(place.offset)
        for counter, stride in place.at:
            if isinstance(stride, int):
                term = self._new(f"mul i64 {self.counters[counter]}, {stride}")
            else:
                term = self._entry(stride, self.counters[counter])
            at = self._new(f"add i64 {at}, {term}")
        return self._new(f"getelementptr {self.t.value}, ptr {self.memory[place.array]}, i64 {at}")

    def _get(self, name: Place, j: int) -> str:
        return self._new(f"load {self.t.value}, ptr {self._place(name, j)}, align {self.t.size}")

    def _put(self, name: Place, j: int, value: str) -> None:
        self._line(f"store {self.t.value} {value}, ptr {self._place(name, j)}, align {self.t.size}")

    def _fill(self, name: str, number: str) -> None:
        """A number that is the same for all runs."""
        t = self.t
        if name not in self.memory:
            return
        if t.width > 1:
            one = self._new(f"insertelement {t.value} poison, {t.real} {number}, i32 0")
            lanes = f"<{t.width} x i32> zeroinitializer"
            number = self._new(f"shufflevector {t.value} {one}, {t.value} poison, {lanes}")
        self._put(name, 0, number)

    def _real(self, number: str) -> str:
        return number if self.t.real == "double" else self._new(f"fptrunc double {number} to float")

    def _number_runs(self) -> None:
        """The run of each lane; the last one fills up the last group."""
        for lane in range(self.t.width):
            at = self._new(f"add i64 %i, {lane}")
            inside = self._new(f"icmp sle i64 {at}, %final")
            self._line(f"%run.{lane} = select i1 {inside}, i64 {at}, i64 %final")

    def _rows(self, pointer: str, stride) -> list[str]:
        """Where each lane's row begins."""
        out = []
        for lane in range(self.t.width):
            offset = self._new(f"mul i64 %run.{lane}, {stride}")
            out.append(self._new(f"getelementptr {self.t.real}, ptr {pointer}, i64 {offset}"))
        return out

    def _columns(self, names: Sequence[str]) -> list[tuple[str, int]]:
        return [(n, j) for n in names for j in range(self.schedule.sizes[n])]

    def _load(self, row: list[str], names: Sequence[str]) -> None:
        self._transfer(row, names, self._load_columns)

    def _store(self, row: list[str], names: Sequence[str]) -> None:
        self._transfer(row, names, self._store_columns)

    def _transfer(self, row: list[str], names: Sequence[str], columns: Callable) -> None:
        """Columns of runs' rows in blocks of a vector's width; long arrays in a loop, so that code stays short."""
        width, at, short = self.t.width, 0, list[tuple[Place, int]]()
        for name in names:
            size = self.schedule.sizes[name]
            if size <= LONG:
                short += [(name, j) for j in range(size)]
                at += size
                continue
            columns(row, at - len(short), short)
            short, count = [], size // width

            def block(row: list[str] = row, at: int = at, name: str = name) -> None:
                place = Block(name, width, (("column", width),))
                offset = self._new(f"mul i64 {self.counters['column']}, {width}")
                moved = [self._new(f"getelementptr {self.t.real}, ptr {r}, i64 {offset}") for r in row]
                columns(moved, at, [(place, j) for j in range(width)])

            self._loop("column", "0", str(count), block)
            columns(row, at + count * width, [(name, j) for j in range(count * width, size)])
            at += size
        columns(row, at - len(short), short)

    def _load_columns(self, row: list[str], at: int, columns: Sequence[tuple[Place, int]]) -> None:
        t = self.t
        for first in range(0, len(columns), t.width):
            block = columns[first : first + t.width]
            self.names += 1
            if t.width == 1:
                p = self._new(f"getelementptr {t.real}, ptr {row[0]}, i64 {at + first}")
                values = [self._new(f"load {t.real}, ptr {p}, align {t.size}")]
            else:
                values = load_block(self.body, row, at + first, len(block), f".b{self.names}")
            for (name, j), value in zip(block, values, strict=True):
                self._put(name, j, value)

    def _store_columns(self, row: list[str], at: int, columns: Sequence[tuple[Place, int]]) -> None:
        t = self.t
        for first in range(0, len(columns), t.width):
            values = [self._get(n, j) for n, j in columns[first : first + t.width]]
            self.names += 1
            if t.width == 1:
                p = self._new(f"getelementptr {t.real}, ptr {row[0]}, i64 {at + first}")
                self._line(f"store {t.real} {values[0]}, ptr {p}, align {t.size}")
            else:
                store_block(self.body, row, at + first, values, f".b{self.names}")

    def _lanes(self, tag: str, kind: str, pointer: str) -> None:
        """One whole number of each run as a vector, %{tag}.in; and where they stand."""
        lanes = range(self.t.width)
        places = [self._new(f"getelementptr {kind}, ptr {pointer}, i64 %run.{lane}") for lane in lanes]
        if self.t.width == 1:
            self._line(f"%{tag}.in = load {kind}, ptr {places[0]}")
            return
        vector = "zeroinitializer"
        for lane, p in enumerate(places):
            x = self._new(f"load {kind}, ptr {p}")
            name = f"%{tag}.in" if lane == self.t.width - 1 else f"%{tag}.in{lane}"
            self._line(f"{name} = insertelement {self._vector(kind)} {vector}, {kind} {x}, i32 {lane}")
            vector = name

    def _write_lanes(self, kind: str, pointer: str, value: str) -> None:
        for lane in range(self.t.width):
            p = self._new(f"getelementptr {kind}, ptr {pointer}, i64 %run.{lane}")
            x = value
            if self.t.width > 1:
                x = self._new(f"extractelement {self._vector(kind)} {value}, i32 {lane}")
            self._line(f"store {kind} {x}, ptr {p}")

    # ---- a step

    def _time(self) -> None:
        number = self._new("add i64 %first, %s")
        real = self._new(f"sitofp i64 {number} to double")
        passed = self._new(f"fmul double {real}, %h")
        self._fill(TIME, self._real(self._new(f"fadd double %start, {passed}")))

    def _read_controls(self) -> None:
        early = self._new("icmp slt i64 %s, %last_step")
        number = self._new(f"select i1 {early}, i64 %s, i64 %last_step")  # after the last step its controls still hold
        at = self._new(f"mul i64 {number}, %step_stride")
        start = self._new(f"getelementptr {self.t.real}, ptr %controls, i64 {at}")
        self._load(self._rows(start, "%run_stride"), self.schedule.controls)

    def _call(self, c: Call) -> None:
        inputs = {n: self._begins(n) for n in c.reads}
        for n in self._copied(c):
            inputs[n] = self.copies[n]
            for j in range(self.schedule.sizes[n]):
                place = self._new(f"getelementptr {self.t.value}, ptr {inputs[n]}, i64 {j}")
                self._line(f"store {self.t.value} {self._get(n, j)}, ptr {place}, align {self.t.size}")
        arrays = [*(inputs[n] for n in c.reads), *(self._begins(n) for n in c.writes)]
        self._line(self.plan_functions[id(c.plan)].call(arrays))

    def _all(self, calls: Sequence[Item]) -> list[str]:
        """Calls and loops in order; for each loop the mask of runs that were done in time."""
        done = []
        for x in calls:
            if isinstance(x, Repeat):
                done += self._repeat(x)
            elif isinstance(x, When):
                self._when(x)
            elif isinstance(x, For):
                self._for(x)
            elif isinstance(x, OneOf):
                self._one_of(x)
            else:
                self._call(x)
        return done

    def _for(self, f: For) -> None:
        self._loop(f.counter, self._bound(f.first), self._bound(f.end), lambda: self._all(f.calls))

    def _one_of(self, x: OneOf) -> None:
        self.loops += 1
        k, chosen = self.loops, self._entry(x.table, self.counters[x.counter])
        cases = " ".join(f"i64 {j}, label %case{k}.{j}" for j in range(1, len(x.calls)))
        self._line(f"switch i64 {chosen}, label %case{k}.0 [{cases}]")
        for j, c in enumerate(x.calls):
            self._begin(f"case{k}.{j}")
            self._call(c)
            self._line(f"br label %chosen{k}")
        self._begin(f"chosen{k}")

    def _entry(self, table: tuple[int, ...], counter: str) -> str:
        """The entry of a table at a counter."""
        name = self.tables.setdefault(table, f"@table{len(self.tables)}")
        return self._new(f"load i64, ptr {self._new(f'getelementptr i64, ptr {name}, i64 {counter}')}")

    def _loop(self, counter: str, first: str, end: str, inside: Callable[[], Any]) -> None:
        """What `inside` writes, for each value of a counter from first to end − 1."""
        self.loops += 1
        k, before = self.loops, self.block
        self._line(f"br label %head{k}")
        self._begin(f"head{k}")
        start = len(self.body.lines)
        more = self._new(f"icmp slt i64 %c{k}, {end}")
        self._line(f"br i1 {more}, label %body{k}, label %end{k}")
        self._begin(f"body{k}")
        outer, self.counters = self.counters, {**self.counters, counter: f"%c{k}"}
        inside()
        self.counters = outer
        self._line(f"%c{k}.next = add i64 %c{k}, 1")
        self._line(f"br label %head{k}")
        self.body.lines.insert(start, f"%c{k} = phi i64 [{first}, %{before}], [%c{k}.next, %{self.block}]")
        self._begin(f"end{k}")

    def _bound(self, b: Bound) -> str:
        return str(b) if isinstance(b, int) else self._new(f"add i64 {self.counters[b[0]]}, {b[1]}")

    def _repeat(self, r: Repeat) -> list[str]:
        """The loop; the masks of runs that were done in time, of the loops inside it (in its last turn) and its own."""
        t, before = self.t, self.block
        self.loops += 1
        k = self.loops
        self._line(f"br label %again{k}")
        self._begin(f"again{k}")
        start = len(self.body.lines)
        done = self._all(r.calls)
        busy = self._new(f"fcmp ugt {t.value} {self._get(r.left, 0)}, {t.constant(0.0)}")
        counts = self._new(f"and {t.truth} {busy}, %alive")
        self._line(f"%turn{k}.next = add i64 %turn{k}, 1")
        short = self._new(f"icmp slt i64 %turn{k}.next, {r.most}")
        on = self._new(f"and i1 {self._some(counts)}, {short}")
        if r.between or r.log is not None:
            self._line(f"br i1 {on}, label %between{k}, label %after{k}")
            self._begin(f"between{k}")
            self._all(r.between)
            if r.log is not None:
                self._append(r.log, counts)
            self._line(f"br label %again{k}")
        else:
            self._line(f"br i1 {on}, label %again{k}, label %after{k}")
        turn = f"%turn{k} = phi i64 [0, %{before}], [%turn{k}.next, %{self.block}]"
        self.body.lines.insert(start, turn)
        self._begin(f"after{k}")
        return [*done, self._new(f"xor {t.truth} {busy}, {self._truth(True)}")]

    def _when(self, w: When) -> None:
        """Calls that are skipped where they concern no run."""
        self.loops += 1
        k, t = self.loops, self.t
        flag = self._new(f"fcmp ogt {t.value} {self._get(w.flag, 0)}, {t.constant(0.0)}")
        some = self._some(self._new(f"and {t.truth} {flag}, %alive"))
        self._line(f"br i1 {some}, label %when{k}, label %past{k}")
        self._begin(f"when{k}")
        self._all(w.calls)
        self._line(f"br label %past{k}")
        self._begin(f"past{k}")

    def _append(self, log: Log, busy: str) -> None:
        """A row of the log of every run that goes on and whose flag is positive."""
        t = self.t
        flag = self._new(f"fcmp ogt {t.value} {self._get(log.flag, 0)}, {t.constant(0.0)}")
        wanted = self._new(f"and {t.truth} {flag}, {busy}")
        self._line(f"br i1 {self._some(wanted)}, label %append, label %appended")
        self._begin("append")
        bits = self._new(f"zext i{t.width} {self._packed(wanted)} to i64")
        arrays = "".join(f", ptr {self.memory[n]}" for n in log.arrays)
        given = "ptr %log, i64 %log_stride, i64 %capacity, ptr %logged"
        self._line(f"call void @append(i64 {bits}, i64 %i, i64 %end, {given}{arrays})")
        self._line("br label %appended")
        self._begin("appended")

    def _commit(self, converged: list[str]) -> None:
        """The next state takes the place of the state in runs whose step ended well."""
        s, t = self.schedule, self.t
        short = [n for n in s.committed if s.sizes[n] <= LONG]
        long = [n for n in s.committed if s.sizes[n] > LONG]
        columns = self._columns(short)
        after = [self._get(following(n), j) for n, j in columns]
        kept = self._truth(True)
        for (n, _), x in zip(columns, after, strict=True):
            kept = self._new(f"and {t.truth} {kept}, {self._in_range(n, x)}")
        for n in long:
            kept = self._new(f"and {t.truth} {kept}, {self._all_in_range(n)}")
        on = self._truth(True)
        for n, j in self._columns((s.halt,) if s.halt else ()):
            well = self._new(f"fcmp oge {t.value} {self._get(n, j)}, {t.constant(0.0)}")
            on = self._new(f"and {t.truth} {on}, {well}")
        done = self._truth(True)
        for x in converged:
            done = self._new(f"and {t.truth} {done}, {x}")
        fine = self._new(f"and {t.truth} {self._new(f'and {t.truth} {kept}, {on}')}, {done}")
        self._line(f"%alive.next = and {t.truth} %alive, {fine}")
        self._replace(columns, after, long)
        one = self._new(f"zext {t.truth} %alive.next to {self._vector('i64')}")
        self._line(f"%count.next = add {self._vector('i64')} %count, {one}")
        bits = "%bits"
        for mask, bit in ((kept, LOST), (on, HALTED), (done, NOT_CONVERGED)):
            bad = self._new(f"and {t.truth} %alive, {self._new(f'xor {t.truth} {mask}, {self._truth(True)}')}")
            v = self._vector("i8")
            mark = self._new(f"select {t.truth} {bad}, {v} {self._splat_i8(bit)}, {v} {self._zero('i8')}")
            bits = self._new(f"or {v} {bits}, {mark}")
        self._line(f"%bits.next = or {self._vector('i8')} {bits}, {self._zero('i8')}")
        self._line("%s.next = add i64 %s, 1")

    def _in_range(self, name: str, x: str) -> str:
        """Whether a number of an array of the state is finite and not too large."""
        t = self.t
        limit = t.constant((FINITE if name in self.schedule.unbounded else LARGEST)[t.real])
        size = self._new(f"call {t.value} @llvm.fabs.{t.suffix}({t.value} {x})")
        return self._new(f"fcmp olt {t.value} {size}, {limit}")

    def _all_in_range(self, name: str) -> str:
        """The same of all next numbers of a long array, in a loop."""
        t, worst = self.t, "%outside"

        def one() -> None:
            fine = self._in_range(name, self._get(Block(following(name), 1, (("column", 1),)), 0))
            before = self._new(f"load {t.value}, ptr {worst}, align {t.size}")
            mark = self._new(f"select {t.truth} {fine}, {t.value} {before}, {t.value} {t.constant(1.0)}")
            self._line(f"store {t.value} {mark}, ptr {worst}, align {t.size}")

        self._line(f"store {t.value} {t.constant(0.0)}, ptr {worst}, align {t.size}")
        self._loop("column", "0", str(self.schedule.sizes[name]), one)
        found = self._new(f"load {t.value}, ptr {worst}, align {t.size}")
        return self._new(f"fcmp oeq {t.value} {found}, {t.constant(0.0)}")

    def _replace(self, columns: Sequence[tuple[str, int]], after: Sequence[str], long: Sequence[str]) -> None:
        """Numbers of the state by others where a step ended well; a run that is alone needs the old ones no more.

        columns: of short arrays, with what takes their place; long: arrays that are replaced in loops.
        """
        t = self.t
        if self.shares and t.width == 1:
            self._line("br i1 %alive.next, label %replace, label %replaced")
            self._begin("replace")
            for (n, j), x in zip(columns, after, strict=True):
                self._put(n, j, x)
            self._each(long, lambda place, x: x)
            self._line("br label %replaced")
            self._begin("replaced")
            return

        def chosen(place: Place, j: int, x: str) -> str:
            return self._new(f"select {t.truth} %alive.next, {t.value} {x}, {t.value} {self._get(place, j)}")

        for (n, j), x in zip(columns, after, strict=True):
            self._put(n, j, chosen(n, j, x))
        self._each(long, lambda place, x: chosen(place, 0, x))

    def _each(self, names: Sequence[str], value: Callable[[Place, str], str]) -> None:
        """value(place, next number) for every number of long arrays, in loops."""
        for name in names:

            def one(name: str = name) -> None:
                place, after = (Block(n, 1, (("column", 1),)) for n in (name, following(name)))
                self._put(place, 0, value(place, self._get(after, 0)))

            self._loop("column", "0", str(self.schedule.sizes[name]), one)

    def _keep(self) -> None:
        """Keep the state that calls change themselves, if a run of the group has ended in an earlier step."""

        def store(place: Place, j: int, kept: str) -> None:
            self._line(f"store {self.t.value} {self._get(place, j)}, ptr {kept}, align {self.t.size}")

        self._line(f"%ended.some = xor i1 {self._every('%alive')}, true")
        self._line("br i1 %ended.some, label %keep, label %kept")
        self._begin("keep")
        self._each_changed(store)
        self._line("br label %kept")
        self._begin("kept")

    def _restore(self) -> None:
        """It stays as it was in runs that ended in an earlier step."""
        t = self.t

        def select(place: Place, j: int, kept: str) -> None:
            before, now = self._new(f"load {t.value}, ptr {kept}, align {t.size}"), self._get(place, j)
            self._put(place, j, self._new(f"select {t.truth} %alive, {t.value} {now}, {t.value} {before}"))

        self._line("br i1 %ended.some, label %restore, label %restored")
        self._begin("restore")
        self._each_changed(select)
        self._line("br label %restored")
        self._begin("restored")

    def _each_changed(self, do: Callable[[Place, int, str], None]) -> None:
        """do(array or block, place in it, where its number is kept) for every number that calls change themselves."""
        at = 0
        for name in self.schedule.changed:
            size = self.schedule.sizes[name]
            if size <= LONG:
                for j in range(size):
                    do(name, j, self._kept(str(at + j)))
            else:

                def one(name: str = name, at: int = at) -> None:
                    counter = self.counters["column"]
                    do(Block(name, 1, (("column", 1),)), 0, self._kept(self._new(f"add i64 {counter}, {at}")))

                self._loop("column", "0", str(size), one)
            at += size

    def _kept(self, k: str) -> str:
        return self._new(f"getelementptr {self.t.value}, ptr %changed, i64 {k}")
