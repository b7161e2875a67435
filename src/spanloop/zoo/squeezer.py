"""Andrews' squeezing mechanism: seven bodies in a plane, three loops, mobility 1, a standard test of solvers.

Data: Test Set for Initial Value Problem Solvers, problem "Andrews' squeezing mechanism"; [Hairer and Wanner, Solving
Ordinary Differential Equations II, section VII.7]. The plane is that of x and y; the test set has no gravity, and here
it is along −z, square to the plane, so that it moves nothing. The bodies are laminas of the given moment about z.

| joint   | test set | body                              | parent | closes at P with |
|---------|----------|-----------------------------------|--------|------------------|
| beta    | q₁ = β   | crank (K₁), on the origin         | world  |                  |
| theta   | q₂ = Θ   | connecting_rod (K₂)               | K₁     |                  |
| gamma   | q₃ = γ   | spring_lever (K₃), on B           | world  | K₂               |
| delta   | q₅ = δ   | upper_lever (K₅), on A            | world  |                  |
| phi     | q₄ = Φ   | upper_link (K₄)                   | K₅     | K₂               |
| epsilon | q₇ = ε   | lower_lever (K₇), on A            | world  |                  |
| omega   | q₆ = Ω   | lower_link (K₆)                   | K₇     | K₂               |

A constant moment of 0.033 N m drives the crank; a spring of 4530 N/m and 0.07785 m pulls from C on the ground at D on
the spring lever. Both are in `andrews_forces`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from spanloop.joints import JointKind
from spanloop.model.builder import Builder
from spanloop.model.model import Model
from spanloop.zoo.plane_geometry import planar_closure

A, B, C = (-0.06934, -0.00227), (-0.03635, 0.03273), (0.014, 0.072)  # m
D = (0.02, -0.018)  # (sd, −sc), on the spring lever [m]
MOMENT = 0.033  # N m
STIFFNESS, REST = 4530.0, 0.07785  # N/m, m

# body: mass [kg], moment about z at the mass centre [kg m²], mass centre, place of P or of the next hinge [m]
_BODIES = {
    "crank": (0.04325, 2.194e-6, (0.00092, 0.0), (0.007, 0.0)),
    "connecting_rod": (0.00365, 4.410e-7, (-0.0115, 0.0), (-0.028, 0.0)),
    "spring_lever": (0.02373, 5.255e-6, (0.01043, -0.01874), (0.0, -0.035)),
    "upper_lever": (0.07050, 1.169e-5, (0.02308, 0.00916), (0.04, 0.0)),
    "upper_link": (0.00706, 5.667e-7, (0.0, -0.00579), (0.0, -0.02)),
    "lower_lever": (0.05498, 1.912e-5, (-0.00449, -0.01228), (0.0, -0.04)),
    "lower_link": (0.00706, 5.667e-7, (0.00579, 0.0), (0.02, 0.0)),
}
_JOINTS = (  # joint, parent, child, place on the ground
    ("beta", "world", "crank", (0.0, 0.0)),
    ("theta", "crank", "connecting_rod", None),
    ("gamma", "world", "spring_lever", B),
    ("delta", "world", "upper_lever", A),
    ("phi", "upper_lever", "upper_link", None),
    ("epsilon", "world", "lower_lever", A),
    ("omega", "lower_lever", "lower_link", None),
)


def andrews(*, closure: str | JointKind = "revolute") -> Model:
    """The squeezing mechanism; its crank is actuated. Mobility 1: of 15 rows 6 are independent."""
    b = Builder("andrews")
    for name, (mass, moment, center, _) in _BODIES.items():
        b.body(name, mass, (*center, 0.0), (0.5 * moment, 0.5 * moment, moment))
    for joint, parent, child, place in _JOINTS:
        x, y = place or _BODIES[parent][3]
        b.revolute(joint, parent, child, "z", (x, y, 0.0), actuated=joint == "beta")
    kind = planar_closure(closure, (0.0, 0.0, 1.0), (1.0, 0.0, 0.0), "andrews")
    for name in ("connecting_rod", "spring_lever", "upper_link", "lower_link"):
        b.frame(f"{name}_end", name, (*_BODIES[name][3], 0.0))
    for name in ("spring_lever", "upper_link", "lower_link"):
        b.loop("connecting_rod_end", f"{name}_end", kind, name=f"{name}_pin")
    b.frame("spring_hook", "spring_lever", (*D, 0.0))
    return b.frame("spring_post", "world", (*C, 0.0)).build()


def andrews_start(*, closure: str | JointKind = "revolute") -> np.ndarray:
    """Return the test set's consistent initial angles, q (7,): β, Θ, γ, δ, Φ, ε, Ω. The motion starts from rest."""
    return np.array(
        (
            -0.0617138900142764496358948458001,
            0.0,
            0.455279819163070380255912382449,
            0.487364979543842550225598953530,
            0.222668390165885884674473185609,
            1.23054744454982119249735015568,
            -0.222668390165885884674473185609,
        )
    )


def andrews_forces(q: ArrayLike) -> np.ndarray:
    """Return the generalised force (..., 7) [N m] of the crank's moment and of the spring at coordinates q (..., 7).

    With d = D − C in the world and L its length, the spring's force on D is −c₀ (1 − l₀/L) d.
    """
    angles = np.asarray(q, dtype=float)
    s, c = np.sin(angles[..., 2]), np.cos(angles[..., 2])
    x, y = c * D[0] - s * D[1], s * D[0] + c * D[1]  # from B to D
    dx, dy = x + (B[0] - C[0]), y + (B[1] - C[1])
    pull = -STIFFNESS * (1.0 - REST / np.hypot(dx, dy))
    tau = np.zeros_like(angles)
    tau[..., 0] = MOMENT
    tau[..., 2] = pull * (x * dy - y * dx)
    return tau
