"""Edits of models with flexible bodies: each is right, or a sentence says why not."""

from __future__ import annotations

import numpy as np
import pytest
from flexible_arms import arm, boom, rigid_arm

import spanloop as sl
from spanloop.errors import InputError, ModelError, UnsupportedError

pytestmark = pytest.mark.slow

PIECES = pytest.mark.parametrize("pieces", [1, 3])


def motion(model: sl.Model, q, v, tau) -> np.ndarray:
    return np.asarray(sl.Dynamics(model).forward_dynamics(q, v, tau))


# ---- rigid and lock


@pytest.mark.slow
@PIECES
def test_the_rigid_model_moves_as_one_with_a_rigid_body(pieces):
    stiff, reference = arm(boom(pieces=pieces)).build().rigid("boom"), rigid_arm()
    assert stiff.nv == reference.nv == 2
    state = [0.3, -0.4], [1.5, -0.7], [0.2, 0.1]
    np.testing.assert_allclose(motion(stiff, *state), motion(reference, *state), rtol=1e-12)


def test_lock_of_the_modes_is_rigid_and_both_are_the_slow_motion_of_a_stiff_beam():
    model = arm().build()
    assert model.lock("boom.modes") == model.rigid() == model.rigid("boom")
    assert [j.kind.name for j in model.rigid().joints if j.child.startswith("boom")] == ["fixed"] * 4


def test_modes_locked_in_a_shape_hold_the_deformed_body():
    """The composite of a locked shape is the corner of the mass matrix that belongs to the joints."""
    model = arm().build()
    q, _ = model.random_state(seed=3)
    eta = q[model.q_slice("boom.modes")].tolist()
    locked = model.lock(at={"boom.modes": eta})
    rest = [k for j in locked.joints for k in range(model.nv)[model.v_slice(j.name)] if locked.joint(j.name).kind.nv]
    M = np.asarray(sl.Dynamics(model).mass_matrix(q))[np.ix_(rest, rest)]
    short = np.concatenate([q[model.q_slice(n)] for n in ("hinge", "wrist")])
    np.testing.assert_allclose(sl.Dynamics(locked).mass_matrix(short), M, rtol=1e-12, atol=1e-15)


def test_a_node_is_locked_by_its_modes_only():
    with pytest.raises(InputError, match=r"'boom.tip' is a node .* moves with its modes; lock 'boom.modes'"):
        arm().build().lock("boom.tip")


def test_rigid_names_the_flexible_bodies_that_there_are():
    with pytest.raises(InputError, match=r"rigid: model 'arm' has no flexible body 'bom'; did you mean 'boom'\?"):
        arm().build().rigid("bom")
    assert sl.zoo.puma().rigid() == sl.zoo.puma()


# ---- a rigid body becomes flexible


def plain_arm() -> sl.Model:
    b = sl.Builder("arm").body("hub", 1.0, inertia=(0.02, 0.02, 0.03)).revolute("hinge", "world", "hub", "z")
    b = b.body("boom", 5.0, (0.5, 0, 0), (0.001, 0.04, 0.04)).fixed("clamp", "hub", "boom", (0.1, 0, 0))
    b = b.body("tool", 0.5, (0.1, 0, 0), (0.001, 0.002, 0.003)).revolute("wrist", "boom", "tool", "y", (1, 0, 0))
    b = b.frame("half", "boom", (0.4, 0, 0), (0.3, 0, 0)).frame("start", "boom", rotation=(0, 0, 0.2))
    return b.contact("touch", ("boom", sl.contacts.Sphere(0.02, position=(1, 0, 0)))).build()


@PIECES
def test_a_body_made_flexible_is_the_one_of_the_builder(pieces):
    soft = plain_arm().with_flexible("boom", boom(pieces=pieces))
    assert (soft.joint("wrist").parent, soft.frame("half").body, soft.frame("start").body) == (
        "boom.tip",
        "boom.mid",
        "boom.root",
    )
    assert soft.contacts[0].a.at == "boom.tip"
    assert soft.contacts[0].a.geometry.placement.position == (0.0, 0.0, 0.0)
    assert soft.frame("half").placement.rotation == plain_arm().frame("half").placement.rotation
    assert soft.notes[-1] == "body 'boom': now a beam of 0.54 kg; it was rigid, 5 kg"
    direct = arm(boom(pieces=pieces)).build()
    assert soft.bodies == direct.bodies
    assert soft.joints == direct.joints


