"""Why episodes end: what a user's function finds, what the motion meets, and time; as infos of Gymnasium."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.envs.state import State
from spanloop.envs.user_arguments import of_state
from spanloop.errors import InputError

TERMINATED, LATE = "terminated", "duration"
Named = dict[int, tuple[str, str]]  # environment -> reason, sentence


@dataclass(frozen=True)
class EpisodeEnds:
    """The ends of episodes of n environments; terminate: the user's function of a State, or None."""

    n: int
    terminate: Callable[[State], Any] | None

    def __post_init__(self) -> None:
        if self.terminate is not None:
            of_state(self.terminate, "terminate")

    def terminations(
        self, state: State, moves: np.ndarray, failures: Mapping[int, tuple[str, str]]
    ) -> tuple[np.ndarray, Named]:
        """Which of the environments that move terminate (n,), and why; failures: motions that cannot go on."""
        ended, named = np.zeros(self.n, bool), Named()
        for reason, met in self._met(state).items():
            for k in np.flatnonzero(met & moves & ~ended):
                named[int(k)] = reason, f"{reason} at t = {state.time[k]:.6g} s"
            ended |= met & moves
        ended[list(failures)] = True
        return ended, named | dict(failures)

    def infos(self, named: Named, late: np.ndarray, time: np.ndarray) -> dict[str, Any]:
        """Infos on all episodes that ended in a step: reasons, sentences, and masks of who has them."""
        named = named | {
            int(k): (LATE, f"the episode's duration of {time[k]:.6g} s is over") for k in np.flatnonzero(late)
        }
        if not named:
            return {}
        mask, reasons, sentences = np.zeros(self.n, bool), *(np.full(self.n, None, object) for _ in range(2))
        for k, (reason, sentence) in named.items():
            mask[k], reasons[k], sentences[k] = True, reason, sentence
        return {"end_reason": reasons, "_end_reason": mask, "end": sentences, "_end": mask.copy()}

    def _met(self, state: State) -> dict[str, np.ndarray]:
        """The conditions of the user's function by name, (n,) each."""
        if self.terminate is None:
            return {}
        found = self.terminate(state)
        met = found if isinstance(found, Mapping) else {TERMINATED: found}
        out = {str(name): np.asarray(x) for name, x in met.items()}
        for name, x in out.items():
            if x.shape != (self.n,) or x.dtype != bool:
                raise InputError(f"terminate: {name!r} is {x.dtype} of shape {x.shape}; expected booleans ({self.n},)")
        return out
