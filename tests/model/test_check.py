"""`spanloop check`: each finding from a mechanism that has it, and none from one that has not."""

from __future__ import annotations

import importlib.metadata
import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import spanloop as sl
from spanloop import zoo
from spanloop.cli import check as room
from spanloop.cli.main import main
from spanloop.errors import ModelError
from spanloop.joints import Revolute, Spherical
from spanloop.model import Geometry, Inertia, Loop, Model
from spanloop.model.examine import Finding, examine
from spanloop.model.examine.messages import WEIGHTS, WORDS, advice, sentence, weight
from spanloop.model.solid_inertia import rod


def topics(model: Model, *weights: str) -> set[str]:
    return {f.topic for f in room.findings(model, "zoo:x") if weight(f) in (weights or ("matters", "advice"))}


def found(model: Model, topic: str) -> Finding:
    return next(f for f in room.findings(model, "zoo:x") if f.topic == topic)


def arm(**options) -> sl.Builder:
    """Two links with sound inertias and limits."""
    b = sl.Builder("arm").body("upper", 2.0, (0.25, 0, 0), (0.002, 0.04, 0.04))
    b.body("fore", 1.0, (0.2, 0, 0), (0.001, 0.013, 0.013))
    b.revolute("shoulder", "world", "upper", "y", lower=-2, upper=2)
    return b.revolute("elbow", "upper", "fore", "y", (0.5, 0, 0), **{"lower": -2, "upper": 2, **options})


def heavier(model: Model, mass=1.0, inertia=1.0) -> Model:
    """The model with masses and moments multiplied, as by a wrong unit."""
    bodies = []
    for b in model.bodies:
        i = b.inertia
        bodies.append(replace(b, inertia=Inertia(mass * i.mass, i.center, tuple(inertia * x for x in i.moments))))
    return replace(model, bodies=tuple(bodies))


# ---- findings of the model


def test_a_sound_model_has_no_finding():
    assert topics(arm().build()) == set()


def test_kilograms_told_in_grams_are_seen():
    f = found(heavier(arm().build(), mass=1000.0, inertia=1000.0), "heavy")
    assert sentence(f) == (
        "Body 'upper': 2000 kg in the 3.27 litres of its inertia is 6.116e+05 kg/m³; no metal is that dense."
    )
    assert advice(f) == "Are the masses in grams?"


@pytest.mark.parametrize("factor", [1e4, 1e6, 1e9])
def test_inertias_in_other_units_are_seen(factor):
    assert "inertia_units" in topics(heavier(arm().build(), inertia=factor), "matters")


def test_lengths_told_in_millimetres_are_seen():
    f = found(arm().build().scale(length=1000.0), "long")
    assert sentence(f) == "Joint 'elbow' is 500 m from its parent."
    assert "millimetres" in advice(f)


@pytest.mark.slow
def test_the_units_of_real_robots_are_believed_and_their_mistakes_found():
    """Robots of the wheel example-robot-data, right and with one unit wrong."""
    robots = _robots()
    for name in ("talos_data/robots/talos_full_v2.urdf", "solo_description/robots/solo12.urdf",
                 "ur_description/urdf/ur10_robot.urdf", "anymal_b_simple_description/robots/anymal.urdf"):  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = sl.load(robots / name)
        serious = {f.topic for f in examine(model) if weight(f) == "matters"}
        assert serious == set(), name
        for wrong, topic in (
            (heavier(model, inertia=1e6), "inertia_units"),
            (heavier(model, mass=1e3, inertia=1e3), "heavy"),
            (model.scale(length=1e3), "long"),
        ):
            assert topic in {f.topic for f in examine(wrong)}, (name, topic)


