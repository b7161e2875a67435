"""`spanloop convert`: a mechanism from one file format to another, with a word on all that the target cannot hold."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from spanloop.cli.arguments import add_model, model_of
from spanloop.errors import InputError, UnsupportedError
from spanloop.model import Model
from spanloop.model.files import FORMATS, checked_path, save, written_for

HELD, NOT_HELD = 0, 1


EXAMPLES = (
    "spanloop convert zoo:puma puma.csv",
    "spanloop convert zoo:four_bar four_bar.toml",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("target", metavar="TO", help="a .toml, .urdf, .xml (MJCF), .sdf or .csv file")
    parser.add_argument("--force", action="store_true", help="leave out what the target cannot hold")
    parser.add_argument("--closed", action="store_true", help="make a closed state the zero of all coordinates")


def run(chosen: argparse.Namespace) -> int:
    return convert(chosen.file, chosen.target, chosen.base, chosen.force, chosen.closed)


def convert(source: str, target: str, base: str | None, force: bool, closed: bool) -> int:
    """Read one file, write another; 1, and nothing written, if the target cannot hold everything and `force` is off."""
    path = checked_path(target)
    if Path(source).exists() and path.exists() and Path(source).samefile(path):
        raise InputError(f"{target}: is the file to be read; give another name")
    model = model_of(source, base)
    if closed:
        model = at_closed_state(model)
    try:
        written = written_for(model, path)
    except UnsupportedError as error:
        print(f"{error}", file=sys.stderr)
        return NOT_HELD
    for remark in written.remarks:
        print(f"note: {remark}", file=sys.stderr)
    for loss in written.lost:
        print(f"not held: {loss}", file=sys.stderr)
    if written.lost and not force:
        name = FORMATS[path.suffix.lower()]
        print(
            f"{path}: not written, since {name} cannot hold all of {model.name!r}; "
            "choose .toml, which can, or add --force",
            file=sys.stderr,
        )
        return NOT_HELD
    save(model, path, force=True)
    print(f"{path}: bodies {model.n_bodies}, freedoms {model.nv}, loops {len(model.loops)}")
    return HELD


def at_closed_state(model: Model) -> Model:
    """The model whose zero is a state at which its loops are closed, the one found from its own zero."""
    if not (model.loops or model.couplings):
        return model
    from spanloop.dynamics import Dynamics

    q = Dynamics(model).assemble(model.neutral())
    moved = np.abs(q - model.neutral()).max(initial=0.0)
    if moved > 0.0:
        shown = ", ".join(f"{x:.6g}" for x in q)
        print(f"note: the new zero is the closed state ({shown})", file=sys.stderr)
    return model.rezero(q)
