"""This machine: its vector width, and source text to object code to addresses."""

from __future__ import annotations

import functools
import platform
import sys
import threading
import time
from dataclasses import dataclass

import llvmlite
import llvmlite.binding as llvm

_lock = threading.RLock()  # LLVM's objects are used by one thread at a time


@dataclass
class Work:
    """What was done for this process: pieces of machine code made by LLVM and the seconds that took, pieces loaded."""

    made: int = 0
    seconds: float = 0.0
    loaded: int = 0


work = Work()


@functools.cache
def _target():
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple()


@functools.cache
def features() -> str:
    """Instruction sets of this processor, as LLVM names them."""
    return llvm.get_host_cpu_features().flatten()


@functools.cache
def _target_machine():
    return _target().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features(), opt=2, jit=True, codemodel="jitdefault"
    )


def identity() -> str:
    """Everything about machine and tools that object code depends on."""
    parts = (llvm.get_host_cpu_name(), features(), llvmlite.__version__, platform.system(), platform.machine())
    return "|".join((*parts, sys.implementation.cache_tag or "", getattr(sys, "abiflags", "")))


def lanes(real: str) -> int:
    """How many numbers one vector register holds, at least 2."""
    known = features()
    bits = 512 if "+avx512f" in known and "+avx512vl" in known else 256 if "+avx2" in known else 128
    return bits // (64 if real == "double" else 32)


def object_code(source: str) -> bytes:
    """Machine code of LLVM source, relocatable."""
    with _lock:
        began = time.perf_counter()
        _target()
        module = llvm.parse_assembly(source)
        code = _target_machine().emit_object(module)
        work.made += 1
        work.seconds += time.perf_counter() - began
        return code


class Code:
    """Loaded machine code; lives as long as this object."""

    def __init__(self, data: bytes):
        with _lock:
            _target()
            self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine_for_loading())
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(data))
            self._engine.finalize_object()
            work.loaded += 1

    def function(self, name: str) -> int:
        """Address of a function."""
        return self._engine.get_function_address(name)

    def variable(self, name: str) -> int:
        """Address of a global variable."""
        return self._engine.get_global_value_address(name)


def _target_machine_for_loading():
    # an execution engine takes its target machine over, so each needs one of its own
    return _target().create_target_machine(opt=0, jit=True, codemodel="jitdefault")
