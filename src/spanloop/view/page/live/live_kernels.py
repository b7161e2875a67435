"""The kernels of a live page: poses of what is drawn, bending of surfaces, energy, closure errors, forces of loops.

All take the arrays of the step by name; parameters that vary are the array "p".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from spanloop.compiler.lower import Plan, unrolled
from spanloop.flexible.finite_element_body import FiniteElementBody
from spanloop.kernels import KernelSpec
from spanloop.math.scalar import sqrt
from spanloop.math.vector3 import IDENTITY3, ZERO3, add, cross, dot, scale, subtract, times
from spanloop.model import WORLD, Model
from spanloop.simulation.integrators.step_schedule import ROW_FORCES
from spanloop.simulation.system import System
from spanloop.topology import mechanism
from spanloop.view.beams import segments, surfaces

POSE = 12  # numbers of a pose: the rotation row by row, then the position


def kernels(system: System, velocity: str) -> dict[str, tuple[Plan, tuple[str, ...]]]:
    """Plans by name, with the arrays that each reads; velocity: the array of velocities with closed loops."""
    found = {"poses": _plan(system, "poses", ("q",), _poses(system)), "energy": _energy(system, velocity)}
    if segments.surface_modes(system.model):
        found["bending"] = _plan(system, "bending", ("q",), lambda x: _bending(system.model, x["q"]))
    if system.has_loops:
        changing = ("q", *(n for n in ("active", "captured") if n in system.sizes))
        found["closure"] = _plan(system, "closure", changing, system.errors_that_close)
    if system.has_loops and system.finds_row_forces:
        reads = (*changing[:1], *changing[2:], ROW_FORCES) if "active" in changing else (*changing, ROW_FORCES)
        found["loop_forces"] = _plan(system, "loop_forces", reads, lambda x: _loop_forces(system, x))
    return found


def _plan(system: System, name: str, reads: tuple[str, ...], compute: Callable) -> tuple[Plan, tuple[str, ...]]:
    sizes = {**system.sizes, ROW_FORCES: system.n_rows}
    names = (*reads, *(("p",) if system.varied else ()))
    inputs = tuple((n, sizes[n]) for n in names)
    return unrolled(name, inputs, (0,), lambda x: (compute(x), (), ())), names


def _energy(system: System, velocity: str) -> tuple[Plan, tuple[str, ...]]:
    plan = KernelSpec.of(
        system.model, "energy", parameters=system.varied or "baked", lowering="unrolled", regroup=False
    ).plan
    assert isinstance(plan, Plan)
    names = {"q": "q", "v": velocity, "parameters": "p"}
    return plan, tuple(names[n] for n, _ in plan.inputs)


def _loop_forces(system: System, x: Any) -> list[Any]:
    """For each loop the size of its force and of its torque; the torque of each coupling."""
    wrenches = system.wrenches(x, x[ROW_FORCES])
    out: list[Any] = []
    for loop in system.model.loops:
        six = wrenches[loop.name]
        out += [sqrt(dot(six[3:], six[3:])), sqrt(dot(six[:3], six[:3]))]
    return out + [wrenches[c.name][0] for c in system.model.couplings]


# ---- poses


def _poses(system: System) -> Callable[[Any], list[Any]]:
    """Poses of the world, all bodies and the segments of flexible ones, as Scene.bodies, 12 numbers each."""
    model = system.model
    spec = KernelSpec.of(model, "poses", parameters=system.varied or "baked", lowering="unrolled")
    names = list(mechanism(model).anchors)
    order = [names.index(name) for name in (WORLD, *(b.name for b in model.bodies))]

    def compute(x: Any) -> list[Any]:
        given = {"q": x["q"]} | ({"parameters": x["p"]} if system.varied else {})
        flat = list(_numbers(spec.compute(given)[0]))
        found = [_turn_and_place(flat[16 * k : 16 * k + 16]) for k in order]
        for bent in segments.bent_bodies(model):
            turn, place = found[bent.body]
            found += [(_product(turn, r), add(place, times(turn, p))) for r, p in _local(bent, x["q"])]
        return [y for turn, place in found for y in (*turn[0], *turn[1], *turn[2], *place)]

    return compute


def _numbers(nested: Any) -> Any:
    for x in nested:
        yield from _numbers(x) if isinstance(x, list | tuple) else (x,)


def _turn_and_place(rows: Sequence[Any]) -> tuple[Any, Any]:
    return tuple(tuple(rows[4 * i : 4 * i + 3]) for i in range(3)), tuple(rows[4 * i + 3] for i in range(3))


def _product(a: Any, b: Any) -> Any:
    columns = [times(a, tuple(row[k] for row in b)) for k in range(3)]
    return tuple(tuple(c[i] for c in columns) for i in range(3))


def _local(bent: segments.BentBody, q: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Rotation and position of the segments of a flexible body in its frame (segments.py), on any scalar."""
    if isinstance(bent.source, FiniteElementBody):
        return [(IDENTITY3, ZERO3)]
    stations, eta = segments.stations(bent.source), list(q[bent.q])
    places, sides = [], []
    for k in range(len(stations.positions)):
        moved = _shifted(stations.translations[k], stations.bent_translations[k], eta)
        places.append(add(tuple(stations.positions[k].tolist()), moved))
        sides.append(_shifted(stations.rotations[k], stations.bent_rotations[k], eta))
    sides = [_axis(psi, (0.0, 1.0, 0.0)) for psi in sides]
    out = []
    for k in range(len(places) - 1):
        along = _unit(subtract(places[k + 1], places[k]))
        side = add(sides[k], sides[k + 1])
        side = _unit(subtract(side, scale(dot(along, side), along)))
        third = cross(along, side)
        turn = tuple(zip(along, side, third, strict=True))
        out.append((turn, scale(0.5, add(places[k], places[k + 1]))))
    return out


