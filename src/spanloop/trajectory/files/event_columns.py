"""The table of events in files: names in the header, columns as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from spanloop.trajectory.events import NO_EVENTS, EventTable

Header = dict[str, Any]
Arrays = dict[str, np.ndarray]

PREFIX = "event_"
COLUMNS = ("run", "time", "q", "v_before", "v_after", "tau_before", "tau_after", "impulse", "energy_lost", "on",
           "captured")  # fmt: skip
OPTIONAL = ("memory", "q_before", "contact_impulse", "contact_forces")
BEGIN = ("begin_on", "begin_captured", "begin_present")
FORCES = ("forces_before", "forces_after")
NAMES = tuple(PREFIX + name for name in (*COLUMNS, *OPTIONAL, *BEGIN, *FORCES))

_FLAGS = ("on", "begin_on", "begin_present")
_LISTS = ("switches", "rows", "bodies", "captures", "one_sided", "points")


def packed(events: EventTable) -> tuple[Header, Arrays]:
    """The header and the arrays of a table; both empty for one that has nothing."""
    if events is NO_EVENTS:
        return {}, {}
    header: Header = {name: [list(x) if isinstance(x, tuple) else x for x in getattr(events, name)] for name in _LISTS}
    header |= {"kind": events.kind.tolist(), "name": events.name.tolist(), "runs": events.runs}
    header["forces"] = list(events.forces_before or ())
    arrays = {name: getattr(events, name) for name in (*COLUMNS, *OPTIONAL, *BEGIN)}
    for name in FORCES:
        given = getattr(events, name)
        arrays[name] = np.stack(list(given.values()), axis=-2) if given else None
    arrays = {name: x.astype(np.uint8) if name in _FLAGS else x for name, x in arrays.items() if x is not None}
    return header, {PREFIX + name: x for name, x in arrays.items() if x.size}


def unpacked(header: Header, arrays: Arrays) -> EventTable:
    """The table that was packed."""
    if not header:
        return NO_EVENTS
    n, runs = len(header["kind"]), header["runs"]
    given = {name: header.get(name, ()) for name in _LISTS}
    lists: Header = {name: tuple(tuple(x) if isinstance(x, list) else x for x in own) for name, own in given.items()}
    found = {name: arrays[PREFIX + name] for name in (*COLUMNS, *OPTIONAL, *BEGIN) if PREFIX + name in arrays}
    plain: Arrays = {name: np.zeros((n, 0)) for name in COLUMNS} | {name: np.zeros((runs, 0)) for name in BEGIN}
    plain |= {name: np.zeros(n) for name in ("run", "time", "energy_lost")}
    forces = {
        name: {body: arrays[PREFIX + name][..., k, :] for k, body in enumerate(header["forces"])}
        for name in FORCES
        if PREFIX + name in arrays
    }
    words = {name: np.array(header[name], dtype=str) for name in ("kind", "name")}
    return EventTable(**{**plain, **found, **lists, **words, **forces})
