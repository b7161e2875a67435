"""Damaged model files of every format, each from a seed: half by bytes, half by structure, still well-formed."""

from __future__ import annotations

import csv
import functools
import io
import random
import sys
import tomllib
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "support"))

import mutations
from mjcf_files import CLOSED, TREES, impedance

import spanloop as sl
from spanloop.errors import UnsupportedError
from spanloop.model.files import written_for
from spanloop.model.files.toml.writer import key as toml_key
from spanloop.model.files.toml.writer import text as toml_text

ZOO = ("pendulum", "puma", "four_bar", "slider_crank", "stewart", "quadruped", "flyball_governor", "linkage_leg")
NUMBERS = (
    float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 5e-324, -0.0, 0.0, -1.0, 1e100, 1e-100, 1e16, 1e-16,
    2**62, -(2**63), 1, 0, 3.14159, 1000.0, True, False, "1", "", "nan", [], [1.0], {}, [1.0, 2.0, 3.0],
)  # fmt: skip
NAMES = (
    "", " ", "world", "a::b", "x" * 5000, "\u202e", "é\n", "../../etc/passwd", "0", "nan", "\x1b]0;x\x07", "\x9b2J",
    "$\\frac$", "_", "<b>", "{x}", "%s", "a.b.c", "'", '"', "\\", "\ufeff", "name", "-", "\t",
)  # fmt: skip
HEADS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x00", b"\n" * 5000, b"#" * 3000, b"<!-- -->", b"\xef\xbb")
TIMES = (1, 1, 1, 2, 3)  # changes of one copy


@dataclass(frozen=True)
class Case:
    """A damaged file: its extension, its bytes, what was done to it, and whether it is still well-formed."""

    extension: str
    data: bytes
    what: str
    formed: bool


@functools.cache
def originals() -> dict[str, tuple[bytes, ...]]:
    """Sound files by extension: the zoo in every format that holds it, MJCF of the tests, one with all of our parts."""
    models = [getattr(sl.zoo, name)() for name in ZOO if name != "pendulum"] + [sl.zoo.pendulum(2), everything()]
    found: dict[str, list[bytes]] = {e: [] for e in ("toml", "urdf", "xml", "sdf", "csv")}
    for model in models:
        for extension, files in found.items():
            try:
                files.append(written_for(model, Path(f"x.{extension}")).text.encode())
            except UnsupportedError:
                continue
    found["xml"] += [impedance(text, 0.99).encode() for text in (*TREES.values(), *CLOSED.values())]
    return {extension: tuple(files) for extension, files in found.items()}


def everything() -> sl.Model:
    """A mechanism with loops, a coupling, losses, limits, shapes, motors and sensors."""
    shapes = (sl.model.Geometry("box", (0.1, 0.1, 0.2)), sl.model.Geometry("mesh", (1.0, 1.0, 1.0), "parts/x.stl"))
    b = sl.Builder("everything")
    for name in "abcde":
        b.body(name, 1.0, (0.1, 0, 0), (0.01, 0.02, 0.02), shapes if name == "a" else ())
    losses = {"damping": 0.1, "friction": 0.05, "armature": 0.01, "stiffness": 2.0, "rest": 0.1}
    b.revolute("one", "world", "a", "y", lower=-2, upper=2, speed=3.0, effort=10.0, **losses)
    b.prismatic("two", "a", "b", "x", (0.2, 0, 0), lower=-1, upper=1)
    b.helical("three", "b", "c", "z", (0.1, 0, 0), pitch=0.01)
    b.universal("four", "world", "d", "x", "y", (0.5, 0, 0)).spherical("five", "d", "e", (0.2, 0, 0))
    b.frame("tool", "c", (0.1, 0, 0)).frame("eye", "e", rotation=(0.1, 0.2, 0.3)).frame("anchor", "world", (1, 0, 0))
    b.loop("tool", "eye", sl.joints.Distance(0.5), name="rod").coupling("gear", "two", "one", 0.1, 0.2)
    model = b.build()
    model = model.with_actuator("motor", "one", gear=50.0, rotor_inertia=1e-4, max_torque=1.0, efficiency=0.9)
    return model.with_sensor("turn", "encoder", "one", counts=4096, rate=100.0).with_sensor("imu", "imu", "eye")


def case(seed: int, k: int) -> Case:
    """Case k of a seed; even ones stay well-formed."""
    rng = random.Random(f"{seed}.{k}")
    extension = rng.choices(("toml", "urdf", "xml", "sdf", "csv"), (4, 3, 2, 2, 1))[0]
    number = rng.randrange(len(originals()[extension]))
    data = originals()[extension][number]
    formed = k % 2 == 0
    change = {"toml": _toml, "csv": _csv}.get(extension, _xml) if formed else _bytes
    done = []
    for _ in range(rng.choice(TIMES)):
        try:
            data, what = change(data, rng)
        except (ET.ParseError, tomllib.TOMLDecodeError, UnicodeError, ValueError, IndexError):  # nothing left to change
            break
        done.append(what)
    return Case(extension, data, f"{extension} {number}: {'; '.join(done)}", formed)


