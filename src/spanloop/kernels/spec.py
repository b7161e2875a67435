"""A KernelSpec: one function of one model with all its options, checked, and the key of its machine code."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spanloop.algorithms import catalog
from spanloop.algorithms.catalog import Algorithm
from spanloop.algorithms.closed.dropped_rows import dropped_row_demands, kept_row_demands, masses_differ
from spanloop.algorithms.closed.redundancy import Evaluate, Redundancy, find_redundancy
from spanloop.algorithms.closed.refinement import refined_forward_dynamics
from spanloop.algorithms.tree import operational_space
from spanloop.compiler.lower import CannotLoop, Looped, Plan
from spanloop.errors import InputError, Reason, Refusal, UnsupportedError, nearest
from spanloop.kernels import lowering, state_refusals
from spanloop.model import Model
from spanloop.model.motors import reflected
from spanloop.model.parameters import Parameters, Varied
from spanloop.sweeps import Program, walk, walked
from spanloop.sweeps.operators import Operator
from spanloop.sweeps.tested_pivots import PivotTest
from spanloop.sweeps.vectors import Vector
from spanloop.topology import Mechanism, mechanism
from spanloop.topology.captured_frames import captured_width, check_captures

if TYPE_CHECKING:
    from spanloop.compiler.runtime.kernel import Definition, Kernel

_CAPTURING = ("elimination", "dense", "paths")  # methods that take captured frames
_OTHER_NAMES = {
    "gpu": "target='cuda'",
    "nvidia": "target='cuda'",
    "jax": "import spanloop.jax",
    "torch": "import spanloop.torch",
}
_FILES = {"c": "arm.c", "wasm": "arm.mjs"}  # that leave Python: what sl.export writes for them
TARGETS = ("cpu", "cuda", "python")  # of kernels
RUN_TARGETS = ("cpu", "cuda")
CHOICES = {
    "parameters": ("baked", "live"),
    "on_singular": ("raise", "minimum_norm"),
    "lowering": ("auto", "unrolled", "looped"),
}


@dataclass(frozen=True, eq=False)
class KernelSpec:
    """What a kernel computes. `KernelSpec.of` checks its arguments; what follows from the spec is made when first used.

    options: keywords of the algorithm. live: the model's parameters are an input. regroup: inertia may move to parent
    links. refuses_singular: a state is refused where closures lose rank. refuses_open: ... where a loop is open.
    """

    model: Model
    name: str
    method: str
    algorithm: Algorithm
    options: Mapping[str, Any]
    live: bool = False
    regroup: bool = False
    refuses_singular: bool = True
    refuses_open: bool = True
    lowering: str = "auto"
    single: bool = False  # for single precision: its pivots are compared with larger bounds
    coarse: bool = False  # for runs: smaller pivots of joints will do
    refines: bool = False  # refuses states at which closure rows have lost digits, for a refined kernel to answer
    refined: bool = False  # is the refined kernel itself
    is_other: bool = False  # answers for another spec: asks no further ones
    adds_armature: bool = False  # takes the input `armature` (nv), which adds to that of the joints
    captures: tuple[str, ...] = ()  # loops and couplings whose frames b and offsets are the input `captured`
    varied: Varied | None = None  # of live parameters those that are inputs; None: all
    assembly: Redundancy | None = None  # of the assembly that the kernel is for; None: of those near the neutral state

    @staticmethod
    def of(
        model: Model,
        name: str,
        *,
        method: str | None = None,
        parameters: str | Sequence[str] = "baked",
        forces: str | Sequence[str] = (),
        frame: str | None = None,
        expressed_in: str | None = None,
        frames: str | Sequence[str] = (),
        points: str | Sequence[str] = (),
        open_chain: str | None = None,
        feedback: bool = False,
        with_forces: bool | str = False,
        regroup: bool = True,
        on_singular: str = "raise",
        refuses_open: bool = True,
        lowering: str = "auto",
        single: bool = False,
        coarse: bool = False,
        refines: bool = False,
        adds_armature: bool = False,
        captures: Sequence[str] = (),
        near: Sequence[float] | None = None,
    ) -> KernelSpec:
        """The spec of a function of the catalog; arguments as of `sl.compile`.

        feedback: adds the input `gains`, which feeds closure errors back. refuses_open: False computes open loops too.
        with_forces: the answer of forward dynamics has the forces of all closure rows, after the accelerations; "any
        axes": along rows in the axes of either frame of a closure.
        adds_armature: adds the input `armature`, inertia at every degree of freedom beside the model's own.
        captures: adds the input `captured`, the frames b of these switchable loops and the offsets of these couplings
        (topology/captured_frames.py).
        near: a closed state q (nq,) of the assembly that the kernel is for.
        parameters: names of those that are inputs, too; the others are compiled in.
        """
        checked_model(model, name)
        varied = None if isinstance(parameters, str) else Varied.of(model, tuple(parameters), name)
        live = varied is not None or _chosen("parameters", str(parameters)) == "live"
        strict = _chosen("on_singular", on_singular) == "raise"
        closed = bool(model.loops or model.couplings)
        method, algorithm = catalog.algorithm(name, method, closed)
        entry = catalog.function(name)
        if entry.needs_tree:
            state_refusals.refuse_closures(model, name, entry.instead)
        if algorithm.rigid_only:
            state_refusals.refuse_flexible(model, f"{name} by {method!r}", entry.for_flexible(closed))
        options = _checked_options(
            model,
            name,
            algorithm,
            forces=_names("forces", forces),
            frame=frame,
            expressed_in=expressed_in,
            frames=_names("frames", frames),
            points=_names("points", points),
        )
        if open_chain is not None:
            if "open_chain" not in algorithm.takes:
                raise InputError(f"{name}: method {method!r} takes no open_chain; 'arms_on_object' does")
            options["open_chain"] = open_chain
        if feedback:
            if "feedback" not in algorithm.takes:
                raise InputError(f"{name}: method {method!r} has no feedback of closure errors; use closures='project'")
            options["feedback"] = True
        if with_forces:
            if "with_forces" not in algorithm.takes:
                raise InputError(f"{name}: method {method!r} does not return forces of rows; 'elimination' does")
            options["with_forces"] = with_forces
        if captures:
            check_captures(model, captures, name)
            if method not in _CAPTURING:
                raise InputError(f"{name}: method {method!r} takes no captured frames; 'elimination' does")
        return KernelSpec(
            model,
            name,
            method,
            algorithm,
            options,
            live,
            regroup and (not live or (varied is not None and varied.only_gravity)),
            strict,
            refuses_open,
            _chosen("lowering", lowering),
            single,
            coarse,
            refines and strict and not single and name == "forward_dynamics" and algorithm.refines,
            assembly=None if near is None else redundancy_of(model, near, captures),
            adds_armature=adds_armature,
            captures=tuple(captures),
            varied=varied,
        )

    @staticmethod
    def of_expression(
        model: Model,
        expression: Operator | Vector,
        *,
        parameters: str = "baked",
        on_singular: str = "raise",
        lowering: str = "auto",
    ) -> KernelSpec:
        """The spec of an expression of spatial operators; its text takes the place of a method's name."""
        live, algebra = _chosen("parameters", parameters) == "live", expression.algebra
        if algebra.model is not model and content(algebra.model) != content(model):
            raise InputError(
                f"({expression!r}) was made of the operators of {algebra.model.name!r}, not of {model.name!r}. "
                "Make it from sl.operators(model)"
            )
        if isinstance(expression, Vector):
            vector = expression
        else:
            vector = expression @ Vector.given(algebra, "x", expression.term.columns)
        return KernelSpec(
            model,
            "operators",
            f"{vector!r} {vector.inputs()} {algebra.frames}",
            Algorithm(vector.program),
            {},
            live,
            refuses_singular=_chosen("on_singular", on_singular) == "raise",
            lowering=_chosen("lowering", lowering),
        )

    @property
    def label(self) -> str:
        """What it computes, for reports: "forward dynamics of 'puma' (6 DoF)"."""
        return f"{self.name.replace('_', ' ')} {of_model(self.model)}"

    @functools.cached_property
    def key(self) -> str:
        """Names everything that the plan depends on; needs no tracing."""
        parts = (
            content(self.model),
            self.name,
            self.method,
            repr(sorted(self.options.items())),
            self.live,
            self.regroup,
            self.refuses_singular,
            self.refuses_open,
            self.lowering,
            self.single,
            (self.coarse, self.refines, self.refined, self.adds_armature, self.captures),
            self.varied,
            self.assembly and (sorted(self.assembly.dropped), sorted(self.assembly.weak), self.assembly.misaligned),
            source_hash(),
        )
        return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()

    @functools.cached_property
    def program(self) -> tuple[Mechanism, Program]:
        """The mechanism with the model's numbers, and the algorithm's program for it."""
        m = self._mechanism()
        program = self._program(m)
        if program.whole:
            m = self._mechanism(whole=True)
            program = self._program(m)
        return (m.regrouped() if self.regroup and program.regroup else m), program

    def _mechanism(self, parameters: Sequence[Any] | None = None, whole: bool = False) -> Mechanism:
        found = mechanism(self.model, parameters, whole)
        return replace(found, single=self.single, coarse=self.coarse, refines=self.refines and not self.refined)

    def _program(self, m: Mechanism) -> Program:
        if not self._drops_rows:
            return self.algorithm.make(m, **self.options)
        return self.algorithm.make(m, **self.options, redundancy=self._redundancy_of_program)

    @property
    def _redundancy_of_program(self) -> Redundancy:
        refuses_singular = self.redundancy.refuses_singular and self.refuses_singular
        return replace(self.redundancy, refuses_singular=refuses_singular, refuses_open=self.refuses_open)

    @property
    def _drops_rows(self) -> bool:
        return "redundancy" in self.algorithm.takes and self.has_closures

    @property
    def has_closures(self) -> bool:
        """Whether the model has loops or couplings."""
        return bool(self.model.loops or self.model.couplings)

    @property
    def redundancy(self) -> Redundancy:
        """The rows that are redundant in the assembly that the kernel is for."""
        return self.assembly or redundancy_of(self.model, captures=self.captures)

    @property
    def needs_double(self) -> bool:
        """True if the method needs double precision."""
        return self.program[1].double

    def signature(self) -> tuple[tuple[tuple[str, int], ...], tuple[int, ...]]:
        """Names and sizes of the inputs, shape of the answer."""
        program = self.program[1]
        sizes = {"q": self.model.nq, "start": self.model.nq, "forces": 6 * len(program.loaded), **program.sizes}
        inputs = tuple((n, sizes.get(n, self.model.nv)) for n in program.inputs)
        if self.live:
            inputs += (("parameters", len(self.varied.places if self.varied else Parameters.of(self.model))),)
        if self.adds_armature:
            inputs += (("armature", self.model.nv),)
        if self.captures:
            inputs += (("captured", captured_width(self.program[0], self.captures)),)
        return inputs, program.shape

    def compute(self, inputs: Mapping[str, Sequence[Any]]) -> tuple[list[Any], list[Any]]:
        """The answer on floats or traced scalars, and pairs of which the first must be less for it to be valid."""
        m, program = self.mechanism_of(inputs), self.program[1]
        if self.live or self.captures:
            program = self._program(m)
        if self.refined:
            loaded = self.options.get("loaded", ())
            answer, demands = refined_forward_dynamics(m, inputs, loaded, self._redundancy_of_program)
            answer = answer if "with_forces" in self.options else answer[: m.nv]
        else:
            answer, demands = walked(program, m, inputs)
        left_out = self.dropped_row_demands(m, inputs, answer[: m.nv])
        return answer, demands + self._joint_demands(m, program, inputs) + left_out

    def _joint_demands(self, m: Mechanism, program: Program, inputs: Mapping[str, Any]) -> list[Any]:
        """Pairs, the first to be less, for methods of loops that do not test the pivots of their tree themselves."""
        if not self._drops_rows or self.name != "forward_dynamics" or program.tests_pivots or self.refined:
            return []
        tested = PivotTest(m if self.live else self.program[0])  # armature that is added leaves no pivot smaller
        numbers = walk(operational_space.pivots(m, tested), m, {"q": inputs["q"]}) if tested.noise else []
        return list(zip(numbers[::2], numbers[1::2], strict=True))

    def mechanism_of(self, inputs: Mapping[str, Sequence[Any]]) -> Mechanism:
        """The mechanism with the model's numbers, or with the live ones among the inputs."""
        m, program = self.program
        if self.regroup and self.varied is not None:  # inertias are numbers, and regrouped
            found = replace(m, gravity=tuple(self.varied.expanded(inputs["parameters"])[:3]))
        else:
            found = self._mechanism(self.with_all_parameters(inputs)["parameters"], program.whole) if self.live else m
        found = found.with_armature(inputs["armature"]) if self.adds_armature else found
        return found.with_captured(inputs["captured"], self.captures) if self.captures else found

    def with_all_parameters(self, inputs: Mapping[str, Sequence[Any]]) -> Mapping[str, Sequence[Any]]:
        """The inputs, with all parameters where some of them vary."""
        if self.varied is None or "parameters" not in inputs:
            return inputs
        return {**inputs, "parameters": self.varied.expanded(inputs["parameters"])}

    @functools.cached_property
    def _masses_differ(self) -> bool:
        return masses_differ(mechanism(self.model))

    def dropped_row_demands(self, m: Mechanism, inputs: Mapping[str, Any], answer: Sequence[Any]) -> list[Any]:
        """Pairs, the first to be less: the rows that forward dynamics drops stay closed; none if loops may be open."""
        tested = self._drops_rows and self.name == "forward_dynamics" and self.refuses_open
        if not tested or "feedback" in self.options:
            return []
        kept = kept_row_demands(m, self.redundancy, inputs, answer) if self._masses_differ else []
        return kept + dropped_row_demands(m, self.redundancy, inputs, answer)

    @functools.cached_property
    def plan(self) -> Plan | Looped:
        """The operations in order, by the lowering of the spec."""
        many = len(self.program[0].links) > lowering.LOOP_THRESHOLD and not self.live
        if self.lowering == "looped" or (self.lowering == "auto" and many):
            try:
                return lowering.looped_plan(self)
            except CannotLoop as reason:
                if self.lowering == "looped":
                    raise UnsupportedError(f"{self.name} by {self.method} cannot be looped: {reason}") from None
        return lowering.unrolled_plan(self)

    def reference(self, *arrays: np.ndarray) -> np.ndarray | None:
        """The answer of one state on Python floats; None if it has none."""
        if state_refusals.input_fault(self, *arrays):
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
        if np.isfinite(answer).all() and all(a < b for a, b in demands):
            return answer
        if self.is_other:
            return None
        answers = (replace(other, is_other=True).reference(*arrays) for other in self.others(*arrays))
        return next((x for x in answers if x is not None), None)

    def explain(self, *arrays: np.ndarray) -> Refusal:
        """Why this state has no answer."""
        return state_refusals.explain(self, *arrays)

    def others(self, *arrays: np.ndarray) -> Iterator[KernelSpec]:
        """Specs that may answer a state that this one refuses: refined, and of the assembly that it belongs to."""
        if not self._drops_rows or self.explain(*arrays).reason not in _OTHERS_MAY_ANSWER:
            return
        if self.refines and not self.refined:
            yield replace(self, refined=True)
        q = arrays[[n for n, _ in self.signature()[0]].index("q")]
        found, own = redundancy_of(self.model, q, self.captures), self.redundancy
        if found.is_known and (found.dropped, found.weak) != (own.dropped, own.weak):
            yield replace(self, assembly=found)
            if self.refines and not self.refined:
                yield replace(self, assembly=found, refined=True)

    def other_kernels(self, dtype: str, *arrays: np.ndarray) -> Iterator[Kernel]:
        """Kernels that may answer a state that this one refuses; those that exist already come first."""
        return known_and_new(self._other_kernels, self.others(*arrays), dtype)

    @functools.cached_property
    def _other_kernels(self) -> dict[str, Kernel]:
        return {}


