"""root=: the folder from which includes and meshes may be read, and nothing outside it."""

import re

import pytest

import spanloop as sl
from spanloop.cli.main import main
from spanloop.errors import FileError, InputError
from spanloop.model.files.mesh_paths import resolve_mesh

BALL = '<geom size="0.1"/>'
ARM = f'<mujocoinclude><body name="arm"><joint name="j"/>{BALL}</body></mujocoinclude>'
MESH = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


@pytest.fixture
def tree(tmp_path):
    """parts/arm.xml and scenes/m.xml beside it, a secret outside both, and links that lead to it."""
    root = tmp_path / "robots"
    for name in ("parts", "scenes"):
        (root / name).mkdir(parents=True)
    (root / "parts" / "arm.xml").write_text(ARM)
    (tmp_path / "secret.xml").write_text(ARM)
    (root / "parts" / "link.xml").symlink_to(tmp_path / "secret.xml")
    (root / "outside").symlink_to(tmp_path)
    return root


def scene(tree, name):
    path = tree / "scenes" / "m.xml"
    path.write_text(f'<mujoco><worldbody><include file="{name}"/></worldbody></mujoco>')
    return path


def test_an_include_beside_the_folder_needs_root_and_the_refusal_names_it(tree):
    pytest.importorskip("mujoco")
    path = scene(tree, "../parts/arm.xml")
    with pytest.raises(FileError) as caught:
        sl.load(path)
    assert str(caught.value) == (
        "m.xml:1: <include> '../parts/arm.xml': refused, it leads out of the folder 'scenes'. "
        f"If you trust the file, load it with root={str(tree)!r}"
    )
    named = re.search("root='(.*)'", str(caught.value))[1]
    assert sl.load(path, root=named).nv == 1
    assert sl.load(path, root=str(tree / "scenes" / "..")).nv == 1
    assert sl.load(path, root=tree / "parts").nv == 1  # another folder than the file's will do


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("../../secret.xml", "it leads"),
        ("../parts/link.xml", "a symbolic link leads"),
        ("../outside/secret.xml", "a symbolic link leads"),
        ("/etc/passwd", "it leads"),
    ],
)
def test_root_is_left_neither_by_dots_nor_by_links(tree, name, how):
    pytest.importorskip("mujoco")
    with pytest.raises(FileError) as caught:
        sl.load(scene(tree, name), root=tree)
    begin = f"m.xml:1: <include> {name!r}: refused, {how} out of the folder 'scenes' and of root={str(tree)!r}. "
    assert str(caught.value).startswith(begin)


def test_what_an_included_file_names_is_searched_for_beside_it_too(tree):
    """MuJoCo searches from the main file first."""
    mujoco = pytest.importorskip("mujoco")
    (tree / "parts" / "m.obj").write_text(MESH)
    mesh = '<asset><mesh name="m" file="m.obj"/></asset>'
    body = '<body name="b"><joint/><geom type="mesh" mesh="m"/></body>'
    (tree / "parts" / "inner.xml").write_text(f"<mujocoinclude>{body}</mujocoinclude>")
    middle = f'<mujocoinclude>{mesh}<worldbody><include file="inner.xml"/></worldbody></mujocoinclude>'
    (tree / "parts" / "middle.xml").write_text(middle)
    path = tree / "m.xml"
    path.write_text('<mujoco><include file="parts/middle.xml"/></mujoco>')
    found = sl.load(path)
    assert found.mass == pytest.approx(mujoco.MjModel.from_xml_path(str(path)).body_mass.sum())
    assert found.body("b").where == "parts/inner.xml:1"
    assert found.body("b").geometry[0].path == str(tree / "parts" / "m.obj")


def test_root_must_be_a_folder(tree):
    path = scene(tree, "x.xml")
    with pytest.raises(InputError, match=r"^root is '.*gone'; there is no such folder$"):
        sl.load(path, root=tree / "gone")
    with pytest.raises(InputError, match=r"^root is a int; expected a folder"):
        sl.load(path, root=3)


def test_meshes_are_found_under_root(tree):
    (tree / "meshes").mkdir()
    (tree / "meshes" / "m.obj").write_text(MESH)
    here = tree / "scenes"
    for name in ("../meshes/m.obj", f"file://{tree}/meshes/m.obj", "package://meshes/m.obj", "model://meshes/m.obj"):
        path, note = resolve_mesh(name, here)
        assert path is None
        assert "root=" in note
        assert resolve_mesh(name, here, tree) == (tree / "meshes" / "m.obj", "")
    for name in ("package://outside/secret.xml", "package://meshes/../../secret.xml", "package://../secret.xml"):
        assert resolve_mesh(name, here, tree)[0] is None


def test_an_inertia_may_come_from_a_mesh_under_root(tree):
    pytest.importorskip("mujoco")
    (tree / "parts" / "m.obj").write_text(MESH)
    asset = '<mujoco><compiler meshdir="../parts"/><asset><mesh name="m" file="m.obj"/></asset>'
    body = '<worldbody><body><joint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    (tree / "scenes" / "m.xml").write_text(asset + body)
    with pytest.raises(FileError, match=r"load it with root='.*robots'\. Write an <inertial>$"):
        sl.load(tree / "scenes" / "m.xml")
    assert sl.load(tree / "scenes" / "m.xml", root=tree).mass == pytest.approx(1000.0 / 6.0)


def test_the_command_line_takes_root_and_repair(tree, capsys):
    pytest.importorskip("mujoco")
    path = scene(tree, "../parts/arm.xml")
    assert main(["info", str(path)]) != 0
    assert main(["info", str(path), "--root", str(tree), "--repair"]) == 0
    assert "arm" in capsys.readouterr().out
    assert main(["info", "zoo:puma", "--root", str(tree)]) != 0
    assert "--root applies to files only" in capsys.readouterr().err
