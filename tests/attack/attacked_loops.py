"""Random closed mechanisms that are hard.

Every closure kind, redundant and over-constrained linkages, several assemblies, singular positions, sizes from 1e-5 m
to 1e3 m, mass ratios to 1e6.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from attacked_trees import direction, inertia, joint_kind, rotation
from plain_data import Link, data, real
from reference import Tree, joint_pose

import spanloop as sl

CLOSURES = (
    "revolute",
    "prismatic",
    "helical",
    "cylindrical",
    "universal",
    "spherical",
    "planar",
    "fixed",
    "free",
    "general",
    "distance",
    "soft_finger",
    "point_on_line",
    "point_on_plane",
)
GUIDES = {"point_on_line": sl.joints.PointOnLine, "point_on_plane": sl.joints.PointOnPlane}
WITHOUT_DOF = ("distance", "soft_finger", "fixed", *GUIDES)  # they cannot be driven


@dataclass
class ClosedCase:
    """A closed mechanism, its size [m] and mass [kg], and states from which to assemble it."""

    theme: str
    model: sl.Model
    size: float
    mass: float
    starts: np.ndarray | None = None  # (nq, k): near these states; None: any
    special: list[np.ndarray] = field(default_factory=list)  # at or near singular positions


def closed_case(rng) -> ClosedCase:
    """A random closed mechanism of a random theme."""
    size, mass = 10.0 ** rng.uniform(-5.0, 3.0), 10.0 ** rng.uniform(-2.0, 2.0)
    return THEMES[rng.integers(len(THEMES))](rng, size, mass)


def _body(b, name, rng, mass, size, ratio=1.0):
    mass = mass * rng.uniform(0.5, 2.0) * 10.0 ** rng.uniform(-ratio, ratio)
    b.body(name, mass, size * rng.uniform(-0.5, 0.5, 3), inertia(rng, mass, size))


def _plane(rng) -> np.ndarray:
    """Axes of the plane of a linkage: x, y, and z its normal."""
    R = rotation(rng)
    return np.eye(3) if R is None else R


# ---- any tree with any loops


def anything(rng, size, mass) -> ClosedCase:
    """A random tree that random joints close at a random state."""
    b = sl.Builder("closed", gravity=rng.uniform(0.0, 10.0) * direction(rng))
    kinds = ["revolute", "prismatic", "helical", "cylindrical", "universal", "spherical", "planar", "free", "general"]
    driving = rng.uniform() < 0.2
    n = int(rng.integers(2, 6))
    ratio = float(rng.choice((0.5, 3.0)))
    for i in range(n):
        _body(b, f"b{i}", rng, mass, size, ratio)
        up = i if rng.uniform() < 0.6 else int(rng.integers(0, i + 1))
        kind = joint_kind(str(rng.choice(kinds, p=[0.4, 0.1, 0.05, 0.1, 0.1, 0.08, 0.08, 0.05, 0.04])), rng, size)
        place = size * rng.uniform(-1.0, 1.0, 3)
        driven = driving and rng.uniform() < 0.4 and kind.name != "general"
        parent = f"b{up - 1}" if up else "world"
        b.joint(f"j{i}", kind, parent, f"b{i}", place, rotation(rng), driven=driven)
    model = b.build()
    q = _state(model, rng, size)
    names = ["world", *(f"b{i}" for i in range(n))]
    count = int(rng.integers(1, 3))
    for k in range(count):
        first, second = rng.choice(len(names), 2, replace=False)
        name = str(rng.choice(CLOSURES))
        extra = {}
        if rng.uniform() < 0.15 and name not in WITHOUT_DOF:
            extra["driven"] = True
        elif rng.uniform() < 0.15:
            extra["switchable"] = True
        model = tied(model, q, names[first], names[second], name, rng, size, f"loop{k}", **extra)
    return ClosedCase("anything", model, size, mass, q[:, None])


def _state(model, rng, size) -> np.ndarray:
    q = []
    for joint in model.joints:
        if joint.kind.name in ("spherical", "free", "general"):
            e = rng.normal(size=4)
            q += [*(e / np.linalg.norm(e))] + ([] if joint.kind.name == "spherical" else [*(size * rng.normal(size=3))])
        else:
            q += [rng.uniform(-2.0, 2.0) * (1.0 if u == "rad" else size) for u in joint.kind.units]
    return np.array(q)


def tied(model, q, a: str, b: str, name: str, rng, size, loop: str, **options):
    """The model with a joint between bodies a and b that is closed at q."""
    tree = Tree(data(model), q[:, None], np.zeros((model.nv, 1)))
    numbers = data(model).bodies
    A, B = tree.body(numbers[a]), tree.body(numbers[b])
    turn, place = rotation(rng), size * rng.uniform(-1.0, 1.0, 3)
    turn = np.eye(3) if turn is None else turn
    RA, pA = A.R[..., 0] @ real(turn), A.p[..., 0] + A.R[..., 0] @ real(place)
    if name in ("distance", "soft_finger"):
        offset = size * rng.normal(size=3) if name == "distance" else np.zeros(3)
        kind = sl.joints.Distance(float(np.linalg.norm(offset))) if name == "distance" else sl.joints.SoftFinger()
        X = rotation(rng)
        X = np.eye(3) if X is None else X
    elif name in GUIDES:
        kind, X = GUIDES[name](direction(rng)), rotation(rng)
        along = size * rng.normal() * np.array(kind.axis)
        offset = along if name == "point_on_line" else np.cross(along, rng.normal(size=3))
        X = np.eye(3) if X is None else X
    else:
        kind = joint_kind(name, rng, size)
        X, offset = _pose(kind, rng, size)
    RB, pB = RA @ real(X), pA + RA @ real(offset)
    turn_b = (B.R[..., 0].T @ RB).astype(float)
    place_b = (B.R[..., 0].T @ (pB - B.p[..., 0])).astype(float)
    model = model.with_frame(f"{loop} a", a, place, turn).with_frame(f"{loop} b", b, place_b, turn_b)
    return model.with_loop(f"{loop} a", f"{loop} b", kind, name=loop, **options)


def _pose(kind, rng, size) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and displacement of a joint at random coordinates."""
    none = real(np.zeros(3))
    zeros = {k: real(np.zeros(0)) for k in ("armature", "damping", "stiffness", "rest", "center", "moments")}
    link = Link(
        kind.name,
        -1,
        real(np.eye(3)),
        none,
        real(getattr(kind, "axis", none)),
        real(getattr(kind, "second_axis", none)),
        real(getattr(kind, "pitch", 0.0)),
        real(getattr(kind, "motion", np.zeros((0, 6)))),
        slice(0, kind.nq),
        slice(0, kind.nv),
        mass=real(0.0),
        **zeros,
    )
    if kind.name in ("spherical", "free", "general"):
        e = rng.normal(size=4)
        q = [*(e / np.linalg.norm(e)), *(size * rng.normal(size=3))]
    else:
        q = [rng.uniform(-2.0, 2.0) * (1.0 if u == "rad" else size) for u in kind.units]
    R, d = joint_pose(link, real(q)[:, None])
    return R[..., 0], d[..., 0]