def _robots() -> Path:
    try:
        wheel = importlib.metadata.distribution("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    return Path(str(wheel.locate_file("cmeel.prefix/share/example-robot-data/robots")))


def test_impossible_and_placeholder_inertias_are_seen():
    model = arm().build()
    flat = replace(model.body("fore"), inertia=Inertia(1.0, (0.2, 0, 0), (0.001, 0, 0, 0.013, 0, 0.05)))
    f = found(replace(model, bodies=(model.bodies[0], flat)), "triangle")
    assert sentence(f).startswith("Body 'fore': principal moments of inertia 0.001, 0.013, 0.05 kg m²; no body has")
    unit = replace(flat, inertia=Inertia(1.0, (0.2, 0, 0), (1.0, 0, 0, 1.0, 0, 1.0)))
    f = found(replace(model, bodies=(model.bodies[0], unit)), "placeholder")
    assert "body 'fore'. The first has 1 kg and 1 kg m² about every axis" in sentence(f)


def test_inertias_too_large_or_too_small_for_their_links_are_worth_a_look():
    f = found(zoo.puma(), "inertia_large")  # as the paper's table has it
    assert f.parts == ("body 'link6'",)
    model = arm().build()
    assert topics(model.with_inertia("fore", inertia=(1e-9, 1e-9, 1e-9)), "advice") == {"inertia_small"}
    assert topics(model.with_inertia("fore", inertia=(0, 0, 0)), "advice") == set()  # a point mass is meant


def test_a_moving_end_without_mass_matters():
    nothing = Inertia()
    model = arm().build()
    light = replace(model, bodies=(model.bodies[0], replace(model.body("fore"), inertia=nothing)))
    assert sentence(found(light, "massless")).startswith("Body 'fore' moves and ends a chain but has no mass")
    assert "massless" not in topics(replace(light, joints=(light.joints[0], replace(light.joints[1], armature=(1.0,)))))
    assert "massless" not in topics(light.lock("elbow"))


def test_joints_without_limits_room_or_strength_are_worth_a_look():
    assert sentence(found(arm(lower=None, upper=None).build(), "no_limits")) == (
        "1 joint with a motor is without limits of position: 'elbow'."
    )
    assert topics(arm(lower=0, upper=0).build()) == {"no_room"}
    assert sentence(found(arm(effort=0.0).build(), "zero_limit")) == "Joint 'elbow': the limit of effort is 0."
    assert topics(arm(lower=None, upper=None, actuated=False).build()) == set()
    assert "friction" in topics(arm(friction=1.0).build(), "fact")


def test_nothing_that_moves_matters():
    assert topics(arm().build().lock("shoulder", "elbow"), "matters") == {"nothing_moves"}


def test_meshes_that_cannot_be_reached_are_named(tmp_path):
    mesh = (Geometry("mesh", (), "there.stl"), Geometry("mesh", (), "../gone.stl"), Geometry("mesh", (), "lost.stl"))
    b = sl.Builder("m").body("a", 1.0, inertia=(0.1, 0.1, 0.1), geometry=mesh).revolute("j", "world", "a")
    (tmp_path / "there.stl").write_text("solid")
    (f,) = [f for f in examine(b.build(), tmp_path) if f.topic == "mesh"]
    assert sentence(f) == "2 meshes not found: '../gone.stl', 'lost.stl'."
    assert advice(f).startswith("There is no such file in the folder")


# ---- loops that may be missing


def opened_four_bar() -> Model:
    """The four-bar as a file of a tree would have it: at its zero the two ends meet."""
    model = zoo.four_bar().rezero(zoo.four_bar_start())
    return model.remove([x.name for x in model.loops])


def test_frames_that_meet_at_zero_are_offered_as_a_loop_that_works():
    model = opened_four_bar()
    f = found(model, "meet")
    assert set(f.parts) == {"'coupler_tip'", "'rocker_tip'"}
    line = advice(f).removeprefix("Write ").split(";")[0]
    closed = eval(line, {"model": model, "sl": sl})
    robot = sl.Dynamics(closed)
    assert robot.mobility(closed.neutral()) == 1
    assert closed.loops[0].kind.name == "revolute"
    assert "meet" not in topics(closed)


def test_frames_that_always_meet_are_no_loop():
    """A wrist whose three axes meet: frames at the common point are there at every state."""
    b = sl.Builder("wrist").body("a", 1.0, (0.1, 0, 0), (0.01,) * 3).body("b", 1.0, (0.1, 0, 0), (0.01,) * 3)
    b.body("c", 1.0, (0.1, 0, 0), (0.01,) * 3).revolute("one", "world", "a", "x").revolute("two", "a", "b", "y")
    b.revolute("three", "b", "c", "z").frame("f", "a").frame("g", "c")
    assert "meet" not in topics(b.build())


def test_names_of_loop_ends_are_understood():
    model = arm().build().with_frame("rod_loop_a", "fore", (0.4, 0, 0)).with_frame("rod_loop_b", "world", (0.5, 0, 0.3))
    f = found(model, "named")
    assert sentence(f) == (
        "'rod_loop_a', 'rod_loop_b' are named like the two ends of a loop, 0.5 m apart at neutral coordinates."
    )
    assert advice(f).startswith("Write model.with_loop('rod_loop_a', 'rod_loop_b', sl.joints.Revolute((0, 1, 0)))")
    assert "named" not in topics(model.with_loop("rod_loop_a", "rod_loop_b", "spherical"))
    alone = arm().build().with_frame("closure_1", "fore", (0.4, 0, 0))
    assert found(alone, "one_end").parts == ("'closure_1'",)


# ---- loops


@pytest.mark.parametrize(("name", "mobility"), [("four_bar", 1), ("delta", 3), ("bricard", 1)])
def test_loops_are_told_with_their_mobility(name, mobility):
    model = getattr(zoo, name)()
    assert found(model, "mobility").values["mobility"] == mobility
    assert "loops" in topics(model, "fact")


def test_redundant_rows_are_named():
    f = found(zoo.four_bar(), "redundant")
    assert len(f.parts) == 3
    assert sentence(f).startswith("3 rows are redundant wherever the loops are closed (closing: ")


def test_loops_that_cannot_close_matter():
    model = arm().build().with_frame("tip", "fore", (0.4, 0, 0)).with_frame("far", "world", (9.0, 0, 0))
    f = found(model.with_loop("tip", "far", Spherical(), name="rope"), "not_assembled")
    assert "rope" in sentence(f)


def test_a_structure_and_an_idle_loop_matter():
    model = arm().build().with_frame("tip", "fore", (0.4, 0, 0)).with_frame("wall", "world", (0.6, 0, 0.5))
    pinned = model.with_loop("tip", "wall", Revolute("y"), name="pin")
    assert "structure" not in topics(pinned.remove("pin"))
    assert "structure" in topics(pinned, "matters")
    welded = replace(model.lock("elbow"), loops=(Loop("brace", Spherical(), "upper", "fore"),))
    assert "idle_loop" in topics(welded, "matters")


# ---- the command


def run(capsys, *words):
    code = main(words)
    out, err = capsys.readouterr()
    return code, out, err


def test_a_fine_model_is_explained_with_exit_code_0(capsys, tmp_path):
    arm().build().save(tmp_path / "arm.toml")
    code, out, err = run(capsys, "check", str(tmp_path / "arm.toml"))
    assert (code, err) == (0, "")
    assert out == (
        "arm\n"
        "  2 bodies on 2 joints (2 revolute).\n"
        "  It stands on the world.\n"
        "  2 degrees of freedom; motors can drive 2 of them.\n"
        "  3 kg in all; the heaviest body is 'upper' with 2 kg.\n"
        "  Joints are up to 0.5 m from the world's origin at neutral coordinates.\n"
        "  No loops: all degrees of freedom are independent.\n"
        "\n"
        "No finding matters.\n"
    )


def test_what_matters_gives_exit_code_1_and_comes_before_advice(capsys, tmp_path):
    model = heavier(arm(lower=None, upper=None).build(), inertia=1e6)
    model.save(tmp_path / "arm.toml")
    code, out, _ = run(capsys, "check", str(tmp_path / "arm.toml"))
    assert code == 1
    assert out.index("This matters") < out.index("Are the inertias in kg mm²") < out.index("Worth a look")
    assert out.endswith("2 findings matter.\n")
    assert "\033" not in out


def test_what_cannot_be_read_gives_exit_code_2(capsys, tmp_path):
    (tmp_path / "x.urdf").write_text("<robot")
    code, out, err = run(capsys, "check", str(tmp_path / "x.urdf"))
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_as_json_it_says_the_same(capsys, tmp_path):
    heavier(arm().build(), inertia=1e6).save(tmp_path / "arm.toml")
    code, out, _ = run(capsys, "check", str(tmp_path / "arm.toml"), "--json")
    data = json.loads(out)
    assert (code, data["name"], data["fine"]) == (1, "arm", False)
    assert {"topic", "weight", "parts", "sentence", "advice"} == set(data["findings"][0])
    serious = [f for f in data["findings"] if f["weight"] == "matters"]
    assert [f["topic"] for f in serious] == ["inertia_units"] * 2
    assert serious[0]["parts"] == ["body 'upper' (arm.toml)"]


def test_colours_are_for_terminals():
    model = heavier(arm().build(), inertia=1e6)
    findings = room.findings(model, "zoo:x")
    plain, bright = room.report(model, findings), room.report(model, findings, colours=True)
    assert "\033[31mThis matters\033[0m" in bright
    for code in (*room.COLOURS.values(), room.PLAIN):
        bright = bright.replace(code, "")
    assert bright == plain


@pytest.mark.parametrize("name", zoo.names())
def test_every_mechanism_of_the_zoo_is_told(name):
    if name in ("chain", "tree", "star", "n_four_bar", "random_model", "pendulum"):
        model = getattr(zoo, name)(3)
    else:
        model = getattr(zoo, name)()
    text = room.report(model, room.findings(model, "zoo:x"))
    assert "{" not in text
    assert "nan" not in text


def test_every_topic_has_a_weight_and_is_found_by_something():
    source = "".join(
        p.read_text(encoding="utf-8")
        for p in (Path(sl.__file__).parent).rglob("*.py")
        if p.parent.name in ("examine", "loops") and p.name != "words.py"
    )
    for topic, words in WORDS.items():
        assert words.weight in WEIGHTS
        assert f'"{topic}"' in source, topic
    assert np.all([w.sentence.endswith((".", "}")) for w in WORDS.values()])


@pytest.mark.parametrize(("mass", "length"), [(10.0, 0.2), (5.0, 0.1), (0.02, 0.02), (2.0, 0.5)])
def test_a_thin_rod_is_not_suspect(mass, length):
    b = sl.Builder("arm").body("upper", mass, center=(length / 2, 0, 0), inertia=rod(mass, length))
    topics = {f.topic for f in examine(b.revolute("j", "world", "upper", "y").build())}
    assert not topics & {"heavy", "inertia_small", "inertia_large", "inertia_units"}


def test_a_site_far_away_is_no_fault():
    b = sl.Builder("arm").body("upper", 1.0, inertia=(1, 1, 1)).revolute("j", "world", "upper")
    model = b.frame("one", "upper", (1e100, 0, 0)).frame("two", "upper", (1e99, 0, 0)).build()
    assert examine(model)
    with pytest.raises(ModelError, match="at most 1e\\+100"):
        b.frame("three", "upper", (1e308, 0, 0)).build()
