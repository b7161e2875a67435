"""Short runs of a schedule in extended precision, and their gradients by its adjoint."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from extended import evaluate

from spanloop.compiler.lower.adjoint import CLOCK, adjoint, adjoint_of_sample
from spanloop.compiler.lower.schedule import STEP, TIME, Call, Repeat, Schedule, following
from spanloop.compiler.lower.tangent import tangent
from spanloop.compiler.runtime.rollout import Rollout, Steps

Arrays = dict[str, np.ndarray]
_COMPUTED: dict[int, Schedule] = {}  # kept: an identity that names code in the cache must stay that of one schedule
TURNS = 25  # of a fixed point: as many as extended precision needs


def sample(schedule: Schedule, arrays: Mapping[str, np.ndarray]) -> Arrays:
    """All arrays after the calls of `begin`."""
    out = dict(arrays)
    for c in schedule.begin:
        _call(c, schedule.sizes, out)
    return out


def step(schedule: Schedule, arrays: Mapping[str, np.ndarray]) -> Arrays:
    """All arrays after one step; the state is the next one."""
    out = sample(schedule, arrays)
    for x in schedule.advance:
        if isinstance(x, Call):
            _call(x, schedule.sizes, out)
            continue
        assert isinstance(x, Repeat)
        for _ in range(TURNS):
            out[x.left] = np.ones_like(out[x.left])
            for c in x.calls:
                _call(c, schedule.sizes, out)
    return out | {n: out[following(n)] for n in schedule.committed}


def _call(c: Call, sizes: Mapping[str, int], arrays: Arrays) -> None:
    given = [arrays[n] if sizes[n] else np.zeros(0) for n in c.reads]
    answer, at = evaluate(c.plan, *given) if given else np.array(c.plan.outputs), 0
    for n in c.writes:
        arrays[n] = answer[..., at : at + sizes[n]]
        at += sizes[n]


@dataclass
class Run:
    """A short run of a schedule with all that it is given, one row a run.

    weights: of the loss, a weighted sum of the arrays of samples: {array: (steps + 1, size)}.
    """

    schedule: Schedule
    state: Arrays
    constants: Arrays
    controls: Arrays  # (steps, size)
    weights: Arrays
    h: float
    start: float = 0.0
    dtype: str = "float64"

    @property
    def steps(self) -> int:
        return len(next(iter(self.weights.values()))) - 1

    def loss(self, **moved: np.ndarray) -> np.ndarray:
        """The loss in extended precision, where arrays are moved by (..., size); controls by (..., steps, size)."""
        first = {**self.state, **self.constants, STEP: np.array([self.h])}
        arrays = {n: np.asarray(x, np.longdouble) + moved.get(n, 0) for n, x in first.items()}
        total: np.ndarray = np.longdouble(0)
        for k in range(self.steps + 1):
            last = min(k, self.steps - 1)
            for n, x in self.controls.items():
                arrays[n] = (np.asarray(x, np.longdouble) + moved.get(n, 0))[..., last, :]
            now = np.array([np.longdouble(self.start) + k * np.longdouble(self.h)])
            arrays[TIME] = now + moved.get(TIME, 0)
            seen = sample(self.schedule, arrays)
            total = total + sum((w[k] * seen[n]).sum(-1) for n, w in self.weights.items())
            if k < self.steps:
                arrays = step(self.schedule, arrays)
        return total

    def gradient(self, wrt: tuple[str, ...], constant: tuple[str, ...] = ()) -> Arrays:
        """Derivatives of the loss by the compiled adjoint, and by each step's controls."""
        s, states = self.schedule, self.states()
        of = tuple(self.weights)
        back = adjoint(s, wrt, of, constant, self.dtype)
        end = adjoint_of_sample(s, wrt, of, constant, self.dtype)
        assert (end.state, end.controls, end.record) == (back.state, back.controls, back.record)
        lam = np.zeros((1, back.width(back.state)), self.dtype)
        record: list[np.ndarray] = []
        for k in range(self.steps, -1, -1):
            now, held = (end if k == self.steps else back), min(k, self.steps - 1)
            row = self.start + k * self.h
            given = {n: states[k][n] for n in s.state} | {n: x[held] for n, x in self.controls.items()}
            given |= {CLOCK: np.array([row])} | {f"g.{n}": w[k] for n, w in self.weights.items()}
            controls = np.concatenate([given[n] for n in now.controls])[None, None]
            lam = compute(now, lam, _row(now, self.constants), controls, self.h, self.dtype)
            found = dict(zip(now.state, np.split(lam[0], _ends(now, now.state)), strict=True))
            record.insert(0, np.concatenate([found[n] for n in now.record]) if now.record else np.zeros(0))
        out = dict(zip(back.state, np.split(lam[0], _ends(back, back.state)), strict=True))
        if not back.record:
            return out
        for n, rows in zip(back.record, np.split(np.array(record), _ends(back, back.record), axis=1), strict=True):
            rows[-2] += rows[-1]  # after the last step its controls still hold
            out[n] = rows[:-1]
        return out

    def states(self) -> list[Arrays]:
        """The state at the start of every step and at the end, by the compiled schedule."""
        s = replace(self.schedule, record=self.schedule.state)
        record = np.zeros((1, self.steps + 1, s.width(s.state)), self.dtype)
        controls = np.concatenate([self.controls[n] for n in s.controls], axis=-1)[None] if s.controls else None
        controls = np.zeros((1, 1, 0)) if controls is None else controls
        compute(
            s, _row(s, self.state, s.state), _row(s, self.constants), controls, self.h, self.dtype, record, self.start
        )
        return [dict(zip(s.state, np.split(row, _ends(s, s.state)), strict=True)) for row in record[0]]


