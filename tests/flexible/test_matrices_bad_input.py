"""What from_matrices says of matrices, nodes and interfaces that cannot be."""

import numpy as np
import pytest
import scipy.sparse as sp

import spanloop as sl
from spanloop.flexible import FiniteElements

BOOM = sl.flexible.beam(1.0, E=7e10, density=2700.0, section=sl.flexible.circle(0.01), elements=3)
FE = sl.flexible.to_matrices(BOOM)
LAST = len(FE.positions) - 1
ENDS = {"root": 0, "tip": LAST}


def changed(mass=None, stiffness=None, positions=None, dofs=None, **options):
    def pick(x, y):
        return y if x is None else x

    fe = FiniteElements(
        pick(mass, FE.mass), pick(stiffness, FE.stiffness), pick(positions, FE.positions), pick(dofs, FE.dofs)
    )
    return sl.flexible.from_matrices(fe, **({"interfaces": ENDS, "modes": 1} | options))


def with_entry(A, i, j, value):
    B = A.copy()
    B[i, j] = value
    return B


def refused(text, **options):
    with pytest.raises(sl.errors.SpanloopError) as found:
        changed(**options)
    assert text in str(found.value), str(found.value)


def test_matrices_that_are_no_mass_and_stiffness_are_named():
    big = np.abs(FE.stiffness).max()
    refused(
        "K is not symmetric: row 0 (node 0, x), row 3 (node 0, rotation x)",
        stiffness=with_entry(FE.stiffness, 0, 3, big),
    )
    refused("one triangle only", stiffness=np.tril(FE.stiffness))
    refused("M has a number that is not finite in row 7", mass=with_entry(FE.mass, 7, 7, np.nan))
    refused("M is indefinite: its diagonal is -1 in row 7 (node", mass=with_entry(FE.mass, 7, 7, -1.0))
    refused("M is zero", mass=0.0 * FE.mass)
    refused("M has 38 rows, K 30", mass=np.eye(38), dofs=FE.dofs)
    refused("expected a square matrix", mass=np.ones((3, 4)))
    refused("M is text", mass="mass")
    refused("M has masked entries", mass=np.ma.masked_array(FE.mass, FE.mass < 0.0))
    off = FE.mass.copy()
    i, j = np.flatnonzero(FE.dofs[:, 1] == 3)[2:4]  # torsion
    off[i, j] = off[j, i] = 2.0 * np.sqrt(off[i, i] * off[j, j]) or 1.0
    refused("M is indefinite: a motion, most at row", mass=off)


def test_imaginary_parts_are_refused_and_zero_ones_dropped():
    refused("K has imaginary parts, up to", stiffness=FE.stiffness * (1.0 + 0.02j))
    refused("give K.real and damping= as ratios, half the loss factor", stiffness=sp.csr_matrix(FE.stiffness * 1.02j))
    refused("from_matrices: M has imaginary parts", mass=FE.mass * (1.0 + 0.1j))
    refused("positions has imaginary parts", positions=FE.positions + 0.1j)
    refused("damping has imaginary parts", damping=0.01 + 0.1j)
    refused("stiffening['ax'] has imaginary parts", stiffening={"ax": FE.stiffness * 1j})
    refused("interface 'tip' has imaginary parts", interfaces={"root": 0, "tip": (LAST, (1.0 + 1j, 0.0, 0.0))})
    assert changed(stiffness=sp.csr_matrix(FE.stiffness.astype(complex))) == changed()


