"""Mechanisms of legs on one platform: ready ones, and random ones."""

from __future__ import annotations

from dataclasses import replace
from math import cos, pi, sin

import numpy as np
from dense_closures import ClosedReference
from random_loops import Case, condition, fitted, moving

import spanloop as sl
from spanloop import zoo

FITS = (
    "four_bar",
    "four_bar ball",
    "four_bar cylindrical",
    "slider_crank",
    "slider_crank offset",
    "five_bar",
    "five_bar ball",
    "andrews",
    "bricard",
    "stewart",
    "arms 1",
    "five-joint arms 1",
)


def three_legs() -> tuple[sl.Model, np.ndarray]:
    """A triangle on three plane legs of two links; it is the last link of the first leg. Damped, with rotors."""
    b = sl.Builder("three_legs", gravity=(0.0, -9.81, 0.0))
    around = (-pi / 2, pi / 6, 5 * pi / 6)
    feet, corners = (np.array([(r * cos(a), r * sin(a), 0.0) for a in around]) for r in (2.0, 0.5))
    b.body("plate", 2.0, -corners[0], (0.1, 0.1, 0.2))  # its frame is at its first corner
    for i, (foot, corner) in enumerate(zip(feet, corners - corners[0], strict=True), 1):
        for part in ("near", "far"):
            b.body(f"{part}{i}", 1.0, (0.5, 0.0, 0.0), (0.01, 0.1, 0.1))
        b.revolute(f"drive{i}", "world", f"near{i}", "z", foot, armature=0.05, damping=0.1)
        b.revolute(f"elbow{i}", f"near{i}", f"far{i}", "z", (1.0, 0.0, 0.0), actuated=False, damping=0.2)
        if i == 1:
            b.revolute("wrist1", "far1", "plate", "z", (1.0, 0.0, 0.0), actuated=False)
        else:
            b.frame(f"tip{i}", f"far{i}", (1.0, 0.0, 0.0)).frame(f"corner{i}", "plate", corner)
            b.loop(f"corner{i}", f"tip{i}", "revolute", name=f"wrist{i}")
    model = b.build()
    guess = model.neutral()
    for i, (drive, elbow) in enumerate(((2.2, -1.4), (4.2, -1.3), (6.3, -1.3)), 1):
        guess[model.q_slice(f"drive{i}")], guess[model.q_slice(f"elbow{i}")] = drive, elbow
    return model, sl.Dynamics(model).assemble(guess)


def random_legs(seed: int) -> Case:
    """A free platform on two to five legs that leave it six freedoms, six actuators anywhere, moving."""
    rng = np.random.default_rng(seed)
    while True:
        model, q = _random_legs(rng)
        if condition(model, q) < 50.0 and _driven(model, q):
            return moving(model, q, rng)


def _random_legs(rng) -> tuple[sl.Model, np.ndarray]:
    """Loops are put in so that they fit at the coordinates q."""
    b = sl.Builder("random_legs")
    zoo.random_models.add_random_body(b, "platform", rng)
    b.free("floating", "world", "platform", actuated=False)
    ends = []
    freedoms = []
    for leg in range(int(rng.integers(2, 6))):
        closing = str(rng.choice(("spherical", "revolute", "cylindrical", "fixed", "planar")))
        parent = "world"
        for k in range(6 - sl.joints.KINDS[closing]().nv):
            name = f"leg{leg}_{k}"
            zoo.random_models.add_random_body(b, name, rng)
            kind = zoo.random_models.random_kind(
                str(rng.choice(("revolute", "prismatic", "helical"), p=(0.7, 0.2, 0.1))), rng
            )
            b.joint(f"joint{name}", kind, parent, name, zoo.random_models.random_position(rng))
            freedoms.append(f"joint{name}")
            parent = name
        ends.append((closing, parent))
    tree = b.build()
    chosen = set(rng.choice(freedoms, 6, replace=False).tolist())
    tree = replace(tree, joints=tuple(replace(j, actuated=j.name in chosen) for j in tree.joints))
    q, _ = tree.random_state(rng)
    turned = [(a, c) if rng.uniform() < 0.5 else (c, a) for a, c in ((end, "platform") for _, end in ends)]
    loops = [fitted(tree, q, f"loop{k}", kind, *turned[k], rng) for k, (kind, _) in enumerate(ends)]
    return replace(tree, loops=tuple(loops)), q


def _driven(model, q) -> bool:
    """Are the actuated freedoms well independent, and as many as the loops leave?"""
    J = np.array(ClosedReference(model, q).closure_jacobian(), float)
    passive = [k for j in model.joints if not j.actuated for k in range(model.nv)[model.v_slice(j.name)]]
    s = np.linalg.svd(J[:, passive], compute_uv=False)
    return len(J) == len(passive) and s[-1] > 0.02 * s[0]
