"""The sentences that spanloop says when something is wrong: where, what, found, expected, try."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SpanloopError(ValueError):
    """Base of every error that spanloop raises on purpose."""


class ModelError(SpanloopError):
    """A mechanism that cannot exist or is described inconsistently."""


class FileError(SpanloopError):
    """A file that cannot be read as a mechanism; the sentence starts with file and line."""


class InputError(SpanloopError):
    """An array, option or name given to a call that does not fit the mechanism."""


class StateError(SpanloopError):
    """A single state for which the question has no answer: not finite, off unit, singular."""


class UnsupportedError(SpanloopError):
    """Something that spanloop knows of but cannot do for this mechanism (yet)."""


class SpanloopWarning(UserWarning):
    """Something that works but that the user should know."""


_SHOWN = 12  # names in a list


def nearest(name: str, known: Iterable[str]) -> str:
    """A clause that offers the known name nearest to `name`, those that begin with it, or lists what there is."""
    known = list(dict.fromkeys(known))
    if not known:
        return "there are none"
    match = difflib.get_close_matches(str(name), known, n=1, cutoff=0.6)
    match = match or [k for k in known if str(name) and str(k).startswith(str(name))]
    if match:
        return f"did you mean {' or '.join(map(repr, match[:4]))}?"
    shown = ", ".join(map(repr, known[:_SHOWN])) + (", ..." if len(known) > _SHOWN else "")
    return f"there are {shown}"
