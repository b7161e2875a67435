"""Controllers, and all forces that are applied to a mechanism: torques, a controller, actuators, forces on bodies.

A controller is a function in the arithmetic of Python and NumPy that is traced into the time loop:

    def control(t, q, v):            or control(t, q, v, u), u the inputs of the step
        return -K @ (q - target) - 3.0 * v                        or {"elbow": torque}

or an object with `memory`, `torques` and `update` (see Controller). Forces are functions of the same form that
return {"body": six numbers}, [torque; force] at the body's origin in world axes; the key ("joint", "elbow") stands for
torques at that joint, as those of a stop.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from spanloop.compiler.lower import unrolled
from spanloop.compiler.trace import StateKeptError
from spanloop.compiler.traced_arrays import TracedArray
from spanloop.dynamics import Dynamics
from spanloop.dynamics.robot_arguments import model_of
from spanloop.errors import InputError, nearest
from spanloop.kernels.on_scalars import CLOSURE_INPUTS
from spanloop.model import Model
from spanloop.simulation.traced_kernels import (
    arguments,
    has_code_of_users,
    hint_of_inputs,
    must_repeat,
    noted,
    read_from_outside,
    takes_inputs,
)
from spanloop.topology import mechanism


class _ByJoint:
    """The part of an array (..., nq or nv) that knows the joints of its last axis, q["elbow"]."""

    model: Model | None = None  # that of the whole array; parts of it have none
    rates: bool = False

    def __getitem__(self, which: Any) -> Any:
        found: Any = super()
        if not isinstance(which, str):
            return found.__getitem__(which)
        if self.model is None:
            raise InputError(f"[{which!r}] of a part of q or v; only the whole has the names of joints")
        joint = self.model.joint(which)
        s = self.model.v_slice(joint.name) if self.rates else self.model.q_slice(joint.name)
        place = s.start if s.stop - s.start == 1 else s
        return found.__getitem__(place if cast("Any", self).ndim == 1 else (..., place))


class Named(_ByJoint, TracedArray):
    """Coordinates or rates, traced or not: an array that also knows its joints, q["elbow"].

    closures: of q, the inputs of the dynamics that belong to switchable and to driven loops, by name.
    """

    closures: Mapping[str, Sequence[Any]] = MappingProxyType({})

    @staticmethod
    def by_joint(
        values: Sequence[Any], model: Model, rates: bool, closures: Mapping[str, Sequence[Any]] | None = None
    ) -> Named:
        out = TracedArray.of(values).view(Named)
        out.model, out.rates, out.closures = model, rates, closures or {}
        return out


class NamedFloats(_ByJoint, np.ndarray):
    """Coordinates or rates of a callback, in floats with the axes of a batch, q["elbow"]."""

    @staticmethod
    def copied(values: np.ndarray, model: Model | None, rates: bool) -> NamedFloats:
        """A copy of an array (..., nq or nv)."""
        out = values.copy().view(NamedFloats)
        out.model, out.rates = model, rates
        return out


class Controller:
    """A controller with a memory: numbers that are constant during a step and updated after it.

    Subclass it, or give any object with these attributes. Every method works on floats and on traced scalars.

    Attributes:
        inputs: how many numbers u it reads each step; None for as many as the array `inputs` of sl.simulate has.
        memory: how many numbers z it keeps from step to step.

    Example:
        >>> class Integral(sl.control.Controller):
        ...     inputs, memory = 0, 1
        ...
        ...     def torques(self, t, q, v, u, z):
        ...         return 5.0 * (0.3 - q) + 9.0 * z - v
        ...
        ...     def update(self, t, h, q, v, u, z):
        ...         return z + h * (0.3 - q)
        >>> run = sl.simulate(sl.zoo.pendulum(), duration=0.1, controller=Integral())
        >>> run.memory.shape
        (101, 1)
    """

    inputs: int | None = None
    memory: int = 0

    def start(self, model: Model) -> Sequence[float]:
        """The memory (memory,) at the start of a run."""
        return (0.0,) * self.memory

    def torques(self, t: Any, q: Any, v: Any, u: Sequence[Any], z: Sequence[Any]) -> Sequence[Any] | Mapping[str, Any]:
        """Torques of all degrees of freedom (nv) [N m or N], or by joint name, at time t [s] in q (nq), v (nv)."""
        raise NotImplementedError

    def update(self, t: Any, h: Any, q: Any, v: Any, u: Sequence[Any], z: Sequence[Any]) -> Sequence[Any]:
        """The memory (memory,) after a step of length h [s] that ended at time t [s] in q, v."""
        return z

    def joint_gains(self) -> tuple[Sequence[float], Sequence[float]] | None:
        """Stiffness [N m/rad] and damping [N m s/rad] (nv each) that implicit steps take implicitly; None for none."""
        return None

    def joint_targets(self, t: Any) -> tuple[Sequence[Any], Sequence[Any]] | None:
        """Of gains with targets that move: stiffness times target, damping times its rate (nv each) at t; else None."""
        return None


class _Function(Controller):
    """A plain function as a controller."""

    def __init__(self, function: Callable[..., Any]):
        self.function, self.takes_inputs = function, arguments(function, "the controller", (3, 4)) == 4
        self.inputs = None if self.takes_inputs else 0

    def torques(self, t: Any, q: Any, v: Any, u: Any, z: Any) -> Any:
        return self.function(t, q, v, u) if self.takes_inputs else self.function(t, q, v)


@dataclass(frozen=True)
class Callback:
    """A function (t, q, v) -> torques that Python calls once a step; see sl.control.callback."""

    function: Callable[..., Any]
    key: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.key, str):
            raise InputError(f"callback: key is a {type(self.key).__name__}; expected text")
        if not callable(self.function):
            raise InputError(
                f"callback: a {type(self.function).__name__} is given; expected a function (t, q, v) -> torques"
            )


class NoTorques(Controller):
    """No torques: the inputs are those of the function of forces alone."""

    inputs = 0

    def __init__(self, model: Model):
        self.model = model

    def torques(self, t: Any, q: Any, v: Any, u: Any, z: Any) -> Any:
        return [0.0] * self.model.nv


class _Torques(Controller):
    """The inputs are the torques."""

    def __init__(self, model: Model):
        self.inputs = model.nv

    def torques(self, t: Any, q: Any, v: Any, u: Any, z: Any) -> Any:
        return u


@dataclass(frozen=True)
class AppliedForces:
    """All torques and forces on a model, as functions on scalars."""

    model: Model
    controller: Controller
    inputs: int
    actuation: Controller | None = None  # from commanded torques, its inputs, to torques at the joints
    forces: Callable[..., Any] | None = None
    bodies: tuple[str, ...] = ()  # on which forces act
    joints: tuple[str, ...] = ()  # at which forces act

    @property
    def memory(self) -> int:
        return self.controller.memory + (self.actuation.memory if self.actuation else 0)

    @property
    def inputs_are_torques(self) -> bool:
        """Whether the inputs are the torques at the joints, and nothing else acts."""
        return type(self.controller) is _Torques and self.actuation is None and self.forces is None

    def start(self) -> list[float]:
        """The memory of controller and actuators at the start."""
        parts = [self.controller] + ([self.actuation] if self.actuation else [])
        return [float(x) for part in parts for x in _sized(part.start(self.model), part.memory, "start")]

    def command(self, x: Any) -> list[Any]:
        """Torques (nv) that the controller commands."""
        q, v = self._named(x)
        u: Any = TracedArray.of(x["u"])
        z: Any = TracedArray.of(x["z"])[: self.controller.memory]
        with noted("the controller"), _within("controller", self.inputs or None):
            found = self.controller.torques(x["t"][0], q, v, u, z)
        return _torques(self.model, found, "the controller")

    def torques_and_forces(self, x: Any) -> tuple[list[Any], list[Any]]:
        """Torques (nv) at the joints and forces (6 for each of `bodies`)."""
        if self.inputs_are_torques:
            return list(x["u"]), []
        tau = self.command(x)
        q, v = self._named(x)
        if self.actuation is not None:
            z = tuple(x["z"])[self.controller.memory :]
            tau = _torques(self.model, self.actuation.torques(x["t"][0], q, v, tuple(tau), z), "an actuator")
        if self.forces is None:
            return tau, []
        u = (TracedArray.of(x["u"]),) if takes_inputs(self.forces) else ()
        with noted("the function of forces"), _within("function of forces", self.inputs if u else None):
            found = self.forces(x["t"][0], q, v, *u)
        return self._added(tau, found)

    def gains(self) -> tuple[Sequence[float], Sequence[float]] | None:
        """The controller's stiffness and damping (nv each), if it has them."""
        known = getattr(self.controller, "joint_gains", None)
        found = known() if callable(known) else None
        return None if found is None else _checked_gains(found, self.model.nv)

    def linear_gains(self, x: Any) -> tuple[list[Any], list[Any]]:
        """The controller's stiffness and damping (nv each) where its command reaches the joints, 0 elsewhere."""
        found = self.gains()
        if found is None:
            return [0.0] * self.model.nv, [0.0] * self.model.nv
        if self.actuation is None:
            return list(found[0]), list(found[1])
        _, v = self._named(x)
        passed = cast("Any", self.actuation).passed(v, self.command(x))
        return tuple([k * y for k, y in zip(row, passed, strict=True)] for row in found)  # type: ignore[return-value]

    @cached_property
    def follows(self) -> bool:
        """Whether the controller has gains with targets that move."""
        known = getattr(self.controller, "joint_targets", None)
        return callable(known) and self.gains() is not None and known(0.0) is not None

    def target_pull(self, x: Any, t: Any) -> tuple[list[Any], list[Any]]:
        """Stiffness times target and damping times its rate (nv each) at time t, 0 where a motor does not pass them."""
        rows = cast("Any", self.controller).joint_targets(t)
        if self.actuation is None:
            return list(rows[0]), list(rows[1])
        _, v = self._named(x)
        passed = cast("Any", self.actuation).passed(v, self.command(x))
        return tuple([k * y for k, y in zip(row, passed, strict=True)] for row in rows)  # type: ignore[return-value]

    def update(self, x: Any, before: Any) -> list[Any]:
        """The memory after a step; x: the state at its end, and h; before: the state at its start.

        A controller reads u, an actuator the command at the start of the step.
        """
        q, v = self._named(x)
        t, h, u, z = x["t"][0], x["h"][0], tuple(x["u"]), tuple(x["z"])
        n = self.controller.memory
        with noted("the controller's update"), _within("controller's update", self.inputs or None):
            mine: tuple[Any, Any] = TracedArray.of(u), TracedArray.of(z[:n])
            out = list(_sized(self.controller.update(t, h, q, v, *mine), n, "update")) if n else []
        if self.actuation is not None and self.actuation.memory:
            command = tuple(self.command({**before, "u": x["u"], "z": x["z"]}))
            out += _sized(self.actuation.update(t, h, q, v, command, z[n:]), self.actuation.memory, "update")
        return out

    def key(self, closures: Mapping[str, int]) -> str:
        """A hash of what is traced: equal for functions that compute the same; closures: sizes of their inputs."""
        if self.inputs_are_torques:
            return "torques"
        nq, nv = self.model.nq, self.model.nv
        sizes = {"t": 1, "h": 1, "q": nq, "v": nv, "u": self.inputs, "z": self.memory}
        sizes |= {"t.before": 1, "q.before": nq, "v.before": nv, **closures}

        def compute(x: Any) -> Any:
            before = {n: x[f"{n}.before"] for n in ("t", "q", "v")} | {n: x[n] for n in closures}

            def numbers() -> list[Any]:
                tau, forces = self.torques_and_forces(x)
                aims = [y for row in self.target_pull(x, x["t"][0]) for y in row] if self.follows else []
                return [*tau, *forces, *self.update(x, before), *aims]

            found = numbers()
            if written:
                must_repeat(found, numbers())
            return found, (), ()

        parts = {"the controller": getattr(self.controller, "function", self.controller)}
        parts |= {} if self.forces is None else {"the function of forces": self.forces}
        written = {name: x for name, x in parts.items() if has_code_of_users(x)}
        plan = traced(
            " or ".join(written) or "the controller",
            lambda: unrolled("applied_forces", tuple(sizes.items()), (0,), compute),
            tuple(written.values()),
        )
        return hashlib.sha256(f"{plan}{self.bodies}".encode()).hexdigest()

    @cached_property
    def _switched_rows(self) -> int:
        """How many rows of the model can be switched."""
        return len(mechanism(self.model).switched_rows)

    def _named(self, x: Any) -> tuple[Named, Named]:
        closures = {n: x[n] for n in CLOSURE_INPUTS if n in x}
        if "active" in closures:  # stops at limits come after the model's own rows
            closures["active"] = closures["active"][: self._switched_rows]
        return Named.by_joint(x["q"], self.model, False, closures), Named.by_joint(x["v"], self.model, True)

    def _added(self, tau: list[Any], found: Any) -> tuple[list[Any], list[Any]]:
        """Torques (nv) with those that `forces` returns, and forces (6 for each of `bodies`)."""
        for joint in self.joints:
            s = self.model.v_slice(joint)
            more = _sized(_several(found["joint", joint]), s.stop - s.start, f"forces at joint {joint!r}")
            tau[s] = [a + b for a, b in zip(tau[s], more, strict=True)]
        return tau, [c for body in self.bodies for c in _sized(found[body], 6, f"forces on {body!r}")]


