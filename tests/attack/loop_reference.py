"""Closed mechanisms in extended precision: closure rows from the geometry of each loop, and the constrained solution.

A loop joins frame A of body a and frame B of body b. With ω, s the spin of B against A and the velocity of B's origin
against the point of A that is there now, a row is w·ω + l·s = 0, its bias γ the rate of that sum while v is constant.
Rows are compared in the metric of the mass matrix, W = J M^(-1/2), each divided by what it could be at most there, so
that a pivot is the sine of an angle whatever the lengths and masses are. Arrays have the states on their last axis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from plain_data import Data, Tie, real
from reference import Tree, constant, cross, dot, mm, mv, orthonormal, plane_axes, tr, unit

ZERO = 1e-11  # a pivot below this is that of a redundant row


@dataclass
class Rows:
    """Rows of all loops: J (rows, nv, n), γ and errors (rows, n), the largest size that each row could have.

    held: whether a row holds positions; given: (loop, number of its DoF) of a row with a prescribed acceleration.
    w, l: (rows, 3, n), what a unit force along each row does on body b, in world axes; zero for gears.
    """

    J: np.ndarray
    bias: np.ndarray
    error: np.ndarray
    held: list[bool]
    given: list[tuple[str, int] | None]
    loop: list[str]
    w: np.ndarray
    l: np.ndarray
    natural: list[tuple[np.ndarray, np.ndarray]]  # Jacobians of the two sides and the factors of their sizes


class Ends:
    """The two frames of a loop at all states."""

    def __init__(self, tree: Tree, tie: Tie):
        a, b = tree.body(tie.a), tree.body(tie.b)
        self.n, nv = tree.n, tree.numbers.nv
        self.RA = mm(a.R, constant(orthonormal(tie.turn_a)) + 0 * a.R)
        self.RB = mm(b.R, constant(orthonormal(tie.turn_b)) + 0 * b.R)
        at_a, at_b = mv(a.R, constant(tie.place_a) + 0 * a.p), mv(b.R, constant(tie.place_b) + 0 * b.p)
        self.d = (b.p + at_b) - (a.p + at_a)
        speed_a, acc_a, _ = a.at(at_a)
        speed_b, acc_b, Jb = b.at(at_b)
        self.wa, self.wb = a.spin, b.spin
        _, _, Ja = a.at(at_a + self.d)  # of the point of a that is at B's origin now
        own = set(a.columns) ^ set(b.columns)  # joints below both bodies do not move one against the other
        self.Jw_a, self.Jw_b = (self._wide(x, x.Jw, own, nv) for x in (a, b))
        self.Js_a, self.Js_b = self._wide(a, Ja, own, nv), self._wide(b, Jb, own, nv)
        self.Jw, self.Js = self.Jw_b - self.Jw_a, self.Js_b - self.Js_a
        self.spin = b.spin - a.spin
        self.apart, self.apart_acc = speed_b - speed_a, acc_b - acc_a  # rates of d
        self.slide = self.apart - cross(a.spin, self.d)
        self.spin_rate = b.alpha - a.alpha
        self.slide_rate = self.apart_acc - cross(a.alpha, self.d) - cross(a.spin, self.apart)

    def _wide(self, body, J, own, nv):
        out = np.zeros((3, nv, self.n), dtype=J.dtype)
        for k, column in enumerate(body.columns):
            if column in own:
                out[:, column] = J[:, k]
        return out


def rows(tree: Tree, active: set[str] | None = None) -> Rows:
    """The rows of loops and gears (those that are active), and of driven joints: their given is ("", number of DoF)."""
    parts = []
    for tie in tree.numbers.ties:
        if active is None or tie.name in active:
            parts += _tie_rows(tree, tie)
    for gear in tree.numbers.gears:
        if active is not None and gear.name not in active:
            continue
        row = np.zeros((tree.numbers.nv, tree.n), dtype=tree.v.dtype)
        row[gear.source], row[gear.follows] = -gear.ratio, 1
        error = tree.q[gear.q_follows] - gear.ratio * tree.q[gear.q_source] - gear.offset
        none = np.zeros((3, tree.n), dtype=row.dtype)
        parts.append((row, 0 * error, error, True, None, "", none, none, (row[None], real(1))))
    for link in tree.numbers.links:
        for k in range(link.v.start, link.v.stop if link.driven else link.v.start):
            row = np.zeros((tree.numbers.nv, tree.n), dtype=tree.v.dtype)
            row[k] = 1
            none = np.zeros((3, tree.n), dtype=row.dtype)
            parts.append((row, 0 * row[0], 0 * row[0], False, ("", k), "", none, none, (row[None], real(1))))
    if not parts:
        none = np.zeros((0, tree.n), dtype=tree.v.dtype)
        wide, vectors = np.zeros((0, tree.numbers.nv, tree.n), dtype=none.dtype), np.zeros((0, 3, tree.n))
        return Rows(wide, none, none, [], [], [], vectors, vectors, [])
    J, bias, error, held, given, loop, w, l, natural = zip(*parts, strict=True)
    return Rows(
        *map(np.stack, (J, bias, error)), list(held), list(given), list(loop), np.stack(w), np.stack(l), natural
    )


def _tie_rows(tree: Tree, tie: Tie) -> list[tuple]:
    e = Ends(tree, tie)
    out = []

    def add(w, l, w_rate=None, l_rate=None, error=None, given=None):
        """Row w·ω + l·s of world vectors; their rates (None: fixed in B); error None: it holds velocities alone."""
        w_rate = cross(e.wb, w) if w_rate is None else w_rate
        l_rate = cross(e.wb, l) if l_rate is None else l_rate
        J = (w[:, None] * e.Jw + l[:, None] * e.Js).sum(0)
        bias = dot(w, e.spin_rate) + dot(w_rate, e.spin) + dot(l, e.slide_rate) + dot(l_rate, e.slide)
        scale = np.concatenate(
            [np.sqrt(dot(w, w)) * x for x in (e.Jw_a, e.Jw_b)] + [np.sqrt(dot(l, l)) * x for x in (e.Js_a, e.Js_b)]
        )
        held = error is not None
        error = 0 * J[0] if error is None else error
        out.append((J, bias, error, held, given, tie.name, w, l, (scale, real(1) / np.sqrt(real(3)))))

    none = 0 * e.d
    axes = [constant(x) + none for x in np.eye(3)]
    in_b = [mv(e.RB, x) for x in axes]
    at = mv(tr(e.RB), e.d)
    turn = mm(tr(e.RA), e.RB)
    if tie.kind == "distance":
        far = np.sqrt(dot(e.d, e.d))
        along = e.d / far
        closing = dot(along, e.apart)
        # rate of e = |d| is along·apart; its own rate has apart²/|d| beside along·apart_acc
        J = (along[:, None] * e.Js).sum(0)  # along·(ω_A × d) = 0
        bias = dot(along, e.apart_acc) + (dot(e.apart, e.apart) - closing**2) / far
        scale = np.concatenate([e.Js_a, e.Js_b])
        out.append((J, bias, far - tie.length, True, None, tie.name, none, along, (scale, real(1) / np.sqrt(real(3)))))
        return out
    if tie.kind in ("spherical", "universal", "soft_finger"):
        if tie.kind == "universal":
            n1, n2 = mv(e.RA, constant(unit(tie.axis)) + none), mv(e.RB, constant(unit(tie.second_axis)) + none)
            w = cross(n1, n2)
            rate = cross(cross(e.wa, n1), n2) + cross(n1, cross(e.wb, n2))
            square = dot(unit(tie.axis), unit(tie.second_axis))
            add(w, none, rate, none, square - dot(n1, n2))
        for l, x in zip(in_b, at, strict=True):
            add(none, l, error=x)
        if tie.kind == "soft_finger":
            add(in_b[2], none)
    elif tie.kind in ("point_on_line", "point_on_plane"):
        P = plane_axes(unit(tie.axis))
        for k in (0, 1) if tie.kind == "point_on_line" else (2,):
            l = mv(e.RA, constant(P[:, k]) + none)
            add(none, l, none, cross(e.wa, l), dot(l, e.d))
    elif tie.kind == "general":
        for c in tie.constraint:
            add(mv(e.RB, constant(c[:3]) + none), mv(e.RB, constant(c[3:]) + none))
    elif tie.kind != "free":
        _axis_rows(tie, e, add, at, turn)
    if tie.driven:
        _driven_rows(tie, e, add)
    return out


def _axis_rows(tie: Tie, e: Ends, add, at, turn) -> None:
    """Rows of fixed, revolute, prismatic, helical, cylindrical and planar joints."""
    none = 0 * e.d
    axis = unit(tie.axis) if tie.kind != "fixed" else real([0, 0, 1])
    P = plane_axes(axis)
    x, y, n = (mv(e.RB, constant(P[:, k]) + none) for k in range(3))
    px, py, pn = (constant(P[:, k]) + none for k in range(3))
    if tie.kind in ("fixed", "prismatic"):
        miss = _rotation_vector(turn)
        for w, p in ((x, px), (y, py), (n, pn)):
            add(w, none, error=dot(p, miss))
    else:
        tilt = cross(mv(tr(turn), pn), pn)
        for w, p in ((x, px), (y, py)):
            add(w, none, error=dot(p, tilt))
    if tie.kind != "planar":
        for l, p in ((x, px), (y, py)):
            add(none, l, error=dot(p, at))
    if tie.kind == "helical":
        angle = dot(pn, _rotation_vector(turn))
        add(-tie.pitch * n, n, error=dot(pn, at) - tie.pitch * angle)
    elif tie.kind in ("fixed", "revolute", "planar"):
        add(none, n, error=dot(pn, at))


def _driven_rows(tie: Tie, e: Ends, add) -> None:
    """Rows that measure the rates of the loop's DoF: (φᵀφ)⁻¹ φᵀ applied to ω and s."""
    none = 0 * e.d
    fixed = [mv(e.RB, constant(x) + none) for x in np.eye(3)]
    if tie.kind == "universal":
        n1, n2 = mv(e.RA, constant(unit(tie.axis)) + none), mv(e.RB, constant(unit(tie.second_axis)) + none)
        c = dot(unit(tie.axis), unit(tie.second_axis))
        r1, r2 = cross(e.wa, n1), cross(e.wb, n2)
        add((n1 - c * n2) / (1 - c * c), none, (r1 - c * r2) / (1 - c * c), none, given=(tie.name, 0))
        add((n2 - c * n1) / (1 - c * c), none, (r2 - c * r1) / (1 - c * c), none, given=(tie.name, 1))
        return
    columns = []
    if tie.kind in ("spherical", "free"):
        columns = [(w, none) for w in fixed] + ([(none, l) for l in fixed] if tie.kind == "free" else [])
    elif tie.kind == "general":
        G = np.linalg.inv((tie.motion @ tie.motion.T).astype(float))  # Newton's step makes it exact
        G = real(G)
        G = G @ (2 * np.eye(len(G)) - (tie.motion @ tie.motion.T) @ G)
        for c in G @ tie.motion:
            columns.append((mv(e.RB, constant(c[:3]) + none), mv(e.RB, constant(c[3:]) + none)))
    elif tie.kind != "fixed":
        P = plane_axes(unit(tie.axis))
        x, y, n = (mv(e.RB, constant(P[:, k]) + none) for k in range(3))
        p = tie.pitch
        columns = {
            "revolute": [(n, none)],
            "prismatic": [(none, n)],
            "helical": [(n / (1 + p * p), p * n / (1 + p * p))],
            "cylindrical": [(n, none), (none, n)],
            "planar": [(n, none), (none, x), (none, y)],
        }[tie.kind]
    for k, (w, l) in enumerate(columns):
        add(w, l, given=(tie.name, k))


