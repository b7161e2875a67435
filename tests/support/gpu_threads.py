"""Text of kernels for NVIDIA GPUs, run on the CPU thread by thread: the same operations, without a GPU's memory.

Address spaces are dropped, the numbers of thread and block are arguments, and the few lines of assembly become the
instructions that they stand for. `run_threads` runs one thread after the other, for kernels without barriers.
`run_blocks` runs every thread of a block in a thread of its own; at a barrier they wait for one another. A value that
is read before it is written shows as a wrong answer: between barriers threads run in any order.
"""

from __future__ import annotations

import ctypes
import re
import threading

import numpy as np

from spanloop.compiler.render.gpu import entry
from spanloop.compiler.runtime import machine

SLOTS = 65536  # numbers of shared memory
STACK = 16 << 20  # bytes of each thread


def on_the_cpu(text: str, real: str, name: str, barrier: int | None = None) -> str:
    """LLVM text for the CPU; the kernel gets two more arguments, the thread's number and the block's.

    barrier: address of a function of the group's number, which returns when all threads of the group have called it.
    """
    assert barrier is not None or "bar" not in text.replace(entry.INTRINSICS, ""), "threads exchange values"
    call = f"call void inttoptr (i64 {barrier} to ptr)"
    text = text.replace(entry.BARRIER, f"{call}(i32 0)")
    text = re.sub(r'call void asm sideeffect "bar.sync[^(]*\(i32 (%\w+)\) #7', rf"{call}(i32 \1)", text)
    suffix = "f32" if real == "float" else "f64"
    text = text.replace(entry.shared_memory(real), f"@tile = internal global [{SLOTS} x {real}] zeroinitializer\n")
    text = text.replace(entry.INTRINSICS, "declare i32 @llvm.umin.i32(i32, i32)\n")
    text = re.sub(r"addrspace\(\d\) ", "", text).replace("define ptx_kernel void", "define void")
    text = text.replace(entry.THREAD, "add i32 %thread.number, 0").replace(entry.BLOCK, "add i32 %block.number, 0")
    text = text.replace(entry.BLOCKS, "add i32 1, 0")
    text = re.sub(r"call i32 asm sideeffect \"mov.u32[^(]*\(\)", "add i32 %thread.number, 0", text)
    number = rf"{real} ([^,]+), {real} ([^)]+)\)"
    zero = f"{real} 0x{0:016X}"
    text = re.sub(
        rf'call {real} asm sideeffect "fma.rn[^"]*", "[^"]*"\({number}',
        rf"call {real} @llvm.fma.{suffix}({real} \1, {zero}, {real} \2)",
        text,
    )
    text = re.sub(
        rf'%(\S+) = call {real} asm sideeffect "{{ .reg[^"]*", "[^"]*"\({number}',
        rf"%\1.size = call {real} @llvm.fabs.{suffix}({real} \2)\n%\1.more = fcmp ogt {real} %\1.size, \3\n"
        rf"%\1 = select i1 %\1.more, {real} %\1.size, {real} \3",
        text,
    )
    text = re.sub(r"^![^\n]*\n", "", text, flags=re.MULTILINE)
    assert "asm sideeffect" not in text
    return re.sub(rf"(define void @{name}\([^)]*)\)", r"\1, i32 %thread.number, i32 %block.number)", text)


def run_threads(text: str, real: str, name: str, arguments: list, n_threads: int, threads: int) -> None:
    """Run the kernel in threads 0 .. n_threads − 1, one after the other; arguments: ctypes values, as of a launch."""
    code = machine.Code(machine.object_code(on_the_cpu(text, real, name)), name)
    kinds = [type(x) for x in arguments] + [ctypes.c_uint32] * 2
    function = ctypes.CFUNCTYPE(None, *kinds)(code.address(name))
    for k in range(n_threads):
        function(*arguments, k % threads, k // threads)


def run_blocks(text: str, real: str, name: str, arguments: list, blocks: int, threads: int, groups: int = 1) -> None:
    """Run the kernel in so many blocks, one after the other, each with all its threads at once.

    groups: of a block, that have barriers of their own.
    """
    barriers = [threading.Barrier(threads // groups, timeout=60.0) for _ in range(groups)]
    wait = ctypes.CFUNCTYPE(None, ctypes.c_uint32)(lambda k: (barriers[k].wait(), None)[1])
    address = ctypes.cast(wait, ctypes.c_void_p).value
    code = machine.Code(machine.object_code(on_the_cpu(text, real, name, address)), name)
    kinds = [type(x) for x in arguments] + [ctypes.c_uint32] * 2
    function = ctypes.CFUNCTYPE(None, *kinds)(code.address(name))
    before = threading.stack_size(STACK)
    try:
        for b in range(blocks):
            running = [threading.Thread(target=function, args=(*arguments, k, b)) for k in range(threads)]
            for t in running:
                t.start()
            for t in running:
                t.join()
            assert not any(x.broken for x in barriers), "some threads of a group met more barriers than others"
    finally:
        threading.stack_size(before)


def pointer(a: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(a.ctypes.data)
