"""Runs in files, as words of commands."""

from __future__ import annotations

from pathlib import Path

from spanloop.errors import InputError
from spanloop.results import Trajectory
from spanloop.results.files.storing import load_run

RUNS = (".nc", ".h5", ".npz")


def is_run(word: str) -> bool:
    """Does this word name the file of a run?"""
    return Path(word).suffix.lower() in RUNS


def run_of(word: str, number: int | None = None) -> Trajectory:
    """The run in a file; of a batch the one with this number."""
    if not is_run(word):
        told = "spanloop simulate zoo:four_bar --output run.npz"
        raise InputError(f"{word}: expected the file of a run ({', '.join(RUNS)}); make one with: {told}")
    run = load_run(word)
    if not run.batch:
        return run
    if number is None:
        raise InputError(f"{word}: this is a batch of {len(run.outcomes)} runs; choose one with --run 0")
    return run[number]
