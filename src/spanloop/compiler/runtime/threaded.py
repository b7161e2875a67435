"""A Kernel that computes parts of one state on several threads, and the threads of this process that help it."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys
import threading
from functools import cached_property

from spanloop.compiler.lower import Division, PhasedPlan
from spanloop.compiler.render.thread_team import ABSENT, BOX, BOXES, LOCK, TOOLS, team
from spanloop.compiler.render.threaded import TEAM, threaded_single
from spanloop.compiler.runtime import cache, machine
from spanloop.compiler.runtime.cache import Artifact
from spanloop.compiler.runtime.kernel import Definition, Kernel


class ThreadedKernel(Kernel):
    """A Kernel whose single call runs on several threads, the caller's among them; batches are split over states.

    Each thread computes its share of the parts. Results do not depend on the scheduling. They may differ from those of
    the undivided kernel in the last digits: a multiplication and an addition in different homes are not fused.
    """

    def __init__(
        self, artifact: Artifact, definition: Definition, division: Division, dtype: str = "float64", threads: int = 1
    ):
        super().__init__(artifact, definition, dtype, threads)
        self.division, self.part_threads = division, len(division.shares)
        self.phases: int = artifact.facts["phases"]  # how often threads share work; 0: too small, one thread runs all
        if self.phases:
            join(self._single_code, self.part_threads)

    @cached_property
    def phased_plan(self) -> PhasedPlan:
        """The plan in phases: print it."""
        return self.division.phases_of(self.plan)

    @property
    def source(self) -> str:
        """LLVM source of the function of one state."""
        return threaded_single(self.phased_plan, self._real)

    def __repr__(self) -> str:
        how = f"on {self.part_threads} threads" if self.phases else "too small to share"
        return f"{super().__repr__()[:-1]}; {self.division.parts} parts {how}>"


# Helpers are daemon threads of Python that stay inside machine code (render/thread_team.py) and never ask for Python's
# lock again, so that they end with the process whatever it does; they sleep while there is nothing to do. A forked
# process has none: kernels that it inherited compute alone, and a kernel that it makes starts helpers of its own.

_making = threading.Lock()

_started = 0


def join(code: machine.Code, threads: int) -> None:
    """See that there are `threads` threads, the caller's among them, and let a kernel's code know how to reach them."""
    global _started
    helpers = min(threads - 1, BOXES)
    with _making:
        own, boxes = _team()
        while _started < helpers:
            _started += 1  # before it starts: after an interrupt a box without a helper does no harm, two in one would
            _start(own, boxes, _started - 1)
    table = (ctypes.c_void_p * len(TEAM)).from_address(code.address("team"))
    for k, name in enumerate(TEAM):
        table[k] = own.address(name)


@functools.cache
def _team():
    """The code that helpers live in, and their boxes, all of them empty."""
    source = team(_architecture())
    key = cache.key("team", source, machine.identity())
    artifact = cache.read(key)
    if artifact is None:
        artifact = Artifact(machine.object_code(source))
        cache.write(key, artifact)
    code = machine.Code(artifact.code)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))  # never unloaded: helpers stand in it
    boxes = (ctypes.c_int64 * (BOXES * BOX)).from_address(code.address("boxes"))
    _empty(boxes)
    tools = (ctypes.c_void_p * len(TOOLS)).from_address(code.address("tools"))
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
    python.PyThread_acquire_lock(lock, 1)  # taken: a thread that acquires it again sleeps
    boxes[BOX * k + LOCK] = lock
    serve = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(own.address("serve"))
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
