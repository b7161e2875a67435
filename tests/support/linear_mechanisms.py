"""Small mechanisms whose linear models are known by hand."""

from __future__ import annotations

import spanloop as sl


def cart_pole(damping: float = 0.0, poles: int = 1) -> sl.Model:
    """A cart of 2 kg on a rail with equal poles of 0.5 kg and length 0.8 m, upright at 0; only the cart has a motor."""
    builder = sl.Builder("cart_pole").body("cart", 2.0, inertia=[0.1] * 3).prismatic("rail", "world", "cart", axis="x")
    for name in ("", "2")[:poles]:
        builder = builder.body(f"pole{name}", 0.5, (0.0, 0.0, 0.4), inertia=[0.03, 0.03, 1e-4])
        builder = builder.revolute(f"hinge{name}", "cart", f"pole{name}", axis="y", actuated=False, damping=damping)
    return builder.build()


def chain(n: int = 3, damping: float = 0.2) -> sl.Model:
    """Rods of 1 kg and 1 m that hang from each other, with dampers in their hinges h0, h1, ..."""
    builder = sl.Builder("chain")
    for k in range(n):
        builder = builder.body(f"rod{k}", 1.0, (0.0, 0.0, -0.5), inertia=[1 / 12, 1 / 12, 1e-3])
        parent, place = ("world", (0, 0, 0)) if k == 0 else (f"rod{k - 1}", (0, 0, -1.0))
        builder = builder.revolute(f"h{k}", parent, f"rod{k}", axis="y", position=place, damping=damping)
    return builder.build()


def slider(mass: float = 2.0, stiffness: float = 0.0, damping: float = 0.0) -> sl.Model:
    """A mass on a rail along x, with a spring and a damper."""
    builder = sl.Builder("slider").body("mass", mass, inertia=[1.0] * 3)
    return builder.prismatic("slide", "world", "mass", axis="x", stiffness=stiffness, damping=damping).build()
