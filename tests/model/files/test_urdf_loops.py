"""Loops in URDF files: our <loop>, URDF+, the <constraint> proposal, and a TOML file beside the URDF."""

from __future__ import annotations

import numpy as np
import pytest
from dense_closures import ClosedReference
from sentences import says

import spanloop as sl
from spanloop.errors import FileError, ModelError, UnsupportedError
from spanloop.joints import (
    Cylindrical,
    Distance,
    Fixed,
    Helical,
    Planar,
    Prismatic,
    Revolute,
    SoftFinger,
    Spherical,
    Universal,
)
from spanloop.model.files.urdf.reader import loads

Z = (0.0, 0.0, 1.0)


def link(name: str, mass: float = 1.0) -> str:
    moments = 'ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"'
    inertial = f'<origin xyz="0.2 0 0"/><mass value="{mass}"/><inertia {moments}/>'
    return f'<link name="{name}"><inertial>{inertial}</inertial></link>'


def hinge(name: str, parent: str, child: str, x: float, more: str = "") -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/><origin xyz="{x} 0 0"/><axis xyz="0 0 1"/>'
    return f'<joint name="{name}" type="revolute" {more}>{ends}</joint>'


def four_bar(*closing: str) -> str:
    """A parallelogram with cranks of 0.5 m and sides of 1 m, cut between coupler and rocker."""
    parts = [
        '<link name="base"/>',
        link("crank"),
        link("coupler", 2.0),
        link("rocker", 1.5),
        hinge("j1", "base", "crank", 0.0),
        hinge("j2", "crank", "coupler", 0.5, 'independent="false"'),
        hinge("j3", "base", "rocker", 1.0, 'independent="false"'),
    ]
    return "\n".join(['<robot name="four_bar">', *parts, *closing, "</robot>"])


OURS = """<loop name="pin" type="revolute">
<parent link="coupler"><origin xyz="1 0 0"/></parent><child link="rocker"><origin xyz="0.5 0 0"/></child>
<axis xyz="0 0 1"/></loop>"""
PLUS = OURS.replace("parent", "predecessor").replace("child", "successor")
CONSTRAINT = """<constraint name="pin" type="REVOLUTE">
<parent link="coupler"/><parent_origin xyz="1 0 0"/><parent_axis xyz="0 0 1"/>
<child link="rocker"/><child_origin xyz="0.5 0 0"/><child_axis xyz="0 0 1"/></constraint>"""
TOML = """
[[loop]]
name = "pin"
kind = "revolute"
a = "coupler"
b = "rocker"
axis = [0.0, 0.0, 1.0]
position_a = [1.0, 0.0, 0.0]
position_b = [0.5, 0.0, 0.0]
"""


def from_files(tmp_path, text: str = TOML) -> sl.Model:
    (tmp_path / "leg.urdf").write_text(four_bar())
    (tmp_path / "leg.toml").write_text(text)
    return sl.load(tmp_path / "leg.urdf", loops=tmp_path / "leg.toml")


def test_the_four_ways_to_close_a_loop_give_the_same_model(tmp_path):
    first, *others = (loads(four_bar(x)) for x in (OURS, PLUS, CONSTRAINT))
    for other in (*others, from_files(tmp_path)):
        assert other.loops == first.loops
        assert other.joints == first.joints
    assert first.loops[0].kind == Revolute(Z)
    assert first.loops[0].where == "text.urdf:9"
    assert first.actuated == ("j1",)


