"""Exported C for other instructions: fused operations, ARM under QEMU, C++ compilers."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from c_code import COMPILERS, REAL, STRICT, compile_c, needs_compiler, pointer

import spanloop as sl
from spanloop import zoo
from spanloop.compiler.portable.sines import LIMIT

ULP = {"double": 2.0**-53, "float": 2.0**-24}


def fused() -> tuple[str, ...]:
    """Flags that give this machine's fused operations; () if it has none."""
    words = [COMPILERS[0], "-march=native", "-dM", "-E", "-x", "c", "/dev/null"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    has = "__FMA__" in done.stdout or "__FP_FAST_FMA" in done.stdout
    return ("-march=native", "-ffp-contract=fast") if done.returncode == 0 and has else ()


@needs_compiler
@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("way", ["plain", "fused", "fused, but not asked for"])
def test_sines_are_good_to_two_units_up_to_their_limit(real, way, tmp_path):
    """The pose of a hinge about z has them; angles are rounded to the type first."""
    flags = () if way == "plain" else fused()
    if way != "plain" and not flags:
        pytest.skip("no fused operations on this machine")
    flags += ("-DSPANLOOP_NO_FMA",) if way.endswith("for") else ()
    body = sl.Builder("hinge").body("arm", 1.0, inertia=(1.0, 1.0, 1.0)).revolute("hinge", "world", "arm", axis="z")
    path = sl.export(body.build(), ["pose"], tmp_path / "arm.c", frame="arm", real=real)
    code = ctypes.CDLL(str(compile_c([path], tmp_path / "arm.so", "-shared", "-fPIC", "-O2", *flags)))
    dtype, rng = REAL[real][0], np.random.default_rng(8)
    sizes = 10.0 ** rng.uniform(-6.0, np.log10(LIMIT[real]), 500)
    quarters = np.arange(-100, 100) * (np.pi / 2.0)
    for angle in np.concatenate([sizes, -sizes[:100], quarters]).astype(dtype):
        q, out = np.array([angle], dtype), np.empty(16, dtype)
        assert code.arm_pose(pointer(q), pointer(out)) == 0
        exact = np.cos(np.longdouble(angle)), np.sin(np.longdouble(angle))
        for found, right in zip((out[0], out[4]), exact, strict=True):
            assert abs(found - right) <= 4.0 * ULP[real] * max(abs(right), ULP[real]), (angle, found, right)


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_self_test_passes_with_fused_operations(compiler, tmp_path):
    flags = fused()
    if not flags:
        pytest.skip("no fused operations on this machine")
    for real in ("double", "float"):
        functions = ["forward_dynamics", "energy"]
        path = sl.export(zoo.four_bar(), functions, tmp_path / "arm.c", real=real, step=1e-3, q=zoo.four_bar_start())
        program = compile_c([path], tmp_path / "program", "-DARM_TEST", "-O2", *flags, compiler=compiler)
        assert subprocess.run([str(program)], check=False, capture_output=True).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("real", ["double", "float"])
def test_the_self_test_passes_on_arm(real, tmp_path):
    if not (shutil.which("arm-linux-gnueabihf-gcc") and shutil.which("qemu-arm")):
        pytest.skip("arm-linux-gnueabihf-gcc and qemu-arm are not installed")
    start = zoo.four_bar_start()
    path = sl.export(zoo.four_bar(), ["forward_dynamics"], tmp_path / "arm.c", real=real, step=1e-3, q=start)
    compiler = "arm-linux-gnueabihf-gcc"
    program = compile_c([path], tmp_path / "program", "-DARM_TEST", "-static", "-O2", compiler=compiler)
    done = subprocess.run(["qemu-arm", str(program)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "arm: all tests passed")


@needs_compiler
@pytest.mark.slow
def test_the_source_compiles_as_c_plus_plus(tmp_path):
    """As a file that ends in .C does."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    path = sl.export(zoo.four_bar(), ["forward_dynamics"], tmp_path / "arm.C", step=1e-3, parameters="live")
    words = ["g++", *STRICT[1:-1], "-Werror", "-O0", "-DARM_TEST", str(path), "-o", str(tmp_path / "program"), "-lm"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    assert subprocess.run([str(tmp_path / "program")], check=False, capture_output=True).returncode == 0
