"""What runs with contacts carry from step to step, and their coefficients, as arrays by name.

| name | numbers | meaning |
|---|---|---|
| f | n · block | impulses of the last step along (n, t1, t2) of each point [N s], with torsion or rolling [N m s] |
| gap | n | gaps at its end [m] |
| left | 3 | largest residual so far [m/s], largest penetration at the end of a step [m], number of steps with a jam |
| force, tau | n · block, nv | forces that are expected in the next step, and their torques as at neutral coordinates |
| why | 2 | residual of the last solve, number of the last point that jammed, plus 1, or 0; kept if a step fails |
| k | n · 7 | coefficients, in the order of COEFFICIENTS; constant during a run |

Names have the prefix "contact.". Arrays that live in a step alone are in delassus.py, solver/ and contact_step.py.
"""

from __future__ import annotations

import numpy as np

from spanloop.algorithms.contact.points import ContactPoints
from spanloop.contacts.delassus import PREFIX, named

COEFFICIENTS = ("friction", "torsion", "rolling", "restitution", "resting", "stiffness", "damping")  # of a point
RECORDED = named("f", "gap", "left")  # arrays of the state that samples have
TORQUES = PREFIX + "tau"
FORCES = (*named("f", "force"), TORQUES)  # arrays whose numbers grow with masses
WHY = PREFIX + "why"  # array of the state that stays where a step fails

CLOSED = 1e-9  # m: a point with a smaller gap is closed: bodies that fall together touch as they did
UNSOLVED = 1e-9  # m/s: a step whose contacts are solved neither to this nor to rounding fails


def coefficients(points: ContactPoints) -> np.ndarray:
    """The coefficients (n · 7) of all points; a stiffness of 0 stands for a hard contact."""
    three = np.reshape(points.coefficients, (points.n, 3))
    soft = [0.0 if k is None else k for k in points.stiffness]
    return np.column_stack([three, points.restitution, points.resting, soft, points.damping]).ravel()


def state_sizes(points: ContactPoints, nv: int) -> dict[str, int]:
    """What a run with contacts carries from step to step, and replaces at the end of each."""
    recorded = dict(zip(RECORDED, (points.n * points.B, points.n, 3), strict=True))
    return recorded | {PREFIX + "force": points.n * points.B, TORQUES: nv}
