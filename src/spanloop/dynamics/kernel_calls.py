"""Kernels of one model by function and options, made when first asked for, and how a call reaches them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from spanloop.algorithms.closed.redundancy import row_mask
from spanloop.errors import InputError
from spanloop.kernels import compile
from spanloop.loops import arguments
from spanloop.loops.arguments import forces_in_order
from spanloop.model import Model
from spanloop.topology import mechanism


class Calls:
    """What stands behind the calls of Dynamics. `options` are those of every kernel: dtype, threads, ..."""

    def __init__(
        self,
        model: Model,
        method: str | None,
        open_chain: str | None,
        options: dict[str, Any],
        chain_threads: int = 1,
    ):
        self.model = model
        self._options = options
        self._method, self._open_chain, self._chain_threads = method, open_chain, chain_threads
        self._has_extras = any(x.switchable or x.driven for x in model.loops)
        self._kernels: dict = {}
        self._making = threading.RLock()
        self._masks: dict[frozenset[str], np.ndarray] = {}  # of rows, for a set of active loops
        self._short: set[str] = set()  # functions whose attribute is the compiled call
        if method is not None or open_chain is not None or chain_threads != 1:
            self._kernel("forward_dynamics")  # an unknown method is reported here

    @property
    def method(self) -> str | None:
        """The method of forward dynamics that was asked for; None: the default."""
        return self._method

    @property
    def on_singular(self) -> str:
        return self._options["on_singular"]

    def kernel(self, function: str, **options):
        """The compiled kernel behind a call: its operations, plan and source."""
        return self._kernel(function, **options)

    def loop_inputs(self, active: Iterable[str] | None, given: Mapping) -> tuple:
        """The kernel's inputs for switchable and for driven loops."""
        extras: list[np.ndarray] = []
        chosen = arguments.active_loops(self.model, active)
        if arguments.switchable_loops(self.model):
            if chosen not in self._masks:
                self._masks[chosen] = row_mask(mechanism(self.model), chosen)
            extras.append(self._masks[chosen])
        if any(x.driven for x in self.model.loops) or given:
            extras.append(self.given_rows(given))
        return tuple(extras)

    def given_rows(self, given: Mapping, function: str = "forward_dynamics") -> np.ndarray:
        """Accelerations (..., n) of the freedoms of all driven loops, 0 where none is told."""
        return arguments.given_rows(self.model, given, function)

    def loads(self, function: str, forces: Mapping) -> tuple[tuple[str, ...], np.ndarray]:
        """Names of the bodies with forces from outside, in the model's order, and the forces (..., 6 n)."""
        return loads(self.model, function, forces)

    def _kernel(self, function: str, **options):
        key = (function, *sorted(options.items()))
        if key not in self._kernels:
            with self._making:  # one kernel a function, whoever asks: the compiled call relies on its being kept
                if key not in self._kernels:
                    asked = function == "forward_dynamics"
                    chosen: dict[str, Any] = {"method": self._method, "open_chain": self._open_chain} if asked else {}
                    if asked:
                        chosen["chain_threads"] = self._chain_threads
                    self._kernels[key] = compile(self.model, function, **chosen, **options, **self._options)
        return self._kernels[key]

    def _plain(self, function: str, given, out):
        kernel = self._kernel(function)
        self._shorten(function, kernel)
        return self._call(kernel, given, out)

    def _dynamics(self, function: str, given, out, forces):
        if forces is not None:
            return self._loaded(function, given, out, forces)
        return self._plain(function, given, out)

    def _loaded(self, function: str, given, out, forces, last: tuple = ()):
        names, rows = self.loads(function, forces)
        if not names:
            return self._call(self._kernel(function), (*given, *last), out)
        return self._call(self._kernel(function, forces=names), (*given, rows, *last), out)

    def _shorten(self, function: str, kernel) -> None:
        """From the first call on, the attribute is the compiled call itself; what it cannot take comes back here."""
        if function not in self._short:
            self._short.add(function)
            # by setattr: touching self.__dict__ would cost every later look-up 60 ns (CPython keeps attributes
            # inline until then)
            setattr(self, function, kernel.entry(getattr(type(self), function).__get__(self)))

    @staticmethod
    def _call(kernel, given, out):
        return kernel.evaluate(*given, out=out)


# ---- From the bodies that the user names to the arrays that kernels take.


def loads(model: Model, function: str, forces: Mapping) -> tuple[tuple[str, ...], np.ndarray]:
    """Names of the bodies with forces from outside, in the model's order, and the forces (..., 6 n)."""
    if not isinstance(forces, Mapping):
        raise InputError(f"{function}: forces is a {type(forces).__name__}; expected {{'body': array (..., 6)}}")
    known = [b.name for b in model.bodies]
    return forces_in_order(forces, known, f"{function}: forces", "a body", f"{function}: the force on")
