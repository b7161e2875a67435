"""Models said by hand: the builder, ready shapes, Denavit-Hartenberg tables."""

from __future__ import annotations

import doctest
import inspect

import numpy as np
import pytest
from frames import body_pose
from sentences import says

import spanloop as sl
from spanloop.errors import InputError, ModelError, SpanloopWarning
from spanloop.joints import KINDS
from spanloop.model import Placement
from spanloop.model.builder import Builder
from spanloop.model.files.dh.table import DHRow, from_dh
from spanloop.model.files.toml.reader import loads
from spanloop.model.files.toml.writer import dumps
from spanloop.model.solid_inertia import ball, box, cylinder, rod

# products of some ten rotations, lengths of order 1
ROUNDING = 1e-14


# ---- builder


def test_the_two_link_arm_of_the_docstring_takes_few_lines_and_is_one():
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(Builder))
    assert len(examples) <= 10
    names = {"sl": sl}
    for example in examples[:-1]:  # the last one prints
        exec(example.source, names)
    arm = names["model"]
    assert (arm.nq, arm.nv, arm.mass) == (2, 2, 3.0)
    tool = body_pose(arm, (0.0, -np.pi / 2), "tool")
    np.testing.assert_allclose(tool[:3, 3], (0.5, 0.0, 0.4), atol=ROUNDING)
    assert arm.joint("elbow").damping == (0.1,)
    assert arm.notes == ()


def one_body(b: Builder | None = None) -> Builder:
    return (b or Builder("m")).body("a", 1.0, (0.1, 0.0, 0.0), (0.1, 0.1, 0.1))


MORE = {"helical": {"pitch": 0.1}, "general": {"motion": ((0, 0, 1, 0, 0, 0),)}}


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_a_method_for_every_kind(kind):
    b = one_body()
    getattr(b, kind)("j", "world", "a", position=(1, 2, 3), rotation=(0, 0, np.pi / 2), **MORE.get(kind, {}))
    joint = b.build().joint("j")
    assert joint.kind.name == kind
    assert joint.placement == Placement(((0, -1, 0), (1, 0, 0), (0, 0, 1)), (1, 2, 3))


@pytest.mark.parametrize(
    "inertia",
    [(1, 2, 2.5), (1, 0, 0, 2, 0, 2.5), np.diag((1.0, 2.0, 2.5)), [[1, 0, 0], [0, 2, 0], [0, 0, 2.5]]],
)
def test_an_inertia_is_three_or_six_numbers_or_a_matrix(inertia):
    model = Builder("m").body("a", 1.0, inertia=inertia).free("j", "world", "a").build()
    assert model.body("a").inertia.moments == (1.0, 0.0, 0.0, 2.0, 0.0, 2.5)


def test_roll_pitch_yaw_turn_about_fixed_axes_in_this_order():
    b = one_body().revolute("j", "world", "a", rotation=(0.1, 0.2, 0.3))
    (cr, cp, cy), (sr, sp, sy) = np.cos((0.1, 0.2, 0.3)), np.sin((0.1, 0.2, 0.3))
    x = np.array(((1, 0, 0), (0, cr, -sr), (0, sr, cr)))
    y = np.array(((cp, 0, sp), (0, 1, 0), (-sp, 0, cp)))
    z = np.array(((cy, -sy, 0), (sy, cy, 0), (0, 0, 1)))
    np.testing.assert_allclose(b.build().joint("j").placement.rotation, z @ y @ x, atol=ROUNDING)


def test_nearly_right_angles_are_made_exact_with_a_note():
    b = one_body().revolute("j", "world", "a", (1e-11, 0.0, 1.0), rotation=(1.57079632679, 0.0, 0.0))
    model = b.build()
    assert model.joint("j").kind.axis == (0.0, 0.0, 1.0)
    assert model.joint("j").placement.rotation == ((1.0, 0.0, 0.0), (0.0, 0.0, -1.0), (0.0, 1.0, 0.0))
    assert model.notes == (
        "joint 'j': axis snapped to exact zeros",
        "joint 'j': rotation snapped to exact right angles",
    )


def test_loops_couplings_and_options_arrive_in_the_model():
    b = one_body().body("b", 1.0, inertia=(0.1, 0.1, 0.1))
    b.revolute("one", "world", "a", lower=-1, upper=1, stiffness=2.0, rest=0.1, actuated=False)
    b.prismatic("two", "a", "b", "x", effort=5.0)
    b.loop("tip", "world", "spherical", switchable=True).coupling("gear", "two", "one", 0.5)
    model = b.frame("tip", "b", (1.0, 0.0, 0.0)).build()
    assert (model.joint("one").rest, model.joint("one").upper) == ((0.1,), (1.0,))
    assert model.actuated == ("two",)
    assert model.loops[0].placement_a.position == (1.0, 0.0, 0.0)
    assert (model.couplings[0].ratio, model.couplings[0].offset) == (0.5, 0.0)
    assert (model.loops[0].switchable, model.loops[0].driven) == (True, False)
    assert one_body().revolute("one", "world", "a").loop("a", "world", "planar", driven=True).build().loops[0].driven


