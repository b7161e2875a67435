"""Attack closed mechanisms: accelerations by every method, loop forces, statuses, rank and mobility.

A case is a random closed mechanism (attacked_loops.py) at many states, which Newton's method closes without the
library, on every assembly that random starts lead to, and at special states at and near singular positions. The
reference (loop_reference.py) ranks the rows at each state and beside it. A state is singular if it has fewer
independent rows than the states beside it, and contradictory if rows that depend on others ask for another
acceleration: both must be refused. A regular state must be answered, and its answer is judged as in judging.py.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from assembling import assembled, beside, closing_velocity
from attacked_loops import ClosedCase, closed_case
from judging import REGULAR as LIGHT
from judging import tolerance, worst
from loop_reference import ZERO, Closed
from plain_data import data, shaken
from tally import Tally, until
from trees import quiet, sentence

import spanloop as sl
from spanloop.algorithms.catalog import FUNCTIONS
from spanloop.errors import Reason

STATES = 500
DRAWS = 3
REGULAR = 3e-3  # a state whose pivots (sines of angles between rows) are all above this must be answered
NOISE = 1e-13  # pivots of redundant rows are below this, unless the state is near a singular position
CONTRADICTION = 1e-7  # of the size of its terms: what a redundant row may be off before it contradicts the others
REASONS = (Reason.SINGULAR_CLOSURE, Reason.ROUNDING)


def attack(seed: int, deadline: float) -> Tally:
    """Cases 0, 1, 2, ... of a seed until the deadline."""
    return until(case, seed, deadline)


def case(seed: int, k: int, n: int = STATES) -> Tally:
    """One closed mechanism at n states."""
    rng = np.random.default_rng([seed, k, 1])
    made = closed_case(rng)
    judge = Judge(made, n, f"closed.case({seed}, {k}), {made.theme}", rng)
    if not len(judge.q):
        return Tally(notes=Counter({"not assembled": 1}))
    try:
        judge.accelerations("elimination")
        judge.single_calls()
        judge.accelerations(str(rng.choice(list(FUNCTIONS["forward_dynamics"].closed)[1:])))
        if rng.uniform() < 0.5:
            judge.solution()
        if rng.uniform() < 0.3:
            judge.diagnosis()
    except Exception as error:
        judge.tally.fail(f"{judge.name}: {type(error).__name__}: {error}")
    return judge.result()


class Judge:
    """One closed mechanism at many closed states, with exact answers."""

    def __init__(self, made: ClosedCase, n: int, name: str, rng):
        self.made, self.model, self.name, self.rng = made, made.model, name, rng
        self.tally = Tally(notes=Counter(mechanisms=1))
        switchable = self.model.switches
        self.active = None
        if switchable:
            on = [x for x in switchable if rng.uniform() < 0.5]
            self.active = {*(x.name for x in self.model.loops), *(c.name for c in self.model.couplings)}
            self.active = self.active - set(switchable) | set(on)
            self.options = {"active_loops": on}
        else:
            self.options = {}
        self.numbers = data(self.model)
        self.q, self.v, self.tau = self._states(n)
        n = len(self.q)
        self.bad, self.refused = np.zeros(n, bool), np.zeros(n, bool)
        if n:
            self._given(n)
            self._load(n)
            self._exact()

    def _states(self, n: int):
        made, rng, model = self.made, self.rng, self.model
        starts = self._starts(n)
        q, closed = assembled(self.numbers, starts.T, made.size, self.active)
        kept = np.array(q[:, closed], dtype=float)
        if made.special:
            kept = np.concatenate((np.array(made.special).T, kept), axis=1)
        if not kept.size:
            return kept.T, np.zeros((0, model.nv)), np.zeros((0, model.nv))
        v = rng.normal(size=(model.nv, kept.shape[1])) * 10.0 ** rng.uniform(-1.0, 1.0, kept.shape[1])
        lengths = np.array([made.size if u == "m" else 1.0 for j in model.joints for u in j.kind.units])
        v = closing_velocity(self.numbers, kept, v * lengths[:, None], made.size, self.active)
        v = np.array(v, dtype=float)
        v[:, rng.uniform(size=v.shape[1]) < 0.2] = 0.0
        force = (
            made.mass
            * made.size
            * np.array([1.0 if u == "m" else made.size for j in model.joints for u in j.kind.units])
        )
        tau = rng.normal(size=v.shape) * force[:, None] * 10.0
        self.lengths = np.array([1.0 if u == "m" else made.size for j in model.joints for u in j.kind.units])
        return kept.T.copy(), v.T.copy(), tau.T.copy()

    def _starts(self, n: int) -> np.ndarray:
        """Random states (n, nq), half of them near those that the mechanism was made at."""
        made, rng, out = self.made, self.rng, []
        for joint in self.model.joints:
            if joint.kind.name in ("spherical", "free", "general"):
                e = rng.normal(size=(n, 4))
                out.append(e / np.linalg.norm(e, axis=1)[:, None])
                if joint.kind.name != "spherical":
                    out.append(made.size * rng.normal(size=(n, 3)))
            else:
                per = [np.pi if u == "rad" else made.size for u in joint.kind.units]
                out.append(rng.uniform(-1.0, 1.0, (n, len(per))) * per)
        starts = np.concatenate(out, axis=1)
        if made.starts is not None:
            near = rng.uniform(size=n) < 0.7
            pick = made.starts[:, rng.integers(made.starts.shape[1], size=n)].T
            starts[near] = pick[near] + 0.2 * rng.uniform(size=(n, 1))[near] * (starts[near] - pick[near])
            for joint in self.model.joints:
                if joint.kind.name in ("spherical", "free", "general"):
                    at = slice(self.model.q_slice(joint.name).start, self.model.q_slice(joint.name).start + 4)
                    starts[:, at] /= np.linalg.norm(starts[:, at], axis=1)[:, None]
        return starts

    def _given(self, n: int) -> None:
        """Random accelerations along the DoF of driven loops."""
        self.given = {}
        for tie in self.model.loops:
            if tie.driven:
                lengths = np.array([self.made.size if u == "m" else 1.0 for u in tie.kind.units])
                self.given[tie.name] = self.rng.normal(size=(n, tie.kind.nv)) * lengths
        if self.given:
            self.options["loop_accelerations"] = self.given

    def _load(self, n: int) -> None:
        """External forces on one body, sometimes."""
        self.load = {}
        if self.rng.uniform() < 0.3:
            push = self.rng.normal(size=(n, 6)) * self.made.mass * self.made.size
            push[:, :3] *= self.made.size
            self.load = {str(self.rng.choice([b.name for b in self.model.bodies])): push}
            self.options["forces"] = self.load

    def _exact(self) -> None:
        given = {(name, k): x[:, k] for name, x in self.given.items() for k in range(x.shape[1])}
        self.driven = [k for link in self.numbers.links if link.driven for k in range(link.v.start, link.v.stop)]
        given |= {("", k): self.tau[:, k] for k in self.driven}
        loads = {self.numbers.bodies[name]: x.T for name, x in self.load.items()}
        exact = Closed(self.numbers, self.q.T, self.v.T, loads, self.active)
        self.a, force, self.left = exact.accelerations(self.tau.T, given)
        self.loop_forces = exact.loop_forces(force)
        self.unique = exact.choice.rank == len(exact.rows.J)
        self.rank = exact.choice.rank
        pivots = exact.choice.pivots
        here = np.where(pivots > ZERO, pivots, np.inf)
        self.pivot = here.min(0, initial=np.inf)
        self.noise = np.where(pivots > ZERO, 0.0, pivots).max(0, initial=0.0)
        self.draws = []
        for _ in range(DRAWS):
            inputs = (shaken(x.T, self.rng) for x in (self.q, self.v))
            other = Closed(self.numbers.rounded(self.rng), *inputs, loads, self.active, exact.choice)
            self.draws.append(other.accelerations(shaken(self.tau.T, self.rng), given)[0])
        near, found = beside(self.numbers, self.q.T, self.made.size, self.rng, self.active)
        rank = Closed(self.numbers, near, np.zeros(self.v.T.shape), active=self.active).choice.rank
        general = np.where(found, rank, self.rank)
        self.singular = self.rank < general
        self.contrary = self.left > CONTRADICTION
        isolated = ~found & (self.rank < self.model.nv)  # it could move at first order, but does not
        clear = (self.pivot > REGULAR) & (self.noise < NOISE) & (self.left < 1e-10)
        self.light = exact.tree.margin(list(range(self.model.nv))) < LIGHT  # the tree alone may be refused
        self.regular = clear & ~self.singular & ~isolated & ~self.light
        self.contrary &= ~isolated
        self.free, _ = exact.tree.forward_dynamics(self.tau.T)
        self.tally.notes["singular"] += int((self.singular | self.contrary).sum())
        self.tally.notes["redundant mechanisms"] += int((~self.unique).any())

    # ---- answers

    def accelerations(self, method: str) -> None:
        """Forward dynamics of the batch by a method."""
        try:
            robot = sl.Dynamics(self.model, method=method)
            a, reason = quiet(robot.forward_dynamics, self.q, self.v, self.tau, **self.options)
        except sl.errors.UnsupportedError:
            self.tally.notes["unsupported"] += 1
            return
        allowed = tolerance(self.a, self.draws, self.lengths, terms=self.free)
        times = worst(a.T, self.a, allowed)
        none = np.isnan(a).any(1)
        off = (times > 1) & ~none & ~self.singular & ~self.contrary
        strict = worst(a.T, self.a, tolerance(self.a, self.draws, self.lengths, terms=self.free, strict=True))
        self.tally.notes["off in a small number"] += int(((strict > 1) & ~off & ~none & ~self.singular).sum())
        clear = self.regular if method == "elimination" else self.regular & (self.pivot > 3 * REGULAR)
        cases = (
            ("a regular state is refused", clear & none),
            ("a singular state is answered", self.singular & ~none),
            ("a contradiction is answered", self.contrary & ~self.singular & ~none),
            ("off", off),
        )
        for what, found in cases:
            if what == "a regular state is refused" and method != "elimination" and self._lost_digits(robot, found):
                continue
            if found.any():
                k = int(np.flatnonzero(found)[np.argmax(np.nan_to_num(times[found]))])
                text = sentence(a[k], self.a[:, k], allowed[:, k], float(self.pivot[k]))
                self._fault(
                    f"{method}: {what}, {int(found.sum())} of {len(a)} states, the worst is {k} (rank {self.rank[k]}, "
                    f"left {self.left[k]:.0e}, {reason and reason.name}): {text}",
                    found,
                )
        first = int(np.argmax(none))
        if none.any() and not self._fits(reason, first):
            self._fault(f"{method}: state {first} of the batch is refused for {reason}", [first])
        if method == "elimination":
            self.refused |= none
            self.robot, self.answer = robot, a

    def _fits(self, reason, k: int) -> bool:
        """Whether a state may be refused for this reason."""
        return reason in REASONS or (reason is Reason.SINGULAR_MASS and bool(self.light[k]))

    def _lost_digits(self, robot, refused) -> bool:
        """Whether the first of these states are refused for rounding: a method may know that it loses digits."""
        return all(self._alone(robot, k) is Reason.ROUNDING for k in np.flatnonzero(refused)[:3])

    def _alone(self, robot, k: int):
        """The answer at one state, or the reason why there is none."""
        own = dict(self.options)
        for option in ("loop_accelerations", "forces"):
            if option in own:
                own[option] = {name: x[k] for name, x in own[option].items()}
        try:
            return robot.forward_dynamics(self.q[k], self.v[k], self.tau[k], **own)
        except sl.errors.StateError as error:
            return error.reason

    def single_calls(self) -> None:
        """Single calls agree with the batch bit by bit, and raise a right reason where it is NaN."""
        for k in {*np.flatnonzero(self.refused)[:3], *range(min(2, len(self.q)))}:
            a = self._alone(self.robot, k)
            if isinstance(a, Reason):
                if not self.refused[k] or not self._fits(a, k):
                    self._fault(f"state {k} alone is refused for {a.name}", [k])
            elif not np.array_equal(a, self.answer[k]):
                self._fault(f"state {k}: alone {a}, in a batch {self.answer[k]}", [k])

    def solution(self) -> None:
        """Loop forces where they are unique, and the status."""
        found, _ = quiet(self.robot.solve, self.q, self.v, self.tau, **self.options)
        ok = found.status == "ok"
        wrong = ok & (self.singular | self.contrary)
        if wrong.any():
            self._fault(f"solve: status ok at state {int(np.argmax(wrong))}, which is singular or contradictory", wrong)
        wrong = ~ok & self.regular
        if wrong.any():
            k = int(np.argmax(wrong))
            self._fault(f"solve: status {found.status[k]} at state {k}, which is regular", wrong)
        good = ok & self.unique & self.regular & (self.pivot > 1e-2)
        for name, exact in self.loop_forces.items():
            force = found.loop_forces[name].T[:, good]
            want = exact[:, good]
            if good.any():
                weights = np.array([1.0 / self.made.size] * 3 + [1.0] * 3)[:, None]
                scale = (np.abs(want) * weights).max(0) + self.made.mass * self.made.size
                miss = (np.abs(force - want) * weights).max(0) / scale
                if miss.max() > 1e-8:
                    k = int(np.flatnonzero(good)[np.argmax(miss)])
                    self._fault(f"solve: force of {name!r} off by {float(miss.max()):.1e} at state {k}", [k])

    def diagnosis(self) -> None:
        """Rank of three states."""
        if self.active is not None or self.given or self.driven:
            return
        for k in range(min(3, len(self.q))):
            try:
                rank = self.robot.diagnose(self.q[k]).rank
            except sl.errors.SpanloopError as error:
                self._fault(f"diagnose: state {k}: {error}", [k])
                continue
            if rank != self.rank[k] and self.pivot[k] > 1e-5 and self.noise[k] < NOISE:
                self._fault(
                    f"diagnose: rank {rank} at state {k}, exactly {self.rank[k]} (pivot {self.pivot[k]:.1e})", [k]
                )

    def _fault(self, text: str, states) -> None:
        self.tally.failures.append(f"{self.name}: {text}")
        self.bad[states] = True

    def result(self) -> Tally:
        """Counts of states: wrong if any answer is."""
        self.tally.tried += len(self.q)
        self.tally.wrong += int(self.bad.sum())
        self.tally.refused += int((self.refused & ~self.bad).sum())
        self.tally.right += int((~self.refused & ~self.bad).sum())
        return self.tally
