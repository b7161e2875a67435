"""Runs whose impacts are located have the same bits in a batch as alone, whatever happens to their neighbours."""

import numpy as np
import pytest

import spanloop as sl


def falling_mass():
    b = sl.Builder("lift").body("mass", 1.0, inertia=(0.01,) * 3, geometry=[sl.contacts.Sphere(0.1)])
    return b.prismatic("z", "world", "mass", "z").build().with_ground(friction=0.0, restitution=0.0)


def hopper():
    b = sl.Builder("hopper").body("trunk", 2.0, inertia=(0.02,) * 3, geometry=[sl.contacts.Box(0.2, 0.1, 0.1)])
    b = b.body("leg", 0.5, (0, 0, -0.15), (0.004, 0.004, 1e-4)).free("root", "world", "trunk")
    model = b.revolute("hip", "trunk", "leg", "y").frame("toe", "leg", (0, 0, -0.3)).build()
    toe = ("toe", sl.contacts.Sphere(0.02))
    return model.with_contact("toe", toe, "ground", friction=0.8).with_contact("fall", "trunk", "ground", friction=0.4)


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["rk4", "midpoint", "implicit", "euler"])
def test_a_mass_that_is_lifted_while_its_neighbour_lands_moves_as_alone(integrator):
    """The second mass lands in the step in which a force lifts the first one off the ground."""
    q = np.array([[0.1], [0.1 + 0.5 * 9.81 * 0.1**2]])
    tau = np.zeros((2, 200, 1))
    tau[0, 100:] = 15.0
    given = {"duration": 0.2, "contacts": "events", "integrator": integrator}
    batch = sl.simulate(falling_mass(), q, tau=tau, **given)
    alone = sl.simulate(falling_mass(), q[0], tau=tau[0], **given)
    assert np.array_equal(batch[0].q, alone.q)
    assert np.array_equal(batch[0].v, alone.v)
    assert abs(alone.q[-1, 0] - (0.1 + 0.5 * (15.0 - 9.81) * 0.1**2)) < 6e-4  # Euler's steps are of first order
    assert alone.v[-1, 0] == pytest.approx((15.0 - 9.81) * 0.1, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("size", [3, 9])
def test_hoppers_that_push_off_and_fall_move_as_alone(size):
    rng = np.random.default_rng(size)
    q = np.zeros((size, 8))
    q[:, 0], q[:, 6], q[:, 7] = 1.0, 0.33 + 0.2 * rng.uniform(size=size), rng.uniform(-0.2, 0.2, size)
    tau = np.zeros((size, 250, 7))
    tau[:, :, 6] = np.repeat(rng.uniform(-6.0, 6.0, (size, 25)), 10, axis=1)
    given = {"step": 2e-3, "duration": 0.5, "contacts": "events"}
    batch = sl.simulate(hopper(), q, tau=tau, **given)
    happened = 0
    for k in range(size):
        alone = sl.simulate(hopper(), q[k], tau=tau[k], **given)
        happened += len(alone.events)
        assert np.array_equal(batch[k].times, alone.times)
        assert np.array_equal(batch[k].q, alone.q)
        assert np.array_equal(batch[k].v, alone.v)
    assert happened > 4 * size
