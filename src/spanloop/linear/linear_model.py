"""`LinearModel`: a mechanism near an operating point as ẋ = A x + B u, y = C x + D u, with names.

    symbol   shape     meaning
    x        (k,)      states: displacements of the n independent DoF from the operating point, then their rates
    u        (m,)      inputs: torques and forces beyond those of the operating point
    y        (p,)      outputs: deviations of what was asked for

Displacements of quaternions and of planar joints are in joint rates (the child's axes), as v is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.errors import InputError
from spanloop.linear import linear_report, reduction, regulator, responses
from spanloop.linear.operating_point import OperatingPoint
from spanloop.linear.optional_packages import optional
from spanloop.linear.regulator import Regulator, Weights

BATCHED = ("A", "B", "C", "D", "drift", "mass")


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear model ẋ = A x + B u, y = C x + D u; robot.linearize makes one.

    A (..., k, k), B (..., k, m), C (..., p, k), D (..., p, m): batch axes of the operating points come first, and
    linear[3] is the model of one of them.

    states, inputs, outputs: names; state_units, input_units, output_units: their units.

    drift (..., k): the rates (v, a) of the states at the operating point itself; 0 in an equilibrium. x is the
    deviation from the motion through the operating point; measured from the point itself, ẋ = A x + B u + drift.

    point: the operating point, q, v, tau and the acceleration a there; None of a model that is not made from a robot.

    mass (..., n, n): the inertia of the independent DoF, for the default weights of lqr. step: of a model in discrete
    time x⁺ = A x + B u [s], else None. error_bound: of a reduced model, the largest gain from u to the error of y at
    any frequency; 0 of others.
    """

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    state_units: tuple[str, ...]
    input_units: tuple[str, ...]
    output_units: tuple[str, ...]
    drift: np.ndarray
    point: OperatingPoint | None = None
    mass: np.ndarray | None = None
    step: float | None = None
    error_bound: float = 0.0
    name: str = "linear model"
    notes: tuple[str, ...] = ()

    # ---- batches

    @property
    def batch(self) -> tuple[int, ...]:
        """The batch axes: () for one operating point."""
        return self.A.shape[:-2]

    def __len__(self) -> int:
        if not self.batch:
            raise TypeError("a linear model of one operating point has no len()")
        return self.batch[0]

    def __iter__(self) -> Iterator[LinearModel]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, which: Any) -> LinearModel:
        """The models of some operating points of a batch."""
        if not self.batch:
            raise InputError("linear[...]: this model has one operating point; there is nothing to choose from")
        try:
            chosen = np.unravel_index(np.arange(math.prod(self.batch)).reshape(self.batch)[which], self.batch)
        except (IndexError, TypeError, ValueError) as error:
            raise InputError(
                f"linear[{which!r}]: there is no such part of the batch of operating points {self.batch} ({error})"
            ) from None
        parts: dict[str, Any] = {key: None if (x := getattr(self, key)) is None else x[chosen] for key in BATCHED}
        return replace(self, **parts, point=self.point and self.point[chosen])

    # ---- properties

    @property
    def poles(self) -> np.ndarray:
        """The eigenvalues of A (..., k) [1/s], slowest first; of a model in discrete time those of x⁺ = A x."""
        return responses.poles(self)

    @property
    def is_stable(self) -> np.ndarray | bool:
        """Whether every pole is left of the imaginary axis (inside the unit circle), by more than rounding."""
        found = responses.is_stable(self)
        return found if self.batch else bool(found)

    @property
    def uncontrollable_modes(self) -> tuple[complex, ...]:
        """Poles of modes that no input changes, each once; () if all can be controlled. For one operating point."""
        return regulator.hidden_modes(self._one("uncontrollable_modes"), "inputs")

    @property
    def unobservable_modes(self) -> tuple[complex, ...]:
        """Poles of modes that no output shows, each once; () if all can be observed. For one operating point."""
        return regulator.hidden_modes(self._one("unobservable_modes"), "outputs")

    # ---- responses

    def frequency_response(self, frequencies: ArrayLike) -> np.ndarray:
        """Return the transfer matrix C (jω − A)⁻¹ B + D (..., n, p, m) at angular frequencies ω (n,) [rad/s].

        One frequency gives (..., p, m). An entry is inf where rounding cannot tell jω from one of its poles; a pole
        that its input does not reach or its output does not show leaves it finite. In discrete time z = exp(jω step).

        >>> robot = sl.Dynamics(sl.zoo.pendulum(1))
        >>> linear = robot.linearize([0.0])
        >>> linear.frequency_response([0.1, 1.0]).shape
        (2, 2, 1)
        """
        return responses.frequency_response(self, frequencies)

    def simulate(self, times: ArrayLike, u: ArrayLike | None = None, x: ArrayLike | None = None) -> np.ndarray:
        """Return the outputs y (n, p) at equally spaced times (n,) [s], for inputs that are constant between them.

        u (n, m) or (m,): the inputs, 0 by default; with one input a number or (n,) too. x (k,): the states at the first
        time, 0 by default. The drift of an operating point that is no equilibrium has no part in it.
        """
        return responses.simulated(self._one("simulate"), times, u, x)

    def step_response(self, times: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return times (n,) [s] and the outputs (n, p, m) after a step of each input by 1.

        times: by default until the slowest motion has settled, with 18 samples in the period of the fastest. Where that
        takes more than 20 000 samples the time ends sooner, with a warning. In discrete time they are 400 steps.
        """
        return responses.step_response(self._one("step_response"), times)

    def discrete(self, step: float) -> LinearModel:
        """Return the model x⁺ = A x + B u in discrete time, with u constant over each step [s] (exact)."""
        return responses.discrete(self, step)

    # ---- design

    def reduced(self, order: int, method: str = "balanced") -> LinearModel:
        """Return a model of fewer states with nearly the same response, and its `error_bound`.

        order: the number of its states. method: "balanced" leaves out the states that inputs reach and outputs show
        least (the least Hankel singular values σ); the error at any frequency is at most 2 Σ σ of those. "modal" keeps
        modes with their poles: unstable and undamped ones first, then those with the largest contribution. Unstable and
        undamped modes are always kept by "balanced"; its bound is that of the stable part.

        The bound includes rounding: the error is measured at many frequencies, and where it exceeds the theory the
        bound is raised. That, if it matters, and an order less than asked for (states without a part in the response)
        are a note and a warning.

        InputError: the order is less than the number of modes that must be kept, or would split a pair of poles.

        >>> linear = sl.Dynamics(sl.zoo.pendulum(4).with_parameters({"hinge1.damping": 1.0})).linearize([0.0] * 4)
        >>> small = linear.reduced(4, "modal")
        >>> small.A.shape
        (4, 4)
        """
        return reduction.reduced(self._one("reduced"), order, method)

    @property
    def hankel_singular_values(self) -> np.ndarray:
        """The Hankel singular values of the stable part, largest first: what `reduced` leaves out, and the bound."""
        return reduction.hankel_singular_values(self._one("hankel_singular_values"))

    def lqr(self, Q: Weights = None, R: Weights = None, *, time: float | None = None) -> Regulator:
        """Return the gains K of u = −K x that minimise ∫ xᵀ Q x + uᵀ R u dt, and a controller for sl.simulate.

        Q, R: a number for all, {"state, output or input": weight} (others 0 in Q, 1 in R), diagonals or matrices.

        By default the weights are the kinetic energy of the rates, of the displacements in one `time` [s], and of the
        rates that the inputs give in one `time`: a single mass then gets the natural frequency 1/time and a damping
        ratio of 0.87, in any units and coordinates. time: by default that of the fastest unstable pole, or 0.5 s; it
        belongs to the default weights, and is refused where Q and R are both given.

        InputError: an unstable mode cannot be controlled, or is not weighted; the message names it.

        >>> robot = sl.Dynamics(sl.zoo.pendulum(1))
        >>> upright = robot.linearize([np.pi]).lqr()
        >>> run = sl.simulate(robot.model, q=[np.pi + 0.1], duration=2.0, controller=upright.controller)
        >>> bool(abs(run.q[-1, 0] - np.pi) < 0.02)
        True
        """
        return regulator.lqr(self._one("lqr"), Q, R, time)

    # ---- figures and other libraries

    def bode(self, *, frequencies: ArrayLike | None = None, ax: Any = None) -> Any:
        """Draw gain and phase of every output to every input over frequency [rad/s]; returns the two axes."""
        from spanloop.view.plots import bode

        return bode(self._one("bode"), frequencies=frequencies, ax=ax)

    def pole_plot(self, *, ax: Any = None) -> Any:
        """Draw the poles in the complex plane, of a batch with one colour for each model; returns the axes."""
        from spanloop.view.plots import poles

        return poles(self, ax=ax)

    def to_scipy(self) -> Any:
        """Return scipy.signal.StateSpace(A, B, C, D), with dt in discrete time."""
        one = self._one("to_scipy")
        signal = optional("scipy.signal", "to_scipy", "scipy")
        parts = (one.A, one.B, one.C, one.D)
        return signal.StateSpace(*parts) if one.step is None else signal.StateSpace(*parts, dt=one.step)

    def to_control(self) -> Any:
        """Return control.ss(A, B, C, D) of the package python-control, with the names of states, inputs, outputs."""
        one = self._one("to_control")
        control = optional("control", "to_control", "control")
        names = {"states": one.states, "inputs": one.inputs, "outputs": one.outputs}
        plain = {key: [x.replace(".", "_") for x in value] for key, value in names.items()}  # dots have a meaning there
        return control.ss(one.A, one.B, one.C, one.D, one.step or 0, name=one.name.replace(".", "_"), **plain)

    # ---- inside

    def _one(self, function: str) -> LinearModel:
        """This model, of one operating point; a batch is refused."""
        if self.batch:
            raise InputError(
                f"{function}: the model has a batch of operating points {self.batch}; it works on one of them: "
                f"linear[0].{function}"
            )
        return self

    def __str__(self) -> str:
        return linear_report.text(self)

    def __repr__(self) -> str:
        sizes = f"{len(self.states)} states, {len(self.inputs)} inputs, {len(self.outputs)} outputs"
        return f"LinearModel({self.name!r}, {sizes}{f', batch {self.batch}' if self.batch else ''})"
