"""From a computation to a Plan: operations in order, which every target renders."""

from spanloop.compiler.lower.phases import Division, Part, PhasedPlan, in_phases
from spanloop.compiler.lower.plan import Operations, Plan, traced_inputs, unrolled, with_demands_in_output
from spanloop.compiler.lower.rolled import CannotLoop, Looped, Pass, Tree, looped
from spanloop.compiler.lower.schedule import Call, Log, Repeat, Schedule, When

__all__ = [
    "Call",
    "CannotLoop",
    "Division",
    "Log",
    "Looped",
    "Operations",
    "Part",
    "Pass",
    "PhasedPlan",
    "Plan",
    "Repeat",
    "Schedule",
    "Tree",
    "When",
    "in_phases",
    "looped",
    "traced_inputs",
    "unrolled",
    "with_demands_in_output",
]
