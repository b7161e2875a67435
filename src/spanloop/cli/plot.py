"""`spanloop plot`: a figure of a run, as a file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from spanloop.cli.arguments import run_of
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
    add("what", metavar="WHAT", help="q, v, a, tau, energy, closure_residual, reactions, phase")
    add("--names", metavar="NAME", nargs="+", help="of the joints or loops in it (all)")
    add("--run", metavar="N", type=int, dest="number", help="which run of a batch")
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
    """A figure of a run as a file."""
    axes = _plots()(motion, what, names)
    np.ravel(np.asarray(axes, dtype=object))[0].figure.savefig(path)


def _plots():
    try:
        import matplotlib  # noqa: F401

        from spanloop.view.plots import plot
    except ImportError as error:
        raise UnsupportedError(f"plots need matplotlib ({error}); pip install matplotlib") from None
    return plot
