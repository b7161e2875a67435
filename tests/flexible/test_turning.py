"""How far a body from finite elements turns is judged at its nodes, not at its interfaces alone."""

import warnings

import numpy as np
import pytest

import spanloop as sl
from spanloop.flexible.deformation import largest_turn, turning
from support.frame_elements import straight

FRAME = straight(0.5)


def cantilever(part, load):
    b = sl.Builder("c", gravity=(0.0, 0.0, -load)).body("boom", flexible=part)
    return sl.Dynamics(b.fixed("clamp", "world", "boom").build())


def from_frame(interfaces, basis):
    return sl.flexible.from_matrices(
        FRAME.mass, FRAME.stiffness, FRAME.positions, interfaces=interfaces, basis=basis, modes=4
    )


def audit(robot, q):
    return sl.simulate(robot.model, q, duration=2e-3, step=1e-5, sample=1e-3, integrator="rk4").audit()


def slopes(found):
    return found["slopes"]


def test_a_bent_body_without_an_interface_where_it_bends_is_not_well():
    robot = cantilever(from_frame({"root": 0}, "cantilever"), 6000.0)
    with pytest.warns(sl.errors.SpanloopWarning, match=r"bends by up to 0.5\d rad .* Divide its finite elements"):
        q = robot.static_deflection(robot.model.neutral())
    found = slopes(audit(robot, q))
    assert found.verdict == "not well"
    assert "sl.flexible.beam" not in found.sentence
    exact = 6000.0 * 2700.0 * 0.03 * 0.01 * 0.5**3 / (6.0 * 7e10 * 0.03 * 0.01**3 / 12.0)  # slope w L³/6EI of the tip
    np.testing.assert_allclose(found.value, 2.0 * np.arctan(0.5 * exact), rtol=5e-3)  # four modes


def test_nodes_and_interfaces_agree():
    parts = [from_frame({"root": 0, "tip": 10}, "cantilever"), from_frame({"root": 0}, "cantilever")]
    eta = np.random.default_rng(3).standard_normal((20, 4)) * [1e-2, 1e-3, 1e-3, 1e-3]
    np.testing.assert_allclose(*(largest_turn(part.body.modal, eta) for part in parts), rtol=1e-12)


@pytest.mark.slow
def test_a_body_of_which_no_place_is_known_is_not_judged():
    part = from_frame({"root": 0}, "cantilever")
    robot = sl.Dynamics(sl.Builder("b", gravity=(0, 0, 0)).body("b", flexible=part).free("f", "world", "b").build())
    at = np.ix_(*[[3, 4, 5, 0, 1, 2, 6, 7, 8, 9]] * 2)
    inertia = robot.mass_matrix(robot.model.neutral())[at]
    dofs = np.array([(0, c) for c in range(6)] + [(-1, 0)] * 4)
    blind = sl.flexible.from_matrices(
        inertia, np.diag([0.0] * 6 + list(part.stiffness)), [[0, 0, 0]], dofs=dofs, interfaces={"root": 0},
        basis="cantilever", modes=4,
    )  # fmt: skip
    assert not len(turning(blind.body.modal)[1:])
    still = cantilever(blind, 9.81)
    found = slopes(audit(still, still.static_deflection(still.model.neutral())))
    assert found.verdict == "not judged"
    assert "no place is known that turns" in found.sentence


@pytest.mark.slow
def test_nodes_of_a_solid_turn_as_its_neighbours_say():
    skfem = pytest.importorskip("skfem")
    from skfem.helpers import ddot, dot, sym_grad, trace

    mesh = skfem.MeshTet.init_tensor(
        np.linspace(0, 0.5, 21), np.linspace(-0.015, 0.015, 3), np.linspace(-0.005, 0.005, 2)
    )
    basis = skfem.Basis(mesh, skfem.ElementVector(skfem.ElementTetP2()), intorder=4)

    @skfem.BilinearForm
    def stiff(u, v, w):
        return 5.1e10 * trace(sym_grad(u)) * trace(sym_grad(v)) + 5.26e10 * ddot(sym_grad(u), sym_grad(v))

    @skfem.BilinearForm
    def heavy(u, v, w):
        return 2700.0 * dot(u, v)

    component = np.zeros(basis.N, dtype=int)
    for table in (basis.dofs.nodal_dofs, basis.dofs.edge_dofs):
        for c in range(3):
            component[table[c]] = c
    places, node = np.unique(basis.doflocs.T.round(12), axis=0, return_inverse=True)
    dofs = np.stack([node.ravel(), component], axis=1)
    ends = {"root": np.flatnonzero(places[:, 0] < 1e-9), "tip": np.flatnonzero(places[:, 0] > 0.5 - 1e-9)}
    made = [
        sl.flexible.from_matrices(
            heavy.assemble(basis), stiff.assemble(basis), places, dofs=dofs, interfaces=x, basis="cantilever", modes=1,
            tie={"root": "rigid"} if len(x) == 1 else {"root": "rigid", "tip": "mean"},
        )
        for x in ({"root": ends["root"]}, ends)
    ]  # fmt: skip
    eta = np.array([0.05])
    nodes, face = largest_turn(made[0].body.modal, eta), 2 * np.arctan(0.5 * np.linalg.norm(made[1].turns[0, 0]) * 0.05)
    np.testing.assert_allclose(nodes, face, rtol=0.02)  # the mean of the end face against the node that turns most


def test_files_keep_the_places_that_turn(tmp_path):
    robot = cantilever(from_frame({"root": 0}, "cantilever"), 1.0)
    robot.model.save(tmp_path / "c.toml")
    again = sl.load(tmp_path / "c.toml")
    assert again == robot.model
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sl.Dynamics(again).static_deflection(again.neutral())
    (beside,) = tmp_path.glob("*.npz")
    beside.write_bytes(b"")
    with pytest.raises(sl.errors.SpanloopError, match=r"the file is empty; expected a flexible body in the \.npz"):
        sl.load(tmp_path / "c.toml")
