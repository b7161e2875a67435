"""Looped lowering of a walk: classes, traces, interfaces and layout, in this order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spanloop.compiler.lower.rolled.classes import LinkClass, interface_of, link_classes
from spanloop.compiler.lower.rolled.ir import CannotLoop, Looped, Pass, Tree
from spanloop.compiler.lower.rolled.layout import laid_out
from spanloop.compiler.lower.rolled.pytree import NotPlain, put_together
from spanloop.compiler.lower.rolled.tracing import Traced, bindings_of, settled


def looped(
    name: str,
    inputs: Sequence[tuple[str, int]],
    shape: tuple[int, ...],
    tree: Tree,
    passes: Sequence[Pass],
    result: Callable,
    namespace: Callable[..., Any],
) -> Looped:
    """The looped form of a walk. namespace(**values): what steps read; result(links' namespaces) -> tokens."""
    classes = link_classes(tree)
    traced: list[list[Traced]] = []
    try:
        interfaces = [interface_of(p.start) for p in passes]
        for k, p in enumerate(passes):
            traced.append(settled(k, p, classes, interfaces[k], tree, namespace))
            for c, t in zip(classes, traced[-1], strict=True):
                c.kept.append(bindings_of(k, t))
    except (NotPlain, AttributeError) as error:  # a step that needs more of a link than its numbers
        raise CannotLoop(str(error)) from error
    wanted = wanted_by(result, tree, classes)
    if not wanted:
        raise CannotLoop("there is nothing to compute")
    return laid_out(name, inputs, shape, tree, passes, classes, interfaces, traced, wanted)


# ---- the answer: a selection of what links keep


class Token(tuple):
    """Stands for a scalar that a link kept: (link, binding)."""

    __slots__ = ()


def wanted_by(result: Callable, tree: Tree, classes: list[LinkClass]) -> list[Token]:
    """The entries that make the answer, in order."""
    of = {i: c for c in classes for i in c.members}

    class Lazy:
        """A link's namespace, whose values are made when used."""

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
    except (TypeError, AttributeError) as error:  # it computes with the values of links, which have no numbers here
        raise CannotLoop("the answer is more than a selection of what links keep") from error
    if not all(isinstance(x, Token) for x in tokens):
        raise CannotLoop("the answer is more than a selection of what links keep")
    return tokens
