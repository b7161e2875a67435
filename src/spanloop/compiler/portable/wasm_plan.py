"""A Plan as WebAssembly functions (i32 address, ...) -> (): one address for each input, then for each output."""

from __future__ import annotations

import math

from spanloop.compiler.lower.plan import Output
from spanloop.compiler.portable import wasm_binary as w
from spanloop.compiler.portable.pieces import SCRATCH, Piece, PortablePlan
from spanloop.compiler.portable.sines import COSINE_POLYNOMIAL, HALF_PI, LIMIT, ROUNDING, SINE_POLYNOMIAL, TWO_OVER_PI
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

LENGTH = 800  # operations of one function: engines compile short ones sooner

_WORDS = {
    ADD: w.F64_ADD,
    SUBTRACT: w.F64_SUB,
    MULTIPLY: w.F64_MUL,
    DIVIDE: w.F64_DIV,
    NEGATE: w.F64_NEG,
    ROOT: w.F64_SQRT,
    LESS: w.F64_LT,
    BOTH: w.I32_AND,
    EITHER: w.I32_OR,
    NOT: w.I32_EQZ,
}


def add_sincos(module: w.Module) -> int:
    """The function (x) -> (sine, cosine), written as that of C (c_plan.py)."""
    x, y, n, r, z, s, c, u, v, r1, r2, r3, b2, b3, near, turns = range(16)
    get, put = w.get, w.put
    first, second, third, rest = (get(n) + w.f64(part) + w.F64_MUL for part in HALF_PI["double"])
    code = get(x) + w.F64_ABS + w.f64(LIMIT["double"]) + w.F64_LE + put(near)
    code += get(x) + w.f64(0.0) + get(near) + w.SELECT + w.tee(y)
    code += w.f64(TWO_OVER_PI) + w.F64_MUL + w.f64(ROUNDING["double"]) + w.F64_ADD
    code += w.f64(ROUNDING["double"]) + w.F64_SUB + w.tee(n) + w.I32_TRUNCATED + put(turns)
    code += get(y) + first + w.F64_SUB + w.tee(r1) + second + w.tee(b2) + w.F64_SUB + w.tee(r2)
    code += third + w.tee(b3) + w.F64_SUB + w.tee(r3)
    code += get(r1) + get(r2) + w.F64_SUB + get(b2) + w.F64_SUB
    code += get(r2) + get(r3) + w.F64_SUB + get(b3) + w.F64_SUB + w.F64_ADD + rest + w.F64_SUB + w.F64_ADD
    code += w.tee(r) + get(r) + w.F64_MUL + put(z)

    def polynomial(coefficients) -> bytes:
        out = w.f64(coefficients[0])
        for a in coefficients[1:]:
            out += get(z) + w.F64_MUL + w.f64(a) + w.F64_ADD
        return out

    code += get(r) + get(r) + get(z) + w.F64_MUL + polynomial(SINE_POLYNOMIAL["double"])
    code += w.F64_MUL + w.F64_ADD + put(s)
    code += w.f64(1.0) + w.f64(0.5) + get(z) + w.F64_MUL + w.F64_SUB
    code += get(z) + get(z) + w.F64_MUL + polynomial(COSINE_POLYNOMIAL["double"]) + w.F64_MUL + w.F64_ADD + put(c)
    odd = get(turns) + w.i32(1) + w.I32_AND
    code += get(c) + get(s) + odd + w.SELECT + put(u) + get(s) + get(c) + odd + w.SELECT + put(v)
    for value, quarter in ((u, get(turns)), (v, get(turns) + w.i32(1) + w.I32_ADD)):
        code += get(value) + w.F64_NEG + get(value) + quarter + w.i32(2) + w.I32_AND + w.SELECT
        code += w.f64(math.nan) + get(near) + w.SELECT
    return module.add([w.F64], [w.F64, w.F64], [(13, w.F64), (2, w.I32)], code)


def add_plan(module: w.Module, sincos: int, p: PortablePlan, scratch: int) -> int:
    """The number of a plan's function; scratch: where values between its pieces are, in numbers."""
    arguments = [w.I32] * p.n_arrays
    numbers = []
    for piece in p.pieces:
        code = _Code(p, piece, sincos, scratch)
        numbers.append(module.add(arguments, [], code.locals, code.text))
    if len(numbers) == 1:
        return numbers[0]
    passed = b"".join(w.get(k) for k in range(p.n_arrays))
    return module.add(arguments, [], [], b"".join(passed + w.call(n) for n in numbers))


Part = bytes | tuple[str, str, int]  # instructions; of a local: word, kind, number


