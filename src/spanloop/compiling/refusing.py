"""Questions that no kernel answers where there are closures."""

from __future__ import annotations

from spanloop.errors import UnsupportedError
from spanloop.model import Model


def refuse_closures(model: Model, name: str, instead: str = "forward_dynamics") -> None:
    """A question that no kernel answers where there are closures; they are never treated as if they were not there."""
    if not (model.loops or model.couplings):
        return
    if model.loops:
        loop = model.loops[0]
        what = f"model {model.name!r} has a loop ({loop.name!r}, between {loop.a!r} and {loop.b!r})"
        sort, advice = "closed loops", "lock the loop's joints: model.lock(...)"
    else:
        c = model.couplings[0]
        what = f"joint {c.joint!r} of model {model.name!r} follows joint {c.source!r} (a coupling)"
        sort, advice = "coupled joints", f"leave it out of the motion: model.lock({c.joint!r}, {c.source!r})"
    if name == "inverse_dynamics":
        raise UnsupportedError(
            f"{name}: {what}; a kernel of it is for trees. Use sl.Dynamics(model).inverse_dynamics(q, v, a)"
        )
    raise UnsupportedError(f"{name}: {what}; {name} of {sort} is not there yet. Use {instead}, or {advice}")
