"""Closure error, Jacobian and bias of all closure rows, and which states count as closed.

Rows are written in the axes of each closure's child frame, at its origin, whatever the state; gears come last.

| symbol | shape | meaning |
|---|---|---|
| e | (n_rows,) | closure error [rad or m]; 0 for rows that constrain velocities only |
| J | (n_rows, nv) | its rate is J v |
| γ | (n_rows,) | its second derivative is J a + γ |
"""

from __future__ import annotations

from spanloop.algorithms.tree.energy import fly
from spanloop.algorithms.tree.kinematics import velocity_product
from spanloop.algorithms.tree.link_motion import placed
from spanloop.math.scalar import where
from spanloop.math.spatial import Field, Force, Motion, Transform, coriolis, power
from spanloop.math.vector3 import ZERO3, add, cross, times, total
from spanloop.sweeps import Program, Values, outward, walk
from spanloop.topology.tree_paths import between, relative_pose

OPEN = 1e-3  # a loop with an error above this [rad, or of its length] is open: it has no meaningful accelerations


def closure_error(mechanism) -> Program:
    """e (n_rows,) at q."""

    def result(m, here, world):
        return error_rows(m, here)

    return Program("closure_error", ("q",), placed(()), result, (mechanism.n_rows,))


def error_rows(m, here) -> list:
    """e, row by row; after the sweep `placed`."""
    out = [0.0 if x is None else x for c in m.closures for x in c.kind.closure_error(relative_pose(m, here, c))]
    return out + [g.along([here[i].q[0] for i, _ in g.ends]) - g.offset for g in m.gears]


def closure_poses(mechanism, closure) -> Program:
    """Pose (3, 4) of a closure's child frame in its parent frame, at q."""

    def result(m, here, world):
        x = relative_pose(m, here, closure)
        return [y for row, p in zip(x.rotation.matrix(), x.translation, strict=True) for y in (*row, p)]

    return Program("closure_pose", ("q",), placed(()), result, (3, 4))


def openness(m, here, world) -> list:
    """Pairs of which the first must be less: the sum of the squares of all closure errors and OPEN²; 0 and the cosine
    between the frames of each closure, which must not face away. Couplings are left out: they constrain rates.
    """
    squares = squared_errors(m, here, world)
    facing = [(0.0, _facing(c, relative_pose(m, here, c).rotation.matrix())) for c in m.closures if not c.switchable]
    return ([(total(squares), OPEN**2)] if squares else []) + facing


def squared_errors(m, here, world) -> list:
    """The squares of the closure errors that the closures have, lengths as shares of their loop's length."""
    mask = closed_masks(m, world)
    squares = []
    for c in m.closures:
        own: dict[str, list] = {"moment": [], "force": []}
        for k, (r, x) in enumerate(zip(c.rows, c.kind.closure_error(relative_pose(m, here, c)), strict=True)):
            if x is not None:
                own[c.row_kind(k)].append(x * x * mask[r] if r in mask else x * x)
        squares += own["moment"]
        squares += [total(own["force"]) * (1.0 / (c.length * c.length))] if own["force"] else []
    return squares


def extra_inputs(m) -> dict[str, int]:
    """Inputs of the dynamics that belong to closures, and their sizes: `active` for switchable, `given` for driven
    ones."""
    sizes = {"active": len(m.switched_rows), "given": len(m.given_rows)}
    return {name: size for name, size in sizes.items() if size}


def given_accelerations(m, world) -> dict:
    """The given acceleration of each row of a driven closure; none in corrections, which have no such input."""
    return dict(zip(m.given_rows, getattr(world, "given", ()), strict=False)) if m.given_rows else {}


def masks(m, world) -> dict:
    """1 or 0 for each row of a closure or gear that can be switched: whether it carries a force."""
    return {r: where(x > 0.5, 1.0, 0.0) for r, x in _switches(m, world)}


def closed_masks(m, world) -> dict:
    """1 or 0 for each row of a closure or gear that can be switched: whether it is closed."""
    return {r: x * x for r, x in _switches(m, world)}


def _switches(m, world) -> list[tuple]:
    """The rows that can be switched with their entries of `active`: 1, 0, or −1 for an idle row of a closed closure."""
    return list(zip(m.switched_rows, world.active, strict=True)) if m.switched_rows else []