def test_a_beam_along_another_axis_is_turned():
    b = sl.Builder("mast").body("pole", 1.0, (0, 0, 0.5), (0.1, 0.1, 0.001)).revolute("hinge", "world", "pole", "x")
    model = b.body("lamp", 0.2, inertia=(0.001,) * 3).fixed("top", "pole", "lamp", (0, 0, 1.0)).build()
    with pytest.raises(
        ModelError, match=r"joint 'top': it is at \(0, 0, 1\) m of the beam of 'pole'.* turn or move the beam"
    ):
        model.with_flexible("pole", boom())
    soft = model.with_flexible("pole", boom(), rotation=(0, -np.pi / 2, 0))
    assert soft.joint("top").parent == "pole.tip"
    robot, before = sl.Dynamics(soft), sl.Dynamics(model)
    np.testing.assert_allclose(robot.pose(soft.neutral(), "lamp"), before.pose(model.neutral(), "lamp"), atol=1e-15)


def test_a_part_beside_the_nodes_is_refused_with_the_node_to_add():
    beam = boom(nodes=None)
    said = r"frame 'half': it is at \(0.4, 0, 0\) m .* \(root at 0 m, tip at 1 m\); add a node there"
    with pytest.raises(ModelError, match=said + r": sl.flexible.beam\(..., nodes=\{'name': 0.4\}\)"):
        plain_arm().with_flexible("boom", beam)


def test_with_flexible_refuses_what_is_no_beam_or_flexible_already():
    with pytest.raises(InputError, match=r"with_flexible: body 'boom': 3 is no flexible body; expected a beam"):
        plain_arm().with_flexible("boom", 3)
    with pytest.raises(InputError, match=r"has no body 'bom'; did you mean 'boom'"):
        plain_arm().with_flexible("bom", boom())
    with pytest.raises(InputError, match=r"part of a flexible body already"):
        arm().build().with_flexible("boom", boom())
    with pytest.raises(InputError, match=r"the model has a part 'boom.tip' already, which the beam needs; rename it"):
        plain_arm().with_frame("tip", "tool").rename({"tool": "boom.tip"}).with_flexible("boom", boom())


@pytest.mark.slow
def test_a_coupler_of_the_zoo_made_flexible_keeps_its_loop_closed():
    """Rigid again, it moves as the four-bar with the inertia of the beam."""
    model = sl.zoo.four_bar()
    beam = sl.flexible.beam(2.2, E=7e10, density=2700.0, section=sl.flexible.rectangle(0.05, 0.04), modes={"z": 0})
    soft, made = model.with_flexible("coupler", beam), beam.bodies[0]
    assert (soft.loops[0].a, soft.frame("coupler_tip").body) == ("coupler.tip", "coupler.tip")
    q = soft.neutral()
    start = sl.zoo.four_bar_start()
    for j in model.joints:
        q[soft.q_slice(j.name)] = start[model.q_slice(j.name)]
    assert np.abs(sl.Dynamics(soft).closure_error(q)).max() < 1e-15
    xx, _, _, yy, _, zz = made.moments
    heavy = model.with_inertia("coupler", made.mass, made.center, (xx, yy, zz))
    state = start, np.zeros(3), [0.5, 0.0, 0.0]
    np.testing.assert_allclose(motion(soft.rigid(), *state), motion(heavy, *state), rtol=1e-10)


def test_a_loaded_model_gets_beams(tmp_path):
    model = plain_arm().remove("touch")
    model.save(tmp_path / "arm.toml")
    assert sl.load(tmp_path / "arm.toml", flexible={"boom": boom()}) == model.with_flexible("boom", boom())
    sl.zoo.pendulum(2).without_losses().save(tmp_path / "two.urdf")
    rod = sl.flexible.beam(1.0, E=7e10, density=2700.0, section=sl.flexible.circle(0.01), modes={"y": 0})
    with pytest.raises(ModelError, match=r"joint 'hinge2': it is at"):
        sl.load(tmp_path / "two.urdf", flexible={"rod1": rod})
    with pytest.raises(InputError, match=r"load: flexible is 5; expected a beam by body"):
        sl.load(tmp_path / "arm.toml", flexible=5)


# ---- the other edits


@PIECES
def test_rename_of_a_flexible_body_renames_its_parts(pieces):
    model = arm(boom(pieces=pieces)).frame("eye", "boom.tip").build()
    mast = model.rename({"boom": "mast"})
    assert {b.name.split(".")[0] for b in mast.bodies} == {"hub", "mast", "tool"}
    assert mast.frame("eye").body == mast.joint("wrist").parent == "mast.tip"
    assert mast.rename({"mast": "boom"}) == model
    assert model.rename({"boom": "mast", "boom.tip": "end"}).frame("eye").body == "end"


