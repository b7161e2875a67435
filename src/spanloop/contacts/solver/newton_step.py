"""A step of Newton's method of the impulse solve: d = −A⁻¹ Φ by elimination in blocks, in runs that need it.

    A = 1 − D + D ρ (W + ε)

D ρ is M of friction_cone.py. The row of a point that does not press is that of 1, so that rows and pivots of points
that press in no run are skipped. There is no pivoting: blocks on the diagonal are regular by ε, but for jams.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spanloop.algorithms.contact.block_elimination import applied, inverse, less_applied, less_product, times
from spanloop.algorithms.contact.friction_cone import dense, groups
from spanloop.compiler.lower import For, When
from spanloop.compiler.lower.schedule import Item
from spanloop.contacts.solver.solver_arrays import SolverArrays
from spanloop.math.scalar import where
from spanloop.math.vector3 import total

SMALLER = 0.1  # part of ε in rounds without halving


def newton_step(x: SolverArrays) -> list[Item]:
    """The calls that fill d where `newton` is positive."""
    derivative = For("j", 0, x.n, (When((_derivative(x),), x.of("on", "j")),))
    rows = For("i", 0, x.n, (When((derivative, _diagonal(x)), x.of("presses", "i")), _side(x)))
    return [rows, _elimination(x), _substitution(x)]


def _derivative(x: SolverArrays) -> Item:
    """D ρ W of two points."""

    def page(M, W):
        rows = [[(k, y) for k, y in enumerate(row) if not _is_zero(y)] for row in dense(M, x.block)]
        return ([total(y * W[k * x.block + j] for k, y in row) for row in rows for j in range(x.block)],)

    return x.call("derivative", (x.of("M", "i"), x.pair("W", "i", "j")), (x.pair("A", "i", "j"),), page)


def _diagonal(x: SolverArrays) -> Item:
    """1 − D + D ρ ε of a point, added to its own block."""
    block, of = x.block, groups(x.block)

    def page(A, M, w, soft, factor, halving, scale, moments):
        rows, part = dense(M, block), where(halving[0] > 0.0, 1.0, SMALLER)
        eps = [part * (scale if e < 3 else moments)[0] - w[of[e]] / factor[0] for e in range(block)]
        eps[0] = eps[0] + soft[0]
        added = [rows[i][j] * eps[j] + (1.0 if i == j else 0.0) for i in range(block) for j in range(block)]
        return ([y + z for y, z in zip(A, added, strict=True)],)

    own = x.pair("A", "i", "i")
    reads = (own, *x.each("i", "M", "w", "soft"), "factor", "halving", "scale", "scale.moments")
    return x.call("diagonal", reads, (own,), page)


def _side(x: SolverArrays) -> Item:
    """−Φ as right-hand side."""

    def page(d, phi, newton):
        return (_taken(newton, [-y for y in phi], d),)

    return x.call("side", (*x.each("i", "d", "phi"), "newton"), (x.of("d", "i"),), page)


def _elimination(x: SolverArrays) -> Item:
    """A = L U in blocks, and L⁻¹ of the right-hand side."""
    n, block = x.n, x.block
    low, target, own = x.pair("A", "i", "k"), x.pair("A", "i", "j"), x.of("d", "i")
    invert = x.call("invert", (x.pair("A", "k", "k"),), (x.of("inverse", "k"),), lambda A: (inverse(A, block),))
    factor = x.call("low", (low, x.of("inverse", "k")), (low,), lambda A, B: (times(A, B, block),))

    def less(C, A, B):
        return (less_product(C, A, B, block),)

    def forward(d, L, y, newton):
        return (_taken(newton, less_applied(d, L, y, block), d),)

    update = x.call("update", (target, low, x.pair("A", "k", "j")), (target,), less)
    side = x.call("forward", (own, low, x.of("d", "k"), "newton"), (own,), forward)
    presses = x.of("presses", "k")
    row = When((factor, For("j", ("k", 1), n, (When((update,), x.of("on", "j")),))), presses)
    below = For("i", ("k", 1), n, (When((row, side), x.of("presses", "i")),))
    return For("k", 0, n, (When((When((invert,), presses), below), x.of("on", "k")),))


def _substitution(x: SolverArrays) -> Item:
    """U⁻¹ of the right-hand side, from the last point to the first."""
    own = x.of("d", "-k")

    def backward(d, U, y, newton):
        return (_taken(newton, less_applied(d, U, y, x.block), d),)

    def divide(d, B, presses, newton):
        return (_taken(newton, _taken(presses, applied(B, d, x.block), d), d),)

    add = x.call("backward", (own, x.pair("A", "-k", "-m"), x.of("d", "-m"), "newton"), (own,), backward)
    finish = x.call("finish", (own, *x.each("-k", "inverse", "presses"), "newton"), (own,), divide)
    rest = For("m", 0, ("k", 0), (When((add,), x.of("on", "-m")),))
    return For("k", 0, x.n, (When((rest, finish), x.of("presses", "-k")),))


def _taken(flag: Sequence[Any], new: Sequence[Any], old: Sequence[Any]) -> list[Any]:
    """The new numbers where the flag is positive."""
    return [where(flag[0] > 0.0, y, z) for y, z in zip(new, old, strict=True)]


def _is_zero(y: Any) -> bool:
    return isinstance(y, float) and y == 0.0
