"""The one door between mathematics and machines: a model and a question become a kernel."""

from __future__ import annotations

import functools
import hashlib
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from spanloop.algorithms.catalog import function as catalog_entry
from spanloop.algorithms.catalog import maker
from spanloop.algorithms.closed import closing, setting
from spanloop.compiler.lower import CannotLoop, Looped, Operations, Part, Pass, Plan, Tree, looped, unrolled
from spanloop.errors import InputError, UnsupportedError, nearest
from spanloop.math.scalar import where
from spanloop.model import Model
from spanloop.model.motors import reflected
from spanloop.model.parameters import Parameters
from spanloop.sweeps import Program, Values, walked
from spanloop.sweeps.operators import Operator
from spanloop.sweeps.program import AT_ONCE, INWARD
from spanloop.sweeps.vectors import Vector
from spanloop.topology import Mechanism, mechanism
from spanloop.topology.anonymous import Anonymous, anonymous
from spanloop.topology.parting import parts_of

UNIT_TOLERANCE = 1e-6
KNEE = 48  # links beyond which looped code is used if nobody says otherwise
_LATER = ("gpu", "cuda", "jax", "c")


def compile(
    model: Model,
    function: str | Operator | Vector,
    *,
    method: str | None = None,
    target: str = "cpu",
    dtype: str = "float64",
    parameters: str = "baked",
    threads: int = 1,
    chain_threads: int = 1,
    forces: Sequence[str] = (),
    frame: str | None = None,
    expressed_in: str | None = None,
    frames: str | Sequence[str] = (),
    regroup: bool = True,
    on_singular: str = "raise",
    lowering: str = "auto",
    open_chain: str | None = None,
    points: Sequence[str] = (),
):
    """A kernel for one function of one model.

    function: "forward_dynamics", "inverse_dynamics", "mass_matrix", ... (see spanloop.algorithms.catalog); or an
        expression of spatial operators: the kernel of an operator takes q and x, that of an expression of
        vectors q and the vectors in the order in which they appear.
    method: the algorithm; the first in the catalog if not named.
    target: "cpu" (machine code) or "python" (the same steps on floats: slow, the reference for the rest).
    parameters: "live" adds the input `parameters`, packed as model.parameters(), one set or one per state.
    threads: over the states of a batch; 0 for all cores.
    chain_threads: over the chains (arms, legs, limbs) of one state; 0 for all cores. For large mechanisms, and calls
        that follow one another closely (docs/simple_closed_chain.md). Batches go over states all the same.
    forces: names of bodies with external forces; adds the input `forces`, six numbers for each, in this order.
    frame, expressed_in: of pose, jacobian, jacobian_bias.
    frames: of operational_inverse_inertia, force_response: names of frames or bodies, six rows or columns for each.
    regroup: False keeps every inertial number at its own body (more operations, same answer).
    on_singular: "raise" refuses a position where closures lose rank; "minimum_norm" answers with the rows left.
    lowering: "unrolled" writes every link's operations out, "looped" traces each kind of link once and loops over them;
    "auto" loops over trees of more than KNEE links where the algorithm allows it.
    open_chain: of method "arms_on_object", the method for trees that it asks for each arm.
    points: of free_response and forced_response, the frames or bodies that closures may join.
    """
    if on_singular not in ("raise", "minimum_norm"):
        raise InputError(f"on_singular is {on_singular!r}; expected 'raise' or 'minimum_norm'")
    if lowering not in ("auto", "unrolled", "looped"):
        raise InputError(f"lowering is {lowering!r}; expected 'auto', 'unrolled' or 'looped'")
    forces, frames = ((x,) if isinstance(x, str) else tuple(x) for x in (forces, frames))
    if isinstance(function, str):
        question = Question.of(
            model, function, method, parameters, forces, frame, expressed_in, regroup, frames, open_chain
        )
        question.points(points)
    else:
        others = {"method": method, "forces": forces or None, "frame": frame, "expressed_in": expressed_in}
        others["frames"] = frames or None
        question = Question.expression(model, function, parameters, others)

    question.strict = on_singular == "raise"
    question.lowering = lowering
    if _is_single(dtype) and question.needs_double:
        raise UnsupportedError(
            f"{function}: method {question.method!r} needs double precision; leave out dtype='float32'"
        )
    if chain_threads != 1:
        _refuse_chain_threads(target, lowering)
        question.lowering = "unrolled"
    if target == "python":
        from spanloop.compiler.runtime.reference import PythonKernel

        return PythonKernel(question.name, question.signature(), question.answer, question.explain, dtype)
    if target != "cpu":
        if target in _LATER:
            raise UnsupportedError(f"target {target!r} is not there yet; use 'cpu' or 'python'")
        raise InputError(f"target is {target!r}; {nearest(target, ('cpu', 'python'))}")
    from spanloop.compiler.runtime.kernel import Kernel, Recipe, checked_threads

    chained = checked_threads(chain_threads, "chain_threads")
    parts = question.parts() if chain_threads != 1 else []
    recipe = Recipe(question.name, question.key(), question.plan, question.answer, question.explain)
    if chained > 1:
        from spanloop.compiler.runtime.parted import PartedKernel

        return PartedKernel(recipe, dtype, threads, parts, chained)
    return Kernel(recipe, dtype, threads)


