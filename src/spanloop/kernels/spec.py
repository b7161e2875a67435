"""A question: a function of a model with all its options."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spanloop.algorithms.catalog import function as catalog_entry
from spanloop.algorithms.catalog import maker
from spanloop.algorithms.closed.redundancy import Redundancy, find_redundancy
from spanloop.compiler.lower import Looped, Plan
from spanloop.errors import InputError, Refusal, UnsupportedError
from spanloop.kernels import cache_key, lowering
from spanloop.kernels import explain as explaining
from spanloop.model import Model
from spanloop.model.parameters import Parameters
from spanloop.sweeps import Program, walked
from spanloop.sweeps.operators import Operator
from spanloop.sweeps.vectors import Vector
from spanloop.topology import Mechanism, mechanism


class Question:
    """A function of a model with all its options: what a kernel answers."""

    def __init__(
        self,
        model: Model,
        name: str,
        method: str,
        make: Callable,
        options: Mapping[str, Any],
        live: bool,
        regroup: bool,
    ):
        self.model, self.name, self.method, self.make = model, name, method, make
        self.options, self.live, self.regroup = dict(options), live, regroup
        self.strict = True  # is a singular position refused?
        self.watched = True  # is an open loop refused?
        self.lowering = "auto"

    @staticmethod
    def of(
        model, name, method, parameters, forces, frame, expressed_in, regroup, frames=(), open_chain=None
    ) -> Question:
        """Checked once, here."""
        method, make = maker(name, method, closed=bool(model.loops or model.couplings))
        live, entry = is_live(parameters), catalog_entry(name)
        if entry.needs_tree:
            refuse_closures(model, name, entry.instead)
        chosen = {"forces": forces, "frame": frame, "expressed_in": expressed_in, "frames": frames}
        options = checked_options(model, name, method, make, open_chain=open_chain, **chosen)
        return Question(model, name, method, make, options, live, regroup and not live)

    @staticmethod
    def expression(model, expression: Operator | Vector, parameters: str, others: Mapping[str, Any]) -> Question:
        """The question behind an expression of operators; its text takes the place of a method's name."""
        given = [name for name, value in others.items() if value is not None]
        if given:
            raise InputError(f"an expression of operators takes no {given[0]}")
        live, algebra = is_live(parameters), expression.algebra
        if algebra.model is not model and cache_key.content(algebra.model) != cache_key.content(model):
            raise InputError(
                f"({expression!r}) was made of the operators of {algebra.model.name!r}, not of {model.name!r}. "
                "Make it from sl.operators(model)"
            )
        vector = (
            expression
            if isinstance(expression, Vector)
            else expression @ Vector.given(algebra, "x", expression.term.columns)
        )
        text = f"{vector!r} {vector.inputs()} {algebra.frames}"
        return Question(model, "operators", text, vector.program, {}, live, False)

    def points(self, names: Sequence[str]) -> None:
        """Of functions that have points."""
        self.options |= checked_points(self.model, self.name, names)

    def key(self) -> str:
        """A name for everything the plan depends on; needs no tracing."""
        options = sorted((k, x) for k, x in self.options.items() if k != "redundancy")  # that follows from the model
        parts = (
            cache_key.content(self.model),
            self.name,
            self.method,
            repr(options),
            self.live,
            self.regroup,
            self.strict,
            self.watched,
            self.lowering,
        )
        return hashlib.sha256("|".join(map(str, (*parts, cache_key.source_hash()))).encode()).hexdigest()

    @functools.cached_property
    def baked(self) -> tuple[Mechanism, Program]:
        """The mechanism with the model's numbers, and the program for it."""
        m = mechanism(self.model)
        if "redundancy" in inspect.signature(self.make).parameters and (m.closures or m.gears):
            found = _redundancy(self.model)
            self.options["redundancy"] = replace(
                found, refuses_singular=found.refuses_singular and self.strict, refuses_open=self.watched
            )
        program = self.make(m, **self.options)
        if program.whole:
            m = mechanism(self.model, whole=True)
            program = self.make(m, **self.options)
        return (m.regrouped() if self.regroup and program.regroup else m), program

    @property
    def needs_double(self) -> bool:
        return self.baked[1].double

    def signature(self) -> tuple[tuple[tuple[str, int], ...], tuple[int, ...]]:
        """Names and sizes of the inputs, shape of the answer."""
        program = self.baked[1]
        sizes = {"q": self.model.nq, "start": self.model.nq, "forces": 6 * len(program.loaded), **program.sizes}
        inputs = tuple((n, sizes.get(n, self.model.nv)) for n in program.inputs)
        if self.live:
            inputs += (("parameters", len(Parameters.of(self.model))),)
        return inputs, program.shape

    def compute(self, inputs: Mapping[str, Sequence[Any]]) -> tuple[list[Any], list[Any]]:
        """The answer on any scalar, and pairs of which the first must be less."""
        m, program = self.baked
        if self.live:
            m = mechanism(self.model, inputs["parameters"], program.whole)
            program = self.make(m, **self.options)
        return walked(program, m, inputs)

    def plan(self) -> Plan | Looped:
        """The operations in order, as machine code is made of them."""
        return lowering.planned(self)

    def answer(self, *arrays: np.ndarray) -> np.ndarray | None:
        """The answer of one state on floats; None if it has none."""
        if explaining.input_fault(self, *arrays):
            return None
        inputs, shape = self.signature()
        given = {n: [float(v) for v in x] for (n, _), x in zip(inputs, arrays, strict=True)}
        try:
            numbers, demands = self.compute(given)
            answer = np.array(numbers, dtype=float).reshape(shape)
        except (ZeroDivisionError, OverflowError):
            return None
        except UnsupportedError:
            if not self.live:  # with live parameters a method may not fit one state's numbers
                raise
            return None
        return answer if np.isfinite(answer).all() and all(a < b for a, b in demands) else None

    def explain(self, *arrays: np.ndarray) -> Refusal:
        """Why this state has no answer."""
        return explaining.explain(self, *arrays)


