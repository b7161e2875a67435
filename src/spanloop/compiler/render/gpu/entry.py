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


def limits(name: str, threads: int) -> str:
    """How many threads a block has, and that one block on a multiprocessor will do.

    Without the second the assembler takes fewer registers and spills, to fit in more blocks.
    """
    return (
        "!nvvm.annotations = !{!0, !1}\n"
        f'!0 = !{{ptr @{name}, !"maxntidx", i32 {threads}}}\n!1 = !{{ptr @{name}, !"minctasm", i32 1}}\n'
    )
