"""Every function of the catalog with its inputs at a state, and its derivatives as plans in extended precision."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from closed_zoo import mechanism as closed_mechanism
from extended import central, evaluate
from mechanisms import frame_of, model_of

import spanloop as sl
from spanloop.algorithms.catalog import FUNCTIONS
from spanloop.kernels import KernelSpec
from spanloop.kernels.derivative_spec import DerivativeSpec
from spanloop.kernels.lowering import POSITIONS
from spanloop.model import Model

_EMPTY = ("closure_error", "closure_facing", "closure_jacobian", "closure_bias", "grasp_accelerations")  # of trees
ON_TREES = [n for n, entry in FUNCTIONS.items() if not (entry.needs_closures or entry.needs_contacts or n in _EMPTY)]
ON_LOOPS = [name for name, entry in FUNCTIONS.items() if not (entry.needs_tree or entry.needs_contacts)]
MODES = ("jvp", "vjp", "jacobian")


@dataclass(frozen=True)
class Question:
    """A function of a model with the numbers of all its inputs, and which of them change."""

    base: KernelSpec
    inputs: dict[str, np.ndarray]
    wrt: tuple[str, ...]

    @functools.cached_property
    def specs(self) -> dict[str, DerivativeSpec]:
        return {mode: DerivativeSpec.of(self.base, mode, self.wrt) for mode in MODES}

    def at(self, **inputs: np.ndarray) -> Question:
        """The same question with other numbers of those inputs that it has; the plans are shared."""
        other = replace(self, inputs={n: inputs.get(n, x) for n, x in self.inputs.items()})
        other.__dict__["specs"] = self.specs
        return other

    def directions(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """A random direction of every input of wrt."""
        found = {n: rng.normal(size=width) for n, width in self.specs["jvp"].widths.items()}
        if "parameters" in found:  # they differ in size by orders of magnitude
            found["parameters"] *= 0.3 * np.abs(self.inputs["parameters"]) + 1e-5
        return found

    def value(self, inputs: dict[str, Any]) -> np.ndarray:
        return evaluate(self.base.plan, *(inputs[n] for n, _ in self.base.signature()[0]))

    def differences(self, directions: dict[str, np.ndarray], step: float = 1e-4) -> np.ndarray:
        """The derivative along directions by central differences in extended precision."""

        def at(s: np.longdouble) -> np.ndarray:
            return self.value({**self.inputs, **{n: self._moved(n, s * d) for n, d in directions.items()}})

        return central(at, step)

    def _moved(self, name: str, delta: np.ndarray) -> np.ndarray:
        if name not in POSITIONS:
            return self.inputs[name] + delta
        return evaluate(_moving(self.base.model), self.inputs[name], delta)

    def derivative(self, mode: str, *more: np.ndarray, dtype: Any = np.longdouble) -> np.ndarray:
        """What a derivative's plan computes, flat; more: directions of a jvp, weights of a vjp."""
        given = [self.inputs[n] for n, _ in self.base.signature()[0]]
        if dtype is np.longdouble:
            return evaluate(self.specs[mode].plan, *given, *more)
        return np.asarray(self.specs[mode].reference(*given, *more))


@functools.lru_cache(maxsize=8)
def _moving(model: Model):
    return KernelSpec.of(model, "integrate").plan


def question(
    model: Model, function: str, state: tuple[np.ndarray, ...], method: str | None = None, more: tuple[str, ...] = ()
) -> Question:
    """A function at a state (q, v, a); more: "parameters" to make them live, "forces" for loads on the last body."""
    entry = FUNCTIONS[function]
    options: dict[str, Any] = {"method": method}
    takes = entry.options
    if "frame" in takes:
        options["frame"] = frame_of(model)
    if "frames" in takes:
        options["frames"] = (frame_of(model), model.bodies[0].name)
    if "points" in takes:
        options["points"] = (model.bodies[-1].name,)
    if "forces" in more and "loaded" in takes:
        options["forces"] = (model.bodies[-1].name,)
    if "parameters" in more:
        options["parameters"] = "live"
    base = KernelSpec.of(model, function, lowering="unrolled", **options)
    sizes = dict(base.signature()[0])
    rng = np.random.default_rng(11)
    q, v, a = state
    known = {"q": q, "start": model.random_state(12)[0], "v": v, "a": a, "tau": a, "delta": 0.4 * a}
    known |= {"parameters": model.parameters().values, "active": np.ones(sizes.get("active", 0))}
    inputs = {n: known[n] if n in known else 0.1 * rng.normal(size=size) for n, size in sizes.items()}
    wrt = tuple(n for n, size in sizes.items() if n != "active" and size)
    return Question(base, inputs, wrt)


def tree_state(name: str, seed: int = 3) -> tuple[Model, tuple[np.ndarray, ...]]:
    """A tree at a random state."""
    model = model_of(name)
    q, v = model.random_state(seed)
    return model, (q, v, np.random.default_rng(seed + 1).normal(size=model.nv))


@functools.lru_cache(maxsize=16)
def closed_state(case: str, seed: int = 3) -> tuple[Model, tuple[np.ndarray, ...]]:
    """A mechanism with loops at a closed state that moves."""
    model, start = closed_mechanism(case)
    robot, rng = sl.Dynamics(model), np.random.default_rng(seed)
    q, v = robot.project(start, rng.normal(size=model.nv))
    return model, (q, v, rng.normal(size=model.nv))
