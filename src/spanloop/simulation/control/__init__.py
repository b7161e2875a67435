"""Controllers that are compiled into a simulation, and the paths they follow: sl.simulate(..., controller=...)."""

from spanloop.simulation.control.grasp_squeeze import squeeze
from spanloop.simulation.control.joint_space import computed_torque, gravity, pd
from spanloop.simulation.control.motion_paths import Path, cycloidal, given, hold, path, quintic, sine, turning
from spanloop.simulation.control.operational import operational_space
from spanloop.simulation.controllers import Controller, callback, together

__all__ = [
    "Controller",
    "Path",
    "callback",
    "computed_torque",
    "cycloidal",
    "given",
    "gravity",
    "hold",
    "operational_space",
    "path",
    "pd",
    "quintic",
    "sine",
    "squeeze",
    "together",
    "turning",
]


def __dir__() -> list[str]:
    return sorted(__all__)