@PIECES
def test_remove_of_a_flexible_body_takes_its_root_and_nodes(pieces):
    model = arm(boom(pieces=pieces)).build()
    assert [b.name for b in model.remove("boom").bodies] == ["hub"]
    assert [b.name for b in model.remove("boom.tip", kind="body").bodies if b.name in ("boom.tip", "tool")] == []
    assert "boom.mid" in model.remove("boom.tip", kind="body").body_number


def test_joints_inside_a_flexible_body_cannot_be_removed():
    for name, kind in (("boom.modes", None), ("boom.tip", "joint")):
        with pytest.raises(InputError, match=rf"remove: joint '{name}' holds .* of a flexible body"):
            arm().build().remove(name, kind=kind)


@pytest.mark.slow
@PIECES
def test_an_attached_flexible_model_moves_as_it_did_alone(pieces):
    alone = arm(boom(pieces=pieces, modes={"y": 0})).build()
    both = sl.Builder("base").build().attach(alone, prefix="left_")
    assert both.joint("left_wrist").parent == "left_boom.tip"
    q, v = alone.random_state(seed=1)
    tau = np.linspace(-1.0, 1.0, alone.nv)
    np.testing.assert_allclose(motion(both, q, v, tau), motion(alone, q, v, tau), rtol=1e-12)


def test_a_model_is_attached_to_a_node_and_to_the_root():
    model = arm().build()
    assert model.attach(sl.zoo.pendulum(1), "boom.mid", prefix="p_").joint("p_hinge1").parent == "boom.mid"
    assert model.attach(sl.zoo.pendulum(1), "boom", prefix="p_").joint("p_hinge1").parent == "boom.root"


@PIECES
def test_fused_the_model_moves_the_same(pieces):
    model = arm(boom(pieces=pieces, modes={"z": 0})).body("plate", 0.3, (0.01, 0, 0), (1e-4,) * 3)
    model = model.fixed("glue", "boom.tip", "plate").build()
    fused = model.fuse()
    assert fused.n_bodies < model.n_bodies
    assert fused.frame("boom.root").body == "hub"
    q, v = model.random_state(seed=5)
    tau = np.linspace(-1.0, 1.0, model.nv)
    np.testing.assert_allclose(motion(fused, q, v, tau), motion(model, q, v, tau), rtol=1e-10)
    assert fused.lock(*[j.name for j in fused.joints if j.kind.bends]).nv == 2


def test_weld_closes_a_loop_at_a_node():
    model = arm().build().weld("boom.tip", "world", name="grip")
    assert (model.loops[0].a, model.loops[0].b) == ("boom.tip", "world")
    floating = sl.Builder("f").body("bar", flexible=boom()).free("root", "world", "bar").build()
    assert floating.weld("world", "bar").joint("root").kind.name == "fixed"


def test_rezero_moves_joints_and_refuses_bent_shapes():
    model = arm().build()
    q = model.neutral()
    q[0] = 0.3
    zeroed = model.rezero(q)
    np.testing.assert_allclose(
        sl.Dynamics(zeroed).pose(zeroed.neutral(), "tool"), sl.Dynamics(model).pose(q, "tool"), atol=1e-15
    )
    q[model.q_slice("boom.modes")] = 0.01
    with pytest.raises(UnsupportedError, match=r"rezero: joint 'boom.modes' holds the modes .* undeformed shape"):
        model.rezero(q)


def test_with_joint_sets_modes_by_name_and_patterns_leave_them():
    model = arm().build()
    assert model.with_joint("*", damping=0.5).joint("boom.modes").damping == model.joint("boom.modes").damping
    assert set(model.with_joint("boom.modes", damping=0.5).joint("boom.modes").damping) == {0.5}
    with pytest.raises(InputError, match=r"joint 'boom.tip': a node joint has no DoF"):
        model.with_joint("boom.tip", damping=1.0)


def test_a_model_without_losses_keeps_the_stiffness_of_its_beams():
    bare = arm().build().without_losses().joint("boom.modes")
    assert bare.stiffness == arm().build().joint("boom.modes").stiffness
    assert not any(bare.damping)


def test_modes_carry_no_motor():
    assert arm().build().actuated == ("hinge", "wrist")


