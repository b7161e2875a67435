"""The nodes of a Scene in viser: bodies, joints, closures, frames, names, force arrows and a trail."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.math.rotation import toward
from spanloop.model.parts import Loop
from spanloop.view import palette
from spanloop.view.body_shapes import corners
from spanloop.view.contact_forces import COLORS, WORDS, ContactForces
from spanloop.view.contact_shapes import floor_height
from spanloop.view.meshes.mesh import Mesh
from spanloop.view.moving_scene import SceneHold
from spanloop.view.scene import Scene, SceneBody, SceneJoint, matrix
from spanloop.view.viewer import viser_shapes
from spanloop.view.viewer.plain_text import one_line
from spanloop.view.viewer.session import OPEN

LAYERS = ("bodies", "joints", "closures", "frames", "inertias", "contact shapes", "names")

_FAINT = 0.4  # of bodies when forces are shown

LONGEST = 0.3  # length of the largest force's arrow, in sizes of the mechanism

SHOWN = ("bodies", "joints", "closures")  # at the beginning


class SceneNodes:
    """Draw a scene once, then move it: `place` takes poses (n_bodies + 1, 4, 4), errors of closures, and what is there.

    lowest [m]: lowest point of the mechanism along `up`; the ground lies there, or at the world's origin if lower; a
    floor that is touched lies where it is.
    """

    def __init__(self, world: Any, scene: Scene, up: np.ndarray, lowest: float = 0.0, holds: Sequence[SceneHold] = ()):
        self.world, self.scene, self.holds = world, scene, holds
        self.layers: dict[str, list[Any]] = {name: [] for name in LAYERS}
        self.open = [False] * len(scene.closures)
        self.released = [False] * len(scene.closures)
        self._broken = [False] * len(scene.closures)
        self.shown: dict[str, bool] = {}
        world.set_up_direction(tuple(map(float, up)))
        self.paths = [f"/bodies/{k} {one_line(b.name).replace('/', ' ')}" for k, b in enumerate(scene.bodies)]
        self.body_nodes = [world.add_frame(path, show_axes=False) for path in self.paths]
        self._draw_ground(up, lowest)
        self._draw_patches()
        self._surfaces: dict[int, list[tuple[Any, Mesh]]] = {}
        for k, (path, body) in enumerate(zip(self.paths, scene.bodies, strict=True)):
            if body.surface is None:
                self._draw_body(path, body)
            else:
                self._surfaces[k] = viser_shapes.draw_surface(world, f"{path}/surface", body.surface, body.color)
                self.layers["bodies"] += [handle for handle, _ in self._surfaces[k]]
        self._draw_joints()
        self._draw_frames()
        self._closure_marks = self._draw_closures()
        self._slides = self._draw_slides()
        self._discs = [self._draw_disc(k, hold) for k, hold in enumerate(holds)]
        self._gaps = self._line("/gaps", palette.OPEN)
        self._trail = self._line("/trail", palette.TRAIL)
        self._arrows: dict[str, Any] = {}
        for name in LAYERS:
            self.show(name, name in SHOWN)

    def place(
        self,
        poses: np.ndarray,
        errors: Sequence[float] = (),
        loops: Sequence[Loop | None] | None = None,
        absent: Collection[int] = (),
        bending: Mapping[int, np.ndarray] | None = None,
    ) -> None:
        """Move bodies to these poses; colour closures green or red by their errors [m or rad].

        loops: for each closure the loop as it holds, None for one that is released (default: all hold as in the scene).
        absent: numbers of the bodies that are not there. bending: coordinates (modes,) of surfaces, by their body.
        """
        absent = {k for k, b in enumerate(self.scene.bodies) if k in absent or b.segment_of in absent}
        for k, node in enumerate(self.body_nodes):
            if node.visible != (k not in absent):
                node.visible = k not in absent
        for joint, rod in self._slides:
            seen = self.shown["bodies"] and joint.body not in absent
            if rod.visible != seen:
                rod.visible = seen
        if loops is not None:
            self._hold_closures(loops)
        turns = viser_shapes.quaternions(poses[:, :3, :3])
        for node, pose, turn in zip(self.body_nodes[1:], poses[1:], turns[1:], strict=True):
            node.wxyz, node.position = turn, pose[:3, 3]
        for k, eta in (bending or {}).items():
            for handle, mesh in self._surfaces[k]:
                handle.vertices = mesh.bent(eta).vertices.astype(np.float32)
        self._place_slides(poses)
        self._color_closures(poses, errors)

    def show(self, layer: str, visible: bool) -> None:
        """Show or hide one of LAYERS."""
        self.shown[layer] = visible
        for handle in self.layers[layer]:
            handle.visible = visible
        if layer == "closures" and visible:
            for marks, released in zip(self._closure_marks, self.released, strict=True):
                for mark in marks:
                    mark.visible = not released

    def fade(self, faint: bool) -> None:
        """Make bodies translucent, or opaque again."""
        for handle in self.layers["bodies"]:
            handle.opacity = _FAINT if faint else None

    def arrows(self, name: str, starts: np.ndarray, vectors: np.ndarray, color: str) -> None:
        """Draw arrows `vectors` (n, 3) from points `starts` (n, 3) [m]; hide them if n is 0."""
        long = np.linalg.norm(vectors, axis=1) > 1e-3 * self.scene.size if len(vectors) else np.zeros(0, bool)
        points = np.stack([starts, starts + vectors], axis=1)[long] if long.any() else np.zeros((1, 2, 3))
        if name not in self._arrows:
            thick, tint = 0.008 * self.scene.size, viser_shapes.rgb(viser_shapes.darker(color))
            self._arrows[name] = self.world.add_arrows(
                f"/arrows/{name}", points, tint, shaft_radius=0.5 * thick, head_radius=1.4 * thick,
                head_length=4.0 * thick, visible=bool(long.any()),
            )  # fmt: skip
            return
        handle = self._arrows[name]
        if long.any():
            handle.points = points.astype(np.float32)
        if handle.visible != bool(long.any()):
            handle.visible = bool(long.any())

    def contact_arrows(self, touching: ContactForces | None, length: float = 1.0) -> None:
        """Draw the forces of contacts of one sample, by what they do; hide them all if there are none."""
        for state, color in COLORS.items() if touching is not None or "sticking" in self._arrows else ():
            starts = vectors = np.zeros((0, 3))
            if touching is not None:
                here = touching.states[0] == state
                starts, vectors = touching.points[0, here], length * touching.arrows(self.scene.size)[0, here]
            self.arrows(WORDS[state], starts, vectors, color)

    def trail(self, points: np.ndarray) -> None:
        """Draw a line through points (n, 3) [m]; hide it if there are fewer than two."""
        if len(points) >= 2:
            self._trail.points = np.stack([points[:-1], points[1:]], axis=1).astype(np.float32)
        if self._trail.visible != (len(points) >= 2):
            self._trail.visible = len(points) >= 2

    def _line(self, name: str, color: str) -> Any:
        """A hidden line, without points yet."""
        thickness = 0.007 * self.scene.size
        return self.world.add_line_segments(
            name, np.zeros((1, 2, 3)), viser_shapes.rgb(color), thickness=thickness, visible=False
        )

    def _draw_ground(self, up: np.ndarray, lowest: float) -> None:
        """A grid below everything; a solid one, where the mechanism touches the floor."""
        floor = floor_height(self.scene.surfaces) if up[2] > 1.0 - 1e-9 else None
        slopes = [corners(s) @ up for p in self.scene.patches if p.body == 0 for s in p.shapes("")]
        height = min(lowest, 0.0, *(float(x.min()) for x in slopes)) if floor is None else floor
        reach, plane = 4.0 * self.scene.size, "xyz".replace("xyz"[int(np.argmax(np.abs(up)))], "")
        cell = 10.0 ** np.floor(np.log10(0.5 * self.scene.size))
        solid = {} if floor is None else {"plane_color": (214, 218, 222), "plane_opacity": 0.6, "infinite_grid": True}
        self.world.add_grid(
            "/ground", reach, reach, plane=plane, cell_size=cell, section_size=5.0 * cell,
            cell_color=(222, 225, 228), section_color=(196, 201, 206), fade_distance=6.0 * self.scene.size,
            position=tuple(height * up), **solid,
        )  # fmt: skip

    def _draw_patches(self) -> None:
        """The planes that are touched, without the floor."""
        for k, patch in enumerate(self.scene.patches):
            for shape in patch.shapes(str(k)):
                name = f"{self.paths[patch.body]}/{shape.file}"
                viser_shapes.draw_all(self.world, name, shape, palette.GROUND, side="double")

    def _draw_body(self, path: str, body: SceneBody) -> None:
        for k, shape in enumerate(body.shapes):
            self.layers["bodies"] += viser_shapes.draw_all(self.world, f"{path}/shape{k}", shape, body.color)
        if body.inertia is not None:
            handle = viser_shapes.draw(self.world, f"{path}/inertia", body.inertia, body.color, opacity=0.35)
            self.layers["inertias"].append(handle)
        for k, shape in enumerate(body.contacts):
            name = f"{path}/contact{k}"
            self.layers["contact shapes"] += viser_shapes.draw_all(
                self.world, name, shape, palette.STICKS, opacity=0.35
            )

    def _draw_joints(self) -> None:
        for joint in self.scene.joints:
            path, body = self.paths[joint.body], self.scene.bodies[joint.body].name
            at = f"{path}/joint"
            if joint.axis is not None and joint.mark:
                pin = viser_shapes.pin(joint.axis, 0.85 * joint.mark, 4.0 * joint.mark)
                self.layers["joints"].append(viser_shapes.draw(self.world, at, pin, palette.JOINT))
            elif joint.mark and joint.kind not in ("free", "fixed"):
                ball = viser_shapes.ball(1.2 * joint.mark)
                self.layers["joints"].append(viser_shapes.draw(self.world, at, ball, palette.JOINT))
            self.layers["names"].append(self.world.add_label(f"{path}/name", one_line(body), font_screen_scale=0.75))

    def _draw_slides(self) -> list[tuple[SceneJoint, Any]]:
        """A rod of length one for each slide, which `place` puts between its carrier and the body that slides."""
        out = []
        for joint in self.scene.joints:
            if joint.kind in ("prismatic", "cylindrical", "helical"):
                color = viser_shapes.rgb(self.scene.bodies[joint.body].color)
                rod = self.world.add_cylinder(
                    f"/slides/{joint.body}", 0.008 * self.scene.size, 1.0, color, visible=False
                )
                self.layers["bodies"].append(rod)
                out.append((joint, rod))
        return out

    def _place_slides(self, poses: np.ndarray) -> None:
        for joint, rod in self._slides:
            start = (poses[joint.parent] @ matrix(joint.placement))[:3, 3]
            way = poses[joint.body][:3, 3] - start
            length = max(float(np.linalg.norm(way)), 1e-3 * self.scene.size)
            x, y, z = (way / length).tolist()
            turn = np.array(toward((x, y, z)).matrix()) if np.any(way) else np.eye(3)
            rod.wxyz, rod.position = viser_shapes.quaternions(turn[None])[0], start + 0.5 * way
            rod.scale = (1.0, 1.0, length)

    def _draw_frames(self) -> None:
        length = 0.12 * self.scene.size
        thin = {"axes_length": length, "axes_radius": 0.035 * length}
        own = [path for path, b in zip(self.paths, self.scene.bodies, strict=True) if b.segment_of is None]
        for path in own:
            self.layers["frames"].append(self.world.add_frame(f"{path}/axes", **thin))
        for k, frame in enumerate(self.scene.frames):
            turn, place = viser_shapes.placed(frame.placement)
            at = f"{self.paths[frame.body]}/frame{k}"
            handle = self.world.add_frame(at, wxyz=turn, position=place, **thin)
            self.layers["frames"].append(handle)

    def _draw_closures(self) -> list[tuple[Any, Any]]:
        """A mark on both bodies of each closure; the marks coincide when it is closed."""
        marks = []
        self._places_b = [c.placement_b for c in self.scene.closures]
        for k, c in enumerate(self.scene.closures):
            pair = []
            for side, body, placement in (("a", c.a, c.placement_a), ("b", c.b, c.placement_b)):
                shape = viser_shapes.closure(c.axis, placement, 1.3 * c.mark, side == "a")
                name = f"{self.paths[body]}/closure{k}{side}"
                pair.append(
                    viser_shapes.draw(self.world, name, shape, palette.CLOSED, opacity=0.9 if side == "a" else None)
                )
            self.layers["closures"] += pair
            marks.append((pair[0], pair[1]))
        return marks

    def _draw_disc(self, number: int, hold: SceneHold) -> Any:
        """A disc around a joint, hidden: red for its stop, green for a coupling."""
        j = self.scene.joints[hold.joint]
        radius = 1.9 * (j.mark or 0.01 * self.scene.size)
        shape = viser_shapes.pin(j.axis or (0.0, 0.0, 1.0), radius, 0.5 * radius)
        color = palette.EVENTS["impact"] if hold.is_stop else palette.CLOSED
        disc = viser_shapes.draw(self.world, f"{self.paths[j.body]}/hold{number}", shape, color)
        disc.visible = False
        return disc

    def hold(self, names: Collection[str], broken: Collection[str]) -> None:
        """Show the stops and couplings of these names as closed, and these loops as broken grasps."""
        for disc, hold in zip(self._discs, self.holds, strict=True):
            if disc.visible != (hold.name in names):
                disc.visible = hold.name in names
        for k, (c, marks) in enumerate(zip(self.scene.closures, self._closure_marks, strict=True)):
            is_broken = self.released[k] and c.name in broken
            if is_broken != self._broken[k]:
                self._broken[k] = is_broken
                marks[1].color = viser_shapes.rgb(palette.OPEN if is_broken else palette.CLOSED)
                marks[1].visible = self.shown["closures"] and (is_broken or not self.released[k])

    def _hold_closures(self, loops: Sequence[Loop | None]) -> None:
        """Hide closures that are released, and put the others where they hold."""
        for k, (marks, loop) in enumerate(zip(self._closure_marks, loops, strict=True)):
            if (loop is None) != self.released[k]:
                self.released[k] = loop is None
                for mark in marks:
                    mark.visible = self.shown["closures"] and loop is not None
            c = self.scene.closures[k]
            if loop is None or loop.placement_b == self._places_b[k]:
                continue
            self._places_b[k] = loop.placement_b
            shape = viser_shapes.closure(c.axis, loop.placement_b, 1.3 * c.mark, False)
            marks[1].wxyz, marks[1].position = viser_shapes.placed(shape.placement)

    def _color_closures(self, poses: np.ndarray, errors: Sequence[float]) -> None:
        now = [not e <= OPEN and not released for e, released in zip(errors, self.released, strict=False)]
        for k, (marks, is_open) in enumerate(zip(self._closure_marks, now, strict=False)):
            if is_open != self.open[k]:
                for mark in marks:
                    mark.color = viser_shapes.rgb(palette.OPEN if is_open else palette.CLOSED)
                self.open[k] = is_open
        gaps = [self._ends(k, poses) for k, is_open in enumerate(now) if is_open]
        if gaps:
            self._gaps.points = np.array(gaps, dtype=np.float32)
        if self._gaps.visible != bool(gaps):
            self._gaps.visible = bool(gaps)

    def _ends(self, k: int, poses: np.ndarray) -> np.ndarray:
        """Positions (2, 3) [m] of closure k on its two bodies."""
        c = self.scene.closures[k]
        b = poses[c.b] @ matrix(self._places_b[k])
        return np.array([(poses[c.a] @ matrix(c.placement_a))[:3, 3], b[:3, 3]])


@dataclass(frozen=True)
class ForceArrows:
    """Points (n, 3) [m] and forces (n, 3) [N] in world axes: of joints on their child, of loops on their body b."""

    joints: tuple[np.ndarray, np.ndarray]
    closures: tuple[np.ndarray, np.ndarray]

    @property
    def largest(self) -> float:
        """The largest force [N]."""
        sizes = [np.linalg.norm(f, axis=1).max(initial=0.0) for _, f in (self.joints, self.closures)]
        return float(max(sizes))


def force_arrows(
    scene: Scene, poses: np.ndarray, reactions: Mapping[str, np.ndarray], loops: Sequence[Loop | None]
) -> ForceArrows:
    """Forces of joints and loops at poses (n_bodies + 1, 4, 4). reactions: [torque; force] (6,) by name.

    loops: for each closure the loop as it holds, None for one that is released.
    """
    joints = [(poses[j.body][:3, 3], reactions[j.name][3:]) for j in scene.joints if j.name in reactions]
    closures = [
        ((poses[c.b] @ matrix(x.placement_b))[:3, 3], reactions[c.name][3:])
        for c, x in zip(scene.closures, loops, strict=True)
        if x is not None and c.name in reactions
    ]
    return ForceArrows(_stacked(joints), _stacked(closures))


def _stacked(pairs) -> tuple[np.ndarray, np.ndarray]:
    if not pairs:
        return np.zeros((0, 3)), np.zeros((0, 3))
    points, forces = zip(*pairs, strict=True)
    return np.array(points), np.array(forces)
