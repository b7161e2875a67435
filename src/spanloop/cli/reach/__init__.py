"""`spanloop reach`: joint coordinates that bring frames to targets."""

from __future__ import annotations

import argparse
import math

from spanloop.cli.shared_arguments import add_model, by_name, initial_state, loading, model_of
from spanloop.cli.terminal import add_json, number, print_json
from spanloop.dynamics import Dynamics
from spanloop.errors import InputError, in_one_line
from spanloop.math.rotation import Rotation
from spanloop.reach import Reach
from spanloop.reach.target_kinds import CenterOfMass, Direction, Pose, Position, Target

EXAMPLES = (
    "spanloop reach zoo:puma --position tool=0.5,0.2,0.1 --direction tool=0,0,-1",
    "spanloop reach zoo:puma --pose tool=0.5,0.2,0.1,0,90deg,0 --q joint3=30deg",
    "spanloop reach zoo:stewart --position platform=0.1,0,1.1 --json",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add = parser.add_argument
    point = "FRAME=X,Y,Z"
    add("--position", metavar=point, action="append", default=[], help="the frame's origin at a point [m]")
    add(
        "--pose",
        metavar="FRAME=X,Y,Z,ROLL,PITCH,YAW",
        action="append",
        default=[],
        help="the frame at a point, turned about the fixed axes x, y, z in turn, as in URDF",
    )
    add("--direction", metavar=point, action="append", default=[], help="the frame's z axis along a direction")
    add("--center-of-mass", metavar="X,Y,Z", help="the centre of mass at a point [m]")
    add("--q", metavar="JOINT=VALUE", action="append", default=[], help="where the search begins")
    add("--fixed", metavar="JOINT", nargs="+", default=[], help="joints that do not move")
    add("--restarts", metavar="N", type=int, default=50, help="further starts, inside the limits (50)")
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    model = model_of(chosen.file, **loading(chosen))
    robot, targets = Dynamics(model), _targets(chosen)
    start, _ = initial_state(robot, chosen.file, by_name(chosen.q, "--q"), {})
    found = robot.inverse_kinematics(targets, start, fixed=chosen.fixed, restarts=chosen.restarts)
    if chosen.json:
        print_json(_described(robot, found))
    else:
        _report(robot, found)
    return 0 if found.converged else 1


def _targets(chosen: argparse.Namespace) -> list[Target]:
    out: list[Target] = [Pose(f, _matrix(x)) for f, x in _numbers(chosen.pose, "--pose", 6)]
    out += [Position(f, x) for f, x in _numbers(chosen.position, "--position", 3)]
    out += [Direction(f, x) for f, x in _numbers(chosen.direction, "--direction", 3)]
    if chosen.center_of_mass:
        out += [CenterOfMass(x) for _, x in _numbers([f"all={chosen.center_of_mass}"], "--center-of-mass", 3)]
    if not out:
        raise InputError(
            "reach: nothing to reach; give --position FRAME=X,Y,Z, --pose, --direction or --center-of-mass"
        )
    return out


def _numbers(words: list[str], option: str, count: int) -> list[tuple[str, list[float]]]:
    example = "tool=0.5,0.2,0.1" + (",0,90deg,0" if count == 6 else "")
    found = list(by_name(words, option, example).items())
    for frame, x in found:
        if len(x) != count:
            raise InputError(f"{option} {frame}: found {len(x)} numbers; expected {count}")
    return found


def _matrix(x: list[float]) -> list[list[float]]:
    turn = Rotation.about(2, x[5]) @ Rotation.about(1, x[4]) @ Rotation.about(0, x[3])
    return [[*row, p] for row, p in zip(turn.matrix(), x[:3], strict=True)] + [[0.0, 0.0, 0.0, 1.0]]


def _report(robot: Dynamics, found: Reach) -> None:
    model, held = robot.model, set(found.limits())
    for joint in model.joints:
        if joint.kind.nq == 1:
            x, rad = round(float(found.q[model.q_slice(joint.name).start]), 9) + 0.0, joint.kind.units == ("rad",)
            value = f"{x:12.6f} rad {math.degrees(x):10.3f} deg" if rad else f"{x:12.6f} m"
            at = "  at its limit" if joint.name in held else ""
            print(f"{in_one_line(joint.name):24s}{value}{at}")
        elif joint.kind.nq:
            values = ", ".join(f"{x:.6f}" for x in found.q[model.q_slice(joint.name)])
            print(f"{in_one_line(joint.name):24s}{values}")
    print(in_one_line(str(found)))


def _described(robot: Dynamics, found: Reach) -> dict:
    model = robot.model
    return {
        "converged": found.converged,
        "q": {j.name: [number(x) for x in found.q[model.q_slice(j.name)]] for j in model.joints if j.kind.nq},
        "residual": {n: {"distance": float(r.distance), "angle": float(r.angle)} for n, r in found.residual.items()},
        "at_limits": list(found.limits()),
        "iterations": found.iterations,
        "restarts": found.restarts,
    }
