"""Bodies from finite elements that bend far, and what a page draws of their surfaces, worked out in NumPy."""

from __future__ import annotations

import base64

import numpy as np
from solid_elements import Solid, bar

import spanloop as sl
from spanloop.math import quaternion
from spanloop.trajectory import EndReason, Outcome, Segment, Trajectory
from spanloop.view.moving_scene import moving_scene
from spanloop.view.page.bending import bending
from spanloop.view.page.data import picture

LENGTH = 0.5
SOFT = {"E": 2e7, "nu": 0.3, "rho": 1000.0}


class SoftBar:
    """A soft bar of tetrahedra, its surface, and bodies from it."""

    def __init__(self, counts=(12, 2, 2)):
        self.solid = Solid(bar(LENGTH, counts=counts), SOFT)
        mesh = self.solid.basis.mesh
        outside = mesh.boundary_facets()
        corner = {tuple(x): k for k, x in enumerate(self.solid.positions.round(9))}
        number = np.array([corner[tuple(x)] for x in mesh.p.T.round(9)])
        self.triangles = number[mesh.facets[:, outside].T]
        a, b, c = np.moveaxis(self.solid.positions[self.triangles], 1, 0)
        inside = mesh.p[:, mesh.t[:, mesh.f2t[0, outside]]].mean(axis=1).T
        inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), a - inside) < 0.0
        self.triangles[inward] = self.triangles[inward][:, ::-1]
        self.root, self.tip = self.solid.at(0.0), self.solid.at(LENGTH)

    def body(self, modes=2, stiffening=False, **options):
        """The bar with its root and tip as interfaces."""
        s = self.solid
        given = s.differential_stiffness if stiffening else None
        return sl.flexible.from_matrices(
            s.mass, s.stiffness, s.positions, dofs=s.dofs, modes=modes, surface=self.triangles, stiffening=given,
            interfaces={"root": self.root, "tip": self.tip}, damping=0.05, any_spin=True, **options,
        )  # fmt: skip


def hinged(part, load=0.02):
    """The bar on a hinge, with a load at its tip."""
    b = sl.Builder("arm").body("bar", flexible=part).body("load", load, inertia=(1e-5,) * 3)
    return b.revolute("hinge", "world", "bar", "y", (0.1, 0.2, 0.3)).fixed("grip", "bar.tip", "load").build()


def under_a_force(part, shift):
    """The coordinates with which a force at the tip moves it by a shift (3,) [m]."""
    softness = part.shifts[0] / part.stiffness[:, None]
    return softness @ np.linalg.solve(part.shifts[0].T @ softness, shift)


def still_run(model, rows):
    """States q (n, nq) as a run of a sample every 20 ms."""
    rows = np.atleast_2d(rows)
    zero = np.zeros((len(rows), model.nv))
    segment = Segment(0.02 * np.arange(len(rows)), rows, zero, zero)
    end = Outcome(EndReason.FINISHED, "A motion of a test.", float(segment.times[-1]))
    return Trajectory(model, (segment,), (end,), {})


def pictured(run):
    """The picture of a run as a page has it, and the notes on its surfaces."""
    moved = moving_scene(run)
    found = bending(moved)
    return {**picture(moved, run.times, found), "notes": list(found.notes)}


def numbers(text, kind):
    return np.frombuffer(base64.b64decode(text), kind).astype(float if kind != "<u4" else np.int64)


def surface_body(data):
    """The number of the first surface among the bodies of a page."""
    return next(k for k, b in enumerate(data["bodies"]) if "eta" in b)


class PageSurface:
    """What the data of a page say about the surface of body k: `corners` are those of its triangles, in their order."""

    def __init__(self, data, k=None):
        self.k = surface_body(data) if k is None else k
        own = data["bodies"][self.k]
        mesh = data["meshes"][own["shapes"][0]["mesh"]]
        low, high = np.array(mesh["low"]), np.array(mesh["high"])
        self.rest = low + (high - low) * numbers(mesh["corners"], "<u2").reshape(-1, 3) / 65535.0
        self.faces = numbers(mesh["faces"], "<u4" if mesh["wide"] else "<u2").astype(int).reshape(-1, 3)
        self.count = len(mesh["steps"])
        steps = numbers(mesh["movement"], "<i2").reshape(-1, self.count, 3)
        self.shapes = steps * np.array(mesh["steps"])[:, None]
        self.eta = numbers(own["eta"], "<f4").reshape(-1, own["modes"])
        self.mix = numbers(mesh["mix"], "<f4").reshape(self.count, -1) if "mix" in mesh else np.eye(self.count)
        poses = numbers(data["poses"], "<f4").reshape(-1, len(data["bodies"]), 7)[:, self.k]
        self.turns, self.places = [np.array(quaternion.matrix(tuple(p[:4]))) for p in poses], poses[:, 4:]

    def vertices(self, sample, eta=None):
        """Vertices (n, 3) in the world at a sample of the run."""
        amounts = self.mix @ (self.eta[sample] if eta is None else eta)
        local = self.rest + np.einsum("vka,k->va", self.shapes, amounts)
        return local @ self.turns[sample].T + self.places[sample]
