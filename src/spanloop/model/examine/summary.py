"""What a mechanism is made of and what moves."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from spanloop.model.examine.finding import Finding
from spanloop.model.examine.messages import counted
from spanloop.model.model import Model
from spanloop.model.parts import WORLD
from spanloop.model.poses import neutral_poses


def makeup(model: Model) -> Iterator[Finding]:
    """Bodies, joints, base, freedoms, mass, reach."""
    kinds = Counter(j.kind.name for j in model.joints)
    listed = ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())
    joints = f"{counted(len(model.joints), 'joint')} ({listed})" if model.joints else "no joints"
    yield Finding("makeup", values={"bodies": counted(model.n_bodies, "body", "bodies"), "joints": joints})
    roots = [j for j in model.joints if j.parent == WORLD]
    floating = [j.child for j in roots if j.kind.name == "free"]
    if roots:
        yield Finding("base", values={"how": _base(len(roots), floating)})
    if not model.nv:
        yield Finding("nothing_moves")
        return
    actuated = sum(j.kind.nv for j in model.joints if j.actuated)
    yield Finding("freedoms", values={"freedoms": counted(model.nv, "freedom"), "actuated": actuated})
    heaviest = max(model.bodies, key=lambda b: b.inertia.mass)
    most = heaviest.inertia.mass
    yield Finding("mass", values={"mass": float(model.mass), "heaviest": repr(heaviest.name), "most": float(most)})
    reach = max(math.hypot(*p.position) for p in neutral_poses(model).values())
    yield Finding("reach", values={"reach": reach})


def _base(count: int, floating: list[str]) -> str:
    if len(floating) == count == 1:
        return f"It floats: {floating[0]!r} moves freely in the world"
    if floating:
        return f"{counted(len(floating), 'body floats', 'bodies float')}, {count - len(floating)} more on the world"
    return "It stands on the world" if count == 1 else f"It stands on the world by {count} joints"
