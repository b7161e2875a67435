"""A Schedule as LLVM text for GPUs: the time loop of render/rollout.py with one lane, one thread a run.

    kernel rollouts(the arguments of `rollout` but for begin and end, i64 runs)

Arrays of a run are in its thread's local memory. Those that are too large for it (`distant`) are in `memory`, which has
`distant(schedule, real, 1)[1]` bytes for every run.
"""

from __future__ import annotations

import re

from spanloop.compiler.lower.schedule import Schedule
from spanloop.compiler.render.gpu.entry import BLOCK, INTRINSICS, THREAD, limits
from spanloop.compiler.render.rollout import distant, rollout

NAME = "rollouts"
THREADS = 64  # of a block
ALONE = 1  # sines to a vector: a thread has no vectors
_HEAD = re.compile(r"define void @rollout\((.*?), i64 %begin, i64 %end\) #0")
_ATTRIBUTES = re.compile(r"attributes #0 = .*\n")


def thread_rollout(schedule: Schedule, real: str) -> tuple[str, str]:
    """Source of `one`, which moves the run of number %k; and its parameters but for that number."""
    text = rollout(schedule, real, 1, ALONE)
    found = _HEAD.search(text)
    assert found is not None
    parameters = found.group(1)
    text = text.replace("define void @rollout", "define internal void @rollout")
    text = _ATTRIBUTES.sub("attributes #0 = { nounwind }\n", text)
    bytes_of_run = distant(schedule, real, 1)[1]
    passed = re.sub(r"ptr %memory\b", "ptr %own", parameters)
    return (
        text
        + f"""define internal void @one({parameters}, i64 %k) #0 {{
%after = add i64 %k, 1
%at = mul i64 %k, {bytes_of_run}
%own = getelementptr i8, ptr %memory, i64 %at
call void @rollout({passed}, i64 %k, i64 %after)
ret void
}}
""",
        parameters,
    )


def gpu_rollout(schedule: Schedule, real: str, threads: int = THREADS) -> str:
    """Source of the kernel `rollouts`; threads: of a block."""
    text, parameters = thread_rollout(schedule, real)
    return (
        text
        + INTRINSICS
        + f"""define ptx_kernel void @{NAME}({parameters}, i64 %runs) {{
%thread = {THREAD}
%block = {BLOCK}
%thread.wide = zext i32 %thread to i64
%block.wide = zext i32 %block to i64
%first.thread = mul i64 %block.wide, {threads}
%k = add i64 %first.thread, %thread.wide
%inside = icmp slt i64 %k, %runs
br i1 %inside, label %go, label %done
go:
call void @one({parameters}, i64 %k)
br label %done
done:
ret void
}}
"""
        + limits(NAME, threads)
    )


def host_rollout(schedule: Schedule, real: str) -> str:
    """Source of `rollouts` for a processor: the same text, with a loop in the place of the threads."""
    text, parameters = thread_rollout(schedule, real)
    return (
        text
        + f"""define void @{NAME}({parameters}, i64 %runs) #0 {{
entry:
%any = icmp sgt i64 %runs, 0
br i1 %any, label %thread, label %done
thread:
%k = phi i64 [0, %entry], [%k.next, %thread]
call void @one({parameters}, i64 %k)
%k.next = add i64 %k, 1
%more = icmp slt i64 %k.next, %runs
br i1 %more, label %thread, label %done
done:
ret void
}}
"""
    )
