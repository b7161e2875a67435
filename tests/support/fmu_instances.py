"""Functional Mock-up Units in FMPy, call by call."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

fmpy = pytest.importorskip("fmpy", reason="FMPy is not installed (extra 'fmi')")
needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler for the binary of an FMU"
)


class Instance:
    """An instance of a unit, with variables by name and the messages that it logged."""

    def __init__(self, path: Path, folder: str, kind: str):
        from fmpy import fmi3

        self.description = fmpy.read_model_description(str(path))
        self.reference = {v.name: v.valueReference for v in self.description.modelVariables}
        self.messages: list[tuple[int, str]] = []

        def log(environment: Any, status: int, category: bytes, message: bytes) -> None:
            self.messages.append((status, message.decode()))

        self._log = fmi3.fmi3LogMessageCallback(log)
        interface = self.description.coSimulation if kind == "CoSimulation" else self.description.modelExchange
        made = fmi3.FMU3Slave if kind == "CoSimulation" else fmi3.FMU3Model
        self.fmu = made(
            guid=self.description.guid,
            unzipDirectory=folder,
            modelIdentifier=interface.modelIdentifier,
            instanceName="a",
        )
        self.fmu.instantiate(logMessage=self._log)

    def set_named(self, values: dict[str, float]) -> None:
        self.fmu.setFloat64([self.reference[n] for n in values], list(values.values()))

    def get(self, *names: str) -> np.ndarray:
        return np.array(self.fmu.getFloat64([self.reference[n] for n in names]))

    def all_of(self, first: str) -> np.ndarray:
        """Values of all variables whose names begin so, in order."""
        return self.get(*(n for n in self.reference if n.startswith(first)))

    def initialize(self, start: float = 0.0) -> None:
        self.fmu.enterInitializationMode(startTime=start)
        self.fmu.exitInitializationMode()

    def step(self, t: float, h: float) -> tuple[bool, bool, bool, float]:
        found: tuple[bool, bool, bool, float] = self.fmu.doStep(currentCommunicationPoint=t, communicationStepSize=h)
        return found

    @property
    def said(self) -> str:
        """All messages."""
        return " | ".join(text for _, text in self.messages)


@contextlib.contextmanager
def instances(path: Path, *kinds: str) -> Iterator[list[Instance]]:
    """Instances of one unit, in one process; one of Co-Simulation by default."""
    folder = tempfile.mkdtemp()
    made: list[Instance] = []
    try:
        fmpy.extract(str(path), folder)
        for kind in kinds or ("CoSimulation",):
            made.append(Instance(path, folder, kind))
        yield made
    finally:
        for one in made:
            one.fmu.freeInstance()
        shutil.rmtree(folder, ignore_errors=True)


def problems(path: Path) -> list[str]:
    from fmpy.validation import validate_fmu

    return list(validate_fmu(str(path)))


def moved(path: Path, steps: int = 50, step: float = 1e-3, **values: float) -> tuple[np.ndarray, np.ndarray, str]:
    """q and v after some steps, and what was logged; values are set before the initialization."""
    with instances(path) as (a,):
        a.set_named(values)
        a.initialize()
        a.step(0.0, steps * step)
        return a.all_of("q."), a.all_of("v."), a.said
