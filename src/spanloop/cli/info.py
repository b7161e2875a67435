"""`spanloop info`: bodies, joints and loops of a mechanism, as text or as JSON."""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Mapping
from typing import Any

from spanloop.cli.shared_arguments import add_model, loading, model_of
from spanloop.cli.terminal import add_json, print_json
from spanloop.errors import SpanloopWarning, in_one_line, listed
from spanloop.loops.constraint_rank import in_general
from spanloop.loops.redundant_directions import redundant_directions
from spanloop.model import Contact, Model
from spanloop.model.contacts import SETTINGS
from spanloop.model.flexible_bodies import FlexibleParts, flexible_bodies
from spanloop.topology import mechanism
from spanloop.topology.loop_report import loops_in_words, row_words

EXAMPLES = (
    "spanloop info zoo:three_pumas",
    "spanloop info zoo:chain:6 --json",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    return info(chosen.file, loading(chosen), chosen.json)


def info(file: str, options: Mapping[str, Any], as_json: bool) -> int:
    """Print a model from a file or from the zoo."""
    if not as_json:
        model = model_of(file, **options)
        print(model)
        if model.loops or model.couplings:
            print("\n" + loops_in_words(model))
            redundant = _redundant(model)
            if redundant:
                print(in_one_line(f"redundant wherever the loops are closed: {listed(redundant, 12)}"))
        return 0
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", SpanloopWarning)
        model = model_of(file, **options)
    messages = [str(w.message) for w in found]
    print_json({**described(model), "warnings": messages})
    return 0


def described(model: Model) -> dict[str, Any]:
    """The model as plain data."""
    return {
        "name": model.name,
        "n_bodies": model.n_bodies,
        "nq": model.nq,
        "nv": model.nv,
        "mass": model.mass,
        "gravity": list(model.gravity),
        "bodies": [_body(model, k) for k in range(model.n_bodies)],
        "joints": [_joint(j) for j in model.joints],
        "flexible": [_flexible(x) for x in flexible_bodies(model.bodies, model.joints).values()],
        "frames": [{"name": f.name, "body": f.body} for f in model.frames],
        "loops": [
            {"name": x.name, "kind": x.kind.name, "a": x.a, "b": x.b, "rows": row_words(c)}
            for x, c in zip(model.loops, mechanism(model).closures, strict=True)
        ],
        "redundant": list(_redundant(model)),
        "couplings": [
            {
                "name": c.name,
                "joint": c.joint,
                "source": c.source,
                "ratio": c.ratio,
                "offset": c.offset,
                "switchable": c.switchable,
            }
            for c in model.couplings
        ],
        "contacts": [_contact(c) for c in model.contacts],
        "notes": list(model.notes),
    }


def _redundant(model: Model) -> tuple[str, ...]:
    """Names of the directions in which closure rows are redundant wherever the loops are closed."""
    rows = in_general(model) if model.loops or model.couplings else None
    return () if rows is None else redundant_directions(model, rows)[0]


def _body(model: Model, k: int) -> dict[str, Any]:
    body, joint = model.bodies[k], model.joints[k]
    return {"name": body.name, "parent": joint.parent, "joint": joint.name, "mass": body.inertia.mass}


def _flexible(body: FlexibleParts) -> dict[str, Any]:
    modes = [
        {"joint": piece.joint.name, "name": name, "frequency": float(w / (2.0 * math.pi))}
        for piece in body.pieces
        for name, w in zip(piece.modal.mode_names, piece.frequencies, strict=True)
    ]
    return {"name": body.name, "mass": body.mass, "root": body.root, "nodes": list(body.nodes), "modes": modes}


def _joint(joint) -> dict[str, Any]:
    return {
        "name": joint.name,
        "kind": joint.kind.name,
        "parent": joint.parent,
        "child": joint.child,
        "nv": joint.kind.nv,
        "driven": joint.driven,
        "lower": _limits(joint.lower),
        "upper": _limits(joint.upper),
    }


def _contact(c: Contact) -> dict[str, Any]:
    sides = {end: {"at": s.at, "shape": s.geometry.shape} for end, s in (("a", c.a), ("b", c.b))}
    return {"name": c.name, **sides, "points": c.n_points, **{name: getattr(c, name) for name in SETTINGS}}


def _limits(values: tuple[float, ...] | None) -> list[float | None] | None:
    """Limits for JSON, which has no infinity: null where there is no limit."""
    return None if values is None else [x if math.isfinite(x) else None for x in values]
