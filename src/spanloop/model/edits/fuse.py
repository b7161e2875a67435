"""Fuse: bodies on fixed joints become part of their parents."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from spanloop.math.inertia import RigidInertia
from spanloop.math.vector3 import add_matrices, outer, scale_matrix
from spanloop.model.parts import Body, Frame, Inertia, Joint, Loop
from spanloop.model.poses import Hosts, hosts_of

if TYPE_CHECKING:
    from spanloop.model.model import Model


def fuse(model: Model) -> Model:
    """Return the model without fixed joints: each body on one becomes part of its parent.

    Inertia, geometry, frames, loops and children move to the parent body. A fused body stays a frame with its name, on
    which its contacts are. A body fixed to the world becomes part of it, and its mass is dropped. A loop whose ends are
    then on one body is removed, with a note.

    >>> model = sl.zoo.puma().lock("joint5", "joint6").fuse()
    >>> model.n_bodies, model.frame("link6").body
    (4, 'link4')
    """
    hosts = hosts_of(model.joints)
    guests: dict[str, list[Body]] = {}
    for b in model.bodies:
        if hosts[b.name][0] != b.name:
            guests.setdefault(hosts[b.name][0], []).append(b)
    child = {j.name: j.child for j in model.joints if hosts[j.child][0] != j.child}  # of fixed joints
    loops = [_moved_loop(x, hosts) for x in model.loops]
    return replace(
        model,
        bodies=tuple(_host(b, guests.get(b.name, []), hosts) for b in model.bodies if hosts[b.name][0] == b.name),
        joints=tuple(_moved_joint(j, hosts) for j in model.joints if j.name not in child),
        frames=_moved_frames(model, hosts),
        loops=tuple(x for x in loops if x.a != x.b),
        actuators=tuple(a for a in model.actuators if a.joint not in child),
        sensors=tuple(replace(s, at=child.get(s.at, s.at)) for s in model.sensors),
        notes=(*model.notes, *(_removed(x) for x in loops if x.a == x.b)),
    )


def centered(inertia: RigidInertia) -> Inertia:
    """Mass, centre and moments about the centre of an inertia that is kept about the origin."""
    m, h = inertia.mass, inertia.first
    if m == 0.0:
        about = RigidInertia(0.0, second=inertia.second)
        center = (0.0, 0.0, 0.0)
    else:
        about = RigidInertia(0.0, second=add_matrices(inertia.second, scale_matrix(-1.0 / m, outer(h, h))))
        center = (h[0] / m, h[1] / m, h[2] / m)
    i = about.inertia()
    return Inertia(m, center, (i[0][0], i[0][1], i[0][2], i[1][1], i[1][2], i[2][2]))


def _host(b: Body, guests: list[Body], hosts: Hosts) -> Body:
    """A body with all that has become part of it."""
    geometry = [replace(shape, placement=hosts[g.name][1] @ shape.placement) for g in guests for shape in g.geometry]
    heavy = [g for g in guests if g.inertia.mass or any(g.inertia.moments)]
    inertia = b.inertia
    if heavy:
        total = inertia.rigid()
        for g in heavy:
            total = total + g.inertia.rigid().carried(hosts[g.name][1].transform())
        inertia = centered(total)
    return replace(b, inertia=inertia, geometry=(*b.geometry, *geometry))


def _moved_frames(model: Model, hosts: Hosts) -> tuple[Frame, ...]:
    """The model's frames on their hosts, and one for each fused body whose name no frame has."""
    known = {f.name for f in model.frames}
    moved = [replace(f, body=hosts[f.body][0], placement=hosts[f.body][1] @ f.placement) for f in model.frames]
    fused = [name for name, (host, _) in hosts.items() if name != host and name not in known]
    return (*moved, *(Frame(name, *hosts[name]) for name in fused))


def _moved_joint(j: Joint, hosts: Hosts) -> Joint:
    parent, placement = hosts[j.parent]
    return replace(j, parent=parent, placement=placement @ j.placement)


def _moved_loop(x: Loop, hosts: Hosts) -> Loop:
    (a, in_a), (b, in_b) = hosts[x.a], hosts[x.b]
    return replace(x, a=a, b=b, placement_a=in_a @ x.placement_a, placement_b=in_b @ x.placement_b)


def _removed(x: Loop) -> str:
    return f"loop {x.name!r}: removed; both its ends are now on {x.a!r}"
