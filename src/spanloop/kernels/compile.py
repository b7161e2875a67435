"""`sl.compile`: a model and a function become a kernel.

spec → key → artifact in the cache, or plan → source → object code → artifact;   artifact → Kernel
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.algorithms import catalog
from spanloop.compiler.lower import Division, Operations, Part
from spanloop.errors import InputError, UnsupportedError
from spanloop.kernels.lowering import chain_parts
from spanloop.kernels.spec import KernelSpec, check_function, check_target, checked_model, refuse_threads_of_gpu
from spanloop.kernels.state_refusals import off_unit_length, open_loop
from spanloop.model import Model
from spanloop.sweeps.operators import Operator
from spanloop.sweeps.vectors import Vector
from spanloop.topology import mechanism

if TYPE_CHECKING:
    from spanloop.compiler.runtime.gpu.kernel import GpuKernel
    from spanloop.compiler.runtime.kernel import Definition, Kernel
    from spanloop.compiler.runtime.reference import PythonKernel
    from spanloop.kernels.derivative_spec import DerivativeSpec

    AnyKernel = Kernel | PythonKernel | GpuKernel


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
    forces: str | Sequence[str] = (),
    frame: str | None = None,
    expressed_in: str | None = None,
    frames: str | Sequence[str] = (),
    regroup: bool = True,
    on_singular: str = "raise",
    lowering: str = "auto",
    open_chain: str | None = None,
    points: str | Sequence[str] = (),
    near: ArrayLike | None = None,
    derivative: str | None = None,
    wrt: str | Sequence[str] | None = None,
    layout: str = "rows",
    device: int = 0,
    warps: int | None = None,
) -> AnyKernel:
    """Return a kernel of one function of one model.

    A kernel is called like the function, k(q, v, tau, out=None), with one state or with leading batch axes: q of shape
    (..., nq), v, a, tau (..., nv), in SI units and the order of the model's joints. Machine code is cached on disk.

    Arguments:
        function: "forward_dynamics", "inverse_dynamics", "mass_matrix", ... (spanloop.algorithms.catalog lists them);
            or an expression of spatial operators: the kernel of an operator takes q and x, that of a vector expression
            q and the vectors in the order in which they appear.
        method: the algorithm; by default the first in the catalog. "composite_body" and "unit_vector" cannot be looped
            over links, and compile for some 20 s on 48 DoF.
        target: "cpu" (machine code), "cuda" (an NVIDIA GPU, docs/gpu.md) or "python" (the same steps on floats: slow,
            the reference for the others).
        dtype: "float64" or "float32".
        parameters: "baked" compiles the model's numbers in; "live" adds the input `parameters`, packed as
            model.parameters(), one set or one per state. The kernel refuses negative masses, losses and moments about
            a body's axes; model.with_parameters and sl.simulate check principal moments too. The positions of a loop's
            own frames stay baked in.
        threads: threads for the states of a batch; 0 for all cores.
        chain_threads: threads for the chains (arms, legs, limbs) of one state; 0 for all cores. For large mechanisms
            and calls in close succession (docs/simple_closed_chain.md). Batches are split over states all the same.
        forces: names of bodies with external forces; adds the input `forces` (..., 6 n), [torque; force] of each
            [N m; N] in this order.
        frame, expressed_in: frame or body of pose, jacobian and jacobian_bias, and the axes of the result.
        frames: frames or bodies of operational_inverse_inertia and force_response, six rows or columns for each.
        regroup: False keeps every inertial number at its own body (more operations, same answer).
        on_singular: "raise" refuses a position where closures lose rank; "minimum_norm" answers with the rows left.
        lowering: "unrolled" writes the operations of every link out, "looped" traces each kind of link once and loops
            over the links; "auto" loops over trees of more than LOOP_THRESHOLD links where the algorithm allows it.
        open_chain: of method "arms_on_object", the method for trees that it applies to each arm.
        points: of free_response and forced_response, the frames or bodies that closures may join.
        near: a closed state q (nq,), in which loops that can be switched may be open: the kernel leaves out the rows
            that are redundant in its assembly, not those of the assemblies near the neutral state (docs/singular.md).
        derivative: "jvp", the derivative along a direction, which the inputs d.q, d.v, ... give; "vjp", the derivatives
            of a sum of the answer's numbers with the input `weights`; "jacobian", all derivatives, in a last axis of
            the answer. Derivatives by q have one entry for each DoF: q moves at joint rates (docs/gradients.md). By
            lengths in loops they are those of loops that open: q stays.
        wrt: names of the inputs by which the derivative is; by default all of the function's own. "parameters" makes
            the parameters an input.
        layout: of arrays of target "cuda": "rows" (n, size), or "columns" (size, n), which is faster for large models.
        device: of target "cuda", the number of the GPU.
        warps: of target "cuda", how many warps compute 32 states together, 1 to 4; by default chosen by the size of a
            batch. Several are for mechanisms with chains to divide (docs/gpu.md).

    Returns:
        A Kernel: callable; `operations`, `plan`, `source`, `inputs` and `shape` describe it; `wasm`, of
        target "cpu", is it as a WebAssembly module (docs/wasm.md), `ptx`, of target "cuda", as PTX (docs/gpu.md).

    Raises:
        InputError: an option or name does not fit. UnsupportedError: the method or target cannot do this model.
        The kernel itself raises StateError for a single state without an answer; in a batch such rows are NaN, with one
        SpanloopWarning.

    Example:
        >>> kernel = sl.compile(sl.zoo.puma(), "mass_matrix")
        >>> kernel(np.zeros(6)).shape
        (6, 6)
    """
    origin = functools.partial(compile, **locals())
    checked_model(model, "compile")
    check_function(function)
    if chain_threads is True or chain_threads != 1:
        lowering = _lowering_for_chains(target, lowering)
    spec: KernelSpec | DerivativeSpec
    if wrt is not None and "parameters" in ((wrt,) if isinstance(wrt, str) else wrt):
        parameters = "live"
    if isinstance(function, str):
        spec = KernelSpec.of(
            model,
            function,
            method=method,
            parameters=parameters,
            forces=forces,
            frame=frame,
            expressed_in=expressed_in,
            frames=frames,
            points=points,
            open_chain=open_chain,
            regroup=regroup,
            on_singular=on_singular,
            lowering=lowering,
            single=_is_single(dtype),
            refines=True,
            near=None if near is None else checked_near(model, near),
        )
    else:
        _refuse_options(method=method, forces=forces, frame=frame, expressed_in=expressed_in, frames=frames)
        spec = KernelSpec.of_expression(
            model, function, parameters=parameters, on_singular=on_singular, lowering=lowering
        )
    if _is_single(dtype) and spec.needs_double:
        raise UnsupportedError(f"{function}: method {spec.method!r} needs double precision; leave out dtype='float32'")
    check_target(target)
    refuse_threads_of_gpu(threads, target)
    if target != "cuda" and (layout != "rows" or device != 0 or warps is not None):
        raise InputError(f"{function}: layout, device and warps are for target='cuda'; target is {target!r}")
    division = _division(spec, chain_threads) if chain_threads is True or chain_threads != 1 else None
    if derivative is not None:
        spec = _derivative(spec, derivative, wrt, division, lowering)
    elif wrt is not None:
        raise InputError(f"{function}: wrt is {wrt!r}, of no derivative; add derivative='jacobian', 'jvp' or 'vjp'")
    if target == "python":
        from spanloop.compiler.runtime.reference import PythonKernel

        kernel: AnyKernel = PythonKernel(spec, dtype)
    elif target == "cuda":
        from spanloop.compiler.runtime.gpu.kernel import GpuKernel

        kernel = GpuKernel(spec, dtype, layout, device, warps, functools.partial(_parts, spec))
    else:
        kernel = machine_kernel(spec, dtype=dtype, threads=threads, division=division)
    kernel.origin = origin
    return kernel


def checked_near(model: Model, near: ArrayLike, function: str = "compile") -> Sequence[float]:
    """A state q (nq,) in which all loops are closed, but for those that can be switched."""
    q = np.asarray(near, dtype=float)
    if q.shape != (model.nq,) or not np.isfinite(q).all():
        raise InputError(
            f"{function}: near has shape {q.shape}; expected a closed state ({model.nq},) of finite numbers"
        )
    if (off := off_unit_length(model, q, "near")) is not None:
        raise InputError(f"{function}: {off}")
    found: list[float] = q.tolist()
    m = mechanism(model)
    if m.closures:
        closed = ~np.isin(np.arange(m.n_rows), m.switched_rows)
        if (fault := open_loop(model, m, found, closed)) is not None:
            raise InputError(f"{function}: near is not closed: {fault}. Close it first: robot.assemble(near)")
    return found


def machine_kernel(
    definition: Definition, *, dtype: str = "float64", threads: int = 1, division: Division | None = None
) -> Kernel:
    """The kernel of a definition as machine code; division: shares the work on one state among threads."""
    from spanloop.compiler.runtime import cache, machine
    from spanloop.compiler.runtime.kernel import REAL, Kernel, artifact_of, checked_dtype, single_source
    from spanloop.compiler.runtime.threaded import ThreadedKernel, threaded_single

    real = REAL[checked_dtype(dtype)]
    key = cache.key(definition.name, definition.key, str(division or "single"), real, machine.identity())
    artifact = cache.read(key)
    if artifact is None:
        with machine.reported(f"compiling {definition.label}"):
            plan = definition.plan
            if division is None:
                artifact = artifact_of(plan, single_source(plan, real), real)
            else:
                phased = division.phases_of(plan)
                artifact = artifact_of(plan, threaded_single(phased, real), real, phases=len(phased.phases) // 2)
        cache.write(key, artifact)
    if division is None:
        return Kernel(artifact, definition, dtype, threads)
    return ThreadedKernel(artifact, definition, division, dtype, threads)


def operations(model: Model, function: str, method: str | None = None, frames: Sequence[str] = ()) -> Operations:
    """Count the operations of a kernel without compiling it; frames: of functions that need one or several."""
    takes = catalog.function(function).options
    frame = frames[0] if frames and "frame" in takes else None
    several = tuple(frames) if "frames" in takes else ()
    return KernelSpec.of(
        model, function, method=method, frame=frame, frames=several, lowering="unrolled"
    ).plan.operations


def _derivative(
    spec: KernelSpec, mode: str, wrt: str | Sequence[str] | None, division: Division | None, lowering: str
) -> DerivativeSpec:
    """The derivative of a kernel's function; InputError for options that it does not take."""
    from spanloop.kernels.derivative_spec import DerivativeSpec

    if division is not None:
        raise InputError(f"{spec.name}: derivatives take no chain_threads")
    if lowering == "looped":
        raise InputError(f"{spec.name}: derivatives are not looped over links; leave out lowering='looped'")
    return DerivativeSpec.of(spec, mode, wrt)


