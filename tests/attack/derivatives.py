"""Attack derivatives of trees: ∂a/∂(q, v, tau) and ∂tau/∂(q, v, a) along random directions, in three ways.

A case is a random tree (attacked_trees.py) at some states. The derivatives of `robot.derivatives` and
`robot.inverse_dynamics_derivatives`, times a direction, are compared with differences of the reference in extended
precision, and with `robot.jvp`; `robot.vjp` with the same numbers. A state is wrong if one of them is off, or if one
is refused although the mass matrix is regular.
"""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
from assembling import moved, units
from attacked_trees import TreeCase
from judging import REGULAR
from plain_data import data, real
from reference import Tree
from tally import Tally, until

import spanloop as sl

STATES = 20
AGREE = 1e-8  # of the terms that a derivative along a direction is the sum of
STEPS = (1e-4, 5e-5)  # of differences, of the size of the mechanism
EARLIER = 100.0  # by which pivots may be larger where derivatives are refused


def attack(seed: int, deadline: float) -> Tally:
    """Cases 0, 1, 2, ... of a seed until the deadline."""
    return until(case, seed, deadline)


def case(seed: int, k: int, n: int = STATES) -> Tally:
    """One mechanism at n states."""
    rng = np.random.default_rng([seed, k, 7])
    made, tally = TreeCase(rng), Tally(notes=Counter(mechanisms=1))
    if not made.model.nv:
        return tally
    name = f"derivatives.case({seed}, {k}), {made.theme}"
    try:
        for function in ("forward_dynamics", "inverse_dynamics"):
            _compare(made, function, n, rng, name, tally)
    except sl.errors.UnsupportedError:
        tally.notes["unsupported"] += 1
    except Exception as error:
        tally.fail(f"{name}: {type(error).__name__}: {error}")
    return tally


def _compare(made: TreeCase, function: str, n: int, rng: np.random.Generator, name: str, tally: Tally) -> None:
    model, robot = made.model, sl.Dynamics(made.model)
    q, v, last = made.states(n)
    numbers = data(model)
    per = units(numbers, made.size)
    scale = np.abs(last).max(axis=-1, initial=0.0)
    directions = [rng.normal(size=(n, model.nv)) * x for x in (per, per, 1.0)]
    directions[2] = directions[2] * scale[:, None]
    names = ("q", "v", "tau" if function == "forward_dynamics" else "a")
    inputs = dict(zip(names, (q, v, last), strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sl.errors.SpanloopWarning)
        if function == "forward_dynamics":
            J = robot.derivatives(q, v, last).da
        else:
            J = robot.inverse_dynamics_derivatives(q, v, last).dtau
        along = robot.jvp(function, inputs, dict(zip(names, directions, strict=True)))
        weights = rng.normal(size=(n, model.nv))
        back = robot.vjp(function, inputs, weights)
    d = np.concatenate(directions, axis=-1)
    terms = np.einsum("nij,nj->ni", np.abs(J), np.abs(d))
    size = terms.max(axis=-1, keepdims=True)
    expected, doubt, pivot = _differences(numbers, function, (q, v, last), directions)
    allowed = AGREE * size + 20.0 * doubt
    found = np.einsum("nij,nj->ni", J, d)
    answered = np.isfinite(J).all(axis=(1, 2)) & np.isfinite(along).all(axis=1)
    wrong = answered & (
        (np.abs(found - expected) > allowed).any(axis=1) | (np.abs(found - along) > allowed).any(axis=1)
    )
    sums = sum((back[x] * y).sum(axis=1) for x, y in zip(names, directions, strict=True))
    wrong |= answered & (np.abs(sums - (weights * along).sum(axis=1)) > AGREE * (np.abs(weights) * size).sum(axis=1))
    refused = ~answered & (pivot < EARLIER * REGULAR)
    wrong |= ~answered & ~refused
    tally.count(right=int((answered & ~wrong).sum()), refused=int(refused.sum()))
    if wrong.any():
        k = int(np.flatnonzero(wrong)[0])
        off = float(np.nanmax(np.abs(found[k] - expected[k]) / size[k], initial=0.0))
        tally.fail(f"{name}: {function}, state {k} of {n}, off by {off:.1e}, pivot {pivot[k]:.1e}", int(wrong.sum()))


def _differences(numbers, function: str, inputs, directions):
    """Derivatives (n, nv) along directions in extended precision, how sure they are, and the smallest pivots (n,)."""
    q, v, last = (real(x.T) for x in inputs)
    dq, dv, dlast = (real(x.T) for x in directions)

    def at(s):
        tree = Tree(numbers, moved(numbers, q, s * dq), v + s * dv)
        if function == "inverse_dynamics":
            return tree.inverse_dynamics(last + s * dlast)
        return tree.forward_dynamics(last + s * dlast)[0]

    found = []
    for step in STEPS:
        h = real(step)
        pairs = [at(k * h) - at(-k * h) for k in (1, 2, 3)]
        found.append((45 * pairs[0] - 9 * pairs[1] + pairs[2]) / (60 * h))
    pivot = Tree(numbers, q, v).forward_dynamics(last)[1]
    doubt = np.abs(found[0] - found[1])
    return np.asarray(found[1].T, float), np.asarray(doubt.T, float), np.asarray(pivot, float)
