"""A stage as a function of arrays: one step of a rollout whose inputs are its constants and whose outputs its state."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from spanloop.compiler.lower import Schedule, Stage
from spanloop.compiler.lower.schedule import Item
from spanloop.compiler.runtime.rollout import Rollout, Steps
from spanloop.kernels import source_hash

Make = Callable[[Stage], Sequence[Item]]


class StageFunction:
    """f(rows by name) -> rows by name, compiled when it is first called.

    make(stage): the calls; inputs, outputs: arrays of the stage with their sizes. key: names all that they depend on.
    """

    def __init__(
        self, name: str, key: str, inputs: Mapping[str, int], outputs: Mapping[str, int], make: Make, label=""
    ):
        self.inputs, self.outputs = dict(inputs), dict(outputs)
        text = "|".join((name, key, str(self.inputs), str(self.outputs), source_hash()))
        self._rollout = Rollout(
            hashlib.sha256(text.encode()).hexdigest(), lambda: self._schedule(name, make), label=label
        )

    def _schedule(self, name: str, make: Make) -> Schedule:
        stage = Stage({**self.inputs, **self.outputs}, f"{name}.")
        calls = tuple(make(stage))
        outputs = tuple(self.outputs)
        return Schedule(name, stage.sizes, outputs, tuple(self.inputs), (), (), (), calls, in_place=outputs)

    def __call__(self, **rows: np.ndarray) -> dict[str, np.ndarray]:
        """Outputs (n, size) for inputs (n, size) or (1, size); outputs that are given are what they start from."""
        n = max(len(x) for x in rows.values()) if all(map(len, rows.values())) else 0
        if n == 0:
            return {name: np.zeros((0, size)) for name, size in self.outputs.items()}

        def joined(sizes: Mapping[str, int]) -> np.ndarray:
            wide = [
                np.broadcast_to(rows[k], (n, size)) if k in rows else np.zeros((n, size)) for k, size in sizes.items()
            ]
            return np.ascontiguousarray(np.concatenate(wide, axis=1), float)

        state = joined(self.outputs)
        why = np.zeros(n, np.uint8)
        self._rollout.run(state, joined(self.inputs), np.zeros((1, 1, 0)), why, Steps(0.0, 1.0, 0, 1))
        ends = np.cumsum(list(self.outputs.values()))
        return {k: state[:, e - size : e] for (k, size), e in zip(self.outputs.items(), ends, strict=True)}
