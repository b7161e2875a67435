"""Edits judged by motion: what must stay the same does, what must change changes as it must."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from frames import body_pose
from sentences import says

import spanloop as sl
from spanloop import zoo
from spanloop.errors import InputError, ModelError, UnsupportedError
from spanloop.joints import KINDS, Helical, Prismatic, Revolute
from spanloop.model import Coupling, Geometry, Model, Placement, Sensor
from spanloop.model.edits.mirror import mirrored_state, reflection

# a few hundred products of numbers of order 1 to 100, relative to the largest answer
ROUNDING = 1e-10


def python(model: Model) -> sl.Dynamics:
    """The dynamics without a compiler: these tests ask each model one question."""
    return sl.Dynamics(model, target="python")


def same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=ROUNDING * (1.0 + np.abs(expected).max(initial=0.0)))


def acceleration(model: Model, q, v, tau) -> np.ndarray:
    return python(model).forward_dynamics(q, v, tau)


# ---- mirror

WITHOUT_PLANAR = [k for k in KINDS if k != "planar"]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("normal", ["x", "y", "z"])
def test_a_mirrored_model_moves_as_the_image(seed, normal):
    model = zoo.random_model(seed, 5, kinds=WITHOUT_PLANAR)
    _moves_as_the_image(model, normal, seed)


@pytest.mark.parametrize("seed", range(8))
def test_a_mirror_may_stand_askew(seed):
    model = zoo.random_model(seed, 5).without_losses()
    _moves_as_the_image(model, np.random.default_rng(seed).normal(size=3), seed)


def _moves_as_the_image(model, normal, seed):
    image = model.mirror(normal)
    q, v = model.random_state(seed)
    tau = np.random.default_rng(seed).normal(size=model.nv)
    q2, v2 = mirrored_state(model, q, v, normal)
    s = np.array(reflection(normal))
    for b in model.bodies:
        x, y = body_pose(model, q, b.name), body_pose(image, q2, b.name)
        same(y[:3, :3], s @ x[:3, :3] @ s)
        same(y[:3, 3], s @ x[:3, 3])
    a = acceleration(model, q, v, tau)
    same(acceleration(image, q2, v2, mirrored_state(model, q, tau, normal)[1]), mirrored_state(model, q, a, normal)[1])


@pytest.mark.parametrize(("name", "normal"), [("stewart", "x"), ("delta", "y"), ("bricard", "z"), ("five_bar", "x")])
def test_a_mirrored_loop_is_closed_and_moves_as_the_image(name, normal):
    model = getattr(zoo, name)()
    q = getattr(zoo, f"{name}_start")()
    v = np.zeros(model.nv)
    q2, _ = mirrored_state(model, q, v, normal)
    image = model.mirror(normal)
    assert np.abs(python(image).closure_error(q2)).max() < 1e-9
    tau = np.random.default_rng(1).normal(size=model.nv)
    a = acceleration(model, q, v, tau)
    same(acceleration(image, q2, v, mirrored_state(model, q, tau, normal)[1]), mirrored_state(model, q, a, normal)[1])


def test_mirroring_twice_gives_the_model_back():
    model = zoo.random_model(3, 6)
    twice = model.mirror("x").mirror("x")
    assert [j.kind for j in twice.joints] == [j.kind for j in model.joints]
    assert [j.placement for j in twice.joints] == [j.placement for j in model.joints]
    assert twice.bodies == model.bodies


def test_a_left_leg_becomes_a_right_one():
    b = sl.Builder("legs").body("left_thigh", 1.0, (0.0, 0.02, -0.2), (0.01, 0.01, 0.002))
    b.revolute("LeftHip", "world", "left_thigh", "x", (0.0, 0.1, 0.0), lower=-0.2, upper=0.5)
    b.frame("left_toe", "left_thigh", (0.0, 0.0, -0.4))
    right = b.build().mirror("y", swap=("left", "right"))
    assert [right.bodies[0].name, right.joints[0].name, right.frames[0].name] == [
        "right_thigh",
        "RightHip",
        "right_toe",
    ]
    assert right.joints[0].placement.position == (0.0, -0.1, 0.0)
    assert right.body("right_thigh").inertia.center == (0.0, -0.02, -0.2)
    assert (right.joints[0].lower, right.joints[0].upper) == ((-0.2,), (0.5,))  # the axis has turned instead
    assert right.joints[0].kind == Revolute((-1.0, 0.0, 0.0))


def test_limits_of_a_displacement_change_sides_with_it():
    b = sl.Builder("c").body("a", 1.0, inertia=(1.0, 1.0, 1.0))
    b.cylindrical("j", "world", "a", "x", lower=(-1.0, 0.0), upper=(2.0, 0.5))
    j = b.build().mirror("y").joints[0]
    assert (j.lower, j.upper) == ((-1.0, -0.5), (2.0, 0.0))


def test_shapes_and_meshes_are_mirrored():
    """A point of the mesh, scaled and placed, has its image at the same point scaled and placed in the mirror."""
    place = zoo.random_model(2, 3).joints[1].placement
    shapes = (Geometry("mesh", (2.0, 2.0, 2.0), "m.stl", place), Geometry("box", (1.0, 2.0, 3.0), "", place))
    model = sl.Builder("m").body("a", 1.0, inertia=(1, 1, 1), geometry=shapes).free("j", "world", "a").build()
    point = np.array((0.1, 0.2, 0.3))
    for normal in ("y", (1.0, 2.0, -0.5)):
        mesh, box = model.mirror(normal).bodies[0].geometry
        s = np.array(reflection(normal))
        image = np.array(mesh.placement.rotation) @ (mesh.size * point) + mesh.placement.position
        same(image, s @ (np.array(place.rotation) @ (2.0 * point) + place.position))
        corners = np.array(np.meshgrid(*[(-x / 2, x / 2) for x in box.size])).reshape(3, -1)
        found = (np.array(box.placement.rotation) @ corners).T + box.placement.position
        expected = (s @ (np.array(place.rotation) @ corners + np.array(place.position)[:, None])).T
        order = [np.lexsort(np.round(x, 9).T) for x in (found, expected)]
        same(found[order[0]], expected[order[1]])


def test_mirror_says_what_is_wrong():
    model = sl.Builder("m").body("a", 1.0, inertia=(1, 1, 1)).spherical("j", "world", "a", damping=(1, 2, 3)).build()
    with says(ModelError, "joint 'j': its damping (1.0, 2.0, 3.0) differs between axes that this mirror mixes"):
        model.mirror((1, 2, 0))
    with says(ModelError, "mirror: the plane's normal: axis is 'w'; expected 'x', 'y', 'z'"):
        model.mirror("w")
    with says(InputError, "mirror: swap is ('left',); expected two words, as ('left', 'right')"):
        model.mirror("y", swap=("left",))


# ---- scale


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("time", [None, 0.7])
def test_a_scaled_model_moves_alike_in_its_own_time(seed, time):
    L, m = 2.5, 0.3
    model = zoo.random_model(seed, 5)
    large = model.scale(length=L, mass=m, time=time)
    T = np.sqrt(L) if time is None else time
    q, v = model.random_state(seed)
    tau = np.random.default_rng(seed).normal(size=model.nv)
    in_q = L ** np.array([n for j in model.joints for n in j.kind.lengths()], dtype=float)
    in_v = L ** np.array([float(u == "m") for j in model.joints for u in j.kind.units])
    a = acceleration(model, q, v, tau)
    found = acceleration(large, in_q * q, in_v * v / T, m * L * L / T**2 * tau / in_v)
    same(found, in_v * a / T**2)
    if time is None:
        assert large.gravity == model.gravity


def test_a_pendulum_of_four_times_the_length_swings_half_as_fast():
    def frequency(model):
        robot = python(model)
        slope = (robot.gravity_torques([1e-6]) - robot.gravity_torques([-1e-6]))[0] / 2e-6
        return np.sqrt(slope / robot.mass_matrix([0.0])[0, 0])

    b = sl.Builder("p").body("bob", 2.0, (0.0, 0.0, -0.5), (0.1, 0.1, 0.01)).revolute("pivot", "world", "bob", "y")
    assert frequency(b.build().scale(length=4.0)) == pytest.approx(frequency(b.build()) / 2.0, rel=1e-9)
    assert frequency(b.build().scale(mass=7.0)) == pytest.approx(frequency(b.build()), rel=1e-9)


def test_loops_and_gears_are_scaled_too():
    model = zoo.stewart().scale(length=3.0, mass=2.0)
    q = zoo.stewart_start() * 3.0 ** np.array([n for j in zoo.stewart().joints for n in j.kind.lengths()], dtype=float)
    assert np.abs(python(model).closure_error(q)).max() < 1e-8
    b = sl.Builder("rack").body("wheel", 1.0, inertia=(1, 1, 1)).body("rack", 1.0, inertia=(1, 1, 1))
    b.revolute("turn", "world", "wheel").prismatic("slide", "world", "rack").coupling("mesh", "slide", "turn", 0.2, 0.1)
    gear = b.build().scale(length=2.0).couplings[0]
    assert (gear.ratio, gear.offset) == (0.4, 0.2)


def test_scale_says_what_is_wrong():
    with says(InputError, "scale: length is -1; must be > 0. To mirror a model use model.mirror(...)"):
        zoo.puma().scale(length=-1.0)
    with says(InputError, "scale: mass is 'x'; expected a finite number"):
        zoo.puma().scale(mass="x")


# ---- rename


def test_names_to_rename_are_a_mapping():
    with says(InputError, "rename: names is a list; expected a mapping {'old name': 'new name'}"):
        zoo.puma().rename(["joint1", "hip"])


def test_a_renamed_model_moves_alike():
    model = zoo.stewart()
    new = {part.name: f"new {part.name}" for part in (*model.joints, *model.bodies)}
    other = model.rename(new, name="hexapod table")
    assert other.name == "hexapod table"
    q, v = zoo.stewart_start(), np.zeros(model.nv)
    same(acceleration(other, q, v, v), acceleration(model, q, v, v))
    assert all(j.name.startswith("new ") for j in other.joints)


def test_names_change_wherever_they_are_mentioned():
    model = replace(zoo.chain(3), couplings=(Coupling("gear", "joint2", "joint1", 2.0),))
    model = (
        model.with_actuator("m", "joint1", gear=50.0).with_sensor("s", "encoder", "joint1").with_loop("tool", "world")
    )
    other = model.rename({"joint1": "hip", "link3": "foot", "m": "motor"})
    assert other.couplings[0].source == "hip"
    assert (other.actuators[0].name, other.actuators[0].joint, other.sensors[0].at) == ("motor", "hip", "hip")
    assert (other.frame("tool").body, other.loops[0].a) == ("foot", "foot")
    with says(InputError, "has nothing called 'jont1'; did you mean 'joint1'?"):
        model.rename({"jont1": "x"})
    with says(ModelError, "2 joints are called 'joint2'; names must be unique"):
        model.rename({"joint1": "joint2"})
    with says(InputError, "'world' is the ground's own name and stays"):
        model.rename({"joint1": "world"})


# ---- weld


def test_a_welded_object_moves_as_one_held_by_a_loop():
    """The object hung on the arm by a fixed joint, and by six closure rows: the same accelerations."""
    b = sl.Builder("object").body("box", 3.0, (0.1, 0.0, 0.05), (0.05, 0.06, 0.07)).free("float", "world", "box")
    both = zoo.puma().attach(b.frame("grip", "box", (0.0, 0.1, 0.0), (0.3, 0.2, 0.1)).build(), joint="free", name="f2")
    welded, looped = both.weld("tool", "grip"), both.with_loop("tool", "grip", "fixed")
    assert (welded.loops, welded.nv) == ((), 6)
    q, v = zoo.puma().random_state(4)
    grip = np.array(body_pose(zoo.puma(), q, "tool")) @ np.linalg.inv(_matrix(both.frame("grip").placement))
    whole = np.concatenate((q, _free_q(grip)))
    tau = np.arange(6.0)
    robot = python(looped)
    assert np.abs(robot.closure_error(whole)).max() < 1e-9
    rates = robot.complete_velocity(whole, dict(zip([j.name for j in zoo.puma().joints], v, strict=True)))
    a = robot.forward_dynamics(whole, rates, np.concatenate((tau, np.zeros(6))))
    np.testing.assert_allclose(a[:6], acceleration(welded, q, v, tau), rtol=0, atol=1e-7 * np.abs(a).max())


def test_a_weld_elsewhere_is_a_fixed_loop():
    model = zoo.chain(4).weld("tool", "world", name="clamp")
    assert (model.loops[0].name, model.loops[0].kind.name) == ("clamp", "fixed")
    with says(InputError, "weld: 'tool' and 'link4' are both on body 'link4'; they move as one already"):
        zoo.chain(4).weld("tool", "link4")


def _matrix(placement: Placement) -> np.ndarray:
    x = np.eye(4)
    x[:3, :3], x[:3, 3] = placement.rotation, placement.position
    return x


def _free_q(x: np.ndarray) -> np.ndarray:
    """Coordinates of a free joint at a pose."""
    import pinocchio as pin

    e = pin.Quaternion(x[:3, :3])
    return np.array((e.w, e.x, e.y, e.z, *x[:3, 3]))


# ---- attach


def gripper() -> Model:
    b = sl.Builder("gripper").body("palm", 0.5, (0.0, 0.0, 0.05), (0.001, 0.001, 0.001))
    b.body("finger", 0.1, (0.0, 0.0, 0.03), (1e-4, 1e-4, 1e-5))
    b.fixed("mount", "world", "palm", (0.0, 0.0, 0.01)).prismatic("grip", "palm", "finger", "x", (0.0, 0.02, 0.1))
    return b.frame("flange", "world", (0.0, 0.0, -0.02), (0.0, 0.0, np.pi / 2)).frame("tip", "finger").build()


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("general", "fixed")])
def test_an_attached_model_moves_as_one_built_whole(kind):
    joint = {"helical": Helical("x", 0.1), "revolute": Revolute("y"), "prismatic": Prismatic("y")}.get(kind, kind)
    model = zoo.puma().attach(gripper(), "tool", joint, prefix="g_", name="wrist")
    tool = zoo.puma().frame("tool")
    b = sl.Builder("whole")
    for body in zoo.puma().bodies:
        b.body(body.name, body.inertia.mass, body.inertia.center, body.inertia.matrix())
    for j in zoo.puma().joints:
        b.joint(j.name, j.kind, j.parent, j.child, j.placement.position, j.placement.rotation)
    b.body("base").body("palm", 0.5, (0.0, 0.0, 0.05), (0.001, 0.001, 0.001))
    b.body("finger", 0.1, (0.0, 0.0, 0.03), (1e-4, 1e-4, 1e-5))
    b.joint("wrist", joint, "link6", "base", tool.placement.position, tool.placement.rotation)
    b.fixed("mount", "base", "palm", (0.0, 0.0, 0.01)).prismatic("grip", "palm", "finger", "x", (0.0, 0.02, 0.1))
    whole = b.build()
    assert (model.nq, model.nv) == (whole.nq, whole.nv)
    q, v = whole.random_state(5)
    same(python(model).mass_matrix(q), python(whole).mass_matrix(q))
    same(python(model).bias(q, v), python(whole).bias(q, v))


def test_a_frame_of_the_other_model_may_be_put_in_place():
    model = zoo.puma().attach(gripper(), "tool", prefix="g_", frame="flange")
    q = np.linspace(-1.0, 1.0, 7)
    same(body_pose(model, q, "g_flange"), body_pose(model, q, "tool"))
    assert [j.name for j in model.joints[-2:]] == ["g_mount", "g_grip"]
    assert model.frame("g_tip").body == "g_finger"


def test_a_floating_model_is_attached_by_the_body_that_floats():
    rider = zoo.quadruped()
    model = zoo.chain(2).attach(rider, "tool", "revolute", prefix="dog_", name="saddle")
    assert model.nv == 2 + 1 + rider.nv - 6
    assert model.joint("saddle").child == "dog_trunk"
    fixed = zoo.chain(2).attach(rider, "tool", prefix="dog_")
    assert fixed.nv == 2 + rider.nv - 6
    q, _ = fixed.random_state(1)
    locked = model.lock("saddle")
    same(python(fixed).mass_matrix(q), python(locked).mass_matrix(q))


def test_a_model_that_floats_stays_free_on_the_world_and_a_note_says_where_it_does_not():
    arm, ball = zoo.puma(), sl.Builder("ball").body("ball", 1.0, inertia=(0.1, 0.1, 0.1))
    ball = ball.free("floating", "world", "ball", (0.0, 0.0, 0.2)).frame("grip", "ball", (0.0, 0.1, 0.0)).build()
    loose = arm.attach(ball, "world")
    assert (loose.nv, loose.joint("floating").kind.name, loose.actuated) == (12, "free", arm.actuated)
    assert loose.notes == arm.notes
    there = arm.with_frame("table", "world", (1.0, 0.0, 0.5)).attach(ball, "table", frame="grip")
    np.testing.assert_allclose(body_pose(there, there.neutral(), "ball")[:3, 3], (1.0, -0.1, 0.5), atol=ROUNDING)
    assert arm.attach(ball, "world", "fixed").nv == 6
    held = arm.attach(ball, "tool")
    assert held.nv == 6
    assert held.notes[-1] == "attached 'ball' is fixed to 'tool'; its free joint 'floating' is left out"


def test_loops_gears_actuators_and_sensors_come_along():
    other = zoo.four_bar().with_actuator("motor", zoo.four_bar().joints[0].name).with_sensor("s", "imu", "world")
    model = zoo.chain(1).attach(other, "tool", prefix="b_")
    assert model.loops[0].name == f"b_{other.loops[0].name}"
    assert (model.actuators[0].joint, model.sensors[0].at) == (f"b_{other.joints[0].name}", "world")
    q = np.concatenate(([0.4], zoo.four_bar_start()))
    assert np.abs(python(model).closure_error(q)).max() < 1e-9


def test_attach_says_what_is_wrong():
    with says(InputError, "attach: both models have a part 'link1'; give a prefix, as prefix='gripper_'"):
        zoo.puma().attach(zoo.puma(), "tool")
    with says(InputError, "has no frame or body 'tol'; did you mean 'tool'?"):
        zoo.puma().attach(gripper(), "tol")
    with says(InputError, "attach: frame 'g_tip' is on body 'g_finger', which moves; expected one on the world"):
        zoo.puma().attach(gripper(), "tool", prefix="g_", frame="tip")


# ---- remove


def test_a_body_goes_with_all_that_it_carries():
    model = zoo.quadruped().with_actuator("m", "fl_knee").with_sensor("s", "touch", "fl_foot")
    less = model.remove("fl_thigh")
    gone = [b.name for b in model.bodies if b not in less.bodies]
    assert "fl_thigh" in gone
    assert less.nv == model.nv - sum(model.joints[model.body_number[b] - 1].kind.nv for b in gone)
    assert (less.actuators, less.sensors) == ((), ())
    q, _ = model.random_state(3)
    kept = np.concatenate([q[model.q_slice(j.name)] for j in less.joints])
    light = model
    for b in gone:  # the same motion of the rest where the gone bodies weigh nothing
        light = light.with_inertia(b, 0.0, (0, 0, 0), (0, 0, 0))
    index = [k for j in less.joints for k in range(model.v_slice(j.name).start, model.v_slice(j.name).stop)]
    same(python(less).mass_matrix(kept), python(light).mass_matrix(q)[np.ix_(index, index)])


def test_a_removed_joint_put_back_as_a_loop_gives_the_old_motion():
    model = zoo.chain(4, seed=3)
    joint = model.joint("joint3")
    freed = model.remove("joint3").with_frame(
        "socket", joint.parent, joint.placement.position, joint.placement.rotation
    )
    assert freed.joint("joint3").kind.name == "free"
    back = freed.with_loop("socket", joint.child, joint.kind, name="again")
    q, v = model.random_state(2)
    x = np.linalg.inv(body_pose(freed, freed.neutral(), joint.child)) @ body_pose(model, q, joint.child)
    names = [j.name for j in freed.joints]
    parts = {j.name: q[model.q_slice(j.name)] for j in model.joints} | {"joint3": _free_q(x)}
    whole = np.concatenate([parts[n] for n in names])
    robot = python(back)
    assert np.abs(robot.closure_error(whole)).max() < 1e-9
    rates = _rates(model, freed, q, v)
    assert np.abs(robot.closure_jacobian(whole) @ rates).max() < 1e-9
    a = robot.forward_dynamics(whole, rates, np.zeros(back.nv))
    expected = acceleration(model, q, v, np.zeros(4))
    for n in ("joint1", "joint2", "joint4"):
        assert a[back.v_slice(n)][0] == pytest.approx(expected[model.v_slice(n)][0], abs=1e-7 * np.abs(expected).max())


def _rates(model, freed, q, v):
    """Rates of the freed model in the motion (q, v) of the whole one: the freed body's twist in its own axes."""
    J = python(model).jacobian(q, model.joint("joint3").child) @ v
    R = body_pose(model, q, model.joint("joint3").child)[:3, :3]
    parts = {j.name: v[model.v_slice(j.name)] for j in model.joints}
    parts["joint3"] = np.concatenate((R.T @ J[:3], R.T @ J[3:]))
    return np.concatenate([parts[j.name] for j in freed.joints])


