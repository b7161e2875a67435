"""A parted Plan as an LLVM function of one state whose parts may be computed by several threads.

`kernel` is called as that of single.py. It does what is joint, opens a phase of parts, claims parts until none is left,
waits for those that helpers have claimed, and goes on. A helper (team.py) claims parts of every phase that is
opened. Which thread computes a part leaves its numbers as they are.

The job, in words of 64 bits: `help`; LEFT; which phase is open; for every phase of parts the next one to claim and how
many are through, each in a cache line of its own; the addresses of inputs, output and scratch.
"""

from __future__ import annotations

from collections.abc import Sequence

from spanloop.compiler.lower.parting import Parted
from spanloop.compiler.render.body import Body, declarations
from spanloop.compiler.render.real import Real
from spanloop.compiler.render.segments import LENGTH, WHOLE, Segments, pieces_of, segmented
from spanloop.compiler.render.single import ATTRIBUTES, PACK, input_places, piece_function, status_lines, store_outputs
from spanloop.compiler.render.team import LEFT
from spanloop.compiler.trace import Expression

TEAM = ("post", "finish", "await", "helpers")  # the table `team`, filled when the code is loaded
LINE = 8  # words that two threads do not share without waiting for each other
OPEN = LEFT + LINE


def parted_single(parted: Parted, real: str) -> str:
    """Source of `kernel` and of the table `team`."""
    return _Writer(parted, real).source()


