"""LLVM text to PTX, the assembly that the driver of an NVIDIA GPU accepts; no toolkit and no GPU are needed."""

from __future__ import annotations

import functools

import llvmlite.binding as llvm

from spanloop.compiler.runtime import machine

TRIPLE = "nvptx64-nvidia-cuda"
HOPPER = (9, 0)
_OLDEST, _NEWEST = (7, 0), (12, 1)  # compute capabilities that LLVM knows by name


def ptx(text: str, capability: tuple[int, int] = HOPPER, is_optimised: bool = False) -> str:
    """The PTX of LLVM text for devices of this compute capability and later ones.

    is_optimised: functions are inlined and arrays become registers first. Kernels of one function need no such pass.
    """

    def emitted() -> str:
        target = _target_machine(name(capability))
        module = llvm.parse_assembly(f'target triple = "{TRIPLE}"\n{text}')
        module.verify()
        if is_optimised:
            module.data_layout = str(target.target_data)
            builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=2))
            builder.getModulePassManager().run(module, builder)
        found: str = target.emit_assembly(module)
        return found

    return machine.exclusively(emitted)


def name(capability: tuple[int, int]) -> str:
    """As LLVM calls it: sm_90. A device that is newer than LLVM knows runs code for the newest that it does."""
    major, minor = min(max(capability, _OLDEST), _NEWEST)
    return f"sm_{major}{minor}"


@functools.cache
def _target_machine(cpu: str) -> llvm.TargetMachine:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=cpu, opt=2)
