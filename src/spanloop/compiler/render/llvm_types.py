"""The number type of a kernel in LLVM's words: one double or float, or a vector of them."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

import numpy as np

from spanloop.errors import InputError


def _narrowed(x: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(x))


@dataclass(frozen=True)
class Real:
    """real: "double" or "float"; width: how many states one value holds."""

    real: str
    width: int = 1

    @property
    def size(self) -> int:
        """Bytes of one number."""
        return 8 if self.real == "double" else 4

    @property
    def integer(self) -> str:
        return "i64" if self.real == "double" else "i32"

    @property
    def value(self) -> str:
        return self.real if self.width == 1 else f"<{self.width} x {self.real}>"

    @property
    def bits(self) -> str:
        return self.integer if self.width == 1 else f"<{self.width} x {self.integer}>"

    @property
    def truth(self) -> str:
        return "i1" if self.width == 1 else f"<{self.width} x i1>"

    @property
    def suffix(self) -> str:
        """As intrinsics are named: f64, v8f64."""
        return ("" if self.width == 1 else f"v{self.width}") + ("f64" if self.real == "double" else "f32")

    def constant(self, x: float) -> str:
        """A literal, exact to the bit."""
        if self.real == "float":
            narrow = _narrowed(x)
            if math.isfinite(x) and not math.isfinite(narrow):
                raise InputError(f"the number {x:g} of this model is too large for float32; use float64")
            x = narrow
        bits = struct.unpack("<Q", struct.pack("<d", x))[0]
        text = f"0x{bits:016X}"
        return text if self.width == 1 else f"splat ({self.real} {text})"

    def whole(self, k: int) -> str:
        """An integer literal."""
        return str(k) if self.width == 1 else f"splat ({self.integer} {k})"

    def wide(self, width: int) -> Real:
        return Real(self.real, width)
