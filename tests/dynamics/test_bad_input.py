"""What is wrong with an input is said in one sentence, the same each time."""

from __future__ import annotations

import numpy as np
import pytest
from mechanisms import model_of
from sentences import says

import spanloop as sl
from spanloop import zoo
from spanloop.errors import InputError, Reason, StateError, UnsupportedError, nearest

Z, Z2 = np.zeros(6), np.zeros((2, 6))
NAN = np.array([0.0, np.nan, 0.0, 0.0, 0.0, 0.0])


def robot():
    return sl.Dynamics(model_of("puma"))


def star():
    """A model with quaternions: nq 7 + 4 · 4, nv 6 + 4 · 3."""
    return sl.Dynamics(model_of("star"))


def off_unit(where, factor=1.1):
    q = model_of("star").neutral()
    q[where] *= factor
    return q


def read_only(n):
    x = np.zeros(n)
    x.flags.writeable = False
    return x


def closed():
    return zoo.pendulum(3).with_loop("tip", "world", joint="revolute", name="pin")


def coupled():
    b = sl.Builder("gripper")
    for name in ("left", "right"):
        b.body(name, 1.0, inertia=(0.1, 0.1, 0.1))
        b.prismatic(f"slide_{name}", "world", name, "x")
    return b.coupling("mimic", "slide_right", "slide_left", ratio=-1.0).build()


LIVE = zoo.pendulum(1).parameters()

