"""Writer of Denavit-Hartenberg tables: any serial arm of hinges and sliders, in the standard form.

Frames are chosen as the standard form demands: z of frame i along joint i's axis, x of frame i+1 along the common
normal of the axes i and i+1. The base takes up where the first axis is. Motion, masses and coordinates stay exactly
what they were; only the frames of the bodies differ.
"""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spanloop.errors import ModelError, UnsupportedError
from spanloop.model.exact_rotations import snap_rotation
from spanloop.model.files.dh.reader import FLAGS, OPTIONS
from spanloop.model.files.loss_report import LossReport, Written
from spanloop.model.files.split_joints import without_offsets
from spanloop.model.files.xml_writer import angles, numbers
from spanloop.model.model import Model
from spanloop.model.parts import WORLD, Frame, Joint, Placement

_PARALLEL = 1e-9  # sine of the angle between axes that count as parallel
_TOUCHING = 1e-12  # m between axes that count as meeting
_KINDS = {"revolute": "r", "prismatic": "p"}


@dataclass(frozen=True)
class Step:
    """Constants of one row: T = Rz(theta) Tz(b) Tx(a) Rx(alpha)."""

    theta: float
    b: float
    a: float
    alpha: float

    def matrix(self) -> np.ndarray:
        (st, ct), (sa, ca) = ((math.sin(x), math.cos(x)) for x in (self.theta, self.alpha))
        x = np.eye(4)
        x[:3, :3] = ((ct, -st * ca, st * sa), (st, ct * ca, -ct * sa), (0.0, sa, ca))
        x[:3, 3] = (self.a * ct, self.a * st, self.b)
        return x


def dumps(model: Model) -> Written:
    """The model as a table."""
    report = LossReport()
    model = without_offsets(_serial(model, report))
    base = _base(model.joints[0])
    here = np.linalg.inv(_matrix(model.joints[0].placement)) @ base  # frame 1 in the first body's frame
    rows = []
    for k, joint in enumerate(model.joints):
        following = model.joints[k + 1] if k + 1 < len(model.joints) else None
        step = _to_axis(here, following) if following else _to_tool(here, _tool(model, joint.child))
        link = here @ step.matrix()  # the link's frame in the body's
        rows.append(_row(model, joint, step, link))
        if following:
            here = np.linalg.inv(_matrix(following.placement)) @ link
        else:
            _frames(model, joint.child, link, report)
    return report.written(_text(model, base, rows))


def _serial(model: Model, report: LossReport) -> Model:
    """The moving bodies, in a chain; what a table cannot hold is named."""
    for what, parts in (
        ("loops", model.loops),
        ("couplings", model.couplings),
        ("actuators", model.actuators),
        ("sensors", model.sensors),
        ("contacts", model.contacts),
    ):
        for part in parts:
            report.lose(what, repr(part.name))
    for b in model.bodies:
        if b.geometry:
            report.lose("shapes", f"body {b.name!r}")
    fused = replace(model, contacts=()).fuse()
    if len(fused.bodies) < len(model.bodies):
        gone = [b.name for b in model.bodies if b.name not in {x.name for x in fused.bodies}]
        for name in gone:
            report.remark("bodies on fixed joints, which are part of their parents in a table", repr(name))
    parent = WORLD
    for j in fused.joints:
        if j.kind.name not in _KINDS:
            raise UnsupportedError(f"joint {j.name!r}: a Denavit-Hartenberg table has no {j.kind.name} joints")
        if j.parent != parent:
            raise UnsupportedError(
                f"joint {j.name!r}: it branches off at {j.parent!r}; a Denavit-Hartenberg table holds one chain"
            )
        parent = j.child
    if not fused.joints:
        raise UnsupportedError(f"model {model.name!r}: nothing moves; a Denavit-Hartenberg table has a row a joint")
    return fused


def _base(first: Joint) -> np.ndarray:
    """Frame 1 in the world: the world itself if the first axis is its z, else one on the joint."""
    kind: Any = first.kind
    at = _matrix(first.placement)
    z = at[:3, :3] @ kind.axis
    if abs(z[2] - 1.0) < 1e-15 and (kind.name == "prismatic" or np.hypot(*at[:2, 3]) < _TOUCHING):
        return np.eye(4)
    x = np.eye(4)
    x[:3, :3], x[:3, 3] = _with_z(z, at[:3, 0]), at[:3, 3]
    return x


def _with_z(z: np.ndarray, near: np.ndarray) -> np.ndarray:
    """A rotation whose third column is z and whose first is as near as can be to a direction."""
    x = near - (near @ z) * z
    if np.linalg.norm(x) < 1e-6:
        x = np.eye(3)[int(np.argmin(np.abs(z)))]
        x = x - (x @ z) * z
    x = x / np.linalg.norm(x)
    return np.array(snap_rotation(np.column_stack((x, np.cross(z, x), z)).tolist())[0])


