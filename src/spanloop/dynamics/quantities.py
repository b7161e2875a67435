"""Quantities of a state: energy, momentum, centre of mass, motion of frames, manipulability, workspace."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from spanloop.compiler.runtime.arrays import converted
from spanloop.compiler.runtime.nan_rows import OneWarning
from spanloop.contacts.contact_problem import ContactProblem
from spanloop.dynamics import contact_calls, manipulability, workspace
from spanloop.dynamics.contact_calls import ContactGeometry
from spanloop.dynamics.contact_solution import ContactSolution, contact_solution
from spanloop.dynamics.kernel_calls import ByName
from spanloop.dynamics.linear_calls import LinearCalls
from spanloop.dynamics.manipulability import Manipulability
from spanloop.dynamics.strain import mode_energies
from spanloop.dynamics.workspace import Workspace
from spanloop.errors import InputError
from spanloop.model.flexible_bodies.pieces import mode_joints
from spanloop.types import Array


class Quantities(LinearCalls):
    """Calls for quantities that follow from a state, of trees and of mechanisms with loops alike."""

    # ---- the whole mechanism

    def energy(self, q: ArrayLike, v: ArrayLike, *, out: Array | None = None) -> Array:
        """Return the kinetic and the potential energy (..., 2) [J]."""
        return self._plain("energy", (q, v), out)

    def strain_energy(self, q: ArrayLike) -> dict[str, Array]:
        """Return the strain energy (...) of each flexible body by name [J]; a part of the potential energy.

        >>> beam = sl.flexible.beam(2.0, E=7e10, density=2700.0, section=sl.flexible.circle(0.02), modes=1)
        >>> model = sl.Builder("boom").body("boom", flexible=beam).revolute("hinge", "world", "boom", "y").build()
        >>> q = np.zeros(model.nq)
        >>> q[model.q_slice("boom.modes")][0] = 0.01
        >>> stiffness = model.joint("boom.modes").stiffness[0]
        >>> bool(np.isclose(sl.Dynamics(model).strain_energy(q)["boom"], 0.5 * stiffness * 0.01**2))
        True
        """
        rows = converted("strain_energy", "q", self.model.nq, q, np.dtype(float))
        return {
            name: np.asarray(sum(mode_energies(self.model, j.name, rows).sum(axis=-1) for j in joints))
            for name, joints in mode_joints(self.model).items()
        }

    def momentum(self, q: ArrayLike, v: ArrayLike, *, out: Array | None = None) -> Array:
        """Return the [angular; linear] momentum (..., 6) about the centre of mass in world axes [N m s, N s]."""
        return self._plain("momentum", (q, v), out)

    def center_of_mass(self, q: ArrayLike, *, out: Array | None = None) -> Array:
        """Return the centre of mass (..., 3) of all moving bodies in the world [m]."""
        return self._plain("center_of_mass", (q,), out)

    def center_of_mass_jacobian(self, q: ArrayLike, *, out: Array | None = None) -> Array:
        """Return J (..., 3, nv) with J v the velocity of the centre of mass in world axes.

        >>> robot = sl.Dynamics(sl.zoo.quadruped())
        >>> q, v = robot.model.random_state(seed=1)
        >>> mass = sum(b.inertia.mass for b in robot.model.bodies)
        >>> bool(np.allclose(mass * robot.center_of_mass_jacobian(q) @ v, robot.momentum(q, v)[3:]))
        True
        """
        return self._plain("center_of_mass_jacobian", (q,), out)

    def centroidal_momentum_matrix(self, q: ArrayLike, *, out: Array | None = None) -> Array:
        """Return A (..., 6, nv) with A v the [angular; linear] momentum about the centre of mass in world axes.

        Armatures have no part in it.

        >>> robot = sl.Dynamics(sl.zoo.quadruped())
        >>> q, v = robot.model.random_state(seed=1)
        >>> bool(np.allclose(robot.centroidal_momentum_matrix(q) @ v, robot.momentum(q, v)))
        True
        """
        return self._plain("centroidal_momentum_matrix", (q,), out)

    def centroidal_momentum_bias(self, q: ArrayLike, v: ArrayLike, *, out: Array | None = None) -> Array:
        """Return Ȧ v (..., 6): the rate of the momentum about the centre of mass at a = 0, in general A a + Ȧ v."""
        return self._plain("centroidal_momentum_bias", (q, v), out)

    def regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, out: Array | None = None) -> Array:
        """Return Y (..., nv, 10 n_bodies): torques of inertia and weight are Y φ, φ the inertial parameters of bodies.

        model.inertial_parameters() has φ and its names: of each body mass, first moments and moments of inertia about
        its origin; model.with_inertial_parameters(φ) is the way back. The torques of inverse_dynamics are Y φ and those
        of armatures, dampers, springs and external forces, which Y leaves out. With loops Y is of the spanning tree:
        Y φ is what actuators and loops supply together, and with T = robot.velocity_map(q) the forces of the loops drop
        out of Tᵀ Y φ = Tᵀ tau.

        >>> robot = sl.Dynamics(sl.zoo.puma())
        >>> q, v = robot.model.random_state(seed=1)
        >>> Y, phi = robot.regressor(q, v, v), robot.model.inertial_parameters()
        >>> Y.shape, bool(np.allclose(Y @ phi.values, robot.inverse_dynamics(q, v, v)))
        ((6, 60), True)
        """
        return self._plain("regressor", (q, v, a), out)

    # ---- contacts

    def contact_geometry(self, q: ArrayLike, v: ArrayLike | None = None) -> ContactGeometry:
        """Return gaps, positions and normals of all contact points, and with v how the two sides move on each other.

        q (..., nq), v (..., nv). `.gap` (..., n) [m] is negative where shapes overlap, `.normal` (..., n, 3) points
        from side b to side a, `.slip` (..., n, 3) [m/s] is the velocity of a relative to the surface of b, all in world
        axes; `.names` (n) are those of the points (docs/contacts.md).

        InputError: the model has no contacts.

        >>> ball = ("fl_shank", sl.contacts.Sphere(0.02, position=(0, 0, -0.2)))
        >>> robot = sl.Dynamics(sl.zoo.quadruped().with_contact("foot", ball, "ground"))
        >>> found = robot.contact_geometry(robot.model.neutral())
        >>> found.names, found.gap.shape, found.normal[0].tolist()
        (('foot',), (1,), [0.0, 0.0, 1.0])
        """
        names = tuple(name for c in self.model.contacts for name in c.point_names)
        return contact_calls.contact_geometry(self._kernel, names, q, v)

    def delassus(self, q: ArrayLike, *, active_loops: Iterable[str] | None = None) -> Array:
        """Return the Delassus matrix W (..., 3 n, 3 n) of the n contact points, loops closed [1/kg].

        W f is the change of their velocities along (n, t1, t2) due to impulses f along them, side a against side b.
        With torsion or rolling in the model it is (..., 6 n, 6 n): three more for turning about the same axes.

        InputError: the model has no contacts. StateError: a quaternion is off unit length; NaN rows in a batch.
        """
        self._refuse_without_contacts("delassus")
        rows = converted("delassus", "q", self.model.nq, q, np.dtype(float))
        with OneWarning("delassus"):
            refused = np.isnan(self._kernel("contact_geometry")(rows)[..., 0, 0])
        mask = self._row_mask_of(active_loops) if self._contact_problem.mechanics.given else None
        W = self._contact_problem.delassus(np.ascontiguousarray(rows.reshape(-1, self.model.nq)), mask)
        W[refused.reshape(-1)] = np.nan
        return W.reshape(*rows.shape[:-1], *W.shape[1:])

    def contact_solution(
        self,
        q: ArrayLike,
        v: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        *,
        forces: ByName | None = None,
        active_loops: Iterable[str] | None = None,
    ) -> ContactSolution:
        """Return contact forces and accelerations in a state: `.force` (..., n, 3), `.acceleration` (..., nv) and more.

        A point is closed where its gap is at most 1e-6 m and does not open. v, tau: zero by default. Forces that
        redundant points share in more than one way are marked in `.unique`; `.jams` marks points whose friction presses
        them into the surface. help(type(solution)) explains all of it; print(solution) shows it.

        StateError: a point closes with a velocity (an impact), or no finite force answers.

        >>> ball = sl.Builder("ball").body("ball", 1.0, inertia=[0.004] * 3).free("root", "world", "ball").build()
        >>> ball = ball.with_contact("ball", ("ball", sl.contacts.Sphere(0.1)), "ground", friction=0.5)
        >>> print(sl.Dynamics(ball).contact_solution([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1]).force.round(6) + 0.0)
        [[0.   0.   9.81]]
        """
        self._refuse_without_contacts("contact_solution")
        return contact_solution(self, self._contact_problem, q, v, tau, forces, active_loops)  # type: ignore[arg-type]

    @functools.cached_property
    def _contact_problem(self) -> ContactProblem:
        return ContactProblem(self.model, self.on_singular)

    def _refuse_without_contacts(self, function: str) -> None:
        if not self.model.contacts:
            raise InputError(f"{function}: model {self.model.name!r} has no contacts; see model.with_contact")

    # ---- frames

    def frame_velocity(
        self, q: ArrayLike, v: ArrayLike, frame: str, *, expressed_in: str = "world", out: Array | None = None
    ) -> Array:
        """Return the [angular; linear] velocity (..., 6) of a frame's origin [rad/s, m/s].

        expressed_in: the frame or body whose axes are used; "world" by default, the frame itself for local axes.
        """
        return self._call(self._kernel("frame_velocity", frame=frame, expressed_in=expressed_in), (q, v), out)

    def frame_acceleration(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        frame: str,
        *,
        expressed_in: str = "world",
        spatial: bool = False,
        out: Array | None = None,
    ) -> Array:
        """Return the [angular; linear] acceleration (..., 6) of a frame's origin [rad/s², m/s²].

        The linear part is classical, the second derivative of the origin's position; an accelerometer adds gravity.
        spatial=True: the spatial acceleration instead, whose linear part is the classical one less ω × velocity.

        expressed_in: the frame or body whose axes are used; "world" by default, the frame itself for local axes.

        >>> robot = sl.Dynamics(sl.zoo.pendulum(1))
        >>> q, v, a = [0.3], [2.0], [0.0]
        >>> J, bias = robot.jacobian(q, "tip"), robot.jacobian_bias(q, v, "tip")
        >>> bool(np.allclose(robot.frame_acceleration(q, v, a, "tip"), J @ a + bias))
        True
        """
        function = "frame_spatial_acceleration" if spatial else "frame_acceleration"
        return self._call(self._kernel(function, frame=frame, expressed_in=expressed_in), (q, v, a), out)

    def manipulability(
        self,
        q: ArrayLike,
        frame: str,
        part: str = "linear",
        *,
        axes: str = "xyz",
        actuated: Sequence[str] | None = None,
    ) -> Manipulability:
        """Return the ellipsoid of velocities of a frame for rates of the actuated joints of length 1.

        `.measure` is Yoshikawa's √det(J Jᵀ), `.lengths` and `.directions` are the semi-axes, with batch axes first.
        With loops, the passive joints follow the actuated ones.

        part: "linear" or "angular". axes: some of "xyz", axes of the world; name two of them for a planar mechanism,
        which is singular in space. actuated: names of joints or DoF; by default model.actuated and the driven joints.

        StateError: a loop is open, or the frame moves while all actuated joints stand still.

        >>> robot = sl.Dynamics(sl.zoo.pendulum(2))
        >>> found = robot.manipulability([0.3, np.pi / 2], "tip", axes="xz")
        >>> found.measure.round(6), found.lengths.shape
        (np.float64(1.0), (2,))
        """
        return manipulability.manipulability(self, q, frame, part, axes, actuated)

    def workspace(
        self,
        frame: str,
        samples: int = 2000,
        *,
        seed: int = 0,
        start: ArrayLike | None = None,
        fixed: str | Sequence[str] = (),
    ) -> Workspace:
        """Return positions of a frame at states drawn at random inside the joint limits, with loops closed.

        With loops, joints that determine the others are drawn, from `start` outward so that the assembly stays; states
        that cannot be closed inside the limits are left out. spanloop.view.plots.workspace draws the points.

        samples: how many states are drawn. seed: of the random numbers. start (nq,): a state near which loops are
        assembled; by default neutral, moved inside the limits. fixed: names of joints that stay as in start; the free
        joint of a tree always does. Joints without limits turn by any angle and slide by half the robot's size.

        >>> found = sl.Dynamics(sl.zoo.puma()).workspace("tool", 500)
        >>> found.points.shape
        (500, 3)
        """
        return workspace.workspace(self, frame, samples, seed, start, fixed)
