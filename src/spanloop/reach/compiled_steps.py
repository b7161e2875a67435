"""Steps towards targets as machine code: a schedule of one call, repeated over rows of states until targets are met."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.algorithms.closed.reaching_step import Reaching, reaching_step
from spanloop.compiler.lower import Call, Schedule, unrolled
from spanloop.compiler.lower.schedule import following
from spanloop.compiler.render.rollout import HALTED
from spanloop.compiler.runtime.rollout import Rollout, Steps
from spanloop.kernels.spec import content, source_hash
from spanloop.model import Model
from spanloop.sweeps import walk
from spanloop.topology import Mechanism, mechanism
from spanloop.topology.mechanism import Link
from spanloop.topology.tree_paths import path

_CONSTANTS = ("target", "weight", "tolerance", "rest")
_NOTHING = 1e8  # the merit of no state: any other is better
_NO_CONTROLS = np.zeros((1, 1, 0))


@dataclass(frozen=True, eq=False)
class CompiledSteps:
    """Steps of one model towards one set of targets. Rows hold the joints that move, apart from those that do not."""

    model: Model
    task: Reaching

    @functools.cached_property
    def _mechanism(self) -> Mechanism:
        return mechanism(self.model)

    @functools.cached_property
    def _links(self) -> tuple[list[Link], list[Link]]:
        """Links on the way to a target or loop: those that move, and those that rest."""
        m = self._mechanism
        ends = [m.anchors[t.frame].link for t in self.task.targets if t.frame]
        ends += [a.link for c in m.closures for a in (c.a, c.b)] + [i for g in m.gears for i, _ in g.ends]
        on = {i for end in ends for i in path(m.parents, end)}
        if not all(t.frame for t in self.task.targets):  # the centre of mass
            on = set(range(len(m.links)))
        links = [link for link in m.links if link.number in on]
        rests = [link.v.start in self.task.fixed for link in links]
        pairs = list(zip(links, rests, strict=True))
        return [link for link, rest in pairs if not rest], [link for link, rest in pairs if rest]

    @functools.cached_property
    def moving(self) -> np.ndarray:
        """Places in q of the joints that move."""
        return _places(self._links[0])

    @functools.cached_property
    def rest(self) -> np.ndarray:
        """Places in q of joints that rest on the way to a target or loop."""
        return _places(self._links[1])

    @functools.cached_property
    def sizes(self) -> dict[str, int]:
        """Arrays of a row of state, in order."""
        own = {n: k for n, k in self.task.sizes.items() if n not in _CONSTANTS}
        nv = sum(link.kind.nv for link in self._links[0])
        return {"q": len(self.moving), "start": len(self.moving), "delta": nv, **own}

    def begun(self, q: np.ndarray, factor: float = 1.0) -> np.ndarray:
        """Rows of state (n, width) for states q (n, nq) that are tried first; factor: of the damping."""
        n, sizes = len(self.moving), self.sizes
        rows = np.ones((len(q), sum(sizes.values())))
        rows[:, :n] = rows[:, n : 2 * n] = q[:, self.moving]
        rows[:, 2 * n : 2 * n + sizes["delta"]] = 0.0
        rows[:, -5:-2] = _NOTHING
        rows[:, -2] = factor
        return rows

    def part(self, rows: np.ndarray, name: str) -> np.ndarray:
        """The array of this name in rows of state; of coordinates those of `moving`."""
        return rows[:, self._parts[name]]

    @functools.cached_property
    def _parts(self) -> dict[str, slice]:
        ends = np.cumsum(list(self.sizes.values())).tolist()
        return {n: slice(end - size, end) for (n, size), end in zip(self.sizes.items(), ends, strict=True)}

    def advance(self, rows: np.ndarray, constants: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Advance rows (n, width) in place by at most `count` steps; which have reached their targets, steps taken.

        A row that has reached its targets stays: its q is the state that reaches them. constants (n, width): numbers of
        the targets, weights, tolerances, coordinates of `rest`.
        """
        why = np.zeros(len(rows), np.uint8)
        taken = self._rollout.run(rows, constants, _NO_CONTROLS, why, Steps(0.0, 1.0, 0, count))
        return (why & HALTED) > 0, taken

    @functools.cached_property
    def _rollout(self) -> Rollout:
        text = f"{content(self.model)}|{self.task}|{source_hash()}"
        return Rollout(hashlib.sha256(text.encode()).hexdigest(), self.schedule)

    def schedule(self) -> Schedule:
        """One step as a schedule."""
        state, constants = self.sizes, {**self.task.sizes, "rest": len(self.rest)}
        constants = {n: constants[n] for n in _CONSTANTS}
        inputs = tuple({**state, **constants}.items())
        plan = unrolled("reaching_step", inputs, (sum(state.values()) + 1,), lambda x: (self._computed(x), (), ()))
        following_state = {following(n): k for n, k in state.items()}
        call = Call(plan, (*state, *_CONSTANTS), (*following_state, "missed"))
        sizes = {**state, **constants, **following_state, "missed": 1}
        return Schedule("reaching", sizes, tuple(state), _CONSTANTS, (), (), (), (call,), halt="missed")

    def _computed(self, x: Mapping[str, Sequence[Any]]) -> list[Any]:
        """The step on scalars, of the whole mechanism from the joints that move and rest."""
        m, neutral = self._mechanism, [float(y) for y in self.model.neutral()]
        in_q, in_v = self.moving.tolist(), [k for link in self._links[0] for k in range(link.v.start, link.v.stop)]
        whole = {n: _filled(_filled(neutral, self.rest.tolist(), x["rest"]), in_q, x[n]) for n in ("q", "start")}
        whole["delta"] = _filled([0.0] * m.nv, in_v, x["delta"])
        out = walk(reaching_step(m, self.task), m, {**x, **whole})
        chosen = [*in_q, *(m.nq + k for k in in_q), *(2 * m.nq + k for k in in_v)]
        return [out[k] for k in chosen] + out[2 * m.nq + m.nv :]


def _places(links: Sequence[Link]) -> np.ndarray:
    return np.array([k for link in links for k in range(link.q.start, link.q.stop)], dtype=int)


def _filled(whole: Sequence[Any], places: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """The list with other values at some places."""
    out = list(whole)
    for k, x in zip(places, values, strict=True):
        out[k] = x
    return out
