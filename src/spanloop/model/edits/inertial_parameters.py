"""Ten inertial parameters a body, in which torques are linear (`robot.regressor`), and a model that has given ones.

Of each body, in the order of model.bodies: mass [kg], first moments mass · centre [kg m] and moments of inertia about
the body's origin [kg m²], xx xy xz yy yz zz of the matrix, in the body's axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from spanloop.errors import InputError, ModelError, UnsupportedError
from spanloop.math.inertia import RigidInertia
from spanloop.math.vector3 import ZERO3, symmetric
from spanloop.model.edits.fuse import centered
from spanloop.model.parts import Inertia

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from spanloop.model.model import Model
    from spanloop.model.parameters import Parameters

WIDTH = 10  # of one body
_SUFFIXES = (
    "mass", "first_moment.x", "first_moment.y", "first_moment.z", "origin_inertia.xx", "origin_inertia.xy",
    "origin_inertia.xz", "origin_inertia.yy", "origin_inertia.yz", "origin_inertia.zz",
)  # fmt: skip


def inertial_parameters(model: Model) -> Parameters:
    """Return names and values (10 n_bodies,) of the inertial parameters φ, in the order of the regressor's columns.

    Raises UnsupportedError for a model with flexible bodies.

    >>> robot = sl.Dynamics(sl.zoo.puma())
    >>> phi = robot.model.inertial_parameters()
    >>> q, v = robot.model.random_state(seed=1)
    >>> bool(np.allclose(robot.regressor(q, v, v) @ phi.values, robot.inverse_dynamics(q, v, v)))
    True
    >>> phi.names[:2]
    ('link1.mass', 'link1.first_moment.x')
    """
    from spanloop.model.parameters import Parameters

    bending = [j.child for j in model.joints if j.kind.bends]
    if bending:
        raise UnsupportedError(
            f"inertial_parameters: body {bending[0]!r} is flexible; ten numbers do not describe its inertia, and "
            "torques are not linear in them. Use model.parameters(), or model.rigid(...)"
        )
    names = tuple(f"{body.name}.{suffix}" for body in model.bodies for suffix in _SUFFIXES)
    values = [x for body in model.bodies for x in _packed(body.inertia)]
    return Parameters(names, np.array(values, dtype=float))


def with_inertial_parameters(model: Model, parameters: Parameters | Mapping[str, float] | ArrayLike) -> Model:
    """Return the model with other inertial parameters, for example those that least squares have found.

    parameters: some by name, as {"link6.mass": 1.5, "link6.first_moment.x": 0.01}, or all of them (10 n_bodies,),
    packed as model.inertial_parameters(). Those of a body that are not named keep their values: with another mass
    alone, the centre of mass moves.

    Raises ModelError for numbers that no body has: a negative mass, moments about the centre that are negative or break
    the triangle inequality.

    >>> model = sl.zoo.puma()
    >>> heavy = model.with_inertial_parameters(2.0 * model.inertial_parameters().values)
    >>> heavy.mass == 2.0 * model.mass, heavy.body("link3").inertia.center == model.body("link3").inertia.center
    (True, True)
    """
    from spanloop.model.parameters import Parameters

    old = inertial_parameters(model)
    if isinstance(parameters, Mapping):
        parameters = old.changed(parameters)
    try:
        new = np.array(parameters.values if isinstance(parameters, Parameters) else parameters, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"model {model.name!r}: inertial parameters hold something that is no number") from None
    if new.shape != old.values.shape:
        raise InputError(
            f"model {model.name!r}: inertial parameters have shape {new.shape}; expected {old.values.shape}, ten "
            "numbers a body, in the order of model.inertial_parameters()"
        )
    if not np.isfinite(new).all():
        k = int(np.flatnonzero(~np.isfinite(new))[0])
        raise InputError(f"model {model.name!r}: {old.names[k]!r} is {new[k]}; every number must be finite")
    rows = zip(model.bodies, new.reshape(-1, WIDTH), old.values.reshape(-1, WIDTH), strict=True)
    changed: dict[str, float] = {}
    for body, row, known in rows:
        if not np.array_equal(row, known):  # else its numbers stay to the last bit
            changed |= _named(body.name, _unpacked(body.name, row.tolist()))
    return model.with_parameters(changed)


def _packed(inertia: Inertia) -> list[float]:
    """m, h and the moments about the origin."""
    rigid = inertia.rigid()
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = rigid.inertia()
    return [rigid.mass, *rigid.first, xx, xy, xz, yy, yz, zz]


def _unpacked(body: str, row: Sequence[float]) -> Inertia:
    """Mass, centre and moments about it of m, h and the moments about the origin."""
    mass, first, moments = row[0], row[1:4], row[4:]
    if mass <= 0.0 and any(first):
        raise ModelError(
            f"body {body!r}: mass is {mass:g} kg and its first moments are not zero; no body has them. "
            "Least squares that leave a parameter open need a prior, see docs/gradients.md"
        )
    second = RigidInertia.at_center(0.0, ZERO3, symmetric(*moments)).second
    return centered(RigidInertia(mass, (first[0], first[1], first[2]), second))


def _named(body: str, inertia: Inertia) -> dict[str, float]:
    """The parameters of a body by their names in model.parameters()."""
    axes, pairs = ("x", "y", "z"), ("xx", "xy", "xz", "yy", "yz", "zz")
    centers = {f"{body}.center.{axis}": x for axis, x in zip(axes, inertia.center, strict=True)}
    moments = {f"{body}.inertia.{pair}": x for pair, x in zip(pairs, inertia.moments, strict=True)}
    return {f"{body}.mass": inertia.mass, **centers, **moments}
