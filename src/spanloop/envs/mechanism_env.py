"""`sl.envs.MechanismEnv`: a vector environment of Gymnasium around one compiled time loop."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike

from spanloop.compiler.runtime.foreign_arrays import as_numpy
from spanloop.contacts.settings import Settings
from spanloop.dynamics import Dynamics
from spanloop.envs.actions import Actions
from spanloop.envs.batch_motion import BatchMotion, refused_by
from spanloop.envs.episode_ends import EpisodeEnds
from spanloop.envs.fast_spins import Spins
from spanloop.envs.observations import observing
from spanloop.envs.random_parameters import RandomParameters
from spanloop.envs.starts import Starts
from spanloop.envs.state import State
from spanloop.envs.user_arguments import of_state, one_start
from spanloop.errors import InputError, SpanloopWarning, UnsupportedError, nearest
from spanloop.model import Model
from spanloop.simulation.integrators.integrator import AUTO, Integrator
from spanloop.simulation.simulate import robot_of, with_target
from spanloop.simulation.time_loop import positive

Observation = Callable[[State], ArrayLike] | Sequence[str]
OPTIONS = ("reset_mask", "q", "v")
_CHECKED = "The start q= of an environment must be a usable one also where reset= is a function that returns all starts"


class MechanismEnv(VectorEnv):
    """Environments of one mechanism in the convention of gymnasium.vector.VectorEnv; a step is one compiled call.

    Closed loops stay closed (closure_residual), and starts are closed. A run that cannot go on (a singular position, a
    failed step, a limit with limits="end") terminates, with the reason in infos["end"]; observations are always finite.

    Args:
        model: a Model, or a Dynamics.
        num_envs: how many environments there are.
        reward: a function of the State after a step that returns (n,) numbers, in NumPy: reward(state).
        q: coordinates (nq,) at the start of all environments, or {"joint": coordinate}, with loops assembled around it;
            a usable start also where reset is a function that returns all starts.
        actions: {"joint": largest torque}, or (low, high) [N m or N]; names of actuated joints, or by default all of
            them, within their efforts. With a controller the ranges of its inputs u, {"name": (low, high)}. An action
            is a number from −1 to 1 for each.
        controller: a function (q, v, u) -> torques, compiled into the steps; u[0], u[1], ... are the actions in
            their ranges, in the order of `actions`. There is no time.
        forces: a function (q, v) -> {"body": [torque; force]}, or (q, v, u); u are torques (nv,) [N m or N], or the
            inputs of the controller.
        observation: names "joint.q", ".v", ".cos", ".sin" (of its angles), "frame.position", ".rotation", ".pose",
            ".velocity", or a function of the State that returns (n, k); by default all coordinates and velocities,
            angles without limits as cosine and sine.
        terminate: a function of the State that returns (n,) booleans, or {"reason": booleans}.
        reset: noise of the start: how far independent coordinates move at most [rad or m] (ball, planar and free joints
            turn and shift by that at most); {"joint": (low, high)}; or a function (random, n) -> q (n, nq) or (q, v).
            Loops are assembled; starts that cannot be are drawn again.
        duration: of an episode [s], after which it is truncated; None: it goes on.
        step: of the integrator [s]. control_steps: how many of them an action lasts.
        integrator: as sl.simulate has it, of fixed steps.
        limits: "stop", "end" or "ignore": what happens at limits of joints. contacts: as sl.simulate.
        parameters: live parameters (p,), or (num_envs, p) of each environment, as sl.simulate; or a function
            (random, n) -> (n, p), which every episode calls.
        threads: that share the environments; 0 for all cores.
        autoreset_mode: "NextStep", "SameStep" or "Disabled", as gymnasium.vector.AutoresetMode.
        seed: of the random starts, as of the first reset(seed=...).
        target: "cpu", or "cuda" for steps on an NVIDIA GPU, one thread an environment; by default the integrator's.

    Raises:
        InputError: an argument does not fit the model, or a function takes other arguments.
        StateError: the start is far from closed, or no random start can be used.
        DeviceError: target is "cuda", and there is no GPU.

    Example:
        >>> model, q = sl.zoo.four_bar(), sl.zoo.four_bar_start()
        >>> def reward(state): return state["crank_hinge"].v
        >>> env = sl.envs.MechanismEnv(model, 8, q=q, actions={"crank_hinge": 5.0}, reward=reward, duration=2.0)
        >>> observations, infos = env.reset(seed=1)
        >>> observations, rewards, terminations, truncations, infos = env.step(env.action_space.sample())
        >>> observations.shape
        (8, 9)
    """

    def __init__(
        self,
        model: Model | Dynamics,
        num_envs: int = 1,
        *,
        reward: Callable[[State], ArrayLike],
        q: ArrayLike | Mapping[str, ArrayLike] | None = None,
        actions: Mapping[str, Any] | Sequence[str] | None = None,
        controller: Callable[..., Any] | None = None,
        forces: Callable[..., Any] | None = None,
        observation: Observation | None = None,
        terminate: Callable[[State], Any] | None = None,
        reset: float | Mapping[str, Any] | Callable[..., Any] = 0.0,
        duration: float | None = None,
        step: float = 1e-3,
        control_steps: int = 10,
        integrator: str | Integrator = AUTO,
        limits: str = "stop",
        contacts: str | Settings = "steps",
        parameters: Any = None,
        threads: int = 1,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        seed: int | None = None,
        target: str | None = None,
    ):
        if not isinstance(model, Model | Dynamics):
            raise InputError(f"MechanismEnv: model is a {type(model).__name__}; expected a Model or a Dynamics")
        self.robot = robot_of(model)
        self.num_envs = _count(num_envs, "num_envs")
        self.control_steps = _count(control_steps, "control_steps")
        self.actions = Actions.of(self.robot.model, actions, controller)
        self._parameters = RandomParameters(self.robot.model, parameters) if callable(parameters) else None
        chosen = integrator if isinstance(integrator, Integrator) else Integrator(integrator)
        chosen = with_target(chosen, model, target)
        acting = self.actions.acting(controller, forces)
        with refused_by("MechanismEnv", _CHECKED if callable(reset) else ""):
            self.motion = BatchMotion.of(
                self.robot,
                one_start(self.robot.model, q),
                count=self.num_envs,
                step=step,
                integrator=replace(chosen, threads=threads) if threads != 1 else chosen,
                where="MechanismEnv",
                limits=limits,
                contacts=contacts,
                parameters=self._parameters.usual(self.num_envs) if self._parameters else parameters,
                examples=self._parameters.examples(self.num_envs) if self._parameters else None,
                **acting,
            )
        self._starts = Starts(self.motion, reset, limits != "ignore")
        self._spins = Spins(self.robot)
        self._observation = observing(observation, self.robot.model)
        self._reward, self._ends = of_state(reward, "reward"), EpisodeEnds(self.num_envs, terminate)
        self._most = self._episode_steps(duration)
        self._done = np.ones(self.num_envs, bool)  # ended, and not reset yet
        self._is_begun = False
        self._set_spaces(autoreset_mode)
        self._seed(seed)

    def _episode_steps(self, duration: float | None) -> int:
        """Steps of the integrator in an episode that is truncated; 0 where none is."""
        if duration is None:
            return 0
        each, asked = self.motion.step * self.control_steps, positive(duration, "duration")
        count = max(1, round(asked / each))
        if abs(count * each - asked) > 1e-6 * asked:
            warnings.warn(
                f"MechanismEnv: duration is {asked:g} s, which actions of {each:g} s do not divide; "
                f"{count * each:g} s is used",
                SpanloopWarning,
                stacklevel=3,
            )
        return self.control_steps * count

    def _set_spaces(self, autoreset_mode: Any) -> None:
        modes = {m.value: m for m in AutoresetMode}
        mode = autoreset_mode if isinstance(autoreset_mode, AutoresetMode) else modes.get(str(autoreset_mode))
        if mode is None:
            raise InputError(f"autoreset_mode is {autoreset_mode!r}; {nearest(str(autoreset_mode), modes)}")
        self._mode = mode
        self.metadata = {"autoreset_mode": mode}
        self.single_action_space = gymnasium.spaces.Box(-1.0, 1.0, (len(self.actions),), np.float32)
        at_start = np.repeat(self.motion.problem.q[:1], self.num_envs, axis=0)
        self._width: int | None = None  # of an observation, once it is known
        self._width = width = self._observed(self._state_at(np.arange(self.num_envs), at_start)).shape[1]
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (width,), np.float32)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    # ---- what Gymnasium calls

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Start all environments, or those of options["reset_mask"] (num_envs,); returns observations and infos.

        options: {"q": ..., "v": ...} are given starts, for all or (n, ...) for each that is reset; loops are closed.
        """
        given = _options(options)
        self._seed(seed)
        rows = np.flatnonzero(self._mask(given.get("reset_mask")))
        self._begin(rows, given)
        return self._observed(self._state()), {}

    def step(self, actions: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Apply an action (num_envs, k) to each environment; observations, rewards, terminations, truncations, infos.

        Where an episode ends, infos["end_reason"] has its reason and infos["end"] a sentence.
        """
        self._begun("step")
        if self._done.any() and self._mode is AutoresetMode.DISABLED:
            self._refuse_step()
        given = self.actions.checked(actions, self.num_envs)
        moves = ~self._done
        failed = self.motion.advance(self.actions.inputs(given), self.control_steps, moves)
        state = self._state(given, failed)
        rewards = np.where(moves, self._rewarded(state), 0.0)
        live = self.parameters if self._spins.bodies else None
        failures = self._spins.failures(self.q, self.v, state.time, moves & ~failed, live)
        failures |= self.motion.outcomes(failed) if failed.any() else {}
        terminations, named = self._ends.terminations(state, moves, failures)
        late = moves & ~terminations & (self.motion.age >= self._most) if self._most else moves & False
        observations = self._observed(state)
        infos = self._ends.infos(named, late, state.time)
        if self._mode is AutoresetMode.NEXT_STEP:
            self._begin_again(~moves, observations)
            self._done = terminations | late
        elif self._mode is AutoresetMode.SAME_STEP:
            infos = _final(infos, observations, terminations | late)
            self._begin_again(terminations | late, observations)
        else:
            self._done = terminations | late
        return observations, rewards, terminations, late, infos

    def __reduce__(self) -> Any:
        raise UnsupportedError(
            "environments cannot be pickled or copied: compiled code and your functions are parts of them. Make one in "
            "each process, with the same arguments and a seed of its own"
        )

    # ---- more than Gymnasium asks for

    def truncate_after(self, actions: int) -> None:
        """Truncate episodes after this many actions, in place of their duration."""
        self._most = self.control_steps * _count(actions, "max_episode_steps")

    def torques(self, actions: ArrayLike) -> np.ndarray:
        """Torques (..., nv) of actions (..., k): tau of sl.simulate. With a controller its inputs u instead.

        They follow from the actions alone; no episode need have begun.
        """
        k = len(self.actions)
        found = as_numpy("torques", "actions", actions, f"(..., {k})")
        if not found.ndim or found.shape[-1] != k:
            names = ", ".join(self.actions.names)
            raise InputError(f"torques: actions have shape {found.shape}; expected (..., {k}): {names}, from -1 to 1")
        flat = self.actions.checked(found.reshape(-1, k), int(np.prod(found.shape[:-1])), "torques")
        return self.actions.inputs(flat).reshape(*found.shape[:-1], -1)

    @property
    def q(self) -> np.ndarray:
        """Coordinates (num_envs, nq)."""
        return self._begun("q").q

    @property
    def v(self) -> np.ndarray:
        """Velocities (num_envs, nv)."""
        return self._begun("v").v

    @property
    def parameters(self) -> np.ndarray | None:
        """Live parameters (num_envs, p) of the episodes, packed as model.parameters(); None without live ones."""
        found = self.motion.problem.system.live_parameters(self._begun("parameters").problem.constants)
        return None if found is None else np.array(np.broadcast_to(found, (self.num_envs, found.shape[-1])))

    @property
    def time(self) -> np.ndarray:
        """Time (num_envs,) since each episode began [s]."""
        return self._begun("time").time

    @property
    def closure_residual(self) -> np.ndarray:
        """The largest closure error (num_envs,) in each episode so far [rad, or of the loop's length]."""
        return self._begun("closure_residual").residual

    # ---- parts of a step

    def _seed(self, seed: Any) -> None:
        if seed is None:
            return
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise InputError(f"seed is {seed!r}; expected one number, not negative, for all environments")
        super().reset(seed=int(seed))
        self._starts.clear()

    def _mask(self, given: Any) -> np.ndarray:
        if given is None:
            return np.ones(self.num_envs, bool)
        mask = np.asarray(given)
        if mask.shape != (self.num_envs,) or mask.dtype != bool or not mask.any():
            raise InputError(
                f"reset: reset_mask is {mask.dtype} of shape {mask.shape}; expected booleans ({self.num_envs},), at "
                "least one of them true"
            )
        if not self._is_begun and not mask.all():
            raise InputError("reset: the first reset is of all environments; leave reset_mask out")
        return mask

    def _begin(self, rows: np.ndarray, given: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Begin an episode in these environments, at random or at the given q and v."""
        if self._parameters:
            self.motion.set_parameters(rows, self._parameters.drawn(self.np_random, len(rows)))
        if "q" in given or "v" in given:
            start = self._starts.given(rows, given.get("q"), given.get("v"))
        else:
            start = self._starts.take(self.np_random, rows)
        self.motion.begin(rows, *start)
        self._done[rows], self._is_begun = False, True

    def _begin_again(self, which: np.ndarray, observations: np.ndarray) -> None:
        """Reset these environments (num_envs,), and replace their observations."""
        rows = np.flatnonzero(which)
        if len(rows):
            self._begin(rows)
            observations[rows] = self._observed(self._state_at(rows, self.motion.q[rows], self.motion.v[rows]))

    def _begun(self, where: str) -> BatchMotion:
        """The motion, once there is one; where: begins the message that refuses an environment without episodes."""
        if not self._is_begun:
            raise InputError(f"{where}: no episode has begun; call reset first")
        return self.motion

    def _refuse_step(self) -> None:
        ended = np.flatnonzero(self._done)
        raise InputError(
            f"step: environment {ended[0]} has ended ({len(ended)} of {self.num_envs}), and autoreset_mode is "
            "'Disabled'; reset it first: reset(options={'reset_mask': terminations | truncations})"
        )

    def _state(self, actions: np.ndarray | None = None, failed: np.ndarray | None = None) -> State:
        rows, m = np.arange(self.num_envs), self.motion
        return self._state_at(rows, m.q, m.v, actions, failed)

    def _state_at(
        self,
        rows: np.ndarray,
        q: np.ndarray,
        v: np.ndarray | None = None,
        actions: np.ndarray | None = None,
        failed: np.ndarray | None = None,
    ) -> State:
        n, m = len(rows), self.motion
        v = np.zeros((n, self.robot.model.nv)) if v is None else v
        actions = np.zeros((n, len(self.actions))) if actions is None else actions
        failed = np.zeros(n, bool) if failed is None else failed
        constants = m.constants_of(rows)
        own = constants if len(constants) > 1 else constants.copy()  # one row is that of the motion, which changes
        live = m.problem.system.live_parameters(own)
        return State(self.robot, m.time[rows], q, v, actions, failed, live)

    def _observed(self, state: State) -> np.ndarray:
        found = as_numpy("MechanismEnv", "the observation", self._observation(state), f"({len(state)}, k)")
        if found.ndim != 2 or len(found) != len(state) or found.dtype.kind not in "fiub":
            raise InputError(
                f"observation returned {found.dtype} of shape {found.shape}; expected numbers ({len(state)}, k)"
            )
        if found.shape[1] != (self._width or found.shape[1]):
            raise InputError(
                f"observation returned an array of shape {found.shape}; expected ({len(state)}, {self._width}), as "
                "when the environment was made: observation_space is of that width"
            )
        with np.errstate(over="ignore"):
            return _finite(found.astype(np.float32), "observation")

    def _rewarded(self, state: State) -> np.ndarray:
        found = as_numpy("MechanismEnv", "the reward", self._reward(state), f"({len(state)},)")
        if found.shape != (len(state),) or found.dtype.kind not in "fiub":
            raise InputError(f"reward returned {found.dtype} of shape {found.shape}; expected numbers ({len(state)},)")
        return _finite(found, "reward").astype(float)


def _options(options: Any) -> dict[str, Any]:
    """The options of a reset, their names checked."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise InputError(f"reset: options is {options!r}; expected a dict, as {{'q': q, 'v': v, 'reset_mask': mask}}")
    for name in options:
        if name not in OPTIONS:
            raise InputError(f"reset: there is no option {name!r}; {nearest(str(name), OPTIONS)}")
    return dict(options)


def _count(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name} is {value!r}; expected a whole number of at least 1")
    return int(value)


def _finite(values: np.ndarray, name: str) -> np.ndarray:
    if not np.isfinite(values).all():
        at = tuple(map(int, np.argwhere(~np.isfinite(values))[0]))
        raise InputError(f"{name} returned {values[at]} for environment {at[0]}; every number must be finite")
    return values


def _final(infos: dict[str, Any], observations: np.ndarray, ended: np.ndarray) -> dict[str, Any]:
    """Infos of episodes that ended and began again in one step."""
    if not ended.any():
        return infos
    last = np.full(len(ended), None, object)
    for k in np.flatnonzero(ended):
        last[k] = observations[k].copy()
    return {"final_obs": last, "_final_obs": ended.copy(), "final_info": infos, "_final_info": ended.copy()}
