"""A driver of GPUs in the place of NVIDIA's: memory of the device is memory of this process, kernels run on the CPU.

Kernels get here as LLVM text instead of machine code; their blocks run one after the other, each with all its threads
(gpu_threads.run_blocks). What a call copies, which code it chooses and how it launches it are those of a GPU.
"""

from __future__ import annotations

import ctypes
import re
import struct
from dataclasses import dataclass, field

import numpy as np

from spanloop.compiler.runtime.gpu import assembly, device_code, driver, kernel
from support.gpu_threads import run_blocks


@dataclass
class DeviceInMemory:
    """A GPU with as many multiprocessors as an H200; launches: (kernel's name, blocks, threads) of each."""

    number: int = 0
    name: str = "memory"
    capability: tuple[int, int] = (9, 0)
    multiprocessors: int = 132
    shared: int = 232448
    driver: int = 13000
    context: int = 1
    launches: list[tuple[str, int, int]] = field(default_factory=list)

    def free_memory(self) -> int:
        return 1 << 34


class MemoryInMemory:
    """Bytes of the device."""

    def __init__(self, device, size: int, stream: int = 0):
        self.device, self.size, self.stream = device, size, stream
        self._bytes = np.full(max(size, 1), 0xA5, np.uint8)
        self.pointer = self._bytes.ctypes.data

    def free(self) -> None:
        pass

    def write(self, address: int, size: int, offset: int = 0) -> None:
        assert offset + size <= self.size
        ctypes.memmove(self.pointer + offset, address, size)

    def read(self, address: int, size: int, offset: int = 0) -> None:
        assert offset + size <= self.size
        ctypes.memmove(address, self.pointer + offset, size)


class ModuleInMemory:
    """LLVM text as a loaded module."""

    def __init__(self, device, code: bytes):
        self.device, self.text = device, code.decode()

    def function(self, name: str, shared: int = 0):
        assert shared <= self.device.shared
        return FunctionInMemory(self, name, shared)


@dataclass
class FunctionInMemory:
    """A kernel that runs when it is launched."""

    module: ModuleInMemory
    name: str
    shared: int

    def launch_packed(self, blocks: int, threads: int, packed: bytes, stream: int = 0) -> None:
        self.module.device.launches.append((self.name, blocks, threads))
        text = self.module.text
        head = re.search(rf"define ptx_kernel void @{self.name}\(([^{{]*)\) {{", text)
        assert head is not None
        kinds = [x.split()[0] for x in re.sub(r"addrspace\(1\)", "", head.group(1)).split(",")]
        sizes = {"ptr": ("Q", ctypes.c_void_p), "i64": ("q", ctypes.c_int64), "i32": ("I", ctypes.c_uint32)}
        values = struct.unpack("".join(sizes[k][0] for k in kinds), packed)
        arguments = [sizes[k][1](x) for k, x in zip(kinds, values, strict=True)]
        real = "float" if "[0 x float]" in text else "double"
        run_blocks(text, real, self.name, arguments, blocks, threads)


def use(monkeypatch) -> DeviceInMemory:
    """Let kernels of target "cuda" run on this device; the cache is off."""
    device = DeviceInMemory()
    monkeypatch.setenv("SPANLOOP_CACHE", "off")
    monkeypatch.setattr(driver, "is_available", lambda: True)
    monkeypatch.setattr(driver, "synchronize", lambda *_: None)
    monkeypatch.setattr(driver, "linked", lambda _, text: text.encode())
    monkeypatch.setattr(driver, "Module", ModuleInMemory)
    monkeypatch.setattr(assembly, "ptx", lambda text, _: text)
    for module in (device_code, kernel):
        monkeypatch.setattr(module, "Memory", MemoryInMemory)
    monkeypatch.setattr(device_code.DeviceCode, "device", property(lambda _: device))
    return device
