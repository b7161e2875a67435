"""Operations of a plan as LLVM instructions, one line each, on numbers or on vectors of them."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from spanloop.compiler.trace import (
    ADD,
    BOTH,
    CONSTANT,
    COSINE,
    DIVIDE,
    EITHER,
    INPUT,
    LESS,
    MULTIPLY,
    NEGATE,
    NOT,
    ROOT,
    SELECT,
    SINE,
    SUBTRACT,
    Expression,
)
from spanloop.errors import InputError

_PLAIN = {ADD: "fadd contract", SUBTRACT: "fsub contract", MULTIPLY: "fmul contract", DIVIDE: "fdiv"}


@dataclass(frozen=True)
class Real:
    """The number type of a kernel. real: "double" or "float"; width: how many states one value holds."""

    real: str
    width: int = 1

    @property
    def size(self) -> int:
        """Bytes of one number."""
        return 8 if self.real == "double" else 4

    @property
    def integer(self) -> str:
        """The integer type of the same size."""
        return "i64" if self.real == "double" else "i32"

    @property
    def value(self) -> str:
        """The type of a value."""
        return self.real if self.width == 1 else f"<{self.width} x {self.real}>"

    @property
    def bits(self) -> str:
        """The type of the bits of a value."""
        return self.integer if self.width == 1 else f"<{self.width} x {self.integer}>"

    @property
    def truth(self) -> str:
        """The type of a condition."""
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
        """The same number in vectors of this width."""
        return Real(self.real, width)


def _narrowed(x: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(x))


class Body:
    """Instructions of one function: values by node, written as they are first needed."""

    def __init__(self, t: Real, fetch: Callable[[Body, Expression], str], pack: int = 1, tag: str = ""):
        """fetch(body, node): the name of an input or of a value computed elsewhere.

        pack: how many sincos share a vector; tag: sets this body's names apart from those of another in one function.
        """
        self.t, self.fetch, self.pack, self.tag = t, fetch, pack, tag
        self.lines: list[str] = []
        self.values: dict[int, str] = {}
        self._angles: dict[int, tuple[str, str]] = {}

    def add(self, nodes: Sequence[Expression]) -> None:
        """Write the nodes; operands that are not among them are fetched."""
        if self.pack > 1:
            self._pack_angles(nodes)
        for n in nodes:
            if n.index not in self.values and n.op not in (INPUT, CONSTANT):
                self.values[n.index] = self._written(n)

    def value(self, x: Expression | float) -> str:
        """The name of a value, or its literal."""
        if not isinstance(x, Expression):
            return self.t.constant(x)
        found = self.values.get(x.index)
        if found is None:
            found = self.t.constant(x.value) if x.op == CONSTANT else self.fetch(self, x)
            self.values[x.index] = found
        return found

    def line(self, name: str, text: str) -> str:
        """Append an instruction that defines a value; the name of the value."""
        self.lines.append(f"%{name}{self.tag} = {text}")
        return f"%{name}{self.tag}"

    def _written(self, n: Expression) -> str:
        t, op, name = self.t, n.op, f"v{n.index}"
        if op in _PLAIN:
            return self.line(name, f"{_PLAIN[op]} {t.value} {self.value(n.a)}, {self.value(n.b)}")
        if op in (SINE, COSINE):
            return self._angle(n.a)[0 if op == SINE else 1]
        if op == NEGATE:
            return self.line(name, f"fneg {t.value} {self.value(n.a)}")
        if op == ROOT:
            return self.line(name, f"call {t.value} @llvm.sqrt.{t.suffix}({t.value} {self.value(n.a)})")
        if op == LESS:
            return self.line(name, f"fcmp olt {t.value} {self.value(n.a)}, {self.value(n.b)}")
        if op == SELECT:
            c, a, b = (self.value(x) for x in (n.a, n.b, n.c))
            return self.line(name, f"select {t.truth} {c}, {t.value} {a}, {t.value} {b}")
        if op in (BOTH, EITHER):
            word = "and" if op == BOTH else "or"
            return self.line(name, f"{word} {t.truth} {self.value(n.a)}, {self.value(n.b)}")
        if op == NOT:
            ones = "true" if t.width == 1 else "splat (i1 true)"
            return self.line(name, f"xor {t.truth} {self.value(n.a)}, {ones}")
        raise AssertionError(f"no instruction for {n!r}")

    def _angle(self, x: Expression) -> tuple[str, str]:
        if x.index not in self._angles:
            self._angles[x.index] = sincos(self.lines, self.t, self.value(x), f".q{x.index}{self.tag}")
        return self._angles[x.index]

    def _pack_angles(self, nodes) -> None:
        """Sines and cosines of angles known at the start (inputs, inputs plus constants), several to a vector."""
        angles: dict[int, Expression] = {}
        for n in nodes:
            if n.op in (SINE, COSINE) and _early(n.a):
                angles[n.a.index] = n.a
        known = list(angles.values())
        for k in range(0, len(known), self.pack):
            group = known[k : k + self.pack]
            if len(group) > 1:
                self._pack_group(group, f".pack{k}")

    def _pack_group(self, group: list[Expression], tag: str) -> None:
        wide = self.t.wide(self.pack)
        vector = "zeroinitializer"
        for j, x in enumerate(group):
            if x.op not in (INPUT, CONSTANT) and x.index not in self.values:
                self.add_early(x)
            vector = self.line(
                f"in{tag}_{j}", f"insertelement {wide.value} {vector}, {self.t.real} {self.value(x)}, i32 {j}"
            )
        results = sincos(self.lines, wide, vector, tag)
        for j, x in enumerate(group):
            self._angles[x.index] = tuple(  # type: ignore[assignment]
                self.line(f"out{tag}_{j}{letter}", f"extractelement {wide.value} {r}, i32 {j}")
                for letter, r in zip("sc", results, strict=True)
            )

    def add_early(self, x: Expression) -> None:
        self.values[x.index] = self._written(x)


def _early(x: Expression) -> bool:
    if x.op in (ADD, SUBTRACT):
        return x.a.op in (INPUT, CONSTANT) and x.b.op in (INPUT, CONSTANT)
    return x.op == INPUT


def declarations(*types: Real) -> str:
    """The intrinsics that bodies of these types call."""
    out = set()
    for t in types:
        v = t.value
        out.add(f"declare {v} @llvm.fma.{t.suffix}({v}, {v}, {v})")
        out.add(f"declare {v} @llvm.sqrt.{t.suffix}({v})")
        out.add(f"declare {v} @llvm.fabs.{t.suffix}({v})")
    return "\n".join(sorted(out)) + "\n"


# Sine and cosine without branches: reduction by multiples of pi/2 with fused multiply-add, then polynomials.
#
# The reduction subtracts n·pi/2 with pi/2 in three parts. The first step is exact: x and n·pi/2 are multiples of the
# last place of pi/2. The others are exact or round once, so that the result is good to 1.5 units in the last place for
# |x| up to LIMIT, near its zeros too; it is there that n may be off by a hundredth of a quarter turn (in double), and
# the polynomials' argument with it. Beyond, kernels report the state and the host takes over. The polynomials'
# coefficients are Moshier's (Cephes library): data, quoted from there.

LIMIT = {"double": 1e14, "float": 1e6}

TWO_OVER_PI = 0.6366197723675814
ROUNDING = {"double": 6755399441055744.0, "float": 12582912.0}  # adding it rounds to an integer in the low bits


def _float_parts() -> tuple[float, float, float]:
    half_pi = 1.5707963267948966
    a = float(np.float32(half_pi))
    b = float(np.float32(half_pi - a))
    c = float(np.float32(half_pi - a - b + 6.123233995736766e-17))
    return a, b, c


FUSED_HALF_PI = {
    "double": (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33),
    "float": _float_parts(),
}
SINE_POLYNOMIAL = {
    "double": (
        1.58962301576546568060e-10,
        -2.50507477628578072866e-8,
        2.75573136213857245213e-6,
        -1.98412698295895385996e-4,
        8.33333333332211858878e-3,
        -1.66666666666666307295e-1,
    ),
    "float": (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1),
}
COSINE_POLYNOMIAL = {
    "double": (
        -1.13585365213876817300e-11,
        2.08757008419747316778e-9,
        -2.75573141792967388112e-7,
        2.48015872888517045348e-5,
        -1.38888888888730564116e-3,
        4.16666666666665929218e-2,
    ),
    "float": (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2),
}


def sincos(lines: list[str], t: Real, x: str, tag: str) -> tuple[str, str]:
    """Append the sine and cosine of value x; the names of the two results."""
    v, c = t.value, t.constant
    magic = c(ROUNDING[t.real])

    def fma(name: str, a: str, b: str, d: str) -> str:
        lines.append(f"%{name}{tag} = call {v} @llvm.fma.{t.suffix}({v} {a}, {v} {b}, {v} {d})")
        return f"%{name}{tag}"

    def line(name: str, text: str) -> str:
        lines.append(f"%{name}{tag} = {text}")
        return f"%{name}{tag}"

    rounded = fma("k", x, c(TWO_OVER_PI), magic)
    quarters = line("n", f"fsub {v} {rounded}, {magic}")
    turns = line("i", f"bitcast {v} {rounded} to {t.bits}")
    minus = line("m", f"fneg {v} {quarters}")
    r = x
    for j, part in enumerate(FUSED_HALF_PI[t.real]):
        r = fma(f"r{j}_", minus, c(part), r)
    z = line("z", f"fmul {v} {r}, {r}")
    ps, pc = (
        _horner(fma, c, z, name, table[t.real]) for name, table in (("s", SINE_POLYNOMIAL), ("c", COSINE_POLYNOMIAL))
    )
    rz = line("rz", f"fmul {v} {r}, {z}")
    s = fma("sp", rz, ps, r)
    one = fma("hz", z, c(-0.5), c(1.0))
    zz = line("zz", f"fmul {v} {z}, {z}")
    k = fma("cp", zz, pc, one)
    odd = line("od", f"and {t.bits} {turns}, {t.whole(1)}")
    swap = line("sw", f"icmp ne {t.bits} {odd}, {t.whole(0)}")
    s, k = (
        line("ss", f"select {t.truth} {swap}, {v} {k}, {v} {s}"),
        line("cc", f"select {t.truth} {swap}, {v} {s}, {v} {k}"),
    )
    later = line("ib", f"add {t.bits} {turns}, {t.whole(1)}")
    return _signed(line, t, turns, s, "S"), _signed(line, t, later, k, "C")


def _horner(fma, c, z: str, name: str, coefficients) -> str:
    p = c(coefficients[0])
    for j, a in enumerate(coefficients[1:]):
        p = fma(f"p{name}{j}_", p, z, c(a))
    return p


def _signed(line, t: Real, turns: str, x: str, name: str) -> str:
    """x with its sign turned where bit 1 of the number of quarter turns is set."""
    shift = 62 if t.real == "double" else 30
    two = line(f"a{name}", f"and {t.bits} {turns}, {t.whole(2)}")
    sign = line(f"b{name}", f"shl {t.bits} {two}, {t.whole(shift)}")
    raw = line(f"d{name}", f"bitcast {t.value} {x} to {t.bits}")
    flipped = line(f"e{name}", f"xor {t.bits} {raw}, {sign}")
    return line(f"f{name}", f"bitcast {t.bits} {flipped} to {t.value}")
