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
from spanloop.simulation.gradients.differentiated_run import DifferentiatedRun
from spanloop.simulation.gradients.event_maps import EventMaps
from spanloop.simulation.gradients.event_parts import (
    PART_LENGTH,
    PART_TIME,
    Moment,
    Parts,
    kept_rollout,
    parts_of,
    width_of,
)
from spanloop.simulation.gradients.event_soundness import (
    crossing_of,
    must_be_supported,
    must_be_transversal,
    must_have_gone_well,
)
from spanloop.simulation.gradients.wanted import MOMENTS

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class PartsRates:
    """Rates along k directions.

    q (k, n + 1, nq), v (k, n + 1, nv) as samples show it: at the starts of parts and at the end of the run; t (k,): of
    the time of the end.
    """

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
        """Rates of the samples for rates of q (k, nq), v (k, nv) at the start, p (k, size), u (k, steps or 1, size)."""
        parts, k = self.parts, len(seeds["q"])
        now = {n: np.array(seeds[n], float) for n in ("q", "v")}
        now |= {"captured": np.zeros((k, parts.system.sizes["captured"]))} if self._captures else {}
        now["t"] = np.zeros(k)
        fixed = {n: np.asarray(seeds.get(n, np.zeros((k, parts.system.sizes[n]))), float) for n in self.wrt}
        of_q, of_v = (np.zeros((k, len(parts.time) + 1, parts.system.sizes[n])) for n in ("q", "v"))
        out = PartsRates(of_q, of_v, np.zeros(k))
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
        self, piece: Sequence[int], now: Arrays, fixed: Arrays, u: np.ndarray | None, out: PartsRates
    ) -> tuple[Arrays, Arrays]:
        """Rates at the end of some parts, and the derivatives of the state there by the length of the last part."""
        parts, k = self.parts, len(now["q"])
        own = tuple(n for n in ("u", "captured") if n in parts.control_places)
        rollout = _compiled(parts, ("q", "v", *self.wrt, PART_TIME, PART_LENGTH, *own), self._velocity, k + 1)
        at, sampled = rollout.places("state", 1), rollout.places("record", 1)
        state = np.zeros((1, width_of(at)))
        state[0, : parts.before.shape[1]] = parts.before[piece[0]]
        for n in ("q", "v"):
            state[0, at[f"d.{n}"]] = _columns(now[n])
        rows = self._controls(rollout, piece, now, u)
        constants = [parts.constants[n] for n in parts.rollout.places("constants", 1)]
        constants += [_columns(fixed[n]) for n in self.wrt]
        whole = np.concatenate(constants)[None] if constants else np.zeros((1, 1))
        record, why = np.zeros((1, len(piece) + 1, width_of(sampled))), np.zeros(1, np.uint8)
        rollout.run(state, whole, rows, why, Steps(0.0, 0.0, 0, len(piece)), record)
        if why[0]:
            words = f"the rates of the run are not finite, or not found, after t = {parts.time[piece[0]]:.6g} s"
            raise StateError.of("sensitivities", Refusal(Reason.NOT_FINITE, words))
        for n, rates in (("q", out.q), (self._velocity, out.v)):
            found = record[0, :, sampled[f"d.{n}"]].reshape(len(piece) + 1, k + 1, -1)
            rates[:, piece[0] : piece[-1] + 2] = found[:, :k].swapaxes(0, 1)
        ends = {n: state[0, at[f"d.{n}"]].reshape(k + 1, -1) for n in ("q", "v")}
        after = {**now, **{n: x[:k] for n, x in ends.items()}, "t": np.zeros(k)}
        return after, {n: x[k] for n, x in ends.items()}

    def _controls(self, rollout: Rollout, piece: Sequence[int], now: Arrays, u: np.ndarray | None) -> np.ndarray:
        """The controls (1, parts, width) of some parts; in the last column the last part gets longer."""
        parts, k = self.parts, len(now["q"])
        at = rollout.places("controls", 1)
        rows = np.zeros((1, len(piece), width_of(at)))
        rows[0, :, : parts.controls.shape[1]] = parts.controls[list(piece)]
        rows[0, 0, at[f"d.{PART_TIME}"]] = _columns(now["t"][:, None])
        rows[0, 0, at[f"d.{PART_LENGTH}"]] = _columns(-now["t"][:, None])
        rows[0, -1, at[f"d.{PART_LENGTH}"].start + k] = 1.0
        if u is not None and "u" in parts.control_places:
            for i, part in enumerate(piece):
                rows[0, i, at["d.u"]] = _columns(_of_step(u, int(parts.step[part])))
        if self._captures:
            rows[..., at["d.captured"]] = _columns(now["captured"])
        return rows

    # ---- events

    def _across(self, moment: Moment, now: Arrays, fixed: Arrays, u: np.ndarray | None, out: PartsRates) -> Arrays:
        """Rates after an event, from those at the start of the part that it ends."""
        parts = self.parts
        crossing = crossing_of(parts, self.maps, moment)
        found, longer = self._ahead([moment.part], now, fixed, u, out)
        if crossing is not None:
            slope = crossing.slope
            rate = crossing.rate + sum(float(slope[n] @ longer[n]) for n in ("q", "v"))
            must_be_transversal(parts, self.maps, moment, crossing, rate)
            moved = fixed | self._moving(found)
            if u is not None and "u" in slope:
                moved["u"] = _of_step(u, int(parts.step[moment.part]))
            found["t"] = -np.sum([x @ slope[n] for n, x in moved.items() if n in slope], axis=0) / rate
            for n in ("q", "v"):
                found[n] = found[n] + found["t"][:, None] * longer[n]
        if moment.ends:
            out.q[:, -1], out.v[:, -1] = found["q"], found["v"]
        for given in parts.jumps(moment):
            found |= self.maps.jump.push(given, fixed | self._moving(found))
        return found

    def _moving(self, now: Arrays) -> Arrays:
        """The rates of what an event depends on, without those of constants."""
        return {n: now[n] for n in (("q", "v", "captured") if self._captures else ("q", "v"))}


