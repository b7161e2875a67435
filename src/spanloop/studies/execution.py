"""Chunks computed by threads of this process or by Dask's workers, a few at a time, in the order in which they end."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import math
import os
import time
import warnings
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from spanloop.compiler.runtime import machine
from spanloop.errors import InputError, SpanloopError, SpanloopWarning, UnsupportedError
from spanloop.studies.chunk import run_chunk
from spanloop.studies.setup import Setup, quietly

Draws = Callable[[int], np.ndarray]
Found = tuple[int, dict[str, np.ndarray]]
_COUNTED = 0.5  # s after which the threads of a cluster are counted again
_WAITING = 2  # chunks for each thread that are under way or wait: the memory that a study needs
_RETRIES = 3  # of a chunk whose worker was lost


class StudyError(SpanloopError):
    """A study that could not go on; what was finished is stored."""


def on_threads(setup: Setup, chunks: Sequence[int], draws: Draws, threads: int) -> Generator[Found, None, None]:
    """Compute chunks on threads; after an interrupt or an error those under way still come before it is raised."""
    pool = concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix="study")
    left, under_way = iter(chunks), dict[Any, int]()
    stopped: list[BaseException] = []

    def stop(error: BaseException) -> None:
        stopped.append(error)
        for future in [f for f in under_way if f.cancel()]:
            del under_way[future]

    with quietly():
        try:
            while True:
                try:
                    while not stopped and len(under_way) < _WAITING * threads:
                        k = next(left, None)
                        if k is None:
                            break
                        under_way[pool.submit(_on_thread, setup, draws(k))] = k
                    if not under_way:
                        break
                    done, _ = concurrent.futures.wait(under_way, return_when=concurrent.futures.FIRST_COMPLETED)
                except KeyboardInterrupt as error:
                    stop(error)
                    continue
                for future in done:
                    k = under_way.pop(future)
                    try:
                        yield k, future.result()
                    except GeneratorExit:
                        raise
                    except BaseException as error:  # of the chunk, or an interrupt where it is stored
                        stop(error)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    if stopped:
        raise stopped[0]


def stored(chunks: Generator[Found, None, None], write: Callable[[int, dict[str, np.ndarray]], None]) -> None:
    """Write all chunks as they come; one that an interrupt hits is written whole before others that come."""
    found: Found | None = next(chunks, None)
    while found is not None:
        interrupt: KeyboardInterrupt | None = None
        try:
            uninterrupted(write, *found)
        except KeyboardInterrupt as error:
            uninterrupted(write, *found)  # the interrupt may have come before the thread
            interrupt = error
        found = next(chunks, None) if interrupt is None else chunks.throw(interrupt)


def uninterrupted(function: Callable[..., Any], *given: Any) -> Any:
    """function(*given) on a thread of its own, which no signal reaches; an interrupt is raised when it has returned.

    Zarr and asyncio below it leave coroutines behind that are never awaited, or an import half done, where an interrupt
    cuts them.
    """
    helper = machine.Helper(lambda: function(*given))
    try:
        return helper.result()
    except KeyboardInterrupt:
        helper.wait()
        raise


def _on_thread(*given: Any) -> dict[str, np.ndarray]:
    """A chunk on a thread.

    A call of its own: with the stack of a fresh thread steps of a four-bar take 13 % more time, whose arrays then lie
    at the same places of their pages as those that are read (benchmarks/studies.py measures all of it).
    """
    return run_chunk(*given)


class ClusterLost(Exception):
    """The cluster, not the study, failed."""


def on_dask(setup: Setup, chunks: Sequence[int], draws: Draws, client: Any) -> Generator[Found, None, None]:
    """Compute chunks on the workers of a Dask cluster; one whose worker is lost is computed again.

    Raises:
        ClusterLost: whatever Dask raises where its scheduler or workers are gone. What a chunk raises comes as it is.
        InputError: the study cannot be sent to workers.
    """
    raised: list[BaseException] = []
    sent = packed(setup)  # with every chunk: data that is scattered is lost with its workers
    try:
        yield from _on_cluster(sent, chunks, draws, client, raised)
    except Exception as error:
        if raised:
            raise raised[0] from None
        raise ClusterLost(f"{type(error).__name__}: {str(error)[:120]}") from error


def _on_cluster(
    sent: bytes, chunks: Sequence[int], draws: Draws, client: Any, raised: list[BaseException]
) -> Generator[Found, None, None]:
    """The same; what a chunk raised is put into `raised`."""
    from distributed import KilledWorker, as_completed

    left, under_way = iter(chunks), dict[str, int]()
    pool = as_completed()
    counted, most = -math.inf, 0

    def submit() -> None:
        nonlocal counted, most
        if time.monotonic() > counted + _COUNTED:  # workers come and go
            counted, most = time.monotonic(), _WAITING * max(1, sum(client.nthreads().values()))
        while len(under_way) < most and (k := next(left, None)) is not None:
            key = f"chunk-{k}-{os.urandom(4).hex()}"
            future = client.submit(_on_worker, sent, draws(k), pure=False, retries=_RETRIES, key=key)
            under_way[future.key] = k
            pool.add(future)

    try:
        submit()
        for future in pool:
            k = under_way.pop(future.key)
            if future.status == "error" and not isinstance(future.exception(), KilledWorker):
                raised.append(future.exception())
            found = future.result()
            submit()
            yield k, found
    finally:
        with contextlib.suppress(Exception):  # of a cluster that is gone
            client.cancel(list(pool.futures))


def refuse_no_client(client: Any) -> None:
    """Raise InputError unless this is a client of a Dask cluster."""
    try:
        from distributed import Client
    except ImportError:
        raise UnsupportedError("client= needs dask and distributed; pip install 'spanloop[study]'") from None
    if not isinstance(client, Client):
        tip = f", as dask.distributed.Client({client!r:.60})" if isinstance(client, str) else ""
        raise InputError(f"study: client is {client!r:.60}; expected a dask.distributed.Client{tip}")


def warn_of_no_workers(client: Any) -> None:
    """Warn where the cluster has no worker that could begin."""
    with contextlib.suppress(Exception):  # a cluster that is lost is an error of its own, later
        if not client.nthreads():
            words = "study: the cluster has no workers; the study waits until one joins"
            warnings.warn(words, SpanloopWarning, stacklevel=3)


def packed(setup: Setup) -> bytes:
    """The setup as bytes for workers; raises InputError where a function holds what cannot be sent."""
    import cloudpickle

    def failure(x: Any) -> str:
        try:
            cloudpickle.dumps(x)
        except Exception as error:  # whatever objects raise that cannot be packed
            return f"{type(error).__name__}: {str(error)[:120]}"
        return ""

    try:
        found: bytes = cloudpickle.dumps(setup)
    except Exception:
        parts = {"assign": setup.variables.assign, **setup.arguments}
        parts |= {f"keep[{item.name!r}]": item for item in setup.items}
        words = {name: said for name, part in parts.items() if (said := failure(part))}
        which, why = next(iter(words.items()), ("the study", failure(setup)))
        raise InputError(
            f"study: {which} cannot be sent to workers ({why}); a function must not hold what belongs to this process, "
            "as a lock or an open file. Make it inside the function, or run without client"
        ) from None
    return found


@functools.lru_cache(maxsize=4)
def _unpacked(data: bytes) -> Setup:
    import cloudpickle

    found: Setup = cloudpickle.loads(data)
    return found


def _on_worker(data: bytes, rows: np.ndarray) -> dict[str, np.ndarray]:
    """A chunk on a worker; the setup is unpacked once."""
    return run_chunk(_unpacked(data), rows)


def dashboard(client: Any) -> str:
    """The address of a cluster's dashboard; "" where the cluster does not answer."""
    with contextlib.suppress(Exception):
        return str(client.dashboard_link)
    return ""
