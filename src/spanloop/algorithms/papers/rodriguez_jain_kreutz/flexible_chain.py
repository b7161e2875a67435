"""Links that are finite-element models, with all nodes as degrees of freedom. [Rodriguez, Jain & Kreutz, section 4]

    V(k) = φ*(k+1, k) V(k+1) + H*(k) β(k) + C*_{k+1} h*_{k+1} u_{k+1}                                  (4.1, 4.2)
    V^f  = B* V + h* u = [1 + B* φ* C*] [B*H*  h*] X,    X = (β, u)                                    (4.3)
    ℳᶠ  = [HB; h] [1 + C φ B] m [1 + C φ B]* [HB; h]*                                                  (after 4.3)

B [1 + CφB] = φ B, since B C = ℰ_φ: no φ is missing before H. With N = [B; h], 𝓗 = diag(H, 1) and ℰ = N C [1 0] this is

    ℳᶠ  = 𝓗 Φ (N m N*) Φ* 𝓗*,    Φ = (1 − ℰ)⁻¹,

the mass matrix of section 2 with 6 + n numbers a link, so that all of section 3 holds for it: P, D, G, K, ψ,
ℳᶠ = [1 + 𝓗ΦK] D [1 + 𝓗ΦK]* and its inverse. That is the "similar techniques" to which the section refers.

| here | paper | shape | meaning |
|---|---|---|---|
| Q | Q_k(j) | (n_k, 3) | nodes of link k in its frame, the outermost first; the last is at O_k, on its joint |
| m, K | m_k, K_k | (6n_k, 6n_k) | mass and stiffness of the link that nothing holds |
| B | B_k | (6, 6n_k) | forces at all nodes seen at O_k |
| C | C_k | (6n_k, 6) | a force on the next link, seen at the node that carries it |
| h | h_k | (dofs, 6n_k) | rows of 1: which displacements of nodes are DoF; all but those of the last node |
| H | H(k) | (nv, 6) | joint; H* is its motion space |
| phi | φ | (6N, 6N) | forces at all links seen at those inboard |
| X | X = (β, u) | (β's, then u's) | rates of joints, rates of displacements |

Slips of the paper: u is a displacement and, in X, its rate; h_k is printed with the shape of h*_k; (4.1) has h*_k for
h*_{k+1}, (4.2) 6n_k columns for 6n_{k+1}; nodes lie on one element with O_{k−1} and O_k, printed Q_{k−1} and Q_k; X is
(u, β) where ℳᶠ has the rows of β first. Departures: links count from base to tip, and C is block upper triangular; the
next link may be carried by any node, and a node may carry several; blocks are in link axes. D contains the armature.
A rigid link has one node. As in the paper velocities are linear in u: the geometry is that of undeformed links.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from spanloop.errors import InputError


@dataclass(frozen=True, eq=False)
class FlexibleLink:
    """A link: its nodes and matrices, its joint, and the node that carries it (parent −1: the world).

    rotation (3, 3), position (3,): of the link's frame, at O_k, in the axes and at the place of the node that carries
    it, or in the world. freedoms: which of the 6 n_k displacements may differ from zero; by default all but the last
    node's, as in the paper. armature (nv,): of the joint's motors [kg m² or kg].
    """

    name: str
    Q: np.ndarray = field(repr=False)
    m: np.ndarray = field(repr=False)
    K: np.ndarray = field(repr=False)
    H: np.ndarray = field(repr=False)
    parent: int = -1
    node: int = 0
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3), repr=False)
    position: np.ndarray = field(default_factory=lambda: np.zeros(3), repr=False)
    freedoms: tuple[int, ...] | None = field(default=None, repr=False)
    armature: tuple[float, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        n = 6 * len(self.Q)
        for name, shape in (("m", (n, n)), ("K", (n, n)), ("H", (len(self.H), 6))):
            if np.shape(getattr(self, name)) != shape:
                found = np.shape(getattr(self, name))
                raise InputError(f"link {self.name!r}: {name} has shape {found}; expected {shape} for {n // 6} nodes")
        for name in ("m", "K"):
            matrix = getattr(self, name)
            if not np.allclose(matrix, matrix.T, rtol=1e-9, atol=1e-12 * np.abs(matrix).max(initial=0.0)):
                raise InputError(f"link {self.name!r}: {name} is not symmetric; finite-element matrices are")

    @property
    def B(self) -> np.ndarray:
        """B_k (6, 6n_k) = [φ(O_k, Q_k(1)), ..., φ(O_k, Q_k(n_k))]."""
        return np.hstack([phi_matrix(np.eye(3), r) for r in self.Q])

    @property
    def h(self) -> np.ndarray:
        """h_k (dofs, 6n_k): u_k = h_k u_k^f."""
        n = 6 * len(self.Q)
        return np.eye(n)[list(range(n - 6)) if self.freedoms is None else list(self.freedoms)]

    @property
    def N(self) -> np.ndarray:
        """[B; h] (6 + dofs, 6n_k): V_k^f = N* (V(k), u_k)."""
        return np.vstack([self.B, self.h])

    @property
    def joint_and_modes(self) -> np.ndarray:
        """𝓗 (nv + dofs, 6 + dofs) = diag(H, 1)."""
        n = len(self.h)
        return np.block([[self.H, np.zeros((len(self.H), n))], [np.zeros((n, 6)), np.eye(n)]])

    @property
    def rotors(self) -> np.ndarray:
        """Armature of the joint, and zeros for u, on a diagonal."""
        return np.diag([*(self.armature or (0.0,) * len(self.H)), *(0.0,) * len(self.h)])


@dataclass(frozen=True, eq=False)
class Articulated:
    """Of one link: P (6 + dofs, 6 + dofs), D (nv + dofs, nv + dofs), G = P 𝓗* D⁻¹."""

    P: np.ndarray
    D: np.ndarray
    G: np.ndarray


@dataclass(frozen=True, eq=False)
class FlexibleChain:
    """The operators of section 4 over links, parents first; arrays m, K, B, C, h, H, phi are whole block matrices.

    shapes (len(X), nv): X for unit rates of a model's degrees of freedom, of a chain that was made of a model.
    """

    links: tuple[FlexibleLink, ...]
    shapes: np.ndarray | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for k, link in enumerate(self.links):
            if not -1 <= link.parent < k:
                raise InputError(f"link {link.name!r}: parent is {link.parent}; expected a link before it, or -1")
            if link.parent >= 0 and not 0 <= link.node < len(self.links[link.parent].Q):
                raise InputError(f"link {link.name!r}: link {self.links[link.parent].name!r} has no node {link.node}")

    # ---- block matrices

    @cached_property
    def m(self) -> np.ndarray:
        return _diagonal([link.m for link in self.links])

    @cached_property
    def K(self) -> np.ndarray:
        return _diagonal([link.K for link in self.links])

    @cached_property
    def B(self) -> np.ndarray:
        return _diagonal([link.B for link in self.links])

    @cached_property
    def h(self) -> np.ndarray:
        return _diagonal([link.h for link in self.links])

    @cached_property
    def H(self) -> np.ndarray:
        return _diagonal([link.H for link in self.links])

    @cached_property
    def C(self) -> np.ndarray:
        """(6 Σn_k, 6N): the block of a link stands in the rows of the link that carries it."""
        starts = np.cumsum([0, *(6 * len(link.Q) for link in self.links)])
        out = np.zeros((starts[-1], 6 * len(self.links)))
        for k, link in enumerate(self.links):
            if link.parent >= 0:
                out[starts[link.parent] : starts[link.parent + 1], 6 * k : 6 * k + 6] = self.C_of(k)
        return out

    def C_of(self, k: int) -> np.ndarray:
        """C of the link that carries link k (6n, 6): φ(Q(j), O_k) at the node j that carries it.           (4.2)"""
        link = self.links[k]
        out = np.zeros((6 * len(self.links[link.parent].Q), 6))
        out[6 * link.node : 6 * link.node + 6] = phi_matrix(link.rotation, link.position)
        return out

    @cached_property
    def phi(self) -> np.ndarray:
        """φ = (1 − ℰ_φ)⁻¹ with ℰ_φ = B C."""
        return _transition(self.B @ self.C, len(self.links))

    # ---- the mass matrix, as printed

    def mass_matrix(self) -> np.ndarray:
        """ℳᶠ for X = (β, u): T = ½ X* ℳᶠ X; with the armature of joints."""
        left = np.vstack([self.H @ self.B, self.h]) @ (np.eye(len(self.m)) + self.C @ self.phi @ self.B)
        return np.asarray(left @ self.m @ left.T + _placed([link.rotors for link in self.links], self.places))

    def stiffness(self) -> np.ndarray:
        """The stiffness for (joint coordinates, u): zero, and h K h*."""
        return _diagonal([np.zeros((len(self.H), len(self.H))), self.h @ self.K @ self.h.T])

    @cached_property
    def places(self) -> list[np.ndarray]:
        """Where β(k), u_k of every link are in X."""
        joints = np.cumsum([0, *(len(link.H) for link in self.links)])
        modes = joints[-1] + np.cumsum([0, *(len(link.h) for link in self.links)])
        return [
            np.concatenate([np.arange(joints[k], joints[k + 1]), np.arange(modes[k], modes[k + 1])])
            for k in range(len(self.links))
        ]

    # ---- section 3 with 6 + n numbers a link

    def step(self, k: int) -> np.ndarray:
        """ℰ(parent, k) (6 + dofs of the parent, 6 + dofs): what a force on link k is to the link that carries it."""
        carried = self.links[self.links[k].parent].N @ self.C_of(k)
        return np.hstack([carried, np.zeros((len(carried), len(self.links[k].h)))])

    @cached_property
    def articulated(self) -> tuple[Articulated, ...]:
        """P, D and G of all links, from the tips inward.                                                  [A.1]"""
        P = [link.N @ link.m @ link.N.T for link in self.links]
        found: list[Articulated] = []
        for k in reversed(range(len(self.links))):
            link, H = self.links[k], self.links[k].joint_and_modes
            D = H @ P[k] @ H.T + link.rotors  # D = 𝓗 P 𝓗*
            G = np.linalg.solve(D, H @ P[k]).T if len(D) else np.zeros((len(P[k]), 0))  # G = P 𝓗* D⁻¹
            found.append(Articulated(P[k], D, G))
            if link.parent >= 0:
                E = self.step(k)
                P[link.parent] = P[link.parent] + E @ (P[k] - G @ H @ P[k]) @ E.T  # ℰ τ̄ P ℰ*
        return tuple(reversed(found))

    @property
    def D(self) -> np.ndarray:
        """D, for X = (β, u)."""
        return _placed([x.D for x in self.articulated], self.places)

    def innovations(self) -> np.ndarray:
        """1 + 𝓗ΦK: ℳᶠ = [1 + 𝓗ΦK] D [1 + 𝓗ΦK]*.                                                          (3.4)"""
        H, G, E = self._whole()
        return np.asarray(np.eye(len(H)) + H @ _transition(E, len(self.links)) @ E @ G)

    def whitening(self) -> np.ndarray:
        """1 − 𝓗ψK, its inverse: (ℳᶠ)⁻¹ = [1 − 𝓗ψK]* D⁻¹ [1 − 𝓗ψK].                                      (3.5, 3.6)"""
        H, G, E = self._whole()
        bent = E @ (np.eye(len(E)) - G @ H)  # ℰ_ψ = ℰ τ̄
        return np.asarray(np.eye(len(H)) - H @ _transition(bent, len(self.links)) @ E @ G)

    def _whole(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """𝓗, G and ℰ of all links; rows of 𝓗 and columns of G in the order of X."""
        order = np.concatenate(self.places)
        starts = np.cumsum([0, *(6 + len(link.h) for link in self.links)])
        H, G, E = np.zeros((len(order), starts[-1])), np.zeros((starts[-1], len(order))), np.zeros((starts[-1],) * 2)
        for k, (link, x) in enumerate(zip(self.links, self.articulated, strict=True)):
            own = slice(starts[k], starts[k + 1])
            H[self.places[k], own], G[own, self.places[k]] = link.joint_and_modes, x.G
            if link.parent >= 0:
                E[starts[link.parent] : starts[link.parent + 1], own] = self.step(k)
        return H, G, E

    def forward_dynamics(self, T: np.ndarray) -> np.ndarray:
        """Ẋ = (ℳᶠ)⁻¹ T̂ for forces T̂ along X, by two sweeps.                                               [3.7, A.2]"""
        z = [np.zeros(6 + len(link.h)) for link in self.links]
        weighted: list[np.ndarray] = [np.zeros(0)] * len(self.links)
        for k in reversed(range(len(self.links))):
            link, x = self.links[k], self.articulated[k]
            e = np.asarray(T)[self.places[k]] - link.joint_and_modes @ z[k]  # ε = T − 𝓗 z
            weighted[k] = np.linalg.solve(x.D, e)  # ν = D⁻¹ ε
            if link.parent >= 0:
                z[link.parent] = z[link.parent] + self.step(k) @ (z[k] + x.G @ e)
        accelerations: list[np.ndarray] = []
        out = np.zeros(len(T))
        for k, link in enumerate(self.links):
            carried = self.step(k).T @ accelerations[link.parent] if link.parent >= 0 else np.zeros(6 + len(link.h))
            rates = weighted[k] - self.articulated[k].G.T @ carried  # Ẋ = ν − G* α⁺
            accelerations.append(carried + link.joint_and_modes.T @ rates)
            out[self.places[k]] = rates
        return out


def phi_matrix(rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    """φ (6, 6): a force [n; f] at a frame with this pose, seen at the origin."""
    x, y, z = position
    lever = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.block([[rotation, lever @ rotation], [np.zeros((3, 3)), rotation]])


def _transition(E: np.ndarray, n: int) -> np.ndarray:
    """(1 − E)⁻¹ = 1 + E + E² + ... of a nilpotent E.                                                      (3.3)"""
    out = np.eye(len(E))
    for _ in range(n - 1):
        out = np.eye(len(E)) + E @ out
    return out


def _diagonal(blocks: Sequence[np.ndarray]) -> np.ndarray:
    """A block diagonal matrix; blocks need not be square, and may be empty."""
    out = np.zeros((sum(len(x) for x in blocks), sum(x.shape[1] for x in blocks)))
    row = column = 0
    for x in blocks:
        out[row : row + len(x), column : column + x.shape[1]] = x
        row, column = row + len(x), column + x.shape[1]
    return out


def _placed(blocks: Sequence[np.ndarray], places: Sequence[np.ndarray]) -> np.ndarray:
    """A matrix with square blocks at rows and columns that need not follow each other."""
    n = sum(map(len, places))
    out = np.zeros((n, n))
    for x, at in zip(blocks, places, strict=True):
        out[np.ix_(at, at)] = x
    return out
