"""What users read when files do not fit: the place, what was found, what was expected, what to try."""

from __future__ import annotations

import finite_element_writers as write
import numpy as np
import pytest

import spanloop as sl
from spanloop.errors import FileError, InputError, SpanloopWarning, UnsupportedError

LABELS = np.array([1, 2])
POSITIONS = np.array([[0.0, 0.0, 0.0], [1.0, 0.2, 0.1]])
KEYS = np.array([(n, c) for n in LABELS for c in range(1, 7)])
STIFFNESS = np.eye(12) * 3.0
MASS = np.eye(12) * 2.0


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with a body in some formats, which is the working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "body.op4").write_text(write.op4_text({"KAA": STIFFNESS, "MAA": MASS, "KGG": STIFFNESS}))
    (tmp_path / "two.op4").write_text(write.op4_text({"KAA": STIFFNESS, "MAA": MASS}))
    (tmp_path / "body.bdf").write_text(write.grids(LABELS, POSITIONS, "small"))
    (tmp_path / "k.sti").write_text(write.coordinates(STIFFNESS))
    (tmp_path / "k.mas").write_text(write.coordinates(MASS))
    return tmp_path


def refused(error: type[Exception], *words: str, **arguments) -> str:
    with pytest.raises(error) as caught:
        sl.flexible.load(**arguments)
    said = str(caught.value)
    for word in words:
        assert word in said, said
    return said


def test_names_of_matrices_are_offered(files):
    refused(
        FileError,
        "2 matrices can be the stiffness",
        "'KAA', 'MAA', 'KGG'",
        "stiffness_name=",
        path="body.op4",
        nodes="body.bdf",
    )
    refused(InputError, "no matrix 'KBB'", "'KAA'", path="body.op4", nodes="body.bdf", stiffness_name="KBB")
    body = sl.flexible.load("body.op4", nodes="body.bdf", stiffness_name="kgg")
    assert (body.stiffness.toarray() == STIFFNESS).all()


def test_what_is_missing_is_asked_for(files):
    refused(InputError, "load needs mass", nodes="body.bdf")
    refused(InputError, "load needs nodes", ".bdf", path="two.op4")
    refused(FileError, "one matrix, without a name", "Beside it is k.mas", path="k.sti", nodes="body.bdf")
    refused(InputError, "path, mass and stiffness", path="two.op4", mass="k.mas", stiffness="k.sti", nodes="body.bdf")
    refused(FileError, "there is no such file", "'two.op4'", path="tow.op4", nodes="body.bdf")
    refused(InputError, "'.op5'", "did you mean '.op4'?", path=_renamed(files, "a.op5"), nodes="body.bdf")
    refused(InputError, "path is a int", path=3, nodes="body.bdf")


def _renamed(folder, name):
    (folder / name).write_text("x\n")
    return name


def test_degrees_of_freedom_that_do_not_fit_the_nodes(files):
    (files / "solid.op4").write_text(write.op4_text({"K": np.eye(6), "M": np.eye(6)}))
    said = refused(FileError, "6 rows", "2 nodes have 12", path="solid.op4", nodes="body.bdf")
    assert 'dofs=, such as "123"' in said
    assert sl.flexible.load("solid.op4", nodes="body.bdf", dofs="123").dofs[-1].tolist() == [1, 2]
    refused(InputError, "component 2 to 7", path="solid.op4", nodes="body.bdf", dofs=[(1, c) for c in range(2, 8)])
    refused(FileError, "node 9 of the matrices", path="solid.op4", nodes="body.bdf", dofs=[(9, c) for c in range(1, 7)])
    twice = [(1, c) for c in (1, 1, 2, 3, 4, 5)]
    refused(InputError, "component 1 of node 1 twice", path="solid.op4", nodes="body.bdf", dofs=twice)
    refused(InputError, "dofs is '321'", "ascending order, '123'", path="solid.op4", nodes="body.bdf", dofs="321")
    (files / "p.pch").write_text(write.dmig({"K": STIFFNESS, "M": MASS}, KEYS))
    refused(InputError, "has the nodes of its rows", path="p.pch", nodes="body.bdf", dofs="123456")
    refused(InputError, "p.pch has the nodes of its rows, and k.sti", mass="p.pch", stiffness="k.sti", nodes="body.bdf")


