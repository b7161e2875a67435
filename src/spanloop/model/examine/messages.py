"""Findings of an examination and their sentences: what was found, how much it matters, what to try.

{parts} lists the parts that a finding is about, {other} is a value of the finding. Weights: "matters" (the model is
probably not what was meant, or will not run), "advice" (worth a look), "fact" (how it is).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Finding:
    """What was found (a topic of WORDS), at which parts, with which numbers."""

    topic: str
    parts: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)


class Words(NamedTuple):
    """How much a finding matters, its sentence, and what to try."""

    weight: str
    sentence: str
    advice: str = ""


WEIGHTS = ("matters", "advice", "fact")
SHOWN = 6  # parts that a sentence names; it counts the others

WORDS = {
    # what moves
    "makeup": Words("fact", "{bodies} on {joints}."),
    "flexible": Words("fact", "Body {parts} is flexible: {modes}; nodes {nodes}."),
    "level": Words("fact", "Body {parts} is of finite elements with level of data {level}: {what}."),
    "level_spin": Words(
        "fact",
        "Body {parts} is of finite elements with level of data {level}: {what}. That is not enough for spins above "
        "{spin} rad/s, a tenth of its first frequency{buckles}; stiffening= of sl.flexible.from_matrices{missing} is.",
    ),
    "base": Words("fact", "{how}."),
    "dofs": Words("fact", "{dofs}; motors can drive {actuated} of them."),
    "nothing_moves": Words(
        "matters", "Nothing moves: no joint has a degree of freedom.", "Should it float (--base free)?"
    ),
    "mass": Words("fact", "{mass} kg in all; the heaviest body is {heaviest} with {most} kg."),
    "reach": Words("fact", "Joints are up to {reach} m from the world's origin at neutral coordinates."),
    # loops
    "tree": Words("fact", "No loops: all degrees of freedom are independent."),
    "loops": Words("fact", "{loops} on {dofs}, {rows} in all."),
    "mobility": Words("fact", "Mobility {mobility}; {independent} determine the rest."),
    "redundant": Words(
        "fact", "{count} redundant wherever the loops are closed ({parts}); kernels leave such rows out."
    ),
    "not_assembled": Words(
        "matters",
        "No closed state was found from neutral coordinates: {why}",
        "Give robot.assemble(...) a guess that is nearer, or check the placements of the loops' two ends",
    ),
    "open_at_zero": Words(
        "fact", "At neutral coordinates {count} not closed ({parts}), by up to {by}; robot.assemble(q) closes them."
    ),
    "idle_loop": Words(
        "matters",
        "Between the two bodies of {parts} no joint moves: the loop constrains nothing.",
        "Is one end on the wrong body?",
    ),
    "structure": Words(
        "matters", "The loops leave no motion: this is a structure.", "Is an axis turned, or a loop of the wrong kind?"
    ),
    "singular": Words(
        "advice",
        "The closed state found from neutral is singular: {direction} can move in addition to the usual motion.",
        "Start from another state",
    ),
    "separate": Words("fact", "{count} parts that are connected by the world only."),
    # inertias
    "triangle": Words(
        "matters",
        "{parts}: principal moments of inertia {moments} kg m²; no body has one that exceeds the sum of the others.",
        "Was a sign, a unit or the order of axes lost? repair=True (--repair) replaces it on loading",
    ),
    "massless": Words(
        "matters",
        "{parts} moves and ends a chain but has no mass; forward dynamics will be singular.",
        "Give it an inertia (a file's: load it with repair=True, --repair), or its joint an armature, or fix the joint",
    ),
    "own_weight": Words(
        "advice",
        "Body {parts} sags by {sag} m of its {length} m under its own weight where it is clamped and horizontal"
        "{upright}.",
        "Is E, a section or a length in another unit? If not, take more pieces= of the beam",
    ),
    "placeholder": Words(
        "advice",
        "{count} an inertia like a placeholder: {parts}. The first has {mass} kg and {moment} kg m² about every axis.",
        "Measure or compute it",
    ),
    "inertia_units": Words(
        "matters",
        "{parts}: {mass} kg and {moment} kg m² mean a body {width} m wide; the whole mechanism spans {span} m.",
        "Are the inertias in kg mm², kg cm² or g mm²?",
    ),
    "inertia_large": Words(
        "advice",
        "{count} wider than the links around: {parts}. The first has {mass} kg and {moment} kg m², "
        "which mean a body {width} m wide, where links are {extent} m long.",
        "Is the inertia about another point, a placeholder, or of another part?",
    ),
    "inertia_small": Words(
        "advice",
        "{count} hardly any inertia for their length: {parts}. The first has {mass} kg and {moment} kg m², "
        "which mean a body {width} m wide, but it is {extent} m long.",
        "Is the inertia in another unit, or of a point?",
    ),
    "heavy": Words(
        "matters",
        "{parts}: {mass} kg in the {volume} litres of its inertia is {density} kg/m³; no metal is that dense.",
        "Are the masses in grams?",
    ),
    "long": Words(
        "matters",
        "{parts} is {distance} m from its parent.",
        "Are the lengths in millimetres? model.scale(length=0.001) corrects these, and inertias in kg mm² with them",
    ),
    # joints
    "no_limits": Words(
        "advice", "{count} without limits of position: {parts}.", "Give lower and upper, if there are stops"
    ),
    "no_room": Words("advice", "{parts}: lower and upper limit are both {value}.", "Lock it, or widen the limits"),
    "zero_limit": Words("advice", "{parts}: the limit of {what} is 0.", "Leave it out, or give its value"),
    "friction": Words("fact", "Coulomb friction on {count} ({parts}) is kept, and acts in simulation only."),
    # contacts
    "contacts": Words("fact", "{contacts} with {points} that can touch ({parts})."),
    "no_contacts": Words(
        "fact", "{count} collision shapes ({parts}) and no contact; model.with_ground() adds contacts."
    ),
    # files
    "mesh": Words("advice", "{count} not found: {parts}.", "{why}"),
    "mesh_size": Words(
        "advice",
        "{parts} is {across} m across, the mechanism without meshes {size} m.",
        "Is it in millimetres? Give the mesh scale=0.001",
    ),
    "noted": Words("fact", "On loading: {text}"),
    # loops that may be missing
    "meet": Words(
        "advice",
        "{parts} coincide at neutral coordinates, and separate when the joints move. "
        "If they are the ends of a loop, close it.",
        "Write {close}",
    ),
    "named": Words(
        "advice",
        "{parts} are named like the two ends of a loop, {apart} m apart at neutral coordinates.",
        "Write {close}",
    ),
    "one_end": Words(
        "advice",
        "{parts} is named like the end of a loop, but has no partner.",
        "Write model.with_loop({first!r}, ..., 'spherical')",
    ),
}


def weight(finding: Finding) -> str:
    """How much a finding matters, one of WEIGHTS."""
    return WORDS[finding.topic].weight


def sentence(finding: Finding) -> str:
    """The finding as a sentence."""
    return _filled(WORDS[finding.topic].sentence, finding)


def advice(finding: Finding) -> str:
    """What to try, or nothing."""
    return _filled(WORDS[finding.topic].advice, finding)


def _filled(text: str, finding: Finding) -> str:
    shown = ", ".join(finding.parts[:SHOWN])
    if len(finding.parts) > SHOWN:
        shown += f" and {len(finding.parts) - SHOWN} more"
    values = {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in finding.values.items()}
    filled = text.format(parts=shown, **values)
    return filled[:1].upper() + filled[1:]


def counted(n: int, one: str, many: str | None = None) -> str:
    """A number with its noun in the singular or plural."""
    return f"{n} {one if n == 1 else many or one + 's'}"
