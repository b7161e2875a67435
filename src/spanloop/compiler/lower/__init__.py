"""From a computation to a Plan: the ordered tape that every target renders."""

from spanloop.compiler.lower.looping import CannotLoop, Looped, Pass, Tree, looped
from spanloop.compiler.lower.partition import Part, Parted, parted
from spanloop.compiler.lower.plan import Operations, Plan
from spanloop.compiler.lower.schedule import Call, Repeat, Schedule
from spanloop.compiler.lower.unrolled import poisoned, unrolled

__all__ = [
    "Call",
    "CannotLoop",
    "Looped",
    "Operations",
    "Part",
    "Parted",
    "Pass",
    "Plan",
    "Repeat",
    "Schedule",
    "Tree",
    "looped",
    "parted",
    "poisoned",
    "unrolled",
]
