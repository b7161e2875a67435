"""Check of inertias: what no body can have is an error (in files a note), what looks like a placeholder a note.

Files often spread one part over several links with fixed joints between them and give only some of them an
inertia, so bodies on fixed joints are put together first. Bodies fixed to the world are not checked: their inertia
has no effect.

Of the principal moments a ≤ b ≤ c of a group about its centre of mass must be a ≥ 0 and a + b ≥ c. Flexible bodies are
not checked: Euler-Bernoulli beams have rotary inertia about their axis alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.errors import ModelError
from spanloop.model.motors import reflected
from spanloop.model.parts import Body, Inertia, Placement
from spanloop.model.value_check import label

if TYPE_CHECKING:
    from spanloop.model.model import Model

NEGATIVE = 1e-9  # of the largest moment: more than rounding in the file's digits
POINT = 1e-15  # m², moments up to this times the mass are rounding of a point mass's zeros
TRIANGLE = 1e-6  # of the largest moment: files give six digits
HINT = "Was a sign, a unit or the order of axes lost?"


@dataclass(frozen=True)
class Groups:
    """Bodies that move as one; group 0 is fixed to the world."""

    of_body: np.ndarray  # (n + 1,) group of each body, the world's is 0
    first: list[int]  # (groups,) body that carries the group; 0 is the world
    parent: list[int]  # (groups,) group on which the group moves
    mass: np.ndarray  # (groups,)
    inertia: np.ndarray  # (groups, 3, 3) in the axes of the first body


def check_inertias(model: Model, strict: bool) -> tuple[str, ...]:
    """Return notes about suspect inertias.

    strict: raise ModelError for those that no body can have, for models that are written by hand. The equations of
    motion hold for them too, so files may have them.
    """
    if not model.bodies:
        return ()
    groups = put_together(model)
    bad = np.nonzero(are_impossible(groups.inertia, groups.mass))[0]
    thin = [False, *(model.joints[first - 1].kind.bends for first in groups.first[1:])]  # beams: see below
    moments = {g: np.linalg.eigvalsh(groups.inertia[g]) for g in bad if g and not thin[g]}
    worst = sorted(moments, key=lambda g: bool(moments[g][0] >= 0.0))  # negative ones first
    sentences = [why_impossible(moments[g], _who(model, groups, g)) for g in worst]
    if strict and sentences:
        raise ModelError(sentences[0])
    advice = " sl.load(..., repair=True) replaces it"
    return (
        *_shortened([s + advice for s in sentences]),
        *_massless(model, groups),
        *_placeholders(model, groups),
    )


def are_impossible(inertias: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """Which inertias (n, 3, 3) about centres of mass no body has: a negative moment, or one above the others' sum."""
    moments = np.linalg.eigvalsh(inertias)
    largest, slack = np.abs(moments).max(axis=1), POINT * masses
    negative = moments[:, 0] < -NEGATIVE * largest - slack
    flat: np.ndarray = moments[:, 0] + moments[:, 1] < moments[:, 2] - TRIANGLE * largest - slack
    return negative | flat


def check_inertia(inertia: Inertia, owner: str) -> None:
    """Raise ModelError for an inertia that no body can have."""
    if inertia.mass < 0.0:
        raise ModelError(f"{owner}: mass is {inertia.mass:g} kg; must be >= 0")
    moments = np.linalg.eigvalsh(np.array(inertia.matrix()))
    slack = TRIANGLE * np.abs(moments).max() + POINT * inertia.mass
    if moments[0] < -slack or moments[0] + moments[1] < moments[2] - slack:
        raise ModelError(why_impossible(moments, owner))


def why_impossible(moments: np.ndarray, owner: str) -> str:
    """A sentence on principal moments (3,), in rising order, that no body can have."""
    found = ", ".join(f"{x:.4g}" for x in moments)
    negative = moments[0] < -NEGATIVE * np.abs(moments).max()
    rule = "no body can have a negative one" if negative else "no body has one that exceeds the sum of the others"
    return f"{owner}: its principal moments of inertia are {found} kg m²; {rule}. {HINT}"