def closure_facing(mechanism) -> Program:
    """Cosines (n_closures,) of the angles by which the frames of each closure miss each other as far as it holds them.

    An error is the sine of that angle: frames that face away from each other have none, yet are not closed.
    """

    def result(m, here, world):
        return [_facing(c, relative_pose(m, here, c).rotation.matrix()) for c in m.closures]

    return Program("closure_facing", ("q",), placed(()), result, (len(mechanism.closures),))


def _facing(closure, r):
    errors = closure.kind.closure_error(closure.kind.closing_pose())
    moments = sum(closure.row_kind(k) == "moment" and x is not None for k, x in enumerate(errors))
    if moments < 2:
        return 1.0
    return r[2][2] if moments == 2 else 0.5 * (r[0][0] + r[1][1] + r[2][2] - 1.0)


def closure_jacobian(mechanism) -> Program:
    """J (n_rows, nv) at q."""

    def result(m, here, world):
        return [x for row in jacobian_rows(m, here) for x in row]

    return Program("closure_jacobian", ("q",), placed(()), result, (mechanism.n_rows, mechanism.nv))


def jacobian_rows(m, here) -> list[list]:
    """J, row by row; after the sweep `placed`."""
    J = [[0.0] * m.nv for _ in range(m.n_rows)]
    for c in m.closures:
        for column, row in _rates(m, here, c):
            for r, x in zip(c.rows, row, strict=True):
                J[r][column] = J[r][column] + x
    for g in m.gears:
        for i, factor in g.ends:
            J[g.row][m.links[i].v.start] = factor
    return J


def closure_rates(mechanism) -> Program:
    """J v (n_rows,) at q, v."""

    def result(m, here, world):
        return row_rates(m, here)

    sweeps = (*placed(()), outward(velocity_product, field=Field(ZERO3)), outward(fly, V=Motion()), outward(_moving))
    return Program("closure_rates", ("q", "v"), sweeps, result, (mechanism.n_rows,))


def _moving(link, here, parent) -> Values:
    return Values(moving=here.v)


def row_rates(m, here) -> list:
    """J v, row by row; after sweeps that store V and field, and the joints' rates as `moving`."""
    out = []
    for c in m.closures:
        x = relative_pose(m, here, c)
        velocity = _at_anchor(here, c.b).velocity - _seen_from_child(x, _at_anchor(here, c.a).velocity)
        out += [power(velocity, w) for w in c.kind.closure_space(x)]
    return out + [g.along([here[i].moving[0] for i, _ in g.ends]) for g in m.gears]


def loop_wrenches(mechanism, q, forces) -> dict[str, list]:
    """What forces (n_rows,) of rows in the closures' axes exert at q, on floats or traced scalars.

    By loop [torque; force] (6) on its body b, at the user's child frame in the axes of that frame; by coupling one
    number.
    """

    def result(m, here, world):
        return [_wrench(m, here, c, [forces[r] for r in c.rows]) for c in m.closures]

    found = walk(
        Program("loop_wrenches", ("q",), placed(()), result, (len(mechanism.closures), 6)), mechanism, {"q": q}
    )
    wrenches = {c.name: six for c, six in zip(mechanism.closures, found, strict=True)}
    return wrenches | {g.name: [forces[g.row]] for g in mechanism.gears}


def _wrench(m, here, c, forces: list) -> list:
    """The sum of a closure's rows, each times its force, in the axes of the user's child frame."""
    rows = [tuple(w * f) for w, f in zip(c.kind.closure_space(relative_pose(m, here, c)), forces, strict=True)]
    six = [total(column) for column in zip(*rows, strict=True)] or [0.0] * 6
    return [*times(c.child_axes, tuple(six[:3])), *times(c.child_axes, tuple(six[3:]))]


def closure_bias(mechanism) -> Program:
    """γ (n_rows,) at q, v."""

    def result(m, here, world):
        out = [
            x
            for c in m.closures
            for x in _bias(c, relative_pose(m, here, c), *(_at_anchor(here, y) for y in (c.a, c.b)))
        ]
        return out + [0.0] * len(m.gears)

    sweeps = (*placed(()), outward(velocity_product, field=Field(ZERO3)), outward(fly, V=Motion()))
    return Program("closure_bias", ("q", "v"), sweeps, result, (mechanism.n_rows,))