def test_components_counted_from_zero_are_refused(files):
    said = "node 1 has component 0, a coordinate without a place, beside components 1 ... 6. Are components counted"
    refused(FileError, said, mass="k.mas", stiffness="k.sti", nodes="body.bdf", dofs=KEYS - [0, 1])
    (files / "k.pch").write_text(write.dmig({"K": STIFFNESS, "M": MASS}, KEYS - [0, 1]))
    refused(FileError, "k.pch: node 1 has component 0", path="k.pch", nodes="body.bdf")


def test_matrices_that_are_not_symmetric(files):
    wrong = STIFFNESS.copy()
    wrong[0, 1], wrong[1, 0] = 1.0, 1.1
    (files / "w.op4").write_text(write.op4_text({"K": wrong, "M": MASS}))
    refused(FileError, "w.op4: K: entry (2, 1) = 1.1 differs from its mirror image, 1", path="w.op4", nodes="body.bdf")
    (files / "k.sti").write_text(write.coordinates(STIFFNESS) + "2 2 5.0\n")
    refused(
        FileError,
        "k.sti:13: entry (2, 2) = 5 is there twice, first in line 2",
        mass="k.mas",
        stiffness="k.sti",
        nodes="body.bdf",
    )


def test_a_triangle_of_a_whole_matrix_is_named_as_that(files):
    arrays = {"positions": POSITIONS, "mass": np.triu(MASS + 0.1), "stiffness": STIFFNESS}
    np.savez(files / "half.npz", **arrays)
    refused(FileError, "has no mirror image", "expected a symmetric matrix, both of its triangles", path="half.npz")


def test_options_of_matrix_input_are_followed_or_refused(files):
    keys = KEYS[:2]
    (files / "k.mtx").write_text(write.abaqus_labelled(np.array([[2.0, 1.0], [1.0, 2.0]]), keys))
    entries = (files / "k.mtx").read_text()
    for head, said in (
        ("*MATRIX INPUT, NAME=M, TYPE=UNSYMMETRIC\n", "has no mirror image; expected a symmetric matrix, both of its"),
        ("*MATRIX INPUT, NAME=M, SCALE FACTOR=two\n", "m.mtx:1: SCALE FACTOR of *MATRIX INPUT is 'TWO'"),
        ("*MATRIX INPUT, NAME=M, INPUT=a.mtx\n", "m.mtx:1: INPUT=A.MTX of *MATRIX INPUT is not supported"),
        (f"*MATRIX INPUT, NAME=K\n{entries}*MATRIX INPUT, NAME=M\n", "m.mtx:7: a second *MATRIX INPUT"),
    ):
        (files / "m.mtx").write_text(head + entries)
        refused(FileError, said, mass="m.mtx", stiffness="k.mtx", nodes="body.bdf")


def test_one_matrix_is_not_mass_and_stiffness(files):
    same = {"path": "two.op4", "nodes": "body.bdf", "mass_name": "KAA", "stiffness_name": "KAA"}
    refused(InputError, "matrix 'KAA' would be the mass and the stiffness", **same)
    refused(InputError, "would be the mass and the stiffness", mass="k.sti", stiffness="k.sti", nodes="body.bdf")


def test_a_matrix_that_is_the_other_one_by_its_name_is_refused(files):
    (files / "k.op4").write_text(write.op4_text({"KGG": STIFFNESS}))
    (files / "m.op4").write_text(write.op4_text({"MGG": MASS}))
    said = "k.op4: it has 'KGG' alone, by its name the stiffness, not the mass. If not, say mass_name="
    refused(FileError, said, mass="k.op4", stiffness="m.op4", nodes="body.bdf")
    names = {"mass_name": "KGG", "stiffness_name": "MGG"}
    assert (
        sl.flexible.load(mass="k.op4", stiffness="m.op4", nodes="body.bdf", **names).mass.toarray() == STIFFNESS
    ).all()


def test_an_npz_with_a_matrix_dense_and_sparse_is_refused(files):
    some = {"mass": MASS, "stiffness": STIFFNESS, "positions": POSITIONS}
    np.savez(files / "two.npz", **some, mass_row=[0], mass_column=[0], mass_value=[3.0])
    refused(FileError, "two.npz: it has mass, and parts of a sparse mass; expected one of both", path="two.npz")


def test_numbers_of_nodes_in_a_dictionary_are_whole(files):
    for second in (1.7, 2.5, "1"):
        nodes = {1: (0, 0, 0), second: (1, 0, 0)}
        refused(InputError, "keys are not whole numbers, each once", path="two.op4", nodes=nodes)


