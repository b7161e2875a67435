"""Rows of the states of one warp, moved together: lines of memory are read whole and turned in shared memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from spanloop.compiler.render.gpu.entry import BARRIER, WARP
from spanloop.compiler.render.instructions import Real


def pitch(size: int) -> int:
    """How far apart rows lie in shared memory: side by side, unless many would begin in one bank."""
    return size if math.gcd(size, WARP) <= 2 else size + 1


class RowTiles:
    """Instructions that move rows; they read %base (the warp's first state), %final (the last), %n64 (all)."""

    def __init__(self, new: Callable[[str], str], lines: list[str], t: Real, threads: int = WARP, tile: str = "@tile"):
        """new(text): appends an instruction to lines and returns the name of its value.

        threads: that move the rows together; tile: their shared memory.
        """
        self.new, self.lines, self.t, self.threads, self.tile = new, lines, t, threads, tile

    def fill(self, inputs: Sequence[tuple[int, int]], first: dict[int, int], thread: str) -> None:
        """Move rows of inputs (number, size) to shared memory, each from its place `first` on."""
        r = self.t.real
        on_the_way = [
            (k, size, [(e, self.new(f"load {r}, ptr addrspace(1) {p}")) for e, p in self._numbers(size, thread, a)])
            for k, size in inputs
            for a in [f"%a{k}"]
        ]
        for k, size, numbers in on_the_way:
            self.lines += [f"store {r} {x}, ptr addrspace(3) {self._turned(e, size, first[k])}" for e, x in numbers]

    def empty(self, size: int, first: int, thread: str) -> None:
        """Write rows that are in shared memory; beyond the last state its last number is written again."""
        r = self.t.real
        for e, p in self._numbers(size, thread, "%out"):
            x = self.new(f"load {r}, ptr addrspace(3) {self._turned(e, size, first)}")
            self.lines.append(f"store {r} {x}, ptr addrspace(1) {p}")

    def read(self, inputs: Sequence[tuple[int, int]]) -> dict[tuple[int, int], str]:
        """The numbers of this thread's state, by input and place; inputs: (number, size) of each."""
        r, new = self.t.real, self.new
        on_the_way = [
            [(e, new(f"load {r}, ptr addrspace(1) {p}")) for e, p in self._numbers(size, "%tid", f"%a{k}")]
            for k, size in inputs
        ]
        out = {}
        for (k, size), numbers in zip(inputs, on_the_way, strict=True):
            self.lines += [f"store {r} {x}, ptr addrspace(3) {self._turned(e, size)}" for e, x in numbers]
            self.lines.append(BARRIER)
            row = new(f"mul i32 {self._own_row()}, {pitch(size)}")
            for j in range(size):
                out[k, j] = new(f"load {r}, ptr addrspace(3) {self._cell(new(f'add i32 {row}, {j}'))}")
            self.lines.append(BARRIER)
        return out

    def write(self, outputs: Sequence[str], thread: str) -> None:
        """Write this thread's row; beyond the last state its last number is written again."""
        r, size = self.t.real, len(outputs)
        self.lines.append(BARRIER)
        row = self.new(f"mul i32 {thread}, {pitch(size)}")
        for j, x in enumerate(outputs):
            self.lines.append(f"store {r} {x}, ptr addrspace(3) {self._cell(self.new(f'add i32 {row}, {j}'))}")
        self.lines.append(BARRIER)
        self.empty(size, 0, thread)

    def _own_row(self) -> str:
        """The row of this thread's state; threads past the last state read that one's."""
        left = self.new(f"trunc i64 {self.new('sub i64 %final, %base')} to i32")
        return self.new(f"call i32 @llvm.umin.i32(i32 %tid, i32 {left})")

    def _numbers(self, size: int, thread: str, array: str) -> Iterator[tuple[str, str]]:
        """Of each number that this thread moves: its place among the warp's rows, and its address."""
        new = self.new
        first, left = new(f"mul i64 %base, {size}"), new("sub i64 %n64, %base")
        is_full = new(f"icmp sge i64 {left}, {WARP}")
        states = new(f"trunc i64 {new(f'select i1 {is_full}, i64 {WARP}, i64 {left}')} to i32")
        last = new(f"sub i32 {new(f'mul i32 {states}, {size}')}, 1")
        for c in range(-(-size * WARP // self.threads)):
            e = new(f"call i32 @llvm.umin.i32(i32 {new(f'add i32 {thread}, {c * self.threads}')}, i32 {last})")
            at = new(f"add i64 {new(f'zext i32 {e} to i64')}, {first}")
            yield e, new(f"getelementptr {self.t.real}, ptr addrspace(1) {array}, i64 {at}")

    def _turned(self, e: str, size: int, first: int = 0) -> str:
        if pitch(size) != size:
            e = self.new(f"add i32 {e}, {self.new(f'udiv i32 {e}, {size}')}")
        return self._cell(self.new(f"add i32 {e}, {first}") if first else e)

    def _cell(self, index: str) -> str:
        return self.new(f"getelementptr {self.t.real}, ptr addrspace(3) {self.tile}, i32 {index}")
