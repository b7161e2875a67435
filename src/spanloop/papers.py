"""`sl.papers`: quantities that one paper defines, as functions of a Dynamics.

| function | paper |
|---|---|
| inertia_factors, convective_inertia | Saha, eq. 16 and 18 |
| parallel_complement, actuated_inverse_dynamics | Saha, section 3 |
| constraint_forces | Yamane & Nakamura |
| grasp_velocities, grasp_accelerations | Kreutz & Rodriguez |
| flexible_chain, FlexibleChain, FlexibleLink | Rodriguez, Jain & Kreutz, section 4 |

Arguments have the shapes and units of Dynamics: q (..., nq), v, a, tau (..., nv), forces {"body": (..., 6)}, out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.algorithms.closed.redundancy import Redundancy
from spanloop.algorithms.papers.rodriguez_jain_kreutz.chain_links import chain_of
from spanloop.algorithms.papers.rodriguez_jain_kreutz.flexible_chain import FlexibleChain, FlexibleLink
from spanloop.algorithms.papers.saha import parallel_legs, parallel_matrices
from spanloop.algorithms.papers.saha.legs import NotLegs, legs_with
from spanloop.compiler.runtime.arrays import converted
from spanloop.dynamics import Dynamics
from spanloop.dynamics.robot_arguments import robot_of
from spanloop.errors import StateError, UnsupportedError
from spanloop.kernels import redundancy_of
from spanloop.kernels.state_refusals import refuse_flexible
from spanloop.loops.arguments import dof_names, external_forces
from spanloop.loops.batching import one_state
from spanloop.loops.closure_errors import mechanism_of
from spanloop.loops.motion_refusals import open_loops
from spanloop.math.spatial import Motion
from spanloop.model import Model
from spanloop.sweeps import walked
from spanloop.topology import Mechanism
from spanloop.types import Array

__all__ = [
    "Complement",
    "FlexibleChain",
    "FlexibleLink",
    "actuated_inverse_dynamics",
    "constraint_forces",
    "convective_inertia",
    "flexible_chain",
    "grasp_accelerations",
    "grasp_velocities",
    "inertia_factors",
    "parallel_complement",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def inertia_factors(robot: Dynamics, q: ArrayLike) -> tuple[Array, Array]:
    """Return U and D (..., nv, nv) with M = U D Uᵀ: U unit upper triangular, D diagonal. [Saha, eq. 18]

    >>> import numpy as np, spanloop as sl
    >>> robot = sl.Dynamics(sl.zoo.puma())
    >>> U, D = sl.papers.inertia_factors(robot, robot.model.neutral())
    >>> bool(np.allclose(U @ D @ U.T, robot.mass_matrix(robot.model.neutral())))
    True
    """
    both = _evaluated(robot, "inertia_factors", (q,))
    return both[..., 0, :, :], both[..., 1, :, :]


def convective_inertia(robot: Dynamics, q: ArrayLike, v: ArrayLike, *, out: Array | None = None) -> Array:
    """Return C (..., nv, nv): C v is the bias torque without gravity, dampers and springs. [Saha, eq. 16]

    >>> robot = sl.Dynamics(sl.zoo.puma().with_gravity((0, 0, 0)))
    >>> q, v = robot.model.random_state(seed=1)
    >>> bool(np.allclose(sl.papers.convective_inertia(robot, q, v) @ v, robot.bias(q, v)))
    True
    """
    return _evaluated(robot, "convective_inertia", (q, v), out)


def actuated_inverse_dynamics(
    robot: Dynamics,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    *,
    out: Array | None = None,
    forces: Mapping[str, ArrayLike] | None = None,
) -> Array:
    """Return the torques (..., n) of the n actuated DoF of legs on one platform. [Saha, section 3]

    Only the actuated entries of a are read; the other accelerations follow inside the kernel.

    >>> robot, q = sl.Dynamics(sl.zoo.five_bar()), sl.zoo.five_bar_start()
    >>> sl.papers.actuated_inverse_dynamics(robot, q, np.zeros(4), np.zeros(4)).shape
    (2,)
    """
    return _evaluated(robot, "actuated_inverse_dynamics", (q, v, a), out, forces)


def constraint_forces(
    robot: Dynamics,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    *,
    out: Array | None = None,
    forces: Mapping[str, ArrayLike] | None = None,
) -> Array:
    """Return [torque; force] (..., n_joints, 6) of every joint's constraint on its child, of trees. [Yamane & Nakamura]

    At the child's origin in world axes, without the joint's own torque, which robot.reactions includes.

    >>> robot = sl.Dynamics(sl.zoo.puma())
    >>> sl.papers.constraint_forces(robot, robot.model.neutral(), np.zeros(6), np.zeros(6)).shape
    (6, 6)
    """
    return _evaluated(robot, "constraint_forces", (q, v, tau), out, forces)


def grasp_velocities(robot: Dynamics, q: ArrayLike, v: ArrayLike, *, out: Array | None = None) -> Array:
    """Return W (..., n): rates along the DoF of the loops, of body b on body a, in the loops' order.

    >>> robot, q = sl.Dynamics(sl.zoo.four_bar()), sl.zoo.four_bar_start()
    >>> sl.papers.grasp_velocities(robot, q, robot.complete_velocity(q, [1.0])).shape  # of the hinge that closes it
    (1,)
    """
    nv = robot_of(robot, "grasp_velocities").model.nv
    rates = converted("grasp_velocities", "v", nv, v, robot.kernel("grasp_accelerations").dtype)
    return _evaluated(robot, "grasp_accelerations", (q, np.zeros(nv), rates), out)  # Ẇ = J a + γ, γ = 0 at rest: J v


def grasp_accelerations(
    robot: Dynamics, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, out: Array | None = None
) -> Array:
    """Return Ẇ (..., n): accelerations along the DoF of the loops, of body b on body a, in the loops' order.

    >>> robot, q = sl.Dynamics(sl.zoo.four_bar()), sl.zoo.four_bar_start()
    >>> sl.papers.grasp_accelerations(robot, q, np.zeros(3), np.zeros(3))
    array([0.])
    """
    return _evaluated(robot, "grasp_accelerations", (q, v, a), out)


def flexible_chain(robot: Dynamics, q: ArrayLike) -> FlexibleChain:
    """Return the links of a tree as finite-element models, and their operators. [Rodriguez, Jain & Kreutz, section 4]

    q (nq,): modal coordinates must be zero, as the paper's equations are those of undeformed links. Displacements of
    all nodes of beams are degrees of freedom; rigid bodies are links of one node. chain.links have m_k, K_k, B_k, h_k
    as arrays; chain.m, B, C, h, H, phi: block matrices. chain.mass_matrix() is ℳᶠ for X = (β, u), rates of joints
    and of displacements; chain.shapes is X for unit rates v of the model, so that M = shapesᵀ ℳᶠ shapes.

    >>> b = sl.Builder("arm").body("boom", flexible=sl.flexible.beam(2.0, 7e10, 2700.0, sl.flexible.tube(0.05, 0.002)))
    >>> robot = sl.Dynamics(b.revolute("shoulder", "world", "boom", "z").build())
    >>> q = robot.model.neutral()
    >>> chain = sl.papers.flexible_chain(robot, q)
    >>> chain.links[0].m.shape  # 30 elements: 61 nodes at their ends and middles
    (366, 366)
    >>> bool(np.allclose(chain.shapes.T @ chain.mass_matrix() @ chain.shapes, robot.mass_matrix(q), rtol=1e-12))
    True
    """
    return chain_of(robot_of(robot, "flexible_chain").model, one_state("flexible_chain", robot, q))


def _evaluated(
    robot: Dynamics,
    function: str,
    inputs: tuple[Any, ...],
    out: Array | None = None,
    forces: Mapping[str, ArrayLike] | None = None,
) -> Array:
    robot_of(robot, function)
    names, rows = external_forces(robot.model, function, {} if forces is None else forces)
    if names:
        result: Array = robot.kernel(function, forces=names).evaluate(*inputs, rows, out=out)
    else:
        result = robot.kernel(function).evaluate(*inputs, out=out)
    return result


@dataclass(frozen=True, eq=False)
class Complement:
    """t = N_l N_c N_d θ̇: twists (6b,) of the bodies of all legs for the rates (n,) of the actuated joints.

    Each block of six rows is [angular; linear] velocity of a body at its origin, in its own axes.

    bodies: the b blocks, leg by leg from the world outward, the platform last. A joint of several DoF has a block
    for each; all but its last carry the DoF's name ("ball[0]"): massless bodies between. Where a leg carries the
    platform, its own last block carries the joint's name, and moves as the platform.
    joints: the n columns. M (6b, 6b): inertias of the blocks, with what is fixed to each body. I = Nᵀ M N.
    """

    model: str
    N_l: np.ndarray = field(repr=False)  # (6b, 6b), unit lower triangular
    N_c: np.ndarray = field(repr=False)  # (6b, 6n)
    N_d: np.ndarray = field(repr=False)  # (6n, n)
    M: np.ndarray = field(repr=False)
    bodies: tuple[str, ...]
    joints: tuple[str, ...]

    @property
    def N(self) -> np.ndarray:
        """(6b, n): the product of the three."""
        product: Array = self.N_l @ self.N_c @ self.N_d
        return product

    def twists(self, rates: ArrayLike) -> dict[str, np.ndarray]:
        """[angular; linear] velocity (6,) of every body at its origin, in its own axes, for rates (n,)."""
        t = (self.N @ np.asarray(rates, dtype=float)).reshape(-1, 6)
        return dict(zip(self.bodies, t, strict=True))

    def __str__(self) -> str:
        shapes = ", ".join(f"{name} {x.shape}" for name, x in (("N_l", self.N_l), ("N_c", self.N_c), ("N_d", self.N_d)))
        lines = [
            f"{self.model}: twists of {len(self.bodies)} bodies for the rates of {', '.join(self.joints)}.",
            f"t = N_l N_c N_d θ̇; {shapes}. Blocks: 1 unit, x full, . zero.",
        ]
        width = max(map(len, (*self.bodies, "body")))
        b, n = len(self.bodies), len(self.joints)
        lines.append(f"{'body':{width}}  {'N_l':{b}}  N_c")
        for k, name in enumerate(self.bodies):
            lines.append(f"{name:{width}}  {_picture(self.N_l, k, b)}  {_picture(self.N_c, k, n)}")
        return "\n".join(lines)


def parallel_complement(robot: Dynamics, q: ArrayLike) -> Complement:
    """Return N_l, N_c, N_d at one state q (nq,) of legs on one platform, whatever the robot's method. [Saha, eq. 30-32]

    UnsupportedError: the mechanism is not legs on one platform, or its actuators do not fit. StateError: a loop is
    open, or the position is singular.

    >>> robot, q = sl.Dynamics(sl.zoo.five_bar()), sl.zoo.five_bar_start()
    >>> sl.papers.parallel_complement(robot, q).joints
    ('drive1', 'drive2')
    """
    # algorithms/papers/saha/parallel_matrices.py has the formulas, in the axes of links
    state = one_state("parallel_complement", robot_of(robot, "parallel_complement"), q)
    refuse_flexible(robot.model, "parallel_complement", "robot.complete_velocity(q, rates)")
    m = mechanism_of(robot.model)
    if not m.closures:
        raise UnsupportedError(
            f"parallel_complement: model {robot.model.name!r} has no loops. N_l and N_d of a tree: "
            "spanloop.algorithms.papers.saha.complement_matrices.decoupled_matrices(mechanism, q)"
        )
    redundancy = redundancy_of(robot.model, state)
    try:
        legs_with(m, redundancy)
    except NotLegs as error:
        raise UnsupportedError(f"parallel_complement is for legs on one platform: {error.why}{error.advice}") from None
    refusals = open_loops(robot, state[None])
    if refusals:
        raise StateError.of("parallel_complement", refusals[0])
    if not _regular(m, redundancy, state):
        raise StateError.of("parallel_complement", parallel_legs.SINGULAR)
    return _by_names(robot.model, m, parallel_matrices.parallel_complement(m, state))


def _regular(m: Mechanism, redundancy: Redundancy, q: np.ndarray) -> bool:
    """Whether the method's own conditions hold."""
    program = parallel_legs.inverse_dynamics(m, (), redundancy)
    still = [0.0] * m.nv
    try:
        _, demands = walked(program, m, {"q": q.tolist(), "v": still, "a": still})
    except (ZeroDivisionError, OverflowError):
        return False
    return all(a < b for a, b in demands)


