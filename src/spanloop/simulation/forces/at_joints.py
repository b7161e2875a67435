"""Forces at joints: one-sided springs at their limits, and Coulomb friction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spanloop.dynamics import Dynamics
from spanloop.dynamics.robot_arguments import model_of
from spanloop.errors import InputError
from spanloop.math.scalar import sqrt, where
from spanloop.model import Joint, Model
from spanloop.simulation.forces.at_frames import Acting, Force, not_negative

FAR = 1e6  # rad or m: a limit beyond this is none


def stops(
    model: Model | Dynamics, stiffness: float, damping: float = 0.0, joints: Sequence[str] | None = None
) -> Force:
    """Springs and dampers beyond the limits of joints, which push back and never pull.

    Simulate with limits="ignore": otherwise the run ends at the limit.

    Args:
        model: the mechanism.
        stiffness: [N m/rad or N/m].
        damping: [N m s/rad or N s/m].
        joints: names of joints; all that have limits by default.

    Returns:
        A function for `forces` of sl.simulate.

    Raises:
        InputError: a joint has no limits, or a number is negative.

    Example:
        >>> rod = sl.Builder("rod").body("link", 1.0, (0.5, 0.0, 0.0), (0.1, 0.1, 0.1))
        >>> model = rod.revolute("hinge", "world", "link", "y", upper=0.5).build()
        >>> stops = sl.forces.stops(model, 1e4, 10.0)
        >>> run = sl.simulate(model, duration=1.0, forces=stops, limits="ignore")
        >>> bool(0.5 < run.q.max() < 0.52)
        True
    """
    model = model_of(model, "stops")
    k, c = not_negative(stiffness, "stops: stiffness"), not_negative(damping, "stops: damping")
    limited = [j.name for j in model.joints if not j.driven and any(_ends(j))]
    chosen = limited if joints is None else [model.joint(name).name for name in joints]
    for name in chosen:
        if name not in limited:
            raise InputError(f"stops: joint {name!r} has no limits to stop at; give it lower= and upper=")
    if not chosen:
        raise InputError(f"stops: no joint of model {model.name!r} has limits")

    def pushed(depth: Any, rate: Any) -> Any:
        """Push (not negative) at a depth beyond the limit that grows with this rate."""
        push = k * depth + c * rate
        return where(depth > 0.0, where(push > 0.0, push, 0.0), 0.0)

    def acting(t: Any, q: Any, v: Any) -> Acting:
        out: Acting = {}
        for name in chosen:
            lower, upper = _ends(model.joint(name))
            torque: list[Any] = [0.0] * len(v[model.v_slice(name)])
            for i, (x, rate) in enumerate(zip(q[model.q_slice(name)], v[model.v_slice(name)], strict=True)):
                low = pushed(lower[i] - x, -rate) if i in lower else 0.0
                high = pushed(x - upper[i], rate) if i in upper else 0.0
                torque[i] = low - high
            out["joint", name] = torque
        return out

    return acting


def friction(model: Model | Dynamics, strength: Mapping[str, float], slip: float = 1e-2) -> Force:
    """Coulomb friction at joints, smoothed: −strength · v / √(v² + slip²).

    A joint's own friction of the same form is the joint's friction=.

    Args:
        model: the mechanism.
        strength: {"joint": torque [N m] or force [N]}.
        slip: the speed at which friction has 71 % of its strength [rad/s or m/s]; below it friction is like a damper.

    Returns:
        A function for `forces` of sl.simulate.

    Raises:
        InputError: there is no such joint, a strength is negative, or slip is not positive.

    Example:
        >>> arm = sl.zoo.puma()
        >>> run = sl.simulate(arm, duration=0.1, forces=sl.forces.friction(arm, {"joint2": 0.1}))
    """
    model = model_of(model, "friction")
    small = not_negative(slip, "friction: slip")
    if small == 0.0:
        raise InputError("friction: slip is 0; must be > 0, since a jump at v = 0 cannot be integrated")
    torques = {model.joint(name).name: not_negative(x, f"friction of joint {name!r}") for name, x in strength.items()}

    def acting(t: Any, q: Any, v: Any) -> Acting:
        return {
            ("joint", name): [-(f * (x / sqrt(x * x + small * small))) for x in v[model.v_slice(name)]]
            for name, f in torques.items()
        }

    return acting


def _ends(joint: Joint) -> tuple[dict[int, float], dict[int, float]]:
    """Lower and upper limits by degree of freedom, where there are any."""
    if joint.kind.nq != joint.kind.nv:
        return {}, {}
    lower, upper = (
        {i: x for i, x in enumerate(limits or ()) if x is not None and abs(x) < FAR}
        for limits in (joint.lower, joint.upper)
    )
    return lower, upper
