"""Inertias of an MJCF: the numbers that are written, or those that MuJoCo makes of shapes and compiler settings."""

from __future__ import annotations

import math

import numpy as np

from spanloop.math.quaternion import matrix
from spanloop.model.load.findings import Findings
from spanloop.model.parts import Inertia

AGREE = 1e-8  # of the largest number: MuJoCo's principal axes are not more exact
UPPER = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


def read_inertia(source, element, i: int, findings: Findings) -> Inertia:
    """The inertia of body i. What MuJoCo changed (balanceinertia, boundmass, settotalmass, ...) is taken and said."""
    m = source.model
    mass, center = float(m.body_mass[i]), m.body_ipos[i]
    turn = _turn(m.body_iquat[i])
    tensor = turn @ np.diag(m.body_inertia[i]) @ turn.T
    written = _written(source, element)
    if written is not None:
        if _same(written, (mass, center, tensor)):
            mass, center, tensor = written
        elif not _aligned(source, i, written, mass, tensor):
            findings.add(
                "inertias that MuJoCo's compiler changed as its settings say, read as changed",
                f"body {m.body(i).name!r} ({source.where(element)}), mass {written[0]:g} kg is now {mass:g} kg, "
                f"moments {_moments(written[2])} are now {_moments(tensor)} kg m²",
            )
    scale = np.abs(tensor).max() * 1e-15
    moments = tuple(0.0 if abs(tensor[r, c]) <= scale else float(tensor[r, c]) for r, c in UPPER)
    x, y, z = (float(c) + 0.0 for c in center)
    return Inertia(float(mass), (x, y, z), moments)  # type: ignore[arg-type]


def _written(source, element) -> tuple[float, np.ndarray, np.ndarray] | None:
    """Mass, centre and tensor in the body's axes as the file gives them; None where they come from elsewhere."""
    kinds = source.mujoco.mjtInertiaFromGeom
    if not element.explicitinertial or source.spec.compiler.inertiafromgeom == kinds.mjINERTIAFROMGEOM_TRUE:
        return None
    if not math.isnan(element.fullinertia[0]):
        xx, yy, zz, xy, xz, yz = element.fullinertia
        tensor = np.array(((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))
    elif element.ialt.type == source.mujoco.mjtOrientation.mjORIENTATION_QUAT:
        length = np.linalg.norm(element.iquat)
        turn = _turn(element.iquat / length)
        tensor = (
            turn @ np.diag(element.inertia) @ turn.T if abs(element.iquat[0]) < length else np.diag(element.inertia)
        )
    else:
        return None
    return float(element.mass), np.array(element.ipos), tensor


def _turn(quaternion: np.ndarray) -> np.ndarray:
    w, x, y, z = quaternion.tolist()
    return np.array(matrix((w, x, y, z)), dtype=float)


def _same(a, b) -> bool:
    return all(np.abs(np.subtract(x, y)).max() <= AGREE * np.abs(y).max() + 1e-300 for x, y in zip(a, b, strict=True))


def _aligned(source, i: int, written, mass: float, tensor: np.ndarray) -> bool:
    """Has MuJoCo only put the frame of a free body into its principal axes (align)?"""
    m = source.model
    free = m.body_jntnum[i] == 1 and m.jnt_type[m.body_jntadr[i]] == 0
    principal = np.linalg.eigvalsh(written[2]), np.linalg.eigvalsh(tensor)
    return bool(free and _same((written[0], principal[0]), (mass, principal[1])))


def _moments(tensor: np.ndarray) -> str:
    return ", ".join(f"{x:.4g}" for x in np.linalg.eigvalsh(tensor))
