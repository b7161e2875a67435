"""Builder: a mechanism described part by part. A two-link arm with a tool:

arm = Builder("arm")
arm.body("upper", mass=2.0, center=(0.25, 0, 0), inertia=rod(2.0, 0.5))
arm.body("fore", mass=1.0, center=(0.2, 0, 0), inertia=rod(1.0, 0.4))
arm.revolute("shoulder", "world", "upper", axis="y")
arm.revolute("elbow", "upper", "fore", axis="y", position=(0.5, 0, 0), damping=0.1)
arm.frame("tool", "fore", position=(0.4, 0, 0))
model = arm.build()
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from spanloop.errors import InputError, nearest
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
from spanloop.model.exact_rotations import snap_axis, snap_rotation
from spanloop.model.inertia_check import check_inertias
from spanloop.model.model import Model
from spanloop.model.parts import Body, Coupling, Frame, Geometry, Inertia, Joint, Placement
from spanloop.model.spanning_tree import Graph, spanned
from spanloop.types import Floats3

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    Axis = str | Sequence[float]

_ORIGIN = (0.0, 0.0, 0.0)
_STRUCTURE = {"name", "kind", "parent", "child", "placement"}
OPTIONS = tuple(f.name for f in fields(Joint) if f.name not in _STRUCTURE)


class Builder:
    """Collects the parts of a model. Each method adds the part it is named after; `build` returns the Model.

    Every other method returns the builder itself, so that calls chain. Arguments that the methods share:

    position: (3,) [m], in the axes of the parent body (of a frame: of its body)
    rotation: None, roll pitch yaw (3,) [rad] (Rz(yaw) Ry(pitch) Rx(roll)), or a matrix (3, 3)
    axis: "x", "-y", ... or (3,), in the joint's frame; of any length
    options: further fields of a joint. lower, upper [rad or m], speed [rad/s or m/s] and effort [N m or N] are limits;
        damping [N m s/rad or N s/m], friction [N m or N], armature [kg m² or kg], stiffness [N m/rad or N/m] and rest
        [rad or m] of a spring act at the joint; driven and actuated are booleans. Numbers are for all DoF of the joint,
        sequences have one entry for each.
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
        self._notes: list[str] = []

    # ---- bodies and frames

    def body(
        self,
        name: str,
        mass: float = 0.0,
        center: ArrayLike = _ORIGIN,
        inertia: ArrayLike = _ORIGIN,
        geometry: Sequence[Geometry] = (),
    ) -> Builder:
        """Add a body: its mass [kg], centre of mass (3,) [m] and inertia about it [kg m²], in the body's axes.

        inertia: 3 principal moments, 6 numbers xx xy xz yy yz zz, or a matrix (3, 3); geometry: shapes for viewers.
        """
        owner = f"body {name!r}"
        moments = user_input.moments(inertia, owner)
        at = user_input.three(center, f"{owner}: center")
        self._bodies.append(
            Body(name, Inertia(user_input.number(mass, f"{owner}: mass"), at, moments), tuple(geometry))
        )
        return self

    def frame(self, name: str, body: str, position: ArrayLike = _ORIGIN, rotation: ArrayLike | None = None) -> Builder:
        """Add a named frame, fixed to a body or to the world."""
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
        **options: Any,
    ) -> Builder:
        """Add a hinge about an axis."""
        return self.joint(name, Revolute(_axis(axis, name)), parent, child, position, rotation, **options)

    def prismatic(
        self,
        name: str,
        parent: str,
        child: str,
        axis: Axis = "z",
        position: ArrayLike = _ORIGIN,
        rotation: ArrayLike | None = None,
        **options: Any,
    ) -> Builder:
        """Add a slider along an axis."""
        return self.joint(name, Prismatic(_axis(axis, name)), parent, child, position, rotation, **options)

    def helical(
        self,
        name: str,
        parent: str,
        child: str,
        axis: Axis = "z",
        position: ArrayLike = _ORIGIN,
        rotation: ArrayLike | None = None,
        *,
        pitch: float,
        **options: Any,
    ) -> Builder:
        """Add a screw about an axis; pitch in metres per radian."""
        kind = Helical(_axis(axis, name), user_input.number(pitch, f"joint {name!r}: pitch"))
        return self.joint(name, kind, parent, child, position, rotation, **options)

    def cylindrical(
        self,
        name: str,
        parent: str,
        child: str,
        axis: Axis = "z",
        position: ArrayLike = _ORIGIN,
        rotation: ArrayLike | None = None,
        **options: Any,
    ) -> Builder:
        """Add a joint that rotates about an axis and slides along it."""
        return self.joint(name, Cylindrical(_axis(axis, name)), parent, child, position, rotation, **options)

    def universal(
        self,
        name: str,
        parent: str,
        child: str,
        axis: Axis = "x",
        second_axis: Axis = "y",
        position: ArrayLike = _ORIGIN,
        rotation: ArrayLike | None = None,
        **options: Any,
    ) -> Builder:
        """Add two hinges whose axes intersect, the first fixed in the parent, the second in the child."""
        kind = Universal(_axis(axis, name), _axis(second_axis, name))
        return self.joint(name, kind, parent, child, position, rotation, **options)

    def spherical(
        self,
        name: str,
        parent: str,
        child: str,
        position: ArrayLike = _ORIGIN,
        rotation: ArrayLike | None = None,
        **options: Any,
    ) -> Builder:
        """Add a ball joint."""
        return self.joint(name, Spherical(), parent, child, position, rotation, **options)

    def planar(
        self,
        name: str,
        parent: str,
        child: str,
        axis: Axis = "z",
        position: ArrayLike = _ORIGIN,
        rotation: ArrayLike | None = None,
        **options: Any,
    ) -> Builder:
        """Add a joint that moves in the plane whose normal is the axis."""
        return self.joint(name, Planar(_axis(axis, name)), parent, child, position, rotation, **options)

    def free(
        self,
        name: str,
        parent: str,
        child: str,
        position: ArrayLike = _ORIGIN,
        rotation: ArrayLike | None = None,
        **options: Any,
    ) -> Builder:
        """Add a joint with six DoF: the child floats."""
        return self.joint(name, Free(), parent, child, position, rotation, **options)

    def fixed(
        self,
        name: str,
        parent: str,
        child: str,
        position: ArrayLike = _ORIGIN,
        rotation: ArrayLike | None = None,
        **options: Any,
    ) -> Builder:
        """Add a joint without DoF."""
        return self.joint(name, Fixed(), parent, child, position, rotation, **options)

    def general(
        self,
        name: str,
        parent: str,
        child: str,
        position: ArrayLike = _ORIGIN,
        rotation: ArrayLike | None = None,
        *,
        motion: tuple[tuple[float, ...], ...],
        constraint: tuple[tuple[float, ...], ...] = (),
        **options: Any,
    ) -> Builder:
        """Add a joint with any motion space that is constant in the child's axes: columns of six, angular first."""
        return self.joint(name, General(motion, constraint), parent, child, position, rotation, **options)

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

        position, rotation: of the joint in the parent; child_position, child_rotation: in the child, if not at its
        origin.
        """
        owner = f"joint {name!r}"
        if child_position is not None or child_rotation is not None:
            place = self._placement(_ORIGIN if child_position is None else child_position, child_rotation, owner)
            self._at_child[name] = place
        for option in options:
            if option not in OPTIONS:
                raise InputError(f"{owner}: there is no option {option!r}; {nearest(option, OPTIONS)}")
        if isinstance(options.get("rest"), (int, float)):
            options["rest"] = (options["rest"],)
        kind = self._snapped_axes(user_input.joint_kind(kind, owner), owner)
        placement = self._placement(position, rotation, owner)
        try:
            self._joints.append(Joint(name, kind, parent, child, placement, **options))
        except (TypeError, ValueError) as error:
            raise InputError(f"{owner}: an option is not a number or a sequence of numbers ({error})") from None
        return self

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
        """Add a joint that closes a loop between two frames or bodies; arguments as in model.with_loop."""
        options = {"name": name, "switchable": switchable, "driven": driven}
        self._loops.append({"a": a, "b": b, "joint": joint, **options})
        return self

    def coupling(self, name: str, joint: str, source: str, ratio: float = 1.0, offset: float = 0.0) -> Builder:
        """Add a gear: coordinate of `joint` = ratio · coordinate of `source` + offset [rad or m]."""
        ratio = user_input.number(ratio, f"coupling {name!r}: ratio")
        offset = user_input.number(offset, f"coupling {name!r}: offset")
        self._couplings.append(Coupling(name, joint, source, ratio, offset))
        return self

    def note(self, text: str) -> Builder:
        """Add a note for users of the model; model.notes lists them."""
        self._notes.append(text)
        return self

    def build(self, cut: Sequence[str] = ()) -> Model:
        """Return the model, checked.

        Joints may form cycles: the spanning tree keeps the shortest way to each body, and the other joints become
        loops. cut: names of joints that become loops in any case.
        Raises ModelError for parts that form no mechanism and for inertias that no body can have.
        """
        tree, loops = spanned(Graph(self._bodies, self._joints, self._frames, self._at_child), cut)
        model = Model(
            self.name,
            tuple(tree.bodies),
            tuple(tree.joints),
            tuple(tree.frames),
            loops,
            couplings=tuple(self._couplings),
            gravity=self.gravity,
        )
        for loop in self._loops:
            model = model.with_loop(**loop)
        return replace(model, notes=(*self._notes, *check_inertias(model, strict=True)))

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


def _axis(axis: Axis, name: str) -> Floats3:
    return checked_axis(axis, f"joint {name!r}")
