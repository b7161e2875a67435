"""`spanloop plot`: plot a run to a file."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spanloop.cli.shared_arguments import run_of
from spanloop.errors import InputError, UnsupportedError
from spanloop.trajectory import Trajectory

EXAMPLES = (
    "spanloop simulate zoo:four_bar --v crank_hinge=2 --duration 1 --output run.npz",
    "spanloop plot run.npz energy --output energy.png",
    "spanloop plot run.npz q --names crank_hinge rocker_hinge",
)
FORMATS = (".png", ".svg", ".pdf")


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", metavar="RUN", help="the file of a run: .nc, .h5, .npz")
    figures = "q, v, a, tau, energy, closure_residual, reactions, contacts, phase, deflection, modes"
    add("what", metavar="WHAT", help=figures)
    add("--names", metavar="NAME", nargs="+", help="joints or loops to plot (all)")
    add("--run", metavar="N", type=int, dest="number", help="number of a run in a batch")
    add("--output", metavar="FILE", help=f"{', '.join(FORMATS)} (WHAT.png)")


def run(chosen: argparse.Namespace) -> int:
    path = Path(chosen.output or f"{chosen.what}.png")
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"--output {path}: the extension is {path.suffix!r}; expected {', '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise InputError(f"--output {path}: there is no folder {str(path.parent)!r}; make it first")
    motion = run_of(chosen.file, chosen.number)
    draw(motion, chosen.what, chosen.names, path)
    print(f"written: {path}")
    return 0


def draw(motion: Trajectory, what: str, names: Sequence[str] | None, path: Path) -> None:
    """Write a figure of a run to a file."""
    axes = _plots()(motion, what, names)
    np.ravel(np.asarray(axes, dtype=object))[0].figure.savefig(path)


def _plots() -> Callable[..., Any]:
    try:
        import matplotlib  # noqa: F401

        from spanloop.view.plots import plot
    except ImportError as error:
        raise UnsupportedError(f"plots need matplotlib ({error}); pip install matplotlib") from None
    return plot