def applied_forces(
    model: Model, controller: Any = None, inputs: int | None = None, actuation: Any = None, forces: Any = None
) -> AppliedForces:
    """All that acts on a model; controller: a function, a Controller or None (the inputs are torques)."""
    chosen = _Torques(model) if controller is None else controller_of(controller)
    wanted = chosen.inputs
    if inputs is None and controller is not None and wanted != 0:
        how = "n" if wanted is None else wanted
        raise InputError(f"the controller takes inputs u, but none are given; pass inputs=array (..., steps, {how})")
    reads = forces is not None and callable(forces) and takes_inputs(forces)
    if reads and wanted == 0 and inputs is None:
        raise InputError("the function of forces takes inputs u, but none are given; pass inputs=array (..., steps, n)")
    if wanted is not None and inputs is not None and inputs != wanted and not (reads and wanted == 0):
        raise InputError(
            f"the inputs have {inputs} numbers a step; the controller takes {wanted}{_read_as_three(chosen)}"
        )
    count = (wanted if wanted is not None else inputs) or 0
    if wanted == 0 and inputs is not None:  # those of the function of forces
        count = inputs
    bodies, joints = ((), ()) if forces is None else _places(model, forces, count)
    return AppliedForces(model, chosen, count, actuation, forces, bodies, joints)


