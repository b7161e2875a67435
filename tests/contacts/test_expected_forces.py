"""Springs and dampers between the ground and a body act as they would on a foot that is held."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl

INTEGRATORS = ["rk4", "implicit", "euler"]


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_body_on_a_damped_leg_sags_by_its_weight_over_the_stiffness(integrator):
    """The damper would stop a foot that falls in half a step."""
    mass, foot, stiffness, damping = 10.0, 0.1, 2e4, 200.0
    b = sl.Builder("hopper").body("cart").body("body", mass, inertia=(0.1, 0.1, 0.1))
    b.body("foot", foot, inertia=(1e-4, 1e-4, 1e-4))
    b.prismatic("slide", "world", "cart", "x", (0.0, 0.0, 1.0)).prismatic("lift", "cart", "body", "z")
    b.prismatic("leg", "body", "foot", "-z", stiffness=stiffness, damping=damping, rest=1.0)
    model = b.build().with_contact("sole", ("foot", sl.contacts.Point()), "ground", friction=0.5)
    run = sl.simulate(model, [0.0, 0.0, 1.0], duration=3.0, step=1e-3, integrator=integrator)
    sag = mass * 9.81 / stiffness
    assert run.q[-1] == pytest.approx([0.0, -sag, 1.0 - sag], abs=1e-10)
    assert np.abs(run.v[-1]).max() < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_quadruped_on_damped_springs_stands_as_if_its_feet_were_pinned(integrator):
    """Feet move by 1e-6 m while it settles, which the positions are compared to; they do not creep."""
    model, q = sl.zoo.quadruped(), sl.zoo.quadruped_start(foot=0.0)
    for joint in model.joints[1:]:
        rest = float(q[model.q_slice(joint.name)][0])
        model = model.with_joint(joint.name, stiffness=200.0, damping=10.0, rest=rest)
    touching, pinned = model, model
    for leg, x, y in (("fl", 0.2, 0.18), ("fr", 0.2, -0.18), ("hl", -0.2, 0.18), ("hr", -0.2, -0.18)):
        touching = touching.with_contact(leg, (f"{leg}_foot", sl.contacts.Point()), "ground", friction=0.8)
        pinned = pinned.with_frame(f"{leg}_hold", "world", (x, y, 0.0))
        pinned = pinned.with_loop(f"{leg}_foot", f"{leg}_hold", "spherical", name=f"{leg}_pin")
    known = sl.simulate(pinned, q, duration=8.0, step=2e-3, integrator="implicit", sample=1.0)
    run = sl.simulate(touching, q, duration=8.0, step=1e-3, integrator=integrator, sample=1.0)
    np.testing.assert_allclose(run.q[-1], known.q[-1], atol=2e-6)
    assert np.abs(run.v[-1]).max() < 1e-11
    feet = [sl.Dynamics(model).pose(run.q[-2:], f"{leg}_foot")[:, :3, 3] for leg in ("fl", "fr", "hl", "hr")]
    assert max(np.abs(np.diff(x, axis=0)).max() for x in feet) < 1e-12
