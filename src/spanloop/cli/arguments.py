"""The word that names a mechanism: a file, or one of the zoo."""

from __future__ import annotations

import argparse
import inspect
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from spanloop import zoo
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, nearest
from spanloop.model import Model
from spanloop.model.files import load
from spanloop.trajectory import Trajectory
from spanloop.trajectory.files.storage import load_run

ZOO = "zoo:"


def add_model(parser: argparse.ArgumentParser) -> None:
    """The words that name a mechanism."""
    told = "a .urdf, .xml (MJCF), .sdf, .toml or .csv file, or zoo:NAME (zoo:puma, zoo:chain:6)"
    parser.add_argument("file", metavar="MODEL", help=told)
    parser.add_argument("--base", choices=("fixed", "free"), help="how a URDF's root link stands on the world (fixed)")


def model_of(file: str, base: str | None) -> Model:
    """The model that a word names: a path, or zoo:NAME, or zoo:NAME:NUMBER for those of any size."""
    if not file.startswith(ZOO):
        return load(file, base)
    if base is not None:
        raise InputError(f"{file}: --base is for URDF files; a mechanism of the zoo has its own")
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


# ---- Runs in files, as words of commands.


RUNS = (".nc", ".h5", ".npz")


def is_run(word: str) -> bool:
    """Does this word name the file of a run?"""
    return Path(word).suffix.lower() in RUNS


def run_of(word: str, number: int | None = None) -> Trajectory:
    """The run in a file; of a batch the one with this number."""
    if not is_run(word):
        told = "spanloop simulate zoo:four_bar --output run.npz"
        raise InputError(f"{word}: expected the file of a run ({', '.join(RUNS)}); make one with: {told}")
    run = load_run(word)
    if not run.batch:
        return run
    if number is None:
        raise InputError(f"{word}: this is a batch of {len(run.outcomes)} runs; choose one with --run 0")
    return run[number]


# ---- Where a motion starts, from words: elbow=0.3, elbow=30deg, ball=1,0,0,0.


UNITS = {"deg": math.pi / 180.0, "rad": 1.0, "m": 1.0, "mm": 1e-3, "cm": 1e-2}


def by_name(words: Sequence[str], option: str) -> dict[str, list[float]]:
    """name=value[,value...] as numbers by name."""
    out = {}
    for word in words:
        name, equals, values = word.partition("=")
        if not equals or not name:
            raise InputError(f"{option} {word}: expected NAME=VALUE, for example {option} elbow=0.3")
        out[name] = numbers(values, f"{option} {word}")
    return out


def numbers(text: str, told: str) -> list[float]:
    """value[,value...] with units, in SI units; told: the words that an error names."""
    return [_number(x, told) for x in text.split(",")]


def start(robot: Dynamics, file: str, coordinates: dict[str, list[float]], rates: dict[str, list[float]]):
    """q (nq,) and v (nv,): a mechanism of the zoo as it stands there, others at zero; told coordinates and rates put
    in, and loops closed around them."""
    model = robot.model
    q = _standing(model, file)
    for name, values in coordinates.items():
        _put(q, model.q_slice(name), values, f"--q {name}")
    closed = bool(model.loops or model.couplings)
    if closed:
        q = robot.assemble(q, fixed=tuple(coordinates))
    v = np.zeros(model.nv)
    for name, values in rates.items():
        _put(v, model.v_slice(name), values, f"--v {name}")
    if closed and rates:
        told = {name: values[0] if len(values) == 1 else values for name, values in rates.items()}
        v = robot.complete_velocity(q, told) if len(rates) else v
    return q, v


def torques(model: Model, told: dict[str, list[float]]) -> np.ndarray:
    """tau (nv,) with these entries."""
    tau = np.zeros(model.nv)
    for name, values in told.items():
        _put(tau, model.v_slice(name), values, f"--tau {name}")
    return tau


def _standing(model: Model, file: str) -> np.ndarray:
    name, _, size = file.removeprefix(ZOO).partition(":")
    begin = getattr(zoo, f"{name}_start", None) if file.startswith(ZOO) else None
    if begin is None:
        return model.neutral()
    return np.array(begin(int(size)) if size else begin(), dtype=float)


def _put(array: np.ndarray, where: slice, values: list[float], told: str) -> None:
    count = where.stop - where.start
    if len(values) != count:
        raise InputError(f"{told}: {len(values)} numbers are given; the joint has {count}")
    array[where] = values


def _number(text: str, told: str) -> float:
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz°") if not text.endswith(("inf", "nan")) else text
    unit = text[len(digits) :].replace("°", "deg")
    try:
        value = float(digits)
    except ValueError:
        raise InputError(f"{told}: {text!r} is not a number; expected one such as 0.3 or 30deg") from None
    if unit and unit not in UNITS:
        raise InputError(f"{told}: there is no unit {unit!r}; there are {', '.join(UNITS)}")
    if not math.isfinite(value):
        raise InputError(f"{told}: {text!r} is not finite")
    return value * UNITS.get(unit, 1.0)
