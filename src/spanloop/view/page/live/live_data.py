"""The data of a live page: the table by which its script runs the module, plain JSON.

| key | meaning |
|---|---|
| wasm | the module: gzip, base64. Exports memory, begin, step and the names of `kernels`: () -> status or nothing |
| places, sizes | by array: where it begins in memory, in float64 numbers (bytes / 8), and how many numbers it has |
| state | names of the arrays that a step carries on: keep and restore these together |
| start | {array: numbers} before the first step: of state, constants, parameters "p" and inputs "u" |
| time | of the first step [s]; write t = time + k · step into the array "t" |
| step | length of a step [s], of the array "h" |
| integrator | its name |
| velocity | the array of velocities with closed loops, right after `begin` |
| rates | for each entry of v: {"joint", "unit"}, unit "rad" or "m" (per second) |
| inputs | parts of u, see below |
| grab | for each body of the page (Scene.bodies) {"place", "about"}, {"why": sentence} or {"nodes"}, see below |
| gravity | {"places", "values", "factor", "most"}: p[places] = factor · values; None if gravity does not vary |
| parameters | [{"name", "place": in p, "value", "low", "high", "unit", "increment"}]; increment > 0: a length [m] |
| continuation | {"most": (nq) the most that each coordinate changes in one step of it, "least_share"} |
| kernels | by name: what it writes into the array of its name, see below |
| torques | the array with the torques that act at the joints (nv), right after `begin`; None if it is not there |
| events | names of the user's conditions that end the motion |
| ends | {"array", "names"}, what ended a motion of status 2; None if nothing can, see below |
| log | {"rows", "width", "arrays": {name: [first, count]}, "watchers": [{"kind", "name"}]}, or None, see below |
| contacts | {"points": names, "numbers": of each, "impulses", "gaps": arrays} after a step, or None, see below |
| status | {bit: sentence} of what a step returns: 1, 2 or 4, or a sum of them; the state stays as it was |
| bounds | {"singular", "open"}: a "margin" below the first, an "error" of a loop [rad or m] above the second ends the motion |
| keeps | a sentence on what does not follow the sliders of gravity and parameters, or "" |
| not_live | sentences: what the page does differently from the run, or cannot do |

Lengths are changed by continuation, which live_parameters.py writes down.

inputs:

| key | meaning |
|---|---|
| count | numbers of u |
| own | {"first", "count", "rows", "values"}: inputs of the user's controller and forces, or torques of the run. values: base64 of float64 (rows, count), step k has row min(k, rows − 1); None: the one row is that of start |
| gains | [{"name": "kp" or "kd", "place", "value": 1, "low", "high"}], factors |
| targets | [{"joint", "place", "value": 0, "low", "high", "unit"}], offsets of targets |
| torques | [{"joint", "place", "value": 0, "low", "high", "unit"}], added to what acts |
| damping | {"place", "value": 0, "low", "high", "unit": "1/s"}: all motion decays at this rate; None if it cannot |

kernels, each to be called after `begin`, and their arrays:

| name | numbers |
|---|---|
| poses | 12 for each body of the page: rotation row by row, then position [m] |
| bending | modal coordinates of `surfaces`, each {"body", "first", "count"}; missing where nothing has a surface |
| energy | kinetic and potential [J]; gravity (0 at the world's origin), springs and strain are in the potential |
| closure | errors of the rows of loops and couplings [rad or m]; of each loop {"name", "first", "count"} |
| loop_forces | of each loop {"name", "first", "unit"}: force [N] and torque [N m] that it carries; 1 number of a coupling |

What ended a motion: array "halt" has a number for each of the names, negative at the one that ended it; array "ending"
has the number of the name, plus 1. A row of the log is an event inside the step: t [s], fired (positive at the watcher
that fired), q, v, impulses, ...; "logged" has how many there were in the step, of which the first `rows` are kept; write
0 to it before a step. An impulse of a contact point has its part along the normal first, then two along the surface
[N s]: divided by the step it is the force [N]; gaps are in metres.

A frame: for each step write t, h, u and call `step`; then write t of the state, call `begin`, and the kernels that are
drawn. To grab body b at a point x of the world with force F, write [(x − o) × F; F] to u from `place` on, o the
position of body `about` among the poses, anew for every frame or step. A surface that bends has "nodes", its root and
interfaces as [{"body", "place", "about"}]: the one nearest to x is grabbed, x moves with its body.
"""  # noqa: E501

from __future__ import annotations

import base64
import gzip
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.compiler.portable.memory import LOG, LOGGED
from spanloop.compiler.render.rollout import HALTED, LOST, NOT_CONVERGED
from spanloop.contacts.contact_arrays import RECORDED
from spanloop.flexible.beam import BeamPiece
from spanloop.model import Model
from spanloop.simulation.integrators.step_schedule import ACTING, OPEN
from spanloop.simulation.stiffness import EXPLICIT, stiffest
from spanloop.simulation.system import SINGULAR
from spanloop.topology import mechanism
from spanloop.view.beams import segments
from spanloop.view.page.live.live_inputs import FASTEST, STRONGEST, LiveInputs
from spanloop.view.page.live.live_kernels import POSE
from spanloop.view.page.live.live_parameters import LEAST_SHARE, MOST_TURN

