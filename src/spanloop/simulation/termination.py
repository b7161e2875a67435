"""Termination of runs: which event ended one, at what time, and why a step failed.

A run that ended is at the start of the step that failed or met an event. Its end is located by repeating that step with
parts of its length. In minimal coordinates a step that fails may succeed in parts, near a singular configuration or
where it is passed closely; the run then goes on.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spanloop.compiler.render.rollout import HALTED, NOT_CONVERGED
from spanloop.compiler.runtime.rollout import Steps
from spanloop.contacts.contact_arrays import UNSOLVED, WHY
from spanloop.errors import Reason, Refusal
from spanloop.simulation.events.endings import Events
from spanloop.simulation.events.outcomes import outcome_of, too_many, undefined
from spanloop.simulation.events.switches import Switching
from spanloop.simulation.integrators.step_schedule import StateLayout
from spanloop.simulation.problem import End, Problem
from spanloop.simulation.system import SINGLE_SINGULAR
from spanloop.simulation.time_loop import Progress, TimeLoop
from spanloop.trajectory import EndReason, Outcome

RESOLVED = 1e-9  # of a step: how exactly an event is located
MISSED = 1.0  # square roots of a rounding, of a step: so near its end an event may count as met
TRIALS = 5000  # parts of a step on the way to a singular configuration
MOST_PARTS = 50_000  # of all steps of a run that fail and are taken in parts
CLOSE = 1e-4  # a margin that counts as near a singular configuration
ENDS = {Reason.SINGULAR_CLOSURE: EndReason.SINGULAR, Reason.OPEN_LOOP: EndReason.OPEN}


def end_reason(refusal: Refusal | None) -> EndReason:
    """The reason of a run's end at a state that is refused."""
    return ENDS.get(refusal.reason, EndReason.NOT_FINITE) if refusal else EndReason.NOT_FINITE


def event_met(events: Events, j: int, t: float) -> Outcome:
    """The outcome of a run in which event j was met at time t."""
    if j < len(events.limits):
        limit = events.limits[j]
        words = (
            f"joint {limit.joint!r} reached its {limit.word} limit, {limit.bound:g}, at t = {t:.9g} s. "
            "limits='stop' puts a stop there, limits='ignore' does not check limits"
        )
        return Outcome(EndReason.LIMIT, words, t)
    return Outcome(EndReason.EVENT, f"condition {events.name(j)!r} was met at t = {t:.9g} s", t)


def met_at_start(events: Events, values: np.ndarray, t: float = 0.0) -> Outcome | None:
    """The outcome of a run in which a condition is not positive at its start; values (events,) there.

    Limits are left out: a joint that starts beyond one may come inside (initial_state.note_on_limits).
    """
    for j in range(len(events.limits), len(events)):
        if np.isnan(values[j]):
            words = f"condition {events.name(j)!r} is no number at the start, t = {t:.9g} s"
            return Outcome(EndReason.NOT_FINITE, words, t)
        if not values[j] > 0.0:
            words = (
                f"condition {events.name(j)!r} was met at t = {t:.9g} s: it is {values[j]:g} at the start, "
                "and a run goes on only while it is positive"
            )
            return Outcome(EndReason.EVENT, words, t)
    return None


def end_at_start(problem: Problem, layout: StateLayout, p: Progress) -> None:
    """End the runs in which a condition is not positive at the start; their only sample is the start."""
    if not problem.events.conditions:
        return
    values = p.state[:, layout.places["g"]][:, len(problem.events.limits) :]
    met = ~(values > 0.0).all(axis=1)
    kept = [layout.places[name] for name in ("q", "v", "z", *problem.system.contact_arrays) if name in layout]
    p.why[met] = HALTED
    p.record[met, 0] = np.concatenate([p.state[met, place] for place in kept], axis=1)


def singular_end(problem: Problem, t: float, margin: float, on: np.ndarray | None) -> Outcome:
    """The outcome of a run at a singular configuration of the loops; on: of switches, where there are any."""
    there = _closed_there(problem.system.switching, on) or "see robot.diagnose(q) there"
    words = f"the loops came to a singular configuration at t = {t:.6g} s (margin {margin:.1e}); {there}"
    return Outcome(EndReason.SINGULAR, words, t)


