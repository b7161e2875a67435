"""A PhasedPlan as an LLVM function of one state whose parts may be computed by several threads.

`kernel` is called as that of single.py. Every thread has a part, the same in all phases, so that what it has computed
is at hand. The caller's thread does what is joint, opens a phase of parts, computes its own, then those that no helper
(thread_team.py) has begun by then, waits for the others, and goes on. Results do not depend on who
computes a part.

The job, in words of 64 bits: `help`; LEFT; the addresses of inputs, output and scratch; which phase is open; for every
helper how far its part is: 2 k before the k-th phase of parts, 2 k + 1 once somebody has begun it. What different
threads write stands in different cache lines; what helpers have found is fetched before it is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spanloop.compiler.lower.phases import JOINT, PhasedPlan
from spanloop.compiler.render.instructions import Body, Real, declarations
from spanloop.compiler.render.segments import LENGTH, WHOLE, Segments, pieces_of, segmented
from spanloop.compiler.render.single import ATTRIBUTES, PACK, input_places, piece_function, status_lines, store_outputs
from spanloop.compiler.render.thread_team import ALIGNED, LEFT
from spanloop.compiler.trace import Expression

TEAM = ("post", "finish", "await")  # the table `team`, filled when the code is loaded
FIRST = LEFT + 1  # word of a job, of the addresses
LINE = 8  # words of a cache line


def threaded_single(phased: PhasedPlan, real: str) -> str:
    """Source of `kernel`, for as many threads as there are parts, and of the table `team`."""
    return _Writer(phased, real).source()


def _whole_lines(count: int) -> int:
    """As many numbers or some more, so that what follows begins a cache line."""
    return -(-count // (2 * LINE)) * 2 * LINE  # twice: there may be two floats to a word


class _Writer:
    """The parts of the source, with what they share."""

    def __init__(self, phased: PhasedPlan, real: str):
        self.plan, self.t, self.real = phased.plan, Real(real), real
        self.where = input_places(self.plan)
        self.tasks: list[list[range]] = []  # of each phase the pieces of each home
        self.homes: list[int] = []  # of each piece
        self.sums: list[int] = []  # of each piece the slot for its sum of 0·output
        self.outside: list[range] = []  # of each piece the slots that other homes read
        pieces: list[tuple[Expression, ...]] = []
        for k, phase in enumerate(phased.phases):
            row = []
            for home, nodes in enumerate(phase.homes):
                found = pieces_of(nodes, WHOLE if len(nodes) <= WHOLE else LENGTH)
                row.append(range(len(pieces), len(pieces) + len(found)))
                pieces += found
                self.homes += [home if k % 2 else JOINT] * len(found)
            self.tasks.append(row)
        self.segments: Segments = segmented(pieces, self._slots)
        self.shared_phases = range(1, len(self.tasks), 2)  # phases of parts
        self.threads = len(phased.phases[1].homes) if self.shared_phases else 1
        self.pointers = [f"%a{k}" for k in range(len(self.plan.inputs))] + ["%out", "%scratch"]
        self.passed = ", ".join(f"ptr {p}" for p in self.pointers)
        self.open = -(-(FIRST + len(self.pointers)) // LINE) * LINE
        self.words = self.open + LINE * self.threads

    def _slots(self, pieces: Sequence[Sequence[Expression]], leaves: dict[int, int]) -> tuple[dict[int, int], int]:
        """A slot for every value that crosses, used once; what other homes read stands in cache lines of its own."""
        abroad: set[int] = set()
        home = {n.index: h for piece, h in zip(pieces, self.homes, strict=True) for n in piece if n.index in leaves}
        for piece, h in zip(pieces, self.homes, strict=True):
            abroad.update(
                x.index for n in piece for x in (n.a, n.b, n.c) if x is not None and home.get(x.index, h) != h
            )
        slot: dict[int, int] = {}
        count = 0
        for piece in pieces:
            crossing = [n.index for n in piece if n.index in leaves]
            inside, outside = ([i for i in crossing if (i in abroad) is out] for out in (False, True))
            slot.update((i, count + k) for k, i in enumerate(inside))
            count = _whole_lines(count + len(inside))
            slot.update((i, count + k) for k, i in enumerate(outside))
            self.sums.append(count + len(outside))
            self.outside.append(range(count, count + len(outside) + 1))
            count = _whole_lines(count + len(outside) + 1)
        return slot, count

    def source(self) -> str:
        pieces = range(len(self.segments.pieces))
        return "".join(
            (
                f"@team = global [{len(TEAM)} x ptr] zeroinitializer\n",
                self._kernel(),
                *((self._help(),) if self.shared_phases else ()),
                *(text for p in self.shared_phases for text in (self._phase(p), self._part(p))),
                *(piece_function(self.plan, self.segments, k, self.t, self.where) for k in pieces),
                "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)\n",
                declarations(self.t, self.t.wide(2), self.t.wide(PACK)),
                ATTRIBUTES,
            )
        )

    def _kernel(self) -> str:
        t, real = self.t, self.real
        head = ", ".join(f"ptr noalias readonly %a{k}" for k in range(len(self.plan.inputs)))
        body = Body(t, lambda body, n: "")
        body.lines += [
            f"%scratch = alloca [{self.segments.n_slots} x {real}], align {ALIGNED}",
            f"%job = alloca [{self.words} x i64], align {ALIGNED}",
        ]
        if self.shared_phases:
            self._begin(body)
        answers = [self._call(body, k) for k in self.tasks[0][0]]
        if self.shared_phases:
            body.line("posted", f"call i64 %post(ptr %job, i64 {self.threads - 1})")
        for p in self.shared_phases:
            if p > 1:
                body.lines.append(f"store atomic i64 {p}, ptr %w{self.open} release, align 8")
            body.lines.append(f"call void @phase{p}(ptr %job)")
            self._bring(body, (k for pieces in self.tasks[p][1:] for k in pieces))
            if p + 1 < len(self.tasks):
                answers += [self._call(body, k) for k in self.tasks[p + 1][0]]
        if self.shared_phases:
            body.lines.append("call void %finish(ptr %job, i64 %posted)")
        for k in (k for p in self.shared_phases for pieces in self.tasks[p] for k in pieces):
            at = body.line(f"sum{k}.at", f"getelementptr {real}, ptr %scratch, i64 {self.sums[k]}")
            answers.append(body.line(f"sum{k}", f"load {real}, ptr {at}, align {t.size}"))
        values = enumerate(self.plan.outputs + self.plan.demand_flags)
        constants = [(k, x) for k, x in values if not isinstance(x, Expression)]
        answer = store_outputs(body, constants, len(self.plan.outputs))
        for k, x in enumerate(answers):
            answer = body.line(f"answer{k}", f"fadd {real} {answer}, {x}")
        lines = body.lines + status_lines(self.plan, t, self.where, answer)
        return f"define i32 @kernel({head}, ptr noalias %out) #0 {{\n" + "\n".join(lines) + "\n}\n"

    def _begin(self, body: Body) -> None:
        """The job, with nothing begun and the first phase open."""
        for k, name in enumerate(TEAM):
            at = body.line(f"{name}.at", f"getelementptr ptr, ptr @team, i64 {k}")
            body.line(name, f"load ptr, ptr {at}")
        values = {0: "ptr @help", LEFT: "i64 0", self.open: "i64 1"}
        values |= {FIRST + k: f"ptr {pointer}" for k, pointer in enumerate(self.pointers)}
        values |= {self.open + LINE * k: "i64 0" for k in range(1, self.threads)}
        for word, value in values.items():
            at = body.line(f"w{word}", f"getelementptr i64, ptr %job, i64 {word}")
            body.lines.append(f"store {value}, ptr {at}")

    def _call(self, body: Body, k: int) -> str:
        return body.line(f"piece{k}", f"call {self.real} @piece{k}({self.passed})")

    def _bring(self, body: Body, pieces: Iterable[int]) -> None:
        """Have the cache lines of what other homes read of these pieces brought here while other things are done."""
        for k in pieces:
            for slot in range(self.outside[k].start, self.outside[k].stop, LINE * 8 // self.t.size):
                at = body.line(f"ahead{slot}", f"getelementptr {self.real}, ptr %scratch, i64 {slot}")
                body.lines.append(f"call void @llvm.prefetch.p0(ptr {at}, i32 0, i32 3, i32 1)")

    def _help(self) -> str:
        """What a helper does: its part of every phase that is opened, unless the caller was faster."""
        lines = [
            "define internal void @help(ptr %job, i64 %number) {",
            f"%open = getelementptr i64, ptr %job, i64 {self.open}",
            f"%line = mul i64 %number, {LINE}",
            "%own = getelementptr i64, ptr %open, i64 %line",
            f"%await.at = getelementptr ptr, ptr @team, i64 {TEAM.index('await')}",
            "%await = load ptr, ptr %await.at",
        ]
        for k, p in enumerate(self.shared_phases):
            lines += [
                *([f"call void %await(ptr %open, i64 {p})"] if k else []),
                f"%pair{p} = cmpxchg ptr %own, i64 {2 * k}, i64 {2 * k + 1} seq_cst seq_cst",
                f"%mine{p} = extractvalue {{i64, i1}} %pair{p}, 1",
                f"br i1 %mine{p}, label %work{p}, label %over{p}",
                f"work{p}:",
                f"call void @part{p}(ptr %job, i64 %number)",
                f"store atomic i64 {2 * k + 2}, ptr %own release, align 8",
                f"br label %over{p}",
                f"over{p}:",
            ]
        return "\n".join((*lines, "ret void", "}", ""))

    def _phase(self, p: int) -> str:
        """A phase on the caller's thread: its own part, those that no helper has begun, and waiting for the others."""
        before = p - 1  # in the word of a helper
        return "\n".join(
            (
                f"define internal void @phase{p}(ptr %job) {{",
                "entry:",
                f"call void @part{p}(ptr %job, i64 0)",
                f"%open = getelementptr i64, ptr %job, i64 {self.open}",
                f"%await.at = getelementptr ptr, ptr @team, i64 {TEAM.index('await')}",
                "%await = load ptr, ptr %await.at",
                "br label %next",
                "next:",
                "%n = phi i64 [1, %entry], [%n.next, %wait]",
                f"%some = icmp ult i64 %n, {self.threads}",
                "br i1 %some, label %look, label %end",
                "look:",
                f"%line = mul i64 %n, {LINE}",
                "%word = getelementptr i64, ptr %open, i64 %line",
                f"%pair = cmpxchg ptr %word, i64 {before}, i64 {before + 1} seq_cst seq_cst",
                "%mine = extractvalue {i64, i1} %pair, 1",
                "br i1 %mine, label %work, label %wait",
                "work:",
                f"call void @part{p}(ptr %job, i64 %n)",
                f"store atomic i64 {before + 2}, ptr %word release, align 8",
                "br label %wait",
                "wait:",
                f"call void %await(ptr %word, i64 {before + 2})",
                "%n.next = add i64 %n, 1",
                "br label %next",
                "end:",
                "ret void",
                "}",
                "",
            )
        )

    def _part(self, p: int) -> str:
        """The part of one thread, in one phase."""
        body = Body(self.t, lambda body, n: "")
        for k, pointer in enumerate(self.pointers):
            at = body.line(f"pointer{k}", f"getelementptr i64, ptr %job, i64 {FIRST + k}")
            body.line(pointer[1:], f"load ptr, ptr {at}")
        cases = " ".join(f"i64 {n}, label %part{n}" for n in range(self.threads))
        body.lines.append(f"switch i64 %number, label %end [{cases}]")
        for n, pieces in enumerate(self.tasks[p]):
            body.lines.append(f"part{n}:")
            for k in pieces:
                answer = self._call(body, k)
                at = body.line(f"sum{k}.at", f"getelementptr {self.real}, ptr %scratch, i64 {self.sums[k]}")
                body.lines.append(f"store {self.real} {answer}, ptr {at}, align {self.t.size}")
            body.lines.append("br label %end")
        body.lines += ["end:", "ret void"]
        return f"define internal void @part{p}(ptr %job, i64 %number) #0 {{\n" + "\n".join(body.lines) + "\n}\n"
