"""The looped form of a walk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spanloop.compiler.lower.leaves import NotPlain
from spanloop.compiler.lower.looping.answering import wanted_by
from spanloop.compiler.lower.looping.classes import link_classes
from spanloop.compiler.lower.looping.forms import CannotLoop, Looped, Pass, Tree
from spanloop.compiler.lower.looping.interfaces import interface_of
from spanloop.compiler.lower.looping.layout import laid_out
from spanloop.compiler.lower.looping.tracing import Traced, bindings_of, settled


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
    except (NotPlain, AttributeError) as error:  # a step that asks a link for more than its numbers
        raise CannotLoop(str(error)) from error
    wanted = wanted_by(result, tree, classes)
    if not wanted:
        raise CannotLoop("there is nothing to compute")
    return laid_out(name, inputs, shape, tree, passes, classes, interfaces, traced, wanted)
