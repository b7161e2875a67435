"""Arguments that users give, checked once: numbers, a rotation, moments of inertia, a kind or settings of a joint."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.joints import CLOSURE_KINDS, JointKind
from spanloop.math.torch_duals import refuse_tangents
from spanloop.math.vector3 import IDENTITY3
from spanloop.model.exact_rotations import rotation_of_angles
from spanloop.model.parts import Coupling, Geometry, Placement
from spanloop.model.value_check import check_rotation
from spanloop.types import Floats3, Floats33

if TYPE_CHECKING:
    from spanloop.model.model import Model

Moments = tuple[float, float, float, float, float, float]
UNLIMITED = {"lower": -math.inf, "upper": math.inf, "speed": math.inf, "effort": math.inf}
PerDof = float | Sequence[float] | np.ndarray  # one number for all DoF of a joint, or nv numbers


class JointSettings(TypedDict, total=False):
    """What a joint stores besides its kind, ends and place; Builder lists meanings and units."""

    limits: Sequence[PerDof | None] | None  # lower and upper
    lower: PerDof | None
    upper: PerDof | None
    speed: PerDof | None
    effort: PerDof | None
    damping: PerDof
    friction: PerDof
    armature: PerDof
    stiffness: PerDof
    rest: PerDof  # nq numbers
    driven: bool
    actuated: bool


def name(value: Any, owner: str) -> str:
    """A name."""
    if not isinstance(value, str):
        raise InputError(f"{owner} is {value!r}; expected a name")
    return value


def names(given: Iterable[Any], owner: str) -> tuple[str, ...]:
    """Names that are given one by one, or several of them in a list."""
    found: list[Any] = []
    for x in given:
        found += x if isinstance(x, (list, tuple, set, frozenset)) else [x]
    return tuple(name(x, f"{owner}: a name") for x in found)


def number(value: Any, owner: str) -> float:
    """One finite float."""
    try:
        x = math.nan if isinstance(value, (str, bytes, bool, np.bool_)) else float(value)
    except (TypeError, ValueError, OverflowError):
        x = math.nan
    if not math.isfinite(x):
        raise InputError(f"{owner} is {value!r}; expected a finite number")
    return x


def coupling(name: str, joint: str, source: str | None, ratio: float, offset: float, switchable: bool) -> Coupling:
    """A coupling, its numbers checked."""
    owner = f"coupling {name!r}"
    numbers = number(ratio, f"{owner}: ratio"), number(offset, f"{owner}: offset")
    return Coupling(name, joint, source, *numbers, bool(switchable))


def three(value: Any, owner: str) -> Floats3:
    """Three finite floats."""
    x, y, z = _numbers(value, owner, ((3,),), "three finite numbers").tolist()
    return (x, y, z)


def rotation(value: Any, owner: str) -> Floats33:
    """A rotation matrix from None, a 3x3 matrix, or roll, pitch, yaw [rad]: Rz(yaw) Ry(pitch) Rx(roll)."""
    if value is None:
        return IDENTITY3
    expected = "nothing, roll pitch yaw [rad], or a 3x3 matrix, all finite"
    array = _numbers(value, f"{owner}: rotation", ((3,), (3, 3)), expected)
    if array.shape == (3, 3):
        matrix = tuple(tuple(row) for row in array.tolist())
        check_rotation(matrix, owner)
        return matrix  # type: ignore[return-value]
    return rotation_of_angles(*array.tolist())


def shape(value: Any, owner: str) -> Geometry:
    """A shape, its size and placement of the right types; the model's own check refuses wrong numbers."""
    example = "one of sl.contacts, as sl.contacts.Sphere(0.02), or a Geometry"
    if not isinstance(value, Geometry):
        raise InputError(f"{owner} is {value!r}; expected {example}")
    numbers = isinstance(value.size, tuple) and all(isinstance(x, Real) for x in value.size)
    if not (numbers and isinstance(value.placement, Placement)):
        raise InputError(f"{owner} has size {value.size!r} and placement {value.placement!r}; expected {example}")
    return value


def moments(value: Any, owner: str) -> Moments:
    """(xx, xy, xz, yy, yz, zz) from three principal moments, those six numbers, or a symmetric 3x3 matrix."""
    expected = "3 principal moments, 6 numbers xx xy xz yy yz zz, or a symmetric 3x3 matrix, all finite"
    array = _numbers(value, f"{owner}: inertia", ((3,), (6,), (3, 3)), expected)
    if array.shape == (3,):
        array = np.diag(array)
    if array.shape == (3, 3):
        if np.abs(array - array.T).max() > 1e-9 * np.abs(array).max():
            raise InputError(f"{owner}: inertia is not symmetric; expected {expected}")
        array = array[np.triu_indices(3)]
    return tuple(array.tolist())


def joint_kind(value: str | JointKind, owner: str) -> JointKind:
    """A kind of joint from its name (with the kind's defaults) or as it is."""
    if isinstance(value, JointKind):
        return value
    if not isinstance(value, str):
        raise InputError(f"{owner}: {value!r} is not a kind of joint; expected 'revolute', Revolute(axis), ...")
    if value not in CLOSURE_KINDS:
        raise InputError(f"{owner}: no kind of joint is called {value!r}; {nearest(value, CLOSURE_KINDS)}")
    return CLOSURE_KINDS[value]()


