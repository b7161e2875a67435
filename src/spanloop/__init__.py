"""spanloop: dynamics of chains, trees and closed loops, compiled for the mechanism at hand.

import spanloop as sl
model = sl.load("arm.urdf")
robot = sl.Dynamics(model)
a = robot.forward_dynamics(q, v, tau)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# public name -> module that holds it; each is imported when first used
_PUBLIC = {
    "Builder": "spanloop.model.builder",
    "ClosedTopology": "spanloop.loops.closed_topology",
    "Closures": "spanloop.simulation.system",
    "Dynamics": "spanloop.dynamics",
    "Integrator": "spanloop.simulation.integrators",
    "Model": "spanloop.model",
    "MujocoOrder": "spanloop.model.orders.mujoco",
    "PinocchioOrder": "spanloop.model.orders.pinocchio",
    "SpanloopError": "spanloop.errors",
    "SpanloopWarning": "spanloop.errors",
    "Study": "spanloop.studies.study",
    "Trajectory": "spanloop.trajectory.trajectory",
    "compile": "spanloop.kernels",
    "export": "spanloop.exports.export",
    "from_dh": "spanloop.model.files.dh.table",
    "gradient": "spanloop.simulation.gradients.gradient",
    "load": "spanloop.model.files",
    "load_run": "spanloop.trajectory.files.storage",
    "on_scalars": "spanloop.kernels",
    "operators": "spanloop.algorithms.closed.model_operators",
    "sensitivities": "spanloop.simulation.gradients.sensitivities",
    "simulate": "spanloop.simulation.simulate",
    "where": "spanloop.math.scalar",
}
# name -> module that it is; errors and math are reachable, though not listed
_MODULES = {
    "contacts": "spanloop.contacts",
    "control": "spanloop.simulation.control",
    "envs": "spanloop.envs",
    "errors": "spanloop.errors",
    "events": "spanloop.simulation.events",
    "flexible": "spanloop.flexible",
    "forces": "spanloop.simulation.forces",
    "joints": "spanloop.joints",
    "math": "spanloop.math",
    "papers": "spanloop.papers",
    "studies": "spanloop.studies",
    "targets": "spanloop.reach.target_kinds",
    "zoo": "spanloop.zoo",
}

__all__ = [
    "Builder",
    "ClosedTopology",
    "Closures",
    "Dynamics",
    "Integrator",
    "Model",
    "MujocoOrder",
    "PinocchioOrder",
    "SpanloopError",
    "SpanloopWarning",
    "Study",
    "Trajectory",
    "compile",
    "contacts",
    "control",
    "envs",
    "events",
    "export",
    "flexible",
    "forces",
    "from_dh",
    "gradient",
    "joints",
    "load",
    "load_run",
    "on_scalars",
    "operators",
    "papers",
    "sensitivities",
    "simulate",
    "studies",
    "targets",
    "where",
    "zoo",
]

if TYPE_CHECKING:
    from spanloop import contacts, envs, flexible, joints, papers, studies, zoo
    from spanloop.algorithms.closed.model_operators import operators
    from spanloop.dynamics import Dynamics
    from spanloop.errors import SpanloopError, SpanloopWarning
    from spanloop.exports.export import export
    from spanloop.kernels.compile import compile
    from spanloop.kernels.on_scalars import on_scalars
    from spanloop.loops.closed_topology import ClosedTopology
    from spanloop.math.scalar import where
    from spanloop.model import Model
    from spanloop.model.builder import Builder
    from spanloop.model.files import load
    from spanloop.model.files.dh.table import from_dh
    from spanloop.model.orders.mujoco import MujocoOrder
    from spanloop.model.orders.pinocchio import PinocchioOrder
    from spanloop.reach import target_kinds as targets
    from spanloop.simulation import control, events, forces
    from spanloop.simulation.gradients.gradient import gradient
    from spanloop.simulation.gradients.sensitivities import sensitivities
    from spanloop.simulation.integrators import Integrator
    from spanloop.simulation.simulate import simulate
    from spanloop.simulation.system import Closures
    from spanloop.studies.study import Study
    from spanloop.trajectory.files.storage import load_run
    from spanloop.trajectory.trajectory import Trajectory


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(importlib.import_module(_PUBLIC[name]), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    raise AttributeError(f"module 'spanloop' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
