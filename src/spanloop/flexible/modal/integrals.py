"""What a SID file has of the mass of a flexible body: products of 1, x, φ_k over it, and its geometric stiffening.

| SID | constant | first order | here |
|---|---|---|---|
| mdCM, J | m c, inertia about the origin | | ∫ x, S = ∫ x xᵀ |
| Ct | ∫ φ_k | K0 of unit accelerations | `first`; "ax" ... |
| Cr | ∫ x × φ_k | ∫ φ_l × φ_k + K0 of unit angular accelerations | `turn`, `crossed`; "dwx" ... |
| Oe | ∫ φ_k · W x | ∫ φ_k · W φ_l + K0 of unit spins | symmetric parts of C_k = ∫ x φ_kᵀ, T_kl = ∫ φ_k φ_lᵀ |
| Gr | −2 ∫ [x] [φ_k] | −2 ∫ [φ_l] [φ_k] | C_k; T_kl, where Oe has K0 |
| Me, Ke, De | modal mass, stiffness, damping | | as they are |
| phi, psi | motion of a node | −K0 of unit forces, moments there | nodes; "tip.fx" ... |

k, l: modes; in the first order l is that by whose coordinate. W: the field of accelerations W x of products of angular
velocities, whose columns SID orders 11, 22, 33, 12, 23, 13. K0 is symmetric in k and l. In Oe it stands on top of T_kl,
which is symmetric, too: without Gr to first order the two cannot be separated, and T_kl is that of the part of φ that
is affine in x. That is no error of first order in q, only their sum counts there. Cr may contain rotary inertia of
nodes, which Gr does not; where Gr is not given, or its columns have another order, C_k is that of Oe and Cr. Programs
write Oe to first order symmetric in k and l, or all in one of the two entries: we take the mean. [Wallrapp1994]
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spanloop.errors import InputError
from spanloop.flexible.files.formats.sid import Expansion, ModalData
from spanloop.flexible.files.units import Units
from spanloop.flexible.matrices.stiffening import ACCELERATIONS, LOADS, SPINS, TURNS, field_gradient
from spanloop.flexible.particles import antisymmetric, axial, skew

_COLUMNS = ("wxwx", "wywy", "wzwz", "wxwy", "wywz", "wxwz")  # of Oe
_CYCLIC = ((1, 2), (2, 0), (0, 1))
_LARGEST = 1e30
_DIGITS = 1e-6  # of a term: smaller parts are the digits of a file
_ASYMMETRY = 1e-4  # of the diagonal: Me, Ke, De and J of a file with few digits
_AGREE = 1e-3  # of the largest: Gr and Oe are of the same columns
_STIFFENED = -0.02  # of a modal mass: ∫ φ² from Oe below this contains K0, which is positive


@dataclass(frozen=True, eq=False)
class ModalIntegrals:
    """In SI units and the axes and the frame of the file, of n modes.

    mass; moment (3,): ∫ x; second (3, 3): ∫ x xᵀ; first (n, 3): ∫ φ_k; turn (n, 3): ∫ x × φ_k, rotary inertia
    included; mixed (n, 3, 3): ∫ x φ_kᵀ; pairs (n, n, 3, 3): ∫ φ_k φ_lᵀ, the file's if `pairs_known`, else those of the
    affine parts of the modes; crossed (n, n, 3): ∫ φ_k × φ_l; masses, stiffness, damping (n, n);
    stiffening: matrices (n, n) by load.
    """

    mass: float
    moment: np.ndarray
    second: np.ndarray
    first: np.ndarray
    turn: np.ndarray
    mixed: np.ndarray
    pairs: np.ndarray
    crossed: np.ndarray
    masses: np.ndarray
    stiffness: np.ndarray
    damping: np.ndarray
    stiffening: dict[str, np.ndarray]
    pairs_known: bool

    @property
    def inertia(self) -> np.ndarray:
        """Inertia (3, 3) about the origin."""
        return np.asarray(np.trace(self.second) * np.eye(3) - self.second)

    @property
    def products(self) -> np.ndarray:
        """Products (4 + 3n, 4 + 3n) of 1, x, y, z and the components of φ_k over the mass."""
        return self._products(self.pairs)

    @property
    def crossed_products(self) -> np.ndarray:
        """The same with `crossed`, which need not be positive."""
        return self._products(self.pairs + antisymmetric(self.crossed - axial(self.pairs)))

    def _products(self, pairs: np.ndarray) -> np.ndarray:
        n = len(self.masses)
        out = np.zeros((4 + 3 * n, 4 + 3 * n))
        out[0, 0], out[0, 1:4], out[0, 4:] = self.mass, self.moment, self.first.ravel()
        out[1:4, 1:4], out[1:4, 4:] = self.second, self.mixed.transpose(1, 0, 2).reshape(3, 3 * n)
        out[4:, 4:] = pairs.transpose(0, 2, 1, 3).reshape(3 * n, 3 * n)
        upper = np.triu(out)
        return np.asarray(upper + np.triu(out, 1).T)

    @property
    def mass_matrix(self) -> np.ndarray:
        """Mass matrix (6 + n, 6 + n) of the undeformed body: displacement and rotation at the origin, modes."""
        turn = self.turn.T
        static = -skew(self.moment)
        top = np.hstack([self.mass * np.eye(3), static, self.first.T])
        middle = np.hstack([static.T, self.inertia, turn])
        return np.vstack([top, middle, np.hstack([self.first, turn.T, self.masses])])


def modal_integrals(data: ModalData, units: Units, owner: str) -> ModalIntegrals:
    """The integrals of a file in SI units. Raises InputError for numbers that no body has."""
    n, terms = len(data.modes), data.terms
    _check_terms(data, owner)
    length, mass = units.length, units.mass
    area, rate = mass * length**2, 1.0 / units.time
    J = _inertia(data, owner) * area
    second = 0.5 * np.trace(J) * np.eye(3) - J
    moment = terms["mdCM"].constant.ravel() * mass * length
    first, turn = terms["Ct"].constant * mass * length, terms["Cr"].constant * area
    oe = terms.get("Oe", Expansion(np.zeros((n, 6)), np.zeros((n, 0, 6))))
    mixed = _mixed(oe.constant, terms["Cr"].constant, terms.get("Gr")) * area
    masses = _square(data, "Me", owner) * area
    stiffness = _square(data, "Ke", owner) * area * rate**2
    damping = _square(data, "De", owner) * area * rate if "De" in terms else np.zeros((n, n))
    products = ModalIntegrals(
        data.mass * mass, moment, second, first, turn, mixed, np.zeros((n, n, 3, 3)), np.zeros((n, n, 3)), masses,
        stiffness, damping, {}, False,
    )  # fmt: skip
    found = _from_spins(data.terms.get("Oe"), data.terms["Cr"], area)
    stiffened = _is_stiffened(data, found, masses)
    pairs, known = _pairs(data, found, stiffened, products, area)
    given = _stiffening(data, pairs, units) if stiffened else {}
    crossed = axial(pairs) if data.terms["Cr"].slope.shape != (n, n, 3) else -area * _odd(data.terms["Cr"].slope)
    return replace(products, pairs=pairs, crossed=crossed, stiffening=given, pairs_known=known)


def _check_terms(data: ModalData, owner: str) -> None:
    """Raise InputError for terms of sizes that do not fit the modes, and for numbers that are not finite."""
    n = len(data.modes)
    shapes = {"mdCM": (3, 1), "Ct": (n, 3), "Cr": (n, 3), "Oe": (n, 6), "Gr": (3, 3 * n)}
    shapes |= dict.fromkeys(("Me", "Ke", "De"), (n, n))
    every = {name: (term, shapes.get(name)) for name, term in data.terms.items()}
    for node in data.nodes:
        parts = {"origin": (node.position, (3, 1)), "phi": (node.translation, (3, n)), "psi": (node.rotation, (3, n))}
        every |= {f"{part} of node {node.label}": x for part, x in parts.items()}
    for name, (term, shape) in every.items():
        if shape is not None and term.constant.shape != shape:
            rows, columns = term.constant.shape
            raise InputError(
                f"{owner}: {name} of {data.source} has {rows} rows and {columns} columns; expected {shape[0]} and "
                f"{shape[1]} for {n} modes"
            )
        numbers = np.concatenate([term.constant.ravel(), term.slope.ravel()])
        if not (np.abs(numbers) < _LARGEST).all():
            worst = numbers[~(np.abs(numbers) < _LARGEST)][0]
            raise InputError(f"{owner}: {name} of {data.source} has the number {worst:g}, which no body has")
    if not 0.0 < data.mass < _LARGEST:
        raise InputError(f"{owner}: mass of {data.source} is {data.mass:g}; must be > 0, and of a body")


def _inertia(data: ModalData, owner: str) -> np.ndarray:
    """(3, 3) from six numbers xx, yy, zz, xy, xz, yz, or from nine."""
    term = data.terms["J"].constant
    if term.shape == (3, 3):
        return _square(data, "J", owner)
    if term.size != 6:
        raise InputError(
            f"{owner}: J has {term.shape[0]} rows and {term.shape[1]} columns; expected 6 and 1, or 3 and 3"
        )
    xx, yy, zz, xy, xz, yz = term.ravel()
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _square(data: ModalData, name: str, owner: str) -> np.ndarray:
    """A symmetric term, without the rounding of its printed digits. Raises InputError for one that is not symmetric."""
    term = data.terms[name].constant
    size = np.sqrt(np.abs(np.diag(term)))
    off = np.abs(term - term.T) > _ASYMMETRY * np.outer(size, size) + 1e-12 * np.abs(term).max(initial=0.0)
    if off.any():
        i, j = np.argwhere(off)[0]
        raise InputError(
            f"{owner}: {name} of {data.source} is not symmetric: entry ({i + 1}, {j + 1}) is {term[i, j]:.6g}, "
            f"({j + 1}, {i + 1}) is {term[j, i]:.6g}. Is one triangle there alone? Structure 2 means that"
        )
    return np.asarray(0.5 * (term + term.T))


def _symmetric(o: np.ndarray) -> np.ndarray:
    """Symmetric parts (..., 3, 3) of m from tr(W m) for the six columns (..., 6) of Oe."""
    out = np.zeros((*o.shape[:-1], 3, 3))
    total = -0.5 * o[..., :3].sum(axis=-1)  # the trace
    for a in range(3):
        out[..., a, a] = total + o[..., a]
    for c, (a, b) in zip((3, 4, 5), ((0, 1), (1, 2), (0, 2)), strict=True):
        out[..., a, b] = out[..., b, a] = 0.5 * o[..., c]
    return out


def _mixed(oe: np.ndarray, cr: np.ndarray, gr: Expansion | None) -> np.ndarray:
    """C_k (n, 3, 3)."""
    found = _symmetric(oe)
    if gr is not None and gr.constant.shape == (3, 3 * len(cr)):
        P = -0.5 * gr.constant.reshape(3, len(cr), 3).transpose(1, 2, 0)  # at k: x φ_kᵀ − (x · φ_k) 1
        C = P - 0.5 * np.trace(P, axis1=1, axis2=2)[:, None, None] * np.eye(3)
        if np.abs(0.5 * (C + C.transpose(0, 2, 1)) - found).max() <= _AGREE * np.abs(found).max():
            return np.asarray(C)
    return found + antisymmetric(cr)


def _from_spins(Oe: Expansion | None, Cr: Expansion | None, area: float) -> np.ndarray | None:
    """T_kl + K0 (n, n, 3, 3) of Oe and Cr to first order; None without."""
    n = 0 if Oe is None else len(Oe.constant)
    if Oe is None or Cr is None or Oe.slope.shape != (n, n, 6) or Cr.slope.shape != (n, n, 3):
        return None
    return np.asarray(area * (_symmetric(_even(Oe.slope)) - antisymmetric(_odd(Cr.slope))))


def _is_stiffened(data: ModalData, found: np.ndarray | None, masses: np.ndarray) -> bool:
    """Whether the file has geometric stiffness."""
    Cr = data.terms["Cr"].slope
    if data.stiffening or (Cr.size and _is_there(_even(Cr), Cr, data)):
        return True
    return found is not None and bool((np.einsum("kkaa->k", found) < _STIFFENED * np.diag(masses)).any())


def _pairs(data: ModalData, found: np.ndarray | None, stiffened: bool, rest: ModalIntegrals, area: float):
    """T_kl (n, n, 3, 3), and whether they are the file's."""
    n, Gr = len(data.modes), data.terms.get("Gr")
    if Gr is not None and Gr.slope.shape == (3, n, 3 * n) and Gr.slope.any():
        P = -0.5 * area * Gr.slope.reshape(3, n, n, 3).transpose(2, 1, 0, 3)  # at k, l: φ_k φ_lᵀ − (φ_k · φ_l) 1
        T = P - 0.5 * np.trace(P, axis1=2, axis2=3)[..., None, None] * np.eye(3)
        return 0.5 * (T + T.transpose(1, 0, 3, 2)), True
    if found is not None and not stiffened:
        return found, True
    return _affine_pairs(rest), False


