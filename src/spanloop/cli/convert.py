"""`spanloop convert`: convert a mechanism to another file format, and list what the target format cannot store."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from spanloop.cli.shared_arguments import add_model, add_settings, loading, model_of, settings_of, with_settings
from spanloop.errors import InputError, UnsupportedError
from spanloop.model import Model
from spanloop.model.files import FORMATS, save, save_path, written_for

WRITTEN, NOT_WRITTEN = 0, 1


EXAMPLES = (
    "spanloop convert zoo:puma puma.csv",
    "spanloop convert zoo:four_bar four_bar.toml",
    "spanloop convert zoo:puma puma.toml --set joint2.limits=-90deg,90deg --set '*.damping=0.1'",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("target", metavar="TO", help="a .toml, .urdf, .xml (MJCF), .sdf or .csv file")
    parser.add_argument("--force", action="store_true", help="write even if the target cannot store everything")
    add_settings(parser)
    parser.add_argument("--closed", action="store_true", help="make a closed configuration the zero of all coordinates")


def run(chosen: argparse.Namespace) -> int:
    settings = settings_of(chosen.set)
    return convert(chosen.file, chosen.target, loading(chosen), chosen.force, chosen.closed, settings)


def convert(
    source: str,
    target: str,
    options: Mapping[str, Any],
    force: bool,
    closed: bool,
    settings: Mapping[str, list[Any]],
) -> int:
    """Convert a file. Return 1 and write nothing if the target cannot store everything, unless `force`."""
    path = save_path(target)
    if Path(source).exists() and path.exists() and Path(source).samefile(path):
        raise InputError(f"{target}: is the input file; choose another name")
    model = with_settings(model_of(source, **options), settings)
    if closed:
        model = at_closed_state(model)
    try:
        written = written_for(model, path)
    except UnsupportedError as error:
        print(f"{error}", file=sys.stderr)
        return NOT_WRITTEN
    for remark in written.remarks:
        print(f"note: {remark}", file=sys.stderr)
    for loss in written.lost:
        print(f"not stored: {loss}", file=sys.stderr)
    if written.lost and not force:
        name = FORMATS[path.suffix.lower()]
        print(
            f"{path}: not written, because {name} cannot store all of {model.name!r}; "
            "use .toml, which can, or add --force",
            file=sys.stderr,
        )
        return NOT_WRITTEN
    save(model, path, force=True)
    print(f"{path}: bodies {model.n_bodies}, DoF {model.nv}, loops {len(model.loops)}")
    return WRITTEN


def at_closed_state(model: Model) -> Model:
    """The model with its zero at a closed configuration, assembled from its own zero."""
    if not (model.loops or model.couplings):
        return model
    from spanloop.dynamics import Dynamics

    q = Dynamics(model).assemble(model.neutral())
    moved = np.abs(q - model.neutral()).max(initial=0.0)
    if moved > 0.0:
        shown = ", ".join(f"{x:.6g}" for x in q)
        print(f"note: the new zero is the closed configuration ({shown})", file=sys.stderr)
    return model.rezero(q)
