"""Reader of MJCF, MuJoCo's format, by MuJoCo's own parser and compiler (pip install mujoco).

Names, defaults, angles and frames mean what MuJoCo's compiler makes of them; numbers that it only passes on are taken
as written. Equality constraints, soft there, are exact closures here.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from spanloop.errors import FileError, UnsupportedError
from spanloop.model.contacts.contact import Contact
from spanloop.model.contacts.contact_check import links_of
from spanloop.model.files.contact_pairs import contacts_of, too_many_shapes
from spanloop.model.files.load_notes import ACTS, LoadNotes
from spanloop.model.files.mesh_paths import Folders, located
from spanloop.model.files.mjcf.actuators_and_sensors import read_actuators, read_sensors
from spanloop.model.files.mjcf.bodies import Parts, read_bodies
from spanloop.model.files.mjcf.contacts import Solids, note_settings, read_pairs, solid_geoms
from spanloop.model.files.mjcf.equality import read_equalities
from spanloop.model.files.mjcf.safe_source import Safe, drop_contacts, safe_text, take_meshes
from spanloop.model.model import Model
from spanloop.model.parts import Placement
from spanloop.model.spanning_tree import Graph, origins, spanned

OLDEST = (3, 3)  # of MuJoCo's versions
TENDON_ACTS = ("stiffness", "damping", "frictionloss", "limited", "armature", "stiffnesspoly", "dampingpoly")
DISABLED = {  # flags of <option> that switch off what acts here all the same
    "mjDSBL_CONSTRAINT": "constraint",
    "mjDSBL_EQUALITY": "equality",
    "mjDSBL_SPRING": "spring",
    "mjDSBL_DAMPER": "damper",
    "mjDSBL_PASSIVE": "passive",
    "mjDSBL_ACTUATION": "actuation",
}


def loads(
    data: bytes | str, file: str = "text.xml", folders: Folders | None = None, contacts: bool | str = False
) -> Model:
    """The model in the text of an MJCF; inertias are not checked.

    file: the name that errors show; folders: where includes and meshes are read from (None: there are none);
    contacts: whether the pairs of shapes that collide are read, "ground" for those with shapes fixed to the world.
    """
    mujoco = _mujoco()
    notes = LoadNotes()
    safe = safe_text(data.encode() if isinstance(data, str) else data, file, folders, notes)
    source = _compiled(mujoco, safe, file, folders, notes)
    parts = read_bodies(source, notes)
    parts.bodies = located(parts.bodies, folders, notes)
    loops, couplings = read_equalities(source, parts, notes)
    _note_unsupported(source, notes)
    tree, _ = spanned(Graph(parts.bodies, parts.joints, parts.frames, parts.at_child))
    moved = {j.child: parts.at_child[j.name].inverse() for j in tree.joints if j.name in parts.at_child}
    described = origins(tree, parts.at_child)
    for f in described:
        notes.add("bodies whose frame is at their joint; MuJoCo's own is the frame NAME::origin", repr(f.body))
    here = Placement()
    loops = [
        replace(x, placement_a=moved.get(x.a, here) @ x.placement_a, placement_b=moved.get(x.b, here) @ x.placement_b)
        for x in loops
    ]
    model = Model(
        source.spec.modelname or Path(file).stem,
        tuple(tree.bodies),
        tuple(tree.joints),
        (*tree.frames, *described),
        tuple(loops),
        tuple(couplings),
        tuple(read_actuators(source, notes)),
        tuple(read_sensors(source, parts.sites, notes)),
        _gravity(source, notes),
    )
    touching = _contacts(source, parts, model, contacts, file, notes)
    return replace(model, contacts=touching, notes=tuple(notes.sentences()))


def _contacts(
    source: Any, parts: Parts, model: Model, contacts: bool | str, file: str, notes: LoadNotes
) -> tuple[Contact, ...]:
    """The contacts between shapes of the model's bodies, whose frames are at their joints, and of the world."""
    if too_many_shapes(len(solid_geoms(source.model)) + int(source.model.npair), contacts, file, notes):
        return ()
    shapes = {g: model.body(name).geometry[k] for g, (name, k) in parts.shapes.items()} | parts.ground
    pairs = read_pairs(source, Solids(parts.names, links_of(model, model.joints), shapes), notes)
    if contacts and len(pairs.ends):
        note_settings(source, notes)
    return contacts_of(pairs, contacts, file, notes)


def _mujoco() -> Any:
    try:
        import mujoco
    except ImportError:
        raise UnsupportedError(
            "MJCF files are read with MuJoCo's own compiler, which is not installed; pip install mujoco"
        ) from None
    if tuple(map(int, mujoco.__version__.split(".")[:2])) < OLDEST:
        raise UnsupportedError(f"MJCF files are read with MuJoCo 3.3 or later, here is {mujoco.__version__}; update it")
    return mujoco


