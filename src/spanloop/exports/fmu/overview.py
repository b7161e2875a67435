"""What a unit says of itself to readers: resources/model.txt and documentation/index.html."""

from __future__ import annotations

from html import escape

import spanloop
from spanloop.exports.fmu.unit_source import Unit
from spanloop.exports.fmu.variables import INPUT, OUTPUT, PARAMETER, POSITION, VELOCITY

_TITLES = {
    INPUT: "Inputs",
    PARAMETER: "Parameters",
    POSITION: "Positions q",
    VELOCITY: "Velocities v",
    OUTPUT: "Outputs",
}
_LIMITS = {"ignore": "not checked", "end": "end the simulation", "stop": "stops, which push and never pull"}


def overview_text(unit: Unit, integrator: str, limits: str, note: str) -> str:
    """The overview as plain text."""
    lines = [
        f"model: {unit.name}",
        f"written by: spanloop {spanloop.__version__}",
        *_facts(unit, integrator, limits, note),
    ]
    for kind, title in _TITLES.items():
        found = [x for x in unit.variables if x.kind == kind]
        lines += ["", f"{title}, in order:"] if found else []
        lines += [f"  {x.name}" + (f" [{x.unit}]" if x.unit else "") for x in found]
    return "\n".join(lines) + "\n"


def overview_page(unit: Unit, integrator: str, limits: str, note: str) -> str:
    """The overview as a page."""
    parts = [f"<h1>{escape(unit.name)}</h1>", f"<p>Written by spanloop {spanloop.__version__}.</p>", "<ul>"]
    parts += [*(f"<li>{escape(x)}</li>" for x in _facts(unit, integrator, limits, note)), "</ul>"]
    for kind, title in _TITLES.items():
        found = [x for x in unit.variables if x.kind == kind]
        if found:
            parts += [f"<h2>{title}</h2>", "<table>"]
            parts += [
                f"<tr><td>{escape(x.name)}</td><td>{escape(x.unit)}</td><td>{escape(x.description)}</td></tr>"
                for x in found
            ]
            parts.append("</table>")
    head = (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(unit.name)}</title></head><body>'
    )
    return "\n".join([head, *parts, "</body></html>"]) + "\n"


def _facts(unit: Unit, integrator: str, limits: str, note: str) -> list[str]:
    model = unit.model
    loops = len(model.loops) + len(model.couplings)
    facts = [
        f"degrees of freedom: {model.nv} in the tree, {loops} loops and couplings",
        f"interfaces: {', '.join(unit.kinds)}",
        f"Co-Simulation: steps of {unit.step:g} s by {integrator}; the last one of an interval may be shorter",
    ]
    if loops:
        facts.append("loops: closed at every step of Co-Simulation; Model Exchange feeds closure errors back")
    if any(j.lower or j.upper for j in model.joints):
        facts.append(f"limits of joints: {_LIMITS[limits]}")
    return [*facts, f"no Model Exchange: {note}"] if note else facts
