"""The plain face of a model's dynamics: one short method a question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from spanloop import loops
from spanloop.compiler.runtime.arrays import checked_out, converted
from spanloop.dynamics.kernel_calls import Calls
from spanloop.errors import InputError, nearest
from spanloop.loops import arguments, solution
from spanloop.loops.arguments import checked, known_forces
from spanloop.loops.solution import Reactions, Solution
from spanloop.model import Model


class Dynamics(Calls):
    """The dynamics of one model.

    All arrays have batch axes first, any number of them: q (..., nq), v, a, tau (..., nv). One state that has no
    answer raises; in a batch its row is NaN, with one warning. `out=` takes an array to write into. Forces are
    [torque; force] at a body's origin in world axes.
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
    ):
        """method: the algorithm of forward_dynamics; threads: for batches, 0 for all cores.

        chain_threads: for the chains of one state in forward_dynamics, see sl.compile.

        open_chain: of method "arms_on_object", the method for trees that it asks for each arm.

        on_singular: "raise" refuses positions at which loops lose rank, "minimum_norm" answers there all the same.
        """
        options = {"dtype": dtype, "threads": threads, "target": target, "on_singular": on_singular}
        super().__init__(model, method, open_chain, options, chain_threads)
        self._partly: dict[frozenset[str], Dynamics] = {}  # without the loops that are not active

    def __repr__(self) -> str:
        return f"Dynamics({self.model.name!r}, nq={self.model.nq}, nv={self.model.nv})"

    def __reduce__(self):
        return _remade, (self.model, self._method, self._open_chain, self._options, self._chain_threads)

    # ---- dynamics

    def forward_dynamics(
        self,
        q,
        v,
        tau,
        *,
        out=None,
        forces: Mapping | None = None,
        active: Iterable[str] | None = None,
        given: Mapping | None = None,
        known: Mapping | None = None,
    ) -> np.ndarray:
        """Accelerations a (..., nv) under torques tau; a driven joint's entry of tau is its acceleration.

        active: names of the switchable loops that are closed now; all of them if not told.
        given: {"loop": accelerations (..., n)} of the freedoms of driven loops; 0 if not told.
        known: {"loop": forces (..., n)} that act along the freedoms of loops, on body b and, reversed, on body a.

        v must keep the loops closed (J v = 0), which is not looked at here: with any other v they go on opening, and
        methods differ in how. robot.project(q, v) gives the nearest that does.
        """
        if active is not None:
            active = arguments.active_loops(self.model, active)
        if known is not None:
            forces = known_forces(self, q, known, forces or {}, active)
        if self._has_extras or active is not None or given is not None:
            return self._loaded(
                "forward_dynamics", (q, v, tau), out, forces or {}, self.loop_inputs(active, given or {})
            )
        return self._dynamics("forward_dynamics", (q, v, tau), out, forces)

    def inverse_dynamics(
        self,
        q,
        v,
        a,
        *,
        out=None,
        forces: Mapping | None = None,
        actuated: Sequence[str] | None = None,
        weights=None,
        internal: Mapping | None = None,
        active: Iterable[str] | None = None,
        given: Mapping | None = None,
        known: Mapping | None = None,
        method: str = "whole",
    ) -> np.ndarray:
        """Torques tau (..., nv) for accelerations a.

        With loops or couplings, or where `actuated` is told, torques act at the actuated joints only, and v and a must
        keep the loops closed. a may also be {"joint": acceleration} or the independent ones (..., mobility): the others
        follow.

        actuated: names of joints or freedoms; those of model.actuated (and driven ones) if not told.
        weights: of the squares of torques, {"joint": weight} or one a freedom, where there are more actuators than
        the motion needs; 1 if not told.
        internal: {"loop": [torque; force] (..., 6)} on body b at the loop's child frame in world axes. Spare
        actuators bring the loops' forces as near to these as the motion lets them (in N and N m).
        active, given, known: as in forward_dynamics. method: "whole", or "subsystems" (see robot.subsystems()).
        """
        words = (actuated, weights, internal, active, given, known)
        told = any(x is not None for x in words) or isinstance(a, Mapping) or method != "whole"
        if not (self.model.loops or self.model.couplings or told):
            return self._dynamics("inverse_dynamics", (q, v, a), out, forces)
        robot, given = self._closed_now("inverse_dynamics", active, given, known)
        options = {"actuated": actuated, "weights": weights, "internal": internal, "forces": forces}
        found = loops.inverse_dynamics(robot, q, v, a, method=method, given=given, known=known, **options)
        return found if out is None else _written("inverse_dynamics", out, found)

    def actuated_inverse_dynamics(self, q, v, a, *, out=None, forces: Mapping | None = None) -> np.ndarray:
        """Torques (..., n) of the n actuated freedoms for legs on one platform; only actuated entries of a are read.

        [Saha, section 3]; the others' accelerations follow inside the kernel.
        """
        return self._dynamics("actuated_inverse_dynamics", (q, v, a), out, forces)

    def minimal(self, start, joints: Sequence[str] | None = None) -> loops.Minimal:
        """The mechanism as an ODE in its actuated joints (or those named); start (nq,) chooses the assembly."""
        return loops.Minimal(self, start, joints)

    def parallel_complement(self, q) -> loops.Complement:
        """N_l, N_c, N_d at one state of legs on one platform: t = N_l N_c N_d θ̇ in the actuated rates; print it.

        [Saha, eq. 32]; whatever the robot's own method is.
        """
        return loops.parallel_complement(self, q)

    def solve_inverse(
        self,
        q,
        v,
        a,
        *,
        forces: Mapping | None = None,
        actuated: Sequence[str] | None = None,
        weights=None,
        internal: Mapping | None = None,
        active: Iterable[str] | None = None,
        given: Mapping | None = None,
        known: Mapping | None = None,
        method: str = "whole",
    ) -> Solution:
        """Torques that make a motion, with the closure forces that go with them; words as in inverse_dynamics.

        The forces at the other joints are then robot.reactions(q, v, solution.tau), with the same words.
        """
        robot, given = self._closed_now("solve_inverse", active, given, known)
        options = {"actuated": actuated, "weights": weights, "internal": internal, "forces": forces}
        found = loops.solve_inverse(robot, q, v, a, method=method, given=given, known=known, **options)
        return found if robot is self else solution.with_idle(self.model, robot.model, found)

    def subsystems(self, actuated: Sequence[str] | None = None) -> loops.Subsystems:
        """The branches of the spanning tree in the order in which inverse dynamics can solve them: print it."""
        return loops.subsystems(self, actuated)

    def bias(self, q, v, *, out=None, forces: Mapping | None = None) -> np.ndarray:
        """Torques h (..., nv) at zero acceleration: Coriolis terms, gravity, dampers, springs."""
        return self._dynamics("bias", (q, v), out, forces)

    def gravity(self, q, *, out=None) -> np.ndarray:
        """Torques (..., nv) that hold the mechanism against gravity."""
        return self._plain("gravity", (q,), out)

    def mass_matrix(self, q, *, coordinates: str = "tree", out=None) -> np.ndarray:
        """M (..., nv, nv), armature included; coordinates="independent": in the freedoms of robot.independent()."""
        if coordinates == "tree":
            return self._plain("mass_matrix", (q,), out)
        if coordinates != "independent":
            known = ("tree", "independent")
            raise InputError(f"mass_matrix: coordinates is {coordinates!r}; {nearest(coordinates, known)}")
        return loops.independent_mass_matrix(self, q, out=out)

    def mass_matrix_inverse(self, q, *, out=None) -> np.ndarray:
        """M⁻¹ (..., nv, nv)."""
        return self._plain("mass_matrix_inverse", (q,), out)

    def inertia_factors(self, q) -> tuple[np.ndarray, np.ndarray]:
        """U and D (..., nv, nv) with M = U D Uᵀ: U unit upper triangular, D diagonal. [Saha, eq. 18]"""
        both = self._call(self._kernel("inertia_factors"), (q,), None)
        return both[..., 0, :, :], both[..., 1, :, :]

    def convective_inertia(self, q, v, *, out=None) -> np.ndarray:
        """C (..., nv, nv): C v is the bias torque without gravity, dampers and springs. [Saha, eq. 16]"""
        return self._plain("convective_inertia", (q, v), out)

    def constraint_forces(self, q, v, tau, *, out=None, forces: Mapping | None = None) -> np.ndarray:
        """[torque; force] (..., n_joints, 6) of every joint's constraint on its child, at its origin in world axes.

        Without the joints' own torques, which `reactions` has too; by the principle of virtual work; for trees.
        """
        return self._dynamics("constraint_forces", (q, v, tau), out, forces)

    def solve(
        self,
        q,
        v,
        tau,
        *,
        forces: Mapping | None = None,
        active: Iterable[str] | None = None,
        given: Mapping | None = None,
        known: Mapping | None = None,
    ) -> Solution:
        """Accelerations with all that goes with them: torques at driven joints, closure forces by name, residual,
        status; words as in forward_dynamics."""
        return solution.solve(self, q, v, tau, forces, self._chosen("solve", active), given, known)

    def reactions(
        self,
        q,
        v,
        tau,
        *,
        forces: Mapping | None = None,
        active: Iterable[str] | None = None,
        given: Mapping | None = None,
        known: Mapping | None = None,
    ) -> Reactions:
        """[torque; force] (..., 6) of every joint on its child and every loop on its body b, by name, in world axes;
        words as in forward_dynamics."""
        return solution.reactions(self, q, v, tau, forces, self._chosen("reactions", active), given, known)

    # ---- kinematics

    def pose(self, q, frame: str, *, out=None) -> np.ndarray:
        """Pose (..., 4, 4) of a frame or body in the world."""
        return self._call(self._kernel("pose", frame=frame), (q,), out)

    def jacobian(self, q, frame: str, *, expressed_in: str = "world", out=None) -> np.ndarray:
        """J (..., 6, nv): [angular; linear] velocity of the frame's origin is J v, in the axes of `expressed_in`."""
        return self._call(self._kernel("jacobian", frame=frame, expressed_in=expressed_in), (q,), out)

    def jacobian_bias(self, q, v, frame: str, *, expressed_in: str = "world", out=None) -> np.ndarray:
        """Classical acceleration (..., 6) of the frame's origin when a = 0."""
        return self._call(self._kernel("jacobian_bias", frame=frame, expressed_in=expressed_in), (q, v), out)

    def operational_inverse_inertia(self, q, frames: str | Sequence[str], *, out=None) -> np.ndarray:
        """Λ⁻¹ = J M⁻¹ Jᵀ (..., 6k, 6k) of k frames of a tree: their accelerations [angular; linear] due to forces
        [torque; force] at them, in world axes. Without M, in O(n) a frame; driven joints do not give way."""
        return self._call(self._kernel("operational_inverse_inertia", frames=_names(frames)), (q,), out)

    def force_response(self, q, frames: str | Sequence[str], *, out=None) -> np.ndarray:
        """M⁻¹ Jᵀ (..., nv, 6k) of k frames of a tree: accelerations of the joints due to forces [torque; force] at
        the frames, in world axes. Without M, in O(n) a frame; driven joints do not give way."""
        return self._call(self._kernel("force_response", frames=_names(frames)), (q,), out)

    # ---- quantities

    def energy(self, q, v, *, out=None) -> np.ndarray:
        """(..., 2): kinetic and potential energy [J]."""
        return self._plain("energy", (q, v), out)

    def momentum(self, q, v, *, out=None) -> np.ndarray:
        """(..., 6): [angular; linear] momentum about the centre of mass, world axes."""
        return self._plain("momentum", (q, v), out)

    def center_of_mass(self, q, *, out=None) -> np.ndarray:
        """(..., 3): centre of mass of everything that moves, in the world [m]."""
        return self._plain("center_of_mass", (q,), out)

    # ---- coordinates

    def integrate(self, q, delta, *, out=None) -> np.ndarray:
        """q ⊕ delta (..., nq): where the velocity delta leads in one unit of time."""
        return self._plain("integrate", (q, delta), out)

    def difference(self, start, q, *, out=None) -> np.ndarray:
        """delta (..., nv) with integrate(start, delta) = q."""
        return self._plain("difference", (start, q), out)

    # ---- loops

    def closure_error(self, q, *, out=None) -> np.ndarray:
        """e (..., n_rows) [m or rad] of all closure rows: those of the loops, then of the couplings."""
        return self._plain("closure_error", (q,), out)

    def closure_jacobian(self, q, *, out=None) -> np.ndarray:
        """J (..., n_rows, nv): closed loops stay closed if J v = 0."""
        return self._plain("closure_jacobian", (q,), out)

    def closure_bias(self, q, v, *, out=None) -> np.ndarray:
        """γ (..., n_rows): closed loops stay closed if J a + γ = 0."""
        return self._plain("closure_bias", (q, v), out)

    def grasp_velocities(self, q, v, *, out=None) -> np.ndarray:
        """W (..., n): rates along the freedoms that loops leave, of body b on body a, in the loops' order."""
        kernel, nv = self._kernel("grasp_accelerations"), self.model.nv
        rates = converted("grasp_velocities", "v", nv, v, kernel.dtype)
        return self._call(kernel, (q, np.zeros(nv), rates), out)  # Ẇ = J a + γ, and γ is 0 at rest: J v

    def grasp_accelerations(self, q, v, a, *, out=None) -> np.ndarray:
        """Ẇ (..., n): accelerations along the freedoms that loops leave, of body b on body a, in the loops' order."""
        return self._plain("grasp_accelerations", (q, v, a), out)

    def assemble(self, guess, fixed: Sequence[str] = (), *, tolerance: float = 1e-12, max_steps: int = 100):
        """q (..., nq) near the guess with all loops closed, within limits; joints named in `fixed` do not move."""
        return loops.assemble(self, guess, fixed, tolerance=tolerance, max_steps=max_steps)

    def project(self, q, v=None):
        """q, or (q, v), brought back to the closed loops by the change of least kinetic energy."""
        return loops.project(self, q, v)

    def independent(self, q=None, prefer: Sequence[str] = ()) -> loops.Independent:
        """Freedoms that determine the others, in general or as is best at q."""
        return loops.independent_freedoms(self, q, prefer)

    def velocity_map(self, q, freedoms=None) -> np.ndarray:
        """T (..., nv, n): v = T v_i for the n independent freedoms."""
        return loops.velocity_map(self, q, freedoms)

    def complete_velocity(self, q, rates, freedoms=None) -> np.ndarray:
        """v (..., nv) that keeps the loops closed, from independent rates (..., n) or {"joint": rate}."""
        return loops.complete_velocity(self, q, rates, freedoms)

    def complete_acceleration(self, q, v, accelerations, freedoms=None, *, given: Mapping | None = None) -> np.ndarray:
        """a (..., nv) that keeps the loops closed, from independent ones (..., n) or {"joint": acceleration}.

        given: as in forward_dynamics.
        """
        driven = None if given is None else self.given_rows(given, "complete_acceleration")
        return loops.complete_acceleration(self, q, v, accelerations, freedoms, driven)

    def follow(self, start, path: Mapping) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q (n, nq), v, a (n, nv) of all joints from {"joint": (positions, rates, accelerations)}, each (n,)."""
        return loops.follow(self, start, path)

    def mobility(self, q=None):
        """Freedoms that the loops leave, in general or at q (..., nq)."""
        return loops.mobility(self, q)

    def diagnose(self, q) -> loops.Diagnosis:
        """Closure errors, rank, mobility, redundant rows by name, distance to singularity: print it."""
        return loops.diagnose(self, q)

    def operational_inertia(self, q, frames: str | Sequence[str]) -> loops.OperationalInertia:
        """The inertia that forces at frames meet while the loops stay closed."""
        return loops.operational_inertia(self, q, frames)

    def with_active(self, active: Iterable[str] | None) -> Dynamics:
        """This robot, or the one without the switchable loops that are not active."""
        chosen, switchable = arguments.active_loops(self.model, active), arguments.switchable_loops(self.model)
        if len(chosen) == len(switchable):
            return self
        if chosen not in self._partly:
            idle = [name for name in switchable if name not in chosen]
            self._partly[chosen] = self._opened(idle)
        return self._partly[chosen]

    def _opened(self, idle: Sequence[str]) -> Dynamics:
        """This robot without some loops; where none is left, its method for loops goes with them."""
        robot = Dynamics(self.model.without_loops(*idle), **self._options)
        if robot.model.loops or robot.model.couplings:
            robot._method, robot._open_chain = self._method, self._open_chain
        return robot

    def _chosen(self, function: str, active: Iterable[str] | None) -> frozenset[str] | None:
        return None if active is None else arguments.active_loops(self.model, active, function)

    def _closed_now(self, function: str, active, given, known) -> tuple[Dynamics, dict]:
        """The robot with the loops that are active, and what is given of those; names are checked here."""
        chosen = self._chosen(function, active)
        if given is not None:
            self.given_rows(given, function)
        if known is not None:
            checked(self.model, known, chosen, function)
        robot = self.with_active(chosen)
        there = {x.name for x in robot.model.loops}
        return robot, {name: x for name, x in (given or {}).items() if name in there}


def _names(frames: str | Sequence[str]) -> tuple[str, ...]:
    return (frames,) if isinstance(frames, str) else tuple(frames)


def _written(name: str, out, found: np.ndarray) -> np.ndarray:
    checked_out(name, out, found.shape, found.dtype)
    out[...] = found
    return out


def _remade(model: Model, method, open_chain, options, chain_threads) -> Dynamics:
    return Dynamics(model, method=method, open_chain=open_chain, chain_threads=chain_threads, **options)
