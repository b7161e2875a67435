"""A beam's matrices, written in every format and in other units, read back and reduced: the same body."""

from __future__ import annotations

import finite_element_writers as write
import numpy as np
import pytest

import spanloop as sl

if not hasattr(sl.flexible, "from_matrices"):
    pytest.skip("from_matrices is not there", allow_module_level=True)

MILLIMETRES = np.array([1.0] * 3 + [1e3] * 3)  # of a rotation's row, in matrices of millimetres


@pytest.fixture(scope="module")
def beam():
    section = sl.flexible.rectangle(0.02, 0.03)
    whole = sl.flexible.beam(1.0, E=7e10, density=2700.0, section=section, elements=4)
    return sl.flexible.to_matrices(whole)


def dense(matrix) -> np.ndarray:
    return matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)


@pytest.mark.parametrize("form", ["op4", "op4 binary", "dmig", "substructure", "abaqus", "calculix"])
def test_a_beam_in_millimetres_and_tonnes_has_the_frequencies_of_the_beam(form, beam, tmp_path):
    keys = beam.dofs + [11, 1]  # nodes 11, 12, ...
    scale = np.outer(*[MILLIMETRES[beam.dofs[:, 1]]] * 2)
    mass, stiffness = (0.5 * (x + x.T) * scale * 1e-3 for x in (dense(beam.mass), dense(beam.stiffness)))  # t, N/mm
    order = np.lexsort(keys.T[::-1])
    mass, stiffness, keys = mass[np.ix_(order, order)], stiffness[np.ix_(order, order)], keys[order]
    labels = np.arange(len(beam.positions)) + 11
    nodes = tmp_path / "beam.inp"
    nodes.write_text(write.input_nodes(labels, beam.positions * 1e3))
    arguments = put(form, tmp_path, mass, stiffness, keys)
    body = sl.flexible.load(**arguments, nodes=nodes, units="mm t s")
    interfaces = {"root": 11, "tip": int(labels[np.argmax(beam.positions[:, 0])])}
    found = sl.flexible.from_matrices(body, interfaces=interfaces, modes=3)
    inner = {name: label - 11 for name, label in interfaces.items()}
    expected = sl.flexible.from_matrices(beam, interfaces=inner, modes=3)
    digits = 1e-6 if form == "dmig" else 1e-9  # ten printed digits, and matrices with a range of 1e6
    np.testing.assert_allclose(found.frequencies, expected.frequencies, rtol=digits)
    assert abs(found.mass / expected.mass - 1.0) < 1e-9


def put(form: str, folder, mass: np.ndarray, stiffness: np.ndarray, keys: np.ndarray) -> dict:
    """Write the matrices; the arguments of `load`."""
    by_name = {"KAA": stiffness, "MAA": mass}
    one = {
        "op4": ("a.op4", lambda: write.op4_text(by_name).encode()),
        "op4 binary": ("a.op4", lambda: write.op4_binary(by_name, ">")),
        "dmig": ("a.pch", lambda: write.dmig(by_name, keys).encode()),
        "substructure": ("a.mtx", lambda: write.substructure(stiffness, mass, keys).encode()),
    }
    if form in one:
        name, content = one[form]
        (folder / name).write_bytes(content())
        return {"path": folder / name} | ({"dofs": keys} if name == "a.op4" else {})
    names = {"abaqus": ("m.mtx", "k.mtx"), "calculix": ("a.mas", "a.sti")}[form]
    for name, matrix in zip(names, (mass, stiffness), strict=True):
        text = write.abaqus_labelled(matrix, keys) if form == "abaqus" else write.coordinates(matrix)
        (folder / name).write_text(text)
    if form == "abaqus":
        return {"mass": folder / names[0], "stiffness": folder / names[1]}
    (folder / "a.dof").write_text(write.dof_file(keys))
    return {"mass": folder / names[0], "stiffness": folder / names[1], "dofs": folder / "a.dof"}
