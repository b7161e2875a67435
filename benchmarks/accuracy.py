"""Relative errors of forward dynamics of trees by family and method: `python benchmarks/accuracy.py [states]`.

Prints the table of docs/accuracy.md. Every answer is compared with the reference of tests/attack in extended precision
(x87, 64 bits), which shares no code with spanloop. The error of a state is that of its worst degree of freedom,
relative to the largest acceleration; lengths are in sizes of the mechanism, so that m/s² and rad/s² compare. "Rounding"
is what moving every number of state and model by one rounding does to the exact answer.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import spanloop as sl
from spanloop.errors import UnsupportedError

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "attack"))

from plain_data import data, shaken
from reference import Tree

METHODS = (
    ("articulated_body", "float64"),
    ("articulated_body_textbook", "float64"),
    ("decoupled_complement", "float64"),
    ("composite_body", "float64"),
    ("unit_vector", "float64"),
    ("virtual_work", "float64"),
    ("articulated_body", "float32"),
    ("composite_body", "float32"),
)
KINDS = ("revolute", "prismatic", "helical", "cylindrical", "universal", "spherical", "planar")


def chain(rng, n=5, kinds=KINDS, *, spread=0.0, size=1.0, offset=0.3, least=1.0) -> sl.Model:
    """A tree of n bodies of order `size` [m]; masses vary by 10^±spread, joints are `offset` apart."""
    b = sl.Builder("accuracy")
    for i in range(n):
        mass = 10.0 ** rng.uniform(-spread, spread)
        x, z = mass * size**2 * rng.uniform(0.05, 0.1, 2)
        b.body(f"b{i}", mass, 0.2 * size * rng.normal(size=3), (x, x, least * z))
        axis, parent = tuple(rng.normal(size=3)), f"b{rng.integers(max(0, i - 2), i)}" if i else "world"
        b.joint(f"j{i}", _kind(str(rng.choice(kinds)), axis, rng, size), parent, f"b{i}", offset * rng.normal(size=3))
    return b.build()


def _kind(name: str, axis, rng, size: float):
    if name == "spherical":
        return sl.joints.Spherical()
    if name == "universal":
        return sl.joints.Universal(axis, tuple(rng.normal(size=3)))
    return sl.joints.Helical(axis, pitch=0.1 * size) if name == "helical" else sl.joints.KINDS[name](axis)


def balls(rng) -> sl.Model:
    """Sixteen ball joints in a row."""
    b = sl.Builder("balls")
    for i in range(16):
        b.body(f"b{i}", 1.0, 0.2 * rng.normal(size=3), rng.uniform(0.05, 0.1, 3))
        b.spherical(f"j{i}", f"b{i - 1}" if i else "world", f"b{i}", 0.3 * rng.normal(size=3))
    return b.build()


def gimbal(rng) -> sl.Model:
    """Three hinges that meet, with bodies that weigh nothing between them."""
    b = sl.Builder("gimbal").body("a").body("b")
    b.body("c", 1.0, 0.2 * rng.normal(size=3), rng.uniform(0.05, 0.1, 3))
    return b.revolute("j1", "world", "a", "z").revolute("j2", "a", "b", "y").revolute("j3", "b", "c", "x").build()


def near_gimbal_lock(model, q, rng):
    q[:, 1] = 0.5 * np.pi + 10.0 ** rng.uniform(-8.0, -1.0, len(q))


def turned_often(model, q, rng):
    at = [model.q_slice(j.name).start for j in model.joints if j.kind.name in ("revolute", "helical", "cylindrical")]
    q[:, at] *= 1e6 / np.pi


def shrunk(model, q, rng):
    q *= np.array([1e-5 if is_length else 1.0 for j in model.joints for is_length in j.kind.lengths()])


def slid_far(model, q, rng):
    q[:, [model.q_slice(j.name).start for j in model.joints if j.kind.name == "prismatic"]] = 1.0


SLIDES = ("prismatic", "revolute")
TURNING = ("revolute", "helical", "cylindrical")
FAMILIES: dict[str, tuple[Callable, Callable | None]] = {
    "well scaled": (chain, None),
    "sixteen ball joints": (balls, None),
    "mass ratios to 1e6": (lambda rng: chain(rng, spread=3.0), None),
    "mass ratios to 1e12": (lambda rng: chain(rng, spread=6.0), None),
    "thin bodies (1e-6)": (lambda rng: chain(rng, least=1e-6), None),
    "bodies of 1e-5 m": (lambda rng: chain(rng, size=1e-5, offset=3e-6), shrunk),
    "joints 1e5 m apart": (lambda rng: chain(rng, offset=1e5), None),
    "bodies of 1e-4 m on slides at 1 m": (lambda rng: chain(rng, 4, SLIDES, size=1e-4, offset=1e-4), slid_far),
    "turned by 1e6 rad": (lambda rng: chain(rng, 5, TURNING), turned_often),
    "near gimbal lock": (gimbal, near_gimbal_lock),
}


def errors(family: str, n_models: int, n_states: int) -> dict[str, list[np.ndarray]]:
    """Errors of all states by column of the table; NaN where a state is refused."""
    make, move = FAMILIES[family]
    out: dict[str, list[np.ndarray]] = {}
    for k in range(n_models):
        rng = np.random.default_rng([k, len(family)])
        model = make(rng)
        states = [model.random_state(rng) for _ in range(n_states)]
        q, v = (np.array(x) for x in zip(*states, strict=True))
        if move:
            move(model, q, rng)
        tau = rng.normal(size=v.shape)
        exact = _exact(data(model), q, v, tau)
        moved = _exact(data(model).rounded(rng), *(shaken(x, rng) for x in (q, v, tau)))
        out.setdefault("rounding", []).append(_error(moved, exact, model))
        for method, dtype in METHODS:
            out.setdefault(f"{method} {dtype}", []).append(
                _error(_answer(model, method, dtype, q, v, tau), exact, model)
            )
    return out


def _exact(numbers, q, v, tau):
    return Tree(numbers, q.T, v.T).forward_dynamics(tau.T)[0].T


def _answer(model, method: str, dtype: str, q, v, tau):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return sl.compile(model, "forward_dynamics", method=method, dtype=dtype)(q, v, tau)
    except UnsupportedError:
        return np.full(v.shape, np.nan)


def _error(a, exact, model) -> np.ndarray:
    size = max(float(np.abs(b.inertia.center).max()) for b in model.bodies)
    weights = np.array([1.0 if u == "m" else size for j in model.joints for u in j.kind.units])
    off, largest = np.abs(a - exact) * weights, (np.abs(exact) * weights).max(1)
    return (off.max(1) / largest).astype(float)


def main(n_states: int, n_models: int = 4) -> None:
    heads = ["rounding", *(f"{method} {dtype}" for method, dtype in METHODS)]
    print("| family | " + " | ".join(heads) + " |\n|---|" + "---|" * len(heads))
    for family in FAMILIES:
        found = errors(family, n_models, n_states)
        cells = []
        for head in heads:
            x = np.concatenate(found[head])
            worst, refused = np.nanmax(x, initial=0.0), np.isnan(x).mean()
            cells.append((f"{worst:.0e}" if refused < 1.0 else "–") + (f" ({100 * refused:.1f} %)" if refused else ""))
        print(f"| {family} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
