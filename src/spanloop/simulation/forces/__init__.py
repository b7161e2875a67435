"""Forces that are compiled into a simulation: springs, dampers, stops, friction, wrenches, drag, motors in loops.

Each function gives a function (t, q, v) -> {"body": [torque; force]} for sl.simulate(..., forces=...), in plain
arithmetic on any scalar; what acts at a joint has the key ("joint", name). Between two frames force and reaction act
along one line, so that what a spring takes from the motion it gives back; dampers, stops and friction only take.
"""

from spanloop.simulation.forces.at_frames import damper, drag, spring, together, wrench
from spanloop.simulation.forces.at_joints import friction, stops
from spanloop.simulation.forces.in_loops import along_loops

__all__ = ["along_loops", "damper", "drag", "friction", "spring", "stops", "together", "wrench"]


def __dir__() -> list[str]:
    return sorted(__all__)
