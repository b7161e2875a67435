"""Damaged copies of XML files, each from a seed: half no longer XML, half well-formed with other values, names,
parents, units, or elements that are missing, doubled or elsewhere."""

from __future__ import annotations

import copy
import random
import xml.etree.ElementTree as ET
from dataclasses import dataclass

VALUES = (
    "nan",
    "inf",
    "-inf",
    "1e308",
    "-1e308",
    "1e-320",
    "",
    "abc",
    "0x10",
    "1,5",
    "1_0",
    "٣",
    "1e999",
    "--1",
    "${x}",
)
NAMES = ("", " ", "world", "a::b", "__model__", "x" * 5000, "\u202e", "é\n", "../../etc/passwd", "0", "nan")


@dataclass(frozen=True)
class Mutation:
    """The damaged file and what was done to it."""

    data: bytes
    what: str
    shows: bool = False  # must a model that still loads be another one?


def mutated(data: bytes, seed: int) -> Mutation:
    """The copy that belongs to a seed; even seeds stay well-formed."""
    rng = random.Random(seed)
    if seed % 2:
        return rng.choice(BROKEN)(data, rng)
    root = ET.fromstring(data)
    what, shows = rng.choice(CHANGES)(root, rng)
    return Mutation(ET.tostring(root), what, shows)


# ---- no longer XML, or not what it says


def _cut(data: bytes, rng) -> Mutation:
    at = rng.randrange(len(data))
    return Mutation(data[:at], f"cut at byte {at}")


def _flipped(data: bytes, rng) -> Mutation:
    out = bytearray(data)
    for _ in range(rng.choice((1, 5, 50))):
        out[rng.randrange(len(out))] = rng.randrange(256)
    return Mutation(bytes(out), "bytes changed")


def _removed(data: bytes, rng) -> Mutation:
    at, size = rng.randrange(len(data)), rng.choice((1, 10, 200, 2000))
    return Mutation(data[:at] + data[at + size :], f"{size} bytes removed at {at}")


def _doubled(data: bytes, rng) -> Mutation:
    at, size = rng.randrange(len(data)), rng.choice((10, 200, 5000))
    return Mutation(data[: at + size] + data[at : at + size] + data[at + size :], f"{size} bytes doubled at {at}")


def _inserted(data: bytes, rng) -> Mutation:
    at = rng.randrange(len(data))
    what = rng.choice((b"\x00", b"\xff\xfe", b"<", b"&x;", b"]]>", b"<!--", b"<?x?>", b"\xc3", b"<a>" * 300))
    return Mutation(data[:at] + what + data[at:], f"{what[:8]!r} at {at}")


def _recoded(data: bytes, rng) -> Mutation:
    name = rng.choice(("utf-16", "utf-32", "cp1252", "utf-7"))
    text = data.decode("utf-8", "replace") + "<!-- é -->"
    return Mutation(text.encode(name, "replace"), f"written as {name}")


def _bomb(data: bytes, rng) -> Mutation:
    start = data.index(b"<", data.index(b"?>") + 2 if b"?>" in data else 0)
    entity = rng.choice(
        (b'<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>', b'<!DOCTYPE r SYSTEM "file:///etc/passwd">')
    )
    return Mutation(data[:start] + entity + data[start:], "a document type")


BROKEN = (_cut, _flipped, _removed, _doubled, _inserted, _recoded, _bomb)

# ---- well-formed

# what a mechanism is made of, by tag: these values may not be lost on the way
TELLING = {
    "mass": ("value", ""),
    "inertia": ("ixx", "iyy", "izz"),
    "ixx": ("",),
    "iyy": ("",),
    "parent": ("link", ""),
    "child": ("link", ""),
    "limit": ("lower", "upper", "effort"),
    "lower": ("",),
    "damping": ("",),
    "dynamics": ("damping",),
    "inertial": ("mass",),
}


def _parents(root) -> dict:
    return {child: parent for parent in root.iter() for child in parent}


def _texts(root) -> list[tuple]:
    """Every attribute and text: element, key (empty for the text)."""
    found = [(e, key) for e in root.iter() for key in e.attrib]
    return found + [(e, "") for e in root.iter() if e.text and e.text.strip()]


def _get(e, key):
    return e.get(key) if key else e.text


def _set(e, key, value) -> None:
    if key:
        e.set(key, value)
    else:
        e.text = value


