"""What functions for other libraries share: their options, and inputs by position or by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from spanloop.errors import InputError, nearest
from spanloop.joints.kind import JointKind
from spanloop.kernels.compile import compile
from spanloop.kernels.derivative_spec import SWITCHES
from spanloop.model import Model
from spanloop.model.parameters import Parameters

_OF_CALLS = ("derivative", "wrt", "dtype", "target", "device")  # options that follow from the arrays of a call


def check_options(name: str, options: Mapping[str, Any], arrays: str, library: str, others: Mapping[str, str]) -> None:
    """Refuse options that follow from the arrays of a call, and those that sl.compile does not have.

    arrays: as the library calls them. others: options that are not for it, and why.
    """
    known = [n for n in inspect.signature(compile).parameters if n not in ("model", "function", *_OF_CALLS, *others)]
    for option in options:
        if option in _OF_CALLS:
            raise InputError(f"{name}: {option} follows from the {arrays} of a call; leave it out")
        if option in others:
            raise InputError(f"{name}: {option} is not for {library}: {others[option]}; leave it out")
        if option not in known:
            raise InputError(f"{name}: there is no option {option!r}; {nearest(option, known)}")


def in_order(name: str, names: Sequence[str], inputs: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """The inputs of a function in its order; InputError for names that it does not have and for another number."""
    for other in named:
        if other not in names:
            raise InputError(f"{name}: there is no input {other!r}; {nearest(other, names)}")
    given = [*inputs, *(named[n] for n in names[len(inputs) :] if n in named)]
    if len(given) != len(names) or len(inputs) + len(named) != len(names):
        raise InputError(f"{name} takes {', '.join(names)}; {len(inputs) + len(named)} were given")
    return given


def refuse_switches(name: str, wrt: Iterable[str], known: Sequence[str]) -> None:
    """Refuse derivatives by inputs that are switches, such as `active`."""
    for switch in wrt:
        if switch in SWITCHES:
            others = ", ".join(n for n in known if n not in SWITCHES)
            raise InputError(
                f"{name}: {switch} opens and closes loops, and nothing has a derivative by it; "
                f"differentiate by {others}"
            )


def named_values(name: str, given: Mapping[str, Any], convert: Callable[[Any], Any]) -> list[Any]:
    """The values of parameters {"forearm.mass": value} as arrays; InputError for what is not numeric."""
    found = []
    for key, x in given.items():
        try:
            found.append(convert(x))
        except (TypeError, ValueError, RuntimeError):
            kind = type(x).__name__
            raise InputError(f"{name}: parameter {key!r} is a {kind}; expected a number or an array") from None
    return found


def unequal_shapes(name: str, given: Iterable[str], shapes: Iterable[tuple[int, ...]]) -> InputError:
    """The refusal of parameters whose batch axes do not fit together."""
    found = ", ".join(f"{n} {s}" for n, s in zip(given, shapes, strict=True))
    return InputError(f"{name}: batch axes of parameters do not fit together: {found}; they must be equal or 1")


def check_parameters(name: str, given: Parameters, known: Parameters) -> np.ndarray:
    """The values of parameters; InputError for those of a model with other ones."""
    if given.names != known.names:
        other = next((n for n in given.names if n not in known.names), None)
        found = (
            f"there is no parameter {other!r}"
            if other
            else f"{len(given)} were given of {len(known)}, or in another order"
        )
        raise InputError(f"{name}: parameters are those of another model: {found}; expected model.parameters()")
    return given.values


def moves_freely(model: Model) -> bool:
    """Whether coordinates of some joint do not just add: q̇ = N(q) v, as of quaternions."""
    return any(type(j.kind).rates is not JointKind.rates for j in model.joints)
