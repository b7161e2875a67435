"""Which algorithm answers which question: function, method, program. A new algorithm registers itself here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spanloop.algorithms.quantities import coordinates, energy, kinematics
from spanloop.algorithms.tree import articulated_body, composite_body, inverse_mass_matrix, newton_euler
from spanloop.errors import InputError, nearest


@dataclass(frozen=True)
class Function:
    """A question a kernel can answer."""

    methods: dict[str, Callable]  # the first is the default
    options: tuple[str, ...] = ()  # keywords of the program's maker
    dynamics: bool = False  # does the answer need the closures?


FUNCTIONS: dict[str, Function] = {
    "forward_dynamics": Function(
        {
            "articulated_body": articulated_body.forward_dynamics,
            "composite_body": composite_body.forward_dynamics,
        },
        ("loaded",),
        dynamics=True,
    ),
    "inverse_dynamics": Function({"newton_euler": newton_euler.inverse_dynamics}, ("loaded",), dynamics=True),
    "mass_matrix": Function({"composite_body": composite_body.mass_matrix}, dynamics=True),
    "mass_matrix_inverse": Function({"articulated_body": inverse_mass_matrix.mass_matrix_inverse}, dynamics=True),
    "bias": Function({"newton_euler": newton_euler.bias}, ("loaded",), dynamics=True),
    "gravity": Function({"newton_euler": newton_euler.gravity}, dynamics=True),
    "pose": Function({"sweep": kinematics.pose}, ("frame",)),
    "jacobian": Function({"sweep": kinematics.jacobian}, ("frame", "expressed_in")),
    "jacobian_bias": Function({"sweep": kinematics.jacobian_bias}, ("frame", "expressed_in")),
    "energy": Function({"sweep": energy.energy}),
    "momentum": Function({"sweep": energy.momentum}),
    "center_of_mass": Function({"sweep": energy.center_of_mass}),
    "integrate": Function({"joints": coordinates.integrate}),
    "difference": Function({"joints": coordinates.difference}),
}


def function(name: str) -> Function:
    if name not in FUNCTIONS:
        raise InputError(f"there is no function {name!r}; {nearest(name, FUNCTIONS)}")
    return FUNCTIONS[name]


def maker(name: str, method: str | None) -> tuple[str, Callable]:
    """The chosen method's name and the function that makes its program for a mechanism."""
    methods = function(name).methods
    chosen = method or next(iter(methods))
    if chosen not in methods:
        raise InputError(f"{name} has no method {chosen!r}; {nearest(chosen, methods)}")
    return chosen, methods[chosen]
