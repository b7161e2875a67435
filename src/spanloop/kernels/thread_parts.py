"""What belongs to each chain of a mechanism, for kernels that compute the chains of one state on several threads."""

from __future__ import annotations

from itertools import accumulate

from spanloop.compiler.lower import Part
from spanloop.errors import InputError, UnsupportedError
from spanloop.kernels.spec import Question
from spanloop.topology import mechanism
from spanloop.topology.partition import parts_of


def chain_parts(question: Question) -> list[Part]:
    """Of each chain its entries of the inputs and of the answer."""
    inputs, shape = question.signature()
    if shape != (question.model.nv,):
        raise InputError(f"{question.name}: chain_threads is for functions with one number a freedom as their answer")
    m = mechanism(question.model)
    found = parts_of(m)
    if not found:
        raise UnsupportedError(
            f"{question.name}: chain_threads is for chains that are computed beside each other (arms on an object, "
            f"legs, limbs); model {question.model.name!r} is one chain. Leave it out; for a batch there is threads="
        )
    starts = dict(zip((n for n, _ in inputs), accumulate((k for _, k in inputs), initial=0), strict=False))
    own = {"q": [x.q for x in m.links]} | {n: [x.v for x in m.links] for n in ("v", "a", "tau")}
    return [
        Part(
            frozenset(starts[n] + k for n in own if n in starts for i in part for k in _range(own[n][i])),
            frozenset(k for i in part for k in _range(m.links[i].v)),
        )
        for part in found
    ]


def _range(s: slice) -> range:
    return range(s.start, s.stop)
