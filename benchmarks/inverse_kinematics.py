"""Inverse kinematics beside Pinocchio's example loop and mink, from random starts inside the limits.

    pip install '.[benchmark]' mink 'qpsolvers[daqp]'
    python benchmarks/inverse_kinematics.py

Targets are forward kinematics of random states inside the limits. Every solver begins at the same random starts, and
begins anew at others, MOST times, until it meets the target to 1e-8 [m, rad] inside the limits.

* Pinocchio: the loop of its example (examples/inverse-kinematics.py: damped pseudo-inverse, steps of 0.1), and the same
  with whole steps; it knows no limits, so angles are taken within a turn and a state beyond a limit is no solution.
* mink: a FrameTask with its Levenberg-Marquardt damping, joint limits, and the solver daqp, whole steps.

A time is the processor time of one thread for one target, restarts included: median and quartiles of batches (spanloop)
or of targets (peers). Rows without numbers: the peer has no such call.
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import mink
import mujoco
import numpy as np
import pinocchio as pin

import spanloop as sl

TOLERANCE, MOST = 1e-8, 20
DATA = Path(str(importlib.metadata.distribution("example-robot-data").locate_file("cmeel.prefix/share")))
ROBOTS = DATA / "example-robot-data" / "robots"


@dataclass(frozen=True)
class Case:
    """One frame of one robot; whole: its pose, else its position."""

    title: str
    file: Path
    frame: str
    whole: bool


CASES = (
    Case("Panda, pose of the hand", ROBOTS / "panda_description/urdf/panda.urdf", "panda_hand_tcp", True),
    Case("ANYmal C, position of a foot", ROBOTS / "anymal_c_simple_description/urdf/anymal.urdf", "LF_FOOT", False),
)


# ---- peers: each returns whether the target was met, for one target and its starts


class PinocchioLoop:
    """The loop of Pinocchio's example, in three or six dimensions."""

    def __init__(self, case: Case, step: float):
        self.model = pin.buildModelFromUrdf(str(case.file))
        self.data, self.frame = self.model.createData(), self.model.getFrameId(case.frame)
        self.whole, self.step = case.whole, step
        self.lower, self.upper = self.model.lowerPositionLimit, self.model.upperPositionLimit

    def solve(self, target: pin.SE3, starts: np.ndarray) -> bool:
        return any(self._descend(target, q) for q in starts)

    def _descend(self, target: pin.SE3, q: np.ndarray, rounds: int = 1000) -> bool:
        size = 6 if self.whole else 3
        damping = 1e-12 * np.eye(size)
        for _ in range(rounds):
            pin.framesForwardKinematics(self.model, self.data, q)
            here = self.data.oMf[self.frame].actInv(target)
            error = pin.log6(here).vector if self.whole else here.translation
            if np.linalg.norm(error) < TOLERANCE:
                q = np.where(q > self.upper, q - 2 * np.pi * np.ceil((q - self.upper) / (2 * np.pi)), q)
                q = np.where(q < self.lower, q + 2 * np.pi * np.ceil((self.lower - q) / (2 * np.pi)), q)
                return bool(((q >= self.lower) & (q <= self.upper)).all())
            J = pin.computeFrameJacobian(self.model, self.data, q, self.frame)
            J = -pin.Jlog6(here.inverse()) @ J if self.whole else -J[:3]
            v = -J.T @ np.linalg.solve(J @ J.T + damping, error)
            q = pin.integrate(self.model, q, v * self.step)
        return False


class MinkLoop:
    """A frame task of mink with limits."""

    def __init__(self, case: Case):
        text = re.sub(r"<(visual|collision)>.*?</\1>|<(visual|collision)/>", "", case.file.read_text(), flags=re.S)
        head = (
            '<mujoco><compiler fusestatic="false" balanceinertia="true" boundmass="1e-6" boundinertia="1e-9"/></mujoco>'
        )
        text = re.sub(r"(<robot[^>]*>)", rf"\1{head}", text, count=1)
        self.model = mujoco.MjModel.from_xml_string(text)
        self.limits = [mink.ConfigurationLimit(self.model)]
        cost = 1.0 if case.whole else 0.0
        self.task = mink.FrameTask(case.frame, "body", position_cost=1.0, orientation_cost=cost, lm_damping=1.0)
        self.whole = case.whole

    def solve(self, target: pin.SE3, starts: np.ndarray) -> bool:
        self.task.set_target(mink.SE3.from_matrix(target.homogeneous))
        return any(self._descend(q) for q in starts)

    def _descend(self, q: np.ndarray, rounds: int = 100) -> bool:
        configuration = mink.Configuration(self.model, q=q)
        for _ in range(rounds):
            error = self.task.compute_error(configuration)
            if np.linalg.norm(error if self.whole else error[:3]) < TOLERANCE:
                return True
            v = mink.solve_ik(configuration, [self.task], 1.0, "daqp", damping=1e-12, limits=self.limits)
            configuration.integrate_inplace(v, 1.0)
        return False