def compute(schedule, state, constants, controls, h, dtype, record=None, start=0.0) -> np.ndarray:
    """The state after as many steps as controls or the record have rows."""
    state, constants, controls = (np.ascontiguousarray(x, dtype) for x in (state, constants, controls))
    count = controls.shape[1] if record is None else record.shape[1] - 1
    why = np.zeros(len(state), np.uint8)
    _COMPUTED[id(schedule)] = schedule
    rollout = Rollout(f"{schedule} {os.getpid()} {id(schedule)}", lambda: schedule, dtype)
    done = rollout.run(state, constants, controls, why, Steps(start, h, 0, count), record)
    assert not why.any(), why
    assert (done == count).all()
    return state


def _row(schedule: Schedule, arrays: Mapping[str, np.ndarray], names: tuple[str, ...] | None = None) -> np.ndarray:
    names = schedule.constants if names is None else names
    return np.concatenate([arrays[n] for n in names] + [np.zeros(0)])[None]


def _ends(schedule: Schedule, names: tuple[str, ...]) -> np.ndarray:
    return np.cumsum([schedule.sizes[n] for n in names])[:-1]


def dot_product_error(run: Run, wrt: tuple[str, ...], columns: int, constant: tuple[str, ...] = ()) -> float:
    """The largest difference of ⟨g, rates of samples⟩ and ⟨cotangents, rates of what is given⟩ of any direction.

    It is relative to the sum of sizes of the terms.
    """
    s, rng = run.schedule, np.random.default_rng(6)
    ahead = tangent(s, wrt, tuple(run.weights), columns, constant, run.dtype)
    d = {n: rng.normal(size=(columns, s.sizes[n])) for n in wrt}
    rows = {f"d.{n}": x.reshape(-1) for n, x in d.items()}
    given = {**{n: np.zeros(ahead.sizes[n]) for n in ahead.state}, **run.state, **run.constants, **rows}
    steps = {**run.controls, **{n: np.tile(x, (run.steps, 1)) for n, x in rows.items()}}
    controls = np.concatenate([steps[n] for n in ahead.controls] + [np.zeros((run.steps, 0))], axis=-1)[None]
    record = np.zeros((1, run.steps + 1, ahead.width(ahead.record)), run.dtype)
    state, constants = _row(ahead, given, ahead.state), _row(ahead, given)
    compute(ahead, state, constants, controls, run.h, run.dtype, record, run.start)
    parts = dict(zip(ahead.record, np.split(record[0], _ends(ahead, ahead.record), axis=-1), strict=True))
    shown = {n: parts[f"d.{n}"].reshape(run.steps + 1, columns, -1) for n in run.weights if f"d.{n}" in parts}
    found = sum(np.einsum("ki,kci->c", run.weights[n], x) for n, x in shown.items())
    lam = run.gradient(wrt, constant)
    terms = [np.atleast_2d(lam[f"lam.{n}"]).sum(0) * d[n] for n in wrt]
    expected, size = sum(x.sum(-1) for x in terms), sum(np.abs(x).sum(-1) for x in terms)
    return float(np.max(np.abs(found - expected) / size))
