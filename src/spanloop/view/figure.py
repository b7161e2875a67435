"""A mechanism as a stick figure: bones between origins of bodies, plates where three or more hang on one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spanloop.algorithms.quantities.kinematics import stand
from spanloop.algorithms.tree.placing import placed
from spanloop.math.spatial import Transform
from spanloop.model import WORLD, Model
from spanloop.sweeps import Program, outward, walk
from spanloop.topology import mechanism


@dataclass(frozen=True)
class Figure:
    """Names of bodies and frames: bones join two, plates have several as corners, in order around."""

    bones: tuple[tuple[str, str], ...]
    plates: tuple[tuple[str, ...], ...]

    @staticmethod
    def of(model: Model) -> Figure:
        carried: dict[str, list[str]] = {}
        for joint in model.joints:
            carried.setdefault(joint.parent, []).append(joint.child)
        del carried[WORLD]
        broad = {body: ends for body, ends in carried.items() if len(ends) >= 3}
        bones = [(body, end) for body, ends in carried.items() if body not in broad for end in ends]
        bones += [(f.body, f.name) for f in model.frames if f.body != WORLD and any(f.placement.position)]
        neutral = places(model, model.neutral()[None])
        return Figure(tuple(bones), tuple(_around(ends, neutral) for ends in broad.values()))


def places(model: Model, q: np.ndarray) -> dict[str, np.ndarray]:
    """Positions (n, 3) [m] of the origins of all bodies and frames at q (n, nq), in the world."""
    numbers = mechanism(model)
    names = list(numbers.anchors)

    def origins(m, here, world):
        found = []
        for anchor in m.anchors.values():
            found.extend(here[anchor.link].T.point(anchor.position) if anchor.link >= 0 else anchor.position)
        return found

    sweeps = (*placed(()), outward(stand, T=Transform()))
    program = Program("places", ("q",), sweeps, origins, (len(names), 3))
    rows = np.array([walk(program, numbers, {"q": row}) for row in q.tolist()])
    return {name: rows[:, 3 * k : 3 * k + 3] for k, name in enumerate(names)}


def _around(names: list[str], at: dict[str, np.ndarray]) -> tuple[str, ...]:
    """The names in order around their middle, in the plane that fits them best."""
    corners = np.array([at[name][0] for name in names])
    corners -= corners.mean(axis=0)
    plane = np.linalg.svd(corners)[2][:2]
    angles = np.arctan2(corners @ plane[1], corners @ plane[0])
    return tuple(names[k] for k in np.argsort(angles))


@dataclass(frozen=True)
class Camera:
    """A view from far away: azimuth [rad], 0 looks along +y with x to the right; elevation [rad]."""

    azimuth: float = 0.0
    elevation: float = 0.0

    def seen(self, points: np.ndarray) -> np.ndarray:
        """Points (..., 3) [m] as (..., 2): right and up [m]."""
        s, c = np.sin(self.azimuth), np.cos(self.azimuth)
        up, ahead = np.sin(self.elevation), np.cos(self.elevation)
        return points @ np.array([(c, s, 0.0), (-s * up, c * up, ahead)]).T
