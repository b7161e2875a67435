"""The shared library of a unit for this machine."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

from spanloop.errors import SpanloopError, SpanloopWarning
from spanloop.exports.fmu.model_description import OPTIONS

COMPILERS = ("cc", "gcc", "clang")


def platform_tuple() -> str:
    """The name of this machine's folder in a unit, as x86_64-linux."""
    machine = platform.machine().lower()
    known = {"amd64": "x86_64", "x64": "x86_64", "arm64": "aarch64", "i386": "x86", "i686": "x86"}
    system = {"linux": "linux", "darwin": "darwin", "win32": "windows"}.get(sys.platform, sys.platform)
    return f"{known.get(machine, machine)}-{system}"


def library_name(identifier: str) -> str:
    """The file name of the shared library."""
    return identifier + {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")


def library(source: str, identifier: str) -> bytes | None:
    """The compiled source; None with a warning where there is no compiler."""
    compiler = next((found for name in COMPILERS if (found := shutil.which(name))), None)
    if compiler is None:
        warnings.warn(
            f"export: no C compiler ({', '.join(COMPILERS)}) is found; the unit has sources only, and must be compiled "
            "before it runs (docs/fmu.md)",
            SpanloopWarning,
            stacklevel=4,
        )
        return None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        target = library_name(identifier)
        Path(folder, "unit.c").write_text(source, encoding="utf-8")
        words = [compiler, *OPTIONS.split(), "-fPIC", "-shared", "-fvisibility=hidden", "unit.c", "-o", target]
        words += [] if sys.platform == "win32" else ["-lm"]
        own = {**os.environ, **dict.fromkeys(("TMPDIR", "TMP", "TEMP"), folder)}  # nothing is left if it is interrupted
        done = subprocess.run(words, cwd=folder, env=own, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SpanloopError(
                f"export: {compiler} did not compile the unit: {done.stderr.strip()[:400]}. "
                "binary=False writes its sources alone"
            )
        return Path(folder, target).read_bytes()