def _affine_pairs(rest: ModalIntegrals) -> np.ndarray:
    """T_kl of those parts of φ_k that are affine in x."""
    n = len(rest.masses)
    products = rest.products
    size = np.sqrt(np.maximum(np.diag(products)[:4], 1e-300))
    own = np.linalg.pinv(products[:4, :4] / np.outer(size, size), rcond=1e-9, hermitian=True)
    across = products[:4, 4:] / size[:, None]
    return np.asarray((across.T @ own @ across).reshape(n, 3, n, 3).transpose(0, 2, 1, 3))


def _is_there(part: np.ndarray, of: np.ndarray, data: ModalData) -> bool:
    most = max(float(np.abs(of).max(initial=0.0)), float(np.abs(data.terms["Me"].constant).max(initial=0.0)))
    return bool(np.abs(part).max(initial=0.0) > _DIGITS * most)


def _even(slope: np.ndarray) -> np.ndarray:
    """The part of a slope (k, l, columns) that is symmetric in the modes."""
    return np.asarray(0.5 * (slope + slope.transpose(1, 0, 2)))


def _odd(slope: np.ndarray) -> np.ndarray:
    """The part of a slope (k, l, columns) that is antisymmetric in the modes; of Cr, ∫ φ_l × φ_k."""
    return np.asarray(0.5 * (slope - slope.transpose(1, 0, 2)))


