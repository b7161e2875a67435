"""A kernel for one function of one model: what `sl.compile` is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spanloop.algorithms.catalog import function as catalog_entry
from spanloop.compiler.lower import Operations
from spanloop.errors import InputError, UnsupportedError, nearest
from spanloop.kernels.spec import Question
from spanloop.kernels.thread_parts import chain_parts
from spanloop.model import Model
from spanloop.sweeps.operators import Operator
from spanloop.sweeps.vectors import Vector

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
    parts = chain_parts(question) if chain_threads != 1 else []
    recipe = Recipe(question.name, question.key(), question.plan, question.answer, question.explain)
    if chained > 1:
        from spanloop.compiler.runtime.threaded import PartedKernel

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


# ---- How many operations a kernel takes.


def operations(model: Model, function: str, method: str | None = None, frames: Sequence[str] = ()) -> Operations:
    """How many operations a kernel takes, without making it; frames: of functions that need one or some."""
    options = catalog_entry(function).options
    frame = frames[0] if frames and "frame" in options else None
    several = tuple(frames) if "frames" in options else ()
    question = Question.of(model, function, method, "baked", (), frame, None, True, several)
    question.lowering = "unrolled"
    return question.plan().operations
