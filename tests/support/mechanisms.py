"""The mechanisms on which everything is tested, and their kernels, each made once a process."""

from __future__ import annotations

import functools
import warnings
from pathlib import Path

import numpy as np

import spanloop as sl
from spanloop import zoo
from spanloop.joints import KINDS

EPS = np.finfo(float).eps

_FILES = {
    "panda": ("panda_description/urdf/panda.urdf", "fixed"),
    "anymal": ("anymal_b_simple_description/robots/anymal.urdf", "free"),
    "talos": ("talos_data/robots/talos_reduced.urdf", "free"),
}
_FINGERS = ("panda_finger_joint1", "panda_finger_joint2")

ROBOTS = tuple(_FILES)
ZOO = {
    "pendulum": zoo.pendulum,
    "pendulum5": lambda: zoo.pendulum(5),
    "puma": zoo.puma,
    "stanford": zoo.stanford,
    "quadruped": zoo.quadruped,
    "star": lambda: zoo.star(4),
    "tree": lambda: zoo.tree(12, 3, seed=2),
    "chain16": lambda: zoo.chain(16),
    "chain8_random": lambda: zoo.chain(8, seed=4),
    **{f"chain_{kind}": lambda kind=kind: zoo.chain(3, kind, seed=5) for kind in KINDS if kind != "fixed"},
}
RANDOM = tuple(f"random{seed}" for seed in range(40))
MORE_RANDOM = tuple(f"random{seed}" for seed in range(40, 240))


@functools.cache
def model_of(name: str) -> sl.Model:
    """A mechanism by its name; robots are without losses, as other libraries see them."""
    if name in ZOO:
        return ZOO[name]()
    if name in _FILES:
        return robot(name)
    if name.startswith("random"):
        return zoo.random_model(int(name[6:]))
    raise KeyError(name)


def robot(name: str) -> sl.Model:
    """A robot of the wheel example-robot-data."""
    file, base = _FILES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sl.SpanloopWarning)  # of friction, which is dropped
        model = sl.load(robot_file(file), base=base).without_losses()
    return model.lock(*_FINGERS) if name == "panda" else model


def robot_file(file: str) -> Path:
    import pinocchio

    share = Path(pinocchio.__file__).parents[4] / "share"
    return share / "example-robot-data" / "robots" / file


@functools.cache
def kernel(name: str, function: str, **options):
    """A kernel of a named mechanism."""
    return sl.compile(model_of(name), function, **options)


def frame_of(model: sl.Model) -> str:
    """The frame farthest from the world: the last one given, or the last body."""
    return model.frames[-1].name if model.frames else model.bodies[-1].name


def states(model: sl.Model, n: int, seed: int = 0):
    """n random states: q, v, and a vector x of rates for accelerations or torques."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        q, v = model.random_state(rng)
        yield q, v, rng.normal(size=model.nv)


def batch(model: sl.Model, n: int, seed: int = 0):
    """The same as arrays (n, ...)."""
    q, v, x = zip(*states(model, n, seed), strict=True)
    return np.array(q), np.array(v), np.array(x)
