"""Arguments that several commands share: a model or a run, an initial state, torques."""

from __future__ import annotations

import argparse
import inspect
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spanloop import zoo
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, nearest
from spanloop.model import Model
from spanloop.model.files import load
from spanloop.model.user_input import UNLIMITED, JointSettings
from spanloop.trajectory import Trajectory
from spanloop.trajectory.files.storage import load_run

ZOO = "zoo:"
ACCEPTED = (
    "a .urdf, .xml or .mjcf (MJCF), .sdf or .world, .toml or .csv (Denavit-Hartenberg) file, "
    "or zoo:NAME (zoo:puma, zoo:chain:6)"
)
RUNS = (".nc", ".h5", ".npz")
UNITS = {"deg": math.pi / 180.0, "rad": 1.0, "m": 1.0, "mm": 1e-3, "cm": 1e-2}


def add_model(parser: argparse.ArgumentParser, unless: str = "") -> None:
    """Add the arguments that name a mechanism. unless: where it may be named instead."""
    if unless:
        parser.add_argument("file", metavar="MODEL", nargs="?", help=f"{ACCEPTED}; not needed if {unless} names one")
    else:
        parser.add_argument("file", metavar="MODEL", help=ACCEPTED)
    add_loading(parser)


def add_loading(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say how a file is loaded."""
    add = parser.add_argument
    add("--base", choices=("fixed", "free"), help="how a URDF's root link is attached to the world (fixed)")
    add("--root", metavar="FOLDER", help="includes and meshes may also be read from here (from the file's folder only)")
    add("--repair", action="store_true", help="replace inertias that no body can have")
    about = "read the contacts that an MJCF or SDF describes: all, or those with shapes fixed to the world"
    add("--load-contacts", choices=("all", "ground"), help=about)


def loading(chosen: argparse.Namespace) -> dict[str, Any]:
    """How the file is loaded, for model_of."""
    contacts = {None: False, "all": True}.get(chosen.load_contacts, chosen.load_contacts)
    return {"base": chosen.base, "root": chosen.root, "repair": chosen.repair, "contacts": contacts}


def add_settings(parser: argparse.ArgumentParser, also: str = "") -> None:
    """Add the option --set; also: what else it takes."""
    about = "parameter of the model or setting of joints: link6.mass=0.5, elbow.damping=0.1, '*.limits=-90deg,90deg'"
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help=about + also)


def settings_of(words: Sequence[str]) -> dict[str, list[Any]]:
    """Numbers, or a truth value, by name from the arguments of --set, for with_settings; limits may be infinite."""
    out: dict[str, list[Any]] = {}
    for word in words:
        name, text = _parts(word, "--set", "elbow.damping=0.1")
        setting = name.rpartition(".")[2]
        if setting in ("actuated", "driven"):
            if text.lower() not in ("true", "false"):
                raise InputError(f"--set {word}: {text!r} is no truth value; expected true or false")
            out[name] = [text.lower() == "true"]
        else:
            out[name] = numbers(text, f"--set {word}", infinite=setting == "limits" or setting in UNLIMITED)
    return out


def with_settings(model: Model, values_by_name: Mapping[str, list[Any]]) -> Model:
    """The model with other parameters ("link6.mass") and settings of joints ("elbow.damping"), {name: numbers}."""
    for name, values in values_by_name.items():
        joint, _, setting = name.rpartition(".")
        one = len(values) == 1
        value: Any = values[0] if one else values
        joints, settings = {j.name for j in model.joints}, JointSettings.__annotations__
        of_joint = "*" in joint or joint in joints or (joint and setting in settings)
        if of_joint and name not in model.parameters().names:
            model = model.with_joint(joint, **{setting: value})
        elif one:
            model = model.with_parameters({name: value})
        else:
            raise InputError(f"--set {name}: found {len(values)} numbers; a parameter has one")
    return model


def model_of(
    file: str, base: str | None = None, root: str | None = None, repair: bool = False, contacts: bool | str = False
) -> Model:
    """The model of an argument: a path, zoo:NAME, or zoo:NAME:NUMBER for families of any size."""
    if not file.startswith(ZOO):
        return load(file, base, root=root, repair=repair, contacts=contacts)
    if base is not None:
        raise InputError(f"{file}: --base applies to URDF files only")
    for option, is_given in (("--root", root is not None), ("--repair", repair), ("--load-contacts", contacts)):
        if is_given:
            raise InputError(f"{file}: {option} applies to files only")
    name, _, size = file.removeprefix(ZOO).partition(":")
    if name not in zoo.names():
        raise InputError(f"the zoo has no {name!r}; {nearest(name, zoo.names())}")
    return getattr(zoo, name)(*_size(name, size))


def _size(name: str, size: str) -> tuple[int, ...]:
    """The number after the name: how many bodies, or the seed of a random model."""
    parameters = list(inspect.signature(getattr(zoo, name)).parameters.values())
    if not size:
        if parameters and parameters[0].default is inspect.Parameter.empty:
            raise InputError(f"zoo:{name} needs a number ({parameters[0].name}); try zoo:{name}:6")
        return ()
    if not parameters or parameters[0].kind is inspect.Parameter.KEYWORD_ONLY:
        raise InputError(f"zoo:{name} takes no number; try zoo:{name}")
    if not size.isdecimal() or len(size) > 6:
        raise InputError(f"zoo:{name}:{size}: {size!r} is not a whole number of at most six digits; try zoo:{name}:6")
    return (int(size),)


def is_run(word: str) -> bool:
    """Whether an argument names the file of a run."""
    return Path(word).suffix.lower() in RUNS


def run_of(word: str, number: int | None = None) -> Trajectory:
    """The run in a file; run `number` if it holds a batch."""
    if not is_run(word):
        example = "spanloop simulate zoo:four_bar --output run.npz"
        raise InputError(f"{word}: expected the file of a run ({', '.join(RUNS)}); make one with: {example}")
    run = load_run(word)
    if not run.batch:
        if number is not None:
            raise InputError(f"{word}: --run {number} is for a batch; this is one run. Leave --run out")
        return run
    if number is None:
        raise InputError(f"{word}: this is a batch of {len(run.outcomes)} runs; choose one with --run 0")
    return run[number]


def by_name(words: Sequence[str], option: str, example: str = "elbow=0.3") -> dict[str, list[float]]:
    """Numbers by name from arguments NAME=VALUE[,VALUE...], for example elbow=30deg or ball=1,0,0,0."""
    out = {}
    for word in words:
        name, values = _parts(word, option, example)
        out[name] = numbers(values, f"{option} {word}")
    return out


def _parts(word: str, option: str, example: str) -> tuple[str, str]:
    """NAME and VALUE of an argument NAME=VALUE."""
    name, equals, value = word.partition("=")
    if not equals or not name:
        raise InputError(f"{option} {word}: expected NAME=VALUE, for example {option} {example}")
    return name, value


def numbers(text: str, where: str, infinite: bool = False) -> list[float]:
    """Numbers in SI units from VALUE[,VALUE...], with units or without. where: begins an error message."""
    return [_number(x, where, infinite) for x in text.split(",")]


def initial_state(
    robot: Dynamics, file: str, coordinates: Mapping[str, Sequence[float]], rates: Mapping[str, Sequence[float]]
) -> tuple[np.ndarray, np.ndarray]:
    """q (nq,) and v (nv,) with the given coordinates and rates; the robot's loops are closed around them.

    Other coordinates are those of the zoo's own start, or neutral ones inside the joints' limits.
    """
    model = robot.model
    q = _default_q(model, file)
    for name, values in coordinates.items():
        _put(q, model.q_slice(name), values, f"--q {name}")
    closed = bool(model.loops or model.couplings)
    if closed:
        from spanloop.simulation.initial_state import assembled

        q = assembled(robot, q, tuple(coordinates))
    v: np.ndarray = np.zeros(model.nv)
    for name, values in rates.items():
        _put(v, model.v_slice(name), values, f"--v {name}")
    if closed and rates:
        from spanloop.cli.start.initial_rates import rates_around_loops

        v = rates_around_loops(robot, q, rates)
    return q, v


def torques(model: Model, values_by_name: Mapping[str, Sequence[float]]) -> np.ndarray:
    """tau (nv,) with the given entries, zero elsewhere."""
    tau = np.zeros(model.nv)
    for name, values in values_by_name.items():
        _put(tau, model.v_slice(name), values, f"--tau {name}")
    return tau


def _default_q(model: Model, file: str) -> np.ndarray:
    name, _, size = file.removeprefix(ZOO).partition(":")
    begin = getattr(zoo, f"{name}_start", None) if file.startswith(ZOO) else None
    if begin is None:
        from spanloop.model.poses import default_position

        return default_position(model)
    return np.array(begin(int(size)) if size else begin(), dtype=float)


def _put(array: np.ndarray, where: slice, values: Sequence[float], option: str) -> None:
    count = where.stop - where.start
    if len(values) != count:
        raise InputError(f"{option}: found {len(values)} numbers; the joint has {count}")
    array[where] = values


def _number(text: str, where: str, infinite: bool) -> float:
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz°") if not text.endswith(("inf", "nan")) else text
    unit = text[len(digits) :].replace("°", "deg")
    try:
        value = float(digits)
    except ValueError:
        raise InputError(f"{where}: {text!r} is not a number; expected one such as 0.3 or 30deg") from None
    if unit and unit not in UNITS:
        raise InputError(f"{where}: unknown unit {unit!r}; expected one of {', '.join(UNITS)}")
    if not (math.isfinite(value) or (infinite and math.isinf(value))):
        raise InputError(f"{where}: {text!r} is not finite")
    return value * UNITS.get(unit, 1.0)