def _rotation_vector(R):
    """Angle times axis of rotations (3, 3, n), angles up to π."""
    turn = np.stack((R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1])) / 2
    sine = np.sqrt(dot(turn, turn))
    angle = np.arctan2(sine, (R[0, 0] + R[1, 1] + R[2, 2] - 1) / 2)
    return turn * np.where(sine > 1e-9, angle / np.where(sine > 1e-9, sine, 1), 1)


# ---- the constrained solution


@dataclass
class Choice:
    """Rows in the order of their pivots, for each state: order (rows, n), pivots (rows, n), rank (n,)."""

    order: np.ndarray
    pivots: np.ndarray
    rank: np.ndarray


def cholesky(M):
    """C (lower) of M = C Cᵀ, states last."""
    C = M.copy()
    for k in range(len(C)):
        C[k, k] = np.sqrt(C[k, k])
        C[k + 1 :, k] /= C[k, k]
        C[k, k + 1 :] = 0
        for j in range(k + 1, len(C)):
            C[j:, j] -= C[j:, k] * C[j, k]
    return C


def forward(C, right):
    """C⁻¹ right of right (nv, columns, n)."""
    x = right.copy()
    for k in range(len(C)):
        x[k] = x[k] / C[k, k]
        x[k + 1 :] -= C[k + 1 :, k, None] * x[k][None]
    return x


