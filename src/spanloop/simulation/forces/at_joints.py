"""Stops and friction of joints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spanloop.errors import InputError
from spanloop.math.scalar import sqrt, where
from spanloop.model import Joint, Model
from spanloop.simulation.forces.at_frames import Acting, Force, not_negative

FAR = 1e6  # rad or m: a limit beyond this is none


def stops(model: Model, stiffness: float, damping: float = 0.0, joints: Sequence[str] | None = None) -> Force:
    """Springs and dampers beyond the limits of joints, which push back and never pull.

    stiffness [N m/rad, N/m], damping [N m s/rad]; joints: all that have limits if not named. Simulate with
    limits="ignore": otherwise the run ends at the limit.
    """
    k, c = not_negative(stiffness, "stops: stiffness"), not_negative(damping, "stops: damping")
    limited = [j.name for j in model.joints if not j.driven and any(_ends(j))]
    chosen = limited if joints is None else [model.joint(name).name for name in joints]
    for name in chosen:
        if name not in limited:
            raise InputError(f"stops: joint {name!r} has no limits to stop at; give it lower= and upper=")
    if not chosen:
        raise InputError(f"stops: no joint of model {model.name!r} has limits")

    def pushed(depth, rate):
        """Push (not negative) at a depth beyond the limit that grows with this rate."""
        push = k * depth + c * rate
        return where(depth > 0.0, where(push > 0.0, push, 0.0), 0.0)

    def acting(t, q, v) -> Acting:
        out: Acting = {}
        for name in chosen:
            lower, upper = _ends(model.joint(name))
            torque = [0.0] * len(v[model.v_slice(name)])
            for i, (x, rate) in enumerate(zip(q[model.q_slice(name)], v[model.v_slice(name)], strict=True)):
                low = pushed(lower[i] - x, -rate) if i in lower else 0.0
                high = pushed(x - upper[i], rate) if i in upper else 0.0
                torque[i] = low - high
            out["joint", name] = torque
        return out

    return acting


def friction(model: Model, strength: Mapping[str, float], slip: float = 1e-2) -> Force:
    """Coulomb friction {"joint": torque [N m] or force [N]}, smoothed: strength · v / √(v² + slip²).

    slip [rad/s, m/s]: where it has 71 % of its strength; below it friction is like a damper. For a joint's own
    friction of the same form give the joint friction=.
    """
    small = not_negative(slip, "friction: slip")
    if small == 0.0:
        raise InputError("friction: slip is 0; must be > 0, since a jump at v = 0 cannot be integrated")
    known = {model.joint(name).name: not_negative(x, f"friction of joint {name!r}") for name, x in strength.items()}

    def acting(t, q, v) -> Acting:
        return {
            ("joint", name): [-(f * (x / sqrt(x * x + small * small))) for x in v[model.v_slice(name)]]
            for name, f in known.items()
        }

    return acting


def _ends(joint: Joint) -> tuple[dict[int, float], dict[int, float]]:
    """Lower and upper limits by freedom, where there are any."""
    if joint.kind.nq != joint.kind.nv:
        return {}, {}
    lower, upper = (
        {i: x for i, x in enumerate(limits or ()) if x is not None and abs(x) < FAR}
        for limits in (joint.lower, joint.upper)
    )
    return lower, upper
