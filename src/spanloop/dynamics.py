"""Dynamics: a model's kernels behind plain calls. Kernels compile on first use and are kept on disk."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from spanloop.compiling import compile
from spanloop.errors import InputError, nearest
from spanloop.model import Model


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
    ):
        """method: the algorithm of forward_dynamics; threads: for batches, 0 for all cores."""
        self.model = model
        self._options: dict[str, Any] = {"dtype": dtype, "threads": threads, "target": target}
        self._method = method
        self._kernels: dict = {}
        self._making = threading.RLock()
        self._short: set[str] = set()  # functions whose attribute is the compiled call
        if method is not None:
            self._kernel("forward_dynamics")  # an unknown method is reported here

    def __repr__(self) -> str:
        return f"Dynamics({self.model.name!r}, nq={self.model.nq}, nv={self.model.nv})"

    def __reduce__(self):
        return _remade, (self.model, self._method, self._options)

    # ---- dynamics

    def forward_dynamics(self, q, v, tau, *, out=None, forces: Mapping | None = None) -> np.ndarray:
        """Accelerations a (..., nv) under torques tau; a driven joint's entry of tau is its acceleration."""
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

    def mass_matrix(self, q, *, out=None) -> np.ndarray:
        """M (..., nv, nv), armature included."""
        return self._plain("mass_matrix", (q,), out)

    def mass_matrix_inverse(self, q, *, out=None) -> np.ndarray:
        """M⁻¹ (..., nv, nv)."""
        return self._plain("mass_matrix_inverse", (q,), out)

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

    # ---- kernels

    def kernel(self, function: str, **options):
        """The compiled kernel behind a call: its operations, plan and source."""
        return self._kernel(function, **options)

    def _kernel(self, function: str, **options):
        key = (function, *sorted(options.items()))
        if key not in self._kernels:
            with self._making:  # one kernel a function, whoever asks: the compiled call relies on its being kept
                if key not in self._kernels:
                    method = self._method if function == "forward_dynamics" else None
                    self._kernels[key] = compile(self.model, function, method=method, **options, **self._options)
        return self._kernels[key]

    def _plain(self, function: str, inputs, out):
        kernel = self._kernel(function)
        self._shorten(function, kernel)
        return self._call(kernel, inputs, out)

    def _dynamics(self, function: str, inputs, out, forces):
        if forces is not None:
            return self._loaded(function, inputs, out, forces)
        return self._plain(function, inputs, out)

    def _shorten(self, function: str, kernel) -> None:
        """From the first call on, the attribute is the compiled call itself; what it cannot take comes back here."""
        if function not in self._short:
            self._short.add(function)
            # by setattr: touching self.__dict__ would cost every later look-up 60 ns (CPython keeps attributes
            # inline until then)
            setattr(self, function, kernel.entry(getattr(type(self), function).__get__(self)))

    def _loaded(self, function: str, inputs, out, forces):
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
            return self._call(self._kernel(function), inputs, out)
        leading = np.broadcast_shapes(*(np.shape(forces[n])[:-1] for n in names))
        rows = [np.broadcast_to(forces[n], (*leading, 6)) for n in names]
        kernel = self._kernel(function, forces=names)
        return self._call(kernel, (*inputs, np.concatenate(rows, axis=-1)), out)

    @staticmethod
    def _call(kernel, inputs, out):
        return kernel.evaluate(*inputs, out=out)


def _remade(model: Model, method, options) -> Dynamics:
    return Dynamics(model, method=method, **options)