def test_a_complex_matrix_is_named_as_that(files):
    text = write.dmig({"K": STIFFNESS, "MAAX": MASS}, KEYS)
    header = next(line for line in text.splitlines() if "MAAX" in line)
    (files / "c.pch").write_text(text.replace(header, f"{header[:32]}{4:8d}{header[40:]}", 1))
    refused(FileError, "matrix MAAX cannot be the mass: it is complex", path="c.pch", nodes="body.bdf")


def test_other_matrices_of_a_file_need_not_be_symmetric(files):
    (files / "b.op4").write_text(write.op4_text({"BGG": np.triu(np.ones((12, 12))) + 1.0, "K": STIFFNESS, "M": MASS}))
    assert (sl.flexible.load("b.op4", nodes="body.bdf").mass.toarray() == MASS).all()
    refused(
        FileError,
        "BGG",
        "differs from its mirror image",
        path="b.op4",
        nodes="body.bdf",
        mass_name="K",
        stiffness_name="BGG",
    )


def test_numbers_that_fortran_reads_as_others_than_printed_are_refused(files):
    plain = write.harwell_boeing(STIFFNESS)
    (files / "m.rsa").write_text(write.harwell_boeing(MASS))
    for form, number, said in (
        ("(2P,3F26.8) ", "300.00000000", "k.rsa:9: '300.00000000' is without an exponent"),
        ("(3F26.4)    ", "30000", "k.rsa:9: '30000' is without a decimal point"),
        ("(1P,3E26.16)", "3E0", "k.rsa:9: '3E0' is without a decimal point"),
    ):
        text = plain.replace("(1P,3E26.16)", form).replace(f"{3.0:26.16E}", f"{number:>26}")
        (files / "k.rsa").write_text(text)
        refused(FileError, said, mass="m.rsa", stiffness="k.rsa", nodes="body.bdf")


def test_numbers_of_a_format_without_exponent_are_read(files):
    (files / "m.rsa").write_text(write.harwell_boeing(MASS))
    text = write.harwell_boeing(STIFFNESS).replace("(1P,3E26.16)", "(3F26.8)    ")
    (files / "k.rsa").write_text(text.replace(f"{3.0:26.16E}", f"{3.0:26.8f}"))
    body = sl.flexible.load(mass="m.rsa", stiffness="k.rsa", nodes="body.bdf")
    assert (body.stiffness.toarray() == STIFFNESS).all()


def test_coordinate_systems_that_are_not_rectangular(files):
    (files / "c.bdf").write_text("CORD2C,5,,0.,0.,0.,0.,0.,1.\n,1.,0.,0.\nGRID,1,5,1.,90.,0.\nGRID,2,,1.,0.,0.\n")
    refused(FileError, "c.bdf:1: CORD2C 5 is not supported, and line 3 uses it", path="two.op4", nodes="c.bdf")
    (files / "c.bdf").write_text("GRID,1,5,1.,90.,0.\nGRID,2,,1.,0.,0.\n")
    refused(FileError, "c.bdf:1: coordinate system 5 is not in the file", path="two.op4", nodes="c.bdf")
    (files / "c.bdf").write_text("INCLUDE 'mesh.bdf'\n")
    refused(FileError, "c.bdf:1: INCLUDE is not followed", path="two.op4", nodes="c.bdf")


def test_input_files_that_move_nodes_are_refused(files):
    text = write.input_nodes(LABELS, POSITIONS)
    for more, said in (
        ("*IMPERFECTION, FILE=job, STEP=1\n1, 0.1\n", "*IMPERFECTION moves nodes"),
        ("*  SYSTEM\n0, 0, 1\n", "*SYSTEM is not supported"),
        ("*NODE, NSET=B,\nSYSTEM=C\n9, 1., 90.\n", "*NODE with SYSTEM=C is not supported"),
    ):
        (files / "body.inp").write_text(text + more)
        refused(FileError, said, mass="k.mas", stiffness="k.sti", nodes="body.inp")


def test_repeated_cards_are_refused(files):
    (files / "body.bdf").write_text("GRID,1,,0.,0.,0.\n=,*1,,*10.,==\n=8\n")
    refused(FileError, "body.bdf:2: = repeats GRID of line 1, which is not supported", path="two.op4", nodes="body.bdf")
    (files / "body.bdf").write_text("CBAR,1,1,1,2\n=,*1,,*1,*1\n" + write.grids(LABELS, POSITIONS, "small"))
    assert (sl.flexible.load("two.op4", nodes="body.bdf").mass.toarray() == MASS).all()


