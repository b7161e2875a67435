"""An edit gives a new model that is the old one but for what was asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from frames import body_pose
from sentences import says

from spanloop import zoo
from spanloop.errors import InputError, ModelError
from spanloop.joints import KINDS, Universal
from spanloop.model import Actuator, Body, Coupling, Geometry, Model, Placement, Sensor
from spanloop.model.builder import Builder

# products of some ten rotations, lengths of order 1
ROUNDING = 1e-13


def world_inertia(model, q):
    """Mass, first and second moment of everything that can move, about the world's origin."""
    fixed = {"world"}
    for j in model.joints:
        if j.kind.nv == 0 and j.parent in fixed:
            fixed.add(j.child)
    total = np.zeros(13)
    for b in model.bodies:
        if b.name in fixed:
            continue
        x = body_pose(model, q, b.name)
        placement = Placement(tuple(map(tuple, x[:3, :3].tolist())), tuple(x[:3, 3].tolist()))
        i = b.inertia.rigid().carried(placement.transform())
        total += np.array((i.mass, *i.first, *np.ravel(i.second)))
    return total


def geared(ratio=2.0, offset=0.0) -> Model:
    """Three hinges, the second geared to the first."""
    return replace(zoo.chain(3), couplings=(Coupling("gear", "joint2", "joint1", ratio, offset),))


# ---- lock


@pytest.mark.parametrize("seed", range(20))
def test_a_locked_joint_holds_its_place(seed):
    model = zoo.random_model(seed)
    q, _ = model.random_state(seed)
    names = [j.name for j in model.joints[::2]]
    locked = model.lock(at={n: q[model.q_slice(n)] for n in names})
    kept = np.concatenate([q[model.q_slice(j.name)] for j in model.joints if j.name not in names] or [[]])
    assert locked.nq == len(kept)
    for b in model.bodies:
        expected = body_pose(model, q, b.name)
        np.testing.assert_allclose(body_pose(locked, kept, b.name), expected, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "fixed"])
def test_locking_at_neutral_changes_no_number(kind):
    model = zoo.chain(3, kind, seed=2)
    locked = model.lock("joint2")
    assert locked.joint("joint2").placement == model.joint("joint2").placement
    assert locked.joint("joint2").kind.name == "fixed"
    assert locked.nv == model.nv - model.joint("joint2").kind.nv


def test_a_locked_joint_has_no_losses_limits_or_actuator():
    model = replace(zoo.quadruped(), actuators=(Actuator("motor", "fl_knee"), Actuator("other", "fr_knee")))
    locked = model.lock("fl_knee", at={"fl_knee": -0.5})
    joint = locked.joint("fl_knee")
    assert joint.damping == joint.armature == ()
    assert joint.lower is joint.upper is None
    assert [a.name for a in locked.actuators] == ["other"]


def test_lock_says_what_is_wrong_with_a_position():
    model = zoo.star(2)
    with says(InputError, "model 'star2_spherical' has no joint 'joint3'; did you mean 'joint2'?"):
        model.lock("joint3")
    with says(InputError, "joint 'joint1': 1 coordinates are given; a spherical joint has 4"):
        model.lock(at={"joint1": 0.3})
    with says(InputError, "joint 'joint1': its quaternion has length 2; must be 1"):
        model.lock(at={"joint1": (2, 0, 0, 0)})
    with says(InputError, "joint 'root': position is 'up'; expected finite numbers"):
        model.lock(at={"root": "up"})


def test_a_joint_geared_to_a_locked_one_is_locked_where_the_gear_puts_it():
    locked = geared(2.0, 0.1).lock(at={"joint1": 0.3})
    assert locked.nv == 1
    assert locked.couplings == ()
    assert locked.notes == ("joint 'joint2': locked at 0.7 by coupling 'gear'",)
    both = geared(2.0, 0.1).lock(at={"joint1": 0.3, "joint2": 0.7})
    assert both.notes == ()
    np.testing.assert_allclose(
        both.joint("joint2").placement.rotation, locked.joint("joint2").placement.rotation, atol=1e-15
    )
    back = geared(2.0, 0.1).lock(at={"joint2": 0.7})
    assert back.notes == ("joint 'joint1': locked at 0.3 by coupling 'gear'",)


