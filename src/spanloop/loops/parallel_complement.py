"""N_l, N_c and N_d of legs on one platform by names, checked as the method itself is. [Saha, eq. 30-32]

`algorithms/papers/saha/parallel_matrices.py` has formulas, in the axes of links; here each block is in the axes of a
body of the model, at its origin.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from spanloop.algorithms.closed.redundancy import Redundancy, find_redundancy
from spanloop.algorithms.papers.saha import parallel_legs, parallel_matrices
from spanloop.algorithms.papers.saha.legs import NotLegs, legs_with
from spanloop.errors import StateError, UnsupportedError
from spanloop.loops.batching import one_state
from spanloop.loops.checks import opened
from spanloop.loops.closure_errors import mechanism_of
from spanloop.loops.independent import freedom_names
from spanloop.math.spatial import Motion
from spanloop.sweeps import walked
from spanloop.topology import Mechanism


@dataclass(frozen=True, eq=False)
class Complement:
    """t = N_l N_c N_d θ̇: twists (6b,) of the bodies of all legs for the rates (n,) of the actuated joints.

    Each block of six rows is [angular; linear] velocity of a body at its origin, in its own axes.

    bodies: the b blocks, leg by leg from the world outward, the platform last. A joint of several freedoms has a block
    for each; all but its last carry the freedom's name ("ball[0]"): massless bodies between. Where a leg carries the
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
        return self.N_l @ self.N_c @ self.N_d

    def twists(self, rates) -> dict[str, np.ndarray]:
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


def parallel_complement(robot, q) -> Complement:
    """The Complement at q (nq,). UnsupportedError: these are no legs, or their actuators do not fit; StateError: a
    loop is open, or the position is singular."""
    q = one_state("parallel_complement", robot, q)
    m = mechanism_of(robot.model)
    if not m.closures:
        raise UnsupportedError(
            f"parallel_complement: model {robot.model.name!r} has no loops. N_l and N_d of a tree: "
            "spanloop.algorithms.papers.saha.complement_matrices.decoupled_matrices(mechanism, q)"
        )
    redundancy = find_redundancy(m)
    try:
        legs_with(m, redundancy)
    except NotLegs as error:
        raise UnsupportedError(f"parallel_complement is for legs on one platform: {error.why}{error.advice}") from None
    why = opened(robot, q[None])
    if why:
        raise StateError(f"parallel_complement: {why[0]}")
    if not _regular(m, redundancy, q):
        raise StateError.of("parallel_complement", parallel_legs.SINGULAR)
    return _by_names(robot.model, m, parallel_matrices.parallel_complement(m, q))


def _regular(m: Mechanism, redundancy: Redundancy, q: np.ndarray) -> bool:
    """Are the method's own demands met?"""
    program = parallel_legs.inverse_dynamics(m, (), redundancy)
    still = [0.0] * m.nv
    try:
        _, demands = walked(program, m, {"q": q.tolist(), "v": still, "a": still})
    except (ZeroDivisionError, OverflowError):
        return False
    return all(a < b for a, b in demands)


def _by_names(model, m: Mechanism, given) -> Complement:
    """Link axes become body axes: N_l → X N_l X⁻¹, N_c → X N_c Y⁻¹, N_d → Y N_d, with Y the actuated blocks of X."""
    carried = {j.name: j.child for j in model.joints}
    bodies = [carried[link.name] for link in m.links]
    freedoms, last = freedom_names(model), {link: k for k, link in enumerate(given.links)}
    names, places = [], {}  # of blocks; the block of each freedom of the legs
    for k, link in enumerate(given.links[:-1]):
        freedom = m.links[link].v.start + given.links[:k].count(link)
        places[freedom] = k
        names.append(bodies[link] if k == last[link] else freedoms[freedom])
    names.append(bodies[given.links[-1]])
    turns = [_seen(m.anchors[bodies[link]]) for link in given.links]
    backs = [np.linalg.inv(x) for x in turns]
    chosen = [places[f] for f in given.actuated]
    masses = [
        backs[k].T @ _inertia(m.links[link]) @ backs[k] if k == last[link] else np.zeros((6, 6))
        for k, link in enumerate(given.links)
    ]
    return Complement(
        model.name,
        _turned(given.N_l, turns, turns),
        _turned(given.N_c, turns, [turns[k] for k in chosen]),
        _diagonal([turns[k] for k in chosen]) @ given.N_d,
        _diagonal(masses),
        tuple(names),
        tuple(freedoms[f] for f in given.actuated),
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


def _seen(anchor) -> np.ndarray:
    """(6, 6): a link's twist, as that of a body fixed to it."""
    turn, (x, y, z) = np.array(anchor.rotation).T, anchor.position
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.block([[turn, np.zeros((3, 3))], [-turn @ cross, turn]])


def _inertia(link) -> np.ndarray:
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
