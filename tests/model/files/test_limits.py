"""Small files that would take minutes or gigabytes are refused before they do, each in a sentence."""

from __future__ import annotations

import re

import pytest
from work import lines_run

import spanloop as sl
from spanloop.errors import FileError, nearest
from spanloop.model.files.dh import reader as dh
from spanloop.model.files.sdf import reader as sdf
from spanloop.model.files.toml import reader as toml
from spanloop.model.files.urdf import reader as urdf

HEAD = 'format = 1\nname = "x"\n'
BODY = '<body name="b"><joint name="j"/><geom size="1"/></body>'


def mujoco(world: str = BODY, rest: str = "") -> str:
    return f"<mujoco><worldbody>{world}</worldbody>{rest}</mujoco>"


REFUSED = {
    "a header of many parts": (toml, HEAD + "[" + ".".join("a" * 100_000) + "]", "x:3: a key of five parts or more"),
    "a key of many parts": (toml, HEAD + ".".join("a" * 100_000) + " = 1", "x:3: a key of five parts or more"),
    "quoted parts": (toml, HEAD + '"a" . ' * 100_000 + "b = 1", "x:3: a key of five parts or more"),
    "parts in an inline table": (
        toml,
        HEAD + "y = {" + ".".join("a" * 50_000) + " = 1}",
        "x:3: a key of five parts or more",
    ),
    "lists in lists": (toml, HEAD + "y = " + "[" * 100_000, "x: lists are nested too deep"),
    "tables in tables": (toml, HEAD + "y = " + "{a = " * 100_000, "x: lists are nested too deep"),
    "a million values": (toml, HEAD + "y = [" + "[]," * 600_000 + "]", "some 1200006 values"),
    "a number of many digits": (toml, HEAD + "y = " + "1" * 100_000, "x:3: a number with a thousand digits"),
    "a long TOML": (toml, HEAD + "#" * 10_000_001, "x: has 10.0 MB; a mechanism in TOML may have 10 MB at most"),
    "many tables": (toml, HEAD + '[[frame]]\nname="a"\n' * 40_001, "x: has 40001 bodies, joints and other parts"),
    "a tag of many attributes": (
        urdf,
        "<robot><link " + " ".join(f'a{k}="1"' for k in range(300_000)) + "/></robot>",
        "x:1: a tag or comment of more than 2097152 characters",
    ),
    "a long attribute": (urdf, f'<robot name="{"a" * 1_500_000}"/>', "x:1: <robot> name has 1500000 characters"),
    "many links": (urdf, "<robot>" + "<link/>" * 40_001 + "</robot>", "x: has 40001 bodies, joints and other parts"),
    "a long text": (sdf, f"<sdf>{'1 ' * 1_000_000}</sdf>", "x:1: a text of more than 1048576 characters"),
    "a long table": (dh, "#" * 1_000_001, "x: has 1000001 characters; a table of joints may have 1000000 at most"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_no_mechanism_needs_is_refused_at_once(case):
    reader, text, sentence = REFUSED[case]

    def read():
        with pytest.raises(FileError, match=re.escape(sentence)) as refusal:
            reader.loads(text, "x")
        assert len(str(refusal.value)) < 300

    assert lines_run(read) < 20_000_000  # "many tables" are parsed first: 8.6 million


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (mujoco(f'<replicate count="2001">{BODY}</replicate>'), "<replicate> makes 2001 copies"),
        (mujoco(f'<replicate count="2000">{BODY * 10}</replicate>'), "more than 20000 elements, copies included"),
        (mujoco("<site/>" * 20_001), "more than 20000 elements"),
        (mujoco(rest='<sensor><user objtype="body" objname="b" dim="1e9"/></sensor>'), "<user> dim is '1e9'"),
        (mujoco(rest='<actuator><general joint="j" actdim="1000000"/></actuator>'), "<general> actdim is '1000000'"),
        (mujoco(rest='<actuator><motor joint="j" nsample="9999999"/></actuator>'), "<motor> nsample is '9999999'"),
    ],
    ids=["copies", "copies of many", "elements", "dim", "actdim", "nsample"],
)
def test_mujoco_is_not_asked_for_gigabytes(text, sentence):
    pytest.importorskip("mujoco")
    from spanloop.model.files.mjcf import reader as mjcf

    with pytest.raises(FileError, match=re.escape(sentence)):
        mjcf.loads(text, "x")


def test_dots_in_texts_are_no_parts_of_keys():
    name = "v1.2.3.4.5.6.7.8"
    text = f'{HEAD}notes = ["a.b.c.d.e.f.g", "{name}"]\n[[body]]\nname = "{name}"\n'
    text += f'[[joint]]\nname = "j"\nkind = "fixed"\nparent = "world"\nchild = "{name}"\n'
    assert toml.loads(text).bodies[0].name == name


@pytest.mark.slow
def test_frames_attached_in_a_long_chain_are_read_in_one_pass():
    frames = "".join(f'<frame name="f{k}" attached_to="{f"f{k + 1}" if k < 4999 else "l"}"/>' for k in range(5000))
    models = []
    text = f'<sdf version="1.7"><model name="m"><link name="l"/>{frames}</model></sdf>'
    assert lines_run(lambda: models.append(sdf.loads(text))) < 10_000_000
    assert len(models[0].frames) == 5000


def test_the_nearest_of_long_names_is_not_searched_for():
    known = [f"{k}" + "ab" * 20_000 for k in range(300)]
    assert lines_run(lambda: nearest("abb" * 10_000, known)) < 10_000
    assert nearest("abb" * 10_000, known).startswith("there are '0abab")


@pytest.mark.slow
def test_many_frames_at_one_place_are_not_compared_pair_by_pair():
    from spanloop.model.examine import examine

    b = sl.Builder("many").body("a", 1.0, inertia=(1, 1, 1)).body("b", 1.0, inertia=(1, 1, 1)).body("c", 1.0)
    b.revolute("i", "world", "a").revolute("j", "a", "b", "x").revolute("k", "b", "c", "y")
    for k in range(2000):
        b.frame(f"f{k}", "ac"[k % 2])
    model = b.build()
    assert lines_run(lambda: examine(model)) < 3_000_000  # 630 a frame; pairs are two million, several lines each
