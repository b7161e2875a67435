"""Motions by Exudyn of spanloop's models, if it is installed (`pip install exudyn`).

Every body has six coordinates there and every joint is a constraint, so closures and tree joints drift alike. It cannot
solve redundant rows: a hinge that closes a plane loop gets the two rows that hold its plane.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

import spanloop as sl

_ROWS = {"revolute": [1, 1, 1, 1, 1, 0], "universal": [1, 1, 1, 0, 0, 1], "prismatic": [1, 1, 0, 1, 1, 1]}
_SAMPLE = 0.02  # s


@dataclass(frozen=True)
class Drift:
    """Of one run: largest closure error [m], largest error of the energy [J], processor time of a step [s]."""

    closure: float
    energy: float
    step_time: float


def installed() -> bool:
    try:
        import exudyn  # noqa: F401
    except ImportError:
        return False
    return True


def trapezoidal(model: sl.Model, q, duration: float, h: float) -> Drift:
    """From rest at q, by the implicit trapezoidal rule of index 2, its own choice for mechanisms."""
    import exudyn as exu

    container = exu.SystemContainer()
    system = container.AddSystem()
    robot, place = sl.Dynamics(model), {"world": system.CreateGround()}
    for body in model.bodies:
        place[body.name] = system.CreateRigidBody(
            referenceHT=robot.pose(q, body.name), inertia=_inertia(body.inertia), gravity=list(model.gravity)
        )
    for joint in model.joints:
        if joint.kind.name != "free":
            _add_joint(system, robot, place, joint, q)
    for loop in model.loops:
        _add_closure(system, robot, place, loop, q)
    seen = _Measured(system, model, place)
    system.Assemble()
    settings = exu.SimulationSettings()
    settings.timeIntegration.numberOfSteps, settings.timeIntegration.endTime = round(duration / h), duration
    settings.timeIntegration.verboseMode = 0
    settings.solutionSettings.writeSolutionToFile = False
    settings.solutionSettings.sensorsWritePeriod = _SAMPLE
    settings.linearSolverType = exu.LinearSolverType.EigenSparse
    began = time.thread_time()
    system.SolveDynamic(settings, solverType=exu.DynamicSolverType.TrapezoidalIndex2)
    spent = time.thread_time() - began
    return Drift(*seen.errors(), spent / round(duration / h))


def _inertia(i):
    from exudyn.utilities import RigidBodyInertia

    return RigidBodyInertia(i.mass, inertiaTensor=np.array(i.matrix()), com=np.array(i.center), inertiaTensorAtCOM=True)


def _add_joint(system, robot, place, joint, q) -> None:
    """z of the joint's axes is along the hinge or slide; of a universal joint, x and y are its axes."""
    pose = robot.pose(q, joint.child)
    axes = pose[:3, :3] @ _axes(joint.kind.axis)
    if joint.kind.name == "universal":
        before = _matrix(joint.placement)[:3, :3]
        if joint.parent != "world":
            before = robot.pose(q, joint.parent)[:3, :3] @ before
        first, second = before @ joint.kind.axis, pose[:3, :3] @ joint.kind.second_axis
        axes = np.column_stack((first, second, np.cross(first, second)))
    system.CreateGenericJoint(
        bodyNumbers=[place[joint.parent], place[joint.child]],
        position=pose[:3, 3],
        rotationMatrixAxes=axes,
        constrainedAxes=_ROWS[joint.kind.name],
        useGlobalFrame=True,
    )
    if any(joint.stiffness):  # along the slide
        system.CreateSpringDamper(
            bodyNumbers=[place[joint.parent], place[joint.child]],
            localPosition0=list(joint.placement.position),
            referenceLength=joint.rest[0],
            stiffness=joint.stiffness[0],
        )


def _add_closure(system, robot, place, loop, q) -> None:
    """A ball; of a hinge, the two directions square to it."""
    pose = robot.pose(q, loop.b) @ _matrix(loop.placement_b)
    rows, axes = [1, 1, 1, 0, 0, 0], np.eye(3)
    if loop.kind.name == "revolute":
        rows, axes = [1, 1, 0, 0, 0, 0], _axes(loop.kind.axis)
    system.CreateGenericJoint(
        bodyNumbers=[place[loop.a], place[loop.b]],
        position=pose[:3, 3],
        rotationMatrixAxes=pose[:3, :3] @ axes,
        constrainedAxes=rows,
        useGlobalFrame=True,
    )


class _Measured:
    """Sensors of what energy and closures need."""

    def __init__(self, system, model: sl.Model, place):
        self.system, self.model, self.place = system, model, place
        self.bodies = {
            b.name: (
                self._sensor(b.name, b.inertia.center, "Position"),
                self._sensor(b.name, b.inertia.center, "Velocity"),
                self._sensor(b.name, b.inertia.center, "AngularVelocityLocal"),
            )
            for b in model.bodies
        }
        self.springs = [
            (j, self._sensor(j.parent, j.placement.position), self._sensor(j.child))
            for j in model.joints
            if any(j.stiffness)
        ]
        self.loops = [
            (self._sensor(x.a, x.placement_a.position), self._sensor(x.b, x.placement_b.position)) for x in model.loops
        ]

    def errors(self) -> tuple[float, float]:
        """Largest closure error [m] and error of the energy [J]."""
        closure = max(np.abs(self._read(a) - self._read(b)).max() for a, b in self.loops)
        energy: np.ndarray | float = 0.0
        for body in self.model.bodies:
            position, velocity, turning = map(self._read, self.bodies[body.name])
            i = body.inertia
            energy = (
                energy + 0.5 * i.mass * (velocity**2).sum(axis=1) - i.mass * position @ np.array(self.model.gravity)
            )
            energy = energy + 0.5 * np.einsum("ni,ij,nj->n", turning, np.array(i.matrix()), turning)
        for joint, a, b in self.springs:
            length = np.linalg.norm(self._read(a) - self._read(b), axis=1)
            energy = energy + 0.5 * joint.stiffness[0] * (length - joint.rest[0]) ** 2
        return float(closure), float(np.abs(energy - energy[0]).max())

    def _sensor(self, body: str, at=(0.0, 0.0, 0.0), what: str = "Position"):
        import exudyn as exu
        from exudyn.utilities import SensorBody

        kind = getattr(exu.OutputVariableType, what)
        return self.system.AddSensor(
            SensorBody(bodyNumber=self.place[body], localPosition=list(at), storeInternal=True, outputVariableType=kind)
        )

    def _read(self, sensor) -> np.ndarray:
        return self.system.GetSensorStoredData(sensor)[:, 1:]


def _axes(z) -> np.ndarray:
    """Columns: axes of which the third is z."""
    z = np.array(z, float)
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    return np.column_stack((x, np.cross(z, x), z))


def _matrix(placement) -> np.ndarray:
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = placement.rotation, placement.position
    return out
