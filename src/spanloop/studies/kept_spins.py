"""Spins of bodies from finite elements without geometric stiffening are kept; above a bound a run has failed.

The bounds are those of sl.simulate, checked at every step: the angular velocity of a body's root over its first
frequency, with the run's own parameters.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spanloop.algorithms.tree.kinematics import frame_velocity
from spanloop.errors import InputError, SpanloopWarning
from spanloop.flexible.matrices.spin import SPIN, TOO_FAST
from spanloop.math.scalar import sqrt
from spanloop.model import Model
from spanloop.model.flexible_bodies.pieces import FlexibleParts
from spanloop.model.flexible_bodies.stiffening_limits import soft_bodies, spin_words, squared_frequencies
from spanloop.simulation.system import System, larger
from spanloop.simulation.tracking.quantities import Arrays, Quantity
from spanloop.studies.kept import Item, Largest
from spanloop.sweeps import walk


def spin_items(model: Model, taken: Sequence[str]) -> tuple[Item, ...]:
    """What is kept of every run of a model with such bodies; taken: names of what varies and is kept.

    Raises:
        InputError: one of these names is taken.
    """
    out = []
    for body in soft_bodies(model):
        name = item_name(body)
        if name in taken:
            raise InputError(f"study: the results have a variable {name!r} anyway; choose another name")
        limit = "" if body.elements.any_spin else f", at most {TOO_FAST}"  # type: ignore[union-attr]
        found = Quantity(f"angular velocity of {body.root} over the first frequency{limit}", "1", _share(body))
        out.append(Item(name, Largest(name), found, "1"))
    return tuple(out)


def item_name(body: FlexibleParts) -> str:
    """The name of a body's spin in results."""
    return f"{body.name.replace('/', '|')}.spin"


def too_fast(model: Model, kept: Mapping[str, np.ndarray]) -> dict[int, str]:
    """{run: why} of the runs in which a body spins too fast for its data; kept: the results by name."""
    out: dict[int, str] = {}
    for body in soft_bodies(model):
        if not body.elements.any_spin:  # type: ignore[union-attr]
            shares = kept[item_name(body)]
            out |= {int(k): spin_words(body, float(shares[k]), "") for k in np.flatnonzero(shares > TOO_FAST)}
    return out


def warn_of_spins(model: Model, kept: Mapping[str, np.ndarray]) -> None:
    """Warn of spins for which the data of a body are inaccurate, in runs that have not failed."""
    for body in soft_bodies(model):
        shares = kept[item_name(body)]
        count = int((shares > SPIN).sum())
        if count:
            where = f"in run {int(np.nanargmax(shares))}, and above {SPIN:g} in {count} of {len(shares)} runs"
            words = spin_words(body, float(np.nanmax(shares)), where)
            warnings.warn(f"study: {words}", SpanloopWarning, stacklevel=3)


def _share(body: FlexibleParts) -> Any:
    root, own = body.root, float(body.pieces[0].frequencies.min())

    def value(system: System, x: Arrays) -> Any:
        m, live = system.mechanism_at(x), system.parameters_at(x)
        omega = walk(frame_velocity(m, root), m, {"q": x["q"], "v": x["v"]})[:3]
        square = sum((w * w for w in omega), 0.0)
        if live is None:
            return sqrt(square) / own
        return sqrt(functools.reduce(larger, (square / x for x in squared_frequencies(system.model, body, live))))

    return value
