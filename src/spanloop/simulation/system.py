"""A model with all that acts on it, as functions on scalars: the parts of a simulation's step.

Every function takes the arrays of one run by name and works on floats and on traced scalars alike:

| name | numbers | meaning |
|---|---|---|
| t | 1 | time [s] |
| q, v | nq, nv | state |
| u | | inputs of this step: torques, or the inputs of a controller |
| z | | memory of controllers and actuators, constant during a step |
| p | | live parameters |
| ahead, pull, extra | nv | of implicit steps: γ h, γ h K and γ h D + γ² h² K of every DoF (integrators/implicit.py) |
| toward, before | nv | of their stages: the rate of q, and the acceleration of the stage before |
| push | nv | of their stages, where targets of gains move: a torque |
| others | | of closures: active, given, gains; forces: six numbers for each loaded body |
| captured, present | | of events: frames that loops hold, 1 or 0 for bodies that come and go (events/switches.py) |
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from spanloop.algorithms.closed.closure_kinematics import (
    closure_error,
    closure_rates,
    extra_inputs,
    loop_wrenches,
    masks,
)
from spanloop.algorithms.contact.points import ContactPoints, gaps
from spanloop.compiler.lower import CannotLoop, Looped
from spanloop.contacts.contact_arrays import COEFFICIENTS, RECORDED, TORQUES
from spanloop.contacts.geometry_check import OVERLAP
from spanloop.contacts.mechanics import ContactMechanics
from spanloop.errors import InputError, Reason, Refusal, StateError
from spanloop.kernels import KernelSpec, content
from spanloop.kernels.lowering import looped_plan
from spanloop.kernels.on_scalars import CLOSURE_INPUTS
from spanloop.math.scalar import absolute, sqrt, where
from spanloop.math.symmetric import PIVOT_TOLERANCE
from spanloop.model import Model
from spanloop.model.parameters import NEGLIGIBLE, Parameters, Varied, not_negative
from spanloop.simulation.controllers import AppliedForces
from spanloop.simulation.events.endings import Stop
from spanloop.simulation.events.switches import Switching
from spanloop.simulation.minimal.completion import METHOD as MINIMAL_METHOD
from spanloop.simulation.minimal.completion import ROUNDS as MINIMAL_ROUNDS
from spanloop.simulation.minimal.completion import Completion
from spanloop.simulation.traced_kernels import kernel
from spanloop.sweeps import Values, walk
from spanloop.topology import Mechanism, mechanism
from spanloop.topology.mechanism import Link

CLOSURES = ("project", "feedback", "minimal", "none")
FREQUENCY = 50.0  # rad/s, of the feedback of closure errors, if no gains are given
SINGULAR = 1e-8  # a margin below this is a singular configuration
SINGLE_SINGULAR = 1e-4  # the same in single precision, where rounding is 6e-8 of what the margin is a share of
SLIP = 1e-2  # rad/s or m/s: where Coulomb friction has 71 % of its strength
LOOPED = 100  # links beyond which accelerations in steps are loops over links
ROUNDS = 2  # corrections of position after a step, all with one set of factors

Arrays = Mapping[str, Sequence[Any]]
Pairs = list[tuple[Any, Any]]  # of which the first must be less


@dataclass(frozen=True)
class Closures:
    """How loops are kept closed, and what acts in them: sl.simulate(..., closures=sl.Closures("feedback", gains=30.0)).

    Args:
        stabilization: "project" brings every step back to the closed loops; "feedback" adds gains times the closure
            errors to the constraints (Baumgarte); "minimal" integrates the actuated joints of legs on one platform,
            from which the others follow; "none" lets loops drift.
        gains: of "feedback": (2ω, ω²), or one frequency ω [rad/s]; 50 rad/s by default.
        active_loops: names of the switchable loops that are closed; all of them by default. run.model is without the
            others.
        loop_accelerations: {"loop": numbers}, the accelerations of driven loops along their own degrees of freedom
            [rad/s² or m/s²].
        loop_forces: {"loop": numbers} along a loop's own degrees of freedom [N m or N], or a function (t, q, v) that
            returns that.

    Raises:
        InputError: there is no stabilization of this name.

    Example:
        >>> soft = sl.Closures("feedback", gains=30.0)
        >>> run = sl.simulate(sl.zoo.four_bar(), sl.zoo.four_bar_start(), duration=0.1, closures=soft)
        >>> bool(run.closure_residual.max() < 1e-6)
        True
    """

    stabilization: str = "project"
    gains: float | tuple[float, float] | None = None
    active_loops: Iterable[str] | None = None
    loop_accelerations: Mapping[str, Any] | None = None
    loop_forces: Callable[..., Mapping[str, Any]] | Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.stabilization not in CLOSURES:
            raise InputError(f"closures is {self.stabilization!r}; expected one of {', '.join(map(repr, CLOSURES))}")


@dataclass(frozen=True)
class System:
    """A model, what acts on it, and how its loops are kept closed."""

    model: Model
    applied: AppliedForces
    method: str | None = None  # of forward dynamics
    closures: str = "project"
    live: bool = False  # parameters are inputs
    strict: bool = True  # a singular configuration is refused
    near: tuple[float, ...] | None = None  # q (nq) of the assembly that the runs are in; None: as near neutral
    stops: tuple[Stop, ...] = ()  # at limits of joints
    single: bool = False  # steps in single precision
    implicit: bool = False  # stages of implicit steps: armature and torques are added
    switching: Switching | None = None  # what changes during a run
    frozen: bool = False  # nothing changes in a part of a run: the arrays that events change are constants
    contacts: ContactPoints | None = None  # that are not ignored
    ends_at_jams: bool = False  # a run ends where a contact jams
    overlap: float = OVERLAP  # m by which hard shapes may overlap where bodies appear
    varied: tuple[str, ...] = ()  # names of parameters that are inputs while the others are numbers
    decay: int | None = None  # place in u of a rate c [1/s] at which all motion decays, as by torques −c M v
    tracked: Any = None  # statistics of quantities over the steps (tracking/tracked.py)

    @property
    def has_loops(self) -> bool:
        """Whether the model has loops or couplings."""
        return bool(self.model.loops or self.model.couplings)

    @property
    def has_stops(self) -> bool:
        """Whether limits of joints are stops."""
        return bool(self.stops) or (self.switching is not None and any(s.is_stop for s in self.switching.switches))

    @property
    def projects(self) -> bool:
        """Whether every step is projected to the closed loops."""
        return self.has_loops and self.closures == "project"

    @property
    def minimal(self) -> bool:
        """Whether the actuated coordinates alone are integrated."""
        return self.has_loops and self.closures == "minimal"

    @property
    def keeps_closed(self) -> bool:
        """Whether every step ends with closed loops."""
        return self.projects or self.minimal

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The size of each array that a step reads from outside."""
        model, applied = self.model, self.applied
        known = {"t": 1, "h": 1, "q": model.nq, "v": model.nv, "u": applied.inputs, "z": applied.memory}
        if self.live:
            known["p"] = len(Parameters.of(model))
        if self.varied:
            known["p"] = len(self.varied)
        if self.has_loops:
            known |= extra_inputs(self._baked) | ({"gains": 2} if self.closures == "feedback" else {})
        if self.contacts:
            known["contact.k"] = len(COEFFICIENTS) * self.contacts.n
        return known | (self.switching.sizes if self.switching else {})

    @property
    def n_rows(self) -> int:
        """Rows of all closures, open or closed."""
        return self._baked.n_rows

    @property
    def all_switchable(self) -> bool:
        """Whether all rows of closures can be switched off."""
        return self._baked.n_rows == len(self._baked.switched_rows)

    @property
    def switched(self) -> tuple[str, ...]:
        """Names of the arrays of the model that events change."""
        return tuple(n for n in ("active", "captured", "present") if n in self.sizes) if self.locates else ()

    @property
    def locates(self) -> bool:
        """Whether steps locate events that change the mechanism."""
        return self.switching is not None and not self.frozen

    @property
    def constants(self) -> tuple[str, ...]:
        """Names of the arrays that are constant during a run."""
        return tuple(n for n in self.sizes if n not in ("t", "h", "q", "v", "u", "z", *self.switched))

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the arrays that are constant during a part of a step."""
        return (*self.constants, *self.switched)

    def live_parameters(self, rows: np.ndarray) -> np.ndarray | None:
        """The live parameters (runs, n), or (n,) if all runs share them, among rows of constants; None: none are."""
        if not self.live:
            return None
        before = sum(self.sizes[n] for n in self.constants[: self.constants.index("p")])
        found = rows[:, before : before + self.sizes["p"]]
        return found if len(rows) > 1 else found[0]

    def key(self) -> str:
        """A hash of everything that a step depends on; traces the user's functions only, and once."""
        return self._key

    @cached_property
    def _key(self) -> str:
        friction = [j.friction for j in self.model.joints]
        acting = self.applied.key({n: self.sizes[n] for n in CLOSURE_INPUTS if n in self.sizes})
        parts = (
            content(self.model),
            friction,
            acting,
            self.method,
            self.closures,
            (self.live, self.varied, self.decay),
            self.strict,
        )
        others = (self.stops, self.implicit, self.applied.gains() if self.implicit else None, self._forward.key)
        changes = (self.switching.key(), self.frozen) if self.switching else ()
        changes = (*changes, self.contacts, self.ends_at_jams, self.overlap) if self.contacts else changes
        changes = (*changes, self.tracked.key(replace(self, tracked=None))) if self.tracked else changes
        return hashlib.sha256("|".join(map(str, (*parts, *others, *changes))).encode()).hexdigest()

    @property
    def chosen_method(self) -> str:
        """The name of the algorithm of forward dynamics."""
        return self._forward.method

    @property
    def inputs_are_torques(self) -> bool:
        """Whether the inputs of a step are the torques at the joints, and nothing else acts."""
        others = bool(self.stops) or any(any(j.friction) for j in self.model.joints)
        return self.applied.inputs_are_torques and not others

    def refusal(self, x: Arrays) -> Refusal | None:
        """Why this state, in floats, has no accelerations; None if it has."""
        try:
            loaded = self._loaded(x)
        except StateError as error:
            return Refusal(error.reason, str(error))
        except (ArithmeticError, ValueError) as error:  # a root of a negative number, nan
            return Refusal(Reason.NOT_FINITE, f"the torques and forces that act have no value: {error}")
        given = self._of(self._forward, loaded)
        rows = [np.array(given[n], float) for n, _ in self._forward.signature()[0]]
        found = None if self._forward.reference(*rows) is not None else self._forward.explain(*rows)
        if self.minimal and (found is None or found.reason is Reason.SINGULAR_CLOSURE):
            return self.completion.refusal(self.actuated_rates(x)[0]) or found
        if found is None and self.projects:  # a joint that damping alone resists has no inertia to be projected with
            rows = [np.array(y, float) for y in self._of(self._velocity, x).values()]
            return None if self._velocity.reference(*rows) is not None else self._velocity.explain(*rows)
        return found

    def torques(self, x: Arrays) -> tuple[list[Any], list[Any]]:
        """Torques (nv) at the joints, of friction and stops too, and external forces (6 for each loaded body)."""
        tau, forces = self.applied.torques_and_forces(x)
        for k, strength in enumerate(self.friction):
            if strength:
                speed = x["v"][k]
                tau[k] = tau[k] - strength * (speed / sqrt(speed * speed + SLIP * SLIP))
        for stop in self.stops:
            tau[stop.dof] = tau[stop.dof] + stop.torque(x["q"], x["v"])
        return tau, forces

    def accelerations(self, x: Arrays) -> tuple[list[Any], Pairs]:
        """a (nv), and pairs of which the first must be less for a to be valid."""
        a, pairs = self._forward.compute(self._of(self._forward, self._loaded(x)))
        return self._slowed(self.of_present_bodies(a, x), x), [*pairs, *self._parameter_demands(x)]

    @cached_property
    def looped_forward(self) -> Looped | None:
        """Forward dynamics as loops over the links of a long tree; None where the accelerations are more than that."""
        spec = self._forward
        if len(spec.program[0].links) <= LOOPED or self.live or self.varied or self.decay is not None:
            return None
        if self.switching and self.switching.bodies:
            return None
        try:
            return looped_plan(spec)
        except CannotLoop:
            return None

    def loading(self, x: Arrays) -> list[Any]:
        """Torques (nv) on which forward dynamics of a stage depend."""
        return list(self._loaded(x)["tau"])

    def _slowed(self, a: list[Any], x: Arrays) -> list[Any]:
        """Accelerations a − c v: M (a − c v) = M a − c M v, and closed loops stay closed, for J v = 0."""
        if self.decay is None:
            return a
        return [y - x["u"][self.decay] * speed for y, speed in zip(a, x["v"], strict=True)]

    @property
    def finds_row_forces(self) -> bool:
        """Whether the method of forward dynamics finds the forces of closure rows on the way."""
        return self.projects and not self.implicit and "with_forces" in self._forward.algorithm.takes

    def observed(self, x: Arrays) -> tuple[list[list[Any]], Pairs]:
        """a (nv), torques that act (nv) and, where they are found, forces of rows (n_rows); pairs as accelerations.

        Forces are along rows in the axes of either frame of a closure: their sizes are right.
        """
        loaded = self._loaded(x)
        if not self.finds_row_forces:
            a, pairs = self.accelerations(x)
            return [a, list(loaded["tau"])], pairs
        answer, pairs = self._forward_observed.compute(self._of(self._forward_observed, loaded))
        nv = self.model.nv
        a = self._slowed(self.of_present_bodies(answer[:nv], x), x)
        return [a, list(loaded["tau"]), answer[nv:]], [*pairs, *self._parameter_demands(x)]

    def of_present_bodies(self, values: list[Any], x: Arrays) -> list[Any]:
        """Accelerations or rates (nv), 0 for bodies that are absent."""
        if not (self.switching and self.switching.bodies):
            return values
        out = list(values)
        for body, present in zip(self.switching.bodies, x["present"], strict=True):
            for i in self.switching.dofs_of(body):
                out[i] = where(present > 0.5, out[i], 0.0)
        return out

    def row_forces(self, x: Arrays) -> tuple[list[Any], Pairs]:
        """Forces (n_rows) of all closure rows, in the axes of the closures."""
        tau, forces = self.torques(x)
        given = self._of(self._forward_with_forces, {**x, "tau": tau, "forces": forces})
        answer, pairs = self._forward_with_forces.compute(given)
        return answer[self.model.nv :], pairs

    def impact(self, x: Arrays) -> tuple[list[Any], list[Any], list[Any], Pairs]:
        """Change of v (nv) when rows close, impulses and rates before (n_rows each); x has `restitution`."""
        answer, pairs = self._impact.compute(self._of(self._impact, x))
        nv, rows = self.model.nv, self._baked.n_rows
        return answer[:nv], answer[nv : nv + rows], answer[nv + rows :], pairs

    def row_errors(self, x: Arrays) -> list[Any]:
        """Errors (n_rows) of all closure rows, open or closed [rad or m]."""
        m = self._mechanism(x)
        return walk(closure_error(m), m, {"q": x["q"]})

    def row_rates(self, x: Arrays) -> list[Any]:
        """Rates (n_rows) of all closure rows, open or closed [rad/s or m/s]."""
        m = self._mechanism(x)
        return walk(closure_rates(m), m, {"q": x["q"], "v": x["v"]})

    def wrenches(self, x: Arrays, forces: Sequence[Any]) -> dict[str, list[Any]]:
        """[torque; force] (6) of every loop on its body b, at the child frame in its axes; torques of couplings."""
        return loop_wrenches(self._mechanism(x), x["q"], forces)

    @property
    def contact_arrays(self) -> tuple[str, ...]:
        """Names of the arrays of contacts that are recorded."""
        return RECORDED if self.contacts else ()

    def gaps(self, q: np.ndarray, constants: Mapping[str, np.ndarray]) -> np.ndarray:
        """Gaps (n, points) at rows q (n, nq); constants: rows (n or 1, size) by name."""
        assert self.contacts is not None
        points = self.contacts
        names = [n for n in self.contact_mechanics.given if n in constants]
        rows = [np.ascontiguousarray(np.broadcast_to(constants[n], (len(q), self.sizes[n]))) for n in names]
        sizes = {"q": self.model.nq, **{n: self.sizes[n] for n in names}}
        found = kernel("gaps", sizes, points.n, lambda x: (gaps(points, self.mechanism_at(x), x["q"]), ()), self.key())
        return found(q, *rows)

    @cached_property
    def bodies_of_points(self) -> tuple[tuple[int, ...], ...]:
        """For each contact point those bodies that come and go and that it needs, places in the array `present`."""
        assert self.contacts is not None
        if not self.switching:
            return ((),) * self.contacts.n
        sides = [(c.a.at, c.b.at) for c in self.model.contacts]
        return tuple(self.switching.bodies_at(sides[k]) for k in self.contacts.contact_of)

    def overlaps(self, x: Arrays, body: int) -> Any:
        """Whether a body that comes and goes, by its number, is inside a shape of a hard contact; on any scalar."""
        out: Any = False
        if self.contacts is None:
            return out
        for i, gap in enumerate(self.contact_mechanics.gaps(x)):
            needed = self.bodies_of_points[i]
            if body in needed and not self.contacts.stiffness[i]:
                inside = gap < -self.overlap
                for other in needed:
                    inside = inside & (x["present"][other] > 0.5)
                out = out | inside
        return out

    @property
    def contact_mechanics(self) -> ContactMechanics:
        """What contacts need of the mechanism."""
        assert self.contacts is not None
        given = tuple(n for n in self.parameters if n != "contact.k") + (("extra",) if self.implicit else ())
        return ContactMechanics(
            self.model, self.contacts, self._spec_of_contacts, self._of, self._mechanism, given, self.projects
        )

    def _spec_of_contacts(self, name: str, **options: Any) -> KernelSpec:
        return self._spec(name, adds_armature=self.implicit, **options)

    def _loaded(self, x: Arrays) -> dict[str, Sequence[Any]]:
        """x with torques and forces; in a stage of an implicit step with its armature and torques."""
        tau, forces = self.torques(x)
        if TORQUES in x:
            expected = self.turned(list(self.model.neutral()), x[TORQUES], x["q"])
            tau = [a + b for a, b in zip(tau, expected, strict=True)]
        if not self.implicit:
            return {**x, "tau": tau, "forces": forces}
        still = [0.0] * self.model.nv
        rows = zip(tau, x["pull"], x.get("toward", x["v"]), x["extra"], x.get("before", still), strict=True)
        tau = [t - k * rate + 2.0 * (m * a) for t, k, rate, m, a in rows]
        if "push" in x:
            tau = [t + y for t, y in zip(tau, x["push"], strict=True)]
        return {**x, "tau": tau, "forces": forces}

    @property
    def linear_arrays(self) -> tuple[str, ...]:
        """Names of the arrays of an implicit step (integrators/implicit.py)."""
        return ("ahead", "pull", "extra", *(("bend", "push") if self.applied.follows else ()))

    def stiffness_and_damping(self, x: Arrays) -> tuple[list[Any], list[Any]]:
        """K and D (nv) of the torques −K dq − D v at the joints: springs, dampers, linear gains, stops that touch."""
        pairs = zip(self.springs_and_dampers(x), self.applied.linear_gains(x), strict=True)
        K, D = ([a + b for a, b in zip(*rows, strict=True)] for rows in pairs)
        for stop in self.stops:
            k, d = stop.gains(x["q"], x["v"], x["h"][0] if "h" in x else 0.0)
            K[stop.dof], D[stop.dof] = K[stop.dof] + k, D[stop.dof] + d
        return K, D

    def springs_and_dampers(self, x: Arrays) -> tuple[list[Any], list[Any]]:
        """K and D (nv) of the joints' own springs and dampers, zero where a joint is driven or one is negative."""
        K: list[Any] = [0.0] * self.model.nv
        D: list[Any] = [0.0] * self.model.nv
        for link in self._mechanism(x).links:
            if not link.driven:
                K[link.v], D[link.v] = _not_negative(_in_any_direction(link)), _not_negative(link.damping)
        return K, D

    @property
    def friction(self) -> list[float]:
        """Strength (nv) of the joints' own Coulomb friction, zero where a joint is driven."""
        return [0.0 if j.driven else x for j in self.model.joints for x in j.friction]

    def projected_accelerations(self, x: Arrays) -> tuple[list[Any], list[Any], Any, Pairs]:
        """v (nv) projected to the closed loops, the accelerations there, with the same factors, and the margin."""
        v = self.closed_velocity(x)
        a, pairs = self.accelerations({**x, "v": v})
        margin = self.margin(x)
        return v, a, margin, [*pairs, (self.least_margin, margin)] if self.strict else pairs

    @property
    def least_margin(self) -> float:
        """The margin below which a step is refused."""
        return SINGLE_SINGULAR if self.single else SINGULAR

    def margin(self, x: Arrays) -> Any:
        """The smallest pivot of any constraint row over the row's own admittance: 0 where the loops lose rank.

        The pivots are those of `velocity_correction`, whatever the method of forward dynamics. 1 without any.
        """
        _, pivots = self._velocity.compute(self._of(self._velocity, x))
        return _least_ratio(pivots)

    def correction(self, x: Arrays) -> tuple[list[Any], Any]:
        """The change of q or v (nv) that takes `error` (n_rows) of the rows away, and the margin.

        Pivots are those of rows in the axes of the closures' child frames, in which errors are.
        """
        delta, _ = self._position.compute(self._of(self._position, x))
        still = {"v": [0.0] * self.model.nv, "restitution": [0.0] * len(self._baked.switched_rows)}
        _, pivots = self._impact.compute(self._of(self._impact, {**x, **still}))
        return delta, _least_ratio(pivots)

    def row_rates_that_close(self, x: Arrays) -> list[Any]:
        """Rates (n_rows) of all closure rows, 0 where one is open."""
        m = self._mechanism(x)
        mask = masks(m, Values(active=x["active"])) if m.switched_rows else {}
        return [e * mask[r] if r in mask else e for r, e in enumerate(self.row_rates(x))]

    @property
    def measures_margin(self) -> bool:
        """Whether the margin is known: it is not where redundant rows are not."""
        return self.has_loops and self._velocity.program[1].demands is not None

    def closed_velocity(self, x: Arrays) -> list[Any]:
        """v (nv) projected to the closed loops; in minimal coordinates the actuated rates do not change."""
        if self.minimal:
            T, _ = self.actuated_rates(x)
            return self.completion.velocity(T, x["v"])
        delta, _ = self._velocity.compute(self._of(self._velocity, x))
        return [a + b for a, b in zip(x["v"], delta, strict=True)]

    def actuated_rates(self, x: Arrays) -> tuple[list[Any], Pairs]:
        """T, row by row: rates of all joints for unit actuated rates."""
        return self.completion.rates({n: x[m] for n, m in (("q", "q"), ("parameters", "p")) if m in x})

    def completed(self, x: Arrays, rounds: int = MINIMAL_ROUNDS) -> tuple[list[Any], list[Any], Any]:
        """q and v of all joints in minimal coordinates, and the closure error that is left."""
        q, left = self.closed_position(x, rounds)
        return q, self.closed_velocity({**x, "q": q}), left

    def closed_position(self, x: Arrays, rounds: int | None = None) -> tuple[list[Any], Any]:
        """q (nq) projected to the closed loops, and the largest error that is left [rad, or of its loop's length].

        In minimal coordinates by Newton's method with the actuated joints fixed; else by corrections that share
        factors.
        """
        q = list(x["q"])
        for _ in range(rounds or (MINIMAL_ROUNDS if self.minimal else ROUNDS)):
            error = self._errors({**x, "q": q})
            if self.minimal:
                given = {"parameters": x["p"]} if "p" in x else {}
                delta = self.completion.position(given, q, error)
            else:
                delta, _ = self._position.compute({**self._of(self._position, x), "error": error})
            q = self.moved(q, delta)
        return q, self.openness({**x, "q": q})

    def openness(self, x: Arrays, kept: bool = False) -> Any:
        """The largest error of any closure row [rad, or of its loop's length]; 0 without loops.

        kept: without redundant rows, which no joint closes.
        """
        return self.openness_of(self._errors(x), kept) if self.has_loops else 0.0

    def openness_of(self, errors: Sequence[Any], kept: bool = False) -> Any:
        """The largest of errors (n_rows) of all closure rows [rad, or of its loop's length]; kept: as of openness."""
        left: Any = 0.0
        dropped = self._position.redundancy.dropped if kept else frozenset()
        for r, (e, length) in enumerate(zip(errors, self._baked.row_lengths, strict=True)):
            if r not in dropped:
                share = absolute(e) * (1.0 / length)
                left = where(share < left, left, share)
        return left

    def moved(self, q: Sequence[Any], delta: Sequence[Any]) -> list[Any]:
        """q ⊕ delta."""
        out: list[Any] = []
        for joint in self.model.joints:
            kind = joint.kind
            part = tuple(q[self.model.q_slice(joint.name)]), tuple(delta[self.model.v_slice(joint.name)])
            out += kind.plus(*part) if kind.nv else ()
        return out

    def turned(self, q: Sequence[Any], v: Sequence[Any], to: Sequence[Any]) -> list[Any]:
        """v of the same motion at coordinates `to` near q: velocities in the axes of bodies turn back with them."""
        out: list[Any] = []
        for joint in self.model.joints:
            at, dof = self.model.q_slice(joint.name), self.model.v_slice(joint.name)
            out += joint.kind.turned(q[at], v[dof], to[at])
        return out

    def between(
        self, q: Sequence[Any], v: Sequence[Any], end: Sequence[Any], v_end: Sequence[Any], h: Any
    ) -> list[Any]:
        """q + ½ h (dq/dt + dq/dt at the end); rotations by the mean angular velocity."""
        turned = self.moved(q, [0.5 * h * (a + b) for a, b in zip(v, v_end, strict=True)])
        moved = [a + 0.5 * h * (b + c) for a, b, c in zip(q, self.rates(q, v), self.rates(end, v_end), strict=True)]
        kinds = [j.kind for j in self.model.joints if j.kind.nv]
        adds = [kind.nq == kind.nv or bool(x) for kind in kinds for x in kind.lengths()]
        return [a if added else b for a, b, added in zip(moved, turned, adds, strict=True)]

    def rates(self, q: Sequence[Any], v: Sequence[Any]) -> list[Any]:
        """dq/dt (nq)."""
        out: list[Any] = []
        for joint in self.model.joints:
            kind = joint.kind
            part = tuple(q[self.model.q_slice(joint.name)]), tuple(v[self.model.v_slice(joint.name)])
            out += kind.rates(*part) if kind.nv else ()
        return out

    @cached_property
    def _forward(self) -> KernelSpec:
        return self._forward_of()

    @cached_property
    def _forward_observed(self) -> KernelSpec:
        return self._forward_of(with_forces="any axes")

    def _forward_of(self, **options: Any) -> KernelSpec:
        return self._spec(
            "forward_dynamics",
            method=MINIMAL_METHOD if self.minimal else self.method,
            forces=self.applied.bodies,
            feedback=self.has_loops and self.closures == "feedback",
            on_singular="raise" if self.strict else "minimum_norm",
            refuses_open=not self.keeps_closed,
            adds_armature=self.implicit,
            **options,
        )

    @cached_property
    def _forward_with_forces(self) -> KernelSpec:
        options = {"forces": self.applied.bodies, "on_singular": "raise" if self.strict else "minimum_norm"}
        return self._spec("forward_dynamics", refuses_open=False, with_forces=True, **options)

    @cached_property
    def _impact(self) -> KernelSpec:
        return self._spec("impact")

    @cached_property
    def _velocity(self) -> KernelSpec:
        return self._spec("velocity_correction", adds_armature=self.implicit)

    @cached_property
    def _position(self) -> KernelSpec:
        return self._spec("position_correction", adds_armature=self.implicit)

    @cached_property
    def completion(self) -> Completion:
        """The unactuated joints from the actuated ones, in minimal coordinates."""
        return Completion(self.model, self._spec)

    def _spec(self, name: str, **options: Any) -> KernelSpec:
        captures = self.switching.captures if self.switching else ()
        return KernelSpec.of(
            self.model,
            name,
            parameters="live" if self.live else self.varied or "baked",
            near=self.near,
            coarse=True,
            captures=captures,
            **options,
        )

    def _of(self, spec: KernelSpec, x: Arrays) -> dict[str, Sequence[Any]]:
        """The arrays of x that a spec reads; loops are projected with the armature of implicit steps, if x has it."""
        given = {**x, "parameters": x["p"]} if "p" in x else dict(x)
        if self.implicit:
            given["armature"] = x.get("extra", [0.0] * self.model.nv)
        return {n: given[n] for n, _ in spec.signature()[0] if n in given}

    def errors_that_close(self, x: Arrays) -> list[Any]:
        """Errors (n_rows) of all closure rows, 0 where one is open [rad or m]."""
        return self._errors(x)

    def _errors(self, x: Arrays) -> list[Any]:
        m = self._mechanism(x)
        errors = walk(closure_error(m), m, {"q": x["q"]})
        mask = masks(m, Values(active=x["active"])) if m.switched_rows else {}
        return [e * mask[r] if r in mask else e for r, e in enumerate(errors)]

    def mechanism_at(self, x: Arrays) -> Mechanism:
        """The mechanism with live parameters, if there are any; loops where the model has them."""
        values = self.parameters_at(x)
        return self._baked if values is None else mechanism(self.model, values)

    def parameters_at(self, x: Arrays) -> Sequence[Any] | None:
        """All parameters of the model, where some are live; None where they are numbers in the code."""
        if self.varied:
            return self._variation.expanded(x["p"])
        return x["p"] if self.live else None

    @cached_property
    def _variation(self) -> Varied:
        return Varied.of(self.model, self.varied, "simulate")

    def _parameter_demands(self, x: Arrays) -> Pairs:
        """Pairs of which the first must be less: parameters that vary during a run are those of a mechanism."""
        if not self.varied:
            return []
        values = not_negative(self.model, self._variation.expanded(x["p"]))
        varying = not all(isinstance(value, float) for value in x["p"])  # traced: numbers that are baked need no test
        return [(-NEGLIGIBLE, value) for _, value in values if not (varying and isinstance(value, float))]

    def _mechanism(self, x: Arrays) -> Mechanism:
        found = self.mechanism_at(x)
        captures = self.switching.captures if self.switching else ()
        return found.with_captured(x["captured"], captures) if captures else found

    @property
    def _baked(self) -> Mechanism:
        return _mechanism(self.model)


