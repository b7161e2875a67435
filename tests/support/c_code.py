"""Exported C, compiled and called: what tests of C files share."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import spanloop as sl

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wdouble-promotion", "-Werror"]
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
REAL = {"double": (np.float64, ctypes.c_double), "float": (np.float32, ctypes.c_float)}

needs_compiler = pytest.mark.skipif(not COMPILERS, reason="no C compiler (gcc, clang) on this machine")


def compile_c(sources, target: Path, *flags: str, compiler: str | None = None) -> Path:
    """A program or library from sources, without any warning."""
    words = [compiler or COMPILERS[0], *STRICT, "-O0", *flags, *map(str, sources), "-o", str(target), "-lm"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    return target


class Exported:
    """The library of an exported file; functions by their name without prefix, on arrays."""

    def __init__(self, model: sl.Model, functions, folder: Path, name: str = "arm", **options):
        self.path = sl.export(model, functions, folder / f"{name}.c", **options)
        self.name, self.real = name, options.get("real", "double")
        self.library = ctypes.CDLL(str(compile_c([self.path], folder / f"{name}.so", "-shared", "-fPIC")))

    def call(self, function: str, *inputs, size: int) -> tuple[int, np.ndarray]:
        """Status and result (size,)."""
        dtype = REAL[self.real][0]
        rows = [np.ascontiguousarray(x, dtype) for x in inputs]
        out = np.full(size, 7.0, dtype)
        status = getattr(self.library, f"{self.name}_{function}")(*(pointer(x) for x in (*rows, out)))
        return status, out

    def text(self, status: int) -> str:
        """The sentence of a status."""
        function = getattr(self.library, f"{self.name}_status_text")
        function.restype = ctypes.c_char_p
        return function(status).decode()


class Motion:
    """A motion of an exported library, at its start."""

    def __init__(self, code: Exported, model: sl.Model):
        self.code, self.model = code, model
        header = code.path.with_suffix(".h").read_text()
        size = int(header.split(f"#define {code.name.upper()}_MEMORY ")[1].split()[0])
        dtype = REAL[code.real][0]
        self.memory = np.zeros(8 + size * np.dtype(dtype).itemsize, np.uint8)
        self._function("start")(pointer(self.memory))

    def _function(self, name: str):
        return getattr(self.code.library, f"{self.code.name}_{name}")

    def step(self, *u) -> int:
        rows = [np.ascontiguousarray(x, REAL[self.code.real][0]) for x in u]
        return self._function("step")(pointer(self.memory), *map(pointer, rows))

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        dtype = REAL[self.code.real][0]
        q, v = np.empty(self.model.nq, dtype), np.empty(self.model.nv, dtype)
        assert self._function("state")(pointer(self.memory), pointer(q), pointer(v)) == 0
        return q, v

    def call(self, name: str, *inputs) -> int:
        rows = [np.ascontiguousarray(x, REAL[self.code.real][0]) for x in inputs]
        return self._function(name)(pointer(self.memory), *map(pointer, rows))

    @property
    def time(self) -> float:
        function = self._function("time")
        function.restype = REAL[self.code.real][1]
        return function(pointer(self.memory))


def pointer(x: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.ctypes.data)
