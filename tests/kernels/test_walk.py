"""The walk of a first call: how many files, frames and rooms lie between the call and an algorithm's step.

Each walk runs in a process of its own without a cache, so that everything is made for the first time. Modules are
imported before; only functions that run during the call count.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise

import pytest

WALK = """
import json, os, sys
from pathlib import Path
import numpy as np
import spanloop as sl

HOME = str(Path(sl.__file__).parent) + os.sep
files, stack = set(), []


def of_package(frame):
    return frame is not None and frame.f_code.co_filename.startswith(HOME)


def importing(frame):
    while frame is not None:
        if of_package(frame) and frame.f_code.co_name == "<module>":
            return True
        frame = frame.f_back
    return False


def visit(frame, event, _):
    if event != "call" or not of_package(frame) or importing(frame):
        return
    name = frame.f_code.co_filename[len(HOME):]
    files.add(name)
    if not stack and name.startswith("algorithms/") and frame.f_back.f_code.co_filename.endswith("sweeps/program.py"):
        while frame is not None:
            if of_package(frame):
                stack.insert(0, [frame.f_code.co_filename[len(HOME):], frame.f_code.co_name])
            frame = frame.f_back

{prepare}
sys.setprofile(visit)
{call}
sys.setprofile(None)
print(json.dumps([sorted(files), stack]))
"""


def walk(prepare: str, call: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Files visited by the call, and the stack at the first step of an algorithm: (file, function), outermost first."""
    code = WALK.replace("{prepare}", prepare).replace("{call}", call)
    environment = {**os.environ, "SPANLOOP_CACHE": "off"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    files, stack = json.loads(done.stdout)
    return files, [tuple(x) for x in stack]


TREE = "robot = sl.Dynamics(sl.zoo.puma()); x = np.zeros(6)"
FOUR_BAR = "sl.simulate; model = sl.zoo.four_bar(); q = sl.zoo.four_bar_start()"


def test_a_first_forward_dynamics_of_a_tree_is_a_short_walk():
    files, stack = walk(TREE, "robot.forward_dynamics(x, x, x)")
    rooms = [file.split("/")[0] for file, _ in stack]
    assert stack[0] == ("dynamics/dynamics.py", "forward_dynamics")
    assert len(stack) <= 12, stack
    assert sum(a != b for a, b in pairwise(rooms)) <= 4, rooms
    assert len(files) <= 30, files


def test_no_stage_calls_an_earlier_one_back():
    """Rooms follow one another in the order of the stages; none is entered twice."""
    _, stack = walk(TREE, "robot.forward_dynamics(x, x, x)")
    rooms = list(dict.fromkeys(file.split("/")[0] for file, _ in stack))
    assert rooms == ["dynamics", "kernels", "sweeps", "algorithms"]
    assert [x for x in stack if "compiler" in x[0]] == []


def test_a_second_call_visits_no_file():
    files, _ = walk(f"{TREE}; robot.forward_dynamics(x, x, x)", "robot.forward_dynamics(x, x, x)")
    assert files == []


@pytest.mark.slow
def test_a_first_simulation_of_a_four_bar_is_a_walk_of_bounded_length():  # with its checks, and how it was made
    files, _ = walk(FOUR_BAR, "sl.simulate(model, q, duration=0.1)")
    assert len(files) <= 70, files
