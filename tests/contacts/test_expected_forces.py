"""Springs and dampers between the ground and a body act as they would on a foot that is held."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import spanloop as sl

INTEGRATORS = ["rk4", "implicit", "euler"]


MASS, STIFFNESS = 10.0, 2e4  # kg, N/m


def hopper(damping):
    """A body on a leg with a spring, a damper and a light foot; it can slide along x."""
    b = sl.Builder("hopper").body("cart").body("body", MASS, inertia=(0.1, 0.1, 0.1))
    b.body("foot", 0.1, inertia=(1e-4, 1e-4, 1e-4))
    b.prismatic("slide", "world", "cart", "x", (0.0, 0.0, 1.0)).prismatic("lift", "cart", "body", "z")
    b.prismatic("leg", "body", "foot", "-z", stiffness=STIFFNESS, damping=damping, rest=1.0)
    return b.build().with_contact("sole", ("foot", sl.contacts.Point()), "ground", friction=0.5)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_body_on_a_damped_leg_sags_by_its_weight_over_the_stiffness(integrator):
    """The damper would stop a foot that falls in half a step."""
    run = sl.simulate(hopper(200.0), [0.0, 0.0, 1.0], duration=3.0, step=1e-3, integrator=integrator)
    sag = MASS * 9.81 / STIFFNESS
    assert run.q[-1] == pytest.approx([0.0, -sag, 1.0 - sag], abs=1e-10)
    assert np.abs(run.v[-1]).max() < 1e-10


def quadruped(damping):
    """The quadruped of the zoo with points for feet and springs in its joints, and its standing pose."""
    model, q = sl.zoo.quadruped(), sl.zoo.quadruped_start(foot=0.0)
    for joint in model.joints[1:]:
        rest = float(q[model.q_slice(joint.name)][0])
        model = model.with_joint(joint.name, stiffness=200.0, damping=damping, rest=rest)
    for leg in ("fl", "fr", "hl", "hr"):
        model = model.with_contact(leg, (f"{leg}_foot", sl.contacts.Point()), "ground", friction=0.8)
    return model, q


@pytest.mark.slow
def test_a_quadruped_lands_on_damped_legs_as_in_small_steps():
    """Without expected forces, right after an impact too, steps of 1 ms differ by 9e-3 m from those of 0.2 ms."""
    model, q = quadruped(4.0)
    q[6], q[:4] = q[6] + 0.02, (np.cos(0.05), 0.0, np.sin(0.05), 0.0)
    ends = [sl.simulate(model, q, duration=0.5, step=h, sample=0.5, integrator="rk4").q[-1] for h in (1e-3, 2e-4)]
    np.testing.assert_allclose(*ends, atol=1e-3)
    np.testing.assert_allclose(ends[0][4:7], ends[1][4:7], atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_quadruped_on_damped_springs_stands_as_if_its_feet_were_pinned(integrator):
    """Feet move by 1e-6 m while it settles, which the positions are compared to; they do not creep."""
    touching, q = quadruped(10.0)
    pinned = replace(touching, contacts=())
    for leg, x, y in (("fl", 0.2, 0.18), ("fr", 0.2, -0.18), ("hl", -0.2, 0.18), ("hr", -0.2, -0.18)):
        pinned = pinned.with_frame(f"{leg}_hold", "world", (x, y, 0.0))
        pinned = pinned.with_loop(f"{leg}_foot", f"{leg}_hold", "spherical", name=f"{leg}_pin")
    known = sl.simulate(pinned, q, duration=8.0, step=2e-3, integrator="implicit", sample=1.0)
    run = sl.simulate(touching, q, duration=8.0, step=1e-3, integrator=integrator, sample=1.0)
    np.testing.assert_allclose(run.q[-1], known.q[-1], atol=2e-6)
    assert np.abs(run.v[-1]).max() < 1e-11
    feet = [sl.Dynamics(touching).pose(run.q[-2:], f"{leg}_foot")[:, :3, 3] for leg in ("fl", "fr", "hl", "hr")]
    assert max(np.abs(np.diff(x, axis=0)).max() for x in feet) < 1e-12
