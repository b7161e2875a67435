"""The options of a question, checked once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from spanloop.algorithms.catalog import function as catalog_entry
from spanloop.errors import InputError
from spanloop.model import Model


def is_live(parameters: str) -> bool:
    """Are the model's numbers an input of the kernel?"""
    if parameters not in ("baked", "live"):
        raise InputError(f"parameters is {parameters!r}; expected 'baked' or 'live'")
    return parameters == "live"


def checked_options(
    model: Model,
    name: str,
    method: str,
    make: Callable,
    *,
    forces: Sequence[str],
    frame: str | None,
    expressed_in: str | None,
    frames: Sequence[str],
    open_chain: str | None,
) -> dict[str, Any]:
    """What was asked for, as keywords of the program's maker; names are known and every option has a use."""
    known = catalog_entry(name).options
    options: dict[str, Any] = {}
    if forces:
        if "loaded" not in known:
            raise InputError(f"{name} takes no forces")
        for body in forces:
            model.body(body)
        options["loaded"] = forces
    if open_chain is not None:
        if "open_chain" not in inspect.signature(make).parameters:
            raise InputError(f"{name}: method {method!r} takes no open_chain; 'arms_on_object' does")
        options["open_chain"] = open_chain
    for key, value in (("frame", frame), ("expressed_in", expressed_in)):
        if value is not None and key not in known:
            raise InputError(f"{name} takes no {key}")
        if value is not None:
            options[key] = model.frame(value).name
    if bool(frames) != ("frames" in known):
        raise InputError(f"{name} takes no frames" if frames else f"{name} needs frames: names of frames or bodies")
    if frames:
        options["frames"] = tuple(model.frame(value).name for value in frames)
    if "frame" in known and "frame" not in options:
        raise InputError(f"{name} needs a frame: the name of a frame or body")
    return options


def checked_points(model: Model, name: str, points: Sequence[str]) -> dict[str, Any]:
    """The points of functions that have some."""
    wanted = "points" in catalog_entry(name).options
    if points and not wanted:
        raise InputError(f"{name} takes no points")
    return {"points": tuple(model.frame(point).name for point in points)} if wanted else {}
