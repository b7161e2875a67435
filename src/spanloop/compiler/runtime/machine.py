"""This machine: its vector width, its threads, and source text to object code to addresses.

A Ctrl-C or a fork may come at any moment. Native code runs in slices of some 10 ms, so that Python handles a signal
between two of them. LLVM runs on threads that no signal stops halfway, and a fork waits until it has finished.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import functools
import os
import platform
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import llvmlite
import llvmlite.binding as llvm

SLICE = 20_000_000  # operations on vectors: some 10 ms
_LONG = 1_000_000  # characters of source beyond which instructions are not ordered a second time
_Result = TypeVar("_Result")
_lock = threading.RLock()  # LLVM's objects are used by one thread at a time
_discarded: list[llvm.ExecutionEngine] = []  # of code that nobody holds: freed with the next use of LLVM


class Helper(Generic[_Result]):
    """A thread that calls `work` once; no Ctrl-C reaches it."""

    def __init__(self, work: Callable[[], _Result]):
        self.is_done = False
        self._work, self._wake = work, threading.Lock()
        self._error: BaseException | None = None
        self._wake.acquire()
        _thread.start_new_thread(self._run, ())  # unlike threading.Thread: no step at which an interrupt leaves a half

    def _run(self) -> None:
        try:
            self._result = self._work()
        except BaseException as error:
            self._error = error
        finally:
            del self._work
            self.is_done = True
            self._wake.release()

    def wait(self) -> None:
        """Return when it is done; an interrupt of the wait harms nothing, wait again."""
        while not self.is_done:
            self._wake.acquire(timeout=0.1)  # it may have been taken before an interrupt

    def result(self) -> _Result:
        """What the work returned, or raised."""
        self.wait()
        if self._error is not None:
            raise self._error
        return self._result


class Slices:
    """The numbers from 0 to count in slices, which several threads take one after the other by iterating."""

    def __init__(self, count: int, unit: int, effort: float, threads: int = 1):
        """unit: numbers that stay together; effort: operations of one unit; threads: how many want a share."""
        units = -(-count // unit)
        most = max(1, int(SLICE // max(effort, 1.0)))
        least = max(1, most // 50)  # a thread is not started for less
        self.size = unit * min(most, max(least, -(-units // (4 * threads))))
        self.threads = max(1, min(threads, -(-count // self.size)))
        self.stopped = False
        self._count, self._left = count, deque(range(0, count, self.size))

    def __iter__(self) -> Iterator[tuple[int, int]]:
        while not self.stopped:
            try:
                begin = self._left.popleft()  # atomic: no lock that an interrupt might leave taken
            except IndexError:
                return
            yield begin, min(begin + self.size, self._count)

    def share(self, work: Callable[[Slices], None]) -> None:
        """Call work(self), which iterates over these slices, on all threads, this one among them.

        Helpers have ended when this returns or raises: after an interrupt they finish the slice at hand. `work` must
        hold every array whose address it passes on.
        """
        if self.threads == 1:
            return work(self)
        helpers: list[Helper[None]] = []
        try:
            with contextlib.suppress(RuntimeError):  # no more threads to be had: those that there are do it
                for _ in range(self.threads - 1):
                    helpers.append(Helper(lambda: work(self)))
            work(self)
            for helper in helpers:
                helper.result()
        except BaseException:
            self.stopped = True
            while not all(helper.is_done for helper in helpers):
                with contextlib.suppress(KeyboardInterrupt):
                    for helper in helpers:
                        helper.wait()
            raise


@dataclass
class Work:
    """What was done for this process: pieces of machine code made by LLVM and the seconds that took, pieces loaded."""

    made: int = 0
    seconds: float = 0.0
    loaded: int = 0


work = Work()


def exclusively(work: Callable[[], _Result]) -> _Result:
    """work() while no other thread uses LLVM; after an interrupt it goes on to its end, and nobody waits for it."""

    def locked() -> _Result:
        with _lock:
            _discarded.clear()
            return work()

    is_interruptible = threading.current_thread() is threading.main_thread()
    return Helper(locked).result() if is_interruptible else locked()


@functools.cache
def _target():
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple()


@functools.cache
def _host() -> tuple[str, str]:
    """Name and instruction sets of this processor, as LLVM gives them."""
    return exclusively(lambda: (llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()))


def processor() -> str:
    """Name of this processor, as LLVM gives it."""
    return _host()[0]


def features() -> str:
    """Instruction sets of this processor, as LLVM names them."""
    return _host()[1]


@functools.cache
def _target_machine(opt: int):
    """opt: 2, or 1 without the ordering of instructions after registers are chosen, which takes a third of the time of
    a long source; the arithmetic is the same, and so is the speed."""
    return _target().create_target_machine(
        cpu=processor(), features=features(), opt=opt, jit=True, codemodel="jitdefault"
    )


def identity() -> str:
    """Everything about machine and tools that object code depends on."""
    parts = (*_host(), llvmlite.__version__, platform.system(), platform.machine())
    return "|".join((*parts, sys.implementation.cache_tag or "", getattr(sys, "abiflags", "")))


def lanes(real: str) -> int:
    """How many numbers one vector register holds, at least 2."""
    known = features()
    bits = 512 if "+avx512f" in known and "+avx512vl" in known else 256 if "+avx2" in known else 128
    return bits // (64 if real == "double" else 32)


def is_watched() -> bool:
    """Whether standard error is a terminal or a notebook; SPANLOOP_PROGRESS, "on" or "off", overrides it."""
    chosen = os.environ.get("SPANLOOP_PROGRESS", "").lower()
    if chosen in ("on", "off"):
        return chosen == "on"
    try:
        return sys.stderr.isatty() or "ipykernel" in sys.modules
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def reported(what: str) -> contextlib.AbstractContextManager[object]:
    """A context that reports what is done and how long it takes, if somebody watches and it takes long."""
    if not is_watched():
        return contextlib.nullcontext()
    from spanloop.compiler.runtime.progress import Report

    return Report(what)


def object_code(source: str) -> bytes:
    """Machine code of LLVM source, relocatable."""

    def emitted() -> bytes:
        began = time.perf_counter()
        _target()
        code = _target_machine(1 if len(source) > _LONG else 2).emit_object(llvm.parse_assembly(source))
        work.made += 1
        work.seconds += time.perf_counter() - began
        return code

    return exclusively(emitted)


class Code:
    """Loaded machine code; lives as long as this object."""

    def __init__(self, data: bytes, *names: str):
        """names: whose addresses will be asked for (all at once is faster)."""
        self._engine, self._addresses = exclusively(lambda: _loaded(data, names))

    def __del__(self, discarded=_discarded):
        if hasattr(self, "_engine"):
            discarded.append(self._engine)

    def address(self, name: str) -> int:
        """Address of a function or a global variable."""
        if name not in self._addresses:
            self._addresses[name] = exclusively(lambda: self._engine.get_global_value_address(name))
        return self._addresses[name]


def _loaded(data: bytes, names: Sequence[str]) -> tuple[llvm.ExecutionEngine, dict[str, int]]:
    # an execution engine takes its target machine over, so each needs one of its own
    target_machine = _target().create_target_machine(opt=0, jit=True, codemodel="jitdefault")
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(data))
    engine.finalize_object()
    work.loaded += 1
    return engine, {name: engine.get_global_value_address(name) for name in names}


def _renew_property_locks() -> None:
    """Python 3.11 computes a cached_property under a lock of its class, which another thread may have held."""
    modules = [m for name, m in list(sys.modules.items()) if name.partition(".")[0] == "spanloop"]
    classes = {x for m in modules for x in list(vars(m).values()) if isinstance(x, type)}
    for found in (x for c in classes for x in vars(c).values() if isinstance(x, functools.cached_property)):
        if hasattr(found, "lock"):
            found.lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
    os.register_at_fork(after_in_child=_renew_property_locks)


@atexit.register
def _leave() -> None:
    """Wait for LLVM that an interrupt left at work: it must not be taken apart under a running thread.

    Who interrupts again, or has not caught the first interrupt, does not wait long.
    """
    patience = 1.0 if getattr(sys, "last_type", None) is KeyboardInterrupt else -1
    with contextlib.suppress(KeyboardInterrupt):
        if _lock.acquire(timeout=patience):
            return
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(130)
