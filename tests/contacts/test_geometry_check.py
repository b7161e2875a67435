"""Shapes that overlap at the start, and shapes that a step can pass through, are refused with a sentence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import spanloop as sl
from spanloop.contacts.geometry_check import overlap_refusal, tunnel_limit, tunnel_refusal
from spanloop.errors import InputError, Reason, StateError
from spanloop.joints import Free
from spanloop.model.contacts import Contact, ContactSide
from spanloop.model.parts import Body, Geometry, Inertia, Joint


def body_with(*contacts: Contact) -> sl.Model:
    inertia = Inertia(1.0, (0.0, 0.0, 0.0), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1))
    joint = Joint("free", Free(), "world", "crate")
    return sl.Model("m", bodies=(Body("crate", inertia),), joints=(joint,), contacts=contacts)


def contact(shape: str, size: tuple[float, ...], other: str = "plane", other_size: tuple[float, ...] = ()) -> Contact:
    return Contact("c", ContactSide("crate", Geometry(shape, size)), ContactSide("world", Geometry(other, other_size)))


def test_an_overlap_names_depth_pair_point_and_the_way_out():
    model = body_with(contact("box", (1.0, 1.0, 1.0)))
    q = np.array([1.0, 0, 0, 0, 0, 0, 0.4968])
    found = sl.Dynamics(model).contact_geometry(q)
    refusal = overlap_refusal(model, found.gap, found.normal)
    assert refusal.reason is Reason.OVERLAP
    assert str(refusal) == (
        "contact 'c': the box of 'crate' and the plane of 'world' overlap by 3.2 mm, deepest at 'c.1'; at most 0.001 "
        "mm at the start. Move 'crate' away from 'world' by (0, 0, 0.0032) m in world axes, or allow it: "
        "contacts=sl.contacts.Settings(overlap=...)"
    )
    assert overlap_refusal(model, found.gap + 0.0032) is None
    assert overlap_refusal(model, found.gap, bound=0.01) is None
    assert " of run 1: " in overlap_refusal(model, [found.gap + 1.0, found.gap]).sentence


def test_a_compliant_contact_may_start_with_an_overlap():
    model = body_with(replace(contact("sphere", (0.1,)), stiffness=1e4))
    assert overlap_refusal(model, [-0.01]) is None


@pytest.mark.parametrize(
    ("shape", "size", "other", "other_size", "limit"),
    [
        ("sphere", (0.1,), "plane", (), np.inf),
        ("sphere", (0.1,), "sphere", (0.2,), 0.3),
        ("point", (), "box", (1.0, 0.5, 0.02), 0.01),
        ("sphere", (0.1,), "cylinder", (0.3, 0.1), 0.15),
        ("capsule", (0.1, 1.0), "capsule", (0.2, 1.0), 0.3),
    ],
)
def test_shapes_that_overlap_by_up_to_the_limit_part_on_the_side_from_which_they_came(
    shape, size, other, other_size, limit
):
    declared = contact(shape, size, other, other_size)
    assert tunnel_limit(declared) == pytest.approx(limit)
    if limit < np.inf:  # the same normal just before the limit, the opposite one just beyond, along the thinnest way
        robot = sl.Dynamics(body_with(declared), target="python")
        way = 2 if other in ("box", "cylinder") else 0
        top = {"box": 0.5 * other_size[-1], "cylinder": 0.5 * other_size[-1]}.get(other, other_size[0])
        reach = top + (size[0] if size else 0.0)
        for depth, sign in ((limit - 1e-3, 1.0), (limit + 1e-3, -1.0)):
            q = np.array([1.0, 0, 0, 0, 0, 0, 0])
            q[4 + way] = reach - depth
            found = robot.contact_geometry(q)
            assert found.normal[0, way] == sign


def test_a_step_that_passes_through_names_the_step_that_does_not():
    model = body_with(contact("sphere", (0.01,), "box", (1.0, 1.0, 0.02)))
    refusal = tunnel_refusal(model, [0.005], [-30.0], 1e-3)
    assert refusal.reason is Reason.TUNNEL
    assert str(refusal) == (
        "contact 'c': the sphere of 'crate' and the box of 'world' approach at 30 m/s, which is 30 mm in a step of "
        "0.001 s; beyond 20 mm they can pass through each other. Take steps of at most 0.00066 s, or thicker shapes"
    )
    assert tunnel_refusal(model, [0.005], [-30.0], 0.0008) is None
    assert tunnel_refusal(model, [0.5], [-30.0], 1e-3) is None  # not in this step
    assert tunnel_refusal(body_with(contact("sphere", (0.01,))), [0.005], [-1e6], 1.0) is None


@pytest.mark.slow
def test_a_run_that_starts_with_an_overlap_is_refused_unless_it_is_allowed():
    model = body_with(contact("sphere", (0.1,)))
    q = np.array([[1.0, 0, 0, 0, 0, 0, 0.2], [1.0, 0, 0, 0, 0, 0, 0.095]])
    with pytest.raises(
        StateError, match=r"of run 1: the sphere of 'crate' and the plane of 'world' overlap by 5 mm;"
    ) as error:
        sl.simulate(model, q, duration=0.01)
    assert error.value.reason is Reason.OVERLAP
    assert "by (0, 0, 0.005) m in world axes" in str(error.value)
    run = sl.simulate(model, q, duration=0.01, contacts=sl.contacts.Settings(overlap=0.01))
    assert run.q[1, -1, 6] == pytest.approx(0.1, abs=1e-9)
    assert sl.simulate(model, q, duration=0.01, contacts="ignore").q[1, -1, 6] < 0.095
    with pytest.raises(InputError, match="overlap is -1; expected a length"):
        sl.contacts.Settings(overlap=-1)


@pytest.mark.slow
def test_a_run_ends_before_a_step_that_can_pass_through_a_shape_and_others_go_on():
    model = replace(body_with(contact("sphere", (0.01,), "box", (0.02, 1.0, 1.0))), gravity=(0.0, 0.0, 0.0))
    q, v = np.array([1.0, 0, 0, 0, -0.3, 0, 0]), np.zeros((2, 6))
    v[:, 3] = 30.0, 5.0
    run = sl.simulate(model, q, v, duration=0.08, step=1e-3)
    assert [o.reason for o in run.outcomes] == ["tunnel", "finished"]
    assert "which is 30 mm in a step of 0.001 s" in str(run.outcomes[0])
    np.testing.assert_allclose(run[1].q[-1, 4], -0.02, atol=1e-9)
    short = sl.simulate(model, q, v[0], duration=0.02, step=0.625e-3)
    np.testing.assert_allclose(short.q[-1, 4], -0.02, atol=1e-9)
    located = sl.simulate(model, q, v, duration=0.08, step=1e-3, contacts="events")
    np.testing.assert_allclose(located.events.time, [0.28 / 30.0, 0.28 / 5.0], atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize(("turn", "slope", "tips"), [(0.0, 0.39, False), (0.0, 0.41, True), (0.4, 0.36, False)])
def test_a_standing_cylinder_is_steady_and_tips_where_its_octagon_does(turn, slope, tips):
    """Radius over half height is 0.4, of the octagon that its points make at least 0.3696."""
    model = body_with(replace(contact("cylinder", (0.1, 0.5)), friction=1.0))
    gravity = np.array([slope * np.cos(turn), slope * np.sin(turn), -1.0])
    model = replace(model, gravity=tuple(9.81 * gravity / np.linalg.norm(gravity)))
    run = sl.simulate(model, [1.0, 0, 0, 0, 0, 0, 0.25], duration=2.0, step=1e-3)
    tilt = 2.0 * np.hypot(run.q[:, 1], run.q[:, 2])
    assert (tilt[-1] > 1.0) == tips
    assert tips or tilt.max() < 1e-9