def _compiled(mujoco: Any, safe: Safe, file: str, folders: Folders | None, notes: LoadNotes) -> Any:
    """MuJoCo's module, the spec as written, the compiled model; by the number of their geom meshes, and the kind of
    shapes that stand for others.
    """
    try:
        with _listening(mujoco, notes):
            spec = mujoco.MjSpec.from_string(safe.text)
            spec.compiler.fusestatic = False
            spec.compiler.discardvisual = False
            meshes = take_meshes(mujoco, spec, safe, folders, notes)
            drop_contacts(spec, safe, notes)
            model = spec.compile()
    except FileError:
        raise
    except (ValueError, RuntimeError, TypeError) as error:
        raise FileError(_complaint(str(error), safe, file)) from None
    shapes = {geom.id: mesh for geom, mesh in meshes if mesh is not None}
    others = {geom.id: "hfield" if mesh is None else "mesh" for geom, mesh in meshes}
    return SimpleNamespace(mujoco=mujoco, spec=spec, model=model, meshes=shapes, other_shapes=others, where=safe.place)


@contextmanager
def _listening(mujoco: Any, notes: LoadNotes) -> Iterator[None]:
    """MuJoCo's warnings as notes; otherwise it writes them into a file in the working folder."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda words: notes.add("MuJoCo warns", " ".join(str(words).split())))
    try:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            yield
        for warning in found:
            notes.add("MuJoCo warns", " ".join(str(warning.message).split()))
    finally:
        mujoco.set_mju_user_warning(before)


def _complaint(message: str, safe: Safe, file: str) -> str:
    """MuJoCo's words with the file and line they are about."""
    lines = [int(n) for n in re.findall(r"line (\d+)", message)][-1:]
    quoted = [word for word in re.findall(r"'([^']+)'?", message) if word]
    lines += [k for k, line in enumerate(safe.lines, 1) if any(f'"{w}' in line for w in quoted)][:1]
    place = next((safe.where[n - 1] for n in lines if 1 <= n <= len(safe.where)), f"{file}:1")
    words = re.sub(r",? ?(at )?line -?\d+", "", " ".join(message.split())).removeprefix("Error: ")
    return f"{place}: MuJoCo says: {words.strip()[:300]}; expected an MJCF that MuJoCo compiles"


def _gravity(source: Any, notes: LoadNotes) -> tuple[float, float, float]:
    flag = int(source.mujoco.mjtDisableBit.mjDSBL_GRAVITY)
    if int(source.model.opt.disableflags) & flag:
        notes.add("gravity switched off by <flag gravity='disable'/>", source.where(source.spec.worldbody))
        return (0.0, 0.0, 0.0)
    left = 1.0 - _compensated(source, notes)
    x, y, z = source.model.opt.gravity.tolist()
    return (left * x + 0.0, left * y + 0.0, left * z + 0.0)


def _compensated(source: Any, notes: LoadNotes) -> float:
    """The share of gravity that gravcomp takes from every moving body alike; 0, with a warning, if it differs."""
    m = source.model
    moving = [i for i in range(1, m.nbody) if m.body_weldid[i] != 0 and m.body_mass[i] > 0.0]
    shares = {float(m.body_gravcomp[i]) for i in moving}
    if shares <= {0.0}:
        return 0.0
    element = next(b for b in source.spec.bodies if b.id in moving and b.gravcomp)
    place = f"body {element.name!r} ({source.where(element)})"
    if len(shares) == 1:
        notes.add("gravcomp, alike for all that moves, read as less gravity", place)
        return shares.pop()
    notes.add(f"{ACTS} gravcomp that differs between bodies", place)
    return 0.0


def _note_unsupported(source: Any, notes: LoadNotes) -> None:
    """Note what acts in MuJoCo and a model cannot hold."""
    model, bits = source.model, source.mujoco.mjtDisableBit
    for k, tendon in enumerate(source.spec.tendons):
        place = f"{tendon.name!r} ({source.where(tendon)})"
        acts = [word for word in TENDON_ACTS if np.any(getattr(model, f"tendon_{word}", [[0]] * model.ntendon)[k])]
        if acts:
            notes.add(f"{ACTS} {', '.join(acts).replace('limited', 'range')} of a <tendon>", place)
        else:
            notes.add("<tendon> left out, it exerts no force by itself", place)
    for flex in source.spec.flexes:
        notes.add(f"{ACTS} <flex>", repr(flex.name))
    if model.opt.density > 0.0 or model.opt.viscosity > 0.0:
        notes.add(f"{ACTS} density and viscosity of the medium", source.where(source.spec.worldbody))
    for name, word in DISABLED.items():
        if hasattr(bits, name) and int(model.opt.disableflags) & int(getattr(bits, name)):
            notes.add(f"{ACTS} <flag {word}='disable'/>", source.where(source.spec.worldbody))
