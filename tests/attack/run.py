"""Run the standing attacks for some minutes and print a table of what was tried, right, refused and wrong.

python tests/attack/run.py --minutes 30 --seed 0 [--only trees closed] [--workers 2] [--failures failures.txt]

An attack is a module of this folder with `attack(seed, deadline) -> Tally`. Every worker takes a turn of each attack
with a seed of its own, again and again, until the attack's share of the minutes is spent.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import sys
import time
import traceback
from collections import defaultdict
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent / "support")]

from tally import Tally  # noqa: E402

SHARES = {"trees": 4.5, "closed": 4.5, "files": 2.0, "kills": 1.5, "threads": 0.7, "cache_poisoning": 0.7}
# of the time; other attacks have 1. In 30 minutes on two cores: 10⁶ tree states, 10⁵ closed states and files, 200 kills
TURN = 60.0  # seconds that an attack works with one seed


def attacks() -> list[str]:
    """Names of the modules of this folder that attack."""
    found = []
    for path in sorted(FOLDER.glob("*.py")):
        if "\ndef attack(seed" in path.read_text(encoding="utf-8"):
            found.append(path.stem)
    return found


def turn(name: str, seed: int, seconds: float) -> Tally:
    """One attack with one seed; what the attack itself does not survive counts as wrong."""
    os.environ.setdefault("SPANLOOP_CACHE", "off")
    try:
        return importlib.import_module(name).attack(seed, time.monotonic() + seconds)
    except Exception:
        tally = Tally()
        tally.fail(f"{name}.attack({seed}): the attack itself ended with\n{traceback.format_exc()}")
        return tally


def work(worker: int, workers: int, seed: int, shares: dict[str, float], results) -> None:
    """All turns of one worker."""
    left, number = dict(shares), 0
    while left:
        name = max(left, key=lambda x: left[x])
        start = time.monotonic()
        results.put((name, turn(name, seed + worker + workers * number, min(TURN, left[name]))))
        number += 1
        left[name] -= max(time.monotonic() - start, 0.1)
        left = {k: x for k, x in left.items() if x > 0.5}
    results.put((None, worker))


def run(names: list[str], minutes: float, seed: int, workers: int) -> dict[str, Tally]:
    """The sum of all turns, by attack."""
    total = sum(SHARES.get(n, 1.0) for n in names)
    shares = {n: 60.0 * minutes * SHARES.get(n, 1.0) / total for n in names}
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    crew = [context.Process(target=work, args=(k, workers, seed, shares, results)) for k in range(workers)]
    for process in crew:
        process.start()
    tallies, running = defaultdict(Tally), set(range(workers))
    while running:
        try:
            name, found = results.get(timeout=1.0)
        except Exception:
            for k in sorted(running):
                if crew[k].exitcode not in (None, 0):
                    running.discard(k)
                    tallies["crashes"].fail(f"worker {k} (seeds {seed + k} + {workers} n) died: {crew[k].exitcode}")
            continue
        if name is None:
            running.discard(found)
        else:
            tallies[name] += found
    for process in crew:
        process.join()
    return dict(tallies)


def table(tallies: dict[str, Tally]) -> str:
    """The counts as a Markdown table."""
    lines = ["| attack | tried | right | refused | wrong | of these |", "|---|---|---|---|---|---|"]
    for name, t in sorted(tallies.items()):
        notes = ", ".join(f"{x} {what}" for what, x in sorted(t.notes.items()))
        lines.append(f"| {name} | {t.tried} | {t.right} | {t.refused} | {t.wrong} | {notes} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=attacks(), default=attacks(), metavar="attack")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--failures", type=Path, help="file for the sentences of all failures")
    given = parser.parse_args()
    tallies = run(given.only, given.minutes, given.seed, given.workers)
    print(table(tallies))
    failures = [f"{name}: {line}" for name, t in sorted(tallies.items()) for line in t.failures]
    if given.failures:
        given.failures.write_text("\n".join(failures) + "\n", encoding="utf-8")
    else:
        print("\n".join(failures[:40]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