def test_modal_data_is_read_by_its_own_function(files):
    (files / "a.sid").write_text("part\n")
    refused(UnsupportedError, "sl.flexible.load_modal", path="a.sid", nodes="body.bdf")


def test_a_folder_and_a_device_are_refused(files):
    refused(FileError, "is a folder", path=".", nodes="body.bdf")
    refused(FileError, "is a device or pipe", path="/dev/zero", nodes="body.bdf")


def test_an_npz_with_a_size_that_it_does_not_have(files):
    np.savez(files / "a.npz", mass=MASS, stiffness=STIFFNESS, positions=POSITIONS[:1])
    refused(FileError, "a.npz: mass has shape (12, 12); expected (6, 6)", path="a.npz")
    np.savez(files / "a.npz", mass=MASS, stifness=STIFFNESS, positions=POSITIONS)
    refused(FileError, "'stifness', which is not known; did you mean 'stiffness'?", path="a.npz")


# ---- units


def test_units_convert_translations_and_rotations_alike(files):
    """In millimetres, tonnes and seconds: one tonne and a moment of 1 t mm² are 1000 kg and 1e-3 kg m²."""
    with pytest.warns(SpanloopWarning, match=r'4e\+03 kg in a box of 0.001 x 0.0002 x 0.0001 m.*units="m kg s"'):
        body = sl.flexible.load("two.op4", nodes="body.bdf", units="mm t s")
    np.testing.assert_allclose(body.positions, POSITIONS * 1e-3, atol=1e-18)
    np.testing.assert_allclose(np.diag(body.mass.toarray()), np.tile([2e3] * 3 + [2e-3] * 3, 2))
    np.testing.assert_allclose(np.diag(body.stiffness.toarray()), np.tile([3e3] * 3 + [3e-3] * 3, 2))  # N/mm, N mm
    assert body.source.endswith("; units mm t s")


@pytest.mark.parametrize("units", ["mm t s", "mm kg ms", "in slinch s", "ft slug s", "cm g ms"])
def test_a_body_in_other_units_is_the_same_body(units, files):
    """Matrices that couple translations and rotations, written in other units, come back as they were."""
    from spanloop.flexible.files.units import LENGTHS, MASSES, TIMES

    length, mass, time = (t[w] for t, w in zip((LENGTHS, MASSES, TIMES), units.split(), strict=True))
    rng = np.random.default_rng(4)
    k, m = (x @ x.T + np.eye(12) for x in rng.normal(size=(2, 12, 12)))
    s = np.where(KEYS[:, 1] > 3, 1.0 / length, 1.0)  # the same matrices, written in these units
    (files / "u.op4").write_text(
        write.op4_text({"K": k * np.outer(s, s) * time**2 / mass, "M": m * np.outer(s, s) / mass})
    )
    (files / "u.inp").write_text(write.input_nodes(LABELS, POSITIONS / length))
    body = sl.flexible.load("u.op4", nodes="u.inp", units=units)
    np.testing.assert_allclose(body.mass.toarray(), m, rtol=1e-13)
    np.testing.assert_allclose(body.stiffness.toarray(), k, rtol=1e-13)
    np.testing.assert_allclose(body.positions, POSITIONS, rtol=1e-13)


def test_units_are_checked(files):
    refused(InputError, "'ton' is no unit of mass", path="two.op4", nodes="body.bdf", units="mm ton s")
    refused(InputError, 'such as "mm t s"', path="two.op4", nodes="body.bdf", units="mm")


@pytest.mark.parametrize(
    ("size", "mass", "units"), [(1000.0, 8e-6, "m kg s"), (100.0, 8e-6, "m kg s"), (1.0, 8e3, "m t s")]
)
def test_numbers_of_other_units_are_warned_about(size, mass, units, files):
    """A steel cube with a side of 1000 mm; one of 100 mm; one of a metre whose kilograms are called tonnes."""
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)]) * size
    np.savez(files / "a.npz", mass=np.eye(48) * mass / 8, stiffness=np.eye(48), positions=corners)
    with pytest.warns(SpanloopWarning, match=r'units="mm? (t|kg) s"'):
        sl.flexible.load("a.npz", units=units)


def test_the_source_has_the_digests_of_all_files(files):
    import hashlib

    body = sl.flexible.load("two.op4", nodes="body.bdf")
    for name in ("two.op4", "body.bdf"):
        assert f"{name} (sha256:{hashlib.sha256((files / name).read_bytes()).hexdigest()})" in body.source
