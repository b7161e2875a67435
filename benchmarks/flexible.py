"""A hinged beam with four bending modes, beside Exudyn's reduced floating frame: `python benchmarks/flexible.py`.

Exudyn takes part if it is installed (`pip install exudyn`). It gets the same body as ObjectFFRFreducedOrder: our mass
points as its nodes, our four modes as its basis, our modal stiffness; its equations are computed in C++. Its bodies
have a linear displacement field, ours the second-order field besides, so motions are compared twice: with our
second-order field set to zero, where both must agree, and as they are. There is no gravity: with it, both differ by
terms of third order in its strength.

explicit: RK4 on both sides. Exudyn's explicit solvers ignore constraints, so a body of 1e8 kg holds the hinge there.
implicit: ours, and its implicit trapezoidal rule of index 2 with five coordinate constraints, tolerances and modified
Newton as it sets them (the Jacobian is computed once), dense linear solver. No sensors, no files, one thread.

Times are medians (quartiles) of processor time of one thread, variants interleaved; compile: seconds from sl.compile
to the first result in a new process with an empty cache, and with the code in the cache.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from timing import calls, compare

import spanloop as sl
from spanloop.compiler.runtime.rollout import Steps
from spanloop.flexible.beam import _finite_elements
from spanloop.simulation.controllers import applied_forces
from spanloop.simulation.events.endings import events_of
from spanloop.simulation.integrators.integrator import rollout
from spanloop.simulation.integrators.step_schedule import StateLayout
from spanloop.simulation.system import System

BATCH, STEPS = 4096, 1000
H, T, SAMPLE = 1e-4, 0.1, 0.01  # s; RK4 is stable to 6e-4 s
BENT, SPIN = 1e-3, 1.0  # m of the first mode, rad/s
BEAM = sl.flexible.beam(
    1.0, E=7e10, density=2700.0, area=1e-4, I=1e-8 / 12.0, modes={"y": 4}, basis="cantilever"
)  # 10 mm square, aluminium
START = """
import time, warnings
warnings.simplefilter("ignore")
import numpy as np, spanloop as sl
import spanloop.kernels, spanloop.compiler.runtime.kernel
beam = sl.flexible.beam(1.0, E=7e10, density=2700.0, area=1e-4, I=1e-8 / 12.0, modes={"y": 4}, basis="cantilever")
b = sl.Builder("hinged", gravity=(0.0, 0.0, 0.0)).body("beam", flexible=beam).revolute("hinge", "world", "beam", "z")
model = b.build()
start = time.perf_counter()
sl.compile(model, "forward_dynamics")(np.zeros(5), np.zeros(5), np.zeros(5))
print(time.perf_counter() - start)
"""


def hinged() -> sl.Model:
    b = sl.Builder("hinged", gravity=(0.0, 0.0, 0.0)).body("beam", flexible=BEAM)
    return b.revolute("hinge", "world", "beam", "z").build()


def with_linear_field(model: sl.Model) -> sl.Model:
    """The model without the second-order field, as Exudyn has it."""

    def straightened(joint):
        if not joint.kind.bends:
            return joint
        mass = joint.kind.particles
        zero = tuple(tuple(tuple((0.0, 0.0, 0.0) for _ in row) for row in table) for table in mass.bent)
        return replace(joint, kind=replace(joint.kind, particles=replace(mass, bent=zero)))

    return replace(model, joints=tuple(map(straightened, model.joints)))


def initial_state() -> tuple[np.ndarray, np.ndarray]:
    q, v = np.zeros(5), np.zeros(5)
    q[1], v[0] = BENT, SPIN
    return q, v


def our_steps(model: sl.Model, integrator: str, h: float) -> Callable[[], None]:
    """STEPS compiled steps of one run."""
    system, seen = System(model, applied_forces(model, None, model.nv)), events_of(model, False, None)
    layout, loop = StateLayout.of(system, seen, "float64"), rollout(system, seen, integrator)
    start = np.zeros((1, layout.width))
    start[:, layout.places["q"]], start[:, layout.places["v"]] = initial_state()
    constants, controls = np.zeros((1, 1)), np.zeros((1, 1, model.nv))
    ended = np.zeros(1, np.uint8)

    def go() -> None:
        state = start.copy()
        loop.run(state, constants, controls, ended, Steps(0.0, h, 0, STEPS), None)
        assert not ended[0]
        assert np.isfinite(state).all()

    go()
    return go


class Peer:
    """The same body in Exudyn."""

    def __init__(self, explicit: bool, sensors: bool):
        import exudyn as exu
        from exudyn import utilities as parts

        self.exu, self.parts, self.explicit = exu, parts, explicit
        self.container = exu.SystemContainer()
        self.system = self.container.AddSystem()
        body = self.flexible_body().AddObjectFFRFreducedOrder(self.system, initialAngularVelocity=[0.0, 0.0, SPIN])
        self.frame, self.modes = body["nRigidBody"], body["nGenericODE2"]
        self.system.SetNodeParameter(self.modes, "initialCoordinates", [BENT, 0.0, 0.0, 0.0])
        self.hold()
        what = exu.OutputVariableType.Coordinates
        self.sensors = [
            self.system.AddSensor(parts.SensorNode(nodeNumber=n, storeInternal=True, outputVariableType=what))
            for n in ((self.frame, self.modes) if sensors else ())
        ]
        self.system.Assemble()

    def flexible_body(self):
        """Nodes at our Gauss points with their masses, our modes and modal stiffness."""
        from exudyn import FEM
        from scipy.sparse import csr_matrix, diags

        ours = _finite_elements(BEAM, 0)
        rod, n = ours.rod, len(ours.rod.points)
        mass = np.repeat(rod.properties["mass"] * rod.weights, 3)
        shapes = ours.fields.u.reshape(4, -1).T
        weighed = mass[:, None] * shapes
        fem = FEM.FEMinterface()
        fem.nodes = {"Position": np.stack([rod.points, np.zeros(n), np.zeros(n)], axis=1)}
        fem.massMatrix = csr_matrix(diags(mass))
        modal = (shapes * weighed).sum(axis=0)
        fem.stiffnessMatrix = csr_matrix((weighed * (ours.stiffness / modal**2)) @ weighed.T)  # φᵀ K φ is ours
        fem.modeBasis = {"matrix": shapes, "type": "NormalModes"}
        found = FEM.ObjectFFRFreducedOrderInterface(fem, rigidBodyNodeType=self.exu.NodeType.RotationRxyz)
        found.inertiaLocal = np.array(found.inertiaLocal)
        found.inertiaLocal[0, 0] += (rod.properties["polar"] * rod.weights).sum()  # points of an axis have none
        return found

    def hold(self) -> None:
        """A hinge about z: five constraints, or a heavy body for solvers that ignore constraints."""
        parts, system = self.parts, self.system
        if self.explicit:
            heavy = parts.ObjectRigidBody(nodeNumber=self.frame, mass=1e8, inertia=[1e8, 1e8, 0.0, 0.0, 0.0, 0.0])
            system.AddObject(heavy)
            return
        world = system.AddNode(parts.NodePointGround())
        ground = system.AddMarker(parts.MarkerNodeCoordinate(nodeNumber=world, coordinate=0))
        for k in range(5):
            own = system.AddMarker(parts.MarkerNodeCoordinate(nodeNumber=self.frame, coordinate=k))
            system.AddObject(parts.CoordinateConstraint(markerNumbers=[ground, own]))

    def solve(self, steps: int, h: float) -> None:
        exu = self.exu
        settings, kind = exu.SimulationSettings(), exu.DynamicSolverType
        settings.timeIntegration.numberOfSteps, settings.timeIntegration.endTime = steps, steps * h
        settings.timeIntegration.verboseMode = 0
        settings.timeIntegration.explicit.computeEndOfStepAccelerations = False
        settings.solution.file.write = False
        settings.solution.sensors.writePeriod = SAMPLE
        settings.parallel.numberOfThreads = 1
        self.system.SolveDynamic(settings, solverType=kind.RK44 if self.explicit else kind.TrapezoidalIndex2)

    def motion(self, h: float) -> np.ndarray:
        """Hinge angle and modal coordinates (samples, 5)."""
        self.solve(round(T / h), h)
        frame, modes = (self.system.GetSensorStoredData(s) for s in self.sensors)
        return np.column_stack([frame[:, 6], modes[:, 1:]])


def our_motion(model: sl.Model, h: float, integrator: str = "rk4") -> np.ndarray:
    return sl.simulate(model, *initial_state(), duration=T, step=h, sample=SAMPLE, integrator=integrator).q


def compare_motions(model: sl.Model) -> None:
    """Both must compute the same motion before their times mean anything."""
    fine = our_motion(with_linear_field(model), H / 10)
    full = our_motion(model, H / 10)
    theirs = Peer(explicit=True, sensors=True).motion(H / 10)
    turn, bent = np.abs(full).max(axis=0)[:2]
    print(f"motion of {T} s: hinge turns by {turn:.3f} rad, first mode {bent:.1e} m")
    print(f"  Exudyn, RK4 of {H / 10:.0e} s, from ours with a linear field  {np.abs(theirs - fine).max():.0e} (rad, m)")
    print(f"  the same from ours with the second-order field       {np.abs(theirs - full).max():.0e}")
    assert np.abs(theirs - fine).max() < 1e-9
    for name, error in (
        *((f"spanloop {name}", our_motion(model, H, name) - full) for name in ("rk4", "implicit", "midpoint")),
        *((f"Exudyn {name}", Peer(name == "RK4", sensors=True).motion(H) - fine) for name in ("RK4", "trapezoidal")),
    ):
        print(f"  {name:22} error at steps of {H:.0e} s{np.abs(error).max():10.0e}")


def starts() -> tuple[list[float], list[float]]:
    """Seconds until the first forward dynamics in a new process: empty cache, then cached."""
    fresh, cached = [], []
    for _ in range(5):
        with tempfile.TemporaryDirectory() as folder:
            for seen in (fresh, cached):
                environment = {**os.environ, "SPANLOOP_CACHE": folder}
                done = subprocess.run(
                    [sys.executable, "-c", START], env=environment, capture_output=True, text=True, check=True
                )
                seen.append(float(done.stdout))
    return fresh, cached


def print_calls(model: sl.Model) -> None:
    robot, rng = sl.Dynamics(model), np.random.default_rng(1)
    q, v = initial_state()
    Q, V = (1e-3 * rng.normal(size=(BATCH, 5)) for _ in range(2))
    names = {"robot": robot, "q": q, "v": v, "x": np.zeros(5), "out": np.zeros(5)}
    names |= {"f": sl.compile(model, "forward_dynamics").call}
    rows = {"robot": robot, "Q": Q, "V": V, "X": np.zeros_like(Q), "A": np.zeros_like(Q)}
    variants = {
        "robot.forward_dynamics(q, v, tau, out=)": calls("robot.forward_dynamics(q, v, x, out=out)", **names),
        "kernel.call(q, v, tau, out=)": calls("f(q, v, x, out=out)", **names),
        f"a state in a batch of {BATCH}": calls("robot.forward_dynamics(Q, V, X, out=A)", **rows),
    }
    work = dict.fromkeys(variants, 1) | {f"a state in a batch of {BATCH}": BATCH}
    n = sl.compile(model, "forward_dynamics").operations
    print(f"\nforward dynamics, {n.multiplications}/{n.additions}/{n.divisions} mul/add/div; ns")
    for name, t in compare(variants, work).items():
        print(f"  {name:44}{t.text():>20}")
    fresh, cached = starts()
    print(f"  compile [s]{np.median(fresh):37.2f} ({min(fresh):.2f}-{max(fresh):.2f})")
    print(f"  the same from the cache [ms]{1e3 * np.median(cached):20.1f}")


def print_steps(model: sl.Model, peer: bool) -> None:
    variants = {f"spanloop {name}": our_steps(model, name, H) for name in ("rk4", "implicit", "midpoint")}
    if peer:
        for name, explicit in (("Exudyn RK4", True), ("Exudyn implicit trapezoidal", False)):
            variants[name] = functools.partial(Peer(explicit, sensors=False).solve, STEPS, H)
    times = compare({name: calls("go()", go=go) for name, go in variants.items()}, STEPS)
    print(f"\none run, steps of {H:.0e} s; ns a step")
    for name, t in times.items():
        print(f"  {name:44}{t.text():>20}")
    if peer:
        for a, b in (("rk4", "RK4"), ("implicit", "implicit trapezoidal")):
            ratio = times[f"Exudyn {b}"].median / times[f"spanloop {a}"].median
            print(f"  {b}: {ratio:.0f} times as fast as Exudyn")


def main() -> None:
    warnings.simplefilter("ignore")
    model = hinged()
    print(BEAM)
    try:
        import exudyn
    except ImportError:
        peer = False
        print("exudyn is not installed (pip install exudyn): our own times only")
    else:
        peer = True
        print(f"Exudyn {exudyn.__version__}")
        compare_motions(model)
    print_calls(model)
    print_steps(model, peer)


if __name__ == "__main__":
    main()