def peer_times(peer, targets: list[pin.SE3], starts: np.ndarray) -> tuple[float, np.ndarray]:
    """The share of targets that were met, and the time of each [s]."""
    met, seen = 0, []
    for target, own in zip(targets, starts, strict=True):
        begin = time.thread_time()
        met += peer.solve(target, own)
        seen.append(time.thread_time() - begin)
    return met / len(targets), np.array(seen)


# ---- spanloop


def own_times(robot: sl.Dynamics, targets: dict, start: np.ndarray, samples: int) -> tuple[float, np.ndarray, float]:
    """The share of rows that were met, the time of each sample for one row [s], restarts of a row."""
    found = robot.inverse_kinematics(targets, start, tolerance=TOLERANCE)
    count, seen = found.converged.size, []
    for _ in range(samples):
        begin = time.thread_time()
        robot.inverse_kinematics(targets, start, tolerance=TOLERANCE)
        seen.append((time.thread_time() - begin) / count)
    return float(found.converged.mean()), np.array(seen), float(found.restarts.mean())


def single_times(robot: sl.Dynamics, targets: dict, start: np.ndarray, samples: int) -> np.ndarray:
    """The time of single calls, one target each [s]."""
    (frame, values), seen = next(iter(targets.items())), []
    for k in range(samples):
        begin = time.thread_time()
        robot.inverse_kinematics({frame: values[k]}, start[k], tolerance=TOLERANCE)
        seen.append(time.thread_time() - begin)
    return np.array(seen)[1:]


def row(title: str, share: float, seconds: np.ndarray, restarts: float | None = None) -> None:
    low, median, high = 1e6 * np.quantile(seconds, (0.25, 0.5, 0.75))
    again = "" if restarts is None else f"{restarts:.2f}"
    print(f"| {title} | {100 * share:.1f} % | {median:.1f} ({low:.1f} to {high:.1f}) | {again} |", flush=True)


def main(count: int = 2000, few: int = 40, samples: int = 15) -> None:
    print("| | met | µs a target | restarts |\n|---|---|---|---|")
    for case in CASES:
        robot, pinocchio = sl.Dynamics(sl.load(case.file)), PinocchioLoop(case, 0.1)
        order = sl.PinocchioOrder(robot.model, list(pinocchio.model.names), list(pinocchio.model.nqs))
        rng = np.random.default_rng(0)
        lower, upper = np.maximum(pinocchio.lower, -np.pi), np.minimum(pinocchio.upper, np.pi)
        there = rng.uniform(lower, upper, (count, pinocchio.model.nq))
        starts = rng.uniform(lower, upper, (count, MOST, pinocchio.model.nq))
        poses = robot.pose(order.q_from(there), case.frame)
        targets = {case.frame: poses if case.whole else np.ascontiguousarray(poses[:, :3, 3])}
        start = order.q_from(starts[:, 0])
        share, seconds, restarts = own_times(robot, targets, start, samples)
        row(f"{case.title}: spanloop, batch of {count}", share, seconds, restarts)
        row(f"{case.title}: spanloop, one call a target", share, single_times(robot, targets, start, 200))
        few_poses = [pin.SE3(x) for x in poses[:few]]
        for title, peer in (
            ("Pinocchio's example loop", pinocchio),
            ("the same, whole steps", PinocchioLoop(case, 1.0)),
            ("mink", MinkLoop(case)),
        ):
            row(f"{case.title}: {title}", *peer_times(peer, few_poses, starts[:few]))
    robot, start = sl.Dynamics(sl.zoo.stewart()), sl.zoo.stewart_start()
    rng = np.random.default_rng(0)
    moved = [
        robot.integrate(np.tile(start, (count, 1)), x * rng.normal(size=(count, robot.model.nv))) for x in (0.15, 0.3)
    ]
    closed = robot.assemble(moved[0])
    targets = {"platform": robot.pose(closed, "platform")}
    row(f"Stewart, pose of the platform: spanloop, batch of {count}", *own_times(robot, targets, moved[1], samples))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
