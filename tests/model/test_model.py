"""A model is checked when it is made; each complaint says where, what, found and expected, word for word."""

from __future__ import annotations

import math
import pickle
from dataclasses import FrozenInstanceError, replace

import pytest
from sentences import says

from spanloop import zoo
from spanloop.errors import InputError, ModelError
from spanloop.joints import Planar, Prismatic, Revolute, Spherical
from spanloop.model import Body, Coupling, Frame, Geometry, Inertia, Joint, Loop, Model, Placement
from spanloop.model.parts import Actuator, Sensor

HINGE = Revolute()


def model(bodies=("a", "b"), joints=(("one", "world", "a"), ("two", "a", "b")), **more) -> Model:
    """A small model from names."""
    made = tuple(b if isinstance(b, Body) else Body(b) for b in bodies)
    hinges = tuple(j if isinstance(j, Joint) else Joint(j[0], HINGE, j[1], j[2]) for j in joints)
    return Model("m", made, hinges, **more)


def hinge(**options) -> Joint:
    return Joint("one", HINGE, "world", "a", **options)


def shaped(*shape, **more) -> Model:
    return model(bodies=(Body("a", geometry=(Geometry(*shape, **more),)), "b"))


def sensing(**settings) -> Model:
    return model(sensors=(Sensor("s", "encoder", "one", tuple(settings.items())),))


