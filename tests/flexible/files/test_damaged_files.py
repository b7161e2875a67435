"""Damaged files give a body or an error that names file and line: no crash, no hang, no memory that they do not need.

A seed says everything: `mutated_finite_elements.damaged(seed)` makes the files again.
"""

from __future__ import annotations

import random
import re
import time
import tracemalloc
import warnings
from collections import Counter

import numpy as np
import pytest
from mutated_finite_elements import Damage, damaged, formats, put

import spanloop as sl
from spanloop.errors import SpanloopError, SpanloopWarning

FEW, MANY = 280, 1400
SLOW = 5.0  # s; a case takes milliseconds
LARGE = 30 * 2**20  # bytes; the files have 30 kB


def outcome(damage: Damage, folder) -> str:
    """ "read", or the sentence of the error."""
    put(damage, folder)
    try:
        if damage.arguments is None:
            sl.flexible.load_modal(folder / damage.name)
        else:
            sl.flexible.load(**{k: folder / v for k, v in damage.arguments.items()})
    except SpanloopError as error:
        return str(error)
    return "read"


def check(seeds: range, folder) -> Counter:
    """Every case: an answer in time and within memory; an error names the file."""
    count: Counter = Counter()
    for seed in seeds:
        damage = damaged(seed)
        tracemalloc.start()
        start = time.thread_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SpanloopWarning)
            found = outcome(damage, folder)
        seconds, (_, peak) = time.thread_time() - start, tracemalloc.get_traced_memory()
        tracemalloc.stop()
        label = f"seed {seed} ({damage.format}, {damage.what}): {found}"
        assert seconds < SLOW, f"{label} took {seconds:.1f} s"
        assert peak < LARGE, f"{label} took {peak / 2**20:.0f} MB"
        if found == "read":
            count[damage.format, "read"] += 1
            continue
        names = [name for name in damage.files if str(folder / name) in found]
        assert names, f"{label}: no file is named"
        with_line = re.search(r"\.\w+(:\d+|, byte \d+): ", found)
        count[damage.format, "with line" if with_line else "without line"] += 1
    return count


@pytest.mark.slow
def test_a_few_damaged_files(tmp_path):
    count = check(range(FEW), tmp_path)
    for name in formats():
        assert count[name, "with line"] + count[name, "without line"] > 0, f"no damage of {name} was noticed"


def test_a_matrix_file_that_is_cut_off_is_refused_or_warned_about(tmp_path):
    for name, whole in formats().items():
        for file, data in whole.files.items():
            if file.startswith("body.inp") or file.endswith((".bdf", ".frd")):
                continue  # their nodes may be complete
            rng = random.Random(file)
            for k in range(12):
                at = rng.randrange(len(data))
                at = data.rfind(b"\n", 0, at) + 1 if k % 2 else at  # after a whole line
                damage = Damage(name, {**whole.files, file: data[:at]}, whole.arguments, file, f"cut at {at}")
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    found = outcome(damage, tmp_path)
                is_noticed = found != "read" or any("cut off" in str(w.message) for w in caught)
                assert is_noticed, f"{name}: {file} cut at {at} of {len(data)} bytes"


@pytest.mark.parametrize("name", [x for x in formats() if x not in ("npz", "op4 binary", "op4 wide", "frd")])
def test_lines_that_end_as_on_windows_are_read_alike(name, tmp_path):
    whole = formats()[name]
    found = []
    for end in (b"\n", b"\r\n"):
        files = {n: x.replace(b"\n", end) for n, x in whole.files.items()}
        put(Damage(name, files, whole.arguments, "", ""), tmp_path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SpanloopWarning)
            if whole.arguments is None:
                found.append(sl.flexible.load_modal(tmp_path / "body.sid").terms["Ct"].constant)
            else:
                body = sl.flexible.load(**{k: tmp_path / v for k, v in whole.arguments.items()})
                found.append(np.concatenate([body.stiffness.toarray().ravel(), body.positions.ravel()]))
    assert (found[0] == found[1]).all()


@pytest.mark.slow
def test_thousands_of_damaged_files(tmp_path):
    check(range(10_000, 10_000 + MANY), tmp_path)
