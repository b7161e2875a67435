"""`spanloop doctor`: what is installed, what is fast here, and why not. Exit code 1 if something does not work."""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata

from spanloop import __version__
from spanloop.cli.terminal import add_json, painted, print_json

EXAMPLES = ("spanloop doctor", "spanloop doctor --json")
WELL, ADVICE, FAULT = "well", "not judged", "not well"
MARKS = {WELL: "ok", ADVICE: "--", FAULT: "NO"}

OPTIONAL = (  # module, what it is for, how to get it
    ("h5py", "runs in .nc and .h5 files", "pip install h5py"),
    ("scipy", "adaptive integrators (DOP853, Radau, ...)", "pip install scipy"),
    ("matplotlib", "spanloop plot, run.plot(...)", "pip install matplotlib"),
    ("viser", "spanloop view, the live viewer", "pip install viser"),
)


@dataclass(frozen=True)
class Point:
    """One thing looked at: its name, how it is, and what to say."""

    name: str
    verdict: str
    said: str


def arguments(parser: argparse.ArgumentParser) -> None:
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    points = list(examined())
    sick = any(p.verdict == FAULT for p in points)
    if chosen.json:
        print_json({"well": not sick, "points": [asdict(p) for p in points]})
        return 1 if sick else 0
    width = max(len(p.name) for p in points)
    for p in points:
        print(f"{painted(MARKS[p.verdict], p.verdict)}  {p.name:<{width}}  {p.said}")
    print("\n" + ("Something does not work: see NO above." if sick else "spanloop works here."))
    return 1 if sick else 0


def examined() -> Iterator[Point]:
    """Everything that is looked at, in order."""
    yield Point("spanloop", WELL, f"{__version__} in {os.path.dirname(importlib.util.find_spec('spanloop').origin)}")  # type: ignore
    yield Point(
        "python", WELL, f"{platform.python_version()} ({platform.system()} {platform.machine()}) {sys.executable}"
    )
    yield from _needed()
    yield _vectors()
    yield _cores()
    yield _cache()
    yield _compiled()
    for module, purpose, advice in OPTIONAL:
        there = importlib.util.find_spec(module) is not None
        said = f"{_version(module)}: {purpose}" if there else f"not installed; {purpose}: {advice}"
        yield Point(module, WELL if there else ADVICE, said)


def _needed() -> Iterator[Point]:
    for module in ("numpy", "llvmlite"):
        try:
            __import__(module)
            yield Point(module, WELL, _version(module))
        except ImportError as error:
            yield Point(module, FAULT, f"cannot be imported ({error}); pip install {module}")


def _vectors() -> Point:
    import llvmlite.binding as llvm

    from spanloop.compiler.runtime import machine

    width = machine.lanes("double")
    said = (
        f"{llvm.get_host_cpu_name()}: {width} doubles or {machine.lanes('float')} floats a vector; batches run on them"
    )
    if width >= 4:
        return Point("vectors", WELL, said)
    return Point("vectors", ADVICE, f"{said}; without AVX2 or AVX-512 batches gain a factor of 2, not of 4 or 8")


def _cores() -> Point:
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    told = "Dynamics(model, threads=0) shares batches among all of them" if count > 1 else "threads gain nothing"
    return Point("cores", WELL if count > 1 else ADVICE, f"{count}; {told}")


def _cache() -> Point:
    from spanloop.compiler.runtime import cache

    where = cache.folder()
    if where is None:
        return Point("cache", ADVICE, "off (SPANLOOP_CACHE); every process compiles its kernels anew")
    if not where.exists():
        return Point("cache", WELL, f"{where}, not there yet; it is made with the first kernel")
    entries = [e for e in os.scandir(where) if e.is_file()]
    size = sum(e.stat().st_size for e in entries) / 1e6
    said = f"{where}: {len(entries)} kernels, {size:.1f} MB"
    if not cache.is_trusted(where):
        return Point("cache", ADVICE, f"{said}; not used, because others may write there. Try chmod 700 {where}")
    if not os.access(where, os.W_OK):
        return Point("cache", ADVICE, f"{said}; cannot be written, new kernels are compiled in every process")
    return Point("cache", WELL, said)


def _compiled() -> Point:
    """Compile a small kernel, anew, and compare it with the same steps on floats."""
    import numpy as np

    from spanloop import zoo
    from spanloop.errors import SpanloopError
    from spanloop.kernels import compile

    model = zoo.puma()
    q, v = model.random_state(1)
    tau = np.ones(model.nv)
    try:
        fast, slow = (compile(model, "forward_dynamics", target=t) for t in ("cpu", "python"))
        error = np.abs(fast(q, v, tau) - slow(q, v, tau)).max() / np.abs(slow(q, v, tau)).max()
    except (SpanloopError, OSError, RuntimeError) as problem:
        return Point("compiler", FAULT, f"a kernel cannot be made: {problem}")
    if not error < 1e-9:
        return Point("compiler", FAULT, f"a kernel's answer is wrong by {error:.1e}; please report this")
    return Point("compiler", WELL, f"PUMA's forward dynamics agrees with plain Python ({error:.0e})")


def _version(module: str) -> str:
    try:
        return metadata.version(module)
    except metadata.PackageNotFoundError:
        return "unknown version"
