"""Gradients of runs with events, run after run: each is cut at its own events.

`running` is integrated by the trapezoidal rule over the parts of a run; at an event it is taken before and after it.
The loss is of the last state: where an event ends a run, of that moment, which moves with what the run starts from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spanloop.errors import InputError, Refusal, StateError, UnsupportedError
from spanloop.simulation.gradients.differentiated_run import DifferentiatedRun
from spanloop.simulation.gradients.event_adjoint import EventAdjoint, PartsLoss
from spanloop.simulation.gradients.event_maps import EventMaps
from spanloop.simulation.gradients.event_parts import PART_LENGTH, PART_TIME, Parts, parts_of
from spanloop.simulation.gradients.event_soundness import must_be_supported, must_have_gone_well
from spanloop.simulation.gradients.traced_loss import TracedLoss
from spanloop.simulation.gradients.wanted import MOMENTS


@dataclass
class EventGradient:
    """The derivatives of a loss and an integral by the state at the start, the inputs and the constants of runs.

    value (n,): of the loss and the integral; refused: why runs have no derivative.
    """

    run: DifferentiatedRun
    loss: TracedLoss | None
    running: TracedLoss | None
    value: np.ndarray = field(init=False)
    refused: dict[int, Refusal] = field(default_factory=dict)

    @staticmethod
    def of(run: DifferentiatedRun, loss: Any, running: Any) -> EventGradient:
        """The gradient of the arguments of sl.gradient, checked."""
        if loss is None and running is None:
            raise InputError(f"{run.function}: neither loss nor running is given; expected a function of the state")
        if loss is not None and not callable(loss):
            raise UnsupportedError(
                f"{run.function}: weights of samples need a run without events, which have samples of their own. Give "
                "a function (q, v) or (t, q, v) of the last state, or running="
            )
        must_be_supported(run.function, run.problem, run.integrator.dtype)
        model = run.problem.model
        final = None if loss is None else TracedLoss.final(loss, model)
        along = None if running is None else TracedLoss.running(running, model, run.inputs.shape[2])
        return EventGradient(run, final, along)

    def cotangents(self) -> dict[str, np.ndarray]:
        """Derivatives (n, size) by arrays q, v, p, at of a step, those that are wanted; u (n, steps or 1, width)."""
        problem, grid = self.run.problem, self.run.grid
        n, sizes = len(problem), problem.system.sizes
        wanted = tuple(dict.fromkeys(("q", "v", *self.run.wanted.arrays)))
        out = {name: np.zeros((n, sizes[name])) for name in wanted if name != "u"}
        self.value = np.full(n, np.nan)
        if "u" in wanted:
            out["u"] = np.zeros((n, 1 if self.run.inputs_are_constant else grid.steps, sizes["u"]))
        maps = EventMaps(problem, tuple(x for x in wanted if x in ("p", MOMENTS)))
        for k in range(n):
            try:
                parts = parts_of(problem, *self.run.taken, self.run.integrator.name, k)
                must_have_gone_well(parts)
                found = EventAdjoint(parts, maps, maps.moving).gradient(self._loss(parts, k))
            except StateError as error:
                self.refused[k] = error.refusal
                continue
            for name in out:
                if name != "u":
                    out[name][k] = found[name]
            if "u" in out and self.run.inputs_are_constant:
                out["u"][k, 0] = found["u"].sum(axis=0)
            elif "u" in out:
                out["u"][k, : len(found["u"])] = found["u"]
        return out

    # ---- the loss of one run

    def _loss(self, parts: Parts, k: int) -> PartsLoss:
        """The derivatives of what is differentiated by the states of a run; its value is kept."""
        end = {"q": parts.after[-1:, parts.places["q"]], "v": parts.shown[-1:]}
        time = parts.time[-1:] + parts.length[-1:]
        value, by = 0.0, {"t": np.zeros(1), "q": np.zeros(end["q"].shape[1]), "v": np.zeros(end["v"].shape[1])}
        if self.loss is not None:
            found = self._found(self.loss, time, end["q"], end["v"], np.zeros((1, 0)))
            value, by = float(found["value"][0]), {n: found[n][0] for n in ("t", "q", "v")}
        along: dict[str, np.ndarray] = {}
        at_ends: dict[str, np.ndarray] = {}
        if self.running is not None:
            integral, along, at_ends = self._integral(parts)
            value += integral
            if not parts.ended:
                by |= {n: by[n] + at_ends[n][-1] for n in ("q", "v")}
        self.value[k] = value
        return PartsLoss(by["q"], by["v"], float(by["t"].item()), along, at_ends)

    def _integral(self, parts: Parts) -> tuple[float, dict[str, np.ndarray], dict[str, np.ndarray]]:
        """The integral, and its derivatives by what is at the starts of parts and at their ends."""
        assert self.running is not None
        places, n = parts.places, len(parts.time)
        u = parts.controls[:, parts.control_places["u"]] if "u" in parts.control_places else np.zeros((n, 0))
        cut = np.zeros(n, bool)
        cut[[m.part for m in parts.moments]] = True
        v_end = np.where(cut[:, None], parts.after[:, places["v"]], parts.shown[1:])
        start = self._found(self.running, parts.time, parts.before[:, places["q"]], parts.shown[:-1], u)
        end = self._found(self.running, parts.time + parts.length, parts.after[:, places["q"]], v_end, u)
        half = 0.5 * parts.length
        along = {name: half[:, None] * start[name] for name in ("q", "v")}
        at_ends = {name: half[:, None] * end[name] for name in ("q", "v")}
        for name in ("q", "v"):  # the end of a part that nothing cuts is the start of the next
            along[name][1:] += np.where(cut[:-1, None], 0.0, at_ends[name][:-1])
        if "u" in start:
            along["u"] = half[:, None] * (start["u"] + end["u"])
        along[PART_TIME] = half * (start["t"][:, 0] + end["t"][:, 0])
        along[PART_LENGTH] = 0.5 * (start["value"] + end["value"]) + half * end["t"][:, 0]
        return float(half @ (start["value"] + end["value"])), along, at_ends

    def _found(
        self, function: TracedLoss, t: np.ndarray, q: np.ndarray, v: np.ndarray, u: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Values and derivatives of a function of users at rows, all finite."""
        found = function(t, q, v, u)
        for k in np.flatnonzero(~np.isfinite(found["value"])):
            raise StateError.of(self.run.function, function.refusal(float(t[k]), q[k], v[k], u[k]))
        return found