def test_what_would_be_ignored_or_taken_for_something_else_is_refused():
    by = {"by": "effective mass"}
    refused("by is 'effective mass', but up_to= takes all modes up to a frequency", modes=None, up_to=1e3, **by)
    refused("by is 'effective mass', but basis='free' has modes of the free body", basis="free", **by)
    refused("but basis='guyan' has static shapes alone; leave by= out", basis="guyan", modes=None, **by)
    refused("basis='guyan' has static shapes alone; leave modes= and up_to= out", basis="guyan")
    refused("basis='full' has all coordinates; leave modes= and up_to= out", basis="full", modes=None, up_to=10.0)
    refused("basis is None; there are 'craig-bampton'", basis=None)
    refused("damping is True; expected ratios", damping=True)
    refused("damping is text", damping="0.01")
    refused("surface names node -1; there are", surface=[[0, 1, -1]])
    refused("surface_energy is 5; expected a function", surface=[[0, 1, 2]], surface_energy=5)
    refused("no load is called 'wywx'; did you mean 'wxwy'?", stiffening={"wywx": FE.stiffness})
    refused("stiffening does not take one argument", stiffening=lambda d, e: d)
    off = with_entry(FE.stiffness, 6, 9, 2.0 * np.abs(FE.stiffness).max())
    refused("stiffening['ax'] is not symmetric in row 6 (node", stiffening={"ax": off})


@pytest.mark.slow
def test_static_shapes_that_the_modes_contain_are_no_shapes_beside_them():
    whole = changed(basis="full", modes=None)
    for modes in (10, 17, whole.n, whole.n + 5):
        np.testing.assert_allclose(
            changed(basis="rubin", modes=modes).frequencies[:5], whole.frequencies[:5], rtol=1e-8
        )


def test_a_mass_whose_first_moments_contradict_each_other_is_refused():
    y, turn = (int(np.flatnonzero((FE.dofs == (LAST, c)).all(axis=1))[0]) for c in (1, 5))
    mass = np.array(FE.mass)
    assert mass[y, turn] != 0.0
    mass[y, turn] = mass[turn, y] = 0.0  # an entry that was lost
    refused("M has no centre of mass", mass=mass)


def test_names_that_parts_of_a_body_have_are_refused_as_such():
    for name in ("end", "modes"):
        refused(f"called {name!r}, which names another part of a flexible body", interfaces={"root": 0, name: LAST})
    refused("expected a name without a dot, and no number", interfaces={"root": 0, "a.b": LAST})


def test_a_frame_far_from_its_nodes_is_a_warning():
    with pytest.warns(sl.errors.SpanloopWarning, match="interface 'tip' is 49 m from its nodes, on a body of 1 m"):
        changed(interfaces={"root": 0, "tip": (LAST, (50.0, 0.0, 0.0))})


def test_a_hinge_inside_a_body_is_named_as_a_loose_part_by_each_basis():
    n = len(FE.dofs)
    last = FE.dofs[:, 0] == LAST
    spin = np.flatnonzero(last & (FE.dofs[:, 1] == 5))[0]
    tail = BOOM.length  # a rod behind the last node, joined to it by displacements alone
    M, K = np.zeros((n + 6, n + 6)), np.zeros((n + 6, n + 6))
    M[:n, :n], K[:n, :n] = FE.mass, FE.stiffness
    T = np.zeros((n + 6, 12))
    end = [np.flatnonzero(last & (FE.dofs[:, 1] == c))[0] for c in range(6)]
    for c in range(6):
        T[end[c], c] = T[n + c, 6 + c] = 1.0
    from support.frame_elements import frame

    two = frame([[tail, 0.0, 0.0], [1.5 * tail, 0.0, 0.0]])
    free = two.stiffness - np.outer(two.stiffness[:, 5], two.stiffness[5]) / two.stiffness[5, 5]  # no moment there
    K += T @ free @ T.T
    M += T @ two.mass @ T.T
    positions = np.vstack([FE.positions, [[1.5 * tail, 0.0, 0.0]]])
    dofs = np.vstack([FE.dofs, [[LAST + 1, c] for c in range(6)]])
    assert K[spin, spin] > 0.0
    for basis in ("craig-bampton", "free", "cantilever"):
        with pytest.raises(
            sl.errors.InputError, match=r"a part of (the body|it)(, most at row .*,)? (is loose|moves without strain)"
        ):
            sl.flexible.from_matrices(
                M, K, positions, dofs=dofs, interfaces={"root": 0, "tip": LAST + 1}, basis=basis, modes=2
            )


def test_an_indefinite_stiffness_is_refused():
    w, V = np.linalg.eigh(FE.stiffness)
    w[-1] = -w[-1]
    refused("K is indefinite", stiffness=(V * w) @ V.T)