def _closed_there(switching: Switching | None, on: np.ndarray | None) -> str:
    """Which switchable loops and stops act where a run ends, and how to look at them; "" if there are none."""
    if switching is None or on is None:
        return ""
    acts = {s.name: bool(is_on) for s, is_on in zip(switching.switches, on > 0.5, strict=True)}
    stops = [s.label for s in switching.switches if s.is_stop and acts[s.name]]
    loops = [s.name for s in switching.switches if not s.is_stop]
    words = []
    if loops:
        words.append(f"of the switchable loops {', '.join(x for x in loops if acts[x]) or 'none'} are closed there")
    if stops:
        words.append(f"joints on their stops: {', '.join(stops)}")
    return (
        "; ".join([*words, "sl.Dynamics(run.segments[-1].model).diagnose(run.q[-1]) names the rows"]) if words else ""
    )


class Termination:
    """Locates and explains the ends of runs."""

    def __init__(self, loop: TimeLoop, problem: Problem, layout: StateLayout, integrator: str):
        self.integrator = integrator
        self.loop, self.problem, self.events, self.layout = loop, problem, problem.events, layout

    def ends(self, p: Progress, others: End) -> list[End]:
        """The end of every run; others: that of runs that nothing ended inside the rollout."""
        return [self._resumed(p, k) or self.of(p, k) if bits else others for k, bits in enumerate(p.why.tolist())]

    def _resumed(self, p: Progress, k: int) -> End | None:
        """Take the steps of run k that fail in parts, and go on after them; its end if that is not inside a step."""
        g, parts = self.loop.grid, 0
        while self.problem.system.minimal and p.why[k] and not p.why[k] & HALTED and parts < MOST_PARTS:
            step = _Step(self, p, k, self.loop.start + int(p.counts[k]) * g.h)
            share, state, taken = self._approached(step) if step.foreseen else (0.0, step.begin, 0)
            near = share == 1.0 and any(self._refusal(step.t, x, step) for x in (step.begin, state))
            if not near:  # a singular configuration is in this step, or the step is too long for the motion
                return None
            parts += taken
            one = step.alone(p)
            if self._met(step.begin, state):
                p.why[k] = HALTED
                return None
            one.state, one.done, one.counts = state[None], step.number + 1, p.counts[k : k + 1] + 1
            loop = step.loop_alone()
            if one.done < g.steps and one.done % g.every:
                loop.advance(one, min(g.every - one.done % g.every, g.steps - one.done))
            loop.run(one, lambda _: None)
            if one.done == g.steps and not one.why[0]:
                loop.advance(one, 0)
            p.state[k], p.why[k], p.counts[k] = one.state[0], one.why[0], one.counts[0]
            if not p.why[k]:
                return End(loop.outcome(one))
        return None

    def _met(self, before: np.ndarray, after: np.ndarray) -> list[int]:
        """Numbers of the events that are positive in one row and not in the other."""
        if "g" not in self.layout:
            return []
        where = self.layout.places["g"]
        pairs = enumerate(zip(before[where], after[where], strict=True))
        return [j for j, (a, b) in pairs if a > 0.0 and not b > 0.0]

    def _just_missed(self, before: np.ndarray, after: np.ndarray) -> int | None:
        """The event that a step leads to but for rounding: a batch, or a GPU, rounds otherwise than one run does."""
        where = self.layout.places["g"]
        a, b = before[where].astype(float), after[where].astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            left = np.where((a > 0.0) & (b < a), b / (a - b), np.inf)  # steps to go on to it
        near = MISSED * float(np.sqrt(np.finfo(before.dtype).eps))
        return int(np.argmin(left)) if left.size and left.min() <= near else None

    def of(self, p: Progress, k: int) -> End:
        """The end of run k, which ended inside the rollout."""
        g = self.loop.grid
        t = self.loop.start + int(p.counts[k]) * g.h
        bits = int(p.why[k])
        present = p.state[k, self.layout.places["present"]].tolist() if "present" in self.layout else ()
        passing = self.problem.passing(t, *self._state(p.state[k]), k, g.h, present)
        if passing is not None:
            return End(Outcome(EndReason.TUNNEL, f"at t = {t:.6g} s {passing}", t), *self._state(p.state[k]))
        if self.problem.system.contacts and (found := self._contact_outcome(p.state[k], t)):
            return End(found, *self._state(p.state[k]))
        if self.problem.system.switching:
            ended = self._switched_end(p, k)
            if ended is not None:
                return ended
            step = _Step(self, p, k, t)
            return self._failure(step)
        if "g" in self.layout and not p.counts[k]:
            met = met_at_start(self.events, p.state[k, self.layout.places["g"]], t)
            if met is not None:
                return End(met)
        step = _Step(self, p, k, t)
        if bits & NOT_CONVERGED and self._refusal(t, step.begin, step) is None:
            advice = self._stiff(t, step.begin, step) or f"Take a shorter step than {g.h:g} s, or integrator='rk4'"
            words = f"the implicit step at t = {t:.6g} s did not converge. {advice}"
            return End(Outcome(EndReason.NOT_CONVERGED, words, t), *self._state(step.begin))
        is_met = bits & HALTED and self._part(step, 1.0) is not None  # a step may meet an event and fail
        return self._event(step) if is_met else self._failure(step)

    def _contact_outcome(self, row: np.ndarray, t: float) -> Outcome | None:
        """The outcome of a run whose contacts have no answer in the next step; None where they have one."""
        points, system, h = self.problem.system.contacts, self.problem.system, self.loop.grid.h
        assert points is not None
        residual, number = row[self.layout.places[WHY]]
        if system.ends_at_jams and number > 0.5:
            words = (
                f"contact {points.names[round(float(number)) - 1]!r} jams at t = {t:.6g} s: it slips, and its friction "
                "presses it into the surface (Painlevé). on_jam='continue' goes on with an impulse that stops the slip"
            )
            return Outcome(EndReason.JAM, words, t)
        if not residual < UNSOLVED:
            words = (
                f"the impulses of contacts in the step at t = {t:.6g} s were not found: they leave {residual:.2g} m/s "
                f"of their conditions (bound {UNSOLVED:g} m/s). Take a shorter step than {h:g} s, or fewer points, or "
                "give contacts a stiffness; bodies of very different masses that touch each other are hard to solve"
            )
            return Outcome(EndReason.UNSOLVED, words, t)
        return None

    def _switched_end(self, p: Progress, k: int) -> End | None:
        """The end of run k with events, if one of them ended it; its state is already there."""
        row, g = p.state[k], self.loop.grid
        ending = round(float(row[self.layout.places["ending"]][0]))
        t = self.loop.start + (int(p.counts[k]) + float(row[self.layout.places["share"]][0])) * g.h
        q, v, z = self._state(row)
        if ending > 0:
            x = {"q": q, "v": v, "z": z, "u": _Step(self, p, k, t).controls}
            x |= {"on": row[self.layout.places["on"]]} if "on" in self.layout else {}
            x = {name: y.astype(float) for name, y in x.items()}
            met = outcome_of(self.problem, ending - 1, t, x, self._switched(row), k)
            return End(met, q, v, z)
        if int(p.why[k]) & NOT_CONVERGED and not ending:
            return End(too_many(t, g.h), q, v, z)
        return None

    def _switched(self, row: np.ndarray) -> dict[str, np.ndarray]:
        """The arrays of a row that events change and the dynamics read."""
        return {n: row[self.layout.places[n]].astype(float) for n in self.problem.system.switched}

    def _state(self, row: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, v, z of a row."""
        z = row[self.layout.places["z"]] if "z" in self.layout else row[:0]
        return row[self.layout.places["q"]], row[self.layout.places["v"]], z

    def _refusal(self, t: float, row: np.ndarray, step: _Step) -> Refusal | None:
        switched = self._switched(row)
        return self.problem.refusal(t, *self._state(row), step.controls, step.k, self.loop.grid.h, switched)

    def _event(self, step: _Step) -> End:
        """The first of the events that were met in this step."""
        whole = self._whole(step)
        found = [(self._located(step, j), j) for j in self._met(step.begin, whole)]
        if not found and (j := self._just_missed(step.begin, whole)) is not None:
            found = [((1.0, whole), j)]
        if not found:  # in minimal coordinates, in parts, it is not met
            return self._failure(step)
        (share, state), j = min(found, key=lambda x: x[0][0])
        met = event_met(self.events, j, step.t + share * self.loop.grid.h)
        alone = met.reason is EndReason.LIMIT and len(self.problem) == 1
        advice = self._stiff(step.t, step.begin, step) if alone else ""
        if advice:
            met = replace(met, sentence=f"{met.sentence}. The step may be too long for it: {advice}")
        return End(met, *self._state(state), event=j)

    def _located(self, step: _Step, j: int) -> tuple[float, np.ndarray]:
        """The share of the step at which event j is no longer positive, and the state there.

        The Illinois method; the end at which the event is met is kept.
        """
        at = self.layout.places["g"].start + j
        low, high = 0.0, 1.0
        f_low, state = float(step.begin[at]), self._whole(step)
        f_high = float(state[at])
        weight_low, weight_high, side = f_low, f_high, 0
        for _ in range(100):
            if high - low <= RESOLVED:
                break
            middle = high - (high - low) * weight_high / (weight_high - weight_low)
            inside = low + 0.5 * RESOLVED < middle < high - 0.5 * RESOLVED
            middle = middle if inside else 0.5 * (low + high)
            trial = self._part(step, middle)
            f = float(trial[at]) if trial is not None else f_low
            if trial is None or f > 0.0:
                low, weight_low = middle, f
                weight_high = 0.5 * weight_high if side == 1 else weight_high
                side = 1
            else:
                high, weight_high, state = middle, f, trial
                weight_low = 0.5 * weight_low if side == -1 else weight_low
                side = -1
        return high, state

    def _whole(self, step: _Step) -> np.ndarray:
        """The state after the step, which met an event but did not fail."""
        found = self._part(step, 1.0)
        assert found is not None
        return found

    def _part(self, step: _Step, share: float) -> np.ndarray | None:
        """The state after this share of the step, in minimal coordinates in parts if need be; None if it fails."""
        found = step.part(share)
        if found is not None or not self.problem.system.minimal:
            return found
        reached, state, _ = self._approached(step, share)
        return state if reached == share else None

    def _failure(self, step: _Step) -> End:
        """The end of shorter and shorter steps, and why there is no next one."""
        share, state = self._approached(step)[:2] if self.problem.system.minimal else (1.0, step.begin)
        if share == 1.0:
            share, state = self._reached(step)
        t = step.t + share * self.loop.grid.h
        return End(self._outcome(step, state, t), *self._state(state))

    def _reached(self, step: _Step) -> tuple[float, np.ndarray]:
        """The longest part of the step that does not fail, and the state there."""
        share, state = 0.0, step.begin
        part = 0.5
        while part > 1e-6:
            trial = step.part(share + part)
            if trial is not None:
                share, state = share + part, trial
            part *= 0.5
        return share, state

    def _approached(self, step: _Step, far: float = 1.0) -> tuple[float, np.ndarray, int]:
        """How far parts of the step lead, one after the other, the state there, and how many were tried.

        Minimal coordinates that fail somewhere fail near it too. far: the share of the step to be reached.
        """
        share, state, part, tried = 0.0, step.begin, 0.5 * far, 0
        while share < far and part >= RESOLVED and tried < TRIALS:
            tried += 1
            last = share + part >= far * (1.0 - RESOLVED)
            trial = step.part(far - share if last else part, state, share)
            if trial is not None:
                share, state = far if last else share + part, trial
            else:
                part *= 0.5
        return share, state, tried

    def _outcome(self, step: _Step, state: np.ndarray, t: float) -> Outcome:
        """Why there is no step from this state."""
        refusal = self._refusal(t, state, step) or self._refusal(t, step.nudged(state), step)
        if refusal is None and self.problem.system.implicit and self.problem.system.projects:
            given = *self._state(state), step.controls, step.k, 0.0, self._switched(state)
            found = self.problem.refusal(t, *given)  # of projections: no step helps
            refusal = found if found is not None and found.reason is Reason.SINGULAR_MASS else None
        reason = end_reason(refusal)
        drifts = t > self.loop.start and not self.problem.system.keeps_closed
        if refusal is not None and reason is EndReason.OPEN and drifts:
            kept = self.problem.system.closures
            why = "nothing keeps the loops closed" if kept == "none" else "feedback does not keep the loops closed"
            words = f"at t = {t:.6g} s {refusal.fact}: {why}, and they drifted apart. Try closures='project'"
            return Outcome(reason, words, t)
        if reason in (EndReason.SINGULAR, EndReason.OPEN):
            return Outcome(reason, f"at t = {t:.6g} s {refusal}", t)
        margin = self._margin(state, step) if self.problem.system.projects else 1.0
        if margin < (2.0 * SINGLE_SINGULAR if self.loop.rollout.dtype == np.float32 else CLOSE):
            on = state[self.layout.places["on"]] if "on" in self.layout else None
            return singular_end(self.problem, t, margin, on)
        if refusal is not None:
            return Outcome(reason, f"at t = {t:.6g} s {refusal}", t)
        for moved in (state, step.nudged(state), step.nudged(state, 1.0)):
            lost = undefined(self.problem, t, *self._state(moved)[:2])
            if lost is not None:
                return lost
        speeds, model = np.abs(state[self.layout.places["v"]]), self.problem.model
        fastest = next(j.name for j in model.joints if int(np.argmax(speeds)) in range(model.nv)[model.v_slice(j.name)])
        advice = self._stiff(t, state, step) or f"Take a shorter step than {self.loop.grid.h:g} s"
        words = (
            f"the motion was lost at t = {t:.6g} s: numbers grew beyond bounds or loops could not be kept closed "
            f"(largest rate so far {speeds.max():.3g}, of joint {fastest!r}). {advice}"
        )
        return Outcome(reason, words, t)

    def _margin(self, state: np.ndarray, step: _Step) -> float:
        """The smallest margin of the loops so far and at this state, on floats."""
        so_far, q = float(state[self.layout.places["loops"]][1]), self._state(state)[0]
        return min(so_far, self.problem.margin_of(q, step.k, self._switched(state)))

    def _stiff(self, t: float, row: np.ndarray, step: _Step) -> str:
        """A sentence on the joint that is too stiff for the steps; "" if none is."""
        if self.problem.system.switching:
            return ""
        words = self.problem.too_stiff(t, *self._state(row), step.controls, step.k, self.loop.grid.h, self.integrator)
        return words[:1].upper() + words[1:]


class _Step:
    """The last step of a run, to be repeated in parts."""

    def __init__(self, owner: Termination, p: Progress, k: int, t: float):
        loop = owner.loop
        self.owner, self.t, self.k = owner, t, k
        self.number = int(p.counts[k])
        self.begin = p.state[k].copy()
        if owner.problem.system.switching:  # it began a part of this step; no event happens in what is repeated
            self.t += float(self.begin[owner.layout.places["share"]][0]) * loop.grid.h
            for name in ("share", "ending", "armed"):
                self.begin[owner.layout.places[name]] = 0.0
        self.constants = loop.constants[k : k + 1] if len(loop.constants) > 1 else loop.constants
        if callable(loop.controls):  # the callback's torques of this step
            found = owner.problem.inputs.at(owner.problem.batch, np.full((len(p.state), 1), self.number))
        else:
            found = loop.controls
        row = found[k : k + 1] if len(found) > 1 else found
        at = self.number if row.shape[1] > 1 else 0
        self.controls = np.ascontiguousarray(row[:, at : at + 1], loop.rollout.dtype)

    @property
    def foreseen(self) -> bool:
        """Whether the inputs of later steps are known, and nothing counts steps."""
        return not callable(self.owner.loop.controls) and "z" not in self.owner.layout

    def alone(self, p: Progress) -> Progress:
        """The progress of this run alone, at the start of the step; its samples are those of all runs."""
        why, counts = np.zeros(1, np.uint8), p.counts[self.k : self.k + 1].copy()
        return Progress(self.begin[None].copy(), why, counts, p.record[self.k : self.k + 1], self.number)

    def loop_alone(self) -> TimeLoop:
        """The time loop of this run alone."""
        loop = self.owner.loop
        assert not callable(loop.controls)
        row = loop.controls[self.k : self.k + 1] if len(loop.controls) > 1 else loop.controls
        return replace(loop, constants=self.constants, controls=row, on_device=None)

    def part(self, share: float, start: np.ndarray | None = None, at: float = 0.0) -> np.ndarray | None:
        """The state after this share of the step, events ignored; None if it fails.

        start: a state at another share of the step, from which this part is taken; memory is that of the step.
        """
        state = (self.begin if start is None else start)[None].copy()
        if "z" in self.owner.layout:
            state[:, self.owner.layout.places["z"]] = self.begin[self.owner.layout.places["z"]]
        if "g" in self.owner.layout and "armed" not in self.owner.layout:
            state[:, self.owner.layout.places["g"]] = -1.0  # no longer positive: cannot cross
        why = np.zeros(1, np.uint8)
        h = share * self.owner.loop.grid.h
        t = self.t + at * self.owner.loop.grid.h
        self.owner.loop.rollout.run(state, self.constants, self.controls, why, Steps(t, h, 0, 1), None)
        return None if why[0] else state[0]

    def nudged(self, state: np.ndarray, share: float = 4e-6) -> np.ndarray:
        """The state further along its velocity, by a share of the step."""
        system, places = self.owner.problem.system, self.owner.layout.places
        out = state.copy()
        delta = share * self.owner.loop.grid.h * state[places["v"]].astype(float)
        out[places["q"]] = system.moved(state[places["q"]].astype(float).tolist(), delta.tolist())
        return out