WRONG = {
    "an option that is misspelt": (
        lambda b: b.revolute("j", "world", "a", dampin=1.0),
        "joint 'j': a joint has no setting 'dampin'; did you mean 'damping'?",
    ),
    "an option that is no number": (
        lambda b: b.revolute("j", "world", "a", damping="much"),
        "joint 'j': damping is 'much'; expected a number",
    ),
    "a kind that is misspelt": (
        lambda b: b.joint("j", "revolve", "world", "a"),
        "joint 'j': no kind of joint is called 'revolve'; did you mean 'revolute'?",
    ),
    "two numbers for a position": (
        lambda b: b.revolute("j", "world", "a", position=(1, 2)),
        "joint 'j': position is (1, 2); expected three finite numbers",
    ),
    "an inertia of four numbers": (
        lambda b: b.body("c", 1.0, inertia=(1, 2, 3, 4)),
        "body 'c': inertia is (1, 2, 3, 4); expected 3 principal moments, 6 numbers xx xy xz yy yz zz, "
        "or a symmetric 3x3 matrix, all finite",
    ),
    "a mass that is no number": (
        lambda b: b.body("c", "heavy"),
        "body 'c': mass is 'heavy'; expected a finite number",
    ),
    "a coupling without a number": (
        lambda b: b.coupling("gear", "x", "y", float("nan")),
        "coupling 'gear': ratio is nan; expected a finite number",
    ),
}


def test_a_free_body_has_no_motor_unless_it_is_given_one():
    """Otherwise inverse dynamics of arms with an object would put a wrench on the object."""

    def loose() -> Builder:
        return Builder("m").body("a", 1.0, inertia=(1.0, 1.0, 1.0))

    models = [
        loose().free("root", "world", "a").build(),
        loose().joint("root", "free", "world", "a").build(),
        loose().free("root", "world", "a", actuated=True).build(),
        loose().planar("root", "world", "a").build(),
    ]
    assert [m.actuated for m in models] == [(), (), ("root",), ("root",)]
    assert [loads(dumps(m)).actuated for m in models] == [m.actuated for m in models]


@pytest.mark.parametrize("case", WRONG)
def test_the_builder_says_what_is_wrong(case):
    do, sentence = WRONG[case]
    with pytest.raises(InputError) as error:
        do(one_body())
    assert str(error.value) == sentence


def test_a_zero_axis_is_refused_by_the_joint_it_belongs_to():
    with says(ModelError, "joint 'j': axis is (0.0, 0.0, 0.0), which has no direction"):
        one_body().revolute("j", "world", "a", axis=(0, 0, 0))


def test_an_inertia_that_no_body_can_have_is_refused():
    b = Builder("m").body("a", 1.0, inertia=(1.0, 1.0, 3.0)).free("j", "world", "a")
    with says(ModelError, "body 'a': its principal moments of inertia are 1, 1, 3 kg m²"):
        b.build()


def test_an_inertia_that_is_not_symmetric_is_refused():
    with says(InputError, "body 'a': inertia is not symmetric"):
        Builder("m").body("a", 1.0, inertia=((1, 0.1, 0), (0, 1, 0), (0, 0, 1)))


# ---- joints that become loops


def four_bar(**options) -> Builder:
    """A four-bar of hinges a, b, c, d with options for any of them; b or d can close the loop."""
    b = Builder("four bar")
    for name, length in (("crank", 0.4), ("coupler", 1.0), ("rocker", 0.8)):
        b.body(name, 1.0, (length / 2, 0, 0), (0.01, 0.1, 0.1))
    b.revolute("a", "world", "crank", "y", **options.get("a", {}))
    b.revolute("b", "crank", "coupler", "y", (0.4, 0, 0), **options.get("b", {}))
    b.revolute("c", "world", "rocker", "y", (0.9, 0, 0), **options.get("c", {}))
    return b.revolute("d", "rocker", "coupler", "y", (0.8, 0, 0), child_position=(1, 0, 0), **options.get("d", {}))


HOLDS = "it becomes a loop, which holds no losses, springs or limits, but has"


@pytest.mark.parametrize("option", ["damping", "stiffness", "friction"])
def test_a_loss_of_a_joint_that_becomes_a_loop_is_refused(option):
    b = four_bar(d={option: 0.1})
    with pytest.raises(ModelError) as error:
        b.build()
    assert str(error.value) == (
        f"joint 'd': {HOLDS} {option} 0.1. Cut another joint of the loop, build(cut=['b']), "
        "or leave it out here and simulate with sl.forces.along_loops(...)"
    )
    model = b.build(cut=["b"])
    assert [x.name for x in model.loops] == ["b"]
    assert getattr(model.joint("d"), option) == (0.1,)


