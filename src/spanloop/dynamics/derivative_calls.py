"""Calls for derivatives of a state's functions: along a direction, of a weighted sum, all of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from spanloop.compiler.runtime.arrays import checked_out, converted, written
from spanloop.compiler.runtime.foreign_arrays import as_numpy
from spanloop.compiler.runtime.nan_rows import OneWarning
from spanloop.derivatives.batched_directions import in_every_direction
from spanloop.derivatives.closed_dynamics import ClosedDerivatives, along_closed_motions, as_computed
from spanloop.derivatives.closed_torques import ClosedTorqueDerivatives, torques_along_closed_motions
from spanloop.derivatives.matrices import Derivatives, TorqueDerivatives
from spanloop.derivatives.tree_dynamics import FORWARD, INVERSE, tree_kernel
from spanloop.dynamics.kernel_calls import ByName, KernelCalls
from spanloop.errors import InputError, UnsupportedError, nearest
from spanloop.kernels.derivative_spec import SWITCHES, WEIGHTS
from spanloop.kernels.spec import check_function
from spanloop.loops import arguments
from spanloop.loops.independent_dofs import Dofs
from spanloop.model import Model
from spanloop.types import Array

WRITTEN_OUT = 24  # DoF up to which all derivatives of a tree are one kernel, not one call for each direction
_WRITTEN_OUT_FLEXIBLE = 6  # the same with flexible bodies, whose tapes are ten times as long


class DerivativeCalls(KernelCalls):
    """Derivatives of every function of the catalog.

    **Common arguments of derivatives.**

    function: a name of the catalog, as for sl.compile: "forward_dynamics", "energy", "pose", ...

    inputs: of the function by name, {"q": q (..., nq), "v": v, ...}. "forces" is {"body": [torque; force]}, and so
    are directions of them and derivatives by them; "parameters" are the model's own unless they are given. Directions
    and derivatives by q are joint rates, one entry for each DoF (docs/gradients.md).

    wrt: names of inputs; by default all but parameters and forces.

    q and v stay while parameters move. A position of a joint in a loop opens it then, and the derivative by it depends
    on the method: add those by q and v along the changes that close the loop again (docs/gradients.md).

    active_loops, loop_accelerations: as of forward_dynamics. Other options, as frame=: those of sl.compile.
    """

    def jvp(
        self,
        function: str,
        inputs: Mapping[str, Any],
        directions: Mapping[str, Any],
        *,
        active_loops: Iterable[str] | None = None,
        loop_accelerations: ByName | None = None,
        out: Array | None = None,
        **options: Any,
    ) -> Array:
        """Return the derivative of a function along directions {"q": dq (..., nv), "v": dv, ...}, in its own shape.

        >>> robot = sl.Dynamics(sl.zoo.pendulum())
        >>> power = robot.jvp("energy", {"q": [0.3], "v": [0.2]}, {"q": [0.2], "v": [0.0]})
        >>> power.shape  # of the kinetic and of the potential energy
        (2,)
        """
        check_function(function)
        if not isinstance(directions, Mapping) or not directions:
            raise InputError(f"{function}: directions is {directions!r}; expected {{'q': dq (..., nv), ...}}")
        given = _Given(self, function, inputs, tuple(directions), active_loops, loop_accelerations, options)
        along = [given.direction(name, x) for name, x in directions.items()]
        kernel = self._kernel(function, derivative="jvp", wrt=given.wrt, **given.options)
        return self._call(kernel, (*given.ordered, *along), out)

    def vjp(
        self,
        function: str,
        inputs: Mapping[str, Any],
        weights: ArrayLike,
        *,
        wrt: str | Sequence[str] | None = None,
        active_loops: Iterable[str] | None = None,
        loop_accelerations: ByName | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Return the derivatives of Σ weights · answer by the inputs wrt: {"q": (..., nv), "v": (..., nv), ...}.

        weights: of the shape of the function's answer, batch axes first.

        >>> robot = sl.Dynamics(sl.zoo.puma())
        >>> q, v = robot.model.random_state(seed=1)
        >>> gradient = robot.vjp("energy", {"q": q, "v": v}, [1.0, 1.0])  # of the total energy
        >>> sorted(gradient), gradient["q"].shape
        (['q', 'v'], (6,))
        """
        given = _Given(self, function, inputs, wrt, active_loops, loop_accelerations, options)
        kernel = self._kernel(function, derivative="vjp", wrt=given.wrt, **given.options)
        shape = self._kernel(function, **given.options).shape
        w = as_numpy(function, WEIGHTS, weights, f"(..., {', '.join(map(str, shape))})").astype(float, copy=False)
        if w.shape[w.ndim - len(shape) :] != shape:
            raise InputError(f"{function}: {WEIGHTS} has shape {w.shape}; expected (..., {', '.join(map(str, shape))})")
        flat = w.reshape(*w.shape[: w.ndim - len(shape)], math.prod(shape))
        found = self._call(kernel, (*given.ordered, flat), None)
        return given.by_name(found, kernel.definition.places)

    def derivative(
        self,
        function: str,
        inputs: Mapping[str, Any],
        *,
        wrt: str | Sequence[str] | None = None,
        active_loops: Iterable[str] | None = None,
        loop_accelerations: ByName | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Return all derivatives of a function by the inputs wrt: {"q": (..., *shape, nv), ...}.

        >>> robot = sl.Dynamics(sl.zoo.puma())
        >>> by = robot.derivative("gravity_torques", {"q": np.zeros(6)})
        >>> by["q"].shape
        (6, 6)
        """
        given = _Given(self, function, inputs, wrt, active_loops, loop_accelerations, options)
        return given.by_name(*self._all_of(function, given.ordered, given.wrt, given.options))

    def _all_of(
        self,
        function: str,
        inputs: tuple[Any, ...],
        wrt: tuple[str, ...] | None,
        options: Mapping[str, Any],
        name: str | None = None,
    ) -> tuple[Array, Mapping[str, slice]]:
        """All derivatives (..., *shape, width) of a function by the inputs wrt, and their places: by one kernel if it
        is short, else direction by direction. name: in errors."""
        if self.model.nv <= _written_out(self.model) and not (self.model.loops or self.model.couplings):
            kernel = self._kernel(function, derivative="jacobian", wrt=wrt, **options)
            return self._call(kernel, inputs, None), kernel.definition.places
        kernel = self._kernel(function, derivative="jvp", wrt=wrt, **options)
        return in_every_direction(name or function, kernel, inputs), kernel.definition.places

    # ---- accelerations

    def derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        *,
        out: Array | None = None,
        forces: ByName | None = None,
        coordinates: str | None = None,
        dofs: Dofs = None,
        active_loops: Iterable[str] | None = None,
        loop_accelerations: ByName | None = None,
    ) -> Derivatives | ClosedDerivatives:
        """Return the derivatives of forward_dynamics(q, v, tau): da_dq, da_dv, da_dtau, views of one array `da`.

        coordinates: "tree", by all positions (in joint rates), rates and torques, (..., nv, nv) each. "independent",
        along closed motions: by the n independent positions and rates `dofs`, (..., nv, n), and by all torques; the
        default where there are loops or couplings. Of closed mechanisms "tree" differentiates the function as it is
        computed, which off the loops depends on the method (docs/gradients.md). forces are held in world axes.

        StateError: as of forward_dynamics; "independent": also where v opens a loop, or dofs do not determine the other
        DoF. UnsupportedError: "independent" for a loop that constrains velocities alone.

        >>> robot, q = sl.Dynamics(sl.zoo.four_bar()), sl.zoo.four_bar_start()
        >>> found = robot.derivatives(q, np.zeros(3), np.zeros(3))
        >>> found.dofs.names, found.da_dq.shape, found.independent.da_dq.shape
        (('crank_hinge',), (3, 1), (1, 1))
        """
        if forces is None and active_loops is None and loop_accelerations is None and dofs is None:
            known = self._tree_calls.get(FORWARD)
            if known is not None and (coordinates is None or coordinates == "tree"):
                return Derivatives(known(q, v, tau) if out is None else known(q, v, tau, out=out))
        whole = cast(Any, self)  # a Dynamics
        robot, accelerations = whole._with_checked_loops("derivatives", active_loops, loop_accelerations, None)
        closed = bool(robot.model.loops or robot.model.couplings)
        if coordinates not in (None, "tree", "independent"):
            raise InputError(
                f"derivatives: coordinates is {coordinates!r}; {nearest(str(coordinates), ('tree', 'independent'))}"
            )
        if dofs is not None and coordinates == "tree":
            raise InputError("derivatives: dofs are for coordinates='independent'; leave out coordinates='tree'")
        extra = robot._loop_inputs(None, accelerations)
        with OneWarning("derivatives"):
            if not closed and coordinates != "independent" and dofs is None:
                return Derivatives(robot._of_tree(FORWARD, (q, v, tau), forces, out))
            if coordinates == "independent" or dofs is not None or (coordinates is None and closed):
                found = along_closed_motions(robot, q, v, tau, forces, extra, dofs)
                return found if out is None else replace(found, da=written("derivatives", out, found.da))
            da = as_computed(robot, q, v, tau, forces, extra)
        return Derivatives(da if out is None else written("derivatives", out, da))

    def inverse_dynamics_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike | ByName,
        *,
        out: Array | None = None,
        forces: ByName | None = None,
        actuated: Sequence[str] | None = None,
        weights: ArrayLike | Mapping[str, float] | None = None,
        dofs: Dofs = None,
        active_loops: Iterable[str] | None = None,
        loop_accelerations: ByName | None = None,
    ) -> TorqueDerivatives | ClosedTorqueDerivatives:
        """Return the derivatives of inverse_dynamics(q, v, a): dtau_dq, dtau_dv, dtau_da, views of one array `dtau`.

        Of trees by all positions (in joint rates), rates and accelerations, (..., nv, nv) each. With loops or
        couplings, or with `actuated`, along closed motions: by the n independent positions, rates and accelerations
        `dofs`, (..., nv, n) each, with rows of 0 for joints that are not actuated. Other arguments as of
        inverse_dynamics. forces are held in world axes.

        InputError: there are fewer actuators than the mobility, so that torques exist for special motions alone.
        StateError: as of inverse_dynamics, and where the actuators do not drive every motion.

        >>> robot, q = sl.Dynamics(sl.zoo.four_bar()), sl.zoo.four_bar_start()
        >>> found = robot.inverse_dynamics_derivatives(q, np.zeros(3), {"crank_hinge": 2.0})
        >>> found.dtau_dq.shape, bool(np.allclose(found.dtau_da[0], robot.mass_matrix(q, coordinates="independent")))
        ((3, 1), True)
        """
        plain = forces is None and active_loops is None and loop_accelerations is None and dofs is None
        if plain and actuated is None and weights is None:
            known = self._tree_calls.get(INVERSE)
            if known is not None:
                return TorqueDerivatives(known(q, v, a) if out is None else known(q, v, a, out=out))
        name, whole = INVERSE, cast(Any, self)  # a Dynamics
        robot, accelerations = whole._with_checked_loops(name, active_loops, loop_accelerations, None)
        if not (robot.model.loops or robot.model.couplings or actuated is not None or dofs is not None):
            return TorqueDerivatives(robot._of_tree(INVERSE, (q, v, a), forces, out))
        with OneWarning(name):
            found = torques_along_closed_motions(
                robot,
                q,
                v,
                a,
                actuated=actuated,
                weights=weights,
                forces=forces,
                loop_accelerations=accelerations,
                dofs=dofs,
            )
        return found if out is None else replace(found, dtau=written(name, out, found.dtau))

    # ---- frames

    def kinematic_hessian(
        self, q: ArrayLike, frame: str, *, expressed_in: str = "world", out: Array | None = None
    ) -> Array:
        """Return H (..., 6, nv, nv), H[..., i, j] = ∂J[..., i]/∂q_j of the frame's Jacobian J (6, nv).

        The derivative by q_j is that at a unit rate of DoF j alone: while joints move at rates v, J changes at H @ v.
        In world axes J a + H @ v @ v is the frame's acceleration; axes of expressed_in that turn have their share in H.
        Loops are ignored, as by jacobian.

        >>> robot = sl.Dynamics(sl.zoo.puma())
        >>> q, v = robot.model.random_state(seed=1)
        >>> H = robot.kinematic_hessian(q, "link6")
        >>> bool(np.allclose(H @ v @ v, robot.jacobian_bias(q, v, "link6")))
        True
        """
        name, dtype = "kinematic_hessian", np.dtype(self._options["dtype"])
        options: dict[str, Any] = {"frame": frame, "expressed_in": expressed_in}
        q = converted(name, "q", self.model.nq, q, dtype)
        if out is not None:
            checked_out(name, out, (*q.shape[:-1], 6, self.model.nv, self.model.nv), dtype)
        with OneWarning(name):
            if self._dofs_below(frame, expressed_in) <= _written_out(self.model):
                return self._call(self._kernel("jacobian", derivative="jacobian", wrt=("q",), **options), (q,), out)
            found = self.derivative("jacobian", {"q": q}, wrt="q", **options)["q"]
        return found if out is None else written(name, out, found)

    def _dofs_below(self, *frames: str) -> int:
        """How many DoF move one of these frames."""
        below, carrier = {}, {j.child: j for j in self.model.joints}
        for name in frames:
            joint = carrier.get(self.model.frame(name).body)
            while joint is not None:
                below[joint.name] = joint.kind.nv
                joint = carrier.get(joint.parent)
        return sum(below.values())

    def _of_tree(self, name: str, inputs: tuple[Any, ...], forces: ByName | None, out: Array | None) -> Array:
        """The derivatives of a tree by its own kernel (derivatives/tree_dynamics.py); with flexible bodies, of which
        that recursion knows nothing, by the derivatives of the tape."""
        bodies, rows = ((), None) if forces is None else arguments.external_forces(self.model, name, forces)
        if _is_flexible(self.model):
            function, wrt = _DIFFERENTIATED[name]
            options: dict[str, Any] = {"forces": bodies} if bodies else {}
            found, _ = self._all_of(function, (*inputs, rows) if bodies else inputs, wrt, options, name)
            return found if out is None else written(name, out, found)
        kernel = self._kernels.get((name, bodies))
        if kernel is None:
            kernel = tree_kernel(self.model, name, bodies, **self._options)
            self._kernels[name, bodies] = kernel
        if not bodies:
            self._tree_calls[name] = getattr(kernel, "call", kernel)
        return self._call(kernel, (*inputs, rows) if bodies else inputs, out)


_DIFFERENTIATED = {FORWARD: ("forward_dynamics", ("q", "v", "tau")), INVERSE: ("inverse_dynamics", ("q", "v", "a"))}


def _is_flexible(model: Model) -> bool:
    return any(j.kind.bends for j in model.joints)


def _written_out(model: Model) -> int:
    """DoF up to which all derivatives are one kernel."""
    return _WRITTEN_OUT_FLEXIBLE if _is_flexible(model) else WRITTEN_OUT


class _Given:
    """The inputs of a function in its kernel's order, checked: `ordered`, `wrt`, and the kernel's options."""

    def __init__(
        self,
        robot: KernelCalls,
        function: str,
        inputs: Mapping[str, Any],
        wrt: str | Sequence[str] | None,
        active_loops: Iterable[str] | None,
        loop_accelerations: ByName | None,
        options: dict[str, Any],
    ):
        check_function(function)
        if not isinstance(inputs, Mapping):
            raise InputError(f"{function}: inputs is a {type(inputs).__name__}; expected {{'q': q, 'v': v, ...}}")
        _refuse_other_functions(robot.model, function, options)
        self.function, self.options, x = function, dict(options), dict(inputs)
        self.bodies: tuple[str, ...] = ()
        if "forces" in x:
            self.bodies, x["forces"] = arguments.external_forces(robot.model, function, x["forces"])
            self.options["forces"] = self.bodies
        self.wrt = None if wrt is None else ((wrt,) if isinstance(wrt, str) else tuple(wrt))
        live = "parameters" in x or (self.wrt is not None and "parameters" in self.wrt)
        if live:
            x.setdefault("parameters", robot.model.parameters().values)
            self.options["parameters"] = "live"
        names = [n for n, _ in robot._kernel(function, **self.options).inputs]
        extra = iter(robot._loop_inputs(active_loops, loop_accelerations))
        for name in names:
            if name in ("active", "given"):
                x.setdefault(name, next(extra))
        for name in (*x, *(self.wrt or ())):
            if name not in names:
                hint = "; parameters are one input: wrt='parameters'" if name in robot.model.parameters().names else ""
                raise InputError(f"{function}: it has no input {name!r}; {nearest(name, names)}{hint}")
        missing = [n for n in names if n not in x]
        if missing:
            raise InputError(f"{function}: inputs lacks {', '.join(map(repr, missing))}; it has {', '.join(names)}")
        self.ordered = tuple(x[n] for n in names)
        if self.wrt is None:
            self.wrt = tuple(n for n in names if n not in (*SWITCHES, "parameters", "forces", "given"))

    def by_name(self, found: Array, places: Mapping[str, slice]) -> dict[str, Any]:
        """Derivatives by the inputs of wrt, those by forces by body."""
        out: dict[str, Any] = {name: found[..., place] for name, place in places.items()}
        if "forces" in out:
            columns = out["forces"]
            out["forces"] = {body: columns[..., 6 * k : 6 * k + 6] for k, body in enumerate(self.bodies)}
        return out

    def direction(self, name: str, x: Any) -> Any:
        """The direction of one input: that of forces by body, as forces are."""
        if name != "forces":
            return x
        if not isinstance(x, Mapping):
            raise InputError(
                f"{self.function}: a direction of forces is {type(x).__name__}; expected {{'body': (..., 6)}}"
            )
        missing = {body: np.zeros(6) for body in self.bodies}
        unknown = [body for body in x if body not in missing]
        if unknown:
            raise InputError(
                f"{self.function}: a direction of forces names {unknown[0]!r}; {nearest(unknown[0], self.bodies)}"
            )
        return arguments.joined([{**missing, **x}[body] for body in self.bodies])


_OPTIONS = ("method", "open_chain", "frame", "expressed_in", "frames", "points", "near", "regroup")  # of sl.compile


def _refuse_other_functions(model: Model, function: str, options: Mapping[str, Any]) -> None:
    """Refuse options that the catalog's function does not have, and functions that mean another thing with loops."""
    for name in options:
        if name not in _OPTIONS:
            raise InputError(f"{function}: derivatives take no option {name!r}; {nearest(name, _OPTIONS)}")
    if not (model.loops or model.couplings):
        return
    if function == "inverse_dynamics":
        raise UnsupportedError(
            "inverse_dynamics: with loops its torques are not unique; robot.inverse_dynamics_derivatives(q, v, a) has "
            "the derivatives of the actuators' torques, function 'tree_inverse_dynamics' those of actuators and loops "
            "together"
        )
    if function == "reactions":
        raise UnsupportedError(
            "reactions: the catalog's function is that of the spanning tree, without the forces of the loops, and has "
            "no use in a closed mechanism. robot.reactions(q, v, tau) has no derivative yet"
        )
