"""Outputs that are always zero: where a plan has many, a loop clears them, because many stores are slow to compile.

`clear` writes the runs of consecutive zeros of one state's row, which stand in a table; what no run holds is stored
one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from spanloop.compiler.lower import Plan
from spanloop.compiler.render.instructions import Real
from spanloop.compiler.trace import Expression

MANY = 256  # zeros of a plan up to which each is stored like any other output
PACK = 4  # zeros that one instruction writes, and the length of the shortest run


@dataclass(frozen=True)
class Zeros:
    """The runs (start, length) that `clear` writes, of a plan with this many outputs."""

    runs: tuple[tuple[int, int], ...]
    n_outputs: int

    @staticmethod
    def of(plan: Plan) -> Zeros:
        """Those of a plan; none where it has few zeros."""
        found = tuple((start, length) for start, length in _runs(plan) if length >= PACK)
        return Zeros(found if sum(length for _, length in found) > MANY else (), len(plan.outputs))

    def others(self) -> Iterator[range]:
        """Ranges of the outputs that `clear` does not write."""
        end = 0
        for start, length in (*self.runs, (self.n_outputs, 0)):
            if start > end:
                yield range(end, start)
            end = start + length

    def function(self, t: Real) -> str:
        """Source of `clear`, a function of the pointer to a row; nothing where there are no runs."""
        if not self.runs:
            return ""
        table = ", ".join(f"i64 {x}" for run in self.runs for x in run)
        vector = f"<{PACK} x {t.real}>"
        return f"""@zero_runs = internal constant [{2 * len(self.runs)} x i64] [{table}]
define internal void @clear(ptr noalias %out) #0 {{
entry:
br label %run
run:
%r = phi i64 [0, %entry], [%r.next, %last]
%r.p = getelementptr i64, ptr @zero_runs, i64 %r
%start = load i64, ptr %r.p
%n.p = getelementptr i64, ptr %r.p, i64 1
%length = load i64, ptr %n.p
%row = getelementptr {t.real}, ptr %out, i64 %start
%end = sub i64 %length, {PACK}
br label %next
next:
%k = phi i64 [0, %run], [%k.next, %next]
%p = getelementptr {t.real}, ptr %row, i64 %k
store {vector} zeroinitializer, ptr %p, align {t.size}
%k.next = add i64 %k, {PACK}
%more = icmp slt i64 %k.next, %end
br i1 %more, label %next, label %last
last:
%e = getelementptr {t.real}, ptr %row, i64 %end
store {vector} zeroinitializer, ptr %e, align {t.size}
%r.next = add i64 %r, 2
%r.more = icmp slt i64 %r.next, {2 * len(self.runs)}
br i1 %r.more, label %run, label %done
done:
ret void
}}
"""


def _runs(plan: Plan) -> Iterator[tuple[int, int]]:
    start = 0
    for k, x in enumerate((*plan.outputs, math.nan)):
        if not _is_zero(x):
            if k > start:
                yield start, k - start
            start = k + 1


def _is_zero(x: Expression | float) -> bool:
    return not isinstance(x, Expression) and x == 0.0 and math.copysign(1.0, x) > 0.0