def test_a_body_that_the_ground_holds_is_refused():
    K = FE.stiffness.copy()
    K[1, 1] += 1e6
    refused("K resists rigid motion", stiffness=K)
    refused("Leave supports out", stiffness=K)


def test_soft_supports_and_loose_parts_are_found_by_their_frequencies():
    K = FE.stiffness.copy()
    K[8, 8] += 1e-7 * np.diag(K).max()
    refused("like a spring to the ground", stiffness=K)
    short = sl.flexible.beam(0.5, E=7e10, density=2700.0, section=sl.flexible.circle(0.01), elements=1, modes=0)
    a = sl.flexible.to_matrices(short)  # two rods, joined in the middle by a hinge about z
    n = len(a.dofs)
    T = np.zeros((2 * n, 2 * n - 5))
    shared = [k for k, (node, c) in enumerate(a.dofs) if node == 2 and c != 5]
    T[:n, :n] = np.eye(n)
    own = [k for k, (node, c) in enumerate(a.dofs) if not (node == 0 and c != 5)]
    T[[n + k for k in own], range(n, 2 * n - 5)] = 1.0
    T[[n + k for k, (node, c) in enumerate(a.dofs) if node == 0 and c != 5], shared] = 1.0
    M, hinged = (T.T @ np.kron(np.eye(2), A) @ T for A in (a.mass, a.stiffness))
    places = np.concatenate([a.positions, a.positions[1:] + [0.5, 0, 0], [[0.5, 0, 0]]])
    dofs = np.concatenate([a.dofs, [(5 if node == 0 else node + 2, c) for node, c in a.dofs[own]]])
    refused(
        "stiffness", mass=M, stiffness=hinged, positions=places, dofs=dofs, interfaces={"root": 0}, basis="cantilever"
    )  # singular, or next to it, as rounding has it


def test_positions_that_do_not_fit_the_stiffness_are_refused():
    refused("K resists rigid motion, rotation about", positions=2.0 * FE.positions)
    refused("the position of node 2 is not finite", positions=with_entry(FE.positions, 2, 0, np.inf))
    refused("expected (nodes, 3)", positions=FE.positions[:, :2])
    with pytest.raises(sl.errors.InputError, match="expected 3 or 6 rows for each node"):
        sl.flexible.from_matrices(FE.mass, FE.stiffness, FE.positions, interfaces=ENDS)


def test_loose_parts_and_interfaces_are_named():
    n = len(FE.dofs)
    K, M = (sp.block_diag([A, A]).tocsr() for A in (FE.stiffness, FE.mass))
    more = FE.dofs + np.array([len(FE.positions), 0])
    apart = {"stiffness": K, "mass": M, "positions": np.concatenate([FE.positions, FE.positions + [0.0, 1.0, 0.0]])}
    apart["dofs"] = np.concatenate([FE.dofs, more])
    refused(f"{len(FE.positions)} nodes are not connected to the root, node {len(FE.positions)}", **apart)
    refused("interface 'far' is not connected to the root", **apart, interfaces={"root": 0, "far": 2 * LAST + 1})
    assert n == K.shape[0] // 2


def test_a_surface_names_nodes_as_interfaces_do_by_the_numbers_of_the_file():
    numbers = np.array([7, 1, 6, 2, 5, 3, 4])
    labelled = FiniteElements(FE.mass, FE.stiffness, FE.positions, FE.dofs, numbers, "part.op4")
    ends = {"root": int(numbers[0]), "tip": int(numbers[LAST])}
    plain = changed(surface=[[0, 2, 4], [2, 4, LAST]])
    drawn = sl.flexible.from_matrices(labelled, interfaces=ends, modes=1, surface=numbers[[[0, 2, 4], [2, 4, LAST]]])
    np.testing.assert_allclose(drawn.vertices[drawn.triangles], plain.vertices[plain.triangles])
    with pytest.raises(sl.errors.InputError, match="surface names node 0; there are 7, numbers of the file, 1 to 7"):
        sl.flexible.from_matrices(labelled, interfaces=ends, modes=1, surface=[[0, 1, 2]])


