"""`sl.studies`: what varies in an sl.Study and how, and what is kept of its runs."""

from spanloop.studies.draws.distributions import Choice, Distribution, Levels, LogNormal, Normal, Triangular, Uniform
from spanloop.studies.kept import (
    EventCount,
    FirstEvent,
    Kept,
    Largest,
    Last,
    Mean,
    Samples,
    Smallest,
    TimeOfLargest,
    TimeOfSmallest,
)

__all__ = [
    "Choice",
    "Distribution",
    "EventCount",
    "FirstEvent",
    "Kept",
    "Largest",
    "Last",
    "Levels",
    "LogNormal",
    "Mean",
    "Normal",
    "Samples",
    "Smallest",
    "TimeOfLargest",
    "TimeOfSmallest",
    "Triangular",
    "Uniform",
]