def test_positions_that_a_gear_does_not_allow_are_refused():
    with pytest.raises(ModelError) as error:
        geared().lock(at={"joint1": 0.3, "joint2": 0.3})
    assert str(error.value) == (
        "coupling 'gear': 'joint2' is locked at 0.3 and 'joint1' at 0.3; "
        "expected 'joint2' = 2 'joint1' + 0. Give one of them"
    )


def test_geared_joints_locked_without_positions_stay_neutral():
    assert geared().lock("joint1", "joint2").notes == ()
    off = geared(2.0, 0.1).lock("joint1", "joint2")
    assert off.couplings == ()
    assert off.notes == ("coupling 'gear': removed; 'joint2' and 'joint1' are locked at positions it does not allow",)


# ---- losses, frames, gravity


def test_a_model_without_losses_has_none():
    model = zoo.random_model(3, 10)
    plain = model.without_losses()
    assert any(any(j.damping) for j in model.joints)
    for j in plain.joints:
        assert not any((*j.damping, *j.friction, *j.armature, *j.stiffness))
    assert replace(plain, joints=model.joints) == model


def test_a_new_frame_stands_where_it_was_put():
    model = zoo.puma().with_frame("camera", "link3", (0.1, 0.2, 0.3), (0.0, 0.0, np.pi / 2))
    frame = model.frame("camera")
    assert frame.placement.position == (0.1, 0.2, 0.3)
    assert frame.placement.rotation == ((0.0, -1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    assert model.notes == ()


def test_with_frame_says_what_is_wrong():
    model = zoo.puma()
    with says(InputError, "frame 'tool': a frame or body of model 'puma' has this name"):
        model.with_frame("tool", "link6")
    with says(InputError, "frame 'camera': its body 'link7' is not a body or frame; did you mean 'link6'?"):
        model.with_frame("camera", "link7")
    with says(InputError, "frame 'camera': rotation is"):
        model.with_frame("camera", "link6", rotation=(1, 2))
    with says(ModelError, "frame 'camera': its rotation matrix is not a rotation"):
        model.with_frame("camera", "link6", rotation=2.0 * np.eye(3))


def test_gravity_is_three_numbers():
    assert zoo.puma().with_gravity((0, 1, 2)).gravity == (0.0, 1.0, 2.0)
    with says(InputError, "model 'puma': gravity is 9.81; expected three finite numbers"):
        zoo.puma().with_gravity(9.81)


# ---- close and drive


def test_a_loop_joins_two_frames():
    model = zoo.chain(4).with_loop("tool", "world", joint="spherical")
    (loop,) = model.loops
    assert (loop.name, loop.a, loop.b, loop.kind.name) == ("tool_world", "link4", "world", "spherical")
    assert loop.placement_a == model.frame("tool").placement
    assert loop.placement_b == Placement()
    named = model.with_loop("link2", "tool", Universal("y", "z"), name="ring", switchable=True).loops[1]
    assert (named.name, named.kind, named.switchable, named.driven) == ("ring", Universal("y", "z"), True, False)
    driven = zoo.chain(4).with_loop("tool", "world", joint="spherical", driven=True)
    assert driven == zoo.chain(4).with_loop("tool", "world", joint="spherical").drive("tool_world")
    with says(InputError, "loop 'tool_world': a fixed joint has no DoF that could be driven"):
        zoo.chain(4).with_loop("tool", "world", driven=True)


def test_close_says_what_is_wrong():
    model = zoo.chain(4)
    with says(InputError, "loop 'tool_link4': 'tool' and 'link4' are both on body 'link4'; a loop joins two"):
        model.with_loop("tool", "link4")
    with says(InputError, "loop 'tool_world': no kind of joint is called 'sperical'; did you mean 'spherical'?"):
        model.with_loop("tool", "world", "sperical")
    with says(InputError, "loop 'joint1': a joint or loop of model 'chain4_revolute' has this name"):
        model.with_loop("tool", "world", "spherical", name="joint1")
    with says(InputError, "has no frame or body 'toll'; did you mean 'tool'?"):
        model.with_loop("toll", "world")
    with says(InputError, "is not a kind of joint; expected 'revolute', Revolute(axis), ..."):
        model.with_loop("tool", "world", Universal)


def test_joints_and_loops_can_be_driven():
    model = zoo.chain(3).with_loop("tool", "world", "revolute").drive("joint1", "tool_world")
    assert model.driven == ("joint1",)
    assert model.loops[0].driven
    with says(InputError, "has no joint or loop 'joint9'; did you mean"):
        model.drive("joint9")
    with says(InputError, "joint 'joint1': a fixed joint has no DoF that could be driven"):
        model.lock("joint1").drive("joint1")


# ---- actuate and passive


def test_joints_become_passive_and_actuated():
    model = zoo.chain(4).unactuate("joint2", "joint3")
    assert model.actuated == ("joint1", "joint4")
    assert model.actuate("joint3").actuated == ("joint1", "joint3", "joint4")
    assert model.actuate("joint2", only=True).actuated == ("joint2",)
    assert zoo.chain(4).unactuate("joint2").actuate("joint2") == zoo.chain(4)


def test_the_actuators_of_a_passive_joint_go_with_a_note():
    model = zoo.chain(3).with_actuator("m1", "joint1").with_actuator("m2", "joint2").unactuate("joint1")
    assert [a.name for a in model.actuators] == ["m2"]
    assert model.notes[-1] == "actuator 'm1': left out, its joint 'joint1' is passive"
    only = zoo.chain(3).with_actuator("m1", "joint1").actuate("joint2", only=True)
    assert only.actuators == ()


def test_actuate_and_unactuate_say_what_is_wrong():
    model = zoo.chain(3).lock("joint3")
    with says(InputError, "has no joint 'joint9'; did you mean"):
        model.unactuate("joint9")
    with says(InputError, "joint 'joint3': a fixed joint has no DoF that could be actuated"):
        model.actuate("joint3")
    with says(InputError, "joint 'joint3': a fixed joint has no DoF that could be passive"):
        model.unactuate("joint3")


# ---- fuse


@pytest.mark.parametrize("seed", range(30))
def test_a_fused_model_is_the_same_matter_in_the_same_places(seed):
    model = zoo.random_model(seed, 8, kinds=["fixed", "fixed", "revolute", "spherical", "helical"])
    fused = model.fuse()
    q, _ = model.random_state(seed)
    assert fused.nq == model.nq
    assert all(j.kind.nv for j in fused.joints)
    for b in model.bodies:
        expected = body_pose(model, q, b.name)
        np.testing.assert_allclose(body_pose(fused, q, b.name), expected, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(world_inertia(fused, q), world_inertia(model, q), rtol=0, atol=ROUNDING)


def dumbbell() -> Model:
    """A handle on a hinge with a ball of 1 kg fixed to each end, a finger hinged to the second."""
    b = Builder("dumbbell")
    b.body("handle", 2.0, inertia=(0.1, 0.1, 0.1))
    b.revolute("hinge", "world", "handle")
    for name, x in (("left", -1.0), ("right", 1.0)):
        b.body(name, 1.0, geometry=(Geometry("sphere", (0.1,)),))
        b.fixed(f"{name}_weld", "handle", name, (x, 0.0, 0.0))
    b.body("finger", 1.0, inertia=(0.1, 0.1, 0.1))
    b.revolute("finger_hinge", "right", "finger", position=(0.5, 0.0, 0.0))
    b.frame("mark", "left", (0.0, 0.1, 0.0))
    return b.loop("left", "world", "spherical", name="ring").build()


def test_fusing_moves_everything_to_the_parent():
    fused = dumbbell().fuse()
    assert [b.name for b in fused.bodies] == ["handle", "finger"]
    handle = fused.body("handle")
    assert handle.inertia.mass == 4.0
    assert handle.inertia.center == (0.0, 0.0, 0.0)
    np.testing.assert_allclose(handle.inertia.moments, (0.1, 0, 0, 2.1, 0, 2.1), atol=1e-15)
    assert [g.placement.position for g in handle.geometry] == [(-1.0, 0.0, 0.0), (1.0, 0.0, 0.0)]
    assert fused.joint("finger_hinge").parent == "handle"
    assert fused.joint("finger_hinge").placement == Placement(position=(1.5, 0.0, 0.0))
    assert fused.frame("mark").body == "handle"
    assert fused.frame("mark").placement.position == (-1.0, 0.1, 0.0)
    assert fused.frame("right").placement.position == (1.0, 0.0, 0.0)
    assert (fused.loops[0].a, fused.loops[0].placement_a.position) == ("handle", (-1.0, 0.0, 0.0))


def test_what_is_fixed_to_the_world_becomes_part_of_it():
    fused = dumbbell().lock("hinge").fuse()
    assert [b.name for b in fused.bodies] == ["finger"]
    assert fused.joints[0].parent == "world"
    assert fused.joints[0].placement.position == (1.5, 0.0, 0.0)
    assert fused.frame("handle").body == "world"


def test_a_loop_within_one_fused_body_goes_with_a_note():
    fused = dumbbell().with_loop("left", "right", "fixed", name="brace").fuse()
    assert [x.name for x in fused.loops] == ["ring"]
    assert fused.notes == ("loop 'brace': removed; both its ends are now on 'handle'",)


def test_fusing_a_model_without_fixed_joints_changes_nothing():
    assert zoo.puma().fuse() == zoo.puma()


def test_a_massless_guest_leaves_the_inertia_as_it_was():
    puma = zoo.puma()
    joint = replace(zoo.puma().lock("joint6").joint("joint6"), name="weld", parent="link6", child="plate")
    model = replace(puma, bodies=(*puma.bodies, Body("plate")), joints=(*puma.joints, joint))
    assert model.fuse().bodies == puma.bodies


def test_a_sensor_at_a_fused_joint_moves_to_the_fused_frame():
    model = replace(dumbbell(), sensors=(Sensor("gauge", "force", "left_weld"),))
    assert model.fuse().sensors[0].at == "left"


def test_two_bodies_fused_have_the_textbook_inertia():
    """Two equal cubes of mass m and edge s side by side are a box 2s × s × s."""
    b = Builder("cubes").body("one", 1.0, inertia=(1 / 6,) * 3).body("two", 1.0, inertia=(1 / 6,) * 3)
    b.free("root", "world", "one").fixed("weld", "one", "two", (0.0, 1.0, 0.0), (0.0, np.pi / 2, 0.0))
    inertia = b.build().fuse().body("one").inertia
    assert inertia.center == (0.0, 0.5, 0.0)
    np.testing.assert_allclose(inertia.moments, (5 / 6, 0, 0, 1 / 3, 0, 5 / 6), atol=1e-15)


def test_edits_do_not_touch_the_model():
    model = geared()
    before = replace(model)
    model.lock("joint1").fuse().without_losses().with_gravity((0, 0, 0))
    assert model == before


def test_removing_a_loop_opens_it():
    model = zoo.hexapod()
    first = model.loops[0].name
    assert [x.name for x in model.remove(first).loops] == [x.name for x in model.loops[1:]]
    with pytest.raises(InputError, match="has no part 'stand1'; did you mean 'standing1'"):
        model.remove("stand1")