def backward(C, right):
    """C⁻ᵀ right of right (nv, n)."""
    x = right.copy()
    for k in reversed(range(len(C))):
        x[k] = x[k] / C[k, k]
        x[:k] -= C[k, :k] * x[k]
    return x


class Closed:
    """A closed mechanism at many states: `choice` ranks its rows, `accelerations` solves it."""

    def __init__(self, numbers: Data, q, v, forces=None, active=None, choice: Choice | None = None):
        self.tree = Tree(numbers, q, v, forces)
        self.rows = rows(self.tree, active)
        with np.errstate(invalid="ignore", divide="ignore"):
            self.C = cholesky(self.tree.M)
            J = self.rows.J
            W = np.swapaxes(forward(self.C, np.swapaxes(J, 0, 1)), 0, 1)
            self.size = np.array([self._size(*x) for x in self.rows.natural]).reshape(len(J), self.tree.n)
            self.W = W / self.size[:, None]
            self.choice = self._choose() if choice is None else choice
            self._orthogonalize()

    def _size(self, J, factor):
        wide = forward(self.C, np.swapaxes(J, 0, 1))
        size = np.sqrt((wide * wide).sum((0, 1))) * factor
        return np.where(size > 0, size, 1)

    def _choose(self) -> Choice:
        """Pivots by Gram and Schmidt, the largest row first at every state; projections are repeated."""
        left = self.W.copy()
        m, n = len(left), left.shape[-1]
        order, pivots, used = np.zeros((m, n), int), np.zeros((m, n)), np.zeros((m, n), bool)
        at = np.arange(n)
        for k in range(m):
            norms = np.where(used, -1, np.sqrt((left * left).sum(1)))
            pick = np.nan_to_num(norms).argmax(0)
            order[k], pivots[k] = pick, norms[pick, at]
            used[pick, at] = True
            row = left[pick, :, at].T  # (nv, n)
            q = row / np.where(pivots[k] > 0, np.sqrt((row * row).sum(0)), 1)
            for _ in range(2):
                left = left - (left * q[None]).sum(1)[:, None] * q[None]
        return Choice(order, pivots, (pivots > ZERO).sum(0))

    def _orthogonalize(self) -> None:
        """Orthonormal rows Q (m, nv, n) and R (m, m, n) of the chosen rows in order."""
        m, nv, n = self.W.shape
        rows = np.take_along_axis(self.W, self.choice.order[:, None], axis=0)
        self.Q, self.R = np.zeros_like(rows), np.zeros((m, m, n), dtype=rows.dtype)
        for k in range(min(m, nv)):
            row = rows[k]
            for _ in range(2):
                row = row - ((self.Q[:k] * row[None]).sum(1)[:, None] * self.Q[:k]).sum(0)
            live = k < self.choice.rank
            size = np.sqrt((row * row).sum(0))
            self.Q[k] = np.where(live, row / np.where(live, size, 1), 0)
            self.R[k, : k + 1] = (self.Q[: k + 1] * rows[k][None]).sum(1)
            self.R[k, k] = np.where(live, self.R[k, k], 1)

    def accelerations(self, tau, given: dict | None = None):
        """a (nv, n), λ (rows, n) on the chosen rows, and what is left of the other rows' equations, relative (n,)."""
        right = -self.rows.bias.copy()
        for k, which in enumerate(self.rows.given):
            if which is not None:
                right[k] += real((given or {}).get(which, 0.0))
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            tau = real(tau).copy()
            for which in self.rows.given:
                if which is not None and not which[0]:
                    tau[which[1]] = 0
            x = forward(self.C, (tau - self.tree.h)[:, None])[:, 0]
            free = x.copy()
            b = right / self.size
            chosen = np.take_along_axis(b, self.choice.order, axis=0)
            total = 0
            for _ in range(2):
                y = np.take_along_axis((self.W * x[None]).sum(1), self.choice.order, axis=0)
                y = chosen - y
                for k in range(len(y)):
                    y[k] = np.where(k < self.choice.rank, y[k] / self.R[k, k], 0)
                    y[k + 1 :] -= self.R[k + 1 :, k] * y[k]
                x = x + (self.Q * y[:, None]).sum(0)
                total = total + y
            left = np.abs((self.W * x[None]).sum(1) - b)
            scale = np.abs(b) + np.sqrt((x * x).sum(0)) + np.sqrt((free * free).sum(0)) + 1e-300
            force = self._forces(total)
            return backward(self.C, x), force, (left / scale).max(0, initial=0.0).astype(float)

    def _forces(self, y):
        """λ of all rows from Σ λ W = Σ y Q; 0 on rows that were not chosen."""
        f = y.copy()
        for k in reversed(range(len(f))):
            f[k] = np.where(k < self.choice.rank, f[k] / self.R[k, k], 0)
            f[:k] -= self.R[k, :k] * f[k]
        out = np.zeros_like(f)
        np.put_along_axis(out, self.choice.order, f, axis=0)
        return out / self.size

    def loop_forces(self, force) -> dict[str, np.ndarray]:
        """[torque; force] (6, n) on body b at its frame in world axes, by loop."""
        out = {}
        for k, name in enumerate(self.rows.loop):
            if name:
                pair = np.concatenate((self.rows.w[k] * force[k], self.rows.l[k] * force[k]))
                out[name] = out.get(name, 0) + pair
        return out