def _division(spec: KernelSpec, chain_threads: int) -> Division | None:
    """The chains of the mechanism divided among threads; None where one thread has them all."""
    from spanloop.compiler.runtime.kernel import checked_threads

    count, parts = checked_threads(chain_threads, "chain_threads"), chain_parts(spec)
    return Division.among(count, parts) if count > 1 else None


def _parts(spec: KernelSpec | DerivativeSpec) -> Sequence[Part]:
    """The chains of a mechanism that warps of a GPU can divide; none where the function is not one of all joints."""
    try:
        return chain_parts(spec) if isinstance(spec, KernelSpec) else ()
    except (InputError, UnsupportedError):
        return ()


def _lowering_for_chains(target: str, lowering: str) -> str:
    if target != "cpu":
        raise InputError(f"chain_threads is for target 'cpu'; target is {target!r}")
    if lowering == "looped":
        raise InputError("chain_threads needs the unrolled form; leave out lowering='looped'")
    return "unrolled" if lowering == "auto" else lowering


def _refuse_options(**options: Any) -> None:
    for name, value in options.items():
        if value:
            raise InputError(f"an expression of operators takes no {name}")


def _is_single(dtype: Any) -> bool:
    try:
        return np.dtype(dtype) == np.float32
    except TypeError:  # no dtype: the kernel reports it
        return False
