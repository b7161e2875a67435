"""Attack trees: forward dynamics by every method, inverse mass matrix, inverse dynamics, mass matrix, bias, energies.

A case is a random tree (attacked_trees.py) at many states. Every answer is compared with the reference in extended
precision. A state is wrong if any answer is off (judging.py), if a mass matrix that is singular gets an answer, if one
that is regular is refused, or if the reason of a refusal is not the right one. Some states have a quaternion that is
not of unit length, or a number that is not finite; single calls must agree with their batch bit by bit.
"""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
from attacked_trees import TreeCase
from judging import REGULAR, SINGULAR, tolerance, worst
from plain_data import data, shaken
from reference import Tree
from tally import Tally, until

import spanloop as sl
from spanloop.algorithms.catalog import TREE_METHODS
from spanloop.errors import Reason

STATES = 1500
DRAWS = 3
FUNCTIONS = ("mass_matrix_inverse", "inverse_dynamics", "mass_matrix", "bias", "gravity_torques", "energy")
OTHERS = (*FUNCTIONS, "float32", "live")


def attack(seed: int, deadline: float) -> Tally:
    """Cases 0, 1, 2, ... of a seed until the deadline."""
    return until(case, seed, deadline)


def case(seed: int, k: int, n: int = STATES) -> Tally:
    """One mechanism at n states."""
    rng = np.random.default_rng([seed, k])
    made = TreeCase(rng)
    judge = Judge(made, n, f"trees.case({seed}, {k}), {made.theme}")
    try:
        judge.forward("articulated_body")
        judge.forward(str(rng.choice(list(TREE_METHODS)[1:])))
        other = str(rng.choice(OTHERS))
        if other == "float32":
            judge.forward("articulated_body", dtype="float32")
        elif other == "live":
            judge.live()
        else:
            judge.other(other)
        judge.single_calls()
    except sl.errors.UnsupportedError:
        judge.tally.notes["unsupported"] += 1
    except Exception as error:
        judge.tally.fail(f"{judge.name}: {type(error).__name__}: {error}")
    return judge.result()


