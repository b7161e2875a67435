"""Rename: other names for parts, wherever they occur."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from spanloop.errors import InputError, nearest
from spanloop.model.flexible_bodies.pieces import flexible_bodies
from spanloop.model.parts import WORLD

if TYPE_CHECKING:
    from spanloop.model.model import Model

Rule = Callable[[str], str]


def rename(model: Model, names: Mapping[str, str], *, name: str | None = None) -> Model:
    """Return the model with other names.

    names: {old: new}, for bodies, joints, frames, loops, couplings, actuators, sensors and contacts alike. The name of
        a flexible body is that of its parts too: {"boom": "mast"} makes "boom.tip" "mast.tip"
    name: a new name for the model itself

    Raises InputError for a name that the model does not have, and for the world's.

    >>> sl.zoo.pendulum(1).rename({"hinge1": "hinge"}).actuated
    ('hinge',)
    """
    if not isinstance(names, Mapping):
        raise InputError(f"rename: names is a {type(names).__name__}; expected a mapping {{'old name': 'new name'}}")
    known, bending = all_names(model), flexible_bodies(model.bodies, model.joints)
    for old, new in names.items():
        if old == WORLD or new == WORLD:
            raise InputError(f"rename: {old!r} to {new!r}; 'world' is the ground's own name and stays")
        if old not in known and old not in bending:
            raise InputError(f"model {model.name!r} has nothing called {old!r}; {nearest(old, known)}")
        if not isinstance(new, str) or not new:
            raise InputError(f"rename: {old!r} to {new!r}; expected a name")
    parts = {
        part: f"{names[old]}.{part.removeprefix(old + '.')}"
        for old in bending
        if old in names
        for part in known
        if part.startswith(f"{old}.")
    }
    out = renamed(model, lambda n: names.get(n, parts.get(n, n)))
    return out if name is None else replace(out, name=name)


def renamed(model: Model, rule: Rule) -> Model:
    """The model with every name but the world's changed by a rule; notes keep the old names."""

    def new(name: str) -> str:
        return name if name == WORLD else rule(name)

    return replace(
        model,
        bodies=tuple(replace(b, name=new(b.name)) for b in model.bodies),
        joints=tuple(replace(j, name=new(j.name), parent=new(j.parent), child=new(j.child)) for j in model.joints),
        frames=tuple(replace(f, name=new(f.name), body=new(f.body)) for f in model.frames),
        loops=tuple(replace(x, name=new(x.name), a=new(x.a), b=new(x.b)) for x in model.loops),
        couplings=tuple(
            replace(c, name=new(c.name), joint=new(c.joint), source=None if c.source is None else new(c.source))
            for c in model.couplings
        ),
        actuators=tuple(replace(a, name=new(a.name), joint=new(a.joint)) for a in model.actuators),
        sensors=tuple(replace(s, name=new(s.name), at=new(s.at)) for s in model.sensors),
        contacts=tuple(
            replace(c, name=new(c.name), a=replace(c.a, at=new(c.a.at)), b=replace(c.b, at=new(c.b.at)))
            for c in model.contacts
        ),
    )


def swapping(one: str, other: str) -> Rule:
    """The rule that swaps two words in a name, in any case: left_leg, LeftLeg, LEFT."""
    pairs = [(form(one), form(other)) for form in (str, str.lower, str.upper, str.capitalize)]
    there = {a: b for pair in pairs for a, b in (pair, pair[::-1])}

    def swapped(name: str) -> str:
        out, k = "", 0
        while k < len(name):
            word = next((w for w in there if name.startswith(w, k)), None)
            out += there[word] if word else name[k]
            k += len(word) if word else 1
        return out

    return swapped


def all_names(model: Model) -> list[str]:
    """Names of all parts of a model, each once."""
    movable = (model.bodies, model.joints, model.frames, model.loops, model.couplings)
    parts = (*movable, model.actuators, model.sensors, model.contacts)
    return list(dict.fromkeys(part.name for group in parts for part in group))
