"""Several arms that hold one object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import cos, pi, radians, sin

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.joints import JointKind
from spanloop.model import user_input
from spanloop.model.builder import Builder
from spanloop.model.edits.attach import hung_on
from spanloop.model.edits.rename import renamed
from spanloop.model.exact_rotations import rotation_of_angles, snap_rotation
from spanloop.model.model import Model
from spanloop.model.parts import WORLD, Body, Frame, Geometry, Inertia, Loop, Placement
from spanloop.model.poses import pose
from spanloop.model.solid_inertia import box, cylinder
from spanloop.types import Floats33
from spanloop.zoo.arms import puma

_SIX = (  # joint, axis, its place on the link before [m], mass of its link [kg]
    ("turn", "z", (0.0, 0.0, 0.0), 4.0),
    ("shoulder", "y", (0.0, 0.0, 0.3), 5.0),
    ("elbow", "y", (0.0, 0.0, 0.4), 4.0),
    ("roll", "x", (0.1, 0.0, 0.0), 2.0),
    ("pitch", "y", (0.35, 0.0, 0.0), 1.5),
    ("spin", "x", (0.08, 0.0, 0.0), 0.5),
)

_TOOL = (0.1, 0.0, 0.0)  # on the last link [m]
_POSTURE = (0.2, 0.5, -0.9, 0.3, 0.7, -0.2)  # of a six-joint arm; repeated for longer ones
_RADIUS, _HEIGHT = 0.25, 1.0  # of the grasps around the object's centre, of that centre above the ground [m]
_DISC_MASS, _DISC_RADIUS, _DISC_HEIGHT = 6.0, 0.25, 0.1  # kg, m
# of a PUMA: upper arm raised by 82°, forearm falling by 25°, tool rising by 35° toward the disc
_PUMA_POSTURE = (0.0, -radians(82.0), radians(17.0), 0.0, pi + radians(60.0), 0.0)
PERIOD = 6.0  # of three_pumas_path [s]
_ARMS = {"five": 5, "six": 6}


def arms_with_object(
    m: int = 2,
    *,
    arm: str | Model = "six",
    grasp: str | JointKind = "fixed",
    posture: Sequence[float] | None = None,
) -> Model:
    """m arms around a free object of 5 kg that each of them holds; the grasps close the loops.

    m: number of arms
    arm: "six" hinges, of which the last three meet in the wrist; "five", the same arm without its last link; or a
        model with a frame "tool"
    grasp: "fixed", or another kind of joint from the tool to the object ("spherical" is a point contact, "revolute" a
        pin along the tool's z)
    posture: coordinates (nq,) of every arm at the start; by default each arm has its own. The bases are placed such
        that the arms then reach the object's rim.

    With rigid grasps the mobility is 6 for six-joint arms, and 6 − m for up to five five-joint arms.
    """
    one = _arm(m, arm)
    b = Builder(f"arms_with_object{m}")
    b.body("object", 5.0, inertia=box(5.0, 0.4, 0.4, 0.2))
    b.free("floating", WORLD, "object")
    model, tool, kind = b.build(), one.frame("tool"), user_input.joint_kind(grasp, "grasp")
    parts = [on_base(one, f"arm{i}_", _base(one, i, m, posture)) for i in range(1, m + 1)]
    grasps = tuple(_grasp_frame(one, i, m, posture) for i in range(1, m + 1))
    holding = tuple(
        Loop(f"holding{i}", kind, f"arm{i}_{tool.body}", "object", tool.placement, frame.placement)
        for i, frame in enumerate(grasps, 1)
    )
    return replace(
        model,
        bodies=(*model.bodies, *(body for p in parts for body in p.bodies)),
        joints=(*model.joints, *(joint for p in parts for joint in p.joints)),
        frames=(*(frame for p in parts for frame in p.frames), *grasps),
        loops=(*(loop for p in parts for loop in p.loops), *holding),
        couplings=tuple(coupling for p in parts for coupling in p.couplings),
    )


def arms_with_object_start(
    m: int = 2,
    *,
    arm: str | Model = "six",
    grasp: str | JointKind = "fixed",
    posture: Sequence[float] | None = None,
) -> np.ndarray:
    """Return q with the object level at 1 m, then the coordinates of each arm."""
    one = _arm(m, arm)
    resting = np.array((1.0, 0.0, 0.0, 0.0, 0.0, 0.0, _HEIGHT))
    return np.concatenate((resting, *(_posture(one, i, posture) for i in range(1, m + 1))))


def _arm(m: int, arm: str | Model) -> Model:
    if m < 1:
        raise InputError(f"zoo: arms_with_object: {m} arms are asked for; expected at least 1")
    if isinstance(arm, Model):
        arm.frame("tool")  # raises if there is none
        return arm
    if arm not in _ARMS:
        raise InputError(f"arms_with_object: there is no arm {arm!r}; {nearest(arm, _ARMS)}")
    return _hinged_arm(_ARMS[arm])


def _hinged_arm(n: int) -> Model:
    """The first n joints of the six-joint arm."""
    b = Builder("arm")
    parent = WORLD
    ends = [place for _, _, place, _ in _SIX[1:n]] + [_TOOL]
    for (name, axis, place, mass), end in zip(_SIX[:n], ends, strict=True):
        x, y, z = (max(abs(length), 0.1) for length in end)
        b.body(f"{name}_link", mass, [0.5 * length for length in end], box(mass, x, y, z))
        b.revolute(name, parent, f"{name}_link", axis, place)
        parent = f"{name}_link"
    return b.frame("tool", parent, _TOOL).build()


def _posture(arm: Model, i: int, posture: Sequence[float] | None) -> np.ndarray:
    """Coordinates of arm i: those given, or a posture that is a little different for each arm."""
    if posture is not None:
        if len(posture) != arm.nq:
            raise InputError(f"arms_with_object: posture has {len(posture)} numbers; the arm has {arm.nq} coordinates")
        return np.array(posture, dtype=float)
    q: list[float] = []
    for joint in arm.joints:
        numbers = range(arm.nv)[arm.v_slice(joint.name)]
        step = [_POSTURE[n % 6] + 0.2 * sin(3.0 * n + 2.0 * i) for n in numbers]
        q += joint.kind.plus(joint.kind.neutral(), step)
    return np.array(q)


def on_base(model: Model, prefix: str, base: Placement) -> Model:
    """The model on another base, with a prefix before every name but the world's."""
    named = renamed(model, lambda name: prefix + name)
    return replace(named, **vars(hung_on(named, WORLD, base)))


def turned_about_z(angle: float) -> Floats33:
    """The rotation by an angle [rad] about z, with exact right angles."""
    return snap_rotation(rotation_of_angles(0.0, 0.0, angle))[0]


def _rim(i: int, m: int) -> Placement:
    """Where arm i takes hold of the object, looking inward, in the object's axes."""
    angle = 2.0 * pi * (i - 1) / m
    return Placement(turned_about_z(angle + pi), (_RADIUS * cos(angle), _RADIUS * sin(angle), 0.0))


def _base(arm: Model, i: int, m: int, posture: Sequence[float] | None) -> Placement:
    """Upright, and such that the tool is at the rim of the object as it starts."""
    rim, reach = _rim(i, m), pose(arm, _posture(arm, i, posture), "tool").position
    x, y, z = (rim @ Placement(position=(-reach[0], -reach[1], -reach[2]))).position
    return Placement(rim.rotation, (x, y, z + _HEIGHT))


def _grasp_frame(arm: Model, i: int, m: int, posture: Sequence[float] | None) -> Frame:
    """The tool as it starts, seen from the object."""
    tool = _base(arm, i, m, posture) @ pose(arm, _posture(arm, i, posture), "tool")
    x, y, z = tool.position
    return Frame(f"grasp{i}", "object", Placement(tool.rotation, (x, y, z - _HEIGHT)))


def three_pumas() -> Model:
    """Three PUMA arms [Saha, Table 3] around a disc of 6 kg that each of them grasps rigidly; mobility 6.

    The arms stand on columns at a height of about 0.67 m; the disc starts level at 1 m.
    """
    model = arms_with_object(3, arm=puma(), posture=_PUMA_POSTURE)
    xx, yy, zz = cylinder(_DISC_MASS, _DISC_RADIUS, _DISC_HEIGHT)
    look = Geometry("cylinder", (_DISC_RADIUS, _DISC_HEIGHT))
    disc = Body("object", Inertia(_DISC_MASS, moments=(xx, 0.0, 0.0, yy, 0.0, zz)), (look,))
    bodies = tuple(disc if b.name == "object" else b for b in model.bodies)
    return replace(model, name="three_pumas", bodies=bodies)


def three_pumas_start() -> np.ndarray:
    """Return q (25,): the disc level at 1 m, then the six angles of each arm."""
    return arms_with_object_start(3, arm=puma(), posture=_PUMA_POSTURE)


def three_pumas_path(t: float) -> dict[str, list[float]]:
    """Return the target pose of the disc at time t [s], {"floating": quaternion and position [m]}, for `lead`.

    In 6 s the disc follows a figure of eight of 0.36 m by 0.24 m, rises and sinks by 0.2 m, and turns and tilts by
    some 20° and 12°.
    """
    w = 2.0 * pi / PERIOD * t
    turn, tilt = 0.5 * 0.35 * sin(w), 0.5 * 0.2 * sin(2.0 * w)
    quaternion = [cos(turn) * cos(tilt), cos(turn) * sin(tilt), sin(turn) * sin(tilt), sin(turn) * cos(tilt)]
    return {"floating": [*quaternion, 0.18 * sin(w), 0.12 * sin(2.0 * w), 1.0 + 0.1 * (1.0 - cos(w))]}
