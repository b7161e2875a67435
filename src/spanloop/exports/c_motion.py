"""A motion in C: a struct that the caller owns, its start, one step, and what can be read of it.

    typedef struct { uint64_t steps; double memory[n]; } arm_motion;

The memory holds the arrays of a schedule (compiler/portable/memory.py). A step that fails leaves the state as it was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from spanloop.compiler.lower import Plan
from spanloop.compiler.lower.plan import live, traced_inputs
from spanloop.compiler.lower.schedule import STEP, TIME
from spanloop.compiler.portable.c_plan import LENGTH, WHOLE, number, plan_function
from spanloop.compiler.portable.c_schedule import CSchedule
from spanloop.compiler.portable.memory import LOGGED
from spanloop.compiler.portable.pieces import PortablePlan
from spanloop.compiler.portable.status import FLAGS, with_flags
from spanloop.compiler.render.rollout import HALTED, LOST, NOT_CONVERGED
from spanloop.compiler.trace import Expression
from spanloop.exports.c_changes import set_parameters, set_state, shared_source
from spanloop.exports.c_function import BIT
from spanloop.exports.portable_motion import PortableMotion

CLOSED = "v.closed"  # velocities with the loops closed


@dataclass(frozen=True)
class CMotion:
    """The functions of a motion; inputs: what the numbers u of a step are, for the header."""

    motion: PortableMotion
    prefix: str
    real: str
    sincos: str
    inputs: str = "torques [N m] or forces [N] at the joints"
    has_force_inputs: bool = False  # u are torques and forces on bodies

    @cached_property
    def steps(self) -> CSchedule:
        """The schedule in C, with places for what a failed step gives back."""
        s = self.motion.schedule
        found = CSchedule(s, f"{self.prefix}_schedule", self.real, self.sincos)
        for n in s.changed:
            found.memory.add(_kept(n), s.sizes[n])
        return found

    @property
    def n_inputs(self) -> int:
        """Numbers u of a step."""
        return self.motion.schedule.sizes["u"] if self.motion.schedule.controls else 0

    @property
    def can_be_set(self) -> bool:
        """Whether q and v determine the state: no contacts and no events that carry more."""
        system = self.motion.problem.system
        return not system.contacts and not system.locates

    @property
    def size(self) -> int:
        """Numbers of the memory."""
        return max(self.steps.memory.size, 1)

    @property
    def operations(self) -> int:
        """Operations of all plans, each written once."""
        return sum(len(p.nodes) for p in self.motion.schedule.plans())

    # ---- declarations

    def heads(self) -> dict[str, str]:
        """Declarations without semicolons, with their comments."""
        p, real, model = self.prefix, self.real, self.motion.problem.model
        state = f"{real} q[{model.nq}], {real} v[{model.nv}]"
        given = f"const {real} q[{model.nq}], const {real} v[{model.nv}]"
        u = f", const {real} u[{self.n_inputs}]" if self.n_inputs else ""
        u_note = f"u[{self.n_inputs}]: {self.inputs}. " if self.n_inputs else ""
        out = {
            f"void {p}_start({p}_motion *motion)": "Put the motion at its start. Call it first.",
            f"int {p}_step({p}_motion *motion{u})": (
                f"Move one step of {self.motion.step!r} s. {u_note}Returns 0, or the bits of why the step failed;\n"
                "   the state is then as it was before it."
            ),
            f"{real} {p}_time(const {p}_motion *motion)": "Time at the state [s].",
            f"int {p}_state(const {p}_motion *motion, {state})": (
                "Read coordinates and velocities (with the loops closed). Returns 0, or why they have no value."
            ),
        }
        if self.can_be_set:
            out[f"int {p}_set_state({p}_motion *motion, {given})"] = (
                "Put the mechanism elsewhere, at the same time. Loops that are open by up to about 0.001 (rad, or of\n"
                "   their length) are closed; give closed states. Returns 0, or why it cannot be there; the state is\n"
                "   then as it was."
            )
        if "p" in self.motion.schedule.sizes:
            n = self.motion.schedule.sizes["p"]
            out[f"int {p}_set_parameters({p}_motion *motion, const {real} parameters[{n}])"] = (
                "Change the numbers of the model. Loops follow other lengths in stages and are closed afterwards, in\n"
                "   the same assembly; this takes 18 steps or more. Returns 0, or why they are refused; numbers and\n"
                "   state are then as they were."
            )
        return out

    def declarations(self) -> str:
        """The struct and the declarations of the header."""
        p, upper = self.prefix, self.prefix.upper()
        struct = (
            f"/* A motion, owned by the caller: {self.size} numbers and a counter, no pointers; it may be copied. */\n"
            f"typedef struct {p}_motion {{\n    uint64_t steps; /* taken since the start */\n"
            f"    {self.real} memory[{upper}_MEMORY];\n}} {p}_motion;\n\n"
        )
        return struct + "".join(f"/* {note} */\n{head};\n\n" for head, note in self.heads().items())

    # ---- source

    def source(self) -> str:
        """Source of all functions."""
        heads = list(self.heads())
        parts = [self.steps.source(), self._velocity_plan()]
        if "p" in self.motion.schedule.sizes:
            parts.append(self._parameter_check())
        plain = [self._start(), self._step(), self._time(), self._state()]
        bodies = list(plain)
        if self.can_be_set:
            bodies.append(set_state(self))
        if "p" in self.motion.schedule.sizes:
            bodies.append(set_parameters(self))
        if len(bodies) > len(plain):
            parts.append(shared_source(self))
        parts += [f"{head}\n{{\n{body}}}\n\n" for head, body in zip(heads, bodies, strict=True)]
        return "\n".join(parts)

    def _copy(self, to: str, source: str, size: int) -> str:
        return f"    memcpy({to}, {source}, {size} * sizeof({self.real}));\n" if size else ""

    def _start(self) -> str:
        at, out = self.steps.memory.places, ""
        for n, x in self.motion.start.items():
            if not np.any(x):
                continue
            values = ", ".join(number(float(v), self.real) for v in x)
            out += f"    static const {self.real} start_{at[n]}[{len(x)}] = {{{values}}};\n"
        out += "    int k;\n    motion->steps = 0;\n"
        out += f"    for (k = 0; k < {self.size}; k++) motion->memory[k] = {number(0.0, self.real)};\n"
        for n, x in self.motion.start.items():
            if np.any(x):
                out += self._copy(f"motion->memory + {at[n]}", f"start_{at[n]}", len(x))
        return out

    def _step(self) -> str:
        s, at, p = self.motion.schedule, self.steps.memory.places, self.prefix
        out = f"    {self.real} *m = motion->memory;\n    int why;\n"
        if self.n_inputs:
            out += f"    if ({p}_not_finite(u, {self.n_inputs})) return {BIT['NOT_FINITE']};\n"
            out += self._copy(f"m + {at['u']}", "u", self.n_inputs)
        out += f"    m[{at[TIME]}] = {p}_time(motion);\n    m[{at[STEP]}] = {number(self.motion.step, self.real)};\n"
        if LOGGED in at:
            out += f"    m[{at[LOGGED]}] = {number(0.0, self.real)};\n"
        out += "".join(self._copy(f"m + {at[_kept(n)]}", f"m + {at[n]}", s.sizes[n]) for n in s.changed)
        out += f"    why = {p}_schedule_step(m);\n"
        back = "".join("    " + self._copy(f"m + {at[n]}", f"m + {at[_kept(n)]}", s.sizes[n]) for n in s.changed)
        out += (
            f"    if (why != 0) {{\n{back}        return {p}_why(why);\n    }}\n    motion->steps++;\n    return 0;\n"
        )
        return out

    def _time(self) -> str:
        start, h = (number(x, self.real) for x in (self.motion.problem.start, self.motion.step))
        return f"    return {start} + ({self.real})motion->steps * {h};\n"

    def _state(self) -> str:
        s, at = self.motion.schedule, self.steps.memory.places
        out = self._copy("q", f"motion->memory + {at['q']}", s.sizes["q"])
        if CLOSED not in s.sizes:
            out += self._copy("v", f"motion->memory + {at['v']}", s.sizes["v"])
            return out + "    return 0;\n"
        reads = ", ".join(f"motion->memory + {at[str(n)]}" for n in s.begin[0].reads)
        out += f"    {self.prefix}_velocity({reads}, v);\n"
        return out + f"    return {self.prefix}_not_finite(v, {s.sizes['v']}) ? {BIT['NO_ANSWER']} : 0;\n"

    def _velocity_plan(self) -> str:
        """The part of the start of a step that closes the velocities; and the bits of a step as a status."""
        s = self.motion.schedule
        bits = {LOST: "LOST", HALTED: "HALTED", NOT_CONVERGED: "NOT_CONVERGED"}
        lines = " | ".join(f"((why & {b}) ? {BIT[name]} : 0)" for b, name in bits.items())
        out = f"static int {self.prefix}_why(int why)\n{{\n    return {lines};\n}}\n\n"
        if CLOSED not in s.sizes:
            return out
        call = s.begin[0]
        first = sum(s.sizes[str(n)] for n in call.writes[: call.writes.index(CLOSED)])
        plan = _part(call.plan, first, s.sizes[CLOSED])
        found = PortablePlan(plan, (s.sizes[CLOSED],), WHOLE, LENGTH)
        return out + plan_function(found, f"{self.prefix}_velocity", self.real, self.sincos) + "\n"

    def _parameter_check(self) -> str:
        """The conditions on parameters, as a function that fills flags."""
        traced = traced_inputs((("parameters", self.motion.schedule.sizes["p"]),))
        guards = self.motion.parameter_guards(traced["parameters"])
        plan = with_flags(Plan.of("parameter_check", traced, (0,), (), guards), self.real)
        found = PortablePlan(plan, (FLAGS,), WHOLE, LENGTH)
        return plan_function(found, f"{self.prefix}_parameter_check", self.real, self.sincos) + "\n"


def _kept(name: str) -> str:
    """The array that an array of the state is kept in during a step that changes it."""
    return f"{name}.before"


def _part(plan: Plan, first: int, count: int) -> Plan:
    """The plan of some of the outputs."""
    outputs = plan.outputs[first : first + count]
    nodes = live([x for x in outputs if isinstance(x, Expression)])
    return replace(plan, outputs=outputs, nodes=tuple(nodes))
