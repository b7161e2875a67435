"""A plan as a C function with a status:  int name(const double q[6], ..., double a[6])."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from spanloop.compiler.lower import Plan
from spanloop.compiler.portable.c_plan import LENGTH, WHOLE, number, plan_function
from spanloop.compiler.portable.pieces import PortablePlan
from spanloop.compiler.portable.status import FLAGS, with_flags
from spanloop.exports.c_names import comment

# bits of a status: what is wrong, and its sentence
STATUS = {
    "NOT_FINITE": (1, "an input is NaN or infinite"),
    "OFF_GUARD": (2, "a condition on the inputs does not hold (a quaternion off unit length, a negative mass)"),
    "FAR_ANGLE": (4, "an angle is beyond the range of the sine; take whole turns off"),
    "NO_ANSWER": (8, "the state has no answer: a position is singular, or a loop is open"),
    "LOST": (16, "the step failed: a number is no longer finite, loops cannot be closed, or a position is singular"),
    "HALTED": (32, "the motion ends here: a joint reaches its limit, or an event ends it"),
    "NOT_CONVERGED": (64, "the step failed: an iteration did not converge; take shorter steps"),
    "NOT_CLOSED": (128, "the loops cannot be closed here, or the mechanism cannot move there; begin nearer"),
}
BIT = {name: bit for name, (bit, _) in STATUS.items()}


@dataclass(frozen=True)
class Argument:
    """An array of a function; note: what it is, with its unit."""

    name: str
    size: int
    note: str


@dataclass(frozen=True)
class CFunction:
    """A function that C programs call; about: its comment, one line each; result: the array that it fills."""

    name: str
    plan: Plan
    arguments: tuple[Argument, ...]
    result: Argument
    about: tuple[str, ...]
    prefix: str
    real: str

    @property
    def head(self) -> str:
        """The declaration without its semicolon."""
        parts = [f"const {self.real} {a.name}[{max(a.size, 1)}]" for a in self.arguments]
        parts.append(f"{self.real} {self.result.name}[{max(self.result.size, 1)}]")
        return f"int {self.name}({', '.join(parts)})"

    def declaration(self) -> str:
        """The comment and the declaration of the header."""
        arrays = [f"    {a.name}[{a.size}]: {comment(a.note)}" for a in self.arguments]
        arrays.append(f"    {self.result.name}[{self.result.size}]: {comment(self.result.note)}; NaN where refused")
        lines = [*map(comment, self.about), *arrays, "Returns 0, or the bits of why the state is refused."]
        return "/* " + "\n   ".join(lines) + " */\n" + self.head + ";\n"

    @cached_property
    def portable(self) -> PortablePlan:
        """The plan with flags, in pieces."""
        return PortablePlan(with_flags(self.plan, self.real), (self.result.size, FLAGS), WHOLE, LENGTH)

    def source(self, sincos: str) -> str:
        """Source of the plan's own functions and of this one."""
        real, names, out = self.real, [a.name for a in self.arguments], self.result.name
        own = f"{self.name}_plan"
        zero = number(0.0, real)
        finite = f"{self.prefix}_not_finite"
        tests = [f"{finite}({a.name}, {a.size})" for a in self.arguments if a.size]
        lines = [f"{real} flags[{FLAGS}];", "int status = 0;"]
        lines.append(f"if ({' | '.join(tests) or '0'}) {{")
        lines += [f"    {self.prefix}_refuse({out}, {self.result.size});", f"    return {BIT['NOT_FINITE']};", "}"]
        lines.append(f"{own}({', '.join([*names, out, 'flags'])});")
        lines.append(f"if (!(flags[1] == {zero})) status |= {BIT['OFF_GUARD']};")
        lines.append(f"if (!(flags[2] == {zero})) status |= {BIT['FAR_ANGLE']};")
        lines.append(f"if (status == 0 && (!(flags[0] == {zero}) || {finite}({out}, {self.result.size}))) {{")
        lines += [f"    status = {BIT['NO_ANSWER']};", "}"]
        lines += [f"if (status != 0) {self.prefix}_refuse({out}, {self.result.size});", "return status;"]
        body = "".join(f"    {line}\n" for line in lines)
        return plan_function(self.portable, own, real, sincos) + f"\n{self.head}\n{{\n{body}}}\n\n"


def shared_functions(prefix: str, real: str) -> dict[str, str]:
    """Sources by name of what functions use: a test of arrays, and NaN for results that are refused."""
    test = f"""static int {prefix}_not_finite(const {real} *x, int size)
{{
    int k, bad = 0;
    for (k = 0; k < size; k++) bad |= !(x[k] - x[k] == {number(0.0, real)});
    return bad;
}}

"""
    refuse = f"""static void {prefix}_refuse({real} *x, int size)
{{
    int k;
    for (k = 0; k < size; k++) x[k] = {number(math.nan, real)};
}}

"""
    return {f"{prefix}_not_finite": test, f"{prefix}_refuse": refuse}


def status_text(prefix: str) -> str:
    """Source of the function that says what a status means."""
    lines = [f'    if (status & {bit}) return "{text}";\n' for bit, text in STATUS.values()]
    return (
        f"const char *{prefix}_status_text(int status)\n{{\n"
        + "".join(lines)
        + '    return status == 0 ? "all is well" : "no status of this file";\n}\n\n'
    )


def status_enum(prefix: str) -> Sequence[str]:
    """Lines of the enum of bits."""
    names = [f"    {prefix.upper()}_{n} = {bit}" for n, (bit, _) in STATUS.items()]
    notes = [f" /* {text} */" for _, text in STATUS.values()]
    ends = [","] * (len(names) - 1) + [""]
    return [a + e + b for a, e, b in zip(names, ends, notes, strict=True)]