def _refuse_chain_threads(target: str, lowering: str) -> None:
    if target != "cpu":
        raise InputError(f"chain_threads is for target 'cpu'; target is {target!r}")
    if lowering == "looped":
        raise InputError("chain_threads needs the unrolled form; leave out lowering='looped'")


def _is_single(dtype) -> bool:
    try:
        return np.dtype(dtype) == np.float32
    except TypeError:  # no dtype: the kernel will say so
        return False


def on_scalars(
    model: Model,
    function: str,
    *,
    method: str | None = None,
    forces: Sequence[str] = (),
    frame: str | None = None,
    expressed_in: str | None = None,
) -> Callable[..., list]:
    """A function of the catalog in plain arithmetic: f(q, v, a) -> list, on floats or on traced scalars.

    For controllers and forces that are compiled into a simulation. Inputs are those of the kernel that sl.compile
    gives, a sequence each; the answer is a list, or a list of rows where the kernel gives a matrix. Where it has no
    answer (loops in a singular position) all its numbers are NaN; whether loops are closed is not looked at.
    """
    forces = (forces,) if isinstance(forces, str) else tuple(forces)
    question = Question.of(model, function, method, "baked", forces, frame, expressed_in, True)
    question.watched = False  # the stages of a step may be a little off the closed loops
    inputs, shape = question.signature()

    def compute(*given: Sequence[Any]) -> list:
        if len(given) != len(inputs):
            names = ", ".join(n for n, _ in inputs)
            raise InputError(f"{function} on scalars: {len(given)} arguments are given; expected ({names})")
        for (name, size), x in zip(inputs, given, strict=True):
            if len(x) != size:
                raise InputError(f"{function} on scalars: {name} has {len(x)} numbers; expected {size}")
        answer, demands = question.compute({n: x for (n, _), x in zip(inputs, given, strict=True)})
        for less, more in demands:
            refused = where(less < more, 0.0, math.nan)
            answer = [x + refused for x in answer]
        return _rows(answer, shape)

    return compute


def _rows(answer: list, shape: tuple[int, ...]) -> list:
    """A flat list in C order as a list of rows, where there are rows."""
    if len(shape) < 2:
        return answer
    return [answer[k * shape[1] : (k + 1) * shape[1]] for k in range(shape[0])]