# ---- linkages


def four_bar(rng, size, mass) -> ClosedCase:
    """A four-bar in any plane: general, parallelogram or foldable; its last hinge a hinge, ball, cylinder or gimbal."""
    R, z = _plane(rng), (0.0, 0.0, 1.0)
    crank, coupler, ground = size * rng.uniform(0.5, 1.0, 3)
    shape = str(rng.choice(("general", "parallelogram", "foldable")))
    rocker = size * rng.uniform(0.5, 1.0)
    if shape == "parallelogram":
        ground, rocker = coupler, crank
    if shape == "foldable":
        rocker = crank + coupler - ground
    b = sl.Builder("four bar", gravity=9.81 * direction(rng))
    for name in ("crank", "coupler", "rocker"):
        _body(b, name, rng, mass, size, float(rng.choice((0.3, 3.0))))
    b.revolute("j1", "world", "crank", z, rotation=R).revolute("j2", "crank", "coupler", z, (crank, 0, 0))
    b.revolute("j3", "world", "rocker", z, R @ (ground, 0.0, 0.0), R)
    b.frame("tip", "coupler", (coupler, 0, 0)).frame("end", "rocker", (rocker, 0, 0))
    kind = str(rng.choice(("revolute", "spherical", "cylindrical", "universal")))
    closure = {"universal": sl.joints.Universal((1.0, 0.0, 0.0), z)}.get(kind) or sl.joints.KINDS[kind]()
    if kind == "universal":
        closure = sl.joints.Universal(z, (1.0, 0.0, 0.0))
    b.loop("tip", "end", closure, name="loop")
    special = []
    if shape != "general":
        special = [np.zeros(3)]
        for sign in (1, 1, 1, -1, -1, -1):
            special += triangle(crank, coupler, ground, rocker, _near(rng), sign)
    return ClosedCase(f"four-bar, {shape}, {kind}", b.build(), size, mass, None, special)