@pytest.mark.parametrize(
    ("edit", "error", "said"),
    [
        (lambda m: m.mirror("y"), UnsupportedError, "modes of a flexible body cannot be mirrored"),
        (lambda m: m.scale(length=2.0), UnsupportedError, "modes of a flexible body cannot be scaled"),
        (lambda m: m.with_inertia("boom", mass=3.0), ModelError, r"body 'boom': it is flexible, .*with_material"),
        (lambda m: m.inertial_parameters(), UnsupportedError, "body 'boom' is flexible; ten numbers"),
        (lambda m: m.with_inertial_parameters({"hub.mass": 2.0}), UnsupportedError, "body 'boom' is flexible"),
        (
            lambda m: m.with_actuator("m", "boom.tip", gear=2.0),
            InputError,
            "'boom.tip' is node; there is nothing",
        ),
        (lambda m: m.drive("boom.tip"), InputError, "a node joint has no DoF"),
        (lambda m: m.with_coupling("wrist", "boom.modes"), ModelError, "joint 'boom.modes' has 10 DoF"),
    ],
)
def test_what_a_flexible_body_cannot_do_is_a_sentence(edit, error, said):
    with pytest.raises(error, match=said):
        edit(arm().build())


@pytest.mark.slow
def test_driven_modes_follow_and_coupled_ones_are_held():
    """Against the mass matrix and bias of the same model, with prescribed or constrained rows."""
    model = arm(boom(modes={"y": 0}, nodes=None)).build()
    q, v = model.random_state(seed=2)
    tau = np.linspace(-1.0, 1.0, model.nv)
    robot = sl.Dynamics(model)
    M, h = np.asarray(robot.mass_matrix(q)), np.asarray(robot.inverse_dynamics(q, v, np.zeros(model.nv)))
    driven = np.arange(model.nv)[model.v_slice("boom.modes")]
    free = np.setdiff1d(np.arange(model.nv), driven)
    expected = tau.copy()
    expected[free] = np.linalg.solve(M[np.ix_(free, free)], tau[free] - h[free] - M[np.ix_(free, driven)] @ tau[driven])
    np.testing.assert_allclose(motion(model.drive("boom.modes"), q, v, tau), expected, rtol=1e-11)
    twist = arm(boom(modes={"torsion": 0}, nodes=None)).build()
    q, v, tau = np.array([0.02, 0.01, 0.0]), np.array([0.2, 0.1, 0.0]), np.array([0.1, 0.2, 0.3])
    robot = sl.Dynamics(twist)
    M, h = np.asarray(robot.mass_matrix(q)), np.asarray(robot.inverse_dynamics(q, v, np.zeros(3)))
    J = np.array([[1.0, -2.0, 0.0]])
    saddle = np.block([[M, J.T], [J, np.zeros((1, 1))]])
    expected = np.linalg.solve(saddle, np.append(tau - h, 0.0))[:3]
    np.testing.assert_allclose(motion(twist.with_coupling("hinge", "boom.modes", 2.0), q, v, tau), expected, rtol=1e-9)


# ---- runs that go on with another model


def test_a_run_goes_on_with_another_material_where_it_was():
    model = arm(boom(modes={"y": 0}, nodes=None)).build()
    q = model.neutral()
    q[model.q_slice("boom.modes").start] = 0.01
    run = sl.simulate(model, q, duration=0.02, step=1e-4)
    on = run.continued(model.with_material("boom", E=2.1e11), duration=0.01, step=5e-5).pieces[-1]
    np.testing.assert_array_equal(on.q[0], run.q[-1])
    np.testing.assert_array_equal(on.v[0], run.v[-1])
    with pytest.raises(InputError, match=r"joint 'boom.tip' is new, and cannot hold body 'boom.tip' where it is"):
        run.continued(model.rigid(), duration=0.01)
    with pytest.raises(InputError, match=r"joint 'boom.modes' has other modes than before"):
        run.continued(arm(boom(modes={"y": 1}, nodes=None)).build(), duration=0.01)


def test_a_rigid_run_goes_on_with_a_flexible_body():
    model = arm(boom(modes={"y": 0}, nodes=None)).build()
    run = sl.simulate(model.rigid(), v={"hinge": 2.0}, duration=0.02, step=1e-3)
    on = run.continued(model, duration=0.001).pieces[-1]
    assert not np.any(on.q[0, model.q_slice("boom.modes")])
    before = np.asarray(run["boom.tip"].velocity)[-1]
    np.testing.assert_allclose(np.asarray(on["boom.tip"].velocity)[0], before, atol=1e-12)
