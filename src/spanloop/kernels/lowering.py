"""From a question to a plan: every link's operations written out, or each kind of link traced once and looped over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spanloop.compiler.lower import CannotLoop, Looped, Pass, Plan, Tree, looped, unrolled
from spanloop.errors import UnsupportedError
from spanloop.kernels.explain import POSITIONS, unit_conditions, units_of
from spanloop.sweeps import Values
from spanloop.sweeps.program import AT_ONCE, INWARD
from spanloop.topology.link_class import anonymous

if TYPE_CHECKING:
    from spanloop.kernels.spec import Question

KNEE = 48  # links beyond which looped code is used if nobody says otherwise


def planned(question: Question) -> Plan | Looped:
    """The plan by the lowering that the question asks for."""
    long = len(question.baked[0].links) > KNEE and not question.live
    if question.lowering == "looped" or (question.lowering == "auto" and long):
        try:
            return looped_plan(question)
        except CannotLoop as reason:
            if question.lowering == "looped":
                raise UnsupportedError(f"{question.name} by {question.method} cannot be looped: {reason}") from None
    return unrolled_plan(question)


def looped_plan(question: Question) -> Looped:
    """Steps traced once for each class of links."""
    m, program = question.baked
    inputs, shape = question.signature()
    if question.live or program.demands is not None or program.loaded or program.sizes or m.closures or m.gears:
        raise CannotLoop("live parameters, external forces and closures need the unrolled form")
    passes = []
    for sweep in program.sweeps:
        if sweep.direction == AT_ONCE or callable(sweep.start):
            raise CannotLoop("a sweep looks at all links at once")
        passes.append(Pass(sweep.step, sweep.direction == INWARD, sweep.start))
    slices = {n: [link.q if n in POSITIONS else link.v for link in m.links] for n, _ in inputs}
    places = {n: [s.start for s in found] for n, found in slices.items()}
    counts = {n: [s.stop - s.start for s in found] for n, found in slices.items()}
    tree = Tree([anonymous(x) for x in m.links], m.parents, places, counts, dict(inputs), units_of)
    return looped(question.name, inputs, shape, tree, passes, lambda here: program.result(m, here, Values()), Values)


def unrolled_plan(question: Question) -> Plan:
    """Steps traced link by link."""
    inputs, shape = question.signature()

    def compute(x):
        answer, demands = question.compute(x)
        return answer, list(unit_conditions(question.model, x)), [a < b for a, b in demands]

    return unrolled(question.name, inputs, shape, compute)