def _by_names(model: Model, m: Mechanism, matrices: Any) -> Complement:
    """Link axes become body axes: N_l → X N_l X⁻¹, N_c → X N_c Y⁻¹, N_d → Y N_d, with Y the actuated blocks of X."""
    carried = {j.name: j.child for j in model.joints}
    bodies = [carried[link.name] for link in m.links]
    dofs, last = dof_names(model), {link: k for k, link in enumerate(matrices.links)}
    names, places = [], {}  # of blocks; the block of each DoF of the legs
    for k, link in enumerate(matrices.links[:-1]):
        dof = m.links[link].v.start + matrices.links[:k].count(link)
        places[dof] = k
        names.append(bodies[link] if k == last[link] else dofs[dof])
    names.append(bodies[matrices.links[-1]])
    turns = [_seen(m.anchors[bodies[link]]) for link in matrices.links]
    backs = [np.linalg.inv(x) for x in turns]
    chosen = [places[f] for f in matrices.actuated]
    masses = [
        backs[k].T @ _inertia(m.links[link]) @ backs[k] if k == last[link] else np.zeros((6, 6))
        for k, link in enumerate(matrices.links)
    ]
    return Complement(
        model.name,
        _turned(matrices.N_l, turns, turns),
        _turned(matrices.N_c, turns, [turns[k] for k in chosen]),
        _diagonal([turns[k] for k in chosen]) @ matrices.N_d,
        _diagonal(masses),
        tuple(names),
        tuple(dofs[f] for f in matrices.actuated),
    )