def test_loops_and_gears_go_with_what_they_hold():
    model = replace(zoo.chain(3), couplings=(Coupling("gear", "joint3", "joint1"),)).with_loop(
        "tool", "world", "spherical"
    )
    less = model.remove("link3")
    assert (less.loops, less.couplings, less.frames) == ((), (), ())
    assert less.notes == (
        "loop 'tool_world': removed with body 'link3'",
        "coupling 'gear': removed with joint 'joint3'",
    )
    assert model.remove("tool_world").loops == ()
    assert model.remove("gear").couplings == ()
    assert model.remove("tool").frames == ()


def test_remove_says_what_is_wrong():
    model = zoo.chain(2).rename({"joint1": "link1"})
    choice = "kind='body' removes the body with its subtree; kind='joint' lets its body float"
    with says(InputError, f"remove: 'link1' is a body and a joint; choose one: {choice}"):
        model.remove("link1")
    assert model.remove("link1", kind="body").n_bodies == 0
    with says(InputError, "has no part 'lnk2'; did you mean 'link2'?"):
        model.remove("lnk2")
    with says(InputError, "remove: 'world' is the ground; it stays"):
        model.remove("world")
    with says(InputError, "remove: 'link2' is a body of model 'chain2_revolute', no coupling; try kind='body'"):
        model.remove("link2", kind="coupling")
    with says(InputError, "remove: kind is 'bodies'; did you mean 'body'?"):
        model.remove("link1", kind="bodies")


