"""Events of a run: loops that attach and release, one-sided constraints, grasps, bodies that come and go, ends.

Each is given to sl.simulate(..., events=[...]). A condition is a function (t, q, v) or (t, q, v, f), compiled into the
run; its event happens where it is no longer positive. f["loop"] is [torque; force] (6) of a loop on its body b, at its
child frame in the axes of that frame, or the torque of a coupling.
"""

from __future__ import annotations

from pathlib import Path

from spanloop.model import Model
from spanloop.simulation.events.kinds import Appear, Attach, End, Event, Grasp, OneSided, Release, Stop, Vanish

__all__ = ["Appear", "Attach", "End", "Grasp", "OneSided", "Release", "Stop", "Vanish", "from_file"]


def from_file(path: str | Path, model: Model) -> list[Event]:
    """The events of a run's TOML file: sl.simulate(model, duration=3.0, events=sl.events.from_file("run.toml", model)).

    Raises:
        FileError: the file cannot be read, or an event in it does not fit the model.
    """
    from spanloop.simulation.run_files import read_run

    return read_run(path).events(model)


def __dir__() -> list[str]:
    return sorted(__all__)
