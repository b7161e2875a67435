"""Kernels for NVIDIA GPUs around the text of `batch` with one state at a time (render/batch.py, render/rolled/):

    called(in0, i64 stride0, in1, i64 stride1, ..., out, status, scratch, i64 n)

Every thread calls `batch` for the states i, i + threads, i + 2 threads, ...; strides are in numbers, 0 for a row that
all states share. It serves plans that one straight run of operations is too long for, and loops over links. Values
between pieces, records of links and matrices are in scratch memory, a part of it for each thread.
"""

from __future__ import annotations

import re

from spanloop.compiler.render.gpu import entry

THREADS = 64  # of a block


def called_batch(text: str, n_inputs: int, real: str, scratch: int) -> str:
    """The text of `called`; text: of `batch` with width 1; scratch: numbers that it needs."""
    text = text.replace("define i64 @batch(", "define internal i64 @batch(")
    text = re.sub(r"attributes #0 = \{[^}]*\}", "attributes #0 = { nounwind noinline }", text)
    heads = ", ".join(f"ptr %a{k}, i64 %s{k}" for k in range(n_inputs))
    size = scratch + 8
    kernel = f"""define ptx_kernel void @called({heads}, ptr %out, ptr %status, ptr %scratch, i64 %n) {{
entry:
%tid = {entry.THREAD}
%block = {entry.BLOCK}
%blocks = {entry.BLOCKS}
%base = mul i32 %block, {THREADS}
%first32 = add i32 %base, %tid
%all32 = mul i32 %blocks, {THREADS}
%first = zext i32 %first32 to i64
%all = zext i32 %all32 to i64
%at = mul i64 %first, {size}
%own = getelementptr {real}, ptr %scratch, i64 %at
br label %look
look:
%i = phi i64 [%first, %entry], [%i.n, %state]
%inside = icmp slt i64 %i, %n
br i1 %inside, label %state, label %done
state:
%i.e = add i64 %i, 1
%status.p = getelementptr i8, ptr %status, i64 %i
store i8 0, ptr %status.p
%bad = call i64 @batch({heads}, ptr %out, ptr %status, ptr %own, i64 %i, i64 %i.e)
%i.n = add i64 %i, %all
br label %look
done:
ret void
}}
"""
    return text + kernel + entry.INTRINSICS + entry.limits("called", THREADS)


def scratch_bytes(scratch: int, size: int, threads: int) -> int:
    """Bytes of scratch memory for this many threads; size: of a number."""
    return (scratch + 8) * size * threads
