"""What every kernel for NVIDIA GPUs has around its operations: intrinsics, shared memory, limits of a block."""

from __future__ import annotations

WARP = 32  # threads that run in step
BARRIER = "call void @llvm.nvvm.barrier0()"
INTRINSICS = (
    "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
    "declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()\n"
    "declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()\n"
    "declare void @llvm.nvvm.barrier0()\n"
    "declare i32 @llvm.umin.i32(i32, i32)\n"
)
THREAD = "call i32 @llvm.nvvm.read.ptx.sreg.tid.x()"
BLOCK = "call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()"
BLOCKS = "call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()"
CONVERGENT = "attributes #7 = { convergent nounwind }\n"  # of barriers as assembly


def group_barrier(number: str, threads: int) -> str:
    """A barrier of so many threads of a block, the group of this number below 16."""
    return f'call void asm sideeffect "bar.sync $0, {threads};", "r,~{{memory}}"(i32 {number}) #7'


def shared_memory(real: str) -> str:
    """The block's shared memory, as large as the launch makes it."""
    return f"@tile = external addrspace(3) global [0 x {real}], align 16\n"


THREE_WARPS = 168  # registers of a thread with which three warps fit on a quarter of a multiprocessor
MANY = 30  # outputs beyond which they are held beside the other values


def most_registers(peak: int, outputs: int, real: str) -> int | None:
    """Registers with which a thread can do, so that three warps run at once; None where it takes all that there are.

    peak: the largest number of values that are held at a time. What they take with addresses and values on their way
    was found by assembling the kernels of robots and mechanisms. Bounds below, for four warps and more, make the
    assembler spill a few values: measured, they cost as much as they bring (a Panda) or more (a four-bar, 10 %).
    """
    values = peak + (outputs if outputs > MANY else 0)
    needed = 1.05 * values + 7 if real == "float" else 2.1 * values + 16
    return THREE_WARPS if needed <= THREE_WARPS else None


def limits(name: str, threads: int, registers: int | None = None) -> str:
    """How many threads a block has, and registers a thread.

    Without a number of registers, one block on a multiprocessor will do: else the assembler takes fewer registers and
    spills, to fit in more blocks.
    """
    bound = f'!"maxnreg", i32 {registers}' if registers else '!"minctasm", i32 1'
    return (
        "!nvvm.annotations = !{!0, !1}\n"
        f'!0 = !{{ptr @{name}, !"maxntidx", i32 {threads}}}\n!1 = !{{ptr @{name}, {bound}}}\n'
    )
