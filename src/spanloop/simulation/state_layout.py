"""What a run carries from step to step, as one row of numbers.

| name | numbers | meaning |
|---|---|---|
| q, v | nq, nv | state |
| loops | 2 | largest closure error after any step, smallest margin to a singular position |
| z | | memory of controllers and actuators |
| g | | values that are watched, as they were after the last step |
| q.rest, v.rest | nq, nv | what sums lost (float32) |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from spanloop.simulation.events import Watch
from spanloop.simulation.system import System


@dataclass(frozen=True)
class Layout:
    """Names and sizes of the arrays of the state, in order."""

    sizes: Mapping[str, int]

    @staticmethod
    def of(system: System, watch: Watch, dtype: str) -> Layout:
        nq, nv = system.model.nq, system.model.nv
        sizes = {"q": nq, "v": nv}
        if system.holds:
            sizes["loops"] = 2
        if system.drive.memory:
            sizes["z"] = system.drive.memory
        if len(watch):
            sizes["g"] = len(watch)
        if dtype == "float32":
            sizes |= {"q.rest": nq, "v.rest": nv}
        return Layout(sizes)

    @property
    def width(self) -> int:
        return sum(self.sizes.values())

    @cached_property
    def places(self) -> dict[str, slice]:
        out, at = {}, 0
        for name, size in self.sizes.items():
            out[name] = slice(at, at + size)
            at += size
        return out

    def __contains__(self, name: str) -> bool:
        return name in self.sizes
