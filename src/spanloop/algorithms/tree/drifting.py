"""Bias accelerations, carried outward before anything is solved: what the links do when no free joint accelerates.

| symbol | shape | meaning | frame |
|---|---|---|---|
| field | Field | ω of the link, and ζ: its acceleration when no free joint accelerates; gravity is the world's | link |
| z | Force | force that this takes, less external ones: M ζ + b | link |

The accelerations that joints add are then counted from ζ, and an articulated inertia never meets a bias: a product of a
6×6 with a vector less for each link. [Kreutz & Rodriguez, eq. 5.14]
"""

from __future__ import annotations

from spanloop.math.small import add
from spanloop.math.spatial import Field, Motion, combined, coriolis
from spanloop.sweeps import Values


def drift(link, here, parent) -> Values:
    """ζ = φ* ζ₋ + what the velocities and given accelerations do here."""
    R, p = here.X.rotation.T, here.X.translation
    relative = combined(here.S, here.v)  # S v
    carrier = R @ parent.field.omega
    zeta = (
        Motion(R @ parent.field.alpha, R @ parent.field.at(p))
        + coriolis(carrier, relative)
        + link.kind.motion_space_rate(here.q, here.v)
        + combined(link.given(here.S), link.given(here.tau))
    )
    field = Field(add(carrier, relative.angular), zeta.angular, zeta.linear)
    return Values(field=field, z=link.inertia.force(field) - here.external)
