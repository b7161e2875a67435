"""Linear quadratic regulators: gains with names, and the controller that applies them in a simulation."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.errors import InputError, SpanloopWarning, UnsupportedError, listed, nearest
from spanloop.linear.input_columns import left_out
from spanloop.linear.optional_packages import optional
from spanloop.linear.responses import decay, decays, poles, rounded, spectrum
from spanloop.math.scalar import where
from spanloop.model.user_input import number

if TYPE_CHECKING:
    from spanloop.linear.linear_model import LinearModel
    from spanloop.linear.operating_point import OperatingPoint

Weights = float | ArrayLike | Mapping[str, float] | None
_HIDDEN = 1e-6  # relative size of a singular value below which a mode is out of reach; double poles err by 1e-8
_TIME = 0.5  # [s]
_LATE = 0.05  # of the time of the closed loop's fastest pole: a lag or delay that counts


@dataclass(frozen=True, eq=False)
class Regulator:
    """State feedback u = −K x that minimises ∫ xᵀ Q x + uᵀ R u dt; `controller` is the law for sl.simulate.

    K (m, k): gains, one row an input, one column a state; gain("input", "state") is one of them. P (k, k): xᵀ P x is
    the cost from x on. poles (k,): of the closed loop [1/s].
    """

    model: LinearModel
    K: np.ndarray
    P: np.ndarray
    Q: np.ndarray
    R: np.ndarray

    @property
    def poles(self) -> np.ndarray:
        """The poles of ẋ = (A − B K) x."""
        return poles(self.closed_loop)

    @property
    def closed_loop(self) -> LinearModel:
        """The linear model with the feedback: its inputs add to −K x."""
        model = self.model
        return replace(
            model, A=model.A - model.B @ self.K, C=model.C - model.D @ self.K, name=f"{model.name}, regulated"
        )

    def gain(self, input: str, state: str) -> float:
        """The gain from a state to an input, by their names."""
        row = _place(input, self.model.inputs, "gain: input")
        return float(self.K[row, _place(state, self.model.states, "gain: state")])

    @property
    def controller(self) -> StateFeedback | HeldFeedback:
        """tau = tau₀ − K x about the operating point, for sl.simulate(model, controller=...).

        That of a model in discrete time holds its torques over each step of that model. Warns (SpanloopWarning) of
        actuators whose lag or delay is not short beside the closed loop.

        UnsupportedError: the operating point is no equilibrium, or an input is no torque of a joint.
        """
        point = self.model.point
        if point is None:
            raise UnsupportedError(
                "controller: the model has no operating point (it is reduced or made by hand), so its states are not "
                "known from q and v; design the gains with the model of robot.linearize"
            )
        if not bool(point.is_equilibrium):
            raise UnsupportedError(
                "controller: the operating point is no equilibrium (print(linear) shows its acceleration), so constant "
                "torques and gains do not hold it. Linearise about rest with torques that hold it"
            )
        others = [name for name, k in zip(self.model.inputs, point.torque_dofs, strict=True) if k < 0]
        if others:
            raise UnsupportedError(
                f"controller: input {others[0]!r} is no torque of a joint; a controller gives torques alone"
            )
        self._warn_of_slow_actuators(point)
        return StateFeedback(self) if self.model.step is None else HeldFeedback(StateFeedback(self), self.model.step)

    def _warn_of_slow_actuators(self, point: OperatingPoint) -> None:
        """Warn of motors that follow too late for gains that do not know it."""
        values = np.log(self.poles.astype(complex)) / self.model.step if self.model.step else self.poles
        fastest = float(np.abs(values).max(initial=0.0))
        slow = []
        for actuator in point.model.actuators:
            given, joint = dict(actuator.settings), point.model.joint(actuator.joint)
            places = range(point.model.nv)[point.model.v_slice(joint.name)]
            late = float(given.get("lag", 0.0)) + float(given.get("delay", 0.0))
            if late * fastest > _LATE and not joint.driven and set(places) & set(point.torque_dofs):
                slow.append(f"{actuator.name} ({', '.join(left_out(point.model, actuator))})")
        if slow:
            warnings.warn(
                f"controller: the linear model leaves out lag and delay of actuators: {listed(slow, 4)}. The fastest "
                f"pole of the closed loop has the time {1.0 / fastest:.2g} s, so the mechanism may diverge. Design "
                "slower gains (a longer time=, a larger R), and simulate them",
                SpanloopWarning,
                stacklevel=3,
            )

    def __str__(self) -> str:
        width = max((len(x) for x in self.model.states), default=0)
        rows = [f"regulator of {self.model.name}: u = −K x"]
        for name, gains, unit in zip(self.model.inputs, self.K, self.model.input_units, strict=True):
            rows.append(f"  {name} [{unit}]")
            states = zip(self.model.states, gains, self.model.state_units, strict=True)
            rows += [f"    {state:<{width}}  {gain:12.5g} per {u}" for state, gain, u in states]
        rows.append(f"  poles: {_listed(self.poles)}")
        return "\n".join(rows)


class StateFeedback:
    """tau = tau₀ − K x, x = (displacement from q₀, v) of the independent DoF: a controller for sl.simulate."""

    def __init__(self, regulator: Regulator):
        point = regulator.model.point
        assert point is not None
        self.model, self.q, self.tau = point.model, point.q, point.tau
        self.K, self.dofs, self.torque_dofs = regulator.K, point.dofs, point.torque_dofs

    def __call__(self, t: Any, q: Any, v: Any) -> Any:
        """The torques (nv) at time t in q (nq), v (nv)."""
        out: list[Any] = [float(f) for f in self.tau]
        for place, change in zip(self.torque_dofs, self.changes(q, v), strict=True):
            out[place] = out[place] - change
        return out

    def changes(self, q: Any, v: Any) -> list[Any]:
        """K x (m) in q (nq), v (nv)."""
        self._refuse_another_model(getattr(q, "model", None))
        moved: list[Any] = []
        for joint in self.model.joints:
            s = self.model.q_slice(joint.name)
            if joint.kind.nv:
                moved += joint.kind.minus([q[k] for k in range(s.start, s.stop)], [float(x) for x in self.q[s]])
        x = [moved[k] for k in self.dofs] + [v[k] for k in self.dofs]
        return [sum(float(k) * part for k, part in zip(row, x, strict=True) if k) for row in self.K]

    def _refuse_another_model(self, other: Any) -> None:
        """Refuse a simulation of a model with other joints; masses and other numbers may differ."""
        mine = [(j.name, j.kind) for j in self.model.joints]
        if other is not None and [(j.name, j.kind) for j in other.joints][: len(mine)] != mine:
            raise InputError(
                f"controller: the regulator is that of model {self.model.name!r}, and model {other.name!r} has other "
                "joints; linearise the model that is simulated"
            )


class HeldFeedback:
    """State feedback that is sampled every `step` seconds and held in between: a controller for sl.simulate.

    Its memory: the time since the last sample, −1 before the first, then K x of that sample. The first sample is taken
    at the end of the simulation's first step, during which the torques follow the state.
    """

    inputs = 0

    def __init__(self, law: StateFeedback, step: float):
        self.law, self.step, self.memory = law, step, 1 + len(law.K)

    def start(self, model: Any) -> list[float]:
        """The memory at the start of a run."""
        return [-1.0] + [0.0] * len(self.law.K)

    def torques(self, t: Any, q: Any, v: Any, u: Any, z: Any) -> list[Any]:
        """The torques (nv) at time t in q (nq), v (nv)."""
        out: list[Any] = [float(f) for f in self.law.tau]
        for place, now, held in zip(self.law.torque_dofs, self.law.changes(q, v), list(z)[1:], strict=True):
            out[place] = out[place] - where(z[0] < 0.0, now, held)
        return out

    def update(self, t: Any, h: Any, q: Any, v: Any, u: Any, z: Any) -> list[Any]:
        """The memory after a step of length h that ended in q, v; a step longer than `step` leaves no number."""
        late = h > self.step * (1.0 + 1e-9)
        clock = where(z[0] < 0.0, 0.0, z[0]) + h
        is_due = clock > self.step - 0.5 * h
        samples = [
            where(late, np.nan, where(is_due, now, where(z[0] < 0.0, now, held)))
            for now, held in zip(self.law.changes(q, v), list(z)[1:], strict=True)
        ]
        return [where(is_due, clock - self.step, clock), *samples]


def lqr(model: LinearModel, Q: Weights, R: Weights, time: float | None) -> Regulator:
    """The gains of a model of one operating point."""
    linalg = optional("scipy.linalg", "lqr", "scipy")
    if not model.inputs:
        raise InputError("lqr: the model has no inputs; name joints in inputs=[...] of robot.linearize")
    if time is not None and Q is not None and R is not None:
        raise InputError(
            f"lqr: time={time!r} belongs to the default weights, and Q and R are both given; leave one out"
        )
    own_Q, own_R = _energies(model, time) if Q is None or R is None else (None, None)
    weights_Q = own_Q if Q is None else _state_weights(model, Q)
    weights_R = own_R if R is None else _input_weights(model, R)
    assert weights_Q is not None
    assert weights_R is not None
    _refuse_hidden(model, "inputs", model.B)
    _refuse_hidden(model, "Q", weights_Q)
    solve = linalg.solve_continuous_are if model.step is None else linalg.solve_discrete_are
    try:
        P = solve(model.A, model.B, weights_Q, weights_R)
        P = 0.5 * (P + P.T)
    except (np.linalg.LinAlgError, ValueError) as error:
        raise InputError(
            f"lqr: the Riccati equation has no solution to working precision ({error}); scale Q and R"
        ) from None
    if model.step is None:
        K = np.linalg.solve(weights_R, model.B.T @ P)
    else:
        K = np.linalg.solve(weights_R + model.B.T @ P @ model.B, model.B.T @ P @ model.A)
    return Regulator(model, K, P, weights_Q, weights_R)


# ---- modes out of reach


def hidden_modes(model: LinearModel, side: str) -> tuple[complex, ...]:
    """Poles whose modes inputs do not change ("inputs") or outputs do not show ("outputs")."""
    found = _unreached(model, model.B) if side == "inputs" else _unseen(model, model.C)
    return _distinct(model, found)


def _distinct(model: LinearModel, values: Sequence[complex]) -> tuple[complex, ...]:
    """Poles, those that coincide once."""
    out: list[complex] = []
    for x in rounded(model, np.array(values, dtype=complex)):
        if all(abs(x - y) > _HIDDEN * abs(x) for y in out):
            out.append(complex(x))
    return tuple(out)


def _unreached(model: LinearModel, B: np.ndarray) -> tuple[complex, ...]:
    """Poles of the modes on which the columns of B do not act."""
    S = _energy_scale(model)
    return _hidden(S @ model.A @ np.linalg.inv(S), S @ B)


def _unseen(model: LinearModel, C: np.ndarray) -> tuple[complex, ...]:
    """Poles of the modes that the rows of C do not show."""
    inverse = np.linalg.inv(_energy_scale(model))
    return _hidden((np.linalg.inv(inverse) @ model.A @ inverse).T, (C @ inverse).T)


def _energy_scale(model: LinearModel) -> np.ndarray:
    """S of S x, in which lengths are energies: rates by the root of the inertia, displacements at the fastest pole."""
    if model.mass is None:
        return np.eye(len(model.A))
    n, root = len(model.mass), np.linalg.cholesky(model.mass).T
    values = poles(model)
    speed = np.abs(values if model.step is None else np.log(values) / model.step).max(initial=0.0)
    S = np.zeros((2 * n, 2 * n))
    S[:n, :n], S[n:, n:] = (speed or 1.0) * root, root
    return S


def _hidden(A: np.ndarray, B: np.ndarray) -> tuple[complex, ...]:
    """Eigenvalues λ of A at which [A − λ, B] loses rank (Popov, Belevitch, Hautus)."""
    if not len(A):
        return ()
    lengths = np.linalg.norm(B, axis=0)
    size = float(np.linalg.norm(A, 2)) or 1.0
    pushed = B[:, lengths > 0.0] / lengths[lengths > 0.0] * size
    out = []
    for value in np.linalg.eigvals(A):
        whole = np.concatenate([A - value * np.eye(len(A)), pushed], axis=1)
        if np.linalg.svd(whole, compute_uv=False)[len(A) - 1] <= _HIDDEN * size:
            out.append(complex(value))
    return tuple(out)


def _refuse_hidden(model: LinearModel, side: str, pushed: np.ndarray) -> None:
    """Refuse a design where a mode that does not decay by itself is out of reach of inputs, or has no weight in Q."""
    by_inputs = side == "inputs"
    values = _unreached(model, pushed) if by_inputs else _unseen(model, pushed)
    found = [x for x in values if not decays(model, np.array([x]))[0]]
    if not found:
        return
    pole = _listed(rounded(model, np.array(found[:1])))
    where = f"the mode with the pole {pole} 1/s, which moves {_moving(model, found[0])}"
    if by_inputs:
        raise InputError(
            f"lqr: the inputs {', '.join(model.inputs)} do not act on {where}, and it does not decay by itself. Add an "
            "input that acts on it, or damping; linear.uncontrollable_modes lists such modes"
        )
    raise InputError(f"lqr: Q does not weight {where}, and it does not decay by itself. Give these states a weight")


def _moving(model: LinearModel, value: complex) -> str:
    """The states with the largest part in the mode of a pole."""
    n = len(model.A)
    shape = np.abs(np.linalg.svd(model.A - value * np.eye(n))[2][-1])
    names = [model.states[k] for k in np.argsort(-shape)[:3] if shape[k] > 0.1 * shape.max()]
    return " and ".join(names)


# ---- weights


def _energies(model: LinearModel, time: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Q and R as kinetic energies: of rates, of displacements in one time, and of the rates by inputs in one time."""
    if model.mass is None:
        raise InputError(
            "lqr: Q and R have defaults only for models of robot.linearize; give both, for example Q=1, R=1"
        )
    T = _usual_time(model) if time is None else number(time, "lqr: time")
    if T <= 0.0:
        raise InputError(f"lqr: time is {time!r}; expected a time > 0 [s]")
    n = len(model.mass)
    Q = np.zeros((2 * n, 2 * n))
    Q[:n, :n], Q[n:, n:] = model.mass / T**2, model.mass
    gained = model.B[n:] * (T if model.step is None else T / model.step)
    R = gained.T @ model.mass @ gained
    R = 0.5 * (R + R.T)
    diagonal = np.diag(R).copy()
    scaled = R / np.sqrt(np.outer(diagonal, diagonal)) if (diagonal > 0.0).all() else np.zeros_like(R)
    if len(R) and np.linalg.eigvalsh(scaled)[0] < 1e-6:  # inputs that do the same, or nothing
        diagonal[diagonal <= 0.0] = diagonal.max() if diagonal.max() > 0.0 else 1.0
        R = np.diag(diagonal)
    return Q, R


