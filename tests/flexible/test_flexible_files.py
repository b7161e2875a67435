"""Files with flexible bodies: TOML holds the recipe of a beam bit for bit, other formats write the body rigid."""

from __future__ import annotations

import random
import re

import pytest
from flexible_arms import arm, boom

import spanloop as sl
from spanloop.errors import FileError, SpanloopError, UnsupportedError
from spanloop.model.files.toml.reader import loads
from spanloop.model.files.toml.writer import dumps

TAPERED = {
    "E": 2e11, "density": 7850.0, "theory": "timoshenko", "elements": 12, "basis": "cantilever",
    "section": [sl.flexible.tube(0.05 - 0.01 * k, 0.04 - 0.01 * k) for k in range(3)],
}  # fmt: skip
BEAMS = {
    "plain": lambda: boom(),
    "pieces": lambda: boom(pieces=3, damping=0.02),
    "tapered": lambda: sl.flexible.beam(3.0, modes={"y": 2, "extension": 1}, damping=(0.01, 0.02, 0.03), **TAPERED),
    "full": lambda: boom(basis="full", elements=3, modes={"y": 1, "torsion": 1}),
    "odd names": lambda: boom(nodes={"left side": 0.25, "é-2": 0.5}),
}


@pytest.mark.parametrize("name", BEAMS)
def test_a_saved_model_is_the_same_bit_for_bit(name, tmp_path):
    model = arm(BEAMS[name]()).build()
    assert not model.save(tmp_path / "arm.toml").lost
    again = sl.load(tmp_path / "arm.toml")
    assert again == model
    assert dumps(again) == dumps(model)


@pytest.mark.slow
@pytest.mark.parametrize("pieces", [1, 2])
def test_changed_modes_and_material_survive(pieces):
    model = arm(boom(pieces=pieces)).build()
    joint = "boom.modes" if pieces == 1 else "boom.2.modes"
    stiffness = tuple(1.5 * k for k in model.joint(joint).stiffness)
    mass = "boom" if pieces == 1 else "boom.2"
    for changed in (
        model.with_joint(joint, stiffness=stiffness, damping=0.25),
        model.with_parameters({f"{joint}.stiffness.0": 123.0}),
        model.with_material("boom", E=2.1e11, density=7850.0, damping=0.05),
        model.with_parameters(model.with_material("boom", density=5000.0).parameters()),
        model.rename({"boom": "mast"}),
        model.fuse(),
        model.remove("boom.mid", kind="body"),
        sl.Builder("base").build().attach(model, prefix="a_").attach(model, prefix="b_"),
        model.rigid(),
    ):
        assert changed != model
        assert loads(dumps(changed)) == changed
    assert loads(dumps(model)).body(mass).inertia == model.body(mass).inertia


def test_bodies_of_one_beam_share_its_recipe():
    model = arm().build()
    both = sl.Builder("base").build().attach(model, prefix="a_").attach(model, prefix="b_")
    assert dumps(both).count("[[beam]]") == 1


@pytest.mark.parametrize("extension", ["urdf", "sdf", "xml", "csv"])
def test_other_formats_refuse_and_write_the_body_rigid_if_forced(extension, tmp_path):
    model, file = arm().build(), tmp_path / f"arm.{extension}"
    with pytest.raises(UnsupportedError, match=r"cannot hold that bodies are flexible: 'boom'"):
        model.save(file)
    assert not file.exists()
    written = model.save(file, force=True)
    assert written.lost[0] == "that bodies are flexible: 'boom'"
    assert written.text == model.rigid().save(file, force=True).text
    if extension not in ("xml", "csv") or (extension == "xml" and _has_mujoco()):  # csv: has a frame "tool" of its own
        again = sl.load(file)
        assert again.nv == 2
        assert again.mass == pytest.approx(model.mass, rel=1e-9)


def _has_mujoco() -> bool:
    import importlib.util

    return importlib.util.find_spec("mujoco") is not None


# ---- damaged files


