"""Looped lowering: every step of a walk over a tree is traced once for each class of links, and loops visit the links.

Links are of one class if all that distinguishes them are numbers. Numbers that differ become data; equal ones are baked
in. What a step keeps at a link is written into the link's record; what it takes from its parent, or gets from its
children, has one layout for all classes: the interface. Which entries of an interface are constants or equal to
each other is found by assuming the most and taking back what a trace refutes, until nothing changes.

Nothing here knows what the links are: steps are functions, links are values that can be taken apart.
"""

from spanloop.compiler.lower.rolled.calls import LoopedCalls
from spanloop.compiler.lower.rolled.ir import CannotLoop, Looped, Pass, Step, Tree
from spanloop.compiler.lower.rolled.lower import looped

__all__ = ["CannotLoop", "Looped", "LoopedCalls", "Pass", "Step", "Tree", "looped"]
