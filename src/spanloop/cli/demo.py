"""`spanloop demo`: simulate three PUMA arms that carry one disc; report speed, audit and forces, and write a page.

The arms also run in the page itself, under the controller of the run, and can be grabbed there.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spanloop import zoo
from spanloop.cli.terminal import ProgressBar, colored, number, print_json
from spanloop.compiler.runtime import machine
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError
from spanloop.simulation.control.periodic_motion import lead
from spanloop.simulation.simulate import simulate
from spanloop.trajectory import Trajectory
from spanloop.trajectory.audit.audit import Audit
from spanloop.view.page import write

EXAMPLES = (
    "spanloop demo",
    "spanloop demo --seconds 12 --output carry.html --no-browser",
    "spanloop demo --json",
)
PAGE = "spanloop-demo.html"
STEP, SAMPLE = 1e-3, 2e-3  # s
PERIOD = 6.0  # s
SHORTEST, LONGEST = 0.1, 120.0  # s

PYTHON = """import spanloop as sl
from spanloop.simulation.control.periodic_motion import lead

robot = sl.Dynamics(sl.zoo.three_pumas())
led = lead(robot, sl.zoo.three_pumas_start(), sl.zoo.three_pumas_path, period=6.0)
run = sl.simulate(robot, led.q, led.v, duration={seconds:g}, sample=0.002, controller=led.control)
print(run.audit())
run.page({page!r}, live=True)
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--seconds", metavar="S", type=float, default=PERIOD, help="length of the motion (6)")
    add("--output", metavar="FILE", default=PAGE, help=f"file of the page ({PAGE}); in a folder it is named {PAGE}")
    browser = parser.add_mutually_exclusive_group()
    browser.add_argument(
        "--open", action="store_true", default=None, help="open the page in the browser (default if there is a screen)"
    )
    browser.add_argument("--no-browser", action="store_false", dest="open", help="do not open it")
    add("--json", action="store_true", help="print JSON; do not open the browser")


def run(chosen: argparse.Namespace) -> int:
    if not SHORTEST <= chosen.seconds <= LONGEST:
        raise InputError(f"--seconds is {chosen.seconds:g}; must be from {SHORTEST:g} to {LONGEST:g}")
    path = _path(Path(chosen.output))
    with ProgressBar(6) as progress:
        made = carry_disc(chosen.seconds, progress)
        progress.begin("writing the page")
        write(made.motion, path, title="Three PUMA arms carry one disc", live=True)
    if chosen.json:
        print_json({**made.described(), "page": str(path)})
    else:
        print(made)
        print(
            f"page        {path} ({path.stat().st_size / 1e6:.1f} MB): the run with plots and audit; needs no network"
        )
        print("live        the arms also run in the page: grab the disc or an arm, pull, and let go")
        print(f"\n{colored('The same in Python', 'strong')}\n")
        print(PYTHON.format(seconds=chosen.seconds, page=str(path)))
        print("Next: spanloop gallery pages, spanloop zoo list, spanloop simulate --help, examples/ and README.md")
        if _opens_browser(chosen.open):
            import webbrowser

            webbrowser.open(path.resolve().as_uri())
    return 0 if made.audit.well else 1


