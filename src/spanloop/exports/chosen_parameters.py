"""The parameters of the model that are inputs of an exported file: none, all, or those that are named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spanloop.errors import InputError
from spanloop.model import Model
from spanloop.model.parameters import Parameters, Varied

NONE = Parameters((), np.zeros(0))


def chosen_parameters(model: Model, option: Any) -> Parameters:
    """Names and the model's own values of what parameters= chooses: "baked" (none), "live" (all), or names."""
    if option is None or (isinstance(option, str) and option == "baked"):
        return NONE
    own = Parameters.of(model)
    if isinstance(option, str) and option == "live":
        return own
    if not isinstance(option, list | tuple) or not all(isinstance(x, str) for x in option):
        hint = ". The file begins with the model's own numbers" if isinstance(option, Parameters) else ""
        shown = type(option).__name__ if isinstance(option, Parameters | np.ndarray) else repr(option)[:60]
        raise InputError(
            f"export: parameters is {shown}; expected 'live', 'baked', or a list of names of model.parameters(), "
            f"as [{own.names[0]!r}]{hint}"
        )
    start = Varied.of(model, tuple(option), "export").start
    return Parameters(tuple(option), start)


def as_option(parameters: Parameters, model: Model) -> str | tuple[str, ...]:
    """Chosen parameters as sl.compile takes them."""
    if not parameters.names:
        return "baked"
    return "live" if parameters.names == Parameters.of(model).names else parameters.names


def parameters_of_file(
    model: Model, functions: Sequence[str] | Mapping[str, Any], options: Mapping[str, Any]
) -> Parameters:
    """The parameters of all functions of a file; InputError where functions choose different ones."""
    found = [("parameters=", chosen_parameters(model, options.get("parameters")))]
    for name, table in functions.items() if isinstance(functions, Mapping) else ():
        if isinstance(table, Mapping) and "parameters" in table:
            found.append((f"the function {name!r}", chosen_parameters(model, table["parameters"])))
    found = [(owner, x) for owner, x in found if x.names]
    for owner, x in found:
        if x.names != found[0][1].names:
            raise InputError(
                f"export: {owner} takes other parameters than {found[0][0]}; a file has one list of parameters. "
                "Name all of them for both, or write two files"
            )
    return found[0][1] if found else NONE
