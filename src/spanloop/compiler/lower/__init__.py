"""From a computation to a Plan: operations in order, which every target renders."""

from spanloop.compiler.lower.pair_system import Addition, PairMatrix, PairSystem
from spanloop.compiler.lower.phases import Division, Part, PhasedPlan, in_phases
from spanloop.compiler.lower.plan import Operations, Plan, traced_inputs, unrolled, with_demands_in_output
from spanloop.compiler.lower.rolled import CannotLoop, Looped, LoopedCalls, Pass, Tree, looped
from spanloop.compiler.lower.schedule import Block, Call, For, Log, OneOf, Repeat, Schedule, When
from spanloop.compiler.lower.split import FACTORS, split
from spanloop.compiler.lower.stage import Stage

__all__ = [
    "FACTORS",
    "Addition",
    "Block",
    "Call",
    "CannotLoop",
    "Division",
    "For",
    "Log",
    "Looped",
    "LoopedCalls",
    "OneOf",
    "Operations",
    "PairMatrix",
    "PairSystem",
    "Part",
    "Pass",
    "PhasedPlan",
    "Plan",
    "Repeat",
    "Schedule",
    "Stage",
    "Tree",
    "When",
    "in_phases",
    "looped",
    "split",
    "traced_inputs",
    "unrolled",
    "with_demands_in_output",
]