def _usual_time(model: LinearModel) -> float:
    """The time constant of the fastest unstable pole."""
    values, errors = spectrum(model)
    growth = np.where(-decay(model, values) > errors, -decay(model, values), 0.0).max(initial=0.0)
    return 1.0 / float(growth) if growth > 0.0 else _TIME


def _state_weights(model: LinearModel, given: Any) -> np.ndarray:
    if not isinstance(given, Mapping):
        return _matrix(given, model.states, "Q", definite=False)
    Q = np.zeros((len(model.states),) * 2)
    for name, weight in given.items():
        if name in model.states:
            rows = np.eye(len(model.states))[[model.states.index(name)]]
        else:
            rows = model.C[_places(name, model.outputs, "lqr: Q", model.states)]
        Q += _weight(weight, f"Q[{name!r}]") * (rows.T @ rows)
    return Q


def _input_weights(model: LinearModel, given: Any) -> np.ndarray:
    if not isinstance(given, Mapping):
        return _matrix(given, model.inputs, "R", definite=True)
    diagonal = np.ones(len(model.inputs))
    for name, weight in given.items():
        diagonal[_places(name, model.inputs, "lqr: R")] = _weight(weight, f"R[{name!r}]")
    return _matrix(diagonal, model.inputs, "R", definite=True)


