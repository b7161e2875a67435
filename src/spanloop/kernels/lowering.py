"""From a spec to a Plan: every link's operations unrolled, or each class of links traced once and looped over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from spanloop.compiler.lower import CannotLoop, Looped, Part, Pass, Plan, Tree, looped, traced_inputs
from spanloop.errors import InputError, UnsupportedError, listed
from spanloop.math.vector3 import dot
from spanloop.model import Model
from spanloop.model.parameters import NEGLIGIBLE, not_negative, proportions
from spanloop.sweeps import Values
from spanloop.sweeps.program import AT_ONCE, INWARD, Program
from spanloop.sweeps.tested_pivots import PivotTest
from spanloop.topology.mechanism import AnonymousLink, Mechanism, mechanism
from spanloop.topology.partition import parts_of

if TYPE_CHECKING:
    from spanloop.kernels.spec import KernelSpec

LOOP_THRESHOLD = 48  # links beyond which lowering="auto" loops
UNIT_TOLERANCE = 1e-6  # of the length of a quaternion
POSITIONS = ("q", "start")  # inputs that hold coordinates


def unrolled_plan(spec: KernelSpec) -> Plan:
    """The plan with the operations of every link written out."""
    inputs, shape = spec.signature()
    traced = traced_inputs(inputs)
    answer, demands = spec.compute(traced)
    guards = [*unit_conditions(spec.model, traced), *parameter_conditions(spec.model, spec.with_all_parameters(traced))]
    guards = [g for g in guards if not isinstance(g, bool)]  # of numbers that do not vary
    return Plan.of(spec.name, traced, shape, answer, guards, [a < b for a, b in demands])


def looped_plan(spec: KernelSpec) -> Looped:
    """The plan with each step traced once for each class of links; CannotLoop where that is impossible."""
    m, program = spec.program
    inputs, shape = spec.signature()
    for reason in _needs_unrolled(spec, m, program):
        raise CannotLoop(reason)
    passes = []
    for sweep in program.sweeps:
        if sweep.direction == AT_ONCE or callable(sweep.start):
            raise CannotLoop("a sweep reads all links at once")
        passes.append(Pass(sweep.step, sweep.direction == INWARD, sweep.start))
    slices = {n: [link.q if n in POSITIONS else link.v for link in m.links] for n, _ in inputs}
    places = {n: [s.start for s in found] for n, found in slices.items()}
    counts = {n: [s.stop - s.start for s in found] for n, found in slices.items()}
    tree = Tree([x.anonymous() for x in m.links], m.parents, places, counts, dict(inputs), _link_conditions)
    return looped(spec.name, inputs, shape, tree, passes, lambda here: program.result(m, here, Values()), Values)


def _needs_unrolled(spec: KernelSpec, m: Mechanism, program: Program) -> Iterator[str]:
    """Why only unrolled code can compute this function of this model, the most telling reason first."""
    bends = next((link.name for link in m.links if link.kind.bends), None)
    if bends is not None:
        yield f"{bends!r} are modes of a flexible body, which need the unrolled form"
    if spec.live:
        yield "live parameters need the unrolled form"
    if m.closures or m.gears:
        yield "loops and couplings need the unrolled form"
    if program.loaded:
        yield "external forces need the unrolled form"
    if program.sizes:
        yield f"inputs that belong to no joint ({listed(program.sizes)}) need the unrolled form"
    if program.demands is not None:
        tested = listed((repr(m.links[i].name) for i in PivotTest(m).noise), 3)
        yield (
            f"pivots are tested in every state (joints: {tested}), which needs the unrolled form: the inertia of a "
            "joint's own link may be too little beside all that the joint carries. Limits of slides that have none, "
            "then more inertia of these links or armature of these joints, can make the tests unnecessary"
        )


# ---- conditions on inputs: quaternions have length 1, masses are not negative


def unit_conditions(model: Model, inputs: Mapping[str, Sequence[Any]]) -> Iterator[Any]:
    """The conditions on the coordinates of all joints."""
    for name in POSITIONS:
        for joint in model.joints if name in inputs else ():
            for part in joint.kind.unit_parts(tuple(inputs[name][model.q_slice(joint.name)])):
                yield _is_unit(part)


def parameter_conditions(model: Model, inputs: Mapping[str, Sequence[Any]]) -> Iterator[Any]:
    """The conditions on live parameters: masses, moments of inertia and losses are not negative, and more."""
    if "parameters" in inputs:
        for _, x in not_negative(model, inputs["parameters"]):
            yield x > -NEGLIGIBLE
        for _, x in proportions(model, inputs["parameters"]):
            yield x > -NEGLIGIBLE


def _link_conditions(link: AnonymousLink, inputs: Mapping[str, Sequence[Any]]) -> list[Any]:
    """The conditions on the coordinates of one link."""
    return [_is_unit(part) for n in POSITIONS if n in inputs for part in link.kind.unit_parts(tuple(inputs[n]))]


def _is_unit(part: Sequence[Any]) -> Any:
    square = dot(part, part)  # as rotations have it: no product is used twice, so that all targets round alike
    return (square < 1.0 + 2.0 * UNIT_TOLERANCE) & (square > 1.0 - 2.0 * UNIT_TOLERANCE)


# ---- parts for the threads of one state


def chain_parts(spec: KernelSpec) -> list[Part]:
    """For each chain of the mechanism (arm, leg, limb) its entries of the inputs and of the answer."""
    inputs, shape = spec.signature()
    if shape != (spec.model.nv,):
        raise InputError(f"{spec.name}: chain_threads is for functions that return one number per degree of freedom")
    m = mechanism(spec.model)
    found = parts_of(m)
    if not found:
        raise UnsupportedError(
            f"{spec.name}: chain_threads computes chains in parallel (arms on an object, legs, limbs); "
            f"model {spec.model.name!r} is one chain. Leave it out; for a batch there is threads="
        )
    starts = dict(zip((n for n, _ in inputs), accumulate((k for _, k in inputs), initial=0), strict=False))
    own = {"q": [x.q for x in m.links]} | {n: [x.v for x in m.links] for n in ("v", "a", "tau")}
    return [
        Part(
            frozenset(starts[n] + k for n in own if n in starts for i in part for k in _range(own[n][i])),
            frozenset(k for i in part for k in _range(m.links[i].v)),
        )
        for part in found
    ]


def _range(s: slice) -> range:
    return range(s.start, s.stop)
