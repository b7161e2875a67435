"""A Kernel that computes parts of one state on several threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from spanloop.compiler.lower import Part, Parted, Plan, parted
from spanloop.compiler.lower.parting import WORTH
from spanloop.compiler.render.parted import parted_single
from spanloop.compiler.runtime import team
from spanloop.compiler.runtime.kernel import Kernel, Recipe


class PartedKernel(Kernel):
    """A Kernel whose single call has `part_threads` threads, the caller's among them; batches go over states.

    Its numbers do not depend on how many threads there are, nor on which of them computes what. They may differ from
    those of the undivided kernel in the last places: multiplications and additions are fused within a part only.
    """

    def __init__(
        self,
        recipe: Recipe,
        dtype: str,
        threads: int,
        parts: Callable[[], Sequence[Part]],
        part_threads: int,
        worth: int = WORTH,
    ):
        """worth: operations that a phase must spare to be shared, see lower/parting.py."""
        self._parts, self.part_threads, self._worth = parts, part_threads, worth
        self._sort = f"parted {part_threads} {worth}"
        super().__init__(recipe, dtype, threads)
        if self.shares:
            team.join(self._single_code, part_threads)

    @cached_property
    def parted(self) -> Parted:
        """The plan in phases: print it."""
        plan = self.plan
        assert isinstance(plan, Plan)  # looped plans are refused at the door
        return parted(plan, self._parts(), self._worth)

    @property
    def source(self) -> str:
        """LLVM source of the function of one state."""
        return parted_single(self.parted, self._real, self.part_threads)

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "phases": len(self.parted.phases) // 2}

    def __repr__(self) -> str:
        shared = f"parts on {self.part_threads} threads" if self.shares else "parts too small to share"
        return f"{super().__repr__()[:-1]}, {shared}>"