@dataclass(frozen=True)
class Demo:
    """The motion, its audit, times and forces."""

    motion: Trajectory
    audit: Audit
    prepared: float  # s: everything before the motion itself, compiling included
    compiled: int  # pieces of machine code that LLVM made
    compiling: float  # s of that
    loaded: int  # pieces of machine code in all
    took: float  # s, of simulate with everything compiled
    grasps: dict[str, np.ndarray]  # (n,) [N]

    def described(self) -> dict:
        return {
            "model": self.motion.model.name,
            "seconds": self.motion.duration,
            "prepared_seconds": self.prepared,
            "compiled": self.compiled,
            "compiling_seconds": self.compiling,
            "from_cache": self.loaded - self.compiled,
            "simulation_seconds": self.took,
            "times_real_time": self.motion.duration / self.took,
            "closure_residual": number(float(self.motion.closure_residual.max())),
            "grasp_forces": {name: [float(f.min()), float(f.max())] for name, f in self.grasps.items()},
            "well": self.audit.well,
            "audit": [{"name": f.name, "verdict": f.verdict, "sentence": f.sentence} for f in self.audit.findings],
        }

    def __str__(self) -> str:
        model, motion = self.motion.model, self.motion
        rows = motion.closure_error.shape[-1]
        steps = round(motion.duration / STEP)
        weakest, strongest = (f(g for x in self.grasps.values() for g in (x.min(), x.max())) for f in (min, max))
        weight = 9.81 * model.body("object").inertia.mass
        kept = self.loaded - self.compiled
        made = f"{self.compiled} compiled by LLVM in {self.compiling:.1f} s" if self.compiled else "none compiled"
        energy = self.audit["energy"]
        verdict = str(self.audit).splitlines()[-1]
        lines = {
            "mechanism": f"{model.name}: {model.n_bodies} bodies, {model.nv} DoF, {model.mass:.0f} kg, "
            f"{len(model.loops)} loops of {rows} constraints",
            "prepared": f"in {self.prepared:.1f} s; kernels: {made}, {kept} from the cache",
            "speed": f"{motion.duration:g} s of motion in {self.took:.3f} s, {motion.duration / self.took:.0f} times "
            f"real time: {steps} steps of {1e3 * STEP:g} ms, {1e6 * self.took / steps:.1f} µs each",
            "energy": f"{colored(energy.verdict, energy.verdict)}: {energy.sentence}",
            "loops": f"closed to {motion.closure_residual.max():.1e} m or rad at every sample",
            "grasps": f"{weakest:.0f} to {strongest:.0f} N at each, squeezing included; the disc weighs {weight:.0f} N",
            "audit": colored(verdict, "well" if self.audit.well else "not well"),
        }
        head = colored("Three PUMA arms carry one disc along a figure of eight.", "strong")
        return "\n".join([head, "", *(f"{name:<10}  {text}" for name, text in lines.items())])


def carry_disc(seconds: float, progress: ProgressBar) -> Demo:
    """Plan, compile, simulate and audit the motion."""
    before, began = machine.work.made, time.perf_counter()
    llvm, pieces = machine.work.seconds, machine.work.loaded
    progress.begin("planning the motion")
    robot = Dynamics(zoo.three_pumas())
    led = lead(robot, zoo.three_pumas_start(), zoo.three_pumas_path, PERIOD)

    def motion(duration: float) -> Trajectory:
        return simulate(robot, led.q, led.v, duration=duration, step=STEP, sample=SAMPLE, controller=led.control)

    progress.begin("compiling the simulation")
    motion(2 * SAMPLE)
    prepared = time.perf_counter() - began
    progress.begin("simulating")
    found, took = motion(seconds), float("inf")
    for _ in range(2):  # the faster of two: others may be using this machine
        again = time.perf_counter()
        found = motion(seconds)
        took = min(took, time.perf_counter() - again)
    progress.begin("auditing")
    audit = found.audit()
    progress.begin("computing the forces")
    few = found[:: max(1, len(found) // 600)]
    forces = few.reactions()
    grasps = {x.name: np.linalg.norm(forces[x.name][:, 3:], axis=-1) for x in robot.model.loops}
    work = machine.work
    return Demo(found, audit, prepared, work.made - before, work.seconds - llvm, work.loaded - pieces, took, grasps)


def _path(output: Path) -> Path:
    """The page's file, in an existing folder."""
    if output.is_dir():
        return output / PAGE
    if output.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--output {output}: expected an existing folder, or a file that ends in .html")
    if not output.parent.is_dir():
        raise InputError(f"--output {output}: there is no folder {str(output.parent)!r}; make it first")
    return output


def _opens_browser(asked: bool | None) -> bool:
    """Whether to open the browser; by default on a terminal of a machine with a screen."""
    if asked is not None:
        return asked
    screen = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return bool(screen) and sys.stdout.isatty() and "SSH_CONNECTION" not in os.environ
