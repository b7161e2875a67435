"""Loading files, in one process: `python benchmarks/loading.py`. Medians (quartiles) of this run in milliseconds of
processor time; "first" by the clock.

Talos, panda and Cassie are from the wheel example-robot-data; the chain has 10 000 links. Pinocchio's time is for its
model alone (no meshes); ours checks the file, judges inertias and looks for every mesh. "first" is the first load of a
fresh process after `import numpy, spanloop`: it imports the readers. Pinocchio 4.1's wheel ends with a segmentation
fault on the chain, so it is not asked.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings

import pinocchio as pin
from timing import calls, compare

import spanloop as sl

ROBOTS = os.path.join(os.path.dirname(pin.__file__), "../../../../share/example-robot-data/robots")
FILES = {
    "panda.urdf": "panda_description/urdf/panda.urdf",
    "talos_reduced.urdf": "talos_data/robots/talos_reduced.urdf",
    "talos_full_v2.urdf": "talos_data/robots/talos_full_v2.urdf",
    "cassie_v2.sdf": "cassie_description/robots/cassie_v2.sdf",
}
FIRST = """
import sys, time, warnings
warnings.simplefilter("ignore")
import numpy, spanloop
start = time.perf_counter()
spanloop.load(sys.argv[1])
print(time.perf_counter() - start)
"""


def chain(n: int) -> str:
    """A URDF of n links on hinges."""
    inertial = '<mass value="1"/><inertia ixx="2" ixy="0" ixz="0" iyy="2" iyz="0" izz="2"/>'
    links = [f'<link name="l{i}"><inertial>{inertial}</inertial></link>' for i in range(n)]
    inside = (
        '<origin xyz="0 0 1" rpy="0 0.5 0"/><axis xyz="0 1 0"/><limit lower="-1" upper="1" velocity="1" effort="1"/>'
    )
    joints = [
        f'<joint name="j{i}" type="revolute"><parent link="l{i}"/><child link="l{i + 1}"/>{inside}</joint>'
        for i in range(n - 1)
    ]
    return "\n".join(['<robot name="chain">', *links, *joints, "</robot>"])


def first(path: str, samples: int = 7) -> str:
    """Milliseconds of the first load in a fresh process."""
    times = sorted(
        float(subprocess.run([sys.executable, "-c", FIRST, path], capture_output=True, text=True, check=True).stdout)
        for _ in range(samples)
    )
    return f"{1e3 * times[samples // 2]:.1f} ({1e3 * times[samples // 4]:.1f}-{1e3 * times[-1 - samples // 4]:.1f})"


def main() -> None:
    warnings.simplefilter("ignore", sl.SpanloopWarning)
    print(f"{'file':22}{'spanloop [ms]':>24}{'first [ms]':>24}{'Pinocchio [ms]':>24}")
    with tempfile.TemporaryDirectory() as folder:
        long = os.path.join(folder, "chain10000.urdf")
        with open(long, "w") as file:
            file.write(chain(10_000))
        for name, path in {**{k: os.path.join(ROBOTS, v) for k, v in FILES.items()}, "chain10000.urdf": long}.items():
            variants = {"ours": calls("load(path)", load=sl.load, path=path)}
            if path.endswith(".urdf") and path != long:
                variants["theirs"] = calls("build(path)", build=pin.buildModelFromUrdf, path=path)
            found = compare(variants, samples=5 if path == long else 31)
            told = {k: f"{s.median * 1e3:.1f} ({s.low * 1e3:.1f}-{s.high * 1e3:.1f})" for k, s in found.items()}
            print(f"{name:22}{told['ours']:>24}{first(path):>24}{told.get('theirs', '-'):>24}", flush=True)


if __name__ == "__main__":
    main()