CASES = {
    # ---- shapes
    "too short": (
        lambda: robot().forward_dynamics(np.zeros(5), Z, Z),
        InputError,
        "forward_dynamics: q has shape (5,); expected (..., 6)",
    ),
    "too long in a batch": (
        lambda: robot().forward_dynamics(Z2, np.zeros((2, 7)), Z2),
        InputError,
        "forward_dynamics: v has shape (2, 7); expected (..., 6)",
    ),
    "a number": (
        lambda: robot().mass_matrix(3.0),
        InputError,
        "mass_matrix: q has shape (); expected (..., 6)",
    ),
    "nothing": (
        lambda: robot().mass_matrix(None),
        InputError,
        "mass_matrix: q is a NoneType; expected real numbers of shape (..., 6)",
    ),
    "batches that do not fit": (
        lambda: robot().forward_dynamics(Z2, np.zeros((3, 6)), Z),
        InputError,
        "forward_dynamics: batch axes do not fit together: q (2, 6), v (3, 6), tau (6,); "
        "the leading axes must be equal or 1",
    ),
    # ---- dtypes
    "complex": (
        lambda: robot().gravity_torques(Z + 0j),
        InputError,
        "gravity_torques: q holds complex numbers; expected real numbers of shape (..., 6)",
    ),
    "text": (
        lambda: robot().gravity_torques(["a"] * 6),
        InputError,
        "gravity_torques: q holds text; expected real numbers of shape (..., 6)",
    ),
    "bytes": (
        lambda: robot().gravity_torques([b"a"] * 6),
        InputError,
        "gravity_torques: q holds text; expected real numbers of shape (..., 6)",
    ),
    "objects": (
        lambda: robot().gravity_torques(np.zeros(6, dtype=object)),
        InputError,
        "gravity_torques: q holds Python objects of type int; expected real numbers of shape (..., 6). "
        "Try q.astype(float)",
    ),
    "times": (
        lambda: robot().gravity_torques(np.zeros(6, dtype="m8[s]")),
        InputError,
        "gravity_torques: q holds entries of type timedelta64[s]; expected real numbers of shape (..., 6)",
    ),
    "ragged rows": (
        lambda: robot().gravity_torques([[1.0, 2.0], [3.0]]),
        InputError,
        "gravity_torques: q cannot be made an array; expected numbers of shape (..., 6)",
    ),
    # ---- values
    "NaN": (
        lambda: robot().forward_dynamics(NAN, Z, Z),
        StateError,
        "forward_dynamics: q[1] (joint 'joint2') is nan; every number must be finite",
    ),
    "infinite velocity": (
        lambda: robot().bias(Z, Z + np.inf),
        StateError,
        "bias: v[0] (joint 'joint1') is inf; every number must be finite",
    ),
    "NaN acceleration": (
        lambda: robot().inverse_dynamics(Z, Z, NAN),
        StateError,
        "inverse_dynamics: a[1] (joint 'joint2') is nan; every number must be finite",
    ),
    "NaN where it is not used": (
        lambda: robot().center_of_mass(Z * np.nan),
        StateError,
        "center_of_mass: q[0] (joint 'joint1') is nan; every number must be finite",
    ),
    "NaN force": (
        lambda: robot().bias(Z, Z, forces={"link2": NAN}),
        StateError,
        "bias: forces[1] ('link2') is nan; every number must be finite",
    ),
    "NaN parameter": (
        lambda: sl.compile(zoo.pendulum(1), "gravity_torques", parameters="live")([0.0], LIVE.values * np.nan),
        StateError,
        "gravity_torques: parameters[0] ('gravity.x') is nan; every number must be finite",
    ),
    "quaternion": (
        lambda: star().mass_matrix(off_unit(slice(0, 4))),
        StateError,
        "mass_matrix: q[0:4] (joint 'root') is a quaternion of length 1.1; "
        "expected 1 to within 1e-06. Divide it by its length",
    ),
    "quaternion of zeros": (
        lambda: star().mass_matrix(off_unit(slice(7, 11), 0.0)),
        StateError,
        "mass_matrix: q[7:11] (joint 'joint1') is a quaternion of length 0; "
        "expected 1 to within 1e-06. Divide it by its length",
    ),
    "quaternion of the start": (
        lambda: star().difference(off_unit(slice(0, 4)), model_of("star").neutral()),
        StateError,
        "difference: start[0:4] (joint 'root') is a quaternion of length 1.1; "
        "expected 1 to within 1e-06. Divide it by its length",
    ),
    "overflow": (
        lambda: robot().forward_dynamics(Z, Z + 1e200, Z),
        StateError,
        "forward_dynamics: the answer is not finite at this state. The mass matrix is singular "
        "(a body without inertia about its joint?) or the numbers overflow",
    ),
    # ---- names
    "frame": (
        lambda: robot().pose(Z, "tol"),
        InputError,
        "model 'puma' has no frame or body 'tol'; did you mean 'tool'?",
    ),
    "axes": (
        lambda: robot().jacobian(Z, "tool", expressed_in="wrld"),
        InputError,
        "model 'puma' has no frame or body 'wrld'; did you mean 'world'?",
    ),
    "joint": (
        lambda: model_of("puma").joint("joint7"),
        InputError,
        "model 'puma' has no joint 'joint7'; did you mean 'joint6'?",
    ),
    "loaded body": (
        lambda: robot().forward_dynamics(Z, Z, Z, forces={"lnk3": Z}),
        InputError,
        "forward_dynamics: forces names 'lnk3', which is not a body; did you mean 'link3'?",
    ),
    "loaded body of a kernel": (
        lambda: sl.compile(model_of("puma"), "bias", forces=["lnk3"]),
        InputError,
        "model 'puma' has no body 'lnk3'; did you mean 'link3'?",
    ),
    "forces that are an array": (
        lambda: robot().forward_dynamics(Z, Z, Z, forces=Z),
        InputError,
        "forward_dynamics: forces is a ndarray; expected {'body': array (..., 6)}",
    ),
    "force of three numbers": (
        lambda: robot().forward_dynamics(Z, Z, Z, forces={"link3": np.zeros(3)}),
        InputError,
        "forward_dynamics: the force on 'link3' has shape (3,); expected (..., 6), [torque; force]",
    ),
    "parameter": (
        lambda: LIVE.changed({"rod1.mas": 2.0}),
        InputError,
        "there is no parameter 'rod1.mas'; did you mean 'rod1.mass'?",
    ),
    # ---- options
    "function": (
        lambda: sl.compile(model_of("puma"), "foward_dynamics"),
        InputError,
        "there is no function 'foward_dynamics'; did you mean 'forward_dynamics'?",
    ),
    "method": (
        lambda: sl.Dynamics(model_of("puma"), method="articulated"),
        InputError,
        "forward_dynamics has no method 'articulated'; did you mean 'articulated_body'?",
    ),
    "target": (
        lambda: sl.compile(model_of("puma"), "bias", target="cpuu"),
        InputError,
        "target is 'cpuu'; did you mean 'cpu'?",
    ),
    "target by another name": (
        lambda: sl.compile(model_of("puma"), "bias", target="gpu"),
        InputError,
        "target is 'gpu'; expected 'cpu', 'cuda' or 'python'. Try target='cuda'",
    ),
    "dtype": (
        lambda: sl.compile(model_of("puma"), "bias", dtype="float16"),
        InputError,
        "dtype is 'float16'; expected 'float64' or 'float32'",
    ),
    "dtype of the python target": (
        lambda: sl.compile(model_of("puma"), "bias", target="python", dtype="float16"),
        InputError,
        "dtype is 'float16'; expected 'float64' or 'float32'",
    ),
    "parameters": (
        lambda: sl.compile(model_of("puma"), "bias", parameters="alive"),
        InputError,
        "parameters is 'alive'; expected 'baked' or 'live'",
    ),
    "live parameters of Dynamics": (
        lambda: sl.Dynamics(model_of("puma"), parameters="live"),
        UnsupportedError,
        "Dynamics: parameters is 'live'; it has the model's numbers compiled in ('baked'). Live ones: sl.compile("
        "model, 'forward_dynamics', parameters='live') or sl.simulate(model, parameters=...); others for good: "
        "sl.Dynamics(model.with_parameters({'link.mass': 2.0}))",
    ),
    "threads": (
        lambda: sl.Dynamics(model_of("puma"), threads=-1).bias(Z, Z),
        InputError,
        "threads is -1; expected a whole number, 0 for all cores",
    ),
    "half a thread": (
        lambda: sl.compile(model_of("puma"), "bias", threads=1.5),
        InputError,
        "threads is 1.5; expected a whole number, 0 for all cores",
    ),
    "frame where there is none": (
        lambda: sl.compile(model_of("puma"), "bias", frame="tool"),
        InputError,
        "bias takes no frame",
    ),
    "no frame where one is needed": (
        lambda: sl.compile(model_of("puma"), "pose"),
        InputError,
        "pose needs a frame: the name of a frame or body",
    ),
    "forces where there are none": (
        lambda: sl.compile(model_of("puma"), "mass_matrix", forces=["link1"]),
        InputError,
        "mass_matrix takes no forces",
    ),
    # ---- arguments of kernels
    "too few arrays": (
        lambda: sl.compile(model_of("puma"), "bias")(Z),
        InputError,
        "bias takes q, v; 1 arrays were given",
    ),
    "too many arrays": (
        lambda: sl.compile(model_of("puma"), "bias")(Z, Z, Z),
        InputError,
        "bias takes q, v; 3 arrays were given",
    ),
    "parameters that are missing": (
        lambda: sl.compile(zoo.pendulum(1), "gravity_torques", parameters="live")([0.0]),
        InputError,
        "gravity_torques takes q, parameters; 1 arrays were given",
    ),
    "parameters of another model": (
        lambda: sl.compile(zoo.pendulum(1), "gravity_torques", parameters="live")([0.0], np.zeros(5)),
        InputError,
        f"gravity_torques: parameters has shape (5,); expected (..., {len(LIVE)})",
    ),
    # ---- out
    "out of another shape": (
        lambda: robot().gravity_torques(Z, out=np.zeros(5)),
        InputError,
        "gravity_torques: out has shape (5,); expected (6,)",
    ),
    "out without the batch axis": (
        lambda: robot().gravity_torques(Z2, out=np.zeros(6)),
        InputError,
        "gravity_torques: out has shape (6,); expected (2, 6)",
    ),
    "out of another dtype": (
        lambda: robot().gravity_torques(Z, out=np.zeros(6, np.float32)),
        InputError,
        "gravity_torques: out holds float32; expected float64",
    ),
    "out of another byte order": (
        lambda: robot().gravity_torques(Z, out=np.zeros(6, ">f8")),
        InputError,
        "gravity_torques: out holds >f8; expected float64",
    ),
    "out that is read-only": (
        lambda: robot().gravity_torques(Z, out=read_only(6)),
        InputError,
        "gravity_torques: out is read-only; give an array that can be written",
    ),
    "out that is a list": (
        lambda: robot().gravity_torques(Z, out=[0.0] * 6),
        InputError,
        "gravity_torques: out is a list; expected an array of shape (6,), float64",
    ),
    # ---- what has no dynamics yet
    "a loop": (
        lambda: sl.Dynamics(closed()).mass_matrix_inverse(np.zeros(3)),
        UnsupportedError,
        "mass_matrix_inverse: model 'pendulum3' has a loop ('pin', between 'rod3' and 'world'); "
        "mass_matrix_inverse of closed loops is not there yet. "
        "Use forward_dynamics, or lock the loop's joints: model.lock(...)",
    ),
    "a coupling": (
        lambda: sl.Dynamics(coupled()).mass_matrix_inverse(np.zeros(2)),
        UnsupportedError,
        "mass_matrix_inverse: joint 'slide_right' of model 'gripper' follows joint 'slide_left' (a coupling); "
        "mass_matrix_inverse of coupled joints is not there yet. "
        "Use forward_dynamics, or leave it out of the motion: model.lock('slide_right', 'slide_left')",
    ),
    "a kernel of inverse dynamics": (
        lambda: sl.compile(closed(), "inverse_dynamics"),
        UnsupportedError,
        "inverse_dynamics: model 'pendulum3' has a loop ('pin', between 'rod3' and 'world'); "
        "a kernel of it is for trees. Use sl.Dynamics(model).inverse_dynamics(q, v, a)",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_sentence_is_this_one(case):
    act, error, sentence = CASES[case]
    with pytest.raises(error) as caught:
        act()
    assert type(caught.value) is error
    assert str(caught.value) == sentence


SECOND = ["too short", "complex", "objects", "NaN", "quaternion", "out of another shape", "out that is read-only"]


@pytest.mark.parametrize("case", SECOND)
def test_the_sentence_is_the_same_on_later_calls(case, monkeypatch):
    """After the first call the compiled entry stands in front."""
    warm, round_ = robot(), star()
    warm.gravity_torques(Z)
    warm.forward_dynamics(Z, Z, Z)
    round_.mass_matrix(model_of("star").neutral())
    monkeypatch.setitem(globals(), "robot", lambda: warm)
    monkeypatch.setitem(globals(), "star", lambda: round_)
    test_the_sentence_is_this_one(case)


PYTHON = ["too short", "complex", "objects", "NaN", "quaternion", "overflow", "out of another shape", "frame"]


@pytest.mark.parametrize("case", PYTHON)
def test_the_python_target_says_the_same(case, monkeypatch):
    monkeypatch.setitem(globals(), "robot", lambda: sl.Dynamics(model_of("puma"), target="python"))
    monkeypatch.setitem(globals(), "star", lambda: sl.Dynamics(model_of("star"), target="python"))
    test_the_sentence_is_this_one(case)


@pytest.mark.parametrize("function", ["inverse_dynamics", "mass_matrix_inverse"])
@pytest.mark.parametrize("make", [closed, coupled])
def test_no_dynamics_treats_a_closure_as_a_tree(make, function):
    with pytest.raises(UnsupportedError, match=r"is not there yet|is for trees"):
        sl.compile(make(), function)


@pytest.mark.parametrize("make", [closed, coupled])
def test_kinematics_of_a_model_with_closures_work(make):
    model = make()
    robot = sl.Dynamics(model)
    q, v = model.random_state(1)
    body = model.bodies[-1].name
    assert robot.pose(q, body).shape == (4, 4)
    np.testing.assert_allclose(
        robot.jacobian(q, body), sl.Dynamics(model, target="python").jacobian(q, body), atol=1e-15
    )
    assert robot.jacobian_bias(q, v, body).shape == (6,)
    np.testing.assert_allclose(robot.difference(q, robot.integrate(q, v)), v, atol=1e-12)


def test_a_locked_coupling_has_dynamics():
    model = coupled().lock("slide_right", "slide_left")
    assert not model.couplings
    assert sl.Dynamics(model).mass_matrix(np.zeros(0)).shape == (0, 0)


def test_an_error_is_a_value_error_and_one_of_ours():
    with pytest.raises(ValueError, match="expected"):
        robot().gravity_torques(np.zeros(5))
    with pytest.raises(sl.SpanloopError):
        robot().gravity_torques(np.zeros(5))


def test_a_batch_never_raises_for_a_state():
    with pytest.warns(sl.SpanloopWarning, match="1 of 2 states has no answer; its row is NaN. It is state 1: "):
        a = robot().gravity_torques(np.stack([Z, NAN]))
    assert np.isnan(a[1]).all()
    assert np.isfinite(a[0]).all()


# ---- closed chains


def four_bar():
    return sl.Dynamics(zoo.four_bar(), target="python")


START, Z3 = zoo.four_bar_start(), np.zeros(3)
LINE = np.zeros(4)
CLOSED = {
    "internal forces in a list": (
        lambda: four_bar().inverse_dynamics(START, Z3, Z3, internal_forces=[1, 2]),
        "inverse_dynamics: internal_forces is a list; expected {'loop': [torque; force] (..., 6)}",
    ),
    "a path without joints": (
        lambda: four_bar().follow(START, {}),
        "follow: path names no joint; expected {'joint': (positions, rates, accelerations)} of joints that determine "
        "the others, say those of robot.independent_coordinates()",
    ),
    "a path in a list": (
        lambda: four_bar().follow(START, [LINE]),
        "follow: path is a list; expected {'joint': (positions, rates, accelerations)} of joints that determine the "
        "others, say those of robot.independent_coordinates()",
    ),
    "a path without accelerations": (
        lambda: four_bar().follow(START, {"crank_hinge": (LINE, LINE)}),
        "follow: the path of 'crank_hinge' has 2 parts; expected (positions, rates, accelerations), each (n,)",
    ),
    "a path of different lengths": (
        lambda: four_bar().follow(START, {"crank_hinge": (LINE, LINE, LINE[:3])}),
        "follow: the joints' positions, rates and accelerations have 3, 4 samples; expected one number for all",
    ),
    "a path from no state": (
        lambda: four_bar().follow(START[:2], {"crank_hinge": (LINE, LINE, LINE)}),
        "follow: start has shape (2,); expected one state (3,)",
    ),
    "too many independent DoF": (
        lambda: sl.Dynamics(zoo.stewart()).velocity_map(zoo.stewart_start(), range(8)),
        "velocity_map: 8 independent DoF are named (floating[0], floating[1], floating[2], floating[3], "
        "floating[4], floating[5] and 2 more); the loops leave 6. Name 6 that determine the others, "
        "dofs=[...]; robot.independent_coordinates(q) gives a choice",
    ),
    "a DoF that is not there": (
        lambda: four_bar().complete_velocity(START, [1.0], [3]),
        "complete_velocity: 3 is no DoF; expected a joint's name, or a number from 0 to 2",
    ),
    "a state of another shape": (
        lambda: four_bar().complete_velocity(START[:2], {"crank_hinge": 1.0}),
        "complete_velocity: q has shape (2,); expected (..., 3)",
    ),
    "a joint that is not there": (
        lambda: four_bar().complete_velocity(START, {"motor": 1.0}),
        "model 'four_bar' has no joint or DoF 'motor'; there are 'crank_hinge', 'coupler_hinge', 'rocker_hinge'",
    ),
    "the beginning of a method": (
        lambda: sl.Dynamics(zoo.four_bar(), method="simple"),
        "forward_dynamics has no method 'simple'; did you mean 'simple_closed_chain'?",
    ),
    "a method for trees": (
        lambda: sl.Dynamics(zoo.four_bar(), method="unit_vector"),
        "forward_dynamics: method 'unit_vector' is for trees; there are 'elimination', 'dense', 'parallel_legs', "
        "'simple_closed_chain', 'closed_topology', 'arms_on_object', 'arms_on_object_1', 'arms_on_object_2', "
        "'arms_on_object_3' for this model",
    ),
}


@pytest.mark.parametrize("case", CLOSED)
def test_the_sentence_for_a_closed_chain_is_this_one(case):
    call, sentence = CLOSED[case]
    with pytest.raises(InputError) as said:
        call()
    assert str(said.value) == sentence


def test_names_that_begin_with_what_was_typed_are_offered():
    assert nearest("arms", ("dense", "arms_on_object", "arms_on_object_1")) == (
        "did you mean 'arms_on_object' or 'arms_on_object_1'?"
    )
    assert nearest("x", ["a", "b", "a"]) == "there are 'a', 'b'"
    assert nearest("", map(str, range(14))).endswith("'10', '11', ...")
    assert nearest("densee", ("dense", "densee_one")) == "did you mean 'dense'?"


# ---- an error begins with the name of what was called


def test_errors_of_solve_and_reactions_begin_with_their_names():
    robot, q, rest = sl.Dynamics(zoo.four_bar()), zoo.four_bar_start(), np.zeros(3)
    for function in ("solve", "reactions"):
        call = getattr(robot, function)
        with says(InputError, f"{function}: v has shape (2,); expected (..., 3)"):
            call(q, rest[:2], rest)
        with says(InputError, f"{function}: forces names 'x', which is not a body"):
            call(q, rest, rest, forces={"x": np.zeros(6)})
        with says(InputError, f"{function}: loop_forces names 'x', which is not a loop"):
            call(q, rest, rest, loop_forces={"x": [1.0]})
        with says(StateError, f"{function}: loop 'closing', between") as error:
            call(q + 0.1, rest, rest)
        assert (error.value.where, error.value.reason) == (function, Reason.OPEN_LOOP)
    with says(StateError, "follow: q[1] (joint 'coupler_hinge') is nan"):
        robot.follow(q * np.nan, {"crank_hinge": ([0.0], [0.0], [0.0])})


def test_coordinates_that_are_not_finite_are_refused_where_some_joints_are_named():
    """An SVD of NaN raised LinAlgError."""
    robot, q, rest = sl.Dynamics(zoo.four_bar()), zoo.four_bar_start(), np.zeros(3)
    for call in (robot.inverse_dynamics, robot.solve_inverse):
        with says(StateError, "q[0] (joint 'crank_hinge') is nan; every number must be finite"):
            call(q * np.nan, rest, {"crank_hinge": 1.0})


@pytest.mark.parametrize("size", [1e155, 1e300])
def test_quaternions_whose_squares_overflow_are_refused_with_a_sentence(size):
    robot = sl.Dynamics(zoo.quadruped())
    q = robot.model.neutral()
    q[2] = size
    with pytest.raises(sl.errors.StateError, match="is a quaternion of length"):
        robot.forward_dynamics(q, np.zeros(robot.model.nv), np.zeros(robot.model.nv))