def test_the_closed_four_bar_moves_as_the_dense_equations_say():
    model = loads(four_bar(OURS))
    robot = sl.Dynamics(model)
    q = robot.assemble([0.7, -0.7, 0.7], fixed=["j1"])
    v = ClosedReference(model, q).consistent(np.array([1.0, 0.3, -0.5]))
    tau = np.array([2.0, 0.0, 0.0])
    expected, _ = ClosedReference(model, q, v).forward_dynamics(tau)
    # three joints of a flat mechanism of order 1: rounding times the condition of some tens
    np.testing.assert_allclose(robot.forward_dynamics(q, v, tau), expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    assert robot.mobility(q) == 1


def loop(kind: str, inside: str = "", attributes: str = "") -> str:
    return f'<loop name="x" type="{kind}" {attributes}><parent link="coupler"/><child link="rocker"/>{inside}</loop>'


KINDS = {
    "revolute": (loop("revolute", '<axis xyz="0 0 2"/>'), Revolute(Z)),
    "continuous": (loop("continuous", '<axis xyz="0 0 1"/>'), Revolute(Z)),
    "prismatic": (loop("prismatic"), Prismatic((1.0, 0.0, 0.0))),
    "cylindrical": (loop("cylindrical", '<axis xyz="0 0 1"/>'), Cylindrical(Z)),
    "planar": (loop("planar", '<axis xyz="0 0 1"/>'), Planar(Z)),
    "helical": (loop("helical", '<axis xyz="0 0 1"/>', 'pitch="0.01"'), Helical(Z, 0.01)),
    "universal": (loop("universal", '<axis xyz="1 0 0"/><second_axis xyz="0 1 0"/>'), Universal()),
    "spherical": (loop("spherical"), Spherical()),
    "fixed": (loop("fixed"), Fixed()),
    "soft_finger": (loop("soft_finger"), SoftFinger()),
    "distance": (loop("distance", attributes='length="0.3"'), Distance(0.3)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_may_be_of_any_kind(kind):
    text, expected = KINDS[kind]
    (found,) = loads(four_bar(text)).loops
    assert found.kind == expected


def test_a_loop_may_be_switchable_and_end_on_the_world():
    text = '<loop name="x" type="spherical" switchable="true"><parent link="world"/><child link="rocker"/></loop>'
    (found,) = loads(four_bar(text)).loops
    assert (found.switchable, found.driven, found.a) == (True, False, "world")


def constraint(kind: str, inside: str = "") -> str:
    return f'<constraint name="x" type="{kind}"><parent link="coupler"/><child link="rocker"/>{inside}</constraint>'


def test_each_type_of_the_constraint_proposal_is_read():
    universal = '<parent_axis xyz="1 0 0"/><child_axis xyz="0 1 0"/>'
    kinds = [("spherical", "", Spherical()), ("link", "", Fixed()), ("prismatic", "", Prismatic((1.0, 0.0, 0.0)))]
    for name, inside, expected in [*kinds, ("universal", universal, Universal())]:
        assert loads(four_bar(constraint(name, inside))).loops[0].kind == expected


def test_a_revolute_constraint_turns_the_childs_axis_onto_the_parents():
    """The loop's axis, seen from both ends, is the axis that each end names."""
    text = constraint("revolute", '<parent_axis xyz="0 0 1"/><child_axis xyz="1 0 0"/>')
    (found,) = loads(four_bar(text)).loops
    np.testing.assert_allclose(np.array(found.placement_b.rotation) @ found.kind.axis, (1.0, 0.0, 0.0), atol=1e-15)
    np.testing.assert_allclose(np.array(found.placement_a.rotation) @ found.kind.axis, (0.0, 0.0, 1.0), atol=1e-15)


def geared(coupling: str) -> str:
    rotor = link("rotor", 0.1)
    turning = hinge("rotor_joint", "base", "rotor", 0.0, 'independent="false"')
    return four_bar(rotor, turning, coupling)


def test_a_coupling_of_urdf_plus_is_a_gear_between_two_joints():
    text = '<coupling name="gear" type="rolling"><predecessor link="crank"/><successor link="rotor"/>{}</coupling>'
    model = loads(geared(text.format('<ratio value="6"/>')))
    (found,) = model.couplings
    assert (found.joint, found.source, found.ratio, found.offset) == ("rotor_joint", "j1", 6.0, 0.0)
    assert "rotor_joint" not in model.actuated
    with says(UnsupportedError, "coupling 'gear': the way to 'coupler' has 2 moving joints ('j2', 'j1')"):
        loads(geared(text.format('<ratio value="6"/>').replace('"crank"', '"coupler"')))
    with says(FileError, "text.urdf:11: <coupling> has no <ratio>; expected one"):
        loads(geared(text.format("")))


SENTENCES = {
    "unknown type": (
        loop("revolut"),
        "text.urdf:9: loop 'x' has the type 'revolut'; did you mean 'revolute'?",
    ),
    "no ends": (
        '<loop name="x" type="fixed"/>',
        "text.urdf:9: <loop> needs <parent link='...'> and <child link='...'> "
        "(or URDF+'s <predecessor> and <successor>)",
    ),
    "unknown link": (
        loop("fixed").replace("rocker", "roker"),
        "text.urdf:9: loop 'x': its link 'roker' is not a link; did you mean 'rocker'?",
    ),
    "same name": (
        loop("fixed").replace('"x"', '"j1"'),
        "text.urdf:9: a second joint is called 'j1', the first is at text.urdf:6; names must be unique",
    ),
    "zero axis": (
        loop("revolute", '<axis xyz="0 0 0"/>'),
        "text.urdf:9: <axis> xyz is '0 0 0', which has no direction; expected for example '0 0 1'",
    ),
    "no second axis": (
        loop("universal", '<axis xyz="0 0 1"/>'),
        "text.urdf:9: <loop> has no <second_axis>; expected one",
    ),
    "parallel axes": (
        loop("universal", '<axis xyz="0 0 1"/><second_axis xyz="0 0 1"/>'),
        "text.urdf:9: loop 'x': universal joint: both axes are along (0.0, 0.0, 1.0); expected two directions. "
        "For one axis use a revolute joint",
    ),
    "negative length": (
        loop("distance", attributes='length="-1"'),
        "text.urdf:9: loop 'x': distance joint: length is -1.0; must be > 0. For length 0 use a spherical joint",
    ),
    "flag": (
        loop("fixed", attributes='driven="maybe"'),
        "text.urdf:9: <loop> driven is 'maybe'; expected true or false",
    ),
    "constraint type": (
        constraint("planar"),
        "text.urdf:9: constraint 'x' has the type 'planar'; there are "
        "'revolute', 'prismatic', 'universal', 'spherical', 'link'",
    ),
    "prismatic axes": (
        constraint("prismatic", '<parent_axis xyz="0 0 1"/><child_axis xyz="1 0 0"/>'),
        "text.urdf:9: constraint 'x': a prismatic one needs <parent_axis> and <child_axis> alike; "
        "turn its <child_origin> instead",
    ),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_a_bad_loop_gives_its_sentence(case):
    text, expected = SENTENCES[case]
    with pytest.raises(FileError) as caught:
        loads(four_bar(text))
    assert str(caught.value) == expected


def test_a_loop_on_one_body_is_refused():
    with says(ModelError, "loop 'x' (text.urdf:9): both ends are on body 'rocker'; a loop joins two bodies"):
        loads(four_bar(loop("fixed").replace("coupler", "rocker")))


def test_a_file_of_loops_has_its_sentences(tmp_path):
    with says(FileError, "leg.toml: there is no [[loop]] and no [[coupling]]; expected one at least"):
        from_files(tmp_path, "format = 1")
    with says(FileError, "leg.toml: loops: the key 'body' is not known"):
        from_files(tmp_path, '[[body]]\nname = "x"\n')
    with says(FileError, "leg.toml:1: not readable as TOML"):
        from_files(tmp_path, "loop = [")
    with says(ModelError, "its body b 'roker' is not a body; did you mean 'rocker'?"):
        from_files(tmp_path, TOML.replace('"rocker"', '"roker"'))
    with says(FileError, "leg.yaml: the extension is '.yaml'; loops are read from a .toml file"):
        sl.load(tmp_path / "leg.urdf", loops=tmp_path / "leg.yaml")


def test_a_file_of_loops_may_hold_couplings(tmp_path):
    text = '[[coupling]]\nname = "gear"\njoint = "j3"\nsource = "j1"\nratio = 2.0\n'
    (found,) = from_files(tmp_path, text).couplings
    assert (found.joint, found.source, found.ratio) == ("j3", "j1", 2.0)
