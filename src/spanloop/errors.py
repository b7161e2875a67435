"""Errors, and refusals as data. A message says where, what, found, expected, and what to try."""

from __future__ import annotations

import difflib
import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


class Reason(enum.Enum):
    """Why a state has no answer. Code compares reasons; the sentence is for people."""

    NOT_FINITE = "an input is not finite"
    QUATERNION = "a quaternion is off unit length"
    OPEN_LOOP = "a loop is open"
    OPENING_VELOCITY = "a velocity opens a loop"
    OPENING_ACCELERATION = "an acceleration opens a loop"
    NOT_CLOSABLE = "the loops cannot be closed"
    SINGULAR_CLOSURE = "closures lose rank"
    OTHER_ASSEMBLY = "rows that are redundant elsewhere are not redundant here"
    SINGULAR_MASS = "the mass matrix is singular, or numbers overflow"
    UNDETERMINED = "the chosen coordinates do not determine the others"
    BLOCKED_PATH = "a path leads to a singular configuration or out of reach"
    UNDERACTUATED = "the actuators cannot produce the motion"
    NO_EQUILIBRIUM = "the state is no equilibrium"
    ROUNDING = "rounding leaves no correct digits"
    IMPOSSIBLE_PARAMETER = "a live parameter is one that no mechanism has"
    OVERLAP = "shapes of a contact overlap"
    TUNNEL = "a step can pass through a shape"
    IMPACT = "a contact closes with a velocity: no force is finite"
    JAM = "friction jams a contact"
    UNSOLVED = "the contact forces were not found"
    NOT_SMOOTH = "a function has no derivative at this state"
    UNSUPPORTED = "the method does not fit the live parameters"
    OTHER = "another reason"


@dataclass(frozen=True)
class Refusal:
    """A reason, the sentence that explains it for the state at hand, and its fact alone where that ends in advice."""

    reason: Reason
    sentence: str
    fact: str = ""

    def __str__(self) -> str:
        return self.sentence


class SpanloopError(ValueError):
    """Base of every error that spanloop raises on purpose."""


class ModelError(SpanloopError):
    """A mechanism that cannot exist or is described inconsistently."""


class FileError(SpanloopError):
    """A file that cannot be read as a mechanism; the sentence starts with file and line."""


class InputError(SpanloopError):
    """An array, option or name given to a call that does not fit the mechanism."""


class StateError(SpanloopError):
    """A single state that has no answer; `refusal` holds the reason and the sentence."""

    def __init__(self, message: str, refusal: Refusal | None = None, where: str = ""):
        """message: the whole text, `where` included; refusal: what is refused, without it."""
        super().__init__(message)
        self.refusal = refusal if refusal is not None else Refusal(Reason.OTHER, message)
        self.where = where

    @staticmethod
    def of(where: str, refusal: Refusal) -> StateError:
        """where: the function that was called."""
        return StateError(f"{where}: {refusal}", refusal, where)

    @property
    def reason(self) -> Reason:
        """Why the state has no answer."""
        return self.refusal.reason

    def __reduce__(self) -> tuple[Any, ...]:
        return StateError, (str(self), self.refusal, self.where)


class UnsupportedError(SpanloopError):
    """Something that spanloop knows of but cannot do for this mechanism (yet)."""


class DeviceError(SpanloopError):
    """A GPU that is missing, too small or too old for what was asked, or that stopped with an error."""


class SpanloopWarning(UserWarning):
    """Something that works but that the user should know."""


class StateWarning(SpanloopWarning):
    """States of a batch that have no answer; their rows are NaN. `refusal` explains the first of them."""

    def __init__(self, message: str, refusal: Refusal):
        super().__init__(message)
        self.refusal = refusal

    def __reduce__(self) -> tuple[Any, ...]:
        return StateWarning, (str(self), self.refusal)


_SHOWN = 12  # names in a list
_LONGEST = 80  # letters of a name that is compared with others
# control characters except tab and newline, marks that reorder text or break lines, halves of characters
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """The text with an escape (u001b after a backslash) for every character that could control a terminal or reorder
    what is read. Escapes are those of JSON, which stays valid."""
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def in_one_line(name: str) -> str:
    """A name for a table or a list: printable, with its tabs and line breaks as escapes, so that it forges no line."""
    return printable(name).replace("\n", "\\n").replace("\t", "\\t")


def nearest(name: str, known: Iterable[str]) -> str:
    """A clause that offers the known name nearest to `name`, those that begin with it, or lists what there is."""
    known = list(dict.fromkeys(known))
    if not known:
        return "there are none"
    match = [k for k in known if str(k).lower() == str(name).lower()]
    match = match or _close(str(name), known)
    match = match or [k for k in known if str(name) and str(k).startswith(str(name))]
    match = match or _close_in_parts(str(name), known)
    if match:
        return f"did you mean {' or '.join(map(repr, match[:4]))}?"
    shown = ", ".join(f"{k!r:.100}" for k in known[:_SHOWN]) + (", ..." if len(known) > _SHOWN else "")
    return f"there are {shown}"


def _close(name: str, known: list[str]) -> list[str]:
    """The most similar name, of the first thousand short ones: similarity takes time with the square of lengths."""
    if len(name) > _LONGEST:
        return []
    return difflib.get_close_matches(name, [k for k in known[:1000] if len(str(k)) <= _LONGEST], n=1, cutoff=0.6)


def _close_in_parts(name: str, known: list[str]) -> list[str]:
    """Names such as 'rod1.mass' with nearly the same part after the first dot, those with the nearest first part first.

    'link1.mas' has too little in common with 'rod1.mass' as a whole.
    """
    first, dot, rest = name.partition(".")
    parts = [(k, *str(k).partition(".")[::2]) for k in known[:1000]] if dot and len(name) <= _LONGEST else []
    tail = _close(rest, list(dict.fromkeys(tail for _, _, tail in parts if tail)))
    match = [(k, head) for k, head, own in parts if tail == [own] and len(head) <= _LONGEST]
    return [k for k, head in sorted(match, key=lambda x: -difflib.SequenceMatcher(None, first, x[1]).ratio())]


def nearest_file(path: Path) -> str:
    """A clause that offers a file of the same kind near one that is missing, or names the folder that was searched."""
    folder = path.parent
    if not folder.is_dir():
        return f"nor is there a folder {str(folder)!r}"
    names = sorted(p.name for p in folder.iterdir() if p.suffix.lower() == path.suffix.lower())
    if not names:
        return f"the folder {str(folder.resolve())!r} has no {path.suffix or 'such'} file"
    return f"in {str(folder.resolve())!r} {nearest(path.name, names)}"


def listed(names: Iterable[str], most: int | None = None) -> str:
    """The names with commas between them, at most so many and then how many more there are; "none" without any."""
    every = [str(name) for name in names]
    most = len(every) if most is None else most
    return ", ".join(every[:most]) + (f" and {len(every) - most} more" if len(every) > most else "") or "none"
