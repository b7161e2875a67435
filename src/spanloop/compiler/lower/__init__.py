"""From a computation to a Plan: the ordered tape that every target renders."""

from spanloop.compiler.lower.plan import Operations, Plan
from spanloop.compiler.lower.unrolled import unrolled

__all__ = ["Operations", "Plan", "unrolled"]
