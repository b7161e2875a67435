"""`spanloop check`: review a mechanism and report findings, as text or as JSON."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spanloop.cli.shared_arguments import ZOO, add_model, loading, model_of
from spanloop.cli.terminal import add_json, print_json, supports_color
from spanloop.dynamics import Dynamics
from spanloop.errors import SpanloopWarning, in_one_line
from spanloop.loops.diagnosis import examine_loops
from spanloop.model import Model
from spanloop.model.examine import Finding, examine
from spanloop.model.examine.messages import advice, counted, sentence, weight

FINE, MATTERS = 0, 1
TITLES = {"matters": "This matters", "advice": "Worth a look"}
COLOURS = {"matters": "\033[31m", "advice": "\033[33m", "title": "\033[1m"}
PLAIN = "\033[0m"


EXAMPLES = (
    "spanloop check zoo:four_bar",
    "spanloop check zoo:puma --json",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    return check(chosen.file, loading(chosen), chosen.json)


def check(file: str, options: Mapping[str, Any], as_json: bool) -> int:
    """Print the findings; return 1 if one of them matters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpanloopWarning)  # the findings include every warning
        model = model_of(file, **options)
        found = findings(model, file)
    if as_json:
        print_json(described(model, found))
    else:
        print(report(model, found, supports_color()))
    return MATTERS if any(weight(f) == "matters" for f in found) else FINE


def findings(model: Model, file: str) -> tuple[Finding, ...]:
    """Findings on the model and on its loops."""
    folder = None if file.startswith(ZOO) else Path(file).parent
    return (*examine(model, folder), *_large_meshes(model, folder), *examine_loops(Dynamics(model)))


def _large_meshes(model: Model, folder: Path | None) -> list[Finding]:
    """Findings on meshes far larger than the mechanism."""
    if folder is None:
        return []
    from spanloop.view.scene import large_meshes

    return [
        Finding("mesh_size", (f"body {body!r}: mesh {file!r}",), {"across": f"{across:.3g}", "size": f"{size:.2g}"})
        for body, file, across, size in large_meshes(model, folder)
    ]


def report(model: Model, found: Sequence[Finding], colours: bool = False) -> str:
    """The findings as text: facts, then what matters, then advice."""

    def painted(text: str, colour: str) -> str:
        return f"{COLOURS[colour]}{text}{PLAIN}" if colours else text

    lines = [painted(in_one_line(model.name), "title")]
    lines += [f"  {in_one_line(sentence(f))}" for f in found if weight(f) == "fact"]
    for kind, title in TITLES.items():
        of_kind = [f for f in found if weight(f) == kind]
        if of_kind:
            lines += ["", painted(title, kind)]
        for f in of_kind:
            lines.append(f"  {in_one_line(sentence(f))}")
            lines += [f"    {in_one_line(advice(f))}"] if advice(f) else []
    serious = sum(weight(f) == "matters" for f in found)
    verdict = f"{counted(serious, 'finding matters', 'findings matter')}." if serious else "No finding matters."
    return "\n".join([*lines, "", painted(verdict, "matters" if serious else "title")])


def described(model: Model, found: Sequence[Finding]) -> dict:
    """The findings as plain data."""
    return {
        "name": model.name,
        "fine": not any(weight(f) == "matters" for f in found),
        "findings": [
            {
                "topic": f.topic,
                "weight": weight(f),
                "parts": list(f.parts),
                "sentence": sentence(f),
                "advice": advice(f),
            }
            for f in found
        ],
    }