def _read_as_three(controller: Controller) -> str:
    """A hint for a function that could take u and is called without."""
    return hint_of_inputs(controller.function) if isinstance(controller, _Function) else ""


def controller_of(controller: Callable[..., Any] | Controller) -> Controller:
    """A function (t, q, v) or (t, q, v, u), or an object with torques, as a Controller."""
    if hasattr(controller, "torques"):
        return cast("Controller", controller)
    if callable(controller):
        return _Function(controller)
    raise InputError(f"controller is a {type(controller).__name__}; expected a function (t, q, v) that returns torques")


def callback(function: Callable[..., Any], *, key: str = "") -> Callback:
    """A controller (t, q, v) -> torques that Python calls once a step, for what cannot be traced.

    Args:
        function: takes the time t [s], q (..., nq) and v (..., nv) with the batch axes of the simulation, which also
            know their joints, q["elbow"], and returns torques (nv) or (..., nv) [N m or N], or {"joint": torque}, which
            act during the step.
        key: a name by which a checkpoint knows the function, for one that cannot be compared by its code and values
            (it holds a connection or a log). With a key you vouch that the function is the same one, and that its
            torques depend on t, q and v alone.

    Returns:
        What sl.simulate takes as controller.

    Raises:
        InputError: `function` cannot be called.

    Example:
        >>> brake = sl.control.callback(lambda t, q, v: -3.0 * v)
        >>> run = sl.simulate(sl.zoo.puma(), duration=0.01, controller=brake)
    """
    return Callback(function, key)