def known_and_new(known: dict[str, Kernel], definitions: Iterator[Definition], dtype: str) -> Iterator[Kernel]:
    """Kernels by key that exist, then one for each definition that is not among them, which is kept there."""
    from spanloop.kernels.compile import machine_kernel

    yield from list(known.values())
    for definition in definitions:
        if definition.key not in known:
            known[definition.key] = machine_kernel(definition, dtype=dtype)
            yield known[definition.key]


# reasons for which another kernel may answer: rows or joints that have lost digits, or another assembly
_OTHERS_MAY_ANSWER = (Reason.SINGULAR_CLOSURE, Reason.OTHER_ASSEMBLY, Reason.ROUNDING, Reason.SINGULAR_MASS)


def redundancy_of(
    model: Model, near: Sequence[float] | np.ndarray | None = None, captures: Sequence[str] = ()
) -> Redundancy:
    """The redundant rows of a model in the assemblies near its neutral state, or in that of the state q (nq,) given.

    captures: loops and couplings that capture, which any state closes.
    """
    return _redundancy(model, None if near is None else tuple(map(float, near)), tuple(captures))


@functools.lru_cache(maxsize=256)
def _redundancy(model: Model, near: tuple[float, ...] | None, captures: tuple[str, ...]) -> Redundancy:
    from spanloop.compiler.runtime import machine

    state = None if near is None else np.array(near)
    with machine.reported(f"analysing the loops {of_model(model)}"):
        return find_redundancy(mechanism(model), state, compiled_closures(model), captures)


