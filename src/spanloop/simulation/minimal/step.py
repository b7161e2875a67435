"""The parts of a step in minimal coordinates, as functions of named arrays: arrays, and pairs, the first to be less.

Integrators move all joints; the positions of unactuated ones are only where Newton's method begins.

| name | numbers | meaning |
|---|---|---|
| q.solved, v.solved | nq, nv | the state of a stage, completed from its actuated joints |
| left, worst | 1 | largest closure error after Newton's steps: of a stage, of all stages of a step |
| T | nv · n | rates of all joints for unit actuated rates at the start of the step |

An integrator's rates of unactuated joints miss T θ̇ by about its own error. Near a singular configuration, where
T makes much of small errors, a step that misses by more than a tenth of the root of the margin is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spanloop.math.scalar import where
from spanloop.simulation.system import Pairs, System

TRUST = 0.01  # of the margin: by how much of the square of all rates a step may miss
NOISE = 1e-10  # (rad/s)²: speeds that are nothing

Arrays = Mapping[str, Sequence[Any]]
Answers = tuple[tuple, Pairs]


def begin(system: System, x: Arrays) -> Answers:
    """a1, v.closed, margin, T, worst at the start of a step, whose q is completed."""
    T, _ = system.actuated_rates(x)
    v, margin = system.completion.velocity(T, x["v"]), system.completion.margin(T)
    a, pairs = system.accelerations({**x, "v": v})
    return (a, v, [margin], [y for row in T for y in row], [0.0]), [*pairs, (system.least_margin, margin)]


def accelerate(system: System, x: Arrays, most: float) -> Answers:
    """Accelerations, q.solved, v.solved and left of a stage; an error of `most` or more is refused."""
    q, v, left = system.completed(x)
    a, pairs = system.accelerations({**x, "q": q, "v": v})
    return (a, q, v, [left]), [*pairs, (left, most)]


def take(x: Arrays) -> tuple:
    """The completed state in the place of the predicted one, and worst."""
    return x["q.solved"], x["v.solved"], [_larger(x["worst"][0], x["left"][0])]


def end(system: System, x: Arrays, most: float) -> Answers:
    """q.next, v.next, loops.next after a step; a step across a singular configuration is refused."""
    completion, n = system.completion, len(system.completion.actuated)
    q, left = system.closed_position({**x, "q": x["q.after"]})
    T, pivots = system.actuated_rates({**x, "q": q})
    before = [x["T"][k : k + n] for k in range(0, len(x["T"]), n)]
    v, near = completion.velocity(T, x["v.after"]), completion.margin(T)
    miss, speed = completion.square([a - b for a, b in zip(v, x["v.after"], strict=True)]), completion.square(v)
    pairs = [*pivots, (left, most), (0.0, completion.likeness(before, T)), (miss, TRUST * near * speed + NOISE)]
    error, margin = x["loops"]
    error = _larger(_larger(error, x["worst"][0]), left)
    for y in (x["margin"][0], near):
        margin = where(y < margin, y, margin)
    return (q, v, [error, margin]), pairs


def _larger(a: Any, b: Any) -> Any:
    return where(a < b, b, a)
