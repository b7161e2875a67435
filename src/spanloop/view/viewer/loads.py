"""Forces that joints and loops carry, as arrows: where each begins, and which way it points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spanloop.view.scene import Scene, matrix

LONGEST = 0.3  # of the reach: the arrow of the largest force


@dataclass(frozen=True)
class Loads:
    """Points (n, 3) [m] and forces (n, 3) [N] in the world: of joints on their children, of loops on their bodies b."""

    joints: tuple[np.ndarray, np.ndarray]
    closures: tuple[np.ndarray, np.ndarray]

    @property
    def largest(self) -> float:
        """The largest force [N]."""
        sizes = [np.linalg.norm(f, axis=1).max(initial=0.0) for _, f in (self.joints, self.closures)]
        return float(max(sizes))


def loads(scene: Scene, poses: np.ndarray, reactions) -> Loads:
    """For a state with these poses (n_bodies + 1, 4, 4). reactions: [torque; force] (6,) by name."""
    joints = [(poses[j.body][:3, 3], reactions[j.name][3:]) for j in scene.joints if j.name in reactions]
    closures = [
        ((poses[c.b] @ matrix(c.placement_b))[:3, 3], reactions[c.name][3:])
        for c in scene.closures
        if c.name in reactions
    ]
    return Loads(_stacked(joints), _stacked(closures))


def _stacked(pairs) -> tuple[np.ndarray, np.ndarray]:
    if not pairs:
        return np.zeros((0, 3)), np.zeros((0, 3))
    points, forces = zip(*pairs, strict=True)
    return np.array(points), np.array(forces)
