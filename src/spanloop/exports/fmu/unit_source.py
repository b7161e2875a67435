"""The C source of a unit: the kernels and tables of its model, then the interface (c/)."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from spanloop.compiler.lower.schedule import STEP, TIME, Schedule
from spanloop.compiler.portable.c_plan import LENGTH, WHOLE, number, plan_function, sincos_function
from spanloop.compiler.portable.c_schedule import CSchedule
from spanloop.compiler.portable.memory import Memory
from spanloop.compiler.portable.pieces import PortablePlan
from spanloop.compiler.portable.status import FLAGS, with_flags
from spanloop.exports.fmu.unit_functions import SHOWN, UnitFunction
from spanloop.exports.fmu.variables import Variable
from spanloop.model import Model

TOKEN = "@TOKEN@"  # stands for the token, which is a hash of everything else
_INCLUDES = ("float.h", "math.h", "stdarg.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h")
_INTERFACE = (
    "instance.c",
    "values.c",
    "projection.c",
    "held.c",
    "start.c",
    "interface.c",
    "exchange.c",
    "cosimulation.c",
    "absent.c",
)
_FLAGS = "flags"
_NO_RATES = """#define AT_RATES 0
static int model_rates(double *m)
{
    (void)m;
    return 1;
}
"""


@dataclass(frozen=True)
class Unit:
    """All that the source of a unit is made of; start: numbers by array; kinds: its interfaces."""

    name: str
    model: Model
    schedule: Schedule
    functions: Sequence[UnitFunction]
    variables: Sequence[Variable]
    start: Mapping[str, np.ndarray]
    step: float
    kinds: Sequence[str]
    closes: bool
    fixed_start: bool
    open_at_start: float

    def source(self) -> str:
        """The whole source; TOKEN stands for the token."""
        memory = Memory()
        steps = CSchedule(self.schedule, "model", memory=memory)
        for f in self.functions:
            memory.add(f.name, f.size)
        memory.add_all({SHOWN: self.model.nv, _FLAGS: FLAGS})
        for name, values in self.start.items():
            memory.add(name, len(values))
        for name in (n for n in ("u", "p") if n not in memory.places):
            memory.add(name, 0)
        parts = [
            f"/* {_comment(self.name)}: written by spanloop; it needs a C99 compiler, and must not be compiled with",
            " * -ffast-math. */",
            "#ifdef __FAST_MATH__",
            '#error "this code relies on NaN and on the order of operations: compile it without -ffast-math"',
            "#endif",
            *(f"#include <{x}>" for x in _INCLUDES),
            "",
            sincos_function("double"),
            steps.source(),
            *(self._function(f, memory) for f in self.functions),
            *([] if "rates" in memory.places else [_NO_RATES]),
            self._shown(memory),
            *self._definitions(memory),
            *self._tables(memory),
            "",
            *((files("spanloop.exports.fmu") / "c" / name).read_text(encoding="utf-8") for name in _INTERFACE),
        ]
        return "\n".join(parts)

    def _function(self, f: UnitFunction, memory: Memory) -> str:
        """A plan, and  static int model_name(double *m), which returns the bits of its status."""
        at = memory.places
        plan = PortablePlan(with_flags(f.plan, "double"), (f.size, FLAGS), WHOLE, LENGTH)
        arrays = [*f.reads, f.name, _FLAGS]
        call = ", ".join(f"m + {at[n]}" for n in arrays)
        bits = " | ".join(f"(m[{at[_FLAGS] + k}] != 0.0 ? {1 << k} : 0)" for k in range(FLAGS))
        return (
            plan_function(plan, f"{f.name}_plan", "double")
            + f"""static int model_{f.name}(double *m)
{{
    int k, bits;
    {f.name}_plan({call});
    bits = {bits};
    for (k = 0; k < {f.size} && !bits; k++)
        if (!(fabs(m[{at[f.name]} + k]) < INFINITY)) bits = 1;
    return bits;
}}
"""
        )

    def _shown(self, memory: Memory) -> str:
        """The velocities that a step begins with."""
        at, closed = memory.places, "v.closed" in memory.places
        begin = "    model_begin(m);\n" if closed else ""
        source = at["v.closed" if closed else "v"]
        copy = f"    memcpy(m + {at[SHOWN]}, m + {source}, {self.model.nv} * sizeof(double));\n"
        return f"static void model_shown(double *m)\n{{\n{begin}{copy}}}\n"

    def _definitions(self, memory: Memory) -> list[str]:
        at = memory.places
        places = {"T": TIME, "H": STEP, "Q": "q", "V": "v", "SHOWN": SHOWN, "P": "p"}
        places |= {f.name.upper(): f.name for f in self.functions}
        sizes = {
            "N_MEMORY": memory.size,
            "N_VARIABLES": len(self.variables),
            "N_Q": self.model.nq,
            "N_V": self.model.nv,
            "N_P": memory.sizes["p"],
            "N_QUATERNIONS": len(quaternions(self.model)),
            "COSIMULATES": int("CoSimulation" in self.kinds),
            "EXCHANGES": int("ModelExchange" in self.kinds),
            "CLOSES": int(self.closes),
            "FIXED_START": int(self.fixed_start),
        }
        lines = [f"#define NAME {_text(self.name)}", f'#define TOKEN "{TOKEN}"']
        lines += [f"#define STEP {number(self.step, 'double')}"]
        lines += [f"#define OPEN_AT_START {number(self.open_at_start, 'double')}"]
        lines += [f"#define {name} {x}" for name, x in sizes.items()]
        return lines + [f"#define AT_{name} {at.get(array, 0)}" for name, array in places.items()]

    def _tables(self, memory: Memory) -> list[str]:
        at = memory.places
        begins = [
            (at[name] + k, float(x)) for name, values in self.start.items() for k, x in enumerate(values) if x != 0.0
        ]
        rows = [f"    {{{place}, {number(x, 'double')}}}," for place, x in begins or [(0, 0.0)]]
        lines = [f"#define N_START {len(rows)}"]
        lines += ["static const struct { int place; double value; } starts[N_START] = {", *rows, "};"]
        lines += ["static const struct { const char *name; int kind, place; double least; } variables[N_VARIABLES] = {"]
        for x in self.variables:
            least = "-INFINITY" if x.least is None else number(x.least, "double")
            lines.append(f"    {{{_text(x.name)}, {x.kind}, {at[x.array] + x.place}, {least}}},")
        first = quaternions(self.model) or [0]
        return [*lines, "};", f"static const int quaternions[] = {{{', '.join(map(str, first))}}};"]


def quaternions(model: Model) -> list[int]:
    """Places in q at which quaternions begin."""
    out = []
    for j in model.joints:
        s = model.q_slice(j.name)
        out += [int(part[0]) for part in j.kind.unit_parts(tuple(range(s.start, s.stop)))] if j.kind.nq else []
    return out


def _text(words: str) -> str:
    """A C string, in UTF-8; bytes that C could read otherwise are in octal."""
    safe = (string.ascii_letters + string.digits + " .,:;_-+*/()[]").encode()
    return '"' + "".join(chr(b) if b in safe else f"\\{b:03o}" for b in words.encode("utf-8")) + '"'


def _comment(words: str) -> str:
    return words.replace("*/", "* /").replace("\n", " ").replace("\r", " ").replace("\\", "/")
