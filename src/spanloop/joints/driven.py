"""A closure whose free motion is given: its own rows, and one more for each freedom. Made of a loop that is driven."""

from __future__ import annotations

from dataclasses import dataclass, field

from spanloop.joints.fixed import Fixed
from spanloop.joints.kind import ClosureKind, JointKind
from spanloop.math.small import dot
from spanloop.math.spatial import Force, Transform


@dataclass(frozen=True)
class DrivenClosure(ClosureKind):
    """Rows of the joint `of`, then rows along its motion space, each of which measures one rate."""

    of: JointKind = field(default_factory=Fixed)

    name = "driven closure"

    @property
    def constant_space(self) -> bool:  # type: ignore[override]
        return self.of.constant_space

    def closing_pose(self) -> Transform:
        return self.of.closing_pose()

    def closure_space(self, x):
        along = self.of.closure_motion(x)
        measures = tuple(Force.of([e / dot(tuple(s), tuple(s)) for e in s]) for s in along)
        return self.of.closure_space(x) + measures

    def closure_space_rate(self, x, relative):
        return self.of.closure_space_rate(x, relative) + self.of.closure_motion_rate(x, relative)

    def closure_error(self, x):
        return self.of.closure_error(x) + (None,) * len(self.of.closure_motion(x))
