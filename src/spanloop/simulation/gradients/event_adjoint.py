"""Cotangents pulled back through a run with events: through its parts, and across each event.

An event happens at the time t_e at which a watched value g(t, x) falls to 0; it makes x⁺ = R(x⁻). The part before it
has the length t_e − t_a, the part after it begins at t_e. With Ψ the step of a part and λ⁺ the cotangent of x⁺:

    λ = Rᵀ λ⁺                                          of x⁻, at a fixed time                        (1)
    κ = ∂L/∂t_e = (t̄ − h̄ of the part after) + λ·∂Ψ/∂h  while x⁻ = Ψ(x_a, t_e − t_a)                  (2)
    ġ = ∂g/∂t + ∇g·∂Ψ/∂h                               along the motion                              (3)
    λ⁻ = λ + μ ∇g,   μ = −κ / ġ                        since dt_e = −∇g·dx⁻ / ġ                      (4)

t̄ and h̄ are cotangents of a part's time and length. So the derivative is that of the steps that were taken, not of an
ideal motion: it agrees with differences of runs at any length of the step. λ and ∇g pass the part before the event
side by side, and (4) adds them after it, as all that follows is linear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from spanloop.compiler.lower import Schedule
from spanloop.compiler.lower.adjoint import adjoint, sampling
from spanloop.compiler.runtime.rollout import Rollout, Steps
from spanloop.errors import Reason, Refusal, StateError
from spanloop.simulation.gradients.event_maps import EventMaps
from spanloop.simulation.gradients.event_parts import PART_LENGTH, PART_TIME, Moment, Parts, kept_rollout, width_of
from spanloop.simulation.gradients.event_soundness import Crossing, crossing_of, must_be_transversal

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class PartsLoss:
    """What a loss of one run depends on, as derivatives by it.

    q, v: (nq,), (nv,) by the last state, v as samples show it; t: by the time of the end. Arrays (parts, size) by name:
    along: by q, v (as samples show it) at the start of each part, by its u, t.part and h.part; at_ends: by q, v at the
    end of each part, of those that events end.
    """

    q: np.ndarray
    v: np.ndarray
    t: float = 0.0
    along: Mapping[str, np.ndarray] = field(default_factory=dict)
    at_ends: Mapping[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class _Cotangents:
    """Rows (n, size) of cotangents.

    arrays: of the state and of constants; captured: of the frames that events hold; inputs (n, parts, size); start,
    length (n,): of the time at which the next part starts, and of its length.
    """

    arrays: Arrays
    captured: np.ndarray
    inputs: np.ndarray
    start: np.ndarray
    length: np.ndarray

    def combined(self, factors: np.ndarray) -> _Cotangents:
        """The sum of the rows, each times a factor, as one row."""
        w = factors[None]
        arrays, inputs = {n: w @ x for n, x in self.arrays.items()}, np.tensordot(w, self.inputs, 1)
        return _Cotangents(arrays, w @ self.captured, inputs, w @ self.start, w @ self.length)


@dataclass(frozen=True)
class EventAdjoint:
    """The adjoint of one run with events; wrt: constants by which derivatives are wanted ("p")."""

    parts: Parts
    maps: EventMaps
    wrt: tuple[str, ...] = ()

    def gradient(self, loss: PartsLoss) -> Arrays:
        """Derivatives of the loss by q (nq) and v (nv) at the start, constants, and u (steps, width) of every step."""
        parts, now = self.parts, self._at_end(loss)
        moments = {m.part: m for m in parts.moments}
        for piece in reversed(parts.pieces()):
            moment, rest = moments.get(piece[-1]), piece
            if moment is not None:
                now, rest = self._across(moment, now, loss), piece[:-1]
            if len(rest):
                now = self._back(rest, now, loss)
        found = {n: x[0] for n, x in now.arrays.items()}
        if "u" in parts.control_places:
            u = now.inputs[0] + np.asarray(loss.along.get("u", 0.0))
            found["u"] = np.zeros((int(parts.step.max()) + 1, u.shape[-1]))
            np.add.at(found["u"], parts.step, u)
        return found

    # ---- parts

    @cached_property
    def _velocity(self) -> str:
        """The velocity that samples show."""
        return "v.closed" if self.parts.system.keeps_closed else "v"

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """Arrays by which the steps are differentiated."""
        own = [n for n in ("u", "captured") if n in self.parts.control_places]
        return ("q", "v", *self.wrt, PART_TIME, PART_LENGTH, *own)

    def _at_end(self, loss: PartsLoss) -> _Cotangents:
        """The cotangents of the last state, of which a sample shows the closed velocity."""
        parts, sizes = self.parts, self.parts.system.sizes
        arrays = {n: np.zeros((1, sizes[n])) for n in ("q", "v", *self.wrt)}
        captured, u = (sizes[n] if n in parts.control_places else 0 for n in ("captured", "u"))
        none = _Cotangents(arrays, np.zeros((1, captured)), np.zeros((1, len(parts.time), u)), np.zeros(1), np.zeros(1))
        if parts.ended or self._velocity == "v":
            return replace(none, arrays=arrays | {"q": loss.q[None], "v": loss.v[None]})
        last = len(parts.time) - 1
        row = parts.controls[last].copy()
        row[parts.control_places[PART_TIME]] += row[parts.control_places[PART_LENGTH]]
        sources = {"q": loss.q[None, None], self._velocity: loss.v[None, None]}
        rollout = _compiled(parts, self._names, self._velocity, samples=True)
        found = self._taken(rollout, parts.after[last:], row[None], none, sources, [last])
        return replace(found, start=np.zeros(1), length=np.zeros(1))

    def _back(self, piece: Sequence[int], now: _Cotangents, loss: PartsLoss) -> _Cotangents:
        """The cotangents at the start of some parts, from those at their end; the loss adds to the first row."""
        order, parts = list(reversed(piece)), self.parts
        sources = {}
        for own, name in (("q", "q"), ("v", self._velocity)):
            if own in loss.along:
                sources[name] = np.zeros((len(now.start), len(order), parts.system.sizes[own]))
                sources[name][0] = loss.along[own][order]
        rollout = _compiled(parts, self._names, self._velocity)
        found = self._taken(rollout, parts.before[order], parts.controls[order], now, sources, order)
        t, h = (float(loss.along[n][order[-1]]) if n in loss.along else 0.0 for n in (PART_TIME, PART_LENGTH))
        found.start[0] += t - h
        found.length[0] += h
        return found

    def _taken(
        self, rollout: Rollout, states: np.ndarray, controls: np.ndarray, now: _Cotangents,
        sources: Mapping[str, np.ndarray], order: Sequence[int],
    ) -> _Cotangents:  # fmt: skip
        """Steps of the adjoint, one for each row of states; order: their parts."""
        parts, n = self.parts, len(now.start)
        at, own, kept = (rollout.places(part, 1) for part in ("state", "controls", "record"))
        state, why = np.zeros((n, width_of(at))), np.zeros(n, np.uint8)
        for name, x in now.arrays.items():
            if f"lam.{name}" in at:
                state[:, at[f"lam.{name}"]] = x
        rows = np.zeros((n, len(order), width_of(own)))
        for names, values in ((parts.places, states), (parts.control_places, controls)):
            for name, place in names.items():
                rows[..., own[name]] = values[:, place]
        for name, x in sources.items():
            rows[..., own[f"g.{name}"]] = x
        record, steps = np.zeros((n, len(order) + 1, width_of(kept))), Steps(0.0, 0.0, 0, len(order))
        for k in range(n):  # one by one: code for runs side by side takes as long to compile once more
            one = slice(k, k + 1)
            rollout.run(state[one], parts.constant_row, rows[one], why[one], steps, record[one])
        if why.any():
            at_time = parts.time[order[-1]]
            words = f"the derivative of the run is not finite, or not found, at or after t = {at_time:.6g} s"
            raise StateError.of("gradient", Refusal(Reason.NOT_FINITE, words))
        found = {k[len("lam.") :]: record[:, 1:, s] for k, s in kept.items()}
        arrays = {k: state[:, at[f"lam.{k}"]].copy() if f"lam.{k}" in at else x for k, x in now.arrays.items()}
        captured, inputs = now.captured, now.inputs.copy()
        if "captured" in found:
            captured = captured + found["captured"].sum(axis=1)
        if "u" in found:
            inputs[:, list(order)] += found["u"]
        time, length = (found[k][:, -1, 0].copy() if k in found else np.zeros(n) for k in (PART_TIME, PART_LENGTH))
        return _Cotangents(arrays, captured, inputs, time - length, length)

    # ---- events

    def _across(self, moment: Moment, now: _Cotangents, loss: PartsLoss) -> _Cotangents:
        """The cotangents at the start of the part that an event ends, from those after the event."""
        after = float(now.start[0]) + (loss.t if moment.ends else 0.0)
        crossing = crossing_of(self.parts, self.maps, moment)
        before = self._before_jump(moment, now)
        before = replace(before, arrays=before.arrays | _added(before.arrays, loss.at_ends, moment.part))
        if crossing is None:  # at a time that nothing changes
            return self._back([moment.part], before, loss)
        found = self._back([moment.part], _beside(before, crossing, moment.part), loss)
        rate = crossing.rate + float(found.length[1])  # (3)
        must_be_transversal(self.parts, self.maps, moment, crossing, rate)
        kappa = after + float(found.length[0])  # (2)
        return found.combined(np.array([1.0, -kappa / rate]))  # (4)

    def _before_jump(self, moment: Moment, now: _Cotangents) -> _Cotangents:
        """(1): the cotangents of what rows of the log begin with, from those after them."""
        for given in reversed(self.parts.jumps(moment)):
            weights = {n: now.arrays[n] for n in ("q", "v")}
            weights |= {"captured": now.captured} if now.captured.shape[-1] else {}
            found = self.maps.jump.pull(given, weights)
            arrays = now.arrays | {n: found[n] for n in ("q", "v")}
            arrays |= {n: now.arrays[n] + found[n] for n in self.wrt}
            now = replace(now, arrays=arrays, captured=found.get("captured", now.captured))
        return now


def _added(arrays: Arrays, rows: Mapping[str, np.ndarray], part: int) -> Arrays:
    """Cotangents with those of one part added."""
    return {n: arrays[n] + rows[n][part] for n in rows}


def _beside(now: _Cotangents, crossing: Crossing, part: int) -> _Cotangents:
    """The cotangents with the slope of the watched value as a second row."""
    slope = crossing.slope
    arrays = {n: np.stack([x[0], slope.get(n, np.zeros(x.shape[-1]))]) for n, x in now.arrays.items()}
    captured = np.stack([now.captured[0], slope.get("captured", np.zeros(now.captured.shape[-1]))])
    inputs = np.concatenate([now.inputs, np.zeros_like(now.inputs)])
    if "u" in slope:
        inputs[1, part] = slope["u"]
    return _Cotangents(arrays, captured, inputs, np.zeros(2), np.zeros(2))


def _compiled(parts: Parts, wrt: tuple[str, ...], velocity: str, samples: bool = False) -> Rollout:
    """The compiled adjoint of the parts, or of the sample at the run's end."""
    key = f"{parts.rollout.key}|adjoint{'|sampling' * samples}|{wrt}"

    def make() -> Schedule:
        forward = parts.rollout.schedule
        return adjoint(sampling(forward) if samples else forward, wrt, ("q", velocity))

    return kept_rollout(key, make, f"backwards {parts.rollout.label}")
