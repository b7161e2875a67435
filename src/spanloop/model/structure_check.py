"""Check of a model's structure when it is made: names, tree, numbers. Errors have where, what, found, expected."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from spanloop.errors import ModelError, nearest
from spanloop.model.motors import check_actuator
from spanloop.model.parts import WORLD, Body, Coupling, Frame, Joint, Loop, Placement

if TYPE_CHECKING:
    from spanloop.model.model import Model


def checked_tree(model: Model) -> tuple[tuple[Body, ...], tuple[Joint, ...]]:
    """Bodies and joints depth first, children in the order given; raises ModelError unless they form a tree."""
    _unique(model)
    bodies = {b.name: b for b in model.bodies}
    _ends_exist(model, bodies)
    joints = _depth_first(model, bodies)
    for b in model.bodies:
        check_body(b)
    for j in joints:
        if not j.kind.carries:
            raise ModelError(f"{_at('joint', j)}: a {j.kind.name} joint only closes loops; use model.with_loop(...)")
        check_joint(j)
    _check_frames_and_loops(model)
    _check_couplings(model)
    if len(model.gravity) != 3:
        raise ModelError(f"model {model.name!r}: gravity is {model.gravity}; expected three numbers")
    _finite(model.gravity, f"model {model.name!r}: gravity")
    return tuple(bodies[j.child] for j in joints), joints


def _unique(model: Model) -> None:
    _check_name(model.name, "model")
    for what, names in (
        ("body", [b.name for b in model.bodies] + [WORLD]),
        ("joint", [j.name for j in model.joints] + [x.name for x in model.loops]),
        ("frame", [f.name for f in model.frames]),
        ("coupling", [c.name for c in model.couplings]),
        ("actuator", [a.name for a in model.actuators]),
        ("sensor", [x.name for x in model.sensors]),
    ):
        for name, n in Counter(names).items():
            _check_name(name, f"model {model.name!r}: {_a(what)}")
            if name == "":
                raise ModelError(f"model {model.name!r}: {_a(what)} has an empty name; every {what} needs one")
            if n > 1:
                if name == WORLD and what == "body":
                    raise ModelError(
                        f"model {model.name!r}: a body is called 'world', which is the ground's own name; rename it"
                    )
                raise ModelError(f"model {model.name!r}: {n} {_plural(what)} are called {name!r}; names must be unique")


def _check_name(name: str, owner: str) -> None:
    """Raise ModelError for a name that no file and no screen can show."""
    if not isinstance(name, str):
        raise ModelError(f"{owner} is called {name!r}; expected a text")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ModelError(f"{owner} is called {name!r}, which is not text (half a character); rename it") from None


def _a(what: str) -> str:
    return f"an {what}" if what[0] == "a" else f"a {what}"


def _plural(what: str) -> str:
    return "bodies" if what == "body" else what + "s"


def _ends_exist(model: Model, bodies: dict[str, Body]) -> None:
    known = [WORLD, *bodies]
    check_ends((*model.joints, *model.loops), bodies)
    for f in model.frames:
        if f.body not in bodies and f.body != WORLD:
            raise ModelError(f"{_at('frame', f)}: its body {f.body!r} is not a body; {nearest(f.body, known)}")
    moving = [j.name for j in model.joints]
    for a in model.actuators:
        if a.joint not in moving:
            raise ModelError(f"actuator {a.name!r}: {a.joint!r} is not a joint; {nearest(a.joint, moving)}")
        check_actuator(a, next(j for j in model.joints if j.name == a.joint))
    places = [*moving, *known, *(f.name for f in model.frames)]
    for x in model.sensors:
        if x.at not in places:
            raise ModelError(f"sensor {x.name!r}: {x.at!r} is not a joint, body or frame; {nearest(x.at, places)}")


def check_ends(parts: Iterable[Joint | Loop], bodies: Iterable[str]) -> None:
    """Raise ModelError, with the nearest name, for a joint or loop whose ends are not bodies."""
    known = dict.fromkeys((WORLD, *bodies))
    for part in parts:
        if isinstance(part, Joint):
            ends = {"parent": part.parent, "child": part.child}
        else:
            ends = {"body a": part.a, "body b": part.b}
        for role, name in ends.items():
            if name not in known:
                raise ModelError(f"{_at('joint', part)}: its {role} {name!r} is not a body; {nearest(name, known)}")


def _depth_first(model: Model, bodies: dict[str, Body]) -> tuple[Joint, ...]:
    children: dict[str, list[Joint]] = {}
    above: dict[str, Joint] = {}
    for j in model.joints:
        if j.child == WORLD:
            raise ModelError(f"{_at('joint', j)}: its child is the world; swap parent and child")
        if j.child in above:
            raise ModelError(
                f"{_at('joint', j)}: body {j.child!r} has two parents, "
                f"{above[j.child].parent!r} (joint {above[j.child].name!r}) and {j.parent!r}; a tree gives it one. "
                "Close the loop with model.with_loop(...) instead of the second joint"
            )
        above[j.child] = j
        children.setdefault(j.parent, []).append(j)
    ordered: list[Joint] = []
    stack = list(reversed(children.get(WORLD, [])))
    while stack:
        j = stack.pop()
        ordered.append(j)
        stack.extend(reversed(children.get(j.child, [])))
    if len(ordered) < len(bodies):
        reached = {j.child for j in ordered}
        lost = next(b for b in model.bodies if b.name not in reached)
        reason = "its joints form a cycle" if lost.name in above else "no joint has it as child"
        raise ModelError(
            f"{_at('body', lost)}: not connected to the world ({reason}); "
            "attach it with a joint whose parent is the world or a connected body"
        )
    return tuple(ordered)


def _check_frames_and_loops(model: Model) -> None:
    for f in model.frames:
        if f.name == WORLD or any(f.name == b.name for b in model.bodies):
            raise ModelError(
                f"{_at('frame', f)}: a body has the same name, and every body is a frame already; rename it"
            )
        _check_placement(f.placement, _at("frame", f))
    for x in model.loops:
        if x.a == x.b:
            raise ModelError(f"{_at('loop', x)}: both ends are on body {x.a!r}; a loop joins two bodies")
        _check_placement(x.placement_a, f"{_at('loop', x)}, end a")
        _check_placement(x.placement_b, f"{_at('loop', x)}, end b")


def _check_couplings(model: Model) -> None:
    joints = {j.name: j for j in model.joints}
    source: dict[str, str] = {}
    for c in model.couplings:
        for name in (c.joint, c.source):
            if name not in joints:
                raise ModelError(f"{_at('coupling', c)}: {name!r} is not a joint; {nearest(name, joints)}")
            if joints[name].kind.nv != 1:
                n = joints[name].kind.nv
                raise ModelError(f"{_at('coupling', c)}: joint {name!r} has {n} DoF; couplings join joints with one")
        if c.joint == c.source:
            raise ModelError(f"{_at('coupling', c)}: joint {c.joint!r} follows itself")
        _finite((c.ratio, c.offset), f"{_at('coupling', c)}: ratio or offset")
        if c.joint in source:
            raise ModelError(
                f"{_at('coupling', c)}: joint {c.joint!r} follows {source[c.joint]!r} already; it can follow one"
            )
        source[c.joint] = c.source
    for start in source:
        at = source[start]
        while at in source and at != start:
            at = source[at]
        if at == start:
            raise ModelError(f"model {model.name!r}: joint {start!r} follows itself through couplings; break the cycle")


def check_body(b: Body) -> None:
    """Raise ModelError for numbers that no body can have."""
    i = b.inertia
    if len(i.center) != 3 or len(i.moments) != 6:
        raise ModelError(
            f"{_at('body', b)}: centre has {len(i.center)} and inertia {len(i.moments)} numbers; "
            "expected 3 and 6 (xx, xy, xz, yy, yz, zz)"
        )
    _finite((i.mass, *i.center, *i.moments), f"{_at('body', b)}: mass, centre or inertia")
    if i.mass < 0.0:
        raise ModelError(f"{_at('body', b)}: mass is {i.mass:g} kg; must be >= 0. Was the sign lost in the export?")


def check_joint(j: Joint) -> None:
    """Raise ModelError for numbers that no joint can have."""
    n = j.kind.nv
    for name in ("damping", "friction", "armature", "stiffness", "lower", "upper", "speed", "effort"):
        value = getattr(j, name)
        if value is None:
            continue
        if len(value) != n:
            raise ModelError(f"{_at('joint', j)}: {name} has {len(value)} numbers; a {j.kind.name} joint takes {n}")
        allowed_infinite = name in ("lower", "upper", "speed", "effort")
        if any(math.isnan(x) or (math.isinf(x) and not allowed_infinite) for x in value):
            raise ModelError(f"{_at('joint', j)}: {name} is {value}; must be finite")
        if name in ("damping", "friction", "armature", "stiffness") and any(x < 0.0 for x in value):
            raise ModelError(f"{_at('joint', j)}: {name} is {value}; must be >= 0")
    if j.lower and j.upper and any(a > b for a, b in zip(j.lower, j.upper, strict=True)):
        raise ModelError(f"{_at('joint', j)}: lower limit {j.lower} is above upper limit {j.upper}")
    if len(j.rest) != j.kind.nq:
        raise ModelError(f"{_at('joint', j)}: the spring's rest has {len(j.rest)} numbers; expected {j.kind.nq}")
    _finite(j.rest, f"{_at('joint', j)}: the spring's rest")
    for part in j.kind.unit_parts(j.rest):
        length = math.hypot(*part)
        if abs(length - 1.0) > 1e-6:
            raise ModelError(f"{_at('joint', j)}: the spring's rest is a quaternion of length {length:.9g}; expected 1")
    if not j.kind.takes_springs and any(j.stiffness):
        raise ModelError(
            f"{_at('joint', j)}: a {j.kind.name} joint has no coordinates for a spring; model the spring as a force"
        )
    _check_placement(j.placement, _at("joint", j))


def _check_placement(placement: Placement, owner: str) -> None:
    check_rotation(placement.rotation, owner)
    _finite(placement.position, f"{owner}: position")


def check_rotation(r: Sequence[Sequence[float]], owner: str) -> None:
    """Raise ModelError for a matrix that is not orthonormal to 1e-9 and right-handed."""
    _finite([x for row in r for x in row], f"{owner}: rotation")
    worst = max(
        abs(sum(r[i][k] * r[j][k] for k in range(3)) - (1.0 if i == j else 0.0)) for i in range(3) for j in range(3)
    )
    determinant = sum(
        r[0][i] * (r[1][(i + 1) % 3] * r[2][(i + 2) % 3] - r[1][(i + 2) % 3] * r[2][(i + 1) % 3]) for i in range(3)
    )
    if worst > 1e-9 or determinant < 0.0:
        raise ModelError(
            f"{owner}: its rotation matrix is not a rotation "
            f"(R Rᵀ − 1 reaches {worst:.1e}, determinant {determinant:.3g}); "
            "expected orthonormal, right-handed rows"
        )


def _finite(values: Iterable[float], owner: str) -> None:
    values = tuple(values)
    if not all(math.isfinite(x) for x in values):
        raise ModelError(f"{owner} is {values}; every number must be finite")


def _at(what: str, part: Body | Joint | Frame | Loop | Coupling) -> str:
    return f"{what} {part.name!r}" + (f" ({part.where})" if part.where else "")
