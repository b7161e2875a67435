"""One step of a Schedule as C99, on a memory of numbers that the caller owns.

    static void name_begin(double *m);     the calls at the start of a step
    static int name_step(double *m);       a step: 0, or the bits of what ended it (render/rollout.py)

The caller writes time and step length into their arrays first. A step that fails leaves the state as it was, but for
arrays that calls change in place.
"""

from __future__ import annotations

from collections.abc import Sequence

from spanloop.compiler.lower.schedule import (
    Bound,
    Call,
    For,
    Item,
    Log,
    OneOf,
    Place,
    Repeat,
    Schedule,
    When,
    following,
)
from spanloop.compiler.portable.c_plan import LENGTH, SINCOS, WHOLE, number, plan_function
from spanloop.compiler.portable.memory import (
    LOG,
    LOGGED,
    Memory,
    add_schedule,
    copied,
    copy_of,
    portable_plans,
    read_places,
    tables,
)
from spanloop.compiler.render.rollout import FINITE, HALTED, LARGEST, LOST, NOT_CONVERGED


class CSchedule:
    """The C functions of a schedule; memory: where its arrays are. capacity: rows of its log."""

    def __init__(
        self,
        schedule: Schedule,
        name: str,
        real: str = "double",
        sincos: str = SINCOS,
        capacity: int = 16,
        memory: Memory | None = None,
    ):
        self.schedule, self.name, self.real, self.sincos, self.capacity = schedule, name, real, sincos, capacity
        self.plans = portable_plans(schedule, WHOLE, LENGTH)
        self.functions = {k: f"{name}_{j}_{_word(p.plan.name)}" for j, (k, p) in enumerate(self.plans.items())}
        self.memory = Memory() if memory is None else memory
        add_schedule(self.memory, schedule, capacity)
        for c in schedule.calls():
            for n in copied(c, self.plans[id(c.plan)]):
                self.memory.add(copy_of(n), schedule.sizes[n])
        self.tables = {table: f"{name}_table{k}" for k, table in enumerate(tables(schedule))}
        self._loops = 0

    def source(self) -> str:
        """Source of all functions; it needs <math.h>, <stdint.h>, <string.h> and the function of sine and cosine."""
        s = self.schedule
        out = "".join(
            f"static const long {name}[{len(x)}] = {{{', '.join(map(str, x))}}};\n" for x, name in self.tables.items()
        )
        out += "".join(plan_function(p, self.functions[k], self.real, self.sincos) for k, p in self.plans.items())
        begin, _ = self._all(s.begin, 1)
        if begin:
            out += f"static void {self.name}_begin({self.real} *m)\n{{\n" + "".join(begin) + "}\n"
        advance, done = self._all(s.advance, 1)
        lines = ["    int kept = 1, on = 1;\n"] if s.halt else ["    int kept = 1;\n"]
        lines += [f"    int {x} = 1;\n" for x in done]
        lines += [f"    {self.name}_begin(m);\n"] if begin else []
        lines += [*advance, *self._end(done)]
        return out + f"static int {self.name}_step({self.real} *m)\n{{\n" + "".join(lines) + "}\n"

    def _end(self, done: Sequence[str]) -> list[str]:
        """The next state takes the place of the state if the step ended well."""
        s, at, fabs = self.schedule, self.memory.places, "fabs" if self.real == "double" else "fabsf"
        out = ["    {\n        int j;\n"] if s.committed or s.halt else ["    {\n"]
        for n in s.committed:
            limit = number((FINITE if n in s.unbounded else LARGEST)[self.real], self.real)
            test = f"kept &= {fabs}(m[{at[following(n)]} + j]) < {limit};"
            out.append(f"        for (j = 0; j < {s.sizes[n]}; j++) {test}\n")
        if s.halt:
            zero = number(0.0, self.real)
            out.append(f"        for (j = 0; j < {s.sizes[s.halt]}; j++) on &= m[{at[s.halt]} + j] >= {zero};\n")
        well = ["kept", *(["on"] if s.halt else []), *done]
        out.append(f"        if (!({' & '.join(well)})) {{\n")
        bits = [f"(kept ? 0 : {LOST})"] + ([f"(on ? 0 : {HALTED})"] if s.halt else [])
        bits += [f"({' & '.join(done)} ? 0 : {NOT_CONVERGED})"] if done else []
        out.append(f"            return {' | '.join(bits)};\n        }}\n    }}\n")
        for n in s.committed:
            out.append(self._copy(str(at[n]), str(at[following(n)]), s.sizes[n], "    "))
        return [*out, "    return 0;\n"]

    def _copy(self, to: str, source: str, size: int, indent: str) -> str:
        return f"{indent}memcpy(m + {to}, m + {source}, {size} * sizeof({self.real}));\n" if size else ""

    def _all(self, items: Sequence[Item], depth: int) -> tuple[list[str], list[str]]:
        """Lines of calls and loops in order; for each repetition the variable that is 1 if it was done in time."""
        lines: list[str] = []
        done: list[str] = []
        for x in items:
            if isinstance(x, Repeat):
                done += self._repeat(x, lines, depth)
            elif isinstance(x, When):
                lines.append(f"{'    ' * depth}if ({self._number(x.flag)} > {number(0.0, self.real)}) {{\n")
                self._inside(x.calls, lines, depth)
                lines.append(f"{'    ' * depth}}}\n")
            elif isinstance(x, For):
                c = _counter(x.counter)
                lines.append(f"{'    ' * depth}{{\n{'    ' * (depth + 1)}long {c};\n")
                loop = f"for ({c} = {_bound(x.first)}; {c} < {_bound(x.end)}; {c}++)"
                lines.append(f"{'    ' * (depth + 1)}{loop} {{\n")
                self._inside(x.calls, lines, depth + 1)
                lines.append(f"{'    ' * (depth + 1)}}}\n{'    ' * depth}}}\n")
            elif isinstance(x, OneOf):
                lines += self._one_of(x, "    " * depth)
            else:
                lines += self._call(x, "    " * depth)
        return lines, done

    def _inside(self, items: Sequence[Item], lines: list[str], depth: int) -> None:
        """Items of a block, whose repetitions count as done, however they end."""
        inner, done = self._all(items, depth + 1)
        indent = "    " * (depth + 1)
        lines += [f"{indent}int {x};\n" for x in done]
        lines += inner
        lines += [f"{indent}(void){x};\n" for x in done]

    def _one_of(self, x: OneOf, indent: str) -> list[str]:
        lines = [f"{indent}switch ({self.tables[x.table]}[{_counter(x.counter)}]) {{\n"]
        for k, c in enumerate(x.calls):
            lines += [f"{indent}case {k}:\n", *self._call(c, indent + "    "), f"{indent}    break;\n"]
        return [*lines, f"{indent}}}\n"]

    def _repeat(self, r: Repeat, lines: list[str], depth: int) -> list[str]:
        self._loops += 1
        k, indent = self._loops, "    " * depth
        own, turn = f"done{k}", f"turn{k}"
        inner, done = self._all(r.calls, depth + 2)
        lines.append(f"{indent}{{\n{indent}    int {turn} = 0;\n{indent}    for (;;) {{\n")
        lines += inner
        lines.append(f"{indent}        {own} = {self._number(r.left)} <= {number(0.0, self.real)};\n")
        lines.append(f"{indent}        if ({own} || ++{turn} >= {r.most}) break;\n")
        self._inside(r.between, lines, depth + 1)
        if r.log is not None:
            lines += self._append(r.log, indent + "        ")
        lines.append(f"{indent}    }}\n{indent}}}\n")
        return [*done, own]

    def _append(self, log: Log, indent: str) -> list[str]:
        """A row of the log where the flag is positive."""
        at, width = self.memory.places, self.schedule.width(log.arrays)
        out = [f"{indent}if ({self._number(log.flag)} > {number(0.0, self.real)}) {{\n"]
        row = f"{at[LOG]} + {width} * (long)m[{at[LOGGED]}]"
        out.append(f"{indent}    if (m[{at[LOGGED]}] < {number(float(self.capacity), self.real)}) {{\n")
        before = 0
        for n in log.arrays:
            out.append(self._copy(f"{row} + {before}", str(at[n]), self.schedule.sizes[n], indent + "        "))
            before += self.schedule.sizes[n]
        one = number(1.0, self.real)
        return [*out, f"{indent}    }}\n{indent}    m[{at[LOGGED]}] += {one};\n{indent}}}\n"]

    def _call(self, c: Call, indent: str) -> list[str]:
        p, at = self.plans[id(c.plan)], self.memory.places
        both = copied(c, p)
        lines = [
            self._copy(str(at[copy_of(n)]), str(at[n]), self.schedule.sizes[n], indent) for n in both
        ]  # fmt: skip
        arrays = [f"m + {self._begins(n)}" for n in (*read_places(c, both), *c.writes)]
        return [*lines, f"{indent}{self.functions[id(c.plan)]}({', '.join(arrays)});\n"]

    def _begins(self, place: Place) -> str:
        if isinstance(place, str):
            return str(self.memory.places[place])
        terms = [str(self.memory.places[place.array] + place.offset)]
        for counter, stride in place.at:
            c = _counter(counter)
            terms.append(f"{c} * {stride}" if isinstance(stride, int) else f"{self.tables[stride]}[{c}]")
        return " + ".join(terms)

    def _number(self, place: Place) -> str:
        return f"m[{self._begins(place)}]"


def _bound(b: Bound) -> str:
    return str(b) if isinstance(b, int) else f"{_counter(b[0])} + {b[1]}"


def _counter(name: str) -> str:
    return f"c_{_word(name)}"


def _word(name: str) -> str:
    """A name with the letters that C allows."""
    return "".join(x if x.isascii() and x.isalnum() else "_" for x in name)
