"""Positions and velocities of all joints from those of the actuated ones, leg by leg. [Saha, eq. 27-29]

Saha takes the positions of unactuated joints as known. Here they are found by Newton's method: a step is the answer of
the unactuated joints to the closures' errors while the actuated ones rest, by the elimination that gives rates.

| here | shape | meaning | frame |
|---|---|---|---|
| e | (n_rows,) | closure errors | closures |
| beta | Motion | step of the platform that takes the error of a leg's closure away | platform |
| T | nv × n | rates of all joints for unit actuated rates | joints |
"""

from __future__ import annotations

from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.algorithms.papers.saha.leg_elimination import eliminated, joined, joint_response, unit_rates
from spanloop.algorithms.papers.saha.legs import Leg, Legs, NotLegs, legs_with
from spanloop.algorithms.papers.saha.parallel_legs import SINGULAR
from spanloop.algorithms.tree.link_motion import placed
from spanloop.math.spatial import Motion
from spanloop.math.symmetric import solve
from spanloop.math.vector3 import dot
from spanloop.sweeps import Program, Values, at_once


def position_completion(mechanism, redundancy: Redundancy | None = None) -> Program:
    """delta (nv,) that takes the closure errors `error` (n_rows,) away, to first order at q; 0 for actuated joints."""
    legs = legs_with(mechanism, redundancy)
    _refuse_rates(mechanism)

    def answer(m, here, world) -> Values:
        """Steps of all joints."""
        parts, demands = eliminated(m, legs, here, lambda leg: closing_step(m, legs, leg, here, world.error))
        delta, pivots = joint_response(m, legs, parts, Motion())
        return Values(answer=delta, pivots=demands + pivots)

    return _program("position_completion", ("q", "error"), mechanism, answer, {"error": mechanism.n_rows})


def actuated_rates(mechanism, redundancy: Redundancy | None = None) -> Program:
    """T (nv, n) at q: rates of all joints for unit actuated rates; v = T θ̇."""
    legs = legs_with(mechanism, redundancy)

    def answer(m, here, world) -> Values:
        """Rates of all joints for each actuated one."""
        parts, demands = eliminated(m, legs, here)
        T, pivots = unit_rates(m, legs, parts)
        return Values(answer=[x for row in T for x in row], pivots=demands + pivots)

    return _program("actuated_rates", ("q",), mechanism, answer, shape=(mechanism.nv, len(legs.actuated)))


def closing_step(m, legs: Legs, leg: Leg, here, error) -> Motion:
    """beta: the step of the platform on the leg after which its closure has no error, to first order."""
    if leg.closure is None:
        return Motion()
    c, joint = m.closures[leg.closure], joined(m, legs, leg, here)
    rows = [tuple(w) for w in c.kind.closure_space(joint.x)]
    against = solve([[dot(a, b) for b in rows] for a in rows], [-error[r] for r in c.rows])
    step = [dot(column, against) for column in zip(*rows, strict=True)]  # the least of those that close it
    return joint.seen(Motion.of(step))


def _program(name, inputs, mechanism, answer, sizes=None, shape=None) -> Program:
    return Program(
        name,
        inputs,
        (*placed(()), at_once(answer)),
        lambda m, here, world: world.answer,
        shape or (mechanism.nv,),
        regroup=True,
        sizes=sizes or {},
        demands=lambda m, here, world: world.pivots,
        refusal=SINGULAR,
    )


def _refuse_rates(m) -> None:
    """Refuse closures that constrain rates alone: no position follows from the actuated ones."""
    on_positions = {*m.position_rows}
    for c in m.closures:
        if not on_positions.issuperset(c.rows):
            raise NotLegs(f"loop {c.name!r} holds velocities that no position follows from")