if TYPE_CHECKING:
    from spanloop.view.page.live.live_motion import LiveMotion

_EVENTS = ("margin", "error", "halt", LOG, LOGGED)  # arrays beside state and constants that a page reads
STATUS = {
    LOST: "the state has no next one: it is singular, a loop came open, or a number is no longer finite",
    HALTED: "an event ends the motion",
    NOT_CONVERGED: "the step did not converge; take a shorter step, or less force",
}
KEEPS = "the controller and forces do not follow the sliders of gravity and parameters"
LOG_ROWS = 16  # of the log of events of a step
FAR_TURN, FAR_SLIDE = 1.5, 0.3  # of sliders of targets: rad, and of the mechanism's size
LIVELY = {"rad": 20.0, "m": 10.0}  # accelerations that sliders of torques cause, about [rad/s², m/s²]


def live_data(live: LiveMotion) -> dict[str, Any]:
    """What the page reads."""
    s, memory, problem = live.motion.schedule, live.program.memory, live.motion.problem
    needed = {"t", "h", *live.motion.start, *s.state, live.velocity, *live.kernels, ACTING, *_EVENTS}
    names = [n for n in memory.places if n in needed]
    start = {name: x.tolist() for name, x in live.motion.start.items()}
    gravity = [live.parameters.factor * g for g in live.parameters.gravity.values()]
    if gravity:
        start["p"][: len(gravity)] = gravity
    return {
        "wasm": base64.b64encode(gzip.compress(live.program.binary(), 9, mtime=0)).decode(),
        "places": {n: memory.places[n] for n in names},
        "sizes": {n: memory.sizes[n] for n in names},
        "state": list(s.state),
        "start": start,
        "time": problem.start,
        "step": live.motion.step,
        "integrator": live.motion.integrator,
        "velocity": live.velocity,
        "rates": _rates(problem.model),
        "inputs": _inputs(live),
        "grab": _grab(live.inputs),
        **live.parameters.data(),
        "continuation": {"most": _most_changes(problem.model, live.size), "least_share": LEAST_SHARE},
        "kernels": {name: _kernel(live, name) for name in live.kernels},
        "torques": ACTING if ACTING in memory.places else None,
        "events": [name for name, _ in problem.events.conditions],
        **_happenings(live),
        "status": {str(bit): words for bit, words in STATUS.items()},
        "bounds": {"singular": SINGULAR if problem.system.strict else 0.0, "open": OPEN * live.size},
        "keeps": KEEPS if _acts(live.inputs) and live.parameters.names else "",
        "not_live": list(live.not_live),
    }


def _acts(parts: LiveInputs) -> bool:
    return parts.controller is not None or parts.forces is not None


def _happenings(live: LiveMotion) -> dict[str, Any]:
    """Ends of the motion, the log of events, and contacts."""
    s, problem = live.motion.schedule, live.motion.problem
    switching, touching = problem.system.switching, problem.system.contacts
    ends, log, contacts = None, None, None
    if switching is not None:
        watchers = [{"kind": x.kind, "name": x.name} for x in switching.watchers]
        ends = {"array": "ending", "names": [x.name for x in switching.watchers]}
        if s.log is not None:
            sizes = [s.sizes[n] for n in s.log.arrays]
            places = [sum(sizes[:k]) for k in range(len(sizes))]
            arrays = {n: [a, b] for n, a, b in zip(s.log.arrays, places, sizes, strict=True)}
            log = {"rows": LOG_ROWS, "width": sum(sizes), "arrays": arrays, "watchers": watchers}
    elif len(problem.events):
        limits = [limit.joint for limit in problem.events.limits]
        ends = {"array": "halt", "names": [*limits, *(name for name, _ in problem.events.conditions)]}
    if touching is not None:
        impulses, gaps = RECORDED[:2]
        contacts = {"points": list(touching.names), "numbers": touching.B, "impulses": impulses, "gaps": gaps}
    return {"ends": ends, "log": log, "contacts": contacts}