# ---- rezero


@pytest.mark.parametrize("seed", range(8))
def test_a_rezeroed_model_is_at_its_zero_where_the_other_was_at_q(seed):
    kinds = [k for k in KINDS if k != "universal"]
    model = zoo.random_model(seed, 6, kinds=kinds).without_losses()
    q, v = model.random_state(seed)
    new = model.rezero(q)
    for b in model.bodies:
        same(body_pose(new, new.neutral(), b.name), body_pose(model, q, b.name))
    tau = np.ones(model.nv)
    same(acceleration(new, new.neutral(), v, tau), acceleration(model, q, v, tau))


def test_limits_springs_and_gears_move_with_the_zero():
    b = sl.Builder("x").body("a", 1.0, inertia=(1, 1, 1)).body("b", 1.0, inertia=(1, 1, 1))
    b.revolute("one", "world", "a", "y", lower=-1, upper=2, stiffness=3.0, rest=0.5).revolute("two", "a", "b", "x")
    model = b.coupling("gear", "two", "one", 2.0, 0.1).build()
    q = np.array((0.25, 0.6))
    new = model.rezero(q)
    assert (new.joint("one").lower, new.joint("one").upper, new.joint("one").rest) == ((-1.25,), (1.75,), (0.25,))
    same(python(new).bias(np.zeros(2), np.ones(2)), python(model).bias(q, np.ones(2)))
    assert python(new).closure_error(np.zeros(2))[0] == pytest.approx(python(model).closure_error(q)[0], abs=1e-15)


