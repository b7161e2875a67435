"""Names of the results' variables: none of what varies or is kept has a name that the results have anyway."""

from __future__ import annotations

from collections.abc import Sequence

from spanloop.errors import InputError
from spanloop.studies.kept import RESERVED, Item, Samples


def refuse_result_names(names: Sequence[str]) -> None:
    """Raise InputError where something that varies has the name of a variable of all results."""
    for name in names:
        if name in RESERVED:
            raise InputError(
                f"study: what varies has the name {name!r}, and the results have a variable of this name anyway; "
                "choose another"
            )


def refuse_same_names(names: Sequence[str], items: Sequence[Item], trajectories: bool) -> None:
    """Raise InputError where something that varies or is kept has the name of states, or of times of samples."""
    taken = {"q": "trajectories=True", "v": "trajectories=True"} if trajectories else {}
    for item in items:
        if isinstance(item.given, Samples) and item.given.times is not None:
            taken[f"time_{item.name}"] = f"the times of keep[{item.name!r}]"
    for name in (*names, *(item.name for item in items)):
        if name in taken:
            raise InputError(f"study: the results have {name!r} for {taken[name]}; choose another name")
        if name == "zarr.json":
            raise InputError(f"study: the store has a file {name!r} of its own; choose another name")
