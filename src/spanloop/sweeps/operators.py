"""Spatial operators as objects: typed as in the papers, applied by sweeps, shown as matrices on demand.

    S = sl.operators(model, q)
    H, phi, Mb = S.H, S.phi, S.Mb
    M = H @ phi @ Mb @ phi.T @ H.T        # nothing is computed
    tau = M @ a                           # five sweeps, O(n)
    M.matrix(), print(M.picture())        # to look at
    kernel = sl.compile(model, M)         # machine code: kernel(q, a)

`tree_operators` and `closure_operators` have the names, `terms` the sweeps of each.
"""

from __future__ import annotations

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.sweeps import tree_operators
from spanloop.sweeps.closure_operators import RowInverse
from spanloop.sweeps.spaces import Algebra
from spanloop.sweeps.terms import ONE, ROWS, Product, Term, added, product
from spanloop.sweeps.vectors import Vector

_NUMBER = (int, float)


class Operator:
    """A linear map between stacked vectors. Combine with @ + - * and .T; `op @ x` applies it."""

    __array_ufunc__ = None  # x @ op comes to us also when x is an array

    def __init__(self, algebra: Algebra, term: Term):
        self.algebra, self.term = algebra, term

    def __repr__(self) -> str:
        return self.term.text

    @property
    def shape(self) -> tuple[int, int]:
        """Length of the vectors that it gives, and of those that it takes."""
        return self.algebra.size(self.term.rows), self.algebra.size(self.term.columns)

    # ---- algebra

    @property
    def T(self) -> Operator:
        """The transpose."""
        return self._new(self.term.star())

    def __matmul__(self, other):
        if isinstance(other, Operator):
            self._check_fits(other.term.rows, repr(other))
            return self._new(product(self.term, other.term))
        if isinstance(other, Vector):
            self._check_fits(other.space, repr(other))
            return other.mapped(self.term)
        return self.algebra.applied(self.term, other)

    def __rmatmul__(self, x):
        """x @ op = op.T @ x."""
        return self.T @ x

    def __add__(self, other):
        return self._plus(1.0, other, 1.0)

    def __sub__(self, other):
        return self._plus(1.0, other, -1.0)

    def __rsub__(self, other):
        return self._plus(-1.0, other, 1.0)

    __radd__ = __add__

    def __neg__(self) -> Operator:
        return -1.0 * self

    def __mul__(self, number) -> Operator:
        if not isinstance(number, _NUMBER):
            raise InputError(f"{self} * {number!r}: only numbers multiply an operator; compose operators with @")
        return self._new(added((float(number), self.term)))

    __rmul__ = __mul__

    def inverse(self) -> Operator:
        """The inverse, where one is known: of D, its root, 1 − E_phi, 1 − E_psi, 1 + H φ K, the mass matrix, products.

        Of symmetric maps of rows to rows, as A @ Lam @ A.T, by one small dense solution.
        """
        return self._new(self._inverse(self.term))

    # ---- numbers

    def at(self, q) -> Operator:
        """The same expression at coordinates q (nq,)."""
        return Operator(self.algebra.at(q), self.term)

    def matrix(self) -> np.ndarray:
        """The dense matrix at the algebra's q, column by column: to look at, not to compute with."""
        return np.column_stack([self.algebra.applied(self.term, e) for e in np.eye(self.shape[1])])

    def picture(self) -> str:
        """The block sparsity as text: # a block that is not zero, · one that is."""
        algebra = self.algebra if self.algebra.q is not None else self.algebra.at(self.algebra.anywhere())
        return algebra.picture(Operator(algebra, self.term).matrix(), self.term)

    # ----

    def _new(self, term: Term) -> Operator:
        return Operator(self.algebra, term)

    def _check_fits(self, space: str, other: str) -> None:
        if self.term.columns != space:
            raise InputError(
                f"({self}) @ ({other}): the first takes vectors of {self.term.columns}, the second gives vectors of "
                f"{space}. Is a .T missing?"
            )

    def _plus(self, mine: float, other, factor: float) -> Operator:
        if isinstance(other, _NUMBER):
            if self.term.rows != self.term.columns:
                raise InputError(f"{other} and {self}: only a square operator can be added to a number")
            term, factor = tree_operators.identity(self.term.rows), factor * other
        elif isinstance(other, Operator):
            term = other.term
            if (term.rows, term.columns) != (self.term.rows, self.term.columns):
                raise InputError(
                    f"({self}) + ({other}): the first maps {self.term.columns} to {self.term.rows}, "
                    f"the second {term.columns} to {term.rows}"
                )
        else:
            return NotImplemented
        return self._new(added((mine, self.term), (factor, term)))

    def _inverse(self, term: Term) -> Term:
        known = tree_operators.inverses(self.algebra.has_armature)
        if term.text in known:
            return known[term.text]
        if isinstance(term, RowInverse):
            return term.of
        if term.rows == term.columns == ROWS and term.star().text == term.text:
            return RowInverse(term)
        if term.text == ONE:
            return term
        if isinstance(term, Product):
            return product(*(self._inverse(f) for f in reversed(term.factors)))
        raise InputError(
            f"{term.text}: no inverse is known. There are those of D, 1 - E_phi, 1 - E_psi, phi, psi, "
            "1 + H @ phi @ K, 1 - H @ psi @ K, the mass matrix, A @ Lam @ A.T, and products of them"
        )


class Operators:
    """The operators of one tree, by name: E_phi, phi, H, Mb, P, D, D_root, G, K, tau_bar, E_psi, psi, Upsilon, Omega,
    B, J; and of its closures: A, Lam, b."""

    E_phi: Operator
    phi: Operator
    H: Operator
    Mb: Operator
    P: Operator
    D: Operator
    D_root: Operator
    G: Operator
    K: Operator
    tau_bar: Operator
    E_psi: Operator
    psi: Operator
    Upsilon: Operator
    Omega: Operator
    B: Operator
    J: Operator
    armature: Operator
    A: Operator  # with closures: A, Lam, b
    Lam: Operator
    b: Operator

    def __init__(self, algebra: Algebra):
        self.algebra = algebra
        self._terms = tree_operators.NAMES | (tree_operators.CLOSED if algebra.closed else {})
        for name, term in self._terms.items():
            setattr(self, name, Operator(algebra, term))

    def __getattr__(self, name: str) -> Operator:
        if name in tree_operators.CLOSED:
            raise InputError(
                f"{name} is an operator of loops; model {self.algebra.model.name!r} has "
                + ("some, but frames are named: leave them out" if self.algebra.frames else "none")
            )
        raise AttributeError(f"there is no operator {name!r}; {nearest(name, tree_operators.NAMES)}")

    def __repr__(self) -> str:
        return f"operators of {self.algebra.model.name!r}: {', '.join(self._terms)}"

    def vector(self, name: str, space: str = "joints") -> Vector:
        """A vector yet to come, for expressions that are to be compiled: an input of this name."""
        return Vector.given(self.algebra, name, space)
