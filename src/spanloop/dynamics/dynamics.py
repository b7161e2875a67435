"""`Dynamics`: what users call. One short method for each function of a state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spanloop import loops
from spanloop.compiler.runtime.arrays import accepted, written
from spanloop.compiler.runtime.nan_rows import OneWarning
from spanloop.dynamics import grasp_forces
from spanloop.dynamics.grasp_forces import GraspMargins
from spanloop.dynamics.kernel_calls import ByName
from spanloop.dynamics.linear_calls import in_double_precision
from spanloop.dynamics.quantities import Quantities
from spanloop.dynamics.static_loads import at_body_origins
from spanloop.errors import InputError, UnsupportedError, nearest
from spanloop.kernels import check_call_options, checked_model
from spanloop.loops import arguments, dynamics_solution
from spanloop.loops.dynamics_solution import Reactions, Solution
from spanloop.loops.independent_dofs import Dofs
from spanloop.model import Model
from spanloop.model.edits.remove import without_switches
from spanloop.types import Array

if TYPE_CHECKING:
    from spanloop.reach import Reach
    from spanloop.reach.target_kinds import Target

    Targets = Target | Mapping[str, ArrayLike] | Sequence[Target]


class Dynamics(Quantities):
    """The dynamics of one model.

    >>> import numpy as np, spanloop as sl
    >>> robot = sl.Dynamics(sl.zoo.puma())
    >>> q, v = robot.model.random_state(seed=1)
    >>> a = robot.forward_dynamics(q, v, np.zeros(6))
    >>> bool(np.abs(robot.inverse_dynamics(q, v, a)).max() < 1e-10)
    True

    A kernel compiles on the first call of a method and is kept on disk. Units are SI; spatial vectors are
    [angular; linear] and [torque; force].

    **Batches.** Arrays have batch axes first, any number of them, which broadcast: q (..., nq), v, a, tau (..., nv).

    **Errors.** InputError: an array or a name does not fit the model. StateError: a single state has no answer (numbers
    that are not finite, a quaternion off unit length, an open loop, a singular configuration); `error.reason` is a
    `spanloop.errors.Reason`. In a batch such a state's row is NaN, and one SpanloopWarning counts these states and
    explains the first; other rows are unaffected.

    **Common arguments.**

    q (..., nq): joint coordinates. v (..., nv): joint rates [rad/s, m/s]. a (..., nv): their accelerations. tau (...,
    nv): joint torques and forces [N m, N]; the entry of a driven joint is its acceleration.

    out: an array to write the result into, of its shape and dtype; it is returned.

    forces: external forces {"body": [torque; force] (..., 6)} at body origins in world axes [N m, N].

    active_loops: names of the switchable loops that are closed; all of them by default, [] for none.

    loop_accelerations: {"loop": (..., n)}, accelerations along the n DoF of driven loops [rad/s², m/s²]; 0 by default.

    loop_forces: {"loop": (..., n)}, forces along the n DoF of loops [N m, N], on body b and, reversed, on body a: a
    motor, a spring or friction in the joint that closes the loop.

    dofs: independent DoF, as names of joints or DoF, as numbers, or as robot.independent_coordinates() returns them
    (the default). frame, frames: names of frames or bodies.
    """

    def __init__(
        self,
        model: Model,
        *,
        method: str | None = None,
        dtype: str = "float64",
        threads: int = 1,
        target: str = "cpu",
        on_singular: str = "raise",
        open_chain: str | None = None,
        chain_threads: int = 1,
        parameters: str = "baked",
    ):
        """model: the mechanism.

        method: the algorithm of forward_dynamics; by default 'articulated_body' for trees, 'elimination' for loops.
        dtype: "float64" or "float32". threads: for batches, 0 for all cores. target: "cpu", or "python" for plain
        floats. chain_threads: for the chains of one state in forward_dynamics, see sl.compile.

        on_singular: "raise" refuses positions at which loops lose rank; "minimum_norm" returns the solution of least
        norm there.

        open_chain: for method "arms_on_object", the tree method that it applies to each arm.

        parameters: "baked", the model's numbers; only sl.compile and sl.simulate take them as inputs.
        """
        checked_model(model, "Dynamics")
        if parameters != "baked":
            raise UnsupportedError(
                f"Dynamics: parameters is {parameters!r}; it has the model's numbers compiled in ('baked'). Live ones: "
                "sl.compile(model, 'forward_dynamics', parameters='live') or sl.simulate(model, parameters=...); "
                "others for good: sl.Dynamics(model.with_parameters({'link.mass': 2.0}))"
            )
        check_call_options(dtype, threads, target, on_singular)
        options = {"dtype": dtype, "threads": threads, "target": target, "on_singular": on_singular}
        super().__init__(model, method, open_chain, options, chain_threads)
        self._with_fewer_loops: dict[frozenset[str], Dynamics] = {}  # by set of active loops

    def __repr__(self) -> str:
        return f"Dynamics({self.model.name!r}, nq={self.model.nq}, nv={self.model.nv})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _remade, (self.model, self._method, self._open_chain, self._options, self._chain_threads)

    # ---- dynamics

    def forward_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        *,
        out: Array | None = None,
        forces: ByName | None = None,
        active_loops: Iterable[str] | None = None,
        loop_accelerations: ByName | None = None,
        loop_forces: ByName | None = None,
    ) -> Array:
        """Return the accelerations a (..., nv) under the torques tau; help(Dynamics) explains the arguments.

        v must keep the loops closed (J v = 0). This is not checked; if J v ≠ 0 the loops drift apart.
        robot.project(q, v) returns the nearest v that does.

        >>> robot = sl.Dynamics(sl.zoo.pendulum(1))
        >>> robot.forward_dynamics([0.0], [0.0], [2.0]).shape
        (1,)
        """
        if active_loops is not None:
            active_loops = arguments.checked_active_loops(self.model, active_loops)
        if loop_forces is not None:
            with OneWarning("forward_dynamics"):
                loads = arguments.with_loop_forces(self, q, loop_forces, forces or {}, active_loops)
                extra = self._loop_inputs(active_loops, loop_accelerations) if self._has_loop_inputs else ()
                return self._loaded("forward_dynamics", (q, v, tau), out, loads, extra)
        if self._has_loop_inputs or active_loops is not None or loop_accelerations is not None:
            extra = self._loop_inputs(active_loops, loop_accelerations)
            return self._loaded("forward_dynamics", (q, v, tau), out, forces or {}, extra)
        return self._plain("forward_dynamics", (q, v, tau), out, forces)

    def inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike | ByName,
        *,
        out: Array | None = None,
        forces: ByName | None = None,
        actuated: Sequence[str] | None = None,
        weights: ArrayLike | Mapping[str, float] | None = None,
        internal_forces: ByName | None = None,
        active_loops: Iterable[str] | None = None,
        loop_accelerations: ByName | None = None,
        loop_forces: ByName | None = None,
        by_subsystems: bool = False,
    ) -> Array:
        """Return the torques tau (..., nv) that produce the accelerations a.

        With loops or couplings, or with `actuated`, torques act at the actuated joints only, and v and a must keep the
        loops closed. a may then also be {"joint": acceleration} or the independent accelerations (..., mobility); the
        others follow. help(Dynamics) explains the arguments that are not listed here.

        actuated: names of joints or DoF; by default model.actuated and the driven joints.

        weights: of the squares of the torques, {"joint": weight} or one for each actuated DoF, where there are more
        actuators than the motion needs; 1 by default.

        internal_forces: {"loop": [torque; force] (..., 6)} on body b at the loop's child frame in world axes. Spare
        actuators bring the forces of these loops as close to them as the motion allows, in the norm of N and N m.

        by_subsystems: solve the branches of robot.subsystems() one after the other.

        StateError: the actuators cannot produce the motion, or v or a open a loop.

        >>> robot, q = sl.Dynamics(sl.zoo.four_bar()), sl.zoo.four_bar_start()
        >>> tau = robot.inverse_dynamics(q, np.zeros(3), {"crank_hinge": 2.0})
        >>> bool(abs(robot.forward_dynamics(q, np.zeros(3), tau)[0] - 2.0) < 1e-9)
        True
        """
        options = (actuated, weights, internal_forces, active_loops, loop_accelerations, loop_forces)
        has_options = any(x is not None for x in options) or isinstance(a, Mapping) or by_subsystems
        if not (self.model.loops or self.model.couplings or has_options):
            return self._plain("inverse_dynamics", (q, v, a), out, forces)
        robot, accelerations = self._with_checked_loops(
            "inverse_dynamics", active_loops, loop_accelerations, loop_forces
        )
        with OneWarning("inverse_dynamics"):
            tau = loops.inverse_dynamics(
                robot,
                q,
                v,
                a,
                actuated=actuated,
                weights=weights,
                internal_forces=internal_forces,
                forces=forces,
                loop_accelerations=accelerations,
                loop_forces=loop_forces,
                by_subsystems=by_subsystems,
            )
        return tau if out is None else written("inverse_dynamics", out, tau)

    def solve(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        *,
        forces: ByName | None = None,
        active_loops: Iterable[str] | None = None,
        loop_accelerations: ByName | None = None,
        loop_forces: ByName | None = None,
    ) -> Solution:
        """Return the accelerations together with closure forces, torques at driven joints, residual and status.

        Arguments as of forward_dynamics.

        >>> robot, q = sl.Dynamics(sl.zoo.four_bar()), sl.zoo.four_bar_start()
        >>> found = robot.solve(q, np.zeros(3), np.zeros(3))
        >>> found.loop_forces["closing"].shape, str(found.status)
        ((6,), 'ok')
        """
        names = self._checked("solve", (q, v, tau), forces, active_loops, loop_accelerations, loop_forces)
        with OneWarning("solve"):
            return dynamics_solution.solve(self, q, v, tau, forces, names, loop_accelerations, loop_forces)

    def solve_inverse(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike | ByName,
        *,
        forces: ByName | None = None,
        actuated: Sequence[str] | None = None,
        weights: ArrayLike | Mapping[str, float] | None = None,
        internal_forces: ByName | None = None,
        active_loops: Iterable[str] | None = None,
        loop_accelerations: ByName | None = None,
        loop_forces: ByName | None = None,
        by_subsystems: bool = False,
    ) -> Solution:
        """Return the torques that produce a motion together with the closure forces.

        Arguments as of inverse_dynamics. The forces at the other joints are robot.reactions(q, v, solution.tau) with
        the same arguments.

        >>> robot, q = sl.Dynamics(sl.zoo.four_bar()), sl.zoo.four_bar_start()
        >>> found = robot.solve_inverse(q, np.zeros(3), {"crank_hinge": 2.0})
        >>> found.tau.shape, found.loop_forces["closing"].shape
        ((3,), (6,))
        """
        robot, accelerations = self._with_checked_loops("solve_inverse", active_loops, loop_accelerations, loop_forces)
        with OneWarning("solve_inverse"):
            found = loops.solve_inverse(
                robot,
                q,
                v,
                a,
                actuated=actuated,
                weights=weights,
                internal_forces=internal_forces,
                forces=forces,
                loop_accelerations=accelerations,
                loop_forces=loop_forces,
                by_subsystems=by_subsystems,
            )
        return found if robot is self else dynamics_solution.with_idle(self.model, robot.model, found)

    def reactions(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        *,
        forces: ByName | None = None,
        active_loops: Iterable[str] | None = None,
        loop_accelerations: ByName | None = None,
        loop_forces: ByName | None = None,
    ) -> Reactions:
        """Return [torque; force] (..., 6) by name in world axes: of joints on their children, of loops on their body b.

        A joint's reaction acts at its child's origin, a loop's at its child frame; the joint's own torque is included.
        Arguments as of forward_dynamics.

        >>> robot, q = sl.Dynamics(sl.zoo.four_bar()), sl.zoo.four_bar_start()
        >>> sorted(robot.reactions(q, np.zeros(3), np.zeros(3)))
        ['closing', 'coupler_hinge', 'crank_hinge', 'rocker_hinge']
        """
        names = self._checked("reactions", (q, v, tau), forces, active_loops, loop_accelerations, loop_forces)
        with OneWarning("reactions"):
            return dynamics_solution.reactions(self, q, v, tau, forces, names, loop_accelerations, loop_forces)

    def bias(self, q: ArrayLike, v: ArrayLike, *, out: Array | None = None, forces: ByName | None = None) -> Array:
        """Return the torques h (..., nv) at zero acceleration: Coriolis terms, gravity, dampers, springs."""
        return self._plain("bias", (q, v), out, forces)

    def gravity_torques(self, q: ArrayLike, *, out: Array | None = None) -> Array:
        """Return the torques (..., nv) that hold the mechanism against gravity."""
        return self._plain("gravity_torques", (q,), out)

    def static_torques(
        self,
        q: ArrayLike,
        forces: ByName | None = None,
        *,
        gravity: bool = True,
        actuated: Sequence[str] | None = None,
        weights: ArrayLike | Mapping[str, float] | None = None,
        active_loops: Iterable[str] | None = None,
        out: Array | None = None,
    ) -> Array:
        """Return the torques tau (..., nv) that hold the mechanism at rest under a load.

        forces: {"frame or body": [torque; force] (..., 6)}, the load at their origins in world axes [N m, N].

        gravity: with the weights of the bodies and the springs of joints; False: of the load alone, −Jᵀ forces in a
        tree.

        In a tree every joint has its torque; that of a free joint is the wrench that would have to hold the base. With
        loops, torques act at the actuated joints alone; `actuated`, `weights` as of inverse_dynamics.

        StateError: the actuators cannot hold the load, or a loop is open.

        >>> robot = sl.Dynamics(sl.zoo.puma())
        >>> q, load = robot.model.random_state(seed=1)[0], [0, 0, 0, 0, 0, -50.0]
        >>> tau = robot.static_torques(q, {"tool": load}, gravity=False)
        >>> bool(np.allclose(tau, -robot.jacobian(q, "tool").T @ load))
        True
        """
        loads = at_body_origins(self, q, forces or {}, "static_torques")
        options: dict[str, Any] = {"actuated": actuated, "weights": weights, "active_loops": active_loops}
        if weights is not None:
            arguments.actuators(self.model, actuated, weights, "static_torques")
        still = np.zeros(self.model.nv)
        with OneWarning("static_torques"):
            tau = self.inverse_dynamics(q, still, still, forces=loads or None, **options)
            if not gravity:
                tau = tau - self.inverse_dynamics(q, still, still, **options)
        return tau if out is None else written("static_torques", out, tau)

    def static_deflection(
        self,
        q: ArrayLike | ByName,
        forces: ByName | None = None,
        *,
        held: Sequence[str] | None = None,
        v: ArrayLike | ByName | None = None,
    ) -> Array:
        """Return q (..., nq) with the flexible bodies as they bend at rest under weight, springs and loads.

        q: positions of the joints, and modal coordinates from which the search starts; or {"joint": coordinate}.

        forces: {"frame or body": [torque; force] (..., 6)}, loads as of static_torques; static_torques of the result
        are the torques that hold it.

        held: names of the joints that keep their positions; by default all of a tree, and with loops those that are
        actuated or driven. The others follow, with loops closed.

        v: rates (nv,) of held joints, or by joint, of a steady motion of a tree, in which the modes stand still: the
        shape of a body that spins. The torques of the joints keep the rates. robot.linearize(q, v) is about it.

        A SpanloopWarning reports an equilibrium that is not stable, a body that buckles, and bodies that bend farther
        than their shapes follow. StateError: no equilibrium was found. Computed in double precision.

        >>> beam = sl.flexible.beam(2.0, E=7e10, density=2700.0, section=sl.flexible.rectangle(0.02, 0.01), modes=1)
        >>> model = sl.Builder("boom").body("boom", flexible=beam).revolute("hinge", "world", "boom", "y").build()
        >>> robot = sl.Dynamics(model)
        >>> q = robot.static_deflection({"hinge": 0.0})
        >>> print(robot.pose(q, "boom.tip")[:3, 3].round(3))  # q L⁴ / (8 E I) = 0.091 m
        [ 1.998  0.    -0.091]
        """
        from spanloop.dynamics.static_deflection import static_deflection

        with OneWarning("static_deflection"):
            return static_deflection(in_double_precision(self), q, forces, held, v)

    def mass_matrix(self, q: ArrayLike, *, coordinates: str = "tree", out: Array | None = None) -> Array:
        """Return the mass matrix M (..., nv, nv), armatures included.

        coordinates="independent": of the closed mechanism (..., n, n), in the n DoF of robot.independent_coordinates().
        """
        if coordinates == "tree":
            return self._plain("mass_matrix", (q,), out)
        if coordinates != "independent":
            names = ("tree", "independent")
            raise InputError(f"mass_matrix: coordinates is {coordinates!r}; {nearest(coordinates, names)}")
        return loops.independent_mass_matrix(self, q, out=out)

    def mass_matrix_inverse(self, q: ArrayLike, *, out: Array | None = None) -> Array:
        """Return M⁻¹ (..., nv, nv)."""
        return self._plain("mass_matrix_inverse", (q,), out)

    # ---- frames

    def pose(self, q: ArrayLike, frame: str, *, out: Array | None = None) -> Array:
        """Return the pose (..., 4, 4) of a frame or body in the world."""
        return self._call(self._kernel("pose", frame=frame), (q,), out)

    def jacobian(self, q: ArrayLike, frame: str, *, expressed_in: str = "world", out: Array | None = None) -> Array:
        """Return J (..., 6, nv) with J v the [angular; linear] velocity of the frame's origin.

        expressed_in: the frame or body whose axes are used; "world" by default.
        """
        return self._call(self._kernel("jacobian", frame=frame, expressed_in=expressed_in), (q,), out)

    def jacobian_bias(
        self, q: ArrayLike, v: ArrayLike, frame: str, *, expressed_in: str = "world", out: Array | None = None
    ) -> Array:
        """Return the classical acceleration (..., 6) of the frame's origin at a = 0: J̇ v."""
        return self._call(self._kernel("jacobian_bias", frame=frame, expressed_in=expressed_in), (q, v), out)

    def operational_inertia(self, q: ArrayLike, frames: str | Sequence[str]) -> loops.OperationalInertia:
        """Return the inertia that forces at frames meet while the loops stay closed; `.inverse` is Λ⁻¹ = J M⁻¹ Jᵀ.

        Six rows and columns for each frame, [angular; linear] in world axes. Driven joints do not yield. For trees,
        sl.compile(model, "operational_inverse_inertia", frames=...) computes Λ⁻¹ in O(n) a frame, without M.
        """
        return loops.operational_inertia(self, q, frames)

    def force_response(self, q: ArrayLike, frames: str | Sequence[str], *, out: Array | None = None) -> Array:
        """Return M⁻¹ Jᵀ (..., nv, 6k) of k frames of a tree: joint accelerations due to [torque; force] at the frames.

        In world axes, in O(n) a frame, without M. Driven joints do not yield.
        """
        names = (frames,) if isinstance(frames, str) else tuple(frames)
        return self._call(self._kernel("force_response", frames=names), (q,), out)

    # ---- coordinates

    def integrate(self, q: ArrayLike, delta: ArrayLike, *, out: Array | None = None) -> Array:
        """Return q ⊕ delta (..., nq): the coordinates after a constant velocity delta (..., nv) for a unit of time."""
        return self._plain("integrate", (q, delta), out)

    def difference(self, start: ArrayLike, q: ArrayLike, *, out: Array | None = None) -> Array:
        """Return delta (..., nv) with integrate(start, delta) = q; start, q (..., nq)."""
        return self._plain("difference", (start, q), out)

    # ---- loops

    def closure_error(self, q: ArrayLike, *, out: Array | None = None) -> Array:
        """Return the errors e (..., n_rows) [m or rad] of all closure rows: of the loops, then of the couplings.

        Each is measured along its row, in the axes of the loop's child frame; `diagnose(q).rows` has their names.
        """
        return self._plain("closure_error", (q,), out)

    def closure_jacobian(self, q: ArrayLike, *, out: Array | None = None) -> Array:
        """Return J (..., n_rows, nv): closed loops stay closed if J v = 0; its rows are those of `closure_error`."""
        return self._plain("closure_jacobian", (q,), out)

    def closure_bias(self, q: ArrayLike, v: ArrayLike, *, out: Array | None = None) -> Array:
        """Return γ (..., n_rows): closed loops stay closed if J a + γ = 0; its rows are those of `closure_error`."""
        return self._plain("closure_bias", (q, v), out)

    def assemble(
        self,
        guess: ArrayLike | ByName,
        fixed: Sequence[str] = (),
        *,
        tolerance: float = 1e-12,
        max_steps: int = 100,
        limits: str = "keep",
    ) -> Array:
        """Return coordinates q (..., nq) near the guess (..., nq) with all loops closed, within joint limits.

        guess: an array, or {"joint": coordinate}; other joints are where runs start by default (neutral, inside limits)
        fixed: names of joints that keep their coordinates. tolerance: largest closure error [rad, or of the loop's
        length]. max_steps: for each of six attempts. limits: "keep", or "ignore", which allows joints beyond theirs.

        StateError: no closed state was found; the message names the loop. A SpanloopWarning names redundant rows that
        the model's own numbers leave open (a planar loop whose file is rounded), and loops that constrain velocities
        alone (a general joint), which no position closes.

        >>> robot = sl.Dynamics(sl.zoo.four_bar())
        >>> q = robot.assemble([0.3, 0.3, 0.3])
        >>> bool(np.abs(robot.closure_error(q)).max() < 1e-11)
        True
        """
        return loops.assemble(self, guess, fixed, tolerance=tolerance, max_steps=max_steps, limits=limits)

    @overload
    def project(self, q: ArrayLike, v: None = None) -> Array: ...

    @overload
    def project(self, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array]: ...

    def project(self, q: ArrayLike, v: ArrayLike | None = None) -> Array | tuple[Array, Array]:
        """Return q, or (q, v), moved back to closed loops by the change of least kinetic energy."""
        return loops.project(self, q, v)

    def mobility(self, q: ArrayLike | None = None) -> int | NDArray[np.integer[Any]]:
        """Return the number of DoF that the loops leave: in general, or at q (..., nq)."""
        return loops.mobility(self, q)

    def diagnose(self, q: ArrayLike) -> loops.Diagnosis:
        """Return closure errors, rank, mobility, redundant directions and distance to singularity at q (nq,).

        >>> robot = sl.Dynamics(sl.zoo.four_bar())
        >>> print(str(robot.diagnose(sl.zoo.four_bar_start())).splitlines()[0])
        four_bar: 1 loop on 3 DoF.
        """
        return loops.diagnose(self, q)

    def independent_coordinates(
        self, q: ArrayLike | None = None, prefer: Sequence[str] = ()
    ) -> loops.IndependentCoordinates:
        """Return DoF that determine all others: in general, or the best choice at q (nq,).

        prefer: names of joints or DoF to choose. InputError: they depend on each other.
        """
        return loops.independent_coordinates(self, q, prefer)

    def minimal_coordinates(self, start: ArrayLike, joints: Sequence[str] | None = None) -> loops.MinimalCoordinates:
        """Return the mechanism as an ODE in its actuated joints.

        start (nq,): a closed state, or nearly so; it selects the assembly. joints: others to use instead.
        """
        return loops.MinimalCoordinates(self, start, joints)

    def velocity_map(self, q: ArrayLike, dofs: Dofs = None) -> Array:
        """Return T (..., nv, n) with v = T v_i for the n independent DoF."""
        return loops.velocity_map(self, q, dofs)

    def complete_velocity(self, q: ArrayLike, rates: ArrayLike | ByName, dofs: Dofs = None) -> Array:
        """Return v (..., nv) that keeps the loops closed, from independent rates (..., n) or {"joint": rate}.

        StateError: a loop is open at q (robot.assemble closes it), or the DoF do not determine the others there.

        >>> robot, q = sl.Dynamics(sl.zoo.four_bar()), sl.zoo.four_bar_start()
        >>> v = robot.complete_velocity(q, {"crank_hinge": 1.0})
        >>> bool(np.abs(robot.closure_jacobian(q) @ v).max() < 1e-12)
        True
        """
        return loops.complete_velocity(self, q, rates, dofs)

    def complete_acceleration(
        self,
        q: ArrayLike,
        v: ArrayLike,
        accelerations: ArrayLike | ByName,
        dofs: Dofs = None,
        *,
        loop_accelerations: ByName | None = None,
    ) -> Array:
        """Return a (..., nv) that keeps the loops closed, from independent ones (..., n) or {"joint": acceleration}."""
        rows = None
        if loop_accelerations is not None:
            rows = arguments.loop_acceleration_rows(self.model, loop_accelerations, "complete_acceleration")
        return loops.complete_acceleration(self, q, v, accelerations, dofs, rows)

    def follow(
        self, start: ArrayLike, path: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]]
    ) -> tuple[Array, Array, Array]:
        """Return q (n, nq), v, a (n, nv) of all joints from the motions of some.

        start (nq,): a state near the first sample; it selects the assembly.
        path: {"joint": (positions, rates, accelerations)}, each (n,), of joints that determine the others.

        UnsupportedError: a loop constrains velocities alone (a general joint, a soft finger, a driven loop).

        >>> robot, start = sl.Dynamics(sl.zoo.four_bar()), sl.zoo.four_bar_start()
        >>> angles = start[0] + np.linspace(0.0, 0.5, 11)
        >>> q, v, a = robot.follow(start, {"crank_hinge": (angles, np.ones(11), np.zeros(11))})
        >>> bool(np.abs(robot.closure_error(q)).max() < 1e-11)
        True
        """
        with OneWarning("follow"):
            return loops.follow(self, start, path)

    def subsystems(self, actuated: Sequence[str] | None = None) -> loops.Subsystems:
        """Return the branches of the spanning tree in the order in which inverse dynamics can solve them.

        actuated: names of joints or DoF; by default model.actuated and the driven joints.
        """
        return loops.subsystems(self, actuated)

    def page(self, path: str | Path, q: ArrayLike | None = None, v: ArrayLike | None = None, **options: Any) -> Path:
        """Write a page in which the mechanism runs from q (nq,), v (nv,) and can be grabbed; as Model.page does."""
        from spanloop.view.page.live.live_page import write_live

        return write_live(self, path, q, v, **options)

    # ---- grasps

    def grasp_margin(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        friction: grasp_forces.PerLoop,
        torsion: grasp_forces.PerLoop | None = None,
        *,
        normal: grasp_forces.Normals | None = None,
        loops: Iterable[str] | None = None,
        forces: ByName | None = None,
        active_loops: Iterable[str] | None = None,
        loop_accelerations: ByName | None = None,
        loop_forces: ByName | None = None,
    ) -> GraspMargins:
        """Return by loop the pressing force (...) [N] that a grasp has to spare before it slips; negative: missing.

        The margin is f_n − √(|f_t|²/µ² + m_n²/γ²), with the force on body b along the normal f_n, across it f_t, and
        the moment about it m_n. Grasps are loops of kind fixed, revolute (an edge), spherical (a point contact) or
        soft_finger. Moments across the normal are not bounded.

        friction: µ, a number or {"loop": number}. torsion: γ [m], in the same forms; the bound of the moment about the
        normal per pressing force, (2/3) µ r for a flat round patch of radius r, math.inf for no bound; a point contact
        needs none. normal (3,), or {"loop": (3,)}: in the axes of the loop's child frame, into body b; z by default.
        loops: names; by default those that friction names, or all closed loops that can be grasps.

        `.unique[loop]` is False where redundant constraints leave the forces of a grasp undetermined. Other arguments
        as of forward_dynamics.

        >>> robot, q = sl.Dynamics(sl.zoo.arms_with_object(3, grasp="spherical")), sl.zoo.arms_with_object_start(3)
        >>> tau = robot.gravity_torques(q) * (np.arange(24) >= 6)  # the arms hold themselves, not the object
        >>> found = robot.grasp_margin(q, np.zeros(24), tau, friction=0.6, normal=(1, 0, 0))
        >>> sorted(found), found.unique["holding1"]
        (['holding1', 'holding2', 'holding3'], True)
        """
        names = self._checked("grasp_margin", (q, v, tau), forces, active_loops, loop_accelerations, loop_forces)
        closed = self._with_active_loops(names).model
        cones = grasp_forces.cones(closed, friction, torsion, normal, loops, "grasp_margin")
        with OneWarning("grasp_margin"):
            found = dynamics_solution.solve(self, q, v, tau, forces, names, loop_accelerations, loop_forces)
            return grasp_forces.margins(self, q, found, cones)

    def squeeze_torques(
        self,
        q: ArrayLike,
        squeeze: ByName,
        *,
        normal: grasp_forces.Normals | None = None,
        actuated: Sequence[str] | None = None,
        active_loops: Iterable[str] | None = None,
    ) -> Array:
        """Return torques (..., nv) that squeeze what is held: added to others they change contact forces, no motion.

        squeeze: {"loop": (...)}, change of the pressing force of these loops [N], on body b along the normal. Forces at
        other loops, and across the normals, follow from the balance; the least of them is taken.

        normal: as of grasp_margin. actuated: names of joints or DoF; by default model.actuated and the driven joints.

        StateError: the contacts and the actuators cannot balance these forces, or redundant constraints leave them
        undetermined; a loop is open.

        >>> robot, q = sl.Dynamics(sl.zoo.arms_with_object(2, grasp="spherical")), sl.zoo.arms_with_object_start(2)
        >>> tau = robot.squeeze_torques(q, {"holding1": 20.0}, normal=(1, 0, 0))
        >>> at_rest = robot.forward_dynamics(q, np.zeros(18), np.zeros(18))
        >>> bool(np.abs(robot.forward_dynamics(q, np.zeros(18), tau) - at_rest).max() < 1e-9)
        True
        """
        robot = self._with_active_loops(self._active("squeeze_torques", active_loops))
        with OneWarning("squeeze_torques"):
            return grasp_forces.squeeze(robot, q, squeeze, normal, actuated, "squeeze_torques").tau

    def least_squeeze(
        self,
        q: ArrayLike,
        v: ArrayLike,
        tau: ArrayLike,
        squeeze: ByName,
        friction: grasp_forces.PerLoop,
        torsion: grasp_forces.PerLoop | None = None,
        *,
        margin: float = 0.0,
        normal: grasp_forces.Normals | None = None,
        loops: Iterable[str] | None = None,
        actuated: Sequence[str] | None = None,
        forces: ByName | None = None,
        active_loops: Iterable[str] | None = None,
    ) -> Array:
        """Return the least s >= 0 (...) with which tau + s squeeze_torques(q, squeeze) keeps all grasps from slipping.

        margin [N]: what every grasp must have to spare. Arguments as of grasp_margin and squeeze_torques. In closed
        form: along a line of forces each friction cone is an interval.

        StateError: no such s.

        >>> robot, q = sl.Dynamics(sl.zoo.arms_with_object(3, grasp="spherical")), sl.zoo.arms_with_object_start(3)
        >>> inward = {f"holding{k + 1}": robot.pose(q, f"grasp{k + 1}")[:3, :3].T @ (-np.cos(x), -np.sin(x), 0.0)
        ...     for k, x in enumerate(2.0 * np.pi * np.arange(3) / 3.0)}
        >>> tau, still = robot.static_torques(q), np.zeros(24)
        >>> s = robot.least_squeeze(q, still, tau, dict.fromkeys(inward, 1.0), 0.5, margin=80.0, normal=inward)
        >>> tau += s * robot.squeeze_torques(q, dict.fromkeys(inward, 1.0), normal=inward)
        >>> bool(abs(min(robot.grasp_margin(q, still, tau, friction=0.5, normal=inward).values()) - 80.0) < 1e-9)
        True
        """
        with OneWarning("least_squeeze"):
            found = self.grasp_margin(
                q, v, tau, friction, torsion, normal=normal, loops=loops, forces=forces, active_loops=active_loops
            )
            robot = self._with_active_loops(self._active("least_squeeze", active_loops))
            change = grasp_forces.squeeze(robot, q, squeeze, normal, actuated, "least_squeeze")
            cones = grasp_forces.cones(robot.model, friction, torsion, normal, loops, "least_squeeze")
            return grasp_forces.least_share(found.wrenches, change.wrenches, cones, margin, "least_squeeze")

    # ---- inverse kinematics

    def inverse_kinematics(
        self,
        targets: Targets,
        start: ArrayLike | ByName | None = None,
        *,
        fixed: str | Sequence[str] = (),
        tolerance: float | None = None,
        restarts: int = 50,
        seed: int = 0,
    ) -> Reach:
        """Return the state that brings frames, axes or the centre of mass to targets, or comes nearest to them.

        targets: {"frame": pose (..., 4, 4) or position (..., 3)}, or a list of sl.targets.Pose, Position, Orientation,
        Direction and CenterOfMass with weights. Batch axes come first, and all rows are solved together.
        start (..., nq) or {"joint": value}: where the search begins; by default neutral, with joints whose limits
        exclude that in the middle of them, and loops closed. fixed: names of joints that keep their coordinates, inside
        their limits; flexible bodies stay bent as they are. tolerance [m, rad]: of every target; by default 1e-9, in
        float32 1.2e-5 of the robot's size. restarts: further starts, drawn inside the limits by `seed`, for rows that
        do not converge; inverse_kinematics_path stays on one branch.

        Joint limits hold, and loops and couplings are closed to the tolerance of robot.assemble. A target out of reach
        is no error: `converged` is False, `residual` holds what is left by name, and print(result) names the joints at
        limits.

        StateError: a single target is not finite or no rotation, or loops cannot be closed; in a batch its row is NaN.
        UnsupportedError: a loop constrains velocities alone.

        >>> robot = sl.Dynamics(sl.zoo.puma())
        >>> there = robot.pose([0.1, -0.5, 0.4, 0.3, 0.6, -0.2], "link6")
        >>> found = robot.inverse_kinematics({"link6": there})
        >>> found.converged, bool(np.abs(robot.pose(found.q, "link6") - there).max() < 1e-8)
        (True, True)
        """
        from spanloop import reach

        return reach.inverse_kinematics(
            self, targets, start, fixed=fixed, tolerance=tolerance, restarts=restarts, seed=seed
        )

    def inverse_kinematics_path(
        self,
        targets: Targets,
        start: ArrayLike | ByName | None = None,
        *,
        fixed: str | Sequence[str] = (),
        tolerance: float | None = None,
        seed: int = 0,
    ) -> Reach:
        """Return states along a sequence of targets: q (n, nq) without jumps, in one assembly and on one branch.

        targets: as of inverse_kinematics, with one batch axis, the n samples of the path. start (nq,): selects the
        solution of the first sample; by default any. Other arguments as of inverse_kinematics.

        Where the path leads to a limit, a singular configuration or out of reach, it ends: `stopped` explains it,
        `converged` is False and q is NaN from that sample on.

        >>> robot = sl.Dynamics(sl.zoo.puma())
        >>> x = np.linspace(0.3, 0.5, 21)
        >>> points = np.stack([x, 0.2 + 0.0 * x, 0.1 + 0.0 * x], axis=1)
        >>> found = robot.inverse_kinematics_path({"link6": points})
        >>> bool(found.converged.all()), bool(np.abs(np.diff(found.q, axis=0)).max() < 0.1)
        (True, True)
        """
        from spanloop import reach

        return reach.inverse_kinematics_path(self, targets, start, fixed=fixed, tolerance=tolerance, seed=seed)

    # ---- sets of active loops

    def _with_active_loops(self, active_loops: Iterable[str] | None) -> Dynamics:
        """This robot, or the one without the switchable loops that are open; None: all loops are closed."""
        if active_loops is None:
            return self
        names = arguments.checked_active_loops(self.model, active_loops)
        if len(names) == len(self.model.switches):
            return self
        if names not in self._with_fewer_loops:
            self._with_fewer_loops[names] = self._without([x for x in self.model.switches if x not in names])
        return self._with_fewer_loops[names]

    def _without(self, names: Sequence[str]) -> Dynamics:
        """This robot without some loops or couplings; with none left, the default method for trees applies."""
        robot = Dynamics(without_switches(self.model, names), **self._options)
        if robot.model.loops or robot.model.couplings:
            robot._method, robot._open_chain = self._method, self._open_chain
        return robot

    def _active(self, function: str, active_loops: Iterable[str] | None) -> frozenset[str] | None:
        return None if active_loops is None else arguments.checked_active_loops(self.model, active_loops, function)

    def _checked(
        self,
        function: str,
        state: tuple[ArrayLike, ArrayLike, ArrayLike],
        forces: ByName | None,
        active_loops: Iterable[str] | None,
        loop_accelerations: ByName | None,
        loop_forces: ByName | None,
    ) -> frozenset[str] | None:
        """The active loops, None for all; shapes and names of all arguments are checked here, state: q, v, tau."""
        names, sizes = self._active(function, active_loops), (self.model.nq, self.model.nv, self.model.nv)
        accepted(function, list(zip(("q", "v", "tau"), sizes, strict=True)), state, np.dtype(float))
        if forces is not None:
            arguments.external_forces(self.model, function, forces)
        if loop_accelerations is not None:
            arguments.loop_acceleration_rows(self.model, loop_accelerations, function)
        if loop_forces is not None:
            arguments.checked_loop_forces(self.model, loop_forces, names, function)
        return names

    def _with_checked_loops(
        self,
        function: str,
        active_loops: Iterable[str] | None,
        loop_accelerations: ByName | None,
        loop_forces: ByName | None,
    ) -> tuple[Dynamics, dict[str, ArrayLike]]:
        """The robot with the active loops only, and the accelerations of those; names are checked here."""
        names = self._active(function, active_loops)
        if loop_accelerations is not None:
            arguments.loop_acceleration_rows(self.model, loop_accelerations, function)
        if loop_forces is not None:
            arguments.checked_loop_forces(self.model, loop_forces, names, function)
        robot = self._with_active_loops(names)
        closed = {x.name for x in robot.model.loops}
        return robot, {name: x for name, x in (loop_accelerations or {}).items() if name in closed}


def _remade(
    model: Model, method: str | None, open_chain: str | None, options: dict[str, Any], chain_threads: int
) -> Dynamics:
    return Dynamics(model, method=method, open_chain=open_chain, chain_threads=chain_threads, **options)
