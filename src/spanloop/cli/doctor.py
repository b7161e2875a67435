"""`spanloop doctor`: check the installation and this machine. Exit code 1 if something does not work."""

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
from spanloop.bridges.versions import too_old
from spanloop.cli.terminal import add_json, colored, print_json

EXAMPLES = ("spanloop doctor", "spanloop doctor --json")
WELL, ADVICE, FAULT = "ok", "advice", "failed"
MARKS = {WELL: "ok", ADVICE: "--", FAULT: "NO"}

OPTIONAL = (  # module, its package, what it is for
    ("mujoco", "mujoco", "reading MJCF files"),
    ("h5py", "h5py", "runs in .nc and .h5 files"),
    ("scipy", "scipy", "adaptive integrators (DOP853, Radau, ...), gains and reduction of linear models"),
    ("matplotlib", "matplotlib", "spanloop plot, run.plot(...)"),
    ("viser", "viser", "spanloop view, the live viewer"),
    ("trimesh", "trimesh", "meshes in .ply, .off and glTF files"),
    ("PIL", "pillow", "videos of runs as .gif"),
    ("imageio_ffmpeg", "imageio-ffmpeg", "videos of runs as .mp4"),
    ("gymnasium", "gymnasium", "sl.envs, environments for learning"),
    ("torch", "torch", "spanloop.torch, functions on PyTorch tensors"),
    ("jax", "jax", "spanloop.jax, functions on JAX arrays"),
    ("pinocchio", "pin", "a peer of tests and benchmarks"),
)
FEATURES = ("avx512f", "avx2", "fma", "avx", "sse4.2", "neon", "sve")  # instruction sets that matter for speed


@dataclass(frozen=True)
class Check:
    """One check: its name, verdict and message."""

    name: str
    verdict: str
    message: str


def arguments(parser: argparse.ArgumentParser) -> None:
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    checks = list(all_checks())
    failed = any(c.verdict == FAULT for c in checks)
    if chosen.json:
        print_json({"ok": not failed, "checks": [asdict(c) for c in checks]})
        return 1 if failed else 0
    width = max(len(c.name) for c in checks)
    for c in checks:
        print(f"{colored(MARKS[c.verdict], c.verdict)}  {c.name:<{width}}  {c.message}")
    print("\n" + ("Something does not work; see NO above." if failed else "spanloop works here."))
    return 1 if failed else 0


def all_checks() -> Iterator[Check]:
    """All checks, in the order of the report."""
    yield Check("spanloop", WELL, f"{__version__} in {os.path.dirname(importlib.util.find_spec('spanloop').origin)}")  # type: ignore
    yield Check(
        "python", WELL, f"{platform.python_version()} ({platform.system()} {platform.machine()}) {sys.executable}"
    )
    yield from _needed()
    yield _vectors()
    yield _cores()
    yield _gpus()
    yield _cache()
    yield _compiled()
    yield from _settings()
    for module, package, purpose in OPTIONAL:
        if importlib.util.find_spec(module) is not None:
            found = _version(package)
            old = too_old(package, found)
            yield Check(package, ADVICE, f"{old}; {purpose}") if old else Check(package, WELL, f"{found}: {purpose}")
        else:
            yield Check(package, ADVICE, f"not installed; {purpose}: pip install {package}")


def _needed() -> Iterator[Check]:
    for module in ("numpy", "llvmlite"):
        try:
            __import__(module)
            yield Check(module, WELL, _version(module))
        except ImportError as error:
            yield Check(module, FAULT, f"cannot be imported ({error}); pip install {module}")


def _vectors() -> Check:
    from spanloop.compiler.runtime import machine

    width, known = machine.lanes("double"), machine.features().split(",")
    features = " ".join(name for name in FEATURES if f"+{name}" in known) or "no vector instructions known"
    message = f"{machine.processor()} ({features}): {width} doubles or {machine.lanes('float')} floats per vector"
    if width >= 4:
        return Check("vectors", WELL, message)
    return Check("vectors", ADVICE, f"{message}; without AVX2 or AVX-512 batches gain a factor of 2, not of 4 or 8")


def _settings() -> Iterator[Check]:
    """The environment variables that are set."""
    for name in ("SPANLOOP_CACHE", "SPANLOOP_CACHE_MB", "SPANLOOP_PROGRESS", "SPANLOOP_TRACEBACK"):
        if name in os.environ:
            yield Check(name, WELL, repr(os.environ[name]))


def _cores() -> Check:
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    advice = "Dynamics(model, threads=0) uses all of them for batches" if count > 1 else "threads gain nothing"
    return Check("cores", WELL if count > 1 else ADVICE, f"{count}; {advice}")


def _gpus() -> Check:
    """The GPUs of target "cuda", or why there is none."""
    from spanloop.compiler.runtime.gpu import driver
    from spanloop.errors import DeviceError

    try:
        found = driver.names()
    except DeviceError as error:
        return Check("gpu", ADVICE, str(error))
    if not found:
        return Check("gpu", ADVICE, "the driver is installed, and there is no NVIDIA GPU; target='cpu' needs none")
    return Check("gpu", WELL, f"{', '.join(found)}; target='cuda' uses the first, device= of sl.compile another")


def _cache() -> Check:
    from spanloop.compiler.runtime import cache

    where = cache.folder()
    if where is None:
        return Check("cache", ADVICE, "off (SPANLOOP_CACHE); every process compiles its kernels again")
    if not where.exists():
        return Check("cache", WELL, f"{where}, created with the first kernel")
    sizes = [f.size for f in cache.files() if f.is_kernel]
    message = f"{where}: {len(sizes)} kernels, {sum(sizes) / 1e6:.1f} MB of at most {cache.bound() / 1e6:g} MB"
    if not cache.is_trusted(where):
        return Check(
            "cache", ADVICE, f"{message}; not used, because other users may write there. Try chmod 700 {where}"
        )
    if not os.access(where, os.W_OK):
        return Check("cache", ADVICE, f"{message}; not writable, so every process compiles new kernels")
    return Check("cache", WELL, message)


def _compiled() -> Check:
    """Compile a small kernel and compare it with plain Python."""
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
        return Check("compiler", FAULT, f"cannot compile a kernel: {problem}")
    if not error < 1e-9:
        return Check("compiler", FAULT, f"a kernel's result is wrong by {error:.1e}; please report this")
    return Check("compiler", WELL, f"PUMA's forward dynamics agrees with plain Python ({error:.0e})")


def _version(module: str) -> str:
    try:
        return metadata.version(module)
    except metadata.PackageNotFoundError:
        return "unknown version"
