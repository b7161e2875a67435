"""The sweeps that most programs begin with: where the links are, and the forces from outside on them.

| symbol | shape | meaning | frame |
|---|---|---|---|
| X | Transform | pose of the link in its parent | parent |
| S | nv columns | motion space of its joint (φ, Hᵀ, p in the papers) | link |
| R | Rotation | orientation of the link | world |
| f | Force | external force at the link's origin | link |
"""

from __future__ import annotations

from spanloop.math.rotation import Rotation
from spanloop.math.spatial import Force
from spanloop.math.vector3 import add, cross
from spanloop.sweeps import Sweep, Values, outward


def place(link, here, parent) -> Values:
    """X and S at the present coordinates."""
    return Values(X=link.transform(here.q), S=link.kind.motion_space(here.q), external=Force())


def load(link, here, parent) -> Values:
    """External forces, given at body origins in world axes, gathered at the link's origin in its own axes."""
    R = Rotation.full((parent.R @ here.X.rotation).matrix())
    external = Force()
    for six, origin in here.forces:
        f = Force.of(six).turned(R.T)
        external = external + Force(add(f.angular, cross(origin, f.linear)), f.linear)
    return Values(R=R, external=external)


def placed(loaded: tuple[str, ...]) -> tuple[Sweep, ...]:
    """The opening sweeps of a program with forces on these bodies."""
    return (outward(place), outward(load, R=Rotation())) if loaded else (outward(place),)