def together(model: Model | Dynamics, *controllers: Callable[..., Any] | Controller) -> Controller:
    """Several controllers as one: their torques add up.

    Args:
        model: the mechanism.
        controllers: laws of sl.control, Controllers or functions (t, q, v) -> torques; those with inputs read theirs
            one after the other.

    Returns:
        A Controller for sl.simulate.

    Raises:
        InputError: a function (t, q, v, u) does not say how many inputs it takes.

    Example:
        >>> arm = sl.zoo.puma()
        >>> law = sl.control.together(arm, sl.control.gravity(arm), lambda t, q, v: [-3.0 * x for x in v])
        >>> run = sl.simulate(arm, duration=0.1, controller=law)
    """
    parts = [controller_of(c) for c in controllers]
    if any(c.inputs is None for c in parts):
        raise InputError(
            "together: a function (t, q, v, u) does not say how many inputs it takes; make it a Controller"
        )
    return _Sum(model_of(model, "together"), parts)


class _Sum(Controller):
    def __init__(self, model: Model, parts: list[Controller]):
        self.model, self.parts = model, parts
        self.inputs = sum(c.inputs or 0 for c in parts)
        self.memory = sum(c.memory for c in parts)

    def start(self, model: Any) -> Any:
        return [x for c in self.parts for x in c.start(model)]

    def torques(self, t: Any, q: Any, v: Any, u: Any, z: Any) -> Any:
        tau = [0.0] * self.model.nv
        for c, mine, own in self._shares(u, z):
            tau = [a + b for a, b in zip(tau, self._all(c.torques(t, q, v, mine, own)), strict=True)]
        return tau

    def update(self, t: Any, h: Any, q: Any, v: Any, u: Any, z: Any) -> Any:
        return [x for c, mine, own in self._shares(u, z) for x in c.update(t, h, q, v, mine, own)]

    def joint_gains(self) -> Any:
        known = [c.joint_gains() for c in self.parts if hasattr(c, "joint_gains")]
        found = [gains for gains in known if gains is not None]
        return tuple([sum(x) for x in zip(*rows, strict=True)] for rows in zip(*found, strict=True)) if found else None

    def joint_targets(self, t: Any) -> Any:
        known = [c.joint_targets(t) for c in self.parts if hasattr(c, "joint_targets")]
        found = [aims for aims in known if aims is not None]
        return tuple([sum(x) for x in zip(*rows, strict=True)] for rows in zip(*found, strict=True)) if found else None

    def _shares(self, u: Any, z: Any) -> Any:
        at = kept = 0
        for c in self.parts:
            yield c, u[at : at + (c.inputs or 0)], z[kept : kept + c.memory]
            at, kept = at + (c.inputs or 0), kept + c.memory

    def _all(self, found: Any) -> list[Any]:
        """Torques (nv), also of joints by name."""
        if not isinstance(found, Mapping):
            return list(found)
        tau = [0.0] * self.model.nv
        for name, x in found.items():
            tau[self.model.v_slice(name)] = list(x) if hasattr(x, "__len__") else [x]
        return tau