def test_rezero_says_what_is_wrong():
    with says(InputError, "rezero: q has shape (2,); expected (6,), all finite"):
        zoo.puma().rezero((1, 2))
    model = sl.Builder("u").body("a", 1.0, inertia=(1, 1, 1)).universal("j", "world", "a").build()
    with says(UnsupportedError, "rezero: joint 'j' is universal and is at 1 rad about its second axis"):
        model.rezero((0.0, 1.0))


# ---- inertia, actuators, sensors


def test_another_inertia_is_felt():
    model = zoo.puma().with_inertia("link6", mass=2.0, center=(0.0, 0.0, 0.1), inertia=(0.01, 0.01, 0.005))
    q, v = model.random_state(1)
    less = zoo.puma().remove("link6")
    b = sl.Builder("disc").body("disc", 2.0, (0.0, 0.0, 0.1), (0.01, 0.01, 0.005)).revolute("j", "world", "disc")
    place = zoo.puma().joint("joint6").placement
    whole = less.with_frame("at", "link5", place.position, place.rotation).attach(b.build(), "at", prefix="new_")
    same(python(model).bias(q, v), python(whole).bias(q, v))
    assert model.with_inertia("link6", mass=3.0).body("link6").inertia.center == (0.0, 0.0, 0.1)
    with says(ModelError, "body 'link6': its principal moments of inertia are 1, 1, 5 kg m²; no body has one"):
        model.with_inertia("link6", inertia=(1, 1, 5))
    with says(ModelError, "body 'link6': mass is -1 kg; must be >= 0"):
        model.with_inertia("link6", mass=-1)
    with says(InputError, "has no body 'link7'; did you mean"):
        model.with_inertia("link7", mass=1)


