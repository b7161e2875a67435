"""Forward sensitivities of a Schedule as a Schedule: a run together with how it changes along several directions.

    schedule = tangent(forward, wrt=("q", "v", "u"), of=("q", "v.closed"), columns=20)

| array | where | meaning |
|---|---|---|
| all of the forward schedule | as there | the run itself |
| d.x | state | rates of the state's x: columns · size numbers, one column after the other |
| d.c | constants | rates of constant c, of control c if it is `constant`, of t or h |
| d.u | controls | rates of control u |
| x, then d.x for all x of `of` | record | samples and their rates |

A column is one direction: rates of what is in `wrt`, as the caller sets them (unit columns give a Jacobian, one by one
of them a product with it). x: arrays of the state that are in `wrt` or hand on a derivative; rates of quaternions are
those of their four numbers. An array of `of` that nothing in `wrt` changes has no rates.

Calls are made with GROUP columns at a time, which share what they take from the call itself. Rates of a fixed point
a = F(a, x) are one, too:  da = ∂F/∂a da + ∂F/∂x dx. The adjoint (adjoint.py) says what has no derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spanloop.compiler.derivative.forward import tangents
from spanloop.compiler.lower.flow import FixedPoint, Flow, Part, names
from spanloop.compiler.lower.glue_plans import PATIENCE, settled, start, zeros
from spanloop.compiler.lower.plan import Plan
from spanloop.compiler.lower.plan_copy import copied
from spanloop.compiler.lower.schedule import Block, Call, Item, Place, Repeat, Schedule, following

GROUP = 2  # columns of one call: with more, arms run 7 % faster and take twice as long to compile


def tangent(
    schedule: Schedule,
    wrt: Sequence[str],
    of: Sequence[str],
    columns: int,
    constant: Sequence[str] = (),
    dtype: str = "float64",
) -> Schedule:
    """The schedule that carries a state and its rates along `columns` directions; this module says what its arrays are.

    wrt: arrays that change: of the state, constants, controls, "t" and "h"; of: arrays whose rates are recorded, of the
    state or filled by `begin`; constant: controls of `wrt` whose rates are the same in all steps.

    Raises:
        UnsupportedError: a step has parts without a derivative.
    """
    flow = Flow.of(schedule)
    assert all(flow.end_of(n) == following(n) for n in schedule.committed), "a step fills its next state once"
    alive = flow.moving(wrt) & {*flow.useful(of), *wrt}
    ahead = _Forward(flow, alive, columns, dtype)
    begin = tuple(x for c in flow.begin for x in ahead.through_call(c))
    advance = tuple(x for part in flow.advance for x in ahead.through(part))

    carried = tuple(n for n in schedule.state if n in alive)
    stepwise = tuple(n for n in wrt if n in schedule.controls and n not in constant)
    fixed = tuple(n for n in wrt if n not in (*schedule.state, *stepwise))
    size = {f"d.{n}": columns * flow.sizes[n] for n in alive}
    size |= {following(f"d.{n}"): size[f"d.{n}"] for n in carried}
    for n in carried:
        if flow.end_of(n) not in alive:
            advance += (Call(zeros(size[f"d.{n}"]), (), (following(f"d.{n}"),)),)
    sampled = tuple(flow.name_of(n) for n in of)
    return replace(
        schedule,
        name=f"tangents of {schedule.name}",
        sizes={**flow.sizes, **size, **ahead.sizes},
        state=(*schedule.state, *(f"d.{n}" for n in carried)),
        constants=(*schedule.constants, *(f"d.{n}" for n in fixed)),
        controls=(*schedule.controls, *(f"d.{n}" for n in stepwise)),
        record=(*sampled, *(f"d.{n}" for n in sampled if n in alive)),
        begin=begin,
        advance=advance,
        halt=schedule.halt and flow.name_of(schedule.halt),
        unbounded=(*schedule.unbounded, *(f"d.{n}" for n in carried)),
    )


@dataclass
class _Forward:
    """Calls with the rates of what they fill.

    alive: arrays whose rates are known.
    """

    flow: Flow
    alive: set[str]
    columns: int
    dtype: str
    sizes: dict[str, int] = field(default_factory=dict)  # of arrays that are new
    _plans: dict[tuple, Plan] = field(default_factory=dict)

    def through(self, part: Part) -> list[Item]:
        """A part and what fills the rates of its arrays."""
        return list(self.through_call(part)) if isinstance(part, Call) else self._solve(part)

    def through_call(self, c: Call) -> list[Call]:
        """A call and those that fill the rates, the first with the call itself."""
        found = self._rates(c, with_values=True)
        return found or [c]

    def _rates(self, c: Call, with_values: bool) -> list[Call]:
        """Calls that fill the rates of a call's arrays, if there are any, a group of columns each."""
        reads, writes = names(c.reads), names(c.writes)
        moving = tuple(k for k, n in enumerate(reads) if n in self.alive)
        filled = tuple(i for i, n in enumerate(writes) if n in self.alive)
        out = list[Call]()
        for first, count in _groups(self.columns) if filled else ():
            values = with_values and not out
            key = id(c.plan), moving, filled, count, values
            if key not in self._plans:
                self._plans[key] = _pushed(c.plan, [self.flow.sizes[n] for n in writes], *key[1:])
            d_reads = tuple(self._columns(reads[k], first, count) for k in moving)
            d_writes = tuple(self._columns(writes[i], first, count) for i in filled)
            out.append(Call(self._plans[key], (*reads, *d_reads), (*(writes if values else ()), *d_writes)))
        return out

    def _solve(self, x: FixedPoint) -> list[Item]:
        """Find the fixed point, then its rates by repetition."""
        rates = [call for c in x.turn for call in self._rates(c, with_values=False)]
        solved = [n for n in x.solved if n in self.alive]
        if not solved:
            return [x.loop]
        needed = {n for c in rates for n in c.reads}
        turn = [c for c in x.turn if needed & set(c.writes)]
        sizes, left = [self.flow.sizes[n] for n in solved], f"left.{solved[0]}"
        self.sizes[left] = 1
        old, new = tuple(f"d.{n}" for n in solved), tuple(f"d.{x.solved[n]}" for n in solved)
        settle = Call(settled(sizes, self.dtype, self.columns), (*old, *new, left), (*old, left))
        loop = Repeat((*rates, settle), left, PATIENCE * x.loop.most, usual=x.loop.turns)
        return [x.loop, *turn, Call(start([]), (), (left,)), loop]

    def _columns(self, array: str, first: int, count: int) -> Place:
        """Some columns of an array's rates."""
        size = self.flow.sizes[array]
        return f"d.{array}" if count == self.columns else Block(f"d.{array}", count * size, (), first * size)


