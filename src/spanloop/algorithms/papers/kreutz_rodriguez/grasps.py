"""Several arms that hold one object: their grasps, and the accelerations along the DoFs that these leave.

[Kreutz & Rodriguez, sections 2 and 4, appendices A and B]. The object floats and carries no other body; every closure
joins it to a link of an arm. An arm is a tree on the world, or on a base whose motion is given, and holds the object
once. Grasps may be of any kind of closure.

    α⁻(0) = α⁺(0) + Hᵀ(0) Ẇ(0) + Ḣᵀ(0) W(0),        Ẇ(0) = (H Hᵀ)⁻¹ H (α⁻ − α⁺ − Ḣᵀ W)     (a.8)

| here | paper | shape | meaning | frame |
|---|---|---|---|---|
| K, A | φᶜ | Force by row | force of a unit contact force on the arm's last link, on the object | link |
| motion | Hᵀ(0) | columns | motion space of a closure: a hinge 1, a soft finger 2, a ball 3 | child frame |
| J, γ | – | rows × nv, rows | Ẇ = J a + γ: rows of Jacobian and bias that measure the DoFs of the closure | |

Departure: Ẇ(0) follows from the accelerations of the joints, whichever method they come from, instead of b.6a, which
needs Ω⁻¹ where Ω may have none.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from spanloop.algorithms.closed import closure_kinematics
from spanloop.algorithms.closed.closure_rows import KeptRows, known_rows
from spanloop.errors import UnsupportedError
from spanloop.joints import JointKind
from spanloop.joints.fixed import Fixed
from spanloop.joints.kind import EX, EY, ClosureKind
from spanloop.math.spatial import Force, Motion, Transform, dual_basis
from spanloop.math.symmetric import apply, inverse
from spanloop.math.vector3 import dot
from spanloop.sweeps import Program
from spanloop.types import Scalar


@dataclass(frozen=True)
class Arm:
    """A tree of links, its base first, and the link that holds the object through a closure."""

    links: tuple[int, ...]
    base: tuple[int, ...]  # links under it whose motion is given
    tip: int
    closure: int


@dataclass(frozen=True)
class Grasps:
    """The object's link, and the arms."""

    body: int
    arms: tuple[Arm, ...]


@dataclass(frozen=True)
class Contact:
    """A row of a grasp: its force acts as K on the arm's last link and as A on the object."""

    row: int
    tip: int
    K: Force
    A: Force
    gamma: Scalar  # known acceleration along it
    mask: Scalar


def grasps(mechanism, method: str) -> Grasps:
    """The arms and the object of a mechanism; otherwise an UnsupportedError gives the reason."""
    links, closures = mechanism.links, mechanism.closures

    def refused(reason: str) -> UnsupportedError:
        return UnsupportedError(
            f"method {method!r} needs one free body that every closure joins to an arm of its own; {reason}. "
            "Use 'elimination'"
        )

    if mechanism.gears:
        raise refused(f"joints are coupled ({mechanism.gears[0].name!r})")
    free = [k.number for k in links if k.floats and k.kind.name == "free"]
    bodies = [i for i in free if all(i in (c.a.link, c.b.link) for c in closures)]
    if not bodies or not closures:
        raise refused("there is none here")
    body = bodies[0]
    if body in mechanism.parents:
        raise refused(f"the body on joint {links[body].name!r} carries others")
    base: dict[int, tuple[int, ...]] = {-1: ()}  # of links whose motion is given: those under it, and itself
    root: dict[int, int] = {}
    for k in links:
        if k.number == body:
            continue
        if k.driven and k.parent in base:
            base[k.number] = (*base[k.parent], k.number)
        else:
            root[k.number] = k.number if k.parent in base else root[k.parent]
    arms: list[Arm] = []
    for c in closures:
        tip = c.b.link if c.a.link == body else c.a.link
        if tip not in root:
            raise refused(f"loop {c.name!r} joins it to a body whose motion is given")
        mine = tuple(i for i in root if root[i] == root[tip])
        if any(mine == arm.links for arm in arms):
            raise refused(f"the arm of loop {c.name!r} holds it twice")
        arms.append(Arm(mine, base[links[root[tip]].parent], tip, c.number))
    return Grasps(body, tuple(arms))


def contacts(m, here, world, g: Grasps, kept: KeptRows) -> list[list[Contact]]:
    """Rows of every grasp: H(0) f = 0 leaves the forces along φᶜ.                   (a.7)"""
    masks = closure_kinematics.masks(m, world)
    out = []
    for arm in g.arms:
        c = m.closures[arm.closure]
        rows = []
        for row, gamma in known_rows(m, here, world, c, kept):
            K, A = (row.on_b, row.on_a) if c.a.link == g.body else (row.on_a, row.on_b)
            rows.append(Contact(row.number, arm.tip, K, A, gamma, masks.get(row.number, 1.0)))
        out.append(rows)
    return out


# ---- Ẇ(0)


_ROLLING = {"soft_finger": (Motion(EX), Motion(EY))}  # of kinds that only close loops


def grasp_accelerations(mechanism) -> Program:
    """Ẇ(0) for given q (nq,), v (nv,), a (nv,): along the DoFs of all closures in turn, of the child frame
    relative to the parent frame.

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
    jacobian, bias = closure_kinematics.closure_jacobian(other), closure_kinematics.closure_bias(other)

    def result(m, here, world) -> list:
        J, gamma = jacobian.result(other, here, world), bias.result(other, here, world)
        a = [x for h in here for x in h.a]
        return [dot(J[r * other.nv : (r + 1) * other.nv], a) + gamma[r] for r in range(row)]

    return Program("grasp_accelerations", ("q", "v", "a"), bias.sweeps, result, (row,))


def motion(kind: JointKind, x: Transform) -> tuple[Motion, ...]:
    """Motion space of a closure; of a driven one, its own DoFs."""
    if kind.name in _ROLLING:
        return _ROLLING[kind.name]
    inner = getattr(kind, "of", kind)
    return inner.closure_motion(x) if inner.carries else ()


@dataclass(frozen=True)
class Measured(ClosureKind):
    """Rows that measure the DoFs of the joint `of` and constrain none."""

    of: JointKind = field(default_factory=Fixed)

    name = "measured closure"
    constant_space = False

    def closing_pose(self) -> Transform:
        return self.of.closing_pose()

    def closure_space(self, x):
        return dual_basis(motion(self.of, x))

    def closure_space_rate(self, x, relative):
        inner, S = getattr(self.of, "of", self.of), motion(self.of, x)
        if not inner.carries:
            return (0.0,) * len(S)
        gram = [[dot(tuple(s), tuple(t)) for t in S] for s in S]  # constant: angles between axes are
        return apply(inverse(gram), inner.closure_motion_rate(x, relative))

    def closure_error(self, x):
        return (None,) * len(motion(self.of, x))