def test_actuators_and_sensors_come_and_go():
    model = zoo.puma().with_actuator("motor", "joint1", kind="motor", gear=100.0)
    model = model.with_sensor("imu", "imu", "tool", rate=500)
    assert model.actuators[0].settings == (("kind", "motor"), ("gear", 100.0))
    assert model.sensors == (Sensor("imu", "imu", "tool", (("rate", 500),)),)
    assert model.remove("motor").remove("imu") == zoo.puma()
    with says(ModelError, "2 actuators are called 'motor'; names must be unique"):
        model.with_actuator("motor", "joint2")
    with says(InputError, "has no joint 'jont1'; did you mean 'joint1'?"):
        model.with_actuator("m", "jont1")
    with says(InputError, "actuator 'm': joint 'joint1' is fixed; there is nothing to move"):
        zoo.puma().lock("joint1").with_actuator("m", "joint1")
    with says(ModelError, "sensor 's': 'toll' is not a joint, body or frame; did you mean 'tool'?"):
        model.with_sensor("s", "imu", "toll")
    with says(InputError, "has no actuator 'moto'; did you mean 'motor'?"):
        model.remove("moto", kind="actuator")
    with says(InputError, "has no sensor 'x'; there are 'imu'"):
        model.remove("x", kind="sensor")
