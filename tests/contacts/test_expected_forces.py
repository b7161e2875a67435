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


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["rk4", "implicit"])
def test_what_stands_at_the_start_is_not_shaken_by_the_first_step(integrator):
    """Forces of the first step are expected too: without them legs fall for a step, and squeeze each other later."""
    b = sl.Builder("table").body("top", mass=4.0, inertia=(0.1, 0.1, 0.1))
    b.free("flight", "world", "top")
    for k, x in enumerate((-0.3, 0.3)):
        b.body(f"leg{k}", mass=0.1, center=(0, 0, -0.2), inertia=(1e-3, 1e-3, 1e-4))
        b.revolute(f"hip{k}", "top", f"leg{k}", "y", (x, 0, 0)).frame(f"left{k}", f"leg{k}", (0, 0.2, -0.4))
        b.frame(f"right{k}", f"leg{k}", (0, -0.2, -0.4))
    model = b.build()
    for k in range(2):
        for side in ("left", "right"):
            model = model.with_contact(f"{side}{k}", f"{side}{k}", "ground", friction=0.6)
    law = sl.control.pd(model, 300.0, 4.0, {"hip0": 0.2, "hip1": -0.2})
    q = model.neutral()
    q[6] = 0.4
    settled = sl.simulate(model, q, duration=3.0, controller=law, integrator=integrator)
    again = sl.simulate(model, settled.q[-1], duration=0.05, controller=law, integrator=integrator)
    assert np.abs(settled.v[-1]).max() < 1e-9
    assert np.abs(again.v).max() < 1e-8
    then, now = (run.contacts["left0"].force + run.contacts["right0"].force for run in (settled, again))
    np.testing.assert_allclose(now[1:4, [0, 2]], np.broadcast_to(then[-1, [0, 2]], (3, 2)), atol=1e-5)