def joint_settings(
    settings: Mapping[str, Any], kind: JointKind, owner: str, others: Collection[str] = ()
) -> dict[str, Any]:
    """Fields of a Joint from the settings of JointSettings; a limit that is None is no limit.

    others: arguments of the caller, for the error that offers the nearest name

    The model's own check refuses wrong lengths and signs.
    """
    known = (*JointSettings.__annotations__, *others)
    for name in settings:
        if name not in JointSettings.__annotations__:
            raise InputError(f"{owner}: a joint has no setting {name!r}; {nearest(name, known)}")
    given = dict(settings)
    if "limits" in given:
        given |= _lower_and_upper(given.pop("limits"), given, owner)
    fields: dict[str, Any] = {}
    for name, value in given.items():
        if value is None and name in UNLIMITED:
            fields[name] = None
        elif name in ("driven", "actuated"):
            if not isinstance(value, (bool, np.bool_)):
                raise InputError(f"{owner}: {name} is {value!r}; expected True or False")
            fields[name] = bool(value)
        elif name == "rest":
            fields[name] = coordinates(value, kind, owner, "rest")
        else:
            fields[name] = _per_dof(value, kind, f"{owner}: {name}")
    return fields


def _lower_and_upper(limits: Any, given: Collection[str], owner: str) -> dict[str, Any]:
    if "lower" in given or "upper" in given:
        raise InputError(f"{owner}: limits and lower or upper are given; give limits=(lower, upper) alone")
    try:
        lower, upper = (None, None) if limits is None else limits
    except (TypeError, ValueError):
        raise InputError(f"{owner}: limits is {limits!r}; expected (lower, upper), infinite for no limit") from None
    return {"lower": lower, "upper": upper}


def _per_dof(value: Any, kind: JointKind, owner: str) -> tuple[float, ...]:
    """Floats from one number for all DoF, or a sequence."""
    single = np.ndim(value) == 0
    try:
        if isinstance(value, (str, bytes, bool, np.bool_)):
            raise TypeError
        array = np.array([value] * kind.nv if single else value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        array = np.zeros((0, 0))
    if array.ndim != 1 or np.isnan(array).any():
        several = f" or a sequence of {kind.nv}, one for each DoF" if kind.nv > 1 else ""
        raise InputError(f"{owner} is {value!r}; expected a number{several}{', 0 for none' if value is None else ''}")
    return tuple(array.tolist())


def coordinates(value: Any, kind: JointKind, owner: str, what: str = "position") -> tuple[float, ...]:
    """The nq coordinates of one joint from a number or a sequence; quaternions are made exactly unit."""
    single = np.ndim(value) == 0 and not isinstance(value, str)
    q = _numbers([value] if single else value, f"{owner}: {what}", None, "finite numbers")
    if q.shape != (kind.nq,):
        raise InputError(f"{owner}: {q.size} coordinates are given; a {kind.name} joint has {kind.nq}")
    for part in kind.unit_parts(q.tolist()):
        length = math.hypot(*part)
        if abs(length - 1.0) > 1e-6:
            raise InputError(f"{owner}: its quaternion has length {length:g}; must be 1")
    return tuple(kind.plus(q.tolist(), (0.0,) * kind.nv))


def by_name(model: Model, given: Mapping[str, Any], start: np.ndarray, what: str, owner: str) -> np.ndarray:
    """The start (n,) with the coordinates (what: "q") or rates ("v") of joints by name; (..., n) where these have rows.

    A joint of one DoF has a number, or (..., 1); one of n coordinates or rates has (..., n).
    """
    parts: dict[str, np.ndarray] = {}
    for joint, value in given.items():
        kind = model.joint(joint).kind
        n = kind.nq if what == "q" else kind.nv
        refuse_tangents(owner, f"{what}[{joint!r}]", value)
        try:
            array = np.atleast_1d(np.asarray(value))
        except (ValueError, RuntimeError):  # rows of several lengths, tensors that require grad
            array = np.empty(0, dtype=object)
        if array.dtype.kind not in "fiu" or array.shape[-1] != n:
            one = "a number" if n == 1 else f"{n} numbers"
            raise InputError(f"{owner}: {what}[{joint!r}] is {value!r}; expected {one}, or an array (..., {n}) of runs")
        parts[joint] = array
    try:
        shape = np.broadcast_shapes(*(x.shape[:-1] for x in parts.values()))
    except ValueError:
        raise InputError(f"{owner}: joints in {what} have different numbers of runs") from None
    out = np.empty((*shape, len(start)))
    out[...] = start
    for joint, array in parts.items():
        out[..., model.q_slice(joint) if what == "q" else model.v_slice(joint)] = array
    return out


def _numbers(value: Any, owner: str, shapes: Collection[tuple[int, ...]] | None, expected: str) -> np.ndarray:
    try:
        array = np.array(value if isinstance(value, np.ndarray) else list(value), dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{owner} is {value!r}; expected {expected}") from None
    if (shapes and array.shape not in shapes) or not np.isfinite(array).all():
        raise InputError(f"{owner} is {value!r}; expected {expected}")
    return array + 0.0  # no -0.0