def _apart(pieces: Sequence[Sequence[Expression]], leaves: dict[int, int]) -> tuple[dict[int, int], int]:
    """A slot for every value that crosses, used once; those of a piece share no cache line with another's."""
    slot: dict[int, int] = {}
    n = 0
    for piece in pieces:
        for node in piece:
            if node.index in leaves and node.index not in slot:
                slot[node.index], n = n, n + 1
        n = -(-n // (2 * LINE)) * 2 * LINE  # twice: there may be two floats to a word
    return slot, n


class _Writer:
    """The parts of the source, with what they share."""

    def __init__(self, parted: Parted, real: str):
        self.plan, self.t, self.real = parted.plan, Real(real), real
        self.where = input_places(self.plan)
        self.tasks: list[list[range]] = []  # of each phase the pieces of each home
        pieces: list[tuple[Expression, ...]] = []
        for phase in parted.phases:
            row = []
            for nodes in phase.homes:
                found = pieces_of(nodes, WHOLE if len(nodes) <= WHOLE else LENGTH)
                row.append(range(len(pieces), len(pieces) + len(found)))
                pieces += found
            self.tasks.append(row)
        self.segments: Segments = segmented(pieces, _apart)
        self.beside = range(1, len(self.tasks), 2)  # phases of parts
        self.sums = self.segments.n_slots  # where each piece of a part leaves its sum of 0·output
        self.pointers = [f"%a{k}" for k in range(len(self.plan.inputs))] + ["%out", "%scratch"]
        self.first_pointer = OPEN + LINE + 2 * LINE * len(self.beside)
        self.passed = ", ".join(f"ptr {p}" for p in self.pointers)

    def source(self) -> str:
        pieces = range(len(self.segments.pieces))
        return "".join(
            (
                f"@team = global [{len(TEAM)} x i64] zeroinitializer\n",
                self._kernel(),
                *((self._help(),) if self.beside else ()),
                *(self._phase(p) for p in self.beside),
                *(piece_function(self.plan, self.segments, k, self.t, self.where) for k in pieces),
                declarations(self.t, self.t.wide(2), self.t.wide(PACK)),
                ATTRIBUTES,
            )
        )

    def _counters(self, phase: int) -> tuple[int, int]:
        """The words of a phase: next to claim, and how many are through."""
        first = OPEN + LINE * phase
        return first, first + LINE

    def _kernel(self) -> str:
        t, real = self.t, self.real
        head = ", ".join(f"ptr noalias readonly %a{k}" for k in range(len(self.plan.inputs)))
        body = Body(t, lambda body, n: "")
        body.lines += [
            f"%scratch = alloca [{max(self.sums + len(self.segments.pieces), 1)} x {real}], align 128",
            f"%job = alloca [{self.first_pointer + len(self.pointers)} x i64], align 128",
        ]
        if self.beside:
            self._begin(body)
        answers = [self._call(body, k) for k in self.tasks[0][0]]
        if self.beside:
            body.lines.append("%posted = call i64 %post(ptr %job, i64 %helpers)")
        for p in self.beside:
            self._open(body, p)
            if p + 1 < len(self.tasks):
                answers += [self._call(body, k) for k in self.tasks[p + 1][0]]
        if self.beside:
            body.lines.append("call void %finish(ptr %job, i64 %posted)")
        for k in (k for p in self.beside for pieces in self.tasks[p] for k in pieces):
            at = body.line(f"sum{k}.at", f"getelementptr {real}, ptr %scratch, i64 {self.sums + k}")
            answers.append(body.line(f"left{k}", f"load {real}, ptr {at}, align {t.size}"))
        constants = [(k, x) for k, x in enumerate(self.plan.outputs) if not isinstance(x, Expression)]
        answer = store_outputs(body, constants, len(self.plan.outputs))
        for k, x in enumerate(answers):
            answer = body.line(f"answer{k}", f"fadd {real} {answer}, {x}")
        lines = body.lines + status_lines(self.plan, t, self.where, answer)
        return f"define i32 @kernel({head}, ptr noalias %out) #0 {{\n" + "\n".join(lines) + "\n}\n"

    def _begin(self, body: Body) -> None:
        """The job, with nothing claimed."""
        for k, name in enumerate(TEAM):
            at = body.line(f"{name}.at", f"getelementptr i64, ptr @team, i64 {k}")
            body.line(name, f"load {'i64' if name == 'helpers' else 'ptr'}, ptr {at}")
        body.lines.append("store ptr @help, ptr %job")
        for word in (LEFT, *(w for p in self.beside for w in self._counters(p))):
            at = body.line(f"w{word}", f"getelementptr i64, ptr %job, i64 {word}")
            body.lines.append(f"store i64 0, ptr {at}")
        body.line("open", f"getelementptr i64, ptr %job, i64 {OPEN}")
        body.lines.append("store i64 1, ptr %open")
        for k, pointer in enumerate(self.pointers):
            at = body.line(f"pointer{k}", f"getelementptr i64, ptr %job, i64 {self.first_pointer + k}")
            body.lines.append(f"store ptr {pointer}, ptr {at}")

    def _open(self, body: Body, phase: int) -> None:
        """A phase of parts, from its opening to the end of its last part."""
        if phase > 1:
            body.lines.append(f"store atomic i64 {phase}, ptr %open seq_cst, align 8")
        body.lines.append(f"call void @phase{phase}(ptr %job)")
        body.lines.append(f"call void %await(ptr %w{self._counters(phase)[1]}, i64 {len(self.tasks[phase])})")

    def _call(self, body: Body, k: int) -> str:
        return body.line(f"piece{k}", f"call {self.real} @piece{k}({self.passed})")

    def _help(self) -> str:
        """What a helper does: parts of every phase, as they are opened."""
        lines = [
            "define internal void @help(ptr %job) {",
            f"%open = getelementptr i64, ptr %job, i64 {OPEN}",
            f"%await.at = getelementptr i64, ptr @team, i64 {TEAM.index('await')}",
            "%await = load ptr, ptr %await.at",
        ]
        for p in self.beside:
            if p > 1:
                lines.append(f"call void %await(ptr %open, i64 {p})")
            lines.append(f"call void @phase{p}(ptr %job)")
        return "\n".join((*lines, "ret void", "}", ""))

    def _phase(self, p: int) -> str:
        """Claim parts of a phase and compute them until all are claimed."""
        body = Body(self.t, lambda body, n: "")
        for k, pointer in enumerate(self.pointers):
            at = body.line(f"pointer{k}", f"getelementptr i64, ptr %job, i64 {self.first_pointer + k}")
            body.line(pointer[1:], f"load ptr, ptr {at}")
        claimed, through = self._counters(p)
        cases = " ".join(f"i64 {k}, label %part{k}" for k in range(len(self.tasks[p])))
        body.lines += [
            f"%claimed = getelementptr i64, ptr %job, i64 {claimed}",
            f"%through = getelementptr i64, ptr %job, i64 {through}",
            "br label %claim",
            "claim:",
            "%k = atomicrmw add ptr %claimed, i64 1 seq_cst",
            f"switch i64 %k, label %none [{cases}]",
        ]
        for k, pieces in enumerate(self.tasks[p]):
            body.lines.append(f"part{k}:")
            for n in pieces:
                answer = self._call(body, n)
                at = body.line(f"sum{n}.at", f"getelementptr {self.real}, ptr %scratch, i64 {self.sums + n}")
                body.lines.append(f"store {self.real} {answer}, ptr {at}, align {self.t.size}")
            body.lines.append("br label %done")
        body.lines += ["done:", "%count = atomicrmw add ptr %through, i64 1 seq_cst", "br label %claim", "none:"]
        return f"define internal void @phase{p}(ptr %job) #0 {{\n" + "\n".join(body.lines) + "\nret void\n}\n"
