"""Builder: a mechanism described part by part."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spanloop.errors import InputError, SpanloopWarning
from spanloop.flexible.beam import Beam
from spanloop.flexible.recipe import EXPECTED, Recipe
from spanloop.joints import (
    Cylindrical,
    Fixed,
    Free,
    General,
    Helical,
    JointKind,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from spanloop.joints.kind import checked_axis
from spanloop.model import user_input
from spanloop.model.contacts.contact_check import refuse_same_pairs
from spanloop.model.contacts.contact_input import GROUND, ContactSettings, Side, contact_of
from spanloop.model.exact_rotations import snap_axis, snap_rotation
from spanloop.model.flexible_bodies.flexible_parts import flexible_parts, refuse_offset, root_of
from spanloop.model.flexible_bodies.segments import segment_parts
from spanloop.model.inertia_check import check_inertias
from spanloop.model.model import Model
from spanloop.model.parts import Body, Coupling, Frame, Geometry, Inertia, Joint, Placement, has_motor
from spanloop.model.spanning_tree import Graph, check_cut_joints, origins, spanned
from spanloop.types import Floats3

if TYPE_CHECKING:
    from typing import Unpack

    from numpy.typing import ArrayLike

    Axis = str | Sequence[float]
    _Pose = tuple[ArrayLike, ArrayLike | None]
    _ChildPose = tuple[ArrayLike | None, ArrayLike | None]

_ORIGIN = (0.0, 0.0, 0.0)
_MOVED = "body {0!r}: its frame is at its joint {1!r} (child_position); the frame as described is {2!r}"
_AT_CHILD = ("child_position", "child_rotation")


class Builder:
    """Collects the parts of a model. Each method adds the part it is named after; `build` returns the Model.

    Every other method returns the builder itself, so that calls chain. Arguments that the methods share:

    position, rotation: where the joint is in its parent body (a frame: in its body). position (3,) [m]; rotation: None,
        roll pitch yaw (3,) [rad] (Rz(yaw) Ry(pitch) Rx(roll)), or a matrix (3, 3)
    child_position, child_rotation: where the joint is in its child body, if that is not at the child's origin; for
        example the second joint of a body, which closes a loop. At neutral coordinates both places coincide.
    All positions, centres and inertias are in the frame in which the builder describes a body. A model has each body's
        frame at the joint of the tree that carries it: where that joint has a child_position or child_rotation, the
        model describes the body from there, a note says so, and the frame "NAME::origin" is the builder's own.
    axis: "x", "-y", ... or (3,), in the joint's frame; of any length
    options: further settings of a joint, as in model.with_joint. limits=(lower, upper), or lower and upper [rad or m],
        speed [rad/s or m/s] and effort [N m or N] are limits, infinite for none; damping [N m s/rad or N s/m], friction
        [N m or N], armature [kg m² or kg], stiffness [N m/rad or N/m] and rest [rad or m] of a spring act at the joint;
        driven and actuated are booleans. Every joint but a free one is actuated by default. Numbers are for all DoF of
        the joint, sequences have one entry for each.

    >>> arm = sl.Builder("arm")
    >>> arm = arm.body("upper", mass=2.0, center=(0.25, 0, 0), inertia=(0.002, 0.04, 0.04))
    >>> arm = arm.body("fore", mass=1.0, center=(0.2, 0, 0), inertia=(0.001, 0.013, 0.013))
    >>> arm = arm.revolute("shoulder", "world", "upper", axis="y", lower=-1.5, upper=1.5)
    >>> arm = arm.revolute("elbow", "upper", "fore", axis="y", position=(0.5, 0, 0), damping=0.1)
    >>> model = arm.frame("tool", "fore", position=(0.4, 0, 0)).build()
    >>> model.nv, model.actuated
    (2, ('shoulder', 'elbow'))
    """

    def __init__(self, name: str = "model", gravity: ArrayLike = (0.0, 0.0, -9.81)) -> None:
        """name: of the model; gravity: (3,) [m/s²] in the world."""
        self.name = name
        self.gravity = user_input.three(gravity, f"model {name!r}: gravity")
        self._bodies: list[Body] = []
        self._joints: list[Joint] = []
        self._at_child: dict[str, Placement] = {}
        self._frames: list[Frame] = []
        self._couplings: list[Coupling] = []
        self._loops: list[dict[str, Any]] = []
        self._contacts: list[tuple[str, Side, Side, ContactSettings]] = []
        self._notes: list[str] = []
        self._flexible: dict[str, tuple[str, ...]] = {}  # nodes by body
        self._inner: set[str] = set()  # joints of segments

    # ---- bodies and frames

    def body(
        self,
        name: str,
        mass: float = 0.0,
        center: ArrayLike = _ORIGIN,
        inertia: ArrayLike = _ORIGIN,
        geometry: Geometry | Sequence[Geometry] = (),
        *,
        flexible: Recipe | None = None,
    ) -> Builder:
        """Add a body: its mass [kg], centre of mass (3,) [m] and inertia about it [kg m²], in the body's axes.

        inertia: 3 principal moments, 6 numbers xx xy xz yy yz zz, or a matrix (3, 3)
        geometry: one or several shapes, to be seen (Geometry), and of sl.contacts for collisions
        flexible: a beam or finite elements of sl.flexible instead of mass, center and inertia. Joints, loops and frames
            attach to its nodes, which are bodies too ("boom.root", "boom.tip"); "boom" itself is its root. Its modal
            coordinates are those of the joint "boom.modes"
        """
        if flexible is not None:
            return self._add_flexible(name, flexible, mass, center, inertia, geometry)
        owner = f"body {name!r}"
        moments = user_input.moments(inertia, owner)
        at = user_input.three(center, f"{owner}: center")
        given = [geometry] if isinstance(geometry, Geometry) else geometry
        if not isinstance(given, (list, tuple)):
            raise InputError(f"{owner}: geometry is {given!r}; expected shapes, as [sl.contacts.Sphere(0.02)]")
        shapes = tuple(user_input.shape(g, f"{owner}: a shape") for g in given)
        self._bodies.append(Body(name, Inertia(user_input.number(mass, f"{owner}: mass"), at, moments), shapes))
        return self

    def _add_flexible(
        self, name: str, beam: Recipe, mass: float, center: ArrayLike, inertia: ArrayLike, geometry: Any
    ) -> Builder:
        owner = f"body {name!r}"
        if not isinstance(beam, Recipe):
            raise InputError(f"{owner}: flexible is {beam!r:.60}; {EXPECTED}")
        if mass or center is not _ORIGIN or inertia is not _ORIGIN:
            what = "its beam gives" if isinstance(beam, Beam) else "its finite elements give"
            raise InputError(f"{owner}: {what} mass and inertia; leave mass, center and inertia out")
        if geometry:
            raise InputError(
                f"{owner}: a flexible body is drawn as its beam or surface; give shapes to bodies on its nodes"
            )
        bodies, joints = flexible_parts(name, beam)
        self._bodies += bodies
        self._joints += joints
        self._flexible[name] = tuple(f"{name}.{node}" for node in ("root", *(n for n, _ in beam.nodes)))
        return self

    def segments(self, name: str, beam: Beam, count: int) -> Builder:
        """Add a beam as `count` rigid segments with springs between them: simpler than modes, and slower to converge.

        Bodies "NAME.root" and "NAME.tip" are its ends, as those of a flexible body; "NAME" itself is its root, and its
        nodes are bodies too. It bends, twists and stretches in the directions of the beam's `modes`; their number does
        not matter. Its damping is the beam's for the first mode of a clamped beam, and grows with frequency.

        >>> beam = sl.flexible.beam(1.0, E=7e10, density=2700.0, section=sl.flexible.circle(0.01), modes={"y": 1})
        >>> arm = sl.Builder("arm").segments("boom", beam, 8).revolute("hinge", "world", "boom").build()
        >>> arm.nv, arm.frame("boom.tip").body
        (9, 'boom.tip')
        """
        if not isinstance(beam, Beam):
            raise InputError(f"segments of {name!r}: {beam!r} is no beam; expected one, as sl.flexible.beam(...)")
        bodies, joints = segment_parts(name, beam, count)
        self._inner |= {j.name for j in joints}
        self._bodies += bodies
        self._joints += joints
        self._flexible[name] = tuple(f"{name}.{node}" for node in ("root", *(n for n, _ in beam.nodes)))
        return self

    def frame(self, name: str, body: str, position: ArrayLike = _ORIGIN, rotation: ArrayLike | None = None) -> Builder:
        """Add a named frame, fixed to a body or to the world: its position (3,) [m] and rotation there."""
        self._frames.append(Frame(name, body, self._placement(position, rotation, f"frame {name!r}")))
        return self

    # ---- joints, one method for each kind

    def revolute(
        self,
        name: str,
        parent: str,
        child: str,
        axis: Axis = "z",
        position: ArrayLike = _ORIGIN,
        rotation: ArrayLike | None = None,
        *,
        child_position: ArrayLike | None = None,
        child_rotation: ArrayLike | None = None,
        **options: Any,
    ) -> Builder:
        """Add a hinge about an axis.

        position and rotation place the joint in the parent, child_position and child_rotation in the child (its origin
        by default); axis is in the joint's frame. Builder documents these and the options.
        """
        at, at_child = (position, rotation), (child_position, child_rotation)
        return self._add_joint(name, Revolute(_axis(axis, name)), parent, child, at, at_child, options)

    def prismatic(
        self,
        name: str,
        parent: str,
        child: str,
        axis: Axis = "z",
        position: ArrayLike = _ORIGIN,
        rotation: ArrayLike | None = None,
        *,
        child_position: ArrayLike | None = None,
        child_rotation: ArrayLike | None = None,
        **options: Any,
    ) -> Builder:
        """Add a slider along an axis; arguments as in revolute."""
        at, at_child = (position, rotation), (child_position, child_rotation)
        return self._add_joint(name, Prismatic(_axis(axis, name)), parent, child, at, at_child, options)

    def helical(
        self,
        name: str,
        parent: str,
        child: str,
        axis: Axis = "z",
        position: ArrayLike = _ORIGIN,
        rotation: ArrayLike | None = None,
        *,
        child_position: ArrayLike | None = None,
        child_rotation: ArrayLike | None = None,
        pitch: float,
        **options: Any,
    ) -> Builder:
        """Add a screw about an axis; pitch in metres per radian; arguments as in revolute."""
        kind = Helical(_axis(axis, name), user_input.number(pitch, f"joint {name!r}: pitch"))
        at, at_child = (position, rotation), (child_position, child_rotation)
        return self._add_joint(name, kind, parent, child, at, at_child, options)

    def cylindrical(
        self,
        name: str,
        parent: str,
        child: str,
        axis: Axis = "z",
        position: ArrayLike = _ORIGIN,
        rotation: ArrayLike | None = None,
        *,
        child_position: ArrayLike | None = None,
        child_rotation: ArrayLike | None = None,
        **options: Any,
    ) -> Builder:
        """Add a joint that rotates about an axis and slides along it; arguments as in revolute."""
        at, at_child = (position, rotation), (child_position, child_rotation)
        return self._add_joint(name, Cylindrical(_axis(axis, name)), parent, child, at, at_child, options)

    def universal(
        self,
        name: str,
        parent: str,
        child: str,
        axis: Axis = "x",
        second_axis: Axis = "y",
        position: ArrayLike = _ORIGIN,
        rotation: ArrayLike | None = None,
        *,
        child_position: ArrayLike | None = None,
        child_rotation: ArrayLike | None = None,
        **options: Any,
    ) -> Builder:
        """Add two hinges whose axes intersect, the first fixed in the parent; arguments as in revolute."""
        kind = Universal(_axis(axis, name), _axis(second_axis, name))
        at, at_child = (position, rotation), (child_position, child_rotation)
        return self._add_joint(name, kind, parent, child, at, at_child, options)

    def spherical(
        self,
        name: str,
        parent: str,
        child: str,
        position: ArrayLike = _ORIGIN,
        rotation: ArrayLike | None = None,
        *,
        child_position: ArrayLike | None = None,
        child_rotation: ArrayLike | None = None,
        **options: Any,
    ) -> Builder:
        """Add a ball joint; arguments as in revolute."""
        at, at_child = (position, rotation), (child_position, child_rotation)
        return self._add_joint(name, Spherical(), parent, child, at, at_child, options)

    def planar(
        self,
        name: str,
        parent: str,
        child: str,
        axis: Axis = "z",
        position: ArrayLike = _ORIGIN,
        rotation: ArrayLike | None = None,
        *,
        child_position: ArrayLike | None = None,
        child_rotation: ArrayLike | None = None,
        **options: Any,
    ) -> Builder:
        """Add a joint that moves in the plane whose normal is the axis; arguments as in revolute."""
        at, at_child = (position, rotation), (child_position, child_rotation)
        return self._add_joint(name, Planar(_axis(axis, name)), parent, child, at, at_child, options)

    def free(
        self,
        name: str,
        parent: str,
        child: str,
        position: ArrayLike = _ORIGIN,
        rotation: ArrayLike | None = None,
        *,
        child_position: ArrayLike | None = None,
        child_rotation: ArrayLike | None = None,
        **options: Any,
    ) -> Builder:
        """Add a joint with six DoF: the child floats. No motor, unless actuated=True. Arguments as in revolute."""
        at, at_child = (position, rotation), (child_position, child_rotation)
        return self._add_joint(name, Free(), parent, child, at, at_child, options)

    def fixed(
        self,
        name: str,
        parent: str,
        child: str,
        position: ArrayLike = _ORIGIN,
        rotation: ArrayLike | None = None,
        *,
        child_position: ArrayLike | None = None,
        child_rotation: ArrayLike | None = None,
        **options: Any,
    ) -> Builder:
        """Add a joint without DoF; arguments as in revolute."""
        at, at_child = (position, rotation), (child_position, child_rotation)
        return self._add_joint(name, Fixed(), parent, child, at, at_child, options)

    def general(
        self,
        name: str,
        parent: str,
        child: str,
        position: ArrayLike = _ORIGIN,
        rotation: ArrayLike | None = None,
        *,
        child_position: ArrayLike | None = None,
        child_rotation: ArrayLike | None = None,
        motion: tuple[tuple[float, ...], ...],
        constraint: tuple[tuple[float, ...], ...] = (),
        **options: Any,
    ) -> Builder:
        """Add a joint with any motion space that is constant in the child's axes: columns of six, angular first."""
        at, at_child = (position, rotation), (child_position, child_rotation)
        return self._add_joint(name, General(motion, constraint), parent, child, at, at_child, options)

    def joint(
        self,
        name: str,
        kind: JointKind | str,
        parent: str,
        child: str,
        position: ArrayLike = _ORIGIN,
        rotation: ArrayLike | None = None,
        *,
        child_position: ArrayLike | None = None,
        child_rotation: ArrayLike | None = None,
        **options: Any,
    ) -> Builder:
        """Add a joint of any kind; a kind given by name has its default axis.

        >>> cart = sl.Builder("cart").body("block", mass=1.0, inertia=(0.1, 0.1, 0.1))
        >>> cart.joint("rail", sl.joints.Prismatic("x"), "world", "block").build().nv
        1
        """
        at, at_child = (position, rotation), (child_position, child_rotation)
        return self._add_joint(
            name, user_input.joint_kind(kind, f"joint {name!r}"), parent, child, at, at_child, options
        )

    # ---- loops and couplings

    def loop(
        self,
        a: str,
        b: str,
        joint: str | JointKind = "fixed",
        *,
        name: str | None = None,
        switchable: bool = False,
        driven: bool = False,
    ) -> Builder:
        """Add a joint that closes a loop between two frames or bodies; arguments as in model.with_loop.

        >>> b = sl.Builder("tied").body("bar", mass=1.0, center=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
        >>> b = b.free("root", "world", "bar").frame("tip", "bar", position=(1.0, 0, 0))
        >>> [x.name for x in b.loop("tip", "world", "spherical", name="anchor").build().loops]
        ['anchor']
        """
        options = {"name": name, "switchable": switchable, "driven": driven}
        self._loops.append({"a": a, "b": b, "joint": joint, **options})
        return self

    def coupling(
        self,
        name: str,
        joint: str,
        source: str | None = None,
        ratio: float = 1.0,
        offset: float = 0.0,
        *,
        switchable: bool = False,
    ) -> Builder:
        """Add a gear: coordinate of `joint` = ratio · coordinate of `source` + offset [rad or m].

        Without a source the joint is held at the offset. switchable: only while active_loops= names the coupling.
        """
        self._couplings.append(user_input.coupling(name, joint, source, ratio, offset, switchable))
        return self

    def contact(self, name: str, a: Side, b: Side = GROUND, **settings: Unpack[ContactSettings]) -> Builder:
        """Add a contact of two shapes; arguments as in model.with_contact.

        >>> b = sl.Builder("ball").body("ball", mass=1.0, inertia=(0.004, 0.004, 0.004)).free("root", "world", "ball")
        >>> model = b.contact("bounce", ("ball", sl.contacts.Sphere(0.1)), restitution=0.5).build()
        >>> model.contacts[0].b.geometry.shape
        'plane'
        """
        self._contacts.append((name, a, b, settings))
        return self

    def note(self, text: str) -> Builder:
        """Add a note for users of the model; model.notes lists them."""
        self._notes.append(text)
        return self

    def build(self, cut: Sequence[str] = ()) -> Model:
        """Return the model, checked.

        Joints may form cycles: the spanning tree keeps the shortest way to each body, and the other joints become
        loops. cut: names of joints that become loops in any case.
        Warns of bodies whose frame is at a joint with a child_position: the one described is 'NAME::origin'.
        Raises ModelError for parts that form no mechanism, for inertias that no body can have, and for losses or limits
        of a joint that becomes a loop, which holds none.

        >>> b = sl.Builder("four bar")
        >>> for name, length in (("crank", 0.4), ("coupler", 1.0), ("rocker", 0.8)):
        ...     b = b.body(name, mass=1.0, center=(length / 2, 0, 0), inertia=(0.01, 0.1, 0.1))
        >>> b = b.revolute("a", "world", "crank", "y").revolute("b", "crank", "coupler", "y", (0.4, 0, 0))
        >>> b = b.revolute("c", "world", "rocker", "y", (0.9, 0, 0))
        >>> b = b.revolute("d", "rocker", "coupler", "y", (0.8, 0, 0), child_position=(1.0, 0, 0))
        >>> [x.name for x in b.build().loops], [x.name for x in b.build(cut=["b"]).loops]
        (['d'], ['b'])
        """
        joints, frames = self._on_roots()
        graph = Graph(self._bodies, joints, frames, self._at_child, self._inner)
        tree, loops = spanned(graph, cut)
        check_cut_joints(graph, [x.name for x in loops], cut)
        described = {f.body: f for f in origins(tree, self._at_child)}
        model = Model(
            self.name,
            tuple(tree.bodies),
            tuple(tree.joints),
            (*tree.frames, *described.values()),
            loops,
            couplings=tuple(self._couplings),
            gravity=self.gravity,
        )
        for loop in self._loops:
            loop = loop | {end: root_of(loop[end], self._flexible) for end in ("a", "b")}
            ends = {end: described[loop[end]].name for end in ("a", "b") if loop[end] in described}
            model = model.with_loop(**loop | {"name": loop["name"] or f"{loop['a']}_{loop['b']}"} | ends)
        contacts = [
            contact_of(model, name, _described(a, described), _described(b, described), settings)
            for name, a, b, settings in self._contacts
        ]
        moved = [_MOVED.format(f.body, j.name, f.name) for j in tree.joints if (f := described.get(j.child))]
        if moved:
            more = f" ({len(moved) - 1} more bodies likewise: model.notes)" if moved[1:] else ""
            warnings.warn(f"{moved[0]}, for poses and forces too{more}", SpanloopWarning, stacklevel=2)
        notes = (*self._notes, *moved, *check_inertias(model, strict=True))
        model = replace(model, contacts=tuple(contacts), notes=notes)
        refuse_same_pairs(model, contacts)
        return model

    def _add_joint(
        self,
        name: str,
        kind: JointKind,
        parent: str,
        child: str,
        at: _Pose,
        at_child: _ChildPose,
        options: dict[str, Any],
    ) -> Builder:
        """at, at_child: position and rotation of the joint in its parent and in its child (None: at the origin)."""
        owner = f"joint {name!r}"
        position, rotation = at_child
        if position is not None or rotation is not None:
            self._at_child[name] = self._placement(_ORIGIN if position is None else position, rotation, owner)
        given = {"actuated": has_motor(kind.name)} | {key: x for key, x in options.items() if x is not None}
        known = user_input.joint_settings(given, kind, owner, _AT_CHILD)
        kind = self._snapped_axes(kind, owner)
        self._joints.append(Joint(name, kind, parent, child, self._placement(*at, owner), **known))
        return self

    def _on_roots(self) -> tuple[list[Joint], list[Frame]]:
        """Joints and frames, with those that name a flexible body attached to its root."""
        if not self._flexible:
            return self._joints, self._frames
        joints, frames = [], []
        for j in self._joints:
            if j.kind.bends or j.kind.rides or j.name in self._inner:
                joints.append(j)
                continue
            if j.parent in self._flexible:
                refuse_offset(f"joint {j.name!r}", j.parent, j.placement.position, self._flexible[j.parent])
            if j.child in self._flexible and j.name in self._at_child:
                at = self._at_child[j.name].position
                refuse_offset(f"joint {j.name!r}", j.child, at, self._flexible[j.child])
            ends: dict[str, Any] = {end: root_of(getattr(j, end), self._flexible) for end in ("parent", "child")}
            joints.append(replace(j, **ends))
        for f in self._frames:
            if f.body in self._flexible:
                refuse_offset(f"frame {f.name!r}", f.body, f.placement.position, self._flexible[f.body])
            frames.append(replace(f, body=root_of(f.body, self._flexible)))
        return joints, frames

    def _placement(self, position: ArrayLike, rotation: ArrayLike | None, owner: str) -> Placement:
        matrix, changed = snap_rotation(user_input.rotation(rotation, owner))
        if changed:
            self.note(f"{owner}: rotation snapped to exact right angles")
        return Placement(matrix, user_input.three(position, f"{owner}: position"))

    def _snapped_axes(self, kind: JointKind, owner: str) -> JointKind:
        for field in ("axis", "second_axis"):
            if hasattr(kind, field):
                axis, changed = snap_axis(getattr(kind, field))
                kind = replace(kind, **{field: axis})  # type: ignore[type-var]
                if changed:
                    self.note(f"{owner}: {field} snapped to exact zeros")
        return kind


def _described(side: Side, described: Mapping[str, Frame]) -> Side:
    """A side with its shape in the frame in which the builder describes the body; described: frames that moved."""
    if isinstance(side, (tuple, list)) and len(side) == 2 and isinstance(side[1], Geometry) and side[0] in described:
        return (described[side[0]].name, side[1])
    return side


def _axis(axis: Axis, name: str) -> Floats3:
    return checked_axis(axis, f"joint {name!r}")
