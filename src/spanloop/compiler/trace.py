"""A hash-consed scalar graph: run plain arithmetic on its expressions and it records, simplified, what was done.

Simplified means: constants fold, 0 and 1 vanish, signs move outward, equal expressions are one node, and the few
cancellations that elimination leaves behind are seen (x·(1/x) = 1, x + (a − x) = a, c·x ± d·x). Every rule holds in
exact arithmetic for finite values and removes rounding where it acts.
"""

from __future__ import annotations

from typing import Any

from numpy import ndarray, where

from spanloop.math.scalar import modulo

# the operations that a graph is made of: all that a target must render
INPUT, CONSTANT, NEGATE, ADD, SUBTRACT, MULTIPLY, DIVIDE, SINE, COSINE, ROOT, LESS, BOTH, EITHER, NOT, SELECT = range(
    15
)

NAMES = (
    "input",
    "constant",
    "negate",
    "add",
    "subtract",
    "multiply",
    "divide",
    "sine",
    "cosine",
    "root",
    "less",
    "both",
    "either",
    "not",
    "select",
)

CONDITIONS = frozenset((LESS, BOTH, EITHER, NOT))


class TraceError(TypeError):
    """A traced value was used where Python needs a number."""


class StateKeptError(TraceError):
    """A traced value was used after its trace, or a function does not compute the same when it is called again."""


class Graph:
    """Expressions in the order in which they were made, which is an order of evaluation."""

    def __init__(self) -> None:
        self.nodes: list[Expression] = []
        self._known: dict = {}
        self.n_inputs = 0

    def inputs(self, n: int) -> list[Expression]:
        """n new inputs, numbered after those there are."""
        new = [self._append(INPUT, None, None, None, self.n_inputs + k) for k in range(n)]
        self.n_inputs += n
        return new

    def constant(self, x: float) -> Expression:
        """The node of a constant."""
        x = float(x)
        key = (CONSTANT, x)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._append(CONSTANT, None, None, None, x)
        return found

    def node(self, op: int, a: Expression, b: Expression | None = None, c: Expression | None = None) -> Expression:
        """The node of an operation, without simplification."""
        if c is not None:
            assert b is not None
            own = a.graph is b.graph is c.graph is self
            key = (op, a.index, b.index, c.index)
        elif b is not None:
            own, key = a.graph is b.graph is self, (op, a.index, b.index, -1)
        else:
            own, key = a.graph is self, (op, a.index, -1, -1)
        if not own:
            raise StateKeptError("it uses a value that an earlier call has kept")
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._append(op, a, b, c, None)
        return found

    def find(self, op: int, a: Expression, b: Expression) -> Expression | None:
        return self._known.get((op, a.index, b.index, -1))

    def _append(self, op, a, b, c, value) -> Expression:
        e = Expression.__new__(Expression)
        e.graph, e.op, e.a, e.b, e.c, e.value, e.index = self, op, a, b, c, value, len(self.nodes)
        self.nodes.append(e)
        return e