def changed(old: str, new: str) -> str:
    text = dumps(arm().build())
    assert old in text, old
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('beam = "boom"', 'beam = "bom"', r"x.toml: joint 'boom.modes': there is no beam 'bom'; did you mean 'boom'\?"),
        ('beam = "boom"\n', "", r"x.toml: joint 'boom.modes': has no beam; expected beam = ..."),
        ('beam = "boom"', 'beam = "boom"\npiece = 2', r"x.toml: joint 'boom.modes': piece is 2; beam 'boom' has 1"),
        (
            'node = "tip"',
            'node = "tpi"',
            r"joint 'boom.tip': beam 'boom' has no node 'tpi' on piece 1; did you mean 'tip'",
        ),
        ("length = 1.0", "length = -1.0", r"x.toml: beam 'boom': length is -1 m; must be > 0"),
        ("length = 1.0", 'length = "1"', r"x.toml: beam 'boom': length is '1'; expected a number"),
        ("density = 2700.0\n", "", r"x.toml: beam 'boom': has no density"),
        ("elements = 30", "elements = 30.5", r"x.toml: beam 'boom': elements is 30.5; expected a whole number"),
        (
            "elements = 30",
            "elements = 3000000",
            r"beam 'boom': elements is 3000000; expected a whole number from 1 to 200",
        ),
        ("elements = 30", "element = 30", r"beam 'boom': has no elements"),
        ("pieces = 1", "pieces = 1\ncolour = 3", r"beam 'boom': the key 'colour' is not known"),
        ('theory = "euler-bernoulli"', 'theory = "euler"', r"beam 'boom': theory is 'euler'; .*euler-bernoulli"),
        ("y = 0", "x = 0", r"beam 'boom': modes names the direction 'x'"),
        ("y = 0", "y = 2.5", r"beam 'boom': modes: y is 2.5; expected a whole number"),
        ("mid = 0.4", "mid = 4.0", r"beam 'boom': node 'mid' is at 4 m; must be above 0"),
        ("area = 0.0002", "area = 0.0", r"beam 'boom': section: area is 0 m²; must be > 0"),
        (
            "outline = [0.02, 0.01]",
            "outline = [0.02]",
            r"beam 'boom': section: outline is \[0.02\]; expected 2 numbers",
        ),
        ("[beam.modes]", "[beam.mode]", r"beam 'boom': the key 'mode' is not known"),
        (
            '[[body]]\nname = "boom"',
            '[[body]]\nname = "boom"\nmass = 0.9',
            r"body 'boom' \(x.toml\): it is flexible, and its mass, centre and inertia belong",
        ),
        ('kind = "modal"', 'kind = "fixed"', r"x.toml: joint 'boom.modes': the key 'beam' is not known"),
        ('kind = "node"', 'kind = "nodes"', r"x.toml: joint 'boom.mid': kind is 'nodes'"),
        (
            'parent = "boom"',
            'parent = "hub"',
            r"joint 'boom.mid' \(x.toml\): a node rides on the modes of a flexible body",
        ),
    ],
)
def test_a_damaged_recipe_is_refused_with_its_place(old, new, said):
    with pytest.raises(SpanloopError, match=said):
        loads(changed(old, new), "x.toml")


def test_text_that_is_no_toml_is_refused_with_file_and_line():
    with pytest.raises(FileError, match=r"^x.toml:7: not readable as TOML"):
        loads(changed("E = 70000000000.0", "E = 7e10e"), "x.toml")


SEEDS = 150


@pytest.mark.slow
def test_mutated_files_are_refused_or_another_model():
    """Numbers, words and lines of the text changed at random: never a crash, never a change that is lost."""
    whole = arm(boom(elements=4, nodes=None, modes={"y": 0})).build()
    text, outcomes = dumps(whole), {"loaded": 0, "refused": 0}
    for seed in range(SEEDS):
        mutant, shows = _mutated(text, random.Random(seed))
        try:
            model = loads(mutant, "x.toml")
        except SpanloopError as error:
            said, model = str(error), None
        if model is None:
            assert "x.toml" in said, f"seed {seed}: no file in {said}"
            outcomes["refused"] += 1
            continue
        outcomes["loaded"] += 1
        assert not shows or model != whole, f"seed {seed}: a change was lost"
    assert min(outcomes.values()) > SEEDS // 10, outcomes


def _mutated(text: str, rng: random.Random) -> tuple[str, bool]:
    """The text with a number changed (a model that still loads is another one), or a line lost or doubled."""
    lines = text.splitlines()
    at = rng.randrange(2, len(lines))
    number = re.search(r"(?<= )-?\d[\d.e+-]*|(?<=\[)-?\d[\d.e+-]*", lines[at])
    if number and rng.random() < 0.7:
        new = rng.choice(["0.0", "-1.0", "1e300", "nan", "inf", "3", "true", '"x"', "[]", str(float(number[0]) * 1.25)])
        same = new == number[0] or (new == "0.0" and not float(number[0]))
        lines[at] = lines[at][: number.start()] + new + lines[at][number.end() :]
        return "\n".join(lines), not same
    lines[at : at + 1] = rng.choice(([], [lines[at], lines[at]]))
    return "\n".join(lines), False


def test_a_recipe_that_is_edited_in_the_file_is_another_beam():
    """The file leaves out what the recipe gives, so that the recipe is what counts."""
    text = dumps(arm(boom()).build())
    assert "stiffness" not in text
    for old, new in ((f"E = {boom().E!r}", "E = 2.1e11"), (f"density = {boom().density!r}", "density = 7850.0")):
        assert old in text
        text = text.replace(old, new)
    text = re.sub(r"(?m)^G = .*$", f"G = {boom().G / boom().E * 2.1e11!r}", text)
    changed, same = loads(text), arm(boom(E=2.1e11, density=7850.0)).build()
    assert changed.mass == pytest.approx(same.mass, rel=1e-12)
    assert changed.joint("boom.modes").stiffness == pytest.approx(same.joint("boom.modes").stiffness, rel=1e-9)
    assert changed.joint("boom.modes").damping == pytest.approx(same.joint("boom.modes").damping, rel=1e-9)


def test_values_that_are_not_those_of_the_recipe_are_in_the_file():
    model = arm(boom()).build().with_joint("boom.modes", damping=0.25)
    text = dumps(model)
    assert "0.25" in text
    assert loads(text) == model
