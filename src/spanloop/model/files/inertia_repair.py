"""Repair of inertias that no body can have, for files that give them: sl.load(file, repair=True).

Bodies on fixed joints are put together first, and those fixed to the world stay as they are, as in the check of
inertias. With Σ = ½ tr(I) 1 − I, the second moments of mass, whose eigenvalues no body has below 0:

| found                                                   | made                                                       |
|---------------------------------------------------------|------------------------------------------------------------|
| a negative eigenvalue of Σ (a negative principal        | that eigenvalue is 0: the nearest inertia with the same    |
| moment, or one above the sum of the others)             | principal axes                                             |
| a principal moment that is 0                            | eigenvalues of Σ of SLIM of the largest at least           |
| mass without any moment of inertia                      | a ball of WATER                                            |
| moments without mass                                    | the mass of a ball of WATER with the largest moment        |
| a link that moves, ends a chain and has neither         | a ball of WATER with LIGHT of the mean mass of the bodies  |
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.model.files.load_notes import REPAIRED
from spanloop.model.inertia_check import Groups, are_impossible, put_together, weightless
from spanloop.model.parts import Inertia
from spanloop.model.value_check import label

if TYPE_CHECKING:
    from spanloop.model.model import Model

SLIM = 1e-3
ZERO = 1e-9  # of the largest moment
WATER = 1000.0  # kg/m³
LIGHT = 1e-3
UPPER = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


def repaired(model: Model) -> tuple[Model, tuple[str, ...]]:
    """The model with inertias that bodies can have, and a note for each body that was changed."""
    changed = model
    if not model.bodies:
        return model, ()
    for step in (_possible, _with_extent, _with_mass):
        changed = _with(changed, step(changed, put_together(changed)))
    notes = [
        f"{REPAIRED} {label('body', was)}: {_shown(was.inertia)} is now {_shown(now.inertia)}"
        for was, now in zip(model.bodies, changed.bodies, strict=True)
        if was.inertia != now.inertia
    ]
    return changed, tuple(notes)


def _with(model: Model, inertias: dict[int, Inertia]) -> Model:
    bodies = [replace(b, inertia=inertias.get(i, b.inertia)) for i, b in enumerate(model.bodies)]
    return replace(model, bodies=tuple(bodies)) if inertias else model


def _possible(model: Model, groups: Groups) -> dict[int, Inertia]:
    """Inertias of the bodies that make their group's impossible."""
    bad = are_impossible(groups.inertia, groups.mass)
    bad[0] = False  # the world
    bad[_bending(model, groups)] = False
    own = np.array([b.inertia.matrix() for b in model.bodies])
    alone = are_impossible(own, np.array([b.inertia.mass for b in model.bodies]))
    found = np.nonzero(bad[groups.of_body[1:]] & alone)[0]
    return {int(i): replace(model.bodies[i].inertia, moments=_moments(own[i], 0.0)) for i in found}


def _with_extent(model: Model, groups: Groups) -> dict[int, Inertia]:
    """Inertias of the heaviest bodies of groups that have mass but no moment about some axis."""
    out = {}
    for g in sorted({*range(1, len(groups.first))} - {*_bending(model, groups)}):
        moments = np.linalg.eigvalsh(groups.inertia[g])
        if groups.mass[g] > 0.0 and moments[0] <= ZERO * moments[2]:
            i = max(_members(groups, g), key=lambda k: model.bodies[k].inertia.mass)
            body = model.bodies[i].inertia
            own = np.array(body.matrix())
            flat = np.abs(own).max() <= 0.0
            out[i] = replace(body, moments=_ball(body.mass)) if flat else replace(body, moments=_moments(own, SLIM))
    return out


def _with_mass(model: Model, groups: Groups) -> dict[int, Inertia]:
    """Inertias of bodies in groups without mass that have moments, or that end a chain."""
    masses = [b.inertia.mass for b in model.bodies if b.inertia.mass > 0.0]
    light = LIGHT * float(np.mean(masses)) if masses else LIGHT
    bare = set(weightless(model, groups))
    out = {}
    for g in range(1, len(groups.first)):
        if groups.mass[g] > 0.0:
            continue
        i = max(_members(groups, g), key=lambda k: max(model.bodies[k].inertia.moments))
        body = model.bodies[i].inertia
        largest = float(np.linalg.eigvalsh(np.array(body.matrix()))[2])
        if largest > 0.0:
            radius = (largest / (0.4 * 4.0 / 3.0 * math.pi * WATER)) ** 0.2
            out[i] = replace(body, mass=4.0 / 3.0 * math.pi * WATER * radius**3)
        elif g in bare:
            out[groups.first[g] - 1] = Inertia(light, (0.0, 0.0, 0.0), _ball(light))
    return out


def _bending(model: Model, groups: Groups) -> list[int]:
    """Groups that are flexible bodies: beams may be thin, and their inertia belongs to their modes."""
    return [g for g in range(1, len(groups.first)) if model.joints[groups.first[g] - 1].kind.bends]


def _members(groups: Groups, g: int) -> list[int]:
    return [int(k) - 1 for k in np.nonzero(groups.of_body == g)[0]]


def _moments(inertia: np.ndarray, slim: float) -> Any:
    """The nearest moments (6,) whose second moments of mass are at least `slim` of the largest."""
    second, axes = np.linalg.eigh(0.5 * np.trace(inertia) * np.eye(3) - inertia)
    kept = np.maximum(second, slim * max(second[2], 0.0))
    kept = np.maximum(kept, 0.0)
    sigma = (axes * kept) @ axes.T
    made = np.trace(sigma) * np.eye(3) - sigma
    scale = 1e-15 * np.abs(made).max()
    return tuple(0.0 if abs(made[r, c]) <= scale else float(made[r, c]) for r, c in UPPER)


def _ball(mass: float) -> Any:
    """The moments (6,) of a ball of WATER."""
    radius = (mass / (4.0 / 3.0 * math.pi * WATER)) ** (1.0 / 3.0)
    moment = 0.4 * mass * radius * radius
    return (moment, 0.0, 0.0, moment, 0.0, moment)


def _shown(inertia: Inertia) -> str:
    moments = np.linalg.eigvalsh(np.array(inertia.matrix()))
    return f"mass {inertia.mass:.4g} kg, principal moments {', '.join(f'{x:.4g}' for x in moments)} kg m²"
