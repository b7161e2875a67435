"""Damaged files of finite elements: each gives a body or an error that names the file, in time and within memory."""

from __future__ import annotations

import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from mutated_finite_elements import damaged, put
from tally import Tally

import spanloop as sl
from spanloop.errors import SpanloopError

SECONDS = 5.0  # of processor time for one case, which takes milliseconds
MEGABYTES = 500  # by which memory may grow


def attack(seed: int, deadline: float) -> Tally:
    """Cases of a seed until the deadline."""
    tally, k, before = Tally(), 0, _megabytes()
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < deadline:
            number, start = 1_000_000 * seed + k, time.thread_time()
            said = _answer(number, Path(folder))
            k += 1
            if time.thread_time() - start > SECONDS or _megabytes() - before > MEGABYTES:
                tally.fail(f"mutated_finite_elements.damaged({number}) takes too long or too much memory: {said}")
            elif said and folder not in said:
                tally.fail(f"mutated_finite_elements.damaged({number}) names no file: {said}")
            else:
                tally.count(right=not said, refused=bool(said))
    return tally


def _answer(number: int, folder: Path) -> str:
    """The sentence of the error, empty if a body is read; other exceptions end the attack."""
    damage = damaged(number)
    put(damage, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if damage.arguments is None:
                sl.flexible.load_modal(folder / damage.name)
            else:
                sl.flexible.load(**{k: folder / v for k, v in damage.arguments.items()})
        except SpanloopError as error:
            return str(error)
        except Exception as error:
            raise AssertionError(f"mutated_finite_elements.damaged({number})") from error
    return ""


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