def _inputs(live: LiveMotion) -> dict[str, Any]:
    parts, model, first = live.inputs, live.inputs.model, live.inputs.first
    many = len(live.own) > 1
    values = base64.b64encode(np.ascontiguousarray(live.own, "<f8").tobytes()).decode() if many else None
    damping = {"place": first["damping"], "value": 0.0, "low": 0.0, "high": FASTEST, "unit": "1/s"}
    torques = [(k, _most_torque(parts, k)) for _, k in parts.torques]
    targets = [(k, FAR_TURN if _rates(model)[k]["unit"] == "rad" else FAR_SLIDE * live.size) for _, k in parts.targets]
    return {
        "count": first["end"],
        "own": {"first": 0, "count": parts.own, "rows": len(live.own), "values": values},
        "gains": [
            {"name": name, "place": first["gains"] + k, "value": 1.0, "low": 0.0, "high": _most_gain(live)}
            for k, name in enumerate(("kp", "kd")[: parts.gains])
        ],
        "targets": [
            {**_rates(model)[k], "place": first["targets"] + i, "value": 0.0, "low": -far, "high": far}
            for i, (k, far) in enumerate(targets)
        ],
        "torques": [
            {**_with_force(_rates(model)[k]), "place": first["torques"] + i, "value": 0.0, "low": -most, "high": most}
            for i, (k, most) in enumerate(torques)
        ],
        "damping": damping if parts.decays else None,
    }


def _most_gain(live: LiveMotion) -> float:
    """The largest factor of gains for which explicit steps stay stable, at least 1."""
    found = stiffest(live.motion.problem.system, live.motion.problem.q[0], None)
    rate = 0.0 if found is None else found.rate
    return float(f"{min(STRONGEST, max(1.0, 0.9 * EXPLICIT / max(rate * live.motion.step, 1e-9))):.3g}")


def _most_torque(parts: LiveInputs, dof: int) -> float:
    """A torque that moves a joint well, rounded to one digit."""
    most = LIVELY.get(_rates(parts.model)[dof]["unit"], 1.0) * float(parts.inertias[dof])
    return float(f"{most:.1g}") if most > 0.0 else 1.0


def _grab(parts: LiveInputs) -> list[dict[str, Any]]:
    """For each body of the scene where a force on it is in u; segments of a beam pull at its nearest node."""
    model, number = parts.model, parts.model.body_number

    def entry(name: str) -> dict[str, Any]:
        load = parts.load_of(name)
        if load is None:
            return {"why": f"{name!r} is fixed in the world"}
        return {"place": parts.first["forces"] + 6 * parts.loads.index(load), "about": number[load]}

    out: list[dict[str, Any]] = [{"why": "the world does not move"}, *(entry(b.name) for b in model.bodies)]
    for bent in segments.bent_bodies(model):
        nodes = [j for j in model.joints if j.kind.rides and number[j.parent] == bent.body]
        places = np.array([j.placement.position for j in nodes]).reshape(-1, 3)
        if not isinstance(bent.source, BeamPiece):
            names = [model.bodies[bent.root - 1].name, *(j.child for j in nodes)]
            own = [{**entry(name), "body": number[name]} for name in names]
            held = [x for x in own if "place" in x]
            out.append({"nodes": held} if held else own[0])
            continue
        x = segments.stations(bent.source).positions
        for middle in 0.5 * (x[1:] + x[:-1]):
            near = int(np.linalg.norm(places - middle, axis=1).argmin()) if nodes else -1
            name = nodes[near].child if nodes else model.bodies[bent.body - 1].name
            out.append(entry(name))
    return out


def _kernel(live: LiveMotion, name: str) -> dict[str, Any]:
    """What the array of a kernel holds."""
    if name == "poses":
        return {"bodies": live.program.memory.sizes["poses"] // POSE}
    if name == "energy":
        return {"names": ["kinetic", "potential"]}
    model, m = live.inputs.model, mechanism(live.inputs.model)
    if name == "bending":
        counts = {k: x.shape[-1] for k, x in segments.surface_coordinates(model, live.inputs.q).items()}
        firsts = np.cumsum([0, *counts.values()]).tolist()
        return {
            "surfaces": [
                {"body": k, "first": at, "count": n} for (k, n), at in zip(counts.items(), firsts, strict=False)
            ]
        }
    if name == "closure":
        loops = [{"name": c.name, "first": min(c.rows), "count": len(c.rows)} for c in m.closures if len(c.rows)]
        return {"loops": [*loops, *({"name": g.name, "first": g.row, "count": 1} for g in m.gears)]}
    after = 2 * len(model.loops)
    loops = [{"name": x.name, "first": 2 * k, "unit": "N, N m"} for k, x in enumerate(model.loops)]
    return {
        "loops": [*loops, *({"name": c.name, "first": after + k, "unit": "N m"} for k, c in enumerate(model.couplings))]
    }


def _most_changes(model: Model, size: float) -> list[float]:
    """For each coordinate (nq) the most that it changes in one step of a continuation."""
    return [MOST_TURN * (size if x else 1.0) for j in model.joints if j.kind.nv for x in j.kind.lengths()]


def _rates(model: Model) -> list[dict[str, str]]:
    return [{"joint": j.name, "unit": unit} for j in model.joints for unit in j.kind.units]


def _with_force(rate: dict[str, str]) -> dict[str, str]:
    return {**rate, "unit": {"rad": "N m", "m": "N"}.get(rate["unit"], rate["unit"])}