def put_together(model: Model) -> Groups:
    """The groups of bodies that fixed joints join."""
    of_body, first, parent, placements = [0], [0], [0], [Placement()]
    for i, (joint, above) in enumerate(zip(model.joints, model.parents, strict=True)):
        if joint.kind.name == "fixed":
            of_body.append(of_body[above])
            placements.append(placements[above] @ joint.placement)
        else:
            of_body.append(len(first))
            first.append(i + 1)
            parent.append(of_body[above])
            placements.append(Placement())
    group = np.array(of_body)
    mass, inertia = _composed(model.bodies, group[1:], placements[1:], len(first))
    return Groups(group, first, parent, mass, inertia)


def _composed(
    bodies: Sequence[Body], group: np.ndarray, placements: Sequence[Placement], n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mass and inertia about the common centre: Σ R I Rᵀ + m (d·d 1 − d dᵀ), d from there to the body's."""
    r = np.array([p.rotation for p in placements])
    masses = np.array([b.inertia.mass for b in bodies])
    centers = np.einsum("nij,nj->ni", r, [b.inertia.center for b in bodies]) + [p.position for p in placements]
    mass, first = np.zeros(n), np.zeros((n, 3))
    np.add.at(mass, group, masses)
    np.add.at(first, group, masses[:, None] * centers)
    common = first / np.where(mass > 0.0, mass, 1.0)[:, None]
    alone = np.bincount(group[masses > 0.0], minlength=n)[group] < 2
    d = np.where(alone[:, None], 0.0, centers - common[group])
    steiner = np.einsum("n,nk,nk->n", masses, d, d)[:, None, None] * np.eye(3) - np.einsum("n,ni,nj->nij", masses, d, d)
    inertia = np.zeros((n, 3, 3))
    turned = np.einsum("nij,njk,nlk->nil", r, np.array([b.inertia.matrix() for b in bodies]), r)
    np.add.at(inertia, group, turned + steiner)
    return mass, inertia


def weightless(model: Model, groups: Groups) -> list[int]:
    """Moving groups at the end of a chain without mass, inertia and armature."""
    weight = groups.mass + np.abs(groups.inertia).sum(axis=(1, 2))
    rotors = reflected(model, "rotor_inertia")
    for g in range(len(groups.first) - 1, 0, -1):
        joint = model.joints[groups.first[g] - 1]
        weight[g] += sum(joint.armature) + sum(rotors.get(joint.name, ()))
        weight[groups.parent[g]] += weight[g]
    nodes = [model.joints[first - 1].kind.rides for first in groups.first[1:]]  # need no mass: their body has it
    return [g for g in range(1, len(groups.first)) if weight[g] == 0.0 and not nodes[g - 1]]


def _massless(model: Model, groups: Groups) -> list[str]:
    return _shortened(
        [
            f"{_who(model, groups, g)}: it moves and ends a chain but has no mass; "
            "forward dynamics will be singular. Give it an inertia or its joint an armature, or fix the joint"
            for g in weightless(model, groups)
        ]
    )


def _placeholders(model: Model, groups: Groups) -> list[str]:
    """Moving bodies whose inertia is a unit matrix, or a thousandth of it with 1 kg."""
    return _shortened(
        [
            f"{label('body', b)}: its inertia looks like a placeholder "
            f"(mass {b.inertia.mass:g} kg, moments {b.inertia.moments[0]:g} kg m²)"
            for b, g in zip(model.bodies, groups.of_body[1:], strict=True)
            if g and _is_placeholder(b.inertia)
        ]
    )


def _is_placeholder(i: Inertia) -> bool:
    unit = i.moments[0]
    ball = i.moments == (unit, 0.0, 0.0, unit, 0.0, unit)
    return ball and (unit == 1.0 or (unit == 1e-3 and i.mass == 1.0))


def _who(model: Model, groups: Groups, g: int | np.integer[Any]) -> str:
    members = int((groups.of_body == g).sum()) - 1
    fixed = f" with {members} bodies fixed to it" if members > 1 else " with a body fixed to it" if members else ""
    return label("body", model.bodies[groups.first[g] - 1]) + fixed


def _shortened(sentences: list[str]) -> list[str]:
    """The first sentence, and how many more there are of its kind."""
    if len(sentences) < 2:
        return sentences
    return [f"{sentences[0]} (and {len(sentences) - 1} more like it)"]
