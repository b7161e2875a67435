"""A parted Plan as an LLVM function of one state whose parts may be computed by several threads.

`kernel` is called as that of single.py. It does what is joint, opens a phase of parts, computes parts until none is
left, waits for those that helpers (team.py) have claimed, and goes on. Every thread has a share of the parts, the same
in all phases, so that what it has computed is at hand. It claims its own from the front, and when they are gone those
of others from the back: a thread that is late or held up is not waited for. Who computes a part leaves its numbers as
they are.

The job, in words of 64 bits: `help`; the addresses of inputs, output and scratch; LEFT; which phase is open; for every
phase of parts how many helpers have computed, and what is left of each share: its front and, 32 bits higher, its back.
What different threads write stands in different cache lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from spanloop.compiler.lower.parting import JOINT, Parted
from spanloop.compiler.render.body import Body, declarations
from spanloop.compiler.render.real import Real
from spanloop.compiler.render.segments import LENGTH, WHOLE, Segments, pieces_of, segmented
from spanloop.compiler.render.single import ATTRIBUTES, PACK, input_places, piece_function, status_lines, store_outputs
from spanloop.compiler.render.team import ALIGNED, LEFT
from spanloop.compiler.trace import Expression

TEAM = ("post", "finish", "await")  # the table `team`, filled when the code is loaded
FIRST = LEFT + 1  # word of a job, of the addresses
LINE = 8  # words of a cache line
UNTOUCHED = 1 << 63  # in the word of a share: its owner has not begun


def parted_single(parted: Parted, real: str, threads: int) -> str:
    """Source of `kernel` and of the table `team`."""
    return _Writer(parted, real, threads).source()


def shares(weights: Sequence[int], threads: int) -> list[list[int]]:
    """Parts for each thread: the heaviest first, each to the thread that has the least."""
    out: list[list[int]] = [[] for _ in range(min(threads, len(weights)))]
    loads = [0] * len(out)
    for part in sorted(range(len(weights)), key=lambda k: -weights[k]):
        least = loads.index(min(loads))
        out[least].append(part)
        loads[least] += weights[part]
    return out


def _whole_lines(count: int) -> int:
    """As many numbers or some more, so that what follows begins a cache line."""
    return -(-count // (2 * LINE)) * 2 * LINE  # twice: there may be two floats to a word


class _Writer:
    """The parts of the source, with what they share."""

    def __init__(self, parted: Parted, real: str, threads: int):
        self.plan, self.t, self.real = parted.plan, Real(real), real
        self.where = input_places(self.plan)
        self.tasks: list[list[range]] = []  # of each phase the pieces of each home
        self.homes: list[int] = []  # of each piece
        self.sums: list[int] = []  # of each piece the slot for its sum of 0·output
        pieces: list[tuple[Expression, ...]] = []
        for k, phase in enumerate(parted.phases):
            row = []
            for home, nodes in enumerate(phase.homes):
                found = pieces_of(nodes, WHOLE if len(nodes) <= WHOLE else LENGTH)
                row.append(range(len(pieces), len(pieces) + len(found)))
                pieces += found
                self.homes += [home if k % 2 else JOINT] * len(found)
            self.tasks.append(row)
        self.segments: Segments = segmented(pieces, self._slots)
        self.beside = range(1, len(self.tasks), 2)  # phases of parts
        self.shares = shares(parted.weights, threads)
        self.order = [part for share in self.shares for part in share]
        self.pointers = [f"%a{k}" for k in range(len(self.plan.inputs))] + ["%out", "%scratch"]
        self.passed = ", ".join(f"ptr {p}" for p in self.pointers)
        self.open = -(-(FIRST + len(self.pointers)) // LINE) * LINE
        self.words = self.open + LINE + len(self.beside) * LINE * (1 + len(self.shares))

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
            count = _whole_lines(count + len(outside) + 1)
        return slot, count

    def source(self) -> str:
        pieces = range(len(self.segments.pieces))
        return "".join(
            (
                f"@team = global [{len(TEAM)} x ptr] zeroinitializer\n",
                self._kernel(),
                *((self._help(), _CLAIM) if self.beside else ()),
                *(self._phase(p) for p in self.beside),
                *(piece_function(self.plan, self.segments, k, self.t, self.where) for k in pieces),
                declarations(self.t, self.t.wide(2), self.t.wide(PACK)),
                ATTRIBUTES,
            )
        )

    def _done(self, phase: int) -> int:
        """The word that counts what helpers have computed in a phase; the shares' words follow, a line each."""
        return self.open + LINE + (phase // 2) * LINE * (1 + len(self.shares))

    def _kernel(self) -> str:
        t, real = self.t, self.real
        head = ", ".join(f"ptr noalias readonly %a{k}" for k in range(len(self.plan.inputs)))
        body = Body(t, lambda body, n: "")
        body.lines += [
            f"%scratch = alloca [{self.segments.n_slots} x {real}], align {ALIGNED}",
            f"%job = alloca [{self.words} x i64], align {ALIGNED}",
        ]
        if self.beside:
            self._begin(body)
        answers = [self._call(body, k) for k in self.tasks[0][0]]
        if self.beside:
            body.line("posted", f"call i64 %post(ptr %job, i64 {len(self.shares) - 1})")
        for p in self.beside:
            self._share(body, p)
            if p + 1 < len(self.tasks):
                answers += [self._call(body, k) for k in self.tasks[p + 1][0]]
        if self.beside:
            body.lines.append("call void %finish(ptr %job, i64 %posted)")
        for k in (k for p in self.beside for pieces in self.tasks[p] for k in pieces):
            at = body.line(f"sum{k}.at", f"getelementptr {real}, ptr %scratch, i64 {self.sums[k]}")
            answers.append(body.line(f"sum{k}", f"load {real}, ptr {at}, align {t.size}"))
        constants = [(k, x) for k, x in enumerate(self.plan.outputs) if not isinstance(x, Expression)]
        answer = store_outputs(body, constants, len(self.plan.outputs))
        for k, x in enumerate(answers):
            answer = body.line(f"answer{k}", f"fadd {real} {answer}, {x}")
        lines = body.lines + status_lines(self.plan, t, self.where, answer)
        return f"define i32 @kernel({head}, ptr noalias %out) #0 {{\n" + "\n".join(lines) + "\n}\n"

    def _begin(self, body: Body) -> None:
        """The job, with nothing claimed and the first phase open."""
        for k, name in enumerate(TEAM):
            at = body.line(f"{name}.at", f"getelementptr ptr, ptr @team, i64 {k}")
            body.line(name, f"load ptr, ptr {at}")
        edges = list(accumulate(map(len, self.shares), initial=0))
        ranges = [begin + (end << 32) - UNTOUCHED for begin, end in pairwise(edges)]
        words = {LEFT: 0, self.open: 1}
        for p in self.beside:
            words |= {self._done(p) + LINE * k: x for k, x in enumerate((0, *ranges))}
        values = {0: "ptr @help"} | {k: f"i64 {x}" for k, x in words.items()}
        values |= {FIRST + k: f"ptr {pointer}" for k, pointer in enumerate(self.pointers)}
        for word, value in values.items():
            at = body.line(f"w{word}", f"getelementptr i64, ptr %job, i64 {word}")
            body.lines.append(f"store {value}, ptr {at}")

    def _share(self, body: Body, phase: int) -> None:
        """A phase of parts, from its opening to the end of its last part."""
        if phase > 1:
            body.lines.append(f"store atomic i64 {phase}, ptr %w{self.open} release, align 8")
        own = body.line(f"own{phase}", f"call i64 @phase{phase}(ptr %job, i64 0)")
        others = body.line(f"others{phase}", f"sub i64 {len(self.order)}, {own}")
        body.lines.append(f"call void %await(ptr %w{self._done(phase)}, i64 {others})")

    def _call(self, body: Body, k: int) -> str:
        return body.line(f"piece{k}", f"call {self.real} @piece{k}({self.passed})")

    def _help(self) -> str:
        """What a helper does: parts of every phase, as they are opened."""
        lines = [
            "define internal void @help(ptr %job, i64 %number) {",
            f"%open = getelementptr i64, ptr %job, i64 {self.open}",
            f"%await.at = getelementptr ptr, ptr @team, i64 {TEAM.index('await')}",
            "%await = load ptr, ptr %await.at",
        ]
        for p in self.beside:
            lines += [
                *([f"call void %await(ptr %open, i64 {p})"] if p > 1 else []),
                f"%own{p} = call i64 @phase{p}(ptr %job, i64 %number)",
                f"%done{p} = getelementptr i64, ptr %job, i64 {self._done(p)}",
                f"%before{p} = atomicrmw add ptr %done{p}, i64 %own{p} seq_cst",
            ]
        return "\n".join((*lines, "ret void", "}", ""))

    def _phase(self, p: int) -> str:
        """Parts of a phase, claimed and computed until all are claimed, by the thread with this share; how many."""
        body = Body(self.t, lambda body, n: "")
        for k, pointer in enumerate(self.pointers):
            at = body.line(f"pointer{k}", f"getelementptr i64, ptr %job, i64 {FIRST + k}")
            body.line(pointer[1:], f"load ptr, ptr {at}")
        cases = " ".join(f"i64 {place}, label %part{part}" for place, part in enumerate(self.order))
        body.lines += [
            f"%words = getelementptr i64, ptr %job, i64 {self._done(p)}",
            "br label %claim",
            "claim:",
            "%share = phi i64 [%own, %0], [%share, %done], [%share.after, %gone]",
            "%looked = phi i64 [0, %0], [%looked, %done], [%looked.after, %gone]",
            "%count = phi i64 [0, %0], [%count.after, %done], [%count, %gone]",
            "%share.line = add i64 %share, 1",
            f"%share.word = mul i64 %share.line, {LINE}",
            "%share.at = getelementptr i64, ptr %words, i64 %share.word",
            "%is.own = icmp eq i64 %share, %own",
            "%place = call i64 @claim(ptr %share.at, i1 %is.own)",
            f"switch i64 %place, label %gone [{cases}]",
        ]
        for k, pieces in enumerate(self.tasks[p]):
            body.lines.append(f"part{k}:")
            for n in pieces:
                answer = self._call(body, n)
                at = body.line(f"sum{n}.at", f"getelementptr {self.real}, ptr %scratch, i64 {self.sums[n]}")
                body.lines.append(f"store {self.real} {answer}, ptr {at}, align {self.t.size}")
            body.lines.append("br label %done")
        body.lines += [
            "done:",
            "%count.after = add i64 %count, 1",
            "br label %claim",
            "gone:",
            "%share.next = add i64 %share, 1",
            f"%share.round = icmp eq i64 %share.next, {len(self.shares)}",
            "%share.after = select i1 %share.round, i64 0, i64 %share.next",
            "%looked.after = add i64 %looked, 1",
            f"%all = icmp eq i64 %looked.after, {len(self.shares)}",
            "br i1 %all, label %end, label %claim",
            "end:",
            "ret i64 %count",
        ]
        return f"define internal i64 @phase{p}(ptr %job, i64 %own) #0 {{\n" + "\n".join(body.lines) + "\n}\n"


# one part of a share: from its front for the thread whose share it is, from its back for another one, which leaves it
# alone once its owner has begun; -1 if there is none
_CLAIM = f"""define internal i64 @claim(ptr %word, i1 %own) {{
entry:
br label %look
look:
%now = load atomic i64, ptr %word acquire, align 8
%untouched = icmp slt i64 %now, 0
%range = and i64 %now, {UNTOUCHED - 1}
%begin = and i64 %range, {(1 << 32) - 1}
%end = lshr i64 %range, 32
%some = icmp ult i64 %begin, %end
%may = or i1 %own, %untouched
%can = and i1 %some, %may
br i1 %can, label %try, label %none
try:
%less = sub i64 %now, {1 << 32}
%more = add i64 %range, 1
%new = select i1 %own, i64 %more, i64 %less
%pair = cmpxchg ptr %word, i64 %now, i64 %new seq_cst seq_cst
%taken = extractvalue {{i64, i1}} %pair, 1
br i1 %taken, label %mine, label %look
mine:
%last = sub i64 %end, 1
%place = select i1 %own, i64 %begin, i64 %last
ret i64 %place
none:
ret i64 -1
}}
"""
