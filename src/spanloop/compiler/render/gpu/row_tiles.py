"""Rows of 32 states, moved by a warp or several together: lines of memory are read whole and turned in shared memory.

The rows must exist: of a batch that does not end with 32 states, the last 32 overlap with those before. Addresses are
those of a thread's first number plus constants, so that each number takes one instruction to read and one to write.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from spanloop.compiler.render.gpu.entry import BARRIER, WARP
from spanloop.compiler.render.instructions import Real


def pitch(size: int) -> int:
    """How far apart rows lie in shared memory: side by side, unless many would begin in one bank."""
    return size if math.gcd(size, WARP) <= 2 else size + 1


@dataclass(frozen=True)
class _Step:
    """A number that a thread moves: its place in memory, counted from the first row, and in the tile."""

    distant: str
    near: str
    add_distant: int = 0
    add_near: int = 0


class RowTiles:
    """Instructions that move rows; they read %base, the number of the first state."""

    def __init__(self, new: Callable[[str], str], lines: list[str], t: Real, threads: int = WARP, tile: str = "@tile"):
        """new(text): appends an instruction to lines and returns the name of its value.

        threads: that move the rows together; tile: their shared memory.
        """
        self.new, self.lines, self.t, self.threads, self.tile = new, lines, t, threads, tile

    def fill(self, inputs: Sequence[tuple[int, int]], first: dict[int, int], thread: str) -> None:
        """Move rows of inputs (number, size) to shared memory, each from its place `first` on."""
        on_the_way = [(k, self._loaded(k, size, thread)) for k, size in inputs]
        for k, numbers in on_the_way:
            self._put(numbers, first[k])

    def read(self, inputs: Sequence[tuple[int, int]], thread: str) -> dict[tuple[int, int], str]:
        """The numbers of this thread's state, by input and place; one input after the other is in shared memory."""
        on_the_way = [(k, size, self._loaded(k, size, thread)) for k, size in inputs]
        out = {}
        for k, size, numbers in on_the_way:
            self._put(numbers, 0)
            self.lines.append(BARRIER)
            row = self._cell(self.new(f"mul i32 {thread}, {pitch(size)}"))
            for j in range(size):
                out[k, j] = self.new(f"load {self.t.real}, ptr addrspace(3) {self._beside(row, j, 3)}")
            self.lines.append(BARRIER)
        return out

    def write(self, outputs: Sequence[str], thread: str) -> None:
        """Write this thread's row."""
        self.lines.append(BARRIER)
        row = self._cell(self.new(f"mul i32 {thread}, {pitch(len(outputs))}"))
        for j, x in enumerate(outputs):
            self.lines.append(f"store {self.t.real} {x}, ptr addrspace(3) {self._beside(row, j, 3)}")
        self.lines.append(BARRIER)
        self.empty(len(outputs), 0, thread)

    def empty(self, size: int, first: int, thread: str) -> None:
        """Write rows that are in shared memory from a place on."""
        r = self.t.real
        cells, places = self._cells(first), self._places("%out", size)
        for step in self._steps(size, thread):
            x = self.new(f"load {r}, ptr addrspace(3) {cells(step)}")
            self.lines.append(f"store {r} {x}, ptr addrspace(1) {places(step)}")

    # ---- numbers and addresses

    def _loaded(self, k: int, size: int, thread: str) -> list[tuple[_Step, str]]:
        places = self._places(f"%a{k}", size)
        steps = list(self._steps(size, thread))
        return [(step, self.new(f"load {self.t.real}, ptr addrspace(1) {places(step)}")) for step in steps]

    def _put(self, numbers: Sequence[tuple[_Step, str]], first: int) -> None:
        cells = self._cells(first)
        for step, x in numbers:
            self.lines.append(f"store {self.t.real} {x}, ptr addrspace(3) {cells(step)}")

    def _steps(self, size: int, thread: str) -> Iterator[_Step]:
        """The numbers of 32 rows that one of the threads moves; some are moved twice."""
        if not size:  # the closure errors of a tree
            return
        new, rows = self.new, WARP // size
        if pitch(size) == size:
            yield from self._in_line(size, thread)
        elif rows:
            yield from self._by_rows(size, rows, thread)
        else:
            for c in range(-(-size * WARP // self.threads)):
                e = new(f"add i32 {thread}, {c * self.threads}")
                e = new(f"call i32 @llvm.umin.i32(i32 {e}, i32 {size * WARP - 1})")
                yield _Step(e, new(f"add i32 {e}, {new(f'udiv i32 {e}, {size}')}"))

    def _in_line(self, size: int, thread: str) -> Iterator[_Step]:
        """Rows side by side: one number after the other."""
        whole, left = divmod(size * WARP, self.threads)
        for c in range(whole):
            yield _Step(thread, thread, c * self.threads, c * self.threads)
        if left:
            e = self.new(f"add i32 {thread}, {whole * self.threads}")
            e = self.new(f"call i32 @llvm.umin.i32(i32 {e}, i32 {size * WARP - 1})")
            yield _Step(e, e)

    def _by_rows(self, size: int, rows: int, thread: str) -> Iterator[_Step]:
        """Rows with gaps between them: each warp moves so many whole rows at a time."""
        new, warps, gap = self.new, self.threads // WARP, pitch(size)
        lane = new(f"call i32 @llvm.umin.i32(i32 {new(f'urem i32 {thread}, {WARP}')}, i32 {rows * size - 1})")
        own = new(f"mul i32 {new(f'udiv i32 {thread}, {WARP}')}, {rows}")

        def start(row: str) -> tuple[str, str]:
            distant = new(f"add i32 {new(f'mul i32 {row}, {size}')}, {lane}")
            inner = new(f"add i32 {new(f'udiv i32 {lane}, {size}')}, {row}")
            return distant, new(f"add i32 {new(f'mul i32 {inner}, {gap}')}, {new(f'urem i32 {lane}, {size}')}")

        distant, near = start(own)
        whole, left = divmod(WARP, rows * warps)
        for c in range(whole):
            yield _Step(distant, near, c * rows * warps * size, c * rows * warps * gap)
        if left:
            row = new(f"add i32 {own}, {whole * rows * warps}")
            yield _Step(*start(new(f"call i32 @llvm.umin.i32(i32 {row}, i32 {WARP - rows})")))

    def _places(self, array: str, size: int) -> Callable[[_Step], str]:
        """Addresses in memory of the numbers of a step."""
        first = self.new(f"mul i64 %base, {size}")
        known: dict[str, str] = {}

        def place(step: _Step) -> str:
            if step.distant not in known:
                at = self.new(f"add i64 {self.new(f'zext i32 {step.distant} to i64')}, {first}")
                known[step.distant] = self.new(f"getelementptr {self.t.real}, ptr addrspace(1) {array}, i64 {at}")
            return self._beside(known[step.distant], step.add_distant, 1)

        return place

    def _cells(self, first: int) -> Callable[[_Step], str]:
        """Addresses in shared memory of the numbers of a step, of rows from `first` on."""
        known: dict[str, str] = {}

        def cell(step: _Step) -> str:
            if step.near not in known:
                known[step.near] = self._cell(step.near)
            return self._beside(known[step.near], first + step.add_near, 3)

        return cell

    def _cell(self, index: str) -> str:
        return self.new(f"getelementptr {self.t.real}, ptr addrspace(3) {self.tile}, i32 {index}")

    def _beside(self, pointer: str, numbers: int, space: int) -> str:
        if not numbers:
            return pointer
        return self.new(f"getelementptr {self.t.real}, ptr addrspace({space}) {pointer}, i64 {numbers}")
