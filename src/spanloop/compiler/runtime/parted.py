"""A Kernel that computes parts of one state on several threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from spanloop.compiler.lower import Part, Parted, Plan, parted
from spanloop.compiler.render.parted import parted_single
from spanloop.compiler.runtime import team
from spanloop.compiler.runtime.kernel import Kernel, Recipe


class PartedKernel(Kernel):
    """A Kernel whose single call has `part_threads` threads, the caller's among them; batches go over states.

    Its numbers do not depend on how many threads there are, nor on which of them computes what. They may differ from
    those of the undivided kernel in the last places: multiplications and additions are fused within a part only.
    """

    _sort = "parted"

    def __init__(
        self, recipe: Recipe, dtype: str, threads: int, parts: Callable[[], Sequence[Part]], part_threads: int
    ):
        self._parts, self.part_threads = parts, part_threads
        super().__init__(recipe, dtype, threads)
        team.join(self._single_code, part_threads)

    @cached_property
    def parted(self) -> Parted:
        """The plan in phases: print it."""
        plan = self.plan
        assert isinstance(plan, Plan)  # looped plans are refused at the door
        return parted(plan, self._parts())

    @property
    def source(self) -> str:
        """LLVM source of the function of one state."""
        return parted_single(self.parted, self._real)

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "phases": len(self.parted.phases) // 2}

    def __repr__(self) -> str:
        shared = f"parts on {self.part_threads} threads" if self.shares else "parts too small to share"
        return f"{super().__repr__()[:-1]}, {shared}>"
