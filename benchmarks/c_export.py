"""Exported C beside our own kernels: forward dynamics of one state, both called by pointer from one C loop.

python benchmarks/c_export.py [panda four_bar stewart arms8]

Prints median (quartiles) in ns of interleaved samples for gcc and clang, -O2 and -O3 -march=native -ffp-contract=fast,
the ratio to our kernel, and the code of Panda in float for a Cortex-M4 (clang's thumb back end, sections of code and
constants).
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import spanloop as sl

sys.path[:0] = [str(Path(__file__).parents[1] / "tests" / "support")]

LOOP = """
#include <time.h>
double seconds(int (*f)(const void *, const void *, const void *, void *), const void *q, const void *v,
               const void *tau, double *a, long n)
{
    struct timespec s, e;
    long i;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &s);
    for (i = 0; i < n; i++) f(q, v, tau, a);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &e);
    return (double)(e.tv_sec - s.tv_sec) + 1e-9 * (double)(e.tv_nsec - s.tv_nsec);
}
"""
NATIVE = ("-march=native", "-ffp-contract=fast")
FLAGS = {"-O2": ("-O2",), "-O2 FMA": ("-O2", *NATIVE), "-O3 FMA": ("-O3", *NATIVE)}
M4 = ("--target=thumbv7em-none-eabihf", "-mcpu=cortex-m4", "-mfloat-abi=hard", "-ffreestanding")
SAMPLES, SAMPLE = 41, 2e-3  # s


def panda() -> sl.Model:
    """The Panda of example-robot-data, fingers locked."""
    from mechanisms import robot

    return robot("panda")


def cases(names: list[str]):
    """Models with a state each."""
    zoo, rng = sl.zoo, np.random.default_rng(1)
    if "panda" in names:
        model = panda()
        yield "panda", model, np.array(model.neutral()) + 0.3 * rng.standard_normal(model.nq), True
    if "four_bar" in names:
        yield "four_bar", zoo.four_bar(), zoo.four_bar_start(), False
    if "stewart" in names:
        yield "stewart", zoo.stewart(), zoo.stewart_start(), False
    if "arms8" in names:
        yield "arms8", zoo.arms_with_object(8), zoo.arms_with_object_start(8), False


def shared_object(compiler: str, flags: tuple[str, ...], source: Path, name: str) -> ctypes.CDLL:
    """The source as a library."""
    target = source.with_name(name)
    words = [compiler, "-std=c99", *flags, "-shared", "-fPIC", str(source), "-o", str(target), "-lm"]
    subprocess.run(words, check=True)
    return ctypes.CDLL(str(target))


def address(function) -> ctypes.c_void_p:
    return ctypes.cast(function, ctypes.c_void_p)


def measure(folder: Path, name: str, model: sl.Model, q: np.ndarray, moves: bool, timer) -> None:
    rng = np.random.default_rng(2)
    tau = rng.standard_normal(model.nv)
    v = rng.standard_normal(model.nv) if moves else np.zeros(model.nv)
    kernel = sl.compile(model, "forward_dynamics", lowering="unrolled")
    source = sl.export(model, ["forward_dynamics"], folder / f"{name}.c")
    variants = {"kernel": address(kernel._single)}
    kept = []
    for compiler in filter(shutil.which, ("gcc", "clang")):
        for label, flags in FLAGS.items():
            kept.append(shared_object(compiler, flags, source, f"{name}{len(kept)}.so"))
            variants[f"{compiler} {label}"] = address(getattr(kept[-1], f"{name}_forward_dynamics"))
    rows = [np.array(x, float) for x in (q, v, tau)]
    out, given = np.empty(model.nv), [ctypes.c_void_p(x.ctypes.data) for x in rows]

    def seconds(f, n: int) -> float:
        return timer(f, *given, ctypes.c_void_p(out.ctypes.data), ctypes.c_long(n))

    seconds(variants["kernel"], 1)
    expected = out.copy()
    count = max(1, int(SAMPLE * 200 / seconds(variants["kernel"], 200)))
    seen: dict[str, list[float]] = {x: [] for x in variants}
    worst = 0.0
    for _ in range(SAMPLES):
        for label, f in variants.items():
            seen[label].append(1e9 * seconds(f, count) / count)
            worst = max(worst, float(np.abs(out - expected).max() / np.abs(expected).max()))
    base = np.median(seen["kernel"])
    print(f"\n{name}: {len(kernel.plan.nodes)} operations; largest difference {worst:.1e}")
    for label, x in seen.items():
        low, middle, high = np.quantile(x, (0.25, 0.5, 0.75))
        print(f"  {label:14s} {middle:7.0f} ({low:.0f}-{high:.0f}) ns   {middle / base:5.2f} x")


def code_size(folder: Path) -> None:
    """Bytes of code and constants of Panda's forward dynamics in float on a Cortex-M4."""
    headers = folder / "headers"  # freestanding clang has no math.h for this target
    headers.mkdir()
    (headers / "math.h").write_text(
        '#define NAN __builtin_nanf("")\n#define INFINITY __builtin_inff()\n'
        "#define fabsf __builtin_fabsf\n#define sqrtf __builtin_sqrtf\n#define fmaf __builtin_fmaf\n"
    )
    (headers / "string.h").write_text("#define memcpy __builtin_memcpy\n#define memset __builtin_memset\n")
    source = sl.export(panda(), ["forward_dynamics"], folder / "panda_f.c", real="float")
    for level in ("-Os", "-O2"):
        target = folder / "m4.o"
        words = [
            "clang",
            *M4,
            level,
            "-std=c99",
            "-fno-math-errno",
            f"-I{headers}",
            "-c",
            str(source),
            "-o",
            str(target),
        ]
        subprocess.run(words, check=True)
        tool = shutil.which("llvm-size") or next(map(str, Path("/usr/bin").glob("llvm-size-*")), None) or "size"
        lines = subprocess.run(
            [tool, "-A", str(target)], check=True, capture_output=True, text=True
        ).stdout.splitlines()
        found = {w[0]: int(w[1]) for w in map(str.split, lines) if len(w) == 3 and w[1].isdigit()}
        code = sum(n for k, n in found.items() if k.startswith(".text"))
        constants = sum(n for k, n in found.items() if k.startswith(".rodata"))
        print(f"Cortex-M4, Panda in float, {level}: {code} bytes of code, {constants} of constants (texts of a status)")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        where = Path(name)
        loop = where / "loop.c"
        loop.write_text("#define _POSIX_C_SOURCE 199309L\n" + LOOP)
        timed = shared_object("gcc", ("-O2",), loop, "loop.so").seconds
        timed.restype = ctypes.c_double
        chosen = sys.argv[1:] or ["panda", "four_bar", "stewart", "arms8"]
        for case in cases(chosen):
            measure(where, *case, timed)
        if "panda" in chosen and shutil.which("clang"):
            code_size(where)
