"""How fast dampers, springs, friction and gains pull at joints: the stiffest one, and the step that it asks for."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from spanloop.kernels import KernelSpec
from spanloop.model import Model
from spanloop.simulation.system import SLIP, System

IMPLICIT = 1.0  # rate times step: above it a step whose integrator is not chosen is implicit
EXPLICIT = 2.0  # ... above it explicit steps are unstable, or nearly so
_SINGULAR = 1e-12  # is added to M, scaled to ones on its diagonal: links without mass are very fast, not infinitely


@dataclass(frozen=True)
class Stiffest:
    """The fastest decay or oscillation that torques at joints cause, and the joint and cause that are its largest part.

    rate: [1/s], of the mechanism in its neutral position, loops open.
    """

    rate: float
    joint: str
    cause: str

    def __str__(self) -> str:
        return f"the {self.cause} of joint {self.joint!r} (a rate of {self.rate:.2g} 1/s)"

    def advice(self, h: float, integrator: str) -> str:
        """What a step of h [s] by an explicit integrator is to be replaced by."""
        return (
            f"{self} asks for steps below {EXPLICIT / self.rate:.1g} s with integrator={integrator!r}; the step is "
            f"{h:g} s. Use integrator='implicit', which is stable at any step"
        )


def is_stiff(system: System) -> bool:
    """Whether anything at the joints of a system could ask for short steps."""
    losses = (j.damping + j.friction + j.stiffness for j in system.model.joints)
    return any(map(any, losses)) or bool(system.model.actuators) or system.applied.gains() is not None


def stiffest(system: System) -> Stiffest | None:
    """The fastest decay or oscillation of a system at rest in its neutral position; None if nothing pulls at joints."""
    model, parts = system.model, _parts(system)
    K, D = (sum(part[i] for part in parts.values()) for i in (0, 1))
    if not (K.any() or D.any()):
        return None
    scale, C = _scaled(model)
    inverse, K, D = np.linalg.inv(C), K * scale**2, D * scale**2
    n = model.nv
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-inverse * K, -inverse * D]])
    values, vectors = np.linalg.eig(A)
    fastest = int(np.argmax(np.abs(values)))
    shares = np.abs(vectors[n:, fastest]) ** 2 * (D + np.sqrt(K))
    dof = int(np.argmax(shares))
    weights = {name: d[dof] + np.sqrt(k[dof] / max(np.abs(values[fastest]), 1e-9)) for name, (k, d) in parts.items()}
    joint = next(j.name for j in model.joints if dof in range(n)[model.v_slice(j.name)])
    return Stiffest(float(np.abs(values[fastest])), joint, max(weights, key=weights.__getitem__))


@functools.lru_cache(maxsize=64)
def mobility(model: Model) -> tuple[float, ...]:
    """The diagonal (nv) of the inverse of the mass matrix in the neutral position, loops open [1/(kg m²) or 1/kg]."""
    scale, C = _scaled(model)
    return tuple((scale**2 * np.diag(np.linalg.inv(C))).tolist())


def _parts(system: System) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Stiffness and damping (nv each) by cause, at rest."""
    own = System(system.model, system.applied)  # with the model's numbers, where parameters are live
    stiffness, damping = (np.array(x, float) for x in own.springs_and_dampers({}))
    zeros = np.zeros(system.model.nv)
    kp, kd = (np.array(x, float) for x in system.applied.gains() or (zeros, zeros))
    return {
        "damping": (zeros, damping),
        "spring": (stiffness, zeros),
        "friction": (zeros, np.array(own.friction) / SLIP),
        "gains": (kp, kd),
    }


def _scaled(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """s (nv) and the matrix s M s + tiny in the neutral position, with ones on its diagonal."""
    spec = KernelSpec.of(model, "mass_matrix")
    M = np.array(spec.compute({"q": list(model.neutral())})[0], float).reshape(model.nv, model.nv)
    size = np.maximum(np.diag(M), _SINGULAR * max(np.diag(M).max(initial=0.0), 1e-30))
    scale = 1.0 / np.sqrt(size)
    return scale, scale[:, None] * M * scale + _SINGULAR * np.eye(model.nv)