@pytest.mark.parametrize("option", ["armature", "lower", "upper", "speed", "effort"])
def test_an_armature_or_a_limit_of_a_joint_that_becomes_a_loop_is_refused(option):
    with pytest.raises(ModelError) as error:
        four_bar(b={option: 2.0}).build(cut=["b"])
    assert str(error.value) == f"joint 'b': {HOLDS} {option} 2. Cut another joint of the loop, build(cut=['d'])"


def test_where_no_other_joint_can_be_cut_none_is_offered():
    with says(ModelError, f"joint 'd': {HOLDS} effort 5. Leave it out, or describe the loop so that another joint"):
        four_bar(b={"damping": 1.0}, d={"effort": 5.0}).build()


def test_a_joint_that_becomes_a_loop_may_be_passive_driven_or_without_bounds():
    (loop,) = four_bar(d={"actuated": False, "driven": True, "upper": np.inf, "damping": 0.0}).build().loops
    assert (loop.name, loop.driven) == ("d", True)


@pytest.mark.parametrize(
    ("parent", "child", "sentence"),
    [
        ("word", "a", "joint 'j': its parent 'word' is not a body; did you mean 'world'?"),
        ("world", "aa", "joint 'j': its child 'aa' is not a body; did you mean 'a'?"),
    ],
)
def test_a_misspelt_body_of_a_joint_is_named(parent, child, sentence):
    with pytest.raises(ModelError) as error:
        one_body().revolute("j", parent, child).build()
    assert str(error.value) == sentence


@pytest.mark.parametrize("kind", KINDS)
def test_every_method_of_a_joint_shows_where_it_is_in_the_child(kind):
    assert {"child_position", "child_rotation"} <= inspect.signature(getattr(Builder, kind)).parameters.keys()
    b = one_body()
    at = {"child_position": (0.1, 0, 0), "child_rotation": (0, 0, np.pi / 2)}
    getattr(b, kind)("j", "world", "a", **at, **MORE.get(kind, {}))
    assert b.build().body("a").inertia.center == (0.0, 0.0, 0.0)


def test_the_frame_that_a_body_is_described_in_stays_where_its_joint_is_elsewhere():
    b = one_body().revolute("j", "world", "a", "y", child_position=(0.3, 0, 0), child_rotation=(0, 0, np.pi / 2))
    with pytest.warns(SpanloopWarning, match="body 'a': its frame is at its joint 'j'"):
        built = b.frame("tip", "a", (0.5, 0, 0)).build()
    model = built.with_frame("same", "a::origin", (0.5, 0, 0))
    robot = sl.Dynamics(model, target="python")
    for q in ([0.0], [0.4]):
        np.testing.assert_allclose(robot.pose(q, "same"), robot.pose(q, "tip"), atol=ROUNDING)
    np.testing.assert_allclose(robot.pose([0.0], "a::origin") @ [0.3, 0, 0, 1], (0, 0, 0, 1), atol=ROUNDING)
    note = "body 'a': its frame is at its joint 'j' (child_position); the frame as described is 'a::origin'"
    assert note in model.notes
    assert note in str(model)
    assert loads(dumps(model)) == model


def test_a_loop_of_the_builder_is_at_the_frame_that_a_body_is_described_in():
    b = one_body().revolute("j", "world", "a", "y", child_position=(0.3, 0, 0)).loop("a", "world", "spherical")
    (loop,) = b.build().loops
    assert (loop.name, loop.a, loop.placement_a.position) == ("a_world", "a", (-0.3, 0.0, 0.0))


def test_which_leg_carries_a_body_does_not_move_its_origin():
    for cut in (["b"], ["d"]):
        model = four_bar().frame("middle", "coupler", (0.5, 0, 0)).build(cut=cut)
        robot = sl.Dynamics(model, target="python")
        q = robot.assemble([0.3, 0.4, 0.5])
        origin = "coupler::origin" if cut == ["b"] else "coupler"
        difference = robot.pose(q, "middle")[:3, 3] - robot.pose(q, origin)[:3, 3]
        np.testing.assert_allclose(difference, robot.pose(q, origin)[:3, 0] * 0.5, atol=1e-12)


# ---- shapes


