"""Contacts of SDF files: the pairs that Gazebo collides, with the smaller friction; what is left out is noted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import UnsupportedError
from spanloop.model.files import contact_pairs
from spanloop.model.files.sdf.reader import loads

SPHERE = "<geometry><sphere><radius>0.1</radius></sphere></geometry>"
BOX = "<geometry><box><size>1 1 1</size></box></geometry>"
INERTIAL = "<inertial><mass>1</mass><inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia></inertial>"


def _solid(surface: str = "", geometry: str = SPHERE, name: str = "c") -> str:
    return f"<collision name='{name}'>{geometry}<surface>{surface}</surface></collision>"


def _friction(mu: float) -> str:
    return f"<friction><ode><mu>{mu}</mu><mu2>{mu}</mu2></ode></friction>"


def _mask(bits: str) -> str:
    return f"<contact><collide_bitmask>{bits}</collide_bitmask></contact>"


def _link(name: str, inside: str = "") -> str:
    return f"<link name='{name}'>{INERTIAL}{inside}</link>"


def _model(name: str, inside: str) -> str:
    return f"<model name='{name}'>{inside}</model>"


def _ground(surface: str = "", normal: str = "0 0 1", pose: str = "0 0 0 0 0 0") -> str:
    plane = f"<geometry><plane><normal>{normal}</normal></plane></geometry>"
    inside = f"<link name='link'>{_solid(surface, plane)}</link>"
    return _model("ground", f"<static>true</static><pose>{pose}</pose>{inside}")


def _sdf(*models: str) -> str:
    return f"<sdf version='1.9'><world name='w'>{''.join(models)}</world></sdf>"


def test_contacts_are_left_out_by_default_and_a_note_has_their_number() -> None:
    model = loads(_sdf(_ground(), _model("ball", _link("ball", _solid()))))
    assert model.contacts == ()
    assert "contacts left out; sl.load(path, contacts=True) reads them: 1 pair of shapes" in model.notes


def test_a_plane_is_the_ground_and_friction_is_the_smaller_one() -> None:
    text = _sdf(_ground(_friction(0.3)), _model("ball", _link("ball", _solid(_friction(0.8)))))
    (c,) = loads(text, contacts=True).contacts
    assert (c.name, c.a.at, c.b.at, c.b.geometry.shape) == ("ball::ball", "ball::ball", "ground::link", "plane")
    assert (c.friction, c.torsion, c.rolling, c.restitution) == (0.3, 0.0, 0.0, 0.0)
    assert c.where == "text.sdf:1"


def test_a_plane_has_its_normal() -> None:
    text = _sdf(_ground(normal="0 -3 4", pose="1 2 3 0 0 0"), _model("ball", _link("ball", _solid())))
    model = loads(text, contacts=True)
    (c,) = model.contacts
    assert np.allclose(np.array(c.b.geometry.placement.rotation)[:, 2], (0, -0.6, 0.8))
    assert np.allclose(np.linalg.det(c.b.geometry.placement.rotation), 1.0)
    assert model.joint("ground::link_static").placement.position == (1.0, 2.0, 3.0)


ARM = (
    _link("a", _solid())
    + "<link name='b'><pose>0 0 1 0 0 0</pose>" + INERTIAL + _solid() + "</link>"
    + "<link name='c'><pose>0 0 2 0 0 0</pose>" + INERTIAL + _solid() + "</link>"
    + "".join(
        f"<joint name='{p}{q}' type='revolute'><parent>{p}</parent><child>{q}</child>"
        "<axis><xyz>1 0 0</xyz></axis></joint>"
        for p, q in ("ab", "bc")
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        ((_model("m", ARM),), []),
        ((_model("m", "<self_collide>true</self_collide>" + ARM),), ["a:c"]),
        ((_model("m", ARM), _ground()), ["m::a", "m::b", "m::c"]),
        ((_model("m", _link("a", _solid())), _model("n", _link("a", _solid()))), ["m::a:n::a"]),
        ((_model("m", _link("a", _solid(_mask("1")))), _model("n", _link("a", _solid(_mask("0x6"))))), []),
        ((_model("m", _link("a", _solid(_mask("3")))), _model("n", _link("a", _solid(_mask("0x6"))))), ["m::a:n::a"]),
        ((_model("m", _link("a", _solid("<contact><collide_without_contact>1</collide_without_contact></contact>"))),
          _ground()), []),
        ((_model("m", _link("a", _solid() + _solid(name="d"))), _ground()), ["m::a.0", "m::a.1"]),
    ],
)  # fmt: skip
def test_the_pairs_are_those_that_gazebo_collides(models: tuple[str, ...], expected: list[str]) -> None:
    assert [c.name for c in loads(_sdf(*models), contacts=True).contacts] == expected


def test_the_ground_plane_of_gazebo_need_not_be_there(tmp_path: Path) -> None:
    text = _sdf(
        "<include><uri>model://ground_plane</uri></include>", _model("m", _link("ball", _solid(_friction(0.7))))
    )
    (tmp_path / "w.sdf").write_text(text)
    (c,) = sl.load(tmp_path / "w.sdf", contacts=True).contacts
    assert (c.name, c.a.at, c.b.at, c.b.geometry.shape, c.friction) == ("ball", "ball", "world", "plane", 0.7)


@pytest.mark.parametrize(
    ("surface", "words"),
    [
        ("<contact><ode><kp>1e6</kp></ode></contact>", "stiffness and damping of contacts left out; contacts are hard"),
        ("<friction><ode><slip1>1</slip1></ode></friction>", "left out, though it acts on the motion: slip1 and slip2"),
    ],
)
def test_what_a_contact_cannot_hold_is_noted(surface: str, words: str) -> None:
    text = _sdf(_ground(), _model("m", _link("a", _solid(surface))))
    assert any(words in note for note in loads(text, contacts=True).notes)
    assert not any(words in note for note in loads(text).notes)


def test_a_mask_that_is_no_number_counts_as_all_bits() -> None:
    model = loads(_sdf(_ground(), _model("m", _link("a", _solid(_mask("all"))))), contacts=True)
    assert len(model.contacts) == 1
    words = "not valid in this format: <collide_bitmask> that is no whole number, read as all bits: text.sdf:1"
    assert words in model.notes


def test_pairs_of_very_many_shapes_are_not_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contact_pairs, "MOST_SHAPES", 3)
    text = _sdf(*(_model(f"m{k}", _link("a", _solid())) for k in range(4)))
    words = "4 shapes collide, of which pairs are not searched for beyond 3"
    assert any(words in note for note in loads(text).notes)
    with pytest.raises(UnsupportedError, match=words):
        loads(text, contacts="ground")


def test_pairs_without_a_known_gap_are_counted() -> None:
    text = _sdf(_model("m", _link("a", _solid(geometry=BOX))), _model("n", _link("a", _solid(geometry=BOX))))
    model = loads(text, contacts=True)
    assert model.contacts == ()
    assert "contacts of shapes without a known gap left out: 1 of box with box" in model.notes