class Judge:
    """One tree at many states, with exact answers; marks the states of which an answer is wrong."""

    def __init__(self, made: TreeCase, n: int, name: str):
        self.model, self.name, self.rng = made.model, name, made.rng
        self.q, self.v, self.tau = made.states(n)
        self.stretched = np.zeros(n, bool)  # states with a quaternion that is barely of unit length
        self.expected = self._spoil(n)
        self.load = self._load(made, n)
        self.tally = Tally(notes=Counter(mechanisms=1))
        self.bad, self.refused = np.zeros(n, bool), np.zeros(n, bool)
        self.lengths = np.array([1.0 if u == "m" else made.size for j in self.model.joints for u in j.kind.units])
        self.exact = self._tree(data(self.model))
        self.draws = []
        for _ in range(DRAWS):
            self.draws.append(self._tree(data(self.model).rounded(self.rng), shake=True))

    def _spoil(self, n: int) -> list[Reason | None]:
        """Make some states faulty; the reason to expect for each, None for none."""
        out: list[Reason | None] = [None] * n
        quaternions = [self.model.q_slice(j.name).start for j in self.model.joints if j.kind.unit_parts(())]
        for k, at in enumerate(quaternions[:2]):
            self.q[k, at : at + 4] *= 1.0 + 1e-5
            self.q[2 + k, at : at + 4] *= 1.0 + 9e-7
            self.stretched[2 + k] = True
            out[k] = Reason.QUATERNION
        if self.model.nv:
            self.tau[6, -1], out[6] = np.inf, Reason.NOT_FINITE
        return out

    def _load(self, made: TreeCase, n: int) -> dict[str, np.ndarray]:
        if self.rng.uniform() < 0.6:
            return {}
        body = str(self.rng.choice([b.name for b in self.model.bodies]))
        push = self.rng.normal(size=(n, 6)) * made.mass * made.size
        push[:, :3] *= made.size
        return {body: push}

    def _tree(self, numbers, shake: bool = False) -> dict[str, np.ndarray]:
        """Exact answers; with shake, those of inputs moved by one rounding."""

        def own(x):
            x = np.where(np.isfinite(x), x, 0.0).T
            return shaken(x, self.rng) if shake else x

        forces = {numbers.bodies[name]: own(x) for name, x in self.load.items()}
        tree = Tree(numbers, own(self.q), own(self.v), forces)
        tau = own(self.tau)
        nv, n = self.model.nv, len(self.q)
        a, pivot = tree.forward_dynamics(tau)
        inverse, whole = tree.mass_matrix_inverse()
        return {
            "forward_dynamics": a,
            "pivot": pivot,
            "mass_matrix_inverse": inverse.reshape(nv * nv, n),
            "whole pivot": whole,
            "inverse_dynamics": tree.inverse_dynamics(tau),
            "mass_matrix": tree.M.reshape(nv * nv, n),
            "bias": tree.h,
            "gravity_torques": tree.gravity_torque,
            "energy": np.stack((tree.kinetic, tree.potential)),
        }

    # ---- answers

    def forward(self, method: str, dtype: str = "float64") -> None:
        """Forward dynamics of the batch by a method."""
        robot = sl.Dynamics(self.model, method=method, dtype=dtype)
        forces = {k: x.astype(dtype) for k, x in self.load.items()}
        a, reason = quiet(robot.forward_dynamics, self.q, self.v, self.tau, forces=forces or None)
        self._judge("forward_dynamics", f"{method} {dtype}", a, reason, self.exact["pivot"], dtype == "float32")
        if method == "articulated_body" and dtype == "float64":
            self.robot, self.a = robot, a

    def other(self, name: str) -> None:
        """Another function of the batch."""
        arguments = {
            "inverse_dynamics": (self.q, self.v, self.tau),
            "bias": (self.q, self.v),
            "energy": (self.q, self.v),
        }.get(name, (self.q,))
        takes = name in ("inverse_dynamics", "bias") and self.load
        answer, reason = quiet(getattr(self.robot, name), *arguments, **({"forces": self.load} if takes else {}))
        pivot = self.exact["whole pivot"] if name == "mass_matrix_inverse" else None
        self._judge(name, "", answer.reshape(len(self.q), -1), reason, pivot, False, len(arguments))

    def live(self) -> None:
        """The same mechanism from a kernel that was compiled for other numbers and takes these as input."""
        other = changed(self.model, self.rng)
        kernel = sl.compile(other, "forward_dynamics", parameters="live", forces=tuple(self.load))
        inputs = (self.q, self.v, self.tau, *self.load.values(), self.model.parameters().values)
        a, reason = quiet(kernel, *inputs)
        self._judge("forward_dynamics", "live", a, reason, self.exact["pivot"], False)

    def single_calls(self) -> None:
        """Single calls agree with the batch bit by bit, and raise the right reason where it is NaN."""
        refused = np.flatnonzero(np.isnan(self.a).any(1))[:10]
        for k in [*refused, *range(8, 12)]:
            forces = {name: x[k] for name, x in self.load.items()}
            try:
                a = self.robot.forward_dynamics(self.q[k], self.v[k], self.tau[k], forces=forces or None)
            except sl.errors.StateError as error:
                right = self.expected[k] or Reason.SINGULAR_MASS
                if not np.isnan(self.a[k]).any():
                    self._fault(f"state {k} is refused alone, answered in a batch", k)
                elif error.reason != right:
                    self._fault(f"state {k}: reason {error.reason.name}, expected {right.name}", k)
                continue
            if not np.array_equal(a, self.a[k]):
                self._fault(f"state {k}: alone {a}, in a batch {self.a[k]}", k)

    def _judge(self, name, how, answer, reason, pivot, single, n_inputs: int = 3) -> None:
        exact, shook = self.exact[name], [x[name] for x in self.draws]
        weights = self._weights(name)
        terms = self._terms(name, weights)
        allowed = tolerance(exact, shook, weights, terms, pivot if single else None)
        times = worst(answer.T, exact, allowed)
        none = np.isnan(answer).any(1) if answer.shape[1] else np.zeros(len(answer), bool)
        faulty = np.array([self._hits(x, n_inputs) for x in self.expected])
        first = int(np.argmax(none))
        rounds = how.startswith("virtual_work")  # a method that refuses what its correction does not mend
        right = {self.expected[first] or Reason.SINGULAR_MASS, Reason.ROUNDING if rounds else None}
        if none.any() and reason not in right:
            self._fault(f"{name} {how}: state {first} of the batch is refused for {reason}", first)
        loose = 10.0 if how.split()[0:1] in (["composite_body"], ["unit_vector"]) else 1.0  # they factor M itself
        loose = 1e3 if single else loose
        singular = np.zeros(len(none), bool) if pivot is None else pivot < SINGULAR
        regular = np.ones(len(none), bool) if pivot is None else pivot > REGULAR * loose
        off = (times > 1) & ~none & ~singular & ~faulty
        if not single:
            strict = worst(answer.T, exact, tolerance(exact, shook, weights, terms, strict=True))
            self.tally.notes["off in a small number"] += int(((strict > 1) & ~off & ~none & ~singular & ~faulty).sum())
        cases = (
            ("a faulty state is answered", faulty & ~none),
            ("a regular state is refused", regular & none & ~faulty & (not rounds)),
            ("a singular state is answered", singular & ~none & ~faulty),
            ("off with a quaternion of length 1 + 9e-7", off & self.stretched),
            ("off", off & ~self.stretched),
        )
        for what, found in cases:
            if found.any():
                k = int(np.flatnonzero(found)[np.argmax(np.nan_to_num(times[found]))])
                found_pivot = None if pivot is None else float(pivot[k])
                text = sentence(answer[k], exact[:, k], allowed[:, k], found_pivot)
                count = int(found.sum())
                self._fault(f"{name} {how}: {what}, {count} states, the worst is {k}: {text}", found)
        if name == "forward_dynamics" and not how.endswith("float32"):
            self.tally.notes["refused beside singular"] += int(
                (none & ~self.refused & ~faulty & (pivot > SINGULAR)).sum()
            )
            self.refused |= none
        self.tally.notes["answers"] += len(none)

    def _hits(self, reason, n_inputs: int) -> bool:
        """Whether a function of the first inputs meets the fault of a state: of q, of v or of tau."""
        return reason is not None and n_inputs >= {Reason.QUATERNION: 1}.get(reason, 3)

    def _fault(self, sentence: str, states) -> None:
        self.tally.failures.append(f"{self.name}: {sentence}")
        self.bad[states] = True

    def _weights(self, name: str) -> np.ndarray:
        """Factors that make the numbers of an answer comparable: lengths for rad, their reciprocals for N m."""
        if name == "energy":
            return np.ones(2)
        if name == "forward_dynamics":
            return self.lengths
        if name.startswith("mass_matrix"):
            own = self.lengths if name == "mass_matrix_inverse" else 1.0 / self.lengths
            return np.outer(own, own).ravel()
        return 1.0 / self.lengths

    def _terms(self, name: str, weights: np.ndarray):
        """What gravity contributes to an answer, times 1e-6: where it cancels, 1e-15 of it is rounding."""
        if name not in ("forward_dynamics", "inverse_dynamics", "bias", "gravity_torques"):
            return None
        pull = (
            1e-6 * float(np.linalg.norm(self.model.gravity)) * (1.0 if name == "forward_dynamics" else self.model.mass)
        )
        return pull / weights[:, None] * np.ones(len(self.q))

    def result(self) -> Tally:
        """Counts of states: wrong if any answer is."""
        n, wrong = len(self.q), int(self.bad.sum())
        self.tally.tried += n
        self.tally.wrong += wrong
        self.tally.refused += int((self.refused & ~self.bad).sum())
        self.tally.right += int((~self.refused & ~self.bad).sum())
        return self.tally


def sentence(answer, exact, allowed, pivot) -> str:
    """The number that is off most, and what it may be off."""
    if not exact.size:
        return "no numbers"
    with np.errstate(divide="ignore", invalid="ignore"):
        k = int(np.argmax(np.nan_to_num(np.abs(answer - exact) / allowed)))
        error, bound = abs(answer[k] / exact[k] - 1), allowed[k] / abs(exact[k])
    tail = "" if pivot is None else f", smallest pivot {pivot:.1e}"
    return f"[{k}] is {answer[k]:.17g}, exactly {exact[k]:.20g}: off by {error:.1e}, may be {bound:.1e}{tail}"


def changed(model, rng):
    """The same mechanism with other numbers."""
    from dataclasses import replace

    bodies = [replace(b, inertia=replace(b.inertia, mass=b.inertia.mass * 1.5)) for b in model.bodies]
    return replace(model, bodies=tuple(bodies), gravity=tuple(rng.normal(size=3)))


def quiet(function, *arguments, **options):
    """The answer, and the reason of the warning about its batch."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        answer = function(*arguments, **options)
    reasons = [x.message.refusal.reason for x in seen if hasattr(x.message, "refusal")]
    return answer, reasons[0] if reasons else None