def with_few_locals(parts: list[Part]) -> tuple[list[Part], dict[str, int]]:
    """Straight code whose locals are taken again after their last use, and how many it has of each kind.

    Locals with small numbers take one byte, and code that uses few of them packs better.
    """
    last = {x[1:]: k for k, x in enumerate(parts) if not isinstance(x, bytes)}
    free: dict[str, list[int]] = {"number": [], "condition": []}
    count, place, out = {"number": 0, "condition": 0}, dict[tuple[str, int], int](), list[Part]()
    for k, x in enumerate(parts):
        if isinstance(x, bytes):
            out.append(x)
            continue
        word, kind, own = x
        if (kind, own) not in place:
            if not free[kind]:
                free[kind].append(count[kind])
                count[kind] += 1
            place[kind, own] = free[kind].pop()
        out.append((word, kind, place[kind, own]))
        if last[kind, own] == k:
            free[kind].append(place[kind, own])
    return out, count


class _Code:
    """Instructions of one piece. Locals: addresses, numbers, conditions."""

    def __init__(self, p: PortablePlan, piece: Piece, sincos: int, scratch: int):
        self.p, self.piece, self.sincos, self.scratch = p, piece, sincos, scratch
        self._parts: list[Part] = []
        self._homes: dict[int, tuple[str, int]] = {}
        self._angles: dict[int, tuple[tuple[str, int], tuple[str, int]]] = {}
        self._count = {"number": 0, "condition": 0}
        for n in piece.nodes:
            if n.index in piece.named:
                self._name(n)
        for s in piece.stores:
            self._read_inputs(s.value)
        for s in piece.stores:
            base, place = self._entry(s.array, s.place)
            self._parts.append(base)
            self._value(s.value)
            self._parts.append(w.store(place))
        self._parts, self._count = with_few_locals(self._parts)

    @property
    def locals(self) -> list[tuple[int, bytes]]:
        return [(self._count["number"], w.F64), (self._count["condition"], w.I32)]

    @property
    def text(self) -> bytes:
        first = {"number": self.p.n_arrays, "condition": self.p.n_arrays + self._count["number"]}
        words = {"get": w.get, "put": w.put, "tee": w.tee}
        return b"".join(x if isinstance(x, bytes) else words[x[0]](first[x[1]] + x[2]) for x in self._parts)

    def _local(self, word: str, home: tuple[str, int]) -> None:
        self._parts.append((word, *home))

    def _new(self, kind: str) -> tuple[str, int]:
        self._count[kind] += 1
        return kind, self._count[kind] - 1

    def _entry(self, array: int, place: int) -> tuple[bytes, int]:
        """An address, and how many numbers after it an entry is."""
        return (w.i32(0), self.scratch + place) if array == SCRATCH else (w.get(array), place)

    def _name(self, n: Expression) -> None:
        if n.op in (SINE, COSINE):
            i = n.a.index
            if i not in self._angles:
                self._value(n.a)
                self._parts.append(w.call(self.sincos))
                self._angles[i] = self._new("number"), self._new("number")
                self._local("put", self._angles[i][1])
                self._local("put", self._angles[i][0])
            self._homes[n.index] = self._angles[i][0 if n.op == SINE else 1]
            return
        self._expression(n)
        self._homes[n.index] = self._new("condition" if n.op in CONDITIONS else "number")
        self._local("put", self._homes[n.index])

    def _value(self, x: Output) -> None:
        if not isinstance(x, Expression) or x.op == CONSTANT:
            self._parts.append(w.f64(x.value if isinstance(x, Expression) else x))
        elif x.index in self._homes:
            self._local("get", self._homes[x.index])
        elif self._is_read(x):
            self._read(x)
            self._local("tee", self._homes[x.index])
        else:
            self._expression(x)

    def _is_read(self, x: Expression) -> bool:
        return x.op == INPUT or x.index not in self.piece.own

    def _read(self, x: Expression) -> None:
        base, place = self._entry(*self.p.source_of(x))
        self._parts += [base, w.load(place)]
        self._homes[x.index] = self._new("number")

    def _expression(self, n: Expression) -> None:
        for x in (n.b, n.c, n.a) if n.op == SELECT else (n.a, n.b):
            if x is not None:
                self._value(x)
        self._parts.append(w.SELECT if n.op == SELECT else _WORDS[n.op])

    def _read_inputs(self, x: Output | None) -> None:
        """Read all that a value needs and that is not read yet, before an output is written."""
        if not isinstance(x, Expression) or x.op == CONSTANT or x.index in self._homes:
            return
        if self._is_read(x):
            self._read(x)
            self._local("put", self._homes[x.index])
            return
        for part in (x.a, x.b, x.c):
            self._read_inputs(part)
