"""Attack portable code: functions of random mechanisms as WebAssembly beside their machine code.

A case is a random tree or closed mechanism, a function of the catalog and some states: usual ones, and ones with a
number that is not finite, a quaternion off unit length, an angle beyond the range of the sines, an open loop. Both
answer or both refuse, and numbers differ by no more than 100 times what one rounding of the inputs changes. One of them
may refuse a state near the bound of a refusal: if it answers with the inputs moved by some roundings.
"""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
from attacked_loops import closed_case
from attacked_trees import TreeCase
from portable_code import Wasm
from tally import Tally, until

import spanloop as sl
from spanloop.compiler.portable.sines import LIMIT

STATES = 24
TREES = ("forward_dynamics", "inverse_dynamics", "mass_matrix", "bias", "energy", "momentum", "gravity_torques")
CLOSED = ("forward_dynamics", "forward_dynamics", "closure_jacobian", "energy")
AGREE = 1e-12  # of the largest number of an answer
DRAWS = 6


def attack(seed: int, deadline: float) -> Tally:
    """Cases 0, 1, 2, ... of a seed until the deadline."""
    return until(case, seed, deadline)


def case(seed: int, k: int, n: int = STATES) -> Tally:
    """One mechanism and one function at n states."""
    rng = np.random.default_rng([seed, k, 23])
    tally, name = Tally(notes=Counter(mechanisms=1)), f"portable.case({seed}, {k})"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sl.SpanloopWarning)
            model, states = _mechanism(rng, n)
            if not len(states[0]):
                return Tally(notes=Counter({"not assembled": 1}))
            function = str(rng.choice(CLOSED if model.loops or model.couplings else TREES))
            kernel = sl.compile(model, function, lowering="unrolled")
            both = _Both(kernel, rng, f"{name}, {function}", tally)
            for j in range(len(states[0])):
                both.compare(j, _spoiled([x[j].copy() for x in states], j, rng))
    except sl.errors.UnsupportedError:
        tally.notes["unsupported"] += 1
    except Exception as error:
        tally.fail(f"{name}: {type(error).__name__}: {error}")
    return tally


def _mechanism(rng: np.random.Generator, n: int) -> tuple[sl.Model, list[np.ndarray]]:
    """A model, and states q, v, and torques or accelerations, each (n, ...)."""
    if rng.random() < 0.5:
        tree = TreeCase(rng)
        return tree.model, list(tree.states(n))
    made = closed_case(rng)
    model, robot, found = made.model, sl.Dynamics(made.model), []
    for _ in range(4):
        start = model.random_state(seed=int(rng.integers(1 << 30)))[0]
        if made.starts is not None:
            start = np.asarray(made.starts)[:, rng.integers(np.shape(made.starts)[1])]
        try:
            found.append(robot.assemble(start))
        except sl.SpanloopError:
            continue
    q = np.array([found[rng.integers(len(found))] for _ in range(n)]) if found else np.zeros((0, model.nq))
    return model, [q, np.zeros((len(q), model.nv)), rng.normal(size=(len(q), model.nv))]


def _spoiled(state: list[np.ndarray], j: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Some states with a fault, by their number."""
    q = state[0]
    if not len(q):
        return state
    at = rng.integers(len(q))
    faults = {0: np.nan, 1: np.inf, 2: 1e300, 3: 3.0 * LIMIT["double"], 4: -1e15}
    if j in faults:
        q[at] = faults[j]
    elif j == 5:
        q[at] += 1e-3
    elif j == 6:
        state[1][:] = np.nan
    return state


class _Both:
    """A kernel as machine code and as WebAssembly."""

    def __init__(self, kernel, rng: np.random.Generator, name: str, tally: Tally):
        self.kernel, self.rng, self.name, self.tally = kernel, rng, name, tally
        self.wasm = Wasm(kernel.wasm)

    def compare(self, j: int, state: list[np.ndarray]) -> None:
        given = dict(zip(("q", "v", "tau"), state, strict=True)) | {"a": state[2]}
        given |= {
            n: np.ones(size) if n == "active" else np.zeros(size) for n, size in self.kernel.inputs if n not in given
        }
        inputs = [np.ascontiguousarray(given[n], float) for n, _ in self.kernel.inputs]
        own, other = self._machine(inputs), self._wasm(inputs)
        if own is None or other is None:
            self._refusals(j, inputs, own, other)
            return
        nearby = [self._machine(self._moved(inputs)) for _ in range(DRAWS)]
        if any(x is None for x in nearby):
            self.tally.count(right=1)  # next to a refusal: how far off it may be is not known
            return
        change = np.max([np.abs(x - own) for x in nearby], axis=0)
        if (np.abs(other - own) <= 100.0 * change.max(initial=0.0) + AGREE * np.abs(own).max(initial=0.0)).all():
            self.tally.count(right=1)
        else:
            self.tally.fail(f"{self.name}, state {j}: off by {np.abs(other - own).max():.1e}")

    def _refusals(self, j: int, inputs: list[np.ndarray], own, other) -> None:
        if own is None and other is None:
            self.tally.count(refused=1)
        elif any(np.abs(x[np.isfinite(x)]).max(initial=0.0) > LIMIT["double"] for x in inputs):
            self.tally.count(refused=1)  # the machine code has sines of larger angles; both may overflow on the way
        elif any((self._machine(x) is None) != (own is None) for x in [self._moved(inputs) for _ in range(DRAWS)]):
            self.tally.count(refused=1)
        else:
            who = "machine code" if own is None else "WebAssembly"
            self.tally.fail(f"{self.name}, state {j}: {who} alone refuses it")

    def _moved(self, inputs: list[np.ndarray]) -> list[np.ndarray]:
        """Inputs with every number moved by one rounding."""
        return [x + np.spacing(np.abs(x)) * self.rng.choice([-1, 1], x.shape) for x in inputs]

    def _machine(self, inputs: list[np.ndarray]) -> np.ndarray | None:
        out = np.empty(self.kernel.shape)
        return out.ravel() if self.kernel.attempt(inputs, out) else None

    def _wasm(self, inputs: list[np.ndarray]) -> np.ndarray | None:
        memory, end = self.wasm.memory, 0
        for x in inputs:
            memory[end : end + len(x)] = x
            end += len(x)
        status = self.wasm.call("kernel")
        answer = memory[end : end + int(np.prod(self.kernel.shape))].copy()
        assert (status != 0) == np.isnan(answer).any() or not answer.size
        return None if status else answer
