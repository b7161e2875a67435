"""The log of a rollout as an LLVM function: a row for every run of a group whose bit of `wanted` is set.

    void append(i64 wanted, i64 first, i64 end, ptr log, i64 stride, i64 capacity, ptr logged, ptr array0, ...)

Run first + k is lane k of the arrays. Rows are the numbers of the arrays one after the other; log holds `capacity` rows
of each run, runs are `stride` numbers apart. logged counts the rows of each run, those beyond the capacity too, which
are not written; null: nothing is logged.
"""

from __future__ import annotations

from collections.abc import Sequence

from spanloop.compiler.render.instructions import Real

_HEAD = """define internal void @append(
  i64 %wanted, i64 %first, i64 %end, ptr %log, i64 %stride, i64 %capacity, ptr %logged{arrays}) noinline #0 {{
entry:
%none = icmp eq ptr %logged, null
br i1 %none, label %done, label %lane
lane:
%k = phi i64 [0, %entry], [%k.next, %next]
%run = add i64 %first, %k
%inside = icmp slt i64 %run, %end
%shifted = lshr i64 %wanted, %k
%bit = trunc i64 %shifted to i1
%logs = and i1 %inside, %bit
br i1 %logs, label %count, label %next
count:
%place = getelementptr i64, ptr %logged, i64 %run
%n = load i64, ptr %place
%n.next = add i64 %n, 1
store i64 %n.next, ptr %place
%fits = icmp slt i64 %n, %capacity
br i1 %fits, label %write, label %next
write:
%own = mul i64 %run, %stride
%above = mul i64 %n, {width}
%at = add i64 %own, %above
%row = getelementptr {real}, ptr %log, i64 %at
"""

_TAIL = """br label %next
next:
%k.next = add i64 %k, 1
%more = icmp slt i64 %k.next, {lanes}
br i1 %more, label %lane, label %done
done:
ret void
}}
"""


def append_function(t: Real, sizes: Sequence[int]) -> str:
    """Source of `append` for arrays of these sizes."""
    arrays = "".join(f", ptr %a{m}" for m in range(len(sizes)))
    lines = []
    for m, size in enumerate(sizes):
        lines.append(f"%lane{m} = getelementptr {t.real}, ptr %a{m}, i64 %k")
        for j in range(size):
            at = sum(sizes[:m]) + j
            lines.append(f"%from{at} = getelementptr {t.real}, ptr %lane{m}, i64 {j * t.width}")
            lines.append(f"%x{at} = load {t.real}, ptr %from{at}, align {t.size}")
            lines.append(f"%to{at} = getelementptr {t.real}, ptr %row, i64 {at}")
            lines.append(f"store {t.real} %x{at}, ptr %to{at}, align {t.size}")
    head = _HEAD.format(arrays=arrays, width=sum(sizes), real=t.real)
    return head + "\n".join([*lines, _TAIL.format(lanes=t.width)])
