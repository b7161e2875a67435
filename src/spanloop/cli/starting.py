"""Where a motion starts, from words: elbow=0.3, elbow=30deg, ball=1,0,0,0."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from spanloop import zoo
from spanloop.cli.models import ZOO
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError
from spanloop.model import Model

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
