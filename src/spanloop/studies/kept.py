"""What a study keeps of every run: a number (its end, an extreme, a mean, events), or samples over time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.model import Model
from spanloop.simulation.tracking.quantities import Quantity, quantity
from spanloop.studies.real_numbers import real_numbers

QuantityText = str | Callable[..., Any]


@dataclass(frozen=True)
class Kept:
    """A quantity of the motion, as text ("v.elbow", "tip.position.z", "energy.total") or a function (t, q, v).

    unit: for results, where the quantity has none of its own.
    """

    quantity: QuantityText
    unit: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.unit, str):
            raise InputError(f"{type(self).__name__}: unit is {self.unit!r:.60}; expected a text, as 'N m'")


class Last(Kept):
    """The quantity at the end of a run."""


class Largest(Kept):
    """The largest value at any step."""


class Smallest(Kept):
    """The smallest value at any step."""


class TimeOfLargest(Kept):
    """The time of the step with the largest value [s]."""


class TimeOfSmallest(Kept):
    """The time of the step with the smallest value [s]."""


class Mean(Kept):
    """The mean over time, by trapezoids over the steps."""


@dataclass(frozen=True)
class Samples(Kept):
    """The quantity over time: every `sample` of the study, or at these times [s], each the end of a step."""

    times: Sequence[float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.times is not None:
            object.__setattr__(self, "times", _times(self.times))


def _times(given: Any) -> tuple[float, ...]:
    """Times of samples, checked."""
    found = real_numbers(given)
    if found is None or found.ndim != 1 or not len(found) or not np.isfinite(found).all():
        words = "expected finite times [s], at least one, as [0.0, 0.5], each the end of a step"
        raise InputError(f"Samples: times is {given!r:.60}; {words}")
    return tuple(found.tolist())


@dataclass(frozen=True)
class EventCount:
    """How many events of this kind or name happened in a run; all of them by default."""

    event: str = ""


@dataclass(frozen=True)
class FirstEvent:
    """The time of the first event of this kind or name [s]; NaN where there is none."""

    event: str = ""


STATISTICS: dict[type[Kept], str] = {
    Largest: "largest",
    Smallest: "smallest",
    TimeOfLargest: "time_of_largest",
    TimeOfSmallest: "time_of_smallest",
    Mean: "mean",
}
FORMS: dict[str, type] = {  # as they are written in files
    "last": Last,
    "largest": Largest,
    "smallest": Smallest,
    "time_of_largest": TimeOfLargest,
    "time_of_smallest": TimeOfSmallest,
    "mean": Mean,
    "samples": Samples,
    "event_count": EventCount,
    "first_event": FirstEvent,
}
RESERVED = ("run", "time", "outcome", "reason", "end_time", "closure_error", "coordinate", "rate", "finished")


@dataclass(frozen=True)
class Item:
    """One variable of the results."""

    name: str
    given: Kept | EventCount | FirstEvent
    quantity: Quantity | None
    unit: str

    @property
    def statistic(self) -> str:
        """The statistic that steps follow; "" for what is not of that kind."""
        return STATISTICS.get(type(self.given), "")  # type: ignore[arg-type]

    def __str__(self) -> str:
        if self.quantity is None:
            return repr(self.given)
        more = f", times={list(self.given.times)}" if isinstance(self.given, Samples) and self.given.times else ""
        return f"{type(self.given).__name__}({self.quantity.text}{more})"


def items_of(keep: Any, model: Model, taken: Sequence[str]) -> tuple[Item, ...]:
    """The variables of sl.Study's argument `keep`, checked; taken: names of what varies."""
    if keep is None:
        return ()
    if isinstance(keep, str | Kept | EventCount | FirstEvent) or callable(keep):
        raise InputError(f"study: keep is {keep!r:.60}; expected {{'name': sl.studies.Largest('v.elbow')}}, or a list")
    if not isinstance(keep, Mapping):
        keep = _by_quantity(keep)
    out = []
    for name, given in keep.items():
        place = f"study: keep[{name!r}]"
        if not isinstance(name, str) or not name or name in (".", "..") or "/" in name or name.startswith("__"):
            raise InputError(f"study: keep has the name {name!r}; expected a text without '/'")
        if name in RESERVED:
            raise InputError(f"{place}: the results have a variable of this name anyway; choose another")
        if name in taken:
            raise InputError(f"{place}: what varies has this name, too; choose another")
        if isinstance(given, str) or (callable(given) and not isinstance(given, type)):
            given = Last(given)
        if isinstance(given, EventCount | FirstEvent):
            out.append(Item(name, given, None, "s" if isinstance(given, FirstEvent) else "1"))
            continue
        if not isinstance(given, Kept) or type(given) is Kept:
            forms = ", ".join(x.__name__ for x in FORMS.values())
            raise InputError(f"{place} is {given!r:.60}; expected a quantity, or one of sl.studies: {forms}")
        found = quantity(given.quantity, model, place)
        unit = "s" if type(given) in (TimeOfLargest, TimeOfSmallest) else given.unit or found.unit
        out.append(Item(name, given, found, unit))
    return tuple(out)


def _by_quantity(keep: Any) -> dict[str, Any]:
    """A list of what is kept, by the quantities themselves."""
    if not isinstance(keep, Iterable):
        raise InputError(f"study: keep is {keep!r:.60}; expected {{'name': sl.studies.Largest('v.elbow')}}, or a list")
    out: dict[str, Any] = {}
    for x in keep:
        name = str(x.quantity if isinstance(x, Kept) else x)
        if name in out:
            raise InputError(
                f"study: keep has {name!r} twice, and a list names results by their quantities; give names, as "
                f"{{'first': {out[name]!r:.60}, 'second': {x!r:.60}}}"
            )
        out[name] = x
    return out


def form(name: str, place: str) -> type:
    """What is kept, by its name in files."""
    if name not in FORMS:
        raise InputError(f"{place}: {name!r} is not known; {nearest(name, FORMS)}")
    return FORMS[name]