@functools.lru_cache(maxsize=64)
def _redundancy(model: Model) -> Redundancy:
    return find_redundancy(mechanism(model))


# ---- The options of a question, checked once.


def is_live(parameters: str) -> bool:
    """Are the model's numbers an input of the kernel?"""
    if parameters not in ("baked", "live"):
        raise InputError(f"parameters is {parameters!r}; expected 'baked' or 'live'")
    return parameters == "live"


def checked_options(
    model: Model,
    name: str,
    method: str,
    make: Callable,
    *,
    forces: Sequence[str],
    frame: str | None,
    expressed_in: str | None,
    frames: Sequence[str],
    open_chain: str | None,
) -> dict[str, Any]:
    """What was asked for, as keywords of the program's maker; names are known and every option has a use."""
    known = catalog_entry(name).options
    options: dict[str, Any] = {}
    if forces:
        if "loaded" not in known:
            raise InputError(f"{name} takes no forces")
        for body in forces:
            model.body(body)
        options["loaded"] = forces
    if open_chain is not None:
        if "open_chain" not in inspect.signature(make).parameters:
            raise InputError(f"{name}: method {method!r} takes no open_chain; 'arms_on_object' does")
        options["open_chain"] = open_chain
    for key, value in (("frame", frame), ("expressed_in", expressed_in)):
        if value is not None and key not in known:
            raise InputError(f"{name} takes no {key}")
        if value is not None:
            options[key] = model.frame(value).name
    if bool(frames) != ("frames" in known):
        raise InputError(f"{name} takes no frames" if frames else f"{name} needs frames: names of frames or bodies")
    if frames:
        options["frames"] = tuple(model.frame(value).name for value in frames)
    if "frame" in known and "frame" not in options:
        raise InputError(f"{name} needs a frame: the name of a frame or body")
    return options


def checked_points(model: Model, name: str, points: Sequence[str]) -> dict[str, Any]:
    """The points of functions that have some."""
    wanted = "points" in catalog_entry(name).options
    if points and not wanted:
        raise InputError(f"{name} takes no points")
    return {"points": tuple(model.frame(point).name for point in points)} if wanted else {}


# ---- Questions that no kernel answers where there are closures.


def refuse_closures(model: Model, name: str, instead: str = "forward_dynamics") -> None:
    """A question that no kernel answers where there are closures; they are never treated as if they were not there."""
    if not (model.loops or model.couplings):
        return
    if model.loops:
        loop = model.loops[0]
        what = f"model {model.name!r} has a loop ({loop.name!r}, between {loop.a!r} and {loop.b!r})"
        sort, advice = "closed loops", "lock the loop's joints: model.lock(...)"
    else:
        c = model.couplings[0]
        what = f"joint {c.joint!r} of model {model.name!r} follows joint {c.source!r} (a coupling)"
        sort, advice = "coupled joints", f"leave it out of the motion: model.lock({c.joint!r}, {c.source!r})"
    if name == "inverse_dynamics":
        raise UnsupportedError(
            f"{name}: {what}; a kernel of it is for trees. Use sl.Dynamics(model).inverse_dynamics(q, v, a)"
        )
    raise UnsupportedError(f"{name}: {what}; {name} of {sort} is not there yet. Use {instead}, or {advice}")
