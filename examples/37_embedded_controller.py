"""A controller leaves Python: computed torque of a PUMA in single precision, as the program of a small board.

sl.export writes the law as C99. A firmware of 20 lines reads time, angles and rates, calls it and answers torques; it
is compiled for ARM and run by QEMU where both are installed, for this machine otherwise. sl.simulate is the arm: it
asks the board for torques once a millisecond, as a bus does. The same law in double precision, compiled into the
simulation, is the reference.

The page, with figures: docs/examples/37_embedded_controller.md
"""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import spanloop as sl
from spanloop import control

FIRMWARE = """
#include <stdio.h>
#include "board.h"

int main(void)
{
    float in[1 + BOARD_NQ + BOARD_NV], tau[BOARD_NV];
    while (fread(in, sizeof in, 1, stdin) == 1) {
        const int status = board_control(in, in + 1, in + 1 + BOARD_NQ, tau);
        if (status != 0) {
            fprintf(stderr, "%s\\n", board_status_text(status));
            return status;
        }
        fwrite(tau, sizeof tau, 1, stdout);
        fflush(stdout);
    }
    return 0;
}
"""
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-O2"]


def compiler():
    """The words that compile for a board, and those that run its program; None if there is no compiler."""
    if shutil.which("arm-linux-gnueabihf-gcc") and shutil.which("qemu-arm"):
        return ["arm-linux-gnueabihf-gcc", "-static"], ["qemu-arm"]
    found = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    return None if found is None else ([found], [])


if compiler() is None:
    print("no C compiler is installed (cc, gcc or clang): nothing to run")
    sys.exit()

# ---- the law: computed torque along a path of 0.8 s

model = sl.zoo.puma()
start = np.array([0.0, -0.8, 1.2, 0.0, 0.6, 0.0])
goal = np.array([0.7, -0.3, 0.8, 0.4, 0.2, -0.5])
moves = {
    j.name: control.quintic(float(a), float(b), duration=0.8) for j, a, b in zip(model.joints, start, goal, strict=True)
}
law = control.computed_torque(model, moves, kp=900.0, kd=60.0)

# ---- to the board

path = sl.export(model, "board.c", real="float", controller=law)
Path("firmware.c").write_text(FIRMWARE)
words, runner = compiler()
subprocess.run([*words, *STRICT, "board.c", "firmware.c", "-o", "firmware", "-lm"], check=True)
operations = path.with_suffix(".h").read_text().split(" operations.")[0].split()[-1]
print(f"the law takes {operations} operations in single precision")

# ---- the arm asks the board once a millisecond

board = subprocess.Popen([*runner, "./firmware"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
asked = []


def bus(t, q, v):
    board.stdin.write(np.concatenate([[t], q, v]).astype(np.float32).tobytes())
    board.stdin.flush()
    tau = np.frombuffer(board.stdout.read(4 * model.nv), np.float32).astype(float)
    asked.append((t, q.copy(), v.copy(), tau))
    return tau


options = {"duration": 1.0, "step": 1e-3, "limits": "ignore", "integrator": "rk4"}
run = sl.simulate(model, start, controller=control.callback(bus), **options)
board.stdin.close()
assert board.wait(timeout=10) == 0
reference = sl.simulate(model, start, controller=law, **options)

# ---- how well

times, q, v, torques = (np.array(x) for x in zip(*asked, strict=True))
exact = np.array([law.torques(t, a, b, [], []) for t, a, b in zip(times, q, v, strict=True)], float)
off = np.abs(torques - exact).max() / np.abs(exact).max()
print(f"{len(asked)} answers; torques are off by {off:.0e} of the largest, {np.abs(exact).max():.1f} N m")
print(f"the arm ends {np.abs(run.q[-1] - goal).max():.0e} rad from its goal")
apart = np.abs(run.q - reference.q).max()
print(f"and is never farther than {apart:.0e} rad from a run whose law acts at all times, in double precision")
assert off < 1e-3  # gains of 900/s² multiply the rounding of angles, 1e-7 rad
assert np.abs(run.q[-1] - goal).max() < 1e-3
