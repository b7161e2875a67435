"""Inertias as MuJoCo takes them: possible ones, body by body, and none too small for a joint to move."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np

from spanloop.model.fusing import hosts_of
from spanloop.model.model import Model
from spanloop.model.parts import WORLD, Body, Inertia
from spanloop.model.save.account import Account
from spanloop.model.save.xml_text import numbers

SMALLEST = 1e-9  # kg and kg m² of bodies that have less


def put_together(model: Model, account: Account) -> Model:
    """MuJoCo takes no body whose own inertia is impossible: on fixed joints it is put together with its parent's."""
    groups: dict[str, list[Body]] = {}
    for name, (host, _) in hosts_of(model).items():
        if name != WORLD:
            groups.setdefault(host, []).append(model.body(name))
    new: dict[str, Inertia] = {}
    fused = model.fuse()
    for host, members in groups.items():
        odd = [b for b in members if is_odd(b.inertia)]
        if odd and (host == WORLD or len(members) > 1):
            new |= {b.name: Inertia() for b in members}
            new |= {} if host == WORLD else {host: fused.body(host).inertia}
            account.remark("inertias that no body has alone, put together over fixed joints", f"body {odd[0].name!r}")
    return replace(model, bodies=tuple(replace(b, inertia=new.get(b.name, b.inertia)) for b in model.bodies))


def is_odd(i: Inertia) -> bool:
    """Would MuJoCo refuse or change it?"""
    moments = np.linalg.eigvalsh(np.array(i.matrix()))
    full = any((i.moments[1], i.moments[2], i.moments[4]))
    flat = moments[0] + moments[1] < moments[2] * (1.0 - 1e-12)
    return bool(flat or moments[0] < 0.0 or (full and moments[0] < SMALLEST * moments[2]))


def bounded(compiler: ET.Element, model: Model, account: Account) -> None:
    """MuJoCo wants mass and three moments of every body that a joint moves."""
    for j, b in zip(model.joints, model.bodies, strict=True):
        moments = np.linalg.eigvalsh(np.array(b.inertia.matrix()))
        if j.kind.nv and (b.inertia.mass < SMALLEST or moments[0] < SMALLEST):
            what = f"bodies that move with no mass or no moment about an axis (at least {SMALLEST:g} each is used)"
            account.lose(what, f"body {b.name!r}")
            compiler.set("boundmass", numbers(SMALLEST))
            compiler.set("boundinertia", numbers(SMALLEST))
        if moments[0] + moments[1] < moments[2] * (1.0 - 1e-12):
            compiler.set("balanceinertia", "true")
            account.lose("inertias that no body can have (MuJoCo levels their moments)", f"body {b.name!r}")