def _are_numbers(text: str) -> bool:
    try:
        return bool([float(word) for word in text.split()])
    except ValueError:
        return False


def _other_number(root, rng):
    places = [(e, k) for e, k in _texts(root) if _are_numbers(_get(e, k))]
    if not places:
        return "nothing", False
    e, key = rng.choice(places)
    words = _get(e, key).split()
    at = rng.randrange(len(words))
    before = words[at]
    factor = rng.choice((-1.0, 1000.0, 1e-3, 57.29577951308232, 0.0, 2.0))
    words[at] = repr(float(before) * factor)
    _set(e, key, " ".join(words))
    shows = key in TELLING.get(e.tag, ()) and float(words[at]) != float(before)
    return f"<{e.tag}> {key or 'text'}: {before} is now {words[at]}", shows


def _bad_number(root, rng):
    places = [(e, k) for e, k in _texts(root) if _are_numbers(_get(e, k))]
    if not places:
        return "nothing", False
    e, key = rng.choice(places)
    words = _get(e, key).split()
    sort = rng.randrange(3)
    if sort == 0:
        words[rng.randrange(len(words))] = rng.choice(VALUES)
    elif sort == 1:
        words.append("1")
    else:
        words.pop()
    _set(e, key, " ".join(words))
    return f"<{e.tag}> {key or 'text'} is now {' '.join(words)!r}", False


def _other_name(root, rng):
    places = [(e, k) for e, k in _texts(root) if not _are_numbers(_get(e, k))]
    e, key = rng.choice(places)
    others = [_get(f, k) for f, k in places if (f.tag, k) == (e.tag, key)]
    new = rng.choice((*NAMES, *rng.sample(others, min(5, len(others)))))
    before = _get(e, key)
    _set(e, key, new)
    shows = key in TELLING.get(e.tag, ()) and new.strip() != before.strip()
    return f"<{e.tag}> {key or 'text'}: {before!r} is now {new[:40]!r}", shows


def _swapped_ends(root, rng):
    joints = [j for j in root.iter("joint") if j.find("parent") is not None and j.find("child") is not None]
    if not joints:
        return _other_name(root, rng)
    a, b = rng.choice(joints), rng.choice(joints)
    parent, child = a.find("parent"), b.find(rng.choice(("parent", "child")))
    parent.text, child.text = child.text, parent.text
    one, two = dict(child.attrib), dict(parent.attrib)
    parent.attrib.update(one)
    child.attrib.update(two)
    return f"ends of {a.get('name')} and {b.get('name')} swapped", False


def _lost(root, rng):
    parents = _parents(root)
    if not parents:
        return "nothing", False
    e = rng.choice(list(parents))
    parents[e].remove(e)
    return f"<{e.tag}> {e.get('name', '')} removed", False


def _twice(root, rng):
    parents = _parents(root)
    if not parents:
        return "nothing", False
    e = rng.choice(list(parents))
    parents[e].append(copy.deepcopy(e))
    return f"<{e.tag}> {e.get('name', '')} there twice", False


def _moved(root, rng):
    parents = _parents(root)
    if not parents:
        return "nothing", False
    e = rng.choice(list(parents))
    inside = set(e.iter())
    target = rng.choice([x for x in root.iter() if x not in inside])
    parents[e].remove(e)
    target.append(e)
    return f"<{e.tag}> {e.get('name', '')} moved into <{target.tag}>", False


def _lost_attribute(root, rng):
    places = [(e, k) for e, k in _texts(root) if k]
    e, key = rng.choice(places)
    del e.attrib[key]
    return f"<{e.tag}> without {key}", False


def _units(root, rng):
    """All masses in grams, or all lengths in millimetres."""
    what = rng.choice(("mass", "length"))
    for e, key in _texts(root):
        weighs = e.tag == "mass" or key == "mass"
        lies = (e.tag in ("origin", "pose") and key in ("xyz", "")) or key in ("pos", "fromto")
        words = _get(e, key).split()
        if (weighs if what == "mass" else lies) and _are_numbers(_get(e, key)):
            scaled = [repr(1000.0 * float(w)) if k < 3 else w for k, w in enumerate(words)]
            _set(e, key, " ".join(scaled))
    return f"every {what} times 1000", False


CHANGES = (
    _other_number,
    _other_number,
    _bad_number,
    _other_name,
    _swapped_ends,
    _lost,
    _twice,
    _moved,
    _lost_attribute,
    _units,
)
