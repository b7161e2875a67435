"""Random symmetric matrices, written in each format and read back: exact to the printed digits."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import finite_element_writers as write
import numpy as np
import pytest
import scipy.io
import scipy.sparse

import spanloop as sl
from spanloop.errors import SpanloopWarning
from spanloop.flexible.finite_elements import FiniteElements

LABELS = np.array([2, 5, 7, 40, 41, 1234567])
SEEDS = range(4)


@dataclass(frozen=True)
class Case:
    """Matrices with the nodes and components of their rows."""

    mass: np.ndarray
    stiffness: np.ndarray
    keys: np.ndarray
    positions: np.ndarray


def case(seed: int, components: int = 6) -> Case:
    rng = np.random.default_rng(seed)
    keys = np.array([(n, c) for n in LABELS for c in range(1, components + 1)])
    mass, stiffness = (write.random_symmetric(rng, len(keys)) for _ in range(2))
    return Case(mass, stiffness, keys, rng.uniform(-1.0, 1.0, (len(LABELS), 3)))


def loaded(*arguments, **settings) -> FiniteElements:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpanloopWarning)  # random masses are those of no body
        return sl.flexible.load(*arguments, **settings)


def check(body: FiniteElements, c: Case, rtol: float = 0.0, at: float = 0.0) -> None:
    """rtol: of entries; at: of positions [m]."""
    for found, expected in ((body.mass, c.mass), (body.stiffness, c.stiffness)):
        np.testing.assert_allclose(found.toarray(), expected, rtol=rtol, atol=0)
    np.testing.assert_allclose(body.positions, c.positions, rtol=0, atol=at)
    assert (body.labels == LABELS).all()
    assert (body.labels[body.dofs[:, 0]] == c.keys[:, 0]).all()
    assert (body.dofs[:, 1] + 1 == c.keys[:, 1]).all()


def put(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def input_file(folder: Path, c: Case) -> Path:
    return put(folder, "body.inp", write.input_nodes(LABELS, c.positions))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("settings", [{}, {"sparse": True}, {"wide": True}, {"sparse": True, "wide": True}], ids=str)
def test_op4_text(settings, seed, tmp_path):
    c = case(seed)
    path = put(tmp_path, "body.op4", write.op4_text({"KGG": c.stiffness, "MGG": c.mass}, **settings))
    check(loaded(path, nodes=input_file(tmp_path, c)), c)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("integer", "iq")
@pytest.mark.parametrize("kind", [1, 2])
def test_op4_binary(order, integer, kind, tmp_path):
    c = case(kind)
    data = write.op4_binary({"KGG": c.stiffness, "MGG": c.mass}, order, integer, kind)
    is_single = kind == 1 and integer == "i"
    check(loaded(put(tmp_path, "body.op4", data), nodes=input_file(tmp_path, c)), c, rtol=6e-8 if is_single else 0.0)


@pytest.mark.parametrize(("form", "rtol"), [("large", 6e-10), ("small", 6e-3), ("free", 0.0)])
def test_dmig_in_the_three_forms_of_fields(form, rtol, tmp_path):
    c = case(1)
    path = put(tmp_path, "body.pch", write.dmig({"KAAX": c.stiffness, "MAAX": c.mass}, c.keys, form))
    check(loaded(path, nodes=input_file(tmp_path, c)), c, rtol=rtol)


def test_scalar_points_are_coordinates_without_a_node(tmp_path):
    c = case(1)
    keys = np.concatenate([c.keys[:-3], [(9001, 0), (9002, 0), (9003, 0)]])
    path = put(tmp_path, "body.pch", write.dmig({"KAAX": c.stiffness, "MAAX": c.mass}, keys, "free"))
    body = loaded(path, nodes=input_file(tmp_path, c))
    order = np.lexsort(keys.T[::-1])
    assert (body.mass.toarray() == c.mass[np.ix_(order, order)]).all()
    assert (body.dofs[keys[order, 1] == 0] == [-1, 0]).all()
    assert (body.labels == LABELS).all()


@pytest.mark.parametrize(("form", "at"), [("large", 6e-10), ("small", 6e-6), ("free", 0.0)])
def test_grids_in_the_three_forms_of_fields(form, at, tmp_path):
    c = case(2)
    op4 = put(tmp_path, "body.op4", write.op4_text({"KGG": c.stiffness, "MGG": c.mass}))
    check(loaded(op4, nodes=put(tmp_path, "body.bdf", write.grids(LABELS, c.positions, form))), c, at=at)


@pytest.mark.parametrize("seed", SEEDS)
def test_abaqus_matrix_input(seed, tmp_path):
    c = case(seed, components=3)
    mass = put(tmp_path, "job_MASS2.mtx", write.abaqus_labelled(c.mass, c.keys))
    stiffness = put(tmp_path, "job_STIF2.mtx", write.abaqus_labelled(c.stiffness, c.keys))
    check(loaded(mass=mass, stiffness=stiffness, nodes=input_file(tmp_path, c)), c)


def test_abaqus_coordinates(tmp_path):
    c = case(5, components=3)
    mass, stiffness = (put(tmp_path, f"{n}.mtx", write.coordinates(m)) for n, m in (("m", c.mass), ("k", c.stiffness)))
    check(loaded(mass=mass, stiffness=stiffness, nodes=input_file(tmp_path, c), dofs="123"), c)


def test_the_scale_factor_of_matrix_input_multiplies_the_entries(tmp_path):
    c = case(8, components=3)
    head = "*MATRIX INPUT, NAME=MASS1, SCALE FACTOR=4., TYPE=SYMMETRIC\n"
    mass = put(tmp_path, "m.mtx", head + write.abaqus_labelled(c.mass / 4.0, c.keys))
    stiffness = put(tmp_path, "k.mtx", "*Matrix Input, name=K1\n" + write.abaqus_labelled(c.stiffness, c.keys))
    check(loaded(mass=mass, stiffness=stiffness, nodes=input_file(tmp_path, c)), c)


def test_a_substructure_of_unsym_has_its_stiffness_whole_and_its_mass_to_the_diagonal(tmp_path):
    c = case(9, components=3)
    before, _, after = write.substructure(c.stiffness, c.mass, c.keys).partition("*MATRIX,TYPE=STIFFNESS\n")
    columns = "".join(", ".join(f"{x:.16e}" for x in column) + ",\n" for column in c.stiffness.T)
    text = before.replace("LINEAR", "LINEAR, UNSYM") + "*MATRIX,TYPE=STIFFNESS\n" + columns
    path = put(tmp_path, "sub.mtx", text + after[after.index("*MATRIX,TYPE=MASS") :])
    check(loaded(path, nodes=input_file(tmp_path, c)), c)


@pytest.mark.parametrize("components", [3, 6])
def test_abaqus_substructure(components, tmp_path):
    c = case(6, components)
    path = put(tmp_path, "sub.mtx", write.substructure(c.stiffness, c.mass, c.keys))
    check(loaded(path, nodes=input_file(tmp_path, c)), c)


def test_a_substructure_whose_nodes_have_different_degrees_of_freedom(tmp_path):
    c = case(7)
    kept = np.flatnonzero((c.keys[:, 0] > 6) | (c.keys[:, 1] < 4))
    some = Case(c.mass[np.ix_(kept, kept)], c.stiffness[np.ix_(kept, kept)], c.keys[kept], c.positions)
    path = put(tmp_path, "sub.mtx", write.substructure(some.stiffness, some.mass, some.keys))
    check(loaded(path, nodes=input_file(tmp_path, c)), some)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("*NODE, NSET=ALL\n", "*Node,\n** goes on\nNSET=ALL\n"),
        lambda text: text.replace("*NODE, NSET=ALL\n", "*NODE,\n"),
        lambda text: text.replace("*NODE", "* NODE").replace("\n", "\r\n"),
        lambda text: "\ufeff" + text.partition("** nodes\n")[2],
    ],
    ids=["options in two lines", "comma at the end", "blank after the star", "mark of UTF-8"],
)
def test_input_files_of_other_layouts(change, tmp_path):
    c = case(10, components=3)
    mass, stiffness = (put(tmp_path, f"{n}.mtx", write.coordinates(m)) for n, m in (("m", c.mass), ("k", c.stiffness)))
    nodes = put(tmp_path, "body.inp", change(write.input_nodes(LABELS, c.positions)))
    check(loaded(mass=mass, stiffness=stiffness, nodes=nodes, dofs="123"), c)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("short", [False, True])
def test_calculix_with_nodes_of_input_or_result(seed, short, tmp_path):
    c = case(seed, components=3)
    rows = np.random.default_rng(seed).permutation(len(c.keys))  # CalculiX numbers rows as it likes
    shuffled = Case(c.mass[np.ix_(rows, rows)], c.stiffness[np.ix_(rows, rows)], c.keys[rows], c.positions)
    files = {
        "mass": put(tmp_path, "job.mas", write.coordinates(shuffled.mass)),
        "stiffness": put(tmp_path, "job.sti", write.coordinates(shuffled.stiffness)),
        "dofs": put(tmp_path, "job.dof", write.dof_file(shuffled.keys)),
    }
    check(loaded(**files, nodes=input_file(tmp_path, c)), shuffled)
    if not short:  # labels of a short file have five digits
        nodes = put(tmp_path, "job.frd", write.frd(LABELS, c.positions))
        check(loaded(**files, nodes=nodes), shuffled, at=5.1e-6)  # six digits


def test_a_short_result_file_of_calculix(tmp_path):
    from spanloop.flexible.files.file_bytes import read_bytes
    from spanloop.flexible.files.formats import calculix

    positions = np.random.default_rng(3).normal(size=(3, 3))
    nodes = calculix.read_nodes(read_bytes(put(tmp_path, "a.frd", write.frd([1, 2, 30], positions, True)), "nodes"))
    np.testing.assert_allclose(nodes.positions, positions, rtol=6e-6)
    assert nodes.labels.tolist() == [1, 2, 30]


def test_the_banner_of_matrix_market_has_any_case(tmp_path):
    c = case(11)
    paths = {}
    for name, matrix in (("mass", c.mass), ("stiffness", c.stiffness)):
        paths[name] = tmp_path / f"{name}.mtx"
        scipy.io.mmwrite(paths[name], scipy.sparse.coo_matrix(matrix), precision=17)
        text = paths[name].read_bytes()
        paths[name].write_bytes(text.replace(b"%%MatrixMarket matrix", b"\xef\xbb\xbf%%matrixmarket MATRIX"))
    check(loaded(**paths, nodes=input_file(tmp_path, c)), c)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("symmetry", ["symmetric", "general"])
@pytest.mark.parametrize("of_array", [False, True])
def test_matrix_market_as_scipy_writes_it(symmetry, of_array, seed, tmp_path):
    c = case(seed)
    paths = {}
    for name, matrix in (("mass", c.mass), ("stiffness", c.stiffness)):
        paths[name] = tmp_path / f"{name}.mtx"
        scipy.io.mmwrite(paths[name], matrix if of_array else scipy.sparse.coo_array(matrix), symmetry=symmetry)
    check(loaded(**paths, nodes=input_file(tmp_path, c)), c)


def harwell_by_scipy(path: Path, matrix: np.ndarray) -> None:
    scipy.io.hb_write(path, scipy.sparse.csc_array(matrix))


def harwell_symmetric(path: Path, matrix: np.ndarray) -> None:
    path.write_text(write.harwell_boeing(matrix))


@pytest.mark.parametrize("writer", [harwell_by_scipy, harwell_symmetric])
def test_harwell_boeing(writer: Callable[[Path, np.ndarray], None], tmp_path):
    c = case(8)
    paths = {"mass": tmp_path / "m.hb", "stiffness": tmp_path / "k.rsa"}
    writer(paths["mass"], c.mass)
    writer(paths["stiffness"], c.stiffness)
    check(loaded(**paths, nodes=input_file(tmp_path, c)), c, rtol=1e-15)  # hb_write prints 16 or 17 digits


@pytest.mark.parametrize("form", ["dense", "triangle", "whole"])
def test_npz(form, tmp_path):
    c = case(9)
    arrays = {"positions": c.positions, "labels": LABELS}
    for name, matrix in (("mass", c.mass), ("stiffness", c.stiffness)):
        if form == "dense":
            arrays[name] = matrix
        else:
            entries = scipy.sparse.coo_array(np.tril(matrix) if form == "triangle" else matrix)
            arrays |= {f"{name}_row": entries.row, f"{name}_column": entries.col, f"{name}_value": entries.data}
    np.savez(tmp_path / "body.npz", **arrays)
    check(loaded(tmp_path / "body.npz"), c)


def test_sid(tmp_path):
    rng = np.random.default_rng(10)
    n = 3
    general = {
        "mdCM": (3, 1),
        "J": (6, 1),
        "Ct": (n, 3),
        "Cr": (n, 3),
        "Gr": (3, 3 * n),
        "Ge": (n, 3 * n),
        "Oe": (n, 6),
    }
    terms = {name: (3, rng.normal(size=s), rng.normal(size=(s[0], n, s[1]))) for name, s in general.items()}
    terms |= {"Me": (4, np.eye(n), None), "ksigma": (0, np.zeros((n, 1)), None)}
    terms |= {"Ke": (1, np.diag(rng.uniform(1, 2, n)), None), "De": (2, write.random_symmetric(rng, n, 1.0), None)}
    at_node = {"origin": (3, 1), "phi": (3, n), "psi": (3, n), "AP": (3, 3)}
    nodes = {
        label: {name: (3, rng.normal(size=s), rng.normal(size=(s[0], n, s[1]))) for name, s in at_node.items()}
        for label in (4, 17)
    }
    body = sl.flexible.load_modal(put(tmp_path, "body.SID_FEM", write.sid(1.75, n, nodes, terms)))
    assert body.mass == 1.75
    assert body.modes[1] == "Eigen Mode 2 : 2.5 Hz"
    for name, (_, constant, slope) in terms.items():
        assert (body.terms[name].constant == constant).all()
        assert slope is None or (body.terms[name].slope == slope).all()
    for node in body.nodes:
        parts = (node.position, node.translation, node.rotation, node.orientation)
        for part, (_, constant, slope) in zip(parts, nodes[node.label].values(), strict=True):
            assert (part.constant == constant).all()
            assert (part.slope == slope).all()
    assert body.stiffening