def _near(rng) -> float:
    return 10.0 ** rng.uniform(-9.0, -1.0)


def triangle(crank, coupler, ground, rocker, angle, sign) -> list[np.ndarray]:
    """The state of a four-bar at a crank angle, by the law of cosines; none where it does not close."""
    crank, coupler, ground, rocker, angle = (real(x) for x in (crank, coupler, ground, rocker, angle))
    x, y = crank * np.cos(angle) - ground, crank * np.sin(angle)
    far = np.hypot(x, y)
    cosine = (far**2 + rocker**2 - coupler**2) / (2 * far * rocker)
    if not abs(cosine) <= 1:
        return []
    third = np.arctan2(y, x) + sign * np.arccos(cosine)
    second = np.arctan2(rocker * np.sin(third) - y, rocker * np.cos(third) - x) - angle
    return [np.array([angle, second, third], dtype=float)]


def slider_crank(rng, size, mass) -> ClosedCase:
    """A slider-crank; with crank and rod of one length it has a singular position."""
    R, z = _plane(rng), (0.0, 0.0, 1.0)
    crank = size * rng.uniform(0.3, 1.0)
    rod = crank if rng.uniform() < 0.3 else size * rng.uniform(1.0, 2.0)
    b = sl.Builder("slider-crank", gravity=9.81 * direction(rng))
    for name in ("crank", "rod", "slider"):
        _body(b, name, rng, mass, size)
    b.revolute("j1", "world", "crank", z, rotation=R).revolute("j2", "crank", "rod", z, (crank, 0, 0))
    b.prismatic("j3", "world", "slider", (1.0, 0.0, 0.0), rotation=R)
    b.frame("tip", "rod", (rod, 0, 0))
    b.loop("tip", "slider", str(rng.choice(("revolute", "spherical"))), name="loop")
    special = []
    if rod == crank:
        for d in (0.0, 1e-9, 1e-6, 1e-4, _near(rng)):
            special.append(np.array([np.pi / 2 + d, np.pi, 0.0]))
            special.append(np.array([np.pi / 2 + d, np.pi - 2 * d, -2 * crank * np.sin(d)]))
    return ClosedCase("slider-crank", b.build(), size, mass, None, special)