def _places(model: Model, forces: Callable[..., Any], inputs: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The bodies and joints that a function of forces names, found by one call on floats; inputs: how many it reads."""
    if not callable(forces):
        raise InputError(
            f"forces is a {type(forces).__name__}; expected a function (t, q, v) -> {{'body': six numbers}}, "
            "or (t, q, v, u) with inputs"
        )
    u = (TracedArray.of([0.0] * inputs),) if takes_inputs(forces) else ()
    q, v = Named.by_joint(list(model.neutral()), model, False), Named.by_joint([0.0] * model.nv, model, True)
    with (
        noted("the function of forces, called with the neutral position"),
        _within("function of forces", inputs if u else None),
    ):
        found = forces(0.0, q, v, *u)
    if not isinstance(found, Mapping):
        raise InputError(f"forces returned a {type(found).__name__}; expected {{'body': six numbers}}")
    known = [b.name for b in model.bodies]
    bodies = [name for name in found if not isinstance(name, tuple)]
    for name in bodies:
        if name not in known:
            raise InputError(f"forces names {name!r}, which is not a body; {nearest(name, known)}")
    return tuple(sorted(bodies, key=known.index)), tuple(_joint(model, x) for x in found if isinstance(x, tuple))


class MissingEntry(InputError, IndexError):
    """A function of a user that reads an entry beyond its arguments; an IndexError, as any call of it raises."""


@contextlib.contextmanager
def _within(what: str, count: int | None) -> Iterator[None]:
    """A sentence for a function of a user that reads beyond its inputs; count: how many there are, None of none."""
    try:
        yield
    except IndexError as error:
        if count is None:
            raise
        raise MissingEntry(
            f"the {what} reads an entry that is not there ({error}): u has {count} number{'s' * (count != 1)} a step, "
            "those of inputs= (of an environment, of actions=), or of tau= without inputs"
        ) from error


def _joint(model: Model, place: tuple[Any, ...]) -> str:
    if len(place) != 2 or place[0] != "joint":
        raise InputError(f"forces names {place!r}; expected the name of a body, or ('joint', name)")
    joint = model.joint(place[1])
    if joint.driven:
        raise InputError(f"forces act at joint {joint.name!r}, which is driven: its acceleration is given")
    return joint.name


def traced(what: str, make: Callable[..., Any], functions: Sequence[Any] = ()) -> Any:
    """make(), with a sentence for what cannot be traced. functions: those of the user, of what a refusal may say."""
    try:
        return make()
    except StateKeptError as error:
        memory = (
            ". Numbers that a controller keeps from step to step are the memory of an sl.control.Controller "
            "(docs/control.md); or wrap it in sl.control.callback, which Python calls at every step"
        )
        raise InputError(
            f"{what} cannot be traced: {error}. It keeps state between calls (an attribute, a list, a counter), or "
            f"reads a clock or random numbers{read_from_outside(functions)}; what is compiled is a function "
            f"of its arguments alone{memory if 'controller' in what else ''}"
        ) from error
    except TypeError as error:  # a TraceError is one; NumPy's own functions raise another
        raise InputError(
            f"{what} cannot be traced: {error}. Write it in arithmetic, with np.where for choices and np.sin, np.sqrt "
            "and the like (docs/control.md lists them)" + _instead_of_tracing(what)
        ) from error


def _instead_of_tracing(what: str) -> str:
    """What else can be done about a function that cannot be traced; "" for one that is only ever traced."""
    if "controller" in what:
        which = "the controller" if "forces" in what else "it"
        return f"; or wrap {which} in sl.control.callback, which Python calls at every step"
    if "forces" in what:
        return ". Forces are always compiled; what Python must compute acts as torques of sl.control.callback"
    return ""


def _torques(model: Model, found: Any, who: str) -> list[Any]:
    if isinstance(found, Mapping):
        tau: list[Any] = [0.0] * model.nv
        for name, value in found.items():
            s = model.v_slice(model.joint(name).name)
            tau[s] = _sized(_several(value), s.stop - s.start, f"torques of joint {name!r}")
        return tau
    return list(_sized(found, model.nv, f"torques of {who}"))


def _checked_gains(found: Any, nv: int) -> tuple[list[float], list[float]]:
    """Stiffness and damping (nv each) that a controller declares, as floats."""
    try:
        K, D = ([float(x) for x in row] for row in found)
    except (TypeError, ValueError):
        K, D = [], []
    if len(K) != nv or len(D) != nv or not all(0.0 <= x < math.inf for x in (*K, *D)):
        raise InputError(
            f"the controller's joint_gains returned {found!r}; expected stiffness and damping, {nv} numbers each that "
            "are not negative"
        )
    return K, D


def _several(value: Any) -> list[Any]:
    """The numbers of one joint, from a number or a sequence."""
    value = _scalar(value)
    return list(value) if isinstance(value, Sequence) or hasattr(value, "__len__") else [value]


def _scalar(x: Any) -> Any:
    """A number that NumPy returned as an array without axes, as np.where does of numbers; everything else as it is."""
    return x.item() if isinstance(x, np.ndarray) and not x.ndim else x


def _sized(values: Any, size: int, what: str) -> Sequence[Any]:
    try:
        if isinstance(values, (set, frozenset, str)):  # a set has no order
            raise TypeError
        out = [_scalar(x) for x in values]
    except TypeError:
        raise InputError(f"{what}: a {type(values).__name__} was returned; expected {size} numbers") from None
    if len(out) != size:
        raise InputError(f"{what}: {len(out)} numbers were returned; expected {size}")
    for k, x in enumerate(out):
        if hasattr(x, "__len__") or hasattr(x, "node"):
            raise InputError(f"{what}: number {k} is a {type(x).__name__}; expected {size} numbers")
        if isinstance(x, (int, float)) and x != x:
            raise InputError(f"{what}: number {k} is nan; every number must be finite")
    return out
