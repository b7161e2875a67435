"""Contacts of models: pairs and points, the ground, what cannot be a contact, edits, files, printouts."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import spanloop as sl
from spanloop.cli.main import main
from spanloop.errors import FileError, InputError, ModelError, UnsupportedError
from spanloop.kernels.spec import content
from spanloop.model import Contact, ContactSide, Geometry, Placement
from spanloop.model.contacts import PAIRS, contact_content
from spanloop.model.edits.mirror import mirrored_state, reflection
from spanloop.model.files.toml import reader, writer
from spanloop.model.parts import Surface

TETRAHEDRON = ((0.0, 0.0, 0.0), (0.1, 0.0, 0.0), (0.0, 0.1, 0.0), (0.0, 0.0, 0.1))
SHAPES = {
    "plane": sl.contacts.Plane(),
    "point": sl.contacts.Point(),
    "sphere": sl.contacts.Sphere(0.1),
    "capsule": sl.contacts.Capsule(0.1, 0.2),
    "box": sl.contacts.Box(0.1, 0.2, 0.3),
    "cylinder": sl.contacts.Cylinder(0.1, 0.2),
    "hull": sl.contacts.Hull(TETRAHEDRON),
}


def walker() -> sl.Builder:
    """A trunk with a ball-shaped collision shape floats; a leg turns on it and has a foot welded to it."""
    b = sl.Builder("walker").body("trunk", mass=2.0, inertia=(0.1, 0.1, 0.1), geometry=[sl.contacts.Sphere(0.1)])
    b.body("leg", mass=1.0, center=(0, 0, -0.2), inertia=(0.02, 0.02, 0.001))
    b.body("foot", mass=0.1, inertia=(0.001, 0.001, 0.001), geometry=[sl.contacts.Sphere(0.02)])
    b.free("root", "world", "trunk").revolute("hip", "trunk", "leg", "y").fixed("ankle", "leg", "foot", (0, 0, -0.4))
    return b.frame("toe", "foot", (0.1, 0, 0))


@pytest.fixture
def model() -> sl.Model:
    return walker().build()


# ---- pairs and points


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_supported_pair_is_a_contact_in_both_orders(model, one, other):
    a, b = ("trunk", SHAPES[one]), ("leg", SHAPES[other])
    (c,) = model.with_contact("c", a, b).contacts
    (turned,) = model.with_contact("c", b, a).contacts
    expected = 4 if "hull" in (one, other) else PAIRS[one, other]
    assert c.n_points == turned.n_points == expected == len(c.point_names)
    assert c.pair == turned.pair == (one, other)
    assert (c.a.geometry.shape, turned.a.geometry.shape) == (one, other)
    assert c.point_names[-1] == ("c" if expected == 1 else f"c.{expected - 1}")


def test_every_other_pair_is_refused_with_those_that_there_are(model):
    for one in SHAPES:
        for other in SHAPES:
            if (one, other) not in PAIRS and (other, one) not in PAIRS:
                with pytest.raises(ModelError, match=f"no contact of a {one} .'trunk'. with a {other} .'leg'.") as e:
                    model.with_contact("c", ("trunk", SHAPES[one]), ("leg", SHAPES[other]))
                assert f"a {one} touches a" in str(e.value)


def test_sides_by_name(model):
    (body,) = model.with_contact("c", "foot", "ground", friction=0.5).contacts
    assert (body.a.at, body.a.geometry.shape, body.b.at, body.b.geometry.shape) == ("foot", "sphere", "world", "plane")
    (frame,) = model.with_contact("c", "toe").contacts
    assert (frame.a.at, frame.a.geometry.shape) == ("toe", "point")
    assert frame.a.on(model) == ("foot", Placement(position=(0.1, 0.0, 0.0)))
    (numbered,) = model.with_contact("c", ("foot", 0)).contacts
    assert numbered.a.geometry == sl.contacts.Sphere(0.02)


def test_values_of_surfaces_are_taken_where_none_are_given():
    rubber = Geometry("sphere", (0.1,), use="collision", surface=Surface(friction=0.9, restitution=0.3))
    b = sl.Builder("m").body("ball", mass=1.0, inertia=(0.01, 0.01, 0.01), geometry=[rubber])
    model = b.free("root", "world", "ball").build()
    (c,) = model.with_contact("c", "ball").contacts
    assert (c.friction, c.restitution, c.a.geometry.surface) == (0.9, 0.3, None)
    (c,) = model.with_contact("c", "ball", friction=0.0).contacts
    assert (c.friction, c.restitution) == (0.0, 0.3)


def test_contacts_leave_the_keys_of_other_kernels_alone(model):
    touching = model.with_contact("c", "foot")
    assert content(touching) == content(model)
    others = [touching, model.with_contact("c", "foot", friction=0.1), model.with_contact("c", "toe")]
    assert len({contact_content(m) for m in others}) == 3


# ---- the ground


def test_the_ground_touches_every_collision_shape_that_moves():
    b = walker().body("wall", geometry=[sl.contacts.Box(1, 1, 1)]).fixed("built", "world", "wall")
    feet = [sl.contacts.Sphere(0.02), sl.contacts.Box(0.1, 0.1, 0.1)]
    b.body("tail", mass=1.0, inertia=(0.1, 0.1, 0.1), geometry=[*feet, Geometry("box", (1.0, 1.0, 1.0))])
    model = b.revolute("wag", "trunk", "tail").build()
    ground = model.with_ground(friction=0.7, restitution=0.1, position=(0, 0, -1), rotation=(0.2, 0, 0))
    assert [c.name for c in ground.contacts] == ["trunk", "foot", "tail.0", "tail.1"]
    assert ground.contacts[3].point_names[0] == "tail.1.0"
    assert {(c.friction, c.restitution) for c in ground.contacts} == {(0.7, 0.1)}
    slope = ground.contacts[0].b.geometry.placement
    assert slope.position == (0.0, 0.0, -1.0)
    assert slope.rotation[2][2] == pytest.approx(np.cos(0.2))
    assert [c.name for c in model.with_ground(bodies="foot", friction=0.8).contacts] == ["foot"]
    assert [c.name for c in model.with_ground(skip=["tail", "trunk"], friction=0.8).contacts] == ["foot"]


def test_the_ground_refuses_shapes_without_a_contact_by_name():
    mesh = Geometry("mesh", file="foot.stl", use="collision")
    b = walker().body("hand", mass=1.0, inertia=(0.1, 0.1, 0.1), geometry=[mesh]).revolute("wrist", "trunk", "hand")
    with pytest.raises(ModelError, match=r"mesh: 'hand'.*a plane touches a point, .*skip=\['hand'\]"):
        b.build().with_ground()
    assert len(b.build().with_ground(skip="hand", friction=0.8).contacts) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"bodies": ["leg"]}, "body 'leg' has no collision shape"),
        ({"bodies": ["food"]}, "has no body 'food'; did you mean 'foot'"),
        ({"skip": "trunc"}, "has no body 'trunc'; did you mean 'trunk'"),
        ({"skip": ["foot", "trunk"]}, "no body of model 'walker' that moves and is not skipped"),
        ({"bodies": 3}, "a name is 3"),
        ({"fricton": 0.3}, "a contact has no setting 'fricton'; did you mean 'friction'"),
        ({"position": (0, 0)}, "Plane: position is"),
        ({"placement": 3}, "placement is 3; expected a Placement"),
        ({"placement": Placement(), "position": (0, 0, 1)}, "give one of the two"),
    ],
)
def test_bad_arguments_of_the_ground(model, arguments, words):
    with pytest.raises(InputError, match=words):
        model.with_ground(**arguments)


def test_a_second_ground_of_the_same_bodies_is_refused(model):
    with pytest.raises(ModelError, match="already has contacts 'trunk'"):
        model.with_ground(friction=0.8).with_ground(friction=0.8)


# ---- what cannot be a contact

BALL = sl.contacts.Sphere(0.1)
BAD_SIDES = [
    ("ground", "ground", "both sides are 'ground'; expected a name and two sides"),
    (("leg", Geometry("sphere", ("a",))), "ground", "the shape of 'leg' has size ('a',)"),  # type: ignore[arg-type]
    ("leg", "ground", "body 'leg' has no shape; a contact needs one. Give ('leg', sl.contacts.Sphere"),
    ("legg", "ground", "has no body or frame 'legg'; did you mean 'leg'"),
    (("legg", BALL), "ground", "has no body or frame 'legg'; did you mean 'leg'"),
    ("foot", "grund", "has no body or frame 'grund'; did you mean 'ground'"),
    ("foot", "world", "b is 'world', which has no shape; give 'ground'"),
    (("leg", "ball"), "ground", "the shape of 'leg' is 'ball'; expected one of sl.contacts"),
    (("foot", 1), "ground", "body 'foot' has no collision shape 1; expected 0 to 0"),
    (("toe", 0), "ground", "'toe' is no body"),
    (("leg", True), "ground", "the shape of 'leg' is True"),
    (3, "ground", "a is 3; expected a name, or (name, sl.contacts"),
    (("leg", BALL, 3), "ground", "expected a name, or (name, sl.contacts"),
    (("leg", BALL), ("foot", BALL), "'leg' and 'foot' are shapes of one link (of body 'leg'"),
    (("leg", BALL), ("leg", sl.contacts.Plane()), "'leg' and 'leg' are shapes of one link;"),
    (("toe", BALL), ("leg", BALL), "'toe' and 'leg' are shapes of one link"),
    (("world", BALL), "ground", "'world' and 'world' are both fixed to the world"),
    (("leg", Geometry("ellipsoid", (1.0, 1.0, 1.0))), "ground", "no contact of an ellipsoid"),
    (("leg", Geometry("sphere", (0.0,))), "ground", "the size of a sphere is (0.0,) m; every number must be > 0"),
]


@pytest.mark.parametrize(("a", "b", "words"), BAD_SIDES)
def test_bad_sides(model, a, b, words):
    with pytest.raises((InputError, ModelError), match=re.escape(words)) as e:
        model.with_contact("touch", a, b)
    assert str(e.value).startswith("contact 'touch'")


def test_a_body_of_several_shapes_or_none_to_collide():
    b = sl.Builder("m").free("root", "world", "x").free("other", "world", "y")
    b.body("x", mass=1.0, inertia=(1, 1, 1), geometry=[BALL, BALL])
    model = b.body("y", mass=1.0, inertia=(1, 1, 1), geometry=[Geometry("sphere", (0.1,))]).build()
    with pytest.raises(InputError, match=r"body 'x' has 2 shapes for collisions; .*\('x', 0\)"):
        model.with_contact("c", "x")
    with pytest.raises(InputError, match=r"no shape for collisions \(1 only to be seen\)"):
        model.with_contact("c", "y")


def test_shapes_fixed_to_the_world_do_not_touch_it(model):
    still = model.lock("hip").weld("trunk", "world")
    with pytest.raises(ModelError, match="'foot' and 'world' are both fixed to the world"):
        still.with_contact("c", "foot")


def test_shapes_that_a_fixed_loop_holds_together_do_not_touch(model):
    b = walker().body("arm", mass=1.0, inertia=(1, 1, 1), geometry=[BALL]).revolute("shoulder", "trunk", "arm", "x")
    held = b.build().weld("arm", "leg")
    with pytest.raises(ModelError, match=r"'arm' and 'foot' are shapes of one link .*fixed joints or loops"):
        held.with_contact("c", "arm", "foot")
    assert held.with_contact("c", "arm").contacts
    touching = b.build().with_contact("c", "arm", "foot")
    assert touching.weld("arm", "leg").contacts == ()
    assert "contact 'c': removed" in touching.weld("arm", "leg").notes[-1]
    assert touching.with_loop("arm", "leg", switchable=True).contacts == touching.contacts


def test_ground_is_ambiguous_where_a_body_is_called_so():
    b = sl.Builder("m").body("ground", mass=1.0, inertia=(1, 1, 1), geometry=[BALL]).free("root", "world", "ground")
    with pytest.raises(InputError, match="has a body or frame of this name"):
        b.build().with_contact("c", ("ground", BALL), "ground")
    assert b.build().with_contact("c", ("ground", BALL), ("world", sl.contacts.Plane())).contacts


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"friction": -0.1}, "friction is -0.1; must be >= 0"),
        ({"friction": float("nan")}, "friction is nan; expected a finite number"),
        ({"friction": float("inf")}, "friction is inf; expected a finite number"),
        ({"friction": "rough"}, "friction is 'rough'"),
        ({"restitution": 1.1}, r"restitution is 1.1; expected 0 \(plastic\) to 1 \(elastic\)"),
        ({"restitution": -0.1}, "restitution is -0.1; expected 0"),
        ({"torsion": -1.0}, "torsion is -1; must be >= 0"),
        ({"rolling": -1.0}, "rolling is -1; must be >= 0"),
        ({"resting": -1.0}, "resting is -1; must be >= 0"),
        ({"stiffness": 0.0}, "stiffness is 0 N/m; must be > 0, or None"),
        ({"damping": 1.0}, "damping is 1 N s/m and there is no stiffness"),
        ({"damping": -1.0, "stiffness": 1e5}, "damping is -1; must be >= 0"),
        ({"surface_velocity": (1.0, 0.0)}, "surface_velocity is"),
        ({"surface_velocity": (1.0, 0.0, float("nan"))}, "surface_velocity is"),
    ],
)
def test_bad_settings(model, settings, words):
    with pytest.raises((InputError, ModelError), match=f"contact 'touch': {words}"):
        model.with_contact("touch", "foot", **settings)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sl.contacts.Sphere(0.0), r"contacts.Sphere: the size of a sphere is \(0.0,\) m; every number must be"),
        (lambda: sl.contacts.Sphere(-1.0), "must be >= 0"),
        (lambda: sl.contacts.Sphere(float("nan")), "contacts.Sphere: a size is nan"),
        (lambda: sl.contacts.Box(1.0, 0.0, 1.0), "every number must be > 0"),
        (lambda: sl.contacts.Capsule(0.1, 0.0), "every number must be > 0. Give a sphere"),
        (lambda: sl.contacts.Cylinder(0.0, 1.0), "every number must be > 0"),
        (lambda: sl.contacts.Hull([(0, 0, 0)]), "a hull has 1 vertices; expected 4 to 16"),
        (lambda: sl.contacts.Hull(np.random.default_rng(0).normal(size=(17, 3))), "17 vertices; expected 4 to 16"),
        (lambda: sl.contacts.Hull([(0, 0, 1), (1, 0, 1), (0, 1, 1), (1, 1, 1)]), "lie in one plane"),
        (lambda: sl.contacts.Hull([(0, 0), (1, 0)]), r"expected an array \(n, 3\)"),
        (lambda: sl.contacts.Hull([*TETRAHEDRON[1:], (np.nan, 0, 0)]), "every number must be finite"),
        (lambda: sl.contacts.Point(position=(0, np.inf, 0)), "position is"),
        (lambda: sl.contacts.Plane(rotation=np.ones((3, 3))), "not a rotation"),
    ],
)
def test_bad_shapes(make, words):
    with pytest.raises((InputError, ModelError), match=words):
        make()


def test_names_of_contacts_and_points_differ(model):
    once = model.with_contact("c", ("leg", SHAPES["box"]))
    with pytest.raises(ModelError, match="2 contacts are called 'c'"):
        once.with_contact("c", "foot")
    with pytest.raises(ModelError, match=r"contact 'c.3': its point 'c.3' has the name of a point"):
        once.with_contact("c.3", "foot")
    with pytest.raises(ModelError, match="a contact has an empty name"):
        model.with_contact("", "foot")
    with pytest.raises(InputError, match="contact: the name is 3"):
        model.with_contact(3, "foot")


def test_a_contact_made_by_hand_is_checked_when_the_model_is(model):
    lost = Contact("c", ContactSide("fot", BALL), ContactSide("world", SHAPES["plane"]), where="arm.toml:7")
    with pytest.raises(ModelError, match=r"contact 'c' \(arm.toml:7\): 'fot' is not a body or frame; did you mean"):
        replace(model, contacts=(lost,))


# ---- builder


def test_a_builder_places_shapes_in_the_frame_in_which_it_describes_a_body():
    b = sl.Builder("m").body("bar", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b.revolute("hinge", "world", "bar", "y", child_position=(0.5, 0, 0))
    b.contact("end", ("bar", sl.contacts.Sphere(0.1)), friction=0.3)
    with pytest.warns(sl.SpanloopWarning, match="its frame is at its joint"):
        model = b.build()
    body, place = model.contacts[0].a.on(model)
    assert (body, place.position, model.contacts[0].friction) == ("bar", (-0.5, 0.0, 0.0), 0.3)


@pytest.mark.parametrize("geometry", [3, "box", None, [3], [("box", 1)]])
def test_a_builder_refuses_what_is_no_shape(geometry):
    with pytest.raises(InputError, match=r"body 'b': (a shape|geometry) is .*; expected"):
        sl.Builder("m").body("b", geometry=geometry)


def test_a_builder_takes_collision_shapes_and_frames():
    assert sl.Builder("m").body("b", geometry=BALL).free("r", "world", "b").build().body("b").geometry == (BALL,)
    model = walker().contact("toe", "toe").contact("ball", "trunk", restitution=0.5).build()
    assert [(c.name, c.pair[1]) for c in model.contacts] == [("toe", "point"), ("ball", "sphere")]
    with pytest.raises(InputError, match="a contact has no setting 'bounce'"):
        walker().contact("toe", "toe", bounce=1).build()


# ---- edits


@pytest.fixture
def standing(model) -> sl.Model:
    belt = {"surface_velocity": (0.5, 0.0, 0.0), "stiffness": 1e5, "damping": 10.0, "torsion": 0.01}
    out = model.with_contact("foot", "foot", friction=0.8).with_contact("toe", "toe", **belt)
    return out.with_contact("knock", "trunk", ("leg", sl.contacts.Capsule(0.02, 0.1, position=(0, 0, -0.3))))


def test_renaming_renames_contacts_and_their_places(standing):
    out = standing.rename({"foot": "shoe", "toe": "tip", "knock": "clap"})
    assert [(c.name, c.a.at, c.b.at) for c in out.contacts] == [
        ("shoe", "shoe", "world"),
        ("tip", "tip", "world"),
        ("clap", "trunk", "leg"),
    ]


def test_removing_a_body_removes_its_contacts_with_a_note(standing):
    out = standing.remove("foot", kind="body")
    assert [c.name for c in out.contacts] == ["knock"]
    assert out.notes[-2:] == ("contact 'foot': removed with body 'foot'", "contact 'toe': removed with body 'foot'")
    with pytest.raises(InputError, match="'foot' is a body and a contact; choose one: kind='body' removes"):
        standing.remove("foot")
    assert [c.name for c in standing.remove("knock").contacts] == ["foot", "toe"]


def test_a_contact_on_a_frame_that_is_removed_stays_on_its_body(model):
    turned = model.with_frame("pad", "foot", position=(0, 0.1, 0), rotation=(0, 0, np.pi / 2))
    both = turned.with_contact("c", "trunk", ("pad", SHAPES["plane"]), surface_velocity=(1, 0, 0))
    (c,) = both.remove("pad").contacts
    assert c.b.on(both.remove("pad")) == both.contacts[0].b.on(both)
    assert c.surface_velocity == (0.0, 1.0, 0.0)


def test_locking_and_welding_drop_contacts_that_no_longer_move(standing):
    out = standing.lock("hip")
    assert [c.name for c in out.contacts] == ["foot", "toe"]
    assert out.notes[-1] == "contact 'knock': removed; 'trunk' and 'leg' no longer move against each other"
    assert out.weld("trunk", "world").contacts == ()


def test_fusing_leaves_contacts_where_they_are(standing):
    out = standing.fuse()
    assert [c.a.on(out)[0] for c in out.contacts] == ["leg", "leg", "trunk"]
    assert out.contacts[0].a.on(out)[1].position == (0.0, 0.0, -0.4)


def test_mirroring_a_contact_mirrors_its_shapes():
    hull = sl.contacts.Hull([(0.1 * x, 0.2 * y, 0.3 * z) for x, y, z in [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]])
    belt = ("world", sl.contacts.Plane(position=(0.1, 0.2, 0.3), rotation=(0.3, 0.2, 0.1)))
    along = np.array(belt[1].placement.rotation) @ (1.0, 2.0, 0.0)
    model = walker().contact("c", ("leg", hull), belt, surface_velocity=along).build()
    for normal in ("x", "y", "z", (1, 2, 3)):
        s = np.array(reflection(normal))
        (old,), (new,) = model.contacts, model.mirror(normal).contacts
        assert corners(new.a) == pytest.approx(corners(old.a) @ s.T)
        was, now = old.b.geometry.placement, new.b.geometry.placement
        assert np.array(now.rotation)[:, 2] == pytest.approx(s @ np.array(was.rotation)[:, 2])
        assert now.position == pytest.approx(s @ was.position)
        assert new.surface_velocity == pytest.approx(s @ old.surface_velocity)


def corners(side: ContactSide) -> np.ndarray:
    """Vertices of a hull in the frame that carries it."""
    p = side.geometry.placement
    return np.array(side.geometry.vertices) @ np.array(p.rotation).T + p.position


def test_scaling_scales_numbers_by_their_units(standing):
    toe = standing.scale(length=4.0, mass=3.0).contacts[1]
    assert toe.surface_velocity == (1.0, 0.0, 0.0)
    assert (toe.torsion, toe.stiffness, toe.damping, toe.resting) == (0.04, 3e5 / 4, 15.0, 2e-3)
    assert standing.scale(length=4.0).contacts[0].a.geometry.size == (0.08,)


def test_attaching_takes_contacts_along(standing):
    arm = sl.Builder("arm").body("rod", mass=1.0, inertia=(0.1, 0.1, 0.1)).frame("tip", "rod", (0, 0, -1))
    arm = arm.revolute("pivot", "world", "rod").contact("tip", "tip").build()
    out = standing.attach(arm, "trunk", prefix="arm_")
    assert [(c.name, c.a.at, c.b.at) for c in out.contacts][3:] == [("arm_tip", "arm_tip", "trunk")]
    with pytest.raises(InputError, match="'walker' floats, but 'w_foot' is on its world, which would be lost"):
        arm.attach(standing, "tip", prefix="w_")
    assert len(arm.attach(standing, prefix="w_").contacts) == 4


def test_other_edits_keep_contacts(standing):
    q, _ = standing.random_state(1)
    for out in (standing.rezero(q), standing.with_gravity((0, 0, -1)), standing.with_joint("hip", damping=1.0)):
        assert out.contacts == standing.contacts


# ---- files and text


def test_toml_holds_contacts(standing, tmp_path):
    model = standing.with_contact("h", ("leg", sl.contacts.Hull(TETRAHEDRON, rotation=(0.1, 0.2, 0.3))), friction=0.25)
    model.save(tmp_path / "walker.toml")
    assert sl.load(tmp_path / "walker.toml") == model
    assert contact_content(sl.load(tmp_path / "walker.toml")) == contact_content(model)


def test_toml_names_sides_as_with_contact_does(model):
    text = writer.dumps(model) + '\n[[contact]]\nname = "c"\na = "foot"\nb = "ground"\nfriction = 0.5\n'
    assert reader.loads(text) == model.with_contact("c", "foot", "ground", friction=0.5)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('a = "fot"\nb = "ground"', "m.toml: contact 'c': a: model 'walker' has no body or frame 'fot'; did you mean"),
        ('a = "leg"\nb = "ground"', "m.toml: contact 'c': a: body 'leg' has no shape"),
        ('a = "foot"', "m.toml: contact 'c': has no b; expected b = ..."),
        ('a = "foot"\nb = "ground"\nfrictoin = 1', "the key 'frictoin' is not known; did you mean 'friction'"),
        ('a = "foot"\nb = "ground"\nfriction = "much"', "friction is 'much'; expected a number"),
        ('a = "foot"\nb = "ground"\nfriction = -1', "contact 'c' (m.toml): friction is -1"),
        ('b = "ground"\na = {at = "leg", shape = "hull", vertices = [[1, 2]]}', "points of three numbers"),
    ],
)
def test_bad_contacts_in_toml(model, lines, words):
    with pytest.raises((FileError, ModelError), match=re.escape(words)):
        reader.loads(writer.dumps(model) + f'\n[[contact]]\nname = "c"\n{lines}\n', "m.toml")


@pytest.mark.parametrize("extension", ["urdf", "sdf", "xml", "csv"])
def test_other_formats_report_contacts_that_they_cannot_hold_as_lost(extension, tmp_path):
    b = sl.Builder("arm").body("rod", mass=1.0, inertia=(0.1, 0.1, 0.1), geometry=[sl.contacts.Hull(TETRAHEDRON)])
    model = b.revolute("pivot", "world", "rod").contact("c", "rod").build()
    path = tmp_path / f"arm.{extension}"
    words = "contacts of a hull: 'c'" if extension == "xml" else "contacts: 'c'"
    with pytest.raises(UnsupportedError, match=words):
        model.save(path)
    lost = model.save(path, force=True).lost
    assert words in lost
    assert extension == "csv" or "shapes that are a hull: body 'rod'" in lost
    assert not sl.load(path).contacts


def test_printouts_list_contacts(standing, tmp_path, capsys):
    assert repr(standing) == "Model('walker', 3 bodies, 7 DoF, 3 contacts)"
    belt = "friction 0, torsion 0.01 m, stiffness 100000 N/m, damping 10 N s/m, surface velocity (0.5, 0, 0) m/s"
    assert f"toe: point of toe with plane of world ({belt})" in str(standing)
    assert "knock: sphere of trunk with capsule of leg (friction 0)" in str(standing)
    assert "contacts" in standing._repr_html_()
    standing.save(tmp_path / "walker.toml")
    assert main(["check", str(tmp_path / "walker.toml")]) == 0
    assert "3 contacts with 3 points that can touch ('foot', 'toe', 'knock')" in capsys.readouterr().out
    assert main(["info", str(tmp_path / "walker.toml"), "--json"]) == 0
    foot = json.loads(capsys.readouterr().out)["contacts"][0]
    assert (foot["name"], foot["a"]["shape"], foot["b"]["at"], foot["friction"]) == ("foot", "sphere", "world", 0.8)


# ---- motions of edited models


@pytest.mark.slow
def test_edits_keep_the_motion_of_a_leg_that_lands_slips_and_rolls():
    """A point lands on a moving slope: fused, mirrored and scaled models move alike, to the rounding of 300 steps."""
    slope = {"rotation": (0.05, -0.1, 0.0), "surface_velocity": (0.2, 0.1, 0.0251), "friction": 0.3}
    model = walker().build().with_ground(bodies="foot", **slope)
    q, v = model.neutral(), np.zeros(model.nv)
    q[6] = 0.45
    v[:6] = 1.0, 2.0, 0.5, 0.3, 0.1, -0.5
    run = sl.simulate(model, q, v, duration=0.3, step=1e-3)
    free = sl.simulate(replace(model, contacts=()), q, v, duration=0.3, step=1e-3)
    assert np.abs(run.q[-1] - free.q[-1]).max() > 0.1  # it touches
    fused = sl.simulate(model.fuse(), q, v, duration=0.3, step=1e-3)
    assert fused.q[-1] == pytest.approx(run.q[-1], abs=1e-12)
    for normal in ("z", (1, 2, 3)):
        mirrored = sl.simulate(model.mirror(normal), *mirrored_state(model, q, v, normal), duration=0.3, step=1e-3)
        expected = mirrored_state(model, run.q[-1], run.v[-1], normal)
        assert mirrored.q[-1] == pytest.approx(expected[0], abs=1e-10)
        assert mirrored.v[-1] == pytest.approx(expected[1], abs=1e-10)
    lengths, rates = np.ones(model.nq), np.full(model.nv, 0.5)  # of lengths by 4, times by 2
    lengths[4:7], rates[3:6] = 4.0, 2.0
    large = sl.simulate(model.scale(length=4.0, mass=3.0), lengths * q, rates * v, duration=0.6, step=2e-3)
    assert large.q[-1] == pytest.approx(lengths * run.q[-1], abs=1e-10)
    assert large.v[-1] == pytest.approx(rates * run.v[-1], abs=1e-10)
