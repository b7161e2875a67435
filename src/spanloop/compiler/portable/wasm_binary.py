"""The binary format of WebAssembly: whole numbers, instructions, sections [WebAssembly Core Specification 1.1, §5]."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

I32, F64 = b"\x7f", b"\x7c"  # types of values
NOTHING = b"\x40"  # the type of a block without a value
PAGE = 65536  # bytes

# instructions without operands of their own
F64_ADD, F64_SUB, F64_MUL, F64_DIV = b"\xa0", b"\xa1", b"\xa2", b"\xa3"
F64_ABS, F64_NEG, F64_SQRT = b"\x99", b"\x9a", b"\x9f"
F64_EQ, F64_LT, F64_GT, F64_LE, F64_GE = b"\x61", b"\x63", b"\x64", b"\x65", b"\x66"
I32_ADD, I32_MUL, I32_AND, I32_OR, I32_EQ, I32_EQZ, I32_LT, I32_GE = (
    b"\x6a",
    b"\x6c",
    b"\x71",
    b"\x72",
    b"\x46",
    b"\x45",
    b"\x48",
    b"\x4e",
)
I32_TRUNCATED = b"\xfc\x02"  # of an f64, saturated
SELECT, RETURN, END = b"\x1b", b"\x0f", b"\x0b"
MEMORY_COPY = b"\xfc\x0a\x00\x00"  # (to, from, bytes)
IF, ELSE, BLOCK, LOOP = b"\x04\x40", b"\x05", b"\x02\x40", b"\x03\x40"


def unsigned(n: int) -> bytes:
    """A whole number in LEB128."""
    out = bytearray()
    while True:
        n, low = n >> 7, n & 127
        out.append(low | (128 if n else 0))
        if not n:
            return bytes(out)


def signed(n: int) -> bytes:
    """A whole number, possibly negative, in LEB128."""
    out = bytearray()
    while True:
        n, low = n >> 7, n & 127
        if (n == 0 and not low & 64) or (n == -1 and low & 64):
            out.append(low)
            return bytes(out)
        out.append(low | 128)


def f64(x: float) -> bytes:
    """A constant."""
    return b"\x44" + struct.pack("<d", x)


def i32(n: int) -> bytes:
    """A whole constant."""
    return b"\x41" + signed(n)


def get(local: int) -> bytes:
    return b"\x20" + unsigned(local)


def put(local: int) -> bytes:
    return b"\x21" + unsigned(local)


def tee(local: int) -> bytes:
    """Put a value into a local and leave it on the stack."""
    return b"\x22" + unsigned(local)


def call(function: int) -> bytes:
    return b"\x10" + unsigned(function)


def branch(depth: int) -> bytes:
    return b"\x0c" + unsigned(depth)


def branch_if(depth: int) -> bytes:
    return b"\x0d" + unsigned(depth)


def load(place: int) -> bytes:
    """The number `place` numbers after the address on the stack."""
    return b"\x2b\x03" + unsigned(8 * place)


def store(place: int) -> bytes:
    """Address and number are on the stack."""
    return b"\x39\x03" + unsigned(8 * place)


def load_word(offset: int) -> bytes:
    """The i32 `offset` bytes after the address on the stack."""
    return b"\x28\x02" + unsigned(offset)


class Module:
    """Functions of a module, in the order in which they are added, and one memory, exported as `memory`."""

    def __init__(self) -> None:
        self._types: list[bytes] = []
        self._functions: list[tuple[int, bytes]] = []

    def add(
        self, arguments: Sequence[bytes], results: Sequence[bytes], locals_: Sequence[tuple[int, bytes]], code: bytes
    ) -> int:
        """The number of a new function; locals_: how many of which type, after the arguments."""
        kind = b"\x60" + _vector(arguments) + _vector(results)
        if kind not in self._types:
            self._types.append(kind)
        declared = _vector([unsigned(n) + t for n, t in locals_ if n])
        body = declared + code + END
        self._functions.append((self._types.index(kind), unsigned(len(body)) + body))
        return len(self._functions) - 1

    def binary(
        self,
        exports: Mapping[str, int],
        n_bytes: int,
        data: Sequence[tuple[int, bytes]] = (),
        sections: Mapping[str, bytes] | None = None,
    ) -> bytes:
        """The module; n_bytes: of its memory; data: bytes and where they are at the start; sections: custom ones."""
        pages = -(-n_bytes // PAGE)
        named = [_text("memory") + b"\x02\x00"] + [_text(k) + b"\x00" + unsigned(i) for k, i in exports.items()]
        out = b"\0asm\1\0\0\0"
        out += _section(1, _vector(self._types)) + _section(3, _vector([unsigned(t) for t, _ in self._functions]))
        out += _section(5, b"\x01\x01" + unsigned(pages) + unsigned(pages))
        out += _section(7, _vector(named)) + _section(10, _vector([body for _, body in self._functions]))
        segments = [b"\x00" + i32(at) + END + unsigned(len(x)) + x for at, x in data]
        out += _section(11, _vector(segments)) if segments else b""
        return out + b"".join(_section(0, _text(name) + content) for name, content in (sections or {}).items())


def _vector(parts: Sequence[bytes]) -> bytes:
    return unsigned(len(parts)) + b"".join(parts)


def _section(number: int, content: bytes) -> bytes:
    return bytes([number]) + unsigned(len(content)) + content


def _text(name: str) -> bytes:
    raw = name.encode()
    return unsigned(len(raw)) + raw
