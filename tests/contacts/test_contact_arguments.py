"""What users may give about contacts, and what is refused with a sentence."""

from __future__ import annotations

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import InputError, ModelError, StateError, StateWarning, UnsupportedError

RESTS = [1.0, 0, 0, 0, 0, 0, 0.1]


def _ball() -> sl.Model:
    b = sl.Builder("ball").body("ball", mass=1.0, inertia=(0.004,) * 3, geometry=[sl.contacts.Sphere(0.1)])
    return b.free("flight", "world", "ball").build()


@pytest.fixture(scope="module")
def ball() -> sl.Model:
    return _ball().with_ground(friction=0.3, restitution=0.5)


def _started(model: sl.Model, **options):
    return sl.simulate(model, RESTS, duration=0.002, **options)


@pytest.mark.parametrize(
    ("friction", "words"),
    [
        ("a", "friction is 'a'; expected a number"),
        ([], "friction is \\[\\]; expected a number"),
        (True, "expected a number"),
        ({"ball": "a"}, "friction of 'ball' is 'a'; expected a number"),
        ({"ball": None}, "expected a number"),
        ({"ball": np.nan}, "is nan; must be a finite number, not negative"),
        (-1.0, "must be a finite number, not negative"),
        (np.linspace(1.0, -1.0, 500), "friction of run 250 is -0.00200401; must be a finite number, not negative"),
        ({"ball": [[0.1, np.inf]]}, r"friction of 'ball' of run \(0, 1\) is inf; must be"),
        (["a"] * 50, r"friction is .{,60}\.\.\.\]; expected a number"),
    ],
)
def test_friction_that_is_no_coefficient_is_refused_at_once(friction, words):
    with pytest.raises(InputError, match=words):
        sl.contacts.Settings(friction=friction)


def test_surfaces_of_runs_name_contacts_that_exist_and_fit_each_other(ball):
    with pytest.raises(InputError, match="did you mean 'ball'"):
        _started(ball, contacts=sl.contacts.Settings(friction={"bal": 0.1}))
    with pytest.raises(InputError, match="did you mean 'ball'"):
        _started(ball, contacts=sl.contacts.Settings("ignore", friction={"bal": 0.1}))
    with pytest.raises(InputError, match=r"friction of 'ball' \(2,\), restitution of 'ball' \(3,\)"):
        _started(ball, contacts=sl.contacts.Settings(friction=[0.1, 0.2], restitution=[0.1, 0.2, 0.3]))
    column, three = np.array([[0.1], [0.2], [0.3]]), [RESTS] * 3
    with pytest.raises(InputError, match=r"\(3, 1\) and q \(3,\), which makes 3 × 3 runs"):
        sl.simulate(ball, three, duration=0.002, contacts=sl.contacts.Settings(friction=column))
    with pytest.raises(InputError, match=r"\(3, 1\) and restitution of 'ball' \(3,\), which makes 3 × 3 runs"):
        _started(ball, contacts=sl.contacts.Settings(friction=column, restitution=[0.1, 0.2, 0.3]))
    with pytest.raises(InputError, match="model 'ball' has no contacts"):
        _started(_ball(), contacts=sl.contacts.Settings(friction=0.1))
    with pytest.raises(InputError, match="impacts is 'foo'"):
        sl.contacts.Settings(impacts="foo")
    with pytest.raises(InputError, match="contacts is 'foo'"):
        _started(ball, contacts="foo")


@pytest.mark.slow
def test_one_friction_is_that_of_all_contacts(ball):
    assert _started(ball, contacts=sl.contacts.Settings(friction=0.7)).model.contacts[0].friction == 0.7
    runs = _started(ball, contacts=sl.contacts.Settings(friction=[0.1, 0.2]))
    assert [run.model.contacts[0].friction for run in runs] == [0.1, 0.2]
    masses = sl.simulate(ball, RESTS, duration=0.002, parameters=np.stack([ball.parameters().values] * 2))
    with pytest.raises(InputError, match=r"run\[0\].contacts"):
        print(masses.contacts["ball"].gap)


@pytest.mark.parametrize("closures", ["feedback", "none", "minimal"])
def test_contacts_of_a_model_with_loops_need_projection(closures):
    model = sl.zoo.four_bar()
    floor = ("world", sl.contacts.Plane(position=(0, 0, -5)))
    model = model.with_contact("c", (model.bodies[1].name, sl.contacts.Sphere(0.01)), floor)
    with pytest.raises(UnsupportedError, match=f"closures='project'.*{closures}"):
        sl.simulate(model, duration=0.01, closures=closures)


def test_a_pair_of_shapes_has_one_contact(ball):
    with pytest.raises(ModelError, match="contact 'x' is of the same two shapes as contact 'ball'"):
        ball.with_contact("x", "ball", "ground")
    with pytest.raises(ModelError, match="'x' is of the same two shapes as contact 'ball'"):  # in any order and place
        ball.with_contact("x", ("world", sl.contacts.Plane(position=(3, 0, 0), rotation=(0, 0, 1))), "ball")
    with pytest.raises(ModelError, match="with_ground: model 'ball' already has contacts 'ball'"):
        ball.with_ground(friction=0.1)
    assert len(ball.with_contact("x", ("ball", sl.contacts.Sphere(0.2)), "ground").contacts) == 2
    b = sl.Builder("ball").body("ball", mass=1.0, inertia=(0.004,) * 3, geometry=[sl.contacts.Sphere(0.1)])
    with pytest.raises(ModelError, match="same two shapes"):
        b.free("flight", "world", "ball").contact("one", "ball").contact("two", "ball").build()


def test_a_surface_moves_along_itself():
    with pytest.raises(ModelError, match="1 m/s are along the normal of the plane of 'world'"):
        _ball().with_ground(friction=0.1, surface_velocity=(2, 0, 1))
    tilted = sl.contacts.Plane(rotation=(0, np.pi / 2, 0))
    _ball().with_contact("wall", "ball", ("world", tilted), surface_velocity=(0, 1, 1))


def test_a_shape_before_its_name_is_told_apart():
    with pytest.raises(InputError, match=r"expected the name first, \('ball', shape\)"):
        _ball().with_contact("x", (sl.contacts.Sphere(0.1), "ball"), "ground")


@pytest.mark.slow
def test_states_without_an_orientation_are_refused_by_name(ball):
    robot, wrong = sl.Dynamics(ball), [2.0, 0, 0, 0, 0, 0, 0.1]
    for function in (robot.delassus, robot.contact_solution):
        with pytest.raises(StateError, match=f"{function.__name__}: .*quaternion of length 2"):
            function(wrong)
        with pytest.raises(InputError, match=f"{function.__name__}: q has shape"):
            function([1.0, 2.0])
    with pytest.warns(StateWarning, match="delassus: 1 of 2 states"):
        W = robot.delassus([wrong, RESTS])
    assert np.isnan(W[0]).all()
    assert np.isfinite(W[1]).all()
    with pytest.warns(StateWarning, match="contact_solution: 1 of 2 states"):
        force = robot.contact_solution([wrong, RESTS]).force
    assert np.isnan(force[0]).all()
    assert np.allclose(force[1], [0, 0, 9.81])