def _matrix(given: Any, names: Sequence[str], what: str, definite: bool) -> np.ndarray:
    """A symmetric matrix from a number, a diagonal or a matrix."""
    n, wrong = len(names), ""
    try:
        x = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        x, wrong = np.zeros(()), f"{given!r}"
    full = x * np.eye(n) if x.shape in ((), (n,)) else x
    if wrong:
        pass
    elif not np.isfinite(full).all():
        wrong = "not finite"
    elif full.shape != (n, n):
        wrong = f"of shape {x.shape}"
    elif np.abs(full - full.T).max(initial=0.0) > 1e-9 * np.abs(full).max(initial=0.0):
        wrong = "not symmetric"
    if wrong:
        raise InputError(
            f"lqr: {what} is {wrong}; expected a number, {n} numbers or a symmetric matrix ({n}, {n}) for "
            f"{', '.join(names[:6])}"
        )
    least = np.linalg.eigvalsh(full)[0] if n else 1.0
    size = np.abs(full).max(initial=0.0)
    if least <= 0.0 if definite else least < -1e-10 * size:
        raise InputError(f"lqr: {what} has the eigenvalue {least:.3g}; must be {'> 0' if definite else '>= 0'}")
    return 0.5 * (full + full.T)


def _weight(given: Any, what: str) -> float:
    try:
        found = float(given)
    except (TypeError, ValueError):
        found = np.nan
    if not (np.isfinite(found) and found >= 0.0):
        raise InputError(f"lqr: {what} is {given!r}; expected a number >= 0")
    return found


