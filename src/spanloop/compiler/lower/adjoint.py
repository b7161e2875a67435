"""The adjoint of a Schedule is a Schedule: it takes the steps of a run backwards and carries derivatives of a loss.

A loss L is a number that depends on states along a run and on what `begin` makes of them (v.closed: the velocity that a
sample shows). The cotangent of an array x is ∂L/∂x, as many numbers as x has; coordinates of quaternions have four.

    schedule = adjoint(forward, wrt=("q", "v", "u", "p"), of=("q", "v.closed"))

| array | where | meaning |
|---|---|---|
| lam.x | state | cotangent of the forward state's x, at the step's end; after the adjoint's step at its start |
| lam.c | state | cotangent of constant c, of control c if it is `constant`, of t or h: a sum over all steps so far |
| lam.u | state, record | cotangent of control u of the step that was taken last |
| all of forward.state | controls | the forward state at the step's start |
| all of forward.controls | controls | as they were in the step |
| time | controls | t of the forward step (1 number) |
| g.x for x of `of` | controls | what the loss adds to the cotangent of x at the step's start |

x: arrays of the state that are in `wrt` or hand on a derivative; c and u: those of `wrt`. The arrays of `of` are of the
state, or filled by `begin`. A step of the adjoint is

    lam_k = (∂step_k/∂x)ᵀ lam_k+1 + g_k.

Rows of controls stand in the order of its steps: the last forward step first. The length h and the constants are those
of the forward run. A row of the record is written at the start of a step and after the last one: row k + 1 holds lam.u
of the adjoint's step k; row 0 is what the state began with.

The last state: take one step of adjoint_of_sample(forward, ...), of the same arguments, from lam = 0 with g of the
run's end, the controls of the last step and the time there. Its arrays are the same; it leaves the state to begin with,
and in lam.u what is added to the last step's.
For the states of all steps the forward rollout records them: replace(forward, record=forward.state). Sums in float32
lose digits over very many steps: take them out from time to time, and add them in float64.

A step runs the calls forward once more, without those whose results no pullback reads, and pulls back through each of
them in turn. Calls of one plan share one pullback. The adjoint of a repetition that ends at a fixed point a = F(a, x)
is one, too:  w = ā + (∂F/∂a)ᵀ w,  x̄ = (∂F/∂x)ᵀ w  [implicit-function theorem]. Conditions, margins and errors of loops
have no derivative. Demands have been passed forward, so pullbacks have none; a run whose cotangents are not finite or
do not converge ends with the bits of forward steps, LOST or NOT_CONVERGED.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spanloop.compiler.derivative.reverse import pullback
from spanloop.compiler.lower.flow import FixedPoint, Flow, Part, names
from spanloop.compiler.lower.glue_plans import PATIENCE, copies, settled, start, zeros
from spanloop.compiler.lower.plan import Plan
from spanloop.compiler.lower.plan_copy import copied, trimmed
from spanloop.compiler.lower.schedule import TIME, Call, Item, Repeat, Schedule, calls_of, following

CLOCK = "time"  # the forward step's time: a schedule's own would run on


def adjoint(
    schedule: Schedule, wrt: Sequence[str], of: Sequence[str], constant: Sequence[str] = (), dtype: str = "float64"
) -> Schedule:
    """The schedule that pulls cotangents back through a schedule's steps; this module says what its arrays are.

    wrt: arrays by which derivatives are wanted: of the state, constants, controls, "t" and "h"; of: arrays that the
    loss depends on, of the state or filled by `begin`; constant: controls of `wrt` that are the same in all steps.

    Raises:
        UnsupportedError: a step has parts without a derivative.
    """
    flow = Flow.of(schedule, {TIME: CLOCK})
    wanted = [flow.name_of(n) for n in wrt]
    back = _Backward(flow, _alive(flow, wanted, of), dtype)
    carried = [n for n in schedule.state if n in back.alive]
    stepwise = [n for n in wanted if n in schedule.controls and n not in constant]
    summed = [n for n in wanted if n not in schedule.state and n not in stepwise]
    kept = (*carried, *summed, *stepwise)

    lam = {n: f"lam.{TIME if n == CLOCK else n}" for n in kept}
    sources = {f"g.{n}": flow.sizes[flow.name_of(n)] for n in of}
    back.bar = {flow.name_of(n): f"g.{n}" for n in of} | {n: lam[n] for n in summed}
    back.bar |= {flow.end_of(n): lam[n] for n in carried}
    for part in reversed(flow.parts):
        back.pull(part)
    ends = tuple(back.cotangent(n) for n in kept)
    back.calls.append(Call(copies([flow.sizes[n] for n in kept]), ends, tuple(following(x) for x in lam.values())))

    controls = (*schedule.state, *schedule.controls, CLOCK, *sources)
    calls = (*back.zeros(), *_needed(flow, back.calls), *back.calls)
    sizes = {**flow.sizes, **sources, **back.sizes, CLOCK: 1}
    sizes |= {x: flow.sizes[n] for n, own in lam.items() for x in (own, following(own))}
    state = tuple(lam.values())
    given = {*schedule.constants, *controls, *state}
    given |= {n for x in calls for c in calls_of(x) for n in (*names(c.reads), *names(c.writes))}
    used = {n: size for n, size in sizes.items() if n in given}
    record = tuple(lam[n] for n in stepwise)
    name = f"adjoint of {schedule.name}"
    return Schedule(name, used, state, schedule.constants, controls, record, (), calls, unbounded=state)


def adjoint_of_sample(
    schedule: Schedule, wrt: Sequence[str], of: Sequence[str], constant: Sequence[str] = (), dtype: str = "float64"
) -> Schedule:
    """The schedule that pulls cotangents back through a sample alone, with the arrays of `adjoint`."""
    flow = Flow.of(schedule)
    alive = _alive(flow, wrt, of)
    own = [n for n in schedule.state if n in alive]
    others = [n for n in wrt if n not in schedule.state]
    return adjoint(sampling(schedule), (*own, *others), of, constant, dtype)


def sampling(schedule: Schedule) -> Schedule:
    """The schedule whose step makes a sample alone: what `begin` does; its state stays."""
    sizes = [schedule.sizes[n] for n in schedule.committed]
    stay = Call(copies(sizes), schedule.committed, tuple(following(n) for n in schedule.committed))
    return replace(schedule, name=f"sample of {schedule.name}", advance=(stay,), halt=None)


def _alive(flow: Flow, wanted: Sequence[str], of: Sequence[str]) -> set[str]:
    """Arrays that change with what is wanted, and that the loss changes with; and what is wanted itself."""
    return flow.moving(wanted) & {*flow.useful(of), *wanted}


@dataclass
class _Backward:
    """Calls that pull cotangents back, part after part from a step's end.

    alive: arrays whose cotangents are wanted; bar: {array: the one that holds its cotangent so far}.
    """

    flow: Flow
    alive: set[str]
    dtype: str
    bar: dict[str, str] = field(default_factory=dict)
    calls: list[Item] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)  # of arrays that are new
    _plans: dict[tuple, tuple[Plan, list[int]]] = field(default_factory=dict)

    def pull(self, part: Part) -> None:
        """Add the calls that pull back through a part."""
        if isinstance(part, Call):
            self.calls += self._through(part)
        else:
            self._solve(part)

    def cotangent(self, array: str) -> str:
        """The array that holds the cotangent of an array now."""
        return self.bar.get(array) or self._zero(self.flow.sizes[array])

    def zeros(self) -> list[Call]:
        """Calls that fill the arrays of zeros."""
        found = [(n, size) for n, size in self.sizes.items() if n == f"zero.{size}"]
        return [Call(zeros(size), (), (n,)) for n, size in found]

    def _through(self, c: Call, held: Sequence[str] = ()) -> list[Call]:
        """Pull back through a call; held: arrays that must stay as they are."""
        weighted, places = list[int](), dict[str, list[int]]()
        for i, (n, sources) in enumerate(self.flow.sources(c)):
            reached = [k for k in sources if c.reads[k] in self.alive]
            if n in self.bar and reached:
                weighted.append(i)
                for k in reached:
                    own = places.setdefault(names(c.reads)[k], [])
                    own += [k] * (k not in own)
        if not places:
            return []
        key = id(c.plan), tuple(weighted), tuple(tuple(x) for x in places.values())
        if key not in self._plans:
            self._plans[key] = _pullback(c.plan, [self.flow.sizes[n] for n in names(c.writes)], *key[1:])
        plan, used = self._plans[key]
        known = (*names(c.reads), *(self.bar[names(c.writes)[i]] for i in weighted))
        known += tuple(self.cotangent(n) for n in places)
        new = tuple(self._next(n, held) for n in places)
        self.bar |= dict(zip(places, new, strict=True))
        return [Call(plan, tuple(known[k] for k in used), new)]

    def _solve(self, x: FixedPoint) -> None:
        """Solve  w = ā + (∂F/∂a)ᵀ w  by repetition, and pull w back to what the turn reads."""
        solved = [n for n in x.solved if n in self.alive]
        if not solved:
            return
        sizes = [self.flow.sizes[n] for n in solved]
        w, left = tuple(f"w.{n}" for n in solved), f"left.{solved[0]}"
        self.sizes |= dict(zip((*w, left), (*sizes, 1), strict=True))
        self.calls.append(Call(start(sizes), tuple(self.cotangent(n) for n in solved), (*w, left)))
        held = tuple(self.bar.values())
        self.bar |= {x.solved[n]: own for n, own in zip(solved, w, strict=True)}
        turn = [call for c in reversed(x.turn) for call in self._through(c, held)]
        last = tuple(self.cotangent(n) for n in solved)
        settle = Call(settled(sizes, self.dtype), (*w, *last, left), (*w, left))
        self.calls.append(Repeat((*turn, settle), left, PATIENCE * x.loop.most, usual=x.loop.turns))
        for n in solved:
            self.bar.pop(n, None)  # the solution does not depend on where the repetition began

    def _next(self, array: str, held: Sequence[str]) -> str:
        """An array for the next cotangent of an array, other than the one so far and those held."""
        taken = {self.bar.get(array), *held}
        name = next(n for n in (f"bar.{array}", f"bar.{array}.1", f"bar.{array}.2") if n not in taken)
        self.sizes[name] = self.flow.sizes[array]
        return name

    def _zero(self, size: int) -> str:
        self.sizes[f"zero.{size}"] = size
        return f"zero.{size}"


def _pullback(
    plan: Plan, sizes: Sequence[int], weighted: Sequence[int], groups: Sequence[Sequence[int]]
) -> tuple[Plan, list[int]]:
    """(what a plan reads, cotangents of what it fills, cotangents so far) -> cotangents with its share.

    sizes: of the arrays that it fills; weighted: places of those that have a cotangent; groups: for each array whose
    cotangent is wanted the places where it is read. And the places of all these that the plan reads.
    """
    reads, outputs = copied(plan)
    graph = next(x.graph for part in reads for x in part)
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    weights = [graph.inputs(sizes[i]) for i in weighted]
    before = [graph.inputs(len(reads[own[0]])) for own in groups]
    found = pullback(
        [x for i in weighted for x in outputs[ends[i] - sizes[i] : ends[i]]],
        [x for part in weights for x in part],
        [x for own in groups for k in own for x in reads[k]],
    )
    answers, at = list[Any](), 0
    for own, part in zip(groups, before, strict=True):
        shares = [found[at + j * len(part) : at + (j + 1) * len(part)] for j in range(len(own))]
        answers += [functools.reduce(operator.add, share, x) for x, *share in zip(part, *shares, strict=True)]
        at += len(own) * len(part)
    given = {f"x{k}": part for k, part in enumerate((*reads, *weights, *before))}
    whole = Plan.of(f"{plan.name}.bar", given, (0,), answers)
    return trimmed(whole, range(len(answers)))


def _needed(flow: Flow, later: Sequence[Item]) -> list[Item]:
    """The parts of a flow that fill what later calls read, each without what is not needed of it."""
    needed = {n for x in later for c in calls_of(x) for n in names(c.reads)}
    out: list[Item] = []
    plans: dict[tuple, tuple[Plan, list[int]]] = {}
    for x in (y for part in reversed(flow.parts) for y in _forward(part)):
        if isinstance(x, Call):
            kept = [i for i, n in enumerate(names(x.writes)) if n in needed]
            if not kept:
                continue
            x = _part_of(x, kept, [flow.sizes[n] for n in names(x.writes)], plans)
        elif not any(n in needed for c in calls_of(x) for n in names(c.writes)):
            continue
        needed |= {n for c in calls_of(x) for n in names(c.reads)}
        out.append(x)
    return out[::-1]


def _forward(part: Part) -> Iterator[Item]:
    """What computes a part, the last first: a fixed point is found, then a turn is taken from there."""
    if isinstance(part, FixedPoint):
        yield from reversed(part.turn)
        yield part.loop
    else:
        yield part


def _part_of(c: Call, kept: Sequence[int], sizes: Sequence[int], known: dict[tuple, tuple[Plan, list[int]]]) -> Call:
    """The call that fills some of a call's arrays, by their places."""
    if len(kept) == len(sizes):
        return c
    key = id(c.plan), tuple(kept)
    if key not in known:
        places = [j for i in kept for j in range(sum(sizes[:i]), sum(sizes[: i + 1]))]
        known[key] = trimmed(c.plan, places)
    plan, used = known[key]
    return Call(plan, tuple(c.reads[k] for k in used), tuple(c.writes[i] for i in kept))
