"""Models with flexible bodies: what may be attached where, what is reported, what is printed."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from flexible_arms import arm, boom

import spanloop as sl
from spanloop.cli.main import main
from spanloop.errors import InputError, ModelError
from spanloop.flexible.modes import Node
from spanloop.model.examine import examine
from spanloop.model.examine.messages import sentence
from spanloop.model.flexible_bodies import flexible_bodies
from spanloop.model.parts import Geometry, Joint
from spanloop.model.poses import neutral_poses, pose

PIECES = pytest.mark.parametrize("pieces", [1, 3])


# ---- structure


@PIECES
def test_a_flexible_body_is_found_with_its_nodes_in_order(pieces):
    model = arm(boom(pieces=pieces)).build()
    (body,) = flexible_bodies(model.bodies, model.joints).values()
    assert (body.name, body.root, body.nodes) == ("boom", "boom.root", ("boom.mid", "boom.tip"))
    assert len(body.pieces) == pieces
    assert body.mass == pytest.approx(0.54, rel=1e-12)


@PIECES
@pytest.mark.parametrize("parent", ["world", "hub"])
def test_a_second_joint_that_leads_to_a_node_closes_a_loop(pieces, parent):
    model = arm(boom(pieces=pieces)).revolute("pin", parent, "boom.tip", "z", (1.1, 0, 0)).build()
    assert [(x.name, x.b) for x in model.loops] == [("pin", "boom.tip")]
    assert model.joint("boom.tip").kind.rides


def test_a_second_joint_that_leads_to_the_flexible_body_closes_a_loop_at_its_root():
    b = arm().body("strut", 0.1, inertia=(0.01, 0.01, 0.01)).revolute("foot", "world", "strut", "z")
    model = b.revolute("pin", "strut", "boom", "z", (0.1, 0, 0)).build()
    assert [(x.name, x.b) for x in model.loops] == [
        ("clamp", "boom.root")
    ]  # both ways are as long; the pin is actuated
    assert model.joint("boom.modes").parent == "boom.root"


def test_a_flexible_body_hangs_on_its_root():
    b = sl.Builder("hung").body("boom", flexible=boom()).revolute("pin", "world", "boom.tip", "y")
    with pytest.raises(
        ModelError, match=r"body 'boom.root': no way leads .* carried by its root: attach 'boom' with a joint"
    ):
        b.build()
    model = b.free("root", "world", "boom").build()
    assert [x.name for x in model.loops] == ["pin"]


def test_a_rocker_joined_to_the_tip_of_a_flexible_coupler_closes_the_loop():
    b = sl.Builder("four bar").body("crank", 1.0, (0.2, 0, 0), (0.01, 0.1, 0.1))
    b = b.body("coupler", flexible=boom()).body("rocker", 1.0, (0.4, 0, 0), (0.01, 0.1, 0.1))
    b = b.revolute("a", "world", "crank", "y").revolute("b", "crank", "coupler", "y", (0.4, 0, 0))
    b = b.revolute("c", "world", "rocker", "y", (0.9, 0, 0)).revolute("d", "rocker", "coupler.tip", "y", (0.8, 0, 0))
    assert [x.name for x in b.build().loops] == ["d"]


@PIECES
def test_joints_inside_a_flexible_body_cannot_be_cut(pieces):
    beam = boom(pieces=pieces)
    inside = ["boom.modes", "boom.tip"] if pieces == 1 else ["boom.2.modes", "boom.2.root", "boom.1.end"]
    for name in inside:
        with pytest.raises(InputError, match=rf"cut names '{name}', which is inside a flexible body"):
            arm(beam).build(cut=[name])


def test_a_node_needs_modes_below_it_and_as_many():
    model = arm().build()
    shape = model.joint("boom.tip").kind
    assert isinstance(shape, Node)
    with pytest.raises(ModelError, match=r"joint 'wrist': a node rides on the modes .* its parent 'boom.tip' has none"):
        replace(
            model,
            joints=tuple(Joint("wrist", shape, j.parent, j.child) if j.name == "wrist" else j for j in model.joints),
        )
    other = arm(boom(modes={"y": 0})).build().joint("boom.tip").kind
    with pytest.raises(ModelError, match=r"joint 'boom.mid': the node moves with 4 modes, its body 'boom' has 10"):
        replace(model, joints=tuple(replace(j, kind=other) if j.name == "boom.mid" else j for j in model.joints))


def test_nothing_but_nodes_stands_on_a_flexible_body():
    model = arm().build()
    places = "use one of 'boom.root', 'boom.mid', 'boom.tip'"
    with pytest.raises(ModelError, match=rf"joint 'wrist': body 'boom' is flexible, .*{places}"):
        replace(model, joints=tuple(replace(j, parent="boom") if j.name == "wrist" else j for j in model.joints))
    with pytest.raises(ModelError, match=rf"frame 'camera': body 'boom' is flexible, .*{places}"):
        model.with_frame("camera", "boom", (0.3, 0, 0))
    with pytest.raises(ModelError, match=rf"contact 'touch': body 'boom' is flexible, .*{places}"):
        model.with_contact("touch", ("boom", sl.contacts.Sphere(0.02)))
    closed = model.with_loop("boom.tip", "world", "spherical", name="pin")
    with pytest.raises(ModelError, match=rf"loop 'pin': body 'boom' is flexible, .*{places}"):
        replace(closed, loops=(replace(closed.loops[0], a="boom"),))
    shaped = tuple(
        replace(b, geometry=(Geometry("sphere", (0.1,), use="collision"),)) if b.name == "boom" else b
        for b in model.bodies
    )
    with pytest.raises(ModelError, match=rf"body 'boom': it has a collision shape; .*{places}"):
        replace(model, bodies=shaped)
    with pytest.raises(ModelError, match=r"loop 'pin': a modal joint carries parts of a flexible body, and no loop"):
        replace(closed, loops=(replace(closed.loops[0], kind=model.joint("boom.modes").kind),))


def test_the_flexible_body_as_a_place_is_its_root():
    model = arm().frame("base", "boom").loop("boom", "world", "spherical", name="anchor").build()
    assert model.frame("base").body == model.loops[0].a == "boom.root"
    edited = arm().build().with_frame("base", "boom").with_loop("boom", "world", "spherical", name="anchor")
    assert edited.frame("base").body == edited.loops[0].a == "boom.root"


@pytest.mark.parametrize(
    "part",
    [
        lambda b: b.frame("camera", "boom.tpi").build(),
        lambda b: b.body("cup", 1.0, inertia=(1.0, 1.0, 1.0)).fixed("grip", "boom.tpi", "cup").build(),
        lambda b: b.loop("boom.tpi", "world", "spherical").build(),
        lambda b: b.contact("touch", ("boom.tpi", sl.contacts.Sphere(0.02))).build(),
        lambda b: b.build().with_sensor("shake", "imu", "boom.tpi"),
        lambda b: b.build().with_frame("camera", "boom.tpi"),
        lambda b: b.build().attach(sl.zoo.pendulum(1), "boom.tpi"),
    ],
)
def test_a_node_that_does_not_exist_is_refused_with_the_nearest(part):
    with pytest.raises((ModelError, InputError), match=r"'boom\.tpi'.*did you mean 'boom\.tip'\?"):
        part(arm())


def test_an_offset_from_a_flexible_body_is_refused_with_its_nodes():
    for described in (
        lambda b: b.frame("camera", "boom", (0.3, 0, 0)),
        lambda b: b.body("cup", 1.0, inertia=(1.0, 1.0, 1.0)).fixed("grip", "boom", "cup", (0.3, 0, 0)),
    ):
        with pytest.raises(ModelError, match=r"is no node of it.*boom\.root, boom\.mid, boom\.tip"):
            described(arm()).build()


@pytest.mark.slow
def test_shapes_on_nodes_and_on_what_they_carry_touch_the_ground():
    b = arm(boom(modes={"z": 0}))
    model = b.contact("tip", ("boom.tip", sl.contacts.Sphere(0.02))).contact("tool", ("tool", sl.contacts.Sphere(0.02)))
    built = model.build()
    assert [c.a.at for c in built.contacts] == ["boom.tip", "tool"]
    soft = sl.Builder("drop").body("bar", flexible=boom(modes={"z": 0})).free("root", "world", "bar")
    soft = soft.contact("tip", ("bar.tip", sl.contacts.Sphere(0.02)), stiffness=1e4, damping=20.0)
    soft = soft.contact("heel", ("bar.root", sl.contacts.Sphere(0.02)), stiffness=1e4, damping=20.0).build()
    run = sl.simulate(soft, {"root": (1, 0, 0, 0, 0, 0, 0.03)}, duration=0.3, step=1e-4)
    height = np.asarray(run["bar.tip"].position)[..., 2]
    assert 0.015 < height.min() < 0.0201  # it falls 1 cm and stands on the springs: m g/(2 k) = 0.3 mm
    assert abs(height[-1] - 0.0197) < 2e-3


# ---- what is reported and printed


def test_nodes_and_roots_without_mass_are_no_finding():
    model = arm().build()
    assert model.notes == ()
    assert not [f for f in examine(model) if f.topic in ("massless", "inertia_small", "triangle")]


@pytest.mark.parametrize("pieces", [1, 2])
def test_a_beam_softer_than_its_own_weight_allows_is_reported(pieces):
    """The sag of a uniform cantilever is q L⁴/(8 EI)."""
    E, section = 5e7, sl.flexible.rectangle(0.02, 0.01)
    model = arm(boom(E=E, pieces=pieces)).build()
    (found,) = [f for f in examine(model) if f.topic == "own_weight"]
    exact = 2700.0 * section.area * 9.81 / (8.0 * E * section.Iy)
    assert found.values["sag"] == pytest.approx(exact, rel=0.01)
    assert "buckles" in found.values["upright"]
    assert sentence(found).startswith("Body 'boom' sags by 7.9")
    assert not [f for f in examine(arm().build()) if f.topic == "own_weight"]
    assert not [f for f in examine(model.with_gravity((0, 0, 0))) if f.topic == "own_weight"]
    assert not [f for f in examine(model.with_material("boom", E=7e10)) if f.topic == "own_weight"]


def test_a_body_without_mass_on_a_node_is_still_a_finding():
    model = arm().body("vane").revolute("swing", "boom.mid", "vane", "y").build()
    assert model.notes[0].startswith("body 'vane': it moves and ends a chain but has no mass")


@pytest.mark.slow
def test_short_pieces_of_an_euler_bernoulli_beam_are_built():
    """Their rotary inertia about the axis exceeds the sum of the others, which such beams leave out."""
    model = arm(boom(pieces=60, modes={"torsion": 0}, nodes=None)).build()
    assert model.mass == pytest.approx(2.04, rel=1e-12)


@PIECES
def test_print_shows_modes_with_their_frequencies_and_nodes(pieces):
    beam = boom(pieces=pieces)
    text = str(arm(beam).build())
    assert "boom: beam of 1 m, 0.54 kg; nodes boom.root, boom.mid, boom.tip" in text
    joint = "boom.modes" if pieces == 1 else "boom.1.modes"
    assert f"{joint} with the root held [Hz]: y1 {beam.bodies[0].frequencies[0] / (2 * np.pi):.4g}" in text
    assert next(row.split()[-1] for row in text.splitlines() if " boom.tip " in row) == "-"
    assert "flexible bodies" in arm(beam).build()._repr_html_()
    assert "flexible" not in str(sl.zoo.puma())


def test_the_frequencies_shown_are_those_of_the_model_as_it_is():
    model = arm().build()
    stiff = model.with_joint("boom.modes", stiffness=tuple(4.0 * k for k in model.joint("boom.modes").stiffness))
    (before,), (after,) = (flexible_bodies(m.bodies, m.joints)["boom"].pieces for m in (model, stiff))
    np.testing.assert_allclose(before.frequencies, boom().bodies[0].frequencies, rtol=1e-12)
    np.testing.assert_allclose(after.frequencies, 2.0 * before.frequencies, rtol=1e-12)


def test_the_command_line_shows_flexible_bodies(tmp_path, capsys):
    file = str(tmp_path / "arm.toml")
    arm().build().save(file)
    assert main(["info", file]) == 0
    assert "boom: beam of 1 m" in capsys.readouterr().out
    assert main(["info", file, "--json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)["flexible"]
    assert (shown["name"], shown["nodes"]) == ("boom", ["boom.mid", "boom.tip"])
    assert [m["name"] for m in shown["modes"]][:2] == ["y1", "y2"]
    main(["check", file])
    said = capsys.readouterr().out
    assert "Body 'boom' is flexible: 10 modes from" in said
    assert "no mass" not in said


# ---- states and poses


def test_random_states_bend_beams_by_a_hundredth_of_their_length():
    model = arm(
        sl.flexible.beam(20.0, **{"E": 7e10, "density": 2700.0}, section=sl.flexible.circle(0.1), modes=1)
    ).build()
    q, _ = model.random_state(seed=2)
    eta = np.abs(q[model.q_slice("boom.modes")])
    metres = np.array([unit == "m" for unit in model.joint("boom.modes").kind.units])
    assert 0.05 < eta[metres].max() <= 0.2
    assert eta[~metres].max() <= 0.01
    single = sl.Builder("one").body("rod", flexible=boom(modes={"torsion": 0}, nodes=None)).fixed("a", "world", "rod")
    assert np.abs(single.build().random_state(seed=1)[0]).max() <= 0.01


def test_poses_of_nodes_follow_the_modes():
    model = arm().build()
    q = model.neutral()
    at = model.q_slice("boom.modes").start
    q[at] = 0.02  # the first mode of y is scaled to 1 m where it moves most, at the tip
    assert pose(model, q, "boom.tip").position[1] == pytest.approx(0.02, rel=1e-9)
    assert neutral_poses(model)["tool"].position == pytest.approx((1.1, 0.0, 0.0))
    robot = sl.Dynamics(model)
    q, _ = model.random_state(seed=4)
    for name in ("boom.mid", "boom.tip", "tool"):
        np.testing.assert_allclose(pose(model, q, name).position, robot.pose(q, name)[:3, 3], atol=1e-14)
