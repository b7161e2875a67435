"""The outcome of a run that an event ended: which one, when, and what was missing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from spanloop.algorithms.papers.kreutz_rodriguez.grasp_margin import friction_cone
from spanloop.contacts.geometry_check import deepest_overlap
from spanloop.errors import InputError
from spanloop.loops.closure_errors import misses, rows_of
from spanloop.simulation.events.conditions import condition_value
from spanloop.simulation.events.endings import Events
from spanloop.simulation.events.kinds import Attach, Grasp
from spanloop.simulation.events.location import MOST
from spanloop.simulation.events.switched_start import wrenches
from spanloop.simulation.events.switches import OPEN, word_of
from spanloop.trajectory import EndReason, Outcome

if TYPE_CHECKING:
    from spanloop.simulation.problem import Problem

_LEAST = 1e-9  # N: less is no force
_NONE = 1e-6  # of the pressing force that friction needs: less is not missing
_OTHER_ROWS = "All its rows close together: take a closure that has the watched row alone, or guide the others there"


def outcome_of(
    problem: Problem, number: int, t: float, x: Mapping[str, np.ndarray], switched: Mapping[str, np.ndarray], run: int
) -> Outcome:
    """The outcome of a run that watcher `number` ended at time t [s].

    x: arrays q, v, u, z, on there. switched: arrays that events change.
    """
    switching = problem.system.switching
    assert switching is not None
    w = switching.watchers[number]
    on = x.get("on", np.zeros(0)).tolist()
    if switching.reads_undetermined(number, on) > 0.5:
        return Outcome(EndReason.SINGULAR, f"at t = {t:.9g} s {switching.undetermined_words(number, on)}", t)
    if w.kind == "limit":
        assert w.limit is not None
        words = (
            f"joint {w.limit.joint!r} reached its {w.limit.word} limit, {w.limit.bound:g}, at t = {t:.9g} s. "
            "limits='stop' puts a stop there, limits='ignore' does not check limits"
        )
        return Outcome(EndReason.LIMIT, words, t)
    if w.kind == "grasp":
        return Outcome(EndReason.GRASP, f"at t = {t:.9g} s {_slip(problem, number, t, x, switched)}", t)
    if w.kind in ("attach", "gap"):
        return Outcome(EndReason.ATTACH, f"at t = {t:.9g} s {_refusal(problem, number, x, switched, run)}", t)
    if w.kind == "appear":
        return Outcome(EndReason.OVERLAP, f"at t = {t:.9g} s {_inside(problem, w.body, {**x, **switched}, run)}", t)
    return Outcome(EndReason.EVENT, f"condition {w.name!r} was met at t = {t:.9g} s", t)


def _inside(problem: Problem, body: int, x: Mapping[str, np.ndarray], run: int) -> str:
    """A sentence on the shape in which a body appears."""
    system = problem.system
    assert system.switching is not None
    state = {n: np.ravel(y).tolist() for n, y in (dict(x) | problem.constants_of(run)).items()}
    there = [body in own and all(state["present"][k] > 0.5 for k in own) for own in system.bodies_of_points]
    found = deepest_overlap(system.model, np.where(there, system.contact_mechanics.gaps(state), np.inf), system.overlap)
    words = found[2] if found else "two shapes overlap"
    return (
        f"body {system.switching.bodies[body]!r} appears inside another: {words} (bound {1e3 * system.overlap:.4g} "
        "mm). Let it appear apart from it, or allow it: contacts=sl.contacts.Settings(overlap=...)"
    )


def _slip(problem: Problem, number: int, t: float, x: Mapping[str, np.ndarray], switched: Mapping) -> str:
    """A sentence on the friction cone that a grasp has left, and the forces there."""
    assert problem.system.switching is not None
    event = problem.system.switching.watchers[number].event
    assert isinstance(event, Grasp)
    rows = {name: np.atleast_2d(x) for name, x in switched.items()}
    acting = {"u": x["u"], "z": x["z"]}
    wrench = wrenches(problem, rows, np.array([[t]]), x["q"][None], x["v"][None], **acting)[event.loop][0]
    loop = next(y for y in problem.system.model.loops if y.name == event.loop)
    cone = friction_cone(loop.kind, event.friction, event.torsion, event.normal)
    pressing, needed = float(cone.pressing(wrench)), float(cone.needed(wrench))
    across = float(np.linalg.norm(np.cross(cone.normal, wrench[3:])))
    pulls = pressing < -max(_NONE * needed, _LEAST)
    does = f"it would have to pull with {-pressing:.3g} N" if pulls else f"it presses with {max(pressing, 0.0):.3g} N"
    holds, bounds = f"{across:.3g} N across", f"friction {event.friction:g} needs"
    if cone.bounds_moment:
        holds += f" and {abs(float(np.dot(cone.normal, wrench[:3]))):.3g} N m about the normal"
        bounds = f"friction {event.friction:g} and torsion {event.torsion:g} m need"
    missing = f"; {needed - pressing:.3g} N are missing" if needed - pressing > _NONE * needed else ""
    return (
        f"the grasp {event.loop!r} leaves its friction cone: {does} and holds {holds}, for which {bounds} "
        f"{needed:.3g} N of pressing force{missing}. on_break='release' lets go there"
    )


def _refusal(
    problem: Problem, number: int, state: Mapping[str, np.ndarray], switched: Mapping[str, np.ndarray], run: int
) -> str:
    """A sentence on a loop that cannot close: how far it is open, how fast it would close, or what is not there."""
    system = problem.system
    assert system.switching is not None
    w = system.switching.watchers[number]
    switch, event = system.switching.switches[w.switch], w.event
    what = word_of(system.switching.model, w.name)
    for body in system.switching.bodies_of(w.switch):
        if not switched["present"][body] > 0.5:
            return (
                f"{what} {w.name!r} cannot attach: body {system.switching.bodies[body]!r} is not there. Attach it when "
                "or after it appears, and before it vanishes"
            )
    x = {n: state[n].tolist() for n in ("q", "v")} | {n: np.ravel(y).tolist() for n, y in switched.items()}
    x |= {n: y.tolist() for n, y in problem.constants_of(run).items()}
    x = system.switching.as_it_closes(number, x, system.mechanism_at(x))
    errors, rates = np.array(system.row_errors(x), float), np.array(system.row_rates(x), float)
    model, rows = system.switching.model, list(switch.rows)
    names = rows_of(model)
    lengths = np.array(system.switching.mechanism.row_lengths)
    needed = list(system.switching.must_be_closed(number))
    if (np.abs(errors[needed] / lengths[needed]) > OPEN).any():
        miss = next(m for m in misses(model, errors) if m.name == w.name)
        parts = [f"{1e3 * miss.meters:.3g} mm"] * (miss.meters > 0.0) + [f"{1e3 * miss.radians:.3g} mrad"] * (
            miss.radians > 0.0
        )
        return f"{what} {w.name!r} cannot attach: it is open by {' and '.join(parts)}. " + (
            "capture=True holds it as it is; or move it there first" if w.kind == "attach" else _OTHER_ROWS
        )
    if w.kind == "gap":
        row = switch.rows[switch.watched]
        return (
            f"{what} {w.name!r} cannot attach: it is {abs(errors[row]):.3g} {names[row].unit} on its wrong side, "
            "where a body appeared. Let it appear on the other side"
        )
    assert isinstance(event, Attach)
    k = int(rows[int(np.argmax(np.abs(rates[rows])))])
    return (
        f"{what} {w.name!r} cannot attach: it closes at {abs(rates[k]):.3g} {names[k].unit}/s ({names[k].name}), and "
        f"speed= allows {event.speed:g}"
    )


def undefined(problem: Problem, t: float, q: np.ndarray, v: np.ndarray) -> Outcome | None:
    """The outcome of a run that ends because a condition is no number at time t [s]; None if none is known to be.

    Conditions on forces are left out: there may be none to read.
    """
    switching, x = problem.system.switching, {"t": [t], "q": q.astype(float).tolist(), "v": v.astype(float).tolist()}
    values: dict[str, Callable[[], object]] = {}
    if switching is None:
        for name, condition in problem.events.conditions:
            values[name] = functools.partial(Events(problem.model, (), ((name, condition),)).values, x)
    else:
        for w in switching.watchers:
            if w.condition is not None and not w.takes_forces:
                values[w.name] = functools.partial(condition_value, w, switching.model, x, {})
    for name, value in values.items():
        try:
            with np.errstate(all="ignore"):
                value()
        except InputError:
            words = f"the condition of {name!r} is no number at t = {t:.6g} s. Let it be one on both sides of 0"
            return Outcome(EndReason.NOT_FINITE, words, t)
    return None


def too_many(t: float, h: float) -> Outcome:
    """The outcome of a run whose events follow each other without end."""
    words = (
        f"at t = {t:.6g} s events follow each other too fast to be located one by one ({MOST} trials in a step of "
        f"{h:g} s). Take shorter steps; or give one-sided constraints a larger resting= speed, or less restitution; or "
        "part the conditions that meet"
    )
    return Outcome(EndReason.NOT_CONVERGED, words, t)
