"""A Kernel that computes parts of one state on several threads."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import sys
import threading
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from spanloop.compiler.lower import Part, Parted, Plan, parted
from spanloop.compiler.lower.partition import ENOUGH, WORTH, shares
from spanloop.compiler.render.thread_team import ABSENT, BOX, BOXES, LOCK, TOOLS, team
from spanloop.compiler.render.threaded import TEAM, parted_single
from spanloop.compiler.runtime import cache, machine
from spanloop.compiler.runtime.kernel import Kernel, Recipe


class PartedKernel(Kernel):
    """A Kernel whose single call has up to `part_threads` threads, the caller's among them; batches go over states.

    Each thread has a share of the parts. Numbers do not depend on who computes what. They may differ from those of the
    undivided kernel in the last places: a multiplication and an addition in different homes are not fused.
    """

    def __init__(
        self,
        recipe: Recipe,
        dtype: str,
        threads: int,
        parts: Sequence[Part],
        part_threads: int,
        worth: int = WORTH,
        enough: int = ENOUGH,
    ):
        """worth, enough: operations that one phase and all of them must spare to be shared, see lower/parting.py."""
        self.shares, self._spare = shares(parts, part_threads), (worth, enough)
        self.part_threads, self._count = len(self.shares), len(parts)
        self._sort = f"parted {self.part_threads} {worth} {enough}"
        super().__init__(recipe, dtype, threads)
        if self.phases:
            join(self._single_code, self.part_threads)

    @property
    def phases(self) -> int:
        """How many times the threads share work; 0: the parts are too small for that, and one thread does it all."""
        return self._known["phases"]

    @cached_property
    def parted(self) -> Parted:
        """The plan in phases: print it."""
        plan = self.plan
        assert isinstance(plan, Plan)  # looped plans are refused at the door
        return parted(plan, self.shares, *self._spare)

    @property
    def source(self) -> str:
        """LLVM source of the function of one state."""
        return parted_single(self.parted, self._real)

    def _facts(self) -> dict[str, Any]:
        return {**super()._facts(), "phases": len(self.parted.phases) // 2}

    def __repr__(self) -> str:
        how = f"on {self.part_threads} threads" if self.phases else "too small to share"
        return f"{super().__repr__()[:-1]}; {self._count} parts {how}>"


# ---- Threads of this process that help kernels with one state: started once, asleep while there is nothing to do.
#
# They are daemon threads of Python that stay inside machine code (render/team.py) and never need Python's lock again,
# so that they end with the process whatever it does. A forked process has none: kernels that it inherited compute
# alone, and a kernel that it makes starts helpers of its own.


_making = threading.Lock()

_started = 0


def join(code: machine.Code, threads: int) -> None:
    """See that there are `threads` threads, the caller's among them, and let a kernel's code know how to reach them."""
    global _started
    helpers = min(threads - 1, BOXES)
    with _making:
        own, boxes = _team()
        while _started < helpers:
            _start(own, boxes, _started)
            _started += 1
    table = (ctypes.c_void_p * len(TEAM)).from_address(code.variable("team"))
    for k, name in enumerate(TEAM):
        table[k] = own.function(name)


@functools.cache
def _team():
    """The code that helpers live in, and their boxes, all of them empty."""
    source = team(_architecture())
    text = "|".join((source, machine.identity()))
    key = f"team-{hashlib.sha256(text.encode()).hexdigest()[:40]}"
    found = cache.read(key)
    if found is None:
        found = ({}, machine.object_code(source))
        cache.write(key, *found)
    code = machine.Code(found[1])
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))  # never unloaded: helpers stand in it
    boxes = (ctypes.c_int64 * (BOXES * BOX)).from_address(code.variable("boxes"))
    _empty(boxes)
    tools = (ctypes.c_void_p * len(TOOLS)).from_address(code.variable("tools"))
    python = ctypes.pythonapi
    for k, tool in enumerate((python.PyThread_acquire_lock, python.PyThread_release_lock, _give_way())):
        tools[k] = ctypes.cast(tool, ctypes.c_void_p).value
    return code, boxes


def _start(own: machine.Code, boxes, k: int) -> None:
    python = ctypes.pythonapi
    python.PyThread_allocate_lock.restype = ctypes.c_void_p
    python.PyThread_acquire_lock.argtypes = [ctypes.c_void_p, ctypes.c_int]
    lock = python.PyThread_allocate_lock()
    if not lock:
        raise MemoryError("no lock for a thread that computes parts of one state")
    python.PyThread_acquire_lock(lock, 1)  # held: whoever asks for it again sleeps
    boxes[BOX * k + LOCK] = lock
    serve = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(own.function("serve"))
    where = ctypes.addressof(boxes) + 8 * BOX * k
    threading.Thread(target=serve, args=(where,), name=f"spanloop-part-{k}", daemon=True).start()


def _empty(boxes) -> None:
    for k in range(BOXES):
        boxes[BOX * k] = ABSENT


def _give_way():
    """The system's way to let another thread run."""
    if sys.platform == "win32":
        return ctypes.windll.kernel32.SwitchToThread  # type: ignore[attr-defined, unused-ignore]
    return ctypes.CDLL(None).sched_yield


def _architecture() -> str:
    name = platform.machine().lower()
    return "x86" if name in ("x86_64", "amd64") else "arm" if name in ("arm64", "aarch64") else ""


def _alone() -> None:
    """A forked process inherits the boxes but not the helpers."""
    global _started, _making
    _making = threading.Lock()
    if _started:
        _empty(_team()[1])
        _started = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_alone)
