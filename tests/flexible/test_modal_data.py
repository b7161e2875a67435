"""Bodies from SID files: beside the same body from its matrices, whose integrals the file's writer computes itself."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from modal_writer import Modal, skew
from scipy.linalg import eigh
from solid_elements import ALUMINIUM, Solid, bar

import spanloop as sl
from spanloop.flexible.matrices.stiffening import keys_of

ROOT, TIP = 9001, 9002
ENDS = {"root": ROOT, "tip": TIP}


def rigid(places, about):
    """(3p, 6) displacements of places by unit displacements and rotations of a frame."""
    return np.vstack([np.hstack([np.eye(3), -skew(x - about)]) for x in places])


class Case:
    """A solid bar with a root at x = 0 and a tip, both tied rigidly; its modes with the root held, or free."""

    def __init__(self, count=5, free=False):
        self.solid = s = Solid(bar(counts=(6, 2, 1)), ALUMINIUM, quadratic=False)
        N, ends = len(s.dofs), (s.at(0.0), s.at(0.5))
        row = {(int(a), int(c)): k for k, (a, c) in enumerate(s.dofs)}
        inner = [k for k in range(N) if not np.isin(s.dofs[k, 0], np.concatenate(ends))]
        Z = np.zeros((N, len(inner) + 12))
        Z[inner, np.arange(len(inner))] = 1.0
        self.places = [s.positions[nodes].mean(axis=0) for nodes in ends]
        for e, nodes in enumerate(ends):
            rows = [row[int(a), c] for a in nodes for c in range(3)]
            Z[rows, len(inner) + 6 * e : len(inner) + 6 * e + 6] = rigid(s.positions[nodes], self.places[e])
        K, M = Z.T @ (s.stiffness @ Z), Z.T @ (s.mass @ Z)
        K, M = 0.5 * (K + K.T), 0.5 * (M + M.T)
        held = np.ones(len(K), dtype=bool)
        if not free:
            held[len(inner) : len(inner) + 6] = False
        skip = 6 if free else 0
        _, V = eigh(K[np.ix_(held, held)], M[np.ix_(held, held)], subset_by_index=(skip, skip + count - 1))
        z = np.zeros((len(K), count))
        z[held] = V
        self.shapes = Z @ z
        self.frames = [z[len(inner) + 6 * e : len(inner) + 6 * e + 6] for e in range(2)]
        self.modal = Modal(s, self.shapes)
        self.options = {"interfaces": {"root": ends[0], "tip": ends[1]}, "modes": count, "dofs": s.dofs}

    def matrices(self, basis, **options):
        s = self.solid
        return sl.flexible.from_matrices(s.mass, s.stiffness, s.positions, basis=basis, **self.options, **options)

    def text(self, change=lambda text: text, at_tip=None, **options):
        """The SID file, with frames of root and tip as nodes; change: of the text."""
        modal, ends = self.modal, {}
        for label, place, frame in zip((ROOT, TIP), self.places, self.frames, strict=True):
            none = np.zeros((modal.n, modal.n))
            loads = at_tip if label == TIP and at_tip else {}
            phi1, psi1 = (
                np.stack([-loads.get(key, none) for key in keys]) for keys in (("fx", "fy", "fz"), ("mx", "my", "mz"))
            )
            ends[label] = {
                "origin": (3, place[:, None], frame[:3, :, None]),
                "phi": (3, frame[:3], phi1 if phi1.any() else None),
                "psi": (3, frame[3:], psi1 if psi1.any() else None),
                "AP": (3, np.eye(3), np.stack([skew(p) for p in frame[3:].T], axis=1)),
            }
        return change(modal.text(ends, **options))


def loaded(tmp_path, text, **options):
    (tmp_path / "body.SID_FEM").write_text(text)
    data = sl.flexible.load_modal(tmp_path / "body.SID_FEM")
    return sl.flexible.from_modal(data, **{"interfaces": ENDS, **options})


def arm(part):
    b = sl.Builder("arm").body("boom", flexible=part).body("load", 0.4, (0.02, 0.01, 0.0), (1e-4, 2e-4, 2e-4))
    return sl.Dynamics(b.revolute("hinge", "world", "boom", "z").fixed("grip", "boom.tip", "load").build())


def same_motion(one, other, size=1e-3, rate=30.0, tolerance=1e-9):
    """Both bodies on a hinge with a load, bent alike: mass matrix, accelerations and the pose of the load."""
    rng = np.random.default_rng(3)
    a, b = arm(one), arm(other)
    turn = np.eye(1 + one.n)
    turn[1:, 1:] = np.linalg.lstsq(tips(other), tips(one), rcond=None)[0]  # coordinates of the other for those of one
    for _ in range(3):
        q, v, tau = size * rng.normal(size=a.model.nq), rng.normal(size=a.model.nv), np.zeros(a.model.nv)
        v *= np.array([rate] + [size * rate] * one.n)
        tau[0] = 0.5
        q2, v2 = turn @ q, turn @ v
        M = turn.T @ b.mass_matrix(q2) @ turn
        np.testing.assert_allclose(M, a.mass_matrix(q), atol=tolerance * np.abs(M).max())
        np.testing.assert_allclose(b.pose(q2, "load"), a.pose(q, "load"), atol=tolerance)
        want = turn @ a.forward_dynamics(q, v, tau)
        found = b.forward_dynamics(q2, v2, tau)
        np.testing.assert_allclose(found, want, atol=tolerance * np.abs(want).max())


def tips(part):
    """How the tip moves (6, n)."""
    return np.vstack([part.shifts[0].T, part.turns[0].T])


@pytest.fixture(scope="module")
def held():
    return Case()


@pytest.mark.slow
def test_clamped_modes_make_the_body_that_the_matrices_make(held, tmp_path):
    part = loaded(tmp_path, held.text())
    whole = held.matrices("cantilever")
    assert part.level == 1
    np.testing.assert_allclose(part.frequencies, whole.frequencies, rtol=1e-9)
    np.testing.assert_allclose((part.mass, *part.center), (whole.mass, *whole.center), rtol=1e-9, atol=1e-12)
    same_motion(whole, part)
    assert "modal data of" in str(part)
    assert "nan" not in str(part)


@pytest.mark.slow
@pytest.mark.parametrize("gyroscopic", [0, 1])
def test_modes_of_a_free_body_are_those_of_its_root(gyroscopic, tmp_path):
    case = Case(free=True)
    part, whole = loaded(tmp_path, case.text(gyroscopic=gyroscopic)), case.matrices("free")
    np.testing.assert_allclose(part.frequencies, whole.frequencies, rtol=1e-7)
    same_motion(whole, part, tolerance=1e-8)


def in_units(held, length):
    """The case in units of `length` (per metre), tonnes and seconds, with all places moved by a constant."""
    other = Case()
    at = np.array([0.1, -0.2, 0.3])
    other.modal.x, other.modal.phi = length * (held.modal.x + at), length * held.modal.phi
    other.modal.m, other.modal.stiffness = 1e-3 * held.modal.m, 1e-3 * length**2 * held.modal.stiffness
    other.places = [length * (x + at) for x in held.places]
    other.frames = [np.vstack([length * f[:3], f[3:]]) for f in held.frames]
    return other.text()


@pytest.mark.slow
def test_units_are_converted_and_the_origin_of_the_file_is_no_part_of_the_body(held, tmp_path):
    same_motion(held.matrices("cantilever"), loaded(tmp_path, in_units(held, 1e3), units="mm t s"))


def test_a_body_longer_than_bodies_are_warns(held, tmp_path):
    with pytest.warns(sl.errors.SpanloopWarning, match="with units='m t s', the body is 5e.04 m long"):
        loaded(tmp_path, in_units(held, 1e5), units="m t s")


def stiffened(case):
    """The body from matrices with all its stiffening, and its K0 (n, n) of unit loads in the modes of the file."""
    static = {}

    def differential(d):
        G = case.solid.differential_stiffness(d)
        static[len(static)] = case.shapes.T @ (G @ case.shapes)
        return G

    whole = case.matrices("cantilever", stiffening=differential)
    keys = keys_of(("root", "tip"))
    return whole, {key: static[k] for k, key in enumerate(keys)}


@pytest.mark.slow
def test_geometric_stiffness_is_that_of_the_matrices(held, tmp_path):
    whole, loads = stiffened(held)
    at_tip = {key.partition(".")[2]: G for key, G in loads.items() if "." in key}
    exact = loaded(tmp_path, held.text(stiffening=loads, at_tip=at_tip, gyroscopic=1))
    assert exact.level == 2
    assert exact.has_spin
    assert exact.stiffens("tip")
    same_motion(whole, exact, tolerance=1e-7)
    # without Gr to first order: the same in the first order of deflection
    near = loaded(tmp_path, held.text(stiffening=loads, at_tip=at_tip))
    same_motion(whole, near, size=1e-8, tolerance=1e-8)
    assert near.level == 2


@pytest.mark.slow
def test_spins_alone_stiffen_as_those_of_the_matrices(held, tmp_path):
    """Nothing else in such a file shows that Oe has geometric stiffness, but that ∫ φ² would be negative."""
    whole, loads = stiffened(held)
    part = loaded(tmp_path, held.text(stiffening={key: G for key, G in loads.items() if key[0] == "w"}))
    assert part.loads == ("wxwx", "wywy", "wzwz", "wxwy", "wxwz", "wywz")
    for axis in "xyz":
        found, exact = (spinning_frequencies(p, axis) for p in (part, whole))
        np.testing.assert_allclose(found, exact, rtol=1e-7)
        plain = spinning_frequencies(held.matrices("cantilever"), axis)
        assert axis == "x" or np.abs(found / plain - 1.0).max() > 0.05


def spinning_frequencies(part, axis):
    """Of a blade on a hub that turns at half its first frequency, without Coriolis forces [rad/s]."""
    b = sl.Builder("rotor", gravity=(0, 0, 0)).body("blade", flexible=part)
    robot = sl.Dynamics(b.revolute("hub", "world", "blade", axis).build())
    rate = np.zeros(robot.model.nv)
    rate[0] = 0.5 * part.frequencies[0]

    def force(q):
        return robot.inverse_dynamics(q, rate, np.zeros(robot.model.nv))[1:]

    K = np.array([force(s) - force(-s) for s in 1e-6 * np.eye(robot.model.nq)[1:]]) / 2e-6
    M = robot.mass_matrix(np.zeros(robot.model.nq))[1:, 1:]
    return np.sqrt(eigh(0.5 * (K + K.T), M, eigvals_only=True))


@pytest.mark.slow
def test_constant_terms_are_level_0(held, tmp_path):
    part = loaded(tmp_path, held.text(orders=0))
    assert part.level == 0
    same_motion(held.matrices("cantilever"), part, size=1e-6, rate=1.0, tolerance=1e-5)


def test_damping_is_that_of_the_file_or_ratios(held, tmp_path):
    text = held.text(damping=1e-4 * held.modal.stiffness)
    part = loaded(tmp_path, text)
    np.testing.assert_allclose(part.damping, 1e-4 * part.stiffness, rtol=1e-9)
    part = loaded(tmp_path, text, damping=0.02)
    np.testing.assert_allclose(part.damping, 0.04 * part.stiffness / part.frequencies, rtol=1e-12)
    coupled = np.full((5, 5), 1.0) + 3.0 * np.eye(5)
    with pytest.warns(sl.errors.SpanloopWarning, match="De couples the modes"):
        loaded(tmp_path, held.text(damping=coupled))


@pytest.mark.slow
def test_such_a_body_is_saved_and_simulated(held, tmp_path):
    part = loaded(tmp_path, held.text())
    model = arm(part).model
    model.save(tmp_path / "arm.toml")
    assert sl.load(tmp_path / "arm.toml") == model
    run = sl.simulate(model, duration=0.02, step=1e-5)
    energy = run.audit()["energy"]
    assert energy.value <= energy.bound


def number(text, term, entry, value):
    """The file with another number at an entry of a term."""
    head, tail = text.split(f"         {term}\n", 1)
    at = tail.index(entry)
    end = tail.index("\n", at)
    return head + f"         {term}\n" + tail[:at] + f"{entry}  = {value}" + tail[end:]


BAD = {
    "no root": ({"interfaces": {"tip": TIP}}, None, "expected nodes of the file by name, with 'root'"),
    "no such node": ({"interfaces": {"root": ROOT, "tip": 9003}}, None, "interface 'tip' is node 9003, which"),
    "a list": ({"interfaces": {"root": ROOT, "tip": [1, 2]}}, None, r"node \[1, 2\], which"),
    "a node twice": ({"interfaces": {"root": ROOT, "tip": ROOT}}, None, "belongs to another one already"),
    "a reserved name": ({"interfaces": {"root": ROOT, "modes": TIP}}, None, "names another part of a flexible body"),
    "units": ({"units": "mm t"}, None, "expected length, mass and time"),
    "negative damping": ({"damping": -0.1}, None, "expected ratios of critical damping"),
    "a mode without stiffness": ({}, lambda t: number(t, "Ke", "m0(  1,  1)", "0.0"), "Ke of .* not positive definite"),
    "too little modal mass": ({}, lambda t: number(t, "Me", "m0(  1,  1)", "0.5"), "belong to no body: 1.9"),
    "a number of no body": ({}, lambda t: number(t, "Oe", "m0(  1,  3)", "1e200"), "Oe .* has the number 1e.200"),
    "no inertia": ({}, lambda t: number(t, "J", "m0(  3,  1)", "0.0"), "without inertia|belong to no body"),
    "not finite": ({}, lambda t: number(t, "Oe", "m0(  1,  3)", "1e400"), "beyond the range of doubles"),
    "Ct of another frame": (
        {}, lambda t: number(t, "Oe", "m0(  1,  4)", "3.0"), "contradict one another by",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_no_body_has_is_refused_with_the_term(case, held, tmp_path):
    options, change, sentence = BAD[case]
    with pytest.raises((sl.errors.InputError, sl.errors.FileError), match=sentence):
        loaded(tmp_path, held.text(change or str), **options)


def test_geometric_stiffness_of_another_root_is_refused(tmp_path):
    case = Case(free=True)
    loads = {"wzwz": case.modal.stiffness}
    with pytest.raises(sl.errors.InputError, match="whose root, node 9001, moves with the modes"):
        loaded(tmp_path, case.text(stiffening=loads | {"ax": case.modal.stiffness}))


def test_an_interface_that_does_not_turn_warns(held, tmp_path):
    with pytest.warns(sl.errors.SpanloopWarning, match=r"interface 'tip' \(node 21\) is displaced by the modes"):
        loaded(tmp_path, held.text(), interfaces={"root": ROOT, "tip": 21})


def test_terms_of_other_sizes_are_refused_by_name(held, tmp_path):
    (tmp_path / "body.SID_FEM").write_text(held.text())
    data = sl.flexible.load_modal(tmp_path / "body.SID_FEM")
    terms = dict(data.terms)
    for name, (rows, columns) in {"Me": (5, 5), "Oe": (5, 6), "J": (6, 1)}.items():
        cut = replace(terms[name], constant=terms[name].constant[: rows - 1])
        with pytest.raises(sl.errors.InputError, match=f"{name} .*has {rows - 1} rows and {columns} columns; expected"):
            sl.flexible.from_modal(replace(data, terms=terms | {name: cut}), interfaces=ENDS)


@pytest.mark.parametrize("name", ["Me", "Ke", "De"])
def test_one_triangle_of_a_matrix_that_is_declared_whole_is_refused(name, held, tmp_path):
    (tmp_path / "body.SID_FEM").write_text(held.text())
    data = sl.flexible.load_modal(tmp_path / "body.SID_FEM")
    whole = data.terms["Ke"].constant + 0.1 * np.sqrt(np.prod(np.diag(data.terms["Ke"].constant)[[0, 1]]))
    terms = data.terms | {name: replace(data.terms[name], constant=np.triu(whole))}
    with pytest.raises(sl.errors.InputError, match=rf"{name} .* is not symmetric: entry \(1, 2\) is .*, \(2, 1\) is 0"):
        sl.flexible.from_modal(replace(data, terms=terms), interfaces=ENDS)


def test_other_data_is_refused(held):
    with pytest.raises(sl.errors.InputError, match="expected the result of sl"):
        sl.flexible.from_modal(held.solid.stiffness, interfaces=ENDS)


def test_few_digits_are_taken_and_small_contradictions_warn(held, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded(tmp_path, held.text())
    first = float(held.modal.terms()[1]["Oe"][1][0, 3])
    with pytest.warns(sl.errors.SpanloopWarning, match="contradict one another by 0.1"):
        loaded(tmp_path, held.text(lambda t: number(t, "Oe", "m0(  1,  4)", 1.3 * first)))
