"""Calls for linear models of a mechanism: about a state or a motion, and modes about an equilibrium."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from spanloop.compiler.runtime.nan_rows import OneWarning
from spanloop.dynamics.derivative_calls import DerivativeCalls
from spanloop.dynamics.kernel_calls import ByName
from spanloop.loops.independent_dofs import Dofs

if TYPE_CHECKING:
    from spanloop.linear.linear_model import LinearModel
    from spanloop.linear.modes import Modes
    from spanloop.linear.output_rows import Output


class LinearCalls(DerivativeCalls):
    """Linear models about states, loops included."""

    def linearize(
        self,
        q: ArrayLike,
        v: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        *,
        inputs: str | Sequence[str] | None = None,
        outputs: Output | Sequence[Output] | None = None,
        dofs: Dofs = None,
        forces: ByName | None = None,
        active_loops: Iterable[str] | None = None,
        tolerance: float = 1e-6,
    ) -> LinearModel:
        """Return the linear model ẋ = A x + B u, y = C x + D u about a state; docs/linear.md explains it.

        The states x are the displacements of the independent DoF, in joint rates, then their rates; with loops the
        other joints follow. u and y are deviations from the operating point. Batches of operating points have batch
        axes first: A (..., k, k).

        v: by default at rest. tau: at rest by default the least torques of the actuated joints, and of joints that are
        inputs, that hold the mechanism, or leave the least acceleration; in motion 0. print(linear) tells whether it
        is an equilibrium. tolerance [rad, or of the mechanism's length]: how far away one may be, as of modes.

        inputs: names of joints or DoF (their torques), or loads at frames along world axes: "tool.force.x",
        "tool.torque" (all three). By default the actuated and the driven joints; the input of a driven joint is its
        acceleration.

        outputs: names of joints or DoF ("elbow", "elbow.v", "elbow.a": position, rate, acceleration), of frames in
        world axes ("tool.x", "tool.rotation.z", "tool.velocity", "tool.angular_velocity.x", "tool.acceleration",
        "tool.angular_acceleration"), "center_of_mass.z", "closing.force.x" or
        ".torque" of a loop on its body b, or functions (q, v) -> numbers in NumPy, also as
        {"name": function}. By default the states.

        dofs, forces, active_loops: as of other calls; see help(Dynamics). Computed in double precision, whatever the
        dtype.

        StateError: a loop is open, v opens one, or the position is singular. UnsupportedError: a loop constrains
        velocities alone, or a general joint moves.

        >>> robot = sl.Dynamics(sl.zoo.four_bar())
        >>> linear = robot.linearize(sl.zoo.four_bar_start(), inputs=["crank_hinge"], outputs=["rocker_hinge"])
        >>> linear.A.shape, linear.states, linear.C.shape
        ((2, 2), ('crank_hinge', 'crank_hinge.v'), (1, 2))
        """
        from spanloop.linear.linearization import linearize

        robot: Any = self
        names = robot._active("linearize", active_loops)
        robot = in_double_precision(robot._with_active_loops(names))
        extra = robot._loop_inputs(None, None) if robot._has_loop_inputs else ()
        with OneWarning("linearize"):
            return linearize(robot, q, v, tau, inputs, outputs, dofs, forces, extra, tolerance)

    def modes(
        self,
        q: ArrayLike,
        tau: ArrayLike | None = None,
        *,
        dofs: Dofs = None,
        active_loops: Iterable[str] | None = None,
        tolerance: float = 1e-6,
    ) -> Modes:
        """Return natural frequencies, damping and shapes of the small motions about an equilibrium q (nq,).

        `.frequencies` (k,) [Hz], `.damping_ratios` (k,), `.kinds` (k,): "oscillation", "decay", "unstable", "rigid";
        `.shapes` (nv, k) has all joints, those that loops make dependent included. print(modes) is a table,
        modes.page("modes.html") writes the animated shapes, help(type(modes)) explains all of it.

        Gravity, springs, damping and armatures count, and constraint forces of loops as they turn with the mechanism;
        Coulomb friction, contacts, limits and forces of sl.forces do not. Driven joints stand still.

        tau (nv,): constant torques; by default the least ones of actuated joints that hold the state. dofs: independent
        DoF, by default those that are best at q; frequencies do not depend on the choice. tolerance [rad, or of the
        mechanism's length]: how far away the equilibrium may be. Computed in double precision, whatever the dtype.
        Flexible bodies rest at robot.static_deflection(q).

        StateError: q is no equilibrium, a loop is open, or the loops are in a singular configuration.

        >>> robot = sl.Dynamics(sl.zoo.pendulum(2))
        >>> print(robot.modes([0.0, 0.0]).frequencies.round(4))
        [0.4266 1.1441]
        """
        from spanloop.linear.modes import modes

        robot: Any = self
        robot = in_double_precision(robot._with_active_loops(robot._active("modes", active_loops)))
        return modes(robot, q, tau, dofs, tolerance)


def in_double_precision(robot: Any) -> Any:
    """The robot, or one with its options in float64."""
    if robot._options["dtype"] == "float64":
        return robot
    return type(robot)(robot.model, method=robot.method, **{**robot._options, "dtype": "float64"})