def _to_axis(here: np.ndarray, joint: Joint) -> Step:
    """The step from a frame to one whose z is the next joint's axis and whose x is the common normal."""
    kind: Any = joint.kind
    inside = np.linalg.inv(here) @ _matrix(joint.placement)
    d, p = inside[:3, :3] @ kind.axis, inside[:3, 3]
    if math.hypot(d[0], d[1]) < _PARALLEL:  # parallel: the normal through the joint's own place
        a = math.hypot(p[0], p[1])
        theta = math.atan2(p[1], p[0]) if a > _TOUCHING else 0.0
        return Step(theta, float(p[2]), a if a > _TOUCHING else 0.0, 0.0 if d[2] > 0.0 else math.pi)
    normal = np.array((-d[1], d[0], 0.0)) / math.hypot(d[0], d[1])  # z × d
    if normal[0] < -1e-12 or (abs(normal[0]) <= 1e-12 and normal[1] < 0.0):
        normal = -normal
    a = float(p @ normal)
    along = np.linalg.solve(np.column_stack(((0.0, 0.0, 1.0), normal, -d)), p)  # b z + a n − s d = p
    alpha = math.atan2(float(np.cross((0.0, 0.0, 1.0), d) @ normal), float(d[2]))
    return Step(math.atan2(normal[1], normal[0]), float(along[0]), a if abs(a) > _TOUCHING else 0.0, alpha)


def _tool(model: Model, body: str) -> Frame | None:
    """The frame that the last row may end at."""
    found = [f for f in model.frames if f.body == body]
    return next((f for f in found if f.name == "tool"), found[0] if found else None)


def _to_tool(here: np.ndarray, tool: Frame | None) -> Step:
    """The step to the tool's frame, if one step can reach it; else none."""
    if tool is None:
        return Step(0.0, 0.0, 0.0, 0.0)
    x = np.linalg.inv(here) @ _matrix(tool.placement)
    theta = math.atan2(x[1, 0], x[0, 0])
    step = Step(
        theta, float(x[2, 3]), float(x[:2, 3] @ (math.cos(theta), math.sin(theta))), math.atan2(x[2, 1], x[2, 2])
    )
    return step if np.abs(step.matrix() - x).max() < 1e-12 else Step(0.0, 0.0, 0.0, 0.0)


def _frames(model: Model, last: str, link: np.ndarray, report: LossReport) -> None:
    for f in model.frames:
        reached = f.body == last and np.abs(_matrix(f.placement) - link).max() < 1e-12
        if not (reached and f.name == "tool"):
            report.lose("frames", repr(f.name))


def _row(model: Model, j: Joint, step: Step, link: np.ndarray) -> dict[str, str]:
    i = model.body(j.child).inertia
    turn = link[:3, :3]
    center = turn.T @ (np.array(i.center) - link[:3, 3])
    m = turn.T @ np.array(i.matrix()) @ turn
    for name in (j.name, j.child):
        if name != " ".join(name.split()):
            raise ModelError(f"{name!r}: a cell of a table cannot hold such spaces; rename it")
    row = {"joint": _KINDS[j.kind.name], "name": j.name, "body": j.child}
    row |= {k: _plain(getattr(step, k)) for k in ("a", "b", "alpha", "theta")}
    row |= {"mass": numbers(i.mass), **{f"c{k}": _plain(x) for k, x in zip("xyz", center, strict=True)}}
    six = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
    scale = np.abs(m).max()
    row |= {f"i{'xyz'[r]}{'xyz'[c]}": _plain(m[r, c] if abs(m[r, c]) > 1e-15 * scale else 0.0) for r, c in six}
    for name in OPTIONS:
        value = getattr(j, name)
        row[name] = "" if value is None or (value == (0.0,) and name not in ("lower", "upper")) else repr(value[0])
    return row | {name: str(getattr(j, name)).lower() for name in FLAGS}


def _plain(x: float) -> str:
    return numbers(0.0 if abs(x) < 1e-16 else x)


def _text(model: Model, base: np.ndarray, rows: list[dict[str, str]]) -> str:
    out = io.StringIO()
    for note in model.notes:
        out.write("# " + " ".join(note.replace(":", " ").split()) + "\n")
    out.write(f"# name: {' '.join(model.name.split())}\n# convention: standard\n# about: center\n")
    out.write(f"# gravity: {numbers(*model.gravity)}\n")
    if not np.array_equal(base, np.eye(4)):
        turn: Any = tuple(map(tuple, base[:3, :3].tolist()))
        out.write(f"# base position: {numbers(*base[:3, 3])}\n# base rotation: {numbers(*angles(turn))}\n")
    columns = [c for c in rows[0] if c not in (*OPTIONS, *FLAGS) or any(r[c] != _usual(c) for r in rows)]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([[row[c] for c in columns] for row in rows])
    return out.getvalue()


def _usual(column: str) -> str:
    return {"driven": "false", "actuated": "true"}.get(column, "")


def _matrix(p: Placement) -> np.ndarray:
    x = np.eye(4)
    x[:3, :3], x[:3, 3] = p.rotation, p.position
    return x
