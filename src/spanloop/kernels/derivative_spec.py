"""A DerivativeSpec: the derivative of a kernel's function by some of its inputs, as a kernel of its own.

| mode | inputs beside the function's own | answer |
|---|---|---|
| jvp | d.x for every x of wrt: a direction | the derivative along it, in the shape of the function's answer |
| vjp | weights, one for each number of the answer | derivatives of the weighted sum by wrt, side by side |
| jacobian | | derivatives of every number of the answer by wrt: (*shape, width) |

The derivative by coordinates q has one entry for each degree of freedom: q moves as at unit joint rates, so that
quaternions stay of unit length. Derivatives by other inputs are by their own numbers.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.compiler.derivative import pullback, tangents
from spanloop.compiler.derivative.partials import plus, times
from spanloop.compiler.lower import Plan, traced_inputs
from spanloop.compiler.lower.evaluation import evaluated
from spanloop.compiler.trace import Expression
from spanloop.errors import InputError, Reason, Refusal, nearest
from spanloop.kernels.lowering import POSITIONS, parameter_conditions, unit_conditions
from spanloop.kernels.spec import KernelSpec, known_and_new
from spanloop.math.symmetric import PIVOT_TOLERANCE, SINGLE_PIVOT_TOLERANCE
from spanloop.model import Model

if TYPE_CHECKING:
    from spanloop.compiler.runtime.kernel import Kernel

MODES = ("jvp", "vjp", "jacobian")
WEIGHTS = "weights"  # the input of a vjp
MARGIN, SINGLE_MARGIN = 3e-9, 2e-4  # of pivots of loops, over their own admittance: two digits are left
SWITCHES = ("active",)  # inputs that are 1 or 0


@dataclass(frozen=True, eq=False)
class DerivativeSpec:
    """The derivative of `base` by its inputs `wrt`; `DerivativeSpec.of` checks them."""

    base: KernelSpec
    mode: str
    wrt: tuple[str, ...]

    @staticmethod
    def of(base: KernelSpec, mode: str, wrt: Sequence[str] | str | None = None) -> DerivativeSpec:
        """wrt: names of inputs; by default all that are numbers, but for switches and parameters."""
        if mode not in MODES:
            raise InputError(f"{base.name}: derivative is {mode!r}; {nearest(mode, MODES)}")
        known = [n for n, _ in base.signature()[0] if n not in SWITCHES]
        if wrt is None:
            wrt = [n for n in known if n != "parameters"]
        names = (wrt,) if isinstance(wrt, str) else tuple(wrt)
        for name in names:
            if name not in known:
                raise InputError(f"{base.name}: wrt has {name!r}; {nearest(name, known)}")
        if not names or len(set(names)) < len(names):
            raise InputError(f"{base.name}: wrt is {names!r}; expected different names out of {', '.join(known)}")
        return DerivativeSpec(base, mode, names)

    @property
    def name(self) -> str:
        """Of the function and of the derivative; errors begin with it."""
        return f"{self.base.name}.{self.mode}"

    @property
    def label(self) -> str:
        """What it computes, for reports."""
        return f"derivatives ({self.mode}) of {self.base.label}"

    @functools.cached_property
    def key(self) -> str:
        """Names everything that the plan depends on; needs no tracing."""
        return hashlib.sha256(f"{self.base.key}|{self.mode}|{self.wrt}".encode()).hexdigest()

    @property
    def widths(self) -> dict[str, int]:
        """How many directions each input of wrt has."""
        sizes = dict(self.base.signature()[0])
        return {n: self.base.model.nv if n in POSITIONS else sizes[n] for n in self.wrt}

    @property
    def places(self) -> dict[str, slice]:
        """Where the derivatives by each input of wrt are among all."""
        out, at = {}, 0
        for name, width in self.widths.items():
            out[name] = slice(at, at + width)
            at += width
        return out

    def signature(self) -> tuple[tuple[tuple[str, int], ...], tuple[int, ...]]:
        """Names and sizes of the inputs, shape of the answer."""
        inputs, shape = self.base.signature()
        width = sum(self.widths.values())
        if self.mode == "jvp":
            return (*inputs, *((f"d.{n}", k) for n, k in self.widths.items())), shape
        if self.mode == "vjp":
            return (*inputs, (WEIGHTS, math.prod(shape))), (width,)
        return inputs, (*shape, width)

    @functools.cached_property
    def plan(self) -> Plan:
        """The operations in order, those of every link written out."""
        inputs, shape = self.signature()
        x = traced_inputs(inputs)
        own = {n: x[n] for n, _ in self.base.signature()[0]}
        answer, demands = self.base.compute(own)
        found = {"jvp": self._along, "vjp": self._weighted, "jacobian": self._jacobian}[self.mode](answer, x)
        guards = [*unit_conditions(self.base.model, own), *parameter_conditions(self.base.model, own)]
        return Plan.of(self.name, x, shape, found, guards, [a < b for a, b in (*demands, *self._digit_demands(own))])

    def _digit_demands(self, own: Mapping[str, Sequence[Any]]) -> list[tuple[Any, Any]]:
        """Pairs, the first to be less: no pivot of the loops is so small that the derivative has lost its digits.

        Near a singular position at the distance σ the function loses some 1 / σ² of its digits, the derivative 1 / σ³.
        """
        base = self.base
        if "redundancy" not in base.algorithm.takes or not base.refuses_singular or not base.has_closures:
            return []
        loops = KernelSpec.of(
            base.model, "velocity_correction", parameters="live" if base.live else "baked", captures=base.captures
        )
        loops = replace(loops, assembly=base.assembly, single=base.single)
        given = {n: own.get(n, [0.0] * size) for n, size in loops.signature()[0]}
        _, pivots = loops.compute(given)
        factor = SINGLE_MARGIN / SINGLE_PIVOT_TOLERANCE if base.single else MARGIN / PIVOT_TOLERANCE
        return [(factor * least, pivot) for least, pivot in pivots]

    def _along(self, answer: Sequence[Any], x: Mapping[str, Sequence[Any]]) -> list[Any]:
        seeds: dict[int, dict] = {}
        for name in self.wrt:
            for node, rate in zip(x[name], rates_of(self.base.model, name, x[name], x[f"d.{name}"]), strict=True):
                seeds[node.index] = {0: rate}
        return [column.get(0, 0.0) for column in tangents(answer, seeds)]

    def _weighted(self, answer: Sequence[Any], x: Mapping[str, Sequence[Any]]) -> list[Any]:
        wanted = [node for name in self.wrt for node in x[name]]
        return self._by_directions(x, pullback(answer, x[WEIGHTS], wanted))

    def _jacobian(self, answer: Sequence[Any], x: Mapping[str, Sequence[Any]]) -> list[Any]:
        width = sum(self.widths.values())
        if 2 * len(answer) < width:
            wanted = [node for name in self.wrt for node in x[name]]
            rows = [pullback([y], [1.0], wanted) for y in answer]
            return [z for row in rows for z in self._by_directions(x, row)]
        columns = tangents(answer, self.unit_seeds(x))
        return [column.get(k, 0.0) for column in columns for k in range(width)]

    def unit_seeds(self, x: Mapping[str, Sequence[Any]]) -> dict[int, dict]:
        """How the inputs of wrt change along each direction, {index of a node: {direction: rate}}."""
        seeds: dict[int, dict] = {}
        for name, place in self.places.items():
            for node, by in zip(x[name], unit_rates(self.base.model, name, x[name]), strict=True):
                seeds[node.index] = {place.start + k: rate for k, rate in by.items()}
        return seeds

    def _by_directions(self, x: Mapping[str, Sequence[Any]], bars: Sequence[Any]) -> list[Any]:
        """From derivatives by every number of wrt those by every direction."""
        out: list[Any] = [0.0] * sum(self.widths.values())
        at = 0
        for name, place in self.places.items():
            for by in unit_rates(self.base.model, name, x[name]):
                for k, rate in by.items():
                    out[place.start + k] = plus(out[place.start + k], times(rate, bars[at]))
                at += 1
        return out

    def reference(self, *arrays: np.ndarray) -> np.ndarray | None:
        """The answer of one state on Python floats; None if it has none."""
        own = arrays[: len(self.base.signature()[0])]
        if self.base.reference(*own) is None:
            return None
        try:
            numbers, flags = evaluated(self.plan, [float(y) for x in arrays for y in x])
        except (ArithmeticError, ValueError):
            return None
        answer = np.array(numbers, dtype=float).reshape(self.signature()[1])
        return answer if np.isfinite(answer).all() and all(y == 0.0 for y in flags) else None

    def explain(self, *arrays: np.ndarray) -> Refusal:
        """Why this state has no answer."""
        inputs, _ = self.base.signature()
        own, others = arrays[: len(inputs)], arrays[len(inputs) :]
        if self.base.reference(*own) is None:
            return self.base.explain(*own)
        for (name, _), x in zip(self.signature()[0][len(inputs) :], others, strict=True):
            if not np.isfinite(x).all():
                k = int(np.flatnonzero(~np.isfinite(x))[0])
                return Refusal(Reason.NOT_FINITE, f"{name}[{k}] is {x[k]}; every number must be finite")
        if self._is_near_singular(own):
            return Refusal(
                Reason.SINGULAR_CLOSURE,
                f"the loops are too near to a singular configuration: {self.base.name} has a value there, but its "
                "derivative has lost its digits. See robot.diagnose(q)",
            )
        return Refusal(
            Reason.NOT_SMOOTH,
            f"{self.base.name} has a value at this state, but its derivative is not finite (a corner, as of a length "
            "at 0?), or the numbers overflow",
        )

    def _is_near_singular(self, own: Sequence[np.ndarray]) -> bool:
        inputs, _ = self.base.signature()
        pairs = self._digit_demands({n: [float(y) for y in x] for (n, _), x in zip(inputs, own, strict=True)})
        return any(not a < b for a, b in pairs)

    def others(self, *arrays: np.ndarray) -> Iterator[DerivativeSpec]:
        """Specs that may answer a state that this one refuses."""
        own = arrays[: len(self.base.signature()[0])]
        for base in self.base.others(*own):
            yield DerivativeSpec(base, self.mode, self.wrt)

    def other_kernels(self, dtype: str, *arrays: np.ndarray) -> Iterator[Kernel]:
        """Kernels that may answer a state that this one refuses; those that exist already come first."""
        return known_and_new(self._other_kernels, self.others(*arrays), dtype)

    @functools.cached_property
    def _other_kernels(self) -> dict[str, Kernel]:
        return {}


# ---- directions of inputs


def rates_of(model: Model, name: str, x: Sequence[Any], direction: Sequence[Any]) -> list[Any]:
    """How the numbers x of an input change along a direction: coordinates at joint rates, others as it says."""
    if name not in POSITIONS:
        return list(direction)
    out: list[Any] = []
    for joint in model.joints:
        part, rate = tuple(x[model.q_slice(joint.name)]), tuple(direction[model.v_slice(joint.name)])
        out += joint.kind.rates(part, rate)
    return out


def unit_rates(model: Model, name: str, x: Sequence[Any]) -> list[dict[int, Any]]:
    """For each number of an input how it changes along each unit direction, {direction: rate}, without zeros."""
    if name not in POSITIONS:
        return [{k: 1.0} for k in range(len(x))]
    out: list[dict[int, Any]] = [{} for _ in x]
    for joint in model.joints:
        place, first, nv = model.q_slice(joint.name), model.v_slice(joint.name).start, joint.kind.nv
        for k in range(nv):
            unit = tuple(float(i == k) for i in range(nv))
            for i, rate in enumerate(joint.kind.rates(tuple(x[place]), unit)):
                if isinstance(rate, Expression) or rate:
                    out[place.start + i][first + k] = rate
    return out
