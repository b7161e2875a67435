"""What bodies from finite elements without geometric stiffening cannot follow: fast spins, and loads along them.

Judged at states of any call: the angular velocity of a body's root over its first frequency, and the force along the
line from the root to an interface over the one that buckles the body there.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spanloop.errors import SpanloopError, SpanloopWarning, UnsupportedError
from spanloop.flexible.matrices.spin import LOAD, SPIN, TOO_FAST
from spanloop.model.flexible_bodies.pieces import FlexibleParts, flexible_bodies, modal_masses
from spanloop.model.model import Model
from spanloop.model.parameters import unpacked

_UTTERLY = 2.9  # of the first frequency: stiffness is wrong by ten times itself, or a run has diverged


def soft_bodies(model: Model) -> list[FlexibleParts]:
    """The bodies from finite elements that do not stiffen with their spin."""
    found = flexible_bodies(model.bodies, model.joints).values()
    return [body for body in found if body.elements is not None and not body.elements.has_spin]


def loaded_bodies(model: Model) -> list[FlexibleParts]:
    """The bodies from finite elements with an interface whose loads do not stiffen them."""
    found = flexible_bodies(model.bodies, model.joints).values()
    return [
        body
        for body in found
        if body.elements is not None and not all(map(body.elements.stiffens, body.elements.names))
    ]


def squared_frequencies(model: Model, body: FlexibleParts, values: Sequence[Any]) -> list[Any]:
    """Squares [rad²/s²] of a body's frequencies with the root held, for live parameters, which may be traced."""
    piece = body.pieces[0]
    own = unpacked(model, values)[1][[j.name for j in model.joints].index(piece.joint.name)]
    masses = [float(m) / piece.modal.mass for m in modal_masses(piece.modal)]
    return [k / (own["mass"] * m) for k, m in zip(own["stiffness"], masses, strict=True)]


def spin_share(
    robot: Any,
    body: FlexibleParts,
    q: np.ndarray,
    v: np.ndarray,
    parameters: np.ndarray | None = None,
    model: Model | None = None,
) -> np.ndarray:
    """Angular velocity (...) of a body's root, over its first frequency.

    parameters (..., p): live ones of each state, in the order of `model` (the robot's, if None), with which the first
    frequency changes; None: the model's own.
    """
    omega = robot.frame_velocity(q, v, body.root)[..., :3]
    with np.errstate(divide="ignore", invalid="ignore"):  # of a body that is absent, of modes without stiffness
        if parameters is None:
            slowest: Any = body.pieces[0].frequencies.min()
        else:
            columns = list(np.moveaxis(np.asarray(parameters, float), -1, 0))
            slowest = np.sqrt(np.min(squared_frequencies(model or robot.model, body, columns), axis=0))
        return np.asarray(np.linalg.norm(omega, axis=-1) / slowest)


def judge_spin(
    function: str, robot: Any, q: np.ndarray, v: np.ndarray, when: str = "", parameters: np.ndarray | None = None
) -> None:
    """Raise UnsupportedError for states in which a body spins too fast for its data; warn where it is near that."""
    for body in soft_bodies(robot.model):
        share = float(np.nanmax(spin_share(robot, body, q, v, parameters), initial=0.0))
        if share > TOO_FAST and not body.elements.any_spin:  # type: ignore[union-attr]
            raise UnsupportedError(f"{function}: {spin_words(body, share, when)}")
        if share > SPIN:
            warnings.warn(f"{function}: {spin_words(body, share, when)}", SpanloopWarning, stacklevel=4)


def spin_words(body: FlexibleParts, share: float, when: str) -> str:
    """How fast a body spins, what that does, and what to give."""
    elements = body.elements
    assert elements is not None
    missing = ", ".join(elements.missing_spins)
    lacks = (
        f"lack {missing} of its geometric stiffening"
        if elements.level == 2
        else "have no geometric stiffening for that"
    )
    give = f"Give {missing} in stiffening=" if elements.level == 2 else "Give sl.flexible.from_matrices stiffening="
    insists = share > TOO_FAST and not elements.any_spin
    return (
        f"body {body.name!r} spins with {share:.2g} of its first frequency{when and ' '}{when}; its finite elements "
        f"{lacks} (level of data {elements.level}), and its stiffness is wrong by up to about "
        f"{119.0 * min(share, _UTTERLY) ** 2:.2g} %, least where it spins about its own long axis. "
        f"{give}{', or any_spin=True to go on as it is' if insists else ''}"
    )


def largest_load(robot: Any, q: np.ndarray, reactions: Mapping[str, np.ndarray]) -> tuple[float, str, str]:
    """The largest load along a body, of the one that buckles it, the body and its interface; names "" without any.

    reactions: of joints by name (..., 6) at states q (..., nq), as robot.reactions returns them.
    """
    worst = (0.0, "", "")
    for body in loaded_bodies(robot.model):
        elements, piece = body.elements, body.pieces[0]
        turned = robot.pose(q, piece.body.name)[..., :3, :3]
        for joint in piece.nodes:
            place = joint.placement.position
            name = next((n for n, x in elements.nodes if x == place), None)  # type: ignore[union-attr]
            if name is None or joint.name not in reactions or elements.stiffens(name) or not np.any(place):  # type: ignore[union-attr]
                continue
            along = np.array(place) / np.linalg.norm(place)
            force = np.einsum("...ji,...j->...i", turned, reactions[joint.name][..., 3:]) @ along
            most = elements.buckling_load(name, piece.joint.stiffness)  # type: ignore[union-attr]
            largest = float(np.nanmax(np.abs(force), initial=0.0))
            share = largest / most if most else np.inf if largest else 0.0
            if share > worst[0]:
                worst = (share, body.name, name)
    return worst


def judge_loads(function: str, robot: Any, q: np.ndarray, *state: np.ndarray, forces: Any = None) -> None:
    """Warn of a load along a body that its data do not follow, at states q, v, tau that have reactions."""
    if not loaded_bodies(robot.model):
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reactions = robot.reactions(q, *state, forces=forces)
    except SpanloopError:  # of states that have none
        return
    warn_of_load(function, *largest_load(robot, q, reactions))


def warn_of_load(function: str, share: float, body: str, interface: str) -> None:
    """Warn of a load along a body above a tenth of the one that buckles it."""
    if share > LOAD:
        warnings.warn(
            f"{function}: body {body!r} carries {share:.2g} of the load along it at {interface!r} that buckles it; its "
            "finite elements have no geometric stiffening for that, and its stiffness is wrong by about that share"
            f"{' (above 1 it has buckled)' if share > 1.0 else ''}. Give sl.flexible.from_matrices stiffening=",
            SpanloopWarning,
            stacklevel=4,
        )
