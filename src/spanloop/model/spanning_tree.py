"""From a graph of bodies and joints to a spanning tree and the joints that close its loops.

The tree grows outward from the world, nearest bodies first, so that loops stay short. Where a body can be reached
by several joints equally soon, an actuated one is kept in the tree and the others are cut; joints the user names
are cut before all others. Joints inside a flexible body are always kept: another joint that leads to a node closes a
loop. A joint is followed from its parent to its child only. A loop holds no losses and no limits:
`check_cut_joints` refuses to cut a joint that has them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite

from spanloop.errors import InputError, ModelError, listed, nearest
from spanloop.math.vector3 import IDENTITY3, add, product, times, transpose
from spanloop.model.flexible_bodies.pieces import body_before
from spanloop.model.parts import WORLD, Body, Frame, Inertia, Joint, Loop, Placement
from spanloop.model.structure_check import check_ends

LOSSES = ("damping", "stiffness", "friction", "armature")
LIMITS = ("lower", "upper", "speed", "effort")


@dataclass(frozen=True)
class Graph:
    """Bodies, joints and frames as described; at_child: where a joint is in its child, if not at the child's origin.

    inner: names of joints that are always kept, beside those inside flexible bodies.
    """

    bodies: Sequence[Body]
    joints: Sequence[Joint]
    frames: Sequence[Frame] = ()
    at_child: Mapping[str, Placement] = field(default_factory=dict)
    inner: Collection[str] = ()


def spanned(graph: Graph, cut: Collection[str] = ()) -> tuple[Graph, tuple[Loop, ...]]:
    """The spanning tree, and the joints that are not in it as loops.

    A body of the tree has its frame where its joint is: the description of any other body is transformed to there.
    """
    names = [j.name for j in graph.joints]
    for name in cut:
        if name not in names:
            raise InputError(f"cut names {name!r}, which is not a joint; {nearest(name, names)}")
    check_ends(graph.joints, [b.name for b in graph.bodies])
    _refuse_inner(graph, cut)
    kept = _reached(graph, cut)
    _all_reached(graph.bodies, graph.joints, kept, cut)
    moved = {
        j.child: graph.at_child[j.name].inverse() for j in graph.joints if j.name in kept and j.name in graph.at_child
    }
    joints = [replace(j, placement=moved[j.parent] @ j.placement) if j.parent in moved else j for j in graph.joints]
    frames = [replace(f, placement=moved[f.body] @ f.placement) if f.body in moved else f for f in graph.frames]
    bodies = [_seen_from(b, moved[b.name]) if b.name in moved else b for b in graph.bodies]
    loops = []
    for j in joints:
        if j.name not in kept:
            place = graph.at_child.get(j.name, Placement())
            loops.append(_loop(j, moved[j.child] @ place if j.child in moved else place))
    return Graph(bodies, [j for j in joints if j.name in kept], frames), tuple(loops)


def origins(tree: Graph, at_child: Mapping[str, Placement]) -> list[Frame]:
    """A frame NAME::origin for each body of the tree whose frame `spanned` moved to its joint: where it was described.

    at_child: that of the graph before; a frame of the user's own with such a name stays as it is.
    """
    taken, here = {f.name for f in tree.frames}, Placement()
    moved = [j for j in tree.joints if at_child.get(j.name, here) != here]
    frames = [Frame(f"{j.child}::origin", j.child, at_child[j.name].inverse(), j.where) for j in moved]
    return [f for f in frames if f.name not in taken]


def _seen_from(body: Body, at: Placement) -> Body:
    """The body described in a frame in which its old frame is placed `at`."""
    i, r = body.inertia, at.rotation
    m = i.matrix() if r == IDENTITY3 else product(product(r, i.matrix()), transpose(r))
    moments = (m[0][0], m[0][1], m[0][2], m[1][1], m[1][2], m[2][2])
    inertia = Inertia(i.mass, add(times(r, i.center), at.position), moments)
    shapes = tuple(replace(g, placement=at @ g.placement) for g in body.geometry)
    return replace(body, inertia=inertia, geometry=shapes)


def _inner(graph: Graph) -> dict[str, str]:
    """The joints inside flexible bodies, by the body to which they lead: modes, nodes, roots of further pieces."""
    joints, named = graph.joints, {j.child: j.name for j in graph.joints if j.name in graph.inner}
    if not any(j.kind.bends for j in joints):
        return named
    own = {j.child: j for j in joints if j.kind.bends or j.kind.rides}
    fixed = {j.child: j for j in joints if j.kind.name == "fixed" and j.parent in own and own[j.parent].kind.rides}
    above = {**fixed, **own}
    roots = {j.parent for j in own.values() if j.kind.bends and j.parent in fixed and body_before(j, above)}
    return named | {child: j.name for child, j in above.items() if child in own or child in roots}


def _refuse_inner(graph: Graph, cut: Collection[str]) -> None:
    """Raise InputError for a joint inside a flexible body that shall be cut."""
    for body, name in _inner(graph).items():
        if name in cut:
            raise InputError(f"cut names {name!r}, which is inside a flexible body (it carries {body!r}); cut another")


def _reached(graph: Graph, cut: Collection[str]) -> set[str]:
    """Names of the joints by which each body is reached first."""
    leaving: dict[str, list[int]] = {}
    joints, inner = graph.joints, _inner(graph)
    for k, j in enumerate(joints):
        if j.name not in cut and inner.get(j.child, j.name) == j.name:
            leaving.setdefault(j.parent, []).append(k)
    kept: set[str] = set()
    seen, front = {WORLD}, [WORLD]
    while front:
        ready = [joints[k] for k in sorted(k for body in front for k in leaving.get(body, []))]
        layer: dict[str, Joint] = {}
        for j in sorted(ready, key=lambda j: not (j.actuated and j.kind.nv > 0)):
            if j.child not in seen:
                layer.setdefault(j.child, j)
        kept.update(j.name for j in layer.values())
        seen.update(layer)
        front = list(layer)
    return kept


def _all_reached(bodies: Sequence[Body], joints: Sequence[Joint], kept: set[str], cut: Collection[str]) -> None:
    reached = {WORLD, *(j.child for j in joints if j.name in kept)}
    for b in bodies:
        if b.name in reached:
            continue
        into = [j for j in joints if j.child == b.name]
        outof = [j for j in joints if j.parent == b.name and j.child in reached]
        if into and all(j.name in cut for j in into):
            raise ModelError(f"body {b.name!r}: every joint that leads to it is cut ({into[0].name!r}, ...); leave one")
        if outof:
            j = outof[0]
            raise ModelError(
                f"body {b.name!r}: reached only against the direction of joint {j.name!r}; "
                f"swap its parent {j.parent!r} and child {j.child!r}"
            )
        bent = next((j for j in joints if j.parent == b.name and j.kind.bends), None)
        if bent is not None:
            raise ModelError(
                f"body {b.name!r}: no way leads to it from the world. A flexible body is carried by its root: attach "
                f"{bent.child!r} with a joint (Builder.free, if it floats); joints to its nodes close loops"
            )
        raise ModelError(f"body {b.name!r}: no way leads to it from the world; attach it with a joint")


def _loop(j: Joint, at_child: Placement) -> Loop:
    """The cut joint as a closure."""
    return Loop(j.name, j.kind, j.parent, j.child, j.placement, at_child, j.driven, where=j.where)


# ---- losses and limits of the joints that are cut


def check_cut_joints(graph: Graph, cut_joints: Collection[str], cut: Collection[str] = ()) -> None:
    """Raise ModelError for a joint that becomes a loop although it has losses or limits, which a loop does not hold.

    cut_joints: the joints that `spanned` made loops; cut: those of them that the user names.
    """
    for j in graph.joints:
        found = _lost(j) if j.name in cut_joints else {}
        if not found:
            continue
        others = [name for name in _other_cuts(graph, j, cut_joints, cut) if name not in cut]
        ways = [f"Cut another joint of the loop, build(cut=[{others[0]!r}])"] if others else []
        if {"damping", "stiffness", "friction"} & found.keys():
            ways.append("leave it out here and simulate with sl.forces.along_loops(...)")
        ways = ways or ["Leave it out, or describe the loop so that another joint closes it"]
        advice = ", or ".join(ways)
        values = listed(f"{name} {value if len(value) > 1 else format(value[0], 'g')}" for name, value in found.items())
        raise ModelError(
            f"joint {j.name!r}: it becomes a loop, which holds no losses, springs or limits, but has {values}. "
            f"{advice[0].upper()}{advice[1:]}"
        )


def _lost(j: Joint) -> dict[str, tuple[float, ...]]:
    """Losses and limits of a joint."""
    losses = {name: getattr(j, name) for name in LOSSES if any(getattr(j, name))}
    return losses | {name: getattr(j, name) for name in LIMITS if any(map(isfinite, getattr(j, name) or ()))}


def _other_cuts(graph: Graph, j: Joint, cut_joints: Collection[str], cut: Collection[str]) -> list[str]:
    """Joints of the loop of j without losses and limits, of which any can be cut in the place of j."""
    kept = {x.child: x for x in graph.joints if x.name not in cut_joints}
    bodies, rest = {b.name for b in graph.bodies}, set(cut) - {j.name}
    found = []
    for candidate in _ring(kept, j):
        reached = _reached(graph, {*rest, candidate.name})
        whole = bodies <= {x.child for x in graph.joints if x.name in reached}
        if whole and j.name in reached and not _lost(candidate):
            found.append(candidate.name)
    return found


def _ring(kept: Mapping[str, Joint], j: Joint) -> list[Joint]:
    """The joints of the tree that form a loop with j, those at its child first; kept: by their child."""

    def way(body: str) -> list[Joint]:
        out = []
        while body in kept:
            out.append(kept[body])
            body = out[-1].parent
        return out

    one, other = way(j.child), way(j.parent)
    return [x for x in one if x not in other] + [x for x in other if x not in one]