def compiled_closures(model: Model) -> Evaluate:
    """A function that computes closure_error and others at a state by kernels; NaN where a kernel has no answer."""
    from spanloop.kernels.compile import machine_kernel

    kernels: dict[str, Kernel] = {}

    def evaluate(function: str, q: np.ndarray) -> np.ndarray:
        if function not in kernels:
            kernels[function] = machine_kernel(KernelSpec.of(model, function))
        out = np.full(kernels[function].shape, np.nan)
        kernels[function].attempt([np.ascontiguousarray(q)], out)
        return out

    return evaluate


def of_model(model: Model) -> str:
    """A model in a report: "of 'puma' (6 DoF)"."""
    return f"of {model.name[:60]!r} ({model.nv} DoF)"


# ---- checks of the options


def _chosen(option: str, value: str) -> str:
    if value not in CHOICES[option]:
        *others, last = map(repr, CHOICES[option])
        raise InputError(f"{option} is {value!r}; expected {', '.join(others)} or {last}")
    return value


def _names(option: str, x: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(x, str):
        return (x,)
    found = tuple(x) if isinstance(x, Iterable) else (x,)
    if not all(isinstance(name, str) for name in found):
        what = "bodies" if option == "forces" else "frames or bodies"
        raise InputError(f"{option} is {x!r}; expected names of {what}, as {option}=['hand']")
    return found


def checked_model(model: Any, owner: str) -> Model:
    """The model, if it is one; owner: what was called."""
    if not isinstance(model, Model):
        kind = type(model).__name__
        held = isinstance(getattr(model, "model", None), Model)
        hint = f"give the model of the {kind}, its .model" if held else "sl.load(file), sl.zoo and sl.Builder make one"
        raise InputError(f"{owner}: model is a {kind}; expected a Model: {hint}")
    return model


def check_function(function: Any) -> None:
    """Refuse what names no function and is no expression of operators."""
    if not isinstance(function, str | Operator | Vector):
        raise InputError(
            f"function is {function!r:.80}; expected a name, as 'forward_dynamics', or an expression of operators"
        )


def check_call_options(dtype: Any, threads: Any, target: Any, on_singular: Any) -> None:
    """Refuse options of every kernel of a Dynamics that no kernel has."""
    from spanloop.compiler.runtime.kernel import checked_dtype, checked_threads

    checked_dtype(dtype)
    checked_threads(threads)
    check_target(target)
    refuse_threads_of_gpu(threads, target)
    _chosen("on_singular", on_singular)


def refuse_threads_of_gpu(threads: Any, target: Any) -> None:
    """Refuse threads for a target that has its own."""
    if target == "cuda" and (isinstance(threads, bool) or threads != 1):
        raise InputError(f"threads is {threads!r}, for target 'cpu'; target is 'cuda', where each state has a thread")


def check_target(target: Any, known: Sequence[str] = TARGETS) -> None:
    """Refuse a target that kernels, or runs (known: RUN_TARGETS), are not compiled for."""
    if target in known:
        return
    *others, last = map(repr, known)
    expected = f"{', '.join(others)} or {last}"
    if not isinstance(target, str):
        raise InputError(f"target is {target!r}; expected {expected}")
    if target in _OTHER_NAMES:
        raise InputError(f"target is {target!r}; expected {expected}. Try {_OTHER_NAMES[target]}")
    if target in TARGETS:
        raise InputError(f"target is {target!r}, of sl.compile and sl.Dynamics; expected {expected}. Try target='cpu'")
    if target in _FILES:
        raise UnsupportedError(
            f"target {target!r} leaves Python: sl.export(model, functions, {_FILES[target]!r}) writes it; "
            f"what Python calls is of target {expected}"
        )
    raise InputError(f"target is {target!r}; {nearest(target, known)}")


def _checked_options(
    model: Model,
    name: str,
    algorithm: Algorithm,
    *,
    forces: Sequence[str],
    frame: str | None,
    expressed_in: str | None,
    frames: Sequence[str],
    points: Sequence[str],
) -> dict[str, Any]:
    """Keywords of the algorithm; every option has a use, and every name is one of the model."""
    takes = algorithm.takes
    options: dict[str, Any] = {}
    if forces:
        if "loaded" not in takes:
            raise InputError(f"{name} takes no forces")
        for body in forces:
            model.body(body)
        options["loaded"] = forces
    for key, value in (("frame", frame), ("expressed_in", expressed_in)):
        if value is not None and key not in takes:
            raise InputError(f"{name} takes no {key}")
        if value is not None:
            options[key] = model.frame(value).name
    if bool(frames) != ("frames" in takes):
        raise InputError(f"{name} takes no frames" if frames else f"{name} needs frames: names of frames or bodies")
    if frames:
        options["frames"] = tuple(model.frame(value).name for value in frames)
    if "frame" in takes and "frame" not in options:
        raise InputError(f"{name} needs a frame: the name of a frame or body")
    if points and "points" not in takes:
        raise InputError(f"{name} takes no points")
    if "points" in takes:
        options["points"] = tuple(model.frame(point).name for point in points)
    if "contacts" in takes:
        if not model.contacts:
            raise InputError(
                f"{name}: model {model.name!r} has no contacts; model.with_contact and with_ground add them"
            )
        options["contacts"] = model.contacts
    return options


# ---- what machine code in the cache depends on


@functools.lru_cache(maxsize=64)
def content(model: Model) -> str:
    """A hash of all numbers and names of a model that a kernel without contacts can depend on.

    Kernels with contacts add `spanloop.model.contacts.contact_content` to it.
    """
    parts = (
        [(b.name, b.inertia) for b in model.bodies],
        [
            (j.name, j.kind, j.parent, j.child, j.placement, j.damping, j.armature, j.stiffness, j.rest, j.driven)
            for j in model.joints
        ],
        [(j.lower, j.upper) for j in model.joints],  # they bound what a joint carries, and so which pivots are tested
        model.actuated,
        model.frames,
        model.loops,
        model.couplings,
        model.gravity,
        [reflected(model, setting) for setting in ("rotor_inertia", "damping") if model.actuators],
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


# rooms that kernels come from: a change elsewhere (zoo, cli, ...) leaves cached kernels valid
_ROOMS = (
    "math", "joints", "topology", "sweeps", "algorithms", "compiler", "kernels", "reach", "contacts", "derivatives",
    "simulation",
)  # fmt: skip


@functools.cache
def source_hash() -> str:
    """A hash of the sources that kernels come from: a changed algorithm never finds an old kernel."""
    home = Path(__file__).parents[1]
    digest = hashlib.sha256()
    own = [home / "model" / name for name in ("parameters.py", "motors.py", "contacts/contact.py")]
    for path in (*own, *_sources(home)):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _sources(home: Path) -> list[Path]:
    return [path for room in _ROOMS for path in sorted((home / room).rglob("*.py"))]
