"""Runs with contacts beside the same steps by dense matrices and plain iterations (support/dense_contacts.py)."""

from __future__ import annotations

import contact_stories as known
import numpy as np
import pytest
from dense_contacts import DenseRun, dense_run

import spanloop as sl

STEP = 2e-3  # s


def tumbling(shape, mass: float = 1.0, **contact):
    """A free body with a shape that falls on the ground with spin."""
    b = (
        sl.Builder("tumbling")
        .body("body", mass, (0.01, -0.02, 0.005), (0.004, 0.006, 0.005))
        .free("f", "world", "body")
    )
    model = b.build().with_contact("ground", ("body", shape), "ground", friction=0.4, **contact)
    turn = np.array([0.8, 0.3, -0.4, 0.33])
    q = np.array([*(turn / np.linalg.norm(turn)), 0, 0, 0.0])
    q[6] = 0.02 - sl.Dynamics(model).contact_geometry(q).gap.min()
    return model, q, [3.0, -2.0, 4.0, 1.0, 0.5, -0.5]


def two_balls():
    """A ball that falls on another one, beside its middle."""
    b = sl.Builder("balls")
    for k, size in enumerate((0.1, 0.07)):
        b.body(f"ball{k}", 1.0 + k, inertia=(0.4 * (1 + k) * size**2,) * 3).free(f"free{k}", "world", f"ball{k}")
    model, shapes = b.build(), [(f"ball{k}", sl.contacts.Sphere(size)) for k, size in enumerate((0.1, 0.07))]
    for k in range(2):
        model = model.with_contact(f"ground{k}", shapes[k], "ground", friction=0.3)
    model = model.with_contact("pair", shapes[1], shapes[0], friction=0.6, restitution=0.4)
    return model, [*known.at(z=0.1), *known.at(0.03, 0.02, 0.3)], [0.0] * 6 + [0, 0, 5.0, 0, 0, -1.0]


def leg():
    """A hopper: a leg of two links under a body that slides up and down, with a foot on the ground."""
    b = sl.Builder("leg").body("hip", 2.0, inertia=(0.01,) * 3).prismatic("up", "world", "hip", "z")
    b.body("thigh", 0.8, (0.15, 0, 0), (0.001, 0.006, 0.006)).revolute("hip", "hip", "thigh", "y")
    b.body("shank", 0.5, (0.15, 0, 0), (0.001, 0.004, 0.004)).revolute("knee", "thigh", "shank", "y", (0.3, 0, 0))
    model = b.build().with_contact("foot", ("shank", sl.contacts.Sphere(0.02, position=(0.3, 0, 0))), friction=0.7)
    return model, [0.56, 1.0, 1.1], [-1.0, 2.0, -1.0]


def four_bar():
    """A four-bar whose coupler falls on a rough slope: impulses act through the loop."""
    plane = sl.contacts.Plane(position=(1.5, 0, 1.15), rotation=(0, -0.4, 0))
    point = ("coupler", sl.contacts.Point(position=(1.2, 0, -0.1)))
    model = sl.zoo.four_bar().with_contact("rub", point, ("world", plane), friction=0.3, restitution=0.3)
    return model, sl.zoo.four_bar_start(), np.zeros(3)


SCENES = {
    "box": lambda: tumbling(sl.contacts.Box(0.2, 0.3, 0.1)),
    "bouncing box": lambda: tumbling(sl.contacts.Box(0.2, 0.3, 0.1), restitution=0.5),
    "capsule": lambda: tumbling(sl.contacts.Capsule(0.05, 0.2)),
    "cylinder": lambda: tumbling(sl.contacts.Cylinder(0.08, 0.2)),
    "hull": lambda: tumbling(sl.contacts.Hull([(0.1, 0, 0), (0, 0.1, 0), (-0.1, -0.1, 0), (0, 0, 0.15)])),
    "two balls": two_balls,
    "leg": leg,
    "four-bar": four_bar,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_the_first_impulses_are_those_of_dense_matrices(name):
    model, q, v = SCENES[name]()
    run = sl.simulate(model, q, v, duration=150 * STEP, step=STEP)
    points = [run.contacts[x] for c in model.contacts for x in c.point_names]
    if name == "two balls":  # the lower one lies on the ground from the start
        points = points[1:]
    found = np.stack([p.force for p in points], axis=1) * STEP
    first = int(np.flatnonzero(np.abs(found).sum(axis=(1, 2)) > 0.0)[0])
    dense = DenseRun(model, STEP)
    dense.step(run.q[first - 1], run.v[first - 1])
    expected = dense.world_impulses[-len(points) :]
    assert np.abs(expected).max() > 1e-3
    near = 5e-3 if name == "two balls" else 1e-6  # the ground's force acts in the step of the first impact
    np.testing.assert_allclose(found[first], expected, atol=near * np.abs(expected).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["capsule", "cylinder", "leg", "four-bar"])
def test_a_run_is_near_that_of_dense_matrices(name):
    """Both are of second order: their difference falls with the square of the step."""
    model, q, v = SCENES[name]()
    run = sl.simulate(model, q, v, duration=120 * STEP, step=STEP)
    dense_q, _ = dense_run(model, run.q[0], run.v[0], 120 * STEP, STEP)
    np.testing.assert_allclose(run.q, dense_q, atol=3e-3)
