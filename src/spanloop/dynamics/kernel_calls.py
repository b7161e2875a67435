"""Kernels of one model by function and options, compiled on first use, and how a call reaches them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spanloop.kernels import compile
from spanloop.kernels.compile import checked_near
from spanloop.kernels.spec import check_function
from spanloop.loops import arguments
from spanloop.model import Model
from spanloop.types import Array

ByName = Mapping[str, ArrayLike]  # {"joint", "body" or "loop": numbers}
Inputs = tuple[Any, ...]  # of a kernel, before their check
_compiling = threading.RLock()


def _renew_lock() -> None:
    """A forked process has none of the threads that may have held the lock."""
    global _compiling
    _compiling = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class KernelCalls:
    """A model and its kernels; `options` are those of every kernel: dtype, threads, target, on_singular."""

    def __init__(
        self,
        model: Model,
        method: str | None,
        open_chain: str | None,
        options: dict[str, Any],
        chain_threads: int = 1,
    ):
        self._model = model
        self._options = options
        self._method, self._open_chain, self._chain_threads = method, open_chain, chain_threads
        self._has_loop_inputs = bool(model.switches) or any(x.driven for x in model.loops)
        self._kernels: dict[tuple[Any, ...], Any] = {}
        self._tree_calls: dict[str, Any] = {}  # compiled calls of derivatives of trees, by function
        self._masks: dict[frozenset[str], np.ndarray] = {}  # of rows, by set of active loops
        self._shortened: set[str] = set()  # functions whose attribute is the compiled call
        if method is not None or open_chain is not None or chain_threads != 1:
            self._kernel("forward_dynamics")  # reports an unknown method

    @property
    def model(self) -> Model:
        """The mechanism; kernels are compiled for it, so it cannot be exchanged. sl.Dynamics(other) makes another."""
        return self._model

    @property
    def method(self) -> str | None:
        """The method of forward dynamics that the user chose; None: the default."""
        return self._method

    @property
    def on_singular(self) -> str:
        """What happens where loops lose rank: "raise" or "minimum_norm"."""
        return str(self._options["on_singular"])

    @property
    def target(self) -> str:
        """What computes: "cpu", "cuda" or "python"."""
        return str(self._options["target"])

    def kernel(self, function: str, **options: Any) -> Any:
        """The compiled kernel behind a call, with its operations, plan and source.

        function: a name of the catalog, e.g. "forward_dynamics". options: as of sl.compile, e.g. frame="tool".
        """
        check_function(function)
        return self._kernel(function, **options)

    def active_rows(self, active_loops: Iterable[str] | None = None, *, near: ArrayLike | None = None) -> Array:
        """Return the input `active` (rows,) of kernels: which rows of switchable loops and couplings act.

        1 for a row that is closed, 0 for one that is open, −1 for a row of a closed loop that depends on others.

        active_loops: names of those that are closed; all of them by default, [] for none. near: a state q (nq,) of the
        assembly, as of sl.compile.

        >>> model = sl.zoo.puma().with_frame("anchor", "world", position=(0.4, 0.0, 0.5))
        >>> model = model.with_loop("tool", "anchor", "spherical", name="grip", switchable=True)
        >>> robot = sl.Dynamics(model)
        >>> robot.active_rows(["grip"]), robot.active_rows([])
        (array([1., 1., 1.]), array([0., 0., 0.]))
        """
        names = arguments.checked_active_loops(self.model, active_loops, "active_rows")
        if near is None:
            return self._row_mask(self.model, names).copy()
        return arguments.active_row_mask(self.model, names, checked_near(self.model, near, "active_rows")).copy()

    def _loop_inputs(
        self, active_loops: Iterable[str] | None, loop_accelerations: ByName | None
    ) -> tuple[np.ndarray, ...]:
        """The kernel's inputs for switchable and for driven loops."""
        return arguments.loop_inputs(self.model, active_loops, loop_accelerations, self._row_mask)

    def _row_mask(self, model: Model, active_loops: frozenset[str]) -> np.ndarray:
        if active_loops not in self._masks:
            self._masks[active_loops] = arguments.active_row_mask(model, active_loops)
        return self._masks[active_loops]

    def _row_mask_of(self, active_loops: Iterable[str] | None) -> np.ndarray:
        """The mask of closure rows that can be switched."""
        return self._row_mask(self.model, arguments.checked_active_loops(self.model, active_loops))

    def _kernel(self, function: str, **options: Any) -> Any:
        key = (function, *sorted(options.items()))
        if key not in self._kernels:
            with _compiling:  # one kernel a function for all threads: the compiled call relies on its being kept
                if key not in self._kernels:
                    own: dict[str, Any] = {}
                    if function == "forward_dynamics":
                        own = {"method": self._method, "open_chain": self._open_chain}
                        own["chain_threads"] = 1 if "derivative" in options else self._chain_threads
                    self._kernels[key] = compile(self.model, function, **own, **options, **self._options)
        return self._kernels[key]

    def _plain(self, function: str, inputs: Inputs, out: Array | None, forces: ByName | None = None) -> Array:
        if forces is not None:
            return self._loaded(function, inputs, out, forces)
        kernel = self._kernel(function)
        self._shorten(function, kernel)
        return self._call(kernel, inputs, out)

    def _loaded(self, function: str, inputs: Inputs, out: Array | None, forces: ByName, last: Inputs = ()) -> Array:
        names, rows = arguments.external_forces(self.model, function, forces)
        if not names:
            return self._call(self._kernel(function), (*inputs, *last), out)
        return self._call(self._kernel(function, forces=names), (*inputs, rows, *last), out)

    def _shorten(self, function: str, kernel: Any) -> None:
        """From the first call on, the attribute is the compiled call itself; it falls back to the method here."""
        if function not in self._shortened:
            self._shortened.add(function)
            # by setattr: touching self.__dict__ would cost every later look-up 60 ns (CPython keeps attributes
            # inline until then)
            setattr(self, function, kernel.entry(getattr(type(self), function).__get__(self)))

    @staticmethod
    def _call(kernel: Any, inputs: Inputs, out: Array | None) -> Array:
        result: Array = kernel(*inputs, out=out)
        return result
