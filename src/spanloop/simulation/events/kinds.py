"""The kinds of events, as users write them; each checks its own arguments, `switches.py` those that need the model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.errors import InputError

Condition = Callable[..., Any]  # (t, q, v) or (t, q, v, f)
RESTING = 1e-3  # m/s or rad/s: a slower impact does not bounce
ON_BREAK = ("end", "release")
_TURN = 1e-6  # how far a rotation may be from one


@dataclass(frozen=True)
class Attach:
    """A switchable loop or coupling closes: sl.events.Attach("grip", at=0.5, capture=True).

    Velocities jump as in a plastic impact; run.events has the impulse and the energy given up.

    Args:
        loop: name of a loop or coupling with switchable=True.
        at: when [s], a number or one for each run (...).
        when: or a condition: it attaches where when(t, q, v) or when(t, q, v, f) is no longer positive.
        capture: hold the pose found at that moment. Without it a loop that is open by more than 1e-6 (rad, or of its
            length) ends the run with how far it is open.
        speed: the largest velocity along any row with which it may close [m/s or rad/s]; a faster one ends the run.

    Raises:
        InputError: neither or both of `at` and `when` are given, or one is not what it should be.

    Example:
        >>> sl.events.Attach("grip", when=lambda t, q, v: q["slide"] - 0.1, capture=True).loop
        'grip'
    """

    loop: str
    at: ArrayLike | None = None
    when: Condition | None = None
    capture: bool = False
    speed: float | None = None

    def __post_init__(self) -> None:
        _check_moment(self, self.loop)
        if self.speed is not None:
            _check_number(self, self.loop, "speed", self.speed, "a speed of at least 0 [m/s or rad/s]", least=0.0)


@dataclass(frozen=True)
class Release:
    """A switchable loop or coupling opens: sl.events.Release("grip", when=lambda t, q, v, f: 40.0 - f["grip"][5]).

    Args:
        loop: its name.
        at: when [s], a number or one for each run (...).
        when: or a condition, as of Attach.

    Raises:
        InputError: neither or both of `at` and `when` are given.

    Example:
        >>> sl.events.Release("grip", at=2.0).at
        2.0
    """

    loop: str
    at: ArrayLike | None = None
    when: Condition | None = None

    def __post_init__(self) -> None:
        _check_moment(self, self.loop)


@dataclass(frozen=True)
class OneSided:
    """A switchable loop or coupling that pushes and never pulls: stops, strings, pawls, contacts without friction.

    It closes where sign times the error of its row falls to 0, and opens where its force would pull.

    Args:
        loop: its name.
        row: number of the row that is watched, from 0; needed where the loop has several. All its rows close together.
        sign: 1 if the error must stay positive (a stop), −1 if it must stay negative (a string).
        restitution: of impacts along the row, 0 (plastic) to 1.
        resting: an impact slower than this does not bounce [m/s or rad/s].

    Raises:
        InputError: an argument is out of its range.

    Example:
        >>> sl.events.OneSided("string", sign=-1, restitution=0.3).restitution
        0.3
    """

    loop: str
    row: int | None = None
    sign: int = 1
    restitution: float = 0.0
    resting: float = RESTING

    def __post_init__(self) -> None:
        if self.sign not in (1, -1):
            raise InputError(f"OneSided({self.loop!r}): sign is {self.sign!r}; expected 1 or -1")
        _check_number(self, self.loop, "restitution", self.restitution, "a number from 0 to 1", least=0.0, most=1.0)
        _check_number(self, self.loop, "resting", self.resting, "a speed of at least 0 [m/s or rad/s]", least=0.0)
        if self.row is not None and (isinstance(self.row, bool) or not isinstance(self.row, int | np.integer)):
            raise InputError(f"OneSided({self.loop!r}): row is {self.row!r}; expected the number of a row")


@dataclass(frozen=True)
class Stop:
    """Stops at the limits of a joint, which push and never pull: sl.events.Stop("hinge", restitution=0.5).

    limits="stop" of sl.simulate puts stops without restitution at all joints; this one is for a joint alone, whatever
    limits= says of the others.

    Args:
        joint: name of a joint with one degree of freedom and a limit, or a pattern as "leg*"; "*" for all of these.
        restitution: of impacts, 0 (plastic) to 1.
        resting: an impact slower than this does not bounce [m/s or rad/s].

    Raises:
        InputError: an argument is out of its range.

    Example:
        >>> sl.events.Stop("hinge", restitution=0.5).resting
        0.001
    """

    joint: str
    restitution: float = 0.0
    resting: float = RESTING

    def __post_init__(self) -> None:
        if not isinstance(self.joint, str):
            raise InputError(f"Stop: its first argument is {self.joint!r}; expected the name of a joint")
        _check_number(self, self.joint, "restitution", self.restitution, "a number from 0 to 1", least=0.0, most=1.0)
        _check_number(self, self.joint, "resting", self.resting, "a speed of at least 0 [m/s or rad/s]", least=0.0)


@dataclass(frozen=True)
class Grasp:
    """A loop that holds by friction, as long as its force stays in the friction cone [Kreutz & Rodriguez, appendix A].

    Args:
        loop: its name; it must be switchable for on_break="release".
        friction: coefficient µ.
        torsion: the moment about the normal that a unit of pressing force holds [m]; only a spherical loop needs none.
        normal: (3) in the axes of the loop's child frame, into its body b.
        on_break: "end" ends the run where the cone is left, "release" opens the loop.

    Raises:
        InputError: an argument is out of its range.

    Example:
        >>> sl.events.Grasp("holding1", friction=0.6).on_break
        'end'
    """

    loop: str
    friction: float
    torsion: float | None = None
    on_break: str = "end"
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        _check_number(self, self.loop, "friction", self.friction, "a positive number", least=1e-12)
        if self.on_break not in ON_BREAK:
            raise InputError(f"Grasp({self.loop!r}): on_break is {self.on_break!r}; expected 'end' or 'release'")


@dataclass(frozen=True)
class Appear:
    """A free body of the model appears: sl.events.Appear("part2", at=1.0, pose=pose). Until then it is absent.

    Args:
        body: name of a body on a free joint, with all that it carries.
        at: when [s], a number or one for each run (...).
        when: or a condition, as of Attach.
        pose: (4, 4) of its frame in the world, the same for all runs; by default where the initial q has it.
        velocity: [angular; linear] (6) of its origin in world axes [rad/s, m/s]; it needs a pose. At rest by default.

    Raises:
        InputError: neither or both of `at` and `when` are given, or pose or velocity is not what it should be.

    Example:
        >>> sl.events.Appear("part", at=1.0).body
        'part'
    """

    body: str
    at: ArrayLike | None = None
    when: Condition | None = None
    pose: Any = None
    velocity: Any = None

    def __post_init__(self) -> None:
        _check_moment(self, self.body)
        _check_appearance(self)


@dataclass(frozen=True)
class Vanish:
    """A free body of the model vanishes, with all that it carries; loops that hold it open first.

    Args:
        body: name of a body on a free joint.
        at: when [s], a number or one for each run (...).
        when: or a condition, as of Attach.

    Raises:
        InputError: neither or both of `at` and `when` are given.

    Example:
        >>> sl.events.Vanish("part", at=3.0).body
        'part'
    """

    body: str
    at: ArrayLike | None = None
    when: Condition | None = None

    def __post_init__(self) -> None:
        _check_moment(self, self.body)


@dataclass(frozen=True)
class End:
    """The run ends: sl.events.End("high", when=lambda t, q, v: 2.0 - q["lift"]).

    Args:
        name: for the outcome.
        when: a condition: the run ends where it is no longer positive.

    Raises:
        InputError: `when` is no function.

    Example:
        >>> sl.events.End("high", when=lambda t, q, v: 2.0 - q["lift"]).name
        'high'
    """

    name: str
    when: Condition

    def __post_init__(self) -> None:
        if not callable(self.when):
            raise InputError(f"End({self.name!r}): when is a {type(self.when).__name__}; expected a function (t, q, v)")


Event = Attach | Release | OneSided | Stop | Grasp | Appear | Vanish | End


def _check_moment(event: Any, name: object) -> None:
    """InputError unless the event has a name, and one of `at` and `when`."""
    kind = type(event).__name__
    if not isinstance(name, str):
        raise InputError(f"{kind}: its first argument is {name!r}; expected a name")
    if (event.at is None) == (event.when is None):
        given = "neither" if event.at is None else "both"
        raise InputError(f"{kind}({name!r}): {given} of at= and when= are given; expected one of them")
    if event.when is not None and not callable(event.when):
        raise InputError(f"{kind}({name!r}): when is a {type(event.when).__name__}; expected a function (t, q, v)")
    if event.at is not None:
        at = _numbers(event.at)
        if at is None:
            raise InputError(f"{kind}({name!r}): at is {event.at!r}; expected seconds, a number or one for each run")
        if not (np.isfinite(at).all() and (at >= 0.0).all()):
            raise InputError(f"{kind}({name!r}): at is {event.at}; expected finite times of at least 0 s")


def _check_number(
    event: Any, name: str, argument: str, value: Any, expected: str, least: float, most: float = math.inf
) -> None:
    """InputError unless an argument is a number in its range."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not (is_number and math.isfinite(value) and least <= value <= most):
        raise InputError(f"{type(event).__name__}({name!r}): {argument} is {value!r}; expected {expected}")