def _place(name: str, names: Sequence[str], what: str, others: Sequence[str] = ()) -> int:
    if name not in names:
        raise InputError(f"{what}: there is no {name!r}; {nearest(str(name), [*others, *names])}")
    return list(names).index(name)


def _places(name: str, names: Sequence[str], what: str, others: Sequence[str] = ()) -> list[int]:
    """The places of a name as linearize takes it: "tip.x" is "tip.position.x", "tip.velocity" its three axes."""
    front, _, last = str(name).rpartition(".")
    several = {f"{name}.{axis}" for axis in "xyz"}
    found = [k for k, x in enumerate(names) if x in several or _numbered(x, name)]
    if name in names or not (found or f"{front}.position.{last}" in names):
        return [_place(name, names, what, others)]
    return found or [list(names).index(f"{front}.position.{last}")]


def _numbered(name: str, function: str) -> bool:
    """Whether a name is that of one of several numbers of a function, "f[2]"."""
    return name.startswith(f"{function}[") and name.endswith("]") and name[len(function) + 1 : -1].isdigit()


def _listed(values: Sequence[complex] | np.ndarray) -> str:
    return ", ".join(
        f"{x.real:.4g}" if abs(x.imag) < 1e-9 * abs(x) + 1e-12 else f"{x.real:.4g}{x.imag:+.4g}j" for x in values
    )
