"""Contacts as MuJoCo's own collision detection finds them, when every pair of shapes counts as near."""

from __future__ import annotations

import mujoco

NEAR = 1e3  # m: the margin at which shapes touch, wherever they are
SHAPES = {2: "sphere", 3: "capsule", 4: "ellipsoid", 5: "cylinder", 6: "box", 0: "plane", 7: "mesh", 1: "hfield"}


def colliding(m: mujoco.MjModel) -> dict[frozenset[int], tuple[float, float, float]]:
    """By the two geoms' numbers: friction, torsion and rolling of each pair that MuJoCo collides."""
    m.geom_margin[:], m.pair_margin[:] = NEAR, NEAR
    m.body_margin[:] = NEAR
    m.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_MIDPHASE)
    m.geom_gap[:], m.pair_gap[:] = 0.0, 0.0
    d = mujoco.MjData(m)
    mujoco.mj_kinematics(m, d)
    mujoco.mj_collision(m, d)
    found = {}
    for c in d.contact:
        slide, spin, roll = (float(c.friction[k]) if c.dim >= least else 0.0 for k, least in ((0, 3), (2, 4), (3, 6)))
        found[frozenset((int(c.geom[0]), int(c.geom[1])))] = (slide, spin, roll)
    return found


def shape(m: mujoco.MjModel, g: int) -> tuple[str, str]:
    """The body and the kind of a geom."""
    return m.body(int(m.geom_bodyid[g])).name, SHAPES.get(int(m.geom_type[g]), "other")