def _least_ratio(pivots: Pairs) -> Any:
    """The smallest ratio of pairs (bound, pivot) of constraint rows; 1 without any."""
    margin: Any = 1.0
    for least, pivot in pivots:
        ratio = where(least > 0.0, PIVOT_TOLERANCE * pivot / where(least > 0.0, least, 1.0), 1.0)
        margin = where(ratio < margin, ratio, margin)
    return margin


def _in_any_direction(link: Link) -> Sequence[Any]:
    """The stiffness of a joint's springs; where they turn against its axes, the largest of those in the same unit."""
    if link.kind.nv == 1 or link.kind.bends:  # modes have no axes that turn
        return link.stiffness
    rows = list(zip(link.kind.units, link.stiffness, strict=True))
    return [functools.reduce(larger, (k for other, k in rows if other == unit)) for unit in link.kind.units]


def larger(a: Any, b: Any) -> Any:
    """The larger of two scalars."""
    return where(a < b, b, a)


def _not_negative(values: Sequence[Any]) -> list[Any]:
    """Numbers, zero where they are negative; live ones are checked before."""
    return [max(x, 0.0) if isinstance(x, float) else x for x in values]


@functools.lru_cache(maxsize=16)
def _mechanism(model: Model) -> Mechanism:
    return mechanism(model)
