"""`spanloop demo`: a quadruped thrown on the Moon; what the flight kept, what it cost, and a picture."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spanloop import zoo
from spanloop.compiler.runtime.kernel import Kernel
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError
from spanloop.model.save import atomic
from spanloop.simulation.free_flight import Flight, fly
from spanloop.view.flight import flight_picture

PICTURE = "spanloop-demo.svg"
STEP = 1e-3  # s
SHORTEST, LONGEST = 0.01, 20.0  # s
MOON = 1.62  # m/s²
KERNELS = ("forward_dynamics", "integrate", "energy", "momentum", "center_of_mass")

# Largest drift relative to the energy or momentum at stake in a flight of up to 2 s; a longer one may have
# more in proportion. The step is of fourth order: measured 7e-10 at 1 ms, and 16 times that at 2 ms. A step
# of second order or a wrong term in a kernel is beyond 1e-6.
BOUND = 1e-8


def demo(folder: str, duration: float) -> int:
    """Fly, print, draw; 1 if the drift is beyond its bound."""
    if not SHORTEST <= duration <= LONGEST:
        raise InputError(f"--duration is {duration:g} s; must be from {SHORTEST:g} to {LONGEST:g}")
    path = _picture_path(folder)
    model = zoo.quadruped().without_losses().with_gravity((0.0, 0.0, -MOON))
    size = f"{model.n_bodies} bodies, nq = {model.nq}, nv = {model.nv}, {model.mass:g} kg"
    print(f"robot      {model.name}: {size}")
    robot = Dynamics(model)
    print(f"compile    {_compile(robot)}")
    flight = fly(robot, *thrown(robot, duration), duration, STEP)
    print(f"flight     {duration:g} s, {_steps(flight)}, no torques")
    drifts = Drifts.of(flight)
    print(drifts)
    print(f"speed      {1e6 * seconds_per_call(robot, flight):.2f} µs per forward_dynamics call")
    atomic.write(path, _picture(robot, flight, drifts).encode())
    print(f"picture    {path}")
    return drifts.verdict(BOUND * max(1.0, duration / 2.0))


def thrown(robot: Dynamics, duration: float) -> tuple[np.ndarray, np.ndarray]:
    """Where the flight starts: legs anyhow, a tumble, and a throw that comes down to the same height."""
    model, rng = robot.model, np.random.default_rng(11)
    q, v = model.neutral(), np.zeros(model.nv)
    q[7:] = rng.uniform(-0.5, 0.5, model.nq - 7)
    v[:3] = (1.0, 2.8, 0.7)  # rad/s
    v[6:] = rng.uniform(-2.0, 2.0, model.nv - 6)
    wanted = np.array((2.4, 0.9, 0.5 * MOON * duration))  # m/s, of the centre of mass
    v[3:6] = wanted - robot.momentum(q, v)[3:] / model.mass  # the trunk's axes are the world's here
    return q, v


@dataclass(frozen=True)
class Drifts:
    """Largest errors of a flight, absolute and relative: (J, 1), (kg m²/s, 1), (kg m/s, 1)."""

    energy: tuple[float, float]
    angular: tuple[float, float]
    linear: tuple[float, float]

    @staticmethod
    def of(flight: Flight) -> Drifts:
        angular, linear = (np.linalg.norm(flight.momentum[0, part]) for part in (slice(0, 3), slice(3, 6)))
        return Drifts(
            (flight.energy_drift, flight.energy_drift / flight.tumbling_energy),
            (flight.angular_drift, flight.angular_drift / float(angular)),
            (flight.linear_drift, flight.linear_drift / float(linear)),
        )

    def __str__(self) -> str:
        return (
            f"drift      energy {self.energy[0]:.1e} J ({self.energy[1]:.1e} of the tumbling energy)\n"
            f"           angular momentum {self.angular[0]:.1e} kg m²/s ({self.angular[1]:.1e})\n"
            f"           linear momentum, beside m g t, {self.linear[0]:.1e} kg m/s ({self.linear[1]:.1e})"
        )

    def verdict(self, bound: float) -> int:
        """Print whether all is within the bound; the exit code."""
        worst = max(self.energy[1], self.angular[1], self.linear[1])
        if worst <= bound:
            print(f"verdict    every relative drift is within its bound of {bound:.0e}")
            return 0
        found = f"the relative drift is {worst:.1e}, beyond its bound of {bound:.0e}"
        print(f"verdict    {found}: do not trust kernels on this machine")
        return 1


def _picture_path(folder: str) -> Path:
    where = Path(folder)
    if where.exists() and not where.is_dir():
        raise InputError(f"--output {folder}: is a file; expected a folder")
    where.mkdir(parents=True, exist_ok=True)
    return where / PICTURE


def _compile(robot: Dynamics) -> str:
    """Make the kernels; how long that took and where they came from."""
    began = time.perf_counter()
    kernels: list[Kernel] = [robot.kernel(name) for name in KERNELS]
    took = time.perf_counter() - began
    fresh = sum(not kernel.from_cache for kernel in kernels)  # one from the disk has not been traced
    source = f"{fresh} compiled" + (f", {len(kernels) - fresh} from the cache" if fresh < len(kernels) else "")
    return f"{took:.3f} s for {len(kernels)} kernels ({source if fresh else 'all from the cache'})"


def seconds_per_call(robot: Dynamics, flight: Flight) -> float:
    """Time of one forward_dynamics call from Python, with `out` given: the median of nine rounds."""
    q, v = flight.q[0].copy(), flight.v[0].copy()
    tau, out = np.zeros_like(v), np.empty_like(v)
    call, rounds, calls = robot.forward_dynamics, [], 2000
    for _ in range(9):
        began = time.perf_counter()
        for _ in range(calls):
            call(q, v, tau, out=out)
        rounds.append((time.perf_counter() - began) / calls)
    return float(np.median(rounds))


def _steps(flight: Flight) -> str:
    return f"{len(flight.times) - 1} steps of {1e3 * flight.times[1]:.4g} ms"


def _picture(robot: Dynamics, flight: Flight, drifts: Drifts) -> str:
    model = robot.model
    subtitle = (
        f"{model.n_bodies} bodies, {model.nv} freedoms, no torques, {MOON:g} m/s² as on the Moon; "
        f"{_steps(flight)} by a compiled kernel"
    )
    remark = f"at most {drifts.energy[0]:.1e} J, {drifts.energy[1]:.1e} of the tumbling energy"
    center = np.array([robot.center_of_mass(q) for q in flight.q])
    return flight_picture(model, flight, center, f"Free flight of a {model.name}", subtitle, remark)
