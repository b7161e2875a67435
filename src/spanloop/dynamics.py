"""Dynamics: a model's kernels behind plain calls. Kernels compile on first use and are kept on disk."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from spanloop import loops
from spanloop.algorithms.closed.setting import row_mask
from spanloop.compiling import compile
from spanloop.errors import InputError, nearest
from spanloop.loops import solving
from spanloop.loops.known import known_forces
from spanloop.loops.solving import Reactions, Solution
from spanloop.model import Model
from spanloop.topology import mechanism


class Dynamics:
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
    ):
        """method: the algorithm of forward_dynamics; threads: for batches, 0 for all cores.

        open_chain: of method "arms_on_object", the method for trees that it asks for each arm.

        on_singular: "raise" refuses positions at which loops lose rank, "minimum_norm" answers there all the same.
        """
        self.model = model
        self._options: dict[str, Any] = {
            "dtype": dtype,
            "threads": threads,
            "target": target,
            "on_singular": on_singular,
        }
        self._method, self._open_chain = method, open_chain
        self._kernels: dict = {}
        self._making = threading.RLock()
        self._masks: dict[frozenset[str], np.ndarray] = {}  # of rows, for a set of active loops
        self._short: set[str] = set()  # functions whose attribute is the compiled call
        if method is not None or open_chain is not None:
            self._kernel("forward_dynamics")  # an unknown method is reported here

    def __repr__(self) -> str:
        return f"Dynamics({self.model.name!r}, nq={self.model.nq}, nv={self.model.nv})"

    def __reduce__(self):
        return _remade, (self.model, self._method, self._open_chain, self._options)

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
        """
        if known:
            forces = known_forces(self, q, known, forces or {})
        if self._has_extras or active is not None or given is not None:
            return self._loaded(
                "forward_dynamics", (q, v, tau), out, forces or {}, self.loop_inputs(active, given or {})
            )
        return self._dynamics("forward_dynamics", (q, v, tau), out, forces)

    def inverse_dynamics(self, q, v, a, *, out=None, forces: Mapping | None = None) -> np.ndarray:
        """Torques tau (..., nv) for accelerations a."""
        return self._dynamics("inverse_dynamics", (q, v, a), out, forces)

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

    def solve(self, q, v, tau, *, forces: Mapping | None = None) -> Solution:
        """Accelerations with all that goes with them: torques at driven joints, closure forces by name, residual,
        status."""
        return solving.solve(self, q, v, tau, forces)

    def reactions(self, q, v, tau, *, forces: Mapping | None = None) -> Reactions:
        """[torque; force] (..., 6) of every joint on its child and every loop on its body b, by name, in world axes."""
        return solving.reactions(self, q, v, tau, forces)

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

    def complete_acceleration(self, q, v, accelerations, freedoms=None) -> np.ndarray:
        """a (..., nv) that keeps the loops closed, from independent ones (..., n) or {"joint": acceleration}."""
        return loops.complete_acceleration(self, q, v, accelerations, freedoms)

    def mobility(self, q=None):
        """Freedoms that the loops leave, in general or at q (..., nq)."""
        return loops.mobility(self, q)

    def diagnose(self, q) -> loops.Diagnosis:
        """Closure errors, rank, mobility, redundant rows by name, distance to singularity: print it."""
        return loops.diagnose(self, q)

    def operational_inertia(self, q, frames: str | Sequence[str]) -> loops.OperationalInertia:
        """The inertia that forces at frames meet while the loops stay closed."""
        return loops.operational_inertia(self, q, frames)

    # ---- kernels

    def kernel(self, function: str, **options):
        """The compiled kernel behind a call: its operations, plan and source."""
        return self._kernel(function, **options)

    def _kernel(self, function: str, **options):
        key = (function, *sorted(options.items()))
        if key not in self._kernels:
            with self._making:  # one kernel a function, whoever asks: the compiled call relies on its being kept
                if key not in self._kernels:
                    asked = function == "forward_dynamics"
                    chosen: dict[str, Any] = {"method": self._method, "open_chain": self._open_chain} if asked else {}
                    self._kernels[key] = compile(self.model, function, **chosen, **options, **self._options)
        return self._kernels[key]

    def _plain(self, function: str, inputs, out):
        kernel = self._kernel(function)
        self._shorten(function, kernel)
        return self._call(kernel, inputs, out)

    def _dynamics(self, function: str, inputs, out, forces):
        if forces is not None:
            return self._loaded(function, inputs, out, forces)
        return self._plain(function, inputs, out)

    @functools.cached_property
    def _has_extras(self) -> bool:
        return any(x.switchable or x.driven for x in self.model.loops)

    def loop_inputs(self, active: Iterable[str] | None, given: Mapping) -> tuple:
        """The kernel's inputs for switchable and for driven loops."""
        extras: list[np.ndarray] = []
        switchable = [x.name for x in self.model.loops if x.switchable]
        chosen = frozenset(switchable if active is None else active)
        _all_known(chosen, switchable, "active", "a switchable loop")
        if switchable:
            if chosen not in self._masks:
                self._masks[chosen] = row_mask(mechanism(self.model), chosen)
            extras.append(self._masks[chosen])
        driven = [x for x in self.model.loops if x.driven]
        _all_known(given, [x.name for x in driven], "given", "a driven loop")
        if driven:
            rows = [np.asarray(given.get(x.name, np.zeros(x.kind.nv)), float) for x in driven]
            shape = np.broadcast_shapes(*(r.shape[:-1] for r in rows))
            extras.append(np.concatenate([np.broadcast_to(r, (*shape, r.shape[-1])) for r in rows], axis=-1))
        return tuple(extras)

    def _shorten(self, function: str, kernel) -> None:
        """From the first call on, the attribute is the compiled call itself; what it cannot take comes back here."""
        if function not in self._short:
            self._short.add(function)
            # by setattr: touching self.__dict__ would cost every later look-up 60 ns (CPython keeps attributes
            # inline until then)
            setattr(self, function, kernel.entry(getattr(type(self), function).__get__(self)))

    def _loaded(self, function: str, inputs, out, forces, last: tuple = ()):
        if not isinstance(forces, Mapping):
            raise InputError(f"{function}: forces is a {type(forces).__name__}; expected {{'body': array (..., 6)}}")
        known = [b.name for b in self.model.bodies]
        for name, six in forces.items():
            if name not in known:
                raise InputError(f"{function}: forces names {name!r}, which is not a body; {nearest(name, known)}")
            if np.shape(six)[-1:] != (6,):
                raise InputError(
                    f"{function}: the force on {name!r} has shape {np.shape(six)}; expected (..., 6), [torque; force]"
                )
        names = tuple(sorted(forces, key=known.index))
        if not names:
            return self._call(self._kernel(function), (*inputs, *last), out)
        leading = np.broadcast_shapes(*(np.shape(forces[n])[:-1] for n in names))
        rows = [np.broadcast_to(forces[n], (*leading, 6)) for n in names]
        kernel = self._kernel(function, forces=names)
        return self._call(kernel, (*inputs, np.concatenate(rows, axis=-1), *last), out)

    @staticmethod
    def _call(kernel, inputs, out):
        return kernel.evaluate(*inputs, out=out)


def _remade(model: Model, method, open_chain, options) -> Dynamics:
    return Dynamics(model, method=method, open_chain=open_chain, **options)


def _all_known(names, known, what: str, meaning: str) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"forward_dynamics: {what} names {name!r}, which is not {meaning}; {nearest(name, known)}")