def _stiffening(data: ModalData, pairs: np.ndarray, units: Units) -> dict[str, np.ndarray]:
    """K0 (n, n) by load [per m/s², rad²/s², rad/s²]."""
    n, area = len(data.modes), units.mass * units.length**2
    slopes = {name: term.slope for name, term in data.terms.items()}
    out: dict[str, np.ndarray] = {}
    if slopes["Ct"].shape == (n, n, 3) and slopes["Ct"].any():
        out |= {key: units.mass * units.length * _even(slopes["Ct"])[..., c] for c, key in enumerate(ACCELERATIONS)}
    if slopes["Cr"].shape == (n, n, 3) and _is_there(_even(slopes["Cr"]), slopes["Cr"], data):
        out |= {key: area * _even(slopes["Cr"])[..., c] for c, key in enumerate(TURNS)}
    if "Oe" in slopes and slopes["Oe"].shape == (n, n, 6):
        of_mass = np.stack([np.einsum("ab,klab->kl", field_gradient(key), pairs) for key in _COLUMNS], axis=-1)
        spins = area * _even(slopes["Oe"]) - _even(of_mass)
        out |= {key: spins[..., _COLUMNS.index(key)] for key in SPINS}
    return out


def node_stiffening(name: str, translation: Expansion, rotation: Expansion, units: Units) -> dict[str, np.ndarray]:
    """K0 (n, n) of unit forces [N] and moments [N m] at a node, by load."""
    out: dict[str, np.ndarray] = {}
    for keys, slope, factor in ((LOADS[:3], translation.slope, units.length), (LOADS[3:], rotation.slope, 1.0)):
        if slope.size and slope.any():
            g = 0.5 * (slope + slope.transpose(0, 2, 1))
            out |= {f"{name}.{key}": -factor * g[c] for c, key in enumerate(keys)}
    return out
