"""Motors: the settings of an actuator and their meaning.

| setting | unit | meaning |
|---|---|---|
| kind | | "motor"; the other kinds in LAWS come from MJCF files and go to them; their laws are not implemented |
| gear | | motor's turns for one of the joint (rad/m where it slides); may be negative |
| rotor_inertia | kg m² | gear² times it is in the mass matrix, like armature |
| damping | N m s/rad | viscous friction of the motor; gear² times it is in bias, like the damping of a joint |
| friction | N m | Coulomb friction of the motor |
| efficiency | | of the gear: friction of (1 − efficiency) times the torque that it transmits |
| max_torque | N m | bound of the motor's torque in both directions |
| force_range | N m | lower and upper bound of the motor's torque |
| control_range, gain | | the same as a control u, of which gain · u is the motor's torque, as MJCF files have it |
| max_speed, stall_torque | rad/s, N m | torque falls linearly from stall_torque at rest (max_torque by default) to 0 |
| lag | s | time constant with which torque follows its command |
| delay | s | dead time of the command, a whole number of steps |
| dof | | number of the joint's DoF that it drives, if the joint has several |

All but kind, gear and dof are on the motor's side of the gear. rotor_inertia and damping are linear and belong to the
equations of motion: every kernel of the model includes them. The others act in simulation, between the commanded torque
(at the joint) and the torque that acts there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from spanloop.errors import ModelError, nearest
from spanloop.model.parts import Actuator, Joint
from spanloop.model.value_check import check_numbers

if TYPE_CHECKING:
    from spanloop.model.model import Model

KIND = "motor"
_POSITIVE = ("max_torque", "stall_torque", "max_speed")
_NOT_NEGATIVE = ("rotor_inertia", "damping", "friction", "lag", "delay")
_NUMBERS = ("gear", "gain", "efficiency", *_POSITIVE, *_NOT_NEGATIVE)
_RANGES = ("force_range", "control_range")
SETTINGS = ("kind", "dof", *_NUMBERS, *_RANGES)
LAWS = {"position": ("stiffness", "damping"), "velocity": ("damping",), "general": ("gain", "bias"), "muscle": ()}
_OF_LAWS = ("kind", "dof", "gear", "dynamics", *_RANGES)  # settings of actuators with any of these laws


def is_motor(actuator: Actuator) -> bool:
    """Whether it is a motor with the settings above; other actuators of files drive several DoF or have another law."""
    settings = dict(actuator.settings)
    return settings.get("kind", KIND) == KIND and not isinstance(settings.get("gear"), tuple)


def motor(name: str, joint: str, **settings: Any) -> Actuator:
    """Return a motor on a joint, its settings checked (see the table above)."""
    made = Actuator(name, joint, tuple(settings.items()))
    check_settings(made)
    _check_numbers(made)
    return made


def check_settings(actuator: Actuator) -> None:
    """Raise ModelError, with the nearest name, for a kind or a setting that there is not."""
    settings = dict(actuator.settings)
    kind, kinds = settings.get("kind", KIND), (KIND, *LAWS)
    if kind not in kinds:
        raise ModelError(f"actuator {actuator.name!r}: there is no kind {kind!r}; {nearest(str(kind), kinds)}")
    known = SETTINGS if kind == KIND else (*LAWS[kind], *_OF_LAWS)
    for name in settings:
        if name not in known:
            what = "there is" if kind == KIND else f"a {kind!r} has"
            raise ModelError(f"actuator {actuator.name!r}: {what} no setting {name!r}; {nearest(name, known)}")


def check_actuator(actuator: Actuator, joint: Joint) -> None:
    """Raise ModelError for values that no motor can have; files may hold settings of other names."""
    if not is_motor(actuator):
        return
    settings = _check_numbers(actuator)
    if "dof" not in settings:
        return
    dof = settings["dof"]
    if isinstance(dof, bool) or not isinstance(dof, int) or not 0 <= dof < joint.kind.nv:
        raise ModelError(
            f"actuator {actuator.name!r}: dof is {dof!r}; joint {joint.name!r} has DoF 0 to {joint.kind.nv - 1}"
        )


def driven_dof(actuator: Actuator, joint: Joint) -> int:
    """The number of the DoF of its joint that an actuator drives."""
    settings = dict(actuator.settings)
    if joint.kind.nv != 1 and "dof" not in settings:
        raise ModelError(
            f"actuator {actuator.name!r}: joint {joint.name!r} has {joint.kind.nv} DoF; "
            "choose the one it drives: dof=0, ..."
        )
    return int(settings.get("dof", 0))


def reflected(model: Model, setting: str) -> dict[str, tuple[float, ...]]:
    """rotor_inertia or damping of the motors on the joints' side of the gears, gear² times it, by joint (nv,)."""
    out: dict[str, tuple[float, ...]] = {}
    for actuator in model.actuators:
        settings = dict(actuator.settings)
        if not is_motor(actuator) or not settings.get(setting):
            continue
        joint = model.joint(actuator.joint)
        values = list(out.get(joint.name, (0.0,) * joint.kind.nv))
        values[driven_dof(actuator, joint)] += float(settings.get("gear", 1.0)) ** 2 * float(settings[setting])
        out[joint.name] = tuple(values)
    return out


def without_losses(actuator: Actuator) -> Actuator:
    """The actuator without inertia and friction of its own."""
    if not is_motor(actuator):
        return actuator
    losses = ("rotor_inertia", "damping", "friction", "efficiency")
    return Actuator(actuator.name, actuator.joint, tuple(x for x in actuator.settings if x[0] not in losses))


def _check_numbers(actuator: Actuator) -> Mapping[str, Any]:
    settings = dict(actuator.settings)
    for name in _NUMBERS:
        if name not in settings:
            continue
        x, owner = settings[name], f"actuator {actuator.name!r}: {name}"
        if isinstance(x, bool) or not isinstance(x, (int, float)):
            raise ModelError(f"{owner} is {x!r}; expected a finite number")
        check_numbers((x,), owner)
        if name in _POSITIVE and x <= 0.0:
            raise ModelError(f"{owner} is {x:g}; must be > 0")
        if name in _NOT_NEGATIVE and x < 0.0:
            raise ModelError(f"{owner} is {x:g}; must be >= 0")
        if name == "gear" and x == 0.0:
            raise ModelError(f"{owner} is 0; a gear of ratio 0 moves nothing. Leave it out for a direct drive")
        if name == "efficiency" and not 0.0 < x <= 1.0:
            raise ModelError(f"{owner} is {x:g}; must be > 0 and <= 1")
    for name in _RANGES:
        if name in settings:
            _check_range(settings[name], f"actuator {actuator.name!r}: {name}")
    if "max_speed" in settings and "stall_torque" not in settings and "max_torque" not in settings:
        raise ModelError(
            f"actuator {actuator.name!r}: max_speed is given without a torque at rest; add stall_torque or max_torque"
        )
    return settings


def _check_range(value: Any, owner: str) -> None:
    good = isinstance(value, tuple) and len(value) == 2
    if not good or not all(isinstance(x, (int, float)) and abs(x) < math.inf for x in value) or value[0] > value[1]:
        raise ModelError(f"{owner} is {value!r}; expected two numbers, the lower and the upper bound")