# ---- by bytes


def _bytes(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    if rng.random() < 0.15:
        head = rng.choice(HEADS)
        return head + data, f"{head[:8]!r} in front"
    made = rng.choice(mutations.BROKEN if data.lstrip().startswith(b"<") else mutations.BROKEN[:-1])(data, rng)
    return made.data, made.what


# ---- by structure: XML


def _xml(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    root = ET.fromstring(data)
    what, _ = rng.choice((*mutations.CHANGES, _renamed_tag, _nested, _new_attribute, _strange_name))(root, rng)
    return ET.tostring(root), what


def _renamed_tag(root, rng):
    elements = list(root.iter())
    one, other = rng.choice(elements), rng.choice(elements)
    before, one.tag = one.tag, other.tag
    return f"<{before}> is now <{other.tag}>", False


def _nested(root, rng):
    e = rng.choice(list(root.iter()))
    depth = rng.choice((5, 90, 110, 380, 500))
    for _ in range(depth):
        e = ET.SubElement(e, e.tag, dict(e.attrib))
    return f"<{e.tag}> nested {depth} deep", False


def _new_attribute(root, rng):
    elements = list(root.iter())
    keys = [k for e in elements for k in e.attrib] or ["name"]
    e, name = rng.choice(elements), rng.choice(keys)
    e.set(name, rng.choice((*mutations.VALUES, "1e9", "2", "-1", "true", "0 0 0")))
    return f"<{e.tag}> {name} is {e.get(name)!r}", False


def _strange_name(root, rng):
    places = [e for e in root.iter() if "name" in e.attrib]
    if not places:
        return "nothing", False
    e = rng.choice(places)
    new = rng.choice([n for n in NAMES if n.isprintable()])
    before = e.get("name")
    if rng.random() < 0.5:  # everywhere, so that it still refers
        for other in root.iter():
            for k, value in other.attrib.items():
                if value == before:
                    other.set(k, new)
    e.set("name", new)
    return f"{before!r} is called {new[:20]!r}", False


# ---- by structure: TOML


def _toml(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    content = tomllib.loads(data.decode())
    places = list(_places(content, ()))
    where, holder, name = rng.choice(places)
    kind = rng.randrange(7)
    if kind == 0:
        del holder[name]
        what = "removed"
    elif kind == 1:
        holder[name] = rng.choice(places)[1]
        what = "now holds another part"
    elif kind == 2 and isinstance(holder, list):
        holder.append(holder[name])
        what = "there twice"
    elif kind == 3 and isinstance(holder, dict):
        holder[rng.choice((*NAMES, *(p[2] for p in places if isinstance(p[2], str))))] = holder.pop(name)
        what = "under another key"
    elif isinstance(holder[name], str):
        texts = [p[1][p[2]] for p in places if isinstance(p[1][p[2]], str)]
        holder[name] = rng.choice((*NAMES, *rng.sample(texts, min(20, len(texts)))))
        what = f"is {holder[name][:30]!r}"
    else:
        holder[name] = rng.choice(NUMBERS)
        what = f"is {holder[name]!r}"
    return _written(content).encode(), f"{'.'.join(map(str, where))} {what}"


def _places(value: Any, way: tuple) -> Any:
    """Every entry: its path, what holds it, and its key or number there."""
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for name, inner in entries:
        yield (*way, name), value, name
        if isinstance(inner, (dict, list)):
            yield from _places(inner, (*way, name))


def _written(content: dict[str, Any]) -> str:
    return "".join(f"{toml_key(k, '')} = {_inline(v, 0)}\n" for k, v in content.items())


def _inline(value: Any, depth: int) -> str:
    if depth > 40:  # a part that holds itself
        return "0"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml_key(k, '')} = {_inline(v, depth + 1)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_inline(v, depth + 1) for v in value) + "]"
    return toml_text(value, "")


# ---- by structure: CSV


def _csv(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    rows = list(csv.reader(io.StringIO(data.decode())))
    row = rng.randrange(len(rows))
    at = rng.randrange(len(rows[row]))
    kind = rng.randrange(5)
    if kind == 0:
        del rows[row]
    elif kind == 1:
        rows.append(rows[row])
    elif kind == 2:
        rows[row].append(rng.choice(mutations.VALUES))
    elif kind == 3:
        rows[row][at] = rng.choice(rows[rng.randrange(len(rows))] or [""])
    else:
        rows[row][at] = str(rng.choice((*NUMBERS, *NAMES)))
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue().encode(), f"row {row}, cell {at}, change {kind}"
