"""Contacts of MJCF files: the pairs that MuJoCo collides, with its friction; what is left out is noted."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
from mujoco_contacts import colliding, shape

import spanloop as sl
from spanloop.cli.main import main
from spanloop.errors import InputError, UnsupportedError
from spanloop.model.contacts.contact import PAIRS
from spanloop.model.files.mjcf.reader import loads
from spanloop.model.parts import Surface

FLOOR = "<geom name='floor' type='plane' size='1 1 1' friction='0.4 0.1 0.2'/>"


def _file(bodies: str = "", world: str = FLOOR, rest: str = "", head: str = "") -> str:
    return f"<mujoco>{head}<worldbody>{world}{bodies}</worldbody>{rest}</mujoco>"


def _ball(name: str, inside: str = "", joint: str = "<freejoint/>", **geom: str) -> str:
    settings = "".join(f" {key}='{value}'" for key, value in geom.items())
    return f"<body name='{name}'>{joint}<geom name='{name}' size='0.1'{settings}/>{inside}</body>"


def _names(model: sl.Model) -> list[str]:
    return [c.name for c in model.contacts]


def test_contacts_are_left_out_by_default_and_a_note_has_their_number() -> None:
    model = loads(_file(_ball("a") + _ball("b")))
    assert model.contacts == ()
    note = "contacts left out; sl.load(path, contacts=True) reads them: 3 pairs of shapes"
    assert note in model.notes


def test_a_file_in_which_nothing_collides_has_no_note() -> None:
    assert not any("contacts" in note and "pairs" in note for note in loads(_file(_ball("a"), world="")).notes)


def test_planes_of_the_world_are_the_ground() -> None:
    (contact,) = loads(_file(_ball("a", friction="0.8 0.01 0.001")), contacts=True).contacts
    assert (contact.name, contact.a.at, contact.b.at, contact.b.geometry.shape) == ("a", "a", "world", "plane")
    assert (contact.friction, contact.torsion, contact.rolling, contact.restitution) == (0.8, 0.0, 0.0, 0.0)
    assert contact.where == "text.xml:1"


@pytest.mark.parametrize(
    ("condim", "expected"),
    [(1, (0.0, 0.0, 0.0)), (3, (0.8, 0.0, 0.0)), (4, (0.8, 0.1, 0.0)), (6, (0.8, 0.1, 0.2))],
)
def test_condim_is_the_friction_of_a_pair(condim: int, expected: tuple[float, ...]) -> None:
    floor = FLOOR.replace("/>", " condim='1'/>")
    (c,) = loads(_file(_ball("a", friction="0.8 0.01 0.001", condim=str(condim)), floor), contacts=True).contacts
    assert (c.friction, c.torsion, c.rolling) == expected


def test_the_geom_of_higher_priority_decides() -> None:
    floor = FLOOR.replace("/>", " priority='1' condim='4'/>")
    (c,) = loads(_file(_ball("a", friction="0.8 0.2 0.3", condim="6"), floor), contacts=True).contacts
    assert (c.friction, c.torsion, c.rolling) == (0.4, 0.1, 0.0)


def test_a_pair_has_its_own_friction_and_name() -> None:
    pair = "<contact><pair name='p' geom1='a' geom2='floor' condim='4' friction='0.3 0.3 0.02 0 0'/></contact>"
    (c,) = loads(_file(_ball("a", contype="0", conaffinity="0"), rest=pair), contacts=True).contacts
    assert (c.name, c.friction, c.torsion, c.rolling) == ("p", 0.3, 0.02, 0.0)


def test_a_second_pair_of_the_same_geoms_is_left_out() -> None:
    pair = "<pair geom1='a' geom2='floor'/>"
    model = loads(_file(_ball("a"), rest=f"<contact>{pair}{pair}</contact>"), contacts=True)
    assert len(model.contacts) == 1
    assert "a second <pair> of the same geoms left out: 'floor' and 'a'" in model.notes


CHAIN = _ball("a", _ball("b", _ball("c", joint="<joint/>"), joint="<joint/>"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (_file(CHAIN), ["a", "b", "c", "a:c"]),  # not a body with its parent
        (_file(CHAIN, head="<option><flag filterparent='disable'/></option>"), ["a", "b", "c", "a:b", "a:c", "b:c"]),
        (_file(_ball("a", _ball("b", joint=""))), ["a", "b"]),  # not shapes of one link
        (_file(CHAIN, rest="<contact><exclude body1='c' body2='a'/></contact>"), ["a", "b", "c"]),
        (_file(_ball("a", contype="2", conaffinity="4") + _ball("b", contype="4", conaffinity="8")), ["a:b"]),
        (_file(_ball("a"), head="<option><flag contact='disable'/></option>"), []),
        (_file(_ball("a"), FLOOR + "<geom name='post' type='capsule' size='0.1 1'/>"), ["a", "a:post"]),
        (_file(_ball("a"), FLOOR + "<geom name='wall' type='plane' size='1 1 1'/>"), ["a:floor", "a:wall"]),
        (_file("<body name='b'><freejoint/><geom size='1'/><geom size='1'/></body>"), ["b.0", "b.1"]),
        (_file(_ball("a"), "<body name='table'><geom name='top' type='plane' size='1 1 1'/></body>"), ["a"]),
    ],
)
def test_the_pairs_are_those_that_mujoco_collides(text: str, expected: list[str]) -> None:
    assert sorted(_names(loads(text, contacts=True))) == sorted(expected)


def test_a_shape_is_in_the_frame_of_its_body_which_is_at_its_joint() -> None:
    ball = "<body name='a' pos='0 0 1'><joint pos='0 0 0.3' axis='1 0 0'/><geom size='0.1' pos='0 0 -0.2'/></body>"
    (c,) = loads(_file(ball), contacts=True).contacts
    assert np.allclose(c.a.geometry.placement.position, (0, 0, -0.5))


def test_a_file_overrides_all_friction() -> None:
    option = "<option o_friction='0.7 0.7 0.01 0.02 0.02'><flag override='enable'/></option>"
    (c,) = loads(_file(_ball("a", condim="6"), head=option), contacts=True).contacts
    assert (c.friction, c.torsion, c.rolling) == (0.7, 0.01, 0.02)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (_file(_ball("a", type="box", size="1 1 1") + _ball("b", type="box", size="1 1 1")),
         "contacts of shapes without a known gap left out: 1 of box with box"),
        (_file(_ball("a", type="ellipsoid", size="1 1 1")),
         "contacts of shapes without a known gap left out: 1 of ellipsoid with plane"),
        (_file(_ball("a", solref="0.01 1")), "solref and solimp of contacts left out; contacts are hard here: solref"),
        (_file(_ball("a", margin="0.01")), "left out, though it acts on the motion: margin of contacts"),
        (_file(_ball("a"), rest="<contact><pair geom1='a' geom2='floor' friction='1 0.5 0 0 0'/></contact>"),
         "friction that differs between two directions, the smaller is read: <pair> 0"),
        (_file(_ball("a"), rest="<contact><exclude body1='a' body2='none'/></contact>"),
         "<pair> and <exclude> of what is not there left out: text.xml:1"),
    ],
)  # fmt: skip
def test_what_a_contact_cannot_hold_is_noted(text: str, words: str) -> None:
    text = text.replace("size='0.1' type='", "type='")
    assert any(words in note for note in loads(text, contacts=True).notes)


def test_shapes_that_a_weld_holds_together_do_not_collide() -> None:
    weld = "<equality><weld body1='a' body2='b'/></equality>"
    model = loads(_file(_ball("a") + _ball("b"), rest=weld), contacts=True)
    assert _names(model) == ["a", "b"]
    assert "contacts of shapes on one link left out: 1 pair" in model.notes


def _crowd(n: int) -> str:
    return _file("".join(_ball(f"b{k}") for k in range(n)))


def test_too_many_pairs_are_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "crowd.xml"
    path.write_text(_crowd(12))
    with pytest.raises(UnsupportedError) as error:
        sl.load(path, contacts=True)
    words = str(error.value)
    assert words.startswith("crowd.xml: 78 pairs of shapes collide; 64 at most are read, as a run follows every pair")
    assert "Largest groups: b0 with world (1), " in words
    assert "contacts='ground' reads the 12 with shapes fixed to the world; or choose pairs" in words
    assert "contacts='ground') reads the 12 with shapes fixed to the world" in "".join(sl.load(path).notes)
    assert len(sl.load(path, contacts="ground").contacts) == 12


def test_contacts_are_asked_for_by_a_word_that_is_known(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text(_crowd(1))
    with pytest.raises(InputError, match="load: contacts is 'all'; expected True, False or 'ground'"):
        sl.load(path, contacts="all")


def test_a_urdf_describes_no_contacts(tmp_path: Path) -> None:
    path = tmp_path / "r.urdf"
    path.write_text("<robot name='r'><link name='l'/></robot>")
    with pytest.raises(InputError, match=r"r\.urdf: contacts=True, but URDF describes none; model\.with_ground"):
        sl.load(path, contacts=True)


def test_geoms_have_surfaces_with_mujocos_defaults() -> None:
    (geometry,) = loads(_file(_ball("a"))).body("a").geometry
    assert geometry.surface == Surface(1.0, 0.005, 1e-4, None, "maximum", 3, 0)


@pytest.mark.parametrize("seed", range(20))
def test_pairs_and_friction_are_those_of_mujocos_collision_detection(seed: int) -> None:
    """Random trees with random masks, condim, priorities, pairs and excludes, every pair of shapes near."""
    text = _random_file(np.random.default_rng(seed))
    m = mujoco.MjModel.from_xml_string(text)
    theirs = {}
    for geoms, values in colliding(m).items():
        kinds = tuple(shape(m, g)[1] for g in geoms)
        links = {int(m.body_weldid[m.geom_bodyid[g]]) for g in geoms}  # of a <pair> there can be one
        if len(links) > 1 and (kinds in PAIRS or kinds[::-1] in PAIRS):
            theirs[frozenset(m.geom(g).name for g in geoms)] = values
    found = {}
    model = loads(text, contacts=True)
    for c in model.contacts:
        sides = [s.geometry.color[0] for s in c.sides]  # each geom has a colour of its own
        found[frozenset(f"g{round(x * 255)}" for x in sides)] = (c.friction, c.torsion, c.rolling)
    assert found.keys() == theirs.keys()
    for key, values in found.items():
        assert values == pytest.approx(theirs[key], abs=1e-12)


def _random_file(rng: np.random.Generator) -> str:
    count = [0]
    sizes = {"sphere": "0.1", "capsule": "0.1 0.2", "cylinder": "0.1 0.2", "box": "0.1 0.1 0.1"}

    def geom(kind: str, size: str) -> str:
        number = count[0]
        count[0] += 1
        friction = " ".join(f"{x:.3f}" for x in rng.uniform(0.1, 1.0, 3))
        masks = f"contype='{rng.integers(0, 4)}' conaffinity='{rng.integers(0, 4)}'"
        condim, priority = rng.choice((1, 3, 4, 6)), rng.choice((0, 0, 0, 1))
        return (
            f"<geom name='g{number}' type='{kind}' size='{size}' friction='{friction}' {masks} condim='{condim}' "
            f"priority='{priority}' rgba='{number / 255:.6f} 0 0 1'/>"
        )

    def body(depth: int) -> str:
        kind = str(rng.choice(list(sizes)))
        inside = "".join(body(depth + 1) for _ in range(rng.integers(0, 3) if depth < 2 else 0))
        joint = str(rng.choice(("<joint/>", "<joint type='ball'/>", "")))
        shapes = "".join(geom(kind, sizes[kind]) for _ in range(rng.integers(1, 3)))
        return f"<body name='body{rng.integers(10**9)}'>{joint}{shapes}{inside}</body>"

    planes = geom("plane", "1 1 1") + geom("sphere", "0.2")
    bodies = "".join(body(0) for _ in range(2))
    chosen = rng.permutation(count[0])
    pair = f"<pair geom1='g{chosen[0]}' geom2='g{chosen[1]}' condim='4' friction='0.5 0.5 0.1 0.1 0.1'/>"
    return (
        f"<mujoco><compiler autolimits='true'/><worldbody>{planes}{bodies}</worldbody>"
        f"<contact>{pair}</contact></mujoco>"
    )


def test_the_command_line_reads_contacts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ball.xml"
    path.write_text(_crowd(1))
    assert main(["info", str(path), "--load-contacts", "ground"]) == 0
    assert "b0: sphere of b0 with plane of world (friction 1)" in capsys.readouterr().out
    assert main(["info", str(path)]) == 0
    assert "contacts left out; --load-contacts all reads them: 1 pair of shapes" in capsys.readouterr().out


def test_a_sensor_of_contacts_is_no_contact() -> None:
    sensor = "<sensor><contact name='s' geom1='a' geom2='nobody'/></sensor>"
    model = loads(_file(_ball("a"), rest=sensor), contacts=True)
    assert _names(model) == ["a"]
    assert "sensors of neither joint, body nor site left out: 's' (text.xml:1)" in model.notes


# ---- writing


def _walker() -> sl.Model:
    """A trunk that floats with a leg: shapes of their own, a frame, a tilted ground, a post on the world."""
    b = sl.Builder("walker")
    b.body(
        "trunk", mass=2.0, inertia=(0.02, 0.02, 0.02), geometry=[sl.contacts.Box(0.2, 0.1, 0.1, position=(0, 0, 0.1))]
    )
    b.body("leg", mass=0.5, center=(0, 0, -0.15), inertia=(0.004, 0.004, 1e-3), geometry=[sl.contacts.Sphere(0.05)])
    b.free("root", "world", "trunk").revolute("hip", "trunk", "leg", "y", (0, 0.1, 0)).frame("toe", "leg", (0, 0, -0.3))
    model = b.build().with_ground(friction=0.7, position=(0, 0, -1.0), rotation=(0, 0.2, 0))
    toe, post = ("toe", sl.contacts.Capsule(0.02, 0.1)), ("world", sl.contacts.Capsule(0.1, 2.0, position=(1, 0, 0)))
    model = model.with_contact("toe", toe, "ground", friction=0.9, torsion=0.01)
    return model.with_contact("post", toe, post, friction=0.5, torsion=0.02, rolling=0.03)


def test_contacts_are_written_as_pairs_and_nothing_else_collides(tmp_path: Path) -> None:
    model = _walker()
    written = model.save(tmp_path / "w.xml")
    assert written.lost == ()
    assert any(r.startswith("contacts, which are soft in MuJoCo: 'trunk'") for r in written.remarks)
    assert len(colliding(mujoco.MjModel.from_xml_path(str(tmp_path / "w.xml")))) == len(model.contacts) == 4
    back = sl.load(tmp_path / "w.xml", contacts=True)
    settings = [(c.name, c.friction, c.torsion, c.rolling, c.pair) for c in model.contacts]
    assert [(c.name, c.friction, c.torsion, c.rolling, c.pair) for c in back.contacts] == settings
    for one, other in zip(model.contacts, back.contacts, strict=True):
        for s, t in zip(one.sides, other.sides, strict=True):
            (body, place), (body_back, place_back) = s.on(model), t.on(back)
            assert (body, s.geometry.size) == (body_back, pytest.approx(t.geometry.size))
            assert np.allclose(place.position, place_back.position, atol=1e-12)
            assert np.allclose(place.rotation, place_back.rotation, atol=1e-12)


@pytest.mark.parametrize(
    ("settings", "lost"),
    [
        ({"restitution": 0.5}, "restitution of contacts: 'c'"),
        ({"stiffness": 1e4}, "stiffness of contacts: 'c'"),
        ({"surface_velocity": (1, 0, 0)}, "surface velocities of contacts: 'c'"),
    ],
)
def test_what_a_pair_cannot_hold_is_lost(tmp_path: Path, settings: dict, lost: str) -> None:
    b = sl.Builder("ball").body("ball", mass=1.0, inertia=(0.1, 0.1, 0.1), geometry=[sl.contacts.Sphere(0.1)])
    model = b.free("root", "world", "ball").build().with_contact("c", "ball", friction=0.1, **settings)
    with pytest.raises(UnsupportedError, match=lost):
        model.save(tmp_path / "b.xml")
