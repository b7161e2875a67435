"""Rates pushed forward through a run with events: through its parts, and across each event.

The equations are those of event_adjoint.py, forward: with dx the rates of x⁻ at a fixed length of the part before,

    dt_e = −(∇g·dx + ∂g/∂p dp) / ġ,   ġ = ∂g/∂t + ∇g·∂Ψ/∂h
    dx⁻ = dx + ∂Ψ/∂h dt_e,   dx⁺ = ∂R/∂x dx⁻ + ∂R/∂p dp,

and the part after the event starts dt_e later and is as much shorter. One more column than there are directions has
∂Ψ/∂h of the part that an event ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spanloop.compiler.lower import Schedule
from spanloop.compiler.lower.tangent import tangent
from spanloop.compiler.runtime.rollout import Rollout, Steps
from spanloop.errors import Reason, Refusal, StateError
from spanloop.simulation.gradients.event_maps import EventMaps
from spanloop.simulation.gradients.event_parts import PART_LENGTH, PART_TIME, Moment, Parts, places
from spanloop.simulation.gradients.event_soundness import crossing_of, must_be_transversal

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class PartsRates:
    """Rates along k directions: q (k, n + 1, nq), v (k, n + 1, nv) as samples show it, at the starts of parts and at the
    end of the run; t (k,): of the time of the end."""

    q: np.ndarray
    v: np.ndarray
    t: np.ndarray


@dataclass(frozen=True)
class EventTangents:
    """The forward sensitivities of one run with events; wrt: constants that move ("p")."""

    parts: Parts
    maps: EventMaps
    wrt: tuple[str, ...] = ()

    def rates(self, seeds: Mapping[str, np.ndarray]) -> PartsRates:
        """Rates of the samples for rates of q (k, nq), v (k, nv) at the start, of p (k, size), of u (k, steps, size)."""
        parts, k = self.parts, len(seeds["q"])
        now = {n: np.array(seeds[n], float) for n in ("q", "v")}
        now |= {"captured": np.zeros((k, parts.schedule.sizes["captured"]))} if self._captures else {}
        now["t"] = np.zeros(k)
        fixed = {n: np.asarray(seeds.get(n, np.zeros((k, parts.schedule.sizes[n]))), float) for n in self.wrt}
        out = PartsRates(*(np.zeros((k, len(parts.time) + 1, parts.schedule.sizes[n])) for n in ("q", "v")), np.zeros(k))
        moments = {m.part: m for m in parts.moments}
        for piece in parts.pieces():
            moment = moments.get(piece[-1])
            rest = piece if moment is None else piece[:-1]
            if len(rest):
                now = self._ahead(rest, now, fixed, seeds.get("u"), out)[0]
            if moment is not None:
                now = self._across(moment, now, fixed, seeds.get("u"), out)
        out.t[:] = now["t"]
        return out

    # ---- parts

    @property
    def _captures(self) -> bool:
        return "captured" in self.parts.control_places

    @property
    def _velocity(self) -> str:
        return "v.closed" if self.parts.system.keeps_closed else "v"

    def _ahead(
        self, piece: Sequence[int], now: Arrays, fixed: Arrays, u: np.ndarray | None, out: PartsRates, longer: bool = False
    ) -> tuple[Arrays, Arrays]:  # fmt: skip
        """Rates at the end of some parts, and how the state there changes with the length of the last, if `longer`."""
        parts, k = self.parts, len(now["q"])
        names = ("q", "v", *self.wrt, PART_TIME, PART_LENGTH, *(n for n in ("u", "captured") if n in parts.control_places))
        rollout = _compiled(parts, names, self._velocity, k + 1)
        schedule, columns = rollout.schedule, k + 1
        at, own = places(schedule, schedule.state), places(schedule, schedule.controls)
        state, rows = np.zeros((1, schedule.width(schedule.state))), np.zeros((1, len(piece), schedule.width(schedule.controls)))
        state[0, : parts.before.shape[1]] = parts.before[piece[0]]
        rows[0, :, : parts.controls.shape[1]] = parts.controls[list(piece)]

        def place(x: np.ndarray, rates: np.ndarray, where: slice) -> None:
            """Rates (k, size) as columns of a row."""
            x[..., where].reshape(columns, -1)[:k] = rates

        for n in ("q", "v"):
            place(state[0], now[n], at[f"d.{n}"])
        first = rows[0, 0]
        place(first, now["t"][:, None], own[f"d.{PART_TIME}"])
        place(first, -now["t"][:, None], own[f"d.{PART_LENGTH}"])
        if longer:
            rows[0, -1, own[f"d.{PART_LENGTH}"]][k] = 1.0
        for i, part in enumerate(piece):
            if u is not None and "u" in parts.control_places:
                place(rows[0, i], u[:, parts.step[part] if u.shape[1] > 1 else 0], own["d.u"])
            if self._captures:
                place(rows[0, i], now["captured"], own["d.captured"])
        constants = [parts.constants[n] for n in parts.schedule.constants]
        constants += [np.concatenate([fixed[n], np.zeros((1, fixed[n].shape[1]))]).ravel() for n in self.wrt]
        record, why = np.zeros((1, len(piece) + 1, schedule.width(schedule.record))), np.zeros(1, np.uint8)
        whole = np.concatenate(constants)[None] if constants else np.zeros((1, 1))
        rollout.run(state, whole, rows, why, Steps(0.0, 0.0, 0, len(piece)), record)
        if why[0]:
            words = f"the sensitivities of the run are not finite, or not found, after t = {parts.time[piece[0]]:.6g} s"
            raise StateError.of("sensitivities", Refusal(Reason.NOT_FINITE, words))
        sampled = places(schedule, schedule.record)
        for n, rates in (("q", out.q), (self._velocity, out.v)):
            found = record[0, :, sampled[f"d.{n}"]].reshape(len(piece) + 1, columns, -1)
            rates[:, piece[0] : piece[-1] + 2] = found[:, :k].swapaxes(0, 1)
        ends = {n: state[0, at[f"d.{n}"]].reshape(columns, -1) for n in ("q", "v")}
        return {**now, **{n: x[:k] for n, x in ends.items()}, "t": np.zeros(k)}, {n: x[k] for n, x in ends.items()}

    # ---- events

    def _across(
        self, moment: Moment, now: Arrays, fixed: Arrays, u: np.ndarray | None, out: PartsRates
    ) -> Arrays:
        """Rates after an event, from those at the start of the part that it ends."""
        parts = self.parts
        crossing = crossing_of(parts, self.maps, moment)
        found, longer = self._ahead([moment.part], now, fixed, u, out, longer=True)
        if crossing is not None:
            slope = crossing.slope
            rate = crossing.rate + sum(float(slope[n] @ longer[n]) for n in ("q", "v"))
            must_be_transversal(parts, self.maps, moment, crossing, rate)
            moved = {**fixed, **{n: found[n] for n in ("q", "v", "captured") if n in found}}
            if u is not None and "u" in slope:
                moved["u"] = u[:, parts.step[moment.part] if u.shape[1] > 1 else 0]
            found["t"] = -np.sum([x @ slope[n] for n, x in moved.items() if n in slope], axis=0) / rate
            for n in ("q", "v"):
                found[n] = found[n] + found["t"][:, None] * longer[n]
        if moment.ends:
            out.q[:, -1], out.v[:, -1] = found["q"], found["v"]
        for given in parts.jumps(moment):
            moving = {n: found[n] for n in ("q", "v", "captured") if n in found}
            found |= self.maps.jump.push(given, {**moving, **fixed})
        return found


def _compiled(parts: Parts, wrt: tuple[str, ...], velocity: str, columns: int) -> Rollout:
    """The compiled tangents of the parts."""
    key = f"{parts.rollout.key}|tangents|{wrt}|{columns}"
    if key not in _rollouts:
        while len(_rollouts) >= _MOST:
            _rollouts.pop(next(iter(_rollouts)))
        schedule = parts.schedule

        def make() -> Schedule:
            return tangent(schedule, wrt, ("q", velocity), columns)

        _rollouts[key] = Rollout(key, make, "float64", 1, parts.rollout.label)
    return _rollouts[key]


_rollouts: dict[str, Rollout] = {}
_MOST = 16
