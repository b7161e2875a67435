"""Definitions of kernels for tests of the compiler: any plan, any reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.errors import Reason, Refusal


@dataclass(frozen=True)
class PlanDefinition:
    """A plan with a reference on floats and one sentence for every state that is refused."""

    name: str
    key: str
    plan: Any
    reference: Callable[..., np.ndarray | None] = lambda *_: None
    sentence: str = "no answer"

    @property
    def label(self) -> str:
        return self.name

    def signature(self):
        return self.plan.inputs, self.plan.shape

    def other_kernels(self, dtype: str, *arrays: np.ndarray) -> Iterator[Any]:
        """None of them: there is one assembly."""
        return iter(())

    def explain(self, *arrays: np.ndarray) -> Refusal:
        return Refusal(Reason.OTHER, self.sentence)
