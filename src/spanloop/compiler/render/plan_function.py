"""A Plan as an internal LLVM function on arrays in memory:  void name(ptr in0, ..., ptr out0, ...).

Every array holds values of one group of runs, one vector a number. An array may be input and output at once if the
plan is in one piece: outputs are stored when all is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from spanloop.compiler.lower import Plan
from spanloop.compiler.render.instructions import Body, Real
from spanloop.compiler.render.segments import Segments, cut
from spanloop.compiler.render.single import PACK, input_places
from spanloop.compiler.trace import INPUT, Expression

LOCAL = 5  # address space of a thread's own memory on NVIDIA GPUs


@dataclass(frozen=True)
class PlanFunction:
    """A plan with the sizes of the arrays that its outputs fill."""

    name: str
    plan: Plan
    sizes: tuple[int, ...]
    local: frozenset[str] = frozenset()  # parameters that always point to local memory of a GPU's thread

    def __post_init__(self):
        assert sum(self.sizes) == len(self.plan.outputs), (self.name, self.sizes, len(self.plan.outputs))

    @cached_property
    def segments(self) -> Segments:
        """The plan in pieces."""
        return cut(self.plan)

    @property
    def arguments(self) -> list[str]:
        """Names of the parameters: inputs, then outputs."""
        return [f"%a{k}" for k in range(len(self.plan.inputs))] + [f"%o{k}" for k in range(len(self.sizes))]

    def call(self, arrays: Sequence[str]) -> str:
        """The instruction that calls the function on these arrays."""
        return f"call void @{self.name}({', '.join(f'ptr {x}' for x in arrays)})"


def function_source(s: PlanFunction, t: Real, pack: int = PACK) -> str:
    """Source of the function; pack: sines and cosines that share a vector where a value is one number."""
    segments = s.segments
    pack = pack if t.width == 1 else 1
    head = ", ".join(f"ptr {x}" for x in s.arguments)
    if len(segments.pieces) == 1:
        body = Body(t, _fetch(s, segments), pack)
        body.add(segments.pieces[0])
        _store(s, body, range(len(s.plan.outputs)))
        return _function(s, s.name, body.lines)
    main = [f"%scratch = alloca [{max(segments.n_slots, 1)} x {t.value}], align 64"]
    functions = ""
    for k in range(len(segments.pieces)):
        main.append(f"call void @{s.name}.{k}({head}, ptr %scratch)")
        functions += _function(s, f"{s.name}.{k}", _piece(s, segments, k, t, pack), ("%scratch",))
    return functions + f"define internal void @{s.name}({head}) #0 {{\n" + "\n".join(main) + "\nret void\n}\n"


def _function(s: PlanFunction, name: str, lines: Sequence[str], more: Sequence[str] = ()) -> str:
    """One function with the parameters of s and more.

    Pointers to local memory are cast to its address space and back: LLVM then reads and writes through the former.
    """
    local = [x for x in (*s.arguments, *more) if s.local and (x in s.local or x in more)]
    head = ", ".join(f"ptr {x}.any" if x in local else f"ptr {x}" for x in (*s.arguments, *more))
    casts = [f"{x}.local = addrspacecast ptr {x}.any to ptr addrspace({LOCAL})" for x in local]
    casts += [f"{x} = addrspacecast ptr addrspace({LOCAL}) {x}.local to ptr" for x in local]
    return f"define internal void @{name}({head}) #0 {{\n" + "\n".join([*casts, *lines]) + "\nret void\n}\n"


def _piece(s: PlanFunction, segments: Segments, k: int, t: Real, pack: int) -> list[str]:
    body = Body(t, _fetch(s, segments), pack)
    body.add(segments.pieces[k])
    for n in segments.pieces[k]:
        if n.index in segments.leaves and segments.home[n.index] == k:
            p = body.line(f"tp{n.index}", f"getelementptr {t.value}, ptr %scratch, i64 {segments.slot[n.index]}")
            body.lines.append(f"store {t.value} {body.values[n.index]}, ptr {p}, align {t.size}")
    home = [segments.home.get(x.index, 0) if isinstance(x, Expression) else 0 for x in s.plan.outputs]
    _store(s, body, [j for j, h in enumerate(home) if h == k])
    return body.lines


def _store(s: PlanFunction, body: Body, outputs) -> None:
    t = body.t
    places = [(k, j) for k, size in enumerate(s.sizes) for j in range(size)]
    for n, value in [(n, body.value(s.plan.outputs[n])) for n in outputs]:
        k, j = places[n]
        p = body.line(f"op{n}", f"getelementptr {t.value}, ptr %o{k}, i64 {j}")
        body.lines.append(f"store {t.value} {value}, ptr {p}, align {t.size}")


def _fetch(s: PlanFunction, segments: Segments):
    where = input_places(s.plan)

    def fetch(body: Body, n: Expression) -> str:
        t = body.t
        k, j = where[int(n.value)] if n.op == INPUT else (-1, segments.slot[n.index])
        p = body.line(f"ip{n.index}", f"getelementptr {t.value}, ptr {f'%a{k}' if k >= 0 else '%scratch'}, i64 {j}")
        return body.line(f"in{n.index}", f"load {t.value}, ptr {p}, align {t.size}")

    return fetch
