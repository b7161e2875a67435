"""Accelerations along the freedoms that closures leave: Ẇ(0). [Kreutz & Rodriguez, appendices A and B]

    α⁻(0) = α⁺(0) + Hᵀ(0) Ẇ(0) + Ḣᵀ(0) W(0),        Ẇ(0) = (H Hᵀ)⁻¹ H (α⁻ − α⁺ − Ḣᵀ W)     (a.8)

| here | paper | shape | meaning | frame |
|---|---|---|---|---|
| motion | Hᵀ(0) | columns | motion space of a closure: a hinge 1, a soft finger 2, a ball 3 | child frame |
| J, γ | – | rows × nv, rows | Ẇ = J a + γ: the rows of the closure's Jacobian and bias that measure its freedoms | |

Departure: Ẇ(0) follows from the accelerations of the joints, whichever method they come from, instead of b.6a, which
needs Ω⁻¹ where Ω may have none.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from spanloop.algorithms.closed import closing
from spanloop.algorithms.papers.closure_rows import dual
from spanloop.joints import JointKind
from spanloop.joints.fixed import Fixed
from spanloop.joints.kind import EX, EY, ClosureKind
from spanloop.math.small import dot
from spanloop.math.spatial import Motion, Transform
from spanloop.math.symmetric import apply, inverse
from spanloop.sweeps import Program

_ROLLING = {"soft_finger": (Motion(EX), Motion(EY))}  # of kinds that only close loops


def grasp_accelerations(mechanism) -> Program:
    """Ẇ(0) for given q (nq,), v (nv,), a (nv,): of all closures' freedoms in turn, of the child frame on the parent's.

    Closures that leave none, and rods, have no entry.
    """
    measured, row = [], 0
    for c in mechanism.closures:
        n = len(motion(c.kind, c.kind.closing_pose()))
        if n:
            rows = tuple(range(row, row + n))
            measured.append(replace(c, kind=Measured(of=c.kind), rows=rows, given=(), switchable=False))
            row += n
    other = replace(mechanism, closures=tuple(measured), gears=())
    jacobian, bias = closing.closure_jacobian(other), closing.closure_bias(other)

    def result(m, here, world) -> list:
        J, gamma = jacobian.result(other, here, world), bias.result(other, here, world)
        a = [x for h in here for x in h.a]
        return [dot(J[r * other.nv : (r + 1) * other.nv], a) + gamma[r] for r in range(row)]

    return Program("grasp_accelerations", ("q", "v", "a"), bias.sweeps, result, (row,))


def motion(kind: JointKind, x: Transform) -> tuple[Motion, ...]:
    """Motion space of a closure; a driven one's own freedoms."""
    if kind.name in _ROLLING:
        return _ROLLING[kind.name]
    inner = getattr(kind, "of", kind)
    return inner.closure_motion(x) if inner.carries else ()


@dataclass(frozen=True)
class Measured(ClosureKind):
    """Rows that measure the freedoms of the joint `of`, and hold nothing."""

    of: JointKind = field(default_factory=Fixed)

    name = "measured closure"
    constant_space = False

    def closing_pose(self) -> Transform:
        return self.of.closing_pose()

    def closure_space(self, x):
        return dual(motion(self.of, x))

    def closure_space_rate(self, x, relative):
        inner, S = getattr(self.of, "of", self.of), motion(self.of, x)
        if not inner.carries:
            return (0.0,) * len(S)
        gram = [[dot(tuple(s), tuple(t)) for t in S] for s in S]  # constant: angles between axes are
        return apply(inverse(gram), inner.closure_motion_rate(x, relative))

    def closure_error(self, x):
        return (None,) * len(motion(self.of, x))
