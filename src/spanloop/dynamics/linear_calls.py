"""Calls for linear models of a mechanism: modes about an equilibrium."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from spanloop.dynamics.derivative_calls import DerivativeCalls
from spanloop.loops.independent_dofs import Dofs

if TYPE_CHECKING:
    from spanloop.linear.modes import Modes


class LinearCalls(DerivativeCalls):
    """Linear models about states, loops included."""

    def modes(
        self,
        q: ArrayLike,
        tau: ArrayLike | None = None,
        *,
        dofs: Dofs = None,
        active_loops: Iterable[str] | None = None,
        tolerance: float | None = None,
    ) -> Modes:
        """Return natural frequencies, damping and shapes of the small motions about an equilibrium q (nq,).

        `.frequencies` (k,) [Hz], `.damping_ratios` (k,), `.kinds` (k,): "oscillation", "decay", "unstable", "rigid";
        `.shapes` (nv, k) has all joints, those that loops make dependent included. print(modes) is a table,
        modes.page("modes.html") writes the animated shapes, help(type(modes)) explains all of it.

        Gravity, springs, damping and armatures count, and constraint forces of loops as they turn with the mechanism;
        Coulomb friction, contacts, limits and forces of sl.forces do not. Driven joints stand still.

        tau (nv,): constant torques; by default the least ones of actuated joints that hold the state. dofs: independent
        DoF, by default those that are best at q; frequencies do not depend on the choice. tolerance [rad, or of the
        mechanism's length]: how far away the equilibrium may be, 1e-6 by default, in float32 1e-3.

        StateError: q is no equilibrium, a loop is open, or the loops are in a singular configuration.

        >>> robot = sl.Dynamics(sl.zoo.pendulum(2))
        >>> print(robot.modes([0.0, 0.0]).frequencies.round(4))
        [0.4266 1.1441]
        """
        from spanloop.linear.modes import modes

        robot: Any = self
        return modes(robot._with_active_loops(robot._active("modes", active_loops)), q, tau, dofs, tolerance)