WRONG = {
    "half a character": (
        lambda: model(bodies=("a", "b\ud800")),
        "model 'm': a body is called 'b\\ud800', which is not text (half a character); rename it",
    ),
    "a negative speed": (
        lambda: model(joints=(hinge(speed=-1.0), ("two", "a", "b"))),
        "joint 'one': speed is (-1.0,); must be >= 0",
    ),
    "a negative effort": (
        lambda: model(joints=(hinge(effort=-2.0), ("two", "a", "b"))),
        "joint 'one': effort is (-2.0,); must be >= 0",
    ),
    "an endless lower limit": (
        lambda: model(joints=(hinge(lower=math.inf), ("two", "a", "b"))),
        "joint 'one': limits (inf,) and None leave no room; expected -inf below or inf above for no limit",
    ),
    "a heading, which kernels alone set": (
        lambda: model(joints=(Joint("one", Planar(heading=(0.0, 1.0)), "world", "a"), ("two", "a", "b"))),
        "joint 'one': heading is (0.0, 1.0); kernels alone set it. Leave it out, turn the joint",
    ),
    "an offset that is no number": (
        lambda: model(joints=(Joint("one", Revolute(offset=math.nan), "world", "a"), ("two", "a", "b"))),
        "joint 'one': offset is nan; every number must be finite",
    ),
    "a length whose square is no number": (
        lambda: model(frames=(Frame("tool", "a", Placement(position=(1e308, 0.0, 0.0))),)),
        "frame 'tool': position is (1e+308, 0.0, 0.0); every number must be at most 1e+100 in SI units",
    ),
    "a shape of no size": (
        lambda: shaped("box", (math.nan, 1.0, 1.0)),
        "body 'a': the size of a box is (nan, 1.0, 1.0); every number must be finite",
    ),
    "a shape with too few sizes": (lambda: shaped("box", (1.0,)), "body 'a': a box has 1 sizes; expected 3"),
    "a shape that there is not": (
        lambda: shaped("bax", (1.0, 1.0, 1.0)),
        "body 'a': there is no shape 'bax'; did you mean 'box'?",
    ),
    "a shape with a negative size": (
        lambda: shaped("sphere", (-1.0,)),
        "body 'a': the size of a sphere is (-1.0,); must be >= 0",
    ),
    "a sensor without a rate": (
        lambda: sensing(rate=math.nan),
        "sensor 's': rate is nan; every number must be finite",
    ),
    "a sensor with a negative rate": (lambda: sensing(rate=-1.0), "sensor 's': rate is -1.0; must be > 0"),
    "a sensor with negative noise": (lambda: sensing(noise=-1.0), "sensor 's': noise is -1.0; must be >= 0"),
    "a gear whose square is no number": (
        lambda: model(actuators=(Actuator("m", "one", (("gear", 1e200), ("rotor_inertia", 1.0))),)),
        "actuator 'm': gear is 1e+200; every number must be at most 1e+100 in SI units",
    ),
    "two bodies of one name": (
        lambda: model(bodies=("a", "a")),
        "model 'm': 2 bodies are called 'a'; names must be unique",
    ),
    "a body called world": (
        lambda: model(bodies=("a", "world")),
        "model 'm': a body is called 'world', which is the ground's own name; rename it",
    ),
    "a joint without a name": (
        lambda: model(joints=(("", "world", "a"), ("two", "a", "b"))),
        "model 'm': a joint has an empty name; every joint needs one",
    ),
    "a joint and a loop of one name": (
        lambda: model(loops=(Loop("two", Spherical(), "b", "world"),)),
        "model 'm': 2 joints are called 'two'; names must be unique",
    ),
    "a parent that is misspelt": (
        lambda: model(bodies=("arm", "hand"), joints=(("one", "world", "arm"), ("two", "amr", "hand"))),
        "joint 'two': its parent 'amr' is not a body; did you mean 'arm'?",
    ),
    "a child that is not there": (
        lambda: model(bodies=("a",)),
        "joint 'two': its child 'b' is not a body; there are 'world', 'a'",
    ),
    "a loop to nowhere": (
        lambda: model(loops=(Loop("ring", Spherical(), "a", "c"),)),
        "joint 'ring': its body b 'c' is not a body; there are 'world', 'a', 'b'",
    ),
    "a frame on nothing": (
        lambda: model(frames=(Frame("tool", "hand"),)),
        "frame 'tool': its body 'hand' is not a body; there are 'world', 'a', 'b'",
    ),
    "two parents": (
        lambda: model(joints=(("one", "world", "a"), ("two", "a", "b"), ("three", "world", "b"))),
        "joint 'three': body 'b' has two parents, 'a' (joint 'two') and 'world'; a tree gives it one. "
        "Close the loop with model.with_loop(...) instead of the second joint",
    ),
    "a cycle": (
        lambda: model(joints=(("one", "b", "a"), ("two", "a", "b"))),
        "body 'a': not connected to the world (its joints form a cycle); "
        "attach it with a joint whose parent is the world or a connected body",
    ),
    "a lost body": (
        lambda: model(joints=(("one", "world", "a"),)),
        "body 'b': not connected to the world (no joint has it as child); "
        "attach it with a joint whose parent is the world or a connected body",
    ),
    "the world as a child": (
        lambda: model(joints=(("one", "a", "world"), ("two", "a", "b"))),
        "joint 'one': its child is the world; swap parent and child",
    ),
    "a negative mass": (
        lambda: model(bodies=(Body("a", Inertia(-0.3), where="arm.urdf:41"), "b")),
        "body 'a' (arm.urdf:41): mass is -0.3 kg; must be >= 0. Was the sign lost in the export?",
    ),
    "limits that cross": (
        lambda: model(("a",), (hinge(lower=1, upper=-1),)),
        "joint 'one': lower limit (1.0,) is above upper limit (-1.0,); expected lower <= upper. "
        "Are the two swapped, or is one in degrees?",
    ),
    "two numbers for one freedom": (
        lambda: model(("a",), (hinge(damping=(1, 2)),)),
        "joint 'one': damping has 2 numbers; a revolute joint takes 1",
    ),
    "negative damping": (
        lambda: model(("a",), (hinge(damping=-1),)),
        "joint 'one': damping is (-1.0,); must be >= 0",
    ),
    "infinite stiffness": (
        lambda: model(("a",), (hinge(stiffness=math.inf),)),
        "joint 'one': stiffness is inf; every number must be finite",
    ),
    "a mirror as rotation": (
        lambda: model(("a",), (hinge(placement=Placement(((1, 0, 0), (0, 1, 0), (0, 0, -1)))),)),
        "joint 'one': its rotation matrix is not a rotation (R Rᵀ − 1 reaches 0.0e+00, determinant -1); "
        "expected orthonormal, right-handed rows",
    ),
    "gravity that is not a number": (
        lambda: model(gravity=(0.0, 0.0, math.nan)),
        "model 'm': gravity is (0.0, 0.0, nan); every number must be finite",
    ),
    "a coupling with no joint": (
        lambda: model(couplings=(Coupling("gear", "two", "tow"),)),
        "coupling 'gear': 'tow' is not a joint; did you mean 'two'?",
    ),
    "a coupling with itself": (
        lambda: model(couplings=(Coupling("gear", "two", "two"),)),
        "coupling 'gear': joint 'two' follows itself",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_model_is_refused_with_this_sentence(case):
    make, sentence = WRONG[case]
    with pytest.raises(ModelError) as error:
        make()
    assert str(error.value) == sentence


def test_joints_are_sorted_depth_first_with_children_in_the_order_given():
    sorted_model = model(
        bodies=("d", "c", "b", "a"),
        joints=(("to_b", "a", "b"), ("to_d", "b", "d"), ("to_c", "a", "c"), ("to_a", "world", "a")),
    )
    assert [b.name for b in sorted_model.bodies] == ["a", "b", "d", "c"]
    assert sorted_model.parents == (0, 1, 2, 1)
    assert sorted_model.body_number == {"world": 0, "a": 1, "b": 2, "d": 3, "c": 4}


@pytest.mark.parametrize("seed", ["x", -1, 0.5])
def test_a_seed_that_is_none_is_refused(seed):
    with says(InputError, f"random_state: seed is {seed!r}; expected a number, 0 or more, or a Generator"):
        zoo.puma().random_state(seed=seed)


def test_slices_tell_where_a_joint_stands():
    quadruped = zoo.quadruped()
    assert quadruped.q_slice("root") == slice(0, 7)
    assert quadruped.v_slice("root") == slice(0, 6)
    assert quadruped.q_slice("fr_roll") == slice(10, 11)
    assert quadruped.v_slice("fr_roll") == slice(9, 10)
    with says(InputError, "model 'quadruped' has no joint 'fl_kne'; did you mean 'fl_knee'?"):
        quadruped.q_slice("fl_kne")


def test_a_body_is_a_frame_and_an_unknown_one_is_offered_the_nearest():
    assert model().frame("b") == Frame("b", "b")
    assert model().frame("world") == Frame("world", "world")
    with says(InputError, "model 'puma' has no frame or body 'tol'; did you mean 'tool'?"):
        zoo.puma().frame("tol")


def test_a_model_is_frozen():
    with pytest.raises(FrozenInstanceError):
        model().name = "other"


def test_random_states_are_those_of_their_seed():
    puma = zoo.puma()
    one, two = puma.random_state(3), puma.random_state(3)
    assert (one[0] == two[0]).all()
    assert (one[1] == two[1]).all()


def test_a_report_has_a_line_for_everything():
    told = replace(
        zoo.pendulum(2).with_loop("tip", "world", "spherical", switchable=True).drive("hinge1"),
        couplings=(Coupling("gear", "hinge2", "hinge1", -2.0, 0.5),),
        notes=("something to know",),
    )
    assert str(told) == "\n".join(
        (
            "model 'pendulum2'",
            "  bodies    2",
            "  joints    2 revolute",
            "  nq, nv    2, 2",
            "  mass      2 kg",
            "  gravity   (0, 0, -9.81) m/s²",
            "",
            "  no  body  parent  joint   kind               DoF  mass [kg]",
            "   1  rod1  world   hinge1  revolute (driven)    1          1",
            "   2  rod2  rod1    hinge2  revolute             1          1",
            "",
            "frames",
            "  tip on rod2",
            "",
            "loops",
            "  tip_world: spherical between rod2 and world (switchable)",
            "",
            "couplings",
            "  gear: hinge2 = -2 hinge1 + 0.5",
            "",
            "notes",
            "  something to know",
        )
    )


def test_an_empty_model_can_be_printed():
    assert "joints    none" in str(Model("empty", (), ()))


def test_one_number_serves_all_freedoms():
    joint = Joint("slide", Prismatic(), "world", "a", damping=2, lower=-1)
    assert joint.damping == (2.0,)
    assert joint.lower == (-1.0,)
    assert joint.upper is None
    assert Joint("ball", Spherical(), "world", "a", damping=0.5).damping == (0.5, 0.5, 0.5)


def test_a_models_hash_is_not_carried_to_other_processes():
    """Hashes of names differ from process to process."""
    model = zoo.puma()
    assert hash(model) == hash(zoo.puma())
    assert "_hash" not in model.__getstate__()
    assert pickle.loads(pickle.dumps(model)) == model
