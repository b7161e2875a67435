"""A Plan as C99:  static void name(const double *a0, ..., double *o0, ...).

Inputs are read before an output is written, so that in a plan of one piece an array may be both.
"""

from __future__ import annotations

import math
import struct

from spanloop.compiler.lower.plan import Output
from spanloop.compiler.portable.pieces import SCRATCH, Piece, PortablePlan
from spanloop.compiler.portable.sines import (
    COSINE_POLYNOMIAL,
    FUSED_HALF_PI,
    HALF_PI,
    LIMIT,
    ROUNDING,
    SINE_POLYNOMIAL,
    TWO_OVER_PI,
)
from spanloop.compiler.trace import (
    ADD,
    BOTH,
    CONDITIONS,
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

WHOLE, LENGTH = 12000, 1500  # operations of one function, at most; of a piece of a longer one
_FUSED = {
    "double": "#if !defined(SPANLOOP_NO_FMA) && (defined(FP_FAST_FMA) || defined(__FMA__) || defined(__aarch64__))",
    "float": "#if !defined(SPANLOOP_NO_FMA) && "
    "(defined(FP_FAST_FMAF) || defined(__FMA__) || defined(__ARM_FEATURE_FMA))",
}  # where one fused operation is as fast as two: fewer of them, and other bits than without
SINCOS = "spanloop_sincos"  # the name of the function of sine and cosine, unless another is given
_BINARY = {ADD: "+", SUBTRACT: "-", MULTIPLY: "*", DIVIDE: "/", LESS: "<", BOTH: "&", EITHER: "|"}


def number(x: float, real: str) -> str:
    """A literal that is exact to the bit."""
    if math.isnan(x):
        return f"(({real})NAN)"
    if math.isinf(x):
        return f"({'-' if x < 0 else ''}({real})INFINITY)"
    text = repr(float(x)) if real == "double" else _single(x)
    return f"({text})" if text.startswith("-") else text


def _single(x: float) -> str:
    """A float literal: nine digits give every float back."""
    try:
        narrow = struct.unpack("<f", struct.pack("<f", x))[0]
    except OverflowError:
        raise InputError(f"the number {x:g} of this model is too large for float; use double") from None
    text = f"{narrow:.9g}"
    return (text if "." in text or "e" in text else text + ".0") + "f"


def sincos_function(real: str, name: str = SINCOS) -> str:
    """Source of  static void name(double x, double *s, double *c)."""
    suffix = "" if real == "double" else "f"

    def c(x: float) -> str:
        return number(x, real)

    def polynomial(coefficients) -> str:
        text = c(coefficients[0])
        for a in coefficients[1:]:
            text = f"({text} * z + {c(a)})"
        return text

    first, second, third, rest = (c(part) for part in HALF_PI[real])
    fused = "x"
    for part in FUSED_HALF_PI[real]:
        fused = f"fma{suffix}(-n, {c(part)}, {fused})"
    return f"""static void {name}({real} x, {real} *s, {real} *c)
{{
    const int near = fabs{suffix}(x) <= {c(LIMIT[real])};
    const {real} shifted = x * {c(TWO_OVER_PI)} + {c(ROUNDING[real])};
    const {real} n = shifted - {c(ROUNDING[real])};
    const int32_t turns = near ? (int32_t)n : 0;
{_FUSED[real]}
    const {real} r = {fused};
#else
    const {real} r1 = x - n * {first};
    const {real} b2 = n * {second};
    const {real} r2 = r1 - b2;
    const {real} b3 = n * {third};
    const {real} r3 = r2 - b3;
    const {real} r = r3 + ((((r1 - r2) - b2) + ((r2 - r3) - b3)) - n * {rest});
#endif
    const {real} z = r * r;
    const {real} sine = r + r * z * {polynomial(SINE_POLYNOMIAL[real])};
    const {real} cosine = {c(1.0)} - {c(0.5)} * z + z * z * {polynomial(COSINE_POLYNOMIAL[real])};
    const {real} u = (turns & 1) ? cosine : sine;
    const {real} w = (turns & 1) ? sine : cosine;
    *s = !near ? {c(math.nan)} : (turns & 2) ? -u : u;
    *c = !near ? {c(math.nan)} : ((turns + 1) & 2) ? -w : w;
}}
"""


def plan_function(p: PortablePlan, name: str, real: str, sincos: str = SINCOS) -> str:
    """Source of the functions of a plan; the last one is `name`."""
    n_inputs = len(p.plan.inputs)
    names = [f"a{k}" for k in range(n_inputs)] + [f"o{k}" for k in range(len(p.sizes))]
    head = [f"const {real} *{x}" for x in names[:n_inputs]] + [f"{real} *{x}" for x in names[n_inputs:]]
    if len(p.pieces) == 1:
        return _function(name, head, _void(p, p.pieces[0], names) + _lines(p, p.pieces[0], names, real, sincos))
    out = ""
    for k, piece in enumerate(p.pieces):
        more = [] if SCRATCH in p.used_arrays(piece) else ["(void)scratch;"]
        lines = _void(p, piece, names) + more + _lines(p, piece, names, real, sincos)
        out += _function(f"{name}_{k}", [*head, f"{real} *scratch"], lines)
    calls = [f"{name}_{k}({', '.join([*names, 'scratch'])});" for k in range(len(p.pieces))]
    return out + _function(name, head, [f"{real} scratch[{max(p.segments.n_slots, 1)}];", *calls])


def _function(name: str, head: list[str], lines: list[str]) -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"static void {name}({', '.join(head) or 'void'})\n{{\n{body}}}\n"


def _void(p: PortablePlan, piece: Piece, names: list[str]) -> list[str]:
    used = p.used_arrays(piece)
    return [f"(void){x};" for k, x in enumerate(names) if k not in used]


def _lines(p: PortablePlan, piece: Piece, names: list[str], real: str, sincos: str) -> list[str]:
    """Statements of a piece."""
    text = _Statements(p, piece, names, real, sincos)
    for n in piece.nodes:
        if n.index in piece.named:
            text.name(n)
    values = [text.value(s.value) for s in piece.stores]  # reads what is left to read
    stores = [f"{text.entry(s.array, s.place)} = {v};" for s, v in zip(piece.stores, values, strict=True)]
    return text.lines + stores


class _Statements:
    """Statements of one function, written as values are needed."""

    def __init__(self, p: PortablePlan, piece: Piece, names: list[str], real: str, sincos: str):
        self.p, self.piece, self.names, self.real, self.sincos = p, piece, names, real, sincos
        self.lines: list[str] = []
        self.known: dict[int, str] = {}
        self.angles: set[int] = set()

    def entry(self, array: int, place: int) -> str:
        return f"{'scratch' if array == SCRATCH else self.names[array]}[{place}]"

    def name(self, n: Expression) -> None:
        """Give a value its name."""
        if n.op in (SINE, COSINE):
            i = n.a.index
            if i not in self.angles:
                x = self.value(n.a)
                self.angles.add(i)
                self.lines += [f"{self.real} s{i}, c{i};", f"{self.sincos}({x}, &s{i}, &c{i});"]
            self.known[n.index] = f"s{i}" if n.op == SINE else f"c{i}"
            if i in self.angles and not self._uses_both(n):
                other = f"c{i}" if n.op == SINE else f"s{i}"
                self.lines.append(f"(void){other};")
            return
        kind = "int" if n.op in CONDITIONS else self.real
        self.lines.append(f"const {kind} v{n.index} = {self._expression(n)};")
        self.known[n.index] = f"v{n.index}"

    def _uses_both(self, n: Expression) -> bool:
        other = COSINE if n.op == SINE else SINE
        return any(m.op == other and m.a.index == n.a.index for m in self.piece.nodes if m.op == other)

    def value(self, x: Output) -> str:
        """The text of a value."""
        if not isinstance(x, Expression):
            return number(x, self.real)
        if x.op == CONSTANT:
            return number(x.value, self.real)
        found = self.known.get(x.index)
        if found is None and (x.op == INPUT or x.index not in self.piece.own):
            found = self.known[x.index] = f"v{x.index}"
            self.lines.append(f"const {self.real} {found} = {self.entry(*self.p.source_of(x))};")
        return found or f"({self._expression(x)})"

    def _expression(self, n: Expression) -> str:
        if n.op in _BINARY:
            return f"{self.value(n.a)} {_BINARY[n.op]} {self.value(n.b)}"
        if n.op == NEGATE:
            return f"-{self.value(n.a)}"
        if n.op == NOT:
            return f"!{self.value(n.a)}"
        if n.op == ROOT:
            return f"{'sqrt' if self.real == 'double' else 'sqrtf'}({self.value(n.a)})"
        assert n.op == SELECT, n
        return f"{self.value(n.a)} ? {self.value(n.b)} : {self.value(n.c)}"
