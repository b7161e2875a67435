"""Closed mechanisms by name with their answers in fifty digits, and how far a result is from one."""

from __future__ import annotations

import functools

import numpy as np
from closed_zoo import CASES as ZOO
from closed_zoo import mechanism
from dense_driven import exact
from random_loops import Case, moving, random_loops, random_plane_loop

import spanloop as sl

AGREE = 1e-10


@functools.cache
def case_of(name: str, seed: int = 0) -> Case:
    """A mechanism of the zoo, random loops ("random 7", "doubled 7") or a random loop in a plane ("plane 7")."""
    if name in ZOO:
        return moving(*mechanism(name), np.random.default_rng(seed))
    kind, number = name.split()
    if kind == "plane":
        return random_plane_loop(int(number))
    return random_loops(int(number), doubled=kind == "doubled")


@functools.cache
def answer_of(name: str) -> np.ndarray:
    c = case_of(name)
    return exact(c.model, c.q, c.v, c.tau)


def difference(a, expected) -> float:
    return float(np.abs(a - expected).max() / np.abs(expected).max())


def accelerations(case: Case, **options) -> np.ndarray:
    return sl.compile(case.model, "forward_dynamics", **options)(case.q, case.v, case.tau)
