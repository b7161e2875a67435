"""A Kernel that computes parts of one state on several threads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from spanloop.compiler.lower import Part, Parted, Plan, parted
from spanloop.compiler.lower.parting import ENOUGH, WORTH, shares
from spanloop.compiler.render.parted import parted_single
from spanloop.compiler.runtime import team
from spanloop.compiler.runtime.kernel import Kernel, Recipe


class PartedKernel(Kernel):
    """A Kernel whose single call has up to `part_threads` threads, the caller's among them; batches go over states.

    Each thread has a share of the parts. Numbers do not depend on who computes what. They may differ from those of the
    undivided kernel in the last places: a multiplication and an addition in different homes are not fused.
    """

    def __init__(
        self,
        recipe: Recipe,
        dtype: str,
        threads: int,
        parts: Sequence[Part],
        part_threads: int,
        worth: int = WORTH,
        enough: int = ENOUGH,
    ):
        """worth, enough: operations that one phase and all of them must spare to be shared, see lower/parting.py."""
        self.shares, self._spare = shares(parts, part_threads), (worth, enough)
        self.part_threads, self._count = len(self.shares), len(parts)
        self._sort = f"parted {self.part_threads} {worth} {enough}"
        super().__init__(recipe, dtype, threads)
        if self.phases:
            team.join(self._single_code, self.part_threads)

    @property
    def phases(self) -> int:
        """How many times the threads share work; 0: the parts are too small for that, and one thread does it all."""
        return self._known["phases"]

    @cached_property
    def parted(self) -> Parted:
        """The plan in phases: print it."""
        plan = self.plan
        assert isinstance(plan, Plan)  # looped plans are refused at the door
        return parted(plan, self.shares, *self._spare)

    @property
    def source(self) -> str:
        """LLVM source of the function of one state."""
        return parted_single(self.parted, self._real)

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "phases": len(self.parted.phases) // 2}

    def __repr__(self) -> str:
        how = f"on {self.part_threads} threads" if self.phases else "too small to share"
        return f"{super().__repr__()[:-1]}; {self._count} parts {how}>"