def loop_bias(m, here) -> list:
    """γ (n_rows,), each closure's from the motion of its loop on the link where its two paths meet, taken at rest; a
    flexible body bends there all the same."""
    out = []
    for c in m.closures:
        rates = here[c.meets].v if c.meets >= 0 and m.links[c.meets].kind.bends else ()
        ends = ((c.a, between(m, here, c.b.link, c.a.link)[1]), (c.b, between(m, here, c.a.link, c.b.link)[1]))
        moving = []
        for anchor, links in ends:
            last = Values(field=Field(ZERO3, rates=rates), V=Motion(modal=rates))
            for i in links:
                link = m.links[i]
                last = Values(field=velocity_product(link, here[i], last).field, V=fly(link, here[i], last).V)
            moving.append(_moved_anchor(anchor, last))
        out += _bias(c, relative_pose(m, here, c), *moving)
    return out + [0.0] * len(m.gears)


def _bias(c, x: Transform, a: _Moving, b: _Moving) -> list:
    """γ of the rows of a closure, from the motion of its two frames."""
    relative = b.velocity - _seen_from_child(x, a.velocity)
    # of A, at the point where B's origin is now: its own acceleration and what its spin adds there
    carried = Field(a.velocity.angular, a.acceleration.angular, a.acceleration.linear)
    turn = x.rotation.T
    at_point = Motion(turn @ a.acceleration.angular, turn @ carried.at(x.translation))
    extra = coriolis(turn @ a.velocity.angular, relative)
    rates = c.kind.closure_space_rate(x, relative)
    return [
        power(b.acceleration - at_point - extra, w) + rate
        for w, rate in zip(c.kind.closure_space(x), rates, strict=True)
    ]


def _rates(m, here, c):
    """For every DoF on the closure's paths: its number, and the rates of all rows that it causes.

    Wrenches of the rows are carried inward from both frames, so that every DoF costs the same on any path.
    """
    to_b, to_a = between(m, here, c.a.link, c.b.link)[1], between(m, here, c.b.link, c.a.link)[1]
    x = relative_pose(m, here, c)
    on_b = c.kind.switched().closure_space(x)  # at B's origin in B's axes; finite, for searches from any state
    yield from _rates_toward(m, here, c, to_b, [c.b.transform() @ w for w in on_b])
    yield from _rates_toward(m, here, c, to_a, [c.a.transform() @ (x @ -w) for w in on_b])


def _rates_toward(m, here, c, links, wrenches: list[Force]):
    """Of the joints of all these links, with wrenches on the last of them, and of the modes of a flexible body at which
    the paths meet: they move its nodes against each other."""
    for i in reversed(links):
        for k, s in enumerate(here[i].S):
            yield m.links[i].v.start + k, [power(s, w) for w in wrenches]
        wrenches = [here[i].X @ w for w in wrenches]
    if c.meets >= 0 and m.links[c.meets].kind.bends:
        for k, s in enumerate(here[c.meets].S):
            yield m.links[c.meets].v.start + k, [power(s, w) for w in wrenches]


def _seen_from_child(x: Transform, motion: Motion) -> Motion:
    """A motion of frame A, at A's origin in A's axes, at B's origin in B's axes."""
    return x.T @ motion


class _Moving:
    """Velocity and classical acceleration of an anchor, in its own axes."""

    def __init__(self, velocity: Motion, acceleration: Motion):
        self.velocity, self.acceleration = velocity, acceleration


def _at_anchor(here, anchor) -> _Moving:
    return _Moving(Motion(), Motion()) if anchor.link < 0 else _moved_anchor(anchor, here[anchor.link])


def _moved_anchor(anchor, link) -> _Moving:
    """The motion of an anchor on a link with the velocity V and the accelerations `field`."""
    x, V, field = anchor.transform(), link.V, link.field
    turn = x.rotation.T
    velocity = Motion(turn @ V.angular, turn @ add(V.linear, cross(V.angular, x.translation)))
    return _Moving(velocity, Motion(turn @ field.alpha, turn @ field.at(x.translation)))
