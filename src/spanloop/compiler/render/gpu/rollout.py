"""A Schedule as LLVM text for GPUs: the time loop of render/rollout.py with one lane, one thread a run.

    kernel rollouts(the arguments of `rollout` but for begin and end, i64 runs)

Thread k of all T advances the runs k, k + T, k + 2 T, ...; the steps that end well are added to `counts`. Arrays of a
run are in registers where the schedule is short enough to be one function, else in the thread's local memory. Those
that are too large for it (`distant`) are in `memory`, which has `distant(schedule, real, 1)[1]` bytes for every thread.
"""

from __future__ import annotations

import re

from spanloop.compiler.lower.schedule import Schedule
from spanloop.compiler.render.gpu.entry import BLOCK, BLOCKS, INTRINSICS, THREAD, limits
from spanloop.compiler.render.rollout import distant, rollout

NAME = "rollouts"
THREADS = 64  # of a block
ALONE = 1  # sines to a vector: a thread has no vectors
WAYS = ("called", "local", "merged", "inlined")
OPTIMISED = ("merged", "inlined")  # ways for which LLVM's passes make functions one
SHORT = 8000  # nodes of all calls: the time loop of a shorter schedule is one function
_HEAD = re.compile(r"define void @rollout\((.*?), i64 %begin, i64 %end\) #0")
_ATTRIBUTES = re.compile(r"attributes #0 = .*\n")


def way_of(schedule: Schedule) -> str:
    """How the time loop is written: as one function if it is short, else with a function a plan."""
    return "inlined" if sum(len(c.plan.nodes) for c in schedule.calls()) <= SHORT else "local"


def thread_rollout(schedule: Schedule, real: str, way: str) -> tuple[str, str]:
    """Source of `one`, which moves run %k on thread %t; and its parameters but for these numbers.

    way: "called": plans are functions on arrays; "local": which know that arrays are in local memory; "merged": LLVM
    may inline them, and does so with those that are called once; "inlined": the whole loop is one function.
    """
    assert way in WAYS, way
    text = rollout(schedule, real, 1, ALONE, is_local=way == "local")
    found = _HEAD.search(text)
    assert found is not None
    parameters = found.group(1)
    text = text.replace("define void @rollout", "define internal void @rollout")
    if way == "inlined":
        text = text.replace("noinline #0", "noinline nounwind")  # the log, which is rarely written
    text = _ATTRIBUTES.sub(f"attributes #0 = {{ nounwind{' alwaysinline' * (way == 'inlined')} }}\n", text)
    bytes_of_thread = distant(schedule, real, 1)[1]
    passed = re.sub(r"ptr %memory\b", "ptr %own", parameters)
    return (
        text
        + f"""define internal void @one({parameters}, i64 %k, i64 %t) #0 {{
%after = add i64 %k, 1
%at = mul i64 %t, {bytes_of_thread}
%own = getelementptr i8, ptr %memory, i64 %at
%place = getelementptr i64, ptr %counts, i64 %k
%before = load i64, ptr %place
call void @rollout({passed}, i64 %k, i64 %after)
%now = load i64, ptr %place
%sum = add i64 %before, %now
store i64 %sum, ptr %place
ret void
}}
""",
        parameters,
    )


def gpu_rollout(schedule: Schedule, real: str, threads: int = THREADS, way: str | None = None) -> str:
    """Source of the kernel `rollouts`; threads: of a block; way: one of WAYS, by default `way_of`."""
    text, parameters = thread_rollout(schedule, real, way or way_of(schedule))
    return (
        text
        + INTRINSICS
        + f"""define ptx_kernel void @{NAME}({parameters}, i64 %runs) {{
entry:
%thread = {THREAD}
%block = {BLOCK}
%blocks = {BLOCKS}
%thread.wide = zext i32 %thread to i64
%block.wide = zext i32 %block to i64
%blocks.wide = zext i32 %blocks to i64
%first.thread = mul i64 %block.wide, {threads}
%all = mul i64 %blocks.wide, {threads}
%t = add i64 %first.thread, %thread.wide
br label %look
look:
%k = phi i64 [%t, %entry], [%k.next, %go]
%inside = icmp slt i64 %k, %runs
br i1 %inside, label %go, label %done
go:
call void @one({parameters}, i64 %k, i64 %t)
%k.next = add i64 %k, %all
br label %look
done:
ret void
}}
"""
        + limits(NAME, threads)
    )


def host_rollout(schedule: Schedule, real: str, way: str | None = None) -> str:
    """Source of `rollouts` for a processor: the same text, with a loop in the place of the threads."""
    text, parameters = thread_rollout(schedule, real, way or way_of(schedule))
    return (
        text
        + f"""define void @{NAME}({parameters}, i64 %runs) {{
entry:
%any = icmp sgt i64 %runs, 0
br i1 %any, label %thread, label %done
thread:
%k = phi i64 [0, %entry], [%k.next, %thread]
call void @one({parameters}, i64 %k, i64 0)
%k.next = add i64 %k, 1
%more = icmp slt i64 %k.next, %runs
br i1 %more, label %thread, label %done
done:
ret void
}}
"""
    )