def five_bar(rng, size, mass) -> ClosedCase:
    """Two arms of two links with their tips on one hinge; sometimes all links can be in line."""
    R, z = _plane(rng), (0.0, 0.0, 1.0)
    a, c, e, g = size * rng.uniform(0.5, 1.0, 4)
    in_line = rng.uniform() < 0.4 and a + c - e + g > 0.2 * size
    base = a + c - e + g if in_line else size * rng.uniform(0.2, 1.0)
    b = sl.Builder("five bar", gravity=9.81 * direction(rng))
    for name in ("l1", "l2", "r1", "r2"):
        _body(b, name, rng, mass, size, 2.0)
    b.revolute("j1", "world", "l1", z, rotation=R).revolute("j2", "l1", "l2", z, (a, 0, 0))
    b.revolute("j3", "world", "r1", z, R @ (base, 0.0, 0.0), R).revolute("j4", "r1", "r2", z, (e, 0, 0))
    b.frame("left", "l2", (c, 0, 0)).frame("right", "r2", (g, 0, 0))
    b.loop("left", "right", str(rng.choice(("revolute", "spherical"))), name="loop")
    special = [np.array([0.0, 0.0, 0.0, np.pi])] if in_line else []
    return ClosedCase("five-bar", b.build(), size, mass, None, special)


def bennett(rng, size, mass) -> ClosedCase:
    """Bennett's linkage: four hinges in space, over-constrained by three, and it moves."""
    alpha = rng.uniform(0.3, 1.2)
    beta = rng.uniform(0.3, 1.2)
    first, second = size * np.sin(alpha), size * np.sin(beta)
    b = sl.Builder("bennett", gravity=9.81 * direction(rng))
    place, turn = np.zeros(3), _plane(rng)
    up = "world"
    sides = ((first, alpha), (second, beta), (first, alpha), (second, beta))
    for k in range(3):
        _body(b, f"b{k}", rng, mass, size)
        b.revolute(f"j{k}", up, f"b{k}", "z", place, turn)
        length, twist = sides[k]
        place, turn, up = np.array([length, 0.0, 0.0]), _about_x(twist), f"b{k}"
    length, twist = sides[3]
    start = _plane_of(b)
    b.frame("end", "b2", place, turn)
    # the last hinge joins the end of the third link to the world, where the fourth link would end
    back = _about_x(twist).T
    b.frame("home", "world", start @ (back @ np.array([-length, 0.0, 0.0])), start @ back)
    b.loop("home", "end", "revolute", name="loop")
    return ClosedCase("bennett", b.build(), size, mass)