def test_shapes_have_the_textbook_moments():
    assert rod(12.0, 2.0) == (0.0, 4.0, 4.0)
    assert rod(12.0, 2.0, "z") == (4.0, 4.0, 0.0)
    assert box(12.0, 1.0, 2.0, 3.0) == (13.0, 10.0, 5.0)
    assert ball(5.0, 2.0) == (8.0, 8.0, 8.0)
    assert cylinder(12.0, 1.0, 2.0) == (7.0, 7.0, 6.0)
    assert cylinder(12.0, 1.0, 2.0, "y") == (7.0, 6.0, 7.0)
    with says(InputError, "shape: axis is 'w'; there are 'x', 'y', 'z'"):
        rod(1.0, 1.0, "w")


# ---- Denavit-Hartenberg


def about_z(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array(((c, -s, 0, 0), (s, c, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)))


def about_x(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array(((1, 0, 0, 0), (0, c, -s, 0), (0, s, c, 0), (0, 0, 0, 1)))


def shift(x, y, z):
    t = np.eye(4)
    t[:3, 3] = (x, y, z)
    return t


def random_table(rng, n=6):
    rows = []
    for _ in range(n):
        a, b, alpha, theta = rng.uniform(-1.0, 1.0, 4)
        alpha = rng.choice((alpha, 0.0, np.pi / 2, -np.pi / 2))
        second = np.diag(rng.uniform(0.1, 1.0, 3))
        inertia = np.trace(second) * np.eye(3) - second + 0.01
        joint = str(rng.choice(("r", "p")))
        rows.append(DHRow(a, b, alpha, theta, joint, rng.uniform(1, 2), rng.uniform(-1, 1, 3), inertia))
    return rows


def frames_of(table, q):
    """Poses of frames 2, 3, ... by the product of the table's matrices."""
    x, out = np.eye(4), []
    for row, angle in zip(table, q, strict=True):
        theta = row.theta + (angle if row.joint == "r" else 0.0)
        b = row.b + (angle if row.joint == "p" else 0.0)
        x = x @ about_z(theta) @ shift(0, 0, b) @ shift(row.a, 0, 0) @ about_x(row.alpha)
        out.append(x)
    return out


@pytest.mark.parametrize("seed", range(10))
def test_a_dh_arm_moves_as_its_table_says(seed):
    rng = np.random.default_rng(seed)
    table = random_table(rng)
    model = from_dh(table)
    q = rng.uniform(-2.0, 2.0, 6)
    frames = frames_of(table, q)
    np.testing.assert_allclose(body_pose(model, q, "tool"), frames[-1], rtol=0, atol=ROUNDING)
    for body, row, x in zip(model.bodies, table, frames, strict=True):
        pose = body_pose(model, q, body.name)
        center = pose[:3, :3] @ body.inertia.center + pose[:3, 3]
        np.testing.assert_allclose(center, x[:3, 3] - x[:3, :3] @ row.r, rtol=0, atol=ROUNDING)
        inertia = pose[:3, :3] @ np.array(body.inertia.matrix()) @ pose[:3, :3].T
        np.testing.assert_allclose(inertia, x[:3, :3] @ row.inertia @ x[:3, :3].T, rtol=0, atol=ROUNDING)


def test_right_angles_of_a_dh_table_are_exact():
    row = {"a": 0.5, "alpha": -np.pi / 2, "theta": np.pi / 2, "mass": 1.0, "inertia": (0.1, 0.1, 0.1)}
    model = from_dh([row, dict(row, joint="p", name="slide", options={"damping": 0.1})])
    placement = model.joint("slide").placement
    assert placement.rotation == ((0.0, 0.0, -1.0), (1.0, 0.0, 0.0), (0.0, -1.0, 0.0))
    assert placement.position == (0.0, 0.5, 0.0)
    assert model.joint("slide").damping == (0.1,)
    assert [b.name for b in model.bodies] == ["link1", "link2"]


def test_nearly_right_angles_of_a_dh_table_are_made_exact_with_a_note():
    model = from_dh([DHRow(alpha=1.57079632679, mass=1.0, inertia=(0.1, 0.1, 0.1))])
    assert model.frame("tool").placement.rotation == ((1.0, 0.0, 0.0), (0.0, 0.0, -1.0), (0.0, 1.0, 0.0))
    assert model.notes == ("row 1: rotation snapped to exact right angles",)


def test_a_dh_table_says_what_is_wrong():
    with says(InputError, "row 1: there is no entry 'alfa'; did you mean 'alpha'?"):
        from_dh([{"alfa": 1.0}])
    with pytest.raises(InputError, match=r"row 2: joint is 'x'; expected 'r' \(revolute\) or 'p' \(prismatic\)"):
        from_dh([DHRow(), DHRow(joint="x")])
    with says(InputError, "row 1: alpha is inf; expected a finite number"):
        from_dh([DHRow(alpha=np.inf)])
    with says(InputError, "row 1: (1, 2, 3, 4) is not a row"):
        from_dh([(1, 2, 3, 4)])