def _columns(rates: np.ndarray) -> np.ndarray:
    """Rates (k, size) as columns one after the other, and one more of zeros."""
    return np.concatenate([rates.ravel(), np.zeros(rates.shape[1])])


def _of_step(u: np.ndarray, step: int) -> np.ndarray:
    """Rates (k, size) of the inputs of a step, of u (k, steps or 1, size)."""
    return u[:, step if u.shape[1] > 1 else 0]


def _compiled(parts: Parts, wrt: tuple[str, ...], velocity: str, columns: int) -> Rollout:
    """The compiled tangents of the parts."""
    key = f"{parts.rollout.key}|tangents|{wrt}|{columns}"

    def make() -> Schedule:
        return tangent(parts.rollout.schedule, wrt, ("q", velocity), columns)

    return kept_rollout(key, make, f"with its rates {parts.rollout.label}")


# ---- the samples of all runs


def sampled_rates(
    run: DifferentiatedRun, of_q: np.ndarray, of_v: np.ndarray, seeds: Mapping[str, np.ndarray]
) -> tuple[Arrays, Arrays, dict[int, Refusal]]:
    """Samples q, v (n, samples, size), their rates (n, samples, k, size), and why runs have none.

    of_q (n, k, nq), of_v (n, k, nv): rates at the start; seeds: of p, at (k, size) and u (k, steps or 1, size). A
    sample at the moment of an event is the one before it.
    """
    problem, g = run.problem, run.grid
    must_be_supported(run.function, problem, run.integrator.dtype)
    n, k = of_q.shape[:2]
    sizes, fixed = {"q": of_q.shape[2], "v": of_v.shape[2]}, tuple(x for x in run.wanted.arrays if x in ("p", MOMENTS))
    samples = {name: np.full((n, g.samples, size), np.nan) for name, size in sizes.items()}
    rates = {name: np.full((n, g.samples, k, size), np.nan) for name, size in sizes.items()}
    refused: dict[int, Refusal] = {}
    maps = EventMaps(problem, fixed)
    for i in range(n):
        try:
            parts = parts_of(problem, *run.taken, run.integrator.name, i)
            must_have_gone_well(parts, may_end=False)
            found = EventTangents(parts, maps, fixed).rates({**seeds, "q": of_q[i], "v": of_v[i]})
        except StateError as error:
            refused[i] = error.refusal
            continue
        at = np.append(np.searchsorted(parts.step, g.every * np.arange(g.samples - 1)), len(parts.time))
        last = parts.after[-1:, parts.places["q"]]
        samples["q"][i] = np.concatenate([parts.before[:, parts.places["q"]], last])[at]
        samples["v"][i] = parts.shown[at]
        for name, x in (("q", found.q), ("v", found.v)):
            rates[name][i] = x[:, at].swapaxes(0, 1)
    return samples, rates, refused
