"""Instructions of a function on arrays, with vectors of LANES numbers: loops, or the same written out.

An index is a whole number that is known, or the name of one that the code computes. What is known is computed here;
a loop with known ends is written out if the code is `flat` at that place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from spanloop.compiler.render.instructions import Real

LANES = 8  # numbers to a vector
Index = int | str


@dataclass(frozen=True)
class Table:
    """Whole numbers that the code knows."""

    name: str
    values: tuple[int, ...]


class VectorCode:
    """The lines of one function; `source` adds its head and its tables."""

    def __init__(self, real: str):
        self.t, self.wide = Real(real), Real(real, LANES)
        self.lines: list[str] = []
        self.tables: list[str] = []
        self.is_flat = False
        self._label, self._count = "entry", 0

    def source(self, head: str) -> str:
        """The function; head: its name and arguments, with what it returns."""
        bits = LANES * self.t.size * 8
        wide = f'attributes #9 = {{ nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}" }}\n'
        return wide + "".join(self.tables) + f"{head} #9 {{\nentry:\n" + "\n".join(self.lines) + "\n}\n"

    # ---- loops

    @contextmanager
    def flat(self, is_flat: bool) -> Iterator[None]:
        """Loops inside are written out, or not."""
        before, self.is_flat = self.is_flat, is_flat
        yield
        self.is_flat = before

    def each(self, first: Index, end: Index, body: Callable[[Index], None]) -> None:
        """body(k) for k from first to end − 1."""

        def step(k: Index, values: Sequence[str]) -> list[str]:
            body(k)
            return []

        self.accumulated(first, end, [], step)

    def accumulated(
        self, first: Index, end: Index, values: Sequence[str], step: Callable[[Index, Sequence[str]], list[str]]
    ) -> list[str]:
        """Vectors after values = step(k, values) for k from first to end − 1."""
        if self.is_flat and isinstance(first, int) and isinstance(end, int):
            for k in range(first, end):
                values = step(k, values)
            return list(values)
        self._count += 1
        tag, v = str(self._count), self.wide.value
        counter, before, phis = f"%i.{tag}", self._label, len(self.lines) + 2
        now = [f"%a{k}.{tag}" for k in range(len(values))]
        self.lines += [f"br label %loop.{tag}", f"loop.{tag}:", *("" for _ in range(1 + len(values)))]
        self.lines += [
            f"%go.{tag} = icmp slt i64 {counter}, {end}",
            f"br i1 %go.{tag}, label %body.{tag}, label %done.{tag}",
            f"body.{tag}:",
        ]
        self._label = f"body.{tag}"
        after = step(counter, now)
        self.lines[phis] = f"{counter} = phi i64 [{first}, %{before}], [%n.{tag}, %{self._label}]"
        for k, (x, y) in enumerate(zip(values, after, strict=True)):
            self.lines[phis + 1 + k] = f"{now[k]} = phi {v} [{x}, %{before}], [{y}, %{self._label}]"
        self.lines += [f"%n.{tag} = add i64 {counter}, 1", f"br label %loop.{tag}", f"done.{tag}:"]
        self._label = f"done.{tag}"
        return now

    # ---- indices and tables

    def times(self, x: Index, k: int) -> Index:
        return x * k if isinstance(x, int) else self.line(f"mul i64 {x}, {k}")

    def sum(self, x: Index, y: Index) -> Index:
        if isinstance(x, int) and isinstance(y, int):
            return x + y
        return x if y == 0 else y if x == 0 else self.line(f"add i64 {x}, {y}")

    def over(self, x: Index, k: int) -> Index:
        return x // k if isinstance(x, int) else self.line(f"sdiv i64 {x}, {k}")

    def less_index(self, x: int, y: Index) -> Index:
        return x - y if isinstance(y, int) else self.line(f"sub i64 {x}, {y}")

    def table(self, name: str, values: Sequence[int], kind: str = "i64") -> Table:
        """Whole numbers as a constant."""
        known = f"@{name}.{len(self.tables)}"
        text = ", ".join(f"{kind} {x}" for x in values) or f"{kind} 0"
        self.tables.append(f"{known} = internal constant [{max(len(values), 1)} x {kind}] [{text}], align 64\n")
        return Table(known, tuple(values))

    def entry(self, table: Table, at: Index) -> Index:
        if isinstance(at, int):
            return table.values[at]
        return self.line(f"load i64, ptr {self.line(f'getelementptr i64, ptr {table.name}, i64 {at}')}")

    def constants(self, name: str, values: Sequence[float]) -> str:
        """Numbers as a constant array."""
        known = f"@{name}.{len(self.tables)}"
        text = ", ".join(f"{self.t.real} {self.t.constant(x)}" for x in values)
        self.tables.append(f"{known} = internal constant [{len(values)} x {self.t.real}] [{text}], align 64\n")
        return known

    def mask(self, masks: Table, at: Index) -> str:
        """The lanes whose byte is 1, of a table of bytes with LANES for each entry."""
        if isinstance(at, int):
            return lanes(masks.values[LANES * at : LANES * (at + 1)])
        p = self.line(f"getelementptr i8, ptr {masks.name}, i64 {self.times(at, LANES)}")
        found = self.line(f"load <{LANES} x i8>, ptr {p}, align 1")
        return self.line(f"icmp ne <{LANES} x i8> {found}, zeroinitializer")

    # ---- numbers

    def line(self, text: str) -> str:
        """A value with a name of its own."""
        self._count += 1
        self.lines.append(f"%x{self._count} = {text}")
        return f"%x{self._count}"

    def place(self, array: str, at: Index) -> str:
        return self.line(f"getelementptr {self.t.real}, ptr {array}, i64 {at}")

    def load(self, array: str, at: Index, align: int | None = None) -> str:
        """A vector; align: bytes, where it may cross a line of the cache."""
        align = LANES * self.t.size if align is None else align
        return self.line(f"load {self.wide.value}, ptr {self.place(array, at)}, align {align}")

    def store(self, x: str, array: str, at: Index, align: int | None = None) -> None:
        align = LANES * self.t.size if align is None else align
        self.lines.append(f"store {self.wide.value} {x}, ptr {self.place(array, at)}, align {align}")

    def store_some(self, x: str, count: int, array: str, at: Index) -> None:
        """The first numbers of a vector."""
        mask = lanes([int(k < count) for k in range(LANES)])
        self.lines.append(
            f"call void @llvm.masked.store.{self.wide.suffix}.p0({self.wide.value} {x}, ptr {self.place(array, at)}, "
            f"i32 {self.t.size}, <{LANES} x i1> {mask})"
        )

    def prefetch(self, array: str, at: Index, count: int) -> None:
        """Ask for the lines of memory of numbers that will be written."""
        for k in range(0, count, 64 // self.t.size):
            place = self.place(array, self.sum(at, k))
            self.lines.append(f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 2, i32 1)")

    def scalar(self, array: str, at: Index) -> str:
        return self.line(f"load {self.t.real}, ptr {self.place(array, at)}, align {self.t.size}")

    def set(self, x: str, array: str, at: Index) -> None:
        """Store one number."""
        self.lines.append(f"store {self.t.real} {x}, ptr {self.place(array, at)}, align {self.t.size}")

    def everywhere(self, x: str) -> str:
        """A number in all lanes."""
        v = self.wide.value
        one = self.line(f"insertelement {v} poison, {self.t.real} {x}, i32 0")
        return self.line(f"shufflevector {v} {one}, {v} poison, <{LANES} x i32> zeroinitializer")

    def product(self, x: str, y: str) -> str:
        return self.line(f"fmul contract {self.wide.value} {x}, {y}")

    def products(self, pairs: Sequence[tuple[str, str]]) -> str:
        """The sum of products."""
        total = self.product(*pairs[0])
        for x, y in pairs[1:]:
            total = self.line(f"fadd contract {self.wide.value} {total}, {self.product(x, y)}")
        return total

    def less(self, x: str, y: str, z: str) -> str:
        """x − y z."""
        return self.line(f"fsub contract {self.wide.value} {x}, {self.product(y, z)}")

    def select(self, mask: str, x: str, y: str) -> str:
        return self.line(f"select <{LANES} x i1> {mask}, {self.wide.value} {x}, {self.wide.value} {y}")


def lanes(bits: Sequence[int]) -> str:
    """A constant mask."""
    return "<" + ", ".join(f"i1 {'true' if b else 'false'}" for b in bits) + ">"
