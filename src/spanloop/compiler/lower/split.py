"""A Plan in two: what does not depend on some of its inputs, computed once, and the rest, which is applied many times.

Forward dynamics at one position, for example: the factors of the mass matrix are the first part, their use for one set
of forces is the second. No algorithm is written for that: the tape shows what depends on what.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spanloop.compiler.lower.plan import Output, Plan, copied, live, traced_inputs
from spanloop.compiler.trace import CONDITIONS, CONSTANT, INPUT, NEGATE, Expression

FACTORS = "factors"


def split(plan: Plan, applied: Sequence[str], early: int = 0) -> tuple[Plan, Plan]:
    """(early outputs and factors from the other inputs, the other outputs from (factors, *applied)).

    applied: the last inputs of the plan; early: how many outputs, the first ones, do not depend on them and belong to
    the first part. The demands belong to it too: they must not depend on what is applied.
    """
    own = [n for n, _ in plan.inputs]
    assert own[len(own) - len(applied) :] == list(applied), (own, applied)
    n_kept = sum(size for n, size in plan.inputs if n not in applied)
    later: set[int] = set()
    for n in live([x for x in (*plan.outputs, *plan.demand_flags) if isinstance(x, Expression)]):
        operands = [x for x in (n.a, n.b, n.c) if x is not None]
        if (n.op == INPUT and n.value >= n_kept) or any(x.index in later for x in operands):
            later.add(n.index)
    before, after = plan.outputs[:early], plan.outputs[early:]
    assert not any(isinstance(x, Expression) and x.index in later for x in (*before, *plan.demand_flags)), plan.name
    crossing = _crossing(after, later)
    kept = {n: list(plan.arguments[_slice(plan, n)]) for n in own if n not in applied}
    outputs = (*before, *crossing)
    first = Plan.of(f"{plan.name}.{FACTORS}", kept, (len(outputs),), outputs)
    tested = live([x for x in (*outputs, *plan.demand_flags) if isinstance(x, Expression)])
    first = replace(first, nodes=tuple(tested), demand_flags=plan.demand_flags)

    given = traced_inputs([(FACTORS, len(crossing)), *((n, dict(plan.inputs)[n]) for n in applied)])
    inputs = [x for n in applied for x in given[n]]
    known = {x.index: y for x, y in zip(plan.arguments[n_kept:], inputs, strict=True)}
    known |= {x.index: y for x, y in zip(crossing, given[FACTORS], strict=True)}
    found = copied(after, (given[FACTORS] or inputs)[0].graph, known)
    return first, Plan.of(plan.name, given, (len(found),), found)


def _slice(plan: Plan, name: str) -> slice:
    at = 0
    for n, size in plan.inputs:
        if n == name:
            return slice(at, at + size)
        at += size
    raise KeyError(name)


def _crossing(outputs: Sequence[Output], later: set[int]) -> list[Expression]:
    """Numbers of the first part that the second reads; conditions and signs are computed again there."""
    found: dict[int, Expression] = {}

    def need(x: Expression) -> None:
        if x.index in later or x.op == CONSTANT:
            return
        if x.op in CONDITIONS or x.op == NEGATE:
            for y in (x.a, x.b, x.c):
                if y is not None:
                    need(y)
        else:
            found[x.index] = x

    roots = [y for y in outputs if isinstance(y, Expression)]
    for n in live(roots):
        if n.index in later:
            for x in (n.a, n.b, n.c):
                if x is not None:
                    need(x)
    for y in roots:
        need(y)
    return [found[k] for k in sorted(found)]