def test_interfaces_that_do_not_exist_are_named():
    refused("no interface is called 'root'", interfaces={"tip": 0})
    refused("interface 'tip': there is no node 99; matrices has 7 nodes (0 to 6)", interfaces={"root": 0, "tip": 99})
    refused("expected a node, or a list of nodes", interfaces={"root": 0, "tip": "end"})
    refused("node 0 belongs to interface 'root' already", interfaces={"root": 0, "tip": [0, LAST]})
    refused("a name without a dot", interfaces={"root": 0, "a.b": LAST})
    refused("leave a rotation of the frame free", interfaces={"root": 0, "tip": LAST}, tie="mean")
    refused("leave a rotation of the frame free", interfaces={"root": 0, "middle": 1})
    refused("tie is 'welded'", tie="welded")
    refused("tie names the interface 'tp'", tie={"tp": "mean"})
    labelled = FiniteElements(FE.mass, FE.stiffness, FE.positions, FE.dofs, np.arange(101, 108), "part.op4")
    with pytest.raises(
        sl.errors.InputError, match=r"there is no node 6; part.op4 has 7 nodes \(numbers of its file, 101 to 107\)"
    ):
        sl.flexible.from_matrices(labelled, interfaces={"root": 101, "tip": 6})
    assert sl.flexible.from_matrices(labelled, interfaces={"root": 101, "tip": 107}, modes=1).n == 7


def test_units_that_no_material_has_are_refused_unless_the_user_insists():
    refused("sound would travel faster than in any material", stiffness=1e8 * FE.stiffness)
    assert changed(stiffness=1e8 * FE.stiffness, any_units=True).n == 7
    thick = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    dense = 1e5 * np.eye(12)
    K = _springs(thick)
    with pytest.raises(sl.errors.InputError, match="denser than any material"):
        sl.flexible.from_matrices(dense, K, thick, interfaces={"root": [0, 1, 2]}, basis="cantilever", modes=1)


def _springs(x):
    """Stiffness of springs between all nodes."""
    K = np.zeros((3 * len(x), 3 * len(x)))
    for i in range(len(x)):
        for j in range(i):
            e = (x[i] - x[j]) / np.linalg.norm(x[i] - x[j])
            row = np.zeros(3 * len(x))
            row[3 * i : 3 * i + 3], row[3 * j : 3 * j + 3] = e, -e
            K += 1e6 * np.outer(row, row)
    return K


def test_choices_that_are_not_offered_are_refused_with_the_nearest():
    refused("basis is 'craig-bmpton'; did you mean 'craig-bampton'", basis="craig-bmpton")
    refused("by is 'mass'", by="mass")
    refused("modes and up_to are given", up_to=10.0)
    refused("up_to is -1.0; expected a frequency [Hz]", modes=None, up_to=-1.0)
    refused("modes is 1.5", modes=1.5)
    refused("damping has 2 numbers; expected one, or 7", damping=[0.1, 0.2])
    refused("no shapes are left", interfaces={"root": 0}, modes=0)
    refused("no load is called 'wz'", stiffening={"wz": FE.stiffness})
    refused("stiffening['ax'] is 2x2; expected", stiffening={"ax": np.eye(2)})
    refused("stiffening['ax'] is not symmetric", stiffening={"ax": np.triu(np.abs(FE.stiffness))})
    refused("expected matrices by load", stiffening=3.0)
    refused("surface names node 9", surface=[[0, 1, 9]])
    twice = FE.dofs.copy()
    twice[1] = twice[0]
    refused("dofs has component 0 of node 0 twice", dofs=twice)


def test_a_body_that_is_no_recipe_is_refused_with_what_is_expected():
    with pytest.raises(sl.errors.InputError, match=r"from_matrices\(\.\.\.\)"):
        sl.Builder("a").body("b", flexible=FE)
    with pytest.raises(sl.errors.InputError, match="to_matrices"):
        sl.flexible.to_matrices(FE)
