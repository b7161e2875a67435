"""`spanloop info`: what a mechanism is made of, as text or as JSON."""

from __future__ import annotations

import argparse
import inspect
import json
import math
import warnings
from typing import Any

from spanloop import zoo
from spanloop.errors import InputError, SpanloopWarning, nearest
from spanloop.model import Model
from spanloop.model.load import load
from spanloop.topology.report import loops_in_words

ZOO = "zoo:"
EXAMPLES = (
    "spanloop info zoo:three_pumas",
    "spanloop info zoo:chain:6 --json",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--json", action="store_true", help="for programs: JSON")


def run(chosen: argparse.Namespace) -> int:
    return info(chosen.file, chosen.base, chosen.json)


def add_model(parser: argparse.ArgumentParser) -> None:
    """The words that name a mechanism."""
    told = "a .urdf, .xml (MJCF), .sdf, .toml or .csv file, or zoo:NAME (zoo:puma, zoo:chain:6)"
    parser.add_argument("file", metavar="MODEL", help=told)
    parser.add_argument("--base", choices=("fixed", "free"), help="how a URDF's root link stands on the world (fixed)")


def info(file: str, base: str | None, as_json: bool) -> int:
    """Print the model in a file or of the zoo."""
    if not as_json:
        model = model_of(file, base)
        print(model)
        if model.loops or model.couplings:
            print("\n" + loops_in_words(model))
        return 0
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", SpanloopWarning)
        model = model_of(file, base)
    said = [str(w.message) for w in found]
    print(json.dumps({**described(model), "warnings": said}, indent=2, ensure_ascii=False, allow_nan=False))
    return 0


def model_of(file: str, base: str | None) -> Model:
    """The model that a word names: a path, or zoo:NAME, or zoo:NAME:NUMBER for those of any size."""
    if not file.startswith(ZOO):
        return load(file, base)
    if base is not None:
        raise InputError(f"{file}: --base is for URDF files; a mechanism of the zoo has its own")
    name, _, size = file.removeprefix(ZOO).partition(":")
    if name not in zoo.names():
        raise InputError(f"the zoo has no {name!r}; {nearest(name, zoo.names())}")
    return getattr(zoo, name)(*_size(name, size))


def _size(name: str, size: str) -> tuple[int, ...]:
    """The number after the name: how many bodies, or the seed of a random model."""
    parameters = list(inspect.signature(getattr(zoo, name)).parameters.values())
    if not size:
        if parameters and parameters[0].default is inspect.Parameter.empty:
            raise InputError(f"zoo:{name} needs a number ({parameters[0].name}); try zoo:{name}:6")
        return ()
    if not parameters or parameters[0].kind is inspect.Parameter.KEYWORD_ONLY:
        raise InputError(f"zoo:{name} takes no number; try zoo:{name}")
    if not size.isdecimal() or len(size) > 6:
        raise InputError(f"zoo:{name}:{size}: {size!r} is not a whole number of at most six digits; try zoo:{name}:6")
    return (int(size),)


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
        "frames": [{"name": f.name, "body": f.body} for f in model.frames],
        "loops": [{"name": x.name, "kind": x.kind.name, "a": x.a, "b": x.b} for x in model.loops],
        "couplings": [
            {"name": c.name, "joint": c.joint, "source": c.source, "ratio": c.ratio, "offset": c.offset}
            for c in model.couplings
        ],
        "notes": list(model.notes),
    }


def _body(model: Model, k: int) -> dict[str, Any]:
    body, joint = model.bodies[k], model.joints[k]
    return {"name": body.name, "parent": joint.parent, "joint": joint.name, "mass": body.inertia.mass}


def _joint(joint) -> dict[str, Any]:
    return {
        "name": joint.name,
        "kind": joint.kind.name,
        "parent": joint.parent,
        "child": joint.child,
        "freedoms": joint.kind.nv,
        "driven": joint.driven,
        "lower": _limits(joint.lower),
        "upper": _limits(joint.upper),
    }


def _limits(values: tuple[float, ...] | None) -> list[float | None] | None:
    """JSON knows no infinity: no limit is null."""
    return None if values is None else [x if math.isfinite(x) else None for x in values]
