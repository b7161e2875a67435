"""How many operations a kernel takes."""

from __future__ import annotations

from collections.abc import Sequence

from spanloop.algorithms.catalog import function as catalog_entry
from spanloop.compiler.lower import Operations
from spanloop.compiling.question import Question
from spanloop.model import Model


def operations(model: Model, function: str, method: str | None = None, frames: Sequence[str] = ()) -> Operations:
    """How many operations a kernel takes, without making it; frames: of functions that need one or some."""
    options = catalog_entry(function).options
    frame = frames[0] if frames and "frame" in options else None
    several = tuple(frames) if "frames" in options else ()
    question = Question.of(model, function, method, "baked", (), frame, None, True, several)
    question.lowering = "unrolled"
    return question.plan().operations
