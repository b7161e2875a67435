"""The time until the first step of a run with contacts, with an empty cache: python benchmarks/contacts_compile.py

Each case runs in a process of its own with an empty cache: processor time of a run of ten steps, without the import,
and of a second process, which finds the code in the cache. Seconds; smaller of two.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

CASES = {
    "box on 8 corners": "b = sl.Builder('box').body('box', 1.0, inertia=(.01, .01, .01)).free('f', 'world', 'box')\n"
    "model = b.build().with_contact('box', ('box', sl.contacts.Box(.2, .2, .2)), 'ground', friction=.5)\n"
    "q = [1, 0, 0, 0, 0, 0, .1]",
    "quadruped, 4 feet": "model, q = sl.zoo.quadruped(), sl.zoo.quadruped_start(foot=0.0)\n"
    "for x in ('fl', 'fr', 'hl', 'hr'): model = model.with_contact(x, f'{x}_foot', 'ground', friction=.8)",
    "quadruped, 4 feet and 4 knees": "model, q = sl.zoo.quadruped(), sl.zoo.quadruped_start(foot=0.0)\n"
    "for x in ('fl', 'fr', 'hl', 'hr'):\n"
    "  model = model.with_contact(x, f'{x}_foot', 'ground', friction=.8)\n"
    "  model = model.with_contact(f'{x}_knee', (f'{x}_shank', sl.contacts.Point()), 'ground', friction=.8)",
    "linkage walker, massless rods, 8 feet": "model = sl.zoo.linkage_walker(massless_rods=True)\n"
    "q = sl.zoo.linkage_walker_start(massless_rods=True)\n"
    "for k in range(1, 9): model = model.with_contact(f'leg{k}', f'leg{k}_foot', 'ground', friction=.8)",
    "linkage walker, 8 feet": "model, q = sl.zoo.linkage_walker(), sl.zoo.linkage_walker_start()\n"
    "for k in range(1, 9): model = model.with_contact(f'leg{k}', f'leg{k}_foot', 'ground', friction=.8)",
}
TIMED = """
import time, warnings
import spanloop as sl
warnings.simplefilter("ignore")
{case}
began = time.process_time()
sl.simulate(model, q, duration=0.01, step=1e-3, contacts="{contacts}")
print(time.process_time() - began)
"""


def seconds(case: str, contacts: str, folder: str) -> float:
    script = TIMED.format(case=case, contacts=contacts)
    settings = {**os.environ, "SPANLOOP_CACHE": folder}
    return float(
        subprocess.run([sys.executable, "-c", script], env=settings, capture_output=True, text=True, check=True).stdout
    )


def main() -> None:
    print("| | cold | without contacts | from the cache |")
    print("|---|---|---|---|")
    for name, case in CASES.items():
        rows = []
        for _ in range(2):
            with tempfile.TemporaryDirectory() as a, tempfile.TemporaryDirectory() as b:
                rows.append((seconds(case, "steps", a), seconds(case, "ignore", b), seconds(case, "steps", a)))
        cold, without, warm = map(min, zip(*rows, strict=True))
        print(f"| {name} | {cold:.2f} | {without:.2f} | {warm:.2f} |", flush=True)


if __name__ == "__main__":
    main()
