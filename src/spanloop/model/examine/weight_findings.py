"""Flexible bodies that are too soft for their own weight: reported, since a mechanism may never hold them out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from spanloop.flexible.beam import Beam
from spanloop.flexible.deformation import SLOPE
from spanloop.model.examine.messages import Finding
from spanloop.model.flexible_bodies.pieces import FlexibleParts, flexible_bodies
from spanloop.model.model import Model

_TIP = 4.0 / 3.0  # slope at the tip of a uniform cantilever, q L³/(6 EI), over its sag by its length, q L³/(8 EI)
_BUCKLES = 7.8373 / 8.0  # sag over length of a uniform cantilever that buckles upright: q L³/EI is 7.8373


def own_weight(model: Model) -> Iterator[Finding]:
    """Yield the flexible bodies that bend beyond small slopes by their own weight, clamped and horizontal."""
    g = math.hypot(*model.gravity)
    for body in flexible_bodies(model.bodies, model.joints).values():
        if body.beam is None or not g:
            continue
        sag = g * _sag(body, body.beam)
        share = sag / body.beam.length
        if _TIP * share > SLOPE * len(body.pieces):
            upright = "; upright on its root it buckles" if share > _BUCKLES else ""
            values = {"sag": sag, "length": body.beam.length, "upright": upright}
            yield Finding("own_weight", (repr(body.name),), values)


def _sag(body: FlexibleParts, beam: Beam) -> float:
    """How far the tip of the clamped body bends for a unit of gravity across it [m per m/s²], in its softest plane."""
    planes = tuple((d, 2) for d, _ in beam.modes if d in "yz")
    if not planes:
        return 0.0
    tip = (("tip", beam.length),)
    elements = max(2, beam.elements)
    whole = replace(beam, basis="cantilever", modes=planes, pieces=1, nodes=tip, damping=(0.0,), elements=elements)
    clamped = whole.bodies[0]
    own = clamped.modal.particles
    loads = np.einsum("p,pna->na", np.array(own.weights), np.array(own.translations))  # ∫ φ dm
    moved = np.array(clamped.nodes[0].shape.translations) * loads / np.array(clamped.stiffness)[:, None]
    piece, number = body.pieces[0], body.pieces[0].modal.source.number
    made = beam.bodies[number]
    heavier = piece.body.inertia.mass / made.mass
    stiffer = piece.joint.stiffness[0] / made.stiffness[0]
    return float(moved.sum(axis=0).max()) * heavier / stiffer if stiffer else math.inf