def _numbers(values: Any) -> np.ndarray | None:
    """An array of floats; None if the values are no numbers, but texts, truth values or functions."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        return None
    return array.astype(float) if array.dtype.kind in "iuf" else None


def _check_appearance(event: Appear) -> None:
    """InputError unless pose and velocity are what they should be."""
    where = f"Appear({event.body!r})"
    if event.pose is not None:
        pose = _numbers(event.pose)
        if pose is None or pose.shape != (4, 4):
            found = f"is a {type(event.pose).__name__}" if pose is None else f"has the shape {pose.shape}"
            raise InputError(
                f"{where}: pose {found}; expected numbers (4, 4), a rotation and a position in the world, the same for "
                "all runs. Without pose= the body appears where the q of each run has it"
            )
        R = pose[:3, :3]
        if not np.isfinite(pose).all() or np.abs(R @ R.T - np.eye(3)).max() > _TURN or np.linalg.det(R) < 0.0:
            raise InputError(f"{where}: pose is no pose; its first three rows and columns must be a rotation")
    if event.velocity is not None:
        velocity = _numbers(event.velocity)
        if velocity is None or velocity.shape != (6,) or not np.isfinite(velocity).all():
            found = f"is a {type(event.velocity).__name__}" if velocity is None else f"has the shape {velocity.shape}"
            found = "is not finite" if velocity is not None and velocity.shape == (6,) else found
            raise InputError(
                f"{where}: velocity {found}; expected six numbers, [angular; linear] in world axes, the same for all "
                "runs"
            )
        if event.pose is None:
            raise InputError(f"{where}: velocity= is given without pose=; it needs one, give both")
