"""SDF: models included from other files, and old versions, against the same model in one file."""

import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import FileError, UnsupportedError
from spanloop.model.files.sdf.reader import loads

INERTIAL = "<inertial><mass>2</mass><inertia><ixx>1</ixx><iyy>1.1</iyy><izz>1.2</izz></inertia></inertial>"
ARM = (
    "<pose>0 0 1 0.3 0 0</pose>"
    f"<link name='a'><pose>0 0.1 0 0 0.4 0</pose>{INERTIAL}"
    "<visual name='v'><geometry><mesh><uri>meshes/m.obj</uri></mesh></geometry></visual></link>"
    f"<link name='b'><pose>0.5 0 0 0 0 0.7</pose>{INERTIAL}</link>"
    "<joint name='j' type='revolute'><parent>a</parent><child>b</child><axis><xyz>1 0 0</xyz></axis></joint>"
    "<joint name='k' type='revolute'><parent>world</parent><child>a</child><axis><xyz>0 1 0</xyz></axis></joint>"
)


def arm(version: str, inside: str = ARM) -> str:
    return f"<sdf version='{version}'><model name='arm'>{inside}</model></sdf>"


def axes(model) -> list:
    return [np.array(j.placement.rotation) @ j.kind.axis for j in model.joints if j.kind.nv]


@pytest.fixture
def models(tmp_path):
    """robots/arm, a model with its config, and robots/worlds, where files include it."""
    folder = tmp_path / "robots" / "arm"
    (folder / "meshes").mkdir(parents=True)
    (folder / "meshes" / "m.obj").write_text("v 0 0 0\n")
    (folder / "model.config").write_text(
        "<model><name>arm</name><sdf version='1.4'>old.sdf</sdf><sdf version='1.6'>new.sdf</sdf></model>"
    )
    (folder / "old.sdf").write_text(arm("1.4"))
    (folder / "new.sdf").write_text(arm("1.6"))
    (tmp_path / "robots" / "worlds").mkdir()
    return tmp_path / "robots"


def world(models, *includes: str, version: str = "1.6") -> sl.Model:
    path = models / "worlds" / "w.world"
    path.write_text(f"<sdf version='{version}'><world name='w'>{''.join(includes)}</world></sdf>")
    return sl.load(path)


def test_an_included_model_is_the_model_itself(models):
    alone = sl.load(models / "arm" / "new.sdf")
    found = world(models, "<include><uri>model://arm</uri></include><include><uri>model://sun</uri></include>")
    assert (found.joints, [b.inertia for b in found.bodies]) == (alone.joints, [b.inertia for b in alone.bodies])
    assert found.body("a").geometry[0].path == str(models / "arm" / "meshes" / "m.obj")
    assert any(n.startswith("<include> left out, it has no moving parts: model://sun") for n in found.notes)


def test_an_include_gives_another_name_pose_and_rest(models):
    given = "<include><uri>model://arm</uri><name>{}</name><pose>{} 0 0 0 0 0</pose>{}</include>"
    found = world(models, given.format("left", 1, ""), given.format("right", 2, "<static>true</static>"))
    assert found.joint("left::k").placement.position[0] == 1.0
    assert found.joint("right::a_static").kind.name == "fixed"
    assert found.nv == 2


def test_every_file_keeps_the_axes_of_its_version(models):
    """Before 1.5 axes are in the model's frame, then in the joint's, whatever the version of the file around."""
    (models / "arm" / "model.config").write_text("<model><sdf version='1.4'>old.sdf</sdf></model>")
    include = "<include><uri>model://arm</uri></include>"
    for version in ("1.4", "1.6"):
        found = world(models, include, version=version)
        np.testing.assert_allclose(axes(found), axes(sl.load(models / "arm" / "old.sdf")), atol=1e-15)
    assert not np.allclose(axes(found), axes(sl.load(models / "arm" / "new.sdf")))


def test_version_1_3_is_read_as_1_4():
    old, new = (loads(arm(v)) for v in ("1.3", "1.4"))
    assert (old.joints, old.bodies) == (new.joints, new.bodies)


def test_an_include_in_a_folder_elsewhere_needs_root(models, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    path = other / "w.sdf"
    path.write_text("<sdf version='1.6'><world name='w'><include><uri>model://arm</uri></include></world></sdf>")
    with pytest.raises(
        FileError, match=r"^w\.sdf:1: <include> 'model://arm/model\.sdf': no package 'arm' .* root= may"
    ):
        sl.load(path)
    assert sl.load(path, root=models).nv == 2


@pytest.mark.parametrize(
    ("include", "error", "sentence"),
    [
        ("<include/>", FileError, "w.world:1: <include> has no <uri>; expected one"),
        ("<include><uri>w.world</uri></include>", FileError, "w.world:1: <include> of 'w.world' leads back to itself"),
        ("<include><uri>gone.sdf</uri></include>", FileError, "w.world:1: <include> 'gone.sdf': there is no such file"),
        (
            "<include merge='true'><uri>model://arm</uri></include>",
            UnsupportedError,
            "w.world:1: <include merge='true'>",
        ),
    ],
)
def test_a_bad_include_gives_its_sentence(models, include, error, sentence):
    with pytest.raises(error) as caught:
        world(models, f"<model name='m'><link name='l'/>{include}</model>")
    assert str(caught.value).startswith(sentence)


def test_includes_that_multiply_are_refused(models):
    for k in range(8):
        twice = f"<include><uri>w{k + 1}.sdf</uri><name>x</name></include><include><uri>w{k + 1}.sdf</uri></include>"
        (models / "worlds" / f"w{k}.sdf").write_text(arm("1.6", f"<link name='l'/>{twice}"))
    (models / "worlds" / "w8.sdf").write_text(arm("1.6"))
    with pytest.raises(FileError, match="more than 100 files are included"):
        sl.load(models / "worlds" / "w0.sdf")


@pytest.mark.parametrize("all_links", [True, False])
def test_gravity_is_off_where_every_link_has_it_off(all_links):
    text = arm("1.6").replace("<link name='a'>", "<link name='a'><gravity>false</gravity>")
    if all_links:
        text = text.replace("<link name='b'>", "<link name='b'><gravity>0</gravity>")
    model = loads(text)
    assert model.gravity == ((0.0, 0.0, 0.0) if all_links else (0.0, 0.0, -9.81))
    assert any(n.startswith("left out, though it acts") for n in model.notes) != all_links
