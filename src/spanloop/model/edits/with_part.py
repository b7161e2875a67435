"""Edits that add or set one part: loops, frames, gravity, inertias, actuators, sensors; and without_losses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spanloop.errors import InputError, nearest
from spanloop.joints import JointKind
from spanloop.model import motors, user_input
from spanloop.model.exact_rotations import snap_rotation
from spanloop.model.flexible_bodies.attachment import on_root
from spanloop.model.inertia_check import check_inertia
from spanloop.model.parts import Actuator, Frame, Inertia, Loop, Placement, Sensor
from spanloop.model.sensor_settings import check_sensor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from spanloop.model.model import Model


def with_loop(
    model: Model,
    a: str,
    b: str,
    joint: str | JointKind = "fixed",
    *,
    name: str | None = None,
    switchable: bool = False,
    driven: bool = False,
) -> Model:
    """Return the model with one more loop: a joint that connects two frames or bodies (or the world).

    a, b: the frame or body that holds the joint's parent frame, and the one that holds its child frame
    joint: the kind, by name ("spherical") or as an object (sl.joints.Revolute("y"))
    name: of the loop; "a_b" by default
    switchable: the loop is closed only while active_loops= names it
    driven: the caller prescribes the accelerations along the loop's DoF

    Raises InputError where a and b are on one body, or where a joint or loop has the name.

    >>> model = sl.zoo.puma().with_frame("anchor", "world", position=(0.4, 0, 0.5))
    >>> model.with_loop("tool", "anchor", "spherical", name="grip").loops[0].b
    'world'
    """
    start, end = on_root(model, model.frame(a)), on_root(model, model.frame(b))
    name = name or f"{a}_{b}"
    owner = f"loop {name!r}"
    if start.body == end.body:
        raise InputError(f"{owner}: {a!r} and {b!r} are both on body {start.body!r}; a loop joins two bodies")
    if name in [j.name for j in model.joints] + [x.name for x in model.loops]:
        raise InputError(f"{owner}: a joint or loop of model {model.name!r} has this name; give another with name=")
    kind = user_input.joint_kind(joint, owner)
    loop = Loop(name, kind, start.body, end.body, start.placement, end.placement, switchable=switchable)
    closed = replace(model, loops=(*model.loops, loop))
    return closed.drive(name) if driven else closed


def with_coupling(
    model: Model,
    joint: str,
    source: str | None = None,
    ratio: float = 1.0,
    offset: float = 0.0,
    *,
    switchable: bool = False,
    name: str | None = None,
) -> Model:
    """Return the model with two joints of one DoF coupled, as by a gear: q of `joint` = ratio · q of `source` + offset.

    Without a source the joint is held at the offset, as by a brake or a latch.

    offset [rad or m]; name: of the coupling; the name of `joint` by default
    switchable: the coupling holds only while active_loops= names it (a clutch, a brake)
    Raises ModelError where a joint has several DoF, and InputError where it follows another one already; switchable
    couplings may be any number.

    >>> sl.zoo.puma().with_coupling("joint6", "joint5", ratio=-0.5).couplings[0].name
    'joint6'
    >>> sl.zoo.puma().with_coupling("joint2", offset=0.3, switchable=True, name="brake").couplings[0].source is None
    True
    """
    name = joint if name is None else name
    for end in (joint,) if source is None else (joint, source):
        model.joint(end)
    for c in model.couplings:
        if c.joint == joint and not (c.switchable or switchable) and (c.source is None) == (source is None):
            does, can = ("is held", "be held once") if source is None else (f"follows {c.source!r}", "follow one")
            raise InputError(
                f"coupling {name!r}: joint {joint!r} {does} already (coupling {c.name!r}); it can "
                f"{can}. Remove that first: model.remove({c.name!r}, kind='coupling')"
            )
    coupling = user_input.coupling(name, joint, source, ratio, offset, switchable)
    return replace(model, couplings=(*model.couplings, coupling))


def with_frame(
    model: Model, name: str, body: str, position: ArrayLike = (0.0, 0.0, 0.0), rotation: ArrayLike | None = None
) -> Model:
    """Return the model with one more frame, fixed to a body or to the world.

    body: of a body, whose frame is at its joint, or of another frame, as "NAME::origin" where a file or Builder
        describes a body from elsewhere
    position: (3,) of the frame's origin there [m]; rotation: None, roll pitch yaw (3,) [rad], or a matrix (3, 3).
    Raises InputError where a frame or body has the name.

    >>> sl.zoo.puma().with_frame("camera", "link6", position=(0, 0.05, 0)).frame("camera").body
    'link6'
    """
    owner = f"frame {user_input.name(name, 'with_frame: name')!r}"
    user_input.name(body, f"{owner}: body")
    if name in model.body_number or name in [f.name for f in model.frames]:
        raise InputError(f"{owner}: a frame or body of model {model.name!r} has this name; choose another")
    known = [*model.body_number, *(f.name for f in model.frames)]
    if body not in known:
        raise InputError(f"{owner}: its body {body!r} is not a body or frame; {nearest(body, known)}")
    matrix, changed = snap_rotation(user_input.rotation(rotation, owner))
    base = model.frame(body)
    place = Placement(matrix, user_input.three(position, f"{owner}: position"))
    frame = Frame(name, base.body, place if base.placement == Placement() else base.placement @ place)
    frame = on_root(model, frame)
    note = (f"{owner}: rotation snapped to exact right angles",) if changed else ()
    return replace(model, frames=(*model.frames, frame), notes=(*model.notes, *note))


def with_gravity(model: Model, gravity: Sequence[float]) -> Model:
    """Return the model in another field of gravity (3,) [m/s²], in the world's axes.

    >>> sl.zoo.puma().with_gravity((0, 0, -1.62)).gravity
    (0.0, 0.0, -1.62)
    """
    return replace(model, gravity=user_input.three(gravity, f"model {model.name!r}: gravity"))


def with_inertia(
    model: Model,
    body: str,
    mass: float | None = None,
    center: ArrayLike | None = None,
    inertia: ArrayLike | None = None,
) -> Model:
    """Return the model with another inertia of a body; None keeps a value.

    mass [kg]; center: (3,) centre of mass in the body's frame [m]; inertia: about the centre of mass, in the body's
    axes [kg m²], as 3 principal moments, 6 numbers xx xy xz yy yz zz, or a matrix (3, 3).
    Raises ModelError for an inertia that no body can have, and for a flexible body, whose inertia belongs to its modes:
    model.with_material changes its density.

    >>> sl.zoo.puma().with_inertia("link6", mass=1.5).body("link6").inertia.mass
    1.5
    """
    old, owner = model.body(body), f"body {body!r}"
    new = Inertia(
        old.inertia.mass if mass is None else user_input.number(mass, f"{owner}: mass"),
        old.inertia.center if center is None else user_input.three(center, f"{owner}: center"),
        old.inertia.moments if inertia is None else user_input.moments(inertia, owner),
    )
    check_inertia(new, owner)
    bodies = (replace(b, inertia=new) if b is old else b for b in model.bodies)
    return replace(model, bodies=tuple(bodies))


def with_actuator(model: Model, /, name: str, joint: str, **settings: Any) -> Model:
    """Return the model with one more actuator, on a joint that moves.

    settings: of a motor, as spanloop.model.motors lists them (gear, rotor_inertia, max_torque, ...)

    Raises ModelError for a setting that there is not, with the nearest name, and for a value that no motor can have.

    >>> model = sl.zoo.puma().with_actuator("motor1", "joint1", gear=50.0, rotor_inertia=2e-4)
    >>> model.actuators[0].settings
    (('gear', 50.0), ('rotor_inertia', 0.0002))
    """
    kind = model.joint(joint).kind
    if kind.nv == 0:
        raise InputError(f"actuator {name!r}: joint {joint!r} is {kind.name}; there is nothing to move")
    actuator = Actuator(name, joint, tuple(settings.items()))
    motors.check_settings(actuator)
    return replace(model, actuators=(*model.actuators, actuator))


def with_sensor(model: Model, /, name: str, kind: str, at: str, **settings: Any) -> Model:
    """Return the model with one more sensor at a joint, body or frame; run.sensor(name) returns its readings.

    kind: "encoder", "tachometer", "torque" or "force_torque" at a joint; "imu", "gyro", "accelerometer" or "position"
        at a frame or body; spanloop.model.sensor_settings lists all
    at: name of the joint, frame or body
    settings: rate [Hz], bias, noise, ... as listed there

    Raises InputError for a kind or setting that there is not, with the nearest name, for a place where no sensor of the
    kind can be, and for an impossible value.

    >>> model = sl.zoo.puma().with_sensor("angle", "encoder", "joint2", counts=4096)
    >>> model.sensors[0].at
    'joint2'
    """
    if not isinstance(kind, str) or not kind:
        raise InputError(f"sensor {name!r}: kind is {kind!r}; expected a word, as 'encoder'")
    user_input.name(at, f"sensor {name!r}: its place")
    sensor = Sensor(name, kind, at, tuple(settings.items()))
    measured = replace(model, sensors=(*model.sensors, sensor))
    check_sensor(sensor, measured)
    return measured


def without_losses(model: Model) -> Model:
    """Return the model without damping, friction, armature and springs of its joints and motors.

    Use it to compare with libraries that ignore these. Flexible bodies keep the stiffness of their modes.

    >>> sl.zoo.quadruped().without_losses().joint("fl_knee").damping
    (0.0,)
    """
    actuators = tuple(map(motors.without_losses, model.actuators))
    joints = (
        replace(j, damping=(), friction=(), armature=(), stiffness=j.stiffness if j.kind.bends else ())
        for j in model.joints
    )
    return replace(model, joints=tuple(joints), actuators=actuators)