def _shifted(first: np.ndarray, second: np.ndarray, eta: Sequence[Any]) -> Any:
    """Σ first[n] η_n + ½ Σ second[n, m] η_n η_m, three numbers."""
    total: list[Any] = [0.0, 0.0, 0.0]
    for n, x in enumerate(eta):
        for a in range(3):
            total[a] = total[a] + float(first[n, a]) * x
            for m in range(n + 1):
                own = float(second[n, m, a] + second[m, n, a]) * (0.5 if m != n else 0.25)
                total[a] = total[a] + own * (x * eta[m]) if own else total[a]
    return tuple(total)


def _axis(psi: Any, axis: Any) -> Any:
    """An axis that is turned by a vector ψ."""
    grown = scale(1.0 + dot(psi, psi) * (1.0 / 12.0), psi)
    share = 1.0 / (1.0 + 0.25 * dot(grown, grown))
    turned = cross(grown, axis)
    return add(axis, scale(share, add(turned, scale(0.5, cross(grown, turned)))))


def _unit(x: Any) -> Any:
    return scale(1.0 / sqrt(dot(x, x)), x)


# ---- surfaces


def _bending(model: Model, q: Sequence[Any]) -> list[Any]:
    """The coordinates with which surfaces are drawn (surfaces.py), of one after the other, on any scalar."""
    out: list[Any] = []
    for bent in segments.bent_bodies(model):
        if isinstance(bent.source, FiniteElementBody):
            eta = list(q[bent.q])
            found = surfaces.second_order(bent.source)
            out += eta if found is None else [x + y for x, y in zip(eta, _added(*found, eta), strict=True)]
    return out


def _added(P: np.ndarray, g: np.ndarray, eta: Sequence[Any]) -> list[Any]:
    """P ½ g η η."""
    n = range(len(eta))
    products = {(i, k): eta[i] * eta[k] for i in n for k in range(i + 1)}
    moved = [
        _weighted([(float(row[i, k] + row[k, i]) * (0.5 if i != k else 0.25), x) for (i, k), x in products.items()])
        for row in g
    ]
    return [_weighted(zip(row.tolist(), moved, strict=True)) for row in P]


def _weighted(terms: Iterable[tuple[float, Any]]) -> Any:
    total: Any = 0.0
    for factor, x in terms:
        total = total + factor * x if factor else total
    return total