def _ufunc(self: Any, called: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """NumPy's ufuncs of traced values."""
    from spanloop.compiler import traced_arrays

    return traced_arrays.ufunc(called, method, inputs, options)


def _function(self: Any, called: Any, types: Any, args: Any, options: Any) -> Any:
    """NumPy's other functions of traced values."""
    from spanloop.compiler import traced_arrays

    return traced_arrays.function(called, args, options)


class Expression:
    """A traced real number."""

    __slots__ = ("a", "b", "c", "graph", "index", "op", "value")
    graph: Graph
    op: int
    a: Expression
    b: Expression
    c: Expression
    value: float
    index: int

    def __repr__(self) -> str:
        parts = [f"%{x.index}" for x in (self.a, self.b, self.c) if x is not None]
        return f"%{self.index} = {NAMES[self.op]} " + ", ".join(
            parts + ([] if self.value is None else [str(self.value)])
        )

    def __add__(self, y):
        if type(y) is Expression:
            return _add(self, y)
        if isinstance(y, ndarray):
            return NotImplemented  # element by element, by the array
        y = float(y)
        return self if y == 0.0 else _add(self, self.graph.constant(y))

    __radd__ = __add__

    def __sub__(self, y):
        if type(y) is Expression:
            return _subtract(self, y)
        if isinstance(y, ndarray):
            return NotImplemented
        y = float(y)
        return self if y == 0.0 else _add(self, self.graph.constant(-y))

    def __rsub__(self, y):
        y = float(y)
        return _negate(self) if y == 0.0 else _subtract(self.graph.constant(y), self)

    def __mul__(self, y):
        if type(y) is Expression:
            return _multiply(self, y)
        return NotImplemented if isinstance(y, ndarray | Condition) else _times(self, float(y))

    __rmul__ = __mul__

    def __truediv__(self, y):
        if type(y) is Expression:
            return 1.0 if y is self else _divide(self, y)
        return NotImplemented if isinstance(y, ndarray) else _times(self, 1.0 / float(y))

    def __rtruediv__(self, y):
        y = float(y)
        return 0.0 if y == 0.0 else _divide(self.graph.constant(y), self)

    def __neg__(self):
        return _negate(self)

    def __pos__(self):
        return self

    def __abs__(self):
        return (self < 0.0).select(-self, self)

    def __pow__(self, n):
        """A whole power by squaring, or one that ends in .5 with the root."""
        if isinstance(n, ndarray):
            return NotImplemented
        if isinstance(n, Expression) or 2 * n != int(2 * n) or abs(n) > 64:
            raise TraceError(
                f"a traced value to the power {n}; powers up to 64 that are whole or end in .5 can be traced"
            )
        if n < 0:
            return 1.0 / self**-n
        if n != int(n):
            return self.sqrt() if n == 0.5 else self ** int(n) * self.sqrt()
        half = self ** (int(n) // 2) if n > 1 else 1.0
        return half * half * self if n % 2 else half * half

    def __mod__(self, m):
        return NotImplemented if isinstance(m, ndarray) else modulo(self, m)

    def conjugate(self):
        return self

    def sincos(self):
        return self.graph.node(SINE, self), self.graph.node(COSINE, self)

    def sqrt(self):
        return self.graph.node(ROOT, self)

    __array_ufunc__, __array_function__ = _ufunc, _function

    def __lt__(self, y):
        if isinstance(y, ndarray):
            return NotImplemented
        return Condition(self.graph.node(LESS, self, self._as_node(y)))

    def __gt__(self, y):
        if isinstance(y, ndarray):
            return NotImplemented
        return Condition(self.graph.node(LESS, self._as_node(y), self))

    def __le__(self, y):
        return NotImplemented if isinstance(y, ndarray) else ~(self > y)

    def __ge__(self, y):
        return NotImplemented if isinstance(y, ndarray) else ~(self < y)

    def _as_node(self, y) -> Expression:
        return y if type(y) is Expression else self.graph.constant(y)

    def __bool__(self):
        raise TraceError("a traced value has no truth: it is a number yet to come. Use sl.where(condition, yes, no)")

    def __float__(self):
        raise TraceError("a traced value has no number yet; keep to + - * / and to NumPy's functions, as np.sin")

    def __eq__(self, other):
        raise TraceError("traced values cannot be compared with ==; use < and sl.where")

    __hash__ = object.__hash__


class Condition:
    """A traced truth value: combine with & | ~, use with `select`."""

    __slots__ = ("node",)

    def __init__(self, node: Expression):
        self.node = node

    def select(self, yes, no):
        """yes where true, no elsewhere."""
        if isinstance(yes, ndarray) or isinstance(no, ndarray):
            return _function(self, where, (), (self, yes, no), {})
        if yes is no or (type(yes) is float and type(no) is float and yes == no):
            return yes
        g = self.node.graph
        if self.node.op == NOT:
            return Condition(self.node.a).select(no, yes)
        yes, no = (x if type(x) is Expression else g.constant(x) for x in (yes, no))
        return g.node(SELECT, self.node, yes, no)

    def __and__(self, other):
        if type(other) is not Condition:
            return NotImplemented if isinstance(other, ndarray) else self if other else False
        return Condition(self.node.graph.node(BOTH, self.node, other.node))

    def __or__(self, other):
        if type(other) is not Condition:
            return NotImplemented if isinstance(other, ndarray) else True if other else self
        return Condition(self.node.graph.node(EITHER, self.node, other.node))

    __rand__, __ror__ = __and__, __or__

    def __mul__(self, y):
        """The value where true, 0 elsewhere; both of two conditions."""
        if isinstance(y, ndarray):
            return NotImplemented
        return self & y if type(y) is Condition else self.select(y if type(y) is Expression else float(y), 0.0)

    __rmul__ = __mul__

    def __invert__(self):
        if self.node.op == NOT:
            return Condition(self.node.a)
        return Condition(self.node.graph.node(NOT, self.node))

    def __bool__(self):
        raise TraceError(
            "`if` on a traced condition: both branches are compiled. Use sl.where(condition, yes, no), or np.where; "
            "arrays of several values that are compared are np.stack([...]), not np.array([...])"
        )

    __array_ufunc__, __array_function__ = _ufunc, _function


def _times(x: Expression, c: float):
    if c == 0.0:
        return 0.0
    if c == 1.0:
        return x
    if x.op == NEGATE:
        return _times(x.a, -c)
    if c == -1.0:
        return _negate(x)
    if c < 0.0:
        return -_times(x, -c)  # a product of constants may underflow to the number 0
    if x.op == MULTIPLY and x.a.op == CONSTANT:
        return _times(x.b, x.a.value * c)
    return x.graph.node(MULTIPLY, x.graph.constant(c), x)


def _negate(x: Expression):
    if x.op == NEGATE:
        return x.a
    if x.op == CONSTANT:
        return x.graph.constant(-x.value)
    if x.op == SUBTRACT:
        known = x.graph.find(SUBTRACT, x.b, x.a)
        if known is not None:
            return known
    return x.graph.node(NEGATE, x)


def _is_reciprocal(r: Expression, x: Expression) -> bool:
    return r.op == DIVIDE and r.b is x and r.a.op == CONSTANT and r.a.value == 1.0


def _multiply(x: Expression, y: Expression):
    if x.op == NEGATE:
        return -(x.a * y)
    if y.op == NEGATE:
        return -(x * y.a)
    if x.op == CONSTANT:
        return _times(y, x.value)
    if y.op == CONSTANT:
        return _times(x, y.value)
    if (y.op == DIVIDE and _is_reciprocal(y, x)) or (x.op == DIVIDE and _is_reciprocal(x, y)):
        return 1.0
    for p, k in ((x, y), (y, x)):  # k · (u · (1/k)) = u
        if p.op == MULTIPLY:
            if _is_reciprocal(p.a, k):
                return p.b
            if _is_reciprocal(p.b, k):
                return p.a
    if x.index > y.index:
        x, y = y, x
    return x.graph.node(MULTIPLY, x, y)


def _divide(x: Expression, y: Expression):
    if x.op == NEGATE:
        return -_divide(x.a, y)
    if y.op == NEGATE:
        return -_divide(x, y.a)
    return x.graph.node(DIVIDE, x, y)


def _same_factor(x: Expression, y: Expression) -> bool:
    return x.op == MULTIPLY and y.op == MULTIPLY and x.b is y.b and x.a.op == CONSTANT and y.a.op == CONSTANT


def _add(x: Expression, y: Expression):
    if y.op == NEGATE:
        return _subtract(x, y.a)
    if x.op == NEGATE:
        return _subtract(y, x.a)
    if y.op == SUBTRACT and y.b is x:  # x + (a − x) = a
        return y.a
    if x.op == SUBTRACT and x.b is y:
        return x.a
    if _same_factor(x, y):
        return _times(x.b, x.a.value + y.a.value)
    if x.op == CONSTANT and y.op == CONSTANT:
        return x.graph.constant(x.value + y.value)
    if x.index > y.index:
        x, y = y, x
    return x.graph.node(ADD, x, y)


def _subtract(x: Expression, y: Expression):
    if x is y:
        return 0.0
    if y.op == NEGATE:
        return _add(x, y.a)
    if x.op == NEGATE:
        return _negate(_add(x.a, y))
    if y.op == SUBTRACT and y.a is x:  # x − (x − b) = b
        return y.b
    if x.op == ADD:
        if x.a is y:
            return x.b
        if x.b is y:
            return x.a
    if _same_factor(x, y):
        return _times(x.b, x.a.value - y.a.value)
    known = x.graph.find(SUBTRACT, y, x)
    if known is not None:
        return _negate(known)
    return x.graph.node(SUBTRACT, x, y)
