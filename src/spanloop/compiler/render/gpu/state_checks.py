"""Checks of the numbers of a state: that they are finite, and that angles are within the range of the fast sine."""

from __future__ import annotations

from collections.abc import Callable

from spanloop.compiler.render.instructions import LIMIT, Real
from spanloop.compiler.render.single import FAR_ANGLE, NOT_FINITE


class StateChecks:
    """Accumulators over the numbers of a state, and the conditions that they give at the end."""

    def __init__(self, new: Callable[[str], str], t: Real, in_place: bool):
        """new(text): appends an instruction and returns the name of its value.

        in_place: write checks as assembly. LLVM moves instructions to the end of a long kernel, where all the numbers
        would still be held; assembly keeps its place.
        """
        self.new, self.t, self.in_place = new, t, in_place
        self.finite = t.constant(0.0)  # 0 while every number so far is finite
        self.largest = t.constant(0.0)  # of all angles
        self.has_angles = False

    def number(self, x: str) -> None:
        """Check that x is finite."""
        self.finite = self._accumulated("fma", x, self.finite)

    def angle(self, x: str) -> None:
        """Check that x is an angle for the fast sine."""
        self.has_angles = True
        self.largest = self._accumulated("grow", x, self.largest)

    def last_number(self, x: str) -> None:
        """Check that x, which is an output, is finite."""
        self.finite = self._plain("fma", x, self.finite)

    def conditions(self) -> list[tuple[str, int]]:
        """What must hold of a state, with the status bit of a state for which it does not."""
        t = self.t
        found = [(self.new(f"fcmp oeq {t.real} {self.finite}, {t.constant(0.0)}"), NOT_FINITE)]
        if self.has_angles:
            found.append((self.new(f"fcmp olt {t.real} {self.largest}, {t.constant(LIMIT[t.real])}"), FAR_ANGLE))
        return found

    def _accumulated(self, what: str, x: str, total: str) -> str:
        """total + 0·x, or max(|x|, total)."""
        if not self.in_place:
            return self._plain(what, x, total)
        r, kind, bits, zeros = self.t.real, "f", "f32", 8
        if r == "double":
            kind, bits, zeros = "d", "f64", 16
        text = {
            "fma": f"fma.rn.{bits} $0, $1, 0{kind}{'0' * zeros}, $2;",
            "grow": f"{{ .reg .{bits} t; abs.{bits} t, $1; max.{bits} $0, t, $2; }}",
        }[what]
        return self.new(f'call {r} asm sideeffect "{text}", "={kind},{kind},{kind}"({r} {x}, {r} {total})')

    def _plain(self, what: str, x: str, total: str) -> str:
        r, suffix = self.t.real, self.t.suffix
        if what == "fma":
            return self.new(f"call {r} @llvm.fma.{suffix}({r} {x}, {r} {self.t.constant(0.0)}, {r} {total})")
        size = self.new(f"call {r} @llvm.fabs.{suffix}({r} {x})")
        return self.new(f"select i1 {self.new(f'fcmp ogt {r} {size}, {total}')}, {r} {size}, {r} {total}")


def status_bits(new: Callable[[str], str], conditions: list[tuple[str, int]], kind: str = "i8") -> str:
    """The status of a state, 0 where all conditions hold; kind: the type of the number."""
    status = "0"
    for condition, bit in conditions:
        status = new(f"or {kind} {status}, {new(f'select i1 {condition}, {kind} 0, {kind} {bit}')}")
    return status
