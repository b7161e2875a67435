"""The answer of a looped walk: a selection of what links keep."""

from __future__ import annotations

from collections.abc import Callable

from spanloop.compiler.lower.leaves import put_together
from spanloop.compiler.lower.looping.classes import LinkClass
from spanloop.compiler.lower.looping.forms import CannotLoop, Tree


class Token(tuple):
    """Stands for a scalar that a link kept: (link, binding)."""

    __slots__ = ()


def wanted_by(result: Callable, tree: Tree, classes: list[LinkClass]) -> list[Token]:
    """The entries that make the answer, in order."""
    of = {i: c for c in classes for i in c.members}

    class Lazy:
        """A link's namespace, whose values are made when asked for."""

        def __init__(self, i: int):
            object.__setattr__(self, "_i", i)

        def __getattr__(self, attribute: str):
            i = object.__getattribute__(self, "_i")
            for kept in reversed(of[i].kept):
                if attribute in kept:
                    shape, bindings = kept[attribute]
                    return put_together(shape, [Token((i, b)) for b in bindings])
            raise CannotLoop(f"the answer reads {attribute!r}, which no sweep keeps")

    try:
        tokens = list(result([Lazy(i) for i in range(len(tree.links))]))
    except (TypeError, AttributeError) as error:
        raise CannotLoop(f"the answer is more than a selection of what links keep ({error})") from None
    if not all(isinstance(x, Token) for x in tokens):
        raise CannotLoop("the answer is more than a selection of what links keep")
    return tokens
