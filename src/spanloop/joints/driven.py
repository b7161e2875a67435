"""A closure whose free motion is given: its own rows, and one more for each DoF. A driven loop becomes one."""

from __future__ import annotations

from dataclasses import dataclass, field

from spanloop.joints.fixed import Fixed
from spanloop.joints.kind import ClosureKind, JointKind
from spanloop.math.spatial import Force, Transform
from spanloop.math.symmetric import inverse
from spanloop.math.vector3 import dot


@dataclass(frozen=True)
class DrivenClosure(ClosureKind):
    """Rows of the joint `of`, then rows along its motion space, each of which measures one rate."""

    of: JointKind = field(default_factory=Fixed)

    name = "driven closure"

    @property
    def constant_space(self) -> bool:  # type: ignore[override]
        return self.of.constant_space

    def row_names(self) -> dict[int, str]:
        """Its joint's own; a DoF whose direction turns with the state goes by its number."""
        n, turning = len(self.of.closure_space(self.of.closing_pose())), not self.of.constant_space
        driving = {n + k: f"drive of DoF {k}" for k in range(self.of.nv)} if turning else {}
        return {**self.of.row_names(), **driving}

    def closing_pose(self) -> Transform:
        return self.of.closing_pose()

    def captured_pose(self, x: Transform) -> Transform:
        return self.of.captured_pose(x)

    def closure_space(self, x):
        columns = [tuple(s) for s in self.of.closure_motion(x)]
        measures = tuple(Force.of([dot(row, e) for e in zip(*columns, strict=True)]) for row in self._inverse_gram())
        return self.of.closure_space(x) + measures

    def closure_space_rate(self, x, relative):
        turning = self.of.closure_motion_rate(x, relative)
        return self.of.closure_space_rate(x, relative) + tuple(dot(row, turning) for row in self._inverse_gram())

    def _inverse_gram(self) -> list[list[float]]:
        """(φᵀφ)⁻¹, so that φ (φᵀφ)⁻¹ measures the rates; a constant, since angles between axes are."""
        columns = [tuple(s) for s in self.of.closure_motion(self.of.closing_pose())]
        gram = [[dot(s, t) for t in columns] for s in columns]
        return [[0.0 if abs(e) < 1e-15 else e for e in row] for row in inverse(gram)]

    def closure_error(self, x):
        return self.of.closure_error(x) + (None,) * len(self.of.closure_motion(x))
