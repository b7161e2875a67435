"""A live page without a browser: the steps of its script in Python, on the data that the script reads.

`change` is the continuation that src/spanloop/view/page/live/live_parameters.py describes.
"""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import numpy as np
from portable_code import Wasm


class LivePage:
    """The module of a LiveMotion's data, at its start."""

    def __init__(self, data: dict[str, Any]):
        self.data = json.loads(json.dumps(data, allow_nan=False))
        self.wasm = Wasm(gzip.decompress(base64.b64decode(self.data["wasm"])))
        rows = self.data["inputs"]["own"]
        self.rows = None if rows["values"] is None else np.frombuffer(base64.b64decode(rows["values"]), "<f8")
        self.reset()

    def reset(self) -> None:
        self.steps, self.more = 0, {}
        for name, numbers in self.data["start"].items():
            self[name] = numbers

    def __getitem__(self, name: str) -> np.ndarray:
        first = self.data["places"][name]
        return self.wasm.memory[first : first + self.data["sizes"][name]].copy()

    def __setitem__(self, name: str, numbers: Any) -> None:
        first = self.data["places"][name]
        self.wasm.memory[first : first + self.data["sizes"][name]] = numbers

    def set_input(self, place: int, numbers: Any) -> None:
        """Numbers of u from a place on."""
        u = self["u"]
        u[place : place + np.size(numbers)] = numbers
        self["u"] = u

    def step(self, h: float | None = None) -> int:
        """One step; its status."""
        self["t"] = self.data["time"] + self.steps * self.data["step"]
        self["h"] = self.data["step"] if h is None else h
        own = self.data["inputs"]["own"]
        if self.rows is not None:
            self.set_input(0, self.rows.reshape(own["rows"], -1)[min(self.steps, own["rows"] - 1)])
        status = self.wasm.call("step")
        self.steps += status == 0 and h is None
        return status

    def run(self, steps: int) -> LivePage:
        for k in range(steps):
            status = self.step()
            assert status == 0, (k, self.data["status"][str(status)])
        return self

    def look(self, *kernels: str) -> None:
        """`begin` at the present state, and kernels."""
        self["t"] = self.data["time"] + self.steps * self.data["step"]
        self.wasm.call("begin")
        for name in kernels or self.data["kernels"]:
            assert self.wasm.call(name) == 0, name

    @property
    def velocity(self) -> np.ndarray:
        return self[self.data["velocity"]]

    # ---- parameters

    def change(self, place: int, target: float) -> bool:
        """Change a length by continuation; whether the target was reached."""
        numbers, share = self.data["continuation"], 1.0
        increment = next(p["increment"] for p in self.data["parameters"] if p["place"] == place)
        while (last := self["p"][place]) != target:
            way = target - last
            if abs(way) > increment:
                way *= increment / abs(way)
            way *= share
            if self._closed_at(place, target if abs(target - last - way) < 1e-12 else last + way, numbers):
                share = min(1.0, 2.0 * share)
                continue
            share /= 2.0
            if share < numbers["least_share"]:
                break
        for _ in range(2):
            self._closed_at(place, self["p"][place], numbers)
        return bool(self["p"][place] == target)

    def _closed_at(self, place: int, value: float, numbers: dict[str, Any]) -> bool:
        """Loops closed at a value of a parameter; if that fails, nothing changes."""
        state, p = {n: self[n] for n in self.data["state"]}, self["p"]
        changed = p.copy()
        changed[place] = value
        self["p"] = changed
        well = self.step(h=0.0) == 0
        q = self["q"]
        if well and (np.abs(q - state["q"]) <= numbers["most"]).all():
            for name in state:
                self[name] = q if name == "q" else state[name]
            return True
        for name, x in state.items():
            self[name] = x
        self["p"] = p
        return False