def _groups(columns: int) -> list[tuple[int, int]]:
    """All columns in groups of about the same size: the first of each, how many."""
    count = -(-columns // GROUP)
    size = -(-columns // max(count, 1))
    return [(first, min(size, columns - first)) for first in range(0, columns, size)] if columns else []


def _pushed(
    plan: Plan, sizes: Sequence[int], moving: Sequence[int], filled: Sequence[int], columns: int, with_values: bool
) -> Plan:
    """(what a plan reads, rates of some of it) -> rates of some of what it fills, after the values if they are wanted.

    sizes: of the arrays that it fills; moving: places of what is read that has rates; filled: places of what is filled
    whose rates are wanted; columns: how many there are of each.
    """
    reads, outputs = copied(plan)
    graph = next(x.graph for part in reads for x in part)
    given = [graph.inputs(columns * len(reads[k])) for k in moving]
    wanted = [x for i in filled for x in outputs[sum(sizes[:i]) : sum(sizes[: i + 1])]]
    found = list[list[Any]]()  # one column after the other: side by side too many numbers would be needed at once
    for c in range(columns):
        seeds = {
            x.index: {0: part[c * len(reads[k]) + j]}
            for k, part in zip(moving, given, strict=True)
            for j, x in enumerate(reads[k])
        }
        found.append([rates.get(0, 0.0) for rates in tangents(wanted, seeds)])
    answers = list(outputs) if with_values else []
    at = 0
    for i in filled:
        answers += [x for column in found for x in column[at : at + sizes[i]]]
        at += sizes[i]
    inputs = {f"x{k}": part for k, part in enumerate((*reads, *given))}
    return Plan.of(f"{plan.name}.rates", inputs, (0,), answers)