def operations(model: Model, function: str, method: str | None = None, frames: Sequence[str] = ()) -> Operations:
    """How many operations a kernel takes, without making it; frames: of functions that need one or some."""
    options = catalog_entry(function).options
    frame = frames[0] if frames and "frame" in options else None
    several = tuple(frames) if "frames" in options else ()
    question = Question.of(model, function, method, "baked", (), frame, None, True, several)
    question.lowering = "unrolled"
    return question.plan().operations


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
        entry = catalog_entry(name)
        closed = bool(model.loops or model.couplings)
        method, make = maker(name, method, closed)
        if parameters not in ("baked", "live"):
            raise InputError(f"parameters is {parameters!r}; expected 'baked' or 'live'")
        if entry.needs_tree:
            refuse_closures(model, name, entry.instead)
        options: dict[str, Any] = {}
        if forces:
            if "loaded" not in entry.options:
                raise InputError(f"{name} takes no forces")
            for body in forces:
                model.body(body)
            options["loaded"] = forces
        if open_chain is not None:
            if "open_chain" not in inspect.signature(make).parameters:
                raise InputError(f"{name}: method {method!r} takes no open_chain; 'arms_on_object' does")
            options["open_chain"] = open_chain
        for key, value in (("frame", frame), ("expressed_in", expressed_in)):
            if value is not None and key not in entry.options:
                raise InputError(f"{name} takes no {key}")
            if value is not None:
                options[key] = model.frame(value).name
        if bool(frames) != ("frames" in entry.options):
            raise InputError(f"{name} takes no frames" if frames else f"{name} needs frames: names of frames or bodies")
        if frames:
            options["frames"] = tuple(model.frame(value).name for value in frames)
        if "frame" in entry.options and "frame" not in options:
            raise InputError(f"{name} needs a frame: the name of a frame or body")
        return Question(model, name, method, make, options, parameters == "live", regroup and parameters == "baked")

    @staticmethod
    def expression(model, expression: Operator | Vector, parameters: str, others: Mapping[str, Any]) -> Question:
        """The question behind an expression of operators; its text takes the place of a method's name."""
        given = [name for name, value in others.items() if value is not None]
        if given:
            raise InputError(f"an expression of operators takes no {given[0]}")
        if parameters not in ("baked", "live"):
            raise InputError(f"parameters is {parameters!r}; expected 'baked' or 'live'")
        algebra = expression.algebra
        if algebra.model is not model and content(algebra.model) != content(model):
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
        return Question(model, "operators", text, vector.program, {}, parameters == "live", False)

    def points(self, names: Sequence[str]) -> None:
        """The points of functions that have some."""
        wanted = "points" in catalog_entry(self.name).options
        if names and not wanted:
            raise InputError(f"{self.name} takes no points")
        if wanted:
            self.options["points"] = tuple(self.model.frame(name).name for name in names)

    def key(self) -> str:
        """A name for everything the plan depends on; needs no tracing."""
        options = sorted((k, x) for k, x in self.options.items() if k != "setting")  # that follows from the model
        parts = (
            content(self.model),
            self.name,
            self.method,
            repr(options),
            self.live,
            self.regroup,
            self.strict,
            self.watched,
            self.lowering,
        )
        return hashlib.sha256("|".join(map(str, (*parts, source_hash()))).encode()).hexdigest()

    @functools.cached_property
    def _baked(self) -> tuple[Mechanism, Program]:
        m = mechanism(self.model)
        if "setting" in inspect.signature(self.make).parameters and (m.closures or m.gears):
            found = _setting(self.model)
            self.options["setting"] = replace(found, strict=found.strict and self.strict, watched=self.watched)
        program = self.make(m, **self.options)
        if program.whole:
            m = mechanism(self.model, whole=True)
            program = self.make(m, **self.options)
        return (m.regrouped() if self.regroup and program.regroup else m), program

    @property
    def needs_double(self) -> bool:
        return self._baked[1].double

    def signature(self) -> tuple[tuple[tuple[str, int], ...], tuple[int, ...]]:
        """Names and sizes of the inputs, shape of the answer."""
        program = self._baked[1]
        sizes = {"q": self.model.nq, "start": self.model.nq, "forces": 6 * len(program.loaded), **program.sizes}
        inputs = tuple((n, sizes.get(n, self.model.nv)) for n in program.inputs)
        if self.live:
            inputs += (("parameters", len(Parameters.of(self.model))),)
        return inputs, program.shape

    def compute(self, inputs: Mapping[str, Sequence[Any]]) -> tuple[list[Any], list[Any]]:
        """The answer on any scalar, and pairs of which the first must be less."""
        m, program = self._baked
        if self.live:
            m = mechanism(self.model, inputs["parameters"], program.whole)
            program = self.make(m, **self.options)
        return walked(program, m, inputs)

    def plan(self) -> Plan | Looped:
        long = len(self._baked[0].links) > KNEE and not self.live
        if self.lowering == "looped" or (self.lowering == "auto" and long):
            try:
                return self._looped()
            except CannotLoop as reason:
                if self.lowering == "looped":
                    raise UnsupportedError(f"{self.name} by {self.method} cannot be looped: {reason}") from None
        return self._unrolled()

    def _looped(self) -> Looped:
        """Steps traced once for each class of links."""
        m, program = self._baked
        inputs, shape = self.signature()
        if self.live or program.demands is not None or program.loaded or program.sizes or m.closures or m.gears:
            raise CannotLoop("live parameters, external forces and closures need the unrolled form")
        passes = []
        for sweep in program.sweeps:
            if sweep.direction == AT_ONCE or callable(sweep.start):
                raise CannotLoop("a sweep looks at all links at once")
            passes.append(Pass(sweep.step, sweep.direction == INWARD, sweep.start))
        slices = {n: [link.q if n in ("q", "start") else link.v for link in m.links] for n, _ in inputs}
        places = {n: [s.start for s in found] for n, found in slices.items()}
        counts = {n: [s.stop - s.start for s in found] for n, found in slices.items()}
        tree = Tree([anonymous(x) for x in m.links], m.parents, places, counts, dict(inputs), _units_of)
        return looped(self.name, inputs, shape, tree, passes, lambda here: program.result(m, here, Values()), Values)

    def parts(self) -> list[Part]:
        """What belongs to each chain of the mechanism, of the inputs and of the answer."""
        inputs, shape = self.signature()
        if shape != (self.model.nv,):
            raise InputError(f"{self.name}: chain_threads is for functions with one number a freedom as their answer")
        m = mechanism(self.model)
        found = parts_of(m)
        if not found:
            raise UnsupportedError(
                f"{self.name}: chain_threads is for chains that are computed beside each other (arms on an object, "
                f"legs, limbs); model {self.model.name!r} is one chain. Leave it out; for a batch there is threads="
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

    def _unrolled(self) -> Plan:
        inputs, shape = self.signature()

        def compute(x):
            answer, demands = self.compute(x)
            return answer, list(self._unit_conditions(x)), [a < b for a, b in demands]

        return unrolled(self.name, inputs, shape, compute)

    def _unit_conditions(self, inputs: Mapping[str, Sequence[Any]]):
        """Quaternions must have length 1 to 1e-6."""
        for name in ("q", "start"):
            for joint in self.model.joints if name in inputs else ():
                for part in joint.kind.unit_parts(tuple(inputs[name][self.model.q_slice(joint.name)])):
                    yield _is_unit(part)

    def answer(self, *arrays: np.ndarray) -> np.ndarray | None:
        """The answer of one state on floats; None if it has none."""
        if self._fault(*arrays):
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

    def explain(self, *arrays: np.ndarray) -> str:
        """Why this state has no answer."""
        return (
            self._fault(*arrays)
            or self._open_loop(*arrays)
            or self._singular(*arrays)
            or (
                "the answer is not finite at this state. The mass matrix is singular "
                "(a body without inertia about its joint?) or the numbers overflow"
            )
        )

    def _fault(self, *arrays: np.ndarray) -> str:
        """What is wrong with a state's numbers, if anything."""
        inputs, _ = self.signature()
        for (name, _), x in zip(inputs, arrays, strict=True):
            wrong = np.flatnonzero(~np.isfinite(x))
            if len(wrong):
                k = int(wrong[0])
                return f"{name}[{k}]{self._owner(name, k)} is {x[k]}; every number must be finite"
            if name in ("q", "start"):
                for joint in self.model.joints:
                    where = self.model.q_slice(joint.name)
                    for part in joint.kind.unit_parts(tuple(x[where])):
                        length = float(np.sqrt(sum(float(v) ** 2 for v in part)))
                        if abs(length - 1.0) > UNIT_TOLERANCE:
                            return (
                                f"{name}[{where.start}:{where.start + 4}] (joint {joint.name!r}) "
                                "is a quaternion of length "
                                f"{length:.9g}; expected 1 to within {UNIT_TOLERANCE:g}. Divide it by its length"
                            )
        return ""

    def _open_loop(self, *arrays: np.ndarray) -> str:
        """Which loop is open by how much, if that is why."""
        inputs, _ = self.signature()
        m, program = self._baked
        if program.demands is None:
            return ""
        q = [float(x) for x in arrays[[n for n, _ in inputs].index("q")]]
        errors = np.abs(np.array(walked(closing.closure_error(m), m, {"q": q})[0], dtype=float))
        worst = max(m.closures, key=lambda c: max(errors[list(c.rows)], default=0.0), default=None)
        if worst is None or errors[list(worst.rows)].max() < 0.5 * closing.OPEN:
            return ""
        loop = next(x for x in self.model.loops if x.name == worst.name)
        return (
            f"loop {loop.name!r}, between {loop.a!r} and {loop.b!r}, is open by {errors[list(worst.rows)].max():.3g} "
            "(metres or radians). Close it first: q = robot.assemble(q)"
        )

    def _singular(self, *arrays: np.ndarray) -> str:
        """Is a demand of the method not met: do the closures lose rank here, or what else does it refuse?"""
        inputs, _ = self.signature()
        given = {n: [float(v) for v in x] for (n, _), x in zip(inputs, arrays, strict=True)}
        try:
            _, demands = self.compute(given)
        except (ZeroDivisionError, OverflowError):
            return ""
        except UnsupportedError as error:  # a method does not fit these live parameters
            return str(error)
        if all(a < b for a, b in demands):
            return ""
        return self._baked[1].refusal or (
            "the loops are in a singular position: constraints that are independent elsewhere depend on each other, "
            "and accelerations are not unique. See robot.diagnose(q); on_singular='minimum_norm' gives one answer"
        )

    def _owner(self, name: str, k: int) -> str:
        if name in self._baked[1].sizes:  # belongs to no joint
            return ""
        if name in ("forces", "parameters"):
            owner = self.options["loaded"][k // 6] if name == "forces" else Parameters.of(self.model).names[k]
            return f" ({owner!r})"
        of = self.model.q_slice if name in ("q", "start") else self.model.v_slice
        for joint in self.model.joints:
            s = of(joint.name)
            if s.start <= k < s.stop:
                return f" (joint {joint.name!r})"
        return ""


def _range(s: slice) -> range:
    return range(s.start, s.stop)


def _is_unit(part: Sequence[Any]):
    square = sum((x * x for x in part), 0.0)
    return (square < 1.0 + 2.0 * UNIT_TOLERANCE) & (square > 1.0 - 2.0 * UNIT_TOLERANCE)


def _units_of(link: Anonymous, inputs: Mapping[str, Sequence[Any]]) -> list[Any]:
    """The conditions on one link's coordinates."""
    return [_is_unit(part) for n in ("q", "start") if n in inputs for part in link.kind.unit_parts(tuple(inputs[n]))]


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


@functools.lru_cache(maxsize=64)
def _setting(model: Model) -> setting.Setting:
    return setting.found(mechanism(model))


@functools.lru_cache(maxsize=64)
def content(model: Model) -> str:
    """All numbers and names of a model that a kernel can depend on."""
    parts = (
        [(b.name, b.inertia) for b in model.bodies],
        [
            (j.name, j.kind, j.parent, j.child, j.placement, j.damping, j.armature, j.stiffness, j.rest, j.driven)
            for j in model.joints
        ],
        model.actuated,
        model.frames,
        model.loops,
        model.couplings,
        model.gravity,
        [reflected(model, setting) for setting in ("rotor_inertia", "damping")],
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


# what a kernel is made of, and nothing else: a new zoo or command leaves kernels as they are
_MAKERS = ("math", "joints", "topology", "sweeps", "algorithms", "compiler", "simulation")


@functools.cache
def source_hash() -> str:
    """A hash over the sources that kernels come from: a changed algorithm never meets an old kernel."""
    home = Path(__file__).parent
    digest = hashlib.sha256()
    own = (home / "compiling.py", home / "model" / "parameters.py", home / "model" / "motors.py")
    for path in (*own, *_sources(home)):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _sources(home: Path) -> list[Path]:
    return [path for room in _MAKERS for path in sorted((home / room).rglob("*.py"))]
