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

# public name -> module that holds it; each is imported when first asked for
_PUBLIC = {
    "Builder": "spanloop.model.build",
    "Dynamics": "spanloop.dynamics",
    "Model": "spanloop.model",
    "PinocchioOrder": "spanloop.model.pinocchio",
    "SpanloopError": "spanloop.errors",
    "SpanloopWarning": "spanloop.errors",
    "Trajectory": "spanloop.results.trajectory",
    "compile": "spanloop.compiling",
    "from_dh": "spanloop.model.dh",
    "load": "spanloop.model.load",
    "load_run": "spanloop.results.files.storing",
    "operators": "spanloop.sweeps.operators",
    "simulate": "spanloop.simulation.simulate",
    "where": "spanloop.math.scalar",
}
_ROOMS = ("errors", "joints", "math", "model", "zoo")

__all__ = [
    "Builder",
    "Dynamics",
    "Model",
    "PinocchioOrder",
    "SpanloopError",
    "SpanloopWarning",
    "Trajectory",
    "compile",
    "from_dh",
    "joints",
    "load",
    "load_run",
    "operators",
    "simulate",
    "where",
    "zoo",
]

if TYPE_CHECKING:
    from spanloop import joints, zoo
    from spanloop.compiling import compile
    from spanloop.dynamics import Dynamics
    from spanloop.errors import SpanloopError, SpanloopWarning
    from spanloop.math.scalar import where
    from spanloop.model import Model
    from spanloop.model.build import Builder
    from spanloop.model.dh import from_dh
    from spanloop.model.load import load
    from spanloop.model.pinocchio import PinocchioOrder
    from spanloop.results.files.storing import load_run
    from spanloop.results.trajectory import Trajectory
    from spanloop.simulation.simulate import simulate
    from spanloop.sweeps.operators import operators


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(importlib.import_module(_PUBLIC[name]), name)
        globals()[name] = value
        return value
    if name in _ROOMS:
        return importlib.import_module(f"spanloop.{name}")
    raise AttributeError(f"module 'spanloop' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC, *_ROOMS])