def _turned(matrix: np.ndarray, left: list[np.ndarray], right: list[np.ndarray]) -> np.ndarray:
    """Blocks X_i B X_j⁻¹; a unit block from a frame to itself stays one to the last digit."""
    out = np.zeros_like(matrix)
    for i, x in enumerate(left):
        for j, y in enumerate(right):
            here = np.s_[6 * i : 6 * i + 6, 6 * j : 6 * j + 6]
            same = np.array_equal(x, y) and np.array_equal(matrix[here], np.eye(6))
            out[here] = np.eye(6) if same else x @ matrix[here] @ np.linalg.inv(y)
    return out


def _seen(anchor: Any) -> np.ndarray:
    """(6, 6): a link's twist, as that of a body fixed to it."""
    turn, (x, y, z) = np.array(anchor.rotation).T, anchor.position
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.block([[turn, np.zeros((3, 3))], [-turn @ cross, turn]])


def _inertia(link: Any) -> np.ndarray:
    """(6, 6), in the link's axes."""
    return np.array([tuple(link.inertia @ Motion.of(e)) for e in np.eye(6).tolist()], dtype=float).T


def _diagonal(blocks: list[np.ndarray]) -> np.ndarray:
    out = np.zeros((6 * len(blocks), 6 * len(blocks)))
    for k, block in enumerate(blocks):
        out[6 * k : 6 * k + 6, 6 * k : 6 * k + 6] = block
    return out


def _picture(matrix: np.ndarray, row: int, columns: int) -> str:
    """A letter for each block of a row of blocks."""
    blocks = [matrix[6 * row : 6 * row + 6, 6 * k : 6 * k + 6] for k in range(columns)]
    return "".join("." if not x.any() else "1" if np.array_equal(x, np.eye(6)) else "x" for x in blocks)
