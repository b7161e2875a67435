"""Colours: one for each limb of a mechanism, paler toward its tip; closures green when closed, red when open."""

from __future__ import annotations

from spanloop.model import WORLD, Model

CLOSED, OPEN = "#2f9e62", "#d43d3d"
GROUND = "#9aa4ad"
CHECKS, BELT = ("#a3acb4", "#b9c0c6"), "#66747f"  # of planes that are touched: dark and light; arrows of belts
STICKS, SLIPS = "#0f8b8d", "#c2185b"  # forces of contacts
FORCE, TRAIL = "#d97b16", "#7a5bd0"
LIMBS = ("#2f6ea8", "#e07b39", "#4f9a94", "#b6577f", "#7d6bb0", "#8b8a3a", "#c4583f", "#5b7f3a")
JOINT = "#2b3640"
EVENTS = {  # by kind
    "attach": "#2f9e62",
    "refused": "#2b3640",
    "release": "#d97b16",
    "impact": "#d43d3d",
    "break": "#a3195b",
    "appear": "#2f6ea8",
    "vanish": "#7a5bd0",
    "continued": "#8b8a3a",
    "end": "#66747f",
    "no effect": "#b8c0c7",
}


def of_bodies(model: Model) -> list[str]:
    """A colour a body, in the model's order.

    Branches on the world have their own; where there is one branch only, those on its first body that carries several.
    """
    branches = _branches(model)
    depth = _depths(model)
    deepest: dict[int, int] = {}
    for k, b in enumerate(branches):
        deepest[b] = max(deepest.get(b, 1), depth[k])
    return [_paler(LIMBS[b % len(LIMBS)], 0.45 * (depth[k] - 1) / deepest[b]) for k, b in enumerate(branches)]


def _branches(model: Model) -> list[int]:
    """The number of the branch that each body belongs to."""
    parents = model.parents
    forks = [k for k in range(len(parents) + 1) if parents.count(k) > 1]
    fork = forks[0] if forks else -1
    out: list[int] = []
    count = 0
    for parent in parents:
        if parent == 0 or parent == fork:
            out.append(count)
            count += 1
        else:
            out.append(out[parent - 1])
    return out


def _depths(model: Model) -> list[int]:
    roots = {j.parent for j in model.joints if j.kind.bends}
    nodes = {j.child for j in model.joints if j.kind.rides}
    joined = {j.child for j in model.joints if j.child in roots and j.parent in nodes and not j.kind.nv}
    within = nodes | joined | {j.child for j in model.joints if j.kind.bends}  # with their parents one flexible body
    depth = {WORLD: 0}
    for joint in model.joints:
        depth[joint.child] = depth[joint.parent] + (joint.child not in within)
    return [depth[b.name] for b in model.bodies]


def darker(color: str, share: float = 0.3) -> str:
    """The colour mixed with black."""
    parts = (int(color[k : k + 2], 16) for k in (1, 3, 5))
    return "#" + "".join(f"{round(c * (1.0 - share)):02x}" for c in parts)


def _paler(color: str, share: float) -> str:
    """The colour mixed with white."""
    parts = (int(color[k : k + 2], 16) for k in (1, 3, 5))
    return "#" + "".join(f"{round(c + (255 - c) * share):02x}" for c in parts)
