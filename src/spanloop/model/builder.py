"""Builder: a mechanism said part by part. A two-link arm with a tool:

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
from spanloop.model import edits, user_input
from spanloop.model.files.inertia_check import judge
from spanloop.model.model import Model
from spanloop.model.parts import Body, Coupling, Frame, Geometry, Inertia, Joint, Placement
from spanloop.model.snap import snap_axis, snap_rotation
from spanloop.model.spanning_tree import Graph, spanned

_HERE = (0.0, 0.0, 0.0)
_STRUCTURE = {"name", "kind", "parent", "child", "placement"}
OPTIONS = tuple(f.name for f in fields(Joint) if f.name not in _STRUCTURE)


class Builder:
    """Collects the parts of a model; `build` gives the Model, every other method the builder itself.

    Positions are in metres, in the axes of the parent body (or of the frame's body). A rotation is None,
    roll, pitch and yaw [rad] (Rz(yaw) Ry(pitch) Rx(roll)) or a 3x3 matrix. `options` are the further fields
    of Joint: lower, upper, speed, effort, damping, friction, armature, stiffness, rest, driven, actuated.
    """

    def __init__(self, name: str = "model", gravity=(0.0, 0.0, -9.81)):
        self.name = name
        self.gravity = user_input.three(gravity, f"model {name!r}: gravity")
        self._bodies: list[Body] = []
        self._joints: list[Joint] = []
        self._at_child: dict[str, Placement] = {}
        self._frames: list[Frame] = []
        self._couplings: list[Coupling] = []
        self._closures: list[tuple] = []
        self._notes: list[str] = []

    # ---- bodies and frames

    def body(
        self, name: str, mass: float = 0.0, center=_HERE, inertia=_HERE, geometry: tuple[Geometry, ...] = ()
    ) -> Builder:
        """A body: mass [kg], centre of mass [m], inertia about it [kg m²] as 3, 6 or 3x3 numbers."""
        owner = f"body {name!r}"
        moments = user_input.moments(inertia, owner)
        center = user_input.three(center, f"{owner}: center")
        inertia = Inertia(user_input.number(mass, f"{owner}: mass"), center, moments)
        self._bodies.append(Body(name, inertia, tuple(geometry)))
        return self

    def frame(self, name: str, body: str, position=_HERE, rotation=None) -> Builder:
        """A named frame fixed to a body or to the world."""
        placement = self._placement(position, rotation, f"frame {name!r}")
        self._frames.append(Frame(name, body, placement))
        return self

    # ---- joints, one method a kind

    def revolute(self, name, parent, child, axis="z", position=_HERE, rotation=None, **options) -> Builder:
        """A hinge about an axis."""
        kind = Revolute(_axis(axis, name))
        return self.joint(name, kind, parent, child, position, rotation, **options)

    def prismatic(self, name, parent, child, axis="z", position=_HERE, rotation=None, **options) -> Builder:
        """A slider along an axis."""
        kind = Prismatic(_axis(axis, name))
        return self.joint(name, kind, parent, child, position, rotation, **options)

    def helical(
        self, name, parent, child, axis="z", position=_HERE, rotation=None, *, pitch: float, **options
    ) -> Builder:
        """A screw; the pitch in metres per radian."""
        kind = Helical(_axis(axis, name), user_input.number(pitch, f"joint {name!r}: pitch"))
        return self.joint(name, kind, parent, child, position, rotation, **options)

    def cylindrical(self, name, parent, child, axis="z", position=_HERE, rotation=None, **options) -> Builder:
        """Rotation about an axis and translation along it."""
        kind = Cylindrical(_axis(axis, name))
        return self.joint(name, kind, parent, child, position, rotation, **options)

    def universal(
        self, name, parent, child, axis="x", second_axis="y", position=_HERE, rotation=None, **options
    ) -> Builder:
        """Two hinges whose axes meet, the first fixed in the parent, the second in the child."""
        kind = Universal(_axis(axis, name), _axis(second_axis, name))
        return self.joint(name, kind, parent, child, position, rotation, **options)

    def spherical(self, name, parent, child, position=_HERE, rotation=None, **options) -> Builder:
        """A ball joint."""
        return self.joint(name, Spherical(), parent, child, position, rotation, **options)

    def planar(self, name, parent, child, axis="z", position=_HERE, rotation=None, **options) -> Builder:
        """Motion in the plane whose normal is the axis."""
        kind = Planar(_axis(axis, name))
        return self.joint(name, kind, parent, child, position, rotation, **options)

    def free(self, name, parent, child, position=_HERE, rotation=None, **options) -> Builder:
        """No constraint: a floating body."""
        return self.joint(name, Free(), parent, child, position, rotation, **options)

    def fixed(self, name, parent, child, position=_HERE, rotation=None, **options) -> Builder:
        """No freedom."""
        return self.joint(name, Fixed(), parent, child, position, rotation, **options)

    def general(
        self, name, parent, child, position=_HERE, rotation=None, *, motion, constraint=(), **options
    ) -> Builder:
        """Any motion space, constant in the child's axes: columns of six numbers, angular first."""
        return self.joint(name, General(motion, constraint), parent, child, position, rotation, **options)

    def joint(
        self,
        name: str,
        kind: JointKind | str,
        parent: str,
        child: str,
        position=_HERE,
        rotation=None,
        *,
        child_position=None,
        child_rotation=None,
        **options,
    ) -> Builder:
        """A joint of any kind; the kind by name has its default axis.

        position, rotation: of the joint in the parent; child_position, child_rotation: in the child, if not at its
        origin.
        """
        owner = f"joint {name!r}"
        if child_position is not None or child_rotation is not None:
            place = self._placement(_HERE if child_position is None else child_position, child_rotation, owner)
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

    # ---- closures

    def close(
        self,
        a: str,
        b: str,
        joint: str | JointKind = "fixed",
        *,
        name: str | None = None,
        switchable: bool = False,
        driven: bool = False,
    ) -> Builder:
        """A joint that closes a loop between two frames or bodies; switchable, driven: as in model.close."""
        self._closures.append((a, b, joint, name, switchable, driven))
        return self

    def couple(self, name: str, joint: str, source: str, ratio: float = 1.0, offset: float = 0.0) -> Builder:
        """A gear: coordinate of `joint` = ratio · coordinate of `source` + offset."""
        ratio = user_input.number(ratio, f"coupling {name!r}: ratio")
        offset = user_input.number(offset, f"coupling {name!r}: offset")
        self._couplings.append(Coupling(name, joint, source, ratio, offset))
        return self

    def note(self, text: str) -> Builder:
        """Something that the model's user should know."""
        self._notes.append(text)
        return self

    def build(self, cut: Sequence[str] = ()) -> Model:
        """The model, checked; inertias that no body can have are refused.

        Joints that form cycles are welcome: the spanning tree keeps the nearest way to each body and the others close
        loops. cut: joints that are to be loops.
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
        for closure in self._closures:
            model = edits.close(model, *closure)
        return replace(model, notes=(*self._notes, *judge(model, strict=True)))

    def _placement(self, position, rotation, owner: str) -> Placement:
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


def _axis(axis, name: str):
    return checked_axis(axis, f"joint {name!r}")