def _about_x(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def _plane_of(b) -> np.ndarray:
    return np.array(b._joints[0].placement.rotation)


def arms(rng, size, mass) -> ClosedCase:
    """Two or three arms that hold a free body, each by a closure of its own kind."""
    b = sl.Builder("arms", gravity=9.81 * direction(rng))
    _body(b, "object", rng, mass, size)
    b.free("floating", "world", "object")
    count = int(rng.integers(2, 4))
    for arm in range(count):
        up = "world"
        for k in range(int(rng.integers(2, 5 if count == 2 else 4))):
            name = f"a{arm}{k}"
            _body(b, name, rng, mass, size)
            kind = joint_kind(
                str(rng.choice(("revolute", "revolute", "revolute", "universal", "prismatic"))), rng, size
            )
            b.joint(f"j{name}", kind, up, name, size * rng.uniform(-1.0, 1.0, 3), rotation(rng))
            up = name
    model = b.build()
    q = _state(model, rng, size)
    tips = [[x.name for x in model.bodies if x.name.startswith(f"a{arm}")][-1] for arm in range(count)]
    for k, tip in enumerate(tips):
        name = str(rng.choice(("spherical", "fixed", "revolute", "soft_finger", "general", "universal")))
        ends = (tip, "object") if rng.uniform() < 0.7 else ("object", tip)
        model = tied(model, q, *ends, name, rng, size, f"grip{k}")
    return ClosedCase("arms", model, size, mass, q[:, None])


def plate(rng, size, mass) -> ClosedCase:
    """A plate on three equal rods: redundant where it translates, not where it has turned."""
    R = _plane(rng)
    b = sl.Builder("plate", gravity=9.81 * direction(rng))
    _body(b, "plate", rng, mass, size)
    b.planar("plane", "world", "plate", axis="z", rotation=R)
    angles = 2 * np.pi * np.arange(3) / 3 + rng.uniform(0, 1)
    for i, x in enumerate(angles):
        p = size * np.array([np.cos(x), np.sin(x), 0.0])
        b.frame(f"w{i}", "world", R @ p).frame(f"p{i}", "plate", p)
    rod = size * rng.uniform(0.3, 0.8)
    for i in range(3):
        b.loop(f"w{i}", f"p{i}", sl.joints.Distance(rod), name=f"rod{i}")
    turned = np.array([2 * np.arcsin(rod / (2 * size)), 0.0, 0.0])
    return ClosedCase("plate on rods", b.build(), size, mass, None, [turned, -turned])


def platform(rng, size, mass) -> ClosedCase:
    """A free platform on four to six rods of fixed length."""
    b = sl.Builder("platform", gravity=9.81 * direction(rng))
    _body(b, "plate", rng, mass, size)
    model = b.free("floating", "world", "plate").build()
    q = _state(model, rng, size)
    for k in range(int(rng.integers(3, 7))):
        model = tied(model, q, "world", "plate", "distance", rng, size, f"rod{k}")
    return ClosedCase("platform", model, size, mass, q[:, None])


def rail(rng, size, mass) -> ClosedCase:
    """A four-bar whose base slides far along a rail before it closes; in line there."""
    R, z = _plane(rng), (0.0, 0.0, 1.0)
    far = size * 10.0 ** rng.uniform(0.0, 2.5)
    crank, coupler, ground = size * rng.uniform(0.5, 1.0, 3)
    rocker = crank + coupler - ground if rng.uniform() < 0.5 else size * rng.uniform(0.5, 1.0)
    b = sl.Builder("rail", gravity=9.81 * direction(rng))
    for name in ("base", "crank", "coupler", "rocker"):
        _body(b, name, rng, mass, size)
    b.prismatic("slide", "world", "base", (1.0, 0.0, 0.0), rotation=R)
    b.revolute("j1", "base", "crank", z).revolute("j2", "crank", "coupler", z, (crank, 0, 0))
    b.revolute("j3", "base", "rocker", z, (ground, 0, 0))
    b.frame("tip", "coupler", (coupler, 0, 0)).frame("end", "rocker", (rocker, 0, 0))
    b.frame("far", "world", R @ (far, 0.0, 0.0), R)
    b.loop("tip", "end", "revolute", name="loop")
    b.loop("far", "base", sl.joints.Planar((1.0, 0.0, 0.0)), name="stop")
    start = np.array([far, 0.5, 0.5, 0.5])
    special = [np.array([far, 0.0, 0.0, 0.0])] if rocker == crank + coupler - ground else []
    return ClosedCase("rail", b.build(), size, mass, start[:, None], special)


def geared(rng, size, mass) -> ClosedCase:
    """A chain with gears between its joints, sometimes with a joint that is held, sometimes closed by a loop too."""
    b = sl.Builder("geared", gravity=9.81 * direction(rng))
    n, up = int(rng.integers(3, 6)), "world"
    for k in range(n):
        _body(b, f"b{k}", rng, mass, size, float(rng.choice((0.5, 3.0))))
        axis = direction(rng)
        b.revolute(f"j{k}", up, f"b{k}", axis, size * rng.uniform(-1.0, 1.0, 3), rotation(rng))
        up = f"b{k}"
    b.coupling("gear", f"j{n - 1}", "j0", float(rng.uniform(-3.0, 3.0)), 0.0, switchable=rng.uniform() < 0.3)
    model = b.build()
    q = _state(model, rng, size)
    q[n - 1] = model.couplings[0].ratio * q[0]
    if rng.uniform() < 0.4:
        model = model.with_coupling("j1", offset=q[1], switchable=rng.uniform() < 0.5, name="brake")
    if rng.uniform() < 0.5 and n > 3:
        model = tied(model, q, "world", f"b{n - 2}", "distance", rng, size, "rod")
    return ClosedCase("geared", model, size, mass, q[:, None])


THEMES = (
    anything,
    anything,
    anything,
    anything,
    four_bar,
    four_bar,
    slider_crank,
    five_bar,
    bennett,
    arms,
    plate,
    platform,
    rail,
    geared,
)
