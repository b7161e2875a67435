"""Events of a run: loops that attach and release, one-sided constraints, grasps, bodies that come and go, ends.

Each is given to sl.simulate(..., events=[...]). A condition is a function (t, q, v) or (t, q, v, f), compiled into the
run; its event happens where it is no longer positive. f["loop"] is [torque; force] (6) of a loop on its body b, at its
child frame in the axes of that frame, or the torque of a coupling.
"""

from spanloop.simulation.events.kinds import Appear, Attach, End, Grasp, OneSided, Release, Vanish

__all__ = ["Appear", "Attach", "End", "Grasp", "OneSided", "Release", "Vanish"]


def __dir__() -> list[str]:
    return sorted(__all__)
