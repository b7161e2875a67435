"""The rows of targets: by how much frames and the centre of mass miss them, and how these errors fall with the joints.

| symbol | shape | meaning | frame |
|---|---|---|---|
| e | scalar | what is left to the target along one row [m or rad] | world, or frame |
| J | {DoF: scalar} | the rate of the row per unit rate of each DoF on the way: e falls by J v | |

| kind | numbers of the target | groups of rows |
|---|---|---|
| pose | rotation (9) row by row, position (3) | 3 positions, 3 rotations |
| position | 3 | 3 positions |
| orientation | rotation (9) | 3 rotations |
| direction | unit vector (3) | 2 rotations |
| center_of_mass | 3 | 3 positions |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spanloop.algorithms.tree.energy import center_of_mass_columns
from spanloop.algorithms.tree.kinematics import frame_pose, seen_at
from spanloop.math import rotation_vector
from spanloop.math.rotation import along_axes
from spanloop.math.scalar import where
from spanloop.math.vector3 import dot, product, scale, subtract, total, transpose
from spanloop.types import Floats3, Scalar

POSE, POSITION, ORIENTATION = "pose", "position", "orientation"
DIRECTION, CENTER_OF_MASS = "direction", "center_of_mass"
SIZES = {POSE: 12, POSITION: 3, ORIENTATION: 9, DIRECTION: 3, CENTER_OF_MASS: 3}
METERS, RADIANS = "m", "rad"
UNITS = {
    POSE: (METERS, RADIANS),
    POSITION: (METERS,),
    ORIENTATION: (RADIANS,),
    DIRECTION: (RADIANS,),
    CENTER_OF_MASS: (METERS,),
}


@dataclass(frozen=True)
class TargetKind:
    """What is to go somewhere: its kind, the frame, and of a direction the axis in the frame (a unit vector)."""

    kind: str
    frame: str = ""
    axis: Floats3 = (0.0, 0.0, 1.0)


@dataclass(frozen=True)
class Group:
    """Rows of one unit that share a weight."""

    unit: str
    errors: Sequence[Scalar]
    rows: Sequence[Mapping[int, Scalar]]  # for each error

    @property
    def square(self) -> Scalar:
        """The square of the distance, or of the angle, that is left."""
        return total(e * e for e in self.errors)


def target_rows(m, here, world, target: TargetKind, numbers: Sequence[Any]) -> list[Group]:
    """The groups of rows of a target whose numbers are `numbers`.

    After the sweeps `placed` and `poses`; for the centre of mass also `energy.collect`.
    """
    if target.kind == CENTER_OF_MASS:
        centre = scale(1.0 / world.I.mass, world.I.first)
        columns = dict(enumerate(center_of_mass_columns(m, here, world)))
        return [_positions(numbers, centre, columns)]
    at = frame_pose(m, here, target.frame)
    angular, linear = _columns(m, here, target.frame, at.translation)
    if target.kind == DIRECTION:
        return [_tilts(target.axis, at.rotation, tuple(numbers), angular)]
    if target.kind == POSITION:
        return [_positions(numbers, at.translation, linear)]
    wanted = (tuple(numbers[0:3]), tuple(numbers[3:6]), tuple(numbers[6:9]))
    turns = _turns(product(wanted, transpose(at.rotation.matrix())), angular)
    return [turns] if target.kind == ORIENTATION else [_positions(numbers[9:], at.translation, linear), turns]


def _positions(wanted, found, columns) -> Group:
    rows = [{dof: c[k] for dof, c in columns.items()} for k in range(3)]
    return Group(METERS, subtract(tuple(wanted), tuple(found)), rows)


def _turns(left, angular) -> Group:
    rows = [{dof: c[k] for dof, c in angular.items()} for k in range(3)]
    return Group(RADIANS, rotation_vector.of_matrix(left), rows)


def _tilts(axis: Floats3, rotation, wanted, angular) -> Group:
    """The turn of the axis towards a direction, about the two axes of the frame that are square to it."""
    across = transpose(along_axes(axis).matrix())[:2]
    angle, turn = rotation_vector.between(axis, rotation.T @ wanted)
    opposite = dot(turn, turn) < 0.25 * (angle * angle)  # half a turn has no axis of its own: the first will do
    turns = [dot(turn, u) for u in across]
    turns = [where(opposite, angle, turns[0]), where(opposite, 0.0, turns[1])]
    rows = [{dof: dot(rotation @ u, c) for dof, c in angular.items()} for u in across]
    return Group(RADIANS, turns, rows)


def _columns(m, here, frame: str, point) -> tuple[dict, dict]:
    """Angular and linear velocity of the frame for a unit rate of each DoF on its way, in world axes."""
    angular, linear = {}, {}
    link = m.anchors[frame].link
    while link >= 0:
        for k, s in enumerate(here[link].S):
            seen = seen_at(s, here[link].T, point)
            angular[m.links[link].v.start + k], linear[m.links[link].v.start + k] = seen.angular, seen.linear
        link = m.links[link].parent
    return angular, linear
